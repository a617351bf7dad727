//! Values that a name before them gives away: assignments, JSON members, headers, options of a command line.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use super::{
    name::{self, Prose},
    pattern,
    value::{self, End},
};

/// A name, perhaps the end of its quotes or colour, and what assigns.
static ASSIGNED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"([A-Za-z0-9_][A-Za-z0-9_.-]{0,79})(?:\x1b\[[0-9;]{0,9}m)?(\\{0,7}["'`])?(?:\x1b\[[0-9;]{0,9}m)?[ \t]?([=:])(?:\x1b\[[0-9;]{0,9}m)?[ \t]{0,3}"#,
    )
});

/// An option whose value is the next word, also as two members of a printed list.
static OPTION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?:^|[\s"'`\[(,])--?([A-Za-z][A-Za-z0-9_-]{1,59})(?:[ \t]+|\\{0,7}["'`],?[ \t]?)"#));

/// Words after an option's name in a sentence about the option.
const PROSE: &[&str] = &[
    "a",
    "an",
    "and",
    "are",
    "argument",
    "as",
    "be",
    "before",
    "but",
    "by",
    "can",
    "cannot",
    "does",
    "flag",
    "for",
    "from",
    "given",
    "has",
    "if",
    "in",
    "instead",
    "is",
    "it",
    "may",
    "missing",
    "must",
    "needs",
    "not",
    "of",
    "on",
    "option",
    "or",
    "parameter",
    "provided",
    "required",
    "requires",
    "set",
    "should",
    "specified",
    "the",
    "to",
    "value",
    "was",
    "when",
    "which",
    "will",
    "with",
    "without",
];

/// A number of fewer digits is none that anybody keeps secret.
const SECRET_DIGITS: usize = 6;

/// A run of letters of this length is no word.
const SHORTEST_KEY: usize = 16;

/// A quoted token of fewer characters is a piece of syntax: "unexpected token: ':'".
const SHORTEST_QUOTED: usize = 8;

/// A longer value is secret whatever it is: looking at every long one again and again would take quadratic time.
const LONGEST_ORDINARY: usize = 1024;

pub(super) fn find(text: &str, found: &mut Vec<Range<usize>>) {
    assignments(text, found);
    options(text, found);
}

fn assignments(text: &str, found: &mut Vec<Range<usize>>) {
    // Inside a value nothing more needs to be found, and looking again at each name would take quadratic time.
    let mut done = 0;
    for captures in ASSIGNED.captures_iter(text) {
        let (Some(all), Some(name), Some(by)) = (captures.get(0), captures.get(1), captures.get(3)) else {
            continue;
        };
        if all.start() < done || !name::is_secret(name.as_str()) {
            continue;
        }
        let assignment = Assignment {
            name: name.as_str(),
            is_quoted: captures.get(2).is_some(),
            before: text[..name.start()].trim_end_matches('-').chars().next_back(),
            rest: &text[by.end()..],
        };
        let range = match by.as_str() {
            "=" => assignment.by_equals(text, all.end()),
            _ => assignment.by_colon(text, all.end()),
        };
        if let Some(range) = range {
            done = range.end;
            found.push(range);
        }
    }
}

fn options(text: &str, found: &mut Vec<Range<usize>>) {
    for captures in OPTION.captures_iter(text) {
        if let (Some(all), Some(name)) = (captures.get(0), captures.get(1))
            && name::is_secret(name.as_str())
        {
            found.extend(value::at(text, all.end(), End::Space).filter(|range| {
                let value = &text[range.clone()];
                !PROSE.contains(&value.trim_end_matches(['.', ':']))
                    && !value.starts_with('-')
                    && !value.starts_with('=')
            }));
        }
    }
}

struct Assignment<'t> {
    name: &'t str,
    is_quoted: bool,
    /// The character before the name and its dashes.
    before: Option<char>,
    /// From after `=` or `:`.
    rest: &'t str,
}

impl Assignment<'_> {
    fn by_equals(&self, text: &str, start: usize) -> Option<Range<usize>> {
        // A comparison or an arrow assigns nothing.
        if self.rest.starts_with(['=', '>', '~']) {
            return None;
        }
        value::at(text, start, self.end())
    }

    fn by_colon(&self, text: &str, start: usize) -> Option<Range<usize>> {
        // A path of code, an address, or a default as in ${KEY:-x}.
        if self.rest.starts_with([':', '/', '-', '{']) {
            return None;
        }
        let range = value::at(text, start, self.end())?;
        let value = &text[range.clone()];
        let is_quoted = range.start > start;
        let is_secret = if name::is_header(self.name) || range.len() > LONGEST_ORDINARY || (is_quoted && self.is_quoted)
        {
            true
        } else {
            match name::prose(self.name) {
                Prose::Key if !self.is_quoted => false,
                Prose::Word if is_quoted => value.len() >= SHORTEST_QUOTED,
                Prose::None if is_quoted => true,
                Prose::Word if !self.is_quoted => is_mixed(value),
                Prose::Key | Prose::Word | Prose::None => is_no_word(value),
            }
        };
        is_secret.then_some(range)
    }

    fn end(&self) -> End {
        match self.before {
            Some('?' | '&') => End::Parameter,
            Some(quote @ ('"' | '\'' | '`')) if name::is_header(self.name) && !self.is_quoted => End::Quote(quote),
            Some(_) | None if name::is_header(self.name) => End::Line,
            Some(_) | None => End::Space,
        }
    }
}

/// Anything but a number, a structure or a word of a sentence, as in "API_KEY: field required".
fn is_no_word(value: &str) -> bool {
    if value.starts_with(['{', '[', '(']) {
        return false;
    }
    if value.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-')) {
        return value.len() >= SECRET_DIGITS;
    }
    value.len() >= SHORTEST_KEY || !value.chars().all(char::is_alphabetic)
}

/// Letters and digits, as no word has them.
fn is_mixed(value: &str) -> bool {
    value.len() >= SECRET_DIGITS && value.chars().any(char::is_alphabetic) && value.bytes().any(|b| b.is_ascii_digit())
}
