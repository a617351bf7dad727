//! Names that pose: as the system, as another tool, or as something harmless.

use serde_json::Value;

use super::{finding::FindingKind, fold};

/// Longest name of a tool, in characters (2025-11-25 and later, tools, tool names).
const MAX_NAME_CHARS: usize = 128;

/// Names that only something besides a connector's tools would have.
const POSING: [&str; 14] = [
    "system",
    "system_prompt",
    "system_message",
    "override",
    "assistant",
    "developer",
    "admin",
    "root",
    "human",
    "user",
    "anthropic",
    "openai",
    "claude",
    "chatgpt",
];

/// Beginnings that are this app's own.
const OWN_BEGINNINGS: [&str; 3] = ["mcp__", "neuron_connect", "neuron-connect"];

/// Parts that speak to the assistant.
const SPEAKING: [&str; 14] = [
    "ignore_previous",
    "ignore_all",
    "system_override",
    "override_system",
    "always_call",
    "always_use",
    "always_run",
    "call_first",
    "call_me",
    "use_me",
    "run_first",
    "must_call",
    "must_use",
    "jailbreak",
];

/// Verbs of tools that change or take away.
const HARMING: [&str; 18] = [
    "delete",
    "remove",
    "drop",
    "destroy",
    "erase",
    "wipe",
    "purge",
    "truncate",
    "kill",
    "uninstall",
    "transfer",
    "pay",
    "send",
    "execute",
    "exec",
    "write",
    "overwrite",
    "upload",
];

/// Verbs that promise to leave everything as it is.
const LOOKING: [&str; 14] = [
    "read", "get", "list", "show", "view", "search", "find", "look", "fetch", "check", "count", "describe", "preview",
    "lookup",
];

/// Verbs that nothing which only reads has.
const DESTROYING: [&str; 7] = ["delete", "destroy", "erase", "wipe", "purge", "truncate", "uninstall"];

/// What is odd about a tool's name, with the words meant.
pub(super) fn odd(raw: &Value) -> Vec<(FindingKind, String)> {
    let Some(name) = raw.get("name").and_then(Value::as_str) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(usual) {
        found.push((FindingKind::UnusualName, name.to_owned()));
    }
    let words = words(name);
    if poses(name, &words) {
        found.push((FindingKind::DeceptiveName, name.to_owned()));
    }
    for title in titles(raw) {
        if contradicts(title, &words) {
            found.push((FindingKind::DeceptiveName, format!("{name}: {title}")));
            break;
        }
    }
    let reads_only = raw.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true));
    if reads_only && words.first().is_some_and(|first| DESTROYING.contains(&first.as_str())) {
        found.push((FindingKind::DeceptiveName, format!("{name}, said to only read")));
    }
    found
}

fn titles(raw: &Value) -> impl Iterator<Item = &str> {
    ["/title", "/annotations/title"]
        .into_iter()
        .filter_map(|place| raw.pointer(place)?.as_str())
}

fn poses(name: &str, words: &[String]) -> bool {
    let joined = words.join("_");
    let mut folded = String::new();
    fold::fold(name, &mut folded);
    POSING.contains(&joined.as_str())
        || OWN_BEGINNINGS.iter().any(|beginning| folded.starts_with(beginning))
        || SPEAKING.iter().any(|part| joined.contains(part))
}

/// Whether a title promises to only look while the name says that something is harmed.
fn contradicts(title: &str, name: &[String]) -> bool {
    let title = words(title);
    let has = |words: &[String], verbs: &[&str]| words.iter().any(|word| verbs.contains(&word.as_str()));
    title.first().is_some_and(|first| LOOKING.contains(&first.as_str()))
        && name.first().is_some_and(|first| HARMING.contains(&first.as_str()))
        && !has(&title, &HARMING)
        && !has(name, &LOOKING)
}

/// The words of a name or title in small letters: `deleteFile`, `delete-file` and `Delete file` have the same.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    for c in text.chars() {
        let begins = !c.is_alphanumeric() || (c.is_uppercase() && previous.is_lowercase());
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        previous = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kinds(raw: Value) -> Vec<FindingKind> {
        odd(&raw).into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn names_of_tools_are_letters_digits_and_three_marks() {
        for name in ["read_file", "a", "Read.File-2", &"x".repeat(128)] {
            assert_eq!(kinds(json!({"name": name})), [], "{name}");
        }
        for name in ["read file", "réad", "a/b", "a\u{200b}b", "", &"x".repeat(129)] {
            assert_eq!(kinds(json!({"name": name})), [FindingKind::UnusualName], "{name}");
        }
        assert_eq!(kinds(json!({})), []);
    }

    #[test]
    fn a_name_that_poses_is_told() {
        for name in [
            "system",
            "System",
            "system-prompt",
            "override",
            "mcp__files__read",
            "neuron_connect_request",
        ] {
            assert_eq!(kinds(json!({"name": name})), [FindingKind::DeceptiveName], "{name}");
        }
        for name in ["alwaysCallFirst", "ignore_previous_rules", "call_me_first"] {
            assert_eq!(kinds(json!({"name": name})), [FindingKind::DeceptiveName], "{name}");
        }
        for name in [
            "system_info",
            "get_user",
            "user_list",
            "admin_users_list",
            "override_color",
            "root_cause",
        ] {
            assert_eq!(kinds(json!({"name": name})), [], "{name}");
        }
    }

    #[test]
    fn a_title_that_promises_less_than_the_name_does_is_told() {
        for (name, title, odd) in [
            ("delete_file", "Read file", true),
            ("sendMoney", "Check balance", true),
            ("drop-table", "List tables", true),
            ("delete_file", "Delete file", false),
            ("delete_file", "Find and delete a file", false),
            ("read_file", "Read file", false),
            ("send_and_list", "List sent mail", false),
            ("list_deleted", "List deleted", false),
            ("write_query", "Write query", false),
        ] {
            for raw in [
                json!({"name": name, "title": title}),
                json!({"name": name, "annotations": {"title": title}}),
            ] {
                assert_eq!(!kinds(raw.clone()).is_empty(), odd, "{raw}");
            }
        }
    }

    #[test]
    fn a_deleter_that_claims_to_only_read_is_told() {
        let claims = |name: &str, reads: bool| json!({"name": name, "annotations": {"readOnlyHint": reads}});
        assert_eq!(kinds(claims("delete_repo", true)), [FindingKind::DeceptiveName]);
        assert_eq!(kinds(claims("delete_repo", false)), []);
        assert_eq!(kinds(claims("list_deleted", true)), []);
    }
}
