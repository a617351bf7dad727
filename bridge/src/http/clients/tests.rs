use std::sync::Arc;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::super::{
    Limits,
    credential::{Clients, Known},
    fake::*,
};
use crate::{
    caller::{Pass, Scope, token::TokenHash},
    snapshot::ApiMode,
};

const SECRET: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN-_0";

/// Clients with one scope each; their ids say which.
struct Scoped;

impl Clients for Scoped {
    fn find(&self, id: &str) -> Option<Known> {
        let (scopes, servers) = match id {
            "r" => (vec![Scope::Read], None),
            "c" => (vec![Scope::Call], None),
            "m" => (vec![Scope::Manage], None),
            "f" => (vec![Scope::Read, Scope::Call], Some(vec!["files".to_owned()])),
            _ => return None,
        };
        Some(Known {
            hash: TokenHash::of(&format!("ncb_{id}_{SECRET}")),
            pass: Arc::new(Pass {
                id: id.into(),
                name: "Claude Code".into(),
                scopes,
                servers,
                asks_itself: false,
                label: format!("client:{id}"),
                paired: None,
            }),
        })
    }

    fn api_mode(&self) -> ApiMode {
        ApiMode::Open
    }

    fn is_pairing_open(&self) -> bool {
        false
    }
}

fn with(request: &str, id: &str) -> String {
    request.replacen("\r\n", &format!("\r\nAuthorization: Bearer ncb_{id}_{SECRET}\r\n"), 1)
}

async fn as_owner(server: &Running, request: &str) -> Reply {
    let mut local = server.connect_local().await;
    local.write_all(request.as_bytes()).await.unwrap();
    Reply::read(&mut local).await
}

#[tokio::test]
async fn a_token_does_what_its_scopes_say_and_nothing_else() {
    let server = Running::start_for(Limits::default(), Arc::new(Scoped)).await;
    let call = post("/mcp/call", r#"{"name":"t"}"#);
    let remove = post("/mcp/servers/remove", r#"{"id":"files"}"#);
    for (request, may) in [
        (get("/mcp/tools"), "r"),
        (get("/mcp/servers"), "r"),
        (get("/mcp/servers/files"), "r"),
        (get("/mcp/auto-approved"), "r"),
        (get("/mcp/approvals"), "r"),
        (call, "c"),
        (get("/mcp/results/x"), "c"),
    ] {
        for id in ["r", "c", "m"] {
            let reply = server.ask(with(&request, id)).await;
            match id == may {
                true => assert_eq!(reply.status, 200, "{id} {request}"),
                false => assert_eq!(
                    (reply.status, reply.refusal().as_str()),
                    (403, "scope_missing"),
                    "{id} {request}"
                ),
            }
        }
    }
    for id in ["r", "c", "m"] {
        assert_eq!(server.ask(with(&get("/healthz"), id)).await.status, 200);
    }
    server.api.take_done();
    // What may be wished for is looked at where it is known; here it only has to arrive as the client's.
    assert_eq!(server.ask(with(&remove, "m")).await.status, 202);
    assert_eq!(
        server.api.take_done(),
        ["wish client:m Removing the connector \"files\""]
    );
    server.stop().await;
}

#[tokio::test]
async fn a_token_for_some_connectors_shows_those_alone() {
    let server = Running::start_for(Limits::default(), Arc::new(Scoped)).await;
    let tools = server.ask(with(&get("/mcp/tools"), "f")).await;
    assert!(
        tools.body.contains("mcp__files__read") && !tools.body.contains("mcp__other__"),
        "{}",
        tools.body
    );
    let unseen = server.ask(with(&get("/mcp/tools?server=other"), "f")).await;
    assert_eq!((unseen.status, unseen.refusal().as_str()), (404, "unknown_server"));
    let servers = server.ask(with(&get("/mcp/servers"), "f")).await.json();
    let ids: Vec<_> = servers["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].clone())
        .collect();
    assert_eq!(ids, [json!("files")]);
    let approved = server.ask(with(&get("/mcp/auto-approved"), "f")).await;
    assert!(!approved.body.contains("mcp__other__"), "{}", approved.body);
    let everybodys = server.ask(get("/mcp/tools")).await;
    assert!(everybodys.body.contains("mcp__other__read"));
    server.stop().await;
}

#[tokio::test]
async fn clients_pairing_and_trust_are_the_owners() {
    let server = Running::start_for(Limits::default(), Arc::new(Scoped)).await;
    let delete = "DELETE /mcp/clients/a1 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned();
    let answer = r#"{"answer":{"pairing_id":"p1","code":"012345","terms":{"scopes":["read"]}}}"#;
    let requests = [
        (get("/mcp/clients"), "clients"),
        (post("/mcp/clients/a1", r#"{"asks_itself":true}"#), "change_client a1"),
        (delete, "revoke_client a1"),
        (get("/mcp/pairing"), ""),
        (post("/mcp/pairing", r#"{"open":true}"#), "open_pairing"),
        (post("/mcp/pairing", r#"{"open":false}"#), "close_pairing"),
        (post("/mcp/pairing", r#"{"turn_away":"p1"}"#), "turn_away p1"),
        (post("/mcp/pairing", answer), "answer_pairing p1 012345"),
        (get("/mcp/trust"), ""),
        (
            post("/mcp/trust", r#"{"api_mode":"token","walk_in":"allow"}"#),
            "set_trust",
        ),
        (post("/mcp/trust/askers", r#"{"path":"/x","on":true}"#), "set_asker /x"),
    ];
    for (request, done) in &requests {
        for caller in [request.clone(), with(request, "m")] {
            let reply = server.ask(&caller).await;
            assert_eq!(
                (reply.status, reply.refusal().as_str()),
                (403, "scope_missing"),
                "{caller}"
            );
        }
        assert_eq!(server.api.take_done(), [""; 0]);
        let reply = as_owner(&server, request).await;
        assert_eq!(reply.status, 200, "{request} {}", reply.body);
        let did = server.api.take_done();
        assert!(did.iter().all(|did| did.starts_with(done)), "{request} {did:?}");
        assert_eq!(did.is_empty(), done.is_empty(), "{request}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_program_asks_to_be_paired_and_comes_back_for_its_token() {
    let server = Running::start().await;
    let begun = server.ask(post("/mcp/clients/pair", r#"{"name":"Claude Code"}"#)).await;
    assert_eq!(
        begun.json(),
        json!({"ok": true, "pairing_id": "p1", "code": "012345", "expires_in": 120})
    );
    for (id, expected) in [
        ("p1", json!({"ok": true, "state": "waiting"})),
        ("denied", json!({"ok": true, "state": "denied"})),
        ("paired", json!({"ok": true, "state": "paired", "token": "ncb_a"})),
    ] {
        let body = json!({"pairing_id": id}).to_string();
        let reply = server.ask(post("/mcp/clients/pair", &body)).await;
        assert_eq!((reply.status, reply.json()), (200, expected), "{id}");
    }
    let unknown = server.ask(post("/mcp/clients/pair", r#"{"pairing_id":"x"}"#)).await;
    assert_eq!((unknown.status, unknown.refusal().as_str()), (404, "not_found"));
    for body in ["{}", r#"{"name":"x","pairing_id":"p1"}"#, r#"{"name":"x","code":"1"}"#] {
        let reply = server.ask(post("/mcp/clients/pair", body)).await;
        assert_eq!((reply.status, reply.refusal().as_str()), (400, "bad_request"), "{body}");
    }
    server.stop().await;
}
