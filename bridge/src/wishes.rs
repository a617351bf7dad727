//! Changes that programs wish for and that wait for the person's yes.
//!
//! Owns which wait and what became of them, in memory alone: a wish is not written, listed, started or contacted, and is
//! gone when the program quits. Never grants one itself (`bridge` does) and never decides who may answer. `book` is which
//! wait (pure).

mod book;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;
use tokio::{sync::Notify, time::Instant};

use self::book::{Book, Ended, Item, Kept};
pub use self::book::{Full, MOST, MOST_OF_ONE, Taken, WAITS};
use crate::{
    approval::{Asker, Group},
    clock::unix_ms,
    config::AutoApprove,
    event::{Event, EventLog},
    ids::ConnectorId,
    secrets::{Binding, SecretName},
    snapshot::{ApprovalState, ApprovalView, Question},
    trust::{LaunchIdentity, rules::Bound as BoundTool},
};

/// A change that a program wishes for.
pub enum Wish {
    Add(ConnectorId, Map<String, Value>),
    Enable(ConnectorId),
    AutoApprove(ConnectorId, AutoApprove),
    Remove(ConnectorId),
    SetSecret {
        id: ConnectorId,
        /// `None` = the token.
        name: Option<SecretName>,
        value: SecretString,
    },
    ForgetSecret(ConnectorId, Option<SecretName>),
    SignIn(ConnectorId),
    SignOut(ConnectorId),
}

impl Wish {
    /// The connector that it is about.
    pub fn server(&self) -> &ConnectorId {
        match self {
            Self::Add(id, _)
            | Self::Enable(id)
            | Self::AutoApprove(id, _)
            | Self::Remove(id)
            | Self::SetSecret { id, .. }
            | Self::ForgetSecret(id, _)
            | Self::SignIn(id)
            | Self::SignOut(id) => id,
        }
    }

    /// What waits, as a sentence begins: `Adding "github"`.
    pub fn words(&self) -> String {
        let id = self.server();
        match self {
            Self::Add(..) => format!("Adding the connector \"{id}\""),
            Self::Enable(_) => format!("Turning on the connector \"{id}\""),
            Self::AutoApprove(..) => format!("Changing what \"{id}\" may do without asking"),
            Self::Remove(_) => format!("Removing the connector \"{id}\""),
            Self::SetSecret { name: None, .. } => format!("Keeping a token for \"{id}\""),
            Self::SetSecret { name: Some(name), .. } => format!("Keeping the secret {name} for \"{id}\""),
            Self::ForgetSecret(_, None) => format!("Forgetting the token of \"{id}\""),
            Self::ForgetSecret(_, Some(name)) => format!("Forgetting the secret {name} of \"{id}\""),
            Self::SignIn(_) => format!("Signing in to \"{id}\""),
            Self::SignOut(_) => format!("Signing out of \"{id}\""),
        }
    }

    /// Whether a yes to one does all that a yes to the other does.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Add(id, entry), Self::Add(other, wanted)) => id == other && entry == wanted,
            (Self::Enable(id), Self::Enable(other))
            | (Self::Remove(id), Self::Remove(other))
            | (Self::SignIn(id), Self::SignIn(other))
            | (Self::SignOut(id), Self::SignOut(other)) => id == other,
            (Self::AutoApprove(id, value), Self::AutoApprove(other, wanted)) => id == other && value == wanted,
            (
                Self::SetSecret { id, name, value },
                Self::SetSecret {
                    id: other,
                    name: named,
                    value: wanted,
                },
            ) => {
                let (value, wanted) = (value.expose_secret().as_bytes(), wanted.expose_secret().as_bytes());
                id == other && name == named && bool::from(value.ct_eq(wanted))
            }
            (Self::ForgetSecret(id, name), Self::ForgetSecret(other, named)) => id == other && name == named,
            (
                Self::Add(..)
                | Self::Enable(_)
                | Self::AutoApprove(..)
                | Self::Remove(_)
                | Self::SetSecret { .. }
                | Self::ForgetSecret(..)
                | Self::SignIn(_)
                | Self::SignOut(_),
                _,
            ) => false,
        }
    }
}

impl fmt::Debug for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An entry or a value may hold what is secret.
        f.write_str(&self.words())
    }
}

/// What a yes to a wish is bound to beyond the wish itself; where it is another one than was shown, the yes is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    Nothing,
    Launch(LaunchIdentity),
    /// What may run without asking: these tools as they are, of this launch.
    Tools {
        launch: LaunchIdentity,
        tools: Vec<BoundTool>,
    },
    /// Where a secret or a sign-in goes.
    Place(Binding),
}

/// A question about a wish.
#[derive(Debug)]
pub struct Asked {
    pub question: Question,
    pub bound: Bound,
}

/// A wish to be put to the person.
#[derive(Debug)]
pub struct Wishing {
    pub wish: Wish,
    pub asker: Asker,
    /// The connector's name for people.
    pub server_name: String,
    pub question: Question,
    pub bound: Bound,
}

/// A wish that waits now.
#[derive(Debug, PartialEq)]
pub struct Placed {
    /// Of its question.
    pub id: String,
    /// The one that is over because this one took its place.
    pub made_way: Option<ApprovalView>,
}

/// All wishes of a bridge.
pub struct Wishes {
    book: Mutex<Book>,
    events: Arc<EventLog>,
    /// Told whenever a snapshot has something new to show.
    pub changed: Notify,
}

impl Wishes {
    /// Nothing waits yet. What happens is told to `events`.
    pub fn new(events: Arc<EventLog>) -> Self {
        Self {
            book: Mutex::default(),
            events,
            changed: Notify::new(),
        }
    }

    /// Puts a wish to the person. One that waits already is not put twice.
    ///
    /// # Errors
    /// [`Full`]
    pub fn put(&self, id: String, wishing: Wishing) -> Result<Placed, Full> {
        let now = unix_ms();
        let view = ApprovalView {
            id: id.clone(),
            state: ApprovalState::Waiting,
            server: wishing.wish.server().clone(),
            server_name: wishing.server_name,
            asked_at: now,
            refused: 0,
            expires_at: now + u64::try_from(WAITS.as_millis()).unwrap_or(u64::MAX),
            question: wishing.question,
        };
        let (server, caller) = (view.server.clone(), wishing.asker.label.clone());
        let mut book = self.lock();
        match book.put(view, wishing.asker, wishing.wish, wishing.bound, Instant::now())? {
            Kept::New(made_way) => {
                if let Some((view, caller)) = made_way.as_deref() {
                    self.tell(view, caller);
                }
                self.events.publish(Event::ApprovalRequested {
                    approval: id.clone(),
                    server,
                    caller,
                });
                drop(book);
                self.changed.notify_one();
                Ok(Placed {
                    id,
                    made_way: made_way.map(|ended| ended.0),
                })
            }
            Kept::Already(id) => Ok(Placed { id, made_way: None }),
        }
    }

    /// Those that wait, the oldest first; for one caller only its own.
    pub fn waiting(&self, of: Option<&str>) -> Vec<ApprovalView> {
        self.lock().waiting(of).cloned().collect()
    }

    /// One that waits, or one of the newest that did; for one caller only its own.
    pub fn find(&self, id: &str, of: Option<&str>) -> Option<ApprovalView> {
        self.lock().find(id, of).cloned()
    }

    /// What is wished for under this id.
    pub fn wish(&self, id: &str) -> Option<Arc<Wish>> {
        self.lock().wish(id)
    }

    /// Whoever wished one that waits.
    pub fn asker(&self, id: &str) -> Option<Asker> {
        self.lock().asker(id).cloned()
    }

    /// Takes one to be granted; nobody else can meanwhile. `None` = it is not one of these.
    pub fn take(&self, id: &str) -> Option<Taken> {
        self.lock().take(id, Instant::now())
    }

    /// It waits again, perhaps with another question.
    pub fn put_back(&self, id: &str, asked: Option<Asked>) {
        self.lock().put_back(id, asked);
        self.changed.notify_one();
    }

    /// It is over; how it ended and who wished it. `None` = it was over before.
    pub fn settle(&self, id: &str, state: ApprovalState) -> Option<(ApprovalView, String)> {
        let settled = self.lock().settle(id, state)?;
        self.tell(&settled.0, &settled.1);
        Some(settled)
    }

    /// Takes back what a caller wished and may not wish any more.
    pub fn withdraw(&self, caller: &str, is_out: impl Fn(&Wish) -> bool) {
        let gone = self.lock().withdraw(caller, is_out);
        for (view, caller) in &gone {
            self.tell(view, caller);
        }
    }

    /// Takes back what is wished about a connector that is another one now, but for what is being granted; those.
    pub fn withdraw_about(&self, server: &ConnectorId) -> Vec<ApprovalView> {
        let gone = self.lock().withdraw_about(server);
        self.tell_all(gone)
    }

    /// Says no to all that these callers wished; those.
    pub fn deny(&self, group: &Group) -> Vec<ApprovalView> {
        let denied = self.lock().deny(group);
        self.tell_all(denied)
    }

    /// Shows a question as it is known now.
    pub fn show(&self, id: &str, question: Question) {
        if self.lock().show(id, question) {
            self.changed.notify_one();
        }
    }

    /// Resolves once the time of some is over; those.
    pub async fn over(&self) -> Vec<(ApprovalView, String)> {
        loop {
            let first = self.lock().first_end();
            match first {
                // Whoever waits here begins anew when something changes.
                None => std::future::pending::<()>().await,
                Some(end) => tokio::time::sleep_until(end).await,
            }
            let over = self.lock().expire(Instant::now());
            if !over.is_empty() {
                for (view, caller) in &over {
                    self.tell(view, caller);
                }
                return over;
            }
        }
    }

    fn tell_all(&self, ended: Vec<Ended>) -> Vec<ApprovalView> {
        let told = ended.into_iter().map(|(view, caller)| {
            self.tell(&view, &caller);
            view
        });
        told.collect()
    }

    fn tell(&self, view: &ApprovalView, caller: &str) {
        self.events.publish(Event::ApprovalResolved {
            approval: view.id.clone(),
            server: view.server.clone(),
            caller: caller.to_owned(),
            state: view.state,
        });
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Item {
    fn same_wish(&self, wish: &Wish, caller: &str, question: &Question) -> bool {
        self.asker.label == caller && self.wish.is(wish) && asker(&self.view.question) == asker(question)
    }
}

/// Who asks, whatever its process is.
fn asker(question: &Question) -> Option<(&str, Option<&str>, Option<&str>)> {
    match question {
        Question::Manage { who, .. } => {
            let program = who.program.as_ref();
            let path = program.and_then(|program| program.path.as_deref());
            let script = program.and_then(|program| program.script.as_deref());
            Some((who.name.as_str(), path, script))
        }
        Question::Elicitation { .. } | Question::Call { .. } => None,
    }
}

#[cfg(test)]
mod tests;
