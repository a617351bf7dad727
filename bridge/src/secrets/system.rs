//! The system's keychain as a vault: Secret Service on Linux, Keychain on macOS, Credential Manager on Windows.
//!
//! Opened at its first use and again after every failure, so that one that was absent is found when it comes.

#[cfg(target_os = "linux")]
#[path = "system/secret_service.rs"]
mod desk;
#[cfg(not(target_os = "linux"))]
#[path = "system/plain.rs"]
mod desk;

use std::sync::Arc;

use keyring_core::{CredentialStore, Entry, Error};
use secrecy::{ExposeSecret as _, SecretString};

use self::desk::Desk;
pub(super) use self::desk::{Watching, ask_person};
use super::{KeychainFault, vault::Vault};
use crate::secrets::fault::short;

/// What the Windows store takes (`CRED_MAX_CREDENTIAL_BLOB_SIZE`); the others take megabytes.
#[cfg(windows)]
const LIMIT: Option<usize> = Some(2_560);
#[cfg(not(windows))]
const LIMIT: Option<usize> = None;

/// Told that something happened to the keychain.
pub(super) type Poke = Arc<dyn Fn() -> Alive + Send + Sync>;

/// Whether anybody still wants to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alive {
    Yes,
    No,
}

/// What the desktop says about an account before its store is asked, which might ask the person.
pub(super) enum Known {
    /// It is there, or may be made.
    Open,
    /// There is no such value.
    Nothing,
}

/// The system's keychain, for one service name.
pub(super) struct System {
    service: String,
    desk: Desk,
    store: Option<Arc<CredentialStore>>,
    watching: Watching,
}

impl System {
    pub(super) fn new(service: String, watching: Watching) -> Self {
        Self {
            service,
            desk: Desk::default(),
            store: None,
            watching,
        }
    }

    /// Runs `work` on an account's entry; once more on a store that is opened anew, where the first one is of no use any
    /// more, as after a restart of the keychain's own program.
    fn with<T>(
        &mut self,
        account: &str,
        work: impl Fn(&Entry) -> keyring_core::Result<T>,
    ) -> Result<Option<T>, KeychainFault> {
        let mut again = self.store.is_some();
        loop {
            let store = match &self.store {
                Some(store) => store.clone(),
                None => {
                    let opened: Arc<CredentialStore> = desk::open_store().map_err(|error| fault_of(&error))?;
                    self.store.insert(opened).clone()
                }
            };
            let done = store.build(&self.service, account, None).and_then(|entry| work(&entry));
            match done {
                Ok(value) => return Ok(Some(value)),
                Err(Error::NoEntry) => return Ok(None),
                Err(error) => {
                    self.store = None;
                    if !std::mem::take(&mut again) {
                        return Err(fault_of(&error));
                    }
                }
            }
        }
    }
}

impl Vault for System {
    fn get(&mut self, account: &str) -> Result<Option<SecretString>, KeychainFault> {
        self.watching.ensure();
        match self.desk.may_read(&self.service, account)? {
            Known::Nothing => Ok(None),
            Known::Open => self.with(account, |entry| entry.get_password().map(SecretString::from)),
        }
    }

    fn holds(&mut self, account: &str) -> Result<bool, KeychainFault> {
        self.watching.ensure();
        match self.desk.holds(&self.service, account)? {
            Some(holds) => Ok(holds),
            None => Ok(self.get(account)?.is_some()),
        }
    }

    fn set(&mut self, account: &str, value: &SecretString) -> Result<(), KeychainFault> {
        self.watching.ensure();
        self.desk.may_write(&self.service, account)?;
        // As UTF-8 bytes: the Windows store would make UTF-16 of a password.
        let kept = self.with(account, |entry| entry.set_secret(value.expose_secret().as_bytes()))?;
        kept.ok_or_else(|| KeychainFault::Refused("it took the value and has it no more".to_owned()))
    }

    fn delete(&mut self, account: &str) -> Result<(), KeychainFault> {
        self.watching.ensure();
        match self.desk.may_read(&self.service, account)? {
            Known::Nothing => Ok(()),
            Known::Open => self.with(account, Entry::delete_credential).map(drop),
        }
    }

    fn check(&mut self) -> Result<(), KeychainFault> {
        self.watching.ensure();
        self.desk.check()
    }

    fn limit(&self) -> Option<usize> {
        LIMIT
    }
}

fn fault_of(error: &Error) -> KeychainFault {
    match error {
        Error::NoStorageAccess(_) => KeychainFault::Locked,
        Error::BadEncoding(_) | Error::BadDataFormat(..) => {
            KeychainFault::Refused("what it holds there is no text of this app".to_owned())
        }
        Error::Ambiguous(_) => {
            KeychainFault::Refused("it holds several values of that name; remove all but one there".to_owned())
        }
        other => KeychainFault::Refused(short(&other.to_string())),
    }
}
