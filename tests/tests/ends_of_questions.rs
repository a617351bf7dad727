//! How a call that waits for the person beside the tray ends, each way.

use std::{
    thread::{Scope, ScopedJoinHandle},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use neuron_tests::{
    fake::{Fake, Seen},
    home::{Home, config_text},
    http::{Address, Answer, Connection},
    tray::Tray,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

/// Of the app, in milliseconds.
const FIRST: u64 = 120_000;
const LONGEST: u64 = 600_000;

/// The bridge beside a tray, with one upstream `s` that the person let run.
struct Asked {
    tray: Tray,
    seen: Seen,
}

impl Asked {
    fn start() -> Self {
        Self::with(Tray::start)
    }

    /// Whose questions wait so long.
    fn waiting(first: Duration, longest: Duration) -> Self {
        Self::with(|home| Tray::start_waiting(home, first, longest))
    }

    fn with(start: impl FnOnce(Home) -> Tray) -> Self {
        let home = Home::new();
        let fake = Fake::new("ok").record(&home.record("s"));
        home.write_config(&config_text([("s", fake.entry())]));
        let tray = start(home);
        tray.approve("s");
        tray.wait_for_status("s", "connected");
        Self {
            tray,
            seen: fake.seen(),
        }
    }

    /// Calls as a walk-in, on a thread of its own.
    fn call<'s>(&'s self, scope: &'s Scope<'s, '_>, door: &'s Address, tool: &str) -> ScopedJoinHandle<'s, Answer> {
        let call = json!({"name": format!("mcp__s__{tool}"), "input": {}}).to_string();
        scope.spawn(move || Connection::open(door).send("POST", "/mcp/call", &[], call.as_bytes()))
    }

    fn question(&self) -> Value {
        eventually("a question", SOON, || self.questions().pop())
    }

    fn questions(&self) -> Vec<Value> {
        let waiting = self.tray.waiting();
        waiting.into_iter().filter(|one| one["kind"] == "call").collect()
    }

    fn says(&self, question: &Value, answer: &str) -> Answer {
        self.tray.answer(question["id"].as_str().expect("an id"), answer)
    }

    /// What has become of a question, as whoever asked it sees it.
    fn state(&self, question: &Value) -> String {
        let path = format!("/mcp/approvals/{}", question["id"].as_str().expect("an id"));
        let seen = self.tray.get(&path).ok();
        seen["state"].as_str().expect("a state").to_owned()
    }

    fn arrived(&self) -> usize {
        self.seen.messages("tools/call").len()
    }
}

/// How long a question waits, in milliseconds.
fn waits(question: &Value) -> u64 {
    let at = |name: &str| question[name].as_u64().expect("a time");
    at("expires_at") - at("asked_at")
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_millis()).expect("a near future")
}

#[test]
fn each_answer_ends_exactly_the_call_that_it_is_given_to_whichever_door_it_came_by() {
    let asked = Asked::start();
    for door in &asked.tray.doors() {
        for (answer, tool, status, state) in [
            ("approve", "echo", 200, "approved"),
            ("until_quit", "cwd", 200, "approved"),
            ("always", "argv", 200, "approved"),
            ("deny", "echo", 403, "denied"),
            ("block", "counter", 403, "denied"),
        ] {
            std::thread::scope(|scope| {
                let before = asked.arrived();
                let call = asked.call(scope, door, tool);
                let question = asked.question();
                assert_eq!((waits(&question), asked.arrived()), (FIRST, before), "{answer}");
                asked.says(&question, answer).ok();
                let ended = call.join().expect("an answer");
                assert_eq!(ended.status, status, "{answer}: {}", ended.text());
                assert_eq!(asked.state(&question), state, "{answer}");
                assert_eq!(asked.questions(), [Value::Null; 0], "{answer}");
                assert_eq!(asked.arrived() - before, usize::from(status == 200), "{answer}");
                let late = asked.says(&question, "approve");
                assert_ne!(late.status, 200, "{answer}: {}", late.text());
            });
        }
        let rules = asked.tray.owner_get("/mcp/rules").ok();
        for rule in rules["rules"].as_array().expect("a list") {
            let path = format!("/mcp/rules/{}", rule["rule"]["id"].as_str().expect("an id"));
            asked.tray.owner_delete(&path).ok();
        }
    }
}

#[test]
fn without_an_answer_in_its_time_a_call_is_denied_and_nothing_is_sent() {
    let first = Duration::from_millis(300);
    let asked = Asked::waiting(first, Duration::from_secs(60));
    let doors = asked.tray.doors();
    std::thread::scope(|scope| {
        let begun = Instant::now();
        let call = asked.call(scope, &doors[0], "echo");
        let question = asked.question();
        let message = call.join().expect("an answer").refused(403, "approval_timeout");
        assert!(begun.elapsed() >= first, "{:?}", begun.elapsed());
        assert!(message.contains("did not answer in time"), "{message}");
        assert_eq!(asked.state(&question), "expired");
        assert_eq!(asked.questions(), [Value::Null; 0]);
        asked.says(&question, "approve").refused(403, "approval_timeout");
        asked.says(&question, "longer").refused(403, "approval_timeout");
        assert_eq!(asked.arrived(), 0);
    });
}

#[test]
fn a_question_that_is_given_longer_outlives_its_first_time_and_ends_with_the_longest() {
    let (first, longest) = (Duration::from_secs(2), Duration::from_secs(4));
    let asked = Asked::waiting(first, longest);
    let doors = asked.tray.doors();
    std::thread::scope(|scope| {
        let begun = Instant::now();
        let left = asked.call(scope, &doors[0], "cwd");
        let unanswered = asked.question();
        asked.says(&unanswered, "longer").ok();
        let call = asked.call(scope, &doors[1], "echo");
        let question = eventually("the second question", SOON, || {
            let mut questions = asked.questions().into_iter();
            questions.find(|one| one["id"] != unanswered["id"])
        });
        let first_end = question["expires_at"].as_u64().expect("a time");
        let longer = asked.says(&question, "longer").ok();
        assert_eq!(waits(&longer["approval"]), 4_000, "{longer}");
        eventually("the end of its first time", SOON, || {
            (unix_ms() > first_end).then_some(())
        });
        assert_eq!(asked.questions().len(), 2);
        assert_eq!((asked.arrived(), asked.state(&question).as_str()), (0, "waiting"));
        asked.says(&question, "approve").ok();
        call.join().expect("an answer").ok();

        left.join().expect("an answer").refused(403, "approval_timeout");
        assert!(begun.elapsed() >= longest, "{:?}", begun.elapsed());
        assert_eq!(asked.state(&unanswered), "expired");
        assert_eq!(asked.arrived(), 1);
    });
}

#[test]
fn longer_is_ten_minutes_in_all_however_often_it_is_said() {
    let asked = Asked::start();
    let doors = asked.tray.doors();
    std::thread::scope(|scope| {
        let call = asked.call(scope, &doors[0], "echo");
        let question = asked.question();
        assert_eq!(waits(&question), FIRST);
        for _ in 0..2 {
            asked.says(&question, "longer").ok();
            assert_eq!(waits(&asked.question()), LONGEST);
        }
        asked.says(&question, "deny").ok();
        call.join().expect("an answer").refused(403, "denied");
    });
}

#[test]
fn a_decision_that_cannot_be_saved_is_told_and_the_question_waits_on() {
    let asked = Asked::start();
    let doors = asked.tray.doors();
    std::thread::scope(|scope| {
        let call = asked.call(scope, &doors[0], "echo");
        let question = asked.question();
        asked.tray.home.change_database(
            "CREATE TRIGGER full BEFORE INSERT ON trust_head BEGIN SELECT RAISE(ABORT, 'no room is left'); END",
        );
        for answer in ["always", "block"] {
            asked.says(&question, answer).refused(507, "not_saved");
            assert_eq!(asked.state(&question), "waiting", "{answer}");
            assert_eq!(asked.arrived(), 0, "{answer}");
        }
        let rules = asked.tray.owner_get("/mcp/rules").ok().to_string();
        assert!(!rules.contains("echo"), "{rules}");
        asked.tray.home.change_database("DROP TRIGGER full");
        asked.says(&question, "always").ok();
        call.join().expect("an answer").ok();
        let again = json!({"name": "mcp__s__echo", "input": {}});
        asked.tray.post("/mcp/call", &again).ok();
        assert_eq!(asked.arrived(), 2);
    });
}

#[test]
fn a_question_goes_with_the_program_that_asked() {
    let asked = Asked::start();
    let call = json!({"name": "mcp__s__echo", "input": {}}).to_string();
    let [door, _] = asked.tray.doors();
    let question = std::cell::RefCell::new(Value::Null);
    Connection::open(&door).abandon("POST", "/mcp/call", call.as_bytes(), || {
        // A runtime of its own, which none may be started within.
        let waits = std::thread::scope(|scope| scope.spawn(|| asked.questions().pop()).join());
        let Ok(Some(waits)) = waits else {
            return false;
        };
        question.replace(waits);
        true
    });
    eventually("the question's end", SOON, || {
        asked.questions().is_empty().then_some(())
    });
    let late = asked.says(&question.borrow(), "approve");
    late.refused(403, "approval_timeout");
    assert_eq!(
        (asked.arrived(), asked.state(&question.borrow()).as_str()),
        (0, "expired")
    );
}
