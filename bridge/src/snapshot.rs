//! What the window, the tray and the command line may see: plain data made from the state, never the state itself.
//!
//! Holds no secret value: commands and headers are shown as written in `connectors.json`, with `${secret:}` unexpanded.

mod activity;
mod approval;
mod need;
mod review;
mod rule;
mod sign_in;
mod trust;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

pub use self::{
    activity::{
        ActivityCaller, ActivityChange, ActivityDay, ActivityEntry, ActivityExport, ActivityFilter, ActivityKind,
        ActivityOutcome, ActivityPage, ActivityQuestion, ActivityRecord, ActivityReview, ActivityWhat, ActivityWho,
        AllowedBy, Arguments, ExportFormat, PersonAnswer, RuleUse, StandingPolicy,
    },
    approval::{
        ApprovalState, ApprovalView, ArgumentView, AskedSubject, CallQuestion, ChangeQuestion, Elicitation, FileWrite,
        Question,
    },
    need::Need,
    review::{
        EntryOrigin, FindingView, Given, LaunchReview, LaunchShown, LaunchWhy, PromptArgument, PromptReview,
        PromptText, Reviews, RuleProposal, StandsOut, TextReview, ToolReview, ToolState, ToolText, ToolsReview,
    },
    rule::{RuleSaid, RuleSleep, RuleView, SleepingRules},
    sign_in::{KeptIn, KeychainState, KeychainView, RedirectKind, SignInOutcome, SignInStage, SignInView},
    trust::{
        ApiMode, AskerView, ClientView, MutedView, PairingRequest, PairingView, PausedView, ProgramView, TrustStanding,
        TrustView, WalkInPolicy, WhoKind, WhoView,
    },
};

pub(crate) use self::need::needs;

use crate::{
    error::Action,
    ids::{ConnectorId, ExposedName, ToolName},
};

/// Everything a window shows at a glance; one is published at each change.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct Snapshot {
    /// Of this program.
    pub version: String,
    pub api: ApiView,
    pub config: ConfigView,
    /// In the order of the file.
    pub connectors: Vec<ConnectorView>,
    /// Those of them that wait for the person, by their ids.
    pub needs: BTreeMap<String, Need>,
    pub keychain: KeychainView,
    /// Sign-ins that wait for the person or their browser, or that just failed; at most one for each connector.
    pub sign_ins: Vec<SignInView>,
    /// Questions that wait for the person, the oldest first.
    pub approvals: Vec<ApprovalView>,
    /// Calls that nobody answered in time, the newest first.
    pub missed: Vec<ApprovalView>,
    /// What waits for the person's look.
    pub reviews: Reviews,
    pub trust: TrustView,
}

impl Snapshot {
    /// The page on which the sign-in of this connector goes on, while it waits for a browser.
    pub fn sign_in_page(&self, server: &str) -> Option<&str> {
        let view = self.sign_ins.iter().find(|view| view.server.as_str() == server)?;
        match &view.stage {
            SignInStage::Waiting { url, .. } => Some(url),
            SignInStage::Preparing
            | SignInStage::Confirm { .. }
            | SignInStage::NeedsClient { .. }
            | SignInStage::NoPkce { .. }
            | SignInStage::Finishing
            | SignInStage::Failed { .. } => None,
        }
    }
}

/// Where the loopback API stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum ApiView {
    /// Not bound yet.
    Starting {
        port: u16,
    },
    Listening {
        port: u16,
    },
    /// Somebody else holds the port; retried with backoff.
    PortTaken {
        port: u16,
        /// One sentence, with the holder's name and process id where the system tells.
        message: String,
    },
}

/// The file and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ConfigView {
    /// Absolute path of `connectors.json`.
    pub path: String,
    /// True while the file does not exist and the default connector stands in.
    pub is_default: bool,
    /// Problems and remarks, errors first.
    pub notices: Vec<Notice>,
}

/// One remark about the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct Notice {
    pub level: NoticeLevel,
    /// What, where and what to do, in one or two sentences.
    pub message: String,
    /// 1-based, in characters; absent where the remark is about no place in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub column: Option<u32>,
    /// The connector it is about, as written (may be no legal id).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub server: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum NoticeLevel {
    /// Something does not work because of it.
    Error,
    /// It works, but perhaps not as meant.
    Warning,
    /// Good to know.
    Info,
}

/// A connector's state in one word (DESIGN §8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum Status {
    /// Turned off in the file.
    Disabled,
    /// Its tools are known, nothing runs; the first call connects.
    Sleeping,
    Connecting,
    Connected,
    /// Waits for the next attempt of its episode.
    Retrying,
    NeedsSignIn,
    NeedsSecret,
    /// The person has to look at what it runs or contacts first.
    NeedsReview,
    /// A program turned it off until the next start, or the person paused everything. One that waits for a look is
    /// [`Status::NeedsReview`] also then; [`ConnectorView::paused`] says the pause.
    Paused,
    /// What it needs is in the keychain, which gives nothing at present.
    KeychainUnavailable,
    /// The last attempt failed; `error` says why.
    Error,
    /// Its entry in the file cannot be used; `error` says where and why.
    Invalid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum TransportKind {
    Stdio,
    Http,
    Sse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum Era {
    /// Opened with `initialize`, up to revision 2025-11-25.
    Legacy,
    /// Stateless, revision 2026-07-28.
    Modern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum Readiness {
    /// A stdio session that completed discovery.
    Ready,
    /// Nothing is known beyond the last exchange.
    Unknown,
}

/// One connector as a list row shows it.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ConnectorView {
    /// As written in the file; illegal ones appear with status `invalid`.
    pub id: String,
    /// Shown to people; the id where the file gives none.
    pub name: String,
    pub description: String,
    pub transport: TransportKind,
    /// The command line or URL as written (owner only).
    pub summary: String,
    pub enabled: bool,
    pub status: Status,
    /// Number of tools listed to callers.
    pub tools: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub action: Option<Action>,
    /// One sentence, without an upstream's own output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub error: Option<String>,
    /// The upstream's last lines on stderr, where they explain the error (owner only).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub error_detail: Option<String>,
    /// What is going on while connecting, such as "Still installing…".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub progress: Option<String>,
    pub auth: AuthView,
    pub connection: ConnectionView,
    /// Unix milliseconds of the last call, in this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub used_at: Option<u64>,
    /// By whom it is paused, whatever else it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub paused: Option<PausedView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct AuthView {
    pub state: AuthState,
    /// What the sign-in allows, or would have to allow; absent where nothing is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub scopes: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "kebab-case")]
#[ts(export_to = "bridge.ts")]
pub enum AuthState {
    None,
    SignedIn,
    NeedsSignIn,
    /// The last sign-in or refresh failed; the connector's `error` says why.
    Error,
    /// The server asks for a scheme that is neither bearer nor OAuth.
    Unsupported,
}

/// Facts about the one session; numbers only grow, reads never change them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ConnectionView {
    /// Sessions started so far in this run.
    #[ts(type = "number")]
    pub generation: u64,
    /// Grows with every state the connector enters.
    #[ts(type = "number")]
    pub sequence: u64,
    /// Unix milliseconds at which the present state was entered.
    #[ts(type = "number")]
    pub since: u64,
    /// Unix milliseconds at which the upstream was last heard of; 0 = never.
    #[ts(type = "number")]
    pub observed_at: u64,
    pub era: Option<Era>,
    /// The negotiated protocol revision, such as `2025-11-25`.
    pub protocol: Option<String>,
    pub retry: Option<RetryView>,
    pub readiness: Readiness,
}

/// The attempt that is scheduled next. Times in Unix milliseconds, the delay in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct RetryView {
    pub number: u32,
    pub max: u32,
    #[ts(type = "number")]
    pub scheduled_at: u64,
    #[ts(type = "number")]
    pub next_attempt_at: u64,
    #[ts(type = "number")]
    pub delay_ms: u64,
}

/// One connector with its tools, for the detail screen and `GET /mcp/servers/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ConnectorDetail {
    pub connector: ConnectorView,
    pub tools: Vec<ToolView>,
    /// Tools of the upstream's list that cannot be offered, each with why.
    pub rejected: Vec<RejectedTool>,
    /// What its server tells assistants about itself, as it was approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub instructions: Option<String>,
    /// The entry as JSON text, as written in the file (owner only).
    pub entry: String,
    /// The token and the secrets that the entry names, in this order (owner only).
    pub secrets: Vec<SecretView>,
}

/// A token or secret that an entry names; never its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct SecretView {
    /// As `${secret:NAME}` spells it; `null` = the token.
    pub name: Option<String>,
    /// Whether it can be used as the entry stands; `null` = the keychain does not say at present.
    pub set: Option<bool>,
    /// It was entered for another address or command, and is kept from this one.
    pub withheld: bool,
}

/// Lines of a connector's log, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct LogPage {
    /// Each with its UTC time before it, redacted.
    pub lines: Vec<String>,
    /// The place after these lines, to ask for later ones with.
    pub next: String,
    /// True when lines between the place asked for and these are lost: the log went on too fast, or begins anew.
    pub missed: bool,
}

/// One tool as the detail screen shows it. Texts are the upstream's: never to be rendered as markup.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ToolView {
    #[ts(type = "string")]
    pub name: ToolName,
    #[ts(type = "string")]
    pub exposed_name: ExposedName,
    pub title: Option<String>,
    pub description: String,
    /// JSON Schema; root is always an object type.
    #[ts(type = "JsonValue")]
    pub input_schema: serde_json::Value,
    /// Claims of the upstream, nothing more.
    pub hints: ToolHints,
    /// False when `disabledTools` hides it.
    pub enabled: bool,
    pub state: ToolState,
    /// What the scan found in it.
    pub findings: Vec<FindingView>,
    /// Why callers do not see it, in a sentence; absent where they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub hidden: Option<String>,
    /// True when `autoApprove` covers it.
    pub auto_approved: bool,
}

/// The upstream's annotations; `None` = not given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ToolHints {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct RejectedTool {
    /// Its name where it has one, else its place in the list (`#3`).
    pub name: String,
    pub reason: String,
}

/// What `POST /mcp/call` answers and Try it shows.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct CallAnswer {
    pub ok: bool,
    /// Blocks: `{"type":"text"|"image"|"audio"|"resource_link"|"resource"|"unknown",…}`.
    #[ts(type = "Array<JsonValue>")]
    pub content: Vec<serde_json::Value>,
    /// All that a model should read, at most 200,000 characters.
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "JsonValue")]
    pub structured: Option<serde_json::Value>,
    /// The upstream's own words when the tool failed (`isError`), at most 2,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub error: Option<String>,
    /// `tool_error` when the tool failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub code: Option<String>,
    #[ts(type = "string")]
    pub server: ConnectorId,
    /// The tool as its upstream spells it.
    #[ts(type = "string")]
    pub tool: ToolName,
    #[ts(type = "number")]
    pub duration_ms: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Where the whole result can be read, when it was shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub result_id: Option<String>,
    /// What looks dangerous in the result, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
