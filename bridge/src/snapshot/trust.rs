//! Who asks and what is trusted, as the window shows it.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::{caller::Scope, ids::ConnectorId};

/// Whoever asks, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct WhoView {
    pub kind: WhoKind,
    /// The client's name, else the program's; empty where neither is known.
    pub name: String,
    /// Of a paired client.
    pub client: Option<String>,
    pub program: Option<ProgramView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum WhoKind {
    Owner,
    WalkIn,
    Client,
}

/// The program behind a caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ProgramView {
    pub name: String,
    pub path: Option<String>,
    /// What an interpreter runs.
    pub script: Option<String>,
    pub pid: u32,
}

/// What holds for all callers. The default is what is shown before anything is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct TrustView {
    pub standing: TrustStanding,
    pub api_mode: ApiMode,
    /// The mode was not chosen: what was chosen is lost, or cannot be read at present.
    pub api_mode_assumed: bool,
    pub walk_in: WalkInPolicy,
    /// Whether what runs needs a look first.
    pub review: bool,
    /// All connectors are paused.
    pub paused: bool,
    /// While an assistant may be paired.
    pub pairing: Option<PairingView>,
    /// Callers that may not ask at present.
    pub muted: Vec<MutedView>,
}

/// Whether earlier decisions can be relied on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, TS)]
#[serde(tag = "state", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum TrustStanding {
    /// Being looked at.
    #[default]
    Opening,
    /// Nothing was decided yet.
    Fresh,
    Verified,
    /// They are missing, were changed, or are older than they should be: everything is asked again.
    Broken {
        message: String,
    },
    /// The keychain does not say at present.
    Unknown {
        message: String,
    },
    /// What is decided now holds until the app quits.
    ThisRun,
}

/// Who needs a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum ApiMode {
    /// Programs of this user need none.
    #[default]
    Open,
    /// All but health and the sign-in's way back need one.
    Token,
}

/// What happens to a walk-in's call that no rule covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum WalkInPolicy {
    /// The person is asked.
    #[default]
    Ask,
    /// They go on; rules that deny and tools that are held still hold.
    Allow,
}

/// An assistant is being paired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct PairingView {
    /// Unix milliseconds.
    #[ts(type = "number")]
    pub open_until: u64,
    /// The one that asked, whose code is to be typed.
    pub request: Option<PairingRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct PairingRequest {
    pub id: String,
    /// What it calls itself.
    pub name: String,
    pub program: Option<ProgramView>,
    /// Codes that were typed wrong; after three it is over.
    pub wrong_codes: u32,
}

/// A paired client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ClientView {
    pub id: String,
    pub name: String,
    pub scopes: Vec<Scope>,
    /// The connectors it sees; `null` = all.
    #[ts(type = "Array<string> | null")]
    pub servers: Option<Vec<ConnectorId>>,
    pub asks_itself: bool,
    /// Unix milliseconds, all of these.
    #[ts(type = "number")]
    pub paired_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub last_used_at: Option<u64>,
    pub program: Option<ProgramView>,
}

/// A program without a token that the person marked as doing its own asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct AskerView {
    pub path: String,
    pub script: Option<String>,
}

/// A caller that may not ask at present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct MutedView {
    /// Names this caller, to let it ask again.
    pub id: String,
    pub who: WhoView,
    /// Unix milliseconds; `null` = until the person is back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub until: Option<u64>,
}

/// A connector that a program paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct PausedView {
    /// `null` = everything is paused.
    pub by: Option<WhoView>,
}
