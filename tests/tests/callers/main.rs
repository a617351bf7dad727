//! Who may do what: walk-ins, paired clients and the owner, on the running bridge.

mod pairing;
mod tokens;
mod told;
mod wishes;

use neuron_tests::{
    daemon::Daemon,
    fake::Fake,
    home::Home,
    http::{Answer, Connection},
};
use serde_json::{Value, json};

fn with_fake() -> Daemon {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge
}

/// The id under which it waits; the answer says nothing else.
fn waits(answer: &Answer) -> String {
    assert_eq!(answer.status, 202, "{}", answer.text());
    let body = answer.json();
    let keys: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["ok", "pending", "approval_id", "error"]);
    assert_eq!((&body["ok"], &body["pending"]), (&json!(false), &json!(true)));
    body["approval_id"].as_str().unwrap().to_owned()
}

fn state(bridge: &Daemon, id: &str) -> String {
    let seen = bridge.get(&format!("/mcp/approvals/{id}")).ok();
    assert!(seen.get("question").is_none(), "{seen}");
    seen["state"].as_str().unwrap().to_owned()
}

fn answer(bridge: &Daemon, id: &str, answer: &str) -> Answer {
    bridge.owner_post(&format!("/mcp/approvals/{id}"), &json!({"answer": answer}))
}

fn with_token(bridge: &Daemon, token: &str, method: &str, path: &str, body: &Value) -> Answer {
    let header = format!("Bearer {token}");
    let body = match method {
        "GET" => Vec::new(),
        _ => body.to_string().into_bytes(),
    };
    Connection::open(&bridge.tcp()).send(method, path, &[("authorization", &header)], &body)
}

/// Pairs a client on these terms; its id and token.
fn pair(bridge: &Daemon, terms: &Value) -> (String, String) {
    bridge.owner_post("/mcp/pairing", &json!({"open": true})).ok();
    let begun = bridge.post("/mcp/clients/pair", &json!({"name": "Claude Code"})).ok();
    let paired = bridge
        .owner_post(
            "/mcp/pairing",
            &json!({"answer": {"pairing_id": begun["pairing_id"], "code": begun["code"], "terms": terms}}),
        )
        .ok();
    let told = bridge
        .post("/mcp/clients/pair", &json!({"pairing_id": begun["pairing_id"]}))
        .ok();
    assert_eq!(told["state"], "paired", "{told}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&paired["client"]["id"]), text(&told["token"]))
}
