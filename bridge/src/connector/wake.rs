//! Notices that this computer woke from sleep or that its network changed. It tells, and decides nothing.

use std::{net::IpAddr, time::Duration};

use netwatcher::async_adapter::Tokio;
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior},
};
use tokio_util::task::AbortOnDropHandle;

/// How often the clock is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A look that is later than this was held up by sleep: of the computer, of a virtual machine, of this process.
const LATE: Duration = Duration::from_secs(4);
/// A change of the network comes in many pieces; they count as one when the last is this old.
const SETTLED: Duration = Duration::from_secs(1);
/// No two are told closer together than this, so that an unsteady network makes no storm.
const BETWEEN: Duration = Duration::from_secs(10);

/// What happened to the computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// Nothing yet.
    None,
    FromSleep,
    NetworkChanged,
}

/// Tells everybody who subscribed. Watching ends when this is dropped.
pub struct Wakes {
    pub told: watch::Receiver<Wake>,
    _watching: AbortOnDropHandle<()>,
}

impl Wakes {
    /// Begins to watch. Where the system tells nothing of its network, only sleep is noticed.
    pub fn start() -> Self {
        let (tell, told) = watch::channel(Wake::None);
        Self {
            told,
            _watching: AbortOnDropHandle::new(tokio::spawn(run(tell))),
        }
    }
}

async fn run(tell: watch::Sender<Wake>) {
    let mut network = match netwatcher::watch_interfaces_async::<Tokio>() {
        Ok(network) => Some(network),
        Err(error) => {
            tracing::info!(%error, "changes of the network are not noticed");
            None
        }
    };
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut clock = Clock::at(time_passed());
    let mut owed: Option<(Instant, Wake)> = None;
    let mut last: Option<Instant> = None;
    let mut first = true;
    loop {
        let now = Instant::now();
        let earliest = last.map_or(now, |last| now.max(last + BETWEEN));
        tokio::select! {
            _ = looks.tick() => {
                if clock.slept(time_passed()) {
                    owed = Some((earliest, Wake::FromSleep));
                }
            }
            update = next_update(&mut network) => {
                // The first one lists what there is.
                if !std::mem::take(&mut first) && gained_address(&update) {
                    // The first of many pieces sets the time, so that a network that never rests is told too.
                    owed.get_or_insert((earliest.max(now + SETTLED), Wake::NetworkChanged));
                }
            }
            wake = due(owed) => {
                owed = None;
                last = Some(Instant::now());
                tracing::info!(?wake, "connectors that failed are tried again");
                tell.send_replace(wake);
            }
        }
    }
}

async fn next_update(network: &mut Option<netwatcher::AsyncWatch>) -> netwatcher::Update {
    match network {
        Some(network) => network.changed().await,
        None => std::future::pending().await,
    }
}

async fn due(owed: Option<(Instant, Wake)>) -> Wake {
    match owed {
        Some((at, wake)) => {
            tokio::time::sleep_until(at).await;
            wake
        }
        None => std::future::pending().await,
    }
}

/// What was lost makes nothing reachable, and addresses of this computer or its cable alone neither: those come and go with
/// every container that is started.
fn gained_address(update: &netwatcher::Update) -> bool {
    update.addrs_added().any(|(_, record)| reaches_further(record.ip))
}

fn reaches_further(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local(),
    }
}

/// Compares the time between two looks with the time that should have passed.
struct Clock {
    looked: Duration,
}

impl Clock {
    fn at(now: Duration) -> Self {
        Self { looked: now }
    }

    fn slept(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.looked);
        self.looked = now;
        passed > LOOK_EVERY + LATE
    }
}

/// Time since some instant, sleep included.
#[cfg(target_os = "linux")]
fn time_passed() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Time since some instant, sleep included; a clock that is set counts as sleep, which costs one attempt.
#[cfg(not(target_os = "linux"))]
fn time_passed() -> Duration {
    Duration::from_millis(crate::clock::unix_ms())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_that_reaches_further_is_another_network() {
        for (ip, reaches) in [
            ("127.0.0.2", false),
            ("169.254.3.4", false),
            ("::1", false),
            ("fe80::42:acff:fe11:2", false),
            ("192.168.1.7", true),
            ("2001:db8::1", true),
        ] {
            assert_eq!(reaches_further(ip.parse().unwrap()), reaches, "{ip}");
        }
    }

    #[test]
    fn a_look_that_is_held_up_is_sleep_and_one_on_time_is_not() {
        let mut clock = Clock::at(Duration::from_secs(100));
        assert!(!clock.slept(Duration::from_secs(102)));
        assert!(
            !clock.slept(Duration::from_secs(107)),
            "a busy computer is a little late"
        );
        assert!(clock.slept(Duration::from_secs(200)));
        assert!(!clock.slept(Duration::from_secs(202)), "told once");
        assert!(
            !clock.slept(Duration::from_secs(150)),
            "a clock that goes back tells nothing"
        );
    }
}
