//! Signing in and out on the command line, and what it says where a key, the keychain or the window is missing: the real
//! program against an API on a Unix socket that answers as the bridge's contract says.

use serde_json::{Value, json};

use crate::fake_bridge::*;

/// A sign-in of `docs` that comes to this.
fn sign_in_that_ends(outcome: &str, message: &str) -> Bridge {
    let event = |server: &str, outcome: &str| {
        let event = json!({"type": "sign_in_finished", "server": server, "outcome": outcome, "message": message});
        format!("event: sign_in_finished\ndata: {event}\n\n")
    };
    let events = [event("other", "signed_in"), ":\n\n".into(), event("docs", outcome)].concat();
    let page = json!({"authUrl": "https://login.example/authorize?state=1"});
    Bridge::answering(&[
        ("GET /mcp/events", 200, Value::from(events)),
        ("POST /mcp/oauth/start", 200, page),
    ])
}

#[test]
fn a_sign_in_shows_the_address_and_ends_as_its_own_event_says() {
    let bridge = sign_in_that_ends("signed_in", "You are signed in.");
    let ran = bridge.run(&["sign-in", "docs", "--accept-issuer", "https://login.example"]);
    ran.ends(0);
    assert!(
        ran.out.contains("  https://login.example/authorize?state=1\n"),
        "{}",
        ran.out
    );
    assert!(ran.out.ends_with("Signed in to docs.\n"), "{}", ran.out);
    let (what, body) = bridge.asked().pop().unwrap();
    assert_eq!(what, "POST /mcp/oauth/start");
    assert_eq!(body, json!({"id": "docs", "accept_issuer": "https://login.example"}));
    for outcome in ["denied", "expired", "failed", "cancelled"] {
        let ran = sign_in_that_ends(outcome, "It came to nothing.").run(&["sign-in", "docs"]);
        ran.ends(1);
        assert!(ran.err.contains("It came to nothing."), "{outcome}: {}", ran.err);
    }
}

#[test]
fn an_issuer_that_needs_a_tick_is_ticked_with_an_option() {
    let refusal = json!({"ok": false, "code": "needs_review", "error": "You would sign in at https://x.example."});
    let bridge = Bridge::answering(&[
        ("GET /mcp/events", 200, Value::from("")),
        ("POST /mcp/oauth/start", 409, refusal),
    ]);
    let ran = bridge.run(&["sign-in", "docs"]);
    ran.ends(4);
    assert!(
        ran.err.contains("https://x.example") && ran.err.contains("sign-in docs --accept-issuer"),
        "{}",
        ran.err
    );
}

#[test]
fn beside_the_window_what_only_it_may_do_names_its_screen() {
    let refusal = json!({"ok": false, "code": "scope_missing", "error": "A program may not do this by itself."});
    let bridge = Bridge::answering(&[
        ("GET /mcp/events", 200, Value::from("")),
        ("POST /mcp/approvals/q", 403, refusal.clone()),
        ("POST /mcp/oauth/start", 403, refusal.clone()),
        ("POST /mcp/oauth/sign-out", 403, refusal.clone()),
        ("POST /mcp/servers/secret", 403, refusal.clone()),
        ("POST /mcp/servers/add", 403, refusal.clone()),
        ("POST /mcp/servers/remove", 403, refusal.clone()),
    ]);
    let commands: [(&[&str], &str); 7] = [
        (&["approve", "q"], "under Approvals"),
        (&["deny", "q"], "under Approvals"),
        (&["sign-in", "docs"], "on the page of docs"),
        (&["sign-out", "docs"], "on the page of docs"),
        (&["secret", "set", "docs", "KEY"], "on the page of docs"),
        (&["add", "t", "https://x.example/mcp"], "under Connectors"),
        (&["remove", "t"], "under Connectors"),
    ];
    for (arguments, screen) in commands {
        let ran = bridge.run_with(arguments, "key");
        ran.ends(4);
        let told = format!(
            "neuron-connectd: Neuron Connect is open: do this in its window, {screen}. Its tray icon, or the command \"neuron-connect\", brings the window up.\n"
        );
        assert_eq!(ran.err, told, "{arguments:?}");
    }
    let ran = bridge.run(&["deny", "q", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap(), refusal);
}

#[test]
fn a_sign_in_that_needs_a_line_in_the_entry_prints_it() {
    for (code, action, error, line) in [
        (
            "needs_secret",
            "edit",
            "https://a.example does not register programs by itself. Its address is https://b.example/back.",
            r#"  "oauth": {"clientId": "…", "issuer": "https://a.example"}"#,
        ),
        (
            "pkce_not_supported",
            "edit",
            "https://a.example does not protect codes.",
            r#"  "oauth": {"allowMissingPkce": true}"#,
        ),
    ] {
        let refusal = json!({"ok": false, "code": code, "action": action, "error": error});
        let bridge = Bridge::answering(&[
            ("GET /mcp/events", 200, Value::from("")),
            ("POST /mcp/oauth/start", 409, refusal),
        ]);
        let ran = bridge.run(&["sign-in", "docs"]);
        assert!(ran.err.contains(error), "{}", ran.err);
        assert!(ran.err.lines().any(|printed| printed == line), "{}", ran.err);
        assert!(ran.err.contains("the entry of docs in connectors.json"), "{}", ran.err);
    }
}

#[test]
fn a_missing_keychain_is_told_once_and_a_missing_key_with_its_command() {
    let absent = "This desktop has no keychain that runs. Start one (such as GNOME Keyring or KWallet), or keep secrets \
                  until the app quits.";
    let waits = |id: &str| {
        json!({
            "id": id, "status": "keychain_unavailable", "tools": 0, "name": id, "error": absent,
            "action": "unlock_keychain",
        })
    };
    let team = json!({
        "id": "team", "status": "needs_secret", "tools": 0, "name": "team", "error": "The secret KEY is not set.",
        "action": "set_secret",
    });
    let body = json!({
        "servers": [waits("a"), waits("b"), team],
        "keychain": {"kept_in": "keychain", "state": "absent", "message": absent},
    });
    let detail = json!({"secrets": [
        {"name": "OTHER", "set": true, "withheld": false}, {"name": "KEY", "set": false, "withheld": false},
    ]});
    let bridge = Bridge::answering(&[
        ("GET /mcp/servers", 200, body.clone()),
        ("GET /mcp/servers/team", 200, detail),
    ]);
    for command in ["status", "doctor"] {
        let ran = bridge.run(&[command]);
        let told = "No keychain runs here. Start GNOME Keyring or KWallet, or run \"neuron-connectd serve --secrets file\" \
                    (or memory).";
        assert_eq!(ran.out.matches(told).count(), 1, "{}", ran.out);
        assert_eq!(ran.out.matches("waits for the keychain").count(), 2, "{}", ran.out);
        assert!(!ran.out.contains("until the app quits"), "{}", ran.out);
        let enter = "The secret KEY is not set. (enter it: neuron-connectd secret set team KEY)\n";
        assert!(ran.out.contains(enter), "{}", ran.out);
    }
    let ran = bridge.run(&["status", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap(), body);
}

#[test]
fn signing_out_says_so() {
    let answer = json!({"ok": true, "signedOut": true});
    let bridge = Bridge::answering(&[("POST /mcp/oauth/sign-out", 200, answer)]);
    let ran = bridge.run(&["sign-out", "docs"]);
    ran.ends(0);
    assert_eq!(ran.out, "Signed out of docs.\n");
    assert_eq!(bridge.asked()[0].1, json!({"id": "docs"}));
}
