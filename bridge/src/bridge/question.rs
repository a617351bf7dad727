//! A call as a question to the person: everything that would be sent, and where. Pure.

use serde_json::Value;
use url::Url;

use super::Published;
use crate::{
    approval::{Matter, Subject},
    config::{Connector, Launch},
    snapshot::{ArgumentView, AskedSubject, CallQuestion, FileWrite, Question, ToolHints, WhoView},
    tools::Tool,
};

/// Characters of one argument that are shown: all that a request may hold unless the settings let it hold more. Of a longer
/// one the window says how many are not shown.
const MOST_SHOWN: usize = 1024 * 1024;

/// Bytes of JSON up to which it is indented: a deep or wide value grows many times by it.
const LONGEST_INDENTED: usize = 16 * 1024;

/// The question whether `who` may do this; `writes` is what a look told of a file.
pub(super) fn of(
    published: &Published,
    entry: &Connector,
    who: WhoView,
    matter: &Matter,
    writes: Option<FileWrite>,
) -> Question {
    let tool = match &matter.subject {
        Subject::Tool { name, .. } => published
            .looked
            .get(&matter.server)
            .and_then(|looked| looked.served(name)),
        Subject::Resource(_) | Subject::Prompt(_) => None,
    };
    let (place, is_local) = place(&entry.launch);
    Question::Call {
        call: Box::new(CallQuestion {
            who,
            subject: subject(matter, tool),
            place,
            is_local,
            arguments: arguments(matter, tool),
            same: 0,
            writes,
        }),
    }
}

fn subject(matter: &Matter, tool: Option<&Tool>) -> AskedSubject {
    match &matter.subject {
        Subject::Tool { name, exposed, .. } => AskedSubject::Tool {
            tool: name.to_string(),
            exposed_name: exposed.clone(),
            title: tool.and_then(|tool| tool.title.clone()),
            description: tool.map(|tool| tool.description.clone()).unwrap_or_default(),
            hints: tool.map_or(
                ToolHints {
                    read_only: None,
                    destructive: None,
                    idempotent: None,
                    open_world: None,
                },
                |tool| tool.hints,
            ),
        },
        Subject::Resource(uri) => AskedSubject::Resource { uri: uri.clone() },
        Subject::Prompt(name) => AskedSubject::Prompt { name: name.clone() },
    }
}

/// The host that is contacted, or the program that runs, and whether that is on this computer.
pub(super) fn place(launch: &Launch) -> (String, bool) {
    match launch {
        Launch::Stdio(stdio) => (stdio.command.clone(), true),
        Launch::Http(http) => match Url::parse(&http.url) {
            Ok(url) => {
                let is_local = match url.host() {
                    Some(url::Host::Domain(name)) => name == "localhost",
                    Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
                    Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
                    None => false,
                };
                (url.host_str().unwrap_or_default().to_owned(), is_local)
            }
            Err(_) => (http.url.clone(), false),
        },
    }
}

/// Indented where that is a help; what is long is no longer than it was sent.
fn shown_json(value: &Value) -> String {
    let written = value.to_string();
    if written.len() > LONGEST_INDENTED {
        return written;
    }
    serde_json::to_string_pretty(value).unwrap_or(written)
}

fn arguments(matter: &Matter, tool: Option<&Tool>) -> Vec<ArgumentView> {
    let declared = tool.and_then(|tool| tool.input_schema.get("properties")?.as_object());
    let mut arguments: Vec<_> = matter
        .arguments
        .iter()
        .map(|(name, value)| {
            let text = value.as_str().map(str::to_owned);
            let is_text = text.is_some();
            let whole = text.unwrap_or_else(|| shown_json(value));
            ArgumentView {
                name: name.clone(),
                size: u32::try_from(whole.chars().count()).unwrap_or(u32::MAX),
                value: whole.chars().take(MOST_SHOWN).collect(),
                is_text,
                known: match matter.subject {
                    Subject::Tool { .. } => declared.is_some_and(|declared| declared.contains_key(name)),
                    Subject::Resource(_) | Subject::Prompt(_) => true,
                },
            }
        })
        .collect();
    arguments.sort_by_key(|argument| argument.size);
    arguments
}
