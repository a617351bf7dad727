//! Which homes have review: one that a tray app used, and none other without being told.

use super::*;

/// Leaves what a tray app leaves in the database of a home: that it was there.
fn used_by_a_tray_app(home: &Home) {
    let script = "import sqlite3, sys\n\
        db = sqlite3.connect(sys.argv[1])\n\
        db.execute(\"insert into trust values ('setting', 'tray', 'true', x'00')\")\n\
        db.commit()";
    let done = Command::new(program::any_system(&["python3", "python"]))
        .args(["-c", script])
        .arg(home.neuron().join("connect/state.db"))
        .status()
        .unwrap();
    assert!(done.success());
}

#[test]
fn a_home_that_a_tray_app_used_has_review_without_being_told_and_nothing_runs_while_its_keychain_is_away() {
    let home = Home::new();
    let program = Fake::new("ok").record(&home.record("program"));
    let files = json!({"command": "neuron-connectd", "args": ["files", "~/neuron-connectd-sandbox"]});
    fs::create_dir(home.path().join("neuron-connectd-sandbox")).unwrap();
    let bridge = Daemon::serving(home, [("x", program.entry()), ("files", files)]);
    echo(&bridge, "x");
    let home = bridge.terminate();
    let starts = program.seen().starts().len();

    used_by_a_tray_app(&home);
    let bridge = Daemon::start_in(home, Setup::default());
    assert!(bridge.log().contains("the tray app uses this home"), "{}", bridge.log());
    let row = bridge.wait_for_status("x", "keychain_unavailable");
    assert_eq!(
        (&row["action"], &row["tools"]),
        (&json!("unlock_keychain"), &json!(0)),
        "{row}"
    );
    bridge
        .call("mcp__x__echo", &json!({}))
        .refused(503, "keychain_unavailable");
    // Nobody is asked what cannot be kept.
    assert!(waiting(&bridge).is_empty());
    let list = json!({"name": "mcp__files__list_directory", "input": {"path": "."}});
    bridge.owner_post("/mcp/call", &list).ok();
    // Until it ends, by the owner's choice, it is asked and decided all the same.
    bridge
        .owner_post("/mcp/keychain", &json!({"action": "keep_until_quit"}))
        .ok();
    assert_waits(&bridge, "x");
    assert_eq!(program.seen().starts().len(), starts);
    approve(&bridge, "x", "new");
    bridge.wait_for_tool("mcp__x__echo");
    bridge.owner_post("/mcp/call", &json!({"name": "mcp__x__echo"})).ok();
    let bridge = bridge.restart();
    bridge.wait_for_status("x", "keychain_unavailable");
    bridge.terminate();
}

#[test]
fn without_review_the_file_is_the_authority() {
    let home = Home::new();
    let program = Fake::new("ok").record(&home.record("program"));
    let bridge = Daemon::serving(home, [("x", program.entry())]);
    echo(&bridge, "x");
    assert!(waiting(&bridge).is_empty());
    bridge.terminate();
}
