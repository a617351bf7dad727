use std::collections::HashMap;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use url::Url;

use super::*;

fn client(url: &str) -> HttpClient {
    let watch = Watch {
        stream_open: Arc::default(),
        replaced: Arc::new(|_, _| {}),
    };
    HttpClient::new(Web::new(&Url::parse(url).unwrap()).unwrap(), watch)
}

#[tokio::test]
async fn no_error_names_the_address_whose_query_may_be_secret() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await.unwrap();
            let refusal = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(refusal).await.unwrap();
        }
    });
    let url = format!("http://{address}/mcp?key=SENTINEL");
    let client = client(&url);
    let message: ClientJsonRpcMessage = serde_json::from_str(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).unwrap();
    let ask = async |uri: &str| {
        let deleted = client
            .delete_session(uri.into(), "s".into(), None, HashMap::new())
            .await;
        let streamed = client.web.get_events(uri, HeaderMap::new()).await;
        let posted = client
            .post_message(uri.into(), message.clone(), None, None, HashMap::new())
            .await;
        [deleted.unwrap_err(), streamed.unwrap_err(), posted.unwrap_err()]
    };
    let answered = ask(&url).await;
    server.abort();
    let _ = server.await;
    let unreachable = ask(&url).await;
    for error in answered.iter().chain(&unreachable) {
        let told = format!("{error} {error:?}");
        assert!(!told.contains("SENTINEL"), "{told}");
    }
}
