//! Questions that wait for the person, as the window shows them.

use serde::Serialize;
use ts_rs::TS;

use crate::ids::ConnectorId;

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
