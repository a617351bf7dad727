//! What the scan found, in words for a person.

use serde::Serialize;
use ts_rs::TS;

/// Longest excerpt, in characters.
const MAX_EXCERPT_CHARS: usize = 200;
/// Longest place, in characters. Names in it are the upstream's.
const MAX_PLACE_CHARS: usize = 120;

/// One reason to look at a text before a model reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct Finding {
    pub kind: FindingKind,
    /// Where: `name`, `description`, `inputSchema.properties.path.description`, `instructions`.
    pub place: String,
    /// The words meant, at most 200 characters, with whatever is hidden in them made visible. The upstream's: never to
    /// be rendered as markup.
    pub excerpt: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum FindingKind {
    /// Characters that nobody sees and a model reads.
    HiddenCharacters,
    /// Words with letters of another alphabet that look like ours.
    Lookalikes,
    /// Text that is encoded, or far behind what is seen first.
    OutOfSight,
    /// Speaks to the assistant instead of saying what the tool does.
    Instruction,
    /// Poses as a message of the assistant's maker, its program or the person.
    Posing,
    /// Wants something kept from the person.
    Secrecy,
    /// Wants keys, passwords or files that hold them.
    Secrets,
    /// Wants something sent elsewhere or handed along.
    Sending,
    /// Speaks about tools besides its own.
    OtherTools,
    /// A name that poses as something else, or that does not go with what is said of the tool.
    DeceptiveName,
    /// A name of other characters than tools' names have.
    UnusualName,
    /// No fingerprint can be made of it.
    Unprintable,
}

impl FindingKind {
    /// As the API spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::HiddenCharacters => "hidden_characters",
            Self::Lookalikes => "lookalikes",
            Self::OutOfSight => "out_of_sight",
            Self::Instruction => "instruction",
            Self::Posing => "posing",
            Self::Secrecy => "secrecy",
            Self::Secrets => "secrets",
            Self::Sending => "sending",
            Self::OtherTools => "other_tools",
            Self::DeceptiveName => "deceptive_name",
            Self::UnusualName => "unusual_name",
            Self::Unprintable => "unprintable",
        }
    }

    /// For a person, after the name of the tool or text.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::HiddenCharacters => "It contains characters that you cannot see but an assistant reads.",
            Self::Lookalikes => "It mixes letters of two alphabets that look the same.",
            Self::OutOfSight => "It has text where you would not see it.",
            Self::Instruction => "It tells the assistant what to do, instead of what the tool does.",
            Self::Posing => "It poses as a message of somebody else to the assistant.",
            Self::Secrecy => "It asks the assistant to keep something from you.",
            Self::Secrets => "It asks for keys, passwords or files that hold them.",
            Self::Sending => "It asks for something of yours to be sent elsewhere or handed along.",
            Self::OtherTools => "It tells the assistant how to use, or not to use, other tools.",
            Self::DeceptiveName => "Its name does not fit what it says it is.",
            Self::UnusualName => "Its name has unusual characters, or too many.",
            Self::Unprintable => "It cannot be compared exactly, so a change of it could pass unseen.",
        }
    }
}

impl Finding {
    pub(super) fn new(kind: FindingKind, place: &str, words: &str) -> Self {
        Self {
            kind,
            place: shortened(super::visible::visible_text(place), MAX_PLACE_CHARS),
            excerpt: shortened(super::visible::visible_text(words), MAX_EXCERPT_CHARS),
        }
    }
}

fn shortened(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
