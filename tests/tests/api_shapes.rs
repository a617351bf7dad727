//! What each route answers, as assistants rely on it.

use std::process::Command;

use neuron_tests::{
    daemon::Daemon,
    fake::Fake,
    home::Home,
    http::Connection,
    program,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

fn with_fake() -> Daemon {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap_or_else(|| panic!("no object: {value}"))
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn health_is_one_word() {
    assert_eq!(Daemon::start(None).get("/healthz").ok(), json!({"ok": true}));
}

#[test]
fn a_listed_tool_has_a_name_a_description_and_a_schema_that_providers_take() {
    let bridge = with_fake();
    let answer = bridge.get("/mcp/tools");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let list = answer.ok();
    assert_eq!(keys(&list), ["tools"]);
    for tool in list["tools"].as_array().unwrap() {
        assert_eq!(keys(tool), ["name", "description", "input_schema"], "{tool}");
        let name = tool["name"].as_str().unwrap();
        assert!(name.starts_with("mcp__fake__") && name.len() <= 64, "{name}");
        assert_eq!(tool["input_schema"]["type"], "object", "{tool}");
        assert!(tool["input_schema"]["properties"].is_object(), "{tool}");
    }
    let mcp = bridge.get("/mcp/tools?format=mcp").ok();
    assert_eq!(
        mcp["tools"].as_array().unwrap().len(),
        list["tools"].as_array().unwrap().len()
    );
    assert!(mcp["tools"][0]["inputSchema"].is_object(), "{mcp}");
    assert_eq!(bridge.get("/mcp/tools?server=fake").ok()["tools"], list["tools"]);
    assert_eq!(
        bridge.get("/mcp/tools?limit=2").ok()["tools"].as_array().unwrap().len(),
        2
    );
    bridge.get("/mcp/tools?server=nobody").refused(404, "unknown_server");
}

#[test]
fn an_unchanged_list_costs_no_body_and_a_changed_one_has_another_tag() {
    let bridge = with_fake();
    let mut connection = Connection::open(&bridge.tcp());
    let first = connection.send("GET", "/mcp/tools", &[], b"");
    let tag = first.header("etag").expect("an entity tag").to_owned();
    for known in [
        tag.clone(),
        format!("\"other\", {tag}"),
        format!("W/{tag}"),
        "*".to_owned(),
    ] {
        let again = connection.send("GET", "/mcp/tools", &[("if-none-match", &known)], b"");
        assert_eq!((again.status, again.body.len()), (304, 0), "{known}");
        assert_eq!(again.header("etag"), Some(tag.as_str()));
    }
    bridge.call_text("mcp__fake__grow", &json!({}));
    bridge.wait_for_tool("mcp__fake__grown");
    let changed = connection.send("GET", "/mcp/tools", &[("if-none-match", &tag)], b"");
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
}

#[test]
fn a_filtered_list_has_its_own_tag_which_changes_with_what_it_shows() {
    let entries = [("fake", Fake::new("ok").entry()), ("other", Fake::new("ok").entry())];
    let bridge = Daemon::serving(Home::new(), entries);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.wait_for_tool("mcp__other__echo");
    let mut connection = Connection::open(&bridge.tcp());
    let mut ask = |query: &str, known: &str| {
        let path = format!("/mcp/tools{query}");
        let headers = [("if-none-match", known)];
        connection.send("GET", &path, if known.is_empty() { &[] } else { &headers }, b"")
    };
    let tag = |answer: &neuron_tests::http::Answer| answer.header("etag").expect("an entity tag").to_owned();
    let queries = ["", "?server=fake", "?server=other", "?limit=3", "?format=mcp"];
    let tags = queries.map(|query| tag(&ask(query, "")));
    for (query, known) in queries.iter().zip(&tags) {
        let again = ask(query, known);
        assert_eq!((again.status, again.body.len()), (304, 0), "{query}");
        for (other, another) in queries.iter().zip(&tags).filter(|(other, _)| *other != query) {
            assert_ne!(known, another, "{query} and {other} are different lists");
            assert_eq!(ask(query, another).status, 200, "{query} is not {other}");
        }
    }
    bridge.call_text("mcp__fake__grow", &json!({}));
    bridge.wait_for_tool("mcp__fake__grown");
    for (query, known, status) in [
        ("?server=fake", &tags[1], 200),
        ("?server=other", &tags[2], 304),
        ("?format=mcp", &tags[4], 200),
    ] {
        assert_eq!(ask(query, known).status, status, "{query} after one connector's change");
    }
}

#[test]
fn a_call_answers_blocks_text_and_where_it_went() {
    let bridge = with_fake();
    let answer = bridge.call("mcp__fake__echo", &json!({"a": 1})).ok();
    assert_eq!(answer["ok"], true);
    assert_eq!(answer["content"], json!([{"type": "text", "text": "{\"a\":1}"}]));
    assert_eq!(answer["text"], "{\"a\":1}");
    assert_eq!((&answer["server"], &answer["tool"]), (&json!("fake"), &json!("echo")));
    assert!(answer["duration_ms"].is_u64(), "{answer}");
    for absent in ["error", "code", "truncated", "result_id"] {
        assert!(answer.get(absent).is_none(), "{absent}: {answer}");
    }
    for (body, arrived) in [
        (r#"{"name":"mcp__fake__echo"}"#, "{}"),
        (r#"{"name":"mcp__fake__echo","input":null}"#, "{}"),
        (r#"{"name":"mcp__fake__echo","input":{}}"#, "{}"),
    ] {
        assert_eq!(bridge.post_text("/mcp/call", body).ok()["text"], arrived, "{body}");
    }
}

#[test]
fn every_kind_of_block_arrives_and_an_unknown_one_is_named() {
    let bridge = with_fake();
    let answer = bridge.call("mcp__fake__blocks", &json!({}));
    assert!(
        answer.text().contains("1.10"),
        "structured numbers stay as written: {}",
        answer.text()
    );
    let answer = answer.ok();
    let kinds: Vec<_> = answer["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["text", "image", "audio", "resource_link", "resource", "unknown"]
    );
    assert!(answer["structured"].is_object(), "{answer}");
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains("ein Wort") && text.contains("inhalt"), "{text}");
    assert!(!text.contains("aGk="), "a picture's bytes are nothing to read: {text}");
}

#[test]
fn a_tool_that_fails_answers_200_with_its_own_words() {
    let answer = with_fake().call("mcp__fake__fail", &json!({})).ok();
    assert_eq!(answer["ok"], false);
    assert_eq!(answer["code"], "tool_error");
    assert_eq!(answer["error"], "it did not work");
    assert_eq!(answer["content"][0]["text"], "it did not work");
}

#[test]
fn a_connector_row_tells_a_walk_in_enough_and_no_command_line() {
    let home = Home::new();
    let secret = "--secret-looking-argument";
    let entry = json!({
        "command": program::fake_upstream(), "args": ["ok", "--say", secret],
        "env": {"TOKEN": "literal-token"}, "name": "Shown", "description": "What it is for"
    });
    let bridge = Daemon::serving(home, [("fake", entry)]);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.call_text("mcp__fake__echo", &json!({}));
    for path in ["/mcp/servers", "/mcp/servers/fake"] {
        let text = bridge.get(path).text();
        assert!(!text.contains(secret) && !text.contains("literal-token"), "{text}");
    }
    let list = bridge.get("/mcp/servers").ok();
    assert_eq!(list["servers"].as_array().map(Vec::len), Some(1));
    let row = &list["servers"][0];
    for (key, value) in [
        ("id", json!("fake")),
        ("status", json!("connected")),
        ("tools", json!(13)),
        ("name", json!("Shown")),
        ("description", json!("What it is for")),
        ("transport", json!("stdio")),
        ("auth", json!({"state": "none"})),
    ] {
        assert_eq!(row[key], value, "{key}: {row}");
    }
    let connection = &row["connection"];
    for key in ["generation", "sequence", "since", "observed_at"] {
        assert!(connection[key].as_u64().is_some_and(|n| n > 0), "{key}: {connection}");
    }
    assert_eq!(connection["era"], "legacy");
    assert_eq!(connection["protocol"], "2025-11-25");
    assert_eq!(connection["readiness"], "ready");
    assert_eq!(connection["retry"], Value::Null);
    assert_eq!(
        bridge.get("/mcp/servers").ok()["servers"][0]["connection"],
        *connection,
        "reading changes nothing"
    );
    assert!(
        bridge.owner_get("/mcp/servers").text().contains(secret),
        "the owner sees the command line"
    );
}

#[test]
fn one_connector_shows_its_tools_and_why_a_hidden_one_is_hidden() {
    let entry = Fake::new("ok").member("disabledTools", json!(["die"])).entry();
    let bridge = Daemon::serving(Home::new(), [("fake", entry)]);
    bridge.wait_for_tool("mcp__fake__echo");
    assert!(!bridge.tool_names().contains(&"mcp__fake__die".to_owned()));
    let one = bridge.get("/mcp/servers/fake").ok();
    let tools = one["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 13);
    for tool in tools {
        let is_hidden = tool["name"] == "die";
        assert_eq!(
            tool["hidden"].as_str().is_some_and(|why| why.len() > 10),
            is_hidden,
            "{tool}"
        );
    }
    bridge.call("mcp__fake__die", &json!({})).refused(409, "disabled");
    bridge.get("/mcp/servers/nobody").refused(404, "unknown_server");
}

#[test]
fn names_in_paths_are_decoded_exactly_once() {
    let bridge = Daemon::serving(
        Home::new(),
        [("a.b", Fake::new("ok").member("enabled", json!(false)).entry())],
    );
    assert_eq!(bridge.get("/mcp/servers/a.b").status, 200);
    assert_eq!(bridge.get("/mcp/servers/a%2Eb").status, 200);
    for path in [
        "/mcp/servers/a%252Eb",
        "/mcp/servers/a%2Fb",
        "/mcp/servers/a.b/",
        "/mcp/servers/a.b/more",
        "/mcp/servers/a.b/log/more",
    ] {
        assert_eq!(bridge.get(path).status, 404, "{path}");
    }
    for path in [
        "/mcp/servers/",
        "/mcp",
        "/mcp/",
        "/MCP/tools",
        "/mcp//tools",
        "/mcp/tools/",
    ] {
        bridge.get(path).refused(404, "not_found");
    }
}

#[test]
fn a_wrong_method_names_the_right_one() {
    let bridge = Daemon::start(None);
    for (method, path, right) in [
        ("DELETE", "/mcp/tools", "GET"),
        ("PUT", "/mcp/servers", "GET"),
        ("GET", "/mcp/call", "POST"),
    ] {
        let answer = Connection::open(&bridge.tcp()).send(method, path, &[], b"");
        answer.refused(405, "method_not_allowed");
        assert!(
            answer.header("allow").is_some_and(|allow| allow.contains(right)),
            "{method} {path}"
        );
    }
}

#[test]
fn auto_approved_lists_what_the_file_allows_and_nothing_else() {
    let entry = Fake::new("ok").member("autoApprove", json!(["echo", "s*"])).entry();
    let bridge = Daemon::serving(Home::new(), [("fake", entry), ("other", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.wait_for_tool("mcp__other__echo");
    let approved = || {
        let answer = bridge.get("/mcp/auto-approved").ok();
        assert!(answer["rules"].is_array(), "{answer}");
        let mut tools: Vec<_> = answer["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap().to_owned())
            .collect();
        tools.sort();
        tools
    };
    assert_eq!(approved(), ["mcp__fake__echo", "mcp__fake__slow"]);
    bridge
        .owner_post(
            "/mcp/servers/auto-approve",
            &json!({"id": "fake", "auto_approve": false}),
        )
        .ok();
    assert_eq!(approved(), [""; 0]);
    bridge
        .owner_post(
            "/mcp/servers/auto-approve",
            &json!({"id": "other", "auto_approve": true}),
        )
        .ok();
    assert_eq!(approved().len(), 13);
    assert_eq!(bridge.children().len(), 2, "nothing was started again for it");
}

#[test]
fn a_change_is_seen_by_whoever_was_told_that_it_is_made() {
    let bridge = with_fake();
    let listed = || bridge.get("/mcp/tools").ok().to_string().contains("mcp__fake__echo");
    let approved = || {
        bridge.get("/mcp/auto-approved").ok()["tools"]
            .to_string()
            .contains("mcp__fake__echo")
    };
    for round in 0..40 {
        let on = round % 2 == 0;
        bridge
            .owner_post("/mcp/servers/auto-approve", &json!({"id": "fake", "auto_approve": on}))
            .ok();
        assert_eq!(approved(), on, "approved, round {round}");
        if round % 8 == 7 {
            bridge
                .owner_post("/mcp/servers/toggle", &json!({"id": "fake", "enabled": false}))
                .ok();
            assert!(!listed(), "listed though turned off, round {round}");
            bridge
                .owner_post("/mcp/servers/toggle", &json!({"id": "fake", "enabled": true}))
                .ok();
            assert!(listed(), "not listed though turned on, round {round}");
        }
    }
}

#[test]
fn what_a_walk_in_wants_changed_changes_nothing() {
    let bridge = with_fake();
    let before = bridge.home.config();
    for (path, body) in [
        (
            "/mcp/servers/add",
            json!({"id": "evil", "command": "sh", "args": ["-c", "id"]}),
        ),
        ("/mcp/servers/toggle", json!({"id": "fake", "enabled": true})),
        ("/mcp/servers/auto-approve", json!({"id": "fake", "auto_approve": true})),
        ("/mcp/servers/remove", json!({"id": "fake"})),
    ] {
        let answer = bridge.post(path, &body);
        assert_eq!(answer.status, 202, "{path}: {}", answer.text());
    }
    for path in ["/mcp/servers/reconnect", "/mcp/servers/stop-trying"] {
        bridge.post(path, &json!({"id": "fake"})).refused(403, "scope_missing");
    }
    bridge.get("/mcp/servers/fake/log").refused(403, "scope_missing");
    assert_eq!(bridge.home.config(), before);
    assert!(bridge.tool_names().contains(&"mcp__fake__echo".to_owned()));
    assert!(bridge.server("evil").is_none());
}

#[test]
fn the_owner_adds_turns_reconnects_and_removes() {
    let bridge = Daemon::serving(Home::new(), []);
    let mut entry = Fake::new("ok").entry();
    entry["id"] = json!("new");
    let added = bridge.owner_post("/mcp/servers/add", &entry).ok();
    assert_eq!(
        (&added["ok"], &added["verified"]),
        (&json!(true), &json!(false)),
        "{added}"
    );
    assert_eq!(added["server"]["id"], "new");
    bridge.wait_for_tool("mcp__new__echo");
    bridge
        .owner_post("/mcp/servers/add", &entry)
        .refused(409, "already_exists");

    assert_eq!(
        bridge
            .owner_post("/mcp/servers/toggle", &json!({"id": "new", "enabled": false}))
            .ok(),
        json!({"ok": true})
    );
    assert_eq!(bridge.tool_names(), [""; 0]);
    assert_eq!(bridge.status("new"), "disabled");
    bridge.call("mcp__new__echo", &json!({})).refused(409, "disabled");
    eventually("its process is gone", SOON, || {
        bridge.children().is_empty().then_some(())
    });
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "new", "enabled": true}))
        .ok();
    assert_eq!(bridge.call_text("mcp__new__echo", &json!({"n": 1})), "{\"n\":1}");

    let before = bridge.server("new").unwrap()["connection"]["generation"]
        .as_u64()
        .unwrap();
    let pid = bridge.children();
    let again = bridge.owner_post("/mcp/servers/reconnect", &json!({"id": "new"})).ok();
    assert_eq!(
        (&again["ok"], &again["verified"]),
        (&json!(true), &json!(true)),
        "{again}"
    );
    assert_eq!(again["server"]["connection"]["generation"], before + 1);
    assert_ne!(bridge.children(), pid, "another process");
    assert_eq!(bridge.children().len(), 1, "and only one");

    assert_eq!(
        bridge.owner_post("/mcp/servers/remove", &json!({"id": "new"})).ok(),
        json!({"ok": true})
    );
    assert!(bridge.server("new").is_none());
    eventually("its process is gone", SOON, || {
        bridge.children().is_empty().then_some(())
    });
    for path in ["toggle", "remove", "reconnect", "auto-approve"] {
        let mut body = json!({"id": "new"});
        match path {
            "toggle" => body["enabled"] = json!(true),
            "auto-approve" => body["auto_approve"] = json!(true),
            _ => {}
        }
        bridge
            .owner_post(&format!("/mcp/servers/{path}"), &body)
            .refused(404, "unknown_server");
    }
}

#[test]
fn a_bad_entry_is_refused_with_what_is_wrong_and_never_written() {
    let bridge = Daemon::serving(Home::new(), []);
    let before = bridge.home.config();
    for (body, named) in [
        (json!({"id": "../x", "command": "true"}), "x"),
        (json!({"id": "a b", "command": "true"}), "a-b"),
        (json!({"command": "true"}), "id"),
        (json!({"id": "a"}), "command"),
        (json!({"id": "a", "command": "true", "url": "http://127.0.0.1/"}), "url"),
        (json!({"id": "a", "command": "true", "colour": "red"}), "colour"),
        (json!({"id": "a", "command": ["true"]}), "command"),
        (json!({"id": "a", "url": "ftp://x/"}), "url"),
        (
            json!({"id": "a", "transport": "carrier-pigeon", "command": "true"}),
            "transport",
        ),
    ] {
        let message = bridge.owner_post("/mcp/servers/add", &body).refused(400, "bad_request");
        assert!(message.contains(named), "{body}: {message}");
    }
    assert_eq!(bridge.home.config(), before);
    assert_eq!(bridge.owner_get("/mcp/servers").ok()["servers"], json!([]));
}

#[test]
fn events_tell_what_happened_once_and_resume_where_they_stopped() {
    let bridge = with_fake();
    let mut events = Connection::open(&bridge.tcp()).events("/mcp/events", &[]);
    bridge.call_text("mcp__fake__echo", &json!({}));
    let started = events.next("call_started", |event| event.name == "call_started");
    assert_eq!(started.data["tool"], "mcp__fake__echo", "{started:?}");
    let finished = events.next("call_finished", |event| event.name == "call_finished");
    assert_eq!(
        (&finished.data["ok"], &finished.data["call"]),
        (&json!(true), &started.data["call"]),
        "{finished:?}"
    );
    let last = started.id.expect("events are numbered");
    let mut resumed = Connection::open(&bridge.tcp()).events("/mcp/events", &[("last-event-id", &last.to_string())]);
    let end = resumed.next("the end of the call", |event| {
        assert!(event.id.is_some_and(|id| id > last), "seen before: {event:?}");
        event.name == "call_finished"
    });
    assert_eq!(end.id, finished.id);

    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "fake", "enabled": false}))
        .ok();
    events.next("server_status", |event| {
        event.name == "server_status" && event.data["status"] == "disabled"
    });
    bridge.home.write_config("{ torn");
    events.next("config_error", |event| {
        event.name == "config_error" && !event.data["notices"].as_array().unwrap().is_empty()
    });
}

#[test]
fn a_callers_calls_are_its_own_business() {
    let bridge = with_fake();
    let mut walk_in = Connection::open(&bridge.tcp()).events("/mcp/events", &[]);
    let call = json!({"name": "mcp__fake__echo", "input": {}});
    bridge.owner_post("/mcp/call", &call).ok();
    bridge.call_text("mcp__fake__echo", &json!({}));
    let first = walk_in.next("a call", |event| event.name == "call_started");
    assert_eq!(
        first.data["caller"], "walk-in",
        "the owner's call is not shown: {first:?}"
    );
}

#[test]
fn a_long_result_is_shortened_and_can_be_read_whole_by_who_asked_for_it() {
    let bridge = with_fake();
    let answer = bridge.call("mcp__fake__big", &json!({"bytes": 500_000})).ok();
    assert_eq!(answer["truncated"], true);
    let text = answer["text"].as_str().unwrap();
    assert!(text.chars().count() <= 200_000, "{}", text.chars().count());
    let id = answer["result_id"].as_str().expect("where the rest is");
    let piece = bridge.get(&format!("/mcp/results/{id}?offset=499990&limit=100")).ok();
    assert_eq!(piece["text"], "x".repeat(10), "{piece}");
    assert_eq!(piece["total"], 500_000, "{piece}");
    bridge
        .owner_get(&format!("/mcp/results/{id}"))
        .refused(404, "not_found");
    for stranger in ["nothing", "..%2F..%2Fconnectors.json", "%2e%2e"] {
        bridge
            .get(&format!("/mcp/results/{stranger}"))
            .refused(404, "not_found");
    }
}

#[test]
fn plain_clients_need_no_extra_headers() {
    let bridge = with_fake();
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program::system(program)).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{program}: {text} {}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    };
    let list = format!("http://127.0.0.1:{}/mcp/tools", bridge.port);
    let call = format!("http://localhost:{}/mcp/call", bridge.port);
    let socket = bridge.socket.display().to_string();
    let body = r#"{"name":"mcp__fake__echo","input":{"n":1.10}}"#;
    let json = "content-type: application/json";

    assert!(run("curl", &["-sf", &list]).contains("mcp__fake__echo"));
    assert!(run("curl", &["-sf", &call, "-H", json, "-d", body]).contains("1.10"));
    let local = [
        "-sf",
        "--unix-socket",
        &socket,
        "http://localhost/mcp/call",
        "-H",
        json,
        "-d",
        body,
    ];
    assert!(run("curl", &local).contains("1.10"));

    let python = "import sys, urllib.request as u\n\
        print(u.urlopen(sys.argv[1]).read().decode())\n\
        r = u.Request(sys.argv[2], sys.argv[3].encode(), {'Content-Type': 'application/json'})\n\
        print(u.urlopen(r).read().decode())";
    let text = run("python3", &["-c", python, &list, &call, body]);
    assert!(text.contains("mcp__fake__grow") && text.contains("1.10"), "{text}");

    let node = "const [, list, call, body] = process.argv;\
        (async () => {\
          const a = await fetch(list); console.log(a.status, await a.text());\
          const b = await fetch(call, {method: 'POST', headers: {'content-type': 'application/json'}, body});\
          console.log(b.status, await b.text());\
          process.exitCode = a.status === 200 && b.status === 200 ? 0 : 1;\
        })();";
    let text = run("node", &["-e", node, &list, &call, body]);
    assert!(text.contains("mcp__fake__grow") && text.contains("1.10"), "{text}");
}
