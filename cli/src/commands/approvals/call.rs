//! A call that waits for a yes, as the command line shows it: who wants what, and everything that would be sent. Pure.

use std::time::Duration;

use serde_json::Value;

use crate::screen::{Screen, Tone, harmless};

/// Characters of one argument that are shown; the rest is told by its size.
const MOST_SHOWN: usize = 400;

pub(super) fn shown(screen: Screen, question: &Value, left: Duration) -> String {
    let word = |value: &Value| harmless(value.as_str().unwrap_or_default());
    let call = &question["question"]["call"];
    let who = match call["who"]["name"].as_str() {
        Some("") | None => "A program".to_owned(),
        Some(name) => harmless(name),
    };
    let subject = &call["subject"];
    let what = match subject["subject"].as_str() {
        Some("tool") => format!("use {}", word(&subject["tool"])),
        Some("resource") => format!("read {}", word(&subject["uri"])),
        _ => format!("get the prompt {}", word(&subject["name"])),
    };
    let mut lines = vec![format!(
        "{}  {who} wants to {what} of {} ({} s left)",
        screen.paint(Tone::Title, &word(&question["id"])),
        word(&question["server_name"]),
        left.as_secs()
    )];
    let program = &call["who"]["program"];
    if let Some(path) = program["path"].as_str() {
        let script = program["script"].as_str().map(|script| format!(" {script}"));
        let whole = format!("{path}{}", script.unwrap_or_default());
        lines.push(format!("  program: {} (process {})", harmless(&whole), program["pid"]));
    }
    lines.push(format!(
        "  where: {} ({})",
        word(&call["place"]),
        word(&question["server"])
    ));
    for argument in call["arguments"].as_array().into_iter().flatten() {
        let value: String = argument["value"]
            .as_str()
            .unwrap_or_default()
            .chars()
            .take(MOST_SHOWN)
            .collect();
        let more = match argument["size"].as_u64() {
            Some(size) if size > MOST_SHOWN as u64 => format!("… ({size} characters; --json shows them all)"),
            Some(_) | None => String::new(),
        };
        let unknown = match argument["known"] {
            Value::Bool(false) => " (not an argument that the tool declares)",
            _ => "",
        };
        lines.push(format!(
            "  {}{unknown}: {}{more}",
            word(&argument["name"]),
            harmless(&value)
        ));
    }
    if let Some(same @ 1..) = call["same"].as_u64() {
        lines.push(format!(
            "  {same} more ask for exactly the same; --same allows them too."
        ));
    }
    lines.join("\n")
}

/// A wish of the file.
pub(super) fn wish(screen: Screen, question: &Value) -> String {
    let words = |value: &Value| {
        let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        harmless(&words.collect::<Vec<_>>().join(", "))
    };
    format!(
        "{}  connectors.json wants {} of {} allowed without asking\n  tools: {}",
        screen.paint(Tone::Title, &harmless(question["id"].as_str().unwrap_or_default())),
        words(&question["patterns"]),
        harmless(question["server_name"].as_str().unwrap_or_default()),
        words(&question["tools"])
    )
}
