//! The sign-ins that wait for a browser. Each is claimed once, whoever asks first; they survive a restart in the keychain.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::record::{Flow, Waiting, from_text, to_text};
use crate::{
    ids::ConnectorId,
    secrets::{Account, Keychain, KeychainFault, Written},
};

pub(super) struct Flows {
    keychain: Keychain,
    /// Of connectors only: strangers' answers leave nothing here.
    lines: Mutex<HashMap<ConnectorId, Arc<Line>>>,
}

/// What waits for one connector; others do not wait for its keychain.
#[derive(Default)]
struct Line {
    /// Held by who puts or claims.
    turn: tokio::sync::Mutex<()>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// What is in the keychain; `None` before that was looked up.
    known: Option<Waiting>,
    /// How often everything was given up.
    given_up: u64,
}

impl Flows {
    pub(super) fn new(keychain: Keychain) -> Self {
        Self {
            keychain,
            lines: Mutex::default(),
        }
    }

    /// Waits for an answer with this state, in place of any other sign-in of the connector, where it is still wanted.
    pub(super) async fn put(
        &self,
        id: &ConnectorId,
        state: String,
        flow: Flow,
        is_wanted: impl FnOnce() -> bool + Send + 'static,
    ) -> Result<Written, KeychainFault> {
        let line = self.line(id);
        let _turn = line.turn.lock().await;
        let given_up = line.lock().given_up;
        let waiting = Waiting::from([(state, flow)]);
        let account = Account::Verifier(id.clone());
        let written = self.keychain.write_if(&account, to_text(&waiting), is_wanted).await?;
        let mut memory = line.lock();
        if memory.given_up != given_up {
            drop(memory);
            self.remove_soon(id);
            return Ok(Written::NotWanted);
        }
        if written == Written::NotWanted {
            return Ok(written);
        }
        memory.known = Some(waiting);
        Ok(Written::Yes)
    }

    /// The sign-in of the connector that waits for an answer with this state; it waits no longer.
    pub(super) async fn claim(&self, id: &ConnectorId, state: &str) -> Result<Option<Flow>, KeychainFault> {
        let line = self.line(id);
        let _turn = line.turn.lock().await;
        let (is_known, given_up) = {
            let memory = line.lock();
            (memory.known.is_some(), memory.given_up)
        };
        if !is_known {
            let text = self.keychain.read(&Account::Verifier(id.clone())).await?;
            let mut memory = line.lock();
            if memory.given_up == given_up {
                memory.known = Some(text.and_then(|text| from_text(&text)).unwrap_or_default());
            }
        }
        let claimed = line.lock().known.as_mut().and_then(|waiting| waiting.remove(state));
        if claimed.is_some() {
            self.remove_soon(id);
            // It is claimed in memory; should the keychain keep it for now, its code is good for one use all the same.
            if let Err(fault) = self.keychain.settled(id).await {
                tracing::warn!(connector = %id, fault = %fault.sentence(), "a finished sign-in stays in the keychain for now");
            }
        }
        Ok(claimed)
    }

    /// No sign-in of the connector waits any longer. The keychain hears of it as soon as it can be had.
    pub(super) fn clear(&self, id: &ConnectorId) {
        let line = self.line(id);
        let mut memory = line.lock();
        memory.given_up += 1;
        let before = memory.known.replace(Waiting::new());
        drop(memory);
        if before.is_none_or(|waiting| !waiting.is_empty()) {
            self.remove_soon(id);
        }
    }

    fn remove_soon(&self, id: &ConnectorId) {
        self.keychain.put_soon(id, vec![(Account::Verifier(id.clone()), None)]);
    }

    fn line(&self, id: &ConnectorId) -> Arc<Line> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.entry(id.clone()).or_default().clone()
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
