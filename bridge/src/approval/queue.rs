//! Which questions wait, and what became of those that did: bounded, answered once. Pure; time is passed in.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use super::Matter;
use crate::{
    fairness::{self, Share},
    snapshot::{ApprovalState, ApprovalView, Question},
    traffic::Source,
};

/// A question that nobody answers is a no (DESIGN §7.3).
pub const ANSWER_WITHIN: Duration = Duration::from_secs(120);
/// All in all, once the person asked for more time.
pub const LONGER: Duration = Duration::from_secs(600);
/// A change that nobody answers is forgotten (DESIGN §7.2).
pub const CHANGE_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Questions about calls that may wait for one caller, and of one connector those that it asks itself. Programs that can
/// be told apart by their processes alone count together.
pub const MOST_OF_ONE: usize = 5;
/// Questions of one connector that may wait for one caller: none uses up what a caller has.
pub const MOST_OF_PAIR: usize = 2;
/// Questions about calls, and of connectors, that may wait in all. Beyond them a caller that has none waiting gets the
/// place of the latest one of whoever has most.
pub const MOST: usize = 20;
/// Changes that may wait in all.
pub const MOST_CHANGES: usize = 20;
/// Outcomes that can still be asked for.
pub const KEPT: usize = 32;

/// A question with whoever waits for its answer.
pub(super) struct Item<W> {
    pub view: ApprovalView,
    pub asker: Asker,
    /// Of a call: what exactly is asked about.
    pub matter: Option<Matter>,
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
    #[error("{MOST_CHANGES} changes wait already")]
    Changes,
}

/// On whose behalf it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// Under which its questions are seen by others than the owner ([`crate::caller::Caller::label`]).
    pub label: String,
    /// Which of those with this label it is, where that is told apart.
    pub source: Option<Source>,
    /// Of a paired client: the program that showed its token. Its limits do not hang on that, what a yes covers does.
    pub shown_by: Option<Source>,
}

/// Those whose limits are counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    label: String,
    source: Option<Source>,
}

impl Asker {
    /// Whose limits it shares.
    pub fn group(&self) -> Group {
        self.wider(Source::group)
    }

    /// In whose name it holds a place.
    pub fn share(&self) -> Share<Group> {
        Share {
            group: self.group(),
            kin: self.wider(Source::kin),
        }
    }

    fn wider(&self, widen: impl Fn(&Source) -> Source) -> Group {
        Group {
            label: self.label.clone(),
            source: self.source.as_ref().map(widen),
        }
    }
}

/// How long a question waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    pub first: Duration,
    /// In all, once the person asked for more.
    pub longest: Duration,
}

/// Of a question about a call, or of a connector: [`ANSWER_WITHIN`] and [`LONGER`].
impl Default for Patience {
    fn default() -> Self {
        Self {
            first: ANSWER_WITHIN,
            longest: LONGER,
        }
    }
}

impl Patience {
    fn with(self, question: &Question) -> Self {
        match question {
            Question::Elicitation { .. } | Question::Call { .. } => self,
            Question::Manage { .. } => Self {
                first: CHANGE_WITHIN,
                longest: CHANGE_WITHIN,
            },
        }
    }
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
    patience: Patience,
    waiting: Vec<Item<W>>,
    /// How many more calls of those whose questions wait found no room.
    refused: Vec<(Group, u32)>,
    past: VecDeque<(ApprovalView, Asker)>,
}

impl<W> Queue<W> {
    pub fn new(patience: Patience) -> Self {
        Self {
            patience,
            waiting: Vec::new(),
            refused: Vec::new(),
            past: VecDeque::new(),
        }
    }

    /// Adds a question of `asker`; the view's `expires_at` is set to when it ends. Gives the id of the one that makes way
    /// for it, which is to be settled.
    pub fn ask(
        &mut self,
        mut view: ApprovalView,
        asker: Asker,
        matter: Option<Matter>,
        waiter: W,
        now: Instant,
    ) -> Result<Option<String>, Full> {
        let makes_way = match self.room(&view, &asker) {
            Ok(makes_way) => makes_way,
            Err(full) => {
                self.refuse(asker.group());
                return Err(full);
            }
        };
        let within = self.patience.with(&view.question).first;
        view.expires_at = view.asked_at + millis(within);
        self.waiting.push(Item {
            view,
            asker,
            matter,
            waiter,
            asked: now,
            deadline: now + within,
        });
        Ok(makes_way)
    }

    /// Counted where the person sees it: with the questions of the same caller.
    fn refuse(&mut self, group: Group) {
        if let Some((_, count)) = self.refused.iter_mut().find(|(known, _)| *known == group) {
            *count = count.saturating_add(1);
        } else if self.waiting.iter().any(|item| item.asker.group() == group) {
            self.refused.push((group, 1));
        }
    }

    fn room(&self, view: &ApprovalView, asker: &Asker) -> Result<Option<String>, Full> {
        let is_change = |item: &&Item<W>| matches!(item.view.question, Question::Manage { .. });
        let calls = || self.waiting.iter().filter(|item| !is_change(item));
        let count = |is_like: &dyn Fn(&Item<W>) -> bool| calls().filter(|item| is_like(item)).count();
        let group = asker.group();
        let is_askers = |item: &Item<W>| item.asker.group() == group;
        let is_servers = |item: &Item<W>| item.view.server == view.server;
        let is_its_own =
            |item: &Item<W>| is_servers(item) && matches!(item.view.question, Question::Elicitation { .. });
        match &view.question {
            Question::Manage { .. } if self.waiting.iter().filter(is_change).count() >= MOST_CHANGES => {
                return Err(Full::Changes);
            }
            Question::Manage { .. } => return Ok(None),
            Question::Call { .. } if count(&is_askers) >= MOST_OF_ONE => return Err(Full::OfOne),
            Question::Call { .. } => {}
            Question::Elicitation { .. } if count(&|item| is_askers(item) && is_its_own(item)) >= MOST_OF_PAIR => {
                return Err(Full::OfPair);
            }
            Question::Elicitation { .. } if count(&is_askers).max(count(&is_its_own)) >= MOST_OF_ONE => {
                return Err(Full::OfOne);
            }
            Question::Elicitation { .. } => {}
        }
        if count(&|_| true) < MOST {
            return Ok(None);
        }
        let held: Vec<_> = calls().map(|item| item.asker.share()).collect();
        let at = fairness::makes_way(&held, &asker.share()).ok_or(Full::InAll)?;
        Ok(calls().nth(at).map(|item| item.view.id.clone()))
    }

    /// The ids of those that wait and belong to these callers.
    pub fn ids_of(&self, group: &Group) -> Vec<String> {
        let its = self.waiting.iter().filter(|item| item.asker.group() == *group);
        its.map(|item| item.view.id.clone()).collect()
    }

    /// Those that wait as people see them: each with how many others ask for exactly the same.
    pub fn views(&self, of: Option<&str>) -> Vec<ApprovalView> {
        let seen = self
            .waiting
            .iter()
            .filter(|item| of.is_none_or(|label| item.asker.label == label));
        seen.map(|item| {
            let mut view = item.view.clone();
            let group = item.asker.group();
            let refused = self.refused.iter().find(|(known, _)| *known == group);
            view.refused = refused.map_or(0, |(_, count)| *count);
            if let Question::Call { call } = &mut view.question {
                call.same = u32::try_from(self.same_as(item).count()).unwrap_or(u32::MAX);
            }
            view
        })
        .collect()
    }

    /// The ids of the other questions that ask for exactly the same.
    pub fn same_as<'q>(&'q self, one: &'q Item<W>) -> impl Iterator<Item = &'q str> {
        let others = self.waiting.iter().filter(move |other| {
            one.matter.is_some()
                && other.view.id != one.view.id
                && other.asker == one.asker
                && other.matter == one.matter
        });
        others.map(|other| other.view.id.as_str())
    }

    /// A question that waits, or one whose outcome is kept, with whom it was asked for.
    pub fn find(&self, id: &str) -> Option<(&ApprovalView, &Asker)> {
        let waiting = self.waiting.iter().map(|item| (&item.view, &item.asker));
        let past = self.past.iter().map(|(view, asker)| (view, asker));
        waiting.chain(past).find(|(view, _)| view.id == id)
    }

    /// One that waits.
    pub fn open(&self, id: &str) -> Result<&Item<W>, Unanswerable> {
        match self.waiting.iter().find(|item| item.view.id == id) {
            Some(item) => Ok(item),
            None => Err(self.over(id)),
        }
    }

    /// Gives it the longest that its kind may have, such as [`LONGER`]. Asking again changes nothing.
    pub fn extend(&mut self, id: &str) -> Result<&Item<W>, Unanswerable> {
        match self.waiting.iter().position(|item| item.view.id == id) {
            Some(at) => {
                let item = &mut self.waiting[at];
                let longest = self.patience.with(&item.view.question).longest;
                item.deadline = item.asked + longest;
                item.view.expires_at = item.view.asked_at + millis(longest);
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
        let waiting = &self.waiting;
        self.refused
            .retain(|(group, _)| waiting.iter().any(|item| item.asker.group() == *group));
        item.view.state = state;
        if self.past.len() == KEPT {
            self.past.pop_front();
        }
        self.past.push_back((item.view.clone(), item.asker.clone()));
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
