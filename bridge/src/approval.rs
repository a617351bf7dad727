//! Questions that wait for the person.
//!
//! Owns which wait and what became of them; a question ends with the first of: an answer, its deadline (which means no),
//! or the end of whatever asked. It never decides who may answer (`http` and the window do) and never talks to an
//! upstream. `queue` is what waits (pure), `elicitation` what an upstream may ask (pure).

pub mod elicitation;
mod queue;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use self::queue::Queue;
pub use self::queue::{Asker, Full, Unanswerable};
use crate::{
    activity::{Entry, Outcome, Recorder, WhoRecord},
    bridge::Caller,
    clock::unix_ms,
    error::Code,
    event::{Event, EventLog},
    ids::ConnectorId,
    snapshot::{
        ActivityCaller, ActivityQuestion, ActivityWhat, AllowedBy, ApprovalState, ApprovalView, Elicitation,
        PersonAnswer, Question,
    },
};

/// What a person says to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalAnswer {
    /// Yes; for a form with these values, or with what its schema proposes.
    Approve(Option<Map<String, Value>>),
    /// No.
    Deny,
    /// Neither: whoever asked is told that the question was put away.
    Cancel,
}

/// How a question ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// With the values that belong to the yes, where there are any.
    Approved(Option<Map<String, Value>>),
    Denied,
    Cancelled,
    /// Nobody answered in time.
    Expired,
}

impl Verdict {
    fn state(&self) -> ApprovalState {
        match self {
            Self::Approved(_) => ApprovalState::Approved,
            Self::Denied | Self::Cancelled => ApprovalState::Denied,
            Self::Expired => ApprovalState::Expired,
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
}

struct Waiter {
    verdict: oneshot::Sender<Verdict>,
    /// Told that the deadline moved.
    moved: Arc<Notify>,
}

/// All questions of a bridge.
pub struct Approvals {
    queue: Mutex<Queue<Waiter>>,
    events: Arc<EventLog>,
    activity: Recorder,
    /// Told whenever a snapshot has something new to show.
    pub changed: Notify,
}

impl Approvals {
    /// Nothing waits yet. What happens is told to `events`, and what became of it is recorded.
    pub fn new(events: Arc<EventLog>, activity: Recorder) -> Self {
        Self {
            queue: Mutex::default(),
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
        let Asking {
            server,
            server_name,
            asker,
            question,
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
            expires_at: now,
            question,
        };
        let waiter = Waiter {
            verdict: sender,
            moved: moved.clone(),
        };
        let mut queue = self.lock();
        let caller = asker.label.clone();
        queue.ask(view, asker, waiter, Instant::now())?;
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
        let queue = self.lock();
        let items = queue
            .waiting()
            .filter(|item| of.is_none_or(|label| item.asker.label == label));
        items.map(|item| item.view.clone()).collect()
    }

    /// One that waits, or one of the newest that did; for one caller only its own.
    pub fn find(&self, id: &str, of: Option<&str>) -> Option<ApprovalView> {
        let queue = self.lock();
        let (view, asker) = queue.find(id)?;
        of.is_none_or(|label| asker.label == label).then(|| view.clone())
    }

    /// Takes the person's answer.
    ///
    /// # Errors
    /// [`NotTaken`]
    pub fn answer(&self, id: &str, answer: ApprovalAnswer) -> Result<ApprovalView, NotTaken> {
        let mut queue = self.lock();
        let verdict = match answer {
            ApprovalAnswer::Approve(content) => {
                let content = match &queue.open(id)?.view.question {
                    Question::Elicitation { asks } => elicitation::approved(asks, content),
                    Question::Call { .. } | Question::Manage { .. } if content.is_some() => {
                        Err(elicitation::Wrong::no_form())
                    }
                    Question::Call { .. } | Question::Manage { .. } => Ok(None),
                };
                Verdict::Approved(content.map_err(NotTaken::Wrong)?)
            }
            ApprovalAnswer::Deny => Verdict::Denied,
            ApprovalAnswer::Cancel => Verdict::Cancelled,
        };
        let outcome = match &verdict {
            Verdict::Approved(_) => Outcome::Ok,
            Verdict::Denied => Outcome::Denied(Code::Denied.name()),
            Verdict::Cancelled => Outcome::Cancelled,
            Verdict::Expired => Outcome::Denied(Code::ApprovalTimeout.name()),
        };
        Ok(self.settle(&mut queue, id, verdict, outcome)?)
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

    fn settle(
        &self,
        queue: &mut Queue<Waiter>,
        id: &str,
        verdict: Verdict,
        outcome: Outcome,
    ) -> Result<ApprovalView, Unanswerable> {
        let item = queue.settle(id, verdict.state())?;
        self.activity.record(entry(&item.view, &item.asker.label, outcome));
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
        let _ = self.settle(&mut queue, id, verdict, outcome);
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

/// What became of a question.
fn entry(view: &ApprovalView, caller: &str, outcome: Outcome) -> Entry {
    let asks = match &view.question {
        Question::Elicitation {
            asks: Elicitation::Form { .. },
        } => ActivityQuestion::Form,
        Question::Elicitation {
            asks: Elicitation::Url { .. },
        } => ActivityQuestion::Page,
        Question::Call { .. } => ActivityQuestion::Call,
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
        answer: match outcome {
            Outcome::Ok => PersonAnswer::Once,
            Outcome::Denied(code) if code == Code::Denied.name() => PersonAnswer::Denied,
            Outcome::Denied(_) | Outcome::Failed(_) | Outcome::Cancelled => PersonAnswer::Unanswered,
        },
    };
    entry
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
