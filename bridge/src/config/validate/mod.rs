//! One member of `servers` → what a connector is to be, or one sentence why it cannot be. Pure.

mod launch;
mod members;
mod oauth;

use jsonc_parser::{
    ast::{ObjectProp, Value as Tree},
    common::Ranged as _,
};
use serde_json::{Map, Value};

use self::{
    launch::LaunchMembers,
    members::{Reader, Source},
};
use super::{
    AutoApprove, Connector, EntryKind, Start, Timeouts,
    json::{Place, key, key_range, repeated_key, tree},
};
use crate::{
    ids::ConnectorId,
    snapshot::{Notice, NoticeLevel},
};

/// Longest `description`, in characters.
pub const MAX_DESCRIPTION: usize = 2048;
/// Longest `timeouts.connectMs`.
pub const MAX_CONNECT_MS: u64 = 600_000;
/// Longest `timeouts.callMs`.
pub const MAX_CALL_MS: u64 = 3_600_000;

const MEMBERS: [&str; 17] = [
    "transport",
    "enabled",
    "name",
    "description",
    "command",
    "args",
    "env",
    "cwd",
    "envFile",
    "url",
    "headers",
    "auth",
    "oauth",
    "autoApprove",
    "disabledTools",
    "timeouts",
    "start",
];

/// What other programs call a member of ours.
const OTHER_WORDS: [(&str, &str); 8] = [
    ("type", "transport"),
    ("disabled", "enabled"),
    ("alwaysAllow", "autoApprove"),
    ("httpUrl", "url"),
    ("serverUrl", "url"),
    ("cmd", "command"),
    ("environment", "env"),
    ("timeout", "timeouts"),
];

/// Reads a member of `servers` in the person's file. `text` is the whole file without byte order mark.
///
/// Returns remarks beside the result; an invalid entry's own error is among them.
pub(super) fn validate(text: &str, property: &ObjectProp<'_>) -> (EntryKind, Vec<Notice>) {
    let mut reader = Reader {
        text,
        entry: key(property),
        source: Source::File,
        notices: Vec::new(),
    };
    match connector(&mut reader, property) {
        Ok(connector) => (EntryKind::Valid(Box::new(connector)), reader.notices),
        Err(notice) => {
            reader.notices.insert(0, notice.clone());
            (EntryKind::Invalid(notice), reader.notices)
        }
    }
}

/// Reads an entry from a request's body: the rules of the file, but unknown members are refused.
///
/// # Errors
/// One sentence with what and what to do.
pub fn validate_body(id: &ConnectorId, entry: &Map<String, Value>) -> Result<Connector, String> {
    let body = Value::Object(Map::from_iter([(id.as_str().to_owned(), Value::Object(entry.clone()))])).to_string();
    let unreadable = || format!("Connector \"{id}\": it is nested too deeply; keep to the members of an entry.");
    let Ok(Some(Tree::Object(parsed))) = tree(&body) else {
        return Err(unreadable());
    };
    let property = parsed.properties.first().ok_or_else(unreadable)?;
    let mut reader = Reader {
        text: &body,
        entry: id.as_str(),
        source: Source::Body,
        notices: Vec::new(),
    };
    connector(&mut reader, property).map_err(|notice| notice.message)
}

/// An entry that stands twice is nobody's.
pub(super) fn duplicate_entry(text: &str, entry: &str, first: usize, second: usize) -> Notice {
    let (first, second) = (Place::of(text, first), Place::of(text, second));
    Notice {
        level: NoticeLevel::Error,
        message: format!(
            "Connector \"{}\" stands twice, at {first} and at {second}; rename or remove one.",
            entry.escape_debug()
        ),
        line: Some(second.line),
        column: Some(second.column),
        server: Some(entry.to_owned()),
    }
}

fn connector(reader: &mut Reader<'_>, property: &ObjectProp<'_>) -> Result<Connector, Notice> {
    let start = property.value.start();
    let id = ConnectorId::parse(key(property)).map_err(|error| reader.fault(key_range(property).start, error))?;
    let Tree::Object(object) = &property.value else {
        return Err(reader.fault(
            start,
            "it must be an object in \"{\" and \"}\" with \"command\" or \"url\"",
        ));
    };
    if let Some((name, first, second)) = repeated_key(&property.value) {
        let (first, place) = (Place::of(reader.text, first), Place::of(reader.text, second));
        let name = name.escape_debug();
        return Err(reader.fault(
            second,
            format!("\"{name}\" stands twice, at {first} and at {place}; remove one"),
        ));
    }
    let mut launch = LaunchMembers::default();
    let mut connector = Draft::default();
    for member in &object.properties {
        match key(member) {
            "transport" => launch.transport = Some(member),
            "command" => launch.command = Some(member),
            "args" => launch.args = Some(member),
            "env" => launch.env = Some(member),
            "cwd" => launch.cwd = Some(member),
            "envFile" => launch.env_file = Some(member),
            "url" => launch.url = Some(member),
            "headers" => launch.headers = Some(member),
            "auth" => launch.auth = Some(member),
            "oauth" => launch.oauth = Some(member),
            "enabled" => connector.disabled = !reader.boolean(member, "enabled")?,
            "name" => connector.name = Some(reader.text(member, "name")?).filter(|name| !name.trim().is_empty()),
            "description" => connector.description = Some(description(reader, member)?),
            "autoApprove" => connector.auto_approve = Some(auto_approve(reader, member)?),
            "disabledTools" => connector.disabled_tools = reader.patterns(member, "disabledTools")?,
            "timeouts" => connector.timeouts = timeouts(reader, member)?,
            "start" => {
                let choices = [("on-demand", Start::OnDemand), ("at-launch", Start::AtLaunch)];
                connector.start = reader.choice(member, "start", &choices)?;
            }
            other => {
                let hint = OTHER_WORDS
                    .iter()
                    .find(|(theirs, _)| *theirs == other)
                    .map(|(_, ours)| *ours);
                reader.unknown(member, other, hint.or_else(|| similar(other, &MEMBERS)))?;
            }
        }
    }
    Ok(Connector {
        id,
        enabled: !connector.disabled,
        name: connector.name,
        description: connector.description,
        launch: launch::read(reader, start, &launch)?,
        auto_approve: connector.auto_approve.unwrap_or(AutoApprove::None),
        disabled_tools: connector.disabled_tools,
        timeouts: connector.timeouts,
        start: connector.start,
    })
}

/// What an entry says beside its launch.
#[derive(Default)]
struct Draft {
    disabled: bool,
    name: Option<String>,
    description: Option<String>,
    auto_approve: Option<AutoApprove>,
    disabled_tools: Vec<String>,
    timeouts: Timeouts,
    start: Start,
}

fn description(reader: &mut Reader<'_>, member: &ObjectProp<'_>) -> Result<String, Notice> {
    let text = reader.text(member, "description")?;
    let length = text.chars().count();
    if length > MAX_DESCRIPTION {
        return Err(reader.fault(
            member.value.start(),
            format!("\"description\" has {length} characters; shorten it to at most {MAX_DESCRIPTION}"),
        ));
    }
    Ok(text)
}

fn auto_approve(reader: &mut Reader<'_>, member: &ObjectProp<'_>) -> Result<AutoApprove, Notice> {
    match &member.value {
        Tree::BooleanLit(b) if b.value => Ok(AutoApprove::All),
        Tree::BooleanLit(_) => Ok(AutoApprove::None),
        Tree::Array(_) => Ok(match reader.patterns(member, "autoApprove")? {
            none if none.is_empty() => AutoApprove::None,
            patterns => AutoApprove::Patterns(patterns),
        }),
        other => Err(reader.wrong_type(other, "autoApprove", "true, false or a list of tool names")),
    }
}

fn timeouts(reader: &mut Reader<'_>, member: &ObjectProp<'_>) -> Result<Timeouts, Notice> {
    let object = reader.object(member, "timeouts")?;
    let mut timeouts = Timeouts::default();
    for member in &object.properties {
        let path = format!("timeouts.{}", key(member));
        match key(member) {
            "connectMs" => timeouts.connect = Some(reader.milliseconds(member, &path, MAX_CONNECT_MS)?),
            "callMs" => timeouts.call = Some(reader.milliseconds(member, &path, MAX_CALL_MS)?),
            other => reader.unknown(member, &path, similar(other, &["connectMs", "callMs"]))?,
        }
    }
    Ok(timeouts)
}

/// The known word that differs only in case and separators.
fn similar<'w>(given: &str, words: &[&'w str]) -> Option<&'w str> {
    let bare = |text: &str| {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    let given = bare(given);
    words.iter().copied().find(|word| bare(word) == given)
}

#[cfg(test)]
mod tests;
