//! What holds for programs where the person's decisions are lost.

use std::fs;

use neuron_tests::{
    daemon::{Daemon, Setup},
    home::Home,
};
use serde_json::json;

#[test]
fn where_the_decisions_are_lost_programs_need_a_token_until_the_person_lets_them_in() {
    let bridge = Daemon::start(None);
    bridge.get("/mcp/tools").ok();
    bridge.owner_post("/mcp/trust", &json!({"api_mode": "token"})).ok();
    bridge.get("/mcp/tools").refused(401, "unauthorized");
    let home = bridge.terminate();
    for file in ["state.db", "state.db-wal", "state.db-shm"] {
        // Not all of them need to be there.
        let _ = fs::remove_file(home.neuron().join("connect").join(file));
    }
    let bridge = Daemon::start_in(home, Setup::default());
    bridge.get("/mcp/tools").refused(401, "unauthorized");
    let told = bridge.owner_get("/mcp/trust").ok();
    assert_eq!(
        (&told["api_mode"], &told["api_mode_assumed"]),
        (&json!("token"), &json!(true))
    );
    // Another decision is none about this, also over a restart.
    bridge.owner_post("/mcp/trust", &json!({"walk_in": "ask"})).ok();
    let bridge = Daemon::start_in(bridge.terminate(), Setup::default());
    bridge.get("/mcp/tools").refused(401, "unauthorized");
    let told = bridge.owner_post("/mcp/trust", &json!({"api_mode": "open"})).ok();
    assert_eq!(
        (&told["api_mode"], &told["api_mode_assumed"]),
        (&json!("open"), &json!(false))
    );
    bridge.get("/mcp/tools").ok();
    bridge.terminate();
}

#[test]
fn a_home_where_nothing_was_ever_decided_is_open() {
    let bridge = Daemon::start_in(Home::new(), Setup::default());
    bridge.get("/mcp/tools").ok();
    assert_eq!(bridge.owner_get("/mcp/trust").ok()["api_mode_assumed"], false);
    bridge.terminate();
}
