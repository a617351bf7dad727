//! One look at what one connector lists: how it stands, and the rows by which what is clean joins by itself.

use std::{cell::LazyCell, sync::Arc};

use serde_json::Value;

use super::{super::publish::Row, Looked};
use crate::{
    builtin,
    clock::unix_ms,
    connector::KnownTools,
    ids::ConnectorId,
    ledger::{Change, Ledger, LedgerFault},
    snapshot::FindingView,
    tools::{Arguments, parse_tools},
    trust::{
        LaunchIdentity,
        pins::{self, Adoption, Approving, FlaggedPrompt, Listed, Look, Pins, Standings},
        scan::{self, OtherTools},
    },
};

/// What is known of the rows, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Nothing: they cannot be read at present.
    Unknown,
    Known,
    /// There were some, and they do not count.
    Lost,
}

/// What a look was at. The parts are never changed, so that the same ones are the same look.
#[derive(Debug, Clone)]
pub(super) struct Key {
    /// What its connector may run or contact: a list of anything else is none of its.
    pub launch: Option<LaunchIdentity>,
    pub list: Arc<KnownTools>,
    pub prompts: Arc<Vec<Arc<FlaggedPrompt>>>,
    pub instructions: Option<Arc<str>>,
    pub pins: Arc<Pins>,
    pub trust: Trust,
    /// Its connector waits itself: what is known of its list is no list of anything that was approved.
    pub is_withheld: bool,
}

impl Key {
    pub fn is(&self, other: &Self) -> bool {
        self.launch == other.launch
            && Arc::ptr_eq(&self.list, &other.list)
            && Arc::ptr_eq(&self.prompts, &other.prompts)
            && Arc::ptr_eq(&self.pins, &other.pins)
            && self.instructions == other.instructions
            && self.trust == other.trust
            && self.is_withheld == other.is_withheld
    }
}

/// What a list is held against.
#[derive(Debug, Clone, Copy)]
pub(super) enum Against {
    /// The rows, which nobody can read at present.
    Unreadable,
    Rows(Adoption),
    /// The list that is part of this program.
    OurOwn,
}

/// What every connector lists.
pub(super) struct Names(Vec<(ConnectorId, Arc<KnownTools>)>);

impl Names {
    pub fn new(rows: &[Row]) -> Self {
        let live = rows.iter().filter_map(|row| row.live.as_ref());
        Self(
            live.map(|live| (live.entry.id.clone(), live.view.tools.clone()))
                .collect(),
        )
    }

    fn others(&self) -> OtherTools {
        let lists = self.0.iter();
        OtherTools::new(lists.flat_map(|(id, list)| list.tools.iter().map(move |tool| (id, tool.name.as_str()))))
    }
}

/// Tools of one connector that are remembered: twice what it may list.
const MOST_PINS: usize = 10_000;

/// New tools that the log names at once.
const MOST_NAMED: usize = 20;

/// One look.
pub(super) struct Looking {
    pub id: ConnectorId,
    /// Of the connector, as often as its name was given anew.
    pub life: u64,
    pub key: Key,
    pub against: Against,
    pub names: Arc<Names>,
    /// What the server calls itself.
    pub server: Option<String>,
    pub ledger: Arc<Ledger>,
}

/// What a look came to.
pub(super) struct Seen {
    pub id: ConnectorId,
    pub life: u64,
    pub looked: Looked,
    /// The rows that say what joined by itself.
    pub joined: Vec<Change>,
    /// Why it did not.
    pub fault: Option<LedgerFault>,
}

impl Looking {
    /// Looks off the async threads, and once more where something joined.
    pub async fn run(mut self) -> Seen {
        let (pins, adoption) = match self.against {
            Against::Unreadable => return self.seen(None, Vec::new(), None),
            Against::OurOwn => (our_own(&self.id, self.key.instructions.clone()), Adoption::Nothing),
            Against::Rows(adoption) => (self.key.pins.clone(), adoption),
        };
        let standings = self.standings(pins, adoption).await;
        let joined = standings
            .as_ref()
            .map_or_else(Vec::new, |standings| self.joined(standings));
        if joined.is_empty() {
            return self.seen(standings, joined, None);
        }
        match self.ledger.write(joined.clone()).await {
            Ok(()) => {
                self.key.pins = Arc::new(self.key.pins.after(&self.id, &joined));
                let standings = self.standings(self.key.pins.clone(), adoption).await;
                self.seen(standings, joined, None)
            }
            Err(fault) => self.seen(standings, Vec::new(), Some(fault)),
        }
    }

    fn seen(self, standings: Option<Standings>, joined: Vec<Change>, fault: Option<LedgerFault>) -> Seen {
        Seen {
            looked: Looked::new(self.key, standings),
            id: self.id,
            life: self.life,
            joined,
            fault,
        }
    }

    /// `None` should a look end abnormally: nothing is offered then.
    async fn standings(&self, pins: Arc<Pins>, adoption: Adoption) -> Option<Standings> {
        let (id, key, names) = (self.id.clone(), self.key.clone(), self.names.clone());
        let looking = tokio::task::spawn_blocking(move || {
            let listed = Listed {
                tools: &key.list.tools,
                prompts: &key.prompts,
                instructions: key.instructions.as_deref(),
            };
            // Made only where there is something to look at.
            let others = LazyCell::new(|| names.others());
            let look = Look {
                adoption,
                tool: &|tool| {
                    let references = scan::references(&tool.raw, &id, &others);
                    tool.findings.iter().chain(&references).map(FindingView::from).collect()
                },
                text: &|text| scan::text(text, "instructions").iter().map(FindingView::from).collect(),
            };
            pins::standings(&listed, &pins, &look)
        });
        match looking.await {
            Ok(standings) => Some(standings),
            Err(error) => {
                tracing::error!(connector = %self.id, %error, "looking at a tool list ended abnormally");
                None
            }
        }
    }

    fn joined(&self, standings: &Standings) -> Vec<Change> {
        let new: Vec<&str> = standings.new_without_asking().map(|tool| tool.name.as_str()).collect();
        if !new.is_empty() {
            let named = new[..new.len().min(MOST_NAMED)].join(", ");
            tracing::info!(connector = %self.id, count = new.len(), %named, "new tools are offered: nothing about them stands out");
        }
        let approving = Approving {
            server: &self.id,
            now: unix_ms(),
            server_name: self.server.as_deref(),
        };
        let mut joined = approving.adopted(standings);
        let outgrown = approving.outgrown(standings, &self.key.pins, joined.len(), MOST_PINS);
        joined.extend(outgrown);
        joined
    }
}

/// What our own files server lists is part of this program, and so is what it says about itself.
fn our_own(id: &ConnectorId, instructions: Option<Arc<str>>) -> Arc<Pins> {
    // A test reads it.
    let items: Vec<Value> = serde_json::from_str(builtin::files_tools()).unwrap_or_default();
    let tools = parse_tools(items, Arguments::InBody).tools;
    let tools: Vec<_> = tools.into_iter().map(Arc::new).collect();
    Arc::new(Pins::of_our_own(id, &tools, instructions))
}
