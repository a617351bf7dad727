//! A request's own time, which stands still while a question of it waits for the person.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// Runs from its making on, but for the stops.
#[derive(Debug)]
pub(super) struct Clock {
    stops: Mutex<Stops>,
    goes_on: Notify,
}

#[derive(Debug)]
struct Stops {
    /// Questions that wait.
    open: usize,
    /// Up to here the time has been counted.
    counted: Instant,
    ran: Duration,
}

impl Stops {
    fn count(&mut self, now: Instant) {
        if self.open == 0 {
            self.ran += now.duration_since(self.counted);
        }
        self.counted = now;
    }
}

impl Clock {
    pub fn start() -> Self {
        Self {
            stops: Mutex::new(Stops {
                open: 0,
                counted: Instant::now(),
                ran: Duration::ZERO,
            }),
            goes_on: Notify::new(),
        }
    }

    /// How long it has run.
    pub fn ran(&self) -> Duration {
        let mut stops = self.stops();
        stops.count(Instant::now());
        stops.ran
    }

    /// Resolves once it has run for this long. Safe to drop and call again.
    pub async fn reaches(&self, time: Duration) {
        loop {
            let left = {
                let mut stops = self.stops();
                stops.count(Instant::now());
                (stops.open == 0).then(|| time.saturating_sub(stops.ran))
            };
            match left {
                Some(Duration::ZERO) => return,
                Some(left) => tokio::time::sleep(left).await,
                None => self.goes_on.notified().await,
            }
        }
    }

    /// Stands still until what is returned is dropped.
    pub fn stop(self: &Arc<Self>) -> Stopped {
        let mut stops = self.stops();
        stops.count(Instant::now());
        stops.open += 1;
        Stopped(self.clone())
    }

    fn stops(&self) -> MutexGuard<'_, Stops> {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The clock stands still.
pub(super) struct Stopped(Arc<Clock>);

impl Drop for Stopped {
    fn drop(&mut self) {
        let mut stops = self.0.stops();
        stops.count(Instant::now());
        stops.open = stops.open.saturating_sub(1);
        self.0.goes_on.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_question_does_not_count() {
        let clock = Arc::new(Clock::start());
        tokio::time::advance(SECOND).await;
        let (first, second) = (clock.stop(), clock.stop());
        tokio::time::advance(100 * SECOND).await;
        drop(first);
        tokio::time::advance(100 * SECOND).await;
        drop(second);
        tokio::time::advance(SECOND).await;
        assert_eq!(clock.ran(), 2 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_moves_by_as_much_as_was_waited_for_the_person() {
        let clock = Arc::new(Clock::start());
        let begun = Instant::now();
        let question = clock.stop();
        let until = clock.clone();
        let late = tokio::spawn(async move { until.reaches(10 * SECOND).await });
        tokio::time::sleep(60 * SECOND).await;
        assert!(!late.is_finished());
        drop(question);
        late.await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 70);
    }
}
