//! What calls are decided on: made of the file, of how connectors and tools stand and of the person's decisions, and
//! published together with the tools as one value. Made anew only when something of that changed. Decides nothing itself.

use std::sync::Arc;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{
    Shell,
    asleep::{Asleep, asleep},
    owner::Owner,
    publish::{ListKey, Row, RowLive},
    rules::{candidates, draw_id},
};
use crate::{
    builtin,
    caller::ProgramKey,
    clock::unix_ms,
    config::AutoApprove,
    connector::Cause,
    ids::ConnectorId,
    ledger::{Change, Ledger, Row as LedgerRow, RowKind, Standing as LedgerStanding},
    snapshot::WalkInPolicy,
    tools::pattern,
    trust::{
        FILES_CHOICE, LaunchIdentity, WALK_IN,
        decision::{Askers, ConnectorFacts, ConnectorStanding, ToolFacts, ToolStanding, View, ViewParts},
        pins::{Stand, Standing},
        rules::{self, Candidate, Choice, ClientId, Declined, Origin, ProgramId, Proposal, Rule, RuleId},
    },
};

/// Rules of this run; the oldest goes.
const MOST_RUN_RULES: usize = 1000;

/// The rules that there are.
#[derive(Debug, Default, Clone)]
pub(crate) struct Rules {
    pub all: Vec<Arc<Rule>>,
    /// Wishes of the file that the person declined.
    pub declined: Vec<Declined>,
    /// Wishes of the file that wait for the person, by ids that change with what a yes would cover.
    pub proposals: Vec<(String, Proposal)>,
    /// Rules that sleep because their connector runs or contacts something else by now, likewise.
    pub asleep: Vec<(String, Asleep)>,
}

/// What `autoApprove` in the file comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileWord {
    /// It is the authority.
    Applies,
    /// The person is asked.
    Proposes,
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
    standings: Vec<(ConnectorId, ConnectorStanding, Option<LaunchIdentity>, AutoApprove)>,
    word: FileWord,
    ledger: (LedgerStanding, u64),
    run: u64,
}

/// Makes the view.
pub(super) struct ViewDesk {
    /// The walk-ins' policy where the person said none.
    default: WalkInPolicy,
    key: Option<Key>,
    run: Vec<Arc<Rule>>,
    /// What the file says where it is the authority; what a rule was bound to stays.
    of_file: Vec<Rule>,
    /// What of that is not in the rows yet.
    unwritten: Vec<Change>,
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
            of_file: Vec::new(),
            unwritten: Vec::new(),
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

    /// Those of this run go on for another launch.
    pub fn move_for_run(&mut self, launch: LaunchIdentity, moves: impl Fn(&Rule) -> bool) {
        for rule in self.run.iter_mut().filter(|rule| moves(rule)) {
            *rule = Arc::new(rule.moved(launch));
        }
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
    pub fn look(&mut self, ledger: &Ledger, rows: &[Row], list: &ListKey, word: FileWord) -> bool {
        let live = || rows.iter().filter_map(|row| row.live.as_ref());
        let standing = *ledger.standing().borrow();
        let key = Key {
            list: list.clone(),
            standings: live()
                .map(|live| {
                    (
                        live.entry.id.clone(),
                        standing_of(live),
                        live.launch,
                        live.entry.auto_approve.clone(),
                    )
                })
                .collect(),
            word,
            ledger: (standing, ledger.writes()),
            run: self.runs,
        };
        let before = self.key.replace(key);
        let (Some(before), Some(key)) = (&before, &self.key) else {
            self.read(ledger, standing, rows, word);
            return true;
        };
        if before == key {
            return false;
        }
        self.read(ledger, standing, rows, word);
        true
    }

    fn read(&mut self, ledger: &Ledger, standing: LedgerStanding, rows: &[Row], word: FileWord) {
        let declined = rules::read_declined(&ledger.rows(RowKind::Declined));
        let mut kept = rules::read(&ledger.rows(RowKind::Rule));
        let mut proposals = Vec::new();
        match word {
            FileWord::Applies => {
                self.hear_file(ledger, standing, rows);
                kept.retain(|rule| rule.origin != Origin::File);
                let is_declined = |rule: &Rule| {
                    let mut of_server = declined.iter().filter(|no| no.server == rule.server);
                    of_server.any(|no| no.value.patterns() == rule.patterns)
                };
                let said = self.of_file.iter().filter(|rule| !rule.bound.is_empty());
                kept.extend(said.filter(|rule| !is_declined(rule)).cloned());
            }
            FileWord::Proposes => {
                for (live, tools) in wishes(rows) {
                    let wish = &live.entry.auto_approve;
                    let wished = rules::proposals(&live.entry.id, wish, &tools, &kept, &declined);
                    proposals.extend(wished.into_iter().map(|wish| (proposal_id(&wish), wish)));
                }
            }
        }
        let kept = kept.into_iter().map(Arc::new);
        let all: Vec<Arc<Rule>> = kept.chain(self.run.iter().cloned()).collect();
        self.rules = Arc::new(Rules {
            all: all.clone(),
            declined,
            proposals,
            asleep: asleep(rows, &all),
        });
        let live = rows.iter().filter_map(|row| row.live.as_ref());
        self.view = Arc::new(View::new(ViewParts {
            connectors: live.map(facts).collect(),
            rules: all,
            walk_in: self.walk_in(ledger, standing),
            askers: askers(ledger),
        }));
    }

    /// What the file says of each connector, with what it was bound to when it began to say it.
    fn hear_file(&mut self, ledger: &Ledger, standing: LedgerStanding, rows: &[Row]) {
        let (are_rows_known, may_write) = match standing {
            LedgerStanding::Verified | LedgerStanding::ForThisRun => (true, true),
            LedgerStanding::Fresh => (false, true),
            // Only the person's decisions begin a new set.
            LedgerStanding::Broken(_) | LedgerStanding::Unknown(_) => (false, false),
        };
        let mut said = Vec::new();
        self.unwritten.clear();
        for live in rows.iter().filter_map(|row| row.live.as_ref()) {
            let server = &live.entry.id;
            let row = ledger.row(RowKind::Setting, &rules::said_key(server));
            let before = rules::read_said(row.as_ref()).unwrap_or_else(|| match are_rows_known {
                true => Vec::new(),
                false => self
                    .of_file
                    .iter()
                    .filter(|rule| rule.server == *server)
                    .cloned()
                    .collect(),
            });
            let now = match (&live.entry.auto_approve, live.looked.as_deref()) {
                (AutoApprove::None, _) => Vec::new(),
                (_, None) => before,
                (wish, Some(looked)) => {
                    let tools = candidates(looked);
                    let mut new_id = random_id;
                    rules::rules_from_file(server, wish, &tools, live.launch, &before, unix_ms(), &mut new_id)
                }
            };
            if may_write {
                self.unwritten.extend(rules::put_said(server, &now, row.as_ref()));
            }
            said.extend(now);
        }
        self.of_file = said;
    }

    /// What is to be written down, once.
    pub fn take_unwritten(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.unwritten)
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

fn random_id() -> RuleId {
    let mut bits = [0; 16];
    // Of no use to anybody who would guess it: the file says what it says.
    let _ = getrandom::fill(&mut bits);
    RuleId::from_bytes(bits)
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

/// Connectors whose entry wishes for something, with the tools that a rule may be made for.
fn wishes(rows: &[Row]) -> impl Iterator<Item = (&RowLive, Vec<Candidate<'_>>)> {
    let live = rows.iter().filter_map(|row| row.live.as_ref());
    live.filter(|live| live.entry.auto_approve != AutoApprove::None)
        .filter_map(|live| Some((live, candidates(live.looked.as_deref()?))))
}

/// Enough of a hash to name something by.
pub(super) fn first_digits(hash: &[u8]) -> String {
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn proposal_id(proposal: &Proposal) -> String {
    let mut hash = Sha256::new();
    hash.update(proposal.server.as_str());
    for part in proposal.value.patterns() {
        hash.update([0]);
        hash.update(part);
    }
    for tool in &proposal.tools {
        hash.update([0]);
        hash.update(tool.tool.as_str());
        hash.update([0]);
        hash.update(tool.fingerprint.to_string());
    }
    format!("{PROPOSAL}{}", first_digits(&hash.finalize()))
}

/// Begins the id of every proposal.
pub(crate) const PROPOSAL: &str = "rule-";

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
        let tool = standing.served().map_or(&standing.now, |served| &served.tool);
        let hidden = pattern::any_matches(&live.hidden.patterns, tool.name.as_str());
        ToolFacts {
            name: tool.name.clone(),
            standing: match hidden {
                true => ToolStanding::Disabled,
                false => tool_standing(standing),
            },
            input_schema: tool.input_schema.clone(),
        }
    });
    ConnectorFacts {
        id: live.entry.id.clone(),
        standing: standing_of(live),
        launch: live.launch,
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

pub(super) fn standing_of(live: &RowLive) -> ConnectorStanding {
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
    /// At the first start of the tray app the built-in connector's tools that look things up come allowed, by a rule that
    /// is seen and withdrawn like any other. Withdrawn it stays: that this was done is kept. A home in which something was
    /// decided over a file of its own had its first start, so that a file that goes allows nothing.
    pub(super) async fn choose_for_files(&mut self) {
        let ledger = self.world.ledger.clone();
        let is_first = match *ledger.standing().borrow() {
            LedgerStanding::Fresh => true,
            LedgerStanding::Verified => false,
            // What was decided before is not known.
            LedgerStanding::ForThisRun | LedgerStanding::Broken(_) | LedgerStanding::Unknown(_) => return,
        };
        let is_done = ledger.row(RowKind::Setting, FILES_CHOICE).is_some();
        if is_done || !self.has_window {
            return;
        }
        let done = Change::Put(LedgerRow {
            kind: RowKind::Setting,
            key: FILES_CHOICE.to_owned(),
            body: "true".to_owned(),
        });
        if !self.file.is_default() {
            if !is_first && let Err(error) = ledger.write(vec![done]).await {
                tracing::warn!(%error, "that the built-in connector has no rule could not be kept");
            }
            return;
        }
        let published = self.inner.published.load_full();
        let live = published.rows.iter().filter_map(|row| row.live.as_ref());
        let mut files = live.filter(|live| builtin::is_files_server(&live.entry.launch));
        let Some((live, looked)) = files.find_map(|live| Some((live, live.looked.as_deref()?))) else {
            return;
        };
        let (Ok(id), Some(launch)) = (draw_id(), live.launch) else {
            return;
        };
        let (server, tools) = (&live.entry.id, candidates(looked));
        let rule = rules::choice_rule(server, &Choice::LookUp, &tools, launch, id, unix_ms());
        let rule = rule.map(|rule| Rule {
            origin: Origin::BuiltIn,
            ..rule
        });
        let Some(Ok(rule)) = rule.map(|rule| rule.put()) else {
            return;
        };
        match ledger.write(vec![rule, done]).await {
            Ok(()) => self.publish(),
            Err(error) => {
                tracing::warn!(%error, "what the built-in connector may do without asking could not be saved")
            }
        }
    }

    /// Where there is no window, walk-ins' calls go on unless the person says otherwise: there is nobody to ask. A home that
    /// a tray app uses stays as it is there.
    pub(super) async fn begin_asking(&mut self, shell: Shell) {
        let policy = match shell {
            Shell::Tray => WalkInPolicy::Ask,
            Shell::Headless(headless) if headless.ask => WalkInPolicy::Ask,
            Shell::Headless(_) if self.world.ledger.was_tray_home().await => WalkInPolicy::Ask,
            Shell::Headless(_) => WalkInPolicy::Allow,
        };
        match (shell, policy) {
            (Shell::Tray, _) => {}
            (Shell::Headless(_), WalkInPolicy::Ask) => tracing::info!(
                "calls of programs without a token are asked about, unless a rule allows them (neuron-connectd approvals)"
            ),
            (Shell::Headless(_), WalkInPolicy::Allow) => tracing::info!(
                "programs of this user may call tools without asking; rules that deny and tools that are held still hold"
            ),
        }
        self.has_window = shell == Shell::Tray;
        self.views.by_default(policy);
    }
}
