//! The sign-ins that wait for a browser. Each is claimed once, whoever asks first; they survive a restart in the keychain.

use std::collections::HashMap;

use tokio::sync::Mutex;

use super::{
    authorize::connector_of,
    record::{Flow, Waiting, from_text, to_text},
};
use crate::{
    ids::ConnectorId,
    secrets::{Account, Keychain, KeychainFault},
};

/// Connectors whose waiting sign-ins are looked for in the keychain, so that strangers' answers cost little.
const MOST_LOOKED_UP: usize = 256;

pub(super) struct Flows {
    keychain: Keychain,
    /// What is in the keychain, for every connector that was looked up.
    known: Mutex<HashMap<ConnectorId, Waiting>>,
}

impl Flows {
    pub(super) fn new(keychain: Keychain) -> Self {
        Self {
            keychain,
            known: Mutex::default(),
        }
    }

    /// Waits for an answer with this state, in place of any other sign-in of the connector; `false` where it is not
    /// wanted any longer.
    pub(super) async fn put(
        &self,
        id: &ConnectorId,
        state: String,
        flow: Flow,
        is_wanted: impl Fn() -> bool,
    ) -> Result<bool, KeychainFault> {
        let mut known = self.known.lock().await;
        if !is_wanted() {
            return Ok(false);
        }
        let waiting = Waiting::from([(state, flow)]);
        self.keychain
            .write(&Account::Verifier(id.clone()), to_text(&waiting))
            .await?;
        known.insert(id.clone(), waiting);
        Ok(true)
    }

    /// The sign-in that waits for an answer with this state; it waits no longer.
    pub(super) async fn claim(&self, state: &str) -> Result<Option<(ConnectorId, Flow)>, KeychainFault> {
        let Some(id) = connector_of(state) else { return Ok(None) };
        let mut known = self.known.lock().await;
        if !known.contains_key(&id) {
            if known.len() >= MOST_LOOKED_UP {
                return Ok(None);
            }
            let text = self.keychain.read(&Account::Verifier(id.clone())).await?;
            known.insert(id.clone(), text.and_then(|text| from_text(&text)).unwrap_or_default());
        }
        let Some(flow) = known.get_mut(&id).and_then(|waiting| waiting.remove(state)) else {
            return Ok(None);
        };
        // It is claimed in memory; should the keychain keep it, its code is good for one use all the same.
        if let Err(fault) = self.keychain.delete(&Account::Verifier(id.clone())).await {
            tracing::warn!(connector = %id, fault = %fault.sentence(), "a finished sign-in stays in the keychain");
        }
        Ok(Some((id, flow)))
    }

    /// No sign-in of the connector waits any longer.
    pub(super) async fn clear(&self, id: &ConnectorId) -> Result<(), KeychainFault> {
        let mut known = self.known.lock().await;
        let was_empty = known.get(id).is_some_and(Waiting::is_empty);
        known.insert(id.clone(), Waiting::new());
        if was_empty {
            return Ok(());
        }
        self.keychain.delete(&Account::Verifier(id.clone())).await
    }
}
