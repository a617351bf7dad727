//! Whether a session that may fall silent still answers. Sends nothing where silence shows by itself.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::session::Session;

/// Between two pings, unless the settings say otherwise.
pub const DEFAULT_PING_EVERY: Duration = Duration::from_secs(60);
/// No ping is waited for longer; settings that ask more often wait less.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// A busy computer is no silent upstream.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);
/// So many in a row without an answer, and the session is given up.
const MOST_MISSES: u32 = 3;

/// What a ping came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pulse {
    Answers,
    /// Three in a row had no answer.
    Silent,
}

/// The pings of one session.
pub struct Health {
    every: Duration,
    due: Instant,
    misses: u32,
    ping: Option<AbortOnDropHandle<bool>>,
}

impl Health {
    /// The first ping is `every` from now.
    pub fn new(every: Duration) -> Self {
        Self {
            every,
            due: Instant::now() + every,
            misses: 0,
            ping: None,
        }
    }

    /// Asks at once, because the computer slept.
    pub fn ask_now(&mut self) {
        self.due = Instant::now();
    }

    /// Pings when it is time; the outcome. After a miss the next one follows at once. Safe to drop and call again.
    pub async fn next(&mut self, session: &Arc<Session>) -> Pulse {
        loop {
            if let Some(ping) = &mut self.ping {
                let answered = ping.await.unwrap_or(false);
                self.ping = None;
                if answered {
                    self.misses = 0;
                    self.due = Instant::now() + self.every;
                    return Pulse::Answers;
                }
                self.misses += 1;
                self.due = Instant::now();
                if self.misses >= MOST_MISSES {
                    return Pulse::Silent;
                }
            }
            tokio::time::sleep_until(self.due).await;
            if session.may_fall_silent() {
                let patience = self.every.clamp(LEAST_PATIENCE, ANSWER_WITHIN);
                let session = session.clone();
                let ping = tokio::spawn(async move { session.ping(patience).await });
                self.ping = Some(AbortOnDropHandle::new(ping));
            } else {
                self.misses = 0;
                self.due = Instant::now() + self.every;
            }
        }
    }
}
