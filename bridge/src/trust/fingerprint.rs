//! The fingerprint of what an upstream says about itself: one hash of exactly what a person approved (DESIGN §7.3), and
//! what a change between two tools amounts to. Pure; never decides what a change means for a caller.
//!
//! A print covers everything that was received except what no model reads (`_meta`, `icons`) and what a tool claims of
//! itself (`annotations`, which have a print of their own). Nothing is normalised: text that looks alike has another
//! print where its characters differ.

mod canonical;

#[cfg(test)]
mod tests;

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use self::canonical::Inexact;
use crate::snapshot::ToolHints;

/// The formula that prints are made with now. Another way of making them needs another number, so that no old print means
/// a new thing; [`fingerprint_with`] still knows the old ones.
pub const FORMULA: u32 = 1;

/// Members of a tool that its print leaves out.
const LEFT_OUT: [&str; 3] = ["_meta", "icons", "annotations"];

/// SHA-256 over a formula's canonical JSON; 64 hexadecimal digits as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

/// The print of a tool's `annotations` alone. Which changes of them matter is [`loosened`]'s to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HintsPrint(Fingerprint);

/// Why something has no print: a change of it could pass unseen, so it is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unprintable {
    /// An integer beyond ±(2^53 - 1), or a number with more digits than a double has.
    Number {
        /// As received.
        number: String,
        /// Where it is, as `inputSchema.properties.size.maximum`.
        place: String,
    },
    /// An object has a name twice; readers differ in which one they take.
    RepeatedName,
    /// It was printed with a formula that this version does not know.
    Formula(u32),
}

/// How two versions of one tool differ, hints aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// Not at all, or only in what no print covers.
    Nothing,
    /// Only in the tool's own `title` or `description`, or in `annotations.title`.
    Wording,
    /// In anything else, descriptions inside its schemas included.
    Structure,
}

impl Fingerprint {
    /// Of a tool as received, with today's formula.
    ///
    /// # Errors
    /// `Number`, where canonical JSON cannot hold one of its numbers exactly.
    pub fn of(raw: &Value) -> Result<Self, Unprintable> {
        fingerprint_with(FORMULA, raw)
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn over(subject: &str, canonical: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(format!("neuron-connect {subject} 1\0"));
        hash.update(canonical);
        Self(hash.finalize().into())
    }
}

/// Of a tool as received, with the formula of that number: what was approved with an older one is checked with that one
/// from its stored JSON before it is printed anew, and never trusted because the formula changed.
///
/// # Errors
/// `Number`, where canonical JSON cannot hold one of its numbers exactly; `Formula` for a number nobody printed with.
pub fn fingerprint_with(formula: u32, raw: &Value) -> Result<Fingerprint, Unprintable> {
    match formula {
        FORMULA => Ok(Fingerprint::over("tool", &canonical_without(raw, &LEFT_OUT)?)),
        unknown => Err(Unprintable::Formula(unknown)),
    }
}

/// Of a text on its own, such as a server's instructions.
pub fn print_of_text(text: &str) -> Fingerprint {
    let mut canonical = Vec::with_capacity(text.len() + 2);
    canonical::write_text(text, &mut canonical);
    Fingerprint::over("text", &canonical)
}

/// Of a prompt, resource or template as listed. Its annotations are covered.
///
/// # Errors
/// `Number`, where canonical JSON cannot hold one of its numbers exactly.
pub fn print_of_item(raw: &Value) -> Result<Fingerprint, Unprintable> {
    Ok(Fingerprint::over("item", &canonical_without(raw, &["_meta", "icons"])?))
}

impl HintsPrint {
    /// Of the `annotations` of a tool as received; a tool without any has one too.
    ///
    /// # Errors
    /// `Number`, where canonical JSON cannot hold one of their numbers exactly.
    pub fn of(raw: &Value) -> Result<Self, Unprintable> {
        let canonical = canonical_without(raw.get("annotations").unwrap_or(&Value::Null), &[])?;
        Ok(Self(Fingerprint::over("hints", &canonical)))
    }
}

/// How `after` differs from `before`, both as received. Order of members, blanks and the spelling of numbers count for
/// nothing.
pub fn difference(before: &Value, after: &Value) -> Difference {
    const WORDING: [&str; 2] = ["title", "description"];
    let [without_hints, bare] =
        [&LEFT_OUT[..], &[&LEFT_OUT[..], &WORDING[..]].concat()].map(|left_out| same(before, after, left_out));
    let is_text = |raw: &Value, name: &str| raw.get(name).is_none_or(Value::is_string);
    let titles = [before, after].map(|raw| raw.pointer("/annotations/title"));
    if without_hints {
        return if titles[0] == titles[1] {
            Difference::Nothing
        } else {
            Difference::Wording
        };
    }
    let texts = WORDING.iter().all(|name| is_text(before, name) && is_text(after, name));
    if bare && texts {
        Difference::Wording
    } else {
        Difference::Structure
    }
}

/// Whether the hints of `after` claim less danger than those of `before`: that it only reads, destroys nothing, or stays
/// on closed ground. What is not given counts as the specification's default, the dangerous one.
///
/// `idempotent` is no part of it: a yes covers each call on its own, so nothing is let through because of that claim.
pub fn loosened(before: &ToolHints, after: &ToolHints) -> bool {
    let reads_only = |hints: &ToolHints| hints.read_only == Some(true);
    // What only reads destroys nothing.
    let destroys = |hints: &ToolHints| !reads_only(hints) && hints.destructive != Some(false);
    let reaches_out = |hints: &ToolHints| hints.open_world != Some(false);
    (!reads_only(before) && reads_only(after))
        || (destroys(before) && !destroys(after))
        || (reaches_out(before) && !reaches_out(after))
}

fn same(before: &Value, after: &Value, left_out: &[&str]) -> bool {
    match (canonical_without(before, left_out), canonical_without(after, left_out)) {
        (Ok(before), Ok(after)) => before == after,
        // Equal as received, or there is no telling.
        (Err(_), _) | (_, Err(_)) => before == after,
    }
}

fn canonical_without(raw: &Value, left_out: &[&str]) -> Result<Vec<u8>, Inexact> {
    let mut out = Vec::new();
    match raw {
        Value::Object(members) => canonical::write_object(members, |name| !left_out.contains(&name), &mut out)?,
        other => canonical::write(other, &mut out)?,
    }
    Ok(out)
}

impl Unprintable {
    /// For a person.
    pub fn sentence(&self) -> String {
        match self {
            Self::Number { number, place } => {
                format!(
                    "It has a number too exact to be compared ({number} in {place}), so a change of it could pass unseen."
                )
            }
            Self::RepeatedName => {
                "It says something twice in one place, so programs may differ in what they read.".to_owned()
            }
            Self::Formula(number) => {
                format!("It was approved with a newer version of Neuron Connect (formula {number}). Look at it again.")
            }
        }
    }
}

impl From<Inexact> for Unprintable {
    fn from(fault: Inexact) -> Self {
        let path: Vec<_> = fault.path.into_iter().rev().collect();
        Self::Number {
            number: fault.number,
            place: path.join("."),
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for HintsPrint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A text is no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 64 hexadecimal digits")]
pub struct NoFingerprint;

/// Takes what `Display` writes and nothing else.
impl FromStr for Fingerprint {
    type Err = NoFingerprint;

    fn from_str(text: &str) -> Result<Self, NoFingerprint> {
        let digits = text.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return Err(NoFingerprint);
        }
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(NoFingerprint),
        };
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
