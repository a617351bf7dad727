//! A call goes to the tool it names, with the arguments it has, once, and its answer comes back.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use neuron_tests::{
    daemon::Daemon,
    fake::Fake,
    home::Home,
    http::Connection,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

/// A bridge with one recorded upstream named `fake`.
fn recorded(fake: Fake) -> (Daemon, Fake) {
    let home = Home::new();
    let fake = fake.record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    (bridge, fake)
}

#[test]
fn arguments_arrive_as_they_were_written() {
    let (bridge, fake) = recorded(Fake::new("ok"));
    bridge.wait_for_tool("mcp__fake__echo");
    let input = r#"{"z":12345678901234567890123,"a":1.10,"m":-0.0,"e":1E400,"s":"ü\u0000😀","deep":{"b":[1.0,2.50,null,true],"":0}}"#;
    let body = format!(r#"{{"name":"mcp__fake__echo","input":{input}}}"#);
    let answer = bridge.post_text("/mcp/call", &body).ok();
    let line = fake.seen().wait_for("tools/call", 1).remove(0);
    for written in ["12345678901234567890123", "1.10", "-0.0", "2.50", "1.0,"] {
        assert!(line.contains(written), "{written} in {line}");
    }
    let order =
        |text: &str| ["\"z\"", "\"a\"", "\"m\"", "\"e\"", "\"s\"", "\"deep\""].map(|key| text.find(key).expect(key));
    assert!(order(&line).is_sorted(), "the order of members: {line}");
    let (came, sent): (Value, Value) = (
        serde_json::from_str(answer["text"].as_str().unwrap()).unwrap(),
        serde_json::from_str(input).unwrap(),
    );
    assert_eq!(came, sent, "nothing is added, nothing lost");
}

#[test]
fn a_wrong_name_is_answered_with_the_one_that_was_meant() {
    let (bridge, fake) = recorded(Fake::new("ok"));
    bridge.wait_for_tool("mcp__fake__echo");
    for wrong in ["mcp__fake__ecko", "echo", "mcp__fake__Echo"] {
        let message = bridge.call(wrong, &json!({})).refused(404, "unknown_tool");
        assert!(message.contains("mcp__fake__echo"), "{wrong}: {message}");
    }
    bridge
        .call("nothing like it at all", &json!({}))
        .refused(404, "unknown_tool");
    assert_eq!(fake.seen().messages("tools/call"), [""; 0], "nothing was sent");
}

#[test]
fn a_name_too_long_for_providers_gets_a_stable_short_one_and_reaches_the_original() {
    let id = "c".repeat(42);
    let home = Home::new();
    let fake = Fake::new("ok").option("list", "long-name").record(&home.record("fake"));
    let bridge = Daemon::serving(home, [(id.as_str(), fake.entry())]);
    let tool = "t".repeat(40);
    // mcp__<42>__ and 6 letters, then the first 8 hex digits of sha256(id, NUL, tool).
    let exposed = format!("mcp__{id}__tttttt_e97ee635");
    bridge.wait_for_tool(&exposed);
    assert_eq!(
        bridge.call_text(&exposed, &json!({"n": 1})),
        format!("{tool} {{\"n\":1}}")
    );
    let raw = format!("mcp__{id}__{tool}");
    assert_eq!(
        bridge.call_text(&raw, &json!({})),
        format!("{tool} {{}}"),
        "the raw name is unambiguous"
    );
    let call: Value = serde_json::from_str(&fake.seen().messages("tools/call")[0]).unwrap();
    assert_eq!(call["params"]["name"], tool.as_str());
}

#[test]
fn two_tools_that_fold_to_one_name_can_both_be_called_whoever_came_first_and_after_a_restart() {
    let mut bridge = Daemon::serving(
        Home::new(),
        [("fold", Fake::new("ok").option("list", "folding").entry())],
    );
    for round in 0..2 {
        bridge.wait_for_tool("mcp__fold__a_b_4a685a91");
        assert_eq!(
            bridge.call_text("mcp__fold__a_b_4a685a91", &json!({})),
            "a-b {}",
            "round {round}"
        );
        assert_eq!(
            bridge.call_text("mcp__fold__a_b_066d5907", &json!({})),
            "a.b {}",
            "round {round}"
        );
        bridge.call("mcp__fold__a_b", &json!({})).refused(404, "unknown_tool");
        bridge = bridge.restart();
    }
}

#[test]
fn connectors_that_fold_to_one_name_keep_their_names_in_either_order() {
    let entry = |say: &str| {
        Fake::new("ok")
            .option("list", "many")
            .option("tools", 1)
            .option("say", say)
            .entry()
    };
    let names = |first: &str, second: &str| {
        let bridge = Daemon::serving(Home::new(), [(first, entry(first)), (second, entry(second))]);
        eventually("both are listed", SOON, || {
            (bridge.tool_names().len() == 2).then_some(())
        });
        let answers = bridge.tool_names().into_iter().map(|name| {
            let server = bridge.call(&name, &json!({})).ok()["server"]
                .as_str()
                .unwrap()
                .to_owned();
            (name, server)
        });
        answers.collect::<HashSet<_>>()
    };
    let one_way = names("x.y", "x-y");
    assert_eq!(one_way.len(), 2);
    assert_eq!(one_way, names("x-y", "x.y"));
}

#[test]
fn a_slow_call_holds_up_nobody_else() {
    let (bridge, fake) = recorded(Fake::new("ok"));
    bridge.wait_for_tool("mcp__fake__hang");
    let hanging = Connection::open(&bridge.tcp());
    let release = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let body = br#"{"name":"mcp__fake__hang","input":{}}"#;
            hanging.abandon("POST", "/mcp/call", body, || release.load(Ordering::SeqCst));
        });
        fake.seen().wait_for("tools/call", 1);
        assert_eq!(bridge.call_text("mcp__fake__echo", &json!({"n": 1})), "{\"n\":1}");
        assert_eq!(bridge.status("fake"), "connected");
        release.store(true, Ordering::SeqCst);
    });
}

/// The request id of the n-th call that the upstream saw.
fn request_id(fake: &Fake, n: usize) -> Value {
    let line = fake.seen().wait_for("tools/call", n).remove(n - 1);
    serde_json::from_str::<Value>(&line).unwrap()["id"].clone()
}

fn cancelled_id(fake: &Fake) -> Value {
    let line = fake.seen().wait_for("notifications/cancelled", 1).remove(0);
    serde_json::from_str::<Value>(&line).unwrap()["params"]["requestId"].clone()
}

#[test]
fn when_the_caller_goes_away_the_upstream_is_told_by_its_own_id() {
    let (bridge, fake) = recorded(Fake::new("ok"));
    bridge.wait_for_tool("mcp__fake__hang");
    bridge.call_text("mcp__fake__echo", &json!({}));
    let body = br#"{"name":"mcp__fake__hang","input":{}}"#;
    let seen = fake.seen();
    Connection::open(&bridge.tcp()).abandon("POST", "/mcp/call", body, || seen.messages("tools/call").len() == 2);
    let gone = Instant::now();
    assert_eq!(cancelled_id(&fake), request_id(&fake, 2));
    assert!(gone.elapsed().as_secs_f64() < 1.0, "told after {:?}", gone.elapsed());
    assert_eq!(bridge.call_text("mcp__fake__echo", &json!({"next": 1})), "{\"next\":1}");
    assert_eq!(
        fake.seen().starts().len(),
        1,
        "one cancelled call takes no session along"
    );
}

#[test]
fn a_call_over_its_time_is_told_so_and_cancelled_upstream() {
    let (bridge, fake) = recorded(Fake::new("ok"));
    bridge.wait_for_tool("mcp__fake__hang");
    let begin = Instant::now();
    let body = json!({"name": "mcp__fake__hang", "input": {}, "timeout_ms": 200});
    bridge.post("/mcp/call", &body).refused(504, "upstream_timeout");
    assert!(
        begin.elapsed().as_millis() >= 200,
        "not before its time: {:?}",
        begin.elapsed()
    );
    assert_eq!(cancelled_id(&fake), request_id(&fake, 1));
    bridge.call_text("mcp__fake__echo", &json!({}));
    assert_eq!(fake.seen().starts().len(), 1, "one late call takes no session along");
    assert_eq!(bridge.status("fake"), "connected");
}

#[test]
fn the_time_of_an_entry_holds_where_the_call_names_none() {
    let (bridge, _) = recorded(Fake::new("ok").member("timeouts", json!({"callMs": 150})));
    bridge.wait_for_tool("mcp__fake__hang");
    bridge
        .call("mcp__fake__hang", &json!({}))
        .refused(504, "upstream_timeout");
}

#[test]
fn callers_that_come_together_to_a_sleeping_connector_share_one_start() {
    let home = Home::new();
    let fake = Fake::new("ok").option("delay", 200).record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    let bridge = bridge.restart();
    assert_eq!(bridge.status("fake"), "sleeping");
    std::thread::scope(|scope| {
        for n in 0..6 {
            let bridge = &bridge;
            scope.spawn(move || {
                let input = json!({"n": n});
                assert_eq!(bridge.call_text("mcp__fake__echo", &input), input.to_string());
            });
        }
    });
    assert_eq!(fake.seen().starts().len(), 2, "one before the restart, one after");
}

#[test]
fn a_tool_added_by_the_upstream_is_listed_and_callable() {
    let (bridge, fake) = recorded(Fake::new("ok"));
    bridge.wait_for_tool("mcp__fake__grow");
    bridge.call_text("mcp__fake__grow", &json!({}));
    bridge.wait_for_tool("mcp__fake__grown");
    assert_eq!(bridge.call_text("mcp__fake__grown", &json!({})), "grown {}");
    assert_eq!(fake.seen().starts().len(), 1);
}

#[test]
fn both_eras_answer_calls() {
    for (era, word, protocol) in [
        ("legacy", "legacy", "2025-11-25"),
        ("modern", "modern", "2026-07-28"),
        ("both", "modern", "2026-07-28"),
    ] {
        let (bridge, fake) = recorded(Fake::new("ok").option("era", era));
        bridge.wait_for_tool("mcp__fake__echo");
        assert_eq!(
            bridge.call_text("mcp__fake__echo", &json!({"era": era})),
            json!({"era": era}).to_string()
        );
        let connection = bridge.server("fake").unwrap()["connection"].clone();
        assert_eq!(
            (&connection["era"], &connection["protocol"]),
            (&json!(word), &json!(protocol)),
            "{era}"
        );
        let initialized = fake.seen().messages("initialize").len();
        assert_eq!(initialized, usize::from(word == "legacy"), "{era}");
    }
}

#[test]
fn how_far_a_call_has_come_is_told_while_it_runs() {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__progress");
    let mut events = Connection::open(&bridge.tcp()).events("/mcp/events", &[]);
    bridge.call_text("mcp__fake__progress", &json!({"steps": 3, "ms": 10}));
    let told = events.next("progress", |event| event.name == "call_progress");
    assert!(told.data["progress"].as_f64().is_some(), "{:?}", told.data);
    let done = events.next("the end", |event| event.name == "call_finished");
    assert_eq!(told.data["call"], done.data["call"]);
}

#[test]
fn what_an_upstream_says_of_a_calls_progress_is_the_owners_and_holds_no_secret() {
    let fake = Fake::new("ok").member("env", json!({"API_KEY": "plain-looking-value"}));
    let bridge = Daemon::serving(Home::new(), [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__progress");
    let mut owner = Connection::open(&bridge.local()).events("/mcp/events", &[]);
    let mut walk_in = Connection::open(&bridge.tcp()).events("/mcp/events", &[]);
    let input = json!({"steps": 3, "ms": 10, "say": "copying with plain-looking-value now"});
    bridge.call_text("mcp__fake__progress", &input);
    let told = owner.next("progress", |event| event.name == "call_progress");
    assert_eq!(told.data["message"], "copying with [REDACTED] now", "{told:?}");
    let told = walk_in.next("progress", |event| event.name == "call_progress");
    assert!(
        told.data["message"].is_null() && told.data["progress"].is_number(),
        "{told:?}"
    );
    assert_eq!(told.id, None, "it is not given again to who resumes");
}

#[test]
fn a_refusal_to_read_shows_no_secret() {
    let fake = Fake::new("ok").option("offers", "standard");
    let fake = fake.member("env", json!({"API_KEY": "plain-looking-value"}));
    let bridge = Daemon::serving(Home::new(), [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    let read = json!({"server": "fake", "uri": "fake://telling"});
    let told = bridge
        .owner_post("/mcp/resources/read", &read)
        .refused(502, "upstream_error");
    assert!(told.contains("no entry with [REDACTED]"), "{told}");
}

#[test]
fn a_program_that_ends_in_the_first_call_of_its_session_was_used_and_is_replaced() {
    let home = Home::new();
    let fake = Fake::new("ok").record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__die");
    // Its list is known now, so that nothing starts before the call.
    let bridge = bridge.restart();
    let before = fake.seen().starts().len();
    bridge.call("mcp__fake__die", &json!({})).refused(502, "upstream_error");
    eventually("a new session", SOON, || {
        (fake.seen().starts().len() == before + 2 && bridge.status("fake") == "connected").then_some(())
    });
}
