//! Where values are kept: one small trait, and the one that forgets.
//!
//! All of it blocks and is called from the keychain's own thread alone.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use secrecy::SecretString;

use super::KeychainFault;

/// A place of values by their account's name. None of its calls asks the person anything.
pub(super) trait Vault: Send {
    /// The value; `None` where there is none.
    ///
    /// # Errors
    /// [`KeychainFault`], which says nothing about the value.
    fn get(&mut self, account: &str) -> Result<Option<SecretString>, KeychainFault>;

    /// Whether there is a value, also one that is locked, where that can be told without asking the person.
    ///
    /// # Errors
    /// [`KeychainFault`] where it cannot be told.
    fn holds(&mut self, account: &str) -> Result<bool, KeychainFault> {
        Ok(self.get(account)?.is_some())
    }

    /// Keeps a value, in place of an earlier one.
    ///
    /// # Errors
    /// [`KeychainFault`]; the earlier one is then still there.
    fn set(&mut self, account: &str, value: &SecretString) -> Result<(), KeychainFault>;

    /// Removes a value, if there is one.
    ///
    /// # Errors
    /// [`KeychainFault`]; it is then still there.
    fn delete(&mut self, account: &str) -> Result<(), KeychainFault>;

    /// Whether values can be had at present.
    ///
    /// # Errors
    /// [`KeychainFault`]
    fn check(&mut self) -> Result<(), KeychainFault>;

    /// The most bytes that one value may have, in UTF-8 and in UTF-16; `None` = no limit worth the name.
    fn limit(&self) -> Option<usize> {
        None
    }
}

/// Forgets everything with the program.
#[derive(Clone, Default)]
pub(super) struct Memory(Arc<Mutex<HashMap<String, SecretString>>>);

impl Vault for Memory {
    fn get(&mut self, account: &str) -> Result<Option<SecretString>, KeychainFault> {
        Ok(self.values().get(account).cloned())
    }

    fn set(&mut self, account: &str, value: &SecretString) -> Result<(), KeychainFault> {
        self.values().insert(account.to_owned(), value.clone());
        Ok(())
    }

    fn delete(&mut self, account: &str) -> Result<(), KeychainFault> {
        self.values().remove(account);
        Ok(())
    }

    fn check(&mut self) -> Result<(), KeychainFault> {
        Ok(())
    }
}

impl Memory {
    fn values(&self) -> std::sync::MutexGuard<'_, HashMap<String, SecretString>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
