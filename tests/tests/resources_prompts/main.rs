//! Resources and prompts of upstreams: listed from what is known, read, got.

mod lists;

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use neuron_tests::{
    asking::{answer, wait_for_question},
    daemon::{Daemon, Setup},
    fake::{Fake, HttpFake},
    home::Home,
    http::{Answer, Connection},
    program,
    upstream::{Everything, EverythingOverHttp, node, python},
    wait::{SOON, eventually, eventually_equals},
};
use serde_json::{Value, json};

/// A bridge with one recorded upstream named `fake`.
fn recorded(fake: Fake) -> (Daemon, Fake) {
    let home = Home::new();
    let fake = fake.record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    (bridge, fake)
}

fn standard() -> (Daemon, Fake) {
    recorded(Fake::new("ok").option("offers", "standard"))
}

fn read(bridge: &Daemon, uri: &str) -> Answer {
    bridge.owner_post("/mcp/resources/read", &json!({"server": "fake", "uri": uri}))
}

fn prompt(bridge: &Daemon, name: &str, arguments: &Value) -> Answer {
    let body = json!({"server": "fake", "name": name, "arguments": arguments});
    bridge.owner_post("/mcp/prompts/get", &body)
}

fn uris(bridge: &Daemon) -> Vec<String> {
    let list = bridge.owner_get("/mcp/resources?server=fake").ok();
    texts(&list["resources"], "uri")
}

fn texts(list: &Value, member: &str) -> Vec<String> {
    let items = list.as_array().expect("a list").iter();
    items
        .map(|item| item[member].as_str().expect("a text").to_owned())
        .collect()
}

#[test]
fn everything_that_is_offered_is_listed_with_what_a_person_needs_to_know() {
    let (bridge, _) = standard();
    let list = bridge.owner_get("/mcp/resources").ok();
    assert_eq!(
        list,
        json!({
            "resources": [
                {
                    "server": "fake", "uri": "fake://text", "name": "text", "title": "A text",
                    "description": "Some words", "mime_type": "text/plain", "size": 9,
                },
                {"server": "fake", "uri": "fake://ünïcode/日本 x", "name": "far"},
                {"server": "fake", "uri": "fake://blob", "name": "blob", "mime_type": "application/octet-stream"},
            ],
            "templates": [{
                "server": "fake", "uri_template": "fake://{thing}", "name": "things", "title": "Any thing",
                "mime_type": "text/plain",
            }],
        })
    );
    let prompts = bridge.owner_get("/mcp/prompts?server=fake").ok();
    assert_eq!(
        prompts,
        json!({"prompts": [
            {
                "server": "fake", "name": "greet", "title": "Greet", "description": "Greets somebody",
                "arguments": [
                    {"name": "name", "description": "Whom", "required": true},
                    {"name": "tone", "required": false},
                ],
            },
            {"server": "fake", "name": "wait", "arguments": []},
        ]})
    );
    for path in ["/mcp/resources?server=nobody", "/mcp/prompts?server=nobody"] {
        bridge.owner_get(path).refused(404, "unknown_server");
    }
    bridge.owner_post("/mcp/servers/toggle", &json!({"id": "fake", "enabled": false}));
    eventually_equals("the list of what is turned off", Vec::<String>::new(), SOON, || {
        uris(&bridge)
    });
    read(&bridge, "fake://text").refused(409, "disabled");
}

#[test]
fn a_walk_ins_read_and_prompt_are_asked_about_like_its_calls() {
    let (bridge, fake) = standard();
    for path in ["/mcp/resources", "/mcp/prompts", "/mcp/resources?server=fake"] {
        bridge.get(path).ok();
    }
    let home = bridge.terminate();
    let bridge = Daemon::start_in(home, Setup::default().argument("--ask"));
    for (path, body, kind) in [
        (
            "/mcp/resources/read",
            json!({"server": "fake", "uri": "fake://text"}),
            "resource",
        ),
        ("/mcp/prompts/get", json!({"server": "fake", "name": "wait"}), "prompt"),
    ] {
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| bridge.post(path, &body));
            let question = wait_for_question(&bridge);
            assert_eq!(question["question"]["call"]["subject"]["subject"], kind, "{question}");
            answer(&bridge, &question, json!({"answer": "deny"})).ok();
            asked.join().unwrap().refused(403, "denied");
        });
    }
    assert_eq!(fake.seen().messages("resources/read"), [""; 0]);
    assert_eq!(fake.seen().messages("prompts/get"), [""; 0]);
    let uri = json!({"server": "fake", "uri": "fake://text"});
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| bridge.post("/mcp/resources/read", &uri));
        let question = wait_for_question(&bridge);
        answer(&bridge, &question, json!({"answer": "approve"})).ok();
        asked.join().unwrap().ok();
    });
    assert_eq!(fake.seen().messages("resources/read").len(), 1);
}

#[test]
fn a_sleeping_connector_shows_what_it_offers_without_being_started() {
    let (bridge, fake) = standard();
    let before = (
        bridge.owner_get("/mcp/resources").ok(),
        bridge.owner_get("/mcp/prompts").ok(),
    );
    let bridge = bridge.restart();
    assert_eq!(bridge.status("fake"), "sleeping");
    let after = (
        bridge.owner_get("/mcp/resources").ok(),
        bridge.owner_get("/mcp/prompts").ok(),
    );
    assert_eq!(before, after);
    assert_eq!(before.0["resources"].as_array().unwrap().len(), 3);
    assert_eq!(bridge.status("fake"), "sleeping");
    assert_eq!(fake.seen().starts().len(), 1, "a list starts nothing");

    let answer = read(&bridge, "fake://text").ok();
    assert_eq!(answer["contents"][0]["resource"]["text"], "Some words");
    assert_eq!(fake.seen().starts().len(), 2, "a read does");
    assert!(bridge.server("fake").unwrap()["used_at"].is_u64(), "and counts as use");
}

#[test]
fn reading_gives_the_blocks_that_tools_embed() {
    let (bridge, _) = recorded(Fake::new("ok").option("offers", "standard").option("bytes", 5));
    assert_eq!(
        read(&bridge, "fake://text").text(),
        r#"{"contents":[{"type":"resource","resource":{"uri":"fake://text","text":"Some words","mimeType":"text/plain","x-invented":1.10}}]}"#,
        "members that nobody knows and every digit included"
    );
    assert_eq!(
        read(&bridge, "fake://blob").ok()["contents"],
        json!([{"type": "resource", "resource": {
            "uri": "fake://blob", "blob": "ABQpPlM=", "mimeType": "application/octet-stream",
        }}])
    );
    let far = read(&bridge, "fake://ünïcode/日本 x").ok();
    assert_eq!(
        far["contents"][0]["resource"]["text"], "weit weg",
        "a URI is sent as it is"
    );
    assert_eq!(
        read(&bridge, "fake://several").ok()["contents"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(read(&bridge, "fake://none").ok(), json!({"contents": []}));
}

#[test]
fn a_long_text_is_cut_in_the_middle_and_kept_whole() {
    let (bridge, _) = standard();
    let answer = read(&bridge, "fake://long").ok();
    let text = answer["contents"][0]["resource"]["text"].as_str().unwrap();
    assert_eq!(text.chars().count(), 200_000);
    assert!(text.starts_with("🦀🦀") && text.ends_with("🦀🦀"));
    assert_eq!(answer["truncated"], true);
    let id = answer["result_id"].as_str().unwrap();
    assert!(text.contains(id));
    let path = format!("/mcp/results/{id}?offset=299990&limit=100");
    let piece = bridge.owner_get(&path).ok();
    assert_eq!(
        piece,
        json!({"text": "🦀".repeat(10), "offset": 299_990, "total": 300_000})
    );
    bridge.get(&path).refused(404, "not_found");
}

#[test]
fn every_fault_of_a_read_has_its_code_and_a_sentence() {
    let (bridge, fake) = standard();
    for uri in ["fake://not-here", "fake://not-here-new"] {
        let message = read(&bridge, uri).refused(404, "not_found");
        assert!(message.contains(uri) && message.contains("fake"), "{message}");
    }
    let message = read(&bridge, "fake://refused").refused(502, "upstream_error");
    assert!(message.contains("the disk is on fire"), "{message}");
    read(&bridge, "fake://no-list").refused(502, "upstream_error");
    let begun = Instant::now();
    let message = read(&bridge, "fake://huge").refused(502, "result_too_large");
    assert!(message.contains("16 MiB"), "{message}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let unknown = json!({"server": "nobody", "uri": "fake://text"});
    bridge
        .owner_post("/mcp/resources/read", &unknown)
        .refused(404, "unknown_server");
    assert_eq!(read(&bridge, "fake://text").status, 200, "none of it ended the session");
    assert_eq!(fake.seen().starts().len(), 1);
    read(&bridge, "fake://die").refused(502, "upstream_error");
    assert_eq!(
        read(&bridge, "fake://text").status,
        200,
        "the next one has a new session"
    );
    assert_eq!(fake.seen().messages("resources/read").len(), 8, "none was sent twice");
}

#[test]
fn a_connector_that_cannot_start_says_when_to_come_again() {
    let entry = json!({"command": "/no/such/program"});
    let bridge = Daemon::serving(Home::new(), [("fake", entry)]);
    bridge.wait_for_status("fake", "error");
    let message = read(&bridge, "fake://text").refused(503, "unavailable");
    assert!(message.contains("/no/such/program"), "{message}");
    let busy = HttpFake::start(
        Path::new(bridge.home.path()),
        "busy",
        &[("refuse", "status=503"), ("retry-after", "7")],
    );
    let added = json!({"id": "busy", "url": busy.url()});
    bridge.owner_post("/mcp/servers/add", &added).ok();
    bridge.wait_for_status("busy", "retrying");
    let answer = bridge.owner_post("/mcp/prompts/get", &json!({"server": "busy", "name": "p"}));
    answer.refused(503, "unavailable");
    let wait: u64 = answer.header("retry-after").expect("a wait").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
}

#[test]
fn a_read_over_its_time_is_told_so_and_cancelled() {
    let fake = Fake::new("ok").option("offers", "standard");
    let (bridge, fake) = recorded(fake.member("timeouts", json!({"callMs": 200})));
    read(&bridge, "fake://wait").refused(504, "upstream_timeout");
    prompt(&bridge, "wait", &json!({})).refused(504, "upstream_timeout");
    fake.seen().wait_for("notifications/cancelled", 2);
    assert_eq!(bridge.status("fake"), "connected");
}

#[test]
fn when_the_caller_goes_away_the_upstream_is_told_by_its_own_id() {
    let (bridge, fake) = standard();
    let seen = fake.seen();
    for (count, path, body, method) in [
        (
            1,
            "/mcp/resources/read",
            r#"{"server":"fake","uri":"fake://wait"}"#,
            "resources/read",
        ),
        (
            2,
            "/mcp/resources/read",
            r#"{"server":"fake","uri":"fake://wait","save":true}"#,
            "resources/read",
        ),
        (
            3,
            "/mcp/prompts/get",
            r#"{"server":"fake","name":"wait","arguments":{}}"#,
            "prompts/get",
        ),
    ] {
        let sent = || seen.messages("resources/read").len() + seen.messages("prompts/get").len() == count;
        Connection::open(&bridge.local()).abandon("POST", path, body.as_bytes(), sent);
        let gone = Instant::now();
        let told = seen.wait_for("notifications/cancelled", count);
        assert!(gone.elapsed().as_secs_f64() < 1.5, "told after {:?}", gone.elapsed());
        let [asked, told] =
            [&seen.messages(method), &told].map(|lines| serde_json::from_str::<Value>(lines.last().unwrap()).unwrap());
        assert_eq!(told["params"]["requestId"], asked["id"], "{body}");
    }
    let results = fs::read_dir(bridge.home.neuron().join("connect/results"));
    assert_eq!(results.unwrap().count(), 0, "nothing was saved for nobody");
    assert_eq!(read(&bridge, "fake://text").status, 200);
    assert_eq!(seen.starts().len(), 1);
}

#[test]
fn a_prompt_gets_its_arguments_as_they_were_written() {
    let (bridge, fake) = standard();
    let body = r#"{"server":"fake","name":"greet","arguments":{"tone":"","name":"Ü \"\u0000🦀"}}"#;
    let answer = Connection::open(&bridge.local())
        .send("POST", "/mcp/prompts/get", &[], body.as_bytes())
        .ok();
    assert_eq!(answer["description"], "A greeting");
    let messages = answer["messages"].as_array().unwrap();
    assert_eq!(
        (&messages[0]["role"], &messages[0]["content"][0]["text"]),
        (&json!("user"), &json!(r#"{"tone":"","name":"Ü \"\u0000🦀"}"#))
    );
    assert_eq!(
        messages[1],
        json!({"role": "assistant", "content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]})
    );
    assert_eq!(
        messages[2]["content"][0]["type"], "unknown",
        "what nobody knows is said so"
    );
    assert_eq!(fake.seen().messages("prompts/get").len(), 1);
}

#[test]
fn a_prompt_that_is_not_there_and_arguments_that_do_not_fit_are_told_apart() {
    let (bridge, fake) = standard();
    prompt(&bridge, "nobody", &json!({})).refused(404, "not_found");
    let message = prompt(&bridge, "greet", &json!({})).refused(400, "bad_request");
    assert!(message.contains("the name is missing"), "{message}");
    prompt(&bridge, "greet", &json!({"name": 5})).refused(400, "bad_request");
    assert_eq!(
        fake.seen().messages("prompts/get").len(),
        2,
        "what is no text was not sent"
    );
}

#[test]
fn both_eras_and_both_transports_offer_the_same() {
    for era in ["legacy", "modern"] {
        let home = Home::new();
        let remote = HttpFake::start(
            home.path(),
            "remote",
            &[("era", era), ("offers", "standard"), ("answers", "sse")],
        );
        let local = Fake::new("ok").option("era", era).option("offers", "standard");
        let bridge = Daemon::serving(home, [("local", local.entry()), ("remote", remote.entry())]);
        for id in ["local", "remote"] {
            bridge.wait_for_tool(&format!("mcp__{id}__echo"));
            let list = bridge.owner_get(&format!("/mcp/resources?server={id}")).ok();
            assert_eq!(texts(&list["resources"], "uri").len(), 3, "{id} {era}: {list}");
            let body = json!({"server": id, "uri": "fake://ünïcode/日本 x"});
            let answer = bridge.owner_post("/mcp/resources/read", &body).ok();
            assert_eq!(answer["contents"][0]["resource"]["text"], "weit weg", "{id} {era}");
            let body = json!({"server": id, "name": "greet", "arguments": {"name": "x"}});
            let answer = bridge.owner_post("/mcp/prompts/get", &body).ok();
            assert_eq!(
                answer["messages"][0]["content"][0]["text"], r#"{"name":"x"}"#,
                "{id} {era}"
            );
        }
    }
}

#[test]
fn servers_that_people_run_offer_their_resources_and_prompts() {
    let over_http = EverythingOverHttp::start(Everything::StreamableHttp);
    let bridge = Daemon::serving(
        Home::new(),
        [
            (
                "everything",
                json!({"command": node("mcp-server-everything"), "args": ["stdio"]}),
            ),
            ("remote", over_http.entry()),
            ("time", json!({"command": python("mcp-server-time")})),
        ],
    );
    for id in ["everything", "remote"] {
        let list = eventually(&format!("resources of {id}"), Duration::from_secs(60), || {
            let list = bridge.owner_get(&format!("/mcp/resources?server={id}")).ok();
            (!list["resources"].as_array()?.is_empty()).then_some(list)
        });
        assert!(!list["templates"].as_array().unwrap().is_empty(), "{list}");
        assert!(list["rejected"].is_null(), "{list}");
        let uri = &texts(&list["resources"], "uri")[0];
        let read = json!({"server": id, "uri": uri});
        let answer = bridge.owner_post("/mcp/resources/read", &read).ok();
        let content = &answer["contents"][0]["resource"];
        assert_eq!(content["uri"], uri.as_str(), "{answer}");
        let saved = bridge
            .owner_post("/mcp/resources/read", &json!({"server": id, "uri": uri, "save": true}))
            .ok();
        let file = fs::read(saved["path"].as_str().unwrap()).unwrap();
        assert_eq!(saved["bytes"], file.len());
        match content["text"].as_str() {
            Some(text) => assert_eq!(file, text.as_bytes()),
            None => assert!(content["blob"].is_string() && !file.is_empty(), "{content}"),
        }
        let dynamic = json!({"server": id, "uri": "demo://resource/dynamic/blob/7"});
        let blob = bridge.owner_post("/mcp/resources/read", &dynamic).ok();
        assert!(blob["contents"][0]["resource"]["blob"].is_string(), "{blob}");
        let missing = json!({"server": id, "uri": "demo://no/such/thing"});
        bridge
            .owner_post("/mcp/resources/read", &missing)
            .refused(404, "not_found");

        let prompts = bridge.owner_get(&format!("/mcp/prompts?server={id}")).ok();
        let with_arguments = prompts["prompts"]
            .as_array()
            .unwrap()
            .iter()
            .find(|prompt| {
                prompt["arguments"]
                    .as_array()
                    .is_some_and(|all| all.iter().any(|one| one["required"] == true))
            })
            .unwrap_or_else(|| panic!("no prompt with arguments: {prompts}"));
        let name = with_arguments["name"].as_str().unwrap();
        let arguments: Value = with_arguments["arguments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|argument| (argument["name"].as_str().unwrap().to_owned(), json!("Paris ü")))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let body = json!({"server": id, "name": name, "arguments": arguments});
        let answer = bridge.owner_post("/mcp/prompts/get", &body).ok();
        assert!(
            answer["messages"][0]["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("Paris ü"),
            "{answer}"
        );
        let without = json!({"server": id, "name": name, "arguments": {}});
        bridge
            .owner_post("/mcp/prompts/get", &without)
            .refused(400, "bad_request");
        let nobody = json!({"server": id, "name": "no such prompt", "arguments": {}});
        bridge.owner_post("/mcp/prompts/get", &nobody).refused(404, "not_found");
    }
    bridge.wait_for_tool("mcp__time__get_current_time");
    assert_eq!(
        bridge.owner_get("/mcp/resources?server=time").ok(),
        json!({"resources": [], "templates": []}),
        "a server that offers only tools"
    );
    let nothing = json!({"server": "time", "uri": "x:y"});
    bridge
        .owner_post("/mcp/resources/read", &nothing)
        .refused(404, "not_found");
    bridge.terminate();
}

#[test]
fn a_server_of_the_official_python_sdk_offers_its_own_in_the_modern_era() {
    let script = program::workspace().join("tests/upstreams/notes.py");
    let entry = json!({"command": python("python3"), "args": [script]});
    let bridge = Daemon::serving(Home::new(), [("notes", entry)]);
    let list = eventually("its resources", Duration::from_secs(60), || {
        let list = bridge.owner_get("/mcp/resources").ok();
        (!list["resources"].as_array()?.is_empty()).then_some(list)
    });
    assert_eq!(texts(&list["resources"], "uri"), ["notes://today", "notes://picture"]);
    assert_eq!(texts(&list["templates"], "uri_template"), ["notes://{day}/entry"]);
    assert_eq!(bridge.server("notes").unwrap()["connection"]["era"], "modern");
    let read = |uri: &str| json!({"server": "notes", "uri": uri});
    let answer = bridge.owner_post("/mcp/resources/read", &read("notes://today")).ok();
    assert_eq!(answer["contents"][0]["resource"]["text"], "heute 🦀");
    let answer = bridge
        .owner_post("/mcp/resources/read", &read("notes://monday/entry"))
        .ok();
    assert_eq!(answer["contents"][0]["resource"]["text"], "entry of monday");
    bridge
        .owner_post("/mcp/resources/read", &read("notes://nothing"))
        .refused(404, "not_found");

    let mut saving = read("notes://picture");
    saving["save"] = json!(true);
    let saved = bridge.owner_post("/mcp/resources/read", &saving).ok();
    let picture: Vec<u8> = (0..=255).cycle().take(256_000).collect();
    assert!(fs::read(saved["path"].as_str().unwrap()).unwrap() == picture);

    let prompts = bridge.owner_get("/mcp/prompts").ok();
    assert_eq!(prompts["prompts"][0]["title"], "Summarize");
    assert_eq!(
        prompts["prompts"][0]["arguments"],
        json!([{"name": "text", "required": true}, {"name": "style", "required": false}])
    );
    let body = json!({"server": "notes", "name": "summarize", "arguments": {"text": "ü"}});
    let answer = bridge.owner_post("/mcp/prompts/get", &body).ok();
    assert_eq!(answer["messages"][0]["content"][0]["text"], "Summarize (short): ü");
    bridge.terminate();
}
