//! The token of one connector in memory, and whose turn it is to renew it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
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

#[derive(Default)]
pub(super) struct Slot {
    /// Held by who renews.
    pub(super) turn: Arc<tokio::sync::Mutex<Turn>>,
    held: Mutex<Option<Arc<Held>>>,
    attempts: AtomicU64,
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
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        held.filter(|held| held.grant.is_for(target))
    }

    pub(super) fn hold(&self, held: Option<Held>) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held.map(Arc::new);
    }

    /// Holds this where nothing is held for the connector's present address: what is held is never older.
    pub(super) fn hold_first(&self, first: Held, target: &Target) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.as_ref().is_none_or(|held| !held.grant.is_for(target)) {
            *held = Some(Arc::new(first));
        }
    }

    /// The server accepted this token: what it turned away before says nothing against it any more.
    pub(super) fn accepted(&self, token: &SecretString) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(present) = held
            .as_ref()
            .filter(|held| held.reason == Reason::Refused && held.is(token))
        {
            *held = Some(Arc::new(Held {
                grant: present.grant.clone(),
                renew_at: present.renew_at,
                reason: Reason::Plain,
                kept: present.kept,
            }));
        }
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
