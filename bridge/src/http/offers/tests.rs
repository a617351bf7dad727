use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::super::fake::{Reply, Running, get, post};

async fn ask_as_owner(server: &Running, bytes: &str) -> Reply {
    let mut stream = server.connect_local().await;
    stream.write_all(bytes.as_bytes()).await.unwrap();
    Reply::read(&mut stream).await
}

#[tokio::test]
async fn the_owner_reads_resources_and_gets_prompts_exactly_as_asked() {
    let server = Running::start().await;
    for (path, done) in [
        ("/mcp/resources", "resources None"),
        ("/mcp/resources?server=files", "resources Some(\"files\")"),
        ("/mcp/prompts", "prompts None"),
    ] {
        let reply = ask_as_owner(&server, &get(path)).await;
        assert_eq!(
            (reply.status, server.api.take_done()),
            (200, vec![done.to_owned()]),
            "{path}"
        );
    }
    let body = r#"{"server":"files","uri":"file:///ä b?x=%41"}"#;
    let reply = ask_as_owner(&server, &post("/mcp/resources/read", body)).await.json();
    let block = json!({"type": "resource", "resource": {"uri": "file:///ä b?x=%41", "text": "t"}});
    assert_eq!(reply, json!({"contents": [block]}));
    let body = r#"{"server":"files","uri":"a:b","save":true}"#;
    let reply = ask_as_owner(&server, &post("/mcp/resources/read", body)).await.json();
    assert_eq!(reply, json!({"result_id": "r", "path": "/p", "bytes": 3}));
    for (arguments, told) in [
        (r#","arguments":{"z":"1","a":"\u00e4 "}"#, r#"{"z":"1","a":"ä "}"#),
        ("", "{}"),
    ] {
        let body = format!(r#"{{"server":"files","name":"p"{arguments}}}"#);
        let reply = ask_as_owner(&server, &post("/mcp/prompts/get", &body)).await.json();
        assert_eq!(reply, json!({"messages": []}));
        assert_eq!(
            server.api.take_done().last().unwrap(),
            &format!("get_prompt owner files p {told}")
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn reads_and_prompts_that_cannot_be_meant_so_are_refused() {
    let server = Running::start().await;
    for (path, body, status, code) in [
        ("resources/read", r#"{"server":"files"}"#, 400, "bad_request"),
        ("resources/read", r#"{"server":"files","uri":""}"#, 400, "bad_request"),
        (
            "resources/read",
            r#"{"server":"files","uri":["a:b"]}"#,
            400,
            "bad_request",
        ),
        (
            "resources/read",
            r#"{"server":"files","uri":"a:b","save":"yes"}"#,
            400,
            "bad_request",
        ),
        (
            "resources/read",
            r#"{"server":"files","uri":"a:b","to":"/etc/x"}"#,
            400,
            "bad_request",
        ),
        (
            "resources/read",
            r#"{"server":"../x","uri":"a:b"}"#,
            404,
            "unknown_server",
        ),
        ("prompts/get", r#"{"server":"files"}"#, 400, "bad_request"),
        (
            "prompts/get",
            r#"{"server":"files","name":"p","arguments":{"n":1}}"#,
            400,
            "bad_request",
        ),
        (
            "prompts/get",
            r#"{"server":"files","name":"p","arguments":{"n":null}}"#,
            400,
            "bad_request",
        ),
        (
            "prompts/get",
            r#"{"server":"files","name":"p","arguments":[]}"#,
            400,
            "bad_request",
        ),
        (
            "prompts/get",
            r#"{"server":"files","name":"p","arguments":{"n":"1","n":"2"}}"#,
            400,
            "bad_request",
        ),
    ] {
        let reply = ask_as_owner(&server, &post(&format!("/mcp/{path}"), body)).await;
        assert_eq!(
            (reply.status, reply.refusal().as_str()),
            (status, code),
            "{path} {body}"
        );
    }
    for path in ["/mcp/resources?x=1", "/mcp/prompts?server=a&server=b"] {
        let reply = ask_as_owner(&server, &get(path)).await;
        assert_eq!((reply.status, reply.refusal().as_str()), (400, "bad_request"), "{path}");
    }
    let reply = ask_as_owner(&server, &get("/mcp/prompts?server=a%2Fb")).await;
    assert_eq!((reply.status, reply.refusal().as_str()), (404, "unknown_server"));
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}
