//! `autoApprove` in `connectors.json`: a wish that the person is asked about, or applied where the file is the authority.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{
    Arguments, Bound, Candidate, Effect, Kind, Lasts, Made, Origin, Rule, RuleCaller, RuleDraft, RuleId, make,
};
use crate::{config::AutoApprove, ids::ConnectorId, trust::LaunchIdentity};

/// One value of `autoApprove`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, TS)]
#[serde(tag = "value", rename_all = "snake_case", deny_unknown_fields)]
#[ts(export_to = "bridge.ts")]
pub enum FileValue {
    /// `true`: the tools that are there when it is decided.
    All,
    Pattern {
        pattern: String,
    },
}

/// A value that the person said no to, or whose rule they withdrew; it stays declined until the file says another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declined {
    pub server: ConnectorId,
    pub value: FileValue,
}

/// A rule that the file wishes for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts", rename = "FileProposal")]
pub struct Proposal {
    #[ts(type = "string")]
    pub server: ConnectorId,
    pub value: FileValue,
    /// What it would allow: clean tools of now that no rule for everybody covers yet. Never empty.
    pub tools: Vec<Bound>,
}

/// What to ask the person about, one proposal for each value. `tools`: the connector's approved ones.
pub fn proposals(
    server: &ConnectorId,
    wish: &AutoApprove,
    tools: &[Candidate<'_>],
    rules: &[Rule],
    declined: &[Declined],
) -> Vec<Proposal> {
    values(wish)
        .into_iter()
        .filter(|value| !declined.iter().any(|no| no.server == *server && no.value == *value))
        .filter_map(|value| {
            let mut wished = matched(&value, tools);
            wished.retain(|tool| !rules.iter().any(|rule| covers(rule, server, tool)));
            (!wished.is_empty()).then(|| Proposal {
                server: server.clone(),
                value,
                tools: wished,
            })
        })
        .collect()
}

/// The declined values that still count: those that the file still says. Both here and in [`proposals`] a value that went
/// and came back is asked about again.
pub fn still_declined(server: &ConnectorId, wish: &AutoApprove, declined: &[Declined]) -> Vec<Declined> {
    let values = values(wish);
    let counts = |no: &&Declined| no.server != *server || values.contains(&no.value);
    declined.iter().filter(counts).cloned().collect()
}

/// The clean tools of now that this wish covers.
pub fn wished(wish: &AutoApprove, tools: &[Candidate<'_>]) -> Vec<Bound> {
    let mut wished: Vec<_> = values(wish).iter().flat_map(|value| matched(value, tools)).collect();
    wished.sort();
    wished.dedup();
    wished
}

impl Proposal {
    /// Whether a yes to this wish, with these tools shown, covers all of it.
    pub fn is_within(&self, wish: &AutoApprove, shown: &[Bound]) -> bool {
        values(wish).contains(&self.value) && self.tools.iter().all(|tool| shown.contains(tool))
    }

    /// The rule that a yes to it makes: for exactly the tools that were shown, of what is launched at present.
    pub fn accepted(&self, launch: LaunchIdentity, id: RuleId, now: u64) -> Rule {
        let made = Made {
            id,
            origin: Origin::File,
            at: now,
            launch: Some(launch),
        };
        RuleDraft::for_anyone(&self.server, self.value.patterns()).with(made, self.tools.clone())
    }
}

/// All rules of this origin where the file is the authority: each value with the clean tools that were there when the file
/// began to say it, which may be none; nothing as long as no tools are known. What `existing` rules were bound to stays, and
/// only a tool that a value names whole joins it later; what the file does not say goes. The file says what is launched too,
/// so they go on whatever that is.
pub fn rules_from_file(
    server: &ConnectorId,
    wish: &AutoApprove,
    tools: &[Candidate<'_>],
    launch: Option<LaunchIdentity>,
    existing: &[Rule],
    now: u64,
    new_id: &mut dyn FnMut() -> RuleId,
) -> Vec<Rule> {
    let rules = values(wish).into_iter().filter_map(|value| {
        let is_name = value.is_name();
        let patterns = value.patterns();
        let kept = existing
            .iter()
            .find(|rule| rule.origin == Origin::File && rule.server == *server && rule.patterns == patterns);
        let mut rule = match kept {
            Some(rule) => rule.clone(),
            None => {
                let made = Made {
                    id: new_id(),
                    origin: Origin::File,
                    at: now,
                    launch,
                };
                RuleDraft::for_anyone(server, patterns).with(made, Vec::new())
            }
        };
        rule.launch = launch;
        if kept.is_none() || is_name {
            // A tool that became another one is no new tool: its rule sleeps.
            for tool in matched(&value, tools) {
                if !rule.bound.iter().any(|bound| bound.tool == tool.tool) {
                    rule.bound.push(tool);
                }
            }
            rule.bound.sort();
        }
        (kept.is_some() || !tools.is_empty()).then_some(rule)
    });
    rules.collect()
}

impl FileValue {
    /// Whether it means one tool, whose name it is.
    fn is_name(&self) -> bool {
        match self {
            Self::All => false,
            Self::Pattern { pattern } => !pattern.contains(['*', '?']),
        }
    }

    pub fn patterns(&self) -> Vec<String> {
        match self {
            Self::All => vec!["*".to_owned()],
            Self::Pattern { pattern } => vec![pattern.clone()],
        }
    }
}

fn values(wish: &AutoApprove) -> Vec<FileValue> {
    let mut values = match wish {
        AutoApprove::None => Vec::new(),
        AutoApprove::All => vec![FileValue::All],
        AutoApprove::Patterns(patterns) => patterns
            .iter()
            .map(|pattern| FileValue::Pattern {
                pattern: pattern.clone(),
            })
            .collect(),
    };
    values.sort();
    values.dedup();
    values
}

fn matched(value: &FileValue, tools: &[Candidate<'_>]) -> Vec<Bound> {
    let clean: Vec<_> = tools.iter().filter(|tool| tool.clean).copied().collect();
    make::bind(&value.patterns(), &clean)
}

fn covers(rule: &Rule, server: &ConnectorId, tool: &Bound) -> bool {
    rule.effect == Effect::Allow
        && rule.kind == Kind::Tools
        && rule.server == *server
        && rule.arguments == Arguments::Any
        && rule.caller == RuleCaller::Anyone
        && rule.expires_at.is_none()
        && rule.lasts == Lasts::Kept
        && rule.binds(&tool.tool, tool.fingerprint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::ToolName, trust::Fingerprint};

    fn tool(name: &str, number: u8) -> Bound {
        Bound {
            tool: ToolName::new(name),
            fingerprint: Fingerprint::from_bytes([number; 32]),
        }
    }

    fn pattern(pattern: &str) -> FileValue {
        FileValue::Pattern {
            pattern: pattern.to_owned(),
        }
    }

    #[test]
    fn a_yes_to_a_wish_covers_no_other_value_and_no_other_tools_than_were_shown() {
        let said = AutoApprove::Patterns(vec!["read*".to_owned(), "list".to_owned()]);
        let shown = [tool("list", 3), tool("read", 1)];
        let is_covered = |value, tools: &[Bound]| {
            let proposal = Proposal {
                server: ConnectorId::parse("files").unwrap(),
                value,
                tools: tools.to_vec(),
            };
            proposal.is_within(&said, &shown)
        };
        assert!(is_covered(pattern("read*"), &[tool("read", 1)]));
        assert!(is_covered(pattern("list"), &[tool("list", 3)]));
        assert!(
            !is_covered(pattern("read*"), &[tool("read", 1), tool("read_all", 2)]),
            "one came"
        );
        assert!(!is_covered(pattern("read*"), &[tool("read", 9)]), "it became another");
        assert!(!is_covered(pattern("*"), &[tool("read", 1)]), "the file says another");
        assert!(!is_covered(FileValue::All, &[tool("read", 1)]));
    }
}
