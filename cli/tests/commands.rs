//! The client commands as a person runs them: the real program against an API on a Unix socket that answers as the
//! bridge's contract says.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod fake_bridge;
mod sign_in;

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
};

use serde_json::{Value, json};

use fake_bridge::*;

#[test]
fn status_shows_every_connector_with_what_to_do() {
    let bridge = Bridge::answering(&[("GET /mcp/servers", 200, servers())]);
    let ran = bridge.run(&["status"]);
    ran.ends(0);
    for line in [
        "ID          STATUS     TOOLS  NAME   NOTE",
        "filesystem  sleeping   14     Files",
        "time        connected  2      time",
        "db          error      0      db     \"uvx\" was not found. (try again: neuron-connectd reconnect db)",
    ] {
        assert!(ran.out.lines().any(|l| l == line), "{line}\n{}", ran.out);
    }
    assert!(ran.out.contains("Neuron Connect 0.1.0 on 127.0.0.1:"), "{}", ran.out);
    assert!(
        ran.out
            .contains("connectors.json, line 3, column 7: Unknown key \"foo\"."),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains('\x1b'), "no colour into a pipe: {}", ran.out);
    assert_eq!(bridge.asked(), [("GET /mcp/servers".to_owned(), Value::Null)]);
}

#[test]
fn json_is_the_bridges_own_answer() {
    let body = json!({"servers": [], "later": {"number": 1}});
    let bridge = Bridge::answering(&[("GET /mcp/servers", 200, body.clone())]);
    for arguments in [["--json", "status"], ["status", "--json"]] {
        let ran = bridge.run(&arguments);
        ran.ends(0);
        assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap(), body);
    }
}

#[test]
fn tools_are_listed_and_searched() {
    let list = json!({"tools": [
        {"name": "mcp__filesystem__read_text_file", "description": "Read a text file.\nMore.", "input_schema": {}},
        {"name": "mcp__t__n", "description": "\u{1b}[2JNow", "input_schema": {}},
    ]});
    let bridge = Bridge::answering(&[
        ("GET /mcp/tools", 200, list),
        (
            "GET /mcp/tools?server=a%26b",
            200,
            json!({"tools": [{"name": "mcp__a__x", "description": "Writes a file."}]}),
        ),
    ]);
    let ran = bridge.run(&["tools"]);
    ran.ends(0);
    assert_eq!(
        ran.out,
        "TOOL                             WHAT IT DOES\n\
         mcp__filesystem__read_text_file  Read a text file.\n\
         mcp__t__n                        ␛[2JNow\n"
    );
    let ran = bridge.run(&["tools", "-q", "read file", "--server", "a&b"]);
    ran.ends(0);
    assert_eq!(ran.out, "No tool matches.\n");
}

#[test]
fn a_call_sends_what_the_schema_asks_for_and_prints_the_text() {
    let bridge = Bridge::answering(&[
        ("GET /mcp/tools", 200, one_tool()),
        (
            "POST /mcp/call",
            200,
            json!({"ok": true, "content": [], "text": "two\nlines", "server": "t"}),
        ),
    ]);
    let ran = bridge.run(&[
        "call",
        "mcp__t__x",
        "text=5",
        "count=5",
        "on=true",
        "ids=1",
        "ids=2",
        "raw:=[null]",
    ]);
    ran.ends(0);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("two\nlines\n", ""));
    let (what, body) = bridge.asked().pop().unwrap();
    assert_eq!(what, "POST /mcp/call");
    assert_eq!(
        body,
        json!({
            "name": "mcp__t__x",
            "input": {"text": "5", "count": 5, "on": true, "ids": [1, 2], "raw": [null]},
        })
    );
}

#[test]
fn a_call_takes_one_object_from_the_line_or_from_standard_input() {
    let bridge = Bridge::answering(&[("POST /mcp/call", 200, json!({"ok": true, "text": ""}))]);
    let object = r#"{"n": 12345678901234567890.10}"#;
    bridge.run(&["call", "t", object, "--timeout", "5"]).ends(0);
    bridge.run_with(&["call", "t", "-"], object).ends(0);
    bridge.run(&["call", "t"]).ends(0);
    let bodies: Vec<_> = bridge.asked().into_iter().map(|(_, body)| body.to_string()).collect();
    assert_eq!(
        bodies,
        [
            r#"{"name":"t","input":{"n":12345678901234567890.10},"timeout_ms":5000}"#,
            r#"{"name":"t","input":{"n":12345678901234567890.10}}"#,
            r#"{"name":"t","input":{}}"#,
        ]
    );
}

#[test]
fn a_tool_that_fails_prints_its_error_apart_and_exits_1() {
    let failed = json!({"ok": false, "error": "no such table", "code": "tool_error", "content": []});
    let bridge = Bridge::answering(&[("POST /mcp/call", 200, failed.clone())]);
    let ran = bridge.run(&["call", "t"]);
    ran.ends(1);
    assert_eq!(
        (ran.out.as_str(), ran.err.as_str()),
        ("", "neuron-connectd: no such table\n")
    );
    let ran = bridge.run(&["call", "t", "--json"]);
    ran.ends(1);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap(), failed);
}

#[test]
fn a_shortened_answer_says_so_beside_the_text() {
    let answer = json!({
        "ok": true, "text": "start…end", "truncated": true, "result_id": "r1", "warnings": ["It names a secret."],
        "content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}],
    });
    let bridge = Bridge::answering(&[("POST /mcp/call", 200, answer)]);
    let ran = bridge.run(&["call", "t"]);
    ran.ends(0);
    assert_eq!(ran.out, "start…end\n");
    for part in ["It names a secret.", "shortened", "pictures"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
}

#[test]
fn failures_have_the_exit_code_that_the_help_names() {
    for (status, body, code) in [
        (
            404,
            json!({"ok": false, "error": "No such tool; did you mean x?", "code": "unknown_tool"}),
            1,
        ),
        (
            409,
            json!({"ok": false, "error": "It is off.", "code": "disabled", "action": "enable"}),
            1,
        ),
        (
            409,
            json!({"ok": false, "error": "A secret is missing.", "code": "needs_secret"}),
            4,
        ),
        (
            403,
            json!({"ok": false, "error": "Not from here.", "code": "scope_missing"}),
            4,
        ),
        (
            202,
            json!({"ok": false, "pending": true, "approval_id": "a", "error": "It waits."}),
            4,
        ),
    ] {
        let bridge = Bridge::answering(&[("POST /mcp/call", status, body.clone())]);
        let ran = bridge.run(&["call", "t"]);
        ran.ends(code);
        assert!(ran.out.is_empty(), "{}", ran.out);
        assert!(ran.err.contains(body["error"].as_str().unwrap()), "{}", ran.err);
        let ran = bridge.run(&["call", "t", "--json"]);
        ran.ends(code);
        assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap(), body);
    }
}

#[test]
fn connectors_are_added_from_words_and_from_pasted_json() {
    let added = json!({"ok": true, "server": {"id": "t", "status": "connecting"}, "verified": false});
    let bridge = Bridge::answering(&[("POST /mcp/servers/add", 200, added)]);
    let ran = bridge.run(&["add", "t", "-e", "A=b", "--", "uvx", "mcp-server-time"]);
    ran.ends(0);
    assert!(ran.out.contains("Added t; it is connecting now."), "{}", ran.out);
    bridge
        .run_with(
            &["add", "-"],
            r#"{"mcpServers": {"a": {"command": "x"}, "b": {"url": "https://b"}}}"#,
        )
        .ends(0);
    let bodies: Vec<_> = bridge.asked().into_iter().map(|(_, body)| body).collect();
    assert_eq!(
        bodies,
        [
            json!({"id": "t", "transport": "stdio", "command": "uvx", "args": ["mcp-server-time"], "env": {"A": "b"}}),
            json!({"id": "a", "command": "x"}),
            json!({"id": "b", "url": "https://b"}),
        ]
    );
}

#[test]
fn an_addition_that_waits_for_the_window_exits_4() {
    let waits = json!({"ok": false, "pending": true, "approval_id": "a1", "error": "Waits in the window."});
    let bridge = Bridge::answering(&[("POST /mcp/servers/add", 202, waits)]);
    let ran = bridge.run(&["add", "t", "https://x.example/mcp"]);
    ran.ends(4);
    assert_eq!(ran.err, "neuron-connectd: Waits in the window.\n");
}

#[test]
fn connectors_are_removed_and_turned_on_and_off() {
    let bridge = Bridge::answering(&[
        ("POST /mcp/servers/remove", 200, json!({"ok": true})),
        ("POST /mcp/servers/toggle", 200, json!({"ok": true})),
    ]);
    for (arguments, says) in [
        (["remove", "t"], "Removed t.\n"),
        (["enable", "t"], "t is on now.\n"),
        (["disable", "t"], "t is off now.\n"),
    ] {
        let ran = bridge.run(&arguments);
        ran.ends(0);
        assert_eq!(ran.out, says);
    }
    let bodies: Vec<_> = bridge.asked().into_iter().map(|(_, body)| body).collect();
    assert_eq!(
        bodies,
        [
            json!({"id": "t"}),
            json!({"id": "t", "enabled": true}),
            json!({"id": "t", "enabled": false})
        ]
    );
}

#[test]
fn reconnect_tells_whether_the_attempt_worked() {
    for (verified, server, code, says) in [
        (
            true,
            json!({"id": "t", "status": "connected", "tools": 2}),
            0,
            "t is connected, with 2 tools.",
        ),
        (
            false,
            json!({"id": "t", "status": "error", "error": "It ended."}),
            1,
            "(error). It ended.",
        ),
        (
            false,
            json!({"id": "t", "status": "needs_secret", "action": "set_secret"}),
            4,
            "enter it: neuron-connectd secret set",
        ),
    ] {
        let answer = json!({"ok": true, "server": server, "verified": verified});
        let bridge = Bridge::answering(&[("POST /mcp/servers/reconnect", 200, answer)]);
        let ran = bridge.run(&["reconnect", "t"]);
        ran.ends(code);
        assert!(
            format!("{}{}", ran.out, ran.err).contains(says),
            "{} {}",
            ran.out,
            ran.err
        );
    }
}

#[test]
fn logs_are_shown_and_followed_line_by_line() {
    let later =
        ["a-2", "a-3", "a-9"].map(|after| format!("GET /mcp/servers/t/log?lines=1000&after={after}&wait_ms=20000"));
    let bridge = Bridge::answering(&[
        (
            "GET /mcp/servers/a%2Fb/log?lines=100",
            200,
            json!({"lines": ["one", "two"], "next": "a-2", "missed": false}),
        ),
        (
            "GET /mcp/servers/t/log?lines=1",
            200,
            json!({"lines": ["two"], "next": "a-2", "missed": false}),
        ),
        (
            &later[0],
            200,
            json!({"lines": ["three"], "next": "a-3", "missed": false}),
        ),
        (
            &later[1],
            503,
            json!({"error": "It is being started.", "code": "unavailable"}),
        ),
        (
            &later[1],
            200,
            json!({"lines": ["nine"], "next": "a-9", "missed": true}),
        ),
        (
            &later[2],
            404,
            json!({"error": "No such connector.", "code": "unknown_server"}),
        ),
    ]);
    let ran = bridge.run(&["logs", "a/b"]);
    ran.ends(0);
    assert_eq!(ran.out, "one\ntwo\n");
    let ran = bridge.run(&["logs", "t", "-f", "-n", "1"]);
    ran.ends(1);
    assert_eq!(ran.out, "two\nthree\nnine\n");
    for said in ["It is being started.", "Some lines are missing", "t was removed"] {
        assert!(ran.err.contains(said), "{said} in {}", ran.err);
    }
}

#[test]
fn trying_is_stopped_and_what_stands_is_told() {
    let failed = json!({"id": "t", "status": "error", "error": "Nobody there.", "action": "reconnect"});
    for (stopped, server, says) in [
        (
            false,
            failed.clone(),
            "Nothing was being tried: t is not working. Nobody there. (try again: neuron-connectd reconnect t)",
        ),
        (
            true,
            failed,
            "Stopped trying to connect t. Nobody there. (try again: neuron-connectd reconnect t)",
        ),
        (
            false,
            json!({"id": "t", "status": "connected"}),
            "Nothing was being tried: t is connected.",
        ),
    ] {
        let bridge = Bridge::answering(&[(
            "POST /mcp/servers/stop-trying",
            200,
            json!({"ok": true, "server": server, "stopped": stopped}),
        )]);
        let ran = bridge.run(&["stop-trying", "t"]);
        ran.ends(0);
        assert_eq!(ran.out.trim_end(), says);
        assert_eq!(bridge.asked()[0].1, json!({"id": "t"}));
    }
}

#[test]
fn without_a_bridge_every_command_says_how_to_start_one_and_exits_3() {
    let home = tempfile::tempdir().unwrap();
    let nobody = |arguments: &[&str]| {
        let ran = run(&home, arguments, "");
        ran.ends(3);
        assert!(
            ran.err.contains("No bridge is running") && ran.err.contains("serve"),
            "{}",
            ran.err
        );
    };
    let commands: [&[&str]; 12] = [
        &["status"],
        &["tools"],
        &["call", "t"],
        &["add", "t", "https://x"],
        &["remove", "t"],
        &["enable", "t"],
        &["reconnect", "t"],
        &["logs", "t"],
        &["stop-trying", "t"],
        &["approvals"],
        &["approve", "q"],
        &["deny", "q"],
    ];
    commands.iter().for_each(|arguments| nobody(arguments));
    let ran = run(&home, &["status", "--json"], "");
    ran.ends(3);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()["code"], "no_bridge");
    // One that was killed leaves its file and its socket behind.
    let gone = Bridge::answering(&[]);
    let socket = gone.socket.clone();
    let home = gone.end();
    drop(UnixListener::bind(&socket));
    let ran = run(&home, &["status"], "");
    ran.ends(3);
    fs::write(home.path().join("connect/api.json"), "{").unwrap();
    let ran = run(&home, &["status"], "");
    ran.ends(3);
    assert!(ran.err.contains("cannot be understood"), "{}", ran.err);
}

#[test]
fn a_command_line_that_cannot_be_used_exits_2_before_anything_is_asked() {
    let bridge = Bridge::answering(&[("GET /mcp/tools", 200, one_tool())]);
    for (arguments, says) in [
        (vec!["add", "my server", "https://x"], "my-server"),
        (vec!["add", "a"], "Say what a is"),
        (vec!["call", "t", "novalue"], "KEY=VALUE"),
        (vec!["call", "t", "{"], "no JSON object"),
        (vec!["call", "mcp__t__x", "count=many"], "whole number"),
        (vec!["call", "t", "--timeout", "0"], "1..=3600"),
        (vec!["nonsense"], "nonsense"),
        (vec![], "Usage"),
        (vec!["files"], "DIR"),
    ] {
        let ran = bridge.run(&arguments);
        ran.ends(2);
        assert!(ran.err.contains(says), "{arguments:?}: {}", ran.err);
    }
    assert!(bridge.asked().iter().all(|(what, _)| what == "GET /mcp/tools"));
}

#[test]
fn doctor_names_what_is_wrong_and_the_mend() {
    let bridge = Bridge::answering(&[("GET /mcp/servers", 200, servers())]);
    let connect = bridge.home.path().join("connect");
    fs::set_permissions(&connect, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = bridge.run(&["doctor"]);
    ran.ends(1);
    for part in [
        "chmod 700",
        "bridge           version 0.1.0",
        "port             listens on 127.0.0.1:",
        "line 3, column 7",
        "db               error: \"uvx\" was not found.",
        "time             connected, 2 tools",
    ] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
    let ran = bridge.run(&["doctor", "--json"]);
    ran.ends(1);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()["ok"], false);
}

#[test]
fn doctor_is_content_when_all_is_well_and_says_so_when_nothing_runs() {
    let well = json!({"servers": [{"id": "time", "status": "connected", "tools": 2}]});
    let bridge = Bridge::answering(&[("GET /mcp/servers", 200, well)]);
    let ran = bridge.run(&["doctor"]);
    ran.ends(0);
    assert!(!ran.out.contains("wrong"), "{}", ran.out);
    let home = tempfile::tempdir().unwrap();
    let ran = run(&home, &["doctor"], "");
    ran.ends(3);
    assert!(ran.out.contains("No bridge is running"), "{}", ran.out);
}

#[test]
fn completions_are_printed_for_a_shell() {
    let home = tempfile::tempdir().unwrap();
    let ran = run(&home, &["completions", "bash"], "");
    ran.ends(0);
    assert!(
        ran.out.contains("complete -F") && ran.out.contains(" neuron-connectd"),
        "{}",
        ran.out
    );
}

#[test]
fn help_names_the_exit_codes() {
    let home = tempfile::tempdir().unwrap();
    let ran = run(&home, &["--help"], "");
    ran.ends(0);
    for part in ["Exit codes:", "3  no bridge is running", "Examples:"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
}

fn servers() -> Value {
    json!({
        "servers": [
            {"id": "filesystem", "status": "sleeping", "tools": 14, "name": "Files"},
            {"id": "time", "status": "connected", "tools": 2, "name": "time"},
            {
                "id": "db", "status": "error", "tools": 0, "name": "db",
                "error": "\"uvx\" was not found.", "action": "reconnect",
            },
        ],
        "notices": [{"level": "warning", "message": "Unknown key \"foo\".", "line": 3, "column": 7}],
    })
}

fn one_tool() -> Value {
    json!({"tools": [{"name": "mcp__t__x", "description": "", "input_schema": {"type": "object", "properties": {
        "text": {"type": "string"}, "count": {"type": "integer"}, "on": {"type": "boolean"},
        "ids": {"type": "array", "items": {"type": "integer"}},
    }}}]})
}
