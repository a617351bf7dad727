//! Values that a name before them gives away: assignments, JSON members, headers, options of a command line.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use super::{
    MARK,
    name::{self, Prose},
    pattern,
    value::{self, End},
};

/// A name, perhaps the end of its quotes or colour, and what assigns, perhaps in a column of its own.
static ASSIGNED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"([A-Za-z0-9_][A-Za-z0-9_.-]{0,79})(?:\x1b\[[0-9;]{0,9}m)?(\\{0,7}["'`])?(?:\x1b\[[0-9;]{0,9}m)?[ \t]{0,24}(=>|[=:])(?:\x1b\[[0-9;]{0,9}m)?[ \t]{0,24}"#,
    )
});

/// A quoted name and a comma, as in printed lists of headers.
static PAIRED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"[\[(,][ \t]{0,3}b?\\{0,7}["'`]([A-Za-z0-9_][A-Za-z0-9_.-]{0,79})\\{0,7}["'`],[ \t]{0,3}"#)
});

/// An element that holds nothing but a text.
static ELEMENT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"<([A-Za-z_][A-Za-z0-9_.-]{0,79})(?:[ \t][^<>]{0,200})?>([^<>]+)</"));

/// An option whose value is the next word, also as two members of a printed list.
static OPTION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?:^|[\s"'`\[(,])--?([A-Za-z][A-Za-z0-9_-]{1,59})(?:[ \t]+|\\{0,7}["'`],?[ \t]?)"#));

/// Who signs in at the address that `curl` is given.
static USER_OPTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"(?:^|[\s"'`\[(,])(?:-u|--user)(?:[ \t]{1,3}|=|["'`],[ \t]?)["'`]?[^\s:"'`/]{1,64}:([^\s"'`]+)"#)
});

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

/// A run of letters and digits of this length is taken for a key where keys have names as well.
const SHORTEST_MIXED: usize = 8;

/// What stands before the credentials in an `Authorization` header.
const SCHEMES: &[&str] = &[
    "apikey",
    "basic",
    "bearer",
    "digest",
    "dpop",
    "hawk",
    "negotiate",
    "ntlm",
    "token",
];

pub(super) fn find(text: &str, found: &mut Vec<Range<usize>>) {
    assignments(text, found);
    pairs(text, found);
    elements(text, found);
    options(text, found);
}

fn assignments(text: &str, found: &mut Vec<Range<usize>>) {
    // Inside a value nothing more needs to be found, and looking again at each name would take quadratic time.
    let mut done = 0;
    for captures in ASSIGNED.captures_iter(text) {
        let (Some(all), Some(name), Some(by)) = (captures.get(0), captures.get(1), captures.get(3)) else {
            continue;
        };
        if all.start() < done {
            continue;
        }
        let is_quoted = captures.get(2).is_some();
        let Some(assignment) = Assignment::of(text, name.range(), is_quoted, by.end()) else {
            continue;
        };
        let range = match by.as_str() {
            "=" => assignment.by_equals(text, all.end()),
            "=>" => assignment.by_arrow(text, all.end()),
            _ => assignment.by_colon(text, all.end()),
        };
        if let Some(range) = range {
            done = range.end;
            found.push(range);
        }
    }
}

/// Each match and the name in it. What comes after a name is looked at again, as it may come before the next one: the
/// space in `--verbose --token x`.
fn named<'t>(pattern: &Regex, text: &'t str) -> impl Iterator<Item = (Range<usize>, &'t str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let captures = pattern.captures_at(text, from)?;
        let (all, name) = (captures.get(0)?, captures.get(1)?);
        from = name.end();
        Some((all.range(), name.as_str()))
    })
}

fn pairs(text: &str, found: &mut Vec<Range<usize>>) {
    let mut done = 0;
    for (all, name) in named(&PAIRED, text) {
        if all.start < done || !name::is_secret(name) {
            continue;
        }
        let (start, _) = value::inside(text, all.end);
        // Only what is quoted is the other half of a pair.
        if value::opening(&text[start..]).is_none() {
            continue;
        }
        let is_secret = |range: &Range<usize>| {
            let value = &text[range.clone()];
            // Names follow each other in lists of headers and of what is required.
            range.len() > LONGEST_ORDINARY || is_mixed(value) || (name::is_header(name) && value.contains([' ', '=']))
        };
        if let Some(range) = value::at(text, start, End::Space).filter(is_secret) {
            done = range.end;
            found.push(range);
        }
    }
}

fn elements(text: &str, found: &mut Vec<Range<usize>>) {
    for captures in ELEMENT.captures_iter(text) {
        let (Some(name), Some(inner)) = (captures.get(1), captures.get(2)) else {
            continue;
        };
        let value = inner.as_str();
        let is_secret = match name::prose(name.as_str()) {
            Prose::Key => is_of_a_key(value),
            Prose::Word => is_mixed(value),
            Prose::None => true,
        };
        if is_secret && name::is_secret(name.as_str()) && !value.starts_with(MARK) && value::is_one(value.trim()) {
            found.push(inner.range());
        }
    }
}

fn options(text: &str, found: &mut Vec<Range<usize>>) {
    let mut done = 0;
    for (all, name) in named(&OPTION, text) {
        // Another option or an assignment is told by its beginning, before its end is looked for.
        let is_value = !text[all.end..].starts_with(['-', '=']);
        if all.start < done || !is_value || !name::is_secret(name) {
            continue;
        }
        let is_secret = |range: &Range<usize>| {
            let value = &text[range.clone()];
            !PROSE.contains(&value.trim_end_matches(['.', ':'])) && !value.starts_with(['-', '='])
        };
        if let Some(range) = value::at(text, all.end, End::Space).filter(is_secret) {
            done = range.end;
            found.push(range);
        }
    }
    if text.contains("curl") {
        let passwords = USER_OPTION.captures_iter(text).filter_map(|captures| captures.get(1));
        found.extend(passwords.map(|password| password.range()).filter(|range| {
            let value = &text[range.clone()];
            !value.starts_with(MARK) && value::is_one(value)
        }));
    }
}

struct Assignment<'t> {
    name: &'t str,
    is_quoted: bool,
    /// `--name`.
    is_option: bool,
    /// After a line end that is written as `\n`.
    is_after_escape: bool,
    /// The character before the name and its dashes.
    before: Option<char>,
    /// From after what assigns.
    rest: &'t str,
}

impl<'t> Assignment<'t> {
    /// Nothing where the name is not one of a secret.
    fn of(text: &'t str, name: Range<usize>, is_quoted: bool, by_end: usize) -> Option<Self> {
        let before = &text[..name.start];
        let written = &text[name];
        // The "n" of a `\n` is none of the name's letters.
        let escaped = written.strip_prefix(['n', 'r', 't']).filter(|_| before.ends_with('\\'));
        let escaped = escaped.filter(|name| name::is_secret(name));
        let name = escaped.unwrap_or(written);
        let undashed = before.trim_end_matches('-');
        (name::is_secret(name) || name::is_secret_if_quoted(name)).then_some(Self {
            name,
            is_quoted,
            is_option: undashed.len() < before.len(),
            is_after_escape: escaped.is_some(),
            before: undashed.chars().next_back(),
            rest: &text[by_end..],
        })
    }

    fn by_equals(&self, text: &str, start: usize) -> Option<Range<usize>> {
        // A comparison assigns nothing.
        if self.rest.starts_with(['=', '~']) {
            return None;
        }
        let (range, is_quoted, _) = self.value(text, start)?;
        let value = &text[range.clone()];
        let is_secret = if range.len() > LONGEST_ORDINARY {
            true
        } else if name::is_secret_if_quoted(self.name) {
            is_quoted
        } else {
            // `key=` names what is looked up as often as a secret, `KEY=` and `--key=` do not.
            self.name != "key" || self.is_option || is_of_a_key(value)
        };
        is_secret.then_some(range)
    }

    /// `"name" => "value"` and `:name => "value"`; without quotes it is a function.
    fn by_arrow(&self, text: &str, start: usize) -> Option<Range<usize>> {
        if !self.is_quoted && self.before != Some(':') {
            return None;
        }
        let (range, is_quoted, _) = self.value(text, start)?;
        let is_secret = range.len() > LONGEST_ORDINARY
            || (is_quoted && (name::prose(self.name) != Prose::Key || is_of_a_key(&text[range.clone()])));
        is_secret.then_some(range)
    }

    fn by_colon(&self, text: &str, start: usize) -> Option<Range<usize>> {
        // A path of code, an address, or a default as in ${KEY:-x}.
        if self.rest.starts_with([':', '/', '-', '{']) {
            return None;
        }
        let (range, is_quoted, closer) = self.value(text, start)?;
        let value = &text[range.clone()];
        let is_secret = if range.len() > LONGEST_ORDINARY {
            true
        } else if name::is_header(self.name) {
            let is_marked_off = is_quoted || closer.is_some() || self.is_after_escape;
            is_marked_off || self.end(None) != End::Line || is_of_a_header(value)
        } else if name::is_secret_if_quoted(self.name) {
            is_quoted
        } else if closer == Some(']') && value.contains(' ') {
            // What is wrong with the value, as in {"password": ["is too short"]}.
            false
        } else {
            match name::prose(self.name) {
                Prose::Key => (is_quoted || self.is_quoted) && is_of_a_key(value),
                Prose::Word | Prose::None if is_quoted && self.is_quoted => true,
                Prose::Word if is_quoted => value.len() >= SHORTEST_QUOTED,
                Prose::None if is_quoted => true,
                Prose::Word if !self.is_quoted => is_mixed(value),
                Prose::Word | Prose::None => is_no_word(value),
            }
        };
        is_secret.then_some(range)
    }

    /// The value, whether it is quoted, and what closes what is around it.
    fn value(&self, text: &str, start: usize) -> Option<(Range<usize>, bool, Option<char>)> {
        let (start, closer) = value::inside(text, start);
        let range = value::at(text, start, self.end(closer))?;
        let is_quoted = range.start > start;
        Some((range, is_quoted, closer))
    }

    fn end(&self, closer: Option<char>) -> End {
        match (closer, self.before) {
            _ if self.is_after_escape => End::Escape,
            (Some(closer), _) => End::Closer(closer),
            (None, Some('?' | '&')) => End::Parameter,
            (None, Some(quote @ ('"' | '\'' | '`'))) if name::is_header(self.name) && !self.is_quoted => {
                End::Closer(quote)
            }
            (None, Some(_) | None) if name::is_header(self.name) => End::Line,
            (None, Some(_) | None) => End::Space,
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

/// Letters and digits in one piece, as neither "theme" nor "users/42" has them.
fn is_of_a_key(value: &str) -> bool {
    let mut pieces = value.split(|c: char| !c.is_alphanumeric());
    pieces.any(|piece| piece.len() >= SHORTEST_MIXED && is_mixed(piece))
}

/// One word, or what begins as credentials or cookies do; "authorization: server metadata found" is a sentence.
fn is_of_a_header(value: &str) -> bool {
    let mut words = value.split_whitespace();
    let first = words.next().unwrap_or_default();
    if value::is_told(first.trim_end_matches([';', ',', '.'])) {
        return false;
    }
    let Some(second) = words.next() else { return true };
    SCHEMES.iter().any(|scheme| first.eq_ignore_ascii_case(scheme))
        || [first, second].iter().any(|word| word.contains('=') || is_mixed(word))
}
