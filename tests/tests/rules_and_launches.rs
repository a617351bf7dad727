//! What may happen without asking in one place does not go on in another by itself.

use std::fs;

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::{Fake, HttpFake},
    home::{Home, config_text},
    tray::Tray,
    wait::{SOON, eventually, eventually_equals},
};
use serde_json::{Value, json};

const TOOL: &str = "mcp__x__echo";

fn rule(effect: &str) -> Value {
    json!({
        "effect": effect, "server": "x", "kind": "tools", "patterns": ["echo"], "arguments": {"which": "any"},
        "caller": {"who": "anyone"}, "lasts": "kept",
    })
}

fn texts(values: &Value, member: &str) -> Vec<String> {
    let values = values.as_array().expect("a list").iter();
    values
        .map(|value| value[member].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// The tools that every program may use without asking.
fn unasked(answer: &Value) -> Vec<String> {
    let tools = answer["tools"].as_array().expect("a list").iter();
    tools.map(|name| name.as_str().unwrap_or_default().to_owned()).collect()
}

fn waits(bridge: &Daemon, kind: &str) -> Value {
    eventually(&format!("{kind} waits"), SOON, || {
        let body = bridge.owner_get("/mcp/approvals").ok();
        let all = body["approvals"].as_array()?.clone();
        all.into_iter().find(|one| one["kind"] == kind)
    })
}

fn says(bridge: &Daemon, question: &Value, answer: &str) {
    let id = question["id"].as_str().expect("an id");
    bridge
        .owner_post(&format!("/mcp/approvals/{id}"), &json!({"answer": answer}))
        .ok();
}

fn sleeps(bridge: &Daemon) -> Value {
    bridge.owner_get("/mcp/rules").ok()["rules"][0]["sleeps"].clone()
}

/// A connector with review and asking, whose one tool may be used without asking.
fn allowed_in_the_first_place(home: Home, first: &Fake) -> Daemon {
    home.write_config(&config_text([("x", first.entry())]));
    let bridge = Daemon::start_in(home, Setup::default().argument("--review").argument("--ask"));
    says(&bridge, &waits(&bridge, "launch"), "approve");
    bridge.wait_for_tool(TOOL);
    bridge.owner_post("/mcp/rules", &rule("allow")).ok();
    bridge.call(TOOL, &json!({})).ok();
    bridge
}

/// A call of a program waits for the person, who says no.
fn assert_asks(bridge: &Daemon) {
    assert_eq!(unasked(&bridge.get("/mcp/auto-approved").ok()), [""; 0]);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| bridge.call(TOOL, &json!({})));
        says(bridge, &waits(bridge, "call"), "deny");
        call.join().expect("it was answered").refused(403, "denied");
    });
}

#[test]
fn a_yes_to_another_launch_is_none_to_what_ran_without_asking() {
    let home = Home::new();
    let [first, second] = ["first", "second"].map(|name| Fake::new("ok").record(&home.record(name)));
    let bridge = allowed_in_the_first_place(home, &first);

    bridge.home.write_config(&config_text([("x", second.entry())]));
    let launch = waits(&bridge, "launch");
    let asleep = texts(&launch["launch"]["asleep"], "sentence");
    assert!(asleep.len() == 1 && asleep[0].contains("echo"), "{launch}");
    says(&bridge, &launch, "approve");
    bridge.wait_for_tool(TOOL);
    assert_asks(&bridge);
    assert_eq!(sleeps(&bridge), "elsewhere");
    assert_eq!(second.seen().messages("tools/call"), [""; 0]);
    let shown = waits(&bridge, "asleep");
    assert!(
        shown["now"]["command_line"].to_string().contains("second.record"),
        "{shown}"
    );

    // The way back wakes it.
    bridge.home.write_config(&config_text([("x", first.entry())]));
    says(&bridge, &waits(&bridge, "launch"), "approve");
    bridge.wait_for_tool(TOOL);
    bridge.call(TOOL, &json!({})).ok();
    assert_eq!(
        (sleeps(&bridge), unasked(&bridge.get("/mcp/auto-approved").ok())),
        (Value::Null, vec![TOOL.to_owned()])
    );
    bridge.terminate();
}

#[test]
fn rules_that_sleep_go_on_where_the_person_keeps_them_and_are_withdrawn_by_a_no() {
    let home = Home::new();
    let [first, second, third] = ["1", "2", "3"].map(|name| Fake::new("ok").record(&home.record(name)));
    let bridge = allowed_in_the_first_place(home, &first);
    let move_to = |fake: &Fake| {
        bridge.home.write_config(&config_text([("x", fake.entry())]));
        says(&bridge, &waits(&bridge, "launch"), "approve");
        bridge.wait_for_tool(TOOL);
    };
    move_to(&second);
    let asleep = waits(&bridge, "asleep");
    says(&bridge, &asleep, "approve");
    bridge.call(TOOL, &json!({})).ok();
    assert_eq!(second.seen().messages("tools/call").len(), 1);
    // Another yes to the same words is none.
    let again = format!("/mcp/approvals/{}", asleep["id"].as_str().unwrap());
    bridge
        .owner_post(&again, &json!({"answer": "approve"}))
        .refused(404, "not_found");

    move_to(&third);
    says(&bridge, &waits(&bridge, "asleep"), "deny");
    assert_eq!(bridge.owner_get("/mcp/rules").ok()["rules"], json!([]));
    assert_asks(&bridge);
    bridge.terminate();
}

#[test]
fn rules_are_kept_for_the_launch_that_is_shown_whatever_the_file_says_meanwhile() {
    let home = Home::new();
    let [first, second] = ["first", "second"].map(|name| Fake::new("ok").record(&home.record(name)));
    let bridge = allowed_in_the_first_place(home, &first);
    bridge.home.write_config(&config_text([("x", second.entry())]));
    says(&bridge, &waits(&bridge, "launch"), "approve");
    bridge.wait_for_tool(TOOL);
    let shown = waits(&bridge, "asleep")["now"].clone();
    assert!(shown["command_line"].to_string().contains("second.record"), "{shown}");

    // The place that the rules were made for stands there again, in a way that cannot run.
    let unusable = first.clone().member("envFile", json!("/does/not/exist"));
    bridge.home.write_config(&config_text([("x", unusable.entry())]));
    bridge.wait_for_status("x", "error");
    assert_eq!(waits(&bridge, "asleep")["now"], shown);
    bridge.terminate();
}

#[test]
fn a_change_in_the_window_allows_no_more_of_what_waits_than_it_changes() {
    let home = Home::new();
    let variables = home.path().join("x.env");
    let of = |name: &str| Fake::new("ok").record(&home.record(name));
    let [first, second] = ["first", "second"].map(|name| of(name).member("envFile", json!(variables)));
    let named = |fake: &Fake| fake.clone().member("name", json!("Mine")).entry();
    fs::write(&variables, "A=1\n").unwrap();
    home.write_config(&config_text([("x", first.entry())]));
    let mut tray = Tray::start(home);
    tray.approve("x");
    tray.wait_for_status("x", "connected");
    let starts = first.seen().starts().len();
    let waits_after = |tray: &mut Tray, entry: &Value| {
        tray.replace("x", entry);
        eventually("it is written", SOON, || {
            (tray.server("x")["name"] == json!("Mine")).then_some(())
        });
        // What is looked at anew finds what was recorded.
        tray.owner_post("/mcp/servers/reconnect", &json!({"id": "x"})).ok();
        tray.wait_for_status("x", "needs_review");
        tray.wait_for("launch", "x");
    };

    fs::write(&variables, "A=2\n").unwrap();
    tray.owner_post("/mcp/servers/reconnect", &json!({"id": "x"})).ok();
    tray.wait_for_status("x", "needs_review");
    waits_after(&mut tray, &named(&first));
    assert_eq!(first.seen().starts().len(), starts);

    fs::write(&variables, "A=1\n").unwrap();
    tray.home.write_config(&config_text([("x", second.entry())]));
    eventually("the file is read", SOON, || {
        (tray.server("x")["name"] != json!("Mine")).then_some(())
    });
    tray.wait_for_status("x", "needs_review");
    waits_after(&mut tray, &named(&second));
    assert_eq!(second.seen().starts(), [0_u32; 0]);

    // What was allowed runs under its new name, and so does another place that the person writes over it.
    tray.home.write_config(&config_text([("x", first.entry())]));
    tray.wait_for_status("x", "sleeping");
    tray.replace("x", &named(&first));
    tray.replace("x", &named(&second));
    eventually("the other place runs", SOON, || {
        (!second.seen().starts().is_empty()).then_some(())
    });
    tray.wait_for_status("x", "connected");
    tray.close();
}

#[test]
fn hiding_a_tool_of_what_stands_under_an_id_turns_nothing_on() {
    let home = Home::new();
    let mine = Fake::new("ok").record(&home.record("mine"));
    home.write_config(&config_text([("x", mine.entry())]));
    let mut tray = Tray::start(home);
    tray.approve("x");
    tray.wait_for_status("x", "connected");
    let switch = |tray: &Tray, enabled: bool| {
        let body = json!({"id": "x", "enabled": enabled});
        tray.owner_post("/mcp/servers/toggle", &body).ok();
    };
    switch(&tray, false);
    tray.wait_for_status("x", "disabled");

    let files = json!({"command": "neuron-connectd", "args": ["files", "~/neuron-connectd-sandbox"]});
    tray.home.write_config(&config_text([("x", files)]));
    tray.wait_for_status("x", "needs_review");
    tray.hide("x", "read_file");
    eventually("it is written", SOON, || {
        tray.home.config().contains("read_file").then_some(())
    });
    tray.owner_post("/mcp/servers/reconnect", &json!({"id": "x"})).ok();
    assert_eq!(tray.server("x")["status"], "needs_review");
    tray.wait_for("launch", "x");
    switch(&tray, true);
    tray.wait_for_status("x", "sleeping");
    tray.close();
}

#[test]
fn a_rule_that_denies_never_sleeps() {
    let home = Home::new();
    let [first, second] = ["first", "second"].map(|name| Fake::new("ok").record(&home.record(name)));
    let bridge = allowed_in_the_first_place(home, &first);
    bridge.owner_post("/mcp/rules", &rule("deny")).ok();
    bridge.home.write_config(&config_text([("x", second.entry())]));
    says(&bridge, &waits(&bridge, "launch"), "approve");
    bridge.wait_for_tool(TOOL);
    bridge.call(TOOL, &json!({})).refused(403, "denied");
    bridge.terminate();
}

#[test]
fn a_question_ends_where_its_connector_is_another_one_before_the_answer() {
    let home = Home::new();
    let [first, second] = ["first", "second"].map(|name| Fake::new("ok").record(&home.record(name)));
    home.write_config(&config_text([("x", first.entry())]));
    let bridge = Daemon::start_in(home, Setup::default().argument("--ask"));
    bridge.wait_for_tool(TOOL);
    let read = || bridge.post("/mcp/resources/read", &json!({"server": "x", "uri": "fake:a"}));
    std::thread::scope(|scope| {
        let reading = scope.spawn(read);
        waits(&bridge, "call");
        bridge.home.write_config(&config_text([("x", second.entry())]));
        reading.join().expect("it was answered").refused(503, "unavailable");
    });
    assert_eq!(bridge.owner_get("/mcp/approvals").ok()["approvals"], json!([]));
    assert_eq!(second.seen().messages("resources/read"), [""; 0]);
    bridge.terminate();
}

#[test]
fn in_the_window_a_harmless_edit_keeps_rules_awake_and_another_place_asks() {
    let home = Home::new();
    let [one, other] = ["one", "other"].map(|name| HttpFake::start(home.path(), name, &[]));
    home.write_config(&config_text([("x", one.entry())]));
    let mut tray = Tray::start(home);
    tray.approve("x");
    let known = |tray: &Tray| tray.server("x")["tools"] == json!(1) || tray.server("x")["tools"].as_u64() > Some(0);
    eventually("its tools", SOON, || known(&tray).then_some(()));
    tray.owner_post("/mcp/rules", &rule("allow")).ok();
    let listed = |tray: &Tray| unasked(&tray.get("/mcp/auto-approved").ok()).contains(&TOOL.to_owned());
    assert!(listed(&tray));
    let asleep = |tray: &Tray| tray.waiting().iter().any(|one| one["kind"] == "asleep");

    let with_header = |fake: &HttpFake| {
        let mut entry = fake.entry();
        entry["headers"] = json!({"X-Team": "a"});
        entry
    };
    tray.replace("x", &with_header(&one));
    let headers = |tray: &Tray| tray.home.config().contains("X-Team");
    eventually("the header is written", SOON, || headers(&tray).then_some(()));
    eventually_equals("awake with another header", true, SOON, || listed(&tray));
    assert!(!asleep(&tray));

    tray.replace("x", &with_header(&other));
    tray.wait_for("asleep", "x");
    assert!(!listed(&tray));

    // With the look at another launch the person may keep them too.
    tray.home.write_config(&config_text([("x", one.entry())]));
    let launch = tray.wait_for("launch", "x");
    let rules = tray.owner_get("/mcp/rules").ok();
    let id = rules["rules"][0]["rule"]["id"].as_str().unwrap().to_owned();
    tray.approve_keeping(&[&launch], &[&id]);
    eventually_equals("kept with the launch", true, SOON, || listed(&tray));
    assert!(!asleep(&tray));
    tray.close();
}
