//! What keeps an upstream from starting, and what its owner is told. What programs do wrong once they run is the matter
//! of `hostile_stdio` and `hostile_calls`; coming back after a loss, of `healing` and `patience`.

use std::time::Instant;

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::Fake,
    home::Home,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

/// One try, so that an episode ends within a test.
fn impatient(fake: Fake) -> Value {
    fake.member("timeouts", json!({"connectMs": 600})).entry()
}

fn failed(row: &Value) -> bool {
    matches!(row["status"].as_str(), Some("error" | "retrying"))
}

#[test]
fn a_call_to_a_silent_upstream_ends_with_a_sentence() {
    let bridge = Daemon::serving(Home::new(), [("silent", impatient(Fake::new("silent")))]);
    let begin = Instant::now();
    let answer = bridge
        .owner_post("/mcp/servers/reconnect", &json!({"id": "silent"}))
        .ok();
    assert_eq!(answer["verified"], false, "{answer}");
    assert!(
        answer["server"]["error"].as_str().is_some_and(|error| error.len() > 20),
        "{answer}"
    );
    assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
}

#[test]
fn a_crash_at_start_shows_exit_code_and_last_words_to_the_owner_only() {
    let fake = Fake::new("crash")
        .option("say", "missing API_KEY=hunter2")
        .option("exit", 7);
    let bridge = Daemon::serving(Home::new(), [("crash", fake.entry())]);
    let row = eventually("the crash is seen", SOON, || bridge.server("crash").filter(failed));
    assert!(
        row["error"].as_str().is_some_and(|error| error.contains('7')),
        "the exit code: {row}"
    );
    assert!(
        row["error_detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("missing API_KEY=[REDACTED]")),
        "{row}"
    );
    for path in ["/mcp/servers", "/mcp/servers/crash"] {
        let text = bridge.get(path).text();
        assert!(!text.contains("hunter2"), "{text}");
        assert!(text.contains("\"error\""), "the walk-in sees that it failed: {text}");
    }
    let log = bridge.owner_get("/mcp/servers/crash/log").text();
    assert!(log.contains("missing API_KEY=[REDACTED]"), "{log}");
    for file in std::fs::read_dir(bridge.home.neuron().join("connect/logs")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn what_an_entry_holds_under_a_secret_name_is_shown_nowhere_even_where_nothing_names_it() {
    let fake = Fake::new("crash")
        .option("say", "nobody knows plain-looking-value here")
        .member("env", json!({"SERVICE_KEY": "plain-looking-value"}));
    let bridge = Daemon::serving(Home::new(), [("crash", fake.entry())]);
    let row = eventually("the crash is seen", SOON, || bridge.server("crash").filter(failed));
    assert_eq!(row["error_detail"], "nobody knows [REDACTED] here", "{row}");
    let log = bridge.owner_get("/mcp/servers/crash/log").text();
    assert!(
        log.contains("nobody knows [REDACTED] here") && !log.contains("plain-looking-value"),
        "{log}"
    );
}

#[test]
fn a_program_that_does_not_exist_is_named_and_found_once_it_is_there() {
    let home = Home::new();
    let folder = home.path().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("not-yet-there");
    let bridge = Daemon::serving(home, [("late", json!({"command": program, "args": ["ok"]}))]);
    let row = bridge.wait_for_status("late", "error");
    assert!(
        row["error"]
            .as_str()
            .is_some_and(|error| error.contains("not-yet-there")),
        "{row}"
    );
    std::os::unix::fs::symlink(neuron_tests::program::fake_upstream(), &program).unwrap();
    bridge.owner_post("/mcp/servers/reconnect", &json!({"id": "late"})).ok();
    bridge.wait_for_tool("mcp__late__echo");
}

#[test]
fn a_thousand_tools_are_listed_in_their_order() {
    let entry = Fake::new("ok").option("list", "many").option("tools", 1000).entry();
    let bridge = Daemon::serving(Home::new(), [("fake", entry)]);
    bridge.wait_for_tool("mcp__fake__tool_999");
    let expected: Vec<_> = (0..1000).map(|n| format!("mcp__fake__tool_{n}")).collect();
    assert_eq!(bridge.tool_names(), expected);
}

#[test]
fn a_missing_variable_or_secret_names_itself_and_starts_nothing() {
    let home = Home::new();
    let unset = Fake::new("ok")
        .record(&home.record("unset"))
        .member("env", json!({"A": "${env:NOT_SET_ANYWHERE}"}));
    let secret = Fake::new("ok")
        .record(&home.record("secret"))
        .member("env", json!({"A": "${secret:MY_TOKEN}"}));
    let bridge = Daemon::serving(
        home,
        [
            ("unset", unset.entry()),
            ("secret", secret.entry()),
            ("token", json!({"url": "http://127.0.0.1:9/mcp", "auth": "token"})),
            ("good", Fake::new("ok").entry()),
        ],
    );
    let row = bridge.wait_for_status("unset", "error");
    assert!(
        row["error"]
            .as_str()
            .is_some_and(|error| error.contains("NOT_SET_ANYWHERE")),
        "{row}"
    );
    let row = bridge.wait_for_status("secret", "needs_secret");
    assert!(
        row["error"].as_str().is_some_and(|error| error.contains("MY_TOKEN")),
        "{row}"
    );
    assert_eq!(row["action"], "set_secret", "{row}");
    bridge.wait_for_status("token", "needs_secret");
    bridge.wait_for_tool("mcp__good__echo");
    assert_eq!(unset.seen().starts(), [0_u32; 0]);
    assert_eq!(secret.seen().starts(), [0_u32; 0]);
}

#[test]
fn a_pipe_in_place_of_an_env_file_holds_up_its_own_connector_only() {
    let home = Home::new();
    let pipe = home.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    let mut entry = Fake::new("ok").entry();
    entry["envFile"] = json!(pipe);
    let bridge = Daemon::serving(home, [("piped", entry), ("good", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__good__echo");
    let row = bridge.wait_for_status("piped", "error");
    assert!(
        row["error"].as_str().is_some_and(|error| error.contains("envFile")),
        "{row}"
    );
}

#[test]
fn a_crash_loop_gives_up_and_is_tried_again_on_demand() {
    let home = Home::new();
    let fake = Fake::new("crash").option("say", "no").record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    let row = eventually("a retry is planned", SOON, || {
        bridge
            .server("fake")
            .filter(|row| row["connection"]["retry"].is_object() || row["status"] == "error")
    });
    let retry = &row["connection"]["retry"];
    if retry.is_object() {
        assert_eq!(retry["number"].as_u64().map(|n| n >= 1), Some(true), "{retry}");
        assert!(
            retry["delay_ms"].as_u64().is_some_and(|ms| ms >= 500),
            "no storm: {retry}"
        );
    }
    assert!(row["action"].is_string(), "one thing to do: {row}");
}

#[test]
fn a_home_without_a_path_still_says_what_it_needs() {
    let home = Home::new();
    home.write_config(r#"{"servers":{"npx":{"command":"npx-that-nobody-has","args":["-y","x"]}}}"#);
    let bridge = Daemon::start_in(home, Setup::default().path("/nonexistent"));
    let row = bridge.wait_for_status("npx", "error");
    assert!(
        row["error"]
            .as_str()
            .is_some_and(|error| error.contains("npx-that-nobody-has")),
        "{row}"
    );
}
