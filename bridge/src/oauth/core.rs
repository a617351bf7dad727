//! What sign-ins and their tokens share: the keychain, the clock, the way out, the slot of each connector.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde::{Serialize, de::DeserializeOwned};

use super::{
    fetch::Fetches,
    record::{Access, Registration, from_text, to_text},
    slot::Slot,
};
use crate::{
    ids::ConnectorId,
    secrets::{Account, Keychain, KeychainFault},
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

    pub(super) fn drop_slot(&self, id: &ConnectorId) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    pub(super) async fn access(&self, id: &ConnectorId) -> Result<Option<Access>, KeychainFault> {
        self.read(&Account::OAuth(id.clone())).await
    }

    pub(super) async fn keep_access(&self, id: &ConnectorId, access: &Access) -> Result<(), KeychainFault> {
        self.write(Account::OAuth(id.clone()), access).await
    }

    pub(super) async fn registration(&self, id: &ConnectorId) -> Result<Option<Registration>, KeychainFault> {
        self.read(&Account::Client(id.clone())).await
    }

    pub(super) async fn keep_registration(&self, id: &ConnectorId, kept: &Registration) -> Result<(), KeychainFault> {
        self.write(Account::Client(id.clone()), kept).await
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

    async fn write<T: Serialize>(&self, account: Account, value: &T) -> Result<(), KeychainFault> {
        self.keychain.write(&account, to_text(value)).await
    }
}
