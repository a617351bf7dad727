//! What happened, as the owner reads it: over the API, on the command line, as a file, and after a crash.

use std::{fs, thread};

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::Fake,
    home::{Home, config_text},
    http::Connection,
    signing_in::SignIn,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

const ECHO: &str = "mcp__fake__echo";

fn with_fake() -> Daemon {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    bridge.wait_for_tool(ECHO);
    bridge
}

fn entries(bridge: &Daemon, query: &str) -> Vec<Value> {
    let page = bridge.owner_get(&format!("/mcp/activity?{query}")).ok();
    page["entries"].as_array().unwrap().clone()
}

/// The only one that the query finds.
fn only(bridge: &Daemon, query: &str) -> Value {
    let found = entries(bridge, query);
    assert_eq!(found.len(), 1, "{query}: {found:?}");
    found[0].clone()
}

#[test]
fn a_call_a_failed_one_and_a_change_are_there_with_who_did_it_and_how_it_ended() {
    let bridge = with_fake();
    bridge.call_text(
        ECHO,
        &json!({"path": "/home/p/SENTINEL.txt", "deep": {"n": 1.5}, "force": true}),
    );
    bridge.owner_post("/mcp/call", &json!({"name": "mcp__fake__fail"}));
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "fake", "enabled": false}))
        .ok();
    bridge
        .post("/mcp/call", &json!({"name": ECHO}))
        .refused(409, "disabled");

    let call = only(&bridge, "kind=call&outcome=ok");
    assert_eq!(
        call["what"],
        json!({
            "kind": "call", "server": "fake", "tool": "echo",
            "arguments": {"kept": "shape", "value": {"path": "text(20)", "deep": {"n": "number"}, "force": true}},
        })
    );
    assert_eq!(
        (&call["who"]["kind"], &call["allowed_by"]["by"]),
        (&json!("walk_in"), &json!("policy"))
    );
    assert!(call["duration_ms"].is_u64() && call["at"].is_u64(), "{call}");

    let failed = only(&bridge, "outcome=failed&caller=owner");
    assert_eq!(
        (&failed["what"]["tool"], &failed["code"]),
        (&json!("fail"), &json!("tool_error")),
        "{failed}"
    );
    assert_eq!(failed["allowed_by"]["by"], "owner");

    let change = only(&bridge, "kind=change");
    assert_eq!(
        (&change["what"]["change"], &change["what"]["server"]),
        (&json!("turned_off"), &json!("fake"))
    );

    let off = only(&bridge, "outcome=failed&caller=walk_in");
    assert_eq!(off["code"], "disabled");
    assert!(!bridge.owner_get("/mcp/activity").text().contains("SENTINEL"));
    assert!(!bridge.owner_get("/mcp/activity?format=csv").text().contains("SENTINEL"));
    bridge.get("/mcp/activity").refused(403, "scope_missing");
}

#[test]
fn a_sign_in_is_there_and_no_token_of_it() {
    let here = SignIn::behind(&[("scopes", "read")]);
    here.bridge.wait_for_status("remote", "needs_sign_in");
    here.sign_in("remote");
    let entry = only(&here.bridge, "kind=sign_in");
    assert_eq!(
        (&entry["what"]["server"], &entry["outcome"]),
        (&json!("remote"), &json!("ok")),
        "{entry}"
    );
}

#[test]
fn a_change_that_somebody_saves_in_the_file_is_there() {
    let bridge = with_fake();
    let other = Fake::new("ok").entry();
    bridge
        .home
        .write_config(&config_text([("fake", Fake::new("ok").entry()), ("second", other)]));
    bridge.wait_for_tool("mcp__second__echo");
    let entry = only(&bridge, "kind=change");
    assert_eq!(
        (
            &entry["what"]["change"],
            &entry["what"]["server"],
            &entry["who"]["kind"]
        ),
        (&json!("file_added"), &json!("second"), &json!("itself"))
    );
}

#[test]
fn arguments_in_full_are_there_on_request_and_without_secrets() {
    let home = Home::new();
    home.write_settings(&json!({"activity": {"arguments": "full"}}));
    let held = "held-value-0123456789";
    let mut entry = Fake::new("ok").entry();
    entry["env"]["FAKE_KEY"] = json!("${env:PLANTED}");
    home.write_config(&config_text([("fake", entry)]));
    let bridge = Daemon::start_in(home, Setup::default().variable("PLANTED", held));
    bridge.wait_for_tool(ECHO);
    let token = format!("ghp_{}", "aB3dE5fG7h".repeat(4));
    bridge.call_text(
        ECHO,
        &json!({"path": "/home/p/a.txt", "password": "hunter2", "note": format!("{token} and {held}!"), "n": 1}),
    );
    let call = only(&bridge, "kind=call");
    assert_eq!(
        call["what"]["arguments"],
        json!({"kept": "full", "value": {
            "path": "/home/p/a.txt", "password": "[REDACTED]", "note": "[REDACTED] and [REDACTED]!", "n": 1,
        }})
    );
    for file in ["connect/state.db", "connect/state.db-wal"] {
        let kept = fs::read(bridge.home.neuron().join(file)).unwrap_or_default();
        for secret in ["hunter2", &token, held] {
            let found = kept.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} in {file}");
        }
    }
}

#[test]
fn pages_and_files_hold_the_same_entries() {
    let bridge = with_fake();
    for n in 0..7 {
        bridge.call_text(ECHO, &json!({"n": n}));
    }
    let mut paged = Vec::new();
    let mut query = "limit=3".to_owned();
    loop {
        let page = bridge.owner_get(&format!("/mcp/activity?{query}")).ok();
        paged.extend(page["entries"].as_array().unwrap().clone());
        match page["next"].as_u64() {
            Some(next) => query = format!("limit=3&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(paged.len(), 7);
    let file = bridge.owner_get("/mcp/activity?format=jsonl");
    assert_eq!(file.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> = file
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines, paged);
    let table = bridge.owner_get("/mcp/activity?format=csv").text();
    assert_eq!(table.split_terminator("\r\n").count(), 8, "{table}");
    assert!(table.starts_with("id,time,caller,"), "{table}");

    let path = bridge.home.path().join("activity.jsonl");
    let saved = bridge.command(&["activity", "--export", "jsonl", path.to_str().unwrap()]);
    assert!(saved.status.success(), "{saved:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), file.text());
    let again = bridge.command(&["activity", "--export", "jsonl", path.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(1), "an existing file stays: {again:?}");
    let shown = bridge.command(&["activity", "--outcome", "ok", "--since", "1h", "-n", "2"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown.matches("fake · echo {\"n\":\"number\"}").count(), 2, "{shown}");
}

#[test]
fn new_entries_are_told_to_the_owner_alone() {
    let bridge = with_fake();
    let mut owner = Connection::open(&bridge.local()).events("/mcp/events", &[]);
    let mut walk_in = Connection::open(&bridge.tcp()).events("/mcp/events", &[]);
    bridge.call_text(ECHO, &json!({}));
    let told = owner.next("the entry", |event| event.name == "activity_recorded").data;
    assert_eq!(entries(&bridge, "limit=1")[0]["id"], told["newest"]);
    bridge.call_text(ECHO, &json!({}));
    for end in ["the first call's end", "the second call's end"] {
        walk_in.next(end, |event| {
            assert_ne!(event.name, "activity_recorded");
            event.name == "call_finished"
        });
    }
}

#[test]
fn a_killed_bridge_loses_the_last_moment_at_most_and_a_stopped_one_nothing() {
    let bridge = with_fake();
    for n in 0..20 {
        bridge.call_text(ECHO, &json!({"n": n}));
    }
    // Asking for them has them written.
    assert_eq!(entries(&bridge, "kind=call").len(), 20);
    let bridge = Daemon::start_in(bridge.kill9(), Setup::default());
    bridge.wait_for_tool(ECHO);
    assert_eq!(entries(&bridge, "kind=call").len(), 20);
    bridge.call_text(ECHO, &json!({"last": true}));
    let bridge = bridge.restart();
    assert_eq!(entries(&bridge, "kind=call").len(), 21);
}

#[test]
fn thousands_of_calls_at_once_are_all_there() {
    let bridge = with_fake();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut connection = Connection::open(&bridge.tcp());
                for n in 0..500 {
                    let body = json!({"name": ECHO, "input": {"n": n}}).to_string();
                    assert_eq!(connection.send("POST", "/mcp/call", &[], body.as_bytes()).status, 200);
                }
            });
        }
    });
    let table = bridge.owner_get("/mcp/activity?format=jsonl&kind=call").text();
    assert_eq!(table.lines().count(), 4_000);
    let lost = eventually("nothing lost", SOON, || Some(entries(&bridge, "kind=lost")));
    assert!(lost.is_empty(), "{lost:?}");
}
