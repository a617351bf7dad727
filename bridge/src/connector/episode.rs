//! One attempt to connect with all its retries: what is tried again, how often and when. Pure; chance is passed in.
//!
//! An upstream that asks to be left alone (`Retry-After`) is left alone for as long as it asks, up to an hour.

use std::time::{Duration, SystemTime};

use super::cause::Cause;

/// How often an episode tries again, and how long it waits in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Before the first retry; each later one waits twice as long.
    pub base: Duration,
    /// No wait of our own is longer.
    pub cap: Duration,
    pub retries: u32,
}

impl Policy {
    /// Nothing is tried again by itself.
    pub const NEVER: Self = Self {
        base: Duration::ZERO,
        cap: Duration::ZERO,
        retries: 0,
    };
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60),
            retries: 5,
        }
    }
}

/// An upstream that asks for more is asked again after this all the same.
const LONGEST_HINT: Duration = Duration::from_secs(3600);

/// An episode under way. Its policy is the one it began with.
#[derive(Debug, Clone)]
pub struct Episode {
    policy: Policy,
    /// How many have begun or are scheduled.
    retries: u32,
    /// A session that it led to was lost before it proved itself.
    lost_one: bool,
}

/// What follows the loss of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterLoss {
    /// Another attempt at once.
    Now,
    /// It keeps ending: another attempt after a while.
    Later(Wait),
    /// It kept ending for as long as the policy allows.
    Over,
}

/// The next retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Counts from 1 to `max`.
    pub number: u32,
    pub max: u32,
    pub delay: Duration,
}

impl Episode {
    /// One that keeps to `policy` to its end.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            retries: 0,
            lost_one: false,
        }
    }

    /// The session that this episode led to was lost before it proved itself. The first is replaced at once; a program
    /// that keeps ending is started ever less often.
    pub fn after_loss(&mut self, cause: &Cause, chance: u32) -> AfterLoss {
        if !may_pass(cause) {
            return AfterLoss::Over;
        }
        if !std::mem::replace(&mut self.lost_one, true) && self.policy.retries > 0 {
            return AfterLoss::Now;
        }
        self.after(cause, chance).map_or(AfterLoss::Over, AfterLoss::Later)
    }

    /// An attempt of it ended in `cause`: when to try again; `None` = the episode is over. `chance` spreads those that
    /// failed together: 0 waits half as long as `u32::MAX`.
    pub fn after(&mut self, cause: &Cause, chance: u32) -> Option<Wait> {
        if !may_pass(cause) || self.retries >= self.policy.retries {
            return None;
        }
        let doubled = self.policy.base.saturating_mul(1 << self.retries.min(16));
        let longest = doubled.min(self.policy.cap);
        let own = longest.mul_f64(0.5 + f64::from(chance) / f64::from(u32::MAX) / 2.0);
        self.retries += 1;
        Some(Wait {
            number: self.retries,
            max: self.policy.retries,
            delay: own.max(asked_for(cause)),
        })
    }
}

/// Whether time alone may mend it. The rest waits for the person, or for the next call.
pub fn may_pass(cause: &Cause) -> bool {
    match cause {
        Cause::Exited(_) | Cause::NoAnswer(_) | Cause::Network(_) | Cause::Authority(_) => true,
        Cause::HttpStatus { status, .. } => matches!(status, 408 | 429 | 500..=599),
        Cause::MissingSecret(_)
        | Cause::Entry(_)
        | Cause::TokenRefused { .. }
        | Cause::SignIn(_)
        | Cause::UnsupportedAuth(_)
        | Cause::Keychain(_)
        | Cause::NeedsReview { .. }
        | Cause::TrustUnknown(_)
        | Cause::Paused
        | Cause::ProgramNotFound(_)
        | Cause::NotStarted(_)
        | Cause::Protocol(_)
        | Cause::Stopped
        | Cause::GivenUp(_) => false,
    }
}

/// For how long the upstream asked to be left alone, as far as that is done.
pub fn asked_for(cause: &Cause) -> Duration {
    match cause {
        Cause::HttpStatus {
            retry_after: Some(time),
            ..
        } => (*time).min(LONGEST_HINT),
        _ => Duration::ZERO,
    }
}

/// A `Retry-After` header, in seconds or as a date (RFC 9110 §10.2.3); one that is over asks for nothing.
pub fn read_retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits alone fail only where the number is too large for anything.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::SignInNeed;

    fn busy(status: u16, seconds: Option<u64>) -> Cause {
        Cause::HttpStatus {
            status,
            retry_after: seconds.map(Duration::from_secs),
        }
    }

    fn delays(cause: &Cause, chance: u32) -> Vec<u64> {
        let mut episode = Episode::new(Policy::default());
        std::iter::from_fn(|| episode.after(cause, chance))
            .map(|wait| wait.delay.as_millis().try_into().unwrap())
            .collect()
    }

    #[test]
    fn five_retries_each_wait_twice_as_long_and_chance_halves_them_at_most() {
        let refused = Cause::Network("refused".into());
        assert_eq!(delays(&refused, u32::MAX), [1000, 2000, 4000, 8000, 16000]);
        assert_eq!(delays(&refused, 0), [500, 1000, 2000, 4000, 8000]);
    }

    #[test]
    fn retries_are_numbered_and_no_wait_of_our_own_passes_the_cap() {
        let policy = Policy {
            retries: 40,
            ..Policy::default()
        };
        let mut episode = Episode::new(policy);
        for number in 1..=40 {
            let wait = episode.after(&Cause::NoAnswer(Duration::ZERO), u32::MAX).unwrap();
            assert_eq!((wait.number, wait.max), (number, 40));
            assert!(wait.delay <= policy.cap, "{wait:?}");
        }
        assert_eq!(episode.after(&Cause::NoAnswer(Duration::ZERO), 0), None);
    }

    #[test]
    fn what_an_upstream_asks_for_is_a_floor_and_an_absurd_wish_is_bounded() {
        assert_eq!(delays(&busy(429, Some(3)), 0), [3000, 3000, 3000, 4000, 8000]);
        assert_eq!(
            delays(&busy(503, Some(120)), u32::MAX)[0],
            120_000,
            "even above the cap"
        );
        assert_eq!(delays(&busy(503, Some(u64::MAX)), 0)[0], 3_600_000);
    }

    #[test]
    fn a_session_that_keeps_ending_is_replaced_at_once_and_then_ever_later() {
        let ended = Cause::Exited("exit code 1".into());
        let mut episode = Episode::new(Policy::default());
        assert_eq!(episode.after_loss(&ended, u32::MAX), AfterLoss::Now);
        let mut waits = Vec::new();
        while let AfterLoss::Later(wait) = episode.after_loss(&ended, u32::MAX) {
            waits.push(wait.delay.as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16]);
        let mut never = Episode::new(Policy::NEVER);
        assert_eq!(never.after_loss(&ended, 0), AfterLoss::Over);
        let mut blocked = Episode::new(Policy::default());
        assert_eq!(
            blocked.after_loss(&Cause::SignIn(SignInNeed::first(None)), 0),
            AfterLoss::Over
        );
    }

    #[test]
    fn only_what_time_may_mend_is_tried_again() {
        for cause in [
            Cause::Exited("exit code 1".into()),
            Cause::NoAnswer(Duration::ZERO),
            Cause::Network("reset".into()),
            busy(408, None),
            busy(429, None),
            busy(500, None),
            busy(599, None),
        ] {
            assert!(may_pass(&cause), "{cause:?}");
        }
        for cause in [
            Cause::MissingSecret("KEY".into()),
            Cause::Entry("x".into()),
            Cause::SignIn(SignInNeed::first(None)),
            Cause::ProgramNotFound("x".into()),
            Cause::NotStarted("x".into()),
            Cause::Protocol("x".into()),
            Cause::Stopped,
            busy(403, Some(1)),
            busy(404, None),
            busy(600, None),
        ] {
            assert_eq!(Episode::new(Policy::default()).after(&cause, 0), None, "{cause:?}");
        }
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_date_and_nothing_else() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        for (text, seconds) in [
            ("2", Some(2)),
            (" 0 ", Some(0)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("soon", None),
            ("Sun, 99 Nov 1994 08:50:37 GMT", None),
        ] {
            assert_eq!(
                read_retry_after(text, now),
                seconds.map(Duration::from_secs),
                "{text:?}"
            );
        }
    }
}
