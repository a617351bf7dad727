//! Names that must not be swapped for one another.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id! {
    /// The key of a connector in `connectors.json`: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
    ConnectorId
}

text_id! {
    /// A tool's name exactly as its upstream spells it; any text.
    ToolName
}

text_id! {
    /// The name callers use: `mcp__<id>__<tool>`, `[A-Za-z0-9_]`, at most 64 characters.
    ExposedName
}

impl ToolName {
    /// Takes the upstream's spelling as it is.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }
}

impl<'de> Deserialize<'de> for ToolName {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d).map(Self::new)
    }
}

impl ExposedName {
    /// Only the naming rules in `tools` make these.
    pub(crate) fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }
}

/// Longest connector id in characters.
pub const MAX_ID_LENGTH: usize = 64;

/// Why a text is no connector id, with one that would do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{given}\" cannot be a connector's id: use letters, digits, \".\", \"_\" and \"-\", starting with a letter or digit, at most 64 characters, for example \"{suggestion}\""
)]
pub struct InvalidId {
    /// What was given, shortened for display.
    pub given: String,
    /// A legal id as close to it as possible.
    pub suggestion: String,
}

impl ConnectorId {
    /// Checks the text against the id pattern of `connectors.json`.
    ///
    /// # Errors
    /// [`InvalidId`] with a suggestion when a character, the first character or the length is not allowed.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let mut bytes = text.bytes();
        let first = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
        let rest = bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        if first && rest && text.len() <= MAX_ID_LENGTH {
            return Ok(Self(text.into()));
        }
        Err(InvalidId {
            given: text.chars().take(MAX_ID_LENGTH).collect(),
            suggestion: Self::suggest(text),
        })
    }

    /// The nearest legal id: other characters become `-`, runs of them one, `connector` if nothing is left.
    pub fn suggest(text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            if c.is_ascii_alphanumeric() || (matches!(c, '.' | '_') && !out.is_empty()) {
                out.push(c);
            } else if !out.is_empty() && !out.ends_with('-') {
                out.push('-');
            }
            if out.len() == MAX_ID_LENGTH {
                break;
            }
        }
        let trimmed = out.trim_end_matches('-');
        if trimmed.is_empty() {
            "connector".to_owned()
        } else {
            trimmed.to_owned()
        }
    }
}

impl TryFrom<String> for ConnectorId {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        Self::parse(&text)
    }
}

impl<'de> Deserialize<'de> for ConnectorId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_outside_the_pattern_is_refused_with_a_legal_suggestion() {
        for (given, suggestion) in [
            ("", "connector"),
            ("my server", "my-server"),
            (".hidden", "hidden"),
            ("a/b:c", "a-b-c"),
            ("ünïcode", "n-code"),
            ("日本", "connector"),
            ("-x", "x"),
        ] {
            let err = ConnectorId::parse(given).unwrap_err();
            assert_eq!(err.suggestion, suggestion, "for {given:?}");
            ConnectorId::parse(&err.suggestion).unwrap();
        }
        let long = "a".repeat(65);
        assert_eq!(ConnectorId::parse(&long).unwrap_err().suggestion.len(), 64);
    }

    #[test]
    fn ids_of_the_pattern_are_accepted_up_to_64_characters() {
        for id in ["a", "0", "a.b_c-d", &"x".repeat(64)] {
            assert_eq!(ConnectorId::parse(id).unwrap().as_str(), id);
        }
    }
}
