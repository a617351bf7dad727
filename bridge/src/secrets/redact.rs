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

pub(crate) use name::is_secret as is_secret_name;

/// Stands where a secret stood.
pub const MARK: &str = "[REDACTED]";

/// Shorter values are not looked for: they are words of ordinary texts as well.
const SHORTEST_HELD: usize = 8;

/// Values that one connector can hold. Each costs a pass over every line for each of its forms, of which a value of one
/// line has up to three and one of several lines up to fifteen.
const MOST_HELD: usize = 64;

/// Lines from the beginning of a value of several lines that are looked for alone, besides its last one: logs show keys
/// line by line, and a long key must not take the places of other values.
const FIRST_LINES: usize = 3;

/// Nothing but a held value can be secret in a text in which none of this occurs.
static TRIGGER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i-u)key|token|secret|pass|pwd|_pat\b|cred|cookie|auth|bearer|basic|jwt|://|sig|code|session|sid=|gh[pousr]_|github_pat|glpat|sk[-_]|rk_|xox|xapp|akia|asia|aiza|ya29|eyj|npm_|hf_|lin_|pypi|sg\.|curl|api\.telegram|hooks\.slack",
    )
});

/// Exact values that are secret, of one connector.
#[derive(Default)]
pub struct Held(Vec<Forms>);

/// One value in every form in which it is looked for; the first is the value itself.
#[derive(Clone)]
struct Forms(Vec<SecretString>);

impl Held {
    /// Takes up to 64 of them, each as it is and as it stands in JSON and in addresses, and of those with several lines
    /// also the first three and the last; those under 8 characters are left out.
    pub fn new<'v>(values: impl IntoIterator<Item = &'v SecretString>) -> Self {
        let mut held = Self::default();
        for value in values {
            held.add(Forms::of(value.expose_secret()));
        }
        held
    }

    /// These and, as far as there is room, the earlier ones.
    pub(super) fn and(mut self, earlier: &Self) -> Self {
        for forms in &earlier.0 {
            self.add(forms.clone());
        }
        self
    }

    fn add(&mut self, forms: Forms) {
        let is_new = !forms.0.is_empty() && self.0.iter().all(|known| known.whole() != forms.whole());
        if is_new && self.0.len() < MOST_HELD {
            self.0.push(forms);
        }
    }

    fn find(&self, text: &str, found: &mut Vec<Range<usize>>) {
        for value in self.0.iter().flat_map(|forms| &forms.0) {
            let value = value.expose_secret();
            found.extend(text.match_indices(value).map(|(at, _)| at..at + value.len()));
        }
    }
}

impl Forms {
    fn of(value: &str) -> Self {
        let value = value.trim();
        let mut forms: Vec<String> = Vec::new();
        let lines: Vec<&str> = value.lines().map(str::trim).filter(|line| !is_armour(line)).collect();
        let first = lines.iter().take(FIRST_LINES);
        let last = lines.iter().skip(FIRST_LINES).next_back();
        for part in std::iter::once(&value).chain(first).chain(last) {
            if part.chars().count() < SHORTEST_HELD {
                continue;
            }
            let quoted = serde_json::Value::from(*part).to_string();
            let in_address = percent_encoding::utf8_percent_encode(part, percent_encoding::NON_ALPHANUMERIC);
            for form in [
                (*part).to_owned(),
                quoted[1..quoted.len() - 1].to_owned(),
                in_address.to_string(),
            ] {
                if !forms.contains(&form) {
                    forms.push(form);
                }
            }
        }
        Self(forms.into_iter().map(SecretString::from).collect())
    }

    fn whole(&self) -> Option<&str> {
        self.0.first().map(|value| value.expose_secret())
    }
}

/// What stands around every key tells nothing of this one.
fn is_armour(line: &str) -> bool {
    line.starts_with("-----")
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
