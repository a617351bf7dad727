//! What a person is promised as a whole, on one bridge.

use std::time::{Duration, Instant};

use neuron_tests::{
    daemon::Daemon,
    fake::{Fake, HttpFake},
    home::Home,
    upstream::free_port,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

/// How soon the good connector's tools are there, whatever the others do.
const PROMPT: Duration = Duration::from_secs(2);

#[test]
fn beside_eleven_bad_connectors_the_good_one_lists_at_once_and_each_bad_one_says_why() {
    let home = Home::new();
    let stdio = |fake: Fake| fake.member("timeouts", json!({"connectMs": 1000})).entry();
    let http = |name: &str, refusal: &str| HttpFake::start(home.path(), name, &[("refuse", refusal)]);
    let unauthorized = http("unauthorized", "401");
    let failing = http("failing", "status=500");
    let page = http("page", "html");
    let missing = home.path().join("no-such-program");
    let bad = [
        (
            "silent",
            stdio(Fake::new("silent")),
            "did not answer within 1 s",
            "reconnect",
        ),
        (
            "crash",
            stdio(Fake::new("crash").option("say", "no API_KEY").option("exit", 3)),
            "exited with code 3",
            "reconnect",
        ),
        ("missing", json!({"command": missing}), "no-such-program", "reconnect"),
        (
            "unset",
            stdio(Fake::new("ok").member("env", json!({"A": "${env:NOT_SET_ANYWHERE}"}))),
            "NOT_SET_ANYWHERE",
            "edit",
        ),
        (
            "secret",
            stdio(Fake::new("ok").member("env", json!({"A": "${secret:MY_TOKEN}"}))),
            "MY_TOKEN",
            "set_secret",
        ),
        ("unauthorized", unauthorized.entry(), "sign in", "sign_in"),
        ("failing", failing.entry(), "HTTP status 500", "reconnect"),
        ("page", page.entry(), "text/html", "reconnect"),
        (
            "refused",
            json!({"url": format!("http://127.0.0.1:{}/mcp", free_port())}),
            "nothing listens",
            "reconnect",
        ),
        (
            "never-initialize",
            stdio(Fake::new("never-initialize")),
            "did not answer within 1 s",
            "reconnect",
        ),
        (
            "nonsense",
            stdio(Fake::new("nonsense")),
            "not as an MCP server does",
            "reconnect",
        ),
    ];
    let entries = bad.iter().map(|(id, entry, _, _)| (*id, entry.clone()));
    let good = [("good", Fake::new("ok").entry())];
    let bridge = Daemon::serving(home, entries.chain(good));
    let first_request = Instant::now();
    bridge.wait_for_tool("mcp__good__echo");
    let took = first_request.elapsed();
    assert!(took < PROMPT, "the good one's tools came after {took:?}");
    assert_eq!(bridge.call_text("mcp__good__echo", &json!({"n": 1})), "{\"n\":1}");

    for (id, _, says, action) in &bad {
        let row = eventually(&format!("{id} fails"), SOON, || {
            bridge.server(id).filter(|row| row["error"].is_string())
        });
        assert!(
            row["error"].as_str().is_some_and(|error| error.contains(says)),
            "{says}: {row}"
        );
        assert_eq!(row["action"], *action, "{row}");
        assert_eq!(row["tools"], 0, "{row}");
    }
    let row = bridge.server("good").unwrap();
    assert_eq!(
        (&row["status"], &row["error"], &row["action"]),
        (&json!("connected"), &Value::Null, &Value::Null)
    );
    assert_eq!(bridge.tool_names().len(), 13, "the good one's and nobody else's");
    bridge.terminate();
}
