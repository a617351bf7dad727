//! The task that owns one connector: it alone connects, lists, closes, and says what state that is. `session_events` is
//! what becomes of it when something happens to its session.

mod session_events;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, mpsc, watch},
    task::JoinSet,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    World,
    attempt::{Listed, Opened, Plan},
    cause::{Cause, unavailable},
    discovery::{Offers, Rejected},
    door::{Message, SessionReply},
    episode::{self, Episode, Wait},
    live::{Live, LiveEvent, due},
    session::SessionName,
    shared::{KnownTools, Shared, View},
    state::{Failure, Machine, Way},
    under_way::{self, News, Slot, UnderWay},
    wake::Wake,
};
use crate::{
    clock::unix_ms,
    config,
    error::ApiError,
    snapshot::{Era, KeychainState, KeychainView},
};

/// A background start gives its slot back after this long, however slow it is.
const SLOT_HELD_FOR: Duration = Duration::from_millis(250);
/// A program is not started again for another network more often than this.
const PROGRAMS_REST: Duration = Duration::from_secs(60);
/// A server for which calls wait is looked for no more often.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// A connector that is to be there always is looked for this often after its retries are used up.
const LOOK_AGAIN: Duration = Duration::from_secs(300);
/// Items besides tools that cannot be offered fill the log no further than this; the lists themselves name them all.
const LOGGED_REJECTS: usize = 20;
/// After sleep or a change of the network, failed connectors are tried again spread over this time.
const WAKE_SPREAD_MS: u32 = 2_000;

/// What a task begins with.
pub(super) struct Start {
    pub machine: Machine,
    pub tools: Arc<KnownTools>,
    pub offers: Offers,
    pub instructions: Option<Arc<str>>,
    /// Nothing is known to list, or the entry wants it there always: connects in the background.
    pub wants_list: bool,
    /// What the upstream spoke last.
    pub era: Option<Era>,
    /// The session of the connector that this one replaces.
    pub earlier: Option<SessionName>,
}

/// One connector. Everything in it is changed by its own loop alone.
pub(super) struct Task {
    world: Arc<World>,
    shared: Arc<Shared>,
    machine: Machine,
    tools: Arc<KnownTools>,
    offers: Offers,
    instructions: Option<Arc<str>>,
    inbox: mpsc::Receiver<Message>,
    stop: CancellationToken,
    wakes: watch::Receiver<Wake>,
    keychain: watch::Receiver<KeychainView>,
    waiters: Vec<SessionReply>,
    attempt: Option<UnderWay>,
    /// What the attempt under way, the next one or the session belongs to; `None` = a single attempt.
    episode: Option<Episode>,
    /// When to try again by itself.
    next_attempt: Option<Instant>,
    live: Option<Live>,
    /// Sessions that take no more requests and end when their last one does.
    running_out: JoinSet<()>,
    /// The place in the queue for a background start, until an attempt begins. It must not linger unpolled: a slot
    /// that is given to it would be lost to everybody else.
    slot: Option<Slot>,
    /// The place that a background start holds, and until when.
    holds: Option<(OwnedSemaphorePermit, Instant)>,
    /// When the attempt before this moment began.
    tried_at: Option<Instant>,
    /// When the next retry is due by its episode, while calls have the server looked for before that.
    planned: Option<Instant>,
    /// Why the attempt under way is not the first.
    last_failure: Option<Failure>,
    /// What the upstream spoke last; forgotten when that fails.
    era: Option<Era>,
    /// The session before the next one, where something of it may be missed.
    earlier: Option<SessionName>,
}

impl Task {
    pub fn new(
        world: Arc<World>,
        shared: Arc<Shared>,
        inbox: mpsc::Receiver<Message>,
        stop: CancellationToken,
        start: Start,
    ) -> Self {
        let slot = start.wants_list.then(|| under_way::queue(&world.slots));
        Self {
            wakes: world.wakes.told.clone(),
            keychain: world.keychain.state(),
            machine: start.machine,
            tools: start.tools,
            offers: start.offers,
            instructions: start.instructions,
            era: start.era,
            earlier: start.earlier,
            world,
            shared,
            inbox,
            stop,
            waiters: Vec::new(),
            attempt: None,
            episode: None,
            next_attempt: None,
            live: None,
            running_out: JoinSet::new(),
            slot,
            holds: None,
            tried_at: None,
            planned: None,
            last_failure: None,
        }
    }

    pub async fn run(mut self) {
        self.wakes.mark_unchanged();
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                message = self.inbox.recv() => match message {
                    Some(message) => self.take(message).await,
                    None => break,
                },
                news = under_way::news(&mut self.attempt) => match news {
                    News::Progress(text) => {
                        self.machine.progress(text, unix_ms());
                        self.publish();
                    }
                    News::Done(done) => self.attempt_done(*done),
                },
                event = next_event(&mut self.live) => self.live_event(event).await,
                Ok(()) = self.wakes.changed() => self.woken(),
                Ok(()) = self.keychain.changed(), if self.waits_for_keychain() => self.keychain_changed(),
                () = due(self.next_attempt) => self.start_attempt(),
                () = due(self.holds.as_ref().map(|(_, until)| *until)) => self.holds = None,
                permit = under_way::place(&mut self.slot) => {
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
                self.earlier = self.shared.session_name().or(self.earlier.take());
                self.close_session().await;
                if self.stop.is_cancelled() {
                    return;
                }
                self.waiters.push(reply);
                // One that waits for a look shows nothing else while that is found again.
                let still_held = match self.machine.withheld() {
                    Some(_) => self.world.admit(&self.shared.entry()).await.err(),
                    None => None,
                };
                match still_held {
                    Some(cause) => self.give_up(cause.into()),
                    None => self.start_episode(),
                }
            }
            Message::Rest(cause, done) => {
                self.slot = None;
                self.next_attempt = None;
                self.drop_attempt().await;
                self.earlier = self.shared.session_name().or(self.earlier.take());
                self.close_session().await;
                self.running_out.shutdown().await;
                self.shared.bearer.store(None);
                // What waits for a look goes on waiting for that.
                if self.shared.entry().enabled && self.machine.withheld().is_none() {
                    self.give_up(cause.into());
                }
                // Whoever asked may have left.
                let _ = done.send(());
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
        self.planned = None;
        self.episode = None;
        let earlier = self.machine.failure().or(self.last_failure.as_ref());
        let failure = Failure {
            cause: Cause::GivenUp(earlier.map(|failure| failure.cause.sentence())),
            detail: earlier.and_then(|failure| failure.detail.clone()),
        };
        self.drop_attempt().await;
        self.refuse_waiters(&unavailable(&self.shared.name(), &failure.cause));
        self.machine.failed(failure, unix_ms());
        self.publish();
    }

    fn somebody_waits(&self) -> bool {
        self.waiters.iter().any(|waiter| !waiter.is_closed())
    }

    fn refuse_waiters(&mut self, refusal: &ApiError) {
        for waiter in self.waiters.drain(..) {
            // A caller that left meanwhile is no fault.
            let _ = waiter.send(Err(refusal.clone()));
        }
    }

    fn acquire(&mut self, reply: SessionReply) {
        if !self.shared.entry().enabled {
            let _ = reply.send(Err(self.is_off()));
            return;
        }
        if let Some(live) = self.live.as_mut().filter(|live| !live.session.is_over()) {
            live.stay();
            let _ = reply.send(Ok(live.session.clone()));
            return;
        }
        if self.attempt.is_none() && self.live.is_none() {
            match self.machine.may_attempt(&self.shared.name(), unix_ms()) {
                Ok(Way::Await) => {
                    self.keep_appointment();
                    self.bring_forward();
                }
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

    /// A retry comes when it was announced, also where our own clock stood still while the computer slept.
    fn keep_appointment(&mut self) {
        if let (Some(left), Some(next)) = (self.machine.announced_in(unix_ms()), self.next_attempt) {
            self.next_attempt = Some(next.min(Instant::now() + left));
        }
    }

    /// A call that waits for a server which was not there a moment ago has it looked for until the planned retry: it may
    /// have just come back. This costs none of the retries and shows nowhere.
    fn bring_forward(&mut self) {
        let not_there = self
            .machine
            .failure()
            .is_some_and(|failure| matches!(failure.cause, Cause::Network(_)));
        let is_server = matches!(self.shared.entry().launch, config::Launch::Http(_));
        if let (Some(next), Some(tried), true, true) = (self.next_attempt, self.tried_at, not_there, is_server) {
            let planned = *self.planned.get_or_insert(next);
            self.next_attempt = Some(planned.min(tried + BETWEEN_LOOKS));
        }
    }

    /// An early look found nothing: more of them while somebody waits, then the retry that was planned.
    fn look_again(&mut self, planned: Instant) {
        self.next_attempt = Some(match self.somebody_waits() {
            true => planned.min(Instant::now() + BETWEEN_LOOKS),
            false => planned,
        });
    }

    fn is_off(&self) -> ApiError {
        ApiError::turned_off(&self.shared.name())
    }

    fn start_in_background(&mut self, permit: OwnedSemaphorePermit) {
        if self.attempt.is_none() && self.live.is_none() && self.next_attempt.is_none() {
            self.start_episode();
            self.holds = Some((permit, Instant::now() + SLOT_HELD_FOR));
        }
    }

    fn start_episode(&mut self) {
        self.episode = Some(Episode::new(self.world.tuning.load().policy));
        self.planned = None;
        self.last_failure = None;
        self.start_attempt();
    }

    fn start_attempt(&mut self) {
        self.slot = None;
        self.next_attempt = None;
        // What happens to the keychain from here on is a reason to try again.
        self.keychain.mark_unchanged();
        let now = Instant::now();
        self.tried_at = Some(now);
        self.planned = self.planned.filter(|planned| *planned > now);
        if self.planned.is_none() {
            self.machine.connecting(unix_ms());
            self.publish();
        }
        let (tell, progress) = watch::channel(None);
        let plan = Plan {
            entry: self.shared.entry(),
            log: self.shared.log.clone(),
            era: self.era,
            earlier: self.earlier.clone(),
            bearer: self.shared.bearer.clone(),
            progress: tell,
        };
        self.attempt = Some(UnderWay::start(self.world.clone(), plan, progress));
    }

    fn attempt_done(&mut self, done: Result<Opened, Failure>) {
        self.attempt = None;
        self.holds = None;
        match done {
            Ok(opened) => {
                let wanted = self.somebody_waits() || self.shared.entry().start == config::Start::AtLaunch;
                let ping_every = self.world.tuning.load().ping_every;
                let (live, listed) = Live::new(opened, wanted, ping_every);
                self.listed(listed);
                let said = live.session.instructions.as_deref();
                self.instructions = said.map(|text| self.shared.log.redactor().sentence(text).into());
                self.era = Some(live.session.facts.era);
                self.earlier = None;
                self.planned = None;
                self.machine.connected(live.session.facts.clone(), unix_ms());
                self.shared.session.store(Some(live.session.clone()));
                self.publish();
                for waiter in self.waiters.drain(..) {
                    // A caller that left meanwhile is no fault.
                    let _ = waiter.send(Ok(live.session.clone()));
                }
                self.live = Some(live);
            }
            Err(failure) => {
                // What it spoke last may be why.
                self.era = None;
                if let Some(planned) = self.planned.filter(|_| matches!(failure.cause, Cause::Network(_))) {
                    self.look_again(planned);
                    return;
                }
                let wait = self
                    .episode
                    .as_mut()
                    .and_then(|episode| episode.after(&failure.cause, chance()));
                match wait {
                    Some(wait) => self.retry(failure, wait),
                    None => self.give_up(failure),
                }
            }
        }
    }

    fn listed(&mut self, listed: Listed) {
        let tools = KnownTools::from(listed.tools);
        if *self.tools != tools {
            self.tools = Arc::new(tools);
        }
        self.offers = self.offers.updated(listed.offers);
        for (list, one) in self.offers.rejected().take(LOGGED_REJECTS) {
            let line = format!(
                "One of the {} cannot be offered: {}: {}",
                list.noun(),
                one.name,
                one.reason
            );
            self.shared.log.line(&line);
        }
        for prompt in self.offers.flagged.iter().take(LOGGED_REJECTS) {
            let Rejected { name, reason } = Rejected::held(prompt);
            self.shared.log.line(&format!("The prompt {name}: {reason}"));
        }
    }

    fn retry(&mut self, failure: Failure, wait: Wait) {
        let refusal = unavailable(&self.shared.name(), &failure.cause).with_retry_after(wait.delay);
        self.next_attempt = Some(Instant::now() + wait.delay);
        self.planned = None;
        self.last_failure = Some(failure.clone());
        self.machine.retrying(failure, wait, unix_ms());
        self.publish();
        self.refuse_waiters(&refusal);
    }

    /// The rest waits for a call, a click, or the time to look again.
    fn give_up(&mut self, failure: Failure) {
        self.episode = None;
        self.planned = None;
        let by_itself = self.shared.entry().start == config::Start::AtLaunch && episode::may_pass(&failure.cause);
        let pause = LOOK_AGAIN.max(episode::asked_for(&failure.cause));
        self.next_attempt = by_itself.then(|| Instant::now() + pause);
        let refusal = unavailable(&self.shared.name(), &failure.cause);
        self.machine.failed(failure, unix_ms());
        self.publish();
        self.refuse_waiters(&refusal);
    }

    /// The computer woke, or its network is another one: what failed because of that gets one more attempt, and a
    /// session that may have died unnoticed is asked.
    fn woken(&mut self) {
        if let Some(live) = &mut self.live {
            live.ask_now();
        }
        self.keep_appointment();
        // Programs that were started a moment ago did not fail for want of a network that came since.
        let is_program = matches!(self.shared.entry().launch, config::Launch::Stdio(_));
        let just_tried = self.tried_at.is_some_and(|at| at.elapsed() < PROGRAMS_REST);
        if self.attempt.is_none() && self.machine.may_wake() && !(is_program && just_tried) {
            let spread = Duration::from_millis(u64::from(chance() % WAKE_SPREAD_MS));
            let soon = Instant::now() + spread;
            self.next_attempt = Some(self.next_attempt.map_or(soon, |planned| planned.min(soon)));
        }
    }

    fn waits_for_keychain(&self) -> bool {
        let failure = self.machine.failure().filter(|_| self.attempt.is_none());
        failure.is_some_and(|failure| matches!(failure.cause, Cause::Keychain(_)))
    }

    fn keychain_changed(&mut self) {
        if self.keychain.borrow_and_update().state == KeychainState::Ready {
            self.slot = Some(under_way::queue(&self.world.slots));
        }
    }

    async fn close_session(&mut self) {
        if let Some(live) = self.live.take() {
            self.shared.session.store(None);
            live.close().await;
            self.episode = None;
            self.machine.sleeping(unix_ms());
            self.publish();
        }
    }

    /// Gives up an attempt under way; its process tree is gone when this returns.
    async fn drop_attempt(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            attempt.give_up().await;
            self.machine.sleeping(unix_ms());
        }
    }

    async fn end(mut self) {
        self.inbox.close();
        self.drop_attempt().await;
        self.close_session().await;
        self.running_out.shutdown().await;
    }

    fn publish(&self) {
        self.shared.show(View {
            machine: self.machine.clone(),
            tools: self.tools.clone(),
            offers: self.offers.clone(),
            instructions: self.instructions.clone(),
        });
        self.world.changed.notify_one();
    }
}

/// Spreads those that failed together.
fn chance() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX)
}

/// What happens next to the session; never resolves while there is none.
async fn next_event(live: &mut Option<Live>) -> LiveEvent {
    match live {
        Some(live) => live.next().await,
        None => std::future::pending().await,
    }
}
