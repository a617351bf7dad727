//! What an upstream reports of a request under way.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rmcp::model::ProgressNotificationParam;
use tokio::{sync::Notify, time::Instant};

use crate::connector::fault;

/// How far a request has come, as its upstream says.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Grows; in units of the upstream's own.
    pub progress: f64,
    /// What it grows to, where that is known.
    pub total: Option<f64>,
    /// The upstream's own words, on one line, shortened.
    pub message: Option<String>,
}

/// Told of each step that is worth it.
pub type Tell<'a> = dyn Fn(Step) + Send + Sync + 'a;

/// The newest step of one request.
#[derive(Debug, Default)]
pub(super) struct Progress {
    seen: Mutex<Seen>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Seen {
    last: Option<Duration>,
    untold: Option<Step>,
}

impl Progress {
    /// The upstream reported a step when the request had run for `ran`; one that was not told yet is replaced.
    pub fn report(&self, params: ProgressNotificationParam, ran: Duration) {
        {
            let mut seen = self.seen();
            seen.last = Some(ran);
            seen.untold = Some(Step {
                progress: params.progress,
                total: params.total,
                message: params.message.as_deref().map(fault::short),
            });
        }
        self.news.notify_one();
    }

    /// How long the request had run when its upstream last reported.
    pub fn last(&self) -> Option<Duration> {
        self.seen().last
    }

    /// The newest step that was not told, not before `earliest`. Safe to drop and call again.
    pub async fn news(&self, earliest: Instant) -> Step {
        tokio::time::sleep_until(earliest).await;
        loop {
            if let Some(step) = self.seen().untold.take() {
                return step;
            }
            self.news.notified().await;
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
