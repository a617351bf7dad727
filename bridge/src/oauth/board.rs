//! How far each sign-in is, as the window shows it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use super::pair::Places;
use crate::{
    ids::ConnectorId,
    snapshot::{SignInOutcome, SignInStage, SignInView},
};

pub(super) const TOO_LATE: &str = "The sign-in took longer than ten minutes. Begin again.";

/// The right to show one sign-in; a later one of the same connector takes it away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// One card per connector.
pub(super) struct Board {
    cards: Mutex<Cards>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct Cards {
    given: u64,
    by_connector: HashMap<ConnectorId, (Ticket, SignInView)>,
    /// The places that the person was told to look at last.
    shown: HashMap<ConnectorId, Places>,
}

impl Board {
    pub(super) fn new() -> Self {
        Self {
            cards: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }

    /// Puts up a card in place of any other of its connector.
    pub(super) fn open(&self, view: SignInView) -> Ticket {
        let mut cards = self.lock();
        cards.given += 1;
        let ticket = Ticket(cards.given);
        cards.by_connector.insert(view.server.clone(), (ticket, view));
        drop(cards);
        self.tell();
        ticket
    }

    /// Changes a card; `false` where another took its place, or it was taken away.
    pub(super) fn change(&self, id: &ConnectorId, ticket: Ticket, change: impl FnOnce(&mut SignInView)) -> bool {
        let mut cards = self.lock();
        let card = cards.by_connector.get_mut(id).filter(|(current, _)| *current == ticket);
        let is_there = card.map(|(_, view)| change(view)).is_some();
        drop(cards);
        if is_there {
            self.tell();
        }
        is_there
    }

    /// Whether the card still stands.
    pub(super) fn stands(&self, id: &ConnectorId, ticket: Ticket) -> bool {
        self.lock()
            .by_connector
            .get(id)
            .is_some_and(|(current, _)| *current == ticket)
    }

    /// Takes down the card of this ticket.
    pub(super) fn close(&self, id: &ConnectorId, ticket: Ticket) {
        let mut cards = self.lock();
        let is_there = cards
            .by_connector
            .get(id)
            .is_some_and(|(current, _)| *current == ticket);
        if is_there {
            cards.by_connector.remove(id);
            drop(cards);
            self.tell();
        }
    }

    /// Resolves once the card of this ticket stands no longer.
    pub(super) async fn gone(&self, id: &ConnectorId, ticket: Ticket) {
        let mut changes = self.changed.subscribe();
        // The sender is `self`.
        while self.stands(id, ticket) && changes.changed().await.is_ok() {}
    }

    /// Takes down any card of a connector; whether a sign-in was under way by it.
    pub(super) fn clear(&self, id: &ConnectorId) -> bool {
        let mut cards = self.lock();
        cards.shown.remove(id);
        let card = cards.by_connector.remove(id);
        drop(cards);
        if card.is_some() {
            self.tell();
        }
        card.is_some_and(|(_, view)| is_under_way(&view.stage))
    }

    /// The person is told to look at these places.
    pub(super) fn show(&self, id: &ConnectorId, places: Places) {
        self.lock().shown.insert(id.clone(), places);
    }

    /// Whether these are the places that the person was told to look at last.
    pub(super) fn was_shown(&self, id: &ConnectorId, places: &Places) -> bool {
        self.lock().shown.get(id) == Some(places)
    }

    /// When the first of all sign-ins that wait is over, in Unix milliseconds.
    pub(super) fn first_end(&self) -> Option<u64> {
        let cards = self.lock();
        cards
            .by_connector
            .values()
            .filter_map(|(_, view)| end_of(&view.stage))
            .min()
    }

    /// Says on each card whose answer would come too late that it is over; the connectors of those that did not say so
    /// before.
    pub(super) fn expire(&self, now: u64) -> Vec<ConnectorId> {
        let mut cards = self.lock();
        let mut over: Vec<_> = cards
            .by_connector
            .values_mut()
            .filter_map(|(_, view)| expire(view, now).then(|| view.server.clone()))
            .collect();
        drop(cards);
        over.sort();
        if !over.is_empty() {
            self.tell();
        }
        over
    }

    /// Whether the card of a connector says that its ten minutes are over.
    pub(super) fn is_over(&self, id: &ConnectorId) -> bool {
        let cards = self.lock();
        let card = cards.by_connector.get(id);
        card.is_some_and(|(_, view)| {
            matches!(
                view.stage,
                SignInStage::Failed {
                    outcome: SignInOutcome::Expired,
                    ..
                }
            )
        })
    }

    /// All cards, by connector; one whose answer would come too late says so.
    pub(super) fn views(&self, now: u64) -> Vec<SignInView> {
        let mut views: Vec<_> = self
            .lock()
            .by_connector
            .values()
            .map(|(_, view)| view.clone())
            .collect();
        for view in &mut views {
            expire(view, now);
        }
        views.sort_by(|one, other| one.server.cmp(&other.server));
        views
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Cards> {
        self.cards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn end_of(stage: &SignInStage) -> Option<u64> {
    match stage {
        SignInStage::Waiting { expires_at, .. } => Some(*expires_at),
        SignInStage::Preparing
        | SignInStage::Confirm { .. }
        | SignInStage::NeedsClient { .. }
        | SignInStage::NoPkce { .. }
        | SignInStage::Finishing
        | SignInStage::Failed { .. } => None,
    }
}

/// Whether the view waited for an answer that would come too late; it says so then.
fn expire(view: &mut SignInView, now: u64) -> bool {
    let Some(end) = end_of(&view.stage).filter(|end| *end <= now) else {
        return false;
    };
    view.since = end;
    view.stage = SignInStage::Failed {
        outcome: SignInOutcome::Expired,
        message: TOO_LATE.to_owned(),
    };
    true
}

/// What did not go on, or failed, has told its end already.
fn is_under_way(stage: &SignInStage) -> bool {
    match stage {
        SignInStage::Preparing | SignInStage::Waiting { .. } | SignInStage::Finishing => true,
        SignInStage::Confirm { .. }
        | SignInStage::NeedsClient { .. }
        | SignInStage::NoPkce { .. }
        | SignInStage::Failed { .. } => false,
    }
}
