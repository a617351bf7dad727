//! How far each sign-in is, as the window shows it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

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

    /// Takes down any card of a connector; whether there was one.
    pub(super) fn clear(&self, id: &ConnectorId) -> bool {
        let was_there = self.lock().by_connector.remove(id).is_some();
        if was_there {
            self.tell();
        }
        was_there
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
            if let SignInStage::Waiting { expires_at, .. } = view.stage
                && expires_at <= now
            {
                view.since = expires_at;
                view.stage = SignInStage::Failed {
                    outcome: SignInOutcome::Expired,
                    message: TOO_LATE.to_owned(),
                };
            }
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
