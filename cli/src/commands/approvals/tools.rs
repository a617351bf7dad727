//! Tools and prompts that wait for a look, as the command line shows them: what stands out, and what is other than it was. Pure.

use serde_json::{Value, json};

use crate::screen::{Screen, Tone, harmless};

/// Begins the id of everything that is about tools.
pub(super) const TOOLS: &str = "tools:";

/// The yes to what is named, or to everything about which nothing stands out.
pub(super) fn yes(tools: &[String], prompts: &[String], instructions: bool) -> Value {
    if tools.is_empty() && prompts.is_empty() && !instructions {
        return json!({"answer": "approve"});
    }
    json!({"answer": "approve", "content": {"tools": tools, "prompts": prompts, "instructions": instructions}})
}

pub(super) fn shown(screen: Screen, question: &Value) -> String {
    let review = &question["tools"];
    let about = match question["state"].as_str() {
        Some("denied") => "offers this; you left it as it is, and can still approve it",
        Some(_) | None => "offers something that you have not approved",
    };
    let mut lines = vec![format!(
        "{}  {} ({}) {about}",
        screen.paint(Tone::Title, &word(&question["id"])),
        word(&question["server_name"]),
        word(&question["server"])
    )];
    for tool in review["tools"].as_array().into_iter().flatten() {
        lines.push(format!("  {}: {}", word(&tool["tool"]), state(&tool["state"])));
        lines.extend(findings(screen, &tool["findings"]));
        lines.extend(compared(&tool["before"], &tool["now"]));
    }
    for prompt in review["prompts"].as_array().into_iter().flatten() {
        lines.push(format!(
            "  The prompt {}: {}",
            word(&prompt["prompt"]),
            prompt_state(&prompt["state"])
        ));
        lines.extend(findings(screen, &prompt["findings"]));
        let [before, now] = ["before", "now"].map(|when| prompt[when]["whole"].as_str());
        lines.extend(difference(before, now));
    }
    let text = &review["instructions"];
    if text.is_object() {
        lines.push("  What the server tells assistants about itself:".to_owned());
        lines.extend(findings(screen, &text["findings"]));
        lines.extend(difference(text["before"].as_str(), text["now"].as_str()));
    }
    lines.join("\n")
}

fn word(value: &Value) -> String {
    harmless(value.as_str().unwrap_or_default())
}

fn state(state: &Value) -> String {
    match state.as_str().unwrap_or_default() {
        "reworded" => "described in other words; it works, and assistants read the ones that you approved".to_owned(),
        "pending" => "new".to_owned(),
        "held" => "new, and something stands out".to_owned(),
        "changed" => "not what you approved; it is blocked".to_owned(),
        other => harmless(other),
    }
}

/// None waits about which nothing stands out.
fn prompt_state(state: &Value) -> String {
    match state.as_str().unwrap_or_default() {
        "held" => "something stands out; it is blocked".to_owned(),
        "changed" => "not what you approved, and something stands out; it is blocked".to_owned(),
        other => harmless(other),
    }
}

fn findings(screen: Screen, findings: &Value) -> Vec<String> {
    let line = |finding: &Value| {
        let mut line = word(&finding["sentence"]);
        let (place, excerpt) = (word(&finding["place"]), word(&finding["excerpt"]));
        if !place.is_empty() && !excerpt.is_empty() {
            line.push_str(&format!(" ({place}: {excerpt})"));
        }
        format!("    {}", screen.paint(Tone::Bad, &line))
    };
    findings.as_array().into_iter().flatten().map(line).collect()
}

/// A tool as it is now, or what is other than it was.
fn compared(before: &Value, now: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for part in ["title", "description", "input_schema", "output_schema", "also"] {
        let before = before.get(part).and_then(Value::as_str);
        lines.extend(difference(before, now[part].as_str()));
    }
    let hints = |tool: &Value| {
        let given = tool["hints"].as_object().into_iter().flatten();
        let given = given.filter(|(_, hint)| hint.is_boolean());
        let given: Vec<_> = given
            .map(|(name, hint)| format!("{}: {hint}", harmless(name)))
            .collect();
        given.join("\n")
    };
    let earlier = before.is_object().then(|| hints(before));
    lines.extend(difference(earlier.as_deref(), Some(&hints(now))));
    lines
}

/// The lines that differ: with `-` those before, with `+` those of now.
fn difference(before: Option<&str>, now: Option<&str>) -> Vec<String> {
    let before: Vec<&str> = before.unwrap_or_default().lines().collect();
    let now: Vec<&str> = now.unwrap_or_default().lines().collect();
    let common = |(one, other): &(&&str, &&str)| one == other;
    let begin = before.iter().zip(&now).take_while(common).count();
    let rest = (&before[begin..], &now[begin..]);
    let end = rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(common).count();
    let part = |lines: &[&str], mark: char| {
        let lines = &lines[begin..lines.len() - end];
        let shown = lines.iter().map(|line| format!("    {mark} {}", harmless(line)));
        shown.collect::<Vec<_>>()
    };
    [part(&before, '-'), part(&now, '+')].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_tool_shows_what_stands_out_and_only_what_differs() {
        let schema = |kind: &str| format!("{{\n  \"type\": \"object\",\n  \"x\": \"{kind}\"\n}}");
        let question = json!({
            "id": "tools:mail:1a", "server": "mail", "server_name": "Mail\u{1b}[2J",
            "tools": {"tools": [{
                "tool": "send", "state": "changed",
                "before": {"description": "Sends.", "input_schema": schema("a"), "hints": {"read_only": false}},
                "now": {"description": "Sends.\u{1b}[8m", "input_schema": schema("b"), "hints": {"read_only": true}},
                "findings": [{"sentence": "It hides something.", "place": "description", "excerpt": "x"}],
            }], "prompts": [{
                "prompt": "sum", "state": "held",
                "before": null, "now": {"whole": "{\n  \"name\": \"sum\u{1b}\"\n}"},
                "findings": [{"sentence": "It hides words.", "place": "name", "excerpt": "sum"}],
            }], "instructions": {"before": null, "now": "Be brief.", "findings": []}},
        });
        let text = shown(Screen::Plain, &question);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        for line in [
            "  send: not what you approved; it is blocked",
            "    It hides something. (description: x)",
            "    -   \"x\": \"a\"",
            "    +   \"x\": \"b\"",
            "    - read_only: false",
            "    + read_only: true",
            "  The prompt sum: something stands out; it is blocked",
            "    It hides words. (name: sum)",
            "    + Be brief.",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
        }
        assert!(!text.contains("\"type\""), "{text}");
    }

    #[test]
    fn a_yes_names_what_it_is_to_or_leaves_out_what_stands_out() {
        assert_eq!(yes(&[], &[], false), json!({"answer": "approve"}));
        assert_eq!(
            yes(&["a".to_owned()], &[], false),
            json!({"answer": "approve", "content": {"tools": ["a"], "prompts": [], "instructions": false}})
        );
        assert_eq!(
            yes(&[], &["sum".to_owned()], false),
            json!({"answer": "approve", "content": {"tools": [], "prompts": ["sum"], "instructions": false}})
        );
    }
}
