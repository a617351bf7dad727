//! Ways through both doors, and with what lies in the home.

use std::{collections::BTreeSet, fs, path::Path};

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::Fake,
    home::{Home, config_text},
    http::{Connection, raw},
    tray::routes,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

use crate::world::{KEY, READ, TOKEN, World, rule};

/// What a walk-in would send to each route to get something out of it.
fn body_for(path: &str, world: &World) -> Value {
    let mut added = world.marker.entry();
    added["id"] = json!("added");
    match path {
        "/mcp/call" => json!({"name": READ, "input": {"path": "b.txt"}}),
        "/mcp/resources/read" => json!({"server": "x", "uri": "fake://text"}),
        "/mcp/prompts/get" => json!({"server": "x", "name": "greet", "arguments": {"name": "you"}}),
        "/mcp/servers/add" => added,
        "/mcp/servers/toggle" => json!({"id": "off", "enabled": true}),
        "/mcp/servers/auto-approve" => json!({"id": "x", "auto_approve": true}),
        "/mcp/servers/remove" => json!({"id": "x"}),
        "/mcp/servers/secret" => json!({"id": "remote", "secret": "theirs-and-not-the-persons"}),
        "/mcp/servers/forget-secret" => json!({"id": "remote"}),
        "/mcp/keychain" => json!({"action": "keep_until_quit"}),
        "/mcp/rules" => rule("allow", "*", Value::Null),
        "/mcp/approvals/{id}" => json!({"answer": "approve"}),
        "/mcp/oauth/start" | "/mcp/oauth/sign-out" | "/mcp/oauth/cancel" => json!({"id": "remote"}),
        "/mcp/trust" => json!({"walk_in": "allow"}),
        "/mcp/pairing" => json!({"open": true}),
        "/mcp/clients/pair" => json!({"name": "theirs"}),
        _ => json!({"id": "new"}),
    }
}

#[test]
fn no_route_gives_a_walk_in_more_than_reading_over_either_door_with_or_without_a_token() {
    let world = World::start();
    let mut servers = world.servers.clone();
    servers.insert("new".to_owned(), world.marker.entry());
    world.write(&servers);
    let launch = world.bridge.wait_for("launch", "new");
    let before = world.effects();
    let file = world.bridge.home.config();
    let allow = before.rules[0][0].as_str().expect("an id").to_owned();
    let token = [("authorization", "Bearer neuron-0123456789abcdef0123456789abcdef")];
    let all = routes();
    assert!(all.len() > 30, "{all:?}");
    for (method, path) in all.iter().filter(|(_, path)| path != "/mcp/events") {
        let id = match path.as_str() {
            "/mcp/approvals/{id}" => &launch,
            "/mcp/rules/{id}" => &allow,
            _ => "new",
        };
        let target = path.replace("{id}", id);
        let body = match method.as_str() {
            "GET" => String::new(),
            _ => body_for(path, &world).to_string(),
        };
        let what = format!("{method} {path}");
        if ["/mcp/call", "/mcp/resources/read", "/mcp/prompts/get"].contains(&path.as_str()) {
            for answer in world.is_not_let(&target, &body) {
                answer.refused(403, "denied");
            }
        } else {
            for door in world.bridge.doors() {
                let answer = Connection::open(&door).send(method, &target, &[], body.as_bytes());
                let reads = method == "GET" || path == "/mcp/servers/stop-trying" || path == "/mcp/servers/reconnect";
                assert!(
                    reads || answer.status >= 400 || answer.status == 202,
                    "{what}: {}",
                    answer.text()
                );
            }
        }
        for door in world.bridge.doors() {
            let answer = Connection::open(&door).send(method, &target, &token, body.as_bytes());
            assert!(
                [401, 429].contains(&answer.status) || path.ends_with("/callback"),
                "{what}: {}",
                answer.text()
            );
            if method == "POST" && !path.contains("resources") && !path.contains("prompts") && path != "/mcp/call" {
                let target = format!("{target}?token=owner&access_token=owner");
                let answer = Connection::open(&door).send(method, &target, &[], body.as_bytes());
                let harmless = path == "/mcp/servers/stop-trying" || path == "/mcp/servers/reconnect";
                assert!(
                    harmless || answer.status >= 400 || answer.status == 202,
                    "{what}: {}",
                    answer.text()
                );
            }
        }
        world.assert_no_effect(&before, &what);
        assert_eq!(world.bridge.home.config(), file, "{what}");
    }
    assert_eq!(world.bridge.wait_for("launch", "new"), launch);
    // Of what a walk-in asks to have changed, nothing outlives the app, nor counts before the person's yes.
    let world = world.while_closed(|_| ());
    world.bridge.wait_for_status("remote", "sleeping");
    world.assert_no_effect(&before, "after a restart");
    world.bridge.approve("new");
    world.bridge.wait_for_status("new", "connected");
    world.bridge.close();
}

#[test]
fn no_form_of_a_request_and_nothing_read_in_the_home_answers_a_question() {
    let world = World::start();
    let before = world.effects();
    let mut servers = world.servers.clone();
    servers.insert("new".to_owned(), world.thief.entry());
    world.write(&servers);
    let older = world.bridge.wait_for("launch", "new");
    servers.insert("new".to_owned(), world.marker.entry());
    world.write(&servers);
    let id = eventually("the newer one waits", SOON, || {
        let id = world.bridge.wait_for("launch", "new");
        (id != older).then_some(id)
    });
    let yes = r#"{"answer":"approve"}"#;
    let there = format!("/mcp/approvals/{id}");
    let heads: [&[(&str, &str)]; 12] = [
        &[("authorization", "Basic b3duZXI6b3duZXI=")],
        &[("authorization", "Bearer owner"), ("cookie", "token=owner")],
        &[("cookie", "token=owner; owner=1")],
        &[
            ("x-forwarded-for", "127.0.0.1"),
            ("forwarded", "for=127.0.0.1;proto=unix"),
        ],
        &[
            ("x-neuron-caller", "owner"),
            ("x-owner", "1"),
            ("x-remote-user", "root"),
        ],
        &[
            ("x-http-method-override", "POST"),
            ("x-method-override", "POST"),
            ("x-http-method", "POST"),
        ],
        &[("origin", "http://localhost")],
        &[("origin", "tauri://localhost")],
        &[("origin", "null"), ("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "cross-site")],
        &[("host", "evil.example")],
        &[("content-type", "text/plain")],
    ];
    let paths = [
        there.clone(),
        there.replace("/mcp", "/MCP"),
        format!("/{there}"),
        format!("{there}/"),
        format!("{there}/approve"),
        format!("/mcp/servers/../approvals/{id}"),
        format!("/mcp/%61pprovals/{id}"),
        format!("{there}?answer=approve"),
        format!("/mcp/approvals/{older}"),
        "/mcp/approvals/*".to_owned(),
        "/mcp/approvals/1".to_owned(),
        format!("/mcp/approvals/{}", &id[..id.len() - 1]),
    ];
    for door in world.bridge.doors() {
        for head in heads {
            for method in ["POST", "GET", "PUT", "PATCH", "DELETE", "OPTIONS"] {
                let answer = Connection::open(&door).send(method, &there, head, yes.as_bytes());
                assert!(answer.status >= 400, "{method} {head:?}: {}", answer.text());
            }
        }
        for path in &paths {
            for body in [
                yes,
                r#"{"answer":"deny","answer":"approve"}"#,
                r#"{"Answer":"approve"}"#,
                r#"["approve"]"#,
            ] {
                let answer = Connection::open(&door).send("POST", path, &[], body.as_bytes());
                assert!(answer.status >= 400, "{path} {body}: {}", answer.text());
            }
        }
        let one_after_another = format!(
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{{}}POST {there} HTTP/1.1\r\nHost: localhost\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{yes}",
            yes.len()
        );
        raw(&door, one_after_another.as_bytes());
        // Every word that lies in the person's home, as a token.
        for word in words_in(world.bridge.home.path()) {
            let bearer = format!("Bearer {word}");
            let answer = Connection::open(&door).send("POST", &there, &[("authorization", &bearer)], yes.as_bytes());
            assert!([400, 401, 429].contains(&answer.status), "{word}: {}", answer.text());
        }
    }
    for word in [KEY, TOKEN] {
        assert!(
            !words_in(world.bridge.home.path())
                .iter()
                .any(|found| found.contains(word)),
            "{word} lies in the home"
        );
    }
    assert_eq!(world.bridge.wait_for("launch", "new"), id);
    world.assert_no_effect(&before, "requests");
    world.bridge.answer(&older, "approve").refused(404, "not_found");
    world.assert_no_effect(&before, "a yes to what is not there any more");
    world.bridge.close();
}

#[test]
fn the_port_of_a_bridge_without_a_window_gives_no_more_whatever_is_read_in_its_home() {
    let home = Home::new();
    let marker = Fake::new("ok").record(&home.record("marker"));
    let first = Fake::new("ok").entry();
    home.write_config(&config_text([("first", first), ("new", marker.entry())]));
    let bridge = Daemon::start_in(home, Setup::default().argument("--review"));
    let waiting = |server: &str| {
        bridge.wait_for_status(server, "needs_review");
        let waiting = bridge.owner_get("/mcp/approvals").ok();
        let mut launches = waiting["approvals"].as_array().expect("a list").iter();
        let found = launches.find(|one| one["server"] == server).expect("it waits");
        format!("/mcp/approvals/{}", found["id"].as_str().expect("an id"))
    };
    let yes = json!({"answer": "approve"});
    // With a decision there is a key.
    bridge.owner_post(&waiting("first"), &yes).ok();
    let there = waiting("new");
    bridge.post(&there, &yes).refused(403, "scope_missing");
    let words = words_in(bridge.home.path());
    let key = fs::read_to_string(bridge.home.neuron().join("connect/trust.key")).unwrap();
    let key: Value = serde_json::from_str(&key).unwrap();
    let key = key["key"].as_str().expect("the key of the decisions").to_owned();
    for word in words.into_iter().chain([key]) {
        let bearer = format!("Bearer {word}");
        let mut port = Connection::open(&bridge.tcp());
        let answer = port.send(
            "POST",
            &there,
            &[("authorization", &bearer)],
            yes.to_string().as_bytes(),
        );
        assert!([401, 429].contains(&answer.status), "{word}: {}", answer.text());
    }
    assert_eq!(marker.seen().starts(), [0_u32; 0]);
    // The local socket is the person there.
    bridge.owner_post(&there, &yes).ok();
    bridge.wait_for_status("new", "connected");
    bridge.terminate();
}

/// Everything in the home that could be a token, up to so many of each file. What tests themselves keep there is no part of it.
fn words_in(home: &Path) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut folders = vec![home.join(".neuron")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
                let all = text.split(|c: char| !c.is_ascii_alphanumeric() && !"+/=_-.".contains(c));
                words.extend(all.filter(|word| word.len() >= 16).take(60).map(ToOwned::to_owned));
            }
        }
    }
    assert!(words.len() > 5, "nothing was read: {words:?}");
    words
}
