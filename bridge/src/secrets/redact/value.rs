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
    /// At this quote, which opened before the name.
    Quote(char),
}

/// What a program says instead of a value.
const NONE: &[&str] = &[
    "",
    "empty",
    "false",
    "missing",
    "nil",
    "none",
    "null",
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
    let value = &text[from..from + length];
    let is_told = NONE.iter().any(|word| value.eq_ignore_ascii_case(word));
    (!is_told && !is_placeholder(value)).then_some(from..from + length)
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
    let stops = |c: char| match end {
        End::Space => c.is_whitespace() || c == '"',
        End::Parameter => c.is_whitespace() || matches!(c, '"' | '\'' | '&' | '#' | '<' | '>'),
        End::Line => c == '\n',
        End::Quote(quote) => c == '\n' || c == quote,
    };
    let whole = &text[..text.find(stops).unwrap_or(text.len())];
    match end {
        End::Space | End::Parameter => whole.trim_end_matches(['\'', '`', ')', ']', '}', ',', ';']).len(),
        End::Line | End::Quote(_) => whole.trim_end().len(),
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
