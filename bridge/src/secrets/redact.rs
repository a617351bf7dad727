//! A text without its secrets. Pure, in time linear in the text for each kind of secret.
//!
//! Each finder names the places of one kind in the text as it came; they are put together and replaced at once, so that
//! no finder sees what another one wrote.

mod assigned;
mod name;
mod shape;
mod url;
mod value;

use std::{borrow::Cow, fmt, ops::Range, sync::LazyLock};

use regex::Regex;
use secrecy::{ExposeSecret as _, SecretString};

pub(super) use name::is_secret as is_secret_name;

/// Stands where a secret stood.
pub const MARK: &str = "[REDACTED]";

/// Shorter values are not looked for: they are words of ordinary texts as well.
const SHORTEST_HELD: usize = 8;

/// Values that one connector can hold. Each costs a pass over every line.
const MOST_HELD: usize = 64;

/// Nothing but a held value can be secret in a text in which none of this occurs.
static TRIGGER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i-u)key|token|secret|pass|pwd|_pat\b|cred|cookie|auth|bearer|basic|jwt|://|sig|code|session|sid=|gh[pousr]_|github_pat|glpat|sk[-_]|rk_|xox|xapp|akia|asia|aiza|ya29|eyj|npm_|hf_|lin_|pypi|sg\.",
    )
});

/// Exact values that are secret, of one connector.
#[derive(Default)]
pub struct Held(Vec<SecretString>);

impl Held {
    /// Takes up to 64 of them, each as it is and as it stands in JSON and in addresses; those under 8 characters are
    /// left out.
    pub fn new<'v>(values: impl IntoIterator<Item = &'v SecretString>) -> Self {
        let mut held: Vec<String> = Vec::new();
        // A key of several lines comes line by line.
        let lines = values.into_iter().flat_map(|value| value.expose_secret().lines());
        for line in lines.map(str::trim) {
            if line.chars().count() < SHORTEST_HELD {
                continue;
            }
            let quoted = serde_json::Value::from(line).to_string();
            let in_address = percent_encoding::utf8_percent_encode(line, percent_encoding::NON_ALPHANUMERIC);
            for form in [
                line.to_owned(),
                quoted[1..quoted.len() - 1].to_owned(),
                in_address.to_string(),
            ] {
                if held.len() < MOST_HELD && !held.contains(&form) {
                    held.push(form);
                }
            }
        }
        Self(held.into_iter().map(SecretString::from).collect())
    }

    /// These and, as far as there is room, the earlier ones.
    pub(super) fn and(mut self, earlier: &Self) -> Self {
        for value in &earlier.0 {
            let is_new = self
                .0
                .iter()
                .all(|known| known.expose_secret() != value.expose_secret());
            if is_new && self.0.len() < MOST_HELD {
                self.0.push(value.clone());
            }
        }
        self
    }

    fn find(&self, text: &str, found: &mut Vec<Range<usize>>) {
        for value in &self.0 {
            let value = value.expose_secret();
            found.extend(text.match_indices(value).map(|(at, _)| at..at + value.len()));
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} held values", self.0.len())
    }
}

/// The text with [`MARK`] in the place of everything that looks like a secret. Any other text stays byte for byte.
pub fn redact(text: &str) -> Cow<'_, str> {
    redact_held(text, &Held::default())
}

/// The text without the held values, and whatever else is in it.
pub(super) fn without_held<'t>(text: &'t str, held: &Held) -> Cow<'t, str> {
    let mut found = Vec::new();
    held.find(text, &mut found);
    replaced(text, found)
}

/// As [`redact`], and without the held values.
pub fn redact_held<'t>(text: &'t str, held: &Held) -> Cow<'t, str> {
    let mut found = Vec::new();
    held.find(text, &mut found);
    if TRIGGER.is_match(text) {
        assigned::find(text, &mut found);
        url::find(text, &mut found);
        shape::find(text, &mut found);
    }
    replaced(text, found)
}

fn replaced(text: &str, mut found: Vec<Range<usize>>) -> Cow<'_, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    found.sort_unstable_by_key(|range| (range.start, range.end));
    let mut out = String::with_capacity(text.len());
    let mut done: Option<usize> = None;
    for Range { start, end } in found {
        // One mark for what overlaps or touches.
        if done.is_none_or(|done| start > done) {
            out.push_str(&text[done.unwrap_or(0)..start]);
            out.push_str(MARK);
        }
        done = done.max(Some(end));
    }
    out.push_str(&text[done.unwrap_or(0)..]);
    Cow::Owned(out)
}

/// Compiles a pattern of this room.
#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and each is compiled by a test"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this room")
}

#[cfg(test)]
mod tests;
