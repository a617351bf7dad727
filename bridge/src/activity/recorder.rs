//! The queue between those who record and the thread that writes.

use std::{
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

use super::{
    Entry,
    shape::{is_small, shape},
    writer,
};
use crate::{snapshot::Arguments, store::Store};

/// Entries that may wait for the writing thread; later ones are dropped and counted.
pub(super) const QUEUED_ENTRIES: usize = 8192;
/// Bytes that they may take together, with arguments that are kept in full.
pub(super) const QUEUED_BYTES: usize = 16 * 1024 * 1024;
/// As many are written at once; the thread is woken when they are there.
pub(super) const BATCH: usize = 256;

/// How much is kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    pub arguments: KeepArguments,
    /// Days after which an entry goes.
    pub days: u32,
}

impl Default for Keep {
    fn default() -> Self {
        Self {
            arguments: KeepArguments::Shape,
            days: 30,
        }
    }
}

/// What is kept of arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepArguments {
    /// Names, types and sizes.
    Shape,
    /// All, without secrets; of large ones the shape.
    Full,
}

/// Takes what happened. Cheap to clone; what the last clone leaves behind is still written, and then the thread ends.
#[derive(Clone)]
pub struct Recorder(Arc<Handle>);

struct Handle(Arc<Queue>);

/// What the two sides share.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// The writing thread waits here.
    wake: Condvar,
    /// Those who want everything written wait here.
    written: Condvar,
    full_arguments: AtomicBool,
    days: AtomicU32,
}

#[derive(Default)]
pub(super) struct State {
    pub waiting: Vec<Entry>,
    bytes: usize,
    /// Entries that found no room, told with the next batch.
    dropped: u64,
    /// Batches that were begun, and those that are done: what waits now is in the next one.
    begun: u64,
    done: u64,
    /// Somebody waits for what is there.
    hurry: bool,
    closing: bool,
    /// The thread is gone.
    over: bool,
}

/// What is written at once.
pub(super) struct Batch {
    pub entries: Vec<Entry>,
    pub dropped: u64,
    pub keep_days: u32,
}

impl Recorder {
    /// Starts the writing thread. It tells `told` the newest entry's id after each batch.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(store: Arc<Store>, keep: Keep, told: impl Fn(u64) + Send + 'static) -> io::Result<Self> {
        let (recorder, queue) = Self::idle(keep);
        thread::Builder::new()
            .name("activity".to_owned())
            .spawn(move || writer::run(&queue, &store, &told))?;
        Ok(recorder)
    }

    /// Without a thread: what is recorded waits.
    pub(crate) fn idle(keep: Keep) -> (Self, Arc<Queue>) {
        let queue = Arc::new(Queue::default());
        let recorder = Self(Arc::new(Handle(queue.clone())));
        recorder.keep(keep);
        (recorder, queue)
    }

    /// Holds from the next entry on.
    pub fn keep(&self, keep: Keep) {
        let queue = self.queue();
        let full = keep.arguments == KeepArguments::Full;
        queue.full_arguments.store(full, Ordering::Relaxed);
        queue.days.store(keep.days, Ordering::Relaxed);
    }

    /// Takes an entry, at once. Where too many wait it is counted instead.
    pub fn record(&self, entry: Entry) {
        let weight = entry.weight();
        let queue = self.queue();
        let mut state = queue.lock();
        let is_full = state.waiting.len() >= QUEUED_ENTRIES || state.bytes + weight > QUEUED_BYTES;
        if is_full || state.over {
            state.dropped += 1;
            return;
        }
        state.waiting.push(entry);
        state.bytes += weight;
        let waiting = state.waiting.len();
        drop(state);
        if waiting == 1 || waiting == BATCH {
            queue.wake.notify_one();
        }
    }

    /// What is to be kept of these arguments, by the present setting.
    pub fn arguments(&self, given: &Map<String, Value>) -> Arguments {
        if self.queue().full_arguments.load(Ordering::Relaxed) && is_small(given) {
            Arguments::Full(Value::Object(given.clone()))
        } else {
            Arguments::Shape(shape(given))
        }
    }

    /// Waits until everything recorded so far is written; whether it is. Blocks.
    pub fn flush(&self, within: Duration) -> bool {
        let queue = self.queue();
        let until = Instant::now() + within;
        let mut state = queue.lock();
        let wanted = state.begun + u64::from(!state.waiting.is_empty());
        state.hurry = true;
        queue.wake.notify_one();
        while state.done < wanted && !state.over {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = match queue.written.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        state.done >= wanted
    }

    /// Writes what waits and ends the thread; whether it ended in time. What is recorded later is lost. Blocks.
    pub fn close(&self, within: Duration) -> bool {
        self.queue().lock().closing = true;
        self.flush(within)
    }

    fn queue(&self) -> &Queue {
        &self.0.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().closing = true;
        self.0.wake.notify_one();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>, time: Duration) -> MutexGuard<'s, State> {
        match self.wake.wait_timeout(state, time) {
            Ok((state, _)) => state,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    /// The next batch: once there is something, and then as soon as it is large enough, `gather` is over, or somebody waits
    /// for it. An empty one after `idle`; `None` at the end.
    pub(super) fn next(&self, gather: Duration, idle: Duration) -> Option<Batch> {
        let mut state = self.lock();
        let until = Instant::now() + idle;
        while state.waiting.is_empty() && !state.closing {
            state.hurry = false;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.wait(state, left);
        }
        if state.waiting.is_empty() && state.closing {
            return None;
        }
        let until = Instant::now() + gather;
        while !state.waiting.is_empty() && state.waiting.len() < BATCH && !state.hurry && !state.closing {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.wait(state, left);
        }
        state.begun += 1;
        state.hurry = false;
        state.bytes = 0;
        Some(Batch {
            entries: std::mem::take(&mut state.waiting),
            dropped: std::mem::take(&mut state.dropped),
            keep_days: self.days.load(Ordering::Relaxed),
        })
    }

    /// The batch that was given last is written, but for `lost` of its entries.
    pub(super) fn done(&self, lost: u64) {
        let mut state = self.lock();
        state.done = state.begun;
        state.dropped += lost;
        drop(state);
        self.written.notify_all();
    }

    /// Nothing is written any more.
    pub(super) fn over(&self) {
        self.lock().over = true;
        self.written.notify_all();
    }
}

#[cfg(test)]
mod tests;
