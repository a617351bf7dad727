//! What a connector's task waits for before there is a session: its place in the queue, and the attempt itself.

use std::{pin::Pin, sync::Arc};

use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::{
    World,
    attempt::{self, Opened, Plan},
    cause::Cause,
    state::Failure,
};

/// A place in the queue for a background start.
pub(super) type Slot = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// Joins the queue.
pub(super) fn queue(slots: &Arc<Semaphore>) -> Slot {
    Box::pin(slots.clone().acquire_owned())
}

/// Resolves when a background start may begin; never while none is wanted. Safe to drop and call again.
pub(super) async fn place(slot: &mut Option<Slot>) -> OwnedSemaphorePermit {
    match slot {
        // The bridge never closes the semaphore.
        Some(slot) => match slot.await {
            Ok(permit) => permit,
            Err(_closed) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// An attempt that runs.
pub(super) struct UnderWay {
    running: JoinHandle<Result<Opened, Failure>>,
    give_up: CancellationToken,
    /// Why it takes long.
    progress: watch::Receiver<Option<String>>,
}

/// What an attempt tells.
pub(super) enum News {
    Progress(String),
    Done(Box<Result<Opened, Failure>>),
}

impl UnderWay {
    /// Begins it; `progress` is the other end of the plan's.
    pub fn start(world: Arc<World>, plan: Plan, progress: watch::Receiver<Option<String>>) -> Self {
        let give_up = CancellationToken::new();
        Self {
            running: tokio::spawn(attempt::run(world, plan, give_up.clone())),
            give_up,
            progress,
        }
    }

    /// Ends it; its process tree is gone when this returns.
    pub async fn give_up(self) {
        self.give_up.cancel();
        if let Ok(Ok(opened)) = self.running.await {
            opened.keeper.close().await;
        }
    }
}

/// What the attempt tells next; never resolves while there is none. Safe to drop and call again.
pub(super) async fn news(attempt: &mut Option<UnderWay>) -> News {
    let Some(attempt) = attempt else {
        return std::future::pending().await;
    };
    loop {
        tokio::select! {
            outcome = &mut attempt.running => return News::Done(Box::new(outcome.unwrap_or_else(|error| {
                tracing::error!(%error, "an attempt to connect ended abnormally");
                Err(Cause::Stopped.into())
            }))),
            // Its sender lives in the attempt, which is about to tell its outcome.
            Ok(()) = attempt.progress.changed() => {
                if let Some(text) = attempt.progress.borrow_and_update().clone() {
                    return News::Progress(text);
                }
            }
        }
    }
}
