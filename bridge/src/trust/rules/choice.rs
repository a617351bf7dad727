//! The question with which adding ends: what may assistants do without asking?

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Candidate, Made, Origin, Rule, RuleDraft, RuleId};
use crate::{
    ids::{ConnectorId, ToolName},
    trust::LaunchIdentity,
};

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "choice", rename_all = "snake_case", deny_unknown_fields)]
#[ts(export_to = "bridge.ts", rename = "AddingChoice")]
pub enum Choice {
    /// The tools that were shown as looking things up: [`lookups`].
    LookUp,
    Nothing,
    These {
        #[ts(type = "Array<string>")]
        tools: Vec<ToolName>,
    },
}

/// The tools that are offered as looking things up: they say so themselves, and the scan found nothing in them. Only what
/// the person's eye is led to; without their yes none of them is allowed anything.
pub fn lookups(tools: &[Candidate<'_>]) -> Vec<ToolName> {
    tools
        .iter()
        .filter(|tool| tool.clean && tool.hints.read_only == Some(true))
        .map(|tool| tool.name.clone())
        .collect()
}

/// The rule that the answer makes, for any program on this computer; `None` where nothing was chosen. `tools` are those
/// that the person was shown, of what is launched at present. It is bound to the chosen ones alone, whatever signs their names have in them.
pub fn choice_rule(
    server: &ConnectorId,
    choice: &Choice,
    tools: &[Candidate<'_>],
    launch: LaunchIdentity,
    id: RuleId,
    now: u64,
) -> Option<Rule> {
    let chosen = match choice {
        Choice::LookUp => lookups(tools),
        Choice::Nothing => Vec::new(),
        Choice::These { tools } => tools.clone(),
    };
    let chosen: BTreeSet<_> = chosen.iter().collect();
    let bound: Vec<_> = tools
        .iter()
        .filter(|tool| chosen.contains(tool.name))
        .map(Candidate::bound)
        .collect();
    let made = Made {
        id,
        origin: Origin::Choice,
        at: now,
        launch: Some(launch),
    };
    let patterns = bound.iter().map(|tool| tool.tool.as_str().to_owned()).collect();
    (!bound.is_empty()).then(|| RuleDraft::for_anyone(server, patterns).with(made, bound))
}
