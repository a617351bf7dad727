//! What breaks comes back by itself, says meanwhile what it waits for, and makes no storm.

use std::{net::TcpListener, process::Command};

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::{Fake, HttpFake},
    home::{Home, config_text},
    http::Connection,
    process,
    upstream::free_port,
    wait::{SOON, eventually},
};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The lines of a connector's log that tell of its sessions, without their time.
fn session_lines(bridge: &Daemon, id: &str) -> Vec<String> {
    let log = bridge.owner_get(&format!("/mcp/servers/{id}/log")).ok();
    let lines = log["lines"].as_array().expect("lines").iter();
    let told = lines.filter_map(|line| Some(line.as_str()?.split_once("[session] ")?.1.to_owned()));
    told.collect()
}

/// The session's id at the beginning of such a line: eight hexadecimal digits.
fn session_id(line: &str) -> Option<&str> {
    let id = line.split(' ').next()?;
    (id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

/// With a `settings.json` of its own.
fn with_settings<'a>(settings: &Value, servers: impl IntoIterator<Item = (&'a str, Value)>) -> Daemon {
    let home = Home::new();
    home.write_settings(settings);
    home.write_config(&config_text(servers));
    Daemon::start_in(home, Setup::default())
}

fn nobody_listens() -> Value {
    json!({"url": format!("http://127.0.0.1:{}/mcp", free_port())})
}

#[test]
fn a_used_program_that_is_killed_comes_back_by_itself_and_its_log_says_what_is_gone() {
    let home = Home::new();
    let fake = Fake::new("ok").record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.call_text("mcp__fake__echo", &json!({}));
    let before = bridge.server("fake").unwrap();
    let first = fake.seen().starts()[0];
    process::signal(first, Signal::KILL);
    fake.seen().wait_for_starts(2);
    let row = eventually("it is connected again", SOON, || {
        bridge
            .server("fake")
            .filter(|row| row["status"] == "connected" && row["connection"]["generation"] == 2)
    });
    assert!(row["connection"]["sequence"].as_u64() > before["connection"]["sequence"].as_u64());
    assert_eq!(row["error"], Value::Null, "{row}");
    let lines = session_lines(&bridge, "fake");
    let first = lines.iter().find_map(|line| session_id(line));
    let replaces = format!("replaces {}", first.expect("a session's id"));
    let second = lines.iter().find(|line| line.contains(&replaces));
    let second = second.unwrap_or_else(|| panic!("no line `{replaces}`: {lines:?}"));
    assert!(session_id(second).is_some_and(|id| Some(id) != first), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("ended")), "{lines:?}");
    assert_eq!(bridge.call_text("mcp__fake__echo", &json!({"n": 2})), "{\"n\":2}");
    assert_eq!(fake.seen().starts().len(), 2, "one session more, not two");
}

#[test]
fn every_state_on_the_way_is_told_in_order() {
    let home = Home::new();
    let fake = Fake::new("ok").record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.call_text("mcp__fake__echo", &json!({}));
    let start = bridge.server("fake").unwrap()["connection"]["sequence"]
        .as_u64()
        .unwrap();
    let mut events = Connection::open(&bridge.tcp()).events("/mcp/events", &[]);
    process::signal(fake.seen().starts()[0], Signal::KILL);
    let mut told = Vec::new();
    while told.last().is_none_or(|(_, status)| status != "connected") {
        let event = events.next("another state", |event| event.name == "server_status");
        let number = event.data["sequence"].as_u64().unwrap();
        told.push((number, event.data["status"].as_str().unwrap().to_owned()));
    }
    let numbers: Vec<_> = told.iter().map(|(number, _)| *number).collect();
    assert_eq!(
        numbers,
        (start + 1..=start + numbers.len() as u64).collect::<Vec<_>>(),
        "{told:?}"
    );
    let states: Vec<_> = told.iter().map(|(_, status)| status.as_str()).collect();
    assert_eq!(states, ["error", "connecting", "connected"]);
}

#[test]
fn an_at_launch_program_that_keeps_ending_is_started_ever_less_often() {
    let home = Home::new();
    let fake = Fake::new("ok")
        .option("linger", 0)
        .record(&home.record("fake"))
        .member("start", json!("at-launch"));
    home.write_settings(&json!({"retry": {"baseMs": 200, "retries": 2}}));
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    let row = bridge.wait_for_status("fake", "error");
    let settled = eventually("it is given up", SOON, || {
        let row = bridge.server("fake")?;
        (row["status"] == "error" && row["connection"]["generation"] == 4).then_some(row)
    });
    assert!(
        settled["error"].as_str().is_some_and(|error| error.contains("exit")),
        "{row}"
    );
    assert_eq!(settled["action"], "reconnect");
    assert_eq!(fake.seen().starts().len(), 4, "once, at once again, and two retries");
}

#[test]
fn a_refused_policy_is_told_and_tries_nothing_again_until_it_is_corrected() {
    let bridge = with_settings(&json!({"retry": {"retries": 99}}), [("gone", nobody_listens())]);
    let row = bridge.wait_for_status("gone", "error");
    assert_eq!(row["connection"]["retry"], Value::Null, "{row}");
    let notices = bridge.owner_get("/mcp/servers").ok()["notices"].to_string();
    assert!(
        notices.contains("retries") && notices.contains("from 0 to 20"),
        "{notices}"
    );
    bridge
        .home
        .write_settings(&json!({"retry": {"retries": 1, "baseMs": 60000}}));
    bridge.signal(Signal::HUP);
    eventually("the notice goes", SOON, || {
        let answer = bridge.owner_get("/mcp/servers").ok();
        (!answer["notices"].to_string().contains("retry")).then_some(())
    });
    let answer = bridge.owner_post("/mcp/servers/reconnect", &json!({"id": "gone"})).ok();
    let retry = &answer["server"]["connection"]["retry"];
    assert_eq!((&retry["number"], &retry["max"]), (&json!(1), &json!(1)), "{answer}");
}

#[test]
fn sleep_ends_with_one_more_attempt() {
    let port = free_port();
    let home = Home::new();
    let bridge = with_settings(
        &json!({"retry": {"retries": 0}}),
        [("late", json!({"url": format!("http://127.0.0.1:{port}/mcp")}))],
    );
    bridge.wait_for_status("late", "error");
    bridge.signal(Signal::STOP);
    let asleep = std::time::Instant::now();
    let _server = HttpFake::start_at(port, home.path(), "late", &[]);
    eventually("seven seconds of sleep", SOON, || {
        (asleep.elapsed().as_secs() >= 7).then_some(())
    });
    bridge.signal(Signal::CONT);
    bridge.wait_for_status("late", "connected");
}

/// In a network of its own, where an address comes up.
#[test]
fn another_network_is_a_reason_to_try_again() {
    if !process::may_have_its_own_network() {
        return;
    }
    let home = Home::new();
    let port = free_port();
    home.write_settings(&json!({"retry": {"retries": 0}}));
    home.write_config(&config_text([(
        "late",
        json!({"url": format!("http://127.0.0.1:{port}/mcp"), "timeouts": {"connectMs": 2000}}),
    )]));
    let bridge = Daemon::start_in(home, Setup::default().alone());
    let row = eventually("there is no network yet", SOON, || {
        bridge.server("late").filter(|row| row["status"] == "error")
    });
    let added = Command::new("nsenter")
        .args([&format!("--net=/proc/{}/ns/net", bridge.pid()), "ip", "address", "add"])
        .args(["10.9.8.7/32", "dev", "lo"])
        .status();
    assert!(added.is_ok_and(|status| status.success()));
    eventually("another attempt was made", SOON, || {
        let now = bridge.server("late")?;
        (now["connection"]["sequence"].as_u64() > row["connection"]["sequence"].as_u64()).then_some(())
    });
}

#[test]
fn an_upstream_that_comes_late_is_found_by_its_retries() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let home = Home::new();
    let folder = home.path().to_owned();
    let bridge = Daemon::serving(home, [("late", json!({"url": format!("http://127.0.0.1:{port}/mcp")}))]);
    let row = bridge.wait_for_status("late", "retrying");
    let retry = &row["connection"]["retry"];
    assert_eq!(retry["max"], 5, "{row}");
    assert!(
        retry["next_attempt_at"].as_u64() >= retry["scheduled_at"].as_u64(),
        "{retry}"
    );
    assert_eq!(row["action"], "reconnect");
    let _server = HttpFake::start_at(port, &folder, "late", &[]);
    bridge.wait_for_status("late", "connected");
    bridge.wait_for_tool("mcp__late__echo");
}

#[test]
fn a_call_finds_a_server_that_came_back_before_its_planned_retry() {
    let home = Home::new();
    let folder = home.path().to_owned();
    let port = free_port();
    home.write_settings(&json!({"retry": {"baseMs": 4900, "capMs": 4900}}));
    let bridge = Daemon::serving(home, [("late", json!({"url": format!("http://127.0.0.1:{port}/mcp")}))]);
    let row = bridge.wait_for_status("late", "retrying");
    let planned = row["connection"]["retry"]["next_attempt_at"].as_u64().unwrap();
    let _server = HttpFake::start_at(port, &folder, "late", &[]);
    let answer = bridge.owner_post("/mcp/resources/read", &json!({"server": "late", "uri": "fake:none"}));
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    assert!(
        now < u128::from(planned),
        "waited for the planned retry: {}",
        answer.text()
    );
    bridge.wait_for_status("late", "connected");
}
