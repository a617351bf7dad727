//! The command line beside a running bridge: what it prints, and how it ends.

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Output},
};

use neuron_tests::{
    authority::Authority,
    daemon::{Daemon, Setup, command_in, command_line},
    fake::Fake,
    home::{Home, config_text},
    process, program,
    tray::Tray,
    wait::{SOON, eventually},
};
use rustix::process::Signal;
use serde_json::{Value, json};

const DONE: i32 = 0;
const FAILED: i32 = 1;
const USAGE: i32 = 2;
const NO_BRIDGE: i32 = 3;
const NEEDS_YOU: i32 = 4;

fn with_fake() -> Daemon {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn complaint(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs a command that must end with this code; returns what it printed.
fn run(bridge: &Daemon, arguments: &[&str], code: i32) -> String {
    let output = bridge.command(arguments);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{arguments:?}: {} {}",
        text(&output),
        complaint(&output)
    );
    if code != DONE {
        assert!(
            complaint(&output).len() > 15 || !text(&output).is_empty(),
            "{arguments:?} fails without a word"
        );
    }
    assert!(
        !text(&output).contains('\u{1b}'),
        "no colour where there is no terminal"
    );
    text(&output)
}

fn json_of(bridge: &Daemon, arguments: &[&str], code: i32) -> Value {
    let arguments: Vec<_> = arguments.iter().copied().chain(["--json"]).collect();
    let printed = run(bridge, &arguments, code);
    serde_json::from_str(&printed).unwrap_or_else(|e| panic!("{arguments:?} printed no JSON ({e}): {printed}"))
}

#[test]
fn status_shows_every_connector_and_what_is_wrong_with_it() {
    let home = Home::new();
    let crash = Fake::new("crash").option("say", "no").entry();
    let bridge = Daemon::serving(
        home,
        [
            ("fake", Fake::new("ok").entry()),
            ("broken", json!({"command": "nobody-has-this"})),
            ("crash", crash),
        ],
    );
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.wait_for_status("broken", "error");
    let shown = run(&bridge, &["status"], DONE);
    for part in ["fake", "13", "broken", "nobody-has-this", &bridge.port.to_string()] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let rows = json_of(&bridge, &["status"], DONE);
    assert_eq!(rows["servers"].as_array().unwrap().len(), 3, "{rows}");
}

#[test]
fn status_names_the_place_of_a_slip_in_the_file() {
    let bridge = with_fake();
    bridge.home.write_config("{\n  \"servers\": {,}\n}\n");
    eventually("status tells the slip", SOON, || {
        run(&bridge, &["status"], DONE).contains("line 2").then_some(())
    });
}

#[test]
fn what_is_not_there_is_told_with_a_command_that_lists_what_is() {
    let bridge = with_fake();
    let commands: [(&[&str], &str); 5] = [
        (&["remove", "nosuch"], "status"),
        (&["sign-in", "nosuch"], "status"),
        (&["call", "zzzzzzzz"], "tools"),
        (&["approve", "nosuch"], "approvals"),
        (&["deny", "nosuch"], "approvals"),
    ];
    for (arguments, lister) in commands {
        let output = bridge.command(arguments);
        assert_eq!(output.status.code(), Some(FAILED), "{arguments:?}");
        let told = complaint(&output);
        assert!(
            told.contains(&format!("\"neuron-connectd {lister}\" lists")) && !told.contains("/mcp/"),
            "{arguments:?}: {told}"
        );
    }
}

#[test]
fn what_a_connector_needs_is_told_with_the_exact_command_or_line() {
    let home = Home::new();
    let unregistered = Authority::start(home.path(), "unregistered", &[("registration", "absent")]);
    let unprotected = Authority::start(home.path(), "unprotected", &[("pkce", "none")]);
    let team =
        json!({"transport": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "${secret:TEAM_KEY}"}});
    let bridge = Daemon::serving(
        home,
        [
            ("reg", unregistered.entry()),
            ("pk", unprotected.entry()),
            ("team", team),
        ],
    );
    bridge.wait_for_status("team", "needs_secret");
    let command = "(enter it: neuron-connectd secret set team TEAM_KEY)";
    assert!(run(&bridge, &["status"], DONE).contains(command));
    assert!(run(&bridge, &["doctor"], FAILED).contains(command));
    bridge.wait_for_status("reg", "needs_sign_in");
    bridge.wait_for_status("pk", "needs_sign_in");
    let issuer = unregistered.base();
    let client = format!(r#"  "oauth": {{"clientId": "…", "issuer": "{issuer}"}}"#);
    let without_codes = r#"  "oauth": {"allowMissingPkce": true}"#.to_owned();
    for (id, line) in [("reg", client), ("pk", without_codes)] {
        let told = complaint(&bridge.command(&["sign-in", id]));
        assert!(told.lines().any(|printed| printed == line), "{told}");
    }
    let back = format!("http://127.0.0.1:{}/mcp/oauth/callback", bridge.port);
    assert!(complaint(&bridge.command(&["sign-in", "reg"])).contains(&back));
}

#[test]
fn a_session_without_a_keychain_is_told_once() {
    let home = Home::new();
    let entry = |port: u16| {
        let url = format!("http://127.0.0.1:{port}/mcp");
        json!({"transport": "http", "url": url, "auth": "token"})
    };
    home.write_config(&config_text([("one", entry(1)), ("two", entry(2))]));
    let nowhere = format!("unix:path={}", home.path().join("no-bus").display());
    let setup = Setup::default()
        .argument("--secrets")
        .argument("keychain")
        .variable("DBUS_SESSION_BUS_ADDRESS", &nowhere);
    let bridge = Daemon::start_in(home, setup);
    bridge.wait_for_status("one", "keychain_unavailable");
    bridge.wait_for_status("two", "keychain_unavailable");
    for (command, code) in [("status", DONE), ("doctor", FAILED)] {
        let told = run(&bridge, &[command], code);
        assert_eq!(told.matches("No keychain runs here.").count(), 1, "{told}");
        assert_eq!(told.matches("waits for the keychain").count(), 2, "{told}");
    }
    let told = complaint(&bridge.command(&["reconnect", "one"]));
    assert!(told.contains("\"neuron-connectd serve --secrets file\""), "{told}");
}

#[test]
fn tools_are_listed_and_found() {
    let bridge = with_fake();
    let shown = run(&bridge, &["tools"], DONE);
    assert!(
        shown.contains("mcp__fake__echo") && shown.contains("mcp__fake__hang"),
        "{shown}"
    );
    let found = run(&bridge, &["tools", "-q", "echo"], DONE);
    assert!(
        found.contains("mcp__fake__echo") && !found.contains("mcp__fake__hang"),
        "{found}"
    );
    assert_eq!(
        json_of(&bridge, &["tools"], DONE)["tools"].as_array().unwrap().len(),
        13
    );
    assert_eq!(
        json_of(&bridge, &["tools", "--server", "fake"], DONE)["tools"]
            .as_array()
            .unwrap()
            .len(),
        13
    );
    run(&bridge, &["tools", "--server", "nobody"], FAILED);
}

#[test]
fn call_prints_the_tools_text_and_fails_when_it_fails() {
    let bridge = with_fake();
    let given = r#"{"n":12345678901234567890123,"f":1.10}"#;
    assert_eq!(
        run(&bridge, &["call", "mcp__fake__echo", given], DONE).trim_end(),
        given
    );
    let pairs = run(&bridge, &["call", "mcp__fake__echo", "text=a b", "n:=1.10"], DONE);
    assert_eq!(pairs.trim_end(), r#"{"text":"a b","n":1.10}"#);
    let failed = bridge.command(&["call", "mcp__fake__fail"]);
    assert_eq!(failed.status.code(), Some(FAILED));
    assert!(complaint(&failed).contains("it did not work"), "{}", complaint(&failed));
    assert_eq!(
        json_of(&bridge, &["call", "mcp__fake__fail"], FAILED)["code"],
        "tool_error"
    );
    let unknown = bridge.command(&["call", "mcp__fake__ecko"]);
    assert_eq!(unknown.status.code(), Some(FAILED));
    assert!(
        complaint(&unknown).contains("mcp__fake__echo"),
        "did you mean: {}",
        complaint(&unknown)
    );
    run(&bridge, &["call", "mcp__fake__echo", "no-equals-sign"], USAGE);
    run(&bridge, &["call"], USAGE);
}

#[test]
fn a_connector_is_added_turned_off_and_on_reconnected_and_removed() {
    let bridge = Daemon::serving(Home::new(), []);
    let fake = program::fake_upstream().display().to_string();
    run(
        &bridge,
        &["add", "mine", "-e", "A=b=c", "--", &fake, "ok", "--say", "two words"],
        DONE,
    );
    bridge.wait_for_tool("mcp__mine__argv");
    assert!(
        bridge
            .call_text("mcp__mine__argv", &json!({}))
            .contains("\"two words\"")
    );
    assert!(bridge.call_text("mcp__mine__env", &json!({})).contains("A=b=c"));

    run(&bridge, &["disable", "mine"], DONE);
    assert_eq!(bridge.status("mine"), "disabled");
    assert!(
        bridge.home.config().contains("\"enabled\": false"),
        "{}",
        bridge.home.config()
    );
    run(&bridge, &["call", "mcp__mine__echo"], FAILED);
    run(&bridge, &["enable", "mine"], DONE);
    assert_eq!(run(&bridge, &["call", "mcp__mine__echo"], DONE).trim_end(), "{}");
    assert_eq!(json_of(&bridge, &["reconnect", "mine"], DONE)["verified"], true);

    run(
        &bridge,
        &["add", "far", "http://127.0.0.1:9/mcp", "-H", "X-Key: v"],
        DONE,
    );
    let far: Value = serde_json::from_str(&bridge.home.config()).unwrap();
    assert_eq!(
        far["servers"]["far"],
        json!({"transport": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "v"}})
    );
    run(&bridge, &["reconnect", "far"], FAILED);
    run(&bridge, &["add", "far", "http://127.0.0.1:9/mcp"], FAILED);
    run(&bridge, &["add", "../x", "http://127.0.0.1:9/mcp"], USAGE);
    run(&bridge, &["add", "y"], USAGE);

    run(&bridge, &["remove", "mine"], DONE);
    assert!(bridge.server("mine").is_none());
    for command in ["remove", "enable", "disable", "reconnect", "stop-trying", "logs"] {
        run(&bridge, &[command, "mine"], FAILED);
    }
}

#[test]
fn what_waits_for_the_person_has_its_own_exit_code() {
    let entry = json!({"url": "http://127.0.0.1:9/mcp", "auth": "token"});
    let bridge = Daemon::serving(Home::new(), [("locked", entry)]);
    bridge.wait_for_status("locked", "needs_secret");
    run(&bridge, &["reconnect", "locked"], NEEDS_YOU);
}

#[test]
fn logs_show_what_the_program_wrote() {
    let bridge = Daemon::serving(
        Home::new(),
        [("crash", Fake::new("crash").option("say", "these last words").entry())],
    );
    eventually("the log has it", SOON, || {
        run(&bridge, &["logs", "crash"], DONE)
            .contains("these last words")
            .then_some(())
    });
}

/// `logs fake -f` as it runs, with all that it said so far.
struct Follower {
    child: Child,
    said: PathBuf,
}

impl Follower {
    fn start(home: &Home) -> Self {
        let said = home.path().join("followed");
        let file = File::create(&said).unwrap();
        let child = command_line(home, &["logs", "fake", "-f"])
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Self { child, said }
    }

    /// At least so often; 0 is never.
    fn says(&self, what: &str, times: usize) {
        eventually(&format!("“{what}” {times} times"), SOON, || {
            let text = std::fs::read_to_string(&self.said).unwrap();
            let count = text.matches(what).count();
            (count >= times && (times > 0 || count == 0)).then_some(())
        });
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_followed_log_goes_on_over_new_files_and_a_new_bridge_and_ends_with_its_connector() {
    let mut bridge = with_fake();
    let mut follower = Follower::start(&bridge.home);
    follower.says(" connected to", 1);

    // What turns a full file over: another one in its place.
    let log = bridge.home.neuron().join("connect/logs/fake.log");
    eventually("the log's file", SOON, || log.exists().then_some(()));
    std::fs::rename(&log, log.with_extension("log.1")).unwrap();
    run(&bridge, &["reconnect", "fake"], DONE);
    follower.says(" connected to", 2);

    bridge = bridge.restart();
    follower.says("The bridge was started anew", 1);
    run(&bridge, &["reconnect", "fake"], DONE);
    follower.says(" connected to", 3);

    let home = bridge.kill9();
    follower.says("Waiting for it to come back.", 1);
    bridge = Daemon::start_in(home, Setup::default());
    follower.says("The bridge was started anew", 2);
    run(&bridge, &["reconnect", "fake"], DONE);
    follower.says(" connected to", 4);
    follower.says("Some lines are missing", 0);

    run(&bridge, &["remove", "fake"], DONE);
    let status = process::wait_for_exit(&mut follower.child, "the follower", SOON);
    assert_eq!(status.code(), Some(FAILED));
    follower.says("The connector fake was removed", 1);
}

#[test]
fn ctrl_c_ends_a_followed_log_without_a_complaint() {
    let bridge = with_fake();
    let mut follower = Follower::start(&bridge.home);
    follower.says(" connected to", 1);
    process::signal(follower.child.id(), Signal::INT);
    let status = process::wait_for_exit(&mut follower.child, "the follower", SOON);
    assert_eq!(status.code(), Some(DONE));
    follower.says("neuron-connectd:", 0);
}

#[test]
fn attempts_are_shown_and_stopped() {
    let bridge = Daemon::serving(Home::new(), [("far", json!({"url": "http://127.0.0.1:9/mcp"}))]);
    bridge.wait_for_status("far", "retrying");
    let shown = run(&bridge, &["status"], DONE);
    assert!(shown.contains(" s · ") || shown.contains(" of 5, now · "), "{shown}");
    let told = run(&bridge, &["stop-trying", "far"], DONE);
    assert!(told.contains("Stopped trying to connect far"), "{told}");
    let again = run(&bridge, &["stop-trying", "far"], DONE);
    assert!(again.contains("Nothing was being tried: far is not working"), "{again}");
    let row = bridge.server("far").unwrap();
    assert_eq!(
        (&row["status"], &row["action"], &row["connection"]["retry"]),
        (&json!("error"), &json!("reconnect"), &Value::Null)
    );
}

#[test]
fn doctor_says_what_is_wrong_and_ends_accordingly() {
    let bridge = with_fake();
    let well = bridge.command(&["doctor"]);
    assert_eq!(well.status.code(), Some(DONE), "{} {}", text(&well), complaint(&well));
    assert!(text(&well).contains("fake"), "{}", text(&well));

    let bridge = Daemon::serving(Home::new(), [("broken", json!({"command": "nobody-has-this"}))]);
    bridge.wait_for_status("broken", "error");
    let ill = bridge.command(&["doctor"]);
    assert_eq!(ill.status.code(), Some(FAILED), "{}", text(&ill));
    assert!(text(&ill).contains("nobody-has-this"), "{}", text(&ill));
    assert_eq!(json_of(&bridge, &["doctor"], FAILED)["ok"], false);
}

#[test]
fn without_a_bridge_every_command_says_so() {
    let home = Home::new();
    for arguments in [
        &["status"] as &[&str],
        &["tools"],
        &["call", "mcp__a__b"],
        &["add", "a", "http://127.0.0.1:9/"],
        &["remove", "a"],
        &["enable", "a"],
        &["disable", "a"],
        &["reconnect", "a"],
        &["stop-trying", "a"],
        &["logs", "a"],
        &["logs", "a", "-f"],
        &["approvals"],
        &["approve", "a", "b=c"],
        &["deny", "a"],
        &["activity"],
        &["activity", "-f"],
        &["doctor"],
    ] {
        let output = command_in(&home, arguments);
        assert_eq!(
            output.status.code(),
            Some(NO_BRIDGE),
            "{arguments:?}: {} {}",
            text(&output),
            complaint(&output)
        );
        assert!(text(&output).len() + complaint(&output).len() > 20, "{arguments:?}");
    }
    assert!(!home.config_file().exists(), "asking creates nothing");
}

#[test]
fn a_killed_bridge_is_no_running_bridge() {
    let bridge = with_fake();
    let home = bridge.kill9();
    assert!(home.api_file().exists(), "a killed bridge cannot tidy up");
    assert_eq!(command_in(&home, &["status"]).status.code(), Some(NO_BRIDGE));
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let home = Home::new();
    for arguments in [&["statsu"] as &[&str], &["status", "--nope"], &["remove"], &[]] {
        assert_eq!(command_in(&home, arguments).status.code(), Some(USAGE), "{arguments:?}");
    }
}

#[test]
fn beside_the_window_what_waits_there_is_not_told_as_nothing() {
    let home = Home::new();
    home.write_config(&config_text([("s", Fake::new("ok").entry())]));
    let tray = Tray::start(home);
    tray.wait_for("launch", "s");
    for (arguments, screen) in [
        (&["approvals"][..], "under Approvals"),
        (&["approve", "--all"], "under Approvals"),
        (&["approve", "launch-1"], "under Approvals"),
        (&["deny", "launch-1"], "under Approvals"),
        (&["rules"], "under Approvals"),
        (&["rules", "allow", "s", "echo"], "under Approvals"),
        (&["clients"], "under Assistants"),
        (&["trust"], "under Assistants"),
        (&["trust", "--allow-page", "https://a.example"], "under Assistants"),
        (&["pair"], "under Assistants"),
        (&["activity"], "under Activity"),
    ] {
        let output = command_in(&tray.home, arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {told}");
        for words in ["Neuron Connect is open", screen, "\"neuron-connect\""] {
            assert!(told.contains(words), "{arguments:?}: {told}");
        }
        assert_eq!(output.stdout, b"", "{arguments:?}");
    }
    assert_eq!(tray.server("s")["status"], "needs_review");
    // What it wished for itself it is told of.
    let wished = command_in(&tray.home, &["remove", "s"]);
    assert_eq!(wished.status.code(), Some(4), "{wished:?}");
    let shown = command_in(&tray.home, &["approvals"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.status.success() && text.contains("window"), "{shown:?}");
}
