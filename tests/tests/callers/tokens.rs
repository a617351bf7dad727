//! What a token is good for, and where one is needed.

use std::process::{Command, Stdio};

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::Fake,
    home::Home,
    http::Connection,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

use super::{answer, pair, waits, with_fake, with_token};

#[test]
fn a_token_is_good_for_its_scopes_until_it_is_changed_expires_or_is_revoked() {
    let bridge = with_fake();
    let (id, token) = pair(&bridge, &json!({"scopes": ["read"], "asks_itself": true}));
    let call = || {
        with_token(
            &bridge,
            &token,
            "POST",
            "/mcp/call",
            &json!({"name": "mcp__fake__echo"}),
        )
    };
    let remove = || with_token(&bridge, &token, "POST", "/mcp/servers/remove", &json!({"id": "fake"}));
    let read = || with_token(&bridge, &token, "GET", "/mcp/tools", &Value::Null);
    read().ok();
    call().refused(403, "scope_missing");
    remove().refused(403, "scope_missing");
    let path = format!("/mcp/clients/{id}");
    bridge
        .owner_post(&path, &json!({"scopes": ["read", "call", "manage"]}))
        .ok();
    call().ok();
    // The right to manage waits for the person all the same.
    let wish = waits(&remove());
    let wrong = bridge.get(&format!("/mcp/approvals/{wish}"));
    wrong.refused(404, "not_found");
    // A token in the address is none.
    let query = bridge.get(&format!("/mcp/tools?token={token}"));
    query.refused(400, "bad_request");
    bridge.owner_post(&path, &json!({"expires_at": 1})).ok();
    read().refused(401, "unauthorized");
    bridge.owner_post(&path, &json!({"expires_at": null})).ok();
    read().ok();
    // Nothing that it wished outlives the right to wish it.
    let state = |wish: &str| bridge.owner_get(&format!("/mcp/approvals/{wish}")).ok()["state"].clone();
    for without in [json!({"scopes": ["read", "call"]}), json!({"servers": ["other"]})] {
        let wish = waits(&remove());
        let before = json!({"scopes": ["read", "call", "manage"], "servers": null});
        bridge.owner_post(&path, &json!({"name": "Other"})).ok();
        assert_eq!(state(&wish), "waiting");
        bridge.owner_post(&path, &without).ok();
        assert_eq!(state(&wish), "expired", "{without}");
        bridge.owner_post(&path, &before).ok();
    }
    let bridge = bridge.restart();
    with_token(&bridge, &token, "GET", "/mcp/tools", &Value::Null).ok();
    let wish = waits(&with_token(
        &bridge,
        &token,
        "POST",
        "/mcp/servers/remove",
        &json!({"id": "fake"}),
    ));
    let mut open = Connection::open(&bridge.tcp());
    let header = format!("Bearer {token}");
    let header = [("authorization", header.as_str())];
    assert_eq!(open.send("GET", "/mcp/tools", &header, b"").status, 200);
    let gone = Connection::open(&bridge.local()).send("DELETE", &path, &[], b"");
    gone.ok();
    open.send("GET", "/mcp/tools", &header, b"")
        .refused(401, "unauthorized");
    let seen = bridge.owner_get(&format!("/mcp/approvals/{wish}")).ok();
    assert_eq!(seen["state"], "expired", "what it wished went with it: {seen}");
    bridge.terminate();
}

#[test]
fn a_token_that_another_program_shows_lets_it_call_nothing_unasked() {
    let bridge = with_fake();
    let (_, token) = pair(&bridge, &json!({"scopes": ["read", "call"], "asks_itself": true}));
    let call = json!({"name": "mcp__fake__echo"});
    with_token(&bridge, &token, "POST", "/mcp/call", &call).ok();
    let thief = Command::new("curl")
        .args([
            "--silent",
            "--request",
            "POST",
            "--header",
            "Content-Type: application/json",
        ])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args(["--data", &call.to_string()])
        .arg(format!("http://127.0.0.1:{}/mcp/call", bridge.port))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let id = eventually("a question", SOON, || {
        let waiting = bridge.owner_get("/mcp/approvals").ok();
        let question = waiting["approvals"]
            .as_array()?
            .iter()
            .find(|one| one["kind"] == "call")?;
        question["id"].as_str().map(str::to_owned)
    });
    answer(&bridge, &id, "deny").ok();
    let said = thief.wait_with_output().unwrap().stdout;
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("\"denied\""), "{said}");
    bridge.terminate();
}

#[test]
fn a_token_for_one_connector_sees_no_other() {
    let home = Home::new();
    let bridge = Daemon::serving(
        home,
        [("mine", Fake::new("ok").entry()), ("theirs", Fake::new("ok").entry())],
    );
    bridge.wait_for_tool("mcp__mine__echo");
    bridge.wait_for_tool("mcp__theirs__echo");
    let (_, token) = pair(
        &bridge,
        &json!({"scopes": ["read", "call", "manage"], "servers": ["mine"], "asks_itself": true}),
    );
    let get = |path: &str| with_token(&bridge, &token, "GET", path, &Value::Null);
    let post = |path: &str, body: Value| with_token(&bridge, &token, "POST", path, &body);
    for path in ["/mcp/tools", "/mcp/servers", "/mcp/auto-approved"] {
        let seen = get(path).ok().to_string();
        assert!(!seen.contains("theirs"), "{path}: {seen}");
    }
    get("/mcp/servers/theirs").refused(404, "unknown_server");
    get("/mcp/servers/mine").ok();
    let unseen = post("/mcp/call", json!({"name": "mcp__theirs__echo"})).refused(404, "unknown_tool");
    let unknown = post("/mcp/call", json!({"name": "mcp__theirs__nothing"})).refused(404, "unknown_tool");
    assert_eq!(
        unseen.replace("__echo", ""),
        unknown.replace("__nothing", ""),
        "it is told nothing of what is there"
    );
    post("/mcp/call", json!({"name": "mcp__mine__echo"})).ok();
    for (path, body) in [
        ("/mcp/servers/remove", json!({"id": "theirs"})),
        ("/mcp/servers/toggle", json!({"id": "theirs", "enabled": false})),
        ("/mcp/servers/reconnect", json!({"id": "theirs"})),
        ("/mcp/servers/secret", json!({"id": "theirs", "secret": "x"})),
        ("/mcp/oauth/sign-out", json!({"id": "theirs"})),
    ] {
        post(path, body).refused(404, "unknown_server");
    }
    bridge.terminate();
}

#[test]
fn the_question_of_an_assistant_ends_once_it_may_not_ask_it_any_more() {
    type End = fn(&Daemon, &str);
    let ends: [(&str, End); 4] = [
        ("it is let go", |bridge, id| {
            let path = format!("/mcp/clients/{id}");
            Connection::open(&bridge.local()).send("DELETE", &path, &[], b"").ok();
        }),
        ("it may read alone", |bridge, id| {
            bridge
                .owner_post(&format!("/mcp/clients/{id}"), &json!({"scopes": ["read"]}))
                .ok();
        }),
        ("its time is over", |bridge, id| {
            bridge
                .owner_post(&format!("/mcp/clients/{id}"), &json!({"expires_at": 1}))
                .ok();
        }),
        ("it sees other connectors", |bridge, id| {
            bridge
                .owner_post(&format!("/mcp/clients/{id}"), &json!({"servers": ["other"]}))
                .ok();
        }),
    ];
    let home = Home::new();
    let fake = Fake::new("ok").record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry()), ("other", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    let questions = || {
        let waiting = bridge.owner_get("/mcp/approvals").ok();
        waiting["approvals"].as_array().unwrap().clone()
    };
    for (what, end) in ends {
        let (id, token) = pair(&bridge, &json!({"scopes": ["read", "call"]}));
        let call = json!({"name": "mcp__fake__echo"});
        std::thread::scope(|scope| {
            let called = scope.spawn(|| with_token(&bridge, &token, "POST", "/mcp/call", &call));
            let question = eventually("a question", SOON, || questions().pop());
            let path = format!("/mcp/clients/{id}");
            bridge.owner_post(&path, &json!({"name": "Another name"})).ok();
            assert_eq!(questions().len(), 1, "{what}: another name is no reason");
            end(&bridge, &id);
            assert_eq!(questions(), [Value::Null; 0], "{what}");
            called.join().unwrap().refused(403, "denied");
            let late = answer(&bridge, question["id"].as_str().unwrap(), "approve");
            late.refused(409, "already_exists");
        });
    }
    assert_eq!(fake.seen().messages("tools/call"), [""; 0]);
    bridge.terminate();
}

#[test]
fn web_pages_use_the_api_only_while_the_person_allows_them() {
    let bridge = with_fake();
    let page = [("origin", "https://app.example.com")];
    let visit = || Connection::open(&bridge.tcp()).send("GET", "/mcp/tools", &page, b"");
    let trust = |arguments: &[&str]| {
        let output = bridge.command(&[&["trust"], arguments].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    visit().refused(403, "origin_not_allowed");
    let (code, told) = trust(&["--allow-page", "https://App.example.com/"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("use the API: https://app.example.com."), "{told}");
    visit().ok();
    let (code, told) = trust(&["--forbid-page", "https://other.example.com"]);
    assert_eq!(code, Some(2), "{told}");
    let (code, told) = trust(&["--allow-page", "https://app.example.com/path"]);
    assert_ne!(code, Some(0), "{told}");
    visit().ok();
    let (code, told) = trust(&["--forbid-page", "https://app.example.com"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("No web page may use the API."), "{told}");
    visit().refused(403, "origin_not_allowed");
    bridge.terminate();
}

#[test]
fn where_programs_need_a_token_nothing_else_is_served_without_one() {
    let bridge = with_fake();
    let (_, token) = pair(&bridge, &json!({"scopes": ["read"]}));
    bridge.owner_post("/mcp/trust", &json!({"api_mode": "token"})).ok();
    let refuses = |bridge: &Daemon| {
        assert_eq!(bridge.get("/healthz").status, 200);
        for (path, body) in [
            ("/mcp/call", json!({"name": "mcp__fake__echo"})),
            ("/mcp/servers/remove", json!({"id": "fake"})),
            ("/mcp/clients/pair", json!({"name": "x"})),
        ] {
            bridge.post(path, &body).refused(401, "unauthorized");
        }
        for path in [
            "/mcp/tools",
            "/mcp/servers",
            "/mcp/events",
            "/mcp/approvals",
            "/no/such/path",
        ] {
            bridge.get(path).refused(401, "unauthorized");
        }
        with_token(bridge, &token, "GET", "/mcp/tools", &Value::Null).ok();
    };
    refuses(&bridge);
    let bridge = bridge.restart();
    refuses(&bridge);
    bridge.owner_post("/mcp/pairing", &json!({"open": true})).ok();
    bridge.post("/mcp/clients/pair", &json!({"name": "x"})).ok();
    bridge.owner_post("/mcp/trust", &json!({"api_mode": "open"})).ok();
    bridge.get("/mcp/tools").ok();
    let home = bridge.terminate();

    let strict = Daemon::start_in(home, Setup::default().argument("--require-token"));
    refuses(&strict);
    strict.terminate();
}

#[test]
fn many_wrong_tokens_are_put_off_and_a_right_one_passes_meanwhile() {
    let bridge = with_fake();
    let (id, token) = pair(&bridge, &json!({"scopes": ["read"]}));
    let wrong = format!("ncb_{id}_{}", "x".repeat(43));
    let codes: Vec<_> = (0..30)
        .map(|_| with_token(&bridge, &wrong, "GET", "/mcp/tools", &Value::Null).status)
        .collect();
    assert_eq!(codes[..20], [401; 20]);
    assert_eq!(codes[20..], [429; 10]);
    with_token(&bridge, &token, "GET", "/mcp/tools", &Value::Null).ok();
    bridge.get("/mcp/tools").ok();
    bridge.terminate();
}

/// Makes every connector say something to whoever may listen.
fn stir(bridge: &Daemon) {
    for id in ["mine", "theirs"] {
        for enabled in [false, true] {
            bridge
                .owner_post("/mcp/servers/toggle", &json!({"id": id, "enabled": enabled}))
                .ok();
        }
    }
}

fn with_two() -> Daemon {
    let two = ["mine", "theirs"].map(|id| (id, Fake::new("ok").entry()));
    let bridge = Daemon::serving(Home::new(), two);
    bridge.wait_for_tool("mcp__mine__echo");
    bridge.wait_for_tool("mcp__theirs__echo");
    bridge
}

#[test]
fn an_open_stream_tells_no_more_than_its_token_is_good_for_now() {
    let bridge = with_two();
    let (id, token) = pair(&bridge, &json!({"scopes": ["read"]}));
    let header = format!("Bearer {token}");
    let listen = || Connection::open(&bridge.tcp()).events("/mcp/events", &[("authorization", &header)]);
    let (mut narrowed, ended) = (listen(), listen());
    let names = bridge.tool_names();
    let mine = names.iter().filter(|name| name.starts_with("mcp__mine__")).count();
    stir(&bridge);
    narrowed.next("of another connector", |event| event.data["server"] == "theirs");
    let path = format!("/mcp/clients/{id}");
    bridge.owner_post(&path, &json!({"servers": ["mine"]})).ok();
    // What was told before may still be on its way.
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "mine", "enabled": false}))
        .ok();
    narrowed.next("of its own", |event| {
        event.data["server"] == "mine" && event.data["status"] == "disabled"
    });
    stir(&bridge);
    narrowed.next("a count of its own tools alone", |event| {
        assert_ne!(event.data["server"], "theirs", "{event:?}");
        event.name == "tools_changed" && event.data["tools"] == mine
    });
    bridge.owner_post(&path, &json!({"scopes": ["call"]})).ok();
    stir(&bridge);
    for stream in [narrowed, ended] {
        let last = stream.rest();
        assert!(last.iter().all(|event| event.data["status"] != "paused"), "{last:?}");
    }
    bridge.terminate();
}

#[test]
fn a_stream_of_a_program_without_a_token_ends_once_every_program_needs_one() {
    let bridge = with_two();
    let stream = Connection::open(&bridge.tcp()).events("/mcp/events", &[]);
    bridge.owner_post("/mcp/trust", &json!({"api_mode": "token"})).ok();
    stir(&bridge);
    assert_eq!(stream.rest(), []);
    // The local socket keeps a walk-in's reading.
    Connection::open(&bridge.local())
        .send("GET", "/mcp/tools", &[], b"")
        .ok();
    bridge.terminate();
}

#[test]
fn a_token_for_some_connectors_does_not_tell_which_others_there_are() {
    let bridge = with_two();
    let (_, token) = pair(&bridge, &json!({"scopes": ["manage"], "servers": ["mine"]}));
    let add = |id: &str| {
        let body = json!({"id": id, "command": "true"});
        with_token(&bridge, &token, "POST", "/mcp/servers/add", &body)
    };
    add("mine").refused(409, "already_exists");
    let hidden = waits(&add("theirs"));
    waits(&add("free"));
    answer(&bridge, &hidden, "approve").refused(409, "already_exists");
    assert_eq!(bridge.server("theirs").unwrap()["transport"], "stdio");
    bridge.terminate();
}

#[test]
fn what_a_token_lost_while_its_connector_started_is_not_called() {
    let bridge_home = Home::new();
    let gate = bridge_home.record("gate");
    let fake = Fake::new("ok").record(&bridge_home.record("fake"));
    // Nothing is answered before somebody opens.
    let mut entry = fake.entry();
    let program = entry["command"].as_str().unwrap().to_owned();
    let script = format!(
        "while [ ! -e '{}' ]; do sleep 0.05; done; exec '{program}' \"$@\"",
        gate.display()
    );
    let mut arguments = vec![json!("-c"), json!(script), json!("sh")];
    arguments.extend(entry["args"].as_array().unwrap().clone());
    (entry["command"], entry["args"]) = (json!("/bin/sh"), json!(arguments));
    std::fs::write(&gate, "").unwrap();
    let bridge = Daemon::serving(bridge_home, [("fake", entry)]);
    bridge.wait_for_tool("mcp__fake__echo");
    for (number, lost) in [
        json!({"scopes": ["read"]}),
        json!({"servers": ["other"]}),
        json!({"api_mode": "token"}),
    ]
    .into_iter()
    .enumerate()
    {
        let (id, token) = pair(&bridge, &json!({"scopes": ["read", "call"], "asks_itself": true}));
        std::fs::remove_file(&gate).unwrap();
        for enabled in [false, true] {
            bridge
                .owner_post("/mcp/servers/toggle", &json!({"id": "fake", "enabled": enabled}))
                .ok();
        }
        let is_walk_in = lost.get("api_mode").is_some();
        let refusal = std::thread::scope(|scope| {
            let call = scope.spawn(|| {
                let body = json!({"name": "mcp__fake__echo"});
                match is_walk_in {
                    true => bridge.post("/mcp/call", &body),
                    false => with_token(&bridge, &token, "POST", "/mcp/call", &body),
                }
            });
            // It slept: nobody but the call has woken it.
            bridge.wait_for_status("fake", "connecting");
            match is_walk_in {
                true => bridge.owner_post("/mcp/trust", &lost).ok(),
                false => bridge.owner_post(&format!("/mcp/clients/{id}"), &lost).ok(),
            };
            std::fs::write(&gate, "").unwrap();
            call.join().unwrap()
        });
        assert!(matches!(refusal.status, 401 | 403), "{number}: {}", refusal.text());
    }
    assert_eq!(fake.seen().messages("tools/call"), [""; 0]);
    bridge.terminate();
}
