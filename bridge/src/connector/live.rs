//! The session that stands, as its connector's task holds it: what it needs, and what happens to it next.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{task::JoinHandle, time::Instant};
use tokio_util::task::AbortOnDropHandle;

use super::{
    World,
    attempt::{Listed, Opened},
    cause::Cause,
    health::{Health, Pulse},
    listen,
    log::Log,
    session::{Ended, Keeper, Session, SessionName},
};
use crate::config;

/// A session that was opened only to list tools closes after being unused this long.
const IDLE_AFTER_DISCOVERY: Duration = Duration::from_secs(60);
/// A session that stood this long has proved that its start was good.
const PROVED_AFTER: Duration = Duration::from_secs(60);

/// A change is read this much later: changes come in groups, and calls that wait go first.
const SETTLED: Duration = Duration::from_millis(100);
/// A server that begins anew has more urgent things to answer than its lists.
const AFTER_REPLACEMENT: Duration = Duration::from_secs(1);
/// Between two readings of lists that keep changing.
const FIRST_GAP: Duration = Duration::from_millis(500);
/// The gap doubles up to this.
const LONGEST_GAP: Duration = Duration::from_secs(60);

/// A session with everything that belongs to it.
pub(super) struct Live {
    pub session: Arc<Session>,
    keeper: Keeper,
    since: SystemTime,
    begun: Instant,
    refresh: Option<JoinHandle<Result<Listed, Cause>>>,
    changes: Changes,
    idle_at: Option<Instant>,
    health: Health,
    _listening: Option<AbortOnDropHandle<()>>,
}

/// A session that is gone.
pub(super) struct Past {
    pub name: SessionName,
    /// When it began; its upstream's last words are younger.
    pub since: SystemTime,
    /// It worked: what ended it was no fault of its start.
    pub is_proved: bool,
}

/// When lists that keep changing are read again: soon the first time, then ever less often, so that an upstream that tells
/// of changes without end costs nobody anything.
struct Changes {
    /// When the reading that is asked for begins.
    due: Option<Instant>,
    /// The end of the last reading; while one runs, its beginning.
    last: Option<Instant>,
    gap: Duration,
}

impl Changes {
    fn none() -> Self {
        Self {
            due: None,
            last: None,
            gap: FIRST_GAP,
        }
    }

    /// The lists changed, or may have: they are to be read after `pause` at the earliest.
    fn told(&mut self, now: Instant, pause: Duration) {
        let soon = now + pause;
        let earliest = self.last.map_or(soon, |last| soon.max(last + self.gap));
        self.due.get_or_insert(earliest);
    }

    /// A reading begins.
    fn begins(&mut self, now: Instant) {
        let is_quiet = self.last.is_none_or(|last| now.duration_since(last) > LONGEST_GAP * 2);
        self.gap = if is_quiet {
            FIRST_GAP
        } else {
            (self.gap * 2).min(LONGEST_GAP)
        };
        self.due = None;
        self.last = Some(now);
    }

    /// It ended: its own time is no pause.
    fn ends(&mut self, now: Instant) {
        self.last = Some(now);
    }
}

/// What happens to a session.
pub(super) enum LiveEvent {
    Ended(Ended),
    /// The lists changed; it is time to read them again.
    ListsChanged,
    Refreshed(Box<Result<Listed, Cause>>),
    /// The server gave a new session over the same connection.
    Replaced,
    Pulse(Pulse),
    /// The server turned a request away: only the person can mend that.
    Denied(Cause),
    /// It was opened to read lists and nobody used it.
    Idle,
}

impl Live {
    /// `wanted`: somebody waits for it, so that it stays although unused.
    pub fn new(opened: Opened, wanted: bool, ping_every: Duration) -> (Self, Listed) {
        let live = Self {
            _listening: listen::start(&opened.session),
            session: opened.session,
            keeper: opened.keeper,
            since: SystemTime::now(),
            begun: Instant::now(),
            refresh: None,
            changes: Changes::none(),
            idle_at: (!wanted).then(|| Instant::now() + IDLE_AFTER_DISCOVERY),
            health: Health::new(ping_every),
        };
        (live, opened.listed)
    }

    /// The next event. Safe to drop and call again.
    pub async fn next(&mut self) -> LiveEvent {
        let signals = &self.session.signals;
        loop {
            let due_now = self.changes.due.filter(|_| self.refresh.is_none());
            return tokio::select! {
                ended = self.keeper.over() => LiveEvent::Ended(ended),
                () = signals.lists_changed.notified() => {
                    self.changes.told(Instant::now(), SETTLED);
                    continue;
                }
                () = due(due_now) => LiveEvent::ListsChanged,
                () = signals.replaced.notified() => {
                    // Another run of the server may have other tools.
                    self.changes.told(Instant::now(), AFTER_REPLACEMENT);
                    LiveEvent::Replaced
                }
                listed = finished(&mut self.refresh) => {
                    self.refresh = None;
                    self.changes.ends(Instant::now());
                    LiveEvent::Refreshed(Box::new(listed))
                }
                denied = signals.denials.told() => LiveEvent::Denied(denied.into()),
                pulse = self.health.next(&self.session) => LiveEvent::Pulse(pulse),
                () = due(self.idle_at) => LiveEvent::Idle,
            };
        }
    }

    /// Reads the lists again. What changes while they are read is read after that.
    pub fn refresh(&mut self, world: &Arc<World>, entry: &Arc<config::Connector>, log: &Log) {
        self.changes.begins(Instant::now());
        self.refresh = Some(world.refresh(entry, &self.session, log));
    }

    /// It was used, so that it stays.
    pub fn stay(&mut self) {
        self.idle_at = None;
    }

    /// Asks at once whether it still answers.
    pub fn ask_now(&mut self) {
        self.health.ask_now();
    }

    /// What is to be known of it when it is gone.
    pub fn past(&self) -> Past {
        Past {
            name: self.session.name.clone(),
            since: self.since,
            is_proved: self.session.is_proved() || self.begun.elapsed() >= PROVED_AFTER,
        }
    }

    /// Lets the requests under way come to their ends, then ends it.
    pub async fn run_out(self) {
        self.session.quiet().await;
        self.close().await;
    }

    /// Ends it and waits until its process tree is gone.
    pub async fn close(self) {
        if let Some(refresh) = self.refresh {
            refresh.abort();
        }
        self.keeper.close().await;
    }
}

async fn finished(refresh: &mut Option<JoinHandle<Result<Listed, Cause>>>) -> Result<Listed, Cause> {
    match refresh {
        Some(refresh) => refresh.await.unwrap_or(Err(Cause::Stopped)),
        None => std::future::pending().await,
    }
}

/// Comes at that time; never where there is none.
pub(super) async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_change_is_read_soon_and_changes_without_end_ever_less_often() {
        let begun = Instant::now();
        let mut changes = Changes::none();
        let mut readings = Vec::new();
        for ms in (0..600_000).step_by(20) {
            let now = begun + Duration::from_millis(ms);
            changes.told(now, SETTLED);
            if changes.due.is_some_and(|due| due <= now) {
                changes.begins(now);
                readings.push(ms);
            }
        }
        assert_eq!(readings[0], 100);
        assert!(readings.len() <= 18, "{readings:?}");
        assert!(readings.is_sorted_by(|a, b| b - a >= 500), "{readings:?}");
    }

    #[test]
    fn after_a_quiet_time_a_change_is_read_soon_again() {
        let begun = Instant::now();
        let mut changes = Changes::none();
        for seconds in [0, 130, 300] {
            let now = begun + Duration::from_secs(seconds);
            changes.told(now, Duration::ZERO);
            assert_eq!(changes.due, Some(now), "after {seconds} s");
            changes.begins(now);
        }
        changes.told(begun + Duration::from_millis(300_100), SETTLED);
        assert_eq!(changes.due, Some(begun + Duration::from_millis(300_500)));
    }

    #[test]
    fn slow_changes_and_slow_lists_are_read_ever_less_often_too() {
        let begun = Instant::now();
        let mut changes = Changes::none();
        let mut readings = Vec::new();
        for seconds in (0..1_800).step_by(3) {
            let now = begun + Duration::from_secs(seconds);
            changes.told(now, SETTLED);
            if changes.due.is_some_and(|due| due <= now) {
                changes.begins(now);
                changes.ends(now + Duration::from_secs(2));
                readings.push(seconds);
            }
        }
        assert!(readings.len() <= 40, "{readings:?}");
    }
}
