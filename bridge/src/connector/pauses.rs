//! What is paused: connectors that a program turned off until the next start, and everything, by the person's word.
//!
//! Says what does not run although it may. A program's pauses are in memory alone; that everything is paused is kept in
//! the trust rows by whoever decides it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    ids::ConnectorId,
    ledger::{Ledger, RowKind},
    snapshot::{PausedView, WhoView},
    trust::PAUSED,
};

/// What is paused.
#[derive(Default)]
pub struct Pauses(Mutex<State>);

#[derive(Default)]
struct State {
    all: bool,
    /// Who paused it.
    by: HashMap<ConnectorId, WhoView>,
}

impl Pauses {
    /// Takes what the rows say of everything.
    pub fn reload(&self, ledger: &Ledger) {
        let row = ledger.row(RowKind::Setting, PAUSED);
        // A pause that nobody can check is one: it allows nothing.
        self.lock().all = row.map_or_else(|| ledger.assumed().paused, |row| row.body == "true");
    }

    pub fn set_all(&self, on: bool) {
        self.lock().all = on;
    }

    pub fn pause(&self, id: ConnectorId, by: WhoView) {
        self.lock().by.insert(id, by);
    }

    /// Whether it was paused.
    pub fn resume(&self, id: &ConnectorId) -> bool {
        self.lock().by.remove(id).is_some()
    }

    /// Whether everything is.
    pub fn all(&self) -> bool {
        self.lock().all
    }

    pub fn is_paused(&self, id: &ConnectorId) -> bool {
        let state = self.lock();
        state.all || state.by.contains_key(id)
    }

    /// Who paused a connector, where it is.
    pub fn view(&self, id: &ConnectorId) -> Option<PausedView> {
        let state = self.lock();
        if state.all {
            return Some(PausedView { by: None });
        }
        let by = state.by.get(id)?.clone();
        Some(PausedView { by: Some(by) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
