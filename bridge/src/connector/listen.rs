//! Hears of changed lists from modern upstreams, which tell them only to who asked to be told.
//!
//! A change between two streams is told by neither, so the lists are read again after a break; but a host may cut every
//! stream after some seconds, and must not be asked for all its lists each time (see [`Pace`]).

use std::{sync::Arc, time::Duration};

use rmcp::{model::ErrorCode, service::ServiceError};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::session::Session;
use crate::snapshot::Era;

/// Before a stream that told something is opened again; twice as long for each one in a row that told nothing.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A stream that ends sooner than this was not really given.
const STOOD: Duration = Duration::from_secs(10);
/// An upstream that ends every stream at once is left alone after this many.
const MOST_FAILURES: u32 = 5;
/// Between two readings of the lists that nothing but breaks gave reason for.
const BETWEEN_READINGS: Duration = Duration::from_secs(600);

/// Listens until it is dropped; `None` where there is nothing to hear.
pub fn start(session: &Arc<Session>) -> Option<AbortOnDropHandle<()>> {
    let listens = session.facts.era == Era::Modern && session.tells.any();
    listens.then(|| AbortOnDropHandle::new(tokio::spawn(run(session.clone()))))
}

async fn run(session: Arc<Session>) {
    let mut pace = Pace::default();
    while !session.is_over() {
        let begun = Instant::now();
        let mut told = false;
        match session.listen().await {
            Ok(mut subscription) => {
                pace.opened(Instant::now());
                loop {
                    let reading = pace.reading_at();
                    tokio::select! {
                        biased;
                        event = subscription.next() => match event {
                            Ok(Some(_)) => told = true,
                            Ok(None) | Err(_) => break,
                        },
                        () = at(reading) => {}
                    }
                    pace.read(Instant::now());
                    session.signals.lists_changed.notify_one();
                }
            }
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => return,
            Err(error) => tracing::debug!(%error, "list changes are not heard for now"),
        }
        match pace.ended(told, begun.elapsed()) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return,
        }
    }
}

/// Never, without a time.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// When to listen again, and when to read the lists because a change may have gone unheard. Pure.
///
/// The first break since the lists were told to have changed is followed by a reading as soon as a stream stands again;
/// further breaks by one [`BETWEEN_READINGS`] later at the soonest. So no change stays unheard for longer than that
/// while a stream stands, and a host that cuts every stream is asked for its lists six times an hour at most.
#[derive(Debug, Default)]
struct Pace {
    /// Streams in a row that told nothing.
    quiet: u32,
    /// Streams in a row that hardly stood.
    failures: u32,
    /// A stream has stood before this one.
    opened_before: bool,
    /// Since when breaks alone are no reason to read.
    read_for_a_break: Option<Instant>,
    /// When the lists are to be read.
    due: Option<Instant>,
}

impl Pace {
    fn opened(&mut self, now: Instant) {
        if std::mem::replace(&mut self.opened_before, true) {
            let soonest = self.read_for_a_break.map_or(now, |at| at + BETWEEN_READINGS);
            self.due = Some(soonest.max(now));
        }
    }

    fn reading_at(&self) -> Option<Instant> {
        self.due
    }

    /// The lists are read at `now`, for whichever reason.
    fn read(&mut self, now: Instant) {
        if self.due.take().is_some() {
            self.read_for_a_break = Some(now);
        }
    }

    /// A stream is over, or was not given; how long to wait before the next one, `None` to ask no more.
    fn ended(&mut self, told: bool, stood: Duration) -> Option<Duration> {
        self.failures = if stood >= STOOD { 0 } else { self.failures + 1 };
        if told {
            // What it tells is worth hearing in full.
            self.quiet = 0;
            self.read_for_a_break = None;
        } else {
            self.quiet += 1;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << self.quiet.min(16)).min(LONGEST_PAUSE);
        (self.failures <= MOST_FAILURES).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lives through streams that each stand this long and tell this; when each pause and each reading came.
    fn live(pace: &mut Pace, streams: &[(u64, bool)]) -> (Vec<u64>, Vec<u64>) {
        let begin = Instant::now();
        let mut now = begin;
        let (mut pauses, mut readings) = (Vec::new(), Vec::new());
        for &(stood, told) in streams {
            let end = now + Duration::from_secs(stood);
            pace.opened(now);
            if let Some(due) = pace.reading_at().filter(|due| *due < end) {
                pace.read(due);
                readings.push((due - begin).as_secs());
            }
            match pace.ended(told, Duration::from_secs(stood)) {
                Some(pause) => {
                    pauses.push(pause.as_secs());
                    now = end + pause;
                }
                None => break,
            }
        }
        (pauses, readings)
    }

    #[test]
    fn streams_that_tell_nothing_are_opened_ever_more_rarely_however_long_they_stand() {
        let mut pace = Pace::default();
        let (pauses, _) = live(&mut pace, &[(30, false); 9]);
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60, 60]);
        let (pauses, _) = live(&mut pace, &[(30, true), (30, false), (30, false)]);
        assert_eq!(pauses, [1, 2, 4], "one that told something is as good as the first");
        let (pauses, _) = live(&mut Pace::default(), &[(1, false); 9]);
        assert_eq!(pauses, [2, 4, 8, 16, 32], "an upstream that gives none is left alone");
    }

    #[test]
    fn a_host_that_cuts_every_stream_is_not_asked_for_its_lists_each_time() {
        for stood in [10, 30, 60] {
            let (pauses, readings) = live(&mut Pace::default(), &[(stood, false); 40]);
            let lasted = pauses.iter().sum::<u64>() + 40 * stood;
            assert_eq!(readings[0], stood + 2, "the first break may have hidden a change");
            assert!(readings.windows(2).all(|pair| pair[1] - pair[0] >= 600), "{readings:?}");
            assert!(readings.len() as u64 <= 1 + lasted / 600, "{readings:?}");
        }
    }

    #[test]
    fn what_a_break_may_have_hidden_is_read_while_the_next_stream_stands() {
        let (_, readings) = live(&mut Pace::default(), &[(30, false), (30, false), (9000, false)]);
        assert_eq!(readings, [32, 632]);
        let (_, readings) = live(&mut Pace::default(), &[(30, false), (30, true), (30, false)]);
        assert_eq!(
            readings,
            [32, 63],
            "one that told something has the next one begin with a reading"
        );
    }
}
