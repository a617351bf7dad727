//! The scan: reasons for a person to look at a text before a model reads it. Offline, pure, and in a time in proportion
//! to the text. Never decides what follows from a finding.
//!
//! Hidden characters are looked for in texts as received, phrases in folded copies. Everything in a definition is looked
//! at, names and values of both schemas included, except `_meta` and `icons`, which no model reads.

mod finding;
mod fold;
mod hidden;
mod names;
mod others;
mod phrases;
mod rules;
mod visible;

#[cfg(test)]
mod tests;

use std::{fmt, ops::Range};

use serde_json::Value;

use self::{
    hidden::Class,
    rules::{Hit, Reach},
};
use super::{Fingerprint, Unprintable};
use crate::ids::ConnectorId;

pub use finding::{Finding, FindingKind};
pub(super) use hidden::is_hidden;
pub use others::OtherTools;
pub use visible::{Piece, one_line, visible, visible_text};

/// Most findings of one text or definition: enough to see that it must not be trusted.
const MAX_FINDINGS: usize = 16;
/// So much of a text is shown on either side of the words meant, in bytes.
const EXCERPT_AROUND: usize = 40;
/// More blanks than this push what follows out of sight, in characters.
const MAX_BLANKS: usize = 200;
/// More empty lines than this do.
const MAX_EMPTY_LINES: usize = 24;

/// What stands out in a tool as received that belongs to the connector `own`, other connectors' tools considered.
pub fn definition(raw: &Value, own: &ConnectorId, others: &OtherTools) -> Vec<Finding> {
    let mut findings = tool(raw, Fingerprint::of(raw).as_ref().err());
    findings.extend(references(raw, own, others));
    findings
}

/// What stands out in a tool as received, whatever other tools there are; of use for as long as the tool stays the same.
/// `fault` says why it has no fingerprint, where it has none.
pub fn tool(raw: &Value, fault: Option<&Unprintable>) -> Vec<Finding> {
    let mut found = Found::default();
    if let Some(fault) = fault {
        found.add(FindingKind::Unprintable, "", &fault.sentence());
    }
    for (kind, words) in names::odd(raw) {
        found.add(kind, "name", &words);
    }
    item_into(raw, &mut found);
    found.findings
}

/// What stands out in a prompt, resource or template as listed.
pub fn item(raw: &Value) -> Vec<Finding> {
    let mut found = Found::default();
    item_into(raw, &mut found);
    found.findings
}

/// Where a tool speaks of tools that only other connectors have. Whole names in sentences count, distinctive ones only.
pub fn references(raw: &Value, own: &ConnectorId, others: &OtherTools) -> Vec<Finding> {
    let mut found = Found::default();
    walk_item(raw, &mut |text, path| {
        // A name on its own, as in a list of choices, says nothing about how to use the tool.
        if text.contains(' ')
            && let Some(name) = others.first_in(text, own)
        {
            found.add(FindingKind::OtherTools, &path.to_string(), name);
        }
    });
    found.findings
}

/// What stands out in a text of an upstream that a model reads as it is, such as its instructions; `place` names it.
pub fn text(text: &str, place: &str) -> Vec<Finding> {
    let mut found = Found::default();
    let mut buffer = String::new();
    look_at(
        text,
        &|| place.to_owned(),
        |reach| reach != Reach::SideParameters,
        &mut buffer,
        &mut found,
    );
    found.findings
}

/// What stands out in the result of a call. Results are any text of the world, so only that counts which none but a
/// model would be the reader of.
pub fn result(text: &str) -> Vec<Finding> {
    let mut found = Found::default();
    if let Some(range) = smuggled(text) {
        found.add(FindingKind::HiddenCharacters, "result", excerpt(text, range));
    }
    let mut buffer = String::with_capacity(text.len());
    fold::fold(text, &mut buffer);
    for hit in rules::hits(&buffer, |reach| reach == Reach::Everywhere) {
        found.add(hit.kind, "result", excerpt_of(text, &hit));
    }
    found.findings
}

fn item_into(raw: &Value, found: &mut Found) {
    let mut buffer = String::new();
    walk_item(raw, &mut |text, path| {
        let aside = path.is_of_side_parameter();
        let wanted = |reach| aside || reach != Reach::SideParameters;
        look_at(text, &|| path.to_string(), wanted, &mut buffer, found);
    });
}

/// Looks at one text as at a definition.
fn look_at(
    text: &str,
    place: &dyn Fn() -> String,
    wanted: impl Fn(Reach) -> bool,
    buffer: &mut String,
    found: &mut Found,
) {
    if !visible::is_plain(text) {
        if let Some(run) = visible::runs(text).into_iter().max_by_key(|run| run.count) {
            found.add(FindingKind::HiddenCharacters, &place(), excerpt(text, run.range));
        }
        if let Some(word) = fold::mixed_word(text) {
            found.add(FindingKind::Lookalikes, &place(), word);
        }
    }
    if text.len() < SHORTEST {
        return;
    }
    if let Some(behind) = out_of_sight(text) {
        found.add(FindingKind::OutOfSight, &place(), behind);
    }
    buffer.clear();
    fold::fold(text, buffer);
    for hit in rules::hits(buffer, &wanted) {
        found.add(hit.kind, &place(), excerpt_of(text, &hit));
    }
    for decoded in encoded(text) {
        buffer.clear();
        fold::fold(&decoded, buffer);
        if let Some(hit) = rules::hits(buffer, &wanted).first() {
            found.add(FindingKind::OutOfSight, &place(), excerpt_of(&decoded, hit));
        }
    }
}

/// No phrase is shorter.
const SHORTEST: usize = 6;

/// Text behind so many blanks that nobody scrolls there.
fn out_of_sight(text: &str) -> Option<&str> {
    let mut blanks = 0;
    let mut lines = 0;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => lines += 1,
            _ if c.is_whitespace() => blanks += 1,
            _ if blanks > MAX_BLANKS || lines > MAX_EMPTY_LINES => return Some(&text[at..]),
            _ => (blanks, lines) = (0, 0),
        }
    }
    None
}

/// Shortest encoded text that is looked into, in characters: a few words.
const SHORTEST_ENCODED: usize = 24;
/// Most encoded texts that are looked into, in one text.
const MAX_ENCODED: usize = 8;

/// Readable texts in base64.
fn encoded(text: &str) -> Vec<String> {
    use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
    if text.len() < SHORTEST_ENCODED {
        return Vec::new();
    }
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '+' || c == '/'))
        .filter(|run| run.len() >= SHORTEST_ENCODED)
        .take(MAX_ENCODED)
        .filter_map(|run| {
            let whole = &run[..run.len() - usize::from(run.len() % 4 == 1)];
            String::from_utf8(STANDARD_NO_PAD.decode(whole).ok()?).ok()
        })
        .collect()
}

/// Characters in a result that only somebody who hides something would put there.
fn smuggled(text: &str) -> Option<Range<usize>> {
    /// Text is spelled with many of them; a single one is somebody's typography.
    const MANY: usize = 4;
    let right_to_left = || text.chars().any(|c| matches!(c, '\u{590}'..='\u{8ff}'));
    if text.is_ascii() {
        return text.find("\u{1b}[8m").map(|at| at..at + 4);
    }
    let runs = visible::runs(text);
    runs.into_iter()
        .find(|run| match run.class {
            Class::Tag => true,
            Class::Direction => !right_to_left(),
            Class::Selector | Class::ZeroWidth | Class::Filler => run.count >= MANY,
            Class::Control => text[run.range.start..].starts_with("\u{1b}[8m"),
            Class::PrivateUse => false,
        })
        .map(|run| run.range)
}

fn excerpt_of<'t>(text: &'t str, hit: &Hit) -> &'t str {
    excerpt(text, fold::origin(text, hit.start)..fold::origin(text, hit.end))
}

/// The words meant, with some of what stands around them: whole words, where they are no longer than that.
fn excerpt(text: &str, range: Range<usize>) -> &str {
    let mut start = range.start.saturating_sub(EXCERPT_AROUND);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = (range.end + EXCERPT_AROUND).min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    let (before, after) = (&text[start..range.start], &text[range.end..end]);
    if start > 0
        && let Some(gap) = before.find(char::is_whitespace)
    {
        start += gap;
    }
    if end < text.len()
        && let Some(gap) = after.rfind(char::is_whitespace)
    {
        end = range.end + gap;
    }
    text[start..end].trim()
}

/// Findings, one for each kind and place.
#[derive(Default)]
struct Found {
    findings: Vec<Finding>,
}

impl Found {
    fn add(&mut self, kind: FindingKind, place: &str, words: &str) {
        if self.findings.len() < MAX_FINDINGS {
            let new = Finding::new(kind, place, words);
            if !self
                .findings
                .iter()
                .any(|one| (one.kind, &one.place) == (kind, &new.place))
            {
                self.findings.push(new);
            }
        }
    }
}

/// Where a text stands.
#[derive(Clone, Copy)]
struct Path<'a> {
    above: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

impl Path<'_> {
    /// Whether this is in a parameter whose name says that it serves no purpose of the tool's.
    fn is_of_side_parameter(&self) -> bool {
        let named = |path: &Path<'_>, names: &[&str]| match path.step {
            Step::Name(name) => names.iter().any(|one| one.eq_ignore_ascii_case(name)),
            Step::Index(_) => false,
        };
        let parameter = self.above;
        parameter.is_some_and(|parameter| {
            named(parameter, &phrases::SIDE_PARAMETERS)
                && parameter.above.is_some_and(|path| named(path, &["properties"]))
        })
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            write!(f, "{above}.")?;
        }
        match self.step {
            Step::Name(name) => f.write_str(name),
            Step::Index(index) => write!(f, "{index}"),
        }
    }
}

/// Hands on every text of an item, names of members that are not the protocol's included.
fn walk_item(raw: &Value, take: &mut dyn FnMut(&str, &Path<'_>)) {
    let Some(members) = raw.as_object() else { return };
    for (name, value) in members {
        if name == "_meta" || name == "icons" {
            continue;
        }
        let path = Path {
            above: None,
            step: Step::Name(name),
        };
        take(name, &path);
        walk(value, &path, take);
    }
}

fn walk(value: &Value, path: &Path<'_>, take: &mut dyn FnMut(&str, &Path<'_>)) {
    let below = |step| Path {
        above: Some(path),
        step,
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => take(text, path),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &below(Step::Index(index)), take);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                let path = below(Step::Name(name));
                take(name, &path);
                walk(value, &path, take);
            }
        }
    }
}
