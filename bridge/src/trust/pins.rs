//! Pins: what was approved of each connector's tools, of its prompts about which something stands out, and of what its
//! server says about itself, and how what is listed now stands to that (DESIGN §7.3). Pure: it decides and says which rows would say so; it reads and writes none.

mod approving;
mod prompts;
mod row;

#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::approving::{Approving, Stale};
use self::prompts::PromptPins;
pub use self::prompts::{FlaggedPrompt, PromptStand, PromptStanding};
use self::row::put_marker;
pub use self::row::{Marker, drop_all, key_prefix, read};
use super::{
    fingerprint::{self, Difference, Fingerprint, HintsPrint, Unprintable, loosened, print_of_text},
    rows::Change,
};
use crate::{
    ids::{ConnectorId, ToolName},
    snapshot::{FindingView, TextReview, ToolReview, ToolState, ToolText},
    tools::{Arguments, Tool, parse_tools, said_besides},
};

/// Hints whose loosening counts.
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// What the scan calls a tool that has no print.
const UNPRINTABLE: &str = "unprintable";

/// One approved tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Pin {
    pub fingerprint: Fingerprint,
    pub hints: HintsPrint,
    /// The tool as it was received when it was approved, as JSON text.
    pub raw: Box<str>,
    /// Unix milliseconds.
    pub approved_at: u64,
    pub by: ApprovedBy,
    /// What its server called itself then, version included.
    pub server: Option<String>,
}

/// Who approved a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovedBy {
    /// It was clean and in the first list of a connector that was approved.
    Baseline,
    Person,
    /// It was clean and new where nobody is there to ask.
    Headless,
}

/// What was approved of one connector.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pins {
    tools: HashMap<ToolName, Pin>,
    /// Absent until its first list was looked at.
    marker: Option<Marker>,
    /// What its server may tell assistants.
    instructions: Option<Arc<str>>,
    /// The version of that which the person looked at and keeps withheld.
    kept_instructions: Option<String>,
    /// Versions that the person looked at and keeps as they are, by tool.
    kept: HashMap<ToolName, String>,
    prompts: PromptPins,
}

impl Pins {
    /// Whether nothing was ever decided about this connector.
    pub fn is_untouched(&self) -> bool {
        self.marker.is_none()
    }

    /// What these rows make of it. Rows of other connectors change nothing.
    #[must_use]
    pub fn after(&self, server: &ConnectorId, changes: &[Change]) -> Self {
        let mut pins = self.clone();
        for change in changes {
            row::apply(&mut pins, server, change);
        }
        pins
    }

    /// Of a list, and of words about it, that are part of this program.
    pub fn of_our_own(server: &ConnectorId, tools: &[Arc<Tool>], instructions: Option<Arc<str>>) -> Self {
        let approving = Approving {
            server,
            now: 0,
            server_name: None,
        };
        let puts = tools
            .iter()
            .filter_map(|tool| approving.put(tool, ApprovedBy::Baseline));
        let tools = Self::default().after(server, &puts.collect::<Vec<_>>());
        Self { instructions, ..tools }
    }
}

/// What joins without a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// Nothing: what was decided earlier is lost, so that everything is asked.
    Nothing,
    /// Clean tools of a first list.
    FirstList,
    /// Clean tools of every list: nobody is there to ask.
    Clean,
}

/// What a connector lists.
pub struct Listed<'a> {
    pub tools: &'a [Arc<Tool>],
    /// Those about which something stands out.
    pub prompts: &'a [Arc<FlaggedPrompt>],
    pub instructions: Option<&'a str>,
}

/// How it is looked at.
pub struct Look<'a> {
    pub adoption: Adoption,
    /// What stands out in a tool.
    pub tool: &'a dyn Fn(&Tool) -> Vec<FindingView>,
    /// What stands out in a text.
    pub text: &'a dyn Fn(&str) -> Vec<FindingView>,
}

/// How one listed tool stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// As listed now.
    pub now: Arc<Tool>,
    pub stand: Stand,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Stand {
    Approved(Served),
    /// Only its words are others, and clean: the approved ones are served.
    Reworded(Served, Waiting),
    /// New.
    Pending(Waiting),
    /// New, and something stands out.
    Held(Waiting),
    /// Not what was approved.
    Changed(Waiting),
}

/// What callers see of a tool that they may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    pub fingerprint: Fingerprint,
    pub tool: Arc<Tool>,
}

/// What the person would look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// Names exactly what is listed now.
    pub version: String,
    pub before: Option<Arc<Tool>>,
    pub approved_at: Option<u64>,
    pub findings: Vec<FindingView>,
    /// No yes can be bound to it: a change could pass unseen.
    pub is_unprintable: bool,
    /// The person looked at this version and leaves it.
    pub is_kept: bool,
}

/// How everything that a connector lists stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standings {
    /// In the order of the list.
    pub tools: Vec<Standing>,
    /// Those about which something stands out, in the order of the list. None joins by itself.
    pub prompts: Vec<PromptStanding>,
    pub instructions: Text,
    /// What joins by itself, once a row says so; in `tools` it still waits.
    pub adopted: Adopted,
}

/// How what a server says about itself stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Text {
    /// It says nothing.
    #[default]
    None,
    Approved(Arc<str>),
    /// It is withheld.
    Waits {
        version: String,
        before: Option<Arc<str>>,
        now: Arc<str>,
        findings: Vec<FindingView>,
        /// The person looked at this version and keeps it withheld.
        is_kept: bool,
    },
}

/// What joins by itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adopted {
    /// Places in the list.
    pub tools: Vec<usize>,
    pub by: Option<ApprovedBy>,
    pub instructions: bool,
    /// This was its first list.
    pub begins: bool,
}

impl Adopted {
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && !self.instructions && !self.begins
    }
}

impl Standings {
    /// What joins an earlier list because nobody is there to ask.
    pub fn new_without_asking(&self) -> impl Iterator<Item = &Tool> {
        let places = match self.adopted.by {
            Some(ApprovedBy::Headless) => &self.adopted.tools[..],
            Some(ApprovedBy::Baseline | ApprovedBy::Person) | None => &[],
        };
        let tools = places.iter().filter_map(|place| self.tools.get(*place));
        tools.map(|tool| &*tool.now)
    }
}

/// The row that says: what was approved of this connector is lost, so that its next list is no baseline.
pub fn asks(server: &ConnectorId) -> Change {
    put_marker(server, Marker { asks: true })
}

/// How everything stands.
pub fn standings(listed: &Listed<'_>, pins: &Pins, look: &Look<'_>) -> Standings {
    let joins = joining(pins, look.adoption);
    let mut adopted = Adopted {
        // An empty list says nothing of what comes.
        begins: pins.marker.is_none() && joins.is_some() && !listed.tools.is_empty(),
        by: joins,
        ..Adopted::default()
    };
    let tools: Vec<Standing> = listed.tools.iter().map(|tool| standing(tool, pins, look)).collect();
    if joins.is_some() {
        let clean = tools.iter().enumerate();
        let clean = clean.filter(|(_, tool)| matches!(&tool.stand, Stand::Pending(_)));
        adopted.tools = clean.map(|(place, _)| place).collect();
    }
    let instructions = text(listed.instructions, pins, look);
    adopted.instructions = joins.is_some()
        && matches!(&instructions, Text::Waits { before: None, findings, .. } if findings.is_empty())
        && (adopted.begins || pins.marker.is_some());
    Standings {
        tools,
        prompts: listed.prompts.iter().map(|prompt| pins.standing_of(prompt)).collect(),
        instructions,
        adopted,
    }
}

/// As whose approval clean new tools join by themselves, if they do.
fn joining(pins: &Pins, adoption: Adoption) -> Option<ApprovedBy> {
    match (adoption, pins.marker) {
        (Adoption::Nothing, _) | (Adoption::FirstList, Some(_)) | (Adoption::Clean, Some(Marker { asks: true })) => {
            None
        }
        (Adoption::FirstList | Adoption::Clean, None) => Some(ApprovedBy::Baseline),
        (Adoption::Clean, Some(Marker { asks: false })) => Some(ApprovedBy::Headless),
    }
}

fn standing(now: &Arc<Tool>, pins: &Pins, look: &Look<'_>) -> Standing {
    let stand = match (pins.tools.get(&now.name), Prints::of(now)) {
        (None, Err(why)) => Stand::Held(pins.waiting(now, None, look, Some(&why))),
        (None, Ok(_)) => {
            let waiting = pins.waiting(now, None, look, None);
            match waiting.findings.is_empty() {
                true => Stand::Pending(waiting),
                false => Stand::Held(waiting),
            }
        }
        (Some(pin), Err(why)) => Stand::Changed(pins.waiting(now, Some(pin), look, Some(&why))),
        (Some(pin), Ok(prints)) if pin.fits(&prints) => Stand::Approved(Served {
            fingerprint: pin.fingerprint,
            tool: now.clone(),
        }),
        (Some(pin), Ok(prints)) => compared(now, &prints, pin, pins, look),
    };
    Standing {
        now: now.clone(),
        stand,
    }
}

/// One that is not exactly what was approved.
fn compared(now: &Arc<Tool>, prints: &Prints, pin: &Pin, pins: &Pins, look: &Look<'_>) -> Stand {
    let changed = || Stand::Changed(pins.waiting(now, Some(pin), look, None));
    let Some(approved) = pin.tool() else { return changed() };
    if loosened(&approved.hints, &now.hints) {
        return changed();
    }
    let served = |tool: Tool| Served {
        fingerprint: pin.fingerprint,
        tool: Arc::new(tool),
    };
    match fingerprint::difference(&approved.raw, &now.raw) {
        // Hints of more danger are passed on; whatever else is new beside them is not.
        Difference::Nothing if prints.fingerprint == pin.fingerprint => {
            Stand::Approved(served(with_hints_of(approved, now)))
        }
        Difference::Nothing | Difference::Structure => changed(),
        Difference::Wording => {
            let waiting = pins.waiting(now, Some(pin), look, None);
            match waiting.findings.is_empty() {
                true => Stand::Reworded(served(with_hints_of(approved, now)), waiting),
                false => Stand::Changed(waiting),
            }
        }
    }
}

fn text(now: Option<&str>, pins: &Pins, look: &Look<'_>) -> Text {
    match (now, &pins.instructions) {
        (None | Some(""), _) => Text::None,
        (Some(now), Some(approved)) if **approved == *now => Text::Approved(approved.clone()),
        (Some(now), before) => {
            let version = print_of_text(now).to_string();
            Text::Waits {
                is_kept: pins.kept_instructions.as_ref() == Some(&version),
                version,
                before: before.clone(),
                now: now.into(),
                findings: (look.text)(now),
            }
        }
    }
}

/// The two prints of a tool.
struct Prints {
    fingerprint: Fingerprint,
    hints: HintsPrint,
}

impl Prints {
    fn of(tool: &Tool) -> Result<Self, Unprintable> {
        Ok(Self {
            fingerprint: tool.print.clone()?,
            hints: HintsPrint::of(&tool.raw)?,
        })
    }
}

/// What names exactly this version of a tool.
fn version(tool: &Tool) -> String {
    match Prints::of(tool) {
        Ok(Prints { fingerprint, hints }) => print_of_text(&format!("{fingerprint} {hints}")).to_string(),
        Err(_) => print_of_text(&tool.raw.to_string()).to_string(),
    }
}

impl Pin {
    fn fits(&self, prints: &Prints) -> bool {
        self.fingerprint == prints.fingerprint && self.hints == prints.hints
    }

    /// The tool as it was approved.
    fn tool(&self) -> Option<Tool> {
        let raw: Value = serde_json::from_str(&self.raw).ok()?;
        parse_tools(vec![raw], Arguments::InBody).tools.pop()
    }
}

impl Pins {
    fn waiting(&self, now: &Tool, pin: Option<&Pin>, look: &Look<'_>, why: Option<&Unprintable>) -> Waiting {
        let version = version(now);
        let mut findings: Vec<_> = why.into_iter().map(unprintable).collect();
        let others = (look.tool)(now).into_iter();
        findings.extend(others.filter(|finding| why.is_none() || finding.kind != UNPRINTABLE));
        Waiting {
            before: pin.and_then(Pin::tool).map(Arc::new),
            approved_at: pin.map(|pin| pin.approved_at),
            findings,
            is_unprintable: why.is_some(),
            is_kept: self.kept.get(&now.name) == Some(&version),
            version,
        }
    }
}

fn unprintable(why: &Unprintable) -> FindingView {
    let (place, excerpt) = match why {
        Unprintable::Number { number, place } => (place.clone(), number.clone()),
        Unprintable::RepeatedName | Unprintable::Formula(_) => (String::new(), String::new()),
    };
    FindingView {
        kind: UNPRINTABLE.to_owned(),
        sentence: why.sentence(),
        place,
        excerpt,
    }
}

/// The approved tool with the hints that its server gives now.
fn with_hints_of(mut approved: Tool, now: &Tool) -> Tool {
    if approved.hints == now.hints {
        return approved;
    }
    let given = now.raw.get("annotations").and_then(Value::as_object);
    if let Value::Object(members) = &mut approved.raw {
        let hints = members
            .entry("annotations")
            .or_insert_with(|| Value::Object(Map::new()));
        if !hints.is_object() {
            *hints = Value::Object(Map::new());
        }
        for name in HINTS {
            match (hints.as_object_mut(), given.and_then(|given| given.get(name))) {
                (Some(hints), Some(hint)) => drop(hints.insert(name.to_owned(), hint.clone())),
                (Some(hints), None) => drop(hints.remove(name)),
                (None, _) => {}
            }
        }
    }
    approved.hints = now.hints;
    approved
}

impl Standing {
    pub fn state(&self) -> ToolState {
        match &self.stand {
            Stand::Approved(_) => ToolState::Approved,
            Stand::Reworded(..) => ToolState::Reworded,
            Stand::Pending(_) => ToolState::Pending,
            Stand::Held(_) => ToolState::Held,
            Stand::Changed(_) => ToolState::Changed,
        }
    }

    /// What callers see, where they may call it.
    pub fn served(&self) -> Option<&Served> {
        match &self.stand {
            Stand::Approved(served) | Stand::Reworded(served, _) => Some(served),
            Stand::Pending(_) | Stand::Held(_) | Stand::Changed(_) => None,
        }
    }

    pub fn waiting(&self) -> Option<&Waiting> {
        match &self.stand {
            Stand::Approved(_) => None,
            Stand::Reworded(_, waiting) | Stand::Pending(waiting) | Stand::Held(waiting) | Stand::Changed(waiting) => {
                Some(waiting)
            }
        }
    }

    /// What the person is shown, where that waits for a look.
    pub fn review(&self) -> Option<ToolReview> {
        self.waiting()
            .filter(|waiting| !waiting.is_kept)
            .map(|waiting| self.shown(waiting))
    }

    /// What the person was shown, where they left it as it is.
    pub fn left(&self) -> Option<ToolReview> {
        self.waiting()
            .filter(|waiting| waiting.is_kept)
            .map(|waiting| self.shown(waiting))
    }

    fn shown(&self, waiting: &Waiting) -> ToolReview {
        ToolReview {
            tool: self.now.name.clone(),
            state: self.state(),
            version: waiting.version.clone(),
            before: waiting.before.as_deref().map(shown),
            now: shown(&self.now),
            findings: waiting.findings.clone(),
            approved_at: waiting.approved_at,
        }
    }
}

impl Text {
    /// What the person is shown, where it waits.
    pub fn review(&self) -> Option<TextReview> {
        self.shown(false)
    }

    /// What the person was shown, where they left it withheld.
    pub fn left(&self) -> Option<TextReview> {
        self.shown(true)
    }

    fn shown(&self, if_kept: bool) -> Option<TextReview> {
        match self {
            Self::None | Self::Approved(_) => None,
            Self::Waits {
                version,
                before,
                now,
                findings,
                is_kept,
            } => (*is_kept == if_kept).then(|| TextReview {
                version: version.clone(),
                before: before.as_deref().map(str::to_owned),
                now: now.to_string(),
                findings: findings.clone(),
            }),
        }
    }
}

fn shown(tool: &Tool) -> ToolText {
    let schema = |schema: &Value| serde_json::to_string_pretty(schema).unwrap_or_default();
    let input = tool.raw.get("inputSchema");
    let also = said_besides(tool);
    ToolText {
        title: tool.title.clone(),
        description: tool.description.clone(),
        input_schema: input.map(schema).unwrap_or_default(),
        output_schema: tool.raw.get("outputSchema").map(schema),
        hints: tool.hints,
        also: (!also.is_empty()).then(|| schema(&Value::Object(also))),
    }
}
