use tokio::io::AsyncWriteExt as _;

use super::super::fake::{Reply, Running, post};

async fn ask_as_owner(server: &Running, bytes: &str) -> Reply {
    let mut stream = server.connect_local().await;
    stream.write_all(bytes.as_bytes()).await.unwrap();
    Reply::read(&mut stream).await
}

#[tokio::test]
async fn a_secret_goes_in_and_no_answer_repeats_it() {
    let server = Running::start().await;
    for (path, body, done) in [
        (
            "/mcp/servers/secret",
            r#"{"id":"files","secret":"SENTINEL"}"#,
            "set_secret files None SENTINEL",
        ),
        (
            "/mcp/servers/secret",
            r#"{"id":"files","name":"X_KEY","secret":"SENTINEL"}"#,
            r#"set_secret files Some(SecretName("X_KEY")) SENTINEL"#,
        ),
        (
            "/mcp/servers/forget-secret",
            r#"{"id":"files"}"#,
            "forget_secret files None",
        ),
        ("/mcp/keychain", r#"{"action":"look_again"}"#, "look_at_keychain"),
        ("/mcp/keychain", r#"{"action":"keep_until_quit"}"#, "keep_until_quit"),
    ] {
        let reply = ask_as_owner(&server, &post(path, body)).await;
        assert_eq!(
            (reply.status, reply.json()["ok"].as_bool()),
            (200, Some(true)),
            "{body}"
        );
        assert!(!reply.body.contains("SENTINEL"), "{}", reply.body);
        assert_eq!(server.api.take_done(), [done]);
    }
    for body in [
        r#"{"id":"files","secret":["SENTINEL"]}"#,
        r#"{"id":"files","secret":{"SENTINEL":"SENTINEL"}}"#,
        r#"{"id":"files","name":"a b","secret":"SENTINEL"}"#,
        r#"{"id":"files","name":["X"],"secret":"SENTINEL"}"#,
        r#"{"id":["x"],"secret":"SENTINEL"}"#,
        r#"{"id":"files","secret":"SENTINEL","secret":"SENTINEL"}"#,
        r#"{"id":"files","secret":"SENTINEL","more":1}"#,
        r#"{"id":"files","secret":"SENTINEL"#,
        r#"{"id":"files","name":"K"}"#,
    ] {
        let reply = ask_as_owner(&server, &post("/mcp/servers/secret", body)).await;
        assert_eq!((reply.status, reply.refusal().as_str()), (400, "bad_request"), "{body}");
        assert!(!reply.body.contains("SENTINEL"), "{}", reply.body);
    }
    let reply = ask_as_owner(&server, &post("/mcp/keychain", r#"{"action":"open"}"#)).await;
    assert_eq!((reply.status, reply.refusal().as_str()), (400, "bad_request"));
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}
