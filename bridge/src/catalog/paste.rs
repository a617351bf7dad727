//! A pasted text → entries that could be added: a URL, a command line, or the JSON of any known client. Pure.
//!
//! Never refuses silently: what is left out stands in the notes, what cannot work in `problem`.

mod client;
mod command;
mod names;

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Map, Value};
use ts_rs::TS;

use crate::{
    config::{json, validate_body},
    ids::ConnectorId,
};

/// Longest text that is looked at, in bytes.
const MAX_TEXT: usize = 256 * 1024;

/// What a pasted text was understood as.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct Paste {
    /// One for each server found, in the order of the text.
    pub proposals: Vec<Proposal>,
    /// Why nothing was found, or why the text as a whole cannot be used: a sentence with what to do.
    pub problem: Option<String>,
}

/// An entry that could be added to `connectors.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct Proposal {
    /// A legal id, different from those of the other proposals; may already be taken in the file.
    pub id: String,
    /// The entry as it would stand in `connectors.json`: a JSON object, indented.
    pub entry: String,
    /// The command line or URL.
    pub summary: String,
    /// What was changed or left out, one sentence each.
    pub notes: Vec<String>,
    /// Why it cannot be added as it is.
    pub problem: Option<String>,
}

/// Understands a pasted text.
pub fn propose(text: &str) -> Paste {
    let text = without_fence(text.trim_matches(|c: char| c.is_whitespace() || c == json::BOM));
    let found = if text.is_empty() {
        Err("There is nothing to read; paste an address, a command line or JSON.".to_owned())
    } else if text.len() > MAX_TEXT {
        Err("The text is longer than 256 KiB; paste only the part about one server.".to_owned())
    } else {
        understand(text)
    };
    match found {
        Ok(drafts) => Paste {
            proposals: finish(drafts),
            problem: None,
        },
        Err(problem) => Paste {
            proposals: Vec::new(),
            problem: Some(problem),
        },
    }
}

/// A server as far as it was understood.
#[derive(Debug, Default)]
struct Draft {
    /// The name it has or was guessed from; any text.
    name: String,
    entry: Map<String, Value>,
    notes: Vec<String>,
    problem: Option<String>,
}

fn understand(text: &str) -> Result<Vec<Draft>, String> {
    if let Some(problem) = other_format(text) {
        return Err(problem.to_owned());
    }
    if text.starts_with(['{', '[']) || text.starts_with("//") || text.starts_with("/*") {
        return client::read(text);
    }
    if text.starts_with('"') {
        // A member without the braces around it; or a quoted program.
        let wrapped = format!("{{{}}}", text.trim_end_matches(','));
        if json::tree(&wrapped).is_ok() {
            return client::read(&wrapped);
        }
    }
    match text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [word] if word.contains("://") => address(word).map(|draft| vec![draft]),
        [word] if looks_like_host(word) => {
            let mut draft = address(&format!("https://{word}"))?;
            draft
                .notes
                .push("\"https://\" was put in front of the address.".to_owned());
            Ok(vec![draft])
        }
        _ => command::read(text).map(|draft| vec![draft]),
    }
}

/// Formats that a person may well paste and that are read elsewhere.
fn other_format(text: &str) -> Option<&'static str> {
    let begins = |line: &str, words: &[&str]| words.iter().any(|word| line.starts_with(word));
    for line in text.lines().map(str::trim_start) {
        if begins(line, &["[mcp_servers", "[[mcp"]) {
            return Some("This is TOML, as Codex keeps it; paste the server's command line or address instead.");
        }
        if begins(line, &["extensions:", "mcpServers:", "mcp_servers:"]) {
            return Some("This is YAML; paste the server's command line or address instead.");
        }
    }
    None
}

/// `host.tld/path` or `mcp.host.tld`, but no file name and no path.
fn looks_like_host(word: &str) -> bool {
    let host = word.split(['/', ':']).next().unwrap_or_default();
    let labels: Vec<&str> = host.split('.').collect();
    let plain = |label: &&str| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    labels.len() >= 2 && labels.iter().all(plain) && (word.contains('/') || host.starts_with("mcp."))
}

fn address(url: &str) -> Result<Draft, String> {
    let scheme = url.split("://").next().unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        let shown: String = scheme.chars().take(32).collect();
        return Err(format!(
            "Addresses that begin with \"{}://\" cannot be connected to; paste one that begins with https://.",
            shown.escape_debug()
        ));
    }
    let mut draft = Draft {
        name: names::of_url(url),
        ..Draft::default()
    };
    note_sse_path(url, &mut draft.notes);
    draft.entry.insert("url".to_owned(), url.into());
    Ok(draft)
}

fn note_sse_path(url: &str, notes: &mut Vec<String>) {
    let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    if path.ends_with("/sse") {
        notes.push(
            "The address ends with /sse, as those of the deprecated transport do; it is tried as http. If that fails, set \"transport\" to \"sse\"."
                .to_owned(),
        );
    }
}

fn without_fence(text: &str) -> &str {
    let inside = text
        .strip_prefix("```")
        .and_then(|rest| rest.trim_end().strip_suffix("```"));
    match inside.and_then(|inside| inside.split_once('\n')) {
        Some((_language, body)) => body.trim(),
        None => text.trim_matches('`').trim(),
    }
}

fn finish(drafts: Vec<Draft>) -> Vec<Proposal> {
    let mut taken = HashSet::new();
    drafts.into_iter().map(|draft| proposal(draft, &mut taken)).collect()
}

fn proposal(mut draft: Draft, taken: &mut HashSet<String>) -> Proposal {
    let base = ConnectorId::suggest(&draft.name);
    if base != draft.name {
        // The person still finds it under the name it had.
        let shown = draft.name.trim();
        if !shown.is_empty() && !draft.entry.contains_key("name") {
            draft.entry.shift_insert(0, "name".to_owned(), shown.into());
        }
        draft.notes.push(format!(
            "\"{}\" cannot be an id here, so it became \"{base}\".",
            shown.escape_debug()
        ));
    }
    let mut id = base.clone();
    for number in 2.. {
        if taken.insert(id.clone()) {
            break;
        }
        id = ConnectorId::suggest(&format!("{}-{number}", base.chars().take(56).collect::<String>()));
    }
    let checked = match ConnectorId::parse(&id) {
        Ok(id) => validate_body(&id, &draft.entry).err(),
        Err(error) => Some(error.to_string()),
    };
    Proposal {
        summary: summary(&draft.entry),
        entry: format!("{:#}", Value::Object(draft.entry)),
        id,
        notes: draft.notes,
        problem: draft.problem.or(checked),
    }
}

fn summary(entry: &Map<String, Value>) -> String {
    if let Some(url) = entry.get("url").and_then(Value::as_str) {
        return url.to_owned();
    }
    let command = entry.get("command").and_then(Value::as_str);
    let args = entry
        .get("args")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    shell_words::join(command.into_iter().chain(args))
}

#[cfg(test)]
mod tests;
