//! How a ledger comes to know its rows: which key counts, and whether the rows verify under it; and that again, while
//! the keychain cannot be had, whenever it may.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::sync::OwnedMutexGuard;

use super::{
    Assumed, Host, Ledger, Standing, Writer,
    key::{Choice, Circumstances, Found, KeyRecord, Place, choose},
    tray_mark,
};
use crate::{
    secrets::{Account, Keychain, KeychainFault},
    snapshot::KeychainState,
    trust::{
        API_MODE, PAUSED,
        rows::{Distrust, RowKind, RowSet, Stored},
    },
};

/// The keychain is asked again after this, should it have come back without a word.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// What the keychain said.
struct Answer {
    found: Result<Found, KeychainFault>,
    /// There is something, and it is locked.
    is_locked_there: bool,
}

/// Decides what can be decided at once, and goes on by itself.
pub(super) fn begin(ledger: &Arc<Ledger>) {
    let Ok(mut writer) = ledger.writer.clone().try_lock_owned() else {
        return;
    };
    ledger.held_mut().unverified = said(ledger);
    match ledger.host {
        Host::Tray => {
            ledger.tray.send_replace(Some(true));
        }
        Host::Headless => begin_with_file(ledger, &mut writer),
    }
    tokio::spawn(open(Arc::downgrade(ledger), writer));
}

/// What the stored rows say, true or not. Blocks on the disk for a moment.
fn said(ledger: &Ledger) -> Assumed {
    let of = |key| {
        let read = ledger.store.trust_row(RowKind::Setting.word(), key);
        read.inspect_err(|error| tracing::error!(%error, "the trust rows cannot be read"))
    };
    Assumed {
        // What cannot be read may have said so.
        token: of(API_MODE).map_or(true, |body| body.is_some_and(|body| body != "\"open\"")),
        paused: of(PAUSED).is_ok_and(|body| body.as_deref() == Some("true")),
    }
}

/// The usual way of a bridge without a window: its own file, of which the keychain can only say that it does not count.
fn begin_with_file(ledger: &Ledger, writer: &mut Writer) {
    let Some(stored) = read_stored(ledger) else { return };
    if stored.has_tray_mark() {
        ledger.tray.send_replace(Some(true));
        return;
    }
    if let Found::Record(record) = Found::in_file(&ledger.key_file)
        && let Ok(rows) = RowSet::verify(&record.key, record.generation, stored)
    {
        settle(ledger, writer, Place::File, Some(record), Ok(rows));
    }
}

async fn open(ledger: Weak<Ledger>, mut writer: OwnedMutexGuard<Writer>) {
    loop {
        let Some(there) = ledger.upgrade() else { return };
        let mut views = there.keychain.state();
        views.mark_unchanged();
        let answer = ask(&there.keychain).await;
        let tray = tell_of_tray(&there, &answer).await;
        if answer.is_locked_there && !has_rows(&there, |_| true).await {
            // There is a key of rows that are gone.
            there.held_mut().unverified.token = true;
        }
        // Nothing else hangs on them, and reading them all takes its time.
        let is_missing = matches!(answer.found, Err(KeychainFault::Absent));
        let rows = is_missing && has_rows(&there, |_| true).await;
        let choice = choose(Circumstances {
            host: there.host,
            kept_in: there.kept_in,
            keychain: answer.found,
            file: in_file(&there).await,
            tray,
            rows,
        });
        match choice {
            Choice::At(place, found) => {
                // A file that settled it before the keychain was asked.
                let is_known = writer.record.is_some() && there.held().place == place;
                if !is_known {
                    let (record, verified) = verify(&there, found).await;
                    settle(&there, &mut writer, place, record, verified);
                }
                mark(&there, &mut writer).await;
                return;
            }
            Choice::Wait(fault) => {
                let standing = Standing::Unknown(fault.state());
                {
                    let mut held = there.held_mut();
                    held.fault = Some(fault);
                    held.rows = RowSet::default();
                }
                writer.record = None;
                there.stand(standing);
            }
        }
        let lock = there.writer.clone();
        drop((writer, there));
        let is_ready = async {
            // An error means that there is no keychain any more.
            while views.changed().await.is_ok() {
                if views.borrow_and_update().state == KeychainState::Ready {
                    return;
                }
            }
            std::future::pending().await
        };
        // Either way it is looked at again.
        let _ = tokio::time::timeout(LOOK_AGAIN, is_ready).await;
        writer = lock.lock_owned().await;
        let Some(there) = ledger.upgrade() else { return };
        if *there.standing.borrow() == Standing::ForThisRun {
            return;
        }
    }
}

async fn ask(keychain: &Keychain) -> Answer {
    let value = keychain.read(&Account::Trust).await;
    let is_locked = matches!(value, Err(KeychainFault::Locked));
    let is_locked_there = is_locked && keychain.holds(&Account::Trust).await == Ok(true);
    Answer {
        found: value.map(|value| Found::in_keychain(value.as_ref())),
        is_locked_there,
    }
}

/// Whether anything says that a tray app used this home. A locked keychain holds a key of somebody's; where rows of this
/// home lie beside it without a tray app's mark, it is ours.
async fn tell_of_tray(ledger: &Arc<Ledger>, answer: &Answer) -> bool {
    let says = match &answer.found {
        Ok(Found::Record(record)) => record.tray,
        Ok(Found::Garbled) => true,
        Ok(Found::Nothing) => false,
        Err(_) => answer.is_locked_there && !has_rows(ledger, |stored| !stored.has_tray_mark()).await,
    };
    let known = ledger.tray.borrow().unwrap_or(false);
    ledger.tray.send_replace(Some(known || says));
    known || says
}

/// Whether rows are stored, verified or not, of which this holds.
async fn has_rows(ledger: &Arc<Ledger>, holds: fn(&Stored) -> bool) -> bool {
    let ledger = ledger.clone();
    let read = tokio::task::spawn_blocking(move || read_stored(&ledger)).await;
    // What cannot be read says nothing.
    let stored = read.ok().flatten();
    stored.is_some_and(|stored| !stored.is_empty() && holds(&stored))
}

async fn in_file(ledger: &Arc<Ledger>) -> Found {
    if ledger.host == Host::Tray {
        return Found::Nothing;
    }
    let path = ledger.key_file.clone();
    let read = tokio::task::spawn_blocking(move || Found::in_file(&path)).await;
    read.unwrap_or(Found::Garbled)
}

/// What is stored; `None` where it cannot be read. Blocks on the disk.
fn read_stored(ledger: &Ledger) -> Option<Stored> {
    let read = ledger.store.trust_rows();
    read.inspect_err(|error| tracing::error!(%error, "the trust rows cannot be read"))
        .ok()
}

/// The stored rows under what was found as their key.
async fn verify(ledger: &Arc<Ledger>, found: Found) -> (Option<KeyRecord>, Result<RowSet, Distrust>) {
    let ledger = ledger.clone();
    let verifying = move || match (found, read_stored(&ledger)) {
        (_, None) | (Found::Garbled, Some(_)) => (None, Err(Distrust::Unreadable)),
        (Found::Nothing, Some(stored)) if stored.is_empty() => (None, Ok(RowSet::default())),
        (Found::Nothing, Some(_)) => (None, Err(Distrust::KeyMissing)),
        (Found::Record(record), Some(stored)) => {
            let verified = RowSet::verify(&record.key, record.generation, stored);
            (Some(record), verified)
        }
    };
    let verified = tokio::task::spawn_blocking(verifying).await;
    verified.unwrap_or((None, Err(Distrust::Unreadable)))
}

/// From now on the rows stand as they were found.
fn settle(
    ledger: &Ledger,
    writer: &mut Writer,
    place: Place,
    record: Option<KeyRecord>,
    verified: Result<RowSet, Distrust>,
) {
    writer.record = None;
    ledger.held_mut().place = place;
    let standing = match verified {
        Ok(rows) => {
            let standing = match rows.head() {
                Some(_) => Standing::Verified,
                None => Standing::Fresh,
            };
            if let Some(mut record) = record {
                let counted = record.generation;
                record.generation = rows.generation();
                if counted < record.generation && place == Place::Keychain {
                    ledger.counter.count(record.clone());
                }
                writer.record = Some(record);
            }
            let mut held = ledger.held_mut();
            held.rows = rows;
            held.distrust = None;
            standing
        }
        Err(distrust) => {
            tracing::warn!(?distrust, "the trust rows do not verify and count as absent");
            let mut held = ledger.held_mut();
            held.rows = RowSet::default();
            held.distrust = Some(distrust);
            Standing::Broken(distrust)
        }
    };
    ledger.stand(standing);
}

/// A tray app's first start says that this home is its own. Rows that do not verify wait for the person.
async fn mark(ledger: &Arc<Ledger>, writer: &mut Writer) {
    let is_due = ledger.host == Host::Tray && matches!(*ledger.standing.borrow(), Standing::Fresh | Standing::Verified);
    if !is_due {
        return;
    }
    if let Some(record) = &mut writer.record {
        record.tray = true;
    }
    if let Err(fault) = ledger.write_as(writer, vec![tray_mark()]).await {
        tracing::warn!(%fault, "that a tray app uses this home is not noted yet");
    }
}
