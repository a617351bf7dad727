//! How long a program is waited for, and how soon one that stands still or ends is replaced.

use std::{fs, os::unix::fs::symlink, time::Instant};

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::Fake,
    home::{Home, config_text},
    process, program,
    wait::{SOON, eventually},
};
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn a_program_that_fails_at_first_is_used_once_it_starts() {
    let home = Home::new();
    let late = Fake::new("ok")
        .option("crash-times", 3)
        .option("say", "not yet")
        .record(&home.record("late"));
    let bridge = Daemon::serving(home, [("late", late.entry()), ("good", Fake::new("ok").entry())]);
    let row = eventually("its first failure", SOON, || {
        bridge.server("late").filter(|row| row["status"] == "retrying")
    });
    assert!(
        row["error_detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("not yet")),
        "{row}"
    );
    bridge.wait_for_tool("mcp__good__echo");
    bridge.wait_for_tool("mcp__late__echo");
    let row = bridge.wait_for_status("late", "connected");
    assert_eq!((&row["error"], &row["action"]), (&Value::Null, &Value::Null), "{row}");
    assert_eq!(bridge.call_text("mcp__late__echo", &json!({})), "{}");
    assert_eq!(bridge.children().len(), 2);
}

#[test]
fn a_long_start_of_a_plain_program_fails_by_its_deadline() {
    let home = Home::new();
    // Only package runners are given more time for what they say.
    let chatty = Fake::new("ok")
        .option("install", 4000)
        .member("timeouts", json!({"connectMs": 1000}));
    let bridge = Daemon::serving(home, [("chatty", chatty.entry())]);
    let row = bridge.wait_for_status("chatty", "retrying");
    assert!(
        row["error"].as_str().is_some_and(|error| error.contains("within 1 s")),
        "{row}"
    );
}

/// A bridge whose PATH begins with a folder in which this fake is `npx`.
fn with_package_runner(fake: &Fake) -> Daemon {
    let home = Home::new();
    let folder = home.path().join("bin");
    fs::create_dir(&folder).expect("the home is writable");
    symlink(program::fake_upstream(), folder.join("npx")).expect("the folder is writable");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("PATH is set"));
    // The login shell is asked too, and a system's profile sets its own PATH.
    fs::write(home.path().join(".profile"), format!("PATH='{path}'\n")).expect("the home is writable");
    let mut entry = fake
        .clone()
        .record(&home.record("runner"))
        .member("timeouts", json!({"connectMs": 1000}))
        .entry();
    entry["command"] = json!("npx");
    home.write_config(&config_text([("runner", entry)]));
    Daemon::start_in(home, Setup::default().path(&path))
}

#[test]
fn a_package_runner_that_says_nothing_fails_by_its_deadline() {
    let bridge = with_package_runner(&Fake::new("ok").option("delay", 4000));
    let row = bridge.wait_for_status("runner", "retrying");
    assert!(
        row["error"].as_str().is_some_and(|error| error.contains("within 1 s")),
        "{row}"
    );
    assert_eq!(row["progress"], Value::Null, "{row}");
}

#[test]
fn a_package_runner_that_says_what_it_does_is_waited_for_and_the_owner_sees_why() {
    let bridge = with_package_runner(&Fake::new("ok").option("install", 3000));
    let record = neuron_tests::fake::Seen::at(&bridge.home.record("runner"));
    let row = eventually("the progress of the installation", SOON, || {
        bridge.server("runner").filter(|row| row["progress"].is_string())
    });
    assert_eq!(row["status"], "connecting", "{row}");
    assert!(
        row["progress"].as_str().is_some_and(|text| text.contains("nstalling")),
        "{row}"
    );
    let seen_by_walk_ins = bridge.get("/mcp/servers").text();
    assert!(!seen_by_walk_ins.contains("npm http"), "{seen_by_walk_ins}");
    bridge.wait_for_tool("mcp__runner__echo");
    let row = bridge.wait_for_status("runner", "connected");
    assert_eq!(row["progress"], Value::Null, "{row}");
    assert_eq!(bridge.call_text("mcp__runner__echo", &json!({})), "{}");
    assert_eq!(
        record.starts().len(),
        1,
        "an installation is not killed and begun again"
    );
}

#[test]
fn a_program_that_every_call_ends_is_started_at_a_slowing_pace() {
    let home = Home::new();
    let fake = Fake::new("ok").record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__die");
    let begin = Instant::now();
    let row = eventually("a wait before the next start", SOON, || {
        let answer = bridge.call("mcp__fake__die", &json!({}));
        assert!(matches!(answer.status, 502 | 503), "{}", answer.text());
        let waits = |row: &Value| {
            row["connection"]["retry"]["delay_ms"]
                .as_u64()
                .is_some_and(|ms| ms >= 500)
        };
        bridge.server("fake").filter(waits)
    });
    assert_eq!(row["status"], "retrying", "{row}");
    assert!(
        row["error_detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("dying as told")),
        "{row}"
    );
    let (starts, seconds) = (fake.seen().starts().len(), begin.elapsed().as_secs_f64());
    assert!(starts as f64 <= 3.0 + 2.0 * seconds, "{starts} starts in {seconds} s");
    assert!(bridge.children().len() <= 1);
}

#[test]
fn a_program_that_stands_still_is_noticed_and_replaced() {
    let home = Home::new();
    home.write_settings(&json!({"pingEveryMs": 200}));
    let still = Fake::new("ok").record(&home.record("still"));
    let well = Fake::new("ok").record(&home.record("well"));
    let bridge = Daemon::serving(home, [("still", still.entry()), ("well", well.entry())]);
    for id in ["still", "well"] {
        bridge.wait_for_tool(&format!("mcp__{id}__echo"));
        bridge.call_text(&format!("mcp__{id}__echo"), &json!({}));
    }
    let stopped = still.seen().starts()[0];
    process::signal(stopped, Signal::STOP);
    still.seen().wait_for_starts(2);
    assert!(!process::is_alive(stopped), "the old process is gone first");
    bridge.wait_for_status("still", "connected");
    assert_eq!(bridge.call_text("mcp__still__echo", &json!({})), "{}");
    assert!(well.seen().messages("ping").len() >= 3, "a healthy one is asked too");
    assert_eq!(well.seen().starts().len(), 1, "and left alone");
}

#[test]
fn a_program_that_is_busy_with_a_call_is_not_taken_for_a_silent_one() {
    let home = Home::new();
    home.write_settings(&json!({"pingEveryMs": 200}));
    let busy = Fake::new("ok").record(&home.record("busy"));
    let bridge = Daemon::serving(home, [("busy", busy.entry())]);
    bridge.wait_for_tool("mcp__busy__slow");
    std::thread::scope(|scope| {
        let call = scope.spawn(|| bridge.call_text("mcp__busy__slow", &json!({"ms": 500})));
        busy.seen().wait_for("tools/call", 1);
        let pid = busy.seen().starts()[0];
        process::signal(pid, Signal::STOP);
        let stopped = Instant::now();
        eventually("the time of four missed pings", SOON, || {
            (stopped.elapsed().as_secs() >= 6).then_some(())
        });
        process::signal(pid, Signal::CONT);
        assert!(!call.join().expect("the call").is_empty());
    });
    assert_eq!(busy.seen().starts().len(), 1);
}
