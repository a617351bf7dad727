//! Rules as the window shows them.

use serde::Serialize;
use ts_rs::TS;

use crate::{
    ids::ConnectorId,
    snapshot::LaunchShown,
    trust::rules::{Rule, RuleId},
};

/// A rule with what people want to know of it.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct RuleView {
    pub rule: Rule,
    /// The connector's name for people.
    pub server_name: String,
    /// The whole rule in one sentence.
    pub sentence: String,
    /// How often it decided something, as far as activity goes back.
    #[ts(type = "number")]
    pub used: u64,
    /// Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub last_used_at: Option<u64>,
    /// Why it decides nothing at present.
    pub sleeps: Option<RuleSleep>,
}

/// Why a rule decides nothing at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum RuleSleep {
    /// Its connector waits for a look, is turned off or gone.
    Review,
    /// It was made for another command or address of its connector.
    Elsewhere,
    /// None of its tools is what it was.
    Changed,
    Expired,
}

/// A rule in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct RuleSaid {
    #[ts(type = "string")]
    pub rule: RuleId,
    pub sentence: String,
}

/// Rules that allow and sleep, because their connector runs or contacts something else than when they were made.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct SleepingRules {
    /// Names exactly these rules and what they would go on for.
    pub id: String,
    #[ts(type = "string")]
    pub server: ConnectorId,
    pub server_name: String,
    /// What they would go on for.
    pub now: LaunchShown,
    pub rules: Vec<RuleSaid>,
}
