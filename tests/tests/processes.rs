//! Nothing is left behind, whatever the processes do, and a child gets what is its own and no more.

use std::time::Instant;

use neuron_tests::{
    daemon::{Daemon, SHUTDOWN, Setup},
    fake::Fake,
    home::{Home, config_text},
    process::is_alive,
    save::Mapped,
    wait::{SOON, eventually},
};
use rustix::process::Signal;
use serde_json::{Value, json};

fn gone(what: &str, pids: &[u32]) {
    eventually(&format!("{what} {pids:?} ended"), SOON, || {
        (!pids.iter().any(|pid| is_alive(*pid))).then_some(())
    });
}

fn grandchild_of(fake: &Fake) -> u32 {
    eventually("the grandchild", SOON, || fake.seen().grandchildren().last().copied())
}

#[test]
fn stopping_ends_a_stubborn_tree_and_one_that_is_still_connecting() {
    let home = Home::new();
    let stubborn = Fake::new("stubborn").record(&home.record("stubborn"));
    let tree = Fake::new("tree").record(&home.record("tree"));
    let silent = Fake::new("silent").record(&home.record("silent"));
    let entries = [
        ("stubborn", stubborn.entry()),
        ("tree", tree.entry()),
        ("silent", silent.entry()),
    ];
    let bridge = Daemon::serving(home, entries);
    bridge.wait_for_tool("mcp__stubborn__echo");
    bridge.wait_for_tool("mcp__tree__echo");
    let connecting = silent.seen().wait_for_starts(1);
    let mut all = vec![grandchild_of(&stubborn), grandchild_of(&tree), connecting[0]];
    all.extend(stubborn.seen().starts());
    all.extend(tree.seen().starts());
    assert_eq!(bridge.children().len(), 5, "three upstreams and two grandchildren");

    let begin = Instant::now();
    let _home = bridge.terminate();
    assert!(begin.elapsed() < SHUTDOWN, "{:?}", begin.elapsed());
    assert_eq!(silent.seen().starts(), connecting, "nothing is started on the way out");
    assert!(!all.iter().any(|pid| is_alive(*pid)), "left behind: {all:?}");
}

#[test]
fn a_call_in_flight_does_not_keep_the_bridge() {
    let home = Home::new();
    let fake = Fake::new("ok").record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__hang");
    let address = bridge.tcp();
    std::thread::scope(|scope| {
        let caller = scope.spawn(move || {
            let body = br#"{"name":"mcp__fake__hang","input":{}}"#;
            let mut connection = neuron_tests::http::Connection::open(&address);
            connection.try_send("POST", "/mcp/call", &[], body)
        });
        fake.seen().wait_for("tools/call", 1);
        bridge.terminate();
        if let Ok(answer) = caller.join().unwrap() {
            assert!(answer.status >= 500, "{}", answer.text());
        }
    });
}

#[test]
fn a_killed_bridge_leaves_nothing_after_the_next_start() {
    let home = Home::new();
    let stubborn = Fake::new("stubborn").record(&home.record("stubborn"));
    let bridge = Daemon::serving(
        home,
        [("stubborn", stubborn.entry()), ("plain", Fake::new("ok").entry())],
    );
    bridge.wait_for_tool("mcp__stubborn__echo");
    bridge.wait_for_tool("mcp__plain__echo");
    grandchild_of(&stubborn);
    let before = bridge.children();
    assert_eq!(before.len(), 3);
    let home = bridge.kill9();

    let bridge = Daemon::start_in(home, Setup::default());
    gone("processes of the killed bridge", &before);
    assert_eq!(bridge.tool_names().len(), 26, "and everything is known again");
    assert_eq!(bridge.call_text("mcp__plain__echo", &json!({})), "{}");
}

#[test]
fn the_sweep_after_a_crash_spares_what_is_not_ours() {
    let home = Home::new();
    let bridge = Daemon::serving(home, [("plain", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__plain__echo");
    let other = Daemon::serving(Home::new(), [("plain", Fake::new("ok").entry())]);
    other.wait_for_tool("mcp__plain__echo");
    let theirs = other.children();
    let home = bridge.kill9();
    let _bridge = Daemon::start_in(home, Setup::default());
    assert_eq!(other.children(), theirs, "another bridge's upstream");
}

#[test]
fn a_connector_stopped_while_it_connects_leaves_nothing() {
    type Stop = fn(&Daemon);
    let ways: [(&str, Stop); 4] = [
        ("turned off", |bridge| {
            bridge
                .owner_post("/mcp/servers/toggle", &json!({"id": "slow", "enabled": false}))
                .ok();
        }),
        ("removed", |bridge| {
            bridge.owner_post("/mcp/servers/remove", &json!({"id": "slow"})).ok();
        }),
        ("edited", |bridge| {
            bridge
                .home
                .write_config(&config_text([("slow", Fake::new("ok").entry())]));
        }),
        ("removed from the file", |bridge| {
            bridge.home.write_config("{\"servers\":{}}")
        }),
    ];
    for (what, stop) in ways {
        let home = Home::new();
        let slow = Fake::new("stubborn")
            .option("delay", 60_000)
            .record(&home.record("slow"));
        let bridge = Daemon::serving(home, [("slow", slow.entry())]);
        let mut pids = slow.seen().wait_for_starts(1);
        pids.push(grandchild_of(&slow));
        stop(&bridge);
        gone(what, &pids);
        let _home = bridge.terminate();
        assert_eq!(slow.seen().starts().len(), 1, "{what}: and it is not started again");
    }
}

#[test]
fn a_program_stopped_while_it_connects_is_asked_to_end_before_it_is_killed() {
    type Stop = fn(&Daemon);
    let ways: [(&str, Stop); 2] = [
        ("turned off", |bridge| {
            let off = json!({"id": "slow", "enabled": false});
            bridge.owner_post("/mcp/servers/toggle", &off).ok();
        }),
        ("removed", |bridge| {
            bridge.owner_post("/mcp/servers/remove", &json!({"id": "slow"})).ok();
        }),
    ];
    for (what, stop) in ways {
        let home = Home::new();
        let slow = Fake::new("silent").record(&home.record("slow"));
        let bridge = Daemon::serving(home, [("slow", slow.entry())]);
        let pids = slow.seen().wait_for_starts(1);
        slow.seen().wait_for("server/discover", 1);
        stop(&bridge);
        gone(what, &pids);
        assert!(
            slow.seen().noted("end of input"),
            "{what}: it could put its things in order"
        );
    }
}

#[test]
fn an_entry_edited_while_it_connects_starts_once_its_old_process_is_gone() {
    let home = Home::new();
    let old = Fake::new("stubborn")
        .option("delay", 60_000)
        .record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", old.entry())]);
    old.seen().wait_for("initialize", 1);
    let pids = [old.seen().starts()[0], grandchild_of(&old)];
    let new = Fake::new("ok").record(&bridge.home.record("fake"));
    bridge.home.write_config(&config_text([("fake", new.entry())]));
    new.seen().wait_for_starts(2);
    assert_eq!(new.seen().met_their_successor(), [0_u32; 0]);
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
}

#[test]
fn an_edited_entry_starts_once_its_old_process_is_gone_however_long_that_takes() {
    let home = Home::new();
    let old = Fake::new("stubborn").record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", old.entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    let mut pids = old.seen().starts();
    pids.push(grandchild_of(&old));
    let new = Fake::new("ok").record(&bridge.home.record("fake"));
    bridge.home.write_config(&config_text([("fake", new.entry())]));
    new.seen().wait_for_starts(2);
    assert_eq!(new.seen().met_their_successor(), [0_u32; 0]);
    gone("the old process and its grandchild", &pids);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.call_text("mcp__fake__echo", &json!({}));
    assert_eq!(bridge.children().len(), 1);
}

#[test]
fn reconnecting_and_reloading_fifty_times_leaves_one_process() {
    let home = Home::new();
    let fake = Fake::new("ok").record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    for _ in 0..50 {
        let answer = bridge.owner_post("/mcp/servers/reconnect", &json!({"id": "fake"})).ok();
        assert_eq!(answer["verified"], true, "{answer}");
    }
    assert_eq!(bridge.children().len(), 1);
    assert_eq!(fake.seen().starts().len(), 51);
    for n in 0..50 {
        let edited = fake.clone().member("env", json!({"N": n.to_string()}));
        bridge.home.write_config(&config_text([("fake", edited.entry())]));
        bridge.signal(Signal::HUP);
        fake.seen().wait_for_starts(52 + n);
    }
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.call_text("mcp__fake__echo", &json!({}));
    assert_eq!(bridge.children(), fake.seen().starts()[100..]);
}

#[test]
fn a_grandchild_goes_with_its_connector_even_when_the_leader_left_first() {
    let home = Home::new();
    let tree = Fake::new("tree").record(&home.record("tree"));
    let bridge = Daemon::serving(home, [("tree", tree.entry())]);
    bridge.wait_for_tool("mcp__tree__echo");
    let grandchild = grandchild_of(&tree);
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "tree", "enabled": false}))
        .ok();
    gone("the grandchild", &[grandchild]);
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "tree", "enabled": true}))
        .ok();
    // A leader that dies by itself takes its family along too.
    bridge.call("mcp__tree__die", &json!({})).refused(502, "upstream_error");
    bridge.call_text("mcp__tree__echo", &json!({}));
    assert_eq!(bridge.children().len(), 2, "one leader, one grandchild");
}

#[test]
fn a_child_gets_a_cleared_environment_and_what_its_entry_declares() {
    let home = Home::new();
    std::fs::write(home.path().join("more.env"), "FROM_FILE=in the file\n# a comment\n").unwrap();
    let entry = Fake::new("ok")
        .member(
            "env",
            json!({"LITERAL": "as written", "TAKEN": "${env:SENTINEL}", "ELSE": "${env:UNSET:-otherwise}"}),
        )
        .member("envFile", json!("~/more.env"))
        .entry();
    home.write_config(&config_text([("fake", entry)]));
    let setup = Setup::default()
        .variable("SENTINEL", "planted")
        .variable("LD_PRELOAD_CANARY", "planted");
    let bridge = Daemon::start_in(home, setup);
    bridge.wait_for_tool("mcp__fake__env");
    let text = bridge.call_text("mcp__fake__env", &json!({}));
    let names: Vec<_> = text.lines().filter_map(|line| line.split('=').next()).collect();
    for absent in ["SENTINEL", "LD_PRELOAD_CANARY", "NEURON_HOME", "CARGO_MANIFEST_DIR"] {
        assert!(!names.contains(&absent), "{absent} leaked: {text}");
    }
    for line in [
        "LITERAL=as written",
        "TAKEN=planted",
        "ELSE=otherwise",
        "FROM_FILE=in the file",
    ] {
        assert!(text.lines().any(|seen| seen == line), "{line} in {text}");
    }
    for present in ["HOME", "PATH"] {
        assert!(names.contains(&present), "{present} is needed: {text}");
    }
}

#[test]
fn a_child_works_in_a_private_folder_or_where_its_entry_says() {
    let home = Home::new();
    let elsewhere = Fake::new("ok").member("cwd", json!("~")).entry();
    let bridge = Daemon::serving(home, [("fake", Fake::new("ok").entry()), ("there", elsewhere)]);
    bridge.wait_for_tool("mcp__fake__cwd");
    bridge.wait_for_tool("mcp__there__cwd");
    let folder = bridge.call_text("mcp__fake__cwd", &json!({}));
    let expected = bridge.home.neuron().join("connect/run/fake");
    assert_eq!(folder, expected.canonicalize().unwrap().display().to_string());
    let home = bridge.home.path().canonicalize().unwrap().display().to_string();
    assert_eq!(bridge.call_text("mcp__there__cwd", &json!({})), home);
}

#[test]
fn arguments_reach_the_program_as_written_and_never_a_shell() {
    let home = Home::new();
    let odd = "$(touch pwned) `id` ; & | \"quoted\" 'single' \\ * ~ ü😀";
    let entry = Fake::new("ok").option("say", odd).option("say", "${env:VALUE}").entry();
    home.write_config(&config_text([("fake", entry)]));
    let bridge = Daemon::start_in(home, Setup::default().variable("VALUE", "${env:HOME} stays"));
    bridge.wait_for_tool("mcp__fake__argv");
    let argv: Value = serde_json::from_str(&bridge.call_text("mcp__fake__argv", &json!({}))).unwrap();
    assert_eq!(
        argv,
        json!(["ok", "--say", odd, "--say", "${env:HOME} stays"]),
        "one pass, nothing inside a value"
    );
    assert!(!bridge.home.neuron().join("connect/run/fake/pwned").exists());
}

#[test]
fn hanging_up_reads_the_file_again_and_does_not_stop() {
    let entry = Fake::new("ok").member("name", json!("Before")).entry();
    let text = config_text([("fake", entry)]);
    let home = Home::new();
    home.write_config(&text);
    // A file that is written through memory changes without any event, so only the signal tells of it.
    let mapped = Mapped::open(&home.config_file());
    let bridge = Daemon::start_in(home, Setup::default());
    bridge.wait_for_tool("mcp__fake__echo");
    let children = bridge.children();
    mapped.write(&text.replace("Before", "Later!"));
    assert_eq!(
        bridge.server("fake").unwrap()["name"],
        "Before",
        "nothing told of it yet"
    );
    bridge.signal(Signal::HUP);
    eventually("the new name", SOON, || {
        (bridge.server("fake")?["name"] == "Later!").then_some(())
    });
    assert_eq!(bridge.children(), children);
    assert_eq!(bridge.call_text("mcp__fake__echo", &json!({})), "{}");
}

#[test]
fn a_second_bridge_of_one_home_says_who_holds_it() {
    let bridge = Daemon::start(None);
    let second = bridge.command(&["serve", "--port", "0"]);
    assert_eq!(second.status.code(), Some(1));
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(text.contains(&bridge.pid().to_string()), "{text}");
    assert_eq!(bridge.get("/healthz").status, 200);
    let api: Value = serde_json::from_slice(&std::fs::read(bridge.home.api_file()).unwrap()).unwrap();
    assert_eq!(api["pid"], bridge.pid(), "the second one did not take the place over");
    let members: Vec<_> = api.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        members,
        ["port", "pid", "version", "socket"],
        "and nothing secret: {api}"
    );
    let home = bridge.terminate();
    assert!(!home.api_file().exists(), "a stopped bridge is not to be found");
}

#[test]
fn a_connector_that_is_added_again_at_once_starts_when_the_removed_one_is_gone() {
    let home = Home::new();
    let old = Fake::new("stubborn").record(&home.record("fake"));
    let new = Fake::new("ok").record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", old.entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.call_text("mcp__fake__echo", &json!({}));
    let before = bridge.server("fake").unwrap();
    bridge.owner_post("/mcp/servers/remove", &json!({"id": "fake"})).ok();
    let mut entry = new.entry();
    entry["id"] = json!("fake");
    bridge.owner_post("/mcp/servers/add", &entry).ok();
    new.seen().wait_for_starts(2);
    assert_eq!(new.seen().met_their_successor(), [0_u32; 0]);
    bridge.wait_for_tool("mcp__fake__echo");
    let after = bridge.server("fake").unwrap();
    assert!(
        after["connection"]["sequence"].as_u64() > before["connection"]["sequence"].as_u64(),
        "numbers only grow: {before} {after}"
    );
}
