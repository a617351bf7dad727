//! The one thread that writes entries, and takes away old ones.

use std::{sync::Arc, time::Duration};

use super::{
    Entry, WhoRecord,
    recorder::{BATCH, Queue},
    redacted,
};
use crate::{
    clock::unix_ms,
    snapshot::{ActivityCaller, ActivityRecord, ActivityWhat},
    store::{ActivityBounds, Store},
};

/// An entry waits this long for others, so that they are written together.
const GATHER: Duration = Duration::from_millis(250);
/// Entries that are kept; the oldest goes.
pub(super) const MOST_KEPT: u64 = 100_000;
/// A quiet bridge looks this often for entries that are too old.
const LOOK_FOR_OLD: Duration = Duration::from_secs(3600);

const DAY_MS: u64 = 24 * 3600 * 1000;

pub(super) fn run(queue: &Arc<Queue>, store: &Store, told: &dyn Fn(u64)) {
    let _over = Over(queue);
    let mut is_failing = false;
    while let Some(batch) = queue.next(GATHER, LOOK_FOR_OLD) {
        let mut lost = 0;
        for records in records(batch.entries, batch.dropped).chunks(BATCH) {
            let bounds = ActivityBounds {
                since: unix_ms().saturating_sub(u64::from(batch.keep_days) * DAY_MS),
                most: MOST_KEPT,
            };
            match store.append_activity(records, bounds) {
                Ok(newest) => {
                    is_failing = false;
                    told(newest);
                }
                Err(error) => {
                    lost += records.iter().map(counted).sum::<u64>();
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(%error, "what happens is not being kept");
                    }
                }
            }
        }
        queue.done(lost);
    }
}

/// Said also where the thread ends by a panic, so that nobody waits for it.
struct Over<'q>(&'q Queue);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over();
    }
}

fn counted(record: &ActivityRecord) -> u64 {
    match record.what {
        ActivityWhat::Lost { entries } => entries,
        ActivityWhat::Call { .. }
        | ActivityWhat::Read { .. }
        | ActivityWhat::Prompt { .. }
        | ActivityWhat::Question { .. }
        | ActivityWhat::SignIn { .. }
        | ActivityWhat::SignOut { .. }
        | ActivityWhat::Review { .. }
        | ActivityWhat::Change { .. } => 1,
    }
}

fn records(entries: Vec<Entry>, dropped: u64) -> Vec<ActivityRecord> {
    let lost = (dropped > 0).then(|| {
        let who = WhoRecord::plain(ActivityCaller::Itself);
        Entry::new(who, ActivityWhat::Lost { entries: dropped })
    });
    entries.into_iter().chain(lost).map(redacted::record).collect()
}
