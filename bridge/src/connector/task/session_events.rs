//! What becomes of a connector when something happens to its session.

use std::time::SystemTime;

use super::{
    super::{
        attempt,
        cause::Cause,
        episode::{AfterLoss, Episode},
        health::Pulse,
        live::{LiveEvent, Past},
        state::Failure,
    },
    Task, chance,
};
use crate::{clock::unix_ms, config};

impl Task {
    pub(super) async fn live_event(&mut self, event: LiveEvent) {
        match event {
            LiveEvent::Ended(ended) => {
                if let Some(live) = self.live.take() {
                    self.lost(live.past(), ended.cause);
                }
            }
            LiveEvent::ListsChanged => {
                if let Some(live) = &mut self.live {
                    live.refresh(&self.world, &self.shared.entry(), &self.shared.log);
                }
            }
            LiveEvent::Refreshed(listed) => {
                match *listed {
                    Ok(listed) => {
                        self.listed(listed);
                        self.machine.observed(unix_ms());
                    }
                    // The old lists stay; the next change or reconnect reads them again.
                    Err(cause) => self
                        .shared
                        .log
                        .line(&format!("The lists could not be read again: {}", cause.sentence())),
                }
                self.publish();
            }
            LiveEvent::Replaced => {
                self.machine.replaced(unix_ms());
                self.publish();
            }
            LiveEvent::Pulse(Pulse::Answers) => {
                self.machine.observed(unix_ms());
                self.publish();
            }
            LiveEvent::Pulse(Pulse::Silent) => {
                if let Some(live) = self.live.take() {
                    self.shared.session.store(None);
                    let past = live.past();
                    self.shared
                        .log
                        .line(&format!("[session] {} answered none of three health checks", past.name));
                    // Gone before another one starts.
                    live.close().await;
                    self.lost(
                        past,
                        Cause::Network("it answered none of three health checks".to_owned()),
                    );
                }
            }
            LiveEvent::Denied(cause) => self.denied(cause),
            LiveEvent::Idle => {
                let used = self
                    .shared
                    .used_at()
                    .is_some_and(|at| at >= self.machine.connection().since);
                match &mut self.live {
                    Some(live) if used => live.stay(),
                    Some(_) => self.close_session().await,
                    None => {}
                }
            }
        }
    }

    /// The server lets this session's requests in no longer, or not all of them. What is under way may still be answered.
    fn denied(&mut self, cause: Cause) {
        let Some(live) = self.live.take() else { return };
        self.shared.session.store(None);
        self.earlier = Some(live.session.name.clone());
        self.shared.log.line(&format!(
            "[session] {} is given up: {}",
            live.session.name,
            cause.sentence()
        ));
        while self.running_out.try_join_next().is_some() {}
        self.running_out.spawn(live.run_out());
        self.give_up(cause.into());
    }

    /// The session is gone and nobody here asked for that. What was in use heals by itself: at once where it had worked,
    /// ever later where it keeps ending.
    fn lost(&mut self, past: Past, cause: Cause) {
        self.shared.session.store(None);
        self.earlier = Some(past.name);
        let detail = attempt::last_lines(&self.shared.log, past.since);
        let failure = Failure { cause, detail };
        let in_use = self.somebody_waits()
            || self.shared.entry().start == config::Start::AtLaunch
            || self.shared.used_at().is_some_and(|at| at >= unix_ms_of(past.since));
        if !in_use {
            self.machine.lost(failure, unix_ms());
            self.publish();
            return;
        }
        if past.is_proved || self.episode.is_none() {
            self.episode = Some(Episode::new(self.world.tuning.load().policy));
        }
        let next = self
            .episode
            .as_mut()
            .map_or(AfterLoss::Over, |episode| episode.after_loss(&failure.cause, chance()));
        match next {
            AfterLoss::Now => {
                self.machine.lost(failure, unix_ms());
                self.publish();
                self.start_attempt();
            }
            AfterLoss::Later(wait) => self.retry(failure, wait),
            AfterLoss::Over => self.give_up(failure),
        }
    }
}

fn unix_ms_of(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
