//! An entry as it is kept: every text of others without secrets, and not longer than a person reads.

use std::borrow::Cow;

use serde_json::Value;

use super::{Entry, ProgramRecord};
use crate::{
    connector::log::Log,
    ids::ToolName,
    secrets::{self, MARK, is_secret_name},
    snapshot::{ActivityRecord, ActivityWhat, ActivityWho, Arguments},
};

/// Characters of a name or an address.
const LONGEST_TEXT: usize = 1_000;

pub(super) fn record(entry: Entry) -> ActivityRecord {
    let (outcome, code) = entry.outcome.parts();
    let program = entry.who.program.as_ref().and_then(ProgramRecord::get);
    let client = entry.who.client.as_ref();
    ActivityRecord {
        at: entry.at,
        who: ActivityWho {
            kind: entry.who.kind,
            client_id: client.map(|client| client.id.to_string()),
            client_name: client.map(|client| shortened(&client.name)),
            program_name: program.as_ref().map(|program| shortened(&program.name)),
            program_path: program
                .as_ref()
                .and_then(|program| program.path.as_deref().map(shortened)),
            program_script: program
                .as_ref()
                .and_then(|program| program.script.as_deref().map(shortened)),
            pid: program.map(|program| program.pid),
        },
        what: what(entry.what, Hides(entry.hides.as_ref())),
        outcome,
        code: code.map(ToOwned::to_owned),
        duration_ms: entry.duration_ms,
        allowed_by: entry.allowed_by,
        warnings: entry.warnings,
    }
}

fn what(what: ActivityWhat, hides: Hides<'_>) -> ActivityWhat {
    match what {
        ActivityWhat::Call {
            server,
            tool,
            arguments,
        } => ActivityWhat::Call {
            server,
            tool: ToolName::new(hides.text(tool.as_str())),
            arguments: hides.arguments(arguments),
        },
        ActivityWhat::Read { server, uri } => ActivityWhat::Read {
            server,
            uri: hides.text(&uri),
        },
        ActivityWhat::Prompt {
            server,
            name,
            arguments,
        } => ActivityWhat::Prompt {
            server,
            name: hides.text(&name),
            arguments: hides.arguments(arguments),
        },
        ActivityWhat::Review { server, of, subject } => ActivityWhat::Review {
            server,
            of,
            subject: subject.map(|subject| hides.text(&subject)),
        },
        ActivityWhat::Change {
            server,
            change,
            subject,
        } => ActivityWhat::Change {
            server: server.as_deref().map(shortened),
            change,
            subject: subject.map(|subject| hides.text(&subject)),
        },
        ActivityWhat::Question { .. }
        | ActivityWhat::SignIn { .. }
        | ActivityWhat::SignOut { .. }
        | ActivityWhat::Lost { .. } => what,
    }
}

/// What is secret in texts about a connector: what it holds, and what looks like it.
#[derive(Clone, Copy)]
struct Hides<'l>(Option<&'l Log>);

impl Hides<'_> {
    fn secrets<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.0 {
            Some(log) => log.redactor().text(text),
            None => secrets::redact(text),
        }
    }

    /// Hidden before it is cut: the beginning of a secret tells something of it.
    fn text(&self, text: &str) -> String {
        shortened(&self.secrets(text))
    }

    fn arguments(&self, arguments: Arguments) -> Arguments {
        match arguments {
            Arguments::Shape(shape) => Arguments::Shape(self.names(shape)),
            Arguments::Full(value) => Arguments::Full(self.value(value)),
        }
    }

    /// A shape has no values, and a name may be anything.
    fn names(&self, shape: Value) -> Value {
        match shape {
            Value::Object(members) => {
                let hidden = |(name, value): (String, Value)| (self.secrets(&name).into_owned(), self.names(value));
                Value::Object(members.into_iter().map(hidden).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => shape,
        }
    }

    /// A member of a telling name is hidden whole.
    fn value(&self, value: Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) => value,
            Value::Number(number) => match self.secrets(number.as_str()) {
                Cow::Borrowed(_) => Value::Number(number),
                Cow::Owned(hidden) => Value::String(hidden),
            },
            Value::String(text) => Value::String(self.secrets(&text).into_owned()),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.value(item)).collect()),
            Value::Object(members) => {
                let hidden = |(name, value): (String, Value)| {
                    let value = match value {
                        Value::Null | Value::Bool(_) => value,
                        _ if is_secret_name(&name) => Value::String(MARK.to_owned()),
                        other => self.value(other),
                    };
                    (self.secrets(&name).into_owned(), value)
                };
                Value::Object(members.into_iter().map(hidden).collect())
            }
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hidden(arguments: Value) -> Value {
        Hides(None).value(arguments)
    }

    #[test]
    fn arguments_lose_what_is_called_a_secret_and_what_looks_like_one() {
        let token = format!("ghp_{}", "aB3dE5fG7h".repeat(4));
        let kept = hidden(json!({
            "path": "/home/p/notes.txt",
            "password": "hunter2",
            "pin": {"api_key": 12_345_678, "list": ["fine", token], "access_token": ["a", {"b": "c"}]},
            "note": format!("use {token} for it"),
            "count": 3,
        }));
        assert_eq!(
            kept,
            json!({
                "path": "/home/p/notes.txt",
                "password": MARK,
                "pin": {"api_key": MARK, "list": ["fine", MARK], "access_token": MARK},
                "note": format!("use {MARK} for it"),
                "count": 3,
            })
        );
    }

    #[test]
    fn a_shape_keeps_the_size_of_a_password_and_hides_a_secret_in_a_name() {
        let token = format!("ghp_{}", "aB3dE5fG7h".repeat(4));
        let shape = json!({"password": "text(12)", "tokens": "list(3)", "deep": {(token): "number"}});
        assert_eq!(
            Hides(None).arguments(Arguments::Shape(shape)),
            Arguments::Shape(json!({"password": "text(12)", "tokens": "list(3)", "deep": {(MARK): "number"}}))
        );
    }

    #[test]
    fn a_secret_is_hidden_before_its_text_is_cut() {
        let token = format!("ghp_{}", "aB3dE5fG7h".repeat(4));
        let text = format!("{} {token}", "x".repeat(LONGEST_TEXT - 20));
        let shown = Hides(None).text(&text);
        assert!(shown.ends_with(&format!("x {MARK}")), "{shown}");
    }
}
