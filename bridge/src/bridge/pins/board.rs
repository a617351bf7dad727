//! Has every list looked at before callers see it, writes down what joins by itself and what the person approves, and
//! holds how everything stands.
//!
//! A list is looked at off the loop. Until that is done the one before it goes on being shown, and what joins by itself
//! waits for its row.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use tokio::{sync::oneshot, task::JoinSet};

use super::{
    super::{
        publish::{Row, RowLive},
        unknown_server,
    },
    Looked, PinEdit,
    looking::{Against, Key, Looking, Names, Seen, Trust},
    trust_unknown,
};
use crate::{
    builtin,
    clock::unix_ms,
    error::{Action, ApiError, Code},
    ids::ConnectorId,
    ledger::{Change, Ledger, LedgerFault, RowKind, Standing as LedgerStanding},
    snapshot::{Notice, NoticeLevel},
    trust::pins::{self, Adoption, Approving, Pins},
};

/// Something that was done off the loop.
pub(in super::super) struct Done(Work);

enum Work {
    Looked(Box<Seen>),
    Written {
        id: ConnectorId,
        life: u64,
        outcome: Result<Vec<Change>, LedgerFault>,
        reply: Option<oneshot::Sender<Result<(), ApiError>>>,
    },
    /// What came too late for a connector that was removed is removed again.
    Forgotten(ConnectorId),
    /// Rows were brought to the present formula.
    Renewed,
}

/// How everything stands, of every connector.
pub(in super::super) struct PinBoard {
    ledger: Arc<Ledger>,
    /// What joins by itself where nothing speaks against it.
    adoption: Adoption,
    trust: Trust,
    pins: HashMap<ConnectorId, Arc<Pins>>,
    looked: HashMap<ConnectorId, Arc<Looked>>,
    /// At most one look at each connector at a time.
    looking: HashSet<ConnectorId>,
    /// Connectors of which earlier decisions were lost in this run.
    lost: HashSet<ConnectorId>,
    /// How often each was forgotten: what began before that does not count.
    lives: HashMap<ConnectorId, u64>,
    unsaved: HashMap<ConnectorId, LedgerFault>,
    work: JoinSet<Work>,
    /// Told when nothing is under way.
    settling: Vec<oneshot::Sender<()>>,
}

impl PinBoard {
    pub fn new(ledger: Arc<Ledger>) -> Self {
        Self {
            ledger,
            adoption: Adoption::FirstList,
            trust: Trust::Unknown,
            pins: HashMap::new(),
            looked: HashMap::new(),
            looking: HashSet::new(),
            lost: HashSet::new(),
            lives: HashMap::new(),
            unsaved: HashMap::new(),
            work: JoinSet::new(),
            settling: Vec::new(),
        }
    }

    /// Says what joins by itself where nothing speaks against it.
    pub fn join(&mut self, adoption: Adoption) {
        self.adoption = adoption;
    }

    /// What was done next; never comes while nothing is under way. Safe to drop and call again.
    pub async fn next(&mut self) -> Done {
        loop {
            match self.work.join_next().await {
                Some(Ok(done)) => return Done(done),
                // It looks at no task's inside: only one that was aborted, at the end.
                Some(Err(error)) => tracing::error!(%error, "a look at a tool list ended abnormally"),
                None => std::future::pending().await,
            }
        }
    }

    /// Takes up what was done.
    pub fn take(&mut self, Done(done): Done) {
        match done {
            Work::Looked(seen) => {
                let Seen {
                    id,
                    life,
                    looked,
                    joined,
                    fault,
                } = *seen;
                if life != self.life(&id) {
                    if joined.is_empty() {
                        self.looking.remove(&id);
                    } else {
                        self.forget_again(id);
                    }
                    return;
                }
                self.looking.remove(&id);
                self.note(&id, &joined, fault);
                let looked = match (joined.is_empty(), self.pins.get(&id)) {
                    // It was looked at once more with what joined.
                    (false, Some(pins)) if **pins == *looked.key.pins => Looked {
                        key: Key {
                            pins: pins.clone(),
                            ..looked.key.clone()
                        },
                        ..looked
                    },
                    _ => looked,
                };
                self.looked.insert(id, Arc::new(looked));
            }
            Work::Written {
                id,
                life,
                outcome,
                reply,
            } => {
                let outcome = outcome.map(|changes| {
                    if life == self.life(&id) {
                        self.note(&id, &changes, None);
                    }
                });
                if let (Err(fault), None) = (&outcome, &reply) {
                    tracing::warn!(connector = %id, error = %fault, "what has to be asked again could not be noted");
                }
                if let Some(reply) = reply {
                    // A window that closed meanwhile is no fault.
                    let _ = reply.send(outcome.map_err(Into::into));
                }
            }
            Work::Forgotten(id) => drop(self.looking.remove(&id)),
            Work::Renewed => {}
        }
    }

    /// Looks at what was not looked at as it is now.
    pub fn look(&mut self, rows: &[Row]) {
        self.look_at_trust(rows);
        let names = Arc::new(Names::new(rows));
        for live in rows.iter().filter_map(|row| row.live.as_ref()) {
            let id = &live.entry.id;
            let key = Key {
                launch: live.launch,
                list: live.view.tools.clone(),
                prompts: live.view.offers.flagged.clone(),
                instructions: live.view.instructions.clone(),
                pins: self.pins.entry(id.clone()).or_default().clone(),
                trust: self.trust,
                is_withheld: live.view.machine.withheld().is_some(),
            };
            let is_done = self.looked.get(id).is_some_and(|looked| looked.key.is(&key));
            if is_done || !self.looking.insert(id.clone()) {
                continue;
            }
            let against = match self.trust {
                _ if builtin::is_files_server(&live.entry.launch) => Against::OurOwn,
                Trust::Unknown => Against::Unreadable,
                Trust::Known | Trust::Lost if key.is_withheld => Against::Rows(Adoption::Nothing),
                Trust::Known | Trust::Lost => Against::Rows(self.adoption_of(id)),
            };
            let looking = Looking {
                id: id.clone(),
                life: self.life(id),
                against,
                key,
                names: names.clone(),
                server: live.server.clone(),
                ledger: self.ledger.clone(),
            };
            self.work
                .spawn(async move { Work::Looked(Box::new(looking.run().await)) });
        }
        let present: HashSet<&ConnectorId> = rows
            .iter()
            .filter_map(|row| Some(&row.live.as_ref()?.entry.id))
            .collect();
        self.looked.retain(|id, _| present.contains(id));
    }

    /// How what this one lists stands; of an earlier list until the present one was looked at, never of another launch.
    pub fn looked(&self, live: &RowLive) -> Option<Arc<Looked>> {
        let looked = self.looked.get(&live.entry.id)?;
        (looked.key.launch == live.launch).then(|| looked.clone())
    }

    /// Tells once nothing is under way. What was done must be published before the next look at that.
    pub fn when_settled(&mut self, reply: oneshot::Sender<()>) {
        self.settling.push(reply);
        self.settle();
    }

    /// Tells whoever waits, where nothing is under way.
    pub fn settle(&mut self) {
        if self.work.is_empty() {
            for reply in self.settling.drain(..) {
                // Whoever asked may have left.
                let _ = reply.send(());
            }
        }
    }

    pub fn is_settled(&self) -> bool {
        self.work.is_empty()
    }

    /// Takes the person's answer.
    pub fn edit(&mut self, id: ConnectorId, edit: PinEdit, reply: oneshot::Sender<Result<(), ApiError>>) {
        let changes = match self.changes(&id, &edit) {
            Ok(changes) => changes,
            Err(refusal) => {
                let _ = reply.send(Err(refusal));
                return;
            }
        };
        self.write(id, changes, Some(reply));
    }

    fn changes(&self, id: &ConnectorId, edit: &PinEdit) -> Result<Vec<Change>, ApiError> {
        let looked = self.looked.get(id).ok_or_else(|| unknown_server(id.as_str()))?;
        let standings = looked.standings.as_ref().ok_or_else(|| trust_unknown(id.as_str()))?;
        let pins = self.pins.get(id).cloned().unwrap_or_default();
        let approving = Approving {
            server: id,
            now: unix_ms(),
            server_name: None,
        };
        let changes = match edit {
            PinEdit::Approve(versions) => approving.tools(standings, &pins, versions),
            PinEdit::Keep(tool, version) => approving.keep(standings, tool, version),
            PinEdit::ApprovePrompt(name, version) => approving.prompt(&standings.prompts, name, version),
            PinEdit::KeepPrompt(name, version) => approving.keep_prompt(&standings.prompts, name, version),
            PinEdit::Instructions(version) => approving.instructions(standings, version),
            PinEdit::KeepInstructions(version) => approving.keep_instructions(standings, version),
        };
        changes.map_err(|stale| ApiError::new(Code::ToolChanged, stale.to_string()).with_action(Some(Action::Review)))
    }

    /// Forgets what was approved of a connector; a new one of its name begins anew.
    ///
    /// # Errors
    /// Where the rows cannot be removed; nothing of them counts in this run all the same.
    pub async fn forget(&mut self, id: &ConnectorId) -> Result<(), LedgerFault> {
        *self.lives.entry(id.clone()).or_default() += 1;
        self.looked.remove(id);
        self.unsaved.remove(id);
        self.lost.remove(id);
        let had = self.pins.remove(id).is_some_and(|pins| *pins != Pins::default());
        let forgotten = match had {
            true => self.ledger.write(vec![pins::drop_all(id)]).await,
            false => Ok(()),
        };
        if forgotten.is_err() {
            self.lost.insert(id.clone());
        }
        forgotten
    }

    /// What could not be saved.
    pub fn notices(&self) -> impl Iterator<Item = Notice> {
        self.unsaved.iter().map(|(id, fault)| Notice {
            level: NoticeLevel::Warning,
            message: format!(
                "The tools of {id} are not offered, because it could not be saved that they may be: {fault}"
            ),
            line: None,
            column: None,
            server: Some(id.to_string()),
        })
    }

    /// Tries once more to save what could not be.
    pub fn try_again(&mut self) {
        for (id, _) in self.unsaved.drain() {
            self.looked.remove(&id);
        }
    }

    fn life(&self, id: &ConnectorId) -> u64 {
        self.lives.get(id).copied().unwrap_or(0)
    }

    fn adoption_of(&self, id: &ConnectorId) -> Adoption {
        let untouched = self.pins.get(id).is_none_or(|pins| pins.is_untouched());
        match self.trust {
            Trust::Known if !(untouched && self.lost.contains(id)) => self.adoption,
            Trust::Known | Trust::Unknown | Trust::Lost => Adoption::Nothing,
        }
    }

    /// Takes what the ledger says now, where that is something else than before.
    fn look_at_trust(&mut self, rows: &[Row]) {
        let standing = *self.ledger.standing().borrow();
        let trust = match standing {
            LedgerStanding::Fresh | LedgerStanding::Verified | LedgerStanding::ForThisRun => Trust::Known,
            LedgerStanding::Broken(_) => Trust::Lost,
            LedgerStanding::Unknown(_) => Trust::Unknown,
        };
        if trust == self.trust {
            return;
        }
        let (pins, renewed) = pins::read(self.ledger.rows(RowKind::Pin));
        self.pins = pins.into_iter().map(|(id, pins)| (id, Arc::new(pins))).collect();
        if !renewed.is_empty() {
            let ledger = self.ledger.clone();
            self.work.spawn(async move {
                if let Err(error) = ledger.write(renewed).await {
                    tracing::warn!(%error, "what was approved could not be written in its present form");
                }
                Work::Renewed
            });
        }
        let were_lost = self.trust == Trust::Lost;
        self.trust = trust;
        if were_lost && trust == Trust::Known {
            // What is decided from here on verifies. What was lost is asked all the same, also after the next start.
            for id in rows.iter().filter_map(|row| Some(row.live.as_ref()?.entry.id.clone())) {
                if self.pins.get(&id).is_none_or(|pins| pins.is_untouched()) {
                    let asks = pins::asks(&id);
                    self.lost.insert(id.clone());
                    self.write(id, vec![asks], None);
                }
            }
        }
    }

    fn write(&mut self, id: ConnectorId, changes: Vec<Change>, reply: Option<oneshot::Sender<Result<(), ApiError>>>) {
        let (ledger, life) = (self.ledger.clone(), self.life(&id));
        self.work.spawn(async move {
            let outcome = ledger.write(changes.clone()).await.map(|()| changes);
            Work::Written {
                id,
                life,
                outcome,
                reply,
            }
        });
    }

    fn forget_again(&mut self, id: ConnectorId) {
        let ledger = self.ledger.clone();
        self.work.spawn(async move {
            if let Err(error) = ledger.write(vec![pins::drop_all(&id)]).await {
                tracing::warn!(connector = %id, %error, "what was approved of a removed connector could not be forgotten");
            }
            Work::Forgotten(id)
        });
    }

    fn note(&mut self, id: &ConnectorId, changes: &[Change], fault: Option<LedgerFault>) {
        if !changes.is_empty() {
            let pins = self.pins.entry(id.clone()).or_default();
            *pins = Arc::new(pins.after(id, changes));
        }
        match fault {
            Some(fault) => drop(self.unsaved.insert(id.clone(), fault)),
            None => drop(self.unsaved.remove(id)),
        }
    }
}
