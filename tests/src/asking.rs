//! Upstreams that ask something of the person, and whoever answers.

use std::thread::ScopedJoinHandle;

use serde_json::{Value, json};

use crate::{
    daemon::Daemon,
    fake::{Fake, Seen},
    home::Home,
    http::Answer,
    wait::{SOON, eventually},
};

/// Three fields, of which one has to be filled in.
pub fn form() -> Value {
    json!({
        "message": "Where to?\nSay it.",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "title": "City", "minLength": 2, "x-kept": true},
                "days": {"type": "integer", "default": 3, "minimum": 1},
                "meal": {"type": "string", "oneOf": [{"const": "v", "title": "Vegetarian"}], "default": "v"},
            },
            "required": ["city"],
        },
    })
}

/// A page to open, under the upstream's id.
pub fn page(url: &str, id: &str) -> Value {
    json!({"mode": "url", "message": "Pay there", "url": url, "elicitationId": id})
}

/// An upstream of this era whose tools ask.
pub fn asking(era: &str) -> Fake {
    Fake::new("ok").option("list", "asking").option("era", era)
}

/// A bridge with one connector `x` that asks, in this era, and what that saw.
///
/// # Panics
/// When it comes otherwise.
pub fn bridge_in(era: &str) -> (Daemon, Seen) {
    let home = Home::new();
    let fake = asking(era).record(&home.record("x"));
    let bridge = Daemon::serving(home, [("x", fake.entry())]);
    bridge.wait_for_tool("mcp__x__ask");
    (bridge, fake.seen())
}

/// Calls with these questions as a walk-in, on a thread of its own.
///
/// # Panics
/// When it comes otherwise.
pub fn call<'s>(
    scope: &'s std::thread::Scope<'s, '_>,
    bridge: &'s Daemon,
    id: &str,
    questions: Value,
) -> ScopedJoinHandle<'s, Answer> {
    let name = format!("mcp__{id}__ask");
    scope.spawn(move || bridge.call(&name, &json!({"questions": questions})))
}

/// The questions that wait, as the owner sees them.
///
/// # Panics
/// When it comes otherwise.
pub fn waiting(bridge: &Daemon) -> Vec<Value> {
    let answer = bridge.owner_get("/mcp/approvals").ok();
    answer["approvals"].as_array().expect("a list").clone()
}

/// Waits until so many questions wait, and gives them.
///
/// # Panics
/// When it comes otherwise.
pub fn wait_for_questions(bridge: &Daemon, count: usize) -> Vec<Value> {
    eventually(&format!("{count} questions"), SOON, || {
        let questions = waiting(bridge);
        (questions.len() == count).then_some(questions)
    })
}

/// Waits for the only question.
///
/// # Panics
/// When it comes otherwise.
pub fn wait_for_question(bridge: &Daemon) -> Value {
    wait_for_questions(bridge, 1).remove(0)
}

/// Where a question is read and answered.
///
/// # Panics
/// When it comes otherwise.
pub fn path_of(question: &Value) -> String {
    format!("/mcp/approvals/{}", question["id"].as_str().expect("an id"))
}

/// Answers a question as the owner.
///
/// # Panics
/// When it comes otherwise.
pub fn answer(bridge: &Daemon, question: &Value, body: Value) -> Answer {
    bridge.owner_post(&path_of(question), &body)
}

/// What the upstream was given, by the keys of its questions.
///
/// # Panics
/// When it comes otherwise.
pub fn given(answer: &Answer) -> Value {
    let body = answer.ok();
    assert_eq!(body["ok"], true, "{body}");
    let told: Value = serde_json::from_str(body["text"].as_str().expect("a text")).expect("JSON");
    assert_ne!(told["state_intact"], false, "the state came back changed: {told}");
    told["answers"].clone()
}
