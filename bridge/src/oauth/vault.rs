//! Where sign-ins are kept.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use secrecy::SecretString;

use crate::{ids::ConnectorId, secrets::KeychainFault};

/// One value of the keychain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Account {
    /// The tokens of a connector and what they are good for.
    OAuth(ConnectorId),
    /// Its registration at an authorization server.
    Client(ConnectorId),
    /// Its sign-ins that wait for a browser.
    Verifier(ConnectorId),
}

/// Values by account; clones share them.
#[derive(Clone, Default)]
pub struct Keychain {
    values: Arc<Mutex<HashMap<Account, SecretString>>>,
}

impl Keychain {
    pub async fn read(&self, account: &Account) -> Result<Option<SecretString>, KeychainFault> {
        Ok(self.lock().get(account).cloned())
    }

    pub async fn write(&self, account: &Account, value: SecretString) -> Result<(), KeychainFault> {
        self.lock().insert(account.clone(), value);
        Ok(())
    }

    pub async fn delete(&self, account: &Account) -> Result<(), KeychainFault> {
        self.lock().remove(account);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Account, SecretString>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
