//! What a caller may do without a question: the decision, asked beforehand.

use std::collections::BTreeSet;

use super::View;
use crate::{
    ids::{ConnectorId, ToolName},
    trust::rules::{Fit, Rule, RuleId, Who},
};

/// What rules of the person allow a caller; neither the walk-ins' policy nor its own asking makes it longer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AutoApproved {
    /// Tools that are allowed whatever the arguments, in order.
    pub tools: Vec<(ConnectorId, ToolName)>,
    /// Rules that allow some arguments of some tool, in order.
    pub rules: Vec<RuleId>,
}

/// A tool is listed exactly if the decision allows every call of it by `who`, were walk-ins asked about and did `who` not
/// ask by itself; a rule that denies is taken to meet some call. `now` in Unix milliseconds.
pub fn auto_approved(who: Who<'_>, view: &View, now: u64) -> AutoApproved {
    let mut tools = Vec::new();
    let mut rules = BTreeSet::new();
    for callable in view.callable() {
        let listed = match who {
            Who::Owner => true,
            Who::Client(_) | Who::WalkIn(_) => {
                // With conditions too: some call of the tool would be met.
                let mut denying = callable.denying().filter(|rule| stands_against(rule, who, now));
                let denied_some = denying.next();
                let denied_all = denied_some
                    .into_iter()
                    .chain(denying)
                    .any(|rule| rule.arguments.are_any());
                let mut allowed_all = false;
                if !denied_all {
                    for rule in callable.allowing().filter(|rule| stands_for(rule, who, now)) {
                        if rule.arguments.are_any() {
                            allowed_all = true;
                        } else {
                            rules.insert(rule.id);
                        }
                    }
                }
                allowed_all && denied_some.is_none()
            }
        };
        if listed {
            tools.push((callable.server.clone(), callable.name.clone()));
        }
    }
    tools.sort();
    AutoApproved {
        tools,
        rules: rules.into_iter().collect(),
    }
}

fn stands_for(rule: &Rule, who: Who<'_>, now: u64) -> bool {
    rule.caller.fits(who) == Fit::Fits && !rule.is_over(now)
}

fn stands_against(rule: &Rule, who: Who<'_>, now: u64) -> bool {
    rule.caller.fits(who) != Fit::Differs && !rule.is_over(now)
}

#[cfg(test)]
mod tests;
