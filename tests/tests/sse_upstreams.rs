//! Upstreams over the old HTTP+SSE transport, declared and found out.

use std::time::{Duration, Instant};

use neuron_tests::{
    daemon::Daemon,
    fake::HttpFake,
    home::Home,
    upstream::{Everything, EverythingOverHttp},
    wait::{SOON, eventually, eventually_equals},
};
use serde_json::{Value, json};

/// Starts a server of the old transport and the bridge in front of it, declared as such.
fn behind(options: &[(&str, &str)]) -> (Daemon, HttpFake) {
    let home = Home::new();
    let mut all = vec![("old-sse", "405")];
    all.extend(options);
    let upstream = HttpFake::start(home.path(), "old", &all);
    let entry = json!({"transport": "sse", "url": upstream.url_at("/sse")});
    let bridge = Daemon::serving(home, [("old", entry)]);
    (bridge, upstream)
}

fn settled(bridge: &Daemon) -> Value {
    eventually("the attempt ends", SOON, || {
        bridge
            .server("old")
            .filter(|row| !matches!(row["status"].as_str(), Some("connecting" | "sleeping")))
    })
}

#[test]
fn a_real_server_works_declared_and_undeclared_and_after_its_restart() {
    let server = EverythingOverHttp::start(Everything::Sse);
    let port = server.port;
    let mut declared = server.entry();
    declared["transport"] = json!("sse");
    let mut http = server.entry();
    http["transport"] = json!("http");
    let entries = [("declared", declared), ("unspecified", server.entry()), ("http", http)];
    let ids = ["declared", "unspecified", "http"];
    let bridge = Daemon::serving(Home::new(), entries);
    let works = |when: &str| {
        for id in ids {
            let sum = bridge.call_text(&format!("mcp__{id}__get_sum"), &json!({"a": 2, "b": 40}));
            assert_eq!(sum, "The sum of 2 and 40 is 42.", "{id} {when}");
        }
    };
    for id in ids {
        bridge.wait_for_tool(&format!("mcp__{id}__echo"));
        let row = bridge.wait_for_status(id, "connected");
        assert_eq!(row["connection"]["era"], "legacy", "{row}");
        // Two of them are for clients that put questions to a person; it says later that they are there.
        eventually("15 tools", SOON, || (bridge.server(id)?["tools"] == 15).then_some(()));
    }
    works("at first");
    drop(server);
    for id in ids {
        bridge.wait_for_status(id, "retrying");
        let log = bridge.owner_get(&format!("/mcp/servers/{id}/log")).text();
        assert!(log.contains("stream of events"), "a person reads what ended: {log}");
    }
    let _again = EverythingOverHttp::start_at(port, Everything::Sse);
    for id in ids {
        bridge.owner_post("/mcp/servers/reconnect", &json!({"id": id})).ok();
    }
    works("after the restart");
}

#[test]
fn only_an_unknown_request_to_both_greetings_has_the_old_transport_tried() {
    for status in ["400", "404", "405", "406", "411", "415"] {
        let home = Home::new();
        let upstream = HttpFake::start(home.path(), "old", &[("old-sse", status)]);
        let bridge = Daemon::serving(home, [("old", upstream.entry())]);
        bridge.wait_for_tool("mcp__old__echo");
        assert_eq!(
            bridge.call_text("mcp__old__echo", &json!({"n": 1})),
            "{\"n\":1}",
            "{status}"
        );
        let row = bridge.server("old").unwrap();
        assert_eq!(row["transport"], "http", "shown as in the entry: {row}");
    }
    for refusal in [
        "401",
        "status=401",
        "status=403",
        "status=407",
        "status=429",
        "status=500",
        "html",
        "close",
    ] {
        let home = Home::new();
        let upstream = HttpFake::start(home.path(), "old", &[("refuse", refusal), ("get", "stream")]);
        let bridge = Daemon::serving(home, [("old", upstream.entry())]);
        settled(&bridge);
        assert_eq!(upstream.seen().requests("GET"), 0, "{refusal}");
    }
}

#[test]
fn when_the_old_transport_fails_too_the_first_cause_is_told() {
    for (refusal, get, told) in [
        ("status=404", "405", "status 404"),
        ("status=400", "400", "status 400"),
        ("status=406", "closes", "status 406"),
    ] {
        let home = Home::new();
        let upstream = HttpFake::start(home.path(), "old", &[("refuse", refusal), ("get", get)]);
        let bridge = Daemon::serving(home, [("old", upstream.entry())]);
        let row = bridge.wait_for_status("old", "error");
        assert!(row["error"].as_str().is_some_and(|error| error.contains(told)), "{row}");
        assert_eq!(upstream.seen().requests("GET"), 1, "it was tried once: {refusal}");
    }
}

#[test]
fn messages_go_to_no_other_origin() {
    let home = Home::new();
    let elsewhere = HttpFake::start(home.path(), "elsewhere", &[]);
    let endpoint = elsewhere.url_at("/message?session=1");
    let upstream = HttpFake::start(home.path(), "old", &[("old-sse", "405"), ("endpoint", &endpoint)]);
    let entry = json!({
        "transport": "sse",
        "url": upstream.url_at("/sse"),
        "headers": {"X-Key": "for-the-first-only"},
    });
    let bridge = Daemon::serving(home, [("old", entry)]);
    let row = bridge.wait_for_status("old", "error");
    let error = row["error"].as_str().unwrap();
    assert!(
        error.contains("another place") && error.contains(&elsewhere.url_at("")) && !error.contains("session=1"),
        "{error}"
    );
    assert_eq!(elsewhere.seen().requests("POST"), 0, "nothing went there");
    assert_eq!(upstream.seen().requests("POST"), 0, "nor anywhere");
}

#[test]
fn a_stream_without_an_endpoint_is_told_as_such() {
    let home = Home::new();
    let silent = HttpFake::start(home.path(), "silent", &[("get", "stream")]);
    let closing = HttpFake::start(home.path(), "closing", &[("get", "closes")]);
    let entry = |upstream: &HttpFake| json!({"transport": "sse", "url": upstream.url_at("/sse")});
    let bridge = Daemon::serving(home, [("silent", entry(&silent)), ("closing", entry(&closing))]);
    for (id, told) in [("closing", "closed the stream"), ("silent", "where to send messages")] {
        let row = bridge.wait_for_status(id, "error");
        assert!(row["error"].as_str().is_some_and(|error| error.contains(told)), "{row}");
    }
}

#[test]
fn a_stream_that_breaks_during_a_call_ends_the_call_and_the_next_one_works() {
    let home = Home::new();
    let counter = home.path().join("counter").display().to_string();
    let options = [
        ("old-sse", "405"),
        ("counter", &counter),
        ("refuse", "unanswered"),
        ("refuse-method", "tools/call"),
        ("refuse-times", "1"),
    ];
    let upstream = HttpFake::start(home.path(), "old", &options);
    let entry = json!({"transport": "sse", "url": upstream.url_at("/sse")});
    let bridge = Daemon::serving(home, [("old", entry)]);
    bridge.wait_for_tool("mcp__old__counter");
    let begin = Instant::now();
    let told = bridge
        .call("mcp__old__counter", &json!({}))
        .refused(502, "upstream_error");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(told.contains("may or may not"), "{told}");
    assert_eq!(
        bridge.call_text("mcp__old__counter", &json!({})),
        "2",
        "the first ran once, this one too"
    );
    assert_eq!(upstream.seen().messages("initialize").len(), 2, "in a new session");
    assert_eq!(
        upstream.seen().messages("tools/call").len(),
        2,
        "nothing was sent twice"
    );
    assert_eq!(
        upstream.seen().messages("server/discover").len(),
        0,
        "only the older greeting is spoken here"
    );
}

#[test]
fn a_call_that_was_turned_away_with_its_session_is_told_not_to_have_run() {
    for refusal in ["status=404", "status=410"] {
        let (bridge, upstream) = behind(&[
            ("refuse", refusal),
            ("refuse-method", "tools/call"),
            ("refuse-times", "1"),
        ]);
        bridge.wait_for_tool("mcp__old__echo");
        let told = bridge.call("mcp__old__echo", &json!({})).refused(502, "upstream_error");
        assert!(
            told.contains("did not run") && told.contains("forgotten the session") && !told.contains("may or may not"),
            "{refusal}: {told}"
        );
        let next = bridge.call_text("mcp__old__echo", &json!({"n": 1}));
        assert_eq!(next, "{\"n\":1}", "{refusal}: the next one works");
        let seen = upstream.seen();
        assert_eq!(seen.messages("initialize").len(), 2, "{refusal}: in a new session");
        assert_eq!(
            seen.messages("tools/call").len(),
            2,
            "{refusal}: nothing was sent twice"
        );
    }
}

#[test]
fn an_answer_that_cannot_be_taken_fails_its_call_alone() {
    let oversized = format!("oversized={}", 20 * 1024 * 1024);
    for (refusal, status, code) in [
        (oversized.as_str(), 502, "result_too_large"),
        ("undecodable", 502, "upstream_error"),
        ("status=403", 502, "upstream_error"),
        ("status=500", 502, "upstream_error"),
        ("status=429", 502, "upstream_error"),
    ] {
        let refused = [
            ("refuse", refusal),
            ("refuse-method", "tools/call"),
            ("refuse-times", "1"),
        ];
        let (bridge, upstream) = behind(&refused);
        bridge.wait_for_tool("mcp__old__echo");
        let message = bridge.call("mcp__old__echo", &json!({})).refused(status, code);
        assert!(!message.contains("SECRET-BODY"), "{message}");
        assert_eq!(
            bridge.call_text("mcp__old__echo", &json!({"n": 1})),
            "{\"n\":1}",
            "{refusal}"
        );
        let sessions = upstream.seen().messages("initialize").len();
        assert_eq!(sessions, 1, "{refusal}: the session lived on");
    }
}

#[test]
fn numbers_arrive_as_written_and_changes_and_cancellations_pass() {
    let (bridge, upstream) = behind(&[]);
    bridge.wait_for_tool("mcp__old__echo");
    let input = r#"{"n":12345678901234567890123,"f":1.10}"#;
    let body = format!(r#"{{"name":"mcp__old__echo","input":{input}}}"#);
    assert_eq!(bridge.post_text("/mcp/call", &body).ok()["text"], input);
    bridge.call_text("mcp__old__grow", &json!({}));
    bridge.wait_for_tool("mcp__old__grown");
    let seen = upstream.seen().clone();
    let before = seen.messages("tools/call").len();
    let connection = neuron_tests::http::Connection::open(&bridge.tcp());
    let body = br#"{"name":"mcp__old__hang","input":{}}"#;
    connection.abandon("POST", "/mcp/call", body, || {
        seen.messages("tools/call").len() == before + 1
    });
    let call: Value = serde_json::from_str(&seen.messages("tools/call")[before]).unwrap();
    let told: Value = serde_json::from_str(&seen.wait_for("notifications/cancelled", 1)[0]).unwrap();
    assert_eq!(told["params"]["requestId"], call["id"]);
    eventually_equals("one session all the time", 1, SOON, || {
        seen.messages("initialize").len()
    });
}

#[test]
fn a_server_that_answers_what_it_never_accepted_stays_usable() {
    let (bridge, upstream) = behind(&[("refuse", "stall"), ("refuse-method", "tools/call")]);
    bridge.wait_for_tool("mcp__old__echo");
    // More than there are places for messages on their way.
    for n in 0..70 {
        assert_eq!(
            bridge.call_text("mcp__old__echo", &json!({"n": n})),
            format!("{{\"n\":{n}}}")
        );
    }
    assert_eq!(upstream.seen().messages("initialize").len(), 1);
}
