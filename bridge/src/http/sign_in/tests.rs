use std::sync::atomic::Ordering;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::{
    super::fake::{Reply, Running, get, post},
    *,
};

const QUERY: &str = "/mcp/oauth/callback?state=s&code=SENTINEL-CODE&iss=https%3A%2F%2Fas.example";

async fn as_owner(server: &Running, bytes: &str) -> Reply {
    let mut stream = server.connect_local().await;
    stream.write_all(bytes.as_bytes()).await.unwrap();
    Reply::read(&mut stream).await
}

fn answer_to(server: &Running, outcome: SignInOutcome) {
    *server.api.outcome.lock().unwrap() = outcome;
}

#[tokio::test]
async fn each_outcome_has_its_calm_page_and_only_a_sign_in_is_a_success() {
    let server = Running::start().await;
    for (outcome, status, title) in [
        (SignInOutcome::SignedIn, 200, "You are signed in"),
        (SignInOutcome::Expired, 400, "This sign-in took too long"),
        (SignInOutcome::InvalidState, 400, "No sign-in waits for this answer"),
        (SignInOutcome::Denied, 400, "The access was not allowed"),
        (SignInOutcome::Failed, 400, "The sign-in did not work"),
    ] {
        answer_to(&server, outcome);
        let reply = server.ask(get(QUERY)).await;
        assert_eq!(reply.status, status, "{outcome:?}");
        assert!(
            reply.head.contains("content-type: text/html; charset=utf-8"),
            "{reply:?}"
        );
        assert!(reply.body.contains(&format!("<h1>{title}</h1>")), "{reply:?}");
        assert!(reply.body.contains("Neuron Connect"), "it says where to go: {reply:?}");
        reply.assert_common_headers();
        assert_eq!(server.api.take_done(), ["finish_sign_in the answer of a sign-in"]);
    }
    server.stop().await;
}

#[tokio::test]
async fn nothing_that_a_stranger_sends_is_in_the_page() {
    let server = Running::start().await;
    let sent =
        "state=s&error=SENTINEL&error_description=%3Cscript%3Ealert(1)%3C%2Fscript%3E%20SENTINEL&error_uri=SENTINEL";
    for query in [
        QUERY.to_owned(),
        format!("/mcp/oauth/callback?{sent}"),
        format!("/mcp/oauth/callback?{sent}&id=SENTINEL"),
        "/mcp/oauth/callback?SENTINEL".to_owned(),
        "/mcp/oauth/callback?state=SENTINEL&state=SENTINEL".to_owned(),
        "/mcp/oauth/callback".to_owned(),
    ] {
        for outcome in [SignInOutcome::Denied, SignInOutcome::Failed, SignInOutcome::SignedIn] {
            answer_to(&server, outcome);
            let reply = server.ask(get(&query)).await;
            let text = format!("{}{}", reply.head, reply.body);
            for absent in [
                "SENTINEL", "<script", "alert", "http://", "https://", "PRIVATE", "style",
            ] {
                assert!(
                    !text.contains(absent) && !text.contains(&absent.to_lowercase()),
                    "{query}: {text}"
                );
            }
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn an_answer_that_cannot_be_one_reaches_no_sign_in() {
    let server = Running::start().await;
    for query in [
        "",
        "?",
        "?state=s",
        "?code=c",
        "?state=s&code=c&code=d",
        "?state=s&code=c&error=e",
    ] {
        let reply = server.ask(get(&format!("/mcp/oauth/callback{query}"))).await;
        assert_eq!(reply.status, 400, "{query}");
        assert!(reply.body.contains("No sign-in waits"), "{query}: {reply:?}");
    }
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn a_browser_that_comes_from_another_site_gets_in_with_get_alone() {
    let server = Running::start().await;
    let with = |method: &str, path: &str| {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nSec-Fetch-Site: cross-site\r\nConnection: close\r\n\r\n"
        )
    };
    assert_eq!(server.ask(with("GET", QUERY)).await.status, 200);
    server.api.take_done();
    for (method, path, status) in [
        ("HEAD", QUERY, 403),
        ("POST", QUERY, 403),
        ("GET", "/mcp/oauth/callback/?state=s&code=c", 403),
        ("GET", "/mcp/oauth/start", 403),
    ] {
        assert_eq!(server.ask(with(method, path)).await.status, status, "{method} {path}");
    }
    let head = format!("HEAD {QUERY} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    let reply = server.ask(head).await;
    assert_eq!(reply.status, 405, "a HEAD uses up no answer");
    assert_eq!(server.ask(post(QUERY, "{}")).await.status, 405, "there is no POST");
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn the_page_leads_back_only_where_links_reach_the_app() {
    let server = Running::start().await;
    assert!(!server.ask(get(QUERY)).await.body.contains("href"));
    server.api.deep_links.store(true, Ordering::Relaxed);
    let reply = server.ask(get(QUERY)).await;
    assert!(reply.body.contains("<a href=\"neuron-connect://open\">"), "{reply:?}");
    assert_eq!(reply.body.matches("href").count(), 1);
    server.stop().await;
}

#[tokio::test]
async fn the_owner_signs_in_and_out_and_gives_up() {
    let server = Running::start().await;
    let reply = as_owner(&server, &post("/mcp/oauth/start", r#"{"id":"files"}"#)).await;
    assert_eq!(reply.json(), json!({"authUrl": "https://sign-in.example/?state=1"}));
    let body = r#"{"id":"files","accept_issuer":"https://as.example","redirect":"deep-link"}"#;
    as_owner(&server, &post("/mcp/oauth/start", body)).await;
    let reply = as_owner(&server, &post("/mcp/oauth/cancel", r#"{"id":"files"}"#)).await;
    assert_eq!(reply.json(), json!({"ok": true}));
    let reply = as_owner(&server, &post("/mcp/oauth/sign-out", r#"{"id":"files"}"#)).await;
    assert_eq!(reply.json(), json!({"ok": true, "signedOut": true}));
    assert_eq!(
        server.api.take_done(),
        [
            "sign_in files None None",
            "sign_in files Some(\"https://as.example\") Some(DeepLink)",
            "cancel_sign_in files",
            "sign_out files",
        ]
    );
    for body in [
        r#"{"id":"files","redirect":"web"}"#,
        r#"{"id":"files","issuer":"x"}"#,
        "{}",
    ] {
        let reply = as_owner(&server, &post("/mcp/oauth/start", body)).await;
        assert_eq!((reply.status, reply.refusal().as_str()), (400, "bad_request"), "{body}");
    }
    let reply = server.ask(post("/mcp/oauth/cancel", r#"{"id":"files"}"#)).await;
    assert_eq!((reply.status, reply.refusal().as_str()), (403, "scope_missing"));
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}
