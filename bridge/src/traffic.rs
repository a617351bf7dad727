//! How many calls run at once, and who is next.
//!
//! A call holds a [`Place`] from before it is decided until it is answered, except while it waits for the person. Where
//! no place is free it waits its turn: callers take turns, so nobody's many calls hold up another's few. Knows nothing
//! of what is called.

mod book;
mod source;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::oneshot;

use self::book::{Book, Entry, Ticket};
pub use self::source::Source;
use crate::{
    caller::ProgramCell,
    error::{ApiError, Code},
};

/// Calls of one caller that run at once.
const MOST_OF_ONE: usize = 64;

/// Calls of all callers that run at once.
const MOST: usize = 256;

/// Calls that wait for a place.
const QUEUED_CALLS: usize = 256;

/// How long a call waits for a place.
const PLACE_WITHIN: Duration = Duration::from_secs(10);

/// When a call that got no place is worth trying again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// Calls of walk-ins whose program was not looked for yet, counted together. Only beyond them is it looked for first,
/// because that takes milliseconds.
const MOST_UNRESOLVED: usize = 32;

/// The places for calls. Clones share them.
#[derive(Clone)]
pub struct Traffic(Arc<Mutex<State>>);

struct State {
    book: Book<Source>,
    /// Told when their turn has come; dropped when they have to make way.
    waiting: HashMap<Ticket, oneshot::Sender<()>>,
    next: u64,
}

/// A running call's place, free again when this is dropped.
pub struct Place {
    traffic: Traffic,
    source: Source,
    counts: AtomicBool,
}

impl Default for Traffic {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State {
            book: Book::new(MOST_OF_ONE, MOST, QUEUED_CALLS),
            waiting: HashMap::new(),
            next: 0,
        })))
    }
}

impl Traffic {
    /// Whom a walk-in counts as. Looks for its program only if many calls run whose program is not known yet.
    pub async fn walk_in(&self, program: &ProgramCell) -> Source {
        match program.known() {
            Some(found) => Source::of_program(found.as_deref()).group(),
            None if self.lock().book.running_of(&Source::Unresolved) < MOST_UNRESOLVED => Source::Unresolved,
            None => Source::of_program(program.get().await.as_deref()).group(),
        }
    }

    /// Waits for a place. Dropping the future gives the turn up.
    ///
    /// # Errors
    /// `rate_limited` when too many wait already or none came free in time.
    pub async fn enter(&self, source: Source) -> Result<Place, ApiError> {
        let waiting = {
            let mut state = self.lock();
            let ticket = Ticket(state.next);
            state.next += 1;
            match state.book.enter(&source, ticket) {
                Entry::Now => None,
                Entry::Refused => return Err(too_many()),
                Entry::Waits { makes_way } => {
                    if let Some(makes_way) = makes_way {
                        state.waiting.remove(&makes_way);
                    }
                    let (turn, told) = oneshot::channel();
                    state.waiting.insert(ticket, turn);
                    Some(Waiting {
                        traffic: self.clone(),
                        source: source.clone(),
                        ticket,
                        told: Some(told),
                    })
                }
            }
        };
        if let Some(waiting) = waiting {
            waiting.turn().await?;
        }
        Ok(Place {
            traffic: self.clone(),
            source,
            counts: AtomicBool::new(true),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, source: &Source) {
        self.lock().leave(source);
    }
}

impl State {
    fn leave(&mut self, source: &Source) {
        self.book.leave(source);
        while let Some(ticket) = self.book.next() {
            if let Some(turn) = self.waiting.remove(&ticket) {
                // Its waiter takes the lock before it goes, so it is there.
                let _ = turn.send(());
            }
        }
    }
}

impl fmt::Debug for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Traffic")
    }
}

impl Place {
    /// The call waits for the person now: others may run meanwhile.
    pub fn pause(&self) {
        if self.counts.swap(false, Ordering::Relaxed) {
            self.traffic.leave(&self.source);
        }
    }

    /// The person has answered: the call goes on at once, over the limits if need be, because a yes must not be lost to
    /// a full queue.
    pub fn resume(&self) {
        if !self.counts.swap(true, Ordering::Relaxed) {
            self.traffic.lock().book.force(&self.source);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.pause();
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// A call that waits for its turn.
struct Waiting {
    traffic: Traffic,
    source: Source,
    ticket: Ticket,
    /// Taken once the turn has come.
    told: Option<oneshot::Receiver<()>>,
}

impl Waiting {
    async fn turn(mut self) -> Result<(), ApiError> {
        let Some(told) = &mut self.told else { return Ok(()) };
        match tokio::time::timeout(PLACE_WITHIN, told).await {
            Ok(Ok(())) => {
                self.told = None;
                Ok(())
            }
            Ok(Err(_)) | Err(_) => Err(too_many()),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(told) = &mut self.told else { return };
        let mut state = self.traffic.lock();
        state.waiting.remove(&self.ticket);
        let was_told = told.try_recv().is_ok();
        if was_told {
            state.leave(&self.source);
        } else {
            state.book.give_up(&self.source, self.ticket);
        }
    }
}

fn too_many() -> ApiError {
    ApiError::new(
        Code::RateLimited,
        "Too many calls are running in Neuron Connect at once. Try again in a moment.",
    )
    .with_retry_after(TRY_AGAIN)
}

#[cfg(test)]
mod tests;
