//! How the rest of the bridge reaches a connector: its handle, held by the owner, and doors for everybody else.

use std::sync::{Arc, Mutex, atomic::AtomicU64};

use arc_swap::{ArcSwap, ArcSwapOption};
use futures::{FutureExt, future::BoxFuture};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::{
    World,
    cause::Cause,
    discovery::Offers,
    session::Session,
    shared::{Known, KnownTools, Shared, View},
    state::Machine,
    task::{self, Task},
};
use crate::{
    clock::unix_ms,
    config,
    error::{ApiError, Code},
    tools::{Arguments, parse_tools},
};

/// More messages than this wait only when the connector's task is stuck; senders then wait too.
const MAILBOX: usize = 256;

/// Where a session, or the reason for its absence, is sent.
pub(super) type SessionReply = oneshot::Sender<Result<Arc<Session>, ApiError>>;

/// What a connector's task is asked.
pub(super) enum Message {
    Acquire(SessionReply),
    Reconnect(SessionReply),
    StopTrying(oneshot::Sender<()>),
    /// Ends everything and rests with this cause.
    Rest(Cause, oneshot::Sender<()>),
}

/// A running connector, until [`Handle::leave`].
pub struct Handle {
    pub shared: Arc<Shared>,
    mailbox: mpsc::Sender<Message>,
    task: JoinHandle<()>,
    stop: CancellationToken,
}

/// What a connector starts with.
pub struct Beginning {
    pub entry: Arc<config::Connector>,
    /// The list saved under its launch identity, or compiled in.
    pub known: Option<Known>,
    /// The connector that this one replaces: its numbers go on, and it is gone before this one starts anything.
    pub replaces: Option<Earlier>,
    /// Done before this one starts anything.
    pub first: Option<BoxFuture<'static, ()>>,
    /// Why it may not start for now.
    pub held: Option<Cause>,
}

/// A connector that is being stopped, for whoever comes after it.
#[derive(Clone)]
pub struct Earlier {
    shared: Arc<Shared>,
    gone: futures::future::Shared<BoxFuture<'static, ()>>,
}

impl Earlier {
    /// Waits until nothing of it is left.
    pub async fn gone(self) {
        self.gone.await;
    }

    /// Whether nothing of it is left.
    pub fn is_gone(&self) -> bool {
        self.gone.peek().is_some()
    }

    /// Does something more once it is gone; what comes after it waits for that too.
    pub fn then(self, more: impl Future<Output = ()> + Send + 'static) -> Self {
        let gone = self.gone;
        Self {
            shared: self.shared,
            gone: async move {
                gone.await;
                more.await;
            }
            .boxed()
            .shared(),
        }
    }
}

impl Handle {
    /// Starts the task. Nothing is spawned or contacted yet, unless there is no list to show or the entry says so.
    pub fn start(world: Arc<World>, beginning: Beginning) -> Self {
        let Beginning {
            entry,
            known,
            replaces,
            first,
            held,
        } = beginning;
        let mut machine = Machine::new(entry.enabled, unix_ms());
        if let Some(earlier) = &replaces {
            machine.continue_from(&earlier.shared.view().machine);
        }
        let may_start = entry.enabled && held.is_none();
        if let Some(cause) = held.filter(|_| entry.enabled) {
            machine.failed(cause.into(), unix_ms());
        }
        let is_known = known.is_some();
        let era = known.as_ref().and_then(|known| known.era);
        let (tools, offers, instructions): (Arc<KnownTools>, Offers, _) = match known {
            Some(known) => {
                let arguments = Arguments::of(entry.launch.transport(), era);
                let tools = Arc::new(parse_tools(known.list.items, arguments).into());
                (tools, known.offers, known.instructions)
            }
            None => Default::default(),
        };
        let shared = Arc::new(Shared {
            id: entry.id.clone(),
            entry: ArcSwap::new(entry.clone()),
            view: ArcSwap::from_pointee(View {
                machine: machine.clone(),
                tools: tools.clone(),
                offers: offers.clone(),
                instructions: instructions.clone(),
            }),
            passed: Mutex::default(),
            session: ArcSwapOption::empty(),
            bearer: Arc::default(),
            used_at: AtomicU64::new(replaces.as_ref().and_then(|r| r.shared.used_at()).unwrap_or(0)),
            log: world.log_of(&entry),
        });
        let (mailbox, inbox) = mpsc::channel(MAILBOX);
        let stop = CancellationToken::new();
        let task = Task::new(
            world,
            shared.clone(),
            inbox,
            stop.clone(),
            task::Start {
                machine,
                tools,
                offers,
                instructions,
                wants_list: may_start && (!is_known || entry.start == config::Start::AtLaunch),
                era,
                earlier: replaces.as_ref().and_then(|earlier| earlier.shared.session_name()),
            },
        );
        let task = tokio::spawn(async move {
            if let Some(earlier) = replaces {
                earlier.gone().await;
            }
            if let Some(first) = first {
                first.await;
            }
            task.run().await;
        });
        Self {
            shared,
            mailbox,
            task,
            stop,
        }
    }

    /// A cheap way to reach the connector.
    pub fn door(&self) -> Door {
        Door {
            shared: self.shared.clone(),
            mailbox: self.mailbox.clone(),
        }
    }

    /// Applies what may change without a restart.
    pub fn update(&self, entry: Arc<config::Connector>) {
        self.shared.entry.store(entry);
    }

    /// Ends the session, also one that is still being opened. What it comes to can be waited for.
    pub fn leave(self) -> Earlier {
        self.stop.cancel();
        let (shared, task) = (self.shared, self.task);
        let id = shared.id.clone();
        let gone = async move {
            if let Err(error) = task.await {
                tracing::error!(connector = %id, %error, "a connector's task ended abnormally");
            }
        };
        Earlier {
            shared,
            gone: gone.boxed().shared(),
        }
    }
}

/// What callers hold: enough to see a connector and to ask for its session.
#[derive(Clone)]
pub struct Door {
    pub shared: Arc<Shared>,
    mailbox: mpsc::Sender<Message>,
}

impl Door {
    /// The session, connecting first where needed. Whoever asks while an attempt runs awaits that one.
    ///
    /// # Errors
    /// `disabled`, `needs_review`, `unavailable` (with `Retry-After` while it rests), `needs_secret`, `needs_sign_in`, `keychain_unavailable`.
    pub async fn acquire(&self) -> Result<Arc<Session>, ApiError> {
        if let Some(session) = self.shared.session() {
            return Ok(session);
        }
        self.ask(Message::Acquire).await
    }

    /// Closes the session that stands and waits for one new attempt.
    ///
    /// # Errors
    /// As [`Door::acquire`].
    pub async fn reconnect(&self) -> Result<Arc<Session>, ApiError> {
        self.ask(Message::Reconnect).await
    }

    /// Gives up the attempt under way and those that are planned; a session that stands is left alone.
    ///
    /// # Errors
    /// `unavailable` when the connector is being stopped itself.
    pub async fn stop_trying(&self) -> Result<(), ApiError> {
        let (reply, done) = oneshot::channel();
        let sent = self.mailbox.send(Message::StopTrying(reply)).await;
        sent.map_err(|_| self.gone())?;
        done.await.map_err(|_| self.gone())
    }

    /// Has it reconnect, without waiting for what that comes to.
    pub async fn reconnect_soon(&self) {
        let (reply, _) = oneshot::channel();
        // One that is being stopped needs none.
        let _ = self.mailbox.send(Message::Reconnect(reply)).await;
    }

    /// Closes the session, gives up what is under way, and rests until the person does something about `cause`.
    ///
    /// # Errors
    /// `unavailable` when the connector is being stopped itself.
    pub async fn rest(&self, cause: Cause) -> Result<(), ApiError> {
        let (reply, done) = oneshot::channel();
        let sent = self.mailbox.send(Message::Rest(cause, reply)).await;
        sent.map_err(|_| self.gone())?;
        done.await.map_err(|_| self.gone())
    }

    async fn ask(&self, message: impl FnOnce(SessionReply) -> Message) -> Result<Arc<Session>, ApiError> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(message(reply)).await.map_err(|_| self.gone())?;
        answer.await.unwrap_or_else(|_| Err(self.gone()))
    }

    fn gone(&self) -> ApiError {
        ApiError::new(
            Code::Unavailable,
            format!("{} is being stopped or replaced; try again.", self.shared.id),
        )
    }
}
