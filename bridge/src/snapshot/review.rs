//! What waits for the person's look before it may run or be offered.

use std::sync::Arc;

use serde::Serialize;
use ts_rs::TS;

use super::{RuleSaid, SleepingRules, ToolHints, WhoView};
use crate::{
    ids::{ConnectorId, ToolName},
    trust::scan::Finding,
};

/// Everything that waits for a look.
#[derive(Debug, Clone, Default, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct Reviews {
    /// In the order of the file.
    pub launches: Vec<LaunchReview>,
    pub tools: Vec<ToolsReview>,
    /// What the person looked at and left as it is: it waits for nothing, and can still be approved.
    pub left: Vec<ToolsReview>,
    pub proposals: Vec<RuleProposal>,
    pub asleep: Vec<SleepingRules>,
}

/// What a connector would run or contact.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct LaunchReview {
    /// Names exactly this launch: another command, address or reason has another one.
    pub id: String,
    #[ts(type = "string")]
    pub server: ConnectorId,
    /// What the entry calls itself.
    pub server_name: String,
    pub why: LaunchWhy,
    pub came_from: EntryOrigin,
    pub now: LaunchShown,
    /// What was approved last, where something was.
    pub before: Option<LaunchShown>,
    /// What to look at twice.
    pub stands_out: Vec<StandsOut>,
    /// Rules that allow and were made for another launch: they sleep under this one unless the person keeps them.
    pub asleep: Vec<RuleSaid>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(tag = "why", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum LaunchWhy {
    /// Nothing of this id was ever approved.
    New,
    /// Something else was approved.
    Changed,
    /// It was off, and was turned on outside the window.
    TurnedOn,
    /// Tools that were off were turned on outside the window.
    ToolsShown { tools: Vec<String> },
}

/// Who put the entry there.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(tag = "from", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum EntryOrigin {
    /// It stands in the file.
    File,
    /// A program asked for it.
    Caller { who: WhoView },
}

/// A launch, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum LaunchShown {
    Run {
        /// Command and arguments as they would be given to the program, `${secret:}` unexpanded.
        command_line: Vec<String>,
        /// The program that was found under that name; `null` = none.
        program: Option<String>,
        cwd: Option<String>,
        env_file: Option<String>,
        env: Vec<Given>,
    },
    Contact {
        url: String,
        /// Its host as it is looked up.
        host: String,
        headers: Vec<Given>,
        /// How it signs in, in words of the file: `none`, `token`, `oauth`; `null` = until the server asks.
        auth: Option<String>,
        /// Settings of the sign-in that the entry makes, each as `name: value`.
        sign_in: Vec<String>,
    },
}

/// A variable or header that the upstream is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct Given {
    pub name: String,
    /// As written.
    pub template: String,
    /// Variables of the person's environment that go into it, each with its present value; `null` = not set.
    pub from_environment: Vec<(String, Option<String>)>,
    /// The connector's secrets that go into it, by name.
    pub secrets: Vec<String>,
}

/// Something about a launch that a person should look at twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, serde::Deserialize, TS)]
#[serde(tag = "what", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum StandsOut {
    /// A shell or interpreter is given its program as text.
    InlineCode { program: String },
    /// It asks for the rights of another user.
    OtherRights { program: String },
    /// A whole disk, the person's home or this app's own folder.
    WideFolder { argument: String },
    /// A variable by which other code can get into the program.
    LoaderVariable { name: String },
    /// A package without a fixed version: another program may run tomorrow.
    Unpinned { package: String },
    /// It downloads and runs a program.
    Downloads { runner: String },
    /// Its sign-in goes without the protection of codes (PKCE).
    MissingPkce,
    /// Its address is not encrypted.
    NotEncrypted,
    /// No program of that name is found.
    NotFound { program: String },
}

/// What one connector offers that changed, is new, or looks dangerous.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ToolsReview {
    #[ts(type = "string")]
    pub server: ConnectorId,
    pub server_name: String,
    pub tools: Vec<Arc<ToolReview>>,
    /// Prompts about which something stands out; each is approved for itself.
    pub prompts: Vec<Arc<PromptReview>>,
    /// What the server tells assistants about itself, where that waits.
    pub instructions: Option<TextReview>,
}

/// One tool that waits for a look.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ToolReview {
    #[ts(type = "string")]
    pub tool: ToolName,
    pub state: ToolState,
    /// Names exactly this version: a yes to another one is none.
    pub version: String,
    pub before: Option<ToolText>,
    pub now: ToolText,
    pub findings: Vec<FindingView>,
    /// Unix milliseconds of the last approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub approved_at: Option<u64>,
}

/// How a tool stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum ToolState {
    Approved,
    /// Only its words changed: what was approved is still shown to assistants, and it works.
    Reworded,
    /// New.
    Pending,
    /// New, and something about it looks dangerous.
    Held,
    /// Not what was approved.
    Changed,
}

/// A tool as people compare it.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ToolText {
    pub title: Option<String>,
    pub description: String,
    /// JSON, indented, members in order.
    pub input_schema: String,
    pub output_schema: Option<String>,
    pub hints: ToolHints,
    /// What else of it callers get: a JSON object, indented, as received.
    pub also: Option<String>,
}

/// One prompt that looks dangerous and waits for a look.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct PromptReview {
    pub prompt: String,
    /// `held`, or `changed` where another version was approved.
    pub state: ToolState,
    /// Names exactly this version: a yes to another one is none.
    pub version: String,
    pub before: Option<PromptText>,
    pub now: PromptText,
    pub findings: Vec<FindingView>,
    /// Unix milliseconds of the last approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub approved_at: Option<u64>,
}

/// A prompt as people compare it.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct PromptText {
    pub title: Option<String>,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
    /// All of it as received: JSON, indented.
    pub whole: String,
}

/// What a prompt wants to be given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct PromptArgument {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
}

/// A text that waits for a look.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct TextReview {
    pub version: String,
    pub before: Option<String>,
    pub now: String,
    pub findings: Vec<FindingView>,
}

/// What the scan found, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct FindingView {
    /// The kind as the API spells it, such as `hidden_characters`.
    pub kind: String,
    /// One sentence.
    pub sentence: String,
    /// Where, such as `description`.
    pub place: String,
    /// What was found, hidden characters made visible, shortened.
    pub excerpt: String,
}

impl From<&Finding> for FindingView {
    fn from(finding: &Finding) -> Self {
        Self {
            kind: finding.kind.name().to_owned(),
            sentence: finding.kind.sentence().to_owned(),
            place: finding.place.clone(),
            excerpt: finding.excerpt.clone(),
        }
    }
}

/// `autoApprove` in the file asks for what only the person can allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct RuleProposal {
    pub id: String,
    #[ts(type = "string")]
    pub server: ConnectorId,
    pub server_name: String,
    /// As written in the file: patterns, or one `*` for `true`.
    pub patterns: Vec<String>,
    /// The tools of now that a yes would cover.
    pub tools: Vec<String>,
}
