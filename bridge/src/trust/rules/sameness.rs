//! Whether a value could be taken for another one. Pure.
//!
//! Servers turn what they are given into what they want: `"1"`, `true` and `1.0` into 1, `"yes"` into true, `"[7]"` into a
//! list. So a value is certainly another one only where it is of the same kind and still another after all such turning.

use std::borrow::Cow;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use super::Fit;
use crate::trust::scan::is_hidden;

/// Longer lists are compared by nobody, in comparisons of two parts.
const MOST_COMPARED: usize = 10_000;

/// [`Fit::Fits`] for the same value alone: numbers as they are written, members in any order. `is_text`: both are read as
/// texts and as nothing else.
pub(super) fn sameness(wanted: &Value, given: &Value, is_text: bool) -> Fit {
    if wanted == given {
        Fit::Fits
    } else {
        likeness(wanted, given, is_text)
    }
}

/// Of two that are not the same.
fn likeness(wanted: &Value, given: &Value, is_text: bool) -> Fit {
    let differs = match (wanted, given) {
        (Value::Bool(_), Value::Bool(_)) => true,
        (Value::Number(wanted), Value::Number(given)) => wanted.as_f64() != given.as_f64(),
        (Value::String(wanted), Value::String(given)) => {
            let turns = !is_text && (may_turn(wanted) || may_turn(given));
            !turns && folded(wanted) != folded(given)
        }
        (Value::Array(wanted), Value::Array(given)) => are_other_parts(wanted, given),
        // Servers leave out members that they do not know, and add those that they miss.
        (Value::Object(wanted), Value::Object(given)) => wanted.iter().any(|(name, wanted)| {
            given
                .get(name)
                .is_some_and(|given| sameness(wanted, given, false) == Fit::Differs)
        }),
        (
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_),
            _,
        ) => false,
    };
    if differs { Fit::Differs } else { Fit::Unsure }
}

/// Whether one has a part that is certainly none of the other's: order and repetition may not matter.
fn are_other_parts(wanted: &[Value], given: &[Value]) -> bool {
    let is_none_of =
        |part: &Value, parts: &[Value]| parts.iter().all(|other| sameness(other, part, false) == Fit::Differs);
    wanted.len().saturating_mul(given.len()) <= MOST_COMPARED
        && (wanted.iter().any(|part| is_none_of(part, given)) || given.iter().any(|part| is_none_of(part, wanted)))
}

/// Whether a text may be turned into something else where no text is wanted.
pub(in crate::trust) fn may_turn(text: &str) -> bool {
    let text = folded(text);
    text.is_empty()
        || text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '[' | '{' | '"' | '\'' | '+' | '-' | '.'))
        || matches!(
            &*text,
            "true"
                | "false"
                | "yes"
                | "no"
                | "on"
                | "off"
                | "y"
                | "n"
                | "t"
                | "f"
                | "null"
                | "none"
                | "nil"
                | "undefined"
                | "inf"
                | "infinity"
                | "nan"
        )
}

/// A text as the least strict reader takes it: in small letters, in one form of each, without blanks around it and hidden
/// characters.
pub(in crate::trust) fn folded(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !text.chars().any(|c| c.is_ascii_uppercase() || is_hidden(c)) {
        return Cow::Borrowed(text.trim());
    }
    let seen: String = text.nfkc().filter(|c| !is_hidden(*c)).collect();
    // By the large letters, because some small ones share one: `ı` and `i`, `ß` and `ss`.
    let small = seen.trim().to_uppercase().to_lowercase();
    Cow::Owned(small.nfkc().collect())
}

/// Whether a name, which is another one, would be taken for `name` by a server that does not mind letters, hyphens and
/// underscores.
pub(super) fn is_twin(other: &str, name: &str) -> bool {
    fn letters(text: &str) -> impl Iterator<Item = char> {
        text.chars().filter(|c| c.is_alphanumeric() || !c.is_ascii())
    }
    if other == name {
        return false;
    }
    if other.is_ascii() && name.is_ascii() {
        return letters(other)
            .map(|c| c.to_ascii_lowercase())
            .eq(letters(name).map(|c| c.to_ascii_lowercase()));
    }
    letters(&folded(other)).eq(letters(&folded(name)))
}

#[cfg(test)]
mod tests;
