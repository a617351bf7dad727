//! A launch that waits for a look, as the command line shows it: everything it would run or contact. Pure.

use serde_json::Value;

use crate::screen::{Screen, Tone, harmless};

pub(super) fn shown(screen: Screen, question: &Value) -> String {
    let word = |value: &Value| harmless(value.as_str().unwrap_or_default());
    let launch = &question["launch"];
    let mut lines = vec![format!(
        "{}  {} ({}) {}",
        screen.paint(Tone::Title, &word(&question["id"])),
        word(&question["server_name"]),
        word(&question["server"]),
        why(&launch["why"])
    )];
    lines.extend(details(&launch["now"]).into_iter().map(|line| format!("  {line}")));
    if launch["before"].is_object() && launch["before"] != launch["now"] {
        lines.push("  Allowed before:".to_owned());
        lines.extend(details(&launch["before"]).into_iter().map(|line| format!("    {line}")));
    }
    let out = launch["stands_out"].as_array().into_iter().flatten();
    lines.extend(out.map(|one| format!("  {}", screen.paint(Tone::Bad, &stands_out(one)))));
    let asleep = sentences(&launch["asleep"]);
    if !asleep.is_empty() {
        lines.push(
            "  What may happen without asking was allowed for the other one, and sleeps under this one:".to_owned(),
        );
        lines.extend(asleep.into_iter().map(|line| format!("    {line}")));
    }
    lines.join("\n")
}

/// Rules that sleep, and what they would go on for.
pub(super) fn asleep(screen: Screen, question: &Value) -> String {
    let word = |value: &Value| harmless(value.as_str().unwrap_or_default());
    let mut lines = vec![format!(
        "{}  {} ({}) runs or contacts something else than when this was allowed:",
        screen.paint(Tone::Title, &word(&question["id"])),
        word(&question["server_name"]),
        word(&question["server"]),
    )];
    lines.extend(
        sentences(&question["rules"])
            .into_iter()
            .map(|line| format!("  {line}")),
    );
    lines.push("  Now it".to_owned());
    lines.extend(details(&question["now"]).into_iter().map(|line| format!("    {line}")));
    lines.push("  Approve keeps these rules for that, deny withdraws them.".to_owned());
    lines.join("\n")
}

fn sentences(rules: &Value) -> Vec<String> {
    let rules = rules.as_array().into_iter().flatten();
    rules
        .map(|rule| harmless(rule["sentence"].as_str().unwrap_or_default()))
        .collect()
}

fn why(why: &Value) -> String {
    match why["why"].as_str().unwrap_or_default() {
        "new" => "is new".to_owned(),
        "changed" => "is not what you allowed any more".to_owned(),
        "turned_on" => "was turned on outside Neuron Connect".to_owned(),
        "tools_shown" => {
            let tools = why["tools"].as_array().into_iter().flatten().filter_map(Value::as_str);
            format!("shows tools again: {}", harmless(&tools.collect::<Vec<_>>().join(", ")))
        }
        other => harmless(other),
    }
}

/// One line for each thing that goes into it.
fn details(shown: &Value) -> Vec<String> {
    let text = |name: &str| shown[name].as_str().map(harmless);
    let mut lines = Vec::new();
    if let Some(words) = shown["command_line"].as_array() {
        let words = words
            .iter()
            .filter_map(Value::as_str)
            .map(|word| shell_words(&harmless(word)));
        lines.push(format!("runs: {}", words.collect::<Vec<_>>().join(" ")));
        lines.extend(text("program").map(|program| format!("program: {program}")));
        lines.extend(text("cwd").map(|cwd| format!("in: {cwd}")));
        lines.extend(text("env_file").map(|file| format!("variables from: {file}")));
        lines.extend(given(&shown["env"], "variable"));
    } else {
        lines.extend(text("url").map(|url| format!("contacts: {url}")));
        lines.extend(text("auth").map(|auth| format!("auth: {auth}")));
        lines.extend(given(&shown["headers"], "header"));
        let sign_in = shown["sign_in"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        lines.extend(sign_in.map(|line| format!("sign-in: {}", harmless(line))));
    }
    lines
}

/// Quoted where it would not be one word.
fn shell_words(word: &str) -> String {
    let is_plain = !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\'));
    if is_plain {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn given(all: &Value, what: &str) -> Vec<String> {
    let one = |given: &Value| {
        let word = |value: &Value| harmless(value.as_str().unwrap_or_default());
        let mut line = format!("{what} {} = {}", word(&given["name"]), word(&given["template"]));
        for pair in given["from_environment"].as_array().into_iter().flatten() {
            let value = pair[1].as_str().map_or_else(|| "not set".to_owned(), harmless);
            line.push_str(&format!(" [{}: {value}]", word(&pair[0])));
        }
        line
    };
    all.as_array().into_iter().flatten().map(one).collect()
}

fn stands_out(one: &Value) -> String {
    let word = |name: &str| harmless(one[name].as_str().unwrap_or_default());
    match one["what"].as_str().unwrap_or_default() {
        "inline_code" => format!("Look twice: {} is given its program as text.", word("program")),
        "other_rights" => format!(
            "Look twice: it asks for the rights of another user ({}).",
            word("program")
        ),
        "wide_folder" => format!("Look twice: it is given {}.", word("argument")),
        "loader_variable" => format!("Look twice: other code can get into it through {}.", word("name")),
        "unpinned" => format!(
            "Look twice: {} has no fixed version; another program may run tomorrow.",
            word("package")
        ),
        "downloads" => format!("{} downloads and runs a program.", word("runner")),
        "missing_pkce" => "Look twice: its sign-in goes without the protection of codes (PKCE).".to_owned(),
        "not_encrypted" => "Look twice: its address is not encrypted.".to_owned(),
        "not_found" => format!("No program \"{}\" is found.", word("program")),
        other => harmless(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_that_sleep_are_shown_with_what_they_would_go_on_for() {
        let question = json!({
            "id": "asleep-1", "server": "notes", "server_name": "Notes",
            "rules": [{"rule": "r", "sentence": "Any program may use read of Notes\u{202e}."}],
            "now": {"kind": "run", "command_line": ["notes", "/home/ada"], "env": []},
        });
        let text = asleep(Screen::Plain, &question);
        for part in [
            "asleep-1",
            "may use read of Notes",
            "runs: notes /home/ada",
            "deny withdraws",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains('\u{202e}'), "{text}");
    }

    #[test]
    fn a_launch_is_shown_whole_and_without_tricks() {
        let run = |line: &[&str]| {
            json!({"kind": "run", "command_line": line, "program": "/usr/bin/npx", "cwd": null, "env_file": "/h/.env",
                "env": [{"name": "A", "template": "${env:B}", "from_environment": [["B", "b"], ["C", null]], "secrets": []}]})
        };
        let launch = json!({"id": "launch-1", "kind": "launch", "server": "x", "server_name": "X\u{1b}[31m",
            "launch": {"why": {"why": "changed"}, "now": run(&["npx", "-y", "a b", "\u{1b}[2J"]),
                "before": run(&["npx", "-y", "a"]), "stands_out": [{"what": "unpinned", "package": "a"}]}});
        let text = shown(Screen::Plain, &launch);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        for part in [
            "launch-1  X",
            "(x) is not what you allowed any more",
            "  runs: npx -y 'a b'",
            "  program: /usr/bin/npx",
            "  variables from: /h/.env",
            "  variable A = ${env:B} [B: b] [C: not set]",
            "  Allowed before:\n    runs: npx -y a",
            "Look twice: a has no fixed version",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn an_address_is_shown_with_what_is_sent_there() {
        let launch = json!({"id": "launch-1", "server": "x", "server_name": "X", "launch": {"why": {"why": "new"},
            "now": {"kind": "contact", "url": "http://x.example", "auth": "token", "sign_in": ["issuer: i"],
                "headers": [{"name": "X-Key", "template": "${secret:K}", "from_environment": []}]},
            "before": null, "stands_out": [{"what": "not_encrypted"}]}});
        let text = shown(Screen::Plain, &launch);
        for part in [
            "is new",
            "contacts: http://x.example",
            "auth: token",
            "header X-Key = ${secret:K}",
            "sign-in: issuer: i",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
