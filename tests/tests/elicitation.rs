//! What upstreams ask of the person: shown to the owner, answered once, bound to the call that it belongs to.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use neuron_tests::{
    asking::{
        answer, asking, bridge_in, call, form, given, page, path_of, wait_for_question, wait_for_questions, waiting,
    },
    daemon::Daemon,
    fake::HttpFake,
    home::Home,
    http::Connection,
    wait::{SOON, eventually, eventually_equals},
};
use serde_json::{Value, json};

/// Every way in which a question can travel, each a connector of one bridge.
fn every_way() -> (Daemon, Vec<HttpFake>) {
    let home = Home::new();
    let http = |name: &str, era: &str, more: &[(&str, &str)]| {
        let options = [&[("list", "asking"), ("era", era)], more].concat();
        HttpFake::start(home.path(), name, &options)
    };
    let sites = vec![
        http("http_legacy", "legacy", &[("answers", "sse")]),
        http("http_modern", "modern", &[]),
        http("old_sse", "legacy", &[("old-sse", "405")]),
    ];
    let mut entries = vec![
        ("stdio_legacy", asking("legacy").entry()),
        ("stdio_modern", asking("modern").entry()),
        ("http_legacy", sites[0].entry()),
        ("http_modern", sites[1].entry()),
    ];
    entries.push(("old_sse", json!({"transport": "sse", "url": sites[2].url_at("/sse")})));
    let ids: Vec<_> = entries.iter().map(|(id, _)| *id).collect();
    let bridge = Daemon::serving(home, entries);
    for id in ids {
        bridge.wait_for_tool(&format!("mcp__{id}__ask"));
    }
    (bridge, sites)
}

const WAYS: [&str; 5] = ["stdio_legacy", "stdio_modern", "http_legacy", "http_modern", "old_sse"];

#[test]
fn a_call_waits_for_the_person_and_returns_what_was_entered_in_every_way_it_may_travel() {
    let (bridge, _sites) = every_way();
    for id in WAYS {
        std::thread::scope(|scope| {
            let mut events = Connection::open(&bridge.tcp()).events("/mcp/events", &[]);
            let call = call(scope, &bridge, id, json!({"q": form()}));
            let question = wait_for_question(&bridge);
            assert_eq!(
                (&question["kind"], &question["state"], &question["server"]),
                (&json!("elicitation"), &json!("waiting"), &json!(id)),
                "{question}"
            );
            let asks = &question["question"]["asks"];
            assert_eq!(asks["mode"], "form");
            assert_eq!(asks["message"], "Where to?\nSay it.");
            assert_eq!(asks["schema"], form()["requestedSchema"], "{id}: as it was written");
            assert_eq!(asks["defaults"], json!({"days": 3, "meal": "v"}));

            let wrong = answer(
                &bridge,
                &question,
                json!({"answer": "approve", "content": {"city": "X"}}),
            );
            assert!(
                wrong.refused(400, "bad_request").contains("\"city\""),
                "{}",
                wrong.text()
            );
            let needed = answer(&bridge, &question, json!({"answer": "approve"}));
            assert!(
                needed.refused(400, "bad_request").contains("\"city\""),
                "{}",
                needed.text()
            );

            let content = json!({"city": "Köln", "days": 12});
            let taken = answer(&bridge, &question, json!({"answer": "approve", "content": content}));
            assert_eq!(taken.ok()["approval"]["state"], "approved");
            assert_eq!(
                given(&call.join().unwrap()),
                json!({"q": {"action": "accept", "content": content}}),
                "{id}"
            );
            let again = answer(&bridge, &question, json!({"answer": "deny"}));
            again.refused(409, "already_exists");
            assert_eq!(bridge.owner_get(&path_of(&question)).ok()["state"], "approved");
            for name in ["approval_requested", "approval_resolved"] {
                let event = events.next(name, |event| event.name == name);
                assert_eq!(event.data["approval"], question["id"], "{}", event.data);
                assert_eq!(event.data["caller"], "walk-in");
            }
        });
    }
}

#[test]
fn a_no_and_a_question_put_away_reach_the_upstream_and_its_call_goes_on() {
    let (bridge, _sites) = every_way();
    for id in WAYS {
        for (said, action) in [("deny", "decline"), ("cancel", "cancel")] {
            std::thread::scope(|scope| {
                let call = call(scope, &bridge, id, json!({"q": form()}));
                let question = wait_for_question(&bridge);
                assert_eq!(
                    answer(&bridge, &question, json!({"answer": said})).ok()["approval"]["state"],
                    "denied"
                );
                assert_eq!(given(&call.join().unwrap()), json!({"q": {"action": action}}), "{id}");
            });
        }
    }
}

#[test]
fn a_yes_without_values_sends_what_the_form_proposes() {
    for era in ["legacy", "modern"] {
        let (bridge, _) = bridge_in(era);
        std::thread::scope(|scope| {
            let mut form = form();
            form["requestedSchema"]["properties"]["city"]["default"] = "Bonn".into();
            let call = call(scope, &bridge, "x", json!({"q": form}));
            let question = wait_for_question(&bridge);
            answer(&bridge, &question, json!({"answer": "approve"})).ok();
            let content = json!({"city": "Bonn", "days": 3, "meal": "v"});
            assert_eq!(
                given(&call.join().unwrap()),
                json!({"q": {"action": "accept", "content": content}})
            );
        });
    }
}

#[test]
fn the_time_of_a_call_stands_still_while_it_waits_for_the_person() {
    for era in ["legacy", "modern"] {
        let (bridge, _) = bridge_in(era);
        let short = Duration::from_millis(300);
        std::thread::scope(|scope| {
            let body = json!({
                "name": "mcp__x__ask", "input": {"questions": {"q": form()}},
                "timeout_ms": u64::try_from(short.as_millis()).unwrap(),
            });
            let bridge = &bridge;
            let begun = Instant::now();
            let call = scope.spawn(move || bridge.post("/mcp/call", &body));
            let question = wait_for_question(bridge);
            // Longer than the call may take; nothing tells that time went by but time.
            eventually("twice the call's time", SOON, || {
                (begun.elapsed() > short * 2).then_some(())
            });
            assert!(!call.is_finished());
            answer(bridge, &question, json!({"answer": "deny"})).ok();
            assert_eq!(
                given(&call.join().unwrap()),
                json!({"q": {"action": "decline"}}),
                "{era}"
            );
        });
    }
}

#[test]
fn more_time_is_given_when_it_is_asked_for() {
    let (bridge, _) = bridge_in("legacy");
    std::thread::scope(|scope| {
        let call = call(scope, &bridge, "x", json!({"q": form()}));
        let question = wait_for_question(&bridge);
        let time = |question: &Value| question["expires_at"].as_u64().unwrap() - question["asked_at"].as_u64().unwrap();
        assert_eq!(time(&question), 120_000);
        let longer = answer(&bridge, &question, json!({"answer": "longer"})).ok();
        assert_eq!(time(&longer["approval"]), 600_000);
        assert_eq!(longer["approval"]["state"], "waiting");
        answer(&bridge, &question, json!({"answer": "deny"})).ok();
        call.join().unwrap();
    });
}

#[test]
fn a_caller_that_goes_away_takes_its_question_along_and_the_upstream_is_told() {
    for era in ["legacy", "modern"] {
        let (bridge, seen) = bridge_in(era);
        let body = json!({"name": "mcp__x__ask", "input": {"questions": {"q": form()}}}).to_string();
        let seen_by_the_owner = AtomicBool::new(false);
        let asked = std::thread::scope(|scope| {
            let is_enough = || seen_by_the_owner.load(Ordering::SeqCst);
            let connection = || Connection::open(&bridge.tcp());
            scope.spawn(move || connection().abandon("POST", "/mcp/call", body.as_bytes(), is_enough));
            let asked = wait_for_question(&bridge);
            seen_by_the_owner.store(true, Ordering::SeqCst);
            asked
        });
        eventually_equals("the state", json!("expired"), SOON, || {
            bridge.owner_get(&path_of(&asked)).ok()["state"].clone()
        });
        assert!(waiting(&bridge).is_empty());
        answer(&bridge, &asked, json!({"answer": "approve"})).refused(403, "approval_timeout");
        if era == "legacy" {
            // Its call is cancelled and its question answered, so that nothing waits over there.
            seen.wait_for("notifications/cancelled", 1);
            eventually("the answer to its question", SOON, || {
                let is_cancel = |line: &String| line.contains("\"ask-0\"") && line.contains("\"cancel\"");
                seen.lines().iter().any(is_cancel).then_some(())
            });
        }
        // The session goes on.
        assert_eq!(bridge.call_text("mcp__x__echo", &json!({"n": 1})), "{\"n\":1}");
    }
}

#[test]
fn a_connector_that_is_turned_off_ends_its_questions() {
    for era in ["legacy", "modern"] {
        let (bridge, _) = bridge_in(era);
        std::thread::scope(|scope| {
            let call = call(scope, &bridge, "x", json!({"q": form()}));
            let question = wait_for_question(&bridge);
            bridge
                .owner_post("/mcp/servers/toggle", &json!({"id": "x", "enabled": false}))
                .ok();
            let lost = call.join().unwrap();
            assert_ne!(lost.status, 200, "{}", lost.text());
            eventually_equals("the state", json!("expired"), SOON, || {
                bridge.owner_get(&path_of(&question)).ok()["state"].clone()
            });
        });
        let home = bridge.terminate();
        drop(home);
    }
}

#[test]
fn a_bridge_that_stops_does_not_wait_for_the_person() {
    for era in ["legacy", "modern"] {
        let (bridge, _) = bridge_in(era);
        let port = bridge.tcp();
        let body = json!({"name": "mcp__x__ask", "input": {"questions": {"q": form()}}}).to_string();
        let call =
            std::thread::spawn(move || Connection::open(&port).try_send("POST", "/mcp/call", &[], body.as_bytes()));
        wait_for_question(&bridge);
        bridge.terminate();
        let answered = call.join().unwrap();
        assert!(answered.is_err() || answered.is_ok_and(|answer| answer.status != 200));
    }
}

#[test]
fn a_newer_upstream_that_asks_as_older_ones_do_is_answered_while_its_call_is_under_way() {
    let (bridge, _) = bridge_in("both");
    assert_eq!(bridge.call_text("mcp__x__echo", &json!({})), "{}");
    assert_eq!(bridge.server("x").unwrap()["connection"]["era"], "modern");
    std::thread::scope(|scope| {
        let call = call(scope, &bridge, "x", json!({"q": form()}));
        let question = wait_for_question(&bridge);
        answer(&bridge, &question, json!({"answer": "deny"})).ok();
        assert_eq!(given(&call.join().unwrap()), json!({"q": {"action": "decline"}}));
    });
}

#[test]
fn two_calls_at_once_get_each_its_own_answer() {
    for era in ["legacy", "modern"] {
        let (bridge, _) = bridge_in(era);
        std::thread::scope(|scope| {
            let ask = |message: &str| {
                let mut form = form();
                form["message"] = message.into();
                json!({"q": form})
            };
            let first = call(scope, &bridge, "x", ask("first"));
            wait_for_questions(&bridge, 1);
            let second = call(scope, &bridge, "x", ask("second"));
            let questions = wait_for_questions(&bridge, 2);
            for (question, city) in questions.iter().rev().zip(["Zwei", "Eins"]) {
                let content = json!({"city": city});
                answer(&bridge, question, json!({"answer": "approve", "content": content})).ok();
            }
            for (call, city) in [(first, "Eins"), (second, "Zwei")] {
                assert_eq!(
                    given(&call.join().unwrap())["q"]["content"],
                    json!({"city": city}),
                    "{era}"
                );
            }
        });
    }
}

#[test]
fn an_older_question_that_may_be_of_either_call_is_nobodys_but_the_owners() {
    let (bridge, _) = bridge_in("legacy");
    std::thread::scope(|scope| {
        let first = call(scope, &bridge, "x", json!({"q": form()}));
        let certain = wait_for_question(&bridge);
        let second = call(scope, &bridge, "x", json!({"q": form()}));
        let uncertain = wait_for_questions(&bridge, 2).remove(1);
        let walk_ins = bridge.get("/mcp/approvals").ok();
        let seen: Vec<_> = walk_ins["approvals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|q| &q["id"])
            .collect();
        assert_eq!(seen, [&certain["id"]]);
        bridge.get(&path_of(&uncertain)).refused(404, "not_found");
        for question in [certain, uncertain] {
            answer(&bridge, &question, json!({"answer": "deny"})).ok();
        }
        for call in [first, second] {
            call.join().unwrap().ok();
        }
    });
}

#[test]
fn several_questions_of_one_result_are_asked_at_once_and_answered_by_their_keys() {
    let (bridge, _) = bridge_in("modern");
    std::thread::scope(|scope| {
        let call = call(
            scope,
            &bridge,
            "x",
            json!({"a": form(), "b": page("https://example.com/x", "1")}),
        );
        let questions = wait_for_questions(&bridge, 2);
        for question in &questions {
            let said = match question["question"]["asks"]["mode"].as_str() {
                Some("url") => json!({"answer": "approve"}),
                _ => json!({"answer": "deny"}),
            };
            answer(&bridge, question, said).ok();
        }
        assert_eq!(
            given(&call.join().unwrap()),
            json!({"a": {"action": "decline"}, "b": {"action": "accept"}})
        );
    });
}

#[test]
fn a_resource_and_a_prompt_wait_for_the_person_as_a_call_does() {
    let (bridge, _) = bridge_in("modern");
    for (path, body) in [
        ("/mcp/resources/read", json!({"server": "x", "uri": "ask:word"})),
        (
            "/mcp/prompts/get",
            json!({"server": "x", "name": "word", "arguments": {}}),
        ),
    ] {
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| bridge.owner_post(path, &body));
            let question = wait_for_question(&bridge);
            let content = json!({"word": "Apfel"});
            answer(&bridge, &question, json!({"answer": "approve", "content": content})).ok();
            let told = asked.join().unwrap().ok().to_string();
            assert!(told.contains(r#"\"Apfel\" true"#), "{told}");
        });
    }
}

#[test]
fn an_upstream_that_asks_again_and_again_or_for_what_was_not_offered_fails_its_call_alone() {
    let (bridge, seen) = bridge_in("modern");
    let again = |times: u64| bridge.call("mcp__x__again", &json!({"times": times}));
    assert_eq!(again(2).ok()["text"], "asked 2 times again");
    let before = seen.messages("tools/call").len();
    let endless = bridge.post(
        "/mcp/call",
        &json!({"name": "mcp__x__again", "input": {"times": 1000}, "timeout_ms": 2_000}),
    );
    assert!(matches!(endless.status, 502 | 504), "{}", endless.text());
    assert!(seen.messages("tools/call").len() - before <= 11, "bounded");
    let sampling = bridge.call("mcp__x__sample", &json!({}));
    assert!(
        sampling
            .refused(502, "upstream_error")
            .contains("sampling/createMessage"),
        "{}",
        sampling.text()
    );
    assert_eq!(bridge.call_text("mcp__x__echo", &json!({"n": 1})), "{\"n\":1}");
}

#[test]
fn a_form_for_a_secret_is_declined_at_once_and_only_the_log_tells() {
    for era in ["legacy", "modern"] {
        let (bridge, _) = bridge_in(era);
        let secret = json!({
            "message": "Sign in",
            "requestedSchema": {"type": "object", "properties": {"api_key": {"type": "string"}}},
        });
        let declined = bridge.call("mcp__x__ask", &json!({"questions": {"q": secret}}));
        assert_eq!(given(&declined), json!({"q": {"action": "decline"}}), "{era}");
        assert!(waiting(&bridge).is_empty());
        let log = bridge.owner_get("/mcp/servers/x/log").ok().to_string();
        assert!(log.contains("asks for a secret") && log.contains("api_key"), "{log}");
    }
}

#[test]
fn what_repeats_a_secret_of_the_connector_is_not_shown_anywhere() {
    let home = Home::new();
    let fake = asking("legacy").member("env", json!({"SERVICE_TOKEN": "SENTINEL-held-value"}));
    let bridge = Daemon::serving(home, [("x", fake.entry())]);
    bridge.wait_for_tool("mcp__x__ask");
    let mut form = form();
    form["message"] = "Is SENTINEL-held-value yours?".into();
    let declined = bridge.call("mcp__x__ask", &json!({"questions": {"q": form}}));
    assert_eq!(given(&declined), json!({"q": {"action": "decline"}}));
    let log = bridge.owner_get("/mcp/servers/x/log").ok().to_string();
    assert!(log.contains("repeats a secret") && !log.contains("SENTINEL"), "{log}");
}

#[test]
fn a_walk_in_sees_how_its_own_questions_stand_and_answers_none() {
    let (bridge, _) = bridge_in("modern");
    std::thread::scope(|scope| {
        let mine = call(scope, &bridge, "x", json!({"q": form()}));
        let question = wait_for_question(&bridge);
        let owner = &bridge;
        let input = json!({"questions": {"q": form()}});
        let owners =
            scope.spawn(move || owner.owner_post("/mcp/call", &json!({"name": "mcp__x__ask", "input": input})));
        let other = wait_for_questions(&bridge, 2).remove(1);
        let list = bridge.get("/mcp/approvals").ok();
        assert_eq!(list["approvals"].as_array().unwrap().len(), 1, "{list}");
        assert_eq!(list["approvals"][0]["id"], question["id"]);
        assert!(!list.to_string().contains("Where to?"), "{list}");
        assert_eq!(bridge.get(&path_of(&question)).ok()["state"], "waiting");
        bridge.get(&path_of(&other)).refused(404, "not_found");
        for question in [&question, &other] {
            for said in ["approve", "deny", "longer"] {
                bridge
                    .post(&path_of(question), &json!({"answer": said}))
                    .refused(403, "scope_missing");
            }
        }
        assert_eq!(waiting(&bridge).len(), 2);
        for question in [question, other] {
            answer(&bridge, &question, json!({"answer": "deny"})).ok();
        }
        mine.join().unwrap().ok();
        owners.join().unwrap().ok();
    });
}

#[test]
fn no_connector_uses_up_what_a_person_can_be_asked_and_what_is_too_much_is_put_away_at_once() {
    let bridge = Daemon::serving(
        Home::new(),
        [("x", asking("modern").entry()), ("y", asking("modern").entry())],
    );
    for id in ["x", "y"] {
        bridge.wait_for_tool(&format!("mcp__{id}__ask"));
    }
    std::thread::scope(|scope| {
        let many: Value = (0..7)
            .map(|n| (format!("q{n}"), form()))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let call = call(scope, &bridge, "x", many);
        let questions = wait_for_questions(&bridge, 2);
        let third = bridge.call("mcp__x__ask", &json!({"questions": {"q": form()}}));
        assert_eq!(given(&third), json!({"q": {"action": "cancel"}}));
        // Another connector's question reaches the same caller all the same.
        let other = neuron_tests::asking::call(scope, &bridge, "y", json!({"q": form()}));
        let asked = wait_for_questions(&bridge, 3).remove(2);
        assert_eq!(asked["server"], "y");
        answer(&bridge, &asked, json!({"answer": "deny"})).ok();
        assert_eq!(given(&other.join().unwrap()), json!({"q": {"action": "decline"}}));
        for question in &questions {
            answer(&bridge, question, json!({"answer": "deny"})).ok();
        }
        let given = given(&call.join().unwrap());
        let count = |action: &str| {
            given
                .as_object()
                .unwrap()
                .values()
                .filter(|a| a["action"] == action)
                .count()
        };
        assert_eq!((count("decline"), count("cancel")), (2, 5), "{given}");
    });
}

#[test]
fn an_upstream_that_asks_without_a_call_is_heard_twice_and_no_more() {
    let (bridge, seen) = bridge_in("legacy");
    let input = json!({"times": 50, "question": form()});
    assert_eq!(bridge.call_text("mcp__x__nag", &input), "from now on");
    let mut shown = 0;
    eventually("an answer to each", SOON, || {
        for question in waiting(&bridge) {
            shown += usize::from(answer(&bridge, &question, json!({"answer": "deny"})).status == 200);
        }
        let is_answer = |line: &&String| line.contains("\"ask-") && line.contains("\"action\"");
        (seen.lines().iter().filter(is_answer).count() == 50).then_some(())
    });
    // The first may have come while its call was still under way.
    assert!((2..=3).contains(&shown), "{shown} were shown");
    // The next call is another matter.
    std::thread::scope(|scope| {
        let call = call(scope, &bridge, "x", json!({"q": form()}));
        let question = wait_for_question(&bridge);
        answer(&bridge, &question, json!({"answer": "deny"})).ok();
        assert_eq!(given(&call.join().unwrap()), json!({"q": {"action": "decline"}}));
    });
}

#[test]
fn the_command_line_shows_questions_and_answers_them() {
    let (bridge, _) = bridge_in("legacy");
    let text = |output: &std::process::Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let none = bridge.command(&["approvals"]);
    assert!(
        none.status.success() && text(&none).contains("Nothing waits"),
        "{none:?}"
    );
    std::thread::scope(|scope| {
        let call = call(scope, &bridge, "x", json!({"q": form()}));
        let question = wait_for_question(&bridge);
        let id = question["id"].as_str().unwrap();
        let shown = text(&bridge.command(&["approvals"]));
        for part in [id, "x", "Where to?", "city", "days", "Vegetarian"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let wrong = bridge.command(&["approve", id, "city=X"]);
        assert!(!wrong.status.success());
        let stderr = String::from_utf8_lossy(&wrong.stderr).into_owned();
        assert!(stderr.contains("city"), "{stderr}");
        let taken = bridge.command(&["approve", id, "city=Ulm", "days=2"]);
        assert!(taken.status.success(), "{taken:?}");
        let content = json!({"days": 2, "meal": "v", "city": "Ulm"});
        assert_eq!(given(&call.join().unwrap())["q"]["content"], content);
        let again = bridge.command(&["deny", id]);
        assert!(!again.status.success());
    });
    std::thread::scope(|scope| {
        let call = call(scope, &bridge, "x", json!({"q": form()}));
        let question = wait_for_question(&bridge);
        let denied = bridge.command(&["deny", question["id"].as_str().unwrap()]);
        assert!(denied.status.success(), "{denied:?}");
        assert_eq!(given(&call.join().unwrap()), json!({"q": {"action": "decline"}}));
    });
}
