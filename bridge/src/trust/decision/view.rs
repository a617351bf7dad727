//! Everything that decisions are made on, made ready once and never changed.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::{Map, Value};

use super::{
    Call, Refusal, Subject,
    index::{Patterns, PerKind},
    readings::{Denied, Readings},
};
use crate::{
    ids::{ConnectorId, ToolName},
    snapshot::WalkInPolicy,
    trust::{
        LaunchIdentity,
        fingerprint::Fingerprint,
        rules::{ClientId, Declared, Effect, Kind, ProgramId, Rule, Who},
    },
};

/// Whether a connector may be used at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnectorStanding {
    /// Reviewed and turned on, whatever its connection is doing.
    Ready,
    NeedsReview,
    /// The rows that say what was approved cannot be checked at present.
    TrustUnknown,
    Disabled,
    /// Turned off until a restart by somebody who may not do more.
    Paused,
    Invalid,
}

/// Whether a tool may be used at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolStanding {
    /// As the person approved it.
    Approved(Fingerprint),
    /// Only its wording is another one, and clean: it is served as it was approved, with the approved fingerprint.
    Wording(Fingerprint),
    /// New: it waits for the person.
    Pending,
    /// The scan found something: it waits for the person.
    Held,
    /// It is not what was approved.
    Changed,
    /// Approved once, and not in the present list.
    Missing,
    /// `disabledTools` hides it.
    Disabled,
}

/// Who asks the person by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Askers {
    pub clients: HashSet<ClientId>,
    pub programs: HashSet<ProgramId>,
}

/// One connector, as far as it decides anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectorFacts {
    pub id: ConnectorId,
    pub standing: ConnectorStanding,
    /// What it may run or contact at present; `None` = nothing.
    pub launch: Option<LaunchIdentity>,
    pub tools: Vec<ToolFacts>,
}

/// One of its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFacts {
    pub name: ToolName,
    pub standing: ToolStanding,
    /// As it was approved; of another one as it is listed.
    pub input_schema: Arc<Map<String, Value>>,
}

/// What a view is made of.
#[derive(Debug, Clone)]
pub struct ViewParts {
    pub connectors: Vec<ConnectorFacts>,
    /// Of this run and kept ones; those of other connectors sleep.
    pub rules: Vec<Arc<Rule>>,
    pub walk_in: WalkInPolicy,
    pub askers: Askers,
}

/// All of it, prepared: a decision looks at the rules of one tool, however many there are. Share it behind an `Arc` and
/// make a new one when anything changes.
#[derive(Debug)]
pub struct View {
    connectors: HashMap<ConnectorId, Prepared>,
    walk_in: WalkInPolicy,
    askers: Askers,
}

#[derive(Debug)]
struct Prepared {
    standing: ConnectorStanding,
    launch: Option<LaunchIdentity>,
    tools: HashMap<ToolName, Tool>,
    deny: PerKind<Patterns>,
    /// Those about resources, which no spelling of an address gets past.
    deny_resources: Vec<(Vec<Denied>, Arc<Rule>)>,
    /// Of tools, kept with each tool instead.
    allow: PerKind<Patterns>,
}

#[derive(Debug)]
struct Tool {
    standing: ToolStanding,
    input_schema: Arc<Map<String, Value>>,
    /// Rules that were made for it, and whether for what it is now.
    allow: Vec<(Arc<Rule>, Sleep)>,
}

/// A rule that allows something of this name.
pub(super) struct Allowing<'a> {
    pub(super) rule: &'a Rule,
    pub(super) sleep: Sleep,
}

/// Whether a rule that allows was made for what there is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sleep {
    Awake,
    /// Its tool is another one.
    OtherTool,
    /// Its connector runs or contacts something else.
    OtherLaunch,
}

impl View {
    pub fn new(parts: ViewParts) -> Self {
        let mut connectors: HashMap<_, _> = parts
            .connectors
            .into_iter()
            .map(|facts| (facts.id, Prepared::new(facts.standing, facts.launch, facts.tools)))
            .collect();
        for rule in parts.rules {
            // The rules of a connector that is gone wait for its return.
            if let Some(connector) = connectors.get_mut(&rule.server) {
                connector.add(rule);
            }
        }
        Self {
            connectors,
            walk_in: parts.walk_in,
            askers: parts.askers,
        }
    }

    /// What became of a tool; `None` for one that nobody knows.
    pub fn tool(&self, server: &ConnectorId, tool: &ToolName) -> Option<ToolStanding> {
        Some(self.connectors.get(server)?.tools.get(tool)?.standing)
    }

    pub fn connector(&self, server: &ConnectorId) -> Option<ConnectorStanding> {
        Some(self.connectors.get(server)?.standing)
    }

    /// What a connector may run or contact at present.
    pub fn launch(&self, server: &ConnectorId) -> Option<LaunchIdentity> {
        self.connectors.get(server)?.launch
    }

    pub fn walk_in(&self) -> WalkInPolicy {
        self.walk_in
    }

    /// Whether the person said that this caller asks by itself.
    pub fn asks_itself(&self, who: Who<'_>) -> bool {
        match who {
            Who::Owner | Who::WalkIn(None) => false,
            Who::Client(id) => self.askers.clients.contains(&id),
            Who::WalkIn(Some(program)) => self.askers.programs.contains(program),
        }
    }

    pub(super) fn has_asking_programs(&self) -> bool {
        !self.askers.programs.is_empty()
    }

    pub(super) fn standing_refusal(&self, call: &Call<'_>) -> Option<Refusal> {
        match self.connectors.get(call.server) {
            None => Some(Refusal::UnknownServer),
            Some(connector) => connector.standing.refusal(),
        }
    }

    pub(super) fn tool_refusal(&self, call: &Call<'_>) -> Option<Refusal> {
        match call.subject {
            Subject::Tool(name) => match self.tool(call.server, name) {
                None => Some(Refusal::UnknownTool),
                Some(standing) => standing.refusal(),
            },
            Subject::Resource(_) | Subject::Prompt(_) | Subject::CompletePrompt(_) | Subject::CompleteResource(_) => {
                None
            }
        }
    }

    /// What is declared of the arguments of what is called.
    pub(super) fn declared(&self, call: &Call<'_>) -> Declared<'_> {
        match call.subject {
            Subject::Tool(name) => {
                let tool = self
                    .connectors
                    .get(call.server)
                    .and_then(|connector| connector.tools.get(name));
                Declared::Tool(tool.map(|tool| &*tool.input_schema))
            }
            Subject::Resource(_) | Subject::Prompt(_) | Subject::CompletePrompt(_) | Subject::CompleteResource(_) => {
                Declared::Prompt
            }
        }
    }

    /// Rules that may deny it; those that are about other arguments for certain are left out.
    pub(super) fn denying<'a>(&'a self, call: &Call<'a>) -> impl Iterator<Item = &'a Rule> {
        let (subject, arguments, declared) = (call.subject, call.arguments, self.declared(call));
        let (kind, name) = subject.into_named();
        let rules = self
            .connectors
            .get(call.server)
            .map(|connector| connector.deny.of(kind));
        let (whole, some, address) = match subject {
            Subject::Tool(_) | Subject::Prompt(_) => (None, rules, None),
            Subject::CompletePrompt(_) => (rules, None, None),
            Subject::Resource(address) | Subject::CompleteResource(address) => (None, None, Some(address)),
        };
        let whole = whole.into_iter().flat_map(move |rules| rules.naming(name));
        let some = some
            .into_iter()
            .flat_map(move |rules| rules.naming_with(name, arguments, declared));
        let connector = self.connectors.get(call.server);
        let spelled = address.zip(connector).into_iter();
        whole
            .chain(some)
            .chain(spelled.flat_map(|(address, connector)| connector.denying_resource(address)))
    }

    /// Rules that allow something of this name.
    pub(super) fn allowing<'a>(&'a self, call: &Call<'a>) -> impl Iterator<Item = Allowing<'a>> {
        let subject = call.subject;
        let connector = self.connectors.get(call.server);
        let of_tool = connector.and_then(move |connector| match subject {
            Subject::Tool(name) => connector.tools.get(name),
            Subject::Resource(_) | Subject::Prompt(_) | Subject::CompletePrompt(_) | Subject::CompleteResource(_) => {
                None
            }
        });
        let named = connector.into_iter().flat_map(move |connector| {
            let (kind, name) = subject.into_named();
            let rules = connector.allow.of(kind).naming(name);
            rules.map(|rule| Allowing {
                rule,
                sleep: match rule.is_for(connector.launch) {
                    true => Sleep::Awake,
                    false => Sleep::OtherLaunch,
                },
            })
        });
        of_tool
            .into_iter()
            .flat_map(|tool| &tool.allow)
            .map(|(rule, sleep)| Allowing { rule, sleep: *sleep })
            .chain(named)
    }

    /// Every tool that may be called at present, with the rules about it.
    pub(super) fn callable(&self) -> impl Iterator<Item = Callable<'_>> {
        let ready = self
            .connectors
            .iter()
            .filter(|(_, connector)| connector.standing.refusal().is_none());
        ready.flat_map(|(server, connector)| {
            let tools = connector
                .tools
                .iter()
                .filter(|(_, tool)| tool.standing.refusal().is_none());
            tools.map(move |(name, tool)| Callable {
                server,
                name,
                connector,
                tool,
            })
        })
    }
}

/// A tool that may be called if somebody allows it.
pub(super) struct Callable<'a> {
    pub(super) server: &'a ConnectorId,
    pub(super) name: &'a ToolName,
    connector: &'a Prepared,
    tool: &'a Tool,
}

impl<'a> Callable<'a> {
    pub(super) fn denying(&self) -> impl Iterator<Item = &'a Rule> {
        self.connector.deny.of(Kind::Tools).naming(self.name.as_str())
    }

    /// Those that were made for what there is now.
    pub(super) fn allowing(&self) -> impl Iterator<Item = &'a Rule> {
        let awake = self.tool.allow.iter().filter(|(_, sleep)| *sleep == Sleep::Awake);
        awake.map(|(rule, _)| rule.as_ref())
    }
}

impl Prepared {
    fn new(standing: ConnectorStanding, launch: Option<LaunchIdentity>, tools: Vec<ToolFacts>) -> Self {
        let tool = |facts: ToolFacts| {
            let tool = Tool {
                standing: facts.standing,
                input_schema: facts.input_schema,
                allow: Vec::new(),
            };
            (facts.name, tool)
        };
        Self {
            standing,
            launch,
            tools: tools.into_iter().map(tool).collect(),
            deny: PerKind::default(),
            deny_resources: Vec::new(),
            allow: PerKind::default(),
        }
    }

    fn denying_resource(&self, address: &str) -> impl Iterator<Item = &Rule> {
        // Most connectors have none, and their addresses are read by nobody here.
        let readings = (!self.deny_resources.is_empty()).then(|| Readings::of(address));
        let rules = readings.into_iter().flat_map(|readings| {
            self.deny_resources
                .iter()
                .filter(move |(patterns, _)| patterns.iter().any(|pattern| pattern.may_mean(&readings)))
        });
        rules.map(|(_, rule)| rule.as_ref())
    }

    fn add(&mut self, rule: Arc<Rule>) {
        match (rule.effect, rule.kind) {
            (Effect::Deny, Kind::Resources) => {
                let patterns = rule.patterns.iter().map(|pattern| Denied::of(pattern)).collect();
                self.deny_resources.push((patterns, rule));
            }
            (Effect::Deny, kind @ (Kind::Tools | Kind::Prompts)) => self.deny.of_mut(kind).add(&rule),
            (Effect::Allow, kind @ (Kind::Resources | Kind::Prompts)) => self.allow.of_mut(kind).add(&rule),
            (Effect::Allow, Kind::Tools) => {
                for bound in &rule.bound {
                    if let Some(tool) = self.tools.get_mut(&bound.tool) {
                        let sleep = if !rule.is_for(self.launch) {
                            Sleep::OtherLaunch
                        } else if tool.standing.fingerprint() != Some(bound.fingerprint) {
                            Sleep::OtherTool
                        } else {
                            Sleep::Awake
                        };
                        tool.allow.push((Arc::clone(&rule), sleep));
                    }
                }
            }
        }
    }
}

impl ConnectorStanding {
    pub fn refusal(self) -> Option<Refusal> {
        match self {
            Self::Ready => None,
            Self::NeedsReview => Some(Refusal::ConnectorNeedsReview),
            Self::TrustUnknown => Some(Refusal::KeychainUnavailable),
            Self::Disabled => Some(Refusal::ConnectorDisabled),
            Self::Paused => Some(Refusal::ConnectorPaused),
            Self::Invalid => Some(Refusal::Unavailable),
        }
    }
}

impl ToolStanding {
    /// The approved one, of a tool that may be called.
    pub fn fingerprint(self) -> Option<Fingerprint> {
        match self {
            Self::Approved(fingerprint) | Self::Wording(fingerprint) => Some(fingerprint),
            Self::Pending | Self::Held | Self::Changed | Self::Missing | Self::Disabled => None,
        }
    }

    pub fn refusal(self) -> Option<Refusal> {
        match self {
            Self::Approved(_) | Self::Wording(_) => None,
            Self::Pending => Some(Refusal::ToolPending),
            Self::Held => Some(Refusal::ToolHeld),
            Self::Changed => Some(Refusal::ToolChanged),
            Self::Missing => Some(Refusal::UnknownTool),
            Self::Disabled => Some(Refusal::ToolDisabled),
        }
    }
}
