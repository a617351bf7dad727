//! How far a value goes, from where it begins.

use std::ops::Range;

use super::MARK;

/// Where an unquoted value ends, besides the end of its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// At a space.
    Space,
    /// At a space, or where the next parameter of an address begins.
    Parameter,
    /// With the line.
    Line,
    /// With the line, at a quote, or at a line end that is written as `\r` or `\n`.
    Escape,
    /// At this quote or bracket, which opened before the value.
    Closer(char),
}

/// What a program says instead of a value.
const NONE: &[&str] = &[
    "",
    "disabled",
    "empty",
    "enabled",
    "false",
    "missing",
    "nil",
    "none",
    "null",
    "off",
    "on",
    "required",
    "true",
    "undefined",
    "unset",
];

/// The value that begins at `start`, without its quotes; nothing where there is none worth hiding.
pub(super) fn at(text: &str, start: usize, end: End) -> Option<Range<usize>> {
    let opening = opening(&text[start..]);
    let from = start + opening.map_or(0, |(length, _)| length);
    if text[from..].starts_with(MARK) {
        return None;
    }
    let length = match opening {
        Some((_, closer)) => closing(&text[from..], closer),
        None => unquoted(&text[from..], end),
    };
    is_one(&text[from..from + length]).then_some(from..from + length)
}

/// Whether it is a value worth hiding, not a word in its place.
pub(super) fn is_one(value: &str) -> bool {
    !is_told(value) && !is_placeholder(value)
}

/// Whether a program says with it that there is no value, or what becomes of it.
pub(super) fn is_told(value: &str) -> bool {
    NONE.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Brackets that logs have around a value: `Some(["x"])` is as deep as they get.
const MOST_BRACKETS: usize = 3;

/// Where the value within `[`, `Some(` and the letter before a literal's quote begins, and what closes it.
pub(super) fn inside(text: &str, start: usize) -> (usize, Option<char>) {
    let (mut at, mut closer) = (start, None);
    for _ in 0..MOST_BRACKETS {
        let rest = &text[at..];
        if rest.starts_with(MARK) {
            break;
        }
        let (opened, closed_by) = if rest.starts_with('[') {
            (1, ']')
        } else if rest.starts_with("Some(") {
            ("Some(".len(), ')')
        } else {
            break;
        };
        closer = Some(closed_by);
        at += opened;
        at += usize::from(text[at..].starts_with(' '));
    }
    let is_literal = text[at..].starts_with(['b', 'r', 'u']) && opening(&text[at + 1..]).is_some();
    (at + usize::from(is_literal), closer)
}

/// A quote at the beginning, with the backslashes before it as nested JSON has them: its length, and itself.
pub(super) fn opening(text: &str) -> Option<(usize, &str)> {
    let slashes = text.bytes().take_while(|b| *b == b'\\').count();
    match text.as_bytes().get(slashes) {
        Some(b'"' | b'\'' | b'`') if slashes <= 7 => Some((slashes + 1, &text[..=slashes])),
        Some(_) | None => None,
    }
}

/// The length up to the same quote with as many backslashes; without one, all of the line.
fn closing(text: &str, closer: &str) -> usize {
    let quote = closer.as_bytes()[closer.len() - 1];
    let mut slashes = 0;
    for (at, byte) in text.bytes().enumerate() {
        #[cfg(test)]
        work::add(1);
        if byte == quote && slashes + 1 == closer.len() {
            return at + 1 - closer.len();
        }
        slashes = if byte == b'\\' { slashes + 1 } else { 0 };
        if byte == b'\n' {
            return at;
        }
    }
    text.len()
}

fn unquoted(text: &str, end: End) -> usize {
    let mut was_slash = false;
    let stops = |c: char| {
        let is_escaped = std::mem::replace(&mut was_slash, c == '\\');
        match end {
            End::Space => c.is_whitespace() || c == '"',
            End::Parameter => c.is_whitespace() || matches!(c, '"' | '\'' | '&' | '#' | '<' | '>'),
            End::Line => c == '\n',
            End::Escape => matches!(c, '\n' | '"' | '\'') || (is_escaped && matches!(c, 'r' | 'n')),
            End::Closer(closer) => c == '\n' || c == closer,
        }
    };
    let whole = &text[..text.find(stops).unwrap_or(text.len())];
    #[cfg(test)]
    work::add(whole.len());
    match end {
        End::Space | End::Parameter => whole.trim_end_matches(['\'', '`', ')', ']', '}', ',', ';']).len(),
        // The backslash of what ended it.
        End::Escape => whole.trim_end_matches('\\').trim_end().len(),
        End::Line | End::Closer(_) => whole.trim_end().len(),
    }
}

/// `<your key>` and `${env:KEY}` stand for a value.
fn is_placeholder(value: &str) -> bool {
    let inner = |open: &str, close: &str| {
        value
            .strip_prefix(open)
            .is_some_and(|rest| rest.strip_suffix(close).unwrap_or(rest).bytes().all(is_of_a_name))
    };
    inner("<", ">") || inner("${", "}")
}

fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'_' | b'-' | b':' | b'.')
}

/// How many bytes were looked at in search of ends, so that a test can tell linear work from quadratic.
#[cfg(test)]
pub(super) mod work {
    use std::cell::Cell;

    thread_local! {
        static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
    }

    pub fn add(bytes: usize) {
        LOOKED_AT.set(LOOKED_AT.get() + bytes);
    }

    /// Since it was last taken, in this thread.
    pub fn take() -> usize {
        LOOKED_AT.take()
    }
}
