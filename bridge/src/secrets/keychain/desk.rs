//! A keychain for tests.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, mpsc},
};

use secrecy::{ExposeSecret as _, SecretString};

use super::Keychain;
use crate::{
    secrets::{KeychainFault, vault::Vault},
    snapshot::KeptIn,
    store::Store,
};

/// A keychain of which the test decides what it says, and for how long it says nothing.
#[derive(Clone, Default)]
pub(crate) struct Desk(Arc<Mutex<DeskState>>);

#[derive(Default)]
pub(super) struct DeskState {
    pub(super) values: HashMap<String, String>,
    fault: Option<KeychainFault>,
    /// Accounts in whose calls it hangs until something comes through here.
    pub(super) hangs: HashMap<String, mpsc::Receiver<()>>,
}

impl Desk {
    pub(crate) fn answers(&self, fault: Option<KeychainFault>) {
        self.state().fault = fault;
    }

    pub(crate) fn hangs_at(&self, account: &str) -> mpsc::Sender<()> {
        let (release, released) = mpsc::channel();
        self.state().hangs.insert(account.to_owned(), released);
        release
    }

    pub(crate) fn accounts(&self) -> Vec<String> {
        let mut accounts: Vec<_> = self.state().values.keys().cloned().collect();
        accounts.sort();
        accounts
    }

    /// What lies under an account, whatever it says.
    pub(crate) fn value(&self, account: &str) -> Option<String> {
        self.state().values.get(account).cloned()
    }

    /// What another program put there; `None` takes it away.
    pub(crate) fn put(&self, account: &str, value: Option<String>) {
        let mut state = self.state();
        match value {
            Some(value) => state.values.insert(account.to_owned(), value),
            None => state.values.remove(account),
        };
    }

    pub(super) fn state(&self) -> std::sync::MutexGuard<'_, DeskState> {
        self.0.lock().unwrap()
    }

    fn enter(&self, account: &str) -> Result<std::sync::MutexGuard<'_, DeskState>, KeychainFault> {
        let hang = self.state().hangs.remove(account);
        if let Some(released) = hang {
            // A test that is over releases everybody.
            let _ = released.recv();
        }
        let state = self.state();
        match &state.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(state),
        }
    }
}

impl Vault for Desk {
    fn get(&mut self, account: &str) -> Result<Option<SecretString>, KeychainFault> {
        Ok(self
            .enter(account)?
            .values
            .get(account)
            .map(|value| value.clone().into()))
    }

    /// As a keychain that tells what it holds while it is locked.
    fn holds(&mut self, account: &str) -> Result<bool, KeychainFault> {
        let state = self.state();
        let holds = state.values.contains_key(account);
        match &state.fault {
            Some(fault) if !holds || *fault != KeychainFault::Locked => Err(fault.clone()),
            Some(_) | None => Ok(holds),
        }
    }

    fn set(&mut self, account: &str, value: &SecretString) -> Result<(), KeychainFault> {
        let value = value.expose_secret().to_owned();
        self.enter(account)?.values.insert(account.to_owned(), value);
        Ok(())
    }

    fn delete(&mut self, account: &str) -> Result<(), KeychainFault> {
        self.enter(account)?.values.remove(account);
        Ok(())
    }

    fn check(&mut self) -> Result<(), KeychainFault> {
        self.enter("").map(drop)
    }
}

impl Keychain {
    /// On a keychain whose answers the test decides.
    pub(crate) fn simulated(desk: &Desk, store: Arc<Store>) -> Self {
        let desk = desk.clone();
        let make = |_: &_| -> crate::secrets::workers::MakeVault { Box::new(move || Box::new(desk.clone())) };
        Self::with(KeptIn::Keychain, store, super::TIMES, make).unwrap()
    }
}
