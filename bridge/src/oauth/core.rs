//! What sign-ins and their tokens share: the keychain, the clock, the way out, the slot of each connector.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde::de::DeserializeOwned;

use super::{
    fetch::Fetches,
    record::{Access, Grant, Registration, from_text, to_text},
    slot::{Life, Slot},
};
use crate::{
    ids::ConnectorId,
    secrets::{Account, Keychain, KeychainFault, Written},
};

pub(super) struct Core {
    pub(super) keychain: Keychain,
    now: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub(super) fetches: Fetches,
    slots: Mutex<HashMap<ConnectorId, Arc<Slot>>>,
}

impl Core {
    pub(super) fn new(keychain: Keychain, now: Arc<dyn Fn() -> u64 + Send + Sync>) -> Self {
        Self {
            keychain,
            now,
            fetches: Fetches::default(),
            slots: Mutex::default(),
        }
    }

    /// Unix milliseconds.
    pub(super) fn now(&self) -> u64 {
        (self.now)()
    }

    pub(super) fn slot(&self, id: &ConnectorId) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.entry(id.clone()).or_default().clone()
    }

    pub(super) async fn access(&self, id: &ConnectorId) -> Result<Option<Access>, KeychainFault> {
        self.read(&Account::OAuth(id.clone())).await
    }

    /// Keeps what a sign-in or a renewal gave, where it is still wanted when the keychain comes to it.
    pub(super) async fn keep_grant(
        &self,
        id: &ConnectorId,
        grant: &Grant,
        is_wanted: impl FnOnce() -> bool + Send + 'static,
    ) -> Result<Written, KeychainFault> {
        let text = to_text(&Access::SignedIn(Box::new(grant.clone())));
        self.keychain
            .write_if(&Account::OAuth(id.clone()), text, is_wanted)
            .await
    }

    pub(super) async fn registration(&self, id: &ConnectorId) -> Result<Option<Registration>, KeychainFault> {
        self.read(&Account::Client(id.clone())).await
    }

    pub(super) async fn keep_registration(
        &self,
        id: &ConnectorId,
        kept: &Registration,
        is_wanted: impl FnOnce() -> bool + Send + 'static,
    ) -> Result<Written, KeychainFault> {
        let account = Account::Client(id.clone());
        self.keychain.write_if(&account, to_text(kept), is_wanted).await
    }

    /// The server does not know this app any longer: it is registered anew, unless that has happened.
    pub(super) async fn forget_client(&self, id: &ConnectorId, life: Life, client: &str) -> Result<(), KeychainFault> {
        let kept = self.registration(id).await?;
        let is_kept = kept.is_some_and(|kept| kept.client.id == client);
        if is_kept && self.slot(id).life() == life {
            self.keychain.delete(&Account::Client(id.clone())).await?;
        }
        Ok(())
    }

    async fn read<T: DeserializeOwned>(&self, account: &Account) -> Result<Option<T>, KeychainFault> {
        let text = self.keychain.read(account).await?;
        Ok(text.and_then(|text| {
            let value = from_text(&text);
            if value.is_none() {
                tracing::warn!(?account, "what the keychain holds is of another version and not used");
            }
            value
        }))
    }
}
