//! A connector's state: what it is doing, and everything shown about it derived from that. Pure; time is passed in.

use std::time::Duration;

use super::{
    cause::{Cause, unavailable},
    episode::{self, Wait},
};
use crate::{
    error::{Action, ApiError},
    snapshot::{AuthState, AuthView, ConnectionView, Era, Readiness, RetryView, Status},
};

/// A call waits for a scheduled attempt that is no further away than this.
const WORTH_WAITING_FOR: Duration = Duration::from_secs(5);

/// What a connector is doing; each variant carries what it knows.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Turned off.
    Disabled,
    /// Nothing runs; the first use connects.
    Sleeping,
    /// An attempt is under way; `progress` says what it waits for, when that takes long.
    Connecting { progress: Option<String> },
    /// The one session stands and its tools are listed.
    Connected(SessionFacts),
    /// The last attempt failed and its episode goes on.
    Retrying { failure: Failure, retry: RetryView },
    /// The last attempt or session ended in a fault; `after_session` when it had been connected.
    Failed { failure: Failure, after_session: bool },
}

/// How a session is to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// An attempt is about to be made anyway.
    Await,
    /// One attempt: a use does not bring back the retries that were used up.
    Once,
    /// An attempt with its retries.
    Episode,
}

/// What the handshake told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    pub era: Era,
    /// The negotiated revision, such as `2025-11-25`.
    pub protocol: String,
    pub readiness: Readiness,
}

/// A fault, with what explains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub cause: Cause,
    /// Last lines the upstream wrote to stderr; for the owner only.
    pub detail: Option<String>,
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        Self { cause, detail: None }
    }
}

/// The state with its numbers, which only grow.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    state: State,
    generation: u64,
    sequence: u64,
    since: u64,
    observed_at: u64,
}

impl Machine {
    /// A connector as it starts out. `now` in Unix milliseconds, here and below.
    pub fn new(enabled: bool, now: u64) -> Self {
        let state = if enabled { State::Sleeping } else { State::Disabled };
        Self {
            state,
            generation: 0,
            sequence: 1,
            since: now,
            observed_at: 0,
        }
    }

    /// Carries the numbers of the connector this one replaces, so that they never go back.
    pub fn continue_from(&mut self, earlier: &Machine) {
        self.generation = earlier.generation;
        self.sequence = earlier.sequence + 1;
        self.observed_at = earlier.observed_at;
    }

    /// Another attempt began.
    pub fn connecting(&mut self, now: u64) {
        self.enter(State::Connecting { progress: None }, now);
    }

    /// The attempt takes long; says why. Ignored when none is under way.
    pub fn progress(&mut self, text: String, now: u64) {
        if let State::Connecting { progress } = &self.state
            && progress.as_deref() != Some(text.as_str())
        {
            self.enter(State::Connecting { progress: Some(text) }, now);
        }
    }

    /// The handshake and the lists are done.
    pub fn connected(&mut self, facts: SessionFacts, now: u64) {
        self.generation += 1;
        self.observed_at = now;
        self.enter(State::Connected(facts), now);
    }

    /// The server forgot the session and gave another one over the same connection.
    pub fn replaced(&mut self, now: u64) {
        self.generation += 1;
        self.sequence += 1;
        self.observed(now);
    }

    /// The session was closed on purpose.
    pub fn sleeping(&mut self, now: u64) {
        self.enter(State::Sleeping, now);
    }

    /// The attempt ended in a fault, and its episode has another one.
    pub fn retrying(&mut self, failure: Failure, wait: Wait, now: u64) {
        let delay_ms = u64::try_from(wait.delay.as_millis()).unwrap_or(u64::MAX);
        let retry = RetryView {
            number: wait.number,
            max: wait.max,
            scheduled_at: now,
            next_attempt_at: now.saturating_add(delay_ms),
            delay_ms,
        };
        self.enter(State::Retrying { failure, retry }, now);
    }

    /// The attempt ended in a fault, and its episode with it.
    pub fn failed(&mut self, failure: Failure, now: u64) {
        self.enter(
            State::Failed {
                failure,
                after_session: false,
            },
            now,
        );
    }

    /// The session ended in a fault; the next use may connect again at once.
    pub fn lost(&mut self, failure: Failure, now: u64) {
        self.enter(
            State::Failed {
                failure,
                after_session: true,
            },
            now,
        );
    }

    /// The upstream was heard of.
    pub fn observed(&mut self, now: u64) {
        self.observed_at = self.observed_at.max(now);
    }

    fn enter(&mut self, state: State, now: u64) {
        self.state = state;
        self.sequence += 1;
        self.since = now.max(self.since);
    }

    /// How a use of the connector gets its session now.
    ///
    /// # Errors
    /// The failure as callers see it, with `Retry-After` where waiting helps.
    pub fn may_attempt(&self, name: &str, now: u64) -> Result<Way, ApiError> {
        let (failure, after_session) = match &self.state {
            State::Failed { failure, after_session } => (failure, after_session),
            State::Retrying { failure, retry } => {
                let left = Duration::from_millis(retry.next_attempt_at.saturating_sub(now));
                if left > WORTH_WAITING_FOR {
                    return Err(unavailable(name, &failure.cause).with_retry_after(left));
                }
                return Ok(Way::Await);
            }
            State::Disabled | State::Sleeping | State::Connecting { .. } | State::Connected(_) => {
                return Ok(Way::Episode);
            }
        };
        let rested = Duration::from_millis(now.saturating_sub(self.since));
        match failure.cause.rest() {
            Some(_) if *after_session => Ok(Way::Episode),
            Some(rest) if rested >= rest => Ok(Way::Once),
            Some(rest) => Err(unavailable(name, &failure.cause).with_retry_after(rest - rested)),
            None => Err(unavailable(name, &failure.cause)),
        }
    }

    /// How long until the retry that was announced, by the clock that people see; `None` when none was.
    pub fn announced_in(&self, now: u64) -> Option<Duration> {
        match &self.state {
            State::Retrying { retry, .. } => Some(Duration::from_millis(retry.next_attempt_at.saturating_sub(now))),
            State::Disabled
            | State::Sleeping
            | State::Connecting { .. }
            | State::Connected(_)
            | State::Failed { .. } => None,
        }
    }

    /// Grows with every state that is entered.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether waking from sleep or another network is a reason to try again: not where the person decides, and not
    /// before the time that the upstream itself asked for.
    pub fn may_wake(&self) -> bool {
        self.failure().is_some_and(|failure| {
            let asked_to_wait = matches!(
                &failure.cause,
                Cause::HttpStatus {
                    retry_after: Some(_),
                    ..
                }
            );
            episode::may_pass(&failure.cause) && !asked_to_wait
        })
    }

    /// The one word for it.
    pub fn status(&self) -> Status {
        match &self.state {
            State::Disabled => Status::Disabled,
            State::Sleeping => Status::Sleeping,
            State::Connecting { .. } => Status::Connecting,
            State::Connected(_) => Status::Connected,
            State::Retrying { .. } => Status::Retrying,
            State::Failed { failure, .. } => failure.cause.status(),
        }
    }

    /// The one thing a person can do, or nothing.
    pub fn action(&self) -> Option<Action> {
        match &self.state {
            State::Disabled => Some(Action::Enable),
            State::Sleeping | State::Connecting { .. } | State::Connected(_) => None,
            State::Retrying { failure, .. } | State::Failed { failure, .. } => Some(failure.cause.action()),
        }
    }

    /// The fault that the state carries.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.state {
            State::Retrying { failure, .. } | State::Failed { failure, .. } => Some(failure),
            State::Disabled | State::Sleeping | State::Connecting { .. } | State::Connected(_) => None,
        }
    }

    /// Why its tools are hidden and its calls refused, while it is paused or not known to be what the person allowed.
    pub fn withheld(&self) -> Option<&Cause> {
        let cause = self.failure().map(|failure| &failure.cause);
        cause.filter(|cause| cause.withholds_tools())
    }

    /// The fault in one sentence, and the upstream's own last lines.
    pub fn error(&self) -> (Option<String>, Option<String>) {
        match self.failure() {
            Some(failure) => (Some(failure.cause.sentence()), failure.detail.clone()),
            None => (None, None),
        }
    }

    /// What the attempt waits for, when that takes long.
    pub fn progress_text(&self) -> Option<String> {
        match &self.state {
            State::Connecting { progress } => progress.clone(),
            State::Disabled | State::Sleeping | State::Connected(_) | State::Retrying { .. } | State::Failed { .. } => {
                None
            }
        }
    }

    /// Where the sign-in stands. `access`: what it allows, where one is known to be there.
    pub fn auth(&self, access: Option<Vec<String>>) -> AuthView {
        let (state, scopes) = match self.failure().map(|failure| &failure.cause) {
            Some(Cause::SignIn(need)) => (AuthState::NeedsSignIn, need.wanted().map(<[String]>::to_vec)),
            Some(Cause::UnsupportedAuth(_)) => (AuthState::Unsupported, None),
            Some(Cause::Authority(_)) => (AuthState::Error, access),
            Some(
                Cause::MissingSecret(_)
                | Cause::Entry(_)
                | Cause::TokenRefused { .. }
                | Cause::Keychain(_)
                | Cause::NeedsReview { .. }
                | Cause::TrustUnknown(_)
                | Cause::Paused
                | Cause::ProgramNotFound(_)
                | Cause::NotStarted(_)
                | Cause::Exited(_)
                | Cause::NoAnswer(_)
                | Cause::Network(_)
                | Cause::HttpStatus { .. }
                | Cause::Protocol(_)
                | Cause::Stopped
                | Cause::GivenUp(_),
            )
            | None => match access {
                Some(scopes) => (AuthState::SignedIn, Some(scopes)),
                None => (AuthState::None, None),
            },
        };
        // Nothing to name is nothing known.
        let scopes = scopes.filter(|scopes| !scopes.is_empty());
        AuthView { state, scopes }
    }

    /// The numbers, for `connection` on the API.
    pub fn connection(&self) -> ConnectionView {
        let (facts, retry) = match &self.state {
            State::Connected(facts) => (Some(facts), None),
            State::Retrying { retry, .. } => (None, Some(retry.clone())),
            State::Disabled | State::Sleeping | State::Connecting { .. } | State::Failed { .. } => (None, None),
        };
        ConnectionView {
            generation: self.generation,
            sequence: self.sequence,
            since: self.since,
            observed_at: self.observed_at,
            era: facts.map(|f| f.era),
            protocol: facts.map(|f| f.protocol.clone()),
            retry,
            readiness: facts.map_or(Readiness::Unknown, |f| f.readiness),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        error::Code,
        oauth::{SignInNeed, WhySignIn},
        secrets::KeychainFault,
        snapshot::{KeychainState, LaunchWhy},
    };

    fn needs_review(why: LaunchWhy) -> Cause {
        let identity = "0".repeat(64).parse().unwrap();
        Cause::NeedsReview { why, identity }
    }

    #[test]
    fn what_is_not_known_to_be_allowed_withholds_its_tools_and_starts_by_no_call() {
        for (cause, status, code) in [
            (needs_review(LaunchWhy::New), Status::NeedsReview, Code::NeedsReview),
            (
                Cause::TrustUnknown(KeychainState::Locked),
                Status::KeychainUnavailable,
                Code::KeychainUnavailable,
            ),
            (Cause::Paused, Status::Paused, Code::Disabled),
        ] {
            let mut machine = Machine::new(true, 1);
            machine.failed(cause.into(), 1);
            assert_eq!(machine.status(), status);
            assert!(machine.withheld().is_some() && !machine.may_wake());
            let much_later = 1_000_000_000_000;
            assert_eq!(machine.may_attempt("x", much_later).unwrap_err().code, code);
        }
        for cause in every_cause() {
            let of_trust = matches!(
                cause,
                Cause::NeedsReview { .. } | Cause::TrustUnknown(_) | Cause::Paused
            );
            assert_eq!(cause.withholds_tools(), of_trust, "{cause:?}");
        }
    }

    fn every_cause() -> Vec<Cause> {
        vec![
            Cause::MissingSecret("The secret KEY".into()),
            Cause::Entry("KEY is not set.".into()),
            Cause::TokenRefused { status: 401 },
            Cause::SignIn(SignInNeed::first(None)),
            Cause::UnsupportedAuth("Negotiate".into()),
            Cause::Authority("it answered with HTTP status 503".into()),
            Cause::Keychain(KeychainFault::Locked),
            needs_review(LaunchWhy::New),
            needs_review(LaunchWhy::Changed),
            needs_review(LaunchWhy::TurnedOn),
            Cause::TrustUnknown(KeychainState::Locked),
            Cause::Paused,
            Cause::ProgramNotFound("npx is not on this computer.".into()),
            Cause::NotStarted("x".into()),
            Cause::Exited("exit code 1".into()),
            Cause::NoAnswer(Duration::from_secs(30)),
            Cause::Network("connection refused".into()),
            Cause::HttpStatus {
                status: 503,
                retry_after: None,
            },
            Cause::Protocol("no tools".into()),
            Cause::Stopped,
            Cause::GivenUp(None),
            Cause::GivenUp(Some("It is away.".into())),
        ]
    }

    #[test]
    fn every_fault_has_a_sentence_an_action_and_a_code() {
        for cause in every_cause() {
            let mut machine = Machine::new(true, 5);
            machine.failed(cause.clone().into(), 6);
            assert!(machine.error().0.is_some_and(|text| !text.is_empty()), "{cause:?}");
            assert!(machine.action().is_some(), "{cause:?}");
            assert_ne!(machine.status(), Status::Connected);
            assert!(!unavailable("Files", &cause).message.is_empty());
        }
    }

    #[test]
    fn numbers_only_grow_even_when_the_clock_goes_back() {
        let mut machine = Machine::new(true, 1000);
        let facts = SessionFacts {
            era: Era::Legacy,
            protocol: "2025-11-25".into(),
            readiness: Readiness::Ready,
        };
        let mut last = machine.connection();
        for step in 0..6 {
            match step % 3 {
                0 => machine.connecting(900),
                1 => machine.connected(facts.clone(), 800),
                _ => machine.failed(Cause::Network("reset".into()).into(), 700),
            }
            let now = machine.connection();
            assert!(now.sequence > last.sequence && now.generation >= last.generation && now.since >= last.since);
            last = now;
        }
    }

    #[test]
    fn reading_a_state_changes_nothing() {
        let mut machine = Machine::new(true, 1);
        machine.failed(Cause::SignIn(SignInNeed::first(None)).into(), 2);
        let before = machine.clone();
        let _ = (
            machine.status(),
            machine.action(),
            machine.error(),
            machine.connection(),
            machine.auth(None),
        );
        let _ = machine.may_attempt("x", 99_999_999);
        assert_eq!(machine, before);
    }

    #[test]
    fn where_a_sign_in_stands_follows_from_the_fault_and_from_what_is_known() {
        let more = SignInNeed {
            why: WhySignIn::MoreScopes(vec!["write".into()]),
            challenge: None,
        };
        let access = || Some(vec!["read".to_owned()]);
        for (cause, access, state, scopes) in [
            (None, None, AuthState::None, None),
            (None, access(), AuthState::SignedIn, access()),
            (None, Some(Vec::new()), AuthState::SignedIn, None),
            (
                Some(Cause::Network("reset".into())),
                access(),
                AuthState::SignedIn,
                access(),
            ),
            (
                Some(Cause::SignIn(SignInNeed::first(None))),
                access(),
                AuthState::NeedsSignIn,
                None,
            ),
            (
                Some(Cause::SignIn(more)),
                access(),
                AuthState::NeedsSignIn,
                Some(vec!["write".into()]),
            ),
            (
                Some(Cause::Authority("no".into())),
                access(),
                AuthState::Error,
                access(),
            ),
            (
                Some(Cause::UnsupportedAuth("NTLM".into())),
                None,
                AuthState::Unsupported,
                None,
            ),
            (Some(Cause::TokenRefused { status: 401 }), None, AuthState::None, None),
        ] {
            let mut machine = Machine::new(true, 0);
            if let Some(cause) = &cause {
                machine.failed(cause.clone().into(), 1);
            }
            assert_eq!(machine.auth(access), AuthView { state, scopes }, "{cause:?}");
        }
    }

    #[test]
    fn a_call_may_try_again_after_thirty_seconds_but_not_before() {
        let mut machine = Machine::new(true, 0);
        machine.failed(Cause::Network("refused".into()).into(), 1_000);
        let refused = machine.may_attempt("x", 11_000).unwrap_err();
        assert_eq!(refused.retry_after, Some(Duration::from_secs(20)));
        assert_eq!(machine.may_attempt("x", 31_000), Ok(Way::Once), "without new retries");
    }

    #[test]
    fn a_call_waits_for_a_near_retry_and_hears_when_a_far_one_comes() {
        let wait = Wait {
            number: 1,
            max: 5,
            delay: Duration::from_secs(60),
        };
        let mut machine = Machine::new(true, 0);
        machine.retrying(Cause::Network("refused".into()).into(), wait, 1_000);
        assert_eq!(machine.status(), Status::Retrying);
        let shown = machine.connection().retry.unwrap();
        assert_eq!(
            (
                shown.number,
                shown.max,
                shown.scheduled_at,
                shown.next_attempt_at,
                shown.delay_ms
            ),
            (1, 5, 1_000, 61_000, 60_000)
        );
        let refused = machine.may_attempt("x", 31_000).unwrap_err();
        assert_eq!(refused.retry_after, Some(Duration::from_secs(30)));
        assert_eq!(machine.may_attempt("x", 56_000), Ok(Way::Await));
    }

    #[test]
    fn waking_is_a_reason_to_try_again_only_where_time_may_mend_it_and_nobody_asked_to_wait() {
        let busy = |retry_after| Cause::HttpStatus {
            status: 503,
            retry_after,
        };
        for (cause, may) in [
            (Cause::Network("refused".into()), true),
            (busy(None), true),
            (busy(Some(Duration::from_secs(9))), false),
            (Cause::SignIn(SignInNeed::first(None)), false),
            (Cause::GivenUp(None), false),
        ] {
            let mut machine = Machine::new(true, 0);
            assert!(!machine.may_wake());
            machine.failed(cause.clone().into(), 1);
            assert_eq!(machine.may_wake(), may, "{cause:?}");
        }
    }

    #[test]
    fn a_lost_session_may_be_replaced_at_once() {
        let mut machine = Machine::new(true, 0);
        machine.lost(Cause::Exited("exit code 1".into()).into(), 10);
        assert_eq!(machine.may_attempt("x", 10), Ok(Way::Episode));
    }

    #[test]
    fn a_sign_in_or_protocol_fault_waits_for_the_person() {
        for cause in [Cause::SignIn(SignInNeed::first(None)), Cause::Protocol("x".into())] {
            let mut machine = Machine::new(true, 0);
            machine.failed(cause.into(), 0);
            machine.may_attempt("x", u64::MAX / 2).unwrap_err();
        }
    }

    #[test]
    fn a_missing_program_is_looked_up_at_every_call() {
        let mut machine = Machine::new(true, 0);
        machine.failed(Cause::ProgramNotFound("no npx".into()).into(), 10);
        machine.may_attempt("x", 10).unwrap();
    }
}
