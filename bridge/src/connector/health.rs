//! Whether a session that may fall silent still answers. Sends nothing where silence shows by itself.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::session::{Answered, Session};

/// Between two pings, unless the settings say otherwise.
pub const DEFAULT_PING_EVERY: Duration = Duration::from_secs(60);
/// No ping is waited for longer; settings that ask more often wait less.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// A busy computer is no silent upstream.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);
/// So many in a row without an answer, and the session is given up. Those that fell into a call's time do not count: a
/// busy upstream is not a silent one, and the call has a deadline of its own.
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
    ping: Option<AbortOnDropHandle<Answered>>,
    /// The computer slept: what is missed is asked again at once.
    in_doubt: bool,
}

impl Health {
    /// The first ping is `every` from now.
    pub fn new(every: Duration) -> Self {
        Self {
            every,
            due: Instant::now() + every,
            misses: 0,
            ping: None,
            in_doubt: false,
        }
    }

    /// Asks at once, because the computer slept.
    pub fn ask_now(&mut self) {
        self.due = Instant::now();
        self.in_doubt = true;
    }

    /// Pings when it is time; the outcome. Safe to drop and call again.
    pub async fn next(&mut self, session: &Arc<Session>) -> Pulse {
        loop {
            if let Some(ping) = &mut self.ping {
                let answered = ping.await.unwrap_or(Answered::Unknown);
                self.ping = None;
                match answered {
                    Answered::Yes => {
                        self.misses = 0;
                        self.in_doubt = false;
                        self.due = Instant::now() + self.every;
                        return Pulse::Answers;
                    }
                    Answered::Unknown => self.due = Instant::now() + self.every,
                    Answered::No => {
                        self.misses += u32::from(!session.is_busy());
                        let pause = if self.in_doubt { Duration::ZERO } else { self.every };
                        self.due = Instant::now() + pause;
                    }
                }
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
