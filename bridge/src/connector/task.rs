//! The task that owns one connector: it alone connects, lists, closes, and says what state that is.

use std::{
    pin::Pin,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, SystemTime},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, mpsc, oneshot},
    task::JoinHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    World,
    attempt::{self, Opened, Plan},
    episode::{self, Episode},
    session::{Ended, Keeper, Session},
    shared::{Known, KnownTools, Shared, View},
    state::{Cause, Failure, Machine, Way, unavailable},
};
use crate::{
    clock::unix_ms,
    config::{self, Start},
    error::{Action, ApiError, Code},
    snapshot::Era,
    tools::parse_tools,
};

/// A background start gives its slot back after this long, however slow it is.
const SLOT_HELD_FOR: Duration = Duration::from_millis(250);
/// A session that was opened only to list tools closes after being unused this long.
const IDLE_AFTER_DISCOVERY: Duration = Duration::from_secs(60);
/// A connector that is to be there always is looked for this often after its retries are used up.
const LOOK_AGAIN: Duration = Duration::from_secs(300);
/// More messages than this wait only when the connector's task is stuck; senders then wait too.
const MAILBOX: usize = 256;

type SessionReply = oneshot::Sender<Result<Arc<Session>, ApiError>>;

enum Message {
    Acquire(SessionReply),
    Reconnect(SessionReply),
    StopTrying(oneshot::Sender<()>),
}

/// A running connector. Dropping it stops the connector; [`Handle::stop`] also waits.
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
    pub replaces: Option<Handle>,
}

impl Handle {
    /// Starts the task. Nothing is spawned or contacted yet, unless there is no list to show or the entry says so.
    pub fn start(world: Arc<World>, beginning: Beginning) -> Self {
        let Beginning { entry, known, replaces } = beginning;
        let mut machine = Machine::new(entry.enabled, unix_ms());
        if let Some(earlier) = &replaces {
            machine.continue_from(&earlier.shared.view().machine);
        }
        let wants_list = entry.enabled && (known.is_none() || entry.start == Start::AtLaunch);
        let slot = wants_list.then(|| -> Slot { Box::pin(world.slots.clone().acquire_owned()) });
        let era = known.as_ref().and_then(|known| known.era);
        let tools: Arc<KnownTools> = Arc::new(
            known
                .map(|known| parse_tools(known.list.items).into())
                .unwrap_or_default(),
        );
        let shared = Arc::new(Shared {
            id: entry.id.clone(),
            entry: ArcSwap::new(entry.clone()),
            view: ArcSwap::from_pointee(View {
                machine: machine.clone(),
                tools: tools.clone(),
            }),
            session: ArcSwapOption::empty(),
            used_at: AtomicU64::new(replaces.as_ref().and_then(|r| r.shared.used_at()).unwrap_or(0)),
            log: world.logs.connector(&entry.id),
        });
        let (mailbox, inbox) = mpsc::channel(MAILBOX);
        let stop = CancellationToken::new();
        let task = Task {
            world,
            shared: shared.clone(),
            machine,
            tools,
            inbox,
            stop: stop.clone(),
            waiters: Vec::new(),
            attempt: None,
            episode: None,
            next_attempt: None,
            live: None,
            slot,
            era,
        };
        let task = tokio::spawn(async move {
            if let Some(earlier) = replaces {
                earlier.stop().await;
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

    /// Ends the session, also one that is still being opened, and waits until its process tree is gone.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(connector = %self.shared.id, %error, "a connector's task ended abnormally");
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
    /// `disabled`, `unavailable` (with `Retry-After` while it rests), `needs_secret`, `needs_sign_in`.
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

struct Attempt {
    running: JoinHandle<Result<Opened, Failure>>,
    give_up: CancellationToken,
}

type Slot = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

struct Live {
    keeper: Keeper,
    session: Arc<Session>,
    refresh: Option<JoinHandle<Result<attempt::Listed, Cause>>>,
    refresh_again: bool,
    idle_at: Option<Instant>,
}

struct Task {
    world: Arc<World>,
    shared: Arc<Shared>,
    machine: Machine,
    tools: Arc<KnownTools>,
    inbox: mpsc::Receiver<Message>,
    stop: CancellationToken,
    waiters: Vec<SessionReply>,
    attempt: Option<Attempt>,
    /// What the attempt under way, or the next one, belongs to; `None` = it is a single one.
    episode: Option<Episode>,
    /// When to try again by itself.
    next_attempt: Option<Instant>,
    live: Option<Live>,
    /// The place in the queue for a background start, until an attempt begins. It must not linger unpolled: a slot
    /// that is given to it would be lost to everybody else.
    slot: Option<Slot>,
    /// What the upstream spoke last.
    era: Option<Era>,
}

impl Task {
    async fn run(mut self) {
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                message = self.inbox.recv() => match message {
                    Some(message) => self.take(message).await,
                    None => break,
                },
                done = join(&mut self.attempt) => self.attempt_done(done),
                event = next_event(&mut self.live) => self.live_event(event).await,
                () = due(self.next_attempt) => self.start_attempt(),
                permit = next_slot(&mut self.slot) => {
                    self.slot = None;
                    self.start_in_background(permit);
                }
            }
        }
        self.end().await;
    }

    async fn take(&mut self, message: Message) {
        match message {
            Message::Acquire(reply) => self.acquire(reply),
            Message::Reconnect(reply) => {
                if !self.shared.entry().enabled {
                    let _ = reply.send(Err(self.is_off()));
                    return;
                }
                self.drop_attempt().await;
                self.close_session().await;
                self.waiters.push(reply);
                self.start_episode();
            }
            Message::StopTrying(done) => {
                self.stop_trying().await;
                // Whoever asked may have left.
                let _ = done.send(());
            }
        }
    }

    async fn stop_trying(&mut self) {
        self.slot = None;
        if self.attempt.is_none() && self.next_attempt.is_none() {
            return;
        }
        self.next_attempt = None;
        self.episode = None;
        let failure = self.machine.failure().cloned();
        let failure = failure.unwrap_or_else(|| Cause::GivenUp.into());
        self.drop_attempt().await;
        for waiter in self.waiters.drain(..) {
            let _ = waiter.send(Err(unavailable(&self.shared.name(), &failure.cause)));
        }
        self.machine.failed(failure, unix_ms());
        self.publish();
    }

    fn acquire(&mut self, reply: SessionReply) {
        if !self.shared.entry().enabled {
            let _ = reply.send(Err(self.is_off()));
            return;
        }
        if let Some(live) = self.live.as_ref().filter(|live| !live.session.is_over()) {
            let _ = reply.send(Ok(live.session.clone()));
            return;
        }
        if self.attempt.is_none() && self.live.is_none() {
            match self.machine.may_attempt(&self.shared.name(), unix_ms()) {
                Ok(Way::Await) => {}
                Ok(Way::Once) => self.start_attempt(),
                Ok(Way::Episode) => self.start_episode(),
                Err(refusal) => {
                    let _ = reply.send(Err(refusal));
                    return;
                }
            }
        }
        self.waiters.push(reply);
    }

    fn is_off(&self) -> ApiError {
        ApiError::new(Code::Disabled, format!("{} is turned off.", self.shared.name()))
            .with_action(Some(Action::Enable))
    }

    fn start_in_background(&mut self, permit: OwnedSemaphorePermit) {
        if self.attempt.is_none() && self.live.is_none() && self.next_attempt.is_none() {
            self.start_episode();
        }
        tokio::spawn(async move {
            tokio::time::sleep(SLOT_HELD_FOR).await;
            drop(permit);
        });
    }

    fn start_episode(&mut self) {
        self.episode = Some(Episode::default());
        self.start_attempt();
    }

    fn start_attempt(&mut self) {
        self.slot = None;
        self.next_attempt = None;
        self.machine.connecting(unix_ms());
        self.publish();
        let plan = Plan {
            entry: self.shared.entry(),
            log: self.shared.log.clone(),
            era: self.era,
        };
        let give_up = CancellationToken::new();
        self.attempt = Some(Attempt {
            running: tokio::spawn(attempt::run(self.world.clone(), plan, give_up.clone())),
            give_up,
        });
    }

    fn attempt_done(&mut self, done: Result<Opened, Failure>) {
        self.attempt = None;
        match done {
            Ok(opened) => {
                self.episode = None;
                self.tools = Arc::new(opened.listed.tools.into());
                self.era = Some(opened.session.facts.era);
                self.machine.connected(opened.session.facts.clone(), unix_ms());
                self.shared.session.store(Some(opened.session.clone()));
                self.publish();
                let wanted = !self.waiters.is_empty() || self.shared.entry().start == Start::AtLaunch;
                for waiter in self.waiters.drain(..) {
                    // A caller that left meanwhile is no fault.
                    let _ = waiter.send(Ok(opened.session.clone()));
                }
                self.live = Some(Live {
                    keeper: opened.keeper,
                    session: opened.session,
                    refresh: None,
                    refresh_again: false,
                    idle_at: (!wanted).then(|| Instant::now() + IDLE_AFTER_DISCOVERY),
                });
            }
            Err(failure) => {
                let mut refusal = unavailable(&self.shared.name(), &failure.cause);
                let chance = getrandom::u32().unwrap_or(u32::MAX);
                match self.episode.as_mut().and_then(|e| e.after(&failure.cause, chance)) {
                    Some(wait) => {
                        refusal = refusal.with_retry_after(wait.delay);
                        self.next_attempt = Some(Instant::now() + wait.delay);
                        self.machine.retrying(failure, wait, unix_ms());
                    }
                    None => {
                        self.episode = None;
                        self.look_again_later(&failure.cause);
                        self.machine.failed(failure, unix_ms());
                    }
                }
                self.publish();
                for waiter in self.waiters.drain(..) {
                    let _ = waiter.send(Err(refusal.clone()));
                }
            }
        }
    }

    /// The rest waits for a call or a click.
    fn look_again_later(&mut self, cause: &Cause) {
        let by_itself = self.shared.entry().start == Start::AtLaunch && episode::may_pass(cause);
        self.next_attempt = by_itself.then(|| Instant::now() + LOOK_AGAIN);
    }

    async fn live_event(&mut self, event: LiveEvent) {
        match event {
            LiveEvent::Ended(ended) => {
                self.live = None;
                self.shared.session.store(None);
                let since = SystemTime::UNIX_EPOCH + Duration::from_millis(self.machine.connection().since);
                let detail = attempt::last_lines(&self.shared.log, since);
                self.look_again_later(&ended.cause);
                self.machine.lost(
                    Failure {
                        cause: ended.cause,
                        detail,
                    },
                    unix_ms(),
                );
                self.publish();
                if !self.waiters.is_empty() {
                    self.start_episode();
                }
            }
            LiveEvent::ToolsChanged => {
                if let Some(live) = &mut self.live {
                    match live.refresh {
                        Some(_) => live.refresh_again = true,
                        None => {
                            live.refresh = Some(self.world.refresh(
                                &self.shared.entry(),
                                &live.session,
                                &self.shared.log,
                            ))
                        }
                    }
                }
            }
            LiveEvent::Refreshed(listed) => {
                match listed {
                    Ok(listed) => {
                        self.tools = Arc::new(listed.tools.into());
                        self.machine.observed(unix_ms());
                    }
                    // The old list stays; the next change or reconnect reads it again.
                    Err(cause) => self
                        .shared
                        .log
                        .line(&format!("The tool list could not be read again: {}", cause.sentence())),
                }
                if let Some(live) = &mut self.live {
                    live.refresh = std::mem::take(&mut live.refresh_again).then(|| {
                        self.world
                            .refresh(&self.shared.entry(), &live.session, &self.shared.log)
                    });
                }
                self.publish();
            }
            LiveEvent::Idle => {
                let used = self
                    .shared
                    .used_at()
                    .is_some_and(|at| at >= self.machine.connection().since);
                if used {
                    if let Some(live) = &mut self.live {
                        live.idle_at = None;
                    }
                } else {
                    self.close_session().await;
                }
            }
        }
    }

    async fn close_session(&mut self) {
        if let Some(live) = self.live.take() {
            self.shared.session.store(None);
            if let Some(refresh) = live.refresh {
                refresh.abort();
            }
            live.keeper.close().await;
            self.machine.sleeping(unix_ms());
            self.publish();
        }
    }

    /// Gives up an attempt under way; its process tree is gone when this returns.
    async fn drop_attempt(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            attempt.give_up.cancel();
            if let Ok(Ok(opened)) = attempt.running.await {
                opened.keeper.close().await;
            }
            self.machine.sleeping(unix_ms());
        }
    }

    async fn end(mut self) {
        self.inbox.close();
        self.drop_attempt().await;
        self.close_session().await;
    }

    fn publish(&self) {
        let view = View {
            machine: self.machine.clone(),
            tools: self.tools.clone(),
        };
        self.shared.view.store(Arc::new(view));
        self.world.changed.notify_one();
    }
}

enum LiveEvent {
    Ended(Ended),
    ToolsChanged,
    Refreshed(Result<attempt::Listed, Cause>),
    Idle,
}

/// Resolves when a background start may begin; never while none is wanted.
async fn next_slot(slot: &mut Option<Slot>) -> OwnedSemaphorePermit {
    match slot {
        // The bridge never closes the semaphore.
        Some(slot) => match slot.await {
            Ok(permit) => permit,
            Err(_closed) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// The attempt's outcome; never resolves while there is none.
async fn join(attempt: &mut Option<Attempt>) -> Result<Opened, Failure> {
    match attempt {
        Some(attempt) => match (&mut attempt.running).await {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::error!(%error, "an attempt to connect ended abnormally");
                Err(Cause::Stopped.into())
            }
        },
        None => std::future::pending().await,
    }
}

/// Comes at that time; never where there is none.
async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What happens next to the session; never resolves while there is none.
async fn next_event(live: &mut Option<Live>) -> LiveEvent {
    let Some(live) = live else {
        return std::future::pending().await;
    };
    let signals = live.session.signals.clone();
    tokio::select! {
        ended = live.keeper.over() => LiveEvent::Ended(ended),
        () = signals.tools_changed.notified() => LiveEvent::ToolsChanged,
        listed = async {
            match &mut live.refresh {
                Some(refresh) => refresh.await,
                None => std::future::pending().await,
            }
        } => LiveEvent::Refreshed(listed.unwrap_or(Err(Cause::Stopped))),
        () = due(live.idle_at) => LiveEvent::Idle,
    }
}
