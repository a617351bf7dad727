//! What the person decides about callers is in the activity, once.

use neuron_tests::{
    http::Connection,
    wait::{SOON, eventually_equals},
};
use serde_json::{Value, json};

use super::{pair, with_fake};

#[test]
fn what_is_decided_about_callers_and_what_is_paused_is_told_once_and_only_where_it_changes_something() {
    let bridge = with_fake();
    let (id, _) = pair(&bridge, &json!({"scopes": ["read", "call"]}));
    let path = format!("/mcp/clients/{id}");
    for change in [
        json!({"scopes": ["read", "call"]}),
        json!({"asks_itself": true}),
        json!({"scopes": ["read"]}),
        json!({"asks_itself": false}),
    ] {
        bridge.owner_post(&path, &change).ok();
    }
    Connection::open(&bridge.local()).send("DELETE", &path, &[], b"").ok();
    for (path, body) in [
        ("/mcp/trust/askers", json!({"path": "/opt/agent", "on": true})),
        ("/mcp/trust/askers", json!({"path": "/opt/agent", "on": false})),
        ("/mcp/trust", json!({"walk_in": "ask"})),
        ("/mcp/trust", json!({"walk_in": "ask"})),
        ("/mcp/trust", json!({"walk_in": "allow"})),
        ("/mcp/trust", json!({"api_mode": "token"})),
        ("/mcp/trust", json!({"api_mode": "open"})),
        ("/mcp/trust", json!({"allowed_origins": ["https://a.example"]})),
        ("/mcp/trust", json!({"allowed_origins": []})),
        ("/mcp/trust", json!({"paused": true})),
        ("/mcp/trust", json!({"paused": true})),
        ("/mcp/trust", json!({"paused": false})),
    ] {
        bridge.owner_post(path, &body).ok();
    }
    let told = || {
        let page = bridge.owner_get("/mcp/activity?limit=100").ok();
        let mut told: Vec<_> = page["entries"].as_array()?.iter().filter_map(decision).collect();
        told.reverse();
        Some(told)
    };
    let wanted = [
        "paired Claude Code",
        "asks_itself Claude Code",
        "client_changed Claude Code",
        "asked_here Claude Code",
        "unpaired Claude Code",
        "asks_itself /opt/agent",
        "asked_here /opt/agent",
        "walk_ins_asked",
        "walk_ins_allowed",
        "token_needed",
        "token_not_needed",
        "pages https://a.example",
        "pages",
        "paused",
        "resumed",
    ];
    eventually_equals(
        "every decision is told",
        Some(wanted.map(str::to_owned).to_vec()),
        SOON,
        told,
    );
    bridge.terminate();
}

/// What an entry says, where it is about no connector.
fn decision(entry: &Value) -> Option<String> {
    let what = &entry["what"];
    if !what["server"].is_null() {
        return None;
    }
    let of = what["of"].as_str().or_else(|| what["change"].as_str())?;
    assert_eq!(
        (&entry["who"]["kind"], &entry["outcome"]),
        (&json!("owner"), &json!("ok")),
        "{entry}"
    );
    Some(
        format!("{of} {}", what["subject"].as_str().unwrap_or_default())
            .trim()
            .to_owned(),
    )
}
