//! Questions that wait for the person, as the window shows them.

use serde::Serialize;
use ts_rs::TS;

use super::{LaunchReview, ToolHints, WhoView};
use crate::ids::{ConnectorId, ExposedName};

/// A question that waits for the person, or waited.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ApprovalView {
    /// Unguessable; answers refer to it.
    pub id: String,
    pub state: ApprovalState,
    /// The connector that it is about.
    #[ts(type = "string")]
    pub server: ConnectorId,
    /// Its name for people.
    pub server_name: String,
    /// Unix milliseconds.
    #[ts(type = "number")]
    pub asked_at: u64,
    /// Unix milliseconds; without an answer by then it is no.
    #[ts(type = "number")]
    pub expires_at: u64,
    pub question: Question,
    /// Further calls of whoever asks that were refused, as too many of its questions wait.
    pub refused: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum ApprovalState {
    Waiting,
    Approved,
    Denied,
    Expired,
}

/// What is asked. Texts are the upstream's: never to be rendered as markup.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum Question {
    /// An upstream wants something from the person (MCP elicitation).
    Elicitation { asks: Elicitation },
    /// A caller wants to use something of a connector.
    Call { call: Box<CallQuestion> },
    /// A caller wants something changed.
    Manage { who: WhoView, change: Box<ChangeQuestion> },
}

impl Question {
    /// The word of its kind in the API.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Elicitation { .. } => "elicitation",
            Self::Call { .. } => "call",
            Self::Manage { .. } => "manage",
        }
    }
}

/// A call that waits for a yes.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct CallQuestion {
    pub who: WhoView,
    pub subject: AskedSubject,
    /// Where it would be done: the host that is contacted, or the program that runs.
    pub place: String,
    /// Whether that is on this computer.
    pub is_local: bool,
    /// All of them, short ones first.
    pub arguments: Vec<ArgumentView>,
    /// How many other questions ask for exactly the same.
    pub same: u32,
    /// What writing a file would do, where a look told that when it was asked.
    pub writes: Option<FileWrite>,
}

/// What writing a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum FileWrite {
    Creates,
    Replaces,
}

/// What is to be used.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(tag = "subject", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum AskedSubject {
    Tool {
        /// As the upstream spells it.
        tool: String,
        #[ts(type = "string")]
        exposed_name: ExposedName,
        title: Option<String>,
        description: String,
        /// The upstream's claims.
        hints: ToolHints,
    },
    Resource {
        uri: String,
    },
    Prompt {
        name: String,
    },
}

impl AskedSubject {
    /// A tool's or prompt's name as the upstream spells it, or a resource's URI.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool { tool, .. } => tool,
            Self::Resource { uri } => uri,
            Self::Prompt { name } => name,
        }
    }
}

/// One argument of a call.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ArgumentView {
    pub name: String,
    /// The text itself where it is one, else its JSON.
    pub value: String,
    /// Whether the value is a text.
    pub is_text: bool,
    /// Length of `value` in characters.
    pub size: u32,
    /// False for one that the tool's schema does not know.
    pub known: bool,
}

/// What a caller wants changed.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(tag = "change", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
#[expect(clippy::large_enum_variant, reason = "questions hold it in a box, and there are few")]
pub enum ChangeQuestion {
    /// A new connector; a yes lets it run as shown.
    Add {
        launch: LaunchReview,
    },
    Enable,
    Disable,
    Remove,
    Reconnect,
    /// `patterns` as they would stand in the file; one `*` = all tools.
    AutoApprove {
        patterns: Vec<String>,
        /// The tools of now that these cover, by the upstream's own names. A yes is to these as they are.
        tools: Vec<String>,
    },
    /// `name` is `null` for the token itself.
    SetSecret {
        name: Option<String>,
        /// There is one already, which it would take the place of.
        replaces: bool,
        /// The origin or program that it would go to.
        goes_to: String,
    },
    ForgetSecret {
        name: Option<String>,
    },
    /// A yes opens the browser.
    SignIn,
    SignOut,
}

/// What an upstream wants.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[serde(tag = "mode", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum Elicitation {
    /// Values for a flat form; never secrets.
    Form {
        message: String,
        /// JSON Schema of an object with plain members.
        #[ts(type = "JsonValue")]
        schema: serde_json::Value,
        /// What the schema proposes, member by member.
        #[ts(type = "JsonValue")]
        defaults: serde_json::Value,
    },
    /// A page to open, which nothing opens by itself.
    Url {
        message: String,
        /// The whole address.
        url: String,
        /// Its host as it is looked up, for people to see where it leads.
        host: String,
        /// Why to look twice, such as letters that look like others.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        warning: Option<String>,
    },
}
