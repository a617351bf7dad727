//! What is still to be done in the keychain for a connector before anything of it is read again: clearing what was
//! removed, handing secrets on to an entry that the person changed. A locked keychain cannot keep it from happening, only
//! put it off; what was removed stays remembered over a restart.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use secrecy::SecretString;

use super::{Account, Binding, KeychainFault, SecretName, parts, record, record::Bound, vault::Vault};
use crate::{
    ids::ConnectorId,
    store::{Store, StoreError},
};

/// Entries that are missing from the file keep their secrets this long (DESIGN §9).
const KEPT_WITHOUT_ENTRY_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// One thing to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Chore {
    /// Everything of the connector goes.
    Clear,
    /// Its token and named secrets go.
    ClearEntered,
    /// What was entered for the one belongs to the other from now on.
    HandOn { from: Binding, to: Binding },
    /// These accounts hold this instead, or nothing. No value here is secret.
    Put(Vec<(Account, Option<String>)>),
}

/// Is given what a sign-in gave when that goes by a chore.
pub(super) type AccessGoes = Arc<dyn Fn(SecretString) + Send + Sync>;

/// Whether what the vault holds is what the index of accounts is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lasting {
    Yes,
    /// The vault forgets, and the index is that of another one.
    No,
}

pub(super) struct Chores {
    store: Arc<Store>,
    state: Mutex<State>,
    access_goes: Mutex<Option<AccessGoes>>,
}

struct State {
    lasting: Lasting,
    waiting: HashMap<ConnectorId, VecDeque<Task>>,
    /// Accounts that the index has for certain.
    noted: HashSet<Account>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    chore: Chore,
    /// Named in the entry, besides those that the index knows.
    names: Vec<SecretName>,
}

impl Chores {
    /// With what an earlier run could not clear.
    pub(super) fn new(store: Arc<Store>, lasting: Lasting) -> Self {
        let mut waiting = HashMap::new();
        match store.secrets_to_clear() {
            Ok(ids) => waiting.extend(
                ids.into_iter()
                    .map(|id| (id, VecDeque::from([Task::clear(Vec::new())]))),
            ),
            Err(error) => tracing::warn!(%error, "which secrets are still to be removed is not known"),
        }
        Self {
            store,
            state: Mutex::new(State {
                lasting,
                waiting,
                noted: HashSet::new(),
            }),
            access_goes: Mutex::default(),
        }
    }

    /// Of a keychain that is looked at beside the one that secrets are kept in: it never has any.
    pub(super) fn none(store: Arc<Store>) -> Self {
        Self {
            store,
            state: Mutex::new(State {
                lasting: Lasting::No,
                waiting: HashMap::new(),
                noted: HashSet::new(),
            }),
            access_goes: Mutex::default(),
        }
    }

    pub(super) fn forgetful_from_now_on(&self) {
        let mut state = self.lock();
        state.lasting = Lasting::No;
        state.noted.clear();
    }

    /// Nothing of the connector is read before this is done.
    pub(super) fn add(&self, id: &ConnectorId, chore: Chore, names: Vec<SecretName>) {
        let task = Task { chore, names };
        let mut state = self.lock();
        let waiting = state.waiting.entry(id.clone()).or_default();
        if waiting.back() != Some(&task) {
            waiting.push_back(task);
        }
    }

    /// Whether anything waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    pub(super) fn waits_for(&self, id: &ConnectorId) -> bool {
        self.lock().waiting.contains_key(id)
    }

    /// Does everything that waits, as far as it can be done.
    pub(super) fn settle_all(&self, vault: &mut dyn Vault) -> Result<(), KeychainFault> {
        let ids: Vec<_> = self.lock().waiting.keys().cloned().collect();
        ids.iter().try_for_each(|id| self.settle(vault, id))
    }

    /// Does what waits for the connector.
    ///
    /// # Errors
    /// [`KeychainFault`]; it goes on waiting.
    pub(super) fn settle(&self, vault: &mut dyn Vault, id: &ConnectorId) -> Result<(), KeychainFault> {
        loop {
            let Some((task, lasting)) = self.first(id) else {
                return Ok(());
            };
            match &task.chore {
                Chore::Clear => {
                    self.remember_to_clear(id);
                    self.remove(vault, id, &task.names, Account::unnamed_of(id).to_vec())?;
                    if lasting == Lasting::Yes {
                        said(self.store.secrets_cleared(id));
                    }
                }
                Chore::ClearEntered => self.remove(vault, id, &task.names, vec![Account::Token(id.clone())])?,
                Chore::HandOn { from, to } => self.hand_on(vault, id, &task.names, (from, to))?,
                Chore::Put(values) => self.put(vault, id, values)?,
            }
            self.done(id, &task);
        }
    }

    /// Does what waits for the connector, where anything of it may be there: its entry named secrets, or something was kept
    /// for it. What else waits is done before the next read.
    ///
    /// # Errors
    /// [`KeychainFault`]; it goes on waiting.
    pub(super) fn settle_if_known(&self, vault: &mut dyn Vault, id: &ConnectorId) -> Result<(), KeychainFault> {
        if self.may_hold(id) {
            self.settle(vault, id)
        } else {
            Ok(())
        }
    }

    fn may_hold(&self, id: &ConnectorId) -> bool {
        let is_named = {
            let state = self.lock();
            let mut waiting = state.waiting.get(id).into_iter().flatten();
            state.lasting == Lasting::No || waiting.any(|task| !task.names.is_empty())
        };
        is_named || said(self.store.secrets_of(id)).is_none_or(|accounts| !accounts.is_empty())
    }

    /// Notes that the account is about to hold something.
    pub(super) fn note(&self, account: &Account) {
        let Some(id) = account.connector() else { return };
        let is_noted = {
            let state = self.lock();
            state.lasting == Lasting::No || state.noted.contains(account)
        };
        // Whoever adds a chore does not wait for the store.
        if !is_noted && said(self.store.note_secret(id, &account.to_string())).is_some() {
            self.lock().noted.insert(account.clone());
        }
    }

    /// Compares those that have secrets with the entries there are, and has those cleared that were missing for long.
    /// Whether there are some.
    pub(super) fn look_for_missing(&self, present: &HashSet<ConnectorId>, now: u64) -> bool {
        if self.lock().lasting == Lasting::No {
            return false;
        }
        let since = now.saturating_sub(KEPT_WITHOUT_ENTRY_MS);
        let over = said(self.store.secrets_without_entry(present, now, since)).unwrap_or_default();
        for id in &over {
            tracing::info!(connector = %id, "its entry was missing for 30 days; its secrets are removed");
            self.add(id, Chore::Clear, Vec::new());
        }
        !over.is_empty()
    }

    pub(super) fn tell_when_access_goes(&self, told: AccessGoes) {
        *self.access_goes.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    }

    fn tell_of_access(&self, vault: &mut dyn Vault, id: &ConnectorId) {
        let told = self.access_goes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Where it cannot be read it cannot be removed either, and the chore is done later.
        if let (Some(told), Ok(Some(value))) = (told, parts::get(vault, &Account::OAuth(id.clone()).to_string())) {
            told(value);
        }
    }

    fn put(
        &self,
        vault: &mut dyn Vault,
        id: &ConnectorId,
        values: &[(Account, Option<String>)],
    ) -> Result<(), KeychainFault> {
        for (account, value) in values {
            if matches!(account, Account::OAuth(_)) {
                self.tell_of_access(vault, id);
            }
            match value {
                Some(value) => {
                    self.note(account);
                    parts::set(vault, &account.to_string(), &value.clone().into())?;
                }
                None => parts::delete(vault, &account.to_string())?,
            }
        }
        Ok(())
    }

    fn remember_to_clear(&self, id: &ConnectorId) {
        said(self.store.secrets_are_to_be_cleared(id));
    }

    fn remove(
        &self,
        vault: &mut dyn Vault,
        id: &ConnectorId,
        names: &[SecretName],
        mut accounts: Vec<Account>,
    ) -> Result<(), KeychainFault> {
        accounts.extend(self.named(id, names));
        for account in accounts {
            if matches!(account, Account::OAuth(_)) {
                self.tell_of_access(vault, id);
            }
            parts::delete(vault, &account.to_string())?;
            self.lock().noted.remove(&account);
        }
        Ok(())
    }

    fn hand_on(
        &self,
        vault: &mut dyn Vault,
        id: &ConnectorId,
        names: &[SecretName],
        (from, to): (&Binding, &Binding),
    ) -> Result<(), KeychainFault> {
        let token = Account::Token(id.clone());
        for account in self.named(id, names).into_iter().chain([token]) {
            let account = account.to_string();
            let record = parts::get(vault, &account)?;
            if let Bound::Value(value) = record::read(record.as_ref(), from) {
                parts::set(vault, &account, &record::write(&value, to))?;
            }
        }
        Ok(())
    }

    fn named(&self, id: &ConnectorId, names: &[SecretName]) -> HashSet<Account> {
        let prefix = format!("{id}:secret:");
        let known = said(self.store.secrets_of(id)).unwrap_or_default();
        let known = known.iter().filter_map(|account| account.strip_prefix(&prefix));
        known
            .filter_map(|name| SecretName::parse(name).ok())
            .chain(names.iter().cloned())
            .map(|name| Account::Secret(id.clone(), name))
            .collect()
    }

    fn first(&self, id: &ConnectorId) -> Option<(Task, Lasting)> {
        let state = self.lock();
        let task = state.waiting.get(id)?.front()?.clone();
        Some((task, state.lasting))
    }

    fn done(&self, id: &ConnectorId, task: &Task) {
        let mut state = self.lock();
        if let Some(waiting) = state.waiting.get_mut(id) {
            if waiting.front() == Some(task) {
                waiting.pop_front();
            }
            if waiting.is_empty() {
                state.waiting.remove(id);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
    fn clear(names: Vec<SecretName>) -> Self {
        Self {
            chore: Chore::Clear,
            names,
        }
    }
}

/// A store that fails costs the index, never the secret.
fn said<T>(outcome: Result<T, StoreError>) -> Option<T> {
    outcome
        .inspect_err(|error| tracing::warn!(%error, "the index of secrets could not be used"))
        .ok()
}
