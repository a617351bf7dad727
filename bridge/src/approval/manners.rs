//! Who may not ask at present, what nobody answered, and what goes once without asking. Pure; time is passed in.
//!
//! Questions that nobody answers are no reason to put more of them: after [`UNANSWERED`] of one caller the next ones wait
//! for the person to be back. A program that starts itself anew stays the one it was where that can be told. All of it is
//! gone when the program quits.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use super::{Asker, Matter, queue::Group};
use crate::snapshot::{ApprovalView, MutedView, WhoView};

/// Questions of one caller in a row that nobody answered, until it is muted.
const UNANSWERED: u32 = 2;
/// How long a program may not ask that the person told to stop.
pub const STOPPED_FOR: Duration = Duration::from_secs(60 * 60);
/// How long a call that was missed may go without asking, once the person said so.
pub const NEXT_TIME_WITHIN: Duration = Duration::from_secs(600);
/// Callers that are remembered; the oldest goes that was not told to stop.
pub const MOST_CALLERS: usize = 64;
/// Missed questions, and calls that may go next time; the oldest goes.
pub const MOST_MISSED: usize = 20;

/// Why a caller's question is not put to the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mute {
    /// Nobody answered its last ones.
    UntilBack,
    /// The person told it to stop.
    Stopped,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Manners {
    callers: VecDeque<Known>,
    missed: VecDeque<Missed>,
    leaves: VecDeque<Leave>,
}

#[derive(Debug)]
struct Known {
    id: String,
    group: Group,
    who: WhoView,
    unanswered: u32,
    /// Until when the person wants to hear nothing of it; the same in Unix milliseconds.
    stopped: Option<(Instant, u64)>,
}

#[derive(Debug)]
struct Missed {
    view: ApprovalView,
    asker: Asker,
    matter: Matter,
}

#[derive(Debug)]
struct Leave {
    asker: Asker,
    matter: Matter,
    until: Instant,
}

impl Manners {
    /// Whether this caller may not ask.
    pub fn muted(&mut self, asker: &Asker, now: Instant) -> Option<Mute> {
        self.forget_over(now);
        let group = asker.group();
        let known = self.callers.iter().find(|known| known.group == group)?;
        known.mute()
    }

    /// For how long yet this caller may not ask, because the person told it to stop.
    pub fn stopped_for(&self, asker: &Asker, now: Instant) -> Option<Duration> {
        let group = asker.group();
        let known = self.callers.iter().find(|known| known.group == group)?;
        let (until, _) = known.stopped.filter(|(until, _)| *until > now)?;
        Some(until - now)
    }

    /// Nobody answered this question in time.
    pub fn missed(&mut self, view: ApprovalView, who: &WhoView, asker: &Asker, matter: Matter) {
        if let Some(known) = self.known(&view.id, asker, who) {
            known.unanswered = known.unanswered.saturating_add(1);
        }
        if self.missed.len() == MOST_MISSED {
            self.missed.pop_back();
        }
        self.missed.push_front(Missed {
            view,
            asker: asker.clone(),
            matter,
        });
    }

    /// This caller may not ask for [`STOPPED_FOR`], and nothing of it goes without asking; `id` names it from here on.
    pub fn stop(&mut self, id: &str, asker: &Asker, who: &WhoView, now: Instant, unix_now: u64) {
        let within = u64::try_from(STOPPED_FOR.as_millis()).unwrap_or(u64::MAX);
        let stopped = Some((now + STOPPED_FOR, unix_now.saturating_add(within)));
        let group = asker.group();
        self.leaves.retain(|leave| leave.asker.group() != group);
        if self.callers.iter().all(|known| known.stopped.is_some()) && self.callers.len() == MOST_CALLERS {
            // So many at once were told by the person's own clicks; what is nearly over is the least loss.
            let by_end = self.callers.iter().enumerate();
            let first = by_end.min_by_key(|(_, known)| known.stopped).map(|(at, _)| at);
            first.and_then(|at| self.callers.remove(at));
        }
        if let Some(known) = self.known(id, asker, who) {
            known.stopped = stopped;
        }
    }

    /// The person is there: whoever was muted for want of an answer may ask again. Whether that changes anything.
    pub fn back(&mut self) -> bool {
        let was_muted = self.callers.iter().any(|known| known.mute() == Some(Mute::UntilBack));
        for known in &mut self.callers {
            known.unanswered = 0;
        }
        self.callers.retain(|known| known.stopped.is_some());
        was_muted
    }

    /// The person lets it ask again; false where nobody of this id is muted.
    pub fn let_ask(&mut self, id: &str) -> bool {
        let before = self.callers.len();
        self.callers.retain(|known| known.id != id);
        self.callers.len() < before
    }

    /// The same call of the same caller goes once without asking; false where no question of this id was missed.
    pub fn allow_next_time(&mut self, id: &str, now: Instant) -> bool {
        let Some(at) = self.missed.iter().position(|missed| missed.view.id == id) else {
            return false;
        };
        let Some(Missed { asker, matter, .. }) = self.missed.remove(at) else {
            return false;
        };
        if self.leaves.len() == MOST_MISSED {
            self.leaves.pop_front();
        }
        self.leaves.push_back(Leave {
            asker,
            matter,
            until: now + NEXT_TIME_WITHIN,
        });
        true
    }

    /// Takes the leave of this very call, where it has one.
    pub fn take_leave(&mut self, asker: &Asker, matter: &Matter, now: Instant) -> bool {
        self.leaves.retain(|leave| leave.until > now);
        let is_its = |leave: &Leave| leave.asker == *asker && leave.matter == *matter;
        let at = self.leaves.iter().position(is_its);
        at.is_some_and(|at| self.leaves.remove(at).is_some())
    }

    /// Those that nobody answered, the newest first.
    pub fn list_missed(&self) -> Vec<ApprovalView> {
        self.missed.iter().map(|missed| missed.view.clone()).collect()
    }

    /// Those who may not ask.
    pub fn list_muted(&mut self, now: Instant) -> Vec<MutedView> {
        self.forget_over(now);
        let muted = self.callers.iter().filter(|known| known.mute().is_some());
        muted
            .map(|known| MutedView {
                id: known.id.clone(),
                who: known.who.clone(),
                until: known.stopped.map(|(_, unix)| unix),
            })
            .collect()
    }

    /// When the first of those who were told to stop may ask again.
    pub fn next_end(&self) -> Option<Instant> {
        self.callers.iter().filter_map(|known| Some(known.stopped?.0)).min()
    }

    fn forget_over(&mut self, now: Instant) {
        for known in &mut self.callers {
            known.stopped.take_if(|(until, _)| *until <= now);
        }
    }

    /// `None` where so many were told to stop that nobody else is remembered.
    fn known(&mut self, id: &str, asker: &Asker, who: &WhoView) -> Option<&mut Known> {
        let group = asker.group();
        if !self.callers.iter().any(|known| known.group == group) {
            if self.callers.len() == MOST_CALLERS {
                let goes = self.callers.iter().position(|known| known.stopped.is_none())?;
                self.callers.remove(goes);
            }
            self.callers.push_back(Known {
                id: id.to_owned(),
                group: group.clone(),
                who: who.clone(),
                unanswered: 0,
                stopped: None,
            });
        }
        self.callers.iter_mut().find(|known| known.group == group)
    }
}

impl Known {
    fn mute(&self) -> Option<Mute> {
        match self.stopped {
            Some(_) => Some(Mute::Stopped),
            None => (self.unanswered >= UNANSWERED).then_some(Mute::UntilBack),
        }
    }
}
