//! How a ledger comes to know its rows: which key counts, and whether the rows verify under it; and that again, while
//! the keychain cannot be had, whenever it may.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::sync::OwnedMutexGuard;

use super::{
    Host, Ledger, Standing, Writer,
    key::{Choice, Circumstances, Found, Place, choose},
    tray_mark,
};
use crate::{
    secrets::{Account, Keychain, KeychainFault},
    snapshot::KeychainState,
    trust::rows::{Distrust, RowSet, Stored},
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
    let stored = read_stored(ledger);
    let marked = stored.as_ref().is_some_and(Stored::has_tray_mark);
    if ledger.host == Host::Tray || marked {
        ledger.tray.send_replace(Some(true));
    }
    let Ok(mut writer) = ledger.writer.clone().try_lock_owned() else {
        return;
    };
    // The usual way of a bridge without a window: its own file, of which the keychain can only say that it does not count.
    if ledger.host == Host::Headless && !marked {
        let file = Found::in_file(&ledger.key_file);
        if let (Found::Record(record), Some(stored)) = (&file, &stored)
            && RowSet::verify(&record.key, record.generation, stored.clone()).is_ok()
        {
            let stored = Some(stored.clone());
            settle(ledger, &mut writer, Place::File, file, stored);
        }
    }
    tokio::spawn(open(Arc::downgrade(ledger), writer, stored));
}

async fn open(ledger: Weak<Ledger>, mut writer: OwnedMutexGuard<Writer>, mut stored: Option<Stored>) {
    loop {
        let Some(there) = ledger.upgrade() else { return };
        let mut views = there.keychain.state();
        views.mark_unchanged();
        let answer = ask(&there.keychain).await;
        let tray = tell_of_tray(&there, &answer);
        let choice = choose(Circumstances {
            host: there.host,
            kept_in: there.kept_in,
            keychain: answer.found,
            file: in_file(&there).await,
            tray,
        });
        match choice {
            Choice::At(place, found) => {
                // A file that settled it before the keychain was asked.
                let is_known = writer.record.is_some() && there.held().place == place;
                if !is_known {
                    settle(&there, &mut writer, place, found, stored);
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
        let reading = move || read_stored(&there);
        stored = tokio::task::spawn_blocking(reading).await.ok().flatten();
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

/// Whether anything says that a tray app used this home.
fn tell_of_tray(ledger: &Ledger, answer: &Answer) -> bool {
    let says = match &answer.found {
        Ok(Found::Record(record)) => record.tray,
        Ok(Found::Garbled) => true,
        Ok(Found::Nothing) => false,
        Err(_) => answer.is_locked_there,
    };
    let known = ledger.tray.borrow().unwrap_or(false);
    ledger.tray.send_replace(Some(known || says));
    known || says
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

/// The rows as they are under the key that counts.
fn settle(ledger: &Ledger, writer: &mut Writer, place: Place, found: Found, stored: Option<Stored>) {
    let verified = match (&found, stored) {
        (_, None) | (Found::Garbled, Some(_)) => Err(Distrust::Unreadable),
        (Found::Nothing, Some(stored)) if stored.is_empty() => Ok(RowSet::default()),
        (Found::Nothing, Some(_)) => Err(Distrust::KeyMissing),
        (Found::Record(record), Some(stored)) => RowSet::verify(&record.key, record.generation, stored),
    };
    writer.record = None;
    ledger.held_mut().place = place;
    let standing = match verified {
        Ok(rows) => {
            let standing = match rows.head() {
                Some(_) => Standing::Verified,
                None => Standing::Fresh,
            };
            if let Found::Record(mut record) = found {
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
