//! The token of one connector in memory, whose turn it is to renew it, and what has been ended meanwhile.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use secrecy::{ExposeSecret as _, SecretString};

use super::{fault::AuthFault, record::Grant, target::Target};

/// A token is renewed this long before its end, or a tenth of its life where that is less, and up to as long again
/// earlier, by chance, so that not all do so at once.
const AHEAD: Duration = Duration::from_secs(60);
/// But no later, nor than a quarter of a very short life: servers count in whole seconds, and some forget the whole sign-in
/// when they see a token that is over.
const LEAST_AHEAD: Duration = Duration::from_secs(2);

/// Until whoever renews the token, or replaces it, is done.
pub(super) const TURN_WAIT: Duration = Duration::from_secs(15);

/// There for as long as the program runs, so that what began before a sign-out or a removal finds that it came too late.
#[derive(Default)]
pub(super) struct Slot {
    state: Mutex<State>,
    attempts: AtomicU64,
}

#[derive(Default)]
struct State {
    held: Option<Arc<Held>>,
    life: Life,
    entry: Entry,
    standing: Standing,
    /// Where the connector is now, as far as anybody asked; see [`Target::canonical`].
    url: Option<String>,
    /// Of this life: nobody waits for what an earlier one still does.
    turn: Arc<tokio::sync::Mutex<Turn>>,
}

/// Which of a connector's lives something belongs to: a sign-out, a removal, another address by click begins the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Life(u64);

/// Which of a connector's sign-ins something belongs to: a newer one, or giving it up, begins the next, and so does the
/// next life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Entry(u64);

/// Whether the person signed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Standing {
    /// What the keychain says counts.
    #[default]
    Kept,
    /// They did, whatever the keychain still says.
    SignedOut,
}

/// How the last renewal ended.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) fault: Option<AuthFault>,
}

/// A grant in memory.
pub(super) struct Held {
    pub(super) grant: Grant,
    /// Unix milliseconds; `None`: not before the server turns it away.
    renew_at: Option<u64>,
    pub(super) reason: Reason,
    pub(super) kept: Kept,
}

/// Why this token was got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Plain,
    /// The server turned the one before it away.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    InKeychain,
    /// The keychain did not take it yet; the one that it holds is used up.
    NotYet,
}

impl Held {
    pub(super) fn new(grant: Grant, reason: Reason, kept: Kept) -> Self {
        let renew_at = grant.expires_at.map(|expires_at| {
            let life = expires_at.saturating_sub(grant.issued_at);
            let ahead = (life / 10).max(millis(LEAST_AHEAD).min(life / 4)).min(millis(AHEAD));
            expires_at.saturating_sub(ahead + chance(ahead))
        });
        Self {
            grant,
            renew_at,
            reason,
            kept,
        }
    }

    /// The token, where it need not be renewed yet.
    pub(super) fn fresh(&self, now: u64) -> Option<SecretString> {
        let is_fresh = self.kept == Kept::InKeychain && self.renew_at.is_none_or(|renew_at| now < renew_at);
        self.grant.access.clone().filter(|_| is_fresh)
    }

    /// The token, where it is not over.
    pub(super) fn good(&self, now: u64) -> Option<SecretString> {
        let is_good = self.kept == Kept::InKeychain && self.grant.expires_at.is_none_or(|end| now < end);
        self.grant.access.clone().filter(|_| is_good)
    }

    pub(super) fn is(&self, token: &SecretString) -> bool {
        let access = self.grant.access.as_ref();
        access.is_some_and(|access| access.expose_secret() == token.expose_secret())
    }
}

impl Slot {
    /// What is held for this connector at its present address.
    pub(super) fn held(&self, target: &Target) -> Option<Arc<Held>> {
        let held = self.lock().held.clone();
        held.filter(|held| held.grant.is_for(target))
    }

    /// Holds this, if it is still of the present life.
    pub(super) fn hold(&self, life: Life, held: Option<Held>) -> bool {
        let mut state = self.lock();
        if state.life != life {
            return false;
        }
        if held.is_some() {
            state.standing = Standing::Kept;
        }
        state.held = held.map(Arc::new);
        true
    }

    /// Holds what was read for the connector's present address, where nothing is held for it: what is held is never
    /// older.
    pub(super) fn hold_first(&self, life: Life, first: Held, target: &Target) {
        let mut state = self.lock();
        let is_present = state.life == life && state.url.as_ref() == Some(&target.canonical());
        if is_present && state.held.as_ref().is_none_or(|held| !held.grant.is_for(target)) {
            state.held = Some(Arc::new(first));
        }
    }

    /// The connector is there now.
    pub(super) fn is_at(&self, target: &Target) -> Life {
        let mut state = self.lock();
        state.url = Some(target.canonical());
        state.life
    }

    pub(super) fn life(&self) -> Life {
        self.lock().life
    }

    pub(super) fn standing(&self) -> Standing {
        self.lock().standing
    }

    pub(super) fn stand(&self, standing: Standing) {
        self.lock().standing = standing;
    }

    /// Whether what a renewal for this address brings may still be kept. For an earlier address it may, unless there is
    /// something newer.
    pub(super) fn takes(&self, life: Life, url: &str) -> bool {
        let state = self.lock();
        let is_newest = || state.held.as_ref().is_none_or(|held| held.grant.url == url);
        state.life == life && (state.url.as_deref() == Some(url) || is_newest())
    }

    pub(super) fn entry(&self) -> Entry {
        self.lock().entry
    }

    /// A sign-in begins, or the one under way is given up.
    pub(super) fn next_entry(&self) {
        self.lock().entry.0 += 1;
    }

    /// The life in which this sign-in is still wanted.
    pub(super) fn wants(&self, entry: Entry) -> Option<Life> {
        let state = self.lock();
        (state.entry == entry).then_some(state.life)
    }

    /// From now on nothing that began earlier is kept; what was held.
    pub(super) fn end(&self, standing: Standing) -> Option<Arc<Held>> {
        let mut state = self.lock();
        state.life.0 += 1;
        state.entry.0 += 1;
        state.standing = standing;
        state.url = None;
        state.turn = Arc::default();
        state.held.take()
    }

    /// Held by who renews.
    pub(super) fn turn(&self) -> Arc<tokio::sync::Mutex<Turn>> {
        self.lock().turn.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server accepted this token: what it turned away before says nothing against it any more.
    pub(super) fn accepted(&self, token: &SecretString) {
        let mut state = self.lock();
        let held = state.held.take();
        state.held = held.map(|held| {
            if held.reason != Reason::Refused || !held.is(token) {
                return held;
            }
            Arc::new(Held {
                grant: held.grant.clone(),
                renew_at: held.renew_at,
                reason: Reason::Plain,
                kept: held.kept,
            })
        });
    }

    /// How many renewals have ended.
    pub(super) fn attempts(&self) -> u64 {
        self.attempts.load(Ordering::Acquire)
    }

    pub(super) fn count_attempt(&self) {
        self.attempts.fetch_add(1, Ordering::AcqRel);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A number up to this one.
fn chance(most: u64) -> u64 {
    // Without chance all renew at the same moment, which works too.
    getrandom::u64().unwrap_or_default() % (most + 1)
}
