//! Servers that people really run, through restarts and changes.

use std::process::Command;

use neuron_tests::{
    daemon::Daemon,
    home::Home,
    process,
    upstream::{Everything, EverythingOverHttp, SLOW_START, Served, free_port, node, python, script},
    wait::eventually,
};
use rustix::process::Signal;
use serde_json::{Value, json};

fn connected(bridge: &Daemon, id: &str) -> Value {
    eventually(&format!("{id} is connected"), SLOW_START, || {
        bridge.server(id).filter(|row| row["status"] == "connected")
    })
}

#[test]
fn a_modern_server_tells_of_a_new_tool_over_pipes_and_over_http() {
    let served = Served::start_at(free_port(), "changing.py");
    let bridge = Daemon::serving(
        Home::new(),
        [("pipes", script("changing.py", &[])), ("served", served.entry())],
    );
    for id in ["pipes", "served"] {
        let row = connected(&bridge, id);
        assert_eq!(row["connection"]["era"], "modern", "{row}");
        assert_eq!(bridge.call_text(&format!("mcp__{id}__grow"), &json!({})), "grown");
        bridge.wait_for_tool(&format!("mcp__{id}__grown"));
        assert_eq!(bridge.call_text(&format!("mcp__{id}__grown"), &json!({})), "here");
        let after = bridge.server(id).unwrap();
        assert_eq!(after["connection"]["generation"], 1, "nothing was restarted: {after}");
    }
}

#[test]
fn memory_and_git_servers_work_in_their_own_eras() {
    let home = Home::new();
    let repository = home.path().join("repository");
    let made = Command::new("git").args(["init", "--quiet"]).arg(&repository).status();
    assert!(made.is_ok_and(|status| status.success()));
    let memory = home.path().join("memory.json");
    let bridge = Daemon::serving(
        home,
        [
            (
                "memory",
                json!({"command": node("mcp-server-memory"), "env": {"MEMORY_FILE_PATH": memory}}),
            ),
            (
                "git",
                json!({"command": python("mcp-server-git"), "args": ["--repository", repository]}),
            ),
        ],
    );
    assert_eq!(connected(&bridge, "memory")["connection"]["era"], "legacy");
    assert_eq!(connected(&bridge, "git")["connection"]["era"], "modern");
    let entity = json!({"name": "Ada", "entityType": "person", "observations": ["likes numbers"]});
    bridge.call_text("mcp__memory__create_entities", &json!({"entities": [entity]}));
    assert!(
        bridge
            .call_text("mcp__memory__read_graph", &json!({}))
            .contains("likes numbers")
    );
    let status = bridge.call_text("mcp__git__git_status", &json!({"repo_path": repository}));
    assert!(status.contains("No commits yet"), "{status}");
}

#[test]
fn a_fastmcp_server_that_was_restarted_is_used_again() {
    let server = Served::start_at(free_port(), "fast.py");
    let port = server.port;
    let bridge = Daemon::serving(Home::new(), [("fast", server.entry())]);
    bridge.wait_for_tool("mcp__fast__add");
    assert_eq!(bridge.call_text("mcp__fast__add", &json!({"a": 40})), "42");
    drop(server);
    let _again = Served::start_at(port, "fast.py");
    assert_eq!(bridge.call_text("mcp__fast__add", &json!({"a": 1})), "3");
}

#[test]
fn server_everything_that_was_restarted_is_used_again_in_exactly_one_new_session() {
    let server = EverythingOverHttp::start(Everything::StreamableHttp);
    let port = server.port;
    let home = Home::new();
    let marker = home.path().display().to_string();
    let bridge = Daemon::serving(
        home,
        [
            (
                "pipes",
                json!({"command": node("mcp-server-everything"), "args": ["stdio"], "env": {"OF_TEST": marker}}),
            ),
            ("served", server.entry()),
        ],
    );
    let sum = |id: &str| bridge.call_text(&format!("mcp__{id}__get_sum"), &json!({"a": 2, "b": 40}));
    for id in ["pipes", "served"] {
        connected(&bridge, id);
        assert!(sum(id).contains("42"));
    }
    drop(server);
    let _again = EverythingOverHttp::start_at(port, Everything::StreamableHttp);
    for pid in process::with_variable(&format!("OF_TEST={marker}")) {
        process::signal(pid, Signal::KILL);
    }
    for id in ["pipes", "served"] {
        let answer = eventually(&format!("{id} works again"), SLOW_START, || {
            let answer = bridge.call(&format!("mcp__{id}__get_sum"), &json!({"a": 2, "b": 40}));
            (answer.status == 200).then(|| answer.text())
        });
        assert!(answer.contains("42"), "{answer}");
        let row = bridge.server(id).unwrap();
        assert_eq!(row["connection"]["generation"], 2, "{row}");
        let log = bridge.owner_get(&format!("/mcp/servers/{id}/log")).text();
        assert_eq!(log.matches(" replaces ").count(), 1, "{log}");
    }
}
