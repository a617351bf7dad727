//! From what the person chose to a rule: looked over, and bound to the tools as they are now.

use std::{collections::BTreeSet, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ts_rs::TS;

use super::{
    Arguments, Bound, Candidate, Condition, Effect, Kind, Lasts, Origin, ProgramId, Rule, RuleCaller, RuleId, web,
};
use crate::{
    ids::{ConnectorId, ToolName},
    tools::pattern,
    trust::{LaunchIdentity, fingerprint::Fingerprint},
};

/// What a person chooses of a rule; the rest is made. A change replaces all of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(export_to = "bridge.ts")]
pub struct RuleDraft {
    pub effect: Effect,
    #[ts(type = "string")]
    pub server: ConnectorId,
    pub kind: Kind,
    pub patterns: Vec<String>,
    pub arguments: Arguments,
    pub caller: RuleCaller,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub expires_at: Option<u64>,
    pub lasts: Lasts,
    #[serde(default)]
    pub note: String,
}

/// What the program adds to a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    pub id: RuleId,
    pub origin: Origin,
    /// Unix milliseconds.
    pub at: u64,
    /// What its connector runs or contacts, for a rule that allows.
    pub launch: Option<LaunchIdentity>,
}

/// Where a connector's work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A program on this computer.
    Here,
    /// A program that sees other files than this computer's, as in a container.
    Away,
    Elsewhere,
}

/// Most patterns of one rule, and most conditions.
const MOST_PARTS: usize = 4096;
/// Longest pattern, note, origin, folder or segment, in bytes.
const LONGEST_TEXT: usize = 4096;

/// Why a rule cannot be made; one sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("A rule has to say what it is about.")]
    NoPattern,
    #[error("The rule is too long.")]
    TooLong,
    #[error("\"{0}\" fits none of the connector's tools, so there is nothing to allow.")]
    NoTool(String),
    #[error("Say for \"{argument}\" of {tool} what it has to be, that it is left out, or that it may be anything.")]
    Unsaid { tool: ToolName, argument: String },
    #[error("None of these tools has an argument \"{0}\".")]
    NoArgument(String),
    #[error("\"{0}\" is no web address to begin with: write it like https://example.com, without a path.")]
    NoOrigin(String),
    #[error("\"{0}\" cannot be a part of a web address's path.")]
    NoSegment(String),
    #[error("\"{0}\" is no whole path of a folder.")]
    NoFolder(String),
    #[error("This connector does not run on this computer, so a folder here says nothing about it.")]
    NotHere,
    #[error(
        "This connector works on other files than this computer's, so nobody can say what it does in a folder here."
    )]
    NotOurs,
    #[error("Choose at least one value for \"{0}\".")]
    NoValue(String),
    #[error("\"{0}\" is no whole path of a program.")]
    NoProgram(String),
    #[error("Reading a resource has no arguments that a rule could be about.")]
    NoArguments,
    #[error(
        "The ? in \"{0}\" would stand for any sign, a / too, so such an address cannot be allowed in advance: you are asked each time."
    )]
    AnySign(String),
    #[error("The rule would end before it begins.")]
    Over,
}

impl RuleDraft {
    /// The rule, bound to those of `tools` that it matches: give the connector's approved tools, in their present state.
    ///
    /// # Errors
    /// [`Unfit`], in a sentence.
    pub fn make(self, made: Made, place: Place, tools: &[Candidate<'_>]) -> Result<Rule, Unfit> {
        let bound = match (self.effect, self.kind) {
            (Effect::Allow, Kind::Tools) => bind(&self.patterns, tools),
            (Effect::Allow, Kind::Resources | Kind::Prompts) | (Effect::Deny, _) => Vec::new(),
        };
        let rule = self.with(made, bound);
        rule.fault(place, tools).map_or(Ok(rule), Err)
    }

    /// The rule as it is kept, for exactly these tools.
    pub(super) fn with(self, made: Made, mut bound: Vec<Bound>) -> Rule {
        bound.sort();
        bound.dedup();
        Rule {
            id: made.id,
            effect: self.effect,
            server: self.server,
            kind: self.kind,
            patterns: self.patterns,
            arguments: self.arguments,
            caller: self.caller,
            expires_at: self.expires_at,
            lasts: self.lasts,
            bound,
            launch: match self.effect {
                Effect::Allow => made.launch,
                Effect::Deny => None,
            },
            origin: made.origin,
            made_at: made.at,
            note: self.note,
        }
    }

    /// Any program on this computer may use tools of these patterns, whatever the arguments, until it is withdrawn.
    pub(super) fn for_anyone(server: &ConnectorId, patterns: Vec<String>) -> Self {
        Self {
            effect: Effect::Allow,
            server: server.clone(),
            kind: Kind::Tools,
            patterns,
            arguments: Arguments::Any,
            caller: RuleCaller::Anyone,
            expires_at: None,
            lasts: Lasts::Kept,
            note: String::new(),
        }
    }
}

impl Rule {
    /// Why it cannot be kept as it is; `tools` are the present ones of its connector.
    pub fn fault(&self, place: Place, tools: &[Candidate<'_>]) -> Option<Unfit> {
        fault_of_texts(self)
            .or_else(|| fault_of_caller(&self.caller))
            .or_else(|| self.is_over(self.made_at).then_some(Unfit::Over))
            .or_else(|| {
                let Arguments::Each { conditions } = &self.arguments else {
                    return None;
                };
                conditions
                    .iter()
                    .find_map(|(name, condition)| self.fault_of_condition(name, condition, place))
            })
            .or_else(|| match (self.kind, self.effect) {
                (Kind::Resources, _) if self.arguments != Arguments::Any => Some(Unfit::NoArguments),
                (Kind::Resources, Effect::Allow) => {
                    let unclear = self.patterns.iter().find(|pattern| pattern.contains('?'));
                    unclear.map(|pattern| Unfit::AnySign(pattern.clone()))
                }
                (Kind::Resources, Effect::Deny) => None,
                (Kind::Tools, Effect::Allow) => self.fault_of_bound(tools),
                (Kind::Tools, Effect::Deny) | (Kind::Prompts, _) => None,
            })
    }

    fn fault_of_bound(&self, tools: &[Candidate<'_>]) -> Option<Unfit> {
        if self.bound.is_empty() {
            return Some(Unfit::NoTool(self.patterns.join(", ")));
        }
        let Arguments::Each { conditions } = &self.arguments else {
            return None;
        };
        let covered = tools.iter().filter(|tool| self.binds(tool.name, tool.fingerprint));
        let mut declared = BTreeSet::new();
        for tool in covered {
            for argument in arguments_of(tool.input_schema) {
                if !conditions.contains_key(argument) {
                    return Some(Unfit::Unsaid {
                        tool: tool.name.clone(),
                        argument: argument.clone(),
                    });
                }
                declared.insert(argument);
            }
        }
        let unknown = conditions.keys().find(|name| !declared.contains(name));
        unknown.map(|name| Unfit::NoArgument(name.clone()))
    }

    fn fault_of_condition(&self, name: &str, condition: &Condition, place: Place) -> Option<Unfit> {
        match condition {
            Condition::Any | Condition::Absent | Condition::Equals { .. } => None,
            Condition::OneOf { values } if values.is_empty() => Some(Unfit::NoValue(name.to_owned())),
            Condition::OneOf { values } => (values.len() > MOST_PARTS).then_some(Unfit::TooLong),
            Condition::Url { origin, path } => {
                if web::read_origin(origin).is_none() {
                    return Some(Unfit::NoOrigin(origin.clone()));
                }
                let odd = path.iter().find(|segment| !web::is_certain(segment));
                odd.map(|segment| Unfit::NoSegment(segment.clone()))
            }
            Condition::Inside { folder } => match place {
                Place::Elsewhere => Some(Unfit::NotHere),
                // It is taken to hold for whatever is not certain.
                Place::Away if self.effect == Effect::Allow => Some(Unfit::NotOurs),
                Place::Here | Place::Away => (!is_resolved(folder)).then(|| Unfit::NoFolder(folder.clone())),
            },
        }
    }

    /// Whether it was made for this tool as it is.
    pub fn binds(&self, tool: &ToolName, fingerprint: Fingerprint) -> bool {
        self.bound
            .iter()
            .any(|bound| bound.fingerprint == fingerprint && bound.tool == *tool)
    }

    /// The same rule for a tool that the person approved anew, where they chose that its rules go on. `None` where the
    /// rule was not bound to what the tool was before.
    pub fn rebound(&self, tool: &ToolName, from: Fingerprint, to: Fingerprint) -> Option<Self> {
        if !self.binds(tool, from) {
            return None;
        }
        let mut rule = self.clone();
        for bound in &mut rule.bound {
            if bound.tool == *tool && bound.fingerprint == from {
                bound.fingerprint = to;
            }
        }
        Some(rule)
    }
}

/// The arguments that a tool declares, in the order of its schema.
pub(super) fn arguments_of(schema: &Map<String, Value>) -> impl Iterator<Item = &String> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys)
}

/// Those that the patterns fit.
pub(super) fn bind(patterns: &[String], tools: &[Candidate<'_>]) -> Vec<Bound> {
    let fitting = tools
        .iter()
        .filter(|tool| pattern::any_matches(patterns, tool.name.as_str()));
    fitting.map(Candidate::bound).collect()
}

fn fault_of_texts(rule: &Rule) -> Option<Unfit> {
    if rule.patterns.is_empty() || rule.patterns.iter().any(String::is_empty) {
        return Some(Unfit::NoPattern);
    }
    let conditions = match &rule.arguments {
        Arguments::Any => 0,
        Arguments::Each { conditions } => conditions.len(),
    };
    let too_long = rule.patterns.len() > MOST_PARTS
        || conditions > MOST_PARTS
        || rule
            .patterns
            .iter()
            .chain([&rule.note])
            .any(|text| text.len() > LONGEST_TEXT);
    too_long.then_some(Unfit::TooLong)
}

fn fault_of_caller(caller: &RuleCaller) -> Option<Unfit> {
    match caller {
        RuleCaller::Anyone | RuleCaller::Client { .. } => None,
        RuleCaller::Program {
            program: ProgramId { path, script },
        } => [Some(path), script.as_ref()]
            .into_iter()
            .flatten()
            .find(|path| !is_resolved(path))
            .map(|path| Unfit::NoProgram(path.clone())),
    }
}

/// Absolute, without a part that climbs or stays.
fn is_resolved(path: &str) -> bool {
    let read = Path::new(path);
    // Put together again it has to be the same text: components leave `.` and doubled slashes out.
    let again: std::path::PathBuf = read.components().collect();
    read.is_absolute()
        && path.len() <= LONGEST_TEXT
        && !path.contains('\0')
        && !read.components().any(|part| part == std::path::Component::ParentDir)
        && again.as_os_str() == read.as_os_str()
}
