//! The trust rows: loaded, verified, held in memory, written.
//!
//! One owner of them, of their key and of the generation that is counted beside the key. Rows that do not verify count as
//! absent, and so do rows whose key cannot be had at present; what that means for what runs is their readers' matter.
//! What a row says is never looked into here.

mod counter;
mod key;
mod opening;

use std::{
    path::PathBuf,
    sync::{
        Arc, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Mutex, watch};

use self::{
    counter::Counter,
    key::{KeyRecord, Place},
};
pub use crate::trust::rows::{Change, Distrust, Row, RowKind, TRAY_MARK};
use crate::trust::{API_MODE, API_MODE_ASSUMED, FILES_CHOICE, PAUSED, WALK_IN};
use crate::{
    error::{ApiError, Code},
    secrets::{Account, Keychain, KeychainFault},
    snapshot::{KeptIn, KeychainState, KeychainView, Notice, NoticeLevel},
    store::Store,
    trust::rows::{RowSet, TrustKey},
};

/// What the keychain knows of a tray app counts if it is known by then.
const TRAY_KNOWN_WITHIN: Duration = Duration::from_secs(2);

/// What kind of program the bridge runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// The tray app: the key lies in the keychain or nowhere.
    Tray,
    Headless,
}

/// What a ledger is opened with.
pub struct LedgerOptions {
    pub host: Host,
    pub store: Arc<Store>,
    /// The system's keychain, wherever secrets are kept; of a tray app the one that they are kept in.
    pub keychain: Keychain,
    /// Where secrets are kept.
    pub kept_in: KeptIn,
    /// `trust.key`.
    pub key_file: PathBuf,
}

/// What is known of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was ever decided: there are no rows, and no key that ever had some.
    Fresh,
    /// The rows are the last ones that were written.
    Verified,
    /// They are not, and count as absent: everything asks. The next decision begins a new set under a new key.
    Broken(Distrust),
    /// The key cannot be had, for this reason; with [`KeychainState::Unused`], the keychain has not answered yet. Nothing is
    /// known of the rows, and nothing can be decided.
    Unknown(KeychainState),
    /// The person decides for this run: rows begin empty, are held in memory, and nothing is verified or stored.
    ForThisRun,
}

/// Why a decision does not hold. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerFault {
    /// The key cannot be had: `keychain_unavailable`.
    #[error("{}", .0.sentence())]
    Keychain(KeychainFault),
    /// `not_saved`, with a sentence that says why and what to do.
    #[error("{0}")]
    NotSaved(String),
}

impl From<LedgerFault> for ApiError {
    fn from(fault: LedgerFault) -> Self {
        match fault {
            LedgerFault::Keychain(fault) => fault.into(),
            LedgerFault::NotSaved(sentence) => Self::new(Code::NotSaved, sentence),
        }
    }
}

/// The trust rows of one home.
pub struct Ledger {
    host: Host,
    store: Arc<Store>,
    keychain: Keychain,
    kept_in: KeptIn,
    key_file: PathBuf,
    standing: watch::Sender<Standing>,
    /// Whether a tray app used this home; `None` = not known yet.
    tray: watch::Sender<Option<bool>>,
    held: RwLock<Held>,
    /// Who has it writes. Held while the ledger is being opened.
    writer: Arc<Mutex<Writer>>,
    /// Grows with every change of the rows that was written.
    writes: AtomicU64,
    counter: Counter,
}

#[derive(Default)]
struct Held {
    rows: RowSet,
    /// Where their key lies.
    place: Place,
    /// Why the key cannot be had.
    fault: Option<KeychainFault>,
    /// What was found at the start, also after a new set was begun.
    distrust: Option<Distrust>,
    /// What the stored rows say, true or not.
    unverified: Assumed,
}

/// What counts where the rows do not say it for want of their key, or because they are lost: never more than they may have
/// said, so that whoever changes them takes no more than the person's time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Assumed {
    /// Programs need a token.
    pub token: bool,
    /// Everything is paused.
    pub paused: bool,
}

#[derive(Default)]
struct Writer {
    /// What new rows are written under; drawn with the first.
    record: Option<KeyRecord>,
}

impl Ledger {
    /// Opens the ledger; never fails, [`Ledger::standing`] says what it found. What a key file decides is known on return,
    /// the rest once the keychain answers: nobody waits for it here. Blocks on the disk for a moment, and needs a runtime.
    pub fn open(options: LedgerOptions) -> Arc<Self> {
        let LedgerOptions {
            host,
            store,
            keychain,
            kept_in,
            key_file,
        } = options;
        let ledger = Arc::new(Self {
            host,
            store,
            counter: Counter::start(keychain.clone()),
            keychain,
            kept_in,
            key_file,
            standing: watch::channel(Standing::Unknown(KeychainState::Unused)).0,
            tray: watch::channel(None).0,
            held: RwLock::default(),
            writer: Arc::default(),
            writes: AtomicU64::new(0),
        });
        opening::begin(&ledger);
        ledger
    }

    /// What is known of the rows; told of every change. From unknown it goes to another by itself when the keychain can be
    /// had.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// The standing once the keychain answered for the first time, however: within the time of its calls.
    pub async fn first_standing(&self) -> Standing {
        let mut standing = self.standing.subscribe();
        let known = standing.wait_for(|standing| *standing != Standing::Unknown(KeychainState::Unused));
        known
            .await
            .map_or(Standing::Unknown(KeychainState::Unused), |known| *known)
    }

    /// The rows of a kind, by their keys; none while the rows are broken or unknown.
    pub fn rows(&self, kind: RowKind) -> Vec<Row> {
        self.held().rows.of(kind).cloned().collect()
    }

    /// One row, as [`Ledger::rows`].
    pub fn row(&self, kind: RowKind, key: &str) -> Option<Row> {
        self.held().rows.get(kind, key).cloned()
    }

    /// Makes these changes, one after the other: all of them, on disk and in memory, or none. Goes on where its caller
    /// leaves. On broken rows this begins a new set without any of the old: only what the person decides is written then.
    ///
    /// # Errors
    /// [`LedgerFault`]
    pub async fn write(self: &Arc<Self>, changes: Vec<Change>) -> Result<(), LedgerFault> {
        let ledger = self.clone();
        let written = tokio::spawn(async move {
            let mut writer = ledger.writer.clone().lock_owned().await;
            let written = ledger.write_as(&mut writer, changes).await;
            ledger.writes.fetch_add(1, Ordering::Release);
            written
        });
        written.await.unwrap_or_else(|error| Err(not_saved(&error)))
    }

    /// Writes a row in place of what it was read as; where that is another one by now, or none, nothing changes.
    ///
    /// # Errors
    /// [`LedgerFault`]
    pub async fn replace(self: &Arc<Self>, was: &Row, row: Row) -> Result<(), LedgerFault> {
        let mut writer = self.writer.clone().lock_owned().await;
        let verified = *self.standing.borrow() == Standing::Verified;
        if !verified || self.row(was.kind, &was.key).as_ref() != Some(was) {
            return Ok(());
        }
        let written = self.write_as(&mut writer, vec![Change::Put(row)]).await;
        self.writes.fetch_add(1, Ordering::Release);
        written
    }

    /// Grows whenever rows may have been changed by [`Ledger::write`]. Where neither this nor the standing changed, the rows
    /// are the same.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    /// What counts where a row does not say it: nothing more, where rows are verified or there never were any.
    pub fn assumed(&self) -> Assumed {
        let held = self.held();
        let is_lost = held.distrust.is_some();
        match *self.standing.borrow() {
            Standing::Fresh | Standing::Verified => Assumed::default(),
            Standing::Broken(_) | Standing::Unknown(_) | Standing::ForThisRun => Assumed {
                token: is_lost || held.unverified.token,
                paused: held.unverified.paused,
            },
        }
    }

    /// The person chose to decide for this run only, where the key cannot be had.
    pub fn keep_until_quit(&self) {
        let at_stake = self.host == Host::Tray && self.held().place == Place::Keychain;
        self.standing.send_if_modified(|standing| {
            let ends = match standing {
                Standing::Unknown(_) => true,
                // A key that is drawn now would be forgotten, and its rows not.
                Standing::Fresh | Standing::Broken(_) => at_stake,
                Standing::Verified | Standing::ForThisRun => false,
            };
            if ends {
                *standing = Standing::ForThisRun;
            }
            ends
        });
    }

    /// Whether a tray app ever used this home, by the rows, verified or not, or by what the keychain holds; a keychain that
    /// does not say so soon says no.
    pub async fn was_tray_home(&self) -> bool {
        let mut tray = self.tray.subscribe();
        let known = tokio::time::timeout(TRAY_KNOWN_WITHIN, tray.wait_for(Option::is_some)).await;
        matches!(known.ok().and_then(Result::ok).as_deref(), Some(Some(true)))
    }

    /// What the person sees of the keychain: where nobody asked it for a secret yet, what the rows' key met there.
    pub fn seen_of_keychain(&self, secrets: KeychainView) -> KeychainView {
        match (*self.standing.borrow(), secrets.state) {
            (Standing::Unknown(met), KeychainState::Unused) => KeychainView {
                state: met,
                message: self.held().fault.as_ref().map(KeychainFault::sentence),
                ..secrets
            },
            (
                Standing::Unknown(_)
                | Standing::Fresh
                | Standing::Verified
                | Standing::Broken(_)
                | Standing::ForThisRun,
                _,
            ) => secrets,
        }
    }

    /// Looks again for the key of rows that are not known, because the person wants it.
    pub async fn look_again(&self) {
        if matches!(*self.standing.borrow(), Standing::Unknown(_)) {
            // What it comes to shows in the standing.
            let _ = self.keychain.look_again().await;
        }
    }

    /// What the person should know about the rows.
    pub fn notice(&self) -> Option<Notice> {
        let distrust = self.held().distrust?;
        Some(Notice {
            level: NoticeLevel::Warning,
            message: sentence(distrust).to_owned(),
            line: None,
            column: None,
            server: None,
        })
    }

    /// Waits until what was written is counted beside the key, or cannot be for now.
    pub async fn counted(&self) {
        self.counter.settled().await;
    }

    async fn write_as(self: &Arc<Self>, writer: &mut Writer, changes: Vec<Change>) -> Result<(), LedgerFault> {
        let standing = *self.standing.borrow();
        match standing {
            Standing::Unknown(_) => {
                let fault = self.held().fault.clone();
                Err(LedgerFault::Keychain(fault.unwrap_or(KeychainFault::Slow)))
            }
            Standing::ForThisRun => self.remember(changes),
            Standing::Verified => self.store_rows(writer, changes).await,
            Standing::Fresh | Standing::Broken(_) => {
                let begun = matches!(standing, Standing::Broken(_));
                self.begin_set(writer, begun).await?;
                if *self.standing.borrow() == Standing::ForThisRun {
                    return self.remember(changes);
                }
                let marked = self.tray.borrow().unwrap_or(false).then(tray_mark);
                let assumed = begun.then(|| strict(self.assumed()));
                let marked = marked.into_iter().chain(assumed.into_iter().flatten());
                self.store_rows(writer, marked.chain(changes).collect()).await?;
                self.stand(Standing::Verified);
                Ok(())
            }
        }
    }

    /// In memory only.
    fn remember(&self, changes: Vec<Change>) -> Result<(), LedgerFault> {
        // Its codes go nowhere.
        let key = TrustKey::draw().map_err(|error| not_saved(&error))?;
        let mut held = self.held_mut();
        let delta = held.rows.delta(&key, changes);
        held.rows.apply(delta);
        Ok(())
    }

    /// Has a key for a set without rows, where there is none yet. It is kept before anything is written under it.
    async fn begin_set(self: &Arc<Self>, writer: &mut Writer, replaces: bool) -> Result<(), LedgerFault> {
        if writer.record.is_some() {
            return Ok(());
        }
        let record = KeyRecord {
            key: Arc::new(TrustKey::draw().map_err(|error| not_saved(&error))?),
            // In place of rows that were lost, a key without rows is no fresh one, should it come to that.
            generation: u64::from(replaces),
            tray: self.tray.borrow().unwrap_or(false),
        };
        let place = self.held().place;
        match place {
            Place::Keychain => {
                let kept = self.keychain.write(&Account::Trust, record.to_secret()).await;
                kept.map_err(LedgerFault::Keychain)?;
            }
            Place::File => {
                let (path, record) = (self.key_file.clone(), record.clone());
                let kept = tokio::task::spawn_blocking(move || key::write_file(&path, &record)).await;
                kept.map_err(|error| not_saved(&error))?.map_err(|error| {
                    LedgerFault::NotSaved(format!(
                        "{} cannot be written: {error}. Check that the disk has room and that the folder is yours.",
                        self.key_file.display()
                    ))
                })?;
            }
        }
        self.held_mut().rows = RowSet::empty(record.generation);
        writer.record = Some(record);
        Ok(())
    }

    async fn store_rows(self: &Arc<Self>, writer: &mut Writer, changes: Vec<Change>) -> Result<(), LedgerFault> {
        let Some(record) = &mut writer.record else {
            return Err(LedgerFault::NotSaved(
                "There is no key to save decisions with.".to_owned(),
            ));
        };
        let (ledger, key) = (self.clone(), record.key.clone());
        let storing = move || {
            let (before, delta) = {
                let held = ledger.held();
                (held.rows.head(), held.rows.delta(&key, changes))
            };
            if before.is_some() && delta.changes_nothing() {
                return Ok(None);
            }
            let whole = || ledger.held().rows.all().cloned().collect();
            ledger.store.change_trust(before.as_ref(), &delta, &whole)?;
            let generation = delta.generation;
            ledger.held_mut().rows.apply(delta);
            Ok::<_, crate::store::StoreError>(Some(generation))
        };
        let stored = tokio::task::spawn_blocking(storing).await;
        let stored = stored.map_err(|error| not_saved(&error))?;
        let Some(generation) = stored.map_err(|error| LedgerFault::NotSaved(error.to_string()))? else {
            return Ok(());
        };
        record.generation = generation;
        let place = self.held().place;
        self.count(place, record.clone()).await;
        Ok(())
    }

    /// Counts the generation beside the key; where that fails, the next start finds rows that are ahead.
    async fn count(&self, place: Place, record: KeyRecord) {
        match place {
            Place::Keychain => self.counter.count(record),
            Place::File => {
                let path = self.key_file.clone();
                let counted = tokio::task::spawn_blocking(move || key::write_file(&path, &record)).await;
                match counted {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::warn!(%error, "the generation of the trust rows could not be counted"),
                    Err(error) => tracing::error!(%error, "counting the generation ended abnormally"),
                }
            }
        }
    }

    /// What the person chose for this run stays.
    fn stand(&self, standing: Standing) {
        self.standing.send_if_modified(|now| {
            let changes = *now != Standing::ForThisRun && *now != standing;
            if changes {
                *now = standing;
            }
            changes
        });
    }

    fn held(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn held_mut(&self) -> RwLockWriteGuard<'_, Held> {
        self.held.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The row that says: a tray app used this home.
fn tray_mark() -> Change {
    setting(TRAY_MARK, "true")
}

/// What a set begins with whose rows were lost: what the person had said of this is not known, so it is asked about, programs
/// need a token, and nothing is allowed anew by itself.
fn strict(assumed: Assumed) -> Vec<Change> {
    let mut changes = vec![
        setting(WALK_IN, "\"ask\""),
        setting(FILES_CHOICE, "true"),
        setting(API_MODE, "\"token\""),
        setting(API_MODE_ASSUMED, "true"),
    ];
    changes.extend(assumed.paused.then(|| setting(PAUSED, "true")));
    changes
}

fn setting(key: &str, body: &str) -> Change {
    Change::Put(Row {
        kind: RowKind::Setting,
        key: key.to_owned(),
        body: body.to_owned(),
    })
}

fn not_saved(error: &dyn std::fmt::Display) -> LedgerFault {
    LedgerFault::NotSaved(format!("The decision could not be saved: {error}."))
}

fn sentence(distrust: Distrust) -> &'static str {
    match distrust {
        Distrust::Tampered => {
            "What you had allowed was changed outside Neuron Connect, in connect/state.db. It no longer counts, and you are \
             asked again."
        }
        Distrust::Deleted => {
            "What you had allowed is gone from connect/state.db. Nothing is allowed until you are asked again."
        }
        Distrust::RolledBack => {
            "connect/state.db is an older copy. What it says that you allowed does not count, and you are asked again."
        }
        Distrust::KeyMissing => {
            "What you had allowed cannot be checked: its key is gone. It does not count, and you are asked again."
        }
        Distrust::Unreadable => {
            "What you had allowed cannot be read from connect/state.db. It does not count, and you are asked again."
        }
    }
}

#[cfg(test)]
mod tests;
