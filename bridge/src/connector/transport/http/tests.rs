use std::collections::HashMap;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use url::Url;

use super::{super::Authorization, *};

fn client(url: &str) -> HttpClient {
    watched(url, |_, _| {})
}

fn watched(url: &str, replaced: impl Fn(&str, &str) + Send + Sync + 'static) -> HttpClient {
    let watch = Watch {
        stream_open: Arc::default(),
        replaced: Arc::new(replaced),
    };
    HttpClient::new(
        Web::new(&Url::parse(url).unwrap(), Authorization::default()).unwrap(),
        watch,
    )
}

/// Answers every request on every connection with this, and leaves the connection open.
async fn server(answer: &'static str) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                while stream.read(&mut request).await.is_ok_and(|n| n > 0) {
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    url
}

#[tokio::test]
async fn a_stream_is_said_to_be_open_for_as_long_as_it_is() {
    let url = server(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n",
    )
    .await;
    let client = client(&url);
    let is_open = || client.watch.stream_open.load(Ordering::Relaxed);
    let mut stream = client
        .get_stream(url.as_str().into(), Some("s".into()), None, None, HashMap::new())
        .await
        .unwrap();
    assert!(!is_open(), "asked for, but not there yet");
    let event = stream.next().await.unwrap().unwrap();
    assert!(event.data.unwrap().contains("list_changed"));
    assert!(is_open());
    drop(stream);
    assert!(!is_open());
}

#[tokio::test]
async fn only_a_session_that_both_sides_agreed_on_replaces_another() {
    let url = server("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let tell = told.clone();
    let client = watched(&url, move |earlier, now| {
        tell.lock().unwrap().push(format!("{earlier} → {now}"));
    });
    let say = async |client: &HttpClient, session: &str, method: &str| {
        let message = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        let message = serde_json::from_str(&message).unwrap();
        let said = client.post_message(url.as_str().into(), message, Some(session.into()), None, HashMap::new());
        said.await.unwrap();
    };
    say(&client, "a", "notifications/initialized").await;
    say(&client, "b", "notifications/roots/list_changed").await;
    assert_eq!(*told.lock().unwrap(), [""; 0]);
    say(&client, "c", "notifications/initialized").await;
    say(&client.another(), "d", "notifications/initialized").await;
    assert_eq!(
        *told.lock().unwrap(),
        ["a → c"],
        "another transport begins with nothing"
    );
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

#[tokio::test]
async fn a_stream_goes_on_behind_its_last_event() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (tell, mut asked) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        for n in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            let head = String::from_utf8_lossy(&request[..length]).to_ascii_lowercase();
            let resumed = head
                .lines()
                .find(|line| line.starts_with("last-event-id"))
                .map(str::to_owned);
            tell.send(resumed).unwrap();
            let event = format!("id: e{n}\nretry: 100\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"m{n}\"}}\n\n");
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            stream.write_all(format!("{head}{event}").as_bytes()).await.unwrap();
        }
    });
    let client = client(&url);
    let stream = client
        .get_stream(url.as_str().into(), Some("s".into()), None, None, HashMap::new())
        .await
        .unwrap();
    let texts: Vec<_> = stream.take(3).map(|event| event.unwrap()).collect().await;
    for (n, event) in texts.iter().enumerate() {
        assert!(
            event
                .data
                .as_deref()
                .is_some_and(|data| data.contains(&format!("m{n}"))),
            "{texts:?}"
        );
        assert_eq!(event.id, None, "the SDK would otherwise go on by itself");
    }
    for resumed in [None, Some("last-event-id: e0"), Some("last-event-id: e1")] {
        assert_eq!(asked.recv().await.unwrap().as_deref(), resumed);
    }
}

#[tokio::test]
async fn a_stream_that_is_ended_before_it_says_a_message_is_opened_ever_more_rarely() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (tell, mut asked) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            tell.send(tokio::time::Instant::now()).unwrap();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            let nothing = ": hello\n\nretry: 10\nid: 7\ndata:\n\nevent: ping\ndata: {}\n\n";
            stream.write_all(format!("{head}{nothing}").as_bytes()).await.unwrap();
        }
    });
    let client = client(&url);
    let mut stream = client
        .get_stream(url.as_str().into(), Some("s".into()), None, None, HashMap::new())
        .await
        .unwrap();
    let listening = tokio::spawn(async move { stream.next().await });
    let mut times = Vec::new();
    for _ in 0..3 {
        times.push(asked.recv().await.unwrap());
    }
    listening.abort();
    let waits: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(waits, [1, 2], "a message is what counts, and a second is the least");
}

#[tokio::test]
async fn nothing_of_a_transport_goes_on_once_its_guard_is_dropped() {
    let never = server("").await;
    let stalled = server("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\n").await;
    let half = server("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{").await;
    for url in [&never, &stalled, &half] {
        let client = client(url);
        let later = client.another();
        let guard = client.guard();
        let post = |method: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"x"}}}}"#);
            let message = serde_json::from_str(&text).unwrap();
            client.post_message(url.as_str().into(), message, None, None, HashMap::new())
        };
        let reading = async |method: &str| match post(method).await {
            Ok(StreamableHttpPostResponse::Sse(mut events, _)) => events.next().await.is_none(),
            Ok(_) => false,
            Err(error) => matches!(error, StreamableHttpError::TransportChannelClosed),
        };
        let give_up = async {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            drop(guard);
        };
        let (greeting, call, ()) = tokio::join!(reading("server/discover"), reading("tools/call"), give_up);
        assert!(greeting && call, "{url}");
        assert!(!later.state.over.is_cancelled(), "another transport is another one's");
    }
}

#[tokio::test]
async fn a_greeting_is_answered_in_time_whatever_the_server_holds_back() {
    let rows = [
        server("").await,
        server("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\n").await,
        server("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{").await,
    ];
    for url in &rows {
        let client = client(url);
        let post = async |text: &str| {
            let message = serde_json::from_str(text).unwrap();
            let posted = client.post_message(url.as_str().into(), message, None, None, HashMap::new());
            tokio::time::pause();
            let begin = tokio::time::Instant::now();
            let answer = posted.await;
            let took = begin.elapsed().as_secs();
            tokio::time::resume();
            (answer, took)
        };
        let (probe, took) = post(r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{}}}"#).await;
        let Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(refused), None)) = probe else {
            panic!("a refused probe: {probe:?}");
        };
        assert_eq!((refused.error.code, took), (ErrorCode::METHOD_NOT_FOUND, 8), "{url}");
        let initialize = r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"n","version":"1"}}}"#;
        let (initialized, took) = post(initialize).await;
        assert!(
            matches!(initialized, Err(StreamableHttpError::Io(_))),
            "{initialized:?}"
        );
        assert_eq!(took, 60, "{url}");
    }
}

#[tokio::test]
async fn a_server_that_takes_a_message_and_says_nothing_is_given_up_after_a_minute() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut kept = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            let accepted = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(accepted.as_bytes()).await.unwrap();
            kept.push(stream);
        }
    });
    let client = client(&url);
    let post = |text: &str| {
        let message = serde_json::from_str(text).unwrap();
        client.post_message(url.as_str().into(), message, None, None, HashMap::new())
    };
    // The connection stands before time is stopped, and is used again.
    post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await
        .unwrap();
    tokio::time::pause();
    let begin = tokio::time::Instant::now();
    let silent = post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    assert!(matches!(silent, Err(StreamableHttpError::Io(_))), "{silent:?}");
    assert_eq!(begin.elapsed().as_secs(), 60);
}
