//! Which questions wait, and what became of those that did: bounded, answered once. Pure; time is passed in.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use crate::snapshot::{ApprovalState, ApprovalView};

/// A question that nobody answers is a no (DESIGN §7.3).
pub const ANSWER_WITHIN: Duration = Duration::from_secs(120);
/// All in all, once the person asked for more time.
pub const LONGER: Duration = Duration::from_secs(600);

/// Questions that may wait for one caller, and of one connector.
pub const MOST_OF_ONE: usize = 5;
/// Questions of one connector that may wait for one caller: none uses up what a caller has.
pub const MOST_OF_PAIR: usize = 2;
/// Questions that may wait in all.
pub const MOST: usize = 20;
/// Outcomes that can still be asked for.
pub const KEPT: usize = 32;

/// A question with whoever waits for its answer.
pub(super) struct Item<W> {
    pub view: ApprovalView,
    /// Whose call it belongs to.
    pub caller: String,
    pub waiter: W,
    asked: Instant,
    deadline: Instant,
}

/// More questions wait than a person can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("{MOST_OF_PAIR} of its questions wait for this caller already")]
    OfPair,
    #[error("{MOST_OF_ONE} of its questions wait already")]
    OfOne,
    #[error("{MOST} questions wait already")]
    InAll,
}

/// Why a question cannot be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unanswerable {
    Unknown,
    /// It was answered, or its time is over.
    Over(ApprovalState),
}

/// What waits, the oldest first, and the newest outcomes.
pub(super) struct Queue<W> {
    waiting: Vec<Item<W>>,
    past: VecDeque<(ApprovalView, String)>,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            past: VecDeque::new(),
        }
    }
}

impl<W> Queue<W> {
    /// Adds a question of `caller`; the view's `expires_at` is set to when it ends.
    pub fn ask(&mut self, mut view: ApprovalView, caller: String, waiter: W, now: Instant) -> Result<(), Full> {
        if self.waiting.len() >= MOST {
            return Err(Full::InAll);
        }
        let count = |is_like: &dyn Fn(&Item<W>) -> bool| self.waiting.iter().filter(|item| is_like(item)).count();
        let is_callers = |item: &Item<W>| item.caller == caller;
        let is_servers = |item: &Item<W>| item.view.server == view.server;
        if count(&|item| is_callers(item) && is_servers(item)) >= MOST_OF_PAIR {
            return Err(Full::OfPair);
        }
        if count(&is_callers).max(count(&is_servers)) >= MOST_OF_ONE {
            return Err(Full::OfOne);
        }
        view.expires_at = view.asked_at + millis(ANSWER_WITHIN);
        self.waiting.push(Item {
            view,
            caller,
            waiter,
            asked: now,
            deadline: now + ANSWER_WITHIN,
        });
        Ok(())
    }

    /// Those that wait.
    pub fn waiting(&self) -> impl Iterator<Item = &Item<W>> {
        self.waiting.iter()
    }

    /// A question that waits, or one whose outcome is kept, with its caller.
    pub fn find(&self, id: &str) -> Option<(&ApprovalView, &str)> {
        let waiting = self.waiting.iter().map(|item| (&item.view, item.caller.as_str()));
        let past = self.past.iter().map(|(view, caller)| (view, caller.as_str()));
        waiting.chain(past).find(|(view, _)| view.id == id)
    }

    /// One that waits.
    pub fn open(&self, id: &str) -> Result<&Item<W>, Unanswerable> {
        match self.waiting.iter().find(|item| item.view.id == id) {
            Some(item) => Ok(item),
            None => Err(self.over(id)),
        }
    }

    /// Gives it [`LONGER`] in all. Asking again changes nothing.
    pub fn extend(&mut self, id: &str) -> Result<&Item<W>, Unanswerable> {
        match self.waiting.iter().position(|item| item.view.id == id) {
            Some(at) => {
                let item = &mut self.waiting[at];
                item.deadline = item.asked + LONGER;
                item.view.expires_at = item.view.asked_at + millis(LONGER);
                Ok(item)
            }
            None => Err(self.over(id)),
        }
    }

    /// When it ends without an answer; `None` for one that does not wait.
    pub fn deadline(&self, id: &str) -> Option<Instant> {
        self.open(id).ok().map(|item| item.deadline)
    }

    /// Ends it. Of two who try, one succeeds.
    pub fn settle(&mut self, id: &str, state: ApprovalState) -> Result<Item<W>, Unanswerable> {
        let Some(at) = self.waiting.iter().position(|item| item.view.id == id) else {
            return Err(self.over(id));
        };
        let mut item = self.waiting.remove(at);
        item.view.state = state;
        if self.past.len() == KEPT {
            self.past.pop_front();
        }
        self.past.push_back((item.view.clone(), item.caller.clone()));
        Ok(item)
    }

    fn over(&self, id: &str) -> Unanswerable {
        match self.past.iter().find(|(view, _)| view.id == id) {
            Some((view, _)) => Unanswerable::Over(view.state),
            None => Unanswerable::Unknown,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
