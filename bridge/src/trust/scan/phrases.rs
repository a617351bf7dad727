//! The phrases that the scan knows, as data. What they have in common: no text that only says what a tool does needs them.
//!
//! Patterns run over folded text (small Latin letters, no accents, single blanks), so they are written that way. A phrase
//! spans at most some two hundred characters, so every gap in it has a bound.

mod hiding;
mod speaking;
mod taking;
mod tools;

use super::rules::Rule;

/// Names of parameters that serve no purpose of a tool's, and so carry things out.
pub(super) const SIDE_PARAMETERS: [&str; 22] = [
    "sidenote",
    "side_note",
    "note",
    "notes",
    "aside",
    "memo",
    "context",
    "extra",
    "extra_context",
    "metadata",
    "debug",
    "debug_info",
    "diagnostics",
    "telemetry",
    "trace",
    "tracking",
    "feedback",
    "comment",
    "reason",
    "summary",
    "session",
    "internal",
];

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    [speaking::RULES, hiding::RULES, taking::RULES, tools::RULES]
        .into_iter()
        .flatten()
}
