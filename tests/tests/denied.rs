//! Servers that let requests in no longer, or never: what becomes of calls, of the session, and of what was under way.

use neuron_tests::{daemon::Daemon, fake::HttpFake, home::Home, http::Connection};
use serde_json::{Value, json};

fn behind(options: &[(&str, &str)], members: &Value) -> (Daemon, HttpFake) {
    let home = Home::new();
    let upstream = HttpFake::start(home.path(), "remote", options);
    let mut entry = upstream.entry();
    for (name, value) in members.as_object().unwrap() {
        entry[name] = value.clone();
    }
    let bridge = Daemon::serving(home, [("remote", entry)]);
    (bridge, upstream)
}

const NOW_AND_THEN: [(&str, &str); 2] = [("refuse-method", "tools/call"), ("refuse-times", "1")];

#[test]
fn a_session_that_is_let_in_no_longer_waits_for_the_person_and_knocks_no_more() {
    for (refusal, members, code, words, state, scopes) in [
        (
            "401",
            json!({}),
            "needs_sign_in",
            "sign in",
            "needs-sign-in",
            Value::Null,
        ),
        (
            "401",
            json!({"headers": {"X-Api-Key": "0123456789"}}),
            "needs_secret",
            "HTTP status 401",
            "none",
            Value::Null,
        ),
        (
            "challenge=403 Bearer error=\"insufficient_scope\", scope=\"mail.read mail.send\"",
            json!({}),
            "needs_sign_in",
            "mail.read, mail.send",
            "needs-sign-in",
            json!(["mail.read", "mail.send"]),
        ),
    ] {
        let mut options = vec![("refuse", refusal)];
        options.extend(NOW_AND_THEN);
        let (bridge, upstream) = behind(&options, &members);
        bridge.wait_for_tool("mcp__remote__echo");
        bridge.wait_for_status("remote", "connected");
        let told = bridge.call("mcp__remote__echo", &json!({})).refused(409, code);
        assert!(
            told.contains("did not run") && told.contains(words),
            "{refusal}: {told}"
        );
        let row = bridge.wait_for_status("remote", code);
        assert_eq!(
            (&row["auth"]["state"], &row["auth"]["scopes"]),
            (&json!(state), &scopes),
            "{row}"
        );
        assert!(
            bridge.tool_names().contains(&"mcp__remote__echo".to_owned()),
            "its tools stay listed"
        );
        let asked = upstream.seen().requests("POST");
        bridge.call("mcp__remote__echo", &json!({})).refused(409, code);
        assert_eq!(
            upstream.seen().requests("POST"),
            asked,
            "{refusal}: nobody knocks again"
        );
        let tried = bridge
            .owner_post("/mcp/servers/reconnect", &json!({"id": "remote"}))
            .ok();
        assert_eq!(tried["verified"], true, "{tried}");
        assert_eq!(
            bridge.call_text("mcp__remote__echo", &json!({"n": 1})),
            "{\"n\":1}",
            "{refusal}"
        );
    }
}

#[test]
fn what_is_under_way_in_a_session_that_is_given_up_is_still_answered() {
    let (bridge, upstream) = behind(
        &[
            ("refuse", "401"),
            ("refuse-method", "resources/read"),
            ("offers", "standard"),
        ],
        &json!({}),
    );
    bridge.wait_for_tool("mcp__remote__slow");
    bridge.wait_for_status("remote", "connected");
    let slow = std::thread::spawn({
        let address = bridge.tcp();
        move || {
            let body = json!({"name": "mcp__remote__slow", "input": {"ms": 1500}}).to_string();
            Connection::open(&address).send("POST", "/mcp/call", &[], body.as_bytes())
        }
    });
    upstream.seen().wait_for("tools/call", 1);
    let body = json!({"server": "remote", "uri": "fake://text"});
    bridge
        .owner_post("/mcp/resources/read", &body)
        .refused(409, "needs_sign_in");
    bridge.wait_for_status("remote", "needs_sign_in");
    let answer = slow.join().unwrap().ok();
    assert_eq!(answer["ok"], true, "{answer}");
}

#[test]
fn a_scheme_that_is_not_spoken_here_is_said_to_be_unsupported() {
    let (bridge, _upstream) = behind(&[("refuse", "challenge=401 Negotiate")], &json!({}));
    let row = bridge.wait_for_status("remote", "error");
    assert_eq!(
        (&row["auth"]["state"], &row["action"]),
        (&json!("unsupported"), &json!("edit")),
        "{row}"
    );
    assert!(row["error"].as_str().unwrap().contains("Negotiate"), "{row}");
    bridge
        .call("mcp__remote__echo", &json!({}))
        .refused(404, "unknown_tool");
}

#[test]
fn a_key_leaves_this_computer_only_encrypted() {
    let entry = json!({"url": "http://192.0.2.1/mcp", "headers": {"Authorization": "Bearer 0123456789"}});
    let bridge = Daemon::serving(Home::new(), [("remote", entry)]);
    let row = bridge.wait_for_status("remote", "error");
    assert!(row["error"].as_str().unwrap().contains("https://"), "{row}");
    assert_eq!(row["action"], "edit", "{row}");
}
