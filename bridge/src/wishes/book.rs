//! Which wishes wait, and what became of those that did: bounded, granted once. Pure; time is passed in.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Asked, Bound, Wish};
use crate::{
    approval::{Asker, Group},
    fairness,
    ids::ConnectorId,
    snapshot::{ApprovalState, ApprovalView, Question},
};

/// A wish that nobody answers is gone after this (DESIGN §7.2).
pub const WAITS: Duration = Duration::from_secs(24 * 60 * 60);
/// Wishes that may wait in all. Beyond them a caller that has none waiting gets the place of the latest one of whoever has
/// most.
pub const MOST: usize = 20;
/// Wishes of one caller that may wait. Programs that only their processes tell apart are one.
pub const MOST_OF_ONE: usize = 5;
/// Outcomes that can still be asked for.
const PAST: usize = 32;

/// One that waits.
pub(super) struct Item {
    pub view: ApprovalView,
    pub asker: Asker,
    pub wish: Arc<Wish>,
    bound: Bound,
    ends: Instant,
    /// It is being granted.
    taken: bool,
}

/// More wait than a person can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("{MOST_OF_ONE} changes of this program wait for the person already")]
    OfOne,
    #[error("{MOST} changes wait for the person already")]
    InAll,
}

/// One that is over, and the label of whoever wished it.
pub(super) type Ended = (ApprovalView, String);

/// What became of a wish that was put.
#[derive(Debug)]
pub(super) enum Kept {
    /// With the one that made way for it.
    New(Option<Box<Ended>>),
    /// The same one waits already, under this id.
    Already(String),
}

/// What is found where one is to be granted.
#[derive(Debug)]
pub enum Taken {
    /// This is to be done.
    Wish {
        wish: Arc<Wish>,
        view: Box<ApprovalView>,
        bound: Bound,
    },
    /// Somebody else has taken it.
    UnderWay,
    Over(ApprovalState),
}

#[derive(Default)]
pub(super) struct Book {
    waiting: Vec<Item>,
    past: VecDeque<Ended>,
}

impl Book {
    pub fn put(
        &mut self,
        view: ApprovalView,
        asker: Asker,
        wish: Wish,
        bound: Bound,
        now: Instant,
    ) -> Result<Kept, Full> {
        let same = self.waiting.iter();
        let mut same = same.filter(|item| !item.taken && item.same_wish(&wish, &asker.label, &view.question));
        if let Some(item) = same.next() {
            return Ok(Kept::Already(item.view.id.clone()));
        }
        let group = asker.group();
        if self.waiting.iter().filter(|item| item.asker.group() == group).count() >= MOST_OF_ONE {
            return Err(Full::OfOne);
        }
        let makes_way = match self.waiting.len() < MOST {
            true => None,
            false => Some(self.makes_way(&asker).ok_or(Full::InAll)?),
        };
        self.waiting.push(Item {
            view,
            asker,
            wish: Arc::new(wish),
            bound,
            ends: now + WAITS,
            taken: false,
        });
        Ok(Kept::New(makes_way.map(Box::new)))
    }

    fn makes_way(&mut self, asker: &Asker) -> Option<Ended> {
        let free = self.waiting.iter().enumerate().filter(|(_, item)| !item.taken);
        let (places, held): (Vec<_>, Vec<_>) = free.map(|(at, item)| (at, item.asker.share())).unzip();
        let at = fairness::makes_way(&held, &asker.share())?;
        Some(self.end(places[at], ApprovalState::Expired))
    }

    pub fn waiting(&self, of: Option<&str>) -> impl Iterator<Item = &ApprovalView> {
        let items = self.waiting.iter();
        items
            .filter(move |item| of.is_none_or(|caller| item.asker.label == caller))
            .map(|item| &item.view)
    }

    pub fn find(&self, id: &str, of: Option<&str>) -> Option<&ApprovalView> {
        let waiting = self.waiting.iter().map(|item| (&item.view, item.asker.label.as_str()));
        let past = self.past.iter().map(|(view, caller)| (view, caller.as_str()));
        let found = waiting.chain(past).find(|(view, _)| view.id == id);
        found
            .filter(|(_, caller)| of.is_none_or(|of| of == *caller))
            .map(|(view, _)| view)
    }

    pub fn take(&mut self, id: &str, now: Instant) -> Option<Taken> {
        if let Some((view, _)) = self.past.iter().find(|(view, _)| view.id == id) {
            return Some(Taken::Over(view.state));
        }
        let item = self.waiting.iter_mut().find(|item| item.view.id == id)?;
        Some(if item.taken {
            Taken::UnderWay
        } else if item.ends <= now {
            Taken::Over(ApprovalState::Expired)
        } else {
            item.taken = true;
            Taken::Wish {
                wish: item.wish.clone(),
                view: Box::new(item.view.clone()),
                bound: item.bound.clone(),
            }
        })
    }

    /// Whoever wished one that waits.
    pub fn asker(&self, id: &str) -> Option<&Asker> {
        let item = self.waiting.iter().find(|item| item.view.id == id)?;
        Some(&item.asker)
    }

    pub fn wish(&self, id: &str) -> Option<Arc<Wish>> {
        let item = self.waiting.iter().find(|item| item.view.id == id)?;
        Some(item.wish.clone())
    }

    pub fn put_back(&mut self, id: &str, asked: Option<Asked>) {
        if let Some(item) = self.waiting.iter_mut().find(|item| item.view.id == id) {
            item.taken = false;
            if let Some(Asked { question, bound }) = asked {
                item.view.question = question;
                item.bound = bound;
            }
        }
    }

    /// Whether that is another one than was shown. One that is being granted stays as the person saw it.
    pub fn show(&mut self, id: &str, question: Question) -> bool {
        match self.waiting.iter_mut().find(|item| item.view.id == id && !item.taken) {
            Some(item) if item.view.question != question => {
                item.view.question = question;
                true
            }
            Some(_) | None => false,
        }
    }

    pub fn settle(&mut self, id: &str, state: ApprovalState) -> Option<Ended> {
        let at = self.waiting.iter().position(|item| item.view.id == id)?;
        Some(self.end(at, state))
    }

    /// Those of a caller of which this holds and that are not being granted.
    pub fn withdraw(&mut self, caller: &str, is_out: impl Fn(&Wish) -> bool) -> Vec<Ended> {
        self.end_all(ApprovalState::Expired, |item| {
            item.asker.label == caller && is_out(&item.wish)
        })
    }

    /// Those about a connector that are not being granted.
    pub fn withdraw_about(&mut self, server: &ConnectorId) -> Vec<Ended> {
        self.end_all(ApprovalState::Expired, |item| item.view.server == *server)
    }

    /// Says no to those of these callers that are not being granted.
    pub fn deny(&mut self, group: &Group) -> Vec<Ended> {
        self.end_all(ApprovalState::Denied, |item| item.asker.group() == *group)
    }

    pub fn first_end(&self) -> Option<Instant> {
        let items = self.waiting.iter().filter(|item| !item.taken);
        items.map(|item| item.ends).min()
    }

    pub fn expire(&mut self, now: Instant) -> Vec<Ended> {
        self.end_all(ApprovalState::Expired, |item| item.ends <= now)
    }

    fn end_all(&mut self, state: ApprovalState, ends: impl Fn(&Item) -> bool) -> Vec<Ended> {
        let mut ended = Vec::new();
        while let Some(at) = self.waiting.iter().position(|item| !item.taken && ends(item)) {
            ended.push(self.end(at, state));
        }
        ended
    }

    fn end(&mut self, at: usize, state: ApprovalState) -> Ended {
        let mut item = self.waiting.remove(at);
        item.view.state = state;
        if self.past.len() == PAST {
            self.past.pop_front();
        }
        let ended = (item.view, item.asker.label);
        self.past.push_back(ended.clone());
        ended
    }
}
