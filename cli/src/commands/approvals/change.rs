//! How a change that a program wishes for reads in a terminal. Pure.

use serde_json::{Value, json};

use super::launch;
use crate::screen::{Screen, Tone, harmless};

/// `None` for a question that is about no change, or that is not for these eyes.
pub(super) fn shown(screen: Screen, question: &Value) -> Option<String> {
    let (who, change) = (&question["question"]["who"], &question["question"]["change"]);
    let wants = wants(change)?;
    let word = |value: &Value| harmless(value.as_str().unwrap_or_default());
    let id = word(&question["id"]);
    let who = match word(&who["name"]) {
        name if name.is_empty() => "A program".to_owned(),
        name => name,
    };
    let about = format!("{who} wants {wants}: {}", word(&question["server_name"]));
    let mut lines = vec![format!("{} {about}", screen.paint(Tone::Title, &id))];
    if let Some(path) = question["question"]["who"]["program"]["path"].as_str() {
        lines.push(format!("  It runs from {}", harmless(path)));
    }
    match change["change"].as_str() {
        Some("add") => lines.push(launch::shown(
            screen,
            &json!({
                "id": question["id"],
                "server": question["server"],
                "server_name": question["server_name"],
                "launch": change["launch"],
            }),
        )),
        Some("set_secret") => {
            let name = change["name"].as_str().unwrap_or("the token");
            lines.push(format!("  {} goes to {}", harmless(name), word(&change["goes_to"])));
            if change["replaces"] == true {
                lines.push(format!(
                    "  {}",
                    screen.paint(Tone::Bad, "It takes the place of the present one.")
                ));
            }
        }
        Some("auto_approve") => {
            let patterns = change["patterns"].as_array().map_or(&[][..], Vec::as_slice);
            let patterns: Vec<_> = patterns.iter().map(word).collect();
            let all = match patterns.is_empty() {
                true => "nothing".to_owned(),
                false => patterns.join(", "),
            };
            lines.push(format!("  Without asking: {all}"));
        }
        Some(_) | None => {}
    }
    Some(lines.join("\n"))
}

fn wants(change: &Value) -> Option<&'static str> {
    Some(match change["change"].as_str()? {
        "add" => "a connector added",
        "enable" => "a connector turned on",
        "disable" => "a connector turned off",
        "remove" => "a connector removed",
        "reconnect" => "a connector connected anew",
        "auto_approve" => "to change what goes without asking",
        "set_secret" => "a key kept",
        "forget_secret" => "a key forgotten",
        "sign_in" => "you to sign in",
        "sign_out" => "you signed out",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_read_with_who_wants_what_and_where_a_key_would_go() {
        let question = json!({
            "id": "q1", "server_name": "Docs",
            "question": {
                "who": {"name": "agent.py (python3)", "program": {"path": "/usr/bin/python3"}},
                "change": {"change": "set_secret", "name": "KEY", "replaces": true, "goes_to": "https://docs.example"},
            },
        });
        let text = shown(Screen::Plain, &question).unwrap();
        for part in [
            "q1 agent.py (python3) wants a key kept: Docs",
            "/usr/bin/python3",
            "KEY goes to https://docs.example",
            "takes the place",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(shown(Screen::Plain, &json!({"question": {"kind": "call"}})), None);
    }
}
