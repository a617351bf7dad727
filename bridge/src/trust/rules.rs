//! What may, and may not, run without asking: the person's rules (DESIGN §7.3).
//!
//! Owns what a rule is, how one is made, bound, said in a sentence, and whether one fits a call. Plain data and pure
//! functions: rules are kept by the store, decided on by `decision`, and the one look at the disk that a condition on
//! folders needs is passed in. Nothing here follows from what an upstream claims of its tools.

mod caller;
mod choice;
mod condition;
mod declared;
mod file;
mod ground;
mod id;
mod make;
mod place;
mod row;
mod sameness;
mod sentence;
mod web;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ts_rs::TS;

use super::{LaunchIdentity, fingerprint::Fingerprint};
use crate::{
    ids::{ConnectorId, ToolName},
    snapshot::ToolHints,
};

pub use self::{
    caller::{ProgramId, RuleCaller, Who},
    choice::{Choice, choice_rule, lookups},
    condition::{Condition, Fit, Resolve},
    declared::{Declared, OnlyText},
    file::{Declined, FileValue, Proposal, proposals, rules_from_file, still_declined, wished},
    ground::Ground,
    id::{ClientId, NoId, RuleId},
    make::{Made, Place, RuleDraft, Unfit},
    place::{real_folder, real_places},
    row::{drop_all, put_said, read, read_declined, read_said, said_key},
};

pub(super) use self::sameness::{folded, may_turn};

/// One rule, as it is kept and as the API shows it.
///
/// A rule that allows holds only for the launch that it was made for, and one about tools only for the (tool, fingerprint)
/// pairs of `bound`; it sleeps, and is not deleted, while its connector waits for review, runs or contacts something else,
/// or its tool is another one. A rule that denies holds whatever is launched, and whatever the fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(export_to = "bridge.ts")]
pub struct Rule {
    #[ts(type = "string")]
    pub id: RuleId,
    pub effect: Effect,
    #[ts(type = "string")]
    pub server: ConnectorId,
    pub kind: Kind,
    /// Any of these fits the tool's own name, the URI of the resource or the prompt's name: `*` is any run of
    /// characters, `?` exactly one. Never empty.
    pub patterns: Vec<String>,
    pub arguments: Arguments,
    pub caller: RuleCaller,
    /// Unix milliseconds from which on the rule is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub expires_at: Option<u64>,
    pub lasts: Lasts,
    /// The tools it matched when it was made, in order of their names; empty unless it allows tools.
    pub bound: Vec<Bound>,
    /// What its connector ran or contacted when it was made, or when the person kept it for something else; none of a rule
    /// that denies. One that allows and names none sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "string")]
    pub launch: Option<LaunchIdentity>,
    pub origin: Origin,
    /// Unix milliseconds.
    #[ts(type = "number")]
    pub made_at: u64,
    /// The person's own words; may be empty.
    pub note: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts", rename = "RuleEffect")]
pub enum Effect {
    Allow,
    /// Wins over every rule that allows.
    Deny,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts", rename = "RuleKind")]
pub enum Kind {
    Tools,
    Resources,
    Prompts,
}

/// Which arguments a rule is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "which", rename_all = "snake_case", deny_unknown_fields)]
#[ts(export_to = "bridge.ts", rename = "RuleArguments")]
pub enum Arguments {
    /// Whatever they are, also such as the tool does not declare.
    Any,
    /// Each by its name. A rule that allows covers no call with an argument that is not named here, or that the tool does
    /// not declare.
    Each { conditions: BTreeMap<String, Condition> },
}

/// How long a rule is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts", rename = "RuleLasts")]
pub enum Lasts {
    /// Until the bridge ends; never written.
    ThisRun,
    Kept,
}

/// Where a rule came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts", rename = "RuleOrigin")]
pub enum Origin {
    /// The person made it, from a question or by hand.
    Person,
    /// The answer to what assistants may do, when the connector was added.
    Choice,
    /// It came with the app, for its built-in connector.
    BuiltIn,
    /// `autoApprove` in the file: accepted by the person, or applied where the file is the authority.
    File,
}

/// One tool that a rule allows, as it was when the rule was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(export_to = "bridge.ts", rename = "BoundTool")]
pub struct Bound {
    #[ts(type = "string")]
    pub tool: ToolName,
    #[ts(type = "string")]
    pub fingerprint: Fingerprint,
}

/// A tool that rules may be made for: one of a connector's present list.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    pub name: &'a ToolName,
    pub fingerprint: Fingerprint,
    /// As received.
    pub input_schema: &'a Map<String, Value>,
    pub hints: ToolHints,
    /// Whether the scan found nothing.
    pub clean: bool,
}

impl Candidate<'_> {
    /// What a rule for this tool, as it is, is bound to.
    pub fn bound(&self) -> Bound {
        Bound {
            tool: self.name.clone(),
            fingerprint: self.fingerprint,
        }
    }
}

impl Rule {
    /// Whether it still counts at `now`, in Unix milliseconds.
    pub fn is_over(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// Whether it counts where its connector runs or contacts this; `None` = nothing that is known.
    pub fn is_for(&self, launch: Option<LaunchIdentity>) -> bool {
        match self.effect {
            Effect::Deny => true,
            Effect::Allow => launch.is_some() && self.launch == launch,
        }
    }

    /// The same rule for another launch, where the person chose that it goes on there.
    pub fn moved(&self, launch: LaunchIdentity) -> Self {
        Self {
            launch: Some(launch),
            ..self.clone()
        }
    }

    /// Whether a name or URI is one that it is about, bound or not.
    pub fn names(&self, name: &str) -> bool {
        crate::tools::pattern::any_matches(&self.patterns, name)
    }
}

#[cfg(test)]
mod tests;
