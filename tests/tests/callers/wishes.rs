//! What a program wants changed waits for the person, and what it turns off is paused.

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::Fake,
    home::{Home, config_text},
    inline::Inline,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

use super::{answer, pair, state, waits, with_fake};

const KEY: &str = "SENTINEL-of-a-key";

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
