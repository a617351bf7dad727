//! Hears of changed lists from modern upstreams, which tell them only to who asked to be told.

use std::{sync::Arc, time::Duration};

use rmcp::{model::ErrorCode, service::ServiceError};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::session::Session;
use crate::snapshot::Era;

/// Before a broken stream is opened again; each time twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A stream that stood this long was a good one.
const STOOD: Duration = Duration::from_secs(10);
/// An upstream that ends every stream at once is left alone after this many.
const MOST_FAILURES: u32 = 5;

/// Listens until it is dropped; `None` where there is nothing to hear.
pub fn start(session: &Arc<Session>) -> Option<AbortOnDropHandle<()>> {
    let listens = session.facts.era == Era::Modern && session.tells.any();
    listens.then(|| AbortOnDropHandle::new(tokio::spawn(run(session.clone()))))
}

async fn run(session: Arc<Session>) {
    let mut failures = 0;
    let mut missed_some = false;
    while !session.is_over() {
        let begun = Instant::now();
        match session.listen().await {
            Ok(mut subscription) => {
                if std::mem::replace(&mut missed_some, true) {
                    session.signals.lists_changed.notify_one();
                }
                while let Ok(Some(_)) = subscription.next().await {
                    session.signals.lists_changed.notify_one();
                }
            }
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => return,
            Err(error) => tracing::debug!(%error, "list changes are not heard for now"),
        }
        failures = if begun.elapsed() >= STOOD { 0 } else { failures + 1 };
        if failures > MOST_FAILURES {
            return;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(16)).min(LONGEST_PAUSE);
        tokio::time::sleep(pause).await;
    }
}
