//! The requests that a session is busy with, and what belongs to each.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{clock::Clock, progress::Progress};

/// Questions that one request may put to the person, whatever it is answered.
pub(super) const MOST_QUESTIONS: usize = 10;

/// One call, read or prompt that is under way, over all its rounds.
#[derive(Debug)]
pub(super) struct UnderWay {
    /// Label of whose it is.
    pub caller: String,
    pub progress: Progress,
    pub clock: Arc<Clock>,
    /// Cancelled when it is over or its caller gone.
    pub over: CancellationToken,
    questions: AtomicUsize,
}

impl UnderWay {
    /// Counts a question; false when there were too many.
    pub fn may_ask(&self) -> bool {
        self.questions.fetch_add(1, Ordering::Relaxed) < MOST_QUESTIONS
    }
}

/// By the token under which each reports its progress.
#[derive(Debug, Default)]
pub(super) struct Requests {
    by_token: Mutex<HashMap<ProgressToken, Arc<UnderWay>>>,
    /// One of them is over.
    over: Notify,
    begun: AtomicU64,
}

impl Requests {
    /// Whether there are any.
    pub fn any(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Waits until there are none.
    pub async fn none(&self) {
        loop {
            let mut over = pin!(self.over.notified());
            over.as_mut().enable();
            if !self.any() {
                return;
            }
            over.await;
        }
    }

    /// Those there are, each once.
    pub fn all(&self) -> Vec<Arc<UnderWay>> {
        self.lock().values().cloned().collect()
    }

    /// How many there have been, each round counted.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// The upstream reported a step of one of them.
    pub fn report(&self, params: ProgressNotificationParam) {
        if let Some(request) = self.lock().get(&params.progress_token) {
            request.progress.report(params, request.clock.ran());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, Arc<UnderWay>>> {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that belongs to whoever holds this: over when it is dropped.
pub(super) struct Mine {
    pub request: Arc<UnderWay>,
    _over: DropGuard,
}

impl Mine {
    pub fn begin(caller: &str) -> Self {
        let over = CancellationToken::new();
        Self {
            request: Arc::new(UnderWay {
                caller: caller.to_owned(),
                progress: Progress::default(),
                clock: Arc::new(Clock::start()),
                over: over.clone(),
                questions: AtomicUsize::new(0),
            }),
            _over: over.drop_guard(),
        }
    }

    /// Known under the token of the round that was sent now, until what is returned is dropped.
    pub fn listed<'r>(&self, requests: &'r Requests, token: ProgressToken) -> Listed<'r> {
        requests.begun.fetch_add(1, Ordering::Relaxed);
        requests.lock().insert(token.clone(), self.request.clone());
        Listed { requests, token }
    }
}

pub(super) struct Listed<'r> {
    requests: &'r Requests,
    token: ProgressToken,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.requests.lock().remove(&self.token);
        self.requests.over.notify_waiters();
    }
}
