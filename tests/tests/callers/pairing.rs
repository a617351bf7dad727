//! How a program comes to have a token.

use std::{io::Write as _, process::Stdio};

use neuron_tests::{
    daemon::command_line,
    inline::Inline,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

use super::{with_fake, with_token};

#[test]
fn a_program_is_paired_by_the_code_that_it_shows_and_gets_its_token_once() {
    let bridge = with_fake();
    let ask = || bridge.post("/mcp/clients/pair", &json!({"name": "Claude Code"}));
    ask().refused(403, "scope_missing");
    bridge.owner_post("/mcp/pairing", &json!({"open": true})).ok();
    let begun = ask().ok();
    let (id, code) = (&begun["pairing_id"], begun["code"].as_str().unwrap());
    assert!(code.len() == 6 && code.bytes().all(|digit| digit.is_ascii_digit()));
    ask().refused(429, "rate_limited");
    let shown = bridge.owner_get("/mcp/pairing").ok();
    assert_eq!(shown["pairing"]["request"]["name"], "Claude Code");
    assert!(!shown.to_string().contains(code), "the code is the program's to show");
    let poll = || bridge.post("/mcp/clients/pair", &json!({"pairing_id": id}));
    assert_eq!(poll().ok()["state"], "waiting");
    let terms = json!({"scopes": ["read", "call"], "asks_itself": true});
    let typed = |code: &str| {
        let body = json!({"answer": {"pairing_id": id, "code": code, "terms": terms}});
        bridge.owner_post("/mcp/pairing", &body)
    };
    let wrong = format!("{:06}", (code.parse::<u32>().unwrap() + 1) % 1_000_000);
    typed(&wrong).refused(400, "bad_request");
    let client = typed(code).ok()["client"].clone();
    let paired = poll().ok();
    let token = paired["token"].as_str().unwrap();
    assert_eq!(poll().ok(), json!({"ok": true, "state": "taken"}));

    let with = |method: &str, path: &str| with_token(&bridge, token, method, path, &json!({"name": "mcp__fake__echo"}));
    with("GET", "/mcp/tools").ok();
    with("POST", "/mcp/call").ok();
    let kept = bridge.owner_get("/mcp/clients").ok();
    assert_eq!(kept["clients"][0]["id"], client["id"]);
    assert!(kept["clients"][0]["last_used_at"].is_number(), "{kept}");
    let secret = token.rsplit('_').next().unwrap();
    let home = bridge.terminate();
    for entry in walk(&home.neuron()) {
        let bytes = std::fs::read(&entry).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(secret), "the token stands in {}", entry.display());
    }
}

#[test]
fn three_wrong_codes_turn_a_program_away() {
    let bridge = with_fake();
    bridge.owner_post("/mcp/pairing", &json!({"open": true})).ok();
    let begun = bridge.post("/mcp/clients/pair", &json!({"name": "x"})).ok();
    let typed = |code: &str| {
        let terms = json!({"scopes": ["read"]});
        let body = json!({"answer": {"pairing_id": begun["pairing_id"], "code": code, "terms": terms}});
        bridge.owner_post("/mcp/pairing", &body)
    };
    typed("").refused(400, "bad_request");
    typed("x").refused(400, "bad_request");
    typed("1234567").refused(403, "denied");
    typed(begun["code"].as_str().unwrap()).refused(404, "not_found");
    let told = bridge
        .post("/mcp/clients/pair", &json!({"pairing_id": begun["pairing_id"]}))
        .ok();
    assert_eq!(told["state"], "denied");
    assert_eq!(bridge.owner_get("/mcp/clients").ok()["clients"], json!([]));
    bridge.terminate();
}

#[test]
fn a_program_that_takes_the_place_for_pairing_is_turned_away_and_the_right_one_is_paired() {
    let bridge = with_fake();
    bridge.owner_post("/mcp/pairing", &json!({"open": true})).ok();
    let ask = json!({"name": "Claude Code"});
    let greedy = || Inline::post(&bridge, "/mcp/clients/pair", &ask).answer();
    let taken = greedy();
    assert_eq!(taken["ok"], true, "{taken}");
    bridge.post("/mcp/clients/pair", &ask).refused(429, "rate_limited");
    let shown = bridge.owner_get("/mcp/pairing").ok();
    let path = &shown["pairing"]["request"]["program"]["path"];
    assert!(path.as_str().unwrap().contains("python"), "{shown}");
    let turned = bridge.owner_post("/mcp/pairing", &json!({"turn_away": taken["pairing_id"]}));
    assert_eq!(turned.ok()["pairing"]["request"], Value::Null);
    assert_eq!(greedy()["code"], "denied", "it starts itself anew, and is the same one");

    let begun = bridge.post("/mcp/clients/pair", &ask).ok();
    let terms = json!({"scopes": ["read"]});
    let body = json!({"answer": {"pairing_id": begun["pairing_id"], "code": begun["code"], "terms": terms}});
    bridge.owner_post("/mcp/pairing", &body).ok();
    assert_eq!(greedy()["code"], "scope_missing", "one is paired, and pairing is over");
    bridge
        .owner_post("/mcp/pairing", &json!({"turn_away": "x"}))
        .refused(404, "not_found");
    bridge.terminate();
}

#[test]
fn the_command_line_turns_one_away_and_goes_on_with_the_next() {
    let bridge = with_fake();
    let mut pairing = command_line(&bridge.home, &["pair"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut typed = pairing.stdin.take().unwrap();
    let ask = json!({"name": "Claude Code"});
    eventually("pairing", SOON, || {
        bridge.owner_get("/mcp/pairing").ok()["pairing"]
            .is_object()
            .then_some(())
    });
    let greedy = Inline::post(&bridge, "/mcp/clients/pair", &ask).answer();
    assert_eq!(greedy["ok"], true, "{greedy}");
    writeln!(typed, "n").unwrap();
    let begun = eventually("the place", SOON, || {
        let answer = bridge.post("/mcp/clients/pair", &ask);
        (answer.status == 200).then(|| answer.json())
    });
    writeln!(typed, "{}", begun["code"].as_str().unwrap()).unwrap();
    let output = pairing.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("Turned away."), "{said}");
    assert!(said.contains("python"), "whose place it was is told: {said}");
    assert_eq!(
        bridge.owner_get("/mcp/clients").ok()["clients"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    bridge.terminate();
}

/// All files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files.extend(walk(&entry.path())),
            kind if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    files
}
