//! Who may do what: walk-ins, paired clients and the owner, on the running bridge.

use std::process::{Command, Stdio};

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::Fake,
    home::{Home, config_text},
    http::{Answer, Connection},
    inline::Inline,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

const KEY: &str = "SENTINEL-of-a-key";

fn with_fake() -> Daemon {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge
}

/// The id under which it waits; the answer says nothing else.
fn waits(answer: &Answer) -> String {
    assert_eq!(answer.status, 202, "{}", answer.text());
    let body = answer.json();
    let keys: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["ok", "pending", "approval_id", "error"]);
    assert_eq!((&body["ok"], &body["pending"]), (&json!(false), &json!(true)));
    body["approval_id"].as_str().unwrap().to_owned()
}

fn state(bridge: &Daemon, id: &str) -> String {
    let seen = bridge.get(&format!("/mcp/approvals/{id}")).ok();
    assert!(seen.get("question").is_none(), "{seen}");
    seen["state"].as_str().unwrap().to_owned()
}

fn answer(bridge: &Daemon, id: &str, answer: &str) -> Answer {
    bridge.owner_post(&format!("/mcp/approvals/{id}"), &json!({"answer": answer}))
}

fn with_token(bridge: &Daemon, token: &str, method: &str, path: &str, body: &Value) -> Answer {
    let header = format!("Bearer {token}");
    let body = match method {
        "GET" => Vec::new(),
        _ => body.to_string().into_bytes(),
    };
    Connection::open(&bridge.tcp()).send(method, path, &[("authorization", &header)], &body)
}

/// Pairs a client on these terms; its id and token.
fn pair(bridge: &Daemon, terms: &Value) -> (String, String) {
    bridge.owner_post("/mcp/pairing", &json!({"open": true})).ok();
    let begun = bridge.post("/mcp/clients/pair", &json!({"name": "Claude Code"})).ok();
    let paired = bridge
        .owner_post(
            "/mcp/pairing",
            &json!({"answer": {"pairing_id": begun["pairing_id"], "code": begun["code"], "terms": terms}}),
        )
        .ok();
    let told = bridge
        .post("/mcp/clients/pair", &json!({"pairing_id": begun["pairing_id"]}))
        .ok();
    assert_eq!(told["state"], "paired", "{told}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&paired["client"]["id"]), text(&told["token"]))
}

/// Everything that a walk-in can ask to have changed, with a body for the connectors `fake` and `remote`.
fn wishes(spy: &Fake) -> Vec<(&'static str, Value)> {
    let mut added = spy.entry();
    added["id"] = json!("new");
    vec![
        ("/mcp/servers/add", added),
        ("/mcp/servers/toggle", json!({"id": "off", "enabled": true})),
        ("/mcp/servers/auto-approve", json!({"id": "fake", "auto_approve": true})),
        ("/mcp/servers/remove", json!({"id": "fake"})),
        ("/mcp/servers/secret", json!({"id": "keyed", "secret": KEY})),
        ("/mcp/servers/forget-secret", json!({"id": "keyed"})),
        ("/mcp/oauth/start", json!({"id": "remote"})),
        ("/mcp/oauth/sign-out", json!({"id": "remote"})),
    ]
}

fn with_all(spy: &Fake, setup: Setup) -> Daemon {
    let home = Home::new();
    let mut off = spy.entry();
    off["enabled"] = json!(false);
    home.write_config(&config_text([
        ("fake", Fake::new("ok").entry()),
        ("off", off),
        ("keyed", json!({"url": "http://127.0.0.1:9/mcp", "auth": "token"})),
        ("remote", json!({"url": "http://127.0.0.1:9/mcp"})),
    ]));
    let waits_for_looks = setup.arguments.iter().any(|argument| argument == "--review");
    let bridge = Daemon::start_in(home, setup);
    match waits_for_looks {
        true => drop(bridge.wait_for_status("fake", "needs_review")),
        false => bridge.wait_for_tool("mcp__fake__echo"),
    }
    bridge
}

/// Beside Python, which counts as another program: five wishes of one wait.
fn halves(bridge: &Daemon, all: &[(&str, Value)]) -> Vec<String> {
    all.iter()
        .enumerate()
        .map(|(number, (path, body))| match number % 2 {
            0 => waits(&bridge.post(path, body)),
            _ => {
                let answer = Inline::post(bridge, path, body).answer();
                answer["approval_id"].as_str().expect("it waits").to_owned()
            }
        })
        .collect()
}

#[test]
fn a_program_that_starts_itself_anew_leaves_room_for_the_wishes_of_others() {
    let bridge = with_fake();
    let spy = Fake::new("ok");
    let wish = |number: usize| {
        let mut added = spy.entry();
        added["id"] = json!(format!("new{number}"));
        added
    };
    let many: Vec<_> = (0..12)
        .map(|number| Inline::post(&bridge, "/mcp/servers/add", &wish(number)))
        .collect();
    let answers: Vec<_> = many.into_iter().map(Inline::answer).collect();
    let (pending, later): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer["pending"] == true);
    assert_eq!((pending.len(), later.len()), (5, 7), "{answers:?}");
    assert!(later.iter().all(|answer| answer["code"] == "rate_limited"), "{later:?}");
    waits(&bridge.post("/mcp/servers/add", &wish(100)));
    answer(&bridge, pending[0]["approval_id"].as_str().unwrap(), "deny").ok();
    let next = Inline::post(&bridge, "/mcp/servers/add", &wish(101)).answer();
    assert_eq!(next["pending"], true, "{next}");
    bridge.terminate();
}

#[test]
fn whatever_a_walk_in_wants_changed_waits_and_has_no_effect_before_a_yes_nor_after_a_restart() {
    let folder = Home::new();
    let spy = Fake::new("ok").record(&folder.record("spy"));
    let bridge = with_all(&spy, Setup::default());
    let before = bridge.home.config();
    let all = wishes(&spy);
    let ids = halves(&bridge, &all);
    assert_eq!(halves(&bridge, &all), ids, "the same wish waits once");
    for (id, (path, _)) in ids.iter().zip(&all) {
        assert_eq!(state(&bridge, id), "waiting", "{path}");
        let refused = bridge.post(&format!("/mcp/approvals/{id}"), &json!({"answer": "approve"}));
        refused.refused(403, "scope_missing");
    }
    assert_eq!(bridge.home.config(), before);
    assert_eq!(spy.seen().starts(), [0_u32; 0], "nothing is started");
    assert!(bridge.server("new").is_none());
    assert_eq!(bridge.status("off"), "disabled");
    let waiting = bridge.owner_get("/mcp/approvals").ok();
    assert_eq!(waiting["approvals"].as_array().unwrap().len(), all.len());
    assert!(!waiting.to_string().contains(KEY), "{waiting}");
    assert!(!bridge.log().contains(KEY));

    for id in &ids {
        answer(&bridge, id, "deny").ok();
        assert_eq!(state(&bridge, id), "denied");
        answer(&bridge, id, "approve").refused(409, "already_exists");
    }
    assert_eq!(bridge.home.config(), before);
    let lost = waits(&bridge.post("/mcp/servers/remove", &json!({"id": "fake"})));
    let bridge = bridge.restart();
    bridge.get(&format!("/mcp/approvals/{lost}")).refused(404, "not_found");
    assert_eq!(bridge.owner_get("/mcp/approvals").ok()["approvals"], json!([]));
    assert_eq!(bridge.home.config(), before);
    assert_eq!(spy.seen().starts(), [0_u32; 0]);
    bridge.terminate();
}

#[test]
fn a_yes_does_exactly_what_was_asked() {
    let folder = Home::new();
    let spy = Fake::new("ok").record(&folder.record("spy"));
    let bridge = with_all(&spy, Setup::default().argument("--review"));
    // With review on, the file's own connectors wait; that is another matter.
    let yes = |path: &str, body: &Value| {
        let id = waits(&bridge.post(path, body));
        answer(&bridge, &id, "approve").ok();
        assert_eq!(state(&bridge, &id), "approved", "{path}");
    };
    let mut added = spy.entry();
    added["id"] = json!("new");
    yes("/mcp/servers/add", &added);
    // The yes was its review.
    bridge.wait_for_tool("mcp__new__echo");
    yes(
        "/mcp/servers/auto-approve",
        &json!({"id": "new", "auto_approve": ["echo"]}),
    );
    assert!(
        bridge.home.config().contains("\"autoApprove\""),
        "{}",
        bridge.home.config()
    );
    yes("/mcp/servers/secret", &json!({"id": "keyed", "secret": KEY}));
    let keyed = bridge.owner_get("/mcp/servers/keyed").ok();
    assert_eq!(keyed["secrets"][0]["set"], true, "{keyed}");
    let again = waits(&bridge.post("/mcp/servers/secret", &json!({"id": "keyed", "secret": "another-key"})));
    let shown = bridge.owner_get(&format!("/mcp/approvals/{again}")).ok();
    let change = &shown["question"]["change"];
    assert_eq!(
        (&change["replaces"], &change["goes_to"]),
        (&json!(true), &json!("http://127.0.0.1:9")),
        "{shown}"
    );
    answer(&bridge, &again, "deny").ok();
    yes("/mcp/servers/remove", &json!({"id": "new"}));
    assert!(bridge.server("new").is_none());
    bridge.terminate();
}

#[test]
fn a_yes_to_what_has_changed_since_it_was_shown_is_none() {
    let bridge = with_all(&Fake::new("ok"), Setup::default());
    let id = waits(&bridge.post("/mcp/servers/secret", &json!({"id": "keyed", "secret": KEY})));
    let elsewhere = bridge
        .home
        .config()
        .replacen("http://127.0.0.1:9/mcp", "http://127.0.0.1:7/mcp", 1);
    bridge.home.write_config(&elsewhere);
    eventually("the new address", SOON, || {
        let entry = bridge.owner_get("/mcp/servers/keyed").ok();
        entry["entry"].as_str()?.contains("127.0.0.1:7").then_some(())
    });
    answer(&bridge, &id, "approve").refused(409, "needs_review");
    let keyed = bridge.owner_get("/mcp/servers/keyed").ok();
    assert_eq!(keyed["secrets"][0]["set"], false, "{keyed}");
    // It waits with what it would be now.
    let shown = bridge.owner_get(&format!("/mcp/approvals/{id}")).ok();
    assert_eq!(shown["question"]["change"]["goes_to"], "http://127.0.0.1:7", "{shown}");
    answer(&bridge, &id, "approve").ok();
    bridge.terminate();
}

#[test]
fn a_yes_to_let_tools_run_is_to_the_tools_that_were_shown() {
    let home = Home::new();
    let told = home.path().join("told.json");
    let tell = |description: &str| {
        let tool =
            json!({"name": "look", "description": "Looks.", "inputSchema": {"type": "object", "title": description}});
        let beside = told.with_extension("next");
        std::fs::write(&beside, json!({"tools": [tool]}).to_string()).unwrap();
        std::fs::rename(&beside, &told).unwrap();
    };
    tell("one");
    let fake = Fake::new("ok").option("list", "told").option("told", told.display());
    let bridge = Daemon::serving(home, [("s", fake.entry())]);
    bridge.wait_for_tool("mcp__s__look");
    let wish = json!({"id": "s", "auto_approve": ["look"]});
    let id = waits(&bridge.post("/mcp/servers/auto-approve", &wish));
    let shown = || bridge.owner_get(&format!("/mcp/approvals/{id}")).ok()["question"]["change"]["tools"].clone();
    assert_eq!(shown(), json!(["look"]));
    // It becomes another one, and is held until the person has looked at it.
    tell("two");
    let announce = json!({"name": "mcp__s__announce", "input": {}});
    bridge.owner_post("/mcp/call", &announce).ok();
    eventually("the other one", SOON, || {
        (!bridge.tool_names().contains(&"mcp__s__look".to_owned())).then_some(())
    });
    answer(&bridge, &id, "approve").refused(409, "needs_review");
    assert!(!bridge.home.config().contains("autoApprove"));
    assert_eq!(shown(), json!([]), "it waits with what it would be now");
    bridge.terminate();
}

#[test]
fn what_was_wished_about_a_connector_goes_with_it() {
    let bridge = with_fake();
    let entry = || {
        let mut entry = Fake::new("ok").entry();
        entry["id"] = json!("fake");
        entry
    };
    let wish = || waits(&bridge.post("/mcp/servers/remove", &json!({"id": "fake"})));
    let removed = wish();
    bridge.owner_post("/mcp/servers/remove", &json!({"id": "fake"})).ok();
    assert_eq!(state(&bridge, &removed), "expired");
    bridge.owner_post("/mcp/servers/add", &entry()).ok();
    answer(&bridge, &removed, "approve").refused(403, "approval_timeout");
    assert!(bridge.server("fake").is_some());

    let renamed = wish();
    let config = bridge.home.config();
    bridge.home.write_config(&config.replace("\"fake\"", "\"other\""));
    bridge.wait_for_tool("mcp__other__echo");
    assert_eq!(state(&bridge, &renamed), "expired");

    let mine = waits(&bridge.post("/mcp/servers/add", &entry()));
    bridge.owner_post("/mcp/servers/add", &entry()).ok();
    assert_eq!(
        state(&bridge, &mine),
        "expired",
        "the person added another one under this name"
    );
    bridge.terminate();
}

#[test]
fn five_changes_of_one_program_wait_and_its_next_is_told_to_come_again() {
    let bridge = with_fake();
    let add = |number: usize| {
        let entry = json!({"id": format!("c{number}"), "command": "no-such-program"});
        bridge.post("/mcp/servers/add", &entry)
    };
    for number in 0..5 {
        waits(&add(number));
    }
    let full = add(5);
    full.refused(429, "rate_limited");
    assert!(full.header("retry-after").is_some());
    bridge.terminate();
}

#[test]
fn a_walk_in_pauses_what_it_turns_off_until_somebody_resumes_it() {
    let bridge = with_fake();
    let before = bridge.home.config();
    bridge
        .post("/mcp/servers/toggle", &json!({"id": "fake", "enabled": false}))
        .ok();
    bridge.wait_for_status("fake", "paused");
    assert!(!bridge.tool_names().iter().any(|name| name.starts_with("mcp__fake__")));
    bridge.call("mcp__fake__echo", &json!({})).refused(409, "disabled");
    assert_eq!(bridge.home.config(), before, "it is not written");
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "fake", "enabled": true}))
        .ok();
    bridge.wait_for_tool("mcp__fake__echo");
    bridge
        .post("/mcp/servers/toggle", &json!({"id": "fake", "enabled": false}))
        .refused(429, "rate_limited");
    bridge
        .post("/mcp/servers/reconnect", &json!({"id": "fake"}))
        .refused(403, "scope_missing");
    bridge.terminate();
}

#[test]
fn everything_paused_stays_so_over_a_restart() {
    let bridge = with_fake();
    bridge
        .post("/mcp/trust", &json!({"paused": true}))
        .refused(403, "scope_missing");
    bridge.owner_post("/mcp/trust", &json!({"paused": true})).ok();
    bridge.wait_for_status("fake", "paused");
    assert_eq!(bridge.tool_names(), [""; 0]);
    let bridge = bridge.restart();
    bridge.wait_for_status("fake", "paused");
    assert_eq!(bridge.tool_names(), [""; 0]);
    bridge.call("mcp__fake__echo", &json!({})).refused(409, "disabled");
    bridge.owner_post("/mcp/trust", &json!({"paused": false})).ok();
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.terminate();
}

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

#[test]
fn the_command_line_shows_and_answers_wishes_and_says_who_may_call() {
    let bridge = with_fake();
    let said = |arguments: &[&str]| {
        let output = bridge.command(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    };
    let id = waits(&bridge.post("/mcp/servers/remove", &json!({"id": "fake"})));
    let shown = said(&["approvals"]);
    assert!(shown.contains(&id) && shown.contains("removed"), "{shown}");
    said(&["approve", &id]);
    assert!(bridge.server("fake").is_none());
    assert!(said(&["clients"]).contains("No assistant is paired"));
    let (client, _) = pair(&bridge, &json!({"scopes": ["read"]}));
    assert!(said(&["clients"]).contains("Claude Code"));
    said(&["clients", "--revoke", &client]);
    assert!(said(&["clients"]).contains("No assistant is paired"));
    assert!(said(&["trust", "--api", "token", "--walk-in", "ask"]).contains("Programs need a token"));
    bridge.get("/mcp/tools").refused(401, "unauthorized");
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
