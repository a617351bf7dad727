//! What calls are decided on: made of the file, of how connectors and tools stand and of the person's decisions, and
//! published together with the tools as one value. Made anew only when something of that changed. Decides nothing itself.

use std::sync::Arc;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{
    Shell,
    owner::Owner,
    publish::{ListKey, Row, RowLive},
};
use crate::{
    caller::ProgramKey,
    connector::Cause,
    ids::{ConnectorId, ToolName},
    ledger::{Ledger, RowKind, Standing as LedgerStanding},
    snapshot::WalkInPolicy,
    tools::pattern,
    trust::{
        decision::{Askers, ConnectorFacts, ConnectorStanding, ToolStanding, View, ViewParts},
        pins::{Stand, Standing},
        rules::{self, ClientId, Declined, ProgramId, Rule, RuleId},
    },
};

/// The key of the [`RowKind::Setting`] that holds the walk-ins' policy.
pub(super) const WALK_IN: &str = "walk_in";
/// Rules of this run; the oldest goes.
const MOST_RUN_RULES: usize = 1000;

/// The rules that there are.
#[derive(Debug, Default, Clone)]
pub(crate) struct Rules {
    pub all: Vec<Arc<Rule>>,
    /// Wishes of the file that the person declined.
    pub declined: Vec<Declined>,
}

impl Rules {
    pub fn find(&self, id: RuleId) -> Option<&Arc<Rule>> {
        self.all.iter().find(|rule| rule.id == id)
    }
}

/// What a view was made of, as far as a change of it shows.
#[derive(Debug, PartialEq)]
struct Key {
    list: ListKey,
    standings: Vec<(ConnectorId, ConnectorStanding)>,
    ledger: (LedgerStanding, u64),
    run: u64,
}

/// Makes the view.
pub(super) struct ViewDesk {
    /// The walk-ins' policy where the person said none.
    default: WalkInPolicy,
    key: Option<Key>,
    run: Vec<Arc<Rule>>,
    /// Grows with every change of `run`.
    runs: u64,
    rules: Arc<Rules>,
    view: Arc<View>,
}

impl ViewDesk {
    pub fn new() -> Self {
        Self {
            default: WalkInPolicy::Ask,
            key: None,
            run: Vec::new(),
            runs: 0,
            rules: Arc::default(),
            view: Arc::new(empty_view()),
        }
    }

    /// What holds for walk-ins where the person said nothing.
    pub fn by_default(&mut self, policy: WalkInPolicy) {
        self.default = policy;
    }

    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// Holds until the bridge ends.
    pub fn allow_for_run(&mut self, rule: Rule) {
        if self.run.len() == MOST_RUN_RULES {
            self.run.remove(0);
        }
        self.run.push(Arc::new(rule));
        self.runs += 1;
    }

    /// Takes rules of this run away.
    pub fn drop_for_run(&mut self, gone: impl Fn(&Rule) -> bool) {
        self.run.retain(|rule| !gone(rule));
        self.runs += 1;
    }

    /// Whether anything was decided about this connector, or declined.
    pub fn has_rules_of(&self, server: &ConnectorId) -> bool {
        self.rules.all.iter().any(|rule| rule.server == *server)
            || self.rules.declined.iter().any(|declined| declined.server == *server)
    }

    /// Makes the view anew where something that it depends on is another; whether it was.
    pub fn look(&mut self, ledger: &Ledger, rows: &[Row], list: &ListKey) -> bool {
        let live = || rows.iter().filter_map(|row| row.live.as_ref());
        let standing = *ledger.standing().borrow();
        let key = Key {
            list: list.clone(),
            standings: live().map(|live| (live.entry.id.clone(), standing_of(live))).collect(),
            ledger: (standing, ledger.writes()),
            run: self.runs,
        };
        let before = self.key.replace(key);
        let (Some(before), Some(key)) = (&before, &self.key) else {
            self.read(ledger, standing, rows);
            return true;
        };
        if before == key {
            return false;
        }
        self.read(ledger, standing, rows);
        true
    }

    fn read(&mut self, ledger: &Ledger, standing: LedgerStanding, rows: &[Row]) {
        let kept = rules::read(&ledger.rows(RowKind::Rule)).into_iter().map(Arc::new);
        let all: Vec<Arc<Rule>> = kept.chain(self.run.iter().cloned()).collect();
        self.rules = Arc::new(Rules {
            all: all.clone(),
            declined: rules::read_declined(&ledger.rows(RowKind::Declined)),
        });
        let live = rows.iter().filter_map(|row| row.live.as_ref());
        self.view = Arc::new(View::new(ViewParts {
            connectors: live.map(facts).collect(),
            rules: all,
            walk_in: self.walk_in(ledger, standing),
            askers: askers(ledger),
        }));
    }

    /// Rows that cannot be relied on may have said that walk-ins are asked about.
    fn walk_in(&self, ledger: &Ledger, standing: LedgerStanding) -> WalkInPolicy {
        match standing {
            LedgerStanding::Broken(_) | LedgerStanding::Unknown(_) => return WalkInPolicy::Ask,
            LedgerStanding::Fresh | LedgerStanding::Verified | LedgerStanding::ForThisRun => {}
        }
        match ledger.row(RowKind::Setting, WALK_IN) {
            Some(row) => serde_json::from_str(&row.body).unwrap_or(WalkInPolicy::Ask),
            None => self.default,
        }
    }
}

/// Nothing is known, and nothing allowed.
pub(super) fn empty_view() -> View {
    View::new(ViewParts {
        connectors: Vec::new(),
        rules: Vec::new(),
        walk_in: WalkInPolicy::Ask,
        askers: Askers::default(),
    })
}

/// The id that rules know a paired client by.
pub(super) fn client_id(id: &str) -> ClientId {
    id.parse().unwrap_or_else(|_| {
        let mut bits = [0; 16];
        bits.copy_from_slice(&Sha256::digest(id.as_bytes())[..16]);
        ClientId::from_bytes(bits)
    })
}

fn askers(ledger: &Ledger) -> Askers {
    #[derive(Deserialize)]
    struct Client {
        #[serde(default)]
        asks_itself: bool,
    }
    let programs = ledger.rows(RowKind::Asker).into_iter();
    let programs = programs.filter_map(|row| ProgramId::of(&serde_json::from_str::<ProgramKey>(&row.body).ok()?));
    let clients = ledger.rows(RowKind::Client).into_iter();
    let clients = clients.filter_map(|row| {
        let client: Client = serde_json::from_str(&row.body).ok()?;
        client.asks_itself.then(|| client_id(&row.key))
    });
    Askers {
        clients: clients.collect(),
        programs: programs.collect(),
    }
}

fn facts(live: &RowLive) -> ConnectorFacts {
    let known = live.looked.iter().flat_map(|looked| looked.standings());
    let tools = known.map(|standing| {
        let name: &ToolName = &standing.now.name;
        let hidden = pattern::any_matches(&live.hidden.patterns, name.as_str());
        let standing = match hidden {
            true => ToolStanding::Disabled,
            false => tool_standing(standing),
        };
        (name.clone(), standing)
    });
    ConnectorFacts {
        id: live.entry.id.clone(),
        standing: standing_of(live),
        tools: tools.collect(),
    }
}

fn tool_standing(standing: &Standing) -> ToolStanding {
    match &standing.stand {
        Stand::Approved(served) => ToolStanding::Approved(served.fingerprint),
        Stand::Reworded(served, _) => ToolStanding::Wording(served.fingerprint),
        Stand::Pending(_) => ToolStanding::Pending,
        Stand::Held(_) => ToolStanding::Held,
        Stand::Changed(_) => ToolStanding::Changed,
    }
}

fn standing_of(live: &RowLive) -> ConnectorStanding {
    if !live.entry.enabled {
        return ConnectorStanding::Disabled;
    }
    match live.view.machine.withheld() {
        Some(Cause::NeedsReview { .. }) => ConnectorStanding::NeedsReview,
        Some(Cause::TrustUnknown(_)) => ConnectorStanding::TrustUnknown,
        // Whatever else withholds tools withholds calls.
        Some(_) => ConnectorStanding::Paused,
        None if live.looked.as_ref().is_some_and(|looked| looked.is_unknown()) => ConnectorStanding::TrustUnknown,
        None => ConnectorStanding::Ready,
    }
}

impl Owner {
    /// Where there is no window, walk-ins' calls go on unless the person says otherwise: there is nobody to ask. A home that
    /// a tray app uses stays as it is there.
    pub(super) async fn begin_asking(&mut self, shell: Shell) {
        let policy = match shell {
            Shell::Tray => WalkInPolicy::Ask,
            Shell::Headless(_) if self.world.ledger.was_tray_home().await => WalkInPolicy::Ask,
            Shell::Headless(_) => WalkInPolicy::Allow,
        };
        self.views.by_default(policy);
    }
}
