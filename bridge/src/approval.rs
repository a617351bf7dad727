//! Questions that wait for the person.
//!
//! Owns which wait and what became of them; a question ends with the first of: an answer, its deadline (which means no),
//! or the end of whatever asked. It never decides who may answer (`http` and the window do) and never talks to an
//! upstream. `queue` is what waits (pure), `manners` who may not ask and what was missed (pure), `matter` what a yes to a
//! call covers, `elicitation` what an upstream may ask (pure).

pub mod elicitation;
mod manners;
mod matter;
mod queue;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::{Map, Value};
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

pub use self::queue::{Asker, Full, Group, Patience, Unanswerable};
use self::{manners::Manners, queue::Queue};
pub use self::{
    manners::Mute,
    matter::{Matter, Subject},
};
use crate::{
    activity::{Entry, Outcome, Recorder, WhoRecord},
    caller::Caller,
    clock::unix_ms,
    error::Code,
    event::{Event, EventLog},
    ids::ConnectorId,
    snapshot::{
        ActivityCaller, ActivityQuestion, ActivityWhat, AllowedBy, ApprovalState, ApprovalView, CallQuestion,
        Elicitation, MutedView, PersonAnswer, Question, WhoView,
    },
};

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalAnswer {
    /// Yes; for a form with these values, or with what its schema proposes. To a call: once.
    Approve(Option<Map<String, Value>>),
    /// Yes, to a call.
    Allow(Reach),
    /// No.
    Deny,
    /// Neither: whoever asked is told that the question was put away.
    Cancel,
}

/// How far a yes to a call reaches. What goes beyond this one call is a rule, which is made first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Once,
    /// This one and those that ask for exactly the same at this moment.
    AlsoSame,
    UntilQuit,
    Always,
}

impl Reach {
    fn answer(self) -> PersonAnswer {
        match self {
            Self::Once | Self::AlsoSame => PersonAnswer::Once,
            Self::UntilQuit => PersonAnswer::UntilQuit,
            Self::Always => PersonAnswer::Always,
        }
    }
}

/// How a question ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// With the values that belong to the yes, where there are any.
    Approved(Option<Map<String, Value>>),
    /// A call may go, and how the person said so.
    Allowed(PersonAnswer),
    Denied,
    Cancelled,
    /// Nobody answered in time.
    Expired,
    /// It was put off for somebody who had no question waiting.
    MadeWay,
}

impl Verdict {
    fn state(&self) -> ApprovalState {
        match self {
            Self::Approved(_) | Self::Allowed(_) => ApprovalState::Approved,
            Self::Denied | Self::Cancelled => ApprovalState::Denied,
            Self::Expired | Self::MadeWay => ApprovalState::Expired,
        }
    }
}

/// Why an answer was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotTaken {
    Unanswerable(Unanswerable),
    /// Its values do not fit; the question goes on waiting.
    Wrong(elicitation::Wrong),
}

impl From<Unanswerable> for NotTaken {
    fn from(why: Unanswerable) -> Self {
        Self::Unanswerable(why)
    }
}

/// Why a question was not put to the person.
#[derive(Debug, thiserror::Error)]
pub enum NotAsked {
    #[error(transparent)]
    Full(#[from] Full),
    #[error("the caller may not ask at present")]
    Muted(Mute),
    /// Ids have to be unguessable.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// A question to be put to the person.
#[derive(Debug)]
pub struct Asking {
    /// The connector that it is about, and its name for people.
    pub server: ConnectorId,
    pub server_name: String,
    /// Whose call it belongs to; the owner's where that is not certain.
    pub asker: Asker,
    pub question: Question,
    /// Of a call: what exactly is asked about.
    pub matter: Option<Matter>,
}

/// A question about a call that waits.
#[derive(Debug, Clone)]
pub struct OpenCall {
    pub asker: Asker,
    pub matter: Matter,
    pub question: Box<CallQuestion>,
}

struct Waiter {
    verdict: oneshot::Sender<Verdict>,
    /// Told that the deadline moved.
    moved: Arc<Notify>,
}

/// All questions of a bridge.
pub struct Approvals {
    queue: Mutex<Queue<Waiter>>,
    manners: Mutex<Manners>,
    events: Arc<EventLog>,
    activity: Recorder,
    /// Told whenever a snapshot has something new to show.
    pub changed: Notify,
}

impl Approvals {
    /// Nothing waits yet. What happens is told to `events`, and what became of it is recorded.
    pub fn new(events: Arc<EventLog>, activity: Recorder, patience: Patience) -> Self {
        Self {
            queue: Mutex::new(Queue::new(patience)),
            manners: Mutex::default(),
            events,
            activity,
            changed: Notify::new(),
        }
    }

    /// Puts a question to the person. It waits for as long as what is returned is kept.
    ///
    /// # Errors
    /// [`NotAsked`]
    pub fn ask(self: &Arc<Self>, asking: Asking) -> Result<Waiting, NotAsked> {
        let id = draw_id().map_err(NotAsked::Random)?;
        if asking.matter.is_some()
            && let Some(mute) = self.manners().muted(&asking.asker, Instant::now())
        {
            return Err(NotAsked::Muted(mute));
        }
        let Asking {
            server,
            server_name,
            asker,
            question,
            matter,
        } = asking;
        let (sender, verdict) = oneshot::channel();
        let moved = Arc::new(Notify::new());
        let now = unix_ms();
        let view = ApprovalView {
            id: id.clone(),
            state: ApprovalState::Waiting,
            server: server.clone(),
            server_name,
            asked_at: now,
            refused: 0,
            expires_at: now,
            question,
        };
        let waiter = Waiter {
            verdict: sender,
            moved: moved.clone(),
        };
        let mut queue = self.lock();
        let caller = asker.label.clone();
        let makes_way = match queue.ask(view, asker, matter, waiter, Instant::now()) {
            Ok(makes_way) => makes_way,
            Err(full) => {
                drop(queue);
                // It is counted where the person sees it.
                self.changed.notify_one();
                return Err(full.into());
            }
        };
        if let Some(makes_way) = makes_way {
            // It waits for as long as the queue is held.
            let _ = self.settle(&mut queue, &makes_way, Verdict::MadeWay);
        }
        self.events.publish(Event::ApprovalRequested {
            approval: id.clone(),
            server,
            caller,
        });
        drop(queue);
        self.changed.notify_one();
        Ok(Waiting {
            approvals: self.clone(),
            id,
            verdict,
            moved,
        })
    }

    /// Those that wait, the oldest first; for one caller only its own.
    pub fn waiting(&self, of: Option<&str>) -> Vec<ApprovalView> {
        self.lock().views(of)
    }

    /// One that waits, or one of the newest that did; for one caller only its own.
    pub fn find(&self, id: &str, of: Option<&str>) -> Option<ApprovalView> {
        let queue = self.lock();
        let (view, asker) = queue.find(id)?;
        of.is_none_or(|label| asker.label == label).then(|| view.clone())
    }

    /// A question about a call that waits, with what a rule for it needs.
    ///
    /// # Errors
    /// [`Unanswerable`]; unknown, too, for a question about something else.
    pub fn open_call(&self, id: &str) -> Result<OpenCall, Unanswerable> {
        let queue = self.lock();
        let item = queue.open(id)?;
        match (&item.view.question, &item.matter) {
            (Question::Call { call }, Some(matter)) => Ok(OpenCall {
                asker: item.asker.clone(),
                matter: matter.clone(),
                question: call.clone(),
            }),
            (Question::Call { .. } | Question::Manage { .. } | Question::Elicitation { .. }, _) => {
                Err(Unanswerable::Unknown)
            }
        }
    }

    /// Takes the person's answer.
    ///
    /// # Errors
    /// [`NotTaken`]
    pub fn answer(&self, id: &str, answer: ApprovalAnswer) -> Result<ApprovalView, NotTaken> {
        let mut queue = self.lock();
        let (verdict, also_same) = match answer {
            ApprovalAnswer::Approve(content) => match &queue.open(id)?.view.question {
                Question::Elicitation { asks } => {
                    let content = elicitation::approved(asks, content).map_err(NotTaken::Wrong)?;
                    (Verdict::Approved(content), false)
                }
                Question::Call { .. } | Question::Manage { .. } if content.is_some() => {
                    return Err(NotTaken::Wrong(elicitation::Wrong::no_form()));
                }
                Question::Call { .. } => (Verdict::Allowed(PersonAnswer::Once), false),
                Question::Manage { .. } => (Verdict::Approved(None), false),
            },
            ApprovalAnswer::Allow(reach) => match &queue.open(id)?.view.question {
                Question::Call { .. } => (Verdict::Allowed(reach.answer()), reach == Reach::AlsoSame),
                Question::Elicitation { .. } | Question::Manage { .. } => {
                    return Err(NotTaken::Wrong(elicitation::Wrong::no_call()));
                }
            },
            ApprovalAnswer::Deny => (Verdict::Denied, false),
            ApprovalAnswer::Cancel => (Verdict::Cancelled, false),
        };
        let same: Vec<String> = match also_same {
            true => queue.same_as(queue.open(id)?).map(str::to_owned).collect(),
            false => Vec::new(),
        };
        let view = self.settle(&mut queue, id, verdict.clone())?;
        for other in same {
            // They wait for as long as the queue is held.
            let _ = self.settle(&mut queue, &other, verdict.clone());
        }
        drop(queue);
        self.back();
        Ok(view)
    }

    /// Takes back what a caller asks about connectors that it is not let in to any more.
    pub fn withdraw(&self, caller: &str, is_out: impl Fn(&ConnectorId) -> bool) {
        for view in self.waiting(Some(caller)) {
            if is_out(&view.server) {
                self.end(&view.id, Verdict::Denied, Outcome::Cancelled);
            }
        }
    }

    /// The person is there: whoever was muted for want of an answer may ask again.
    pub fn back(&self) {
        if self.manners().back() {
            self.changed.notify_one();
        }
    }

    /// This caller may not ask for an hour, nor who shares its limits; all that they ask is denied.
    pub fn stop(&self, asker: &Asker, who: &WhoView) {
        // Where none can be drawn, one that nobody guesses is no loss: the hour ends by itself.
        let id = draw_id().unwrap_or_default();
        self.manners().stop(&id, asker, who, Instant::now(), unix_ms());
        let mut queue = self.lock();
        for id in queue.ids_of(&asker.group()) {
            // They wait for as long as the queue is held.
            let _ = self.settle(&mut queue, &id, Verdict::Denied);
        }
        drop(queue);
        self.changed.notify_one();
    }

    /// For how long yet this caller may not ask, because the person told it to stop.
    pub fn stopped_for(&self, asker: &Asker) -> Option<Duration> {
        self.manners().stopped_for(asker, Instant::now())
    }

    /// Lets a muted caller ask again; false where none of this id is muted.
    pub fn let_ask(&self, id: &str) -> bool {
        let done = self.manners().let_ask(id);
        self.changed.notify_one();
        done
    }

    /// The same call of the same caller goes once without asking; false where no question of this id was missed.
    pub fn allow_next_time(&self, id: &str) -> bool {
        let done = self.manners().allow_next_time(id, Instant::now());
        self.changed.notify_one();
        done
    }

    /// Takes the leave that the person gave this very call, where they did.
    pub fn take_leave(&self, asker: &Asker, matter: &Matter) -> bool {
        self.manners().take_leave(asker, matter, Instant::now())
    }

    /// Questions that nobody answered, the newest first, and callers that may not ask at present.
    pub fn left(&self) -> (Vec<ApprovalView>, Vec<MutedView>) {
        let mut manners = self.manners();
        (manners.list_missed(), manners.list_muted(Instant::now()))
    }

    /// Comes when somebody who was told to stop may ask again.
    pub async fn next_end(&self) {
        let end = self.manners().next_end();
        sleep_until(end).await;
    }

    /// Gives the person ten minutes in all.
    ///
    /// # Errors
    /// [`Unanswerable`]
    pub fn extend(&self, id: &str) -> Result<ApprovalView, Unanswerable> {
        let view = {
            let mut queue = self.lock();
            let item = queue.extend(id)?;
            item.waiter.moved.notify_one();
            item.view.clone()
        };
        self.changed.notify_one();
        Ok(view)
    }

    fn settle(&self, queue: &mut Queue<Waiter>, id: &str, verdict: Verdict) -> Result<ApprovalView, Unanswerable> {
        let outcome = outcome(&verdict);
        self.settle_as(queue, id, verdict, outcome)
    }

    fn settle_as(
        &self,
        queue: &mut Queue<Waiter>,
        id: &str,
        verdict: Verdict,
        outcome: Outcome,
    ) -> Result<ApprovalView, Unanswerable> {
        let item = queue.settle(id, verdict.state())?;
        if let Some(entry) = entry(&item.view, &item.asker.label, &verdict, outcome) {
            self.activity.record(entry);
        }
        let unanswered = verdict == Verdict::Expired && outcome != Outcome::Cancelled;
        if let (true, Question::Call { call }, Some(matter)) = (unanswered, &item.view.question, item.matter) {
            self.manners().missed(item.view.clone(), &call.who, &item.asker, matter);
        }
        // Whoever asked may have gone at this very moment.
        let _ = item.waiter.verdict.send(verdict);
        self.events.publish(Event::ApprovalResolved {
            approval: item.view.id.clone(),
            server: item.view.server.clone(),
            caller: item.asker.label,
            state: item.view.state,
        });
        self.changed.notify_one();
        Ok(item.view)
    }

    fn end(&self, id: &str, verdict: Verdict, outcome: Outcome) {
        let mut queue = self.lock();
        // Where an answer came first, that one holds.
        let _ = self.settle_as(&mut queue, id, verdict, outcome);
    }

    fn manners(&self) -> MutexGuard<'_, Manners> {
        self.manners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Queue<Waiter>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that waits. Dropping it withdraws the question.
pub struct Waiting {
    approvals: Arc<Approvals>,
    id: String,
    verdict: oneshot::Receiver<Verdict>,
    moved: Arc<Notify>,
}

impl Waiting {
    /// How it ends: by an answer, or by its deadline. Safe to drop and call again until it returns.
    pub async fn verdict(&mut self) -> Verdict {
        loop {
            let deadline = self.approvals.lock().deadline(&self.id);
            tokio::select! {
                biased;
                verdict = &mut self.verdict => return verdict.unwrap_or(Verdict::Expired),
                () = self.moved.notified() => {}
                () = sleep_until(deadline) => {
                    let outcome = Outcome::Denied(Code::ApprovalTimeout.name());
                    self.approvals.end(&self.id, Verdict::Expired, outcome);
                }
            }
        }
    }

    /// What was asked for has been done elsewhere.
    pub fn done(self) {
        self.approvals.end(&self.id, Verdict::Approved(None), Outcome::Ok);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.approvals.end(&self.id, Verdict::Expired, Outcome::Cancelled);
    }
}

fn outcome(verdict: &Verdict) -> Outcome {
    match verdict {
        Verdict::Approved(_) | Verdict::Allowed(_) => Outcome::Ok,
        Verdict::Denied => Outcome::Denied(Code::Denied.name()),
        Verdict::Cancelled => Outcome::Cancelled,
        Verdict::Expired => Outcome::Denied(Code::ApprovalTimeout.name()),
        Verdict::MadeWay => Outcome::Denied(Code::RateLimited.name()),
    }
}

/// What became of a question; that of a call is part of the call's own entry.
fn entry(view: &ApprovalView, caller: &str, verdict: &Verdict, outcome: Outcome) -> Option<Entry> {
    let asks = match &view.question {
        Question::Elicitation {
            asks: Elicitation::Form { .. },
        } => ActivityQuestion::Form,
        Question::Elicitation {
            asks: Elicitation::Url { .. },
        } => ActivityQuestion::Page,
        Question::Call { .. } => return None,
        Question::Manage { .. } => ActivityQuestion::Change,
    };
    let what = ActivityWhat::Question {
        server: view.server.clone(),
        asks,
    };
    let is_owners = caller == Caller::OWNER;
    let who = WhoRecord::plain(if is_owners {
        ActivityCaller::Owner
    } else {
        ActivityCaller::WalkIn
    });
    let mut entry = Entry::new(who, what).ended(outcome);
    entry.duration_ms = Some(entry.at.saturating_sub(view.asked_at));
    entry.allowed_by = AllowedBy::Person {
        answer: match verdict {
            Verdict::Approved(_) => PersonAnswer::Once,
            Verdict::Allowed(answer) => *answer,
            Verdict::Denied => PersonAnswer::Denied,
            Verdict::Cancelled | Verdict::Expired | Verdict::MadeWay => PersonAnswer::Unanswered,
        },
    };
    Some(entry)
}

/// Never, for a question that has ended: its verdict is on its way.
async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn draw_id() -> Result<String, getrandom::Error> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
