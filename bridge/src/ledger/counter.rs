//! Counts the generation of the rows in the keychain, after they were stored: the last one only, and as soon as the
//! keychain can be had. Nobody waits for it.

use std::time::Duration;

use tokio::sync::watch;

use super::key::KeyRecord;
use crate::{
    secrets::{Account, Keychain},
    snapshot::KeychainState,
};

/// A count that failed is tried again after this, should the keychain have come back without a word.
const COUNT_AGAIN: Duration = Duration::from_secs(60);
/// Whoever stops waits this long for the last count.
const COUNTED_WITHIN: Duration = Duration::from_secs(1);

pub(super) struct Counter {
    wanted: watch::Sender<Option<KeyRecord>>,
    /// The last generation that was counted.
    counted: watch::Receiver<u64>,
}

impl Counter {
    /// Runs until it is dropped.
    pub(super) fn start(keychain: Keychain) -> Self {
        let (wanted, orders) = watch::channel(None);
        let (done, counted) = watch::channel(0);
        tokio::spawn(run(keychain, orders, done));
        Self { wanted, counted }
    }

    /// In place of an earlier one that was not counted yet.
    pub(super) fn count(&self, record: KeyRecord) {
        self.wanted.send_replace(Some(record));
    }

    /// Until everything is counted, or a moment has passed.
    pub(super) async fn settled(&self) {
        let Some(generation) = self.wanted.borrow().as_ref().map(|record| record.generation) else {
            return;
        };
        let mut counted = self.counted.clone();
        // Where it does not come to that, the next start finds rows that are ahead.
        let _ = tokio::time::timeout(COUNTED_WITHIN, counted.wait_for(|counted| *counted >= generation)).await;
    }
}

async fn run(keychain: Keychain, mut orders: watch::Receiver<Option<KeyRecord>>, done: watch::Sender<u64>) {
    while orders.changed().await.is_ok() {
        loop {
            let Some(record) = orders.borrow_and_update().clone() else {
                break;
            };
            let mut views = keychain.state();
            views.mark_unchanged();
            match keychain.write(&Account::Trust, record.to_secret()).await {
                Ok(()) => {
                    done.send_replace(record.generation);
                    break;
                }
                Err(fault) => {
                    tracing::debug!(reason = %fault.sentence(), "the generation of the trust rows is counted later");
                }
            }
            let is_ready = async {
                while views.changed().await.is_ok() {
                    if views.borrow_and_update().state == KeychainState::Ready {
                        return;
                    }
                }
                std::future::pending().await
            };
            tokio::select! {
                () = is_ready => {}
                () = tokio::time::sleep(COUNT_AGAIN) => {}
                more = orders.changed() => if more.is_err() { return },
            }
        }
    }
}
