//! The only way to the keychain.
//!
//! Every call goes to a thread of its own, one after the other, and has a time limit. Where one hangs, another thread
//! goes on, and for a while whoever asks is told at once that the keychain is slow. What is known of the keychain is
//! published ([`Keychain::state`]). Nothing here asks the person anything unless the person asked for that
//! ([`Keychain::look_again`]).

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use secrecy::SecretString;
use tokio::sync::{oneshot, watch};

use super::{
    Account, Binding, Bound, KeychainFault, SecretName,
    chores::{Chore, Chores, Lasting},
    file::{FileKey, FileVault, FileVaultError},
    parts, record,
    system::{Alive, System, Watching, ask_person},
    vault::{Memory, Vault},
    workers::{Full, Lease, MakeVault, Workers},
};
use crate::{
    ids::ConnectorId,
    snapshot::{KeptIn, KeychainState, KeychainView},
    store::Store,
};

/// A call that takes longer has hung: a slow keychain answers within a tenth of this.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// After a call that hung, others are told so at once for this long; then it is looked at again.
const REST_AFTER_HANG: Duration = Duration::from_secs(10);

/// Where secrets are kept.
#[derive(Debug, Clone)]
pub enum KeepSecrets {
    /// In the system's keychain.
    Keychain,
    /// In an encrypted file of the home, under a key from elsewhere.
    File(FileKey),
    /// Nowhere: they are forgotten with the program.
    Memory,
}

/// Why a bridge has no keychain to ask.
#[derive(Debug, thiserror::Error)]
pub enum KeychainError {
    #[error(transparent)]
    File(#[from] FileVaultError),
    #[error("This computer gives the app no more threads: {0}.")]
    Threads(#[source] std::io::Error),
}

/// Where a keychain finds its things.
pub struct Places {
    /// The service name of the accounts in the system's keychain.
    pub service: String,
    /// Where no key of the file may lie.
    pub home: PathBuf,
    /// The encrypted file.
    pub file: PathBuf,
    /// Keeps which accounts belong to which connector.
    pub store: Arc<Store>,
}

/// Whether a value was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Yes,
    /// It was not wanted any longer.
    NotWanted,
}

/// The keychain. Cheap to clone.
#[derive(Clone)]
pub struct Keychain {
    inner: Arc<Inner>,
}

struct Inner {
    workers: Workers,
    chores: Chores,
    view: watch::Sender<KeychainView>,
    /// When it was last too slow.
    hung_at: Mutex<Option<Instant>>,
    check_queued: AtomicBool,
    person_is_asked: AtomicBool,
    times: Times,
}

/// What becomes of a call whose asker left before its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Abandoned {
    /// Nobody wants to know any more.
    Skipped,
    /// It changes something.
    Done,
}

#[derive(Clone, Copy)]
struct Times {
    answer: Duration,
    rest: Duration,
}

const TIMES: Times = Times {
    answer: ANSWER_WITHIN,
    rest: REST_AFTER_HANG,
};

impl Keychain {
    /// Asks the system's keychain for nothing yet; a file is opened at once.
    ///
    /// # Errors
    /// [`KeychainError`]
    pub fn start(keep: KeepSecrets, places: Places) -> Result<Self, KeychainError> {
        let Places {
            service,
            home,
            file,
            store,
        } = places;
        match keep {
            KeepSecrets::Keychain => Self::with(KeptIn::Keychain, store, TIMES, |weak| system(weak, service)),
            KeepSecrets::File(key) => {
                let vault = FileVault::open(file, key, &home)?;
                Self::with(KeptIn::File, store, TIMES, |_| {
                    Box::new(move || Box::new(vault.clone()))
                })
            }
            KeepSecrets::Memory => Self::with(KeptIn::Memory, store, TIMES, |_| memory()),
        }
    }

    /// The system's keychain, to be looked at beside the one that secrets are kept in. Nothing of connectors may be asked of
    /// it.
    ///
    /// # Errors
    /// [`KeychainError::Threads`]
    pub fn beside(service: String, store: Arc<Store>) -> Result<Self, KeychainError> {
        Self::with_chores(KeptIn::Keychain, Chores::none(store), TIMES, |weak| {
            system(weak, service)
        })
    }

    fn with(
        kept_in: KeptIn,
        store: Arc<Store>,
        times: Times,
        make: impl FnOnce(&Weak<Inner>) -> MakeVault,
    ) -> Result<Self, KeychainError> {
        let lasting = match kept_in {
            KeptIn::Keychain | KeptIn::File => Lasting::Yes,
            KeptIn::Memory => Lasting::No,
        };
        Self::with_chores(kept_in, Chores::new(store, lasting), times, make)
    }

    fn with_chores(
        kept_in: KeptIn,
        chores: Chores,
        times: Times,
        make: impl FnOnce(&Weak<Inner>) -> MakeVault,
    ) -> Result<Self, KeychainError> {
        let mut failed = None;
        let inner = Arc::new_cyclic(|weak: &Weak<Inner>| {
            let back = weak.clone();
            let came_back = Box::new(move || {
                if let Some(inner) = back.upgrade() {
                    inner.forgive();
                    inner.check_soon();
                }
            });
            let (workers, error) = Workers::start(make(weak), came_back);
            failed = error;
            Inner {
                workers,
                chores,
                view: watch::channel(KeychainView::unused(kept_in)).0,
                hung_at: Mutex::default(),
                check_queued: AtomicBool::new(false),
                person_is_asked: AtomicBool::new(false),
                times,
            }
        });
        match failed {
            Some(error) => Err(KeychainError::Threads(error)),
            None => Ok(Self { inner }),
        }
    }

    /// What is known of the keychain; told of every change.
    pub fn state(&self) -> watch::Receiver<KeychainView> {
        self.inner.view.subscribe()
    }

    /// The value of an account; `None` where it has none.
    ///
    /// # Errors
    /// [`KeychainFault`]
    pub async fn read(&self, account: &Account) -> Result<Option<SecretString>, KeychainFault> {
        let account = account.clone();
        self.ask(Abandoned::Skipped, move |inner, vault| {
            inner.settle(vault, &account)?;
            parts::get(vault, &account.to_string())
        })
        .await
    }

    /// Whether the account has a value, also one that is locked.
    ///
    /// # Errors
    /// [`KeychainFault`] where that cannot be told.
    pub async fn holds(&self, account: &Account) -> Result<bool, KeychainFault> {
        let account = account.clone();
        self.ask(Abandoned::Skipped, move |inner, vault| {
            inner.settle(vault, &account)?;
            vault.holds(&account.to_string())
        })
        .await
    }

    /// Keeps a value, in place of an earlier one.
    ///
    /// # Errors
    /// [`KeychainFault`]. After [`KeychainFault::Slow`] it may be kept all the same, later.
    pub async fn write(&self, account: &Account, value: SecretString) -> Result<(), KeychainFault> {
        let account = account.clone();
        self.ask(Abandoned::Done, move |inner, vault| {
            inner.settle(vault, &account)?;
            inner.chores.note(&account);
            parts::set(vault, &account.to_string(), &value)
        })
        .await
    }

    /// As [`Keychain::write`], where it is still wanted when its turn comes. What [`Keychain::put_soon`] and the like were
    /// asked for before is done first, what they are asked for later comes after it.
    ///
    /// # Errors
    /// As [`Keychain::write`].
    pub async fn write_if(
        &self,
        account: &Account,
        value: SecretString,
        is_wanted: impl FnOnce() -> bool + Send + 'static,
    ) -> Result<Written, KeychainFault> {
        let account = account.clone();
        self.ask(Abandoned::Done, move |inner, vault| {
            inner.settle(vault, &account)?;
            if !is_wanted() {
                return Ok(Written::NotWanted);
            }
            inner.chores.note(&account);
            parts::set(vault, &account.to_string(), &value)?;
            Ok(Written::Yes)
        })
        .await
    }

    /// Removes a value, if there is one.
    ///
    /// # Errors
    /// [`KeychainFault`]
    pub async fn delete(&self, account: &Account) -> Result<(), KeychainFault> {
        let account = account.clone();
        self.ask(Abandoned::Done, move |inner, vault| {
            inner.settle(vault, &account)?;
            parts::delete(vault, &account.to_string())
        })
        .await
    }

    /// A token or named secret, as far as it was entered for this.
    ///
    /// # Errors
    /// [`KeychainFault`]
    pub async fn read_bound(&self, account: &Account, binding: &Binding) -> Result<Bound, KeychainFault> {
        let found = self.read(account).await?;
        Ok(record::read(found.as_ref(), binding))
    }

    /// Keeps a token or named secret for this and nothing else.
    ///
    /// # Errors
    /// [`KeychainFault`]
    pub async fn write_bound(
        &self,
        account: &Account,
        value: &SecretString,
        binding: &Binding,
    ) -> Result<(), KeychainFault> {
        self.write(account, record::write(value, binding)).await
    }

    /// From now on nothing of the connector can be read; it is removed as soon as the keychain can be had, also after a
    /// restart. `names` are its secrets, as far as they are known. Of a connector that never had any, nothing is asked for
    /// by itself.
    pub fn forget(&self, id: &ConnectorId, names: Vec<SecretName>) {
        self.do_soon(id, Chore::Clear, names);
    }

    /// Removes what was entered for the connector, as [`Keychain::forget`] does; its sign-in stays.
    pub fn forget_entered(&self, id: &ConnectorId, names: Vec<SecretName>) {
        self.do_soon(id, Chore::ClearEntered, names);
    }

    /// From now on these accounts of the connector read as this; the keychain is changed as soon as it can be had in this
    /// run. No value here may be secret.
    pub fn put_soon(&self, id: &ConnectorId, values: Vec<(Account, Option<String>)>) {
        self.do_soon(id, Chore::Put(values), Vec::new());
    }

    /// From now on this is given what a sign-in gave (`<id>:oauth`) when [`Keychain::forget`] or [`Keychain::put_soon`]
    /// removes it. It must not wait.
    pub fn tell_when_access_goes(&self, told: Arc<dyn Fn(SecretString) + Send + Sync>) {
        self.inner.chores.tell_when_access_goes(told);
    }

    /// What was entered for `from` belongs to `to` from now on: nothing is read before that.
    pub fn hand_on(&self, id: &ConnectorId, names: Vec<SecretName>, from: Binding, to: Binding) {
        self.do_soon(id, Chore::HandOn { from, to }, names);
    }

    /// Waits until what was asked for with [`Keychain::forget`] and the like is done.
    ///
    /// # Errors
    /// [`KeychainFault`]; it is done later then.
    pub async fn settled(&self, id: &ConnectorId) -> Result<(), KeychainFault> {
        if !self.inner.chores.waits_for(id) {
            return Ok(());
        }
        let id = id.clone();
        self.ask(Abandoned::Done, move |inner, vault| {
            inner.chores.settle_if_known(vault, &id)
        })
        .await
    }

    /// These connectors have entries: what others left is removed when that is 30 days ago. `now` in Unix milliseconds.
    pub fn entries_are(&self, present: HashSet<ConnectorId>, now: u64) {
        let inner = Arc::downgrade(&self.inner);
        // A full queue is no harm: the next change says it again.
        let _ = self.inner.workers.submit(Box::new(move |vault, lease| {
            let Some(inner) = inner.upgrade() else { return };
            if inner.chores.look_for_missing(&present, now) {
                inner.note(Some(lease), inner.chores.settle_all(vault).as_ref().err());
            }
        }));
    }

    /// The person wants it looked at again: a locked keychain asks them for its password.
    ///
    /// # Errors
    /// [`KeychainFault`], as it is now; what the person does then shows in the state.
    pub async fn look_again(&self) -> Result<(), KeychainFault> {
        self.inner.forgive();
        let outcome = self.ask(Abandoned::Done, |_, vault| vault.check()).await;
        if outcome == Err(KeychainFault::Locked) {
            self.ask_person();
        }
        outcome
    }

    /// The person chose to keep secrets in memory until this program ends; what the keychain holds stays there.
    pub fn keep_until_quit(&self) {
        let inner = &self.inner;
        if inner.view.borrow().kept_in == KeptIn::Memory {
            return;
        }
        inner.chores.forgetful_from_now_on();
        inner.workers.change(memory());
        inner.forgive();
        inner.view.send_replace(KeychainView {
            kept_in: KeptIn::Memory,
            state: KeychainState::Ready,
            message: None,
        });
    }

    fn do_soon(&self, id: &ConnectorId, chore: Chore, names: Vec<SecretName>) {
        self.inner.chores.add(id, chore, names);
        let (inner, id) = (Arc::downgrade(&self.inner), id.clone());
        // Where the queue is full it waits for the next call about the connector.
        let _ = self.inner.workers.submit(Box::new(move |vault, lease| {
            if let Some(inner) = inner.upgrade() {
                inner.note(Some(lease), inner.chores.settle_if_known(vault, &id).as_ref().err());
            }
        }));
    }

    /// One question at a time; it stays on the screen until the person answers or dismisses it.
    fn ask_person(&self) {
        if self.inner.person_is_asked.swap(true, Ordering::AcqRel) {
            return;
        }
        let inner = Arc::downgrade(&self.inner);
        let asking = move || {
            let answered = ask_person();
            if let Some(inner) = inner.upgrade() {
                inner.person_is_asked.store(false, Ordering::Release);
                if let Err(fault) = answered {
                    tracing::info!(reason = %fault.sentence(), "the keychain asks nobody for its password");
                }
                inner.check_soon();
            }
        };
        let named = std::thread::Builder::new().name("keychain-unlock".to_owned());
        if let Err(error) = named.spawn(asking) {
            self.inner.person_is_asked.store(false, Ordering::Release);
            tracing::error!(%error, "the person cannot be asked to unlock the keychain");
        }
    }

    async fn ask<T: Send + 'static>(
        &self,
        abandoned: Abandoned,
        work: impl FnOnce(&Inner, &mut dyn Vault) -> Result<T, KeychainFault> + Send + 'static,
    ) -> Result<T, KeychainFault> {
        let inner = &self.inner;
        if inner.hung_lately() {
            return Err(KeychainFault::Slow);
        }
        let (reply, answer) = oneshot::channel();
        let weak = Arc::downgrade(inner);
        let job = inner.workers.submit(Box::new(move |vault, lease| {
            let Some(inner) = weak.upgrade() else { return };
            if abandoned == Abandoned::Skipped && reply.is_closed() {
                return;
            }
            let outcome = work(&inner, vault);
            inner.note(Some(lease), outcome.as_ref().err());
            // Whoever asked may have left.
            let _ = reply.send(outcome);
        }));
        let ticket = match job {
            Ok(ticket) => ticket,
            Err(Full) => return Err(KeychainFault::Slow),
        };
        match tokio::time::timeout(inner.times.answer, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_ended)) => Err(KeychainFault::Refused("its thread ended".to_owned())),
            Err(_late) => {
                if inner.workers.leave_behind(ticket, inner.times.answer) {
                    inner.note(None, Some(&KeychainFault::Slow));
                }
                Err(KeychainFault::Slow)
            }
        }
    }
}

impl Inner {
    fn settle(&self, vault: &mut dyn Vault, account: &Account) -> Result<(), KeychainFault> {
        match account.connector() {
            Some(id) => self.chores.settle(vault, id),
            None => Ok(()),
        }
    }

    /// Publishes how the keychain answered, unless it was not asked, answered a thread that was left behind, or is another
    /// one by now.
    fn note(self: &Arc<Self>, lease: Option<&Lease>, fault: Option<&KeychainFault>) {
        if fault.is_none() && lease.is_some_and(|lease| !lease.asked()) {
            return;
        }
        let counts = || lease.is_none_or(Lease::holds);
        if fault == Some(&KeychainFault::Slow) && counts() {
            *self.hung_at() = Some(Instant::now());
            let inner = Arc::downgrade(self);
            let look = move |vault: &mut dyn Vault, lease: &Lease| {
                if let Some(inner) = inner.upgrade() {
                    inner.check(vault, lease);
                }
            };
            self.workers.submit_later(self.times.rest, Box::new(look));
        }
        let became_ready = self.view.send_if_modified(|view| {
            if !counts() {
                return false;
            }
            let next = KeychainView {
                kept_in: view.kept_in,
                state: fault.map_or(KeychainState::Ready, KeychainFault::state),
                message: fault.map(KeychainFault::sentence),
            };
            let differs = *view != next;
            *view = next;
            differs
        });
        if became_ready && fault.is_none() && !self.chores.is_empty() {
            let inner = Arc::downgrade(self);
            // Where the queue is full they wait for the next call about their connector.
            let _ = self.workers.submit(Box::new(move |vault, lease| {
                if let Some(inner) = inner.upgrade() {
                    inner.note(Some(lease), inner.chores.settle_all(vault).as_ref().err());
                }
            }));
        }
    }

    fn check(self: &Arc<Self>, vault: &mut dyn Vault, lease: &Lease) {
        self.note(Some(lease), vault.check().as_ref().err());
    }

    fn check_soon(self: &Arc<Self>) {
        if self.check_queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let inner = Arc::downgrade(self);
        let queued = self.workers.submit(Box::new(move |vault, lease| {
            if let Some(inner) = inner.upgrade() {
                inner.check_queued.store(false, Ordering::Release);
                inner.check(vault, lease);
            }
        }));
        if queued.is_err() {
            self.check_queued.store(false, Ordering::Release);
        }
    }

    fn hung_lately(&self) -> bool {
        self.hung_at().is_some_and(|at| at.elapsed() < self.times.rest)
    }

    fn forgive(&self) {
        *self.hung_at() = None;
    }

    fn hung_at(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.hung_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn system(inner: &Weak<Inner>, service: String) -> MakeVault {
    let poked = inner.clone();
    let watching = Watching::new(Arc::new(move || match poked.upgrade() {
        Some(inner) => {
            inner.check_soon();
            Alive::Yes
        }
        None => Alive::No,
    }));
    Box::new(move || Box::new(System::new(service.clone(), watching.clone())))
}

fn memory() -> MakeVault {
    let memory = Memory::default();
    Box::new(move || Box::new(memory.clone()))
}

#[cfg(test)]
pub(crate) mod desk;
#[cfg(test)]
mod tests;
