//! What is known stays known.

use std::{process::Command, time::Duration};

use neuron_tests::{
    daemon::{Daemon, SHUTDOWN, Setup, command_in, serve_command},
    fake::Fake,
    home::{Home, config_text},
    http::{Address, Connection},
    process, program,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

#[test]
fn after_a_restart_the_list_is_the_same_and_nothing_was_started_for_it() {
    let home = Home::new();
    let fake = Fake::new("ok").record(&home.record("fake"));
    let bridge = Daemon::serving(
        home,
        [
            ("fake", fake.entry()),
            ("many", Fake::new("ok").option("list", "many").entry()),
        ],
    );
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.wait_for_tool("mcp__many__tool_2");
    let before = bridge.get("/mcp/tools");
    let bridge = bridge.restart();
    let after = bridge.get("/mcp/tools");
    assert_eq!(after.body, before.body);
    assert_eq!(after.header("etag"), before.header("etag"));
    assert_eq!(bridge.children(), [0_u32; 0]);
    assert_eq!(bridge.status("fake"), "sleeping");
    assert_eq!(fake.seen().starts().len(), 1);
    assert_eq!(bridge.call_text("mcp__fake__echo", &json!({"n": 1})), "{\"n\":1}");
    assert_eq!(fake.seen().starts().len(), 2, "the first call starts it");
}

#[test]
fn the_very_first_answer_after_a_start_is_the_whole_list() {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    let before = bridge.get("/mcp/tools").body;
    let home = bridge.terminate();
    let port = neuron_tests::upstream::free_port();
    let setup = Setup {
        arguments: vec!["--port".to_owned(), port.to_string()],
        ..Setup::default()
    };
    let mut bridge = process::Owned::start(&mut serve_command(&home, &setup));
    let mut connection = eventually("it listens", SOON, || Connection::try_open(&Address::Tcp(port)).ok());
    let first = connection.send("GET", "/mcp/tools", &[], b"");
    assert_eq!((first.status, first.body), (200, before));
    process::signal(bridge.0.id(), rustix::process::Signal::TERM);
    assert!(process::wait_for_exit(&mut bridge.0, "the bridge", SHUTDOWN).success());
}

#[test]
fn a_killed_bridge_knows_its_lists_too() {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    let before = bridge.tool_names();
    let bridge = Daemon::start_in(bridge.kill9(), Setup::default());
    assert_eq!(bridge.tool_names(), before);
}

#[test]
fn another_program_under_the_same_name_does_not_inherit_the_list() {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    let home = bridge.terminate();
    home.write_config(&config_text([("fake", Fake::new("silent").entry())]));
    let bridge = Daemon::start_in(home, Setup::default());
    assert_eq!(bridge.tool_names(), [""; 0]);
}

#[test]
fn a_list_is_kept_as_it_was_received() {
    let bridge = Daemon::serving(
        Home::new(),
        [("odd", Fake::new("ok").option("list", "unknown-members").entry())],
    );
    let held = eventually("it is known, and held: its numbers cannot be compared", SOON, || {
        let waiting = bridge.owner_get("/mcp/approvals").text();
        waiting.contains("\"held\"").then_some(waiting)
    });
    assert!(
        held.contains("1.10") && held.contains("12345678901234567890123"),
        "{held}"
    );
    let home = bridge.terminate();
    let script = "import sqlite3, sys\n\
        db = sqlite3.connect(sys.argv[1])\n\
        for (table,) in db.execute(\"select name from sqlite_master where type='table'\").fetchall():\n\
        \tfor row in db.execute(f'select * from \"{table}\"').fetchall():\n\
        \t\tfor cell in row:\n\
        \t\t\tprint(cell.decode() if isinstance(cell, bytes) else cell)";
    let output = Command::new(program::system("python3"))
        .args(["-c", script])
        .arg(home.neuron().join("connect/state.db"))
        .output()
        .unwrap();
    let stored = String::from_utf8(output.stdout).unwrap();
    for member in ["taskSupport", "x-invented", "1.10", "12345678901234567890123"] {
        assert!(
            stored.contains(member),
            "{member} in {stored} {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_torn_database_loses_lists_and_decisions_and_nothing_else() {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    let home = bridge.terminate();
    let database = home.neuron().join("connect/state.db");
    std::fs::write(
        &database,
        b"this is no database, and it is longer than a header has to be".repeat(100),
    )
    .unwrap();
    for beside in ["state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(database.with_file_name(beside));
    }
    let bridge = Daemon::start_in(home, Setup::default());
    // What the person had decided was in it too.
    let id = eventually("its tools wait", SOON, || {
        let waiting = bridge.owner_get("/mcp/approvals").ok();
        Some(waiting["approvals"][0]["id"].as_str()?.to_owned())
    });
    for said in [&["approve", &id][..], &["trust", "--api", "open"]] {
        assert!(command_in(&bridge.home, said).status.success(), "{said:?}");
    }
    bridge.wait_for_tool("mcp__fake__echo");
    let bridge = bridge.restart();
    assert!(
        bridge.tool_names().contains(&"mcp__fake__echo".to_owned()),
        "and is used again"
    );
}

#[test]
fn at_launch_connects_by_itself_and_on_demand_does_not() {
    let home = Home::new();
    let eager = Fake::new("ok")
        .record(&home.record("eager"))
        .member("start", json!("at-launch"));
    let lazy = Fake::new("ok").record(&home.record("lazy"));
    let bridge = Daemon::serving(home, [("eager", eager.entry()), ("lazy", lazy.entry())]);
    bridge.wait_for_tool("mcp__eager__echo");
    bridge.wait_for_tool("mcp__lazy__echo");
    let bridge = bridge.restart();
    eager.seen().wait_for_starts(2);
    bridge.wait_for_status("eager", "connected");
    assert_eq!(bridge.status("lazy"), "sleeping");
    assert_eq!(lazy.seen().starts().len(), 1);
}

#[test]
fn a_taken_port_is_told_with_its_holder_and_taken_up_once_it_is_free() {
    let holder = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = holder.local_addr().unwrap().port();
    let home = Home::new();
    let setup = Setup {
        arguments: vec!["--port".to_owned(), port.to_string()],
        ..Setup::default()
    };
    let mut bridge = process::Owned::start(&mut serve_command(&home, &setup));
    let api = || serde_json::from_slice::<Value>(&std::fs::read(home.api_file()).ok()?).ok();
    let published = eventually("the bridge tells how to reach it", SOON, api);
    assert_eq!(published["port"], Value::Null, "nobody may take the holder for us");
    let address = Address::Socket(published["socket"].as_str().unwrap().into());
    assert_eq!(Connection::open(&address).send("GET", "/healthz", &[], b"").status, 200);

    let us = format!("process {}", std::process::id());
    let status = command_in(&home, &["status"]);
    let shown = String::from_utf8(status.stdout).unwrap();
    assert!(
        shown.contains(&port.to_string()) && shown.contains(&us),
        "who holds it: {shown}"
    );
    drop(holder);
    eventually("the freed port is taken up", Duration::from_secs(40), || {
        let mut connection = Connection::try_open(&Address::Tcp(port)).ok()?;
        (connection.try_send("GET", "/healthz", &[], b"").ok()?.status == 200).then_some(())
    });
    assert_eq!(api().unwrap()["port"], port);
    process::signal(bridge.0.id(), rustix::process::Signal::TERM);
    assert!(process::wait_for_exit(&mut bridge.0, "the bridge", SHUTDOWN).success());
    assert!(!home.api_file().exists());
}

#[test]
fn a_bridge_that_waits_for_its_port_stops_all_the_same() {
    let holder = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let home = Home::new();
    let setup = Setup {
        arguments: vec!["--port".to_owned(), holder.local_addr().unwrap().port().to_string()],
        ..Setup::default()
    };
    let mut bridge = process::Owned::start(&mut serve_command(&home, &setup));
    eventually("it waits", SOON, || home.api_file().exists().then_some(()));
    process::signal(bridge.0.id(), rustix::process::Signal::TERM);
    assert!(process::wait_for_exit(&mut bridge.0, "the bridge", SHUTDOWN).success());
    assert!(!home.api_file().exists());
}
