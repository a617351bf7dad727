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

use ::url::form_urlencoded;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use regex::Regex;
use secrecy::{ExposeSecret as _, SecretString};

pub(crate) use name::is_secret as is_secret_name;

/// Stands where a secret stood.
pub const MARK: &str = "[REDACTED]";

/// Shorter values are not looked for: they are words of ordinary texts as well.
const SHORTEST_HELD: usize = 8;

/// Values that one connector can hold. Each costs a pass over every line for each of its forms: two for most tokens, up
/// to eight for a value full of other characters, and as many for each line of one of several lines that is held alone.
const MOST_HELD: usize = 64;

/// Where a text was cut off, this many characters of a value tell something of it.
const LEAST_BEGINNING: usize = 4;

/// Stands where a text was shortened.
const SHORTENED: char = '…';

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
#[derive(Default, Clone)]
pub struct Held(Vec<Forms>);

/// One value in every form in which it is looked for; the first is the value itself.
#[derive(Clone)]
pub(super) struct Forms(Vec<SecretString>);

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

    /// These and all others.
    pub(super) fn beside(&self, others: &Self) -> Self {
        Self(self.0.iter().chain(&others.0).cloned().collect())
    }

    fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(Forms::each)
    }

    /// Whether a text holds one of them.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.values().any(|value| text.contains(value))
    }

    /// What would follow, were the text cut off in the middle of a value.
    pub(super) fn rests_after(&self, text: &str) -> Vec<SecretString> {
        let rests = self.values().filter_map(|value| {
            let begun = beginning_at_end(text, value);
            (begun > 0).then(|| SecretString::from(&value[begun..]))
        });
        rests.collect()
    }

    fn find(&self, text: &str, found: &mut Vec<Range<usize>>) {
        if self.0.is_empty() {
            return;
        }
        for value in self.values() {
            found.extend(text.match_indices(value).map(|(at, _)| at..at + value.len()));
        }
        self.find_beginnings(text, found);
    }

    /// Beginnings of values where the text ends or was shortened. Each piece of the text is looked at once for each form.
    fn find_beginnings(&self, text: &str, found: &mut Vec<Range<usize>>) {
        let mut from = 0;
        for piece in text.split(SHORTENED) {
            let end = from + piece.len();
            for value in self.values() {
                let start = end - beginning_at_end(piece, value);
                if after_armour(&text[start..end]).chars().count() >= LEAST_BEGINNING {
                    found.push(start..end);
                }
            }
            from = end + SHORTENED.len_utf8();
        }
    }
}

/// How many bytes of the value's beginning, but not all of it, stand at the end of the text; the most (Knuth, Morris and
/// Pratt: in time linear in the shorter of both).
fn beginning_at_end(text: &str, value: &str) -> usize {
    let most = text.len().min(value.len().saturating_sub(1));
    let (text, value) = (&text.as_bytes()[text.len() - most..], &value.as_bytes()[..most]);
    if !value.first().is_some_and(|first| text.contains(first)) {
        return 0;
    }
    #[cfg(test)]
    value::work::add(most);
    // For each length the next shorter beginning that ends there too.
    let mut shorter = vec![0; most];
    let mut matched = 0;
    for at in 1..most {
        while matched > 0 && value[at] != value[matched] {
            matched = shorter[matched - 1];
        }
        matched += usize::from(value[at] == value[matched]);
        shorter[at] = matched;
    }
    matched = 0;
    for byte in text {
        while matched == most || (matched > 0 && value[matched] != *byte) {
            matched = shorter[matched - 1];
        }
        matched += usize::from(value[matched] == *byte);
    }
    matched
}

impl Forms {
    pub(super) fn of(value: &str) -> Self {
        let value = value.trim();
        let mut forms: Vec<String> = Vec::new();
        let lines: Vec<&str> = value.lines().map(str::trim).filter(|line| !is_armour(line)).collect();
        let first = lines.iter().take(FIRST_LINES);
        let last = lines.iter().skip(FIRST_LINES).next_back();
        for part in std::iter::once(&value).chain(first).chain(last) {
            if part.chars().count() < SHORTEST_HELD {
                continue;
            }
            for form in ways_to_write(part) {
                if !forms.contains(&form) {
                    forms.push(form);
                }
            }
        }
        Self(forms.into_iter().map(SecretString::from).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn whole(&self) -> Option<&str> {
        self.0.first().map(|value| value.expose_secret())
    }

    pub(super) fn each(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|form| form.expose_secret())
    }
}

/// As it is; as JSON has it inside a text, with and without what need not be escaped; in an address, as different
/// programs have it; on one line.
fn ways_to_write(part: &str) -> [String; 8] {
    /// What nobody has to escape (RFC 3986 §2.3).
    const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let quoted = serde_json::Value::from(part).to_string();
    let in_json = &quoted[1..quoted.len() - 1];
    let in_ascii: String = in_json.chars().fold(String::new(), |mut out, c| {
        match c {
            c if c.is_ascii() => out.push(c),
            c => out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
        }
        out
    });
    [
        part.to_owned(),
        in_json.to_owned(),
        in_json.replace('/', "\\/"),
        in_ascii,
        utf8_percent_encode(part, NON_ALPHANUMERIC).to_string(),
        utf8_percent_encode(part, UNRESERVED).to_string(),
        form_urlencoded::byte_serialize(part.as_bytes()).collect(),
        part.replace(char::is_control, " "),
    ]
}

/// What stands around every key tells nothing of this one.
fn is_armour(line: &str) -> bool {
    line.starts_with("-----")
}

/// The beginning of a value without that.
fn after_armour(beginning: &str) -> &str {
    match beginning.strip_prefix("-----") {
        Some(armoured) => armoured.split_once("-----").map_or("", |(_, body)| body.trim_start()),
        None => beginning,
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
