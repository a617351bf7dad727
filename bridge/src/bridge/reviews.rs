//! Launches that wait for the person's look: which there are, and what a yes or a no does. `rows` is what the person's own
//! changes say by themselves.
//!
//! A review follows from why a connector may not start; it is shown under an id that names exactly that launch. Nothing
//! here decides what may run (`trust::review`) or holds it back (`connector::admission`).

mod rows;

use std::{collections::HashMap, sync::Arc, time::Duration};

use self::rows::{binding_before, place_of, reviewed};
use super::{
    BridgeHandle, Shell, activity,
    owner::{Command, Owner, names_of},
    person_file::Edit,
    shown,
};
use crate::{
    activity::Outcome,
    config::Connector,
    connector::{Cause, Prepared, Shared, binding_of},
    error::{ApiError, Code},
    ledger::Standing,
    secrets::{BindingChange, SecretName},
    snapshot::{EntryOrigin, KeychainState, LaunchReview, LaunchWhy, TrustStanding},
    trust::{
        LaunchIdentity,
        review::{ApprovedBy, Place, Reviewed, Verdict, review_id},
        rules::RuleId,
    },
};

/// A keychain that answers by then spares reviewed connectors a start as unknown ones.
const OPENED_WITHIN: Duration = Duration::from_millis(500);

/// A file that is another one at each look is looked at again with the next change.
const MOST_LOOKS: usize = 3;

/// What the person says to launches that wait.
pub(crate) enum ReviewOrder {
    /// All of these may run, or none; these rules go on for them.
    Approve(Vec<String>, Vec<RuleId>),
    /// This one is turned off in the file, and asks no more.
    KeepBlocked(String),
}

/// Reviews as they were made once, by their ids.
#[derive(Default)]
pub(crate) struct ReviewList {
    made: HashMap<String, LaunchReview>,
    /// Programs were looked for.
    programs_known: bool,
}

/// One thing to look at.
struct Waiting {
    id: String,
    entry: Arc<Connector>,
    why: LaunchWhy,
    identity: LaunchIdentity,
}

impl BridgeHandle {
    /// Lets these launches run, exactly as they were shown: all of them or none. `keep`: rules of theirs, made for other
    /// launches, that go on; the others sleep.
    ///
    /// # Errors
    /// `not_found` for one that was decided or changed since, `keychain_unavailable`, `not_saved`.
    pub async fn approve_launches(&self, ids: Vec<String>, keep: Vec<RuleId>) -> Result<(), ApiError> {
        self.review(ReviewOrder::Approve(ids, keep)).await
    }

    /// Keeps a launch from running: its connector is turned off in the file, or its tools are hidden there again.
    ///
    /// # Errors
    /// As [`BridgeHandle::approve_launches`].
    pub async fn keep_blocked(&self, id: String) -> Result<(), ApiError> {
        self.review(ReviewOrder::KeepBlocked(id)).await
    }

    async fn review(&self, order: ReviewOrder) -> Result<(), ApiError> {
        self.order(|reply| Command::Review(order, reply)).await
    }
}

impl Owner {
    /// Says whether what runs needs a look, before anything does.
    pub(super) async fn begin_review(&self, shell: Shell) {
        let ledger = &self.world.ledger;
        let on = match shell {
            Shell::Tray => true,
            Shell::Headless(headless) if headless.review => true,
            Shell::Headless(_) => {
                let is_trays = ledger.was_tray_home().await;
                if is_trays {
                    tracing::warn!(
                        "the tray app uses this home: what runs needs a look first (neuron-connectd approvals shows what \
                         waits)"
                    );
                }
                is_trays
            }
        };
        self.world.admission.set_review(on);
        if on {
            // Whatever it comes to later is told too.
            let _ = tokio::time::timeout(OPENED_WITHIN, ledger.first_standing()).await;
        }
        self.world.admission.reload();
        self.world.pauses.reload(ledger);
        self.inner.callers.reload();
    }

    /// The person's word about launches that wait.
    pub(super) async fn review(&mut self, order: ReviewOrder) -> Result<(), ApiError> {
        if let Standing::Unknown(state) = self.world.admission.standing() {
            let words = Cause::TrustUnknown(state).sentence();
            return Err(ApiError::new(Code::KeychainUnavailable, words));
        }
        match order {
            ReviewOrder::Approve(ids, keep) => self.approve(ids, &keep).await,
            ReviewOrder::KeepBlocked(id) => {
                let waiting = self.waiting_for(&id)?;
                let server = waiting.entry.id.clone();
                let edit = match waiting.why {
                    LaunchWhy::New | LaunchWhy::Changed | LaunchWhy::TurnedOn => Edit::Enabled(server, false),
                    LaunchWhy::ToolsShown { .. } => {
                        let hidden = self.world.admission.hidden(&waiting.entry);
                        Edit::DisabledTools(server, hidden.patterns)
                    }
                };
                let told = activity::looked_at(&waiting.entry.id, Outcome::Denied(Code::Denied.name()));
                self.edit(edit).await?;
                self.world.activity.record(told);
                Ok(())
            }
        }
    }

    async fn approve(&mut self, ids: Vec<String>, keep: &[RuleId]) -> Result<(), ApiError> {
        let mut decided = Vec::new();
        for id in ids {
            let waiting = self.waiting_for(&id)?;
            let prepared = self.world.prepare(&waiting.entry).await;
            // The default connector's tools are its own, whatever was approved under its id before.
            let is_default = self.world.admission.needs_no_look(&waiting.entry);
            let is_about_tools = matches!(waiting.why, LaunchWhy::ToolsShown { .. });
            if prepared.identity != waiting.identity && !(is_about_tools && is_default) {
                // It, or its `envFile`, is another one than was looked at.
                self.replace(waiting.entry.id.to_string()).await;
                return Err(no_review(&id));
            }
            decided.push((waiting, prepared));
        }
        let rows = decided.iter().map(|(waiting, prepared)| {
            let before = self.world.admission.approved(&waiting.entry.id);
            // A yes says nothing about another launch that was approved under this id before.
            let same = before.as_deref().filter(|before| before.identity == prepared.identity);
            let row = match (&waiting.why, same) {
                (LaunchWhy::TurnedOn, Some(before)) => Reviewed {
                    enabled: true,
                    ..before.clone()
                },
                (LaunchWhy::ToolsShown { .. }, Some(before)) => Reviewed {
                    disabled_tools: waiting.entry.disabled_tools.clone(),
                    ..before.clone()
                },
                (LaunchWhy::New | LaunchWhy::Changed | LaunchWhy::TurnedOn | LaunchWhy::ToolsShown { .. }, _) => {
                    reviewed(&self.world, &waiting.entry, prepared, ApprovedBy::Review)
                }
            };
            (waiting.entry.id.clone(), Some(row))
        });
        let before: Vec<_> = decided
            .iter()
            .map(|(waiting, _)| self.world.admission.approved(&waiting.entry.id))
            .collect();
        self.world.admission.keep(rows.collect()).await?;
        for ((waiting, prepared), before) in decided.into_iter().zip(before) {
            let is_other = matches!(waiting.why, LaunchWhy::New | LaunchWhy::Changed);
            if let (true, Some(before)) = (is_other, before) {
                self.hand_over(&before, &waiting.entry, &prepared);
            }
            if is_other {
                self.keep_for_review(&waiting.entry.id, waiting.identity, keep).await;
            }
            let told = activity::looked_at(&waiting.entry.id, Outcome::Ok);
            self.world.activity.record(told);
            match waiting.why {
                LaunchWhy::New | LaunchWhy::Changed | LaunchWhy::TurnedOn => {
                    self.replace(waiting.entry.id.to_string()).await;
                    self.forgets = None;
                }
                LaunchWhy::ToolsShown { .. } => {}
            }
        }
        Ok(())
    }

    /// What was entered for the launch before goes to the approved one where that goes to the same place (DESIGN §9).
    fn hand_over(&mut self, before: &Reviewed, entry: &Connector, prepared: &Prepared) {
        let id = &entry.id;
        let (from, to) = (binding_before(before), binding_of(entry, prepared.identity));
        let mut names = names_of(&[Some(Arc::new(entry.clone()))]);
        names.extend(before.secrets.iter().filter_map(|name| SecretName::parse(name).ok()));
        match from.change(&to) {
            BindingChange::Stays => {}
            BindingChange::GoesOn => self.world.keychain.hand_on(id, names, from, to),
            BindingChange::Goes => self.world.keychain.forget_entered(id, names),
        }
        let now = place_of(entry);
        let is_other_address = match (&before.place, &now) {
            (Place::Address { canonical: before, .. }, Place::Address { canonical: now, .. }) => before != now,
            (Place::Address { .. }, Place::Program) => true,
            (Place::Program, _) => false,
        };
        if is_other_address {
            self.forgets = Some(id.clone());
        }
    }

    /// The rows are other ones, or known now.
    pub(super) async fn trust_changed(&mut self) {
        self.world.admission.reload();
        self.world.pauses.reload(&self.world.ledger);
        self.inner.callers.reload();
        if let Err(fault) = self.world.admission.forget_the_rest().await {
            tracing::warn!(%fault, "what was allowed of removed connectors is forgotten later");
        }
        self.bind_old_rules().await;
        self.tighten().await;
        self.judge_again().await;
    }

    /// Connectors that may start now and might not before, and the other way round, begin anew.
    pub(super) async fn judge_again(&mut self) {
        let keys: Vec<String> = self.connectors.keys().cloned().collect();
        for key in keys {
            self.judge_anew(key).await;
        }
    }

    /// As [`Owner::judge_again`], one of them.
    pub(super) async fn judge_anew(&mut self, key: String) {
        let (Some(entry), Some(handle)) = (self.valid(&key), self.connectors.get(&key)) else {
            return;
        };
        if !entry.enabled {
            return;
        }
        let before = handle.shared.view().machine.withheld().cloned();
        let prepared = self.world.prepare(&entry).await;
        let now = self.world.refusal(&entry, &prepared).filter(Cause::withholds_tools);
        if now != before {
            self.replace(key).await;
        }
    }

    /// Makes what waits ready to be shown, and shows everything.
    pub(super) async fn refresh(&mut self) {
        self.look_for_programs();
        // What turns out to be another launch than was held back is held back, and shown, as that.
        for _ in 0..MOST_LOOKS {
            if !self.make_reviews().await {
                break;
            }
        }
        let waiting = self.waiting();
        self.reviews
            .made
            .retain(|id, _| waiting.iter().any(|waiting| waiting.id == *id));
        self.publish();
    }

    /// Whether something has to be looked at again.
    async fn make_reviews(&mut self) -> bool {
        let mut is_other = false;
        for waiting in self.waiting() {
            if self.reviews.made.contains_key(&waiting.id) {
                continue;
            }
            let prepared = self.world.prepare(&waiting.entry).await;
            let why = match self.world.admission.verdict(&waiting.entry, prepared.identity) {
                Verdict::NeedsReview(why) => Some(why),
                Verdict::MayRun | Verdict::TrustUnknown => None,
            };
            let is_held = !matches!(waiting.why, LaunchWhy::ToolsShown { .. });
            if is_held && (prepared.identity != waiting.identity || why.as_ref() != Some(&waiting.why)) {
                self.replace(waiting.entry.id.to_string()).await;
                is_other = true;
                continue;
            }
            let review = self.review_of(&waiting, &prepared);
            self.reviews.made.insert(waiting.id, review);
        }
        is_other
    }

    /// The first review has programs looked for, in the background: the login shell may take seconds.
    fn look_for_programs(&mut self) {
        if self.reviews.programs_known || self.waiting().is_empty() {
            return;
        }
        if self.world.known_programs().is_some() {
            self.reviews.programs_known = true;
            self.reviews.made.clear();
        } else if self.reviews.made.is_empty() {
            let world = self.world.clone();
            self.stopping.spawn(async move {
                world.look_for_programs().await;
                world.changed.notify_one();
            });
        }
    }

    fn review_of(&self, waiting: &Waiting, prepared: &Prepared) -> LaunchReview {
        let now = self.world.shown(&waiting.entry);
        LaunchReview {
            id: waiting.id.clone(),
            server: waiting.entry.id.clone(),
            server_name: waiting
                .entry
                .name
                .clone()
                .unwrap_or_else(|| waiting.entry.id.to_string()),
            why: waiting.why.clone(),
            came_from: EntryOrigin::File,
            stands_out: self.world.stands_out(&waiting.entry, &now, prepared),
            now,
            // As they are when it is shown.
            asleep: Vec::new(),
            before: self
                .world
                .admission
                .approved(&waiting.entry.id)
                .map(|approved| approved.shown.clone()),
        }
    }

    /// What is shown of all that waits, in the order of the file.
    pub(super) fn launch_reviews(&self) -> Vec<LaunchReview> {
        let waiting = self.waiting().into_iter();
        let made = waiting.filter_map(|waiting| {
            let review = self.reviews.made.get(&waiting.id)?.clone();
            let asleep = match waiting.why {
                LaunchWhy::New | LaunchWhy::Changed => self.asleep_under(&waiting.entry, waiting.identity),
                LaunchWhy::TurnedOn | LaunchWhy::ToolsShown { .. } => Vec::new(),
            };
            Some(LaunchReview { asleep, ..review })
        });
        made.collect()
    }

    fn waiting(&self) -> Vec<Waiting> {
        let keys = self.config.entries.iter().map(|entry| &entry.key);
        let entries = keys.filter_map(|key| Some(self.connectors.get(key)?.shared.clone()));
        let waits = |shared: Arc<Shared>| {
            let entry = shared.entry();
            let (why, identity) = match shared.view().machine.withheld() {
                Some(Cause::NeedsReview { why, identity }) => (why.clone(), *identity),
                // Of a launch that is not approved, that is asked first.
                None | Some(Cause::Paused) => {
                    let tools = self.world.admission.hidden(&entry).dropped;
                    let approved = self.world.admission.approved(&entry.id).filter(|_| !tools.is_empty())?;
                    (LaunchWhy::ToolsShown { tools }, approved.identity)
                }
                Some(_) => return None,
            };
            Some(Waiting {
                id: review_id(&entry.id, &identity, &why),
                entry,
                why,
                identity,
            })
        };
        entries.filter_map(waits).collect()
    }

    fn waiting_for(&self, id: &str) -> Result<Waiting, ApiError> {
        let found = self.waiting().into_iter().find(|waiting| waiting.id == id);
        found.ok_or_else(|| no_review(id))
    }

    pub(super) fn trust_standing(&self) -> TrustStanding {
        match self.world.admission.standing() {
            Standing::Unknown(KeychainState::Unused) => TrustStanding::Opening,
            Standing::Unknown(state) => TrustStanding::Unknown {
                message: Cause::TrustUnknown(state).sentence(),
            },
            Standing::Fresh => TrustStanding::Fresh,
            Standing::Verified => TrustStanding::Verified,
            Standing::Broken(_) => TrustStanding::Broken {
                message: self
                    .world
                    .ledger
                    .notice()
                    .map(|notice| notice.message)
                    .unwrap_or_default(),
            },
            Standing::ForThisRun => TrustStanding::ThisRun,
        }
    }
}

fn no_review(id: &str) -> ApiError {
    let id = shown(id);
    ApiError::new(
        Code::NotFound,
        format!(
            "Nothing waits for a look under \"{id}\": it was decided, or is not what it was. Nothing was allowed; look at \
             what waits now."
        ),
    )
}
