//! A call of a program without a token waits for the person, and a yes covers exactly what was shown.

use std::{
    path::{Path, PathBuf},
    thread::{Scope, ScopedJoinHandle},
};

use neuron_tests::{
    asking::{wait_for_question, wait_for_questions, waiting},
    daemon::{Daemon, Setup},
    fake::{Fake, Seen},
    home::{Home, config_text},
    http::{Answer, Connection},
    inline::Inline,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

/// A bridge that asks about calls, with one upstream `s`.
struct Asked {
    bridge: Daemon,
    seen: Seen,
}

impl Asked {
    fn start() -> Self {
        Self::with(Home::new(), |fake| fake)
    }

    fn with(home: Home, more: impl FnOnce(Fake) -> Fake) -> Self {
        let fake = more(Fake::new("ok").record(&home.record("s")));
        home.write_config(&config_text([("s", fake.entry())]));
        let bridge = Daemon::start_in(home, Setup::default().argument("--ask"));
        eventually("a tool list", SOON, || (!bridge.tool_names().is_empty()).then_some(()));
        Self {
            bridge,
            seen: fake.seen(),
        }
    }

    /// Calls on a thread of its own.
    fn call<'s>(&'s self, scope: &'s Scope<'s, '_>, tool: &str, input: Value) -> ScopedJoinHandle<'s, Answer> {
        let name = format!("mcp__s__{tool}");
        scope.spawn(move || self.bridge.call(&name, &input))
    }

    fn says(&self, question: &Value, body: &Value) -> Answer {
        let id = question["id"].as_str().expect("an id");
        self.bridge.owner_post(&format!("/mcp/approvals/{id}"), body)
    }

    fn arrived(&self) -> usize {
        self.seen.messages("tools/call").len()
    }

    fn rules(&self) -> Vec<Value> {
        let body = self.bridge.owner_get("/mcp/rules").ok();
        body["rules"].as_array().expect("a list").clone()
    }
}

#[test]
fn a_call_waits_with_all_that_it_would_send_and_once_is_once() {
    let asked = Asked::start();
    std::thread::scope(|scope| {
        let mut events = Connection::open(&asked.bridge.tcp()).events("/mcp/events", &[]);
        let long = "x".repeat(2_000);
        let call = asked.call(scope, "echo", json!({"text": long, "n": 7}));
        let question = wait_for_question(&asked.bridge);
        assert_eq!(
            (&question["kind"], &question["state"]),
            (&json!("call"), &json!("waiting"))
        );
        assert_eq!(
            question["expires_at"].as_u64().unwrap() - question["asked_at"].as_u64().unwrap(),
            120_000
        );
        let shown = &question["question"]["call"];
        assert_eq!(shown["subject"]["tool"], "echo");
        assert_eq!(shown["subject"]["exposed_name"], "mcp__s__echo");
        assert_eq!(shown["who"]["kind"], "walk_in");
        assert!(
            shown["who"]["program"]["path"]
                .as_str()
                .unwrap()
                .contains("approvals_of_calls"),
            "{shown}"
        );
        assert_eq!(shown["is_local"], true);
        let arguments = shown["arguments"].as_array().unwrap();
        let names: Vec<_> = arguments.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["n", "text"], "short ones first");
        assert_eq!(
            (&arguments[1]["value"], &arguments[1]["size"]),
            (&json!(long), &json!(2_000))
        );
        assert_eq!(asked.arrived(), 0, "nothing was sent yet");

        // Whoever asked sees that it waits, and no more.
        let path = format!("/mcp/approvals/{}", question["id"].as_str().unwrap());
        let own = asked.bridge.get(&path).ok();
        assert_eq!((&own["state"], &own["question"]), (&json!("waiting"), &Value::Null));
        asked
            .bridge
            .post(&path, &json!({"answer": "approve"}))
            .refused(403, "scope_missing");

        asked.says(&question, &json!({"answer": "approve"})).ok();
        assert_eq!(call.join().unwrap().ok()["ok"], true);
        assert_eq!(asked.arrived(), 1);
        for name in ["approval_requested", "approval_resolved"] {
            let event = events.next(name, |event| event.name == name);
            assert_eq!(event.data["approval"], question["id"]);
        }
        let again = asked.call(scope, "echo", json!({"text": long, "n": 7}));
        let next = wait_for_question(&asked.bridge);
        asked.says(&next, &json!({"answer": "deny"})).ok();
        again.join().unwrap().refused(403, "denied");
        assert_eq!(asked.arrived(), 1);
    });
}

#[test]
fn each_call_is_told_once_with_who_called_and_who_let_it_or_did_not() {
    let asked = Asked::start();
    let told = |query: &str| {
        let page = asked.bridge.owner_get(&format!("/mcp/activity?{query}")).ok();
        page["entries"].as_array().unwrap().clone()
    };
    std::thread::scope(|scope| {
        for (tool, answer) in [("cwd", "approve"), ("echo", "deny"), ("argv", "block")] {
            let call = asked.call(scope, tool, json!({}));
            let question = wait_for_question(&asked.bridge);
            asked.says(&question, &json!({"answer": answer})).ok();
            call.join().unwrap();
        }
        asked.bridge.call("mcp__s__argv", &json!({})).refused(403, "denied");
    });
    let calls = told("kind=call");
    let ends: Vec<_> = calls
        .iter()
        .rev()
        .map(|call| {
            let by = &call["allowed_by"];
            let how = by["answer"].as_str().or(by["name"].as_str()).unwrap_or_default();
            (call["outcome"].as_str().unwrap(), how.to_owned())
        })
        .collect();
    let rule = |how: &str| how.contains(" may never use argv of ");
    assert_eq!(ends[..2], [("ok", "once".to_owned()), ("denied", "denied".to_owned())]);
    assert!(ends[2].1 == "denied" || rule(&ends[2].1), "{ends:?}");
    assert!(ends[3].0 == "denied" && rule(&ends[3].1), "{ends:?}");
    assert_eq!(ends.len(), 4);
    for call in &calls {
        let name = call["who"]["program_name"].as_str().unwrap_or_default();
        assert!(name.contains("approvals_of_calls"), "{call}");
    }
    assert_eq!(told("kind=question"), [Value::Null; 0]);
    let made = told("kind=review").remove(0);
    assert_eq!((&made["what"]["of"], &made["outcome"]), (&json!("rule"), &json!("ok")));
    assert!(rule(made["what"]["subject"].as_str().unwrap()), "{made}");
    let withdraw = format!("/mcp/rules/{}", asked.rules()[0]["rule"]["id"].as_str().unwrap());
    Connection::open(&asked.bridge.local())
        .send("DELETE", &withdraw, &[], b"")
        .ok();
    let withdrawn = told("kind=review").remove(0);
    assert_eq!(
        (&withdrawn["what"]["of"], &withdrawn["outcome"]),
        (&json!("rule_withdrawn"), &json!("ok"))
    );
}

#[test]
fn until_i_quit_holds_for_this_tool_whatever_the_arguments_and_not_after_a_restart() {
    let asked = Asked::start();
    std::thread::scope(|scope| {
        let first = asked.call(scope, "echo", json!({"n": 1}));
        let second = asked.call(scope, "echo", json!({"n": 2}));
        let question = wait_for_questions(&asked.bridge, 2).remove(0);
        asked.says(&question, &json!({"answer": "until_quit"})).ok();
        first.join().unwrap().ok();
        // It asked for what is allowed by now.
        second.join().unwrap().ok();
        asked.bridge.call("mcp__s__echo", &json!({"n": 3})).ok();
        let other = asked.call(scope, "argv", json!({}));
        let question = wait_for_question(&asked.bridge);
        asked.says(&question, &json!({"answer": "deny"})).ok();
        other.join().unwrap().refused(403, "denied");
    });
    let rules = asked.rules();
    assert_eq!((rules.len(), &rules[0]["rule"]["lasts"]), (1, &json!("this_run")));
    assert_eq!(
        asked.bridge.get("/mcp/auto-approved").ok()["tools"],
        json!(["mcp__s__echo"])
    );
    let asked = Asked {
        bridge: asked.bridge.restart(),
        ..asked
    };
    assert_eq!(asked.rules(), [Value::Null; 0]);
    std::thread::scope(|scope| {
        let call = asked.call(scope, "echo", json!({"n": 1}));
        let question = wait_for_question(&asked.bridge);
        asked.says(&question, &json!({"answer": "deny"})).ok();
        call.join().unwrap().refused(403, "denied");
    });
}

#[test]
fn always_makes_a_rule_for_these_arguments_that_outlives_a_restart_until_it_is_withdrawn() {
    let asked = Asked::start();
    let any = json!({
        "effect": "allow", "server": "s", "kind": "tools", "patterns": ["cwd"], "arguments": {"which": "any"},
        "caller": {"who": "anyone"}, "lasts": "kept",
    });
    std::thread::scope(|scope| {
        let call = asked.call(scope, "cwd", json!({}));
        let question = wait_for_question(&asked.bridge);
        let wrong = json!({"answer": "always", "rule": {
            "effect": "allow", "server": "s", "kind": "tools", "patterns": ["no_such"], "arguments": {"which": "any"},
            "caller": {"who": "anyone"}, "lasts": "kept",
        }});
        asked.says(&question, &wrong).refused(400, "bad_request");
        assert_eq!(waiting(&asked.bridge).len(), 1, "it goes on waiting");
        asked.says(&question, &json!({"answer": "always", "rule": any})).ok();
        call.join().unwrap().ok();
    });
    let asked = Asked {
        bridge: asked.bridge.restart(),
        ..asked
    };
    asked.bridge.wait_for_tool("mcp__s__cwd");
    let rule = asked.rules().remove(0);
    assert_eq!(rule["sleeps"], Value::Null, "{rule}");
    asked.bridge.call("mcp__s__cwd", &json!({})).ok();
    let withdraw = format!("/mcp/rules/{}", rule["rule"]["id"].as_str().unwrap());
    let done = Connection::open(&asked.bridge.tcp()).send("DELETE", &withdraw, &[], b"");
    done.refused(403, "scope_missing");
    Connection::open(&asked.bridge.local())
        .send("DELETE", &withdraw, &[], b"")
        .ok();
    std::thread::scope(|scope| {
        let call = asked.call(scope, "cwd", json!({}));
        let question = wait_for_question(&asked.bridge);
        asked.says(&question, &json!({"answer": "block"})).ok();
        call.join().unwrap().refused(403, "denied");
        asked
            .bridge
            .call("mcp__s__cwd", &json!({"n": 1}))
            .refused(403, "denied");
    });
    assert_eq!(asked.rules()[0]["rule"]["effect"], "deny");
}

#[test]
fn what_a_call_left_out_is_left_out_in_the_rule_that_its_question_makes() {
    let home = Home::new();
    let told = home.path().join("told.json");
    let properties = json!({"path": {"type": "string"}, "force": {"type": "boolean"}});
    let tool = json!({"name": "remove", "inputSchema": {"type": "object", "properties": properties}});
    std::fs::write(&told, json!({"tools": [tool]}).to_string()).unwrap();
    let asked = Asked::with(home, |fake| fake.option("list", "told").option("told", told.display()));
    std::thread::scope(|scope| {
        let call = asked.call(scope, "remove", json!({"path": "a"}));
        let question = wait_for_question(&asked.bridge);
        asked.says(&question, &json!({"answer": "always"})).ok();
        call.join().unwrap().ok();
        asked.bridge.call("mcp__s__remove", &json!({"path": "a"})).ok();
        let sentence = asked.rules()[0]["sentence"].as_str().unwrap().to_owned();
        assert!(sentence.contains("“force” is left out"), "{sentence}");
        for input in [
            json!({"path": "a", "force": true}),
            json!({"path": "a", "force": null}),
            json!({"path": "a", "more": 1}),
        ] {
            let call = asked.call(scope, "remove", input);
            let question = wait_for_question(&asked.bridge);
            asked.says(&question, &json!({"answer": "deny"})).ok();
            call.join().unwrap().refused(403, "denied");
        }
    });
    assert_eq!(asked.arrived(), 2);
}

#[test]
fn a_question_shows_the_end_of_the_longest_argument_too() {
    let asked = Asked::start();
    let end = "; DROP TABLE everything";
    let mut many = vec![json!(0); 450_000];
    many.push(json!(end));
    for sent in [json!(format!("{}{end}", "a".repeat(900_000))), json!(many)] {
        std::thread::scope(|scope| {
            let call = asked.call(scope, "echo", json!({"sent": sent}));
            let question = wait_for_question(&asked.bridge);
            let shown = &question["question"]["call"]["arguments"][0];
            assert!(shown["value"].as_str().unwrap().contains(end));
            assert_eq!(
                shown["size"].as_u64().unwrap(),
                shown["value"].as_str().unwrap().len() as u64
            );
            asked.says(&question, &json!({"answer": "deny"})).ok();
            call.join().unwrap().refused(403, "denied");
        });
    }
}

#[test]
fn of_a_hundred_identical_calls_one_yes_runs_one() {
    let asked = Asked::start();
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..100).map(|_| asked.call(scope, "echo", json!({"n": 1}))).collect();
        let over = || calls.iter().filter(|call| call.is_finished()).count();
        eventually("those that find no room", SOON, || (over() == 95).then_some(()));
        let questions = wait_for_questions(&asked.bridge, 5);
        assert_eq!(questions[0]["question"]["call"]["same"], 4);
        asked.says(&questions[0], &json!({"answer": "approve"})).ok();
        eventually("the call", SOON, || (asked.arrived() == 1).then_some(()));
        for question in wait_for_questions(&asked.bridge, 4) {
            asked.says(&question, &json!({"answer": "deny"})).ok();
        }
        let mut codes: Vec<_> = calls
            .into_iter()
            .map(|call| {
                let body = call.join().unwrap().json();
                body["code"].as_str().unwrap_or("ok").to_owned()
            })
            .collect();
        codes.sort();
        let count = |code: &str| codes.iter().filter(|one| *one == code).count();
        assert_eq!(
            (count("ok"), count("denied"), count("rate_limited")),
            (1, 4, 95),
            "{codes:?}"
        );
        assert_eq!(asked.arrived(), 1);
    });
}

#[test]
fn a_program_that_starts_itself_anew_leaves_room_for_the_questions_of_others() {
    let asked = Asked::start();
    let call = |n: usize| json!({"name": "mcp__s__echo", "input": {"n": n}});
    let mut many: Vec<_> = (0..20)
        .map(|n| Inline::post(&asked.bridge, "/mcp/call", &call(n)))
        .collect();
    eventually("those that find no room", SOON, || {
        let over = many.iter_mut().filter_map(|one| one.is_over().then_some(()));
        (over.count() == 15).then_some(())
    });
    let questions = wait_for_questions(&asked.bridge, 5);
    std::thread::scope(|scope| {
        let other = asked.call(scope, "echo", json!({"n": 100}));
        let all = wait_for_questions(&asked.bridge, 6);
        let others = all.last().unwrap();
        assert_eq!(others["question"]["call"]["arguments"][0]["value"], "100");
        asked.says(others, &json!({"answer": "approve"})).ok();
        other.join().unwrap().ok();
    });
    for question in &questions {
        asked.says(question, &json!({"answer": "deny"})).ok();
    }
    let answers = many.into_iter().map(|one| one.answer()["code"].clone());
    let (denied, later): (Vec<_>, Vec<_>) = answers.partition(|code| code == "denied");
    assert_eq!((denied.len(), later), (5, vec![json!("rate_limited"); 15]));
    assert_eq!(asked.arrived(), 1);
}

#[test]
fn identical_ones_are_allowed_together_only_where_that_is_chosen() {
    let asked = Asked::start();
    std::thread::scope(|scope| {
        let same: Vec<_> = (0..3).map(|_| asked.call(scope, "echo", json!({"n": 1}))).collect();
        let other = asked.call(scope, "echo", json!({"n": 2}));
        let questions = wait_for_questions(&asked.bridge, 4);
        let one = questions
            .iter()
            .find(|one| one["question"]["call"]["arguments"][0]["value"] == "1")
            .unwrap();
        asked.says(one, &json!({"answer": "approve", "same": true})).ok();
        for call in same {
            call.join().unwrap().ok();
        }
        let left = wait_for_question(&asked.bridge);
        assert_eq!(left["question"]["call"]["arguments"][0]["value"], "2");
        asked.says(&left, &json!({"answer": "deny"})).ok();
        other.join().unwrap().refused(403, "denied");
        assert_eq!(asked.arrived(), 3);
    });
}

#[test]
fn a_question_goes_with_whoever_asked() {
    let asked = Asked::start();
    let call = json!({"name": "mcp__s__echo", "input": {}}).to_string();
    let question = std::cell::RefCell::new(Value::Null);
    Connection::open(&asked.bridge.tcp()).abandon("POST", "/mcp/call", call.as_bytes(), || {
        // A runtime of its own, which none may be started within.
        let waits = std::thread::scope(|scope| scope.spawn(|| waiting(&asked.bridge).pop()).join());
        let Ok(Some(waits)) = waits else {
            return false;
        };
        question.replace(waits);
        true
    });
    eventually("the question's end", SOON, || {
        waiting(&asked.bridge).is_empty().then_some(())
    });
    asked
        .says(&question.borrow(), &json!({"answer": "approve"}))
        .refused(403, "approval_timeout");
    assert_eq!(asked.arrived(), 0);
}

fn tool(name: &str, more: &str, reads: bool) -> Value {
    json!({
        "name": name,
        "description": format!("The tool {name}."),
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}, more: {"type": "string"}}},
        "annotations": {"readOnlyHint": reads},
    })
}

/// Whole at once: the upstream reads it whenever it is asked.
fn tell(told: &Path, tools: &[Value]) {
    let beside = told.with_extension("next");
    std::fs::write(&beside, json!({"tools": tools}).to_string()).expect("the home is writable");
    std::fs::rename(&beside, told).expect("the home is writable");
}

fn listing(tools: &[Value]) -> (Asked, PathBuf) {
    let home = Home::new();
    let told = home.path().join("told.json");
    tell(&told, tools);
    let asked = Asked::with(home, |fake| fake.option("list", "told").option("told", told.display()));
    (asked, told)
}

#[test]
fn a_tool_that_changes_between_question_and_answer_is_not_called() {
    let other = [
        ("another schema", vec![tool("read", "mode", true)]),
        ("another name", vec![tool("read2", "more", true)]),
    ];
    for (what, now) in other {
        let (asked, told) = listing(&[tool("read", "more", true)]);
        std::thread::scope(|scope| {
            let call = asked.call(scope, "read", json!({"path": "x"}));
            let question = wait_for_question(&asked.bridge);
            tell(&told, &now);
            // The owner is not asked.
            let announce = json!({"name": "mcp__s__announce", "input": {}});
            asked.bridge.owner_post("/mcp/call", &announce).ok();
            let answer = call.join().unwrap();
            assert!(
                matches!(answer.json()["code"].as_str(), Some("tool_changed" | "unknown_tool")),
                "{what}: {}",
                answer.text()
            );
            assert_eq!(waiting_calls(&asked.bridge), 0, "{what}");
            let late = asked.says(&question, &json!({"answer": "approve"}));
            assert_ne!(late.status, 200, "{what}");
        });
        let reads = asked.seen.messages("tools/call");
        assert!(reads.iter().all(|call| call.contains("announce")), "{what}: {reads:?}");
    }
}

fn waiting_calls(bridge: &Daemon) -> usize {
    waiting(bridge).iter().filter(|one| one["kind"] == "call").count()
}

/// Thirty different calls of one assistant: six tools that look things up, four times each, and one that writes, six times.
/// Gives how many questions the person saw, who answers each with this.
fn questions_of_a_busy_minute(asked: &Asked, answer: &Value) -> usize {
    let mut questions = 0;
    for n in 0..30 {
        let tool = match n % 5 {
            4 => "write".to_owned(),
            _ => format!("read{}", n % 6),
        };
        std::thread::scope(|scope| {
            let call = asked.call(scope, &tool, json!({"path": format!("notes/{n}")}));
            eventually("an end", SOON, || {
                if let Some(question) = waiting(&asked.bridge).pop() {
                    questions += 1;
                    asked.says(&question, answer).ok();
                }
                call.is_finished().then_some(())
            });
            call.join().unwrap().ok();
        });
    }
    questions
}

#[test]
fn thirty_different_calls_ask_once_for_each_tool_and_after_the_choice_only_about_the_one_that_writes() {
    let reading: Vec<_> = (0..6).map(|n| tool(&format!("read{n}"), "more", true)).collect();
    let all = [reading, vec![tool("write", "text", false)]].concat();
    let look_up = json!({
        "effect": "allow", "server": "s", "kind": "tools", "patterns": ["read*"], "arguments": {"which": "any"},
        "caller": {"who": "anyone"}, "lasts": "kept",
    });
    let (once, until_quit) = (json!({"answer": "approve"}), json!({"answer": "until_quit"}));
    for (choice, answer, expected) in [
        (false, &once, 30),
        (false, &until_quit, 7),
        (true, &once, 6),
        (true, &until_quit, 1),
    ] {
        let (asked, _told) = listing(&all);
        if choice {
            asked.bridge.owner_post("/mcp/rules", &look_up).ok();
        }
        let seen = questions_of_a_busy_minute(&asked, answer);
        assert_eq!(seen, expected, "{choice} {answer}");
    }
}

#[test]
fn what_the_file_wishes_for_is_allowed_once_the_person_says_so() {
    let home = Home::new();
    let fake = Fake::new("ok")
        .record(&home.record("s"))
        .member("autoApprove", json!(["echo", "no_such"]));
    home.write_config(&config_text([("s", fake.entry())]));
    let setup = Setup::default().argument("--ask").argument("--review");
    let bridge = Daemon::start_in(home, setup);
    let launch = wait_for_question(&bridge);
    let path = |one: &Value| format!("/mcp/approvals/{}", one["id"].as_str().unwrap());
    bridge.owner_post(&path(&launch), &json!({"answer": "approve"})).ok();
    let wish = wait_for_question(&bridge);
    assert_eq!(
        (&wish["kind"], &wish["patterns"], &wish["tools"]),
        (&json!("rule"), &json!(["echo"]), &json!(["echo"])),
        "{wish}"
    );
    assert_eq!(bridge.get("/mcp/auto-approved").ok()["tools"], json!([]));
    assert_eq!(bridge.get("/mcp/approvals").ok()["approvals"], json!([]));
    bridge
        .post(&path(&wish), &json!({"answer": "approve"}))
        .refused(403, "scope_missing");
    bridge.owner_post(&path(&wish), &json!({"answer": "approve"})).ok();
    assert_eq!(bridge.get("/mcp/auto-approved").ok()["tools"], json!(["mcp__s__echo"]));
    bridge.call("mcp__s__echo", &json!({"n": 1})).ok();
    let rules = bridge.owner_get("/mcp/rules").ok();
    let id = rules["rules"][0]["rule"]["id"].as_str().unwrap().to_owned();
    Connection::open(&bridge.local())
        .send("DELETE", &format!("/mcp/rules/{id}"), &[], b"")
        .ok();
    assert_eq!(
        waiting(&bridge),
        [Value::Null; 0],
        "what was withdrawn is not asked again"
    );
    assert_eq!(bridge.get("/mcp/auto-approved").ok()["tools"], json!([]));
}
