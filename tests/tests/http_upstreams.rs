//! Upstreams over streamable HTTP, and all that lies between.

use std::time::{Duration, Instant};

use neuron_tests::{
    daemon::Daemon,
    fake::HttpFake,
    home::Home,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

fn behind(options: &[(&str, &str)]) -> (Daemon, HttpFake) {
    let home = Home::new();
    let upstream = HttpFake::start(home.path(), "remote", options);
    let bridge = Daemon::serving(home, [("remote", upstream.entry())]);
    (bridge, upstream)
}

fn settled(bridge: &Daemon) -> Value {
    eventually("the attempt ends", SOON, || {
        bridge
            .server("remote")
            .filter(|row| !matches!(row["status"].as_str(), Some("connecting" | "sleeping")))
    })
}

/// No answer of ours repeats what an upstream's error page said.
fn assert_discreet(bridge: &Daemon) {
    for path in ["/mcp/servers", "/mcp/servers/remote"] {
        for answer in [bridge.get(path), bridge.owner_get(path)] {
            assert!(!answer.text().contains("SECRET-BODY"), "{}", answer.text());
        }
    }
}

#[test]
fn both_ways_of_answering_and_both_eras_work() {
    for answers in ["json", "sse"] {
        for (era, word) in [("legacy", "legacy"), ("modern", "modern"), ("both", "modern")] {
            for get in ["405", "stream"] {
                let (bridge, _upstream) = behind(&[("answers", answers), ("era", era), ("get", get)]);
                bridge.wait_for_tool("mcp__remote__echo");
                let input = r#"{"n":12345678901234567890123,"f":1.10}"#;
                let body = format!(r#"{{"name":"mcp__remote__echo","input":{input}}}"#);
                assert_eq!(
                    bridge.post_text("/mcp/call", &body).ok()["text"],
                    input,
                    "{answers} {era} {get}"
                );
                let row = bridge.server("remote").unwrap();
                assert_eq!(
                    (&row["status"], &row["connection"]["era"]),
                    (&json!("connected"), &json!(word)),
                    "{get}"
                );
                assert_eq!(
                    row["connection"]["readiness"], "unknown",
                    "a finished discovery proves no healthy stream"
                );
            }
        }
    }
}

#[test]
fn an_upstream_that_was_restarted_is_used_again() {
    let home = Home::new();
    let upstream = HttpFake::start(home.path(), "remote", &[("forget-after", "1000")]);
    let (port, folder) = (upstream.port, home.path().to_owned());
    let bridge = Daemon::serving(home, [("remote", upstream.entry())]);
    bridge.wait_for_tool("mcp__remote__echo");
    bridge.call_text("mcp__remote__echo", &json!({}));
    drop(upstream);
    let _again = HttpFake::start_at(port, &folder, "again", &[("forget-after", "1000")]);
    assert_eq!(bridge.call_text("mcp__remote__echo", &json!({"n": 1})), "{\"n\":1}");
}

#[test]
fn a_401_asks_for_a_sign_in_with_and_without_its_header() {
    for refusal in ["401", "401-bare"] {
        let (bridge, upstream) = behind(&[("refuse", refusal)]);
        let row = bridge.wait_for_status("remote", "needs_sign_in");
        assert_eq!(row["auth"]["state"], "needs-sign-in", "{refusal}: {row}");
        assert_eq!(row["action"], "sign_in", "{refusal}: {row}");
        assert!(
            row["connection"]["retry"].is_null(),
            "{refusal}: nobody knocks again by itself: {row}"
        );
        assert_discreet(&bridge);
        assert!(upstream.seen().lines().len() < 20, "{refusal}: no storm");
    }
}

#[test]
fn a_busy_upstream_is_left_alone_for_as_long_as_it_asks() {
    for (status, retry_after) in [("429", "3"), ("503", "3")] {
        let (bridge, upstream) = behind(&[
            ("refuse", &format!("status={status}")),
            ("retry-after", retry_after),
            ("refuse-times", "1000"),
        ]);
        let row = bridge.wait_for_status("remote", "retrying");
        let retry = &row["connection"]["retry"];
        assert!(
            retry["delay_ms"].as_u64().is_some_and(|ms| ms >= 3000),
            "{status}: {retry}"
        );
        assert_eq!(retry["number"], 1, "{status}: {retry}");
        let (at, next) = (
            retry["scheduled_at"].as_u64().unwrap(),
            retry["next_attempt_at"].as_u64().unwrap(),
        );
        assert_eq!(next - at, retry["delay_ms"].as_u64().unwrap(), "{retry}");
        assert!(
            row["error"].as_str().is_some_and(|error| error.contains(status)),
            "{row}"
        );
        assert_discreet(&bridge);
        assert!(upstream.seen().lines().len() < 20, "{status}: no storm");
    }
}

#[test]
fn an_absurd_wait_is_bounded() {
    let (bridge, _upstream) = behind(&[("refuse", "status=503"), ("retry-after", "99999999")]);
    let row = bridge.wait_for_status("remote", "retrying");
    let delay = row["connection"]["retry"]["delay_ms"].as_u64().unwrap();
    assert!((3_000_000..=3_700_000).contains(&delay), "one hour: {delay} ms");
}

#[test]
fn a_call_that_would_wait_long_says_when_to_come_again() {
    let home = Home::new();
    let upstream = HttpFake::start(home.path(), "remote", &[]);
    let port = upstream.port;
    let folder = home.path().to_owned();
    let bridge = Daemon::serving(home, [("remote", upstream.entry())]);
    bridge.wait_for_tool("mcp__remote__echo");
    drop(upstream);
    let _busy = HttpFake::start_at(
        port,
        &folder,
        "busy",
        &[("refuse", "status=503"), ("retry-after", "60")],
    );
    let bridge = bridge.restart();
    bridge.owner_post("/mcp/servers/reconnect", &json!({"id": "remote"}));
    bridge.wait_for_status("remote", "retrying");
    let begin = Instant::now();
    let answer = bridge.call("mcp__remote__echo", &json!({}));
    answer.refused(503, "unavailable");
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "it does not wait a minute: {:?}",
        begin.elapsed()
    );
    let seconds: u64 = answer.header("retry-after").expect("when").parse().unwrap();
    assert!((1..=61).contains(&seconds), "{seconds}");
    assert!(
        bridge.tool_names().contains(&"mcp__remote__echo".to_owned()),
        "its tools stay listed"
    );
}

#[test]
fn a_web_page_is_no_upstream_and_its_text_is_not_repeated() {
    let (bridge, _upstream) = behind(&[("refuse", "html")]);
    let row = settled(&bridge);
    assert!(matches!(row["status"].as_str(), Some("error" | "retrying")), "{row}");
    assert!(row["error"].as_str().is_some_and(|error| error.len() > 20), "{row}");
    assert_discreet(&bridge);
}

#[test]
fn a_redirect_to_another_origin_is_not_followed() {
    let home = Home::new();
    let elsewhere = HttpFake::start(home.path(), "elsewhere", &[]);
    let upstream = HttpFake::start(
        home.path(),
        "remote",
        &[("refuse", &format!("redirect={}", elsewhere.url()))],
    );
    let mut entry = upstream.entry();
    entry["headers"] = json!({"X-Key": "for-the-first-only"});
    let bridge = Daemon::serving(home, [("remote", entry)]);
    let row = settled(&bridge);
    assert!(matches!(row["status"].as_str(), Some("error" | "retrying")), "{row}");
    let arrived: Vec<_> = elsewhere
        .seen()
        .lines()
        .into_iter()
        .filter(|line| !line.starts_with("# start"))
        .collect();
    assert_eq!(arrived, [""; 0], "nothing went to the other origin");
}

#[test]
fn an_oversized_answer_fails_its_own_call_and_the_next_one_works() {
    let oversized = format!("oversized={}", 40 * 1024 * 1024);
    let (bridge, _upstream) = behind(&[
        ("refuse", &oversized),
        ("refuse-method", "tools/call"),
        ("refuse-times", "1"),
    ]);
    bridge.wait_for_tool("mcp__remote__echo");
    bridge
        .call("mcp__remote__echo", &json!({}))
        .refused(502, "result_too_large");
    assert_eq!(bridge.call_text("mcp__remote__echo", &json!({"n": 1})), "{\"n\":1}");
}

#[test]
fn an_undecodable_event_ends_its_call_with_a_sentence() {
    let (bridge, _upstream) = behind(&[
        ("answers", "sse"),
        ("refuse", "undecodable"),
        ("refuse-method", "tools/call"),
        ("refuse-times", "1"),
    ]);
    bridge.wait_for_tool("mcp__remote__echo");
    let begin = Instant::now();
    bridge
        .call("mcp__remote__echo", &json!({}))
        .refused(502, "upstream_error");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!(bridge.call_text("mcp__remote__echo", &json!({"n": 1})), "{\"n\":1}");
}

#[test]
fn a_failing_status_in_a_call_is_told_without_the_upstreams_page() {
    let (bridge, upstream) = behind(&[
        ("refuse", "status=500"),
        ("refuse-method", "tools/call"),
        ("refuse-times", "1"),
    ]);
    bridge.wait_for_tool("mcp__remote__echo");
    let message = bridge
        .call("mcp__remote__echo", &json!({}))
        .refused(502, "upstream_error");
    assert!(message.contains("500") && !message.contains("SECRET-BODY"), "{message}");
    assert_eq!(
        upstream.seen().messages("tools/call").len(),
        1,
        "a call is not repeated by itself"
    );
    assert_eq!(bridge.call_text("mcp__remote__echo", &json!({})), "{}");
}

#[test]
fn when_the_caller_goes_away_the_upstream_is_told() {
    let (bridge, upstream) = behind(&[]);
    bridge.wait_for_tool("mcp__remote__hang");
    let seen = upstream.seen().clone();
    let connection = neuron_tests::http::Connection::open(&bridge.tcp());
    let body = br#"{"name":"mcp__remote__hang","input":{}}"#;
    connection.abandon("POST", "/mcp/call", body, || seen.messages("tools/call").len() == 1);
    let call: Value = serde_json::from_str(&upstream.seen().messages("tools/call")[0]).unwrap();
    let told: Value = serde_json::from_str(&upstream.seen().wait_for("notifications/cancelled", 1)[0]).unwrap();
    assert_eq!(told["params"]["requestId"], call["id"]);
}

#[test]
fn an_upstream_that_is_not_there_yet_is_found_when_it_comes() {
    let home = Home::new();
    let port = neuron_tests::upstream::free_port();
    let folder = home.path().to_owned();
    let entry = json!({"url": format!("http://127.0.0.1:{port}/mcp")});
    let bridge = Daemon::serving(home, [("remote", entry)]);
    let row = bridge.wait_for_status("remote", "retrying");
    assert!(row["error"].as_str().is_some_and(|error| error.len() > 20), "{row}");
    let _upstream = HttpFake::start_at(port, &folder, "remote", &[]);
    bridge.wait_for_tool("mcp__remote__echo");
    bridge.wait_for_status("remote", "connected");
}

#[test]
fn headers_of_the_entry_go_to_their_upstream() {
    let home = Home::new();
    let upstream = HttpFake::start(home.path(), "remote", &[]);
    let mut entry = upstream.entry();
    entry["headers"] = json!({"Authorization": "Bearer ${env:UNSET:-from-the-default}"});
    let bridge = Daemon::serving(home, [("remote", entry)]);
    bridge.wait_for_tool("mcp__remote__echo");
    let notes = upstream.seen().lines();
    assert!(
        notes
            .iter()
            .any(|line| line.contains("authorization=Bearer from-the-default")),
        "{notes:?}"
    );
}

#[test]
fn arguments_that_a_modern_tool_wants_in_headers_travel_there_too() {
    let (bridge, upstream) = behind(&[("era", "modern"), ("list", "headers")]);
    bridge.wait_for_tool("mcp__remote__echo");
    let input = json!({"region": "Zürich", "where": {"n": 7}});
    assert_eq!(bridge.call_text("mcp__remote__echo", &input), input.to_string());
    let wanted = "# with mcp-method=tools/call mcp-name=echo mcp-param-region==?base64?WsO8cmljaA==?= \
                  mcp-param-where-n=7 mcp-protocol-version=2026-07-28";
    let lines = upstream.seen().lines();
    assert!(lines.iter().any(|line| line == wanted), "{lines:#?}");

    let (bridge, upstream) = behind(&[("era", "legacy"), ("list", "headers")]);
    bridge.wait_for_tool("mcp__remote__torn");
    bridge.call_text("mcp__remote__echo", &input);
    assert!(!upstream.seen().lines().iter().any(|line| line.contains("mcp-param")));
}

#[test]
fn a_tool_that_wants_headers_no_client_may_send_is_hidden_with_the_reason_also_after_a_restart() {
    let (bridge, _upstream) = behind(&[("era", "modern"), ("list", "headers")]);
    bridge.wait_for_tool("mcp__remote__echo");
    let bridge = bridge.restart();
    assert_eq!(bridge.tool_names(), ["mcp__remote__echo"]);
    let detail = bridge.get("/mcp/servers/remote").ok();
    let rejected = &detail["rejected"][0];
    assert_eq!(rejected["name"], "torn", "{detail}");
    let reason = rejected["reason"].as_str().unwrap();
    assert!(reason.contains("the same header"), "{reason}");
    bridge
        .call("mcp__remote__torn", &json!({}))
        .refused(404, "unknown_tool");
}
