//! One live connection to an upstream: its handshake, its calls, its end.
//!
//! The connector's task owns a [`Keeper`] and ends the session through it; callers share the [`Session`] and can only
//! call. A call is sent once and never again.

mod clock;
mod desk;
mod input;
mod progress;
mod requests;
mod under_way;

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ClientHandler, Peer, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ClientRequest, CustomNotification, CustomRequest, CustomResult,
        ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability, Implementation, PingRequest,
        ProgressNotificationParam, ProtocolVersion, ServerCapabilities, SubscriptionFilter, UrlElicitationCapability,
    },
    service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService, ServiceError, Subscription},
};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::under_way::Requests;
pub use self::{
    desk::Desk,
    progress::{Step, Tell},
    requests::{CallFault, Whose},
};
use super::{
    cause::Cause,
    state::SessionFacts,
    transport::{Denials, carrier},
};
use crate::{
    snapshot::{Era, Readiness},
    trust::LaunchIdentity,
};

/// The end of a session takes its process's three seconds or one last request; one that takes longer is left behind.
const CLOSED_WITHIN: Duration = Duration::from_secs(15);

/// A subscription that is not acknowledged by then is given up.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(30);

/// What an upstream's messages set off in its connector.
#[derive(Debug, Default)]
pub struct Signals {
    /// The upstream says that one of its lists is another one now.
    pub lists_changed: Notify,
    /// The server forgot the session and gave a new one over the same connection.
    pub replaced: Notify,
    /// A stream from the server stands open, over which its silence would go unnoticed.
    pub stream_open: Arc<AtomicBool>,
    /// The server turns its requests away.
    pub denials: Arc<Denials>,
    requests: Requests,
}

/// Our side of the protocol: elicitation is declared, as a form and as a page; sampling and roots are not.
#[derive(Clone)]
pub struct Handler {
    signals: Arc<Signals>,
    desk: Arc<Desk>,
}

impl Handler {
    /// A side that reports to `signals` and puts questions to the person at `desk`.
    pub fn new(signals: Arc<Signals>, desk: Arc<Desk>) -> Self {
        Self { signals, desk }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("neuron-connect", env!("CARGO_PKG_VERSION")).with_title("Neuron Connect");
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        let mut config = ClientConfig::new(capabilities, us);
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.signals.requests.report(params);
    }

    /// `elicitation/create`, which the transports hand over as it came.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != carrier::ELICITATION {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let info = context.peer.peer_info();
        let era = info.as_ref().map(|info| Era::of(&info.protocol_version));
        let params = request.params.unwrap_or_default();
        let response = self
            .desk
            .asked(era, self.signals.requests.all(), self.signals.requests.begun(), &params);
        tokio::select! {
            response = response => Ok(CustomResult(response.to_json())),
            // The upstream asks no longer.
            () = context.ct.cancelled() => Ok(CustomResult(desk::Response::Cancel.to_json())),
        }
    }

    async fn on_custom_notification(&self, notification: CustomNotification, _: NotificationContext<RoleClient>) {
        if notification.method == "notifications/elicitation/complete"
            && let Some(id) = notification
                .params
                .as_ref()
                .and_then(|params| params["elicitationId"].as_str())
        {
            self.desk.completed(id);
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.signals.lists_changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.signals.lists_changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.signals.lists_changed.notify_one();
    }
}

/// What a session is called in logs: eight hexadecimal digits, drawn by us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionName(u32);

impl SessionName {
    fn draw() -> Self {
        // Only people compare them.
        Self(getrandom::u32().unwrap_or_default())
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Whether a greeting was answered in a revision of the protocol: `YYYY-MM-DD`. What is no such name is no word of the
/// protocol, and is neither used nor repeated.
///
/// # Errors
/// `Protocol`.
pub fn check_revision(service: &RunningService<RoleClient, Handler>) -> Result<(), Cause> {
    let info = service.peer().peer_info();
    match info.as_ref().map(|info| info.protocol_version.as_str()) {
        Some(named) if !is_revision(named) => Err(Cause::Protocol(
            "it names a revision of the protocol that is no date, such as 2025-11-25".into(),
        )),
        Some(_) | None => Ok(()),
    }
}

fn is_revision(text: &str) -> bool {
    let is_in_form = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == "YYYY-MM-DD".len() && text.bytes().enumerate().all(is_in_form)
}

impl Era {
    fn of(protocol: &ProtocolVersion) -> Self {
        if protocol.has_initialize() {
            Self::Legacy
        } else {
            Self::Modern
        }
    }
}

/// Whether a session is over, and then why.
#[derive(Debug, Default)]
pub struct End {
    over: CancellationToken,
    cause: OnceLock<Cause>,
    told: CancellationToken,
}

impl End {
    /// Nothing more is to be asked of it.
    pub fn over(&self) {
        self.over.cancel();
    }

    /// Resolves when it is over.
    pub async fn is_over(&self) {
        self.over.cancelled().await;
    }

    /// It is gone, and this is why.
    pub fn because(&self, cause: Cause) {
        // The first cause stays; what follows are its consequences.
        let _ = self.cause.set(cause);
        self.told.cancel();
    }

    /// Why it ended, once that is known; `None` after `patience`.
    pub async fn cause(&self, patience: Duration) -> Option<Cause> {
        // What is not known in time is told without it.
        let _ = tokio::time::timeout(patience, self.told.cancelled()).await;
        self.cause.get().cloned()
    }
}

/// The shared side of a session.
#[derive(Debug)]
pub struct Session {
    pub name: SessionName,
    /// Of what was started or contacted.
    pub identity: LaunchIdentity,
    /// What the handshake told.
    pub facts: SessionFacts,
    /// True when the upstream said that it has tools.
    pub has_tools: bool,
    /// True when it said that it has resources or templates of them.
    pub has_resources: bool,
    /// True when it said that it has prompts.
    pub has_prompts: bool,
    /// The upstream's own name and version, where given.
    pub server: Option<String>,
    /// What the upstream tells assistants about itself.
    pub instructions: Option<String>,
    /// The lists of which the upstream says that it tells their changes.
    pub tells: Tells,
    /// Set off by the upstream.
    pub signals: Arc<Signals>,
    /// How it ends.
    pub end: Arc<End>,
    over_stdio: bool,
    proved: AtomicBool,
    peer: Peer<RoleClient>,
    desk: Arc<Desk>,
}

/// What came of a ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    Yes,
    No,
    /// It was not asked, or the connection broke.
    Unknown,
}

/// Lists whose changes an upstream promises to tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tells {
    pub tools: bool,
    pub resources: bool,
    pub prompts: bool,
}

impl Tells {
    fn of(capabilities: &ServerCapabilities) -> Self {
        let told = |changed: Option<bool>| changed.unwrap_or(false);
        Self {
            tools: told(capabilities.tools.as_ref().and_then(|tools| tools.list_changed)),
            resources: told(capabilities.resources.as_ref().and_then(|it| it.list_changed)),
            prompts: told(capabilities.prompts.as_ref().and_then(|it| it.list_changed)),
        }
    }

    /// True when there is anything to wait for.
    pub fn any(self) -> bool {
        self.tools || self.resources || self.prompts
    }
}

impl Session {
    /// Reads the facts off a finished handshake.
    pub fn new(
        service: &RunningService<RoleClient, Handler>,
        signals: Arc<Signals>,
        over_stdio: bool,
        end: Arc<End>,
        desk: Arc<Desk>,
        identity: LaunchIdentity,
    ) -> Self {
        let peer = service.peer().clone();
        desk.open(end.clone());
        let info = peer.peer_info();
        let protocol = info
            .as_ref()
            .map(|info| info.protocol_version.clone())
            .unwrap_or_default();
        let era = Era::of(&protocol);
        Self {
            name: SessionName::draw(),
            identity,
            facts: SessionFacts {
                era,
                protocol: protocol.as_str().to_owned(),
                readiness: if over_stdio {
                    Readiness::Ready
                } else {
                    Readiness::Unknown
                },
            },
            has_tools: info.as_ref().is_some_and(|info| info.capabilities.tools.is_some()),
            has_resources: info.as_ref().is_some_and(|info| info.capabilities.resources.is_some()),
            has_prompts: info.as_ref().is_some_and(|info| info.capabilities.prompts.is_some()),
            server: info
                .as_ref()
                .and_then(|info| info.server_info.as_ref())
                .map(|server| format!("{} {}", server.name, server.version)),
            instructions: info.as_ref().and_then(|info| info.instructions.clone()),
            tells: info
                .as_ref()
                .map(|info| Tells::of(&info.capabilities))
                .unwrap_or_default(),
            signals,
            end,
            over_stdio,
            proved: AtomicBool::new(false),
            peer,
            desk,
        }
    }

    /// It answered a call: whatever ends it now is no fault of its start.
    fn prove(&self) {
        self.proved.store(true, Ordering::Relaxed);
    }

    /// Whether it ever answered a call.
    pub fn is_proved(&self) -> bool {
        self.proved.load(Ordering::Relaxed)
    }

    /// Whether it may fall silent without anybody noticing: only older ones over a program's pipes or an open stream.
    /// A living program is enough for the rest, and an idle server is left in peace.
    pub fn may_fall_silent(&self) -> bool {
        self.facts.era == Era::Legacy && (self.over_stdio || self.signals.stream_open.load(Ordering::Relaxed))
    }

    /// Whether a call, a read or a prompt is under way.
    pub fn is_busy(&self) -> bool {
        self.signals.requests.any()
    }

    /// Waits until no call, read or prompt is under way.
    pub async fn quiet(&self) {
        self.signals.requests.none().await;
    }

    /// Asks whether the upstream lives: any answer of its own within `patience` says so.
    pub async fn ping(&self, patience: Duration) -> Answered {
        let mut options = PeerRequestOptions::no_options();
        options.timeout = Some(patience);
        let request = ClientRequest::PingRequest(PingRequest::default());
        let Ok(asked) = self.peer.send_request_with_option(request, options).await else {
            return Answered::Unknown;
        };
        match asked.await_response().await {
            Ok(_) | Err(ServiceError::McpError(_)) => Answered::Yes,
            Err(ServiceError::Timeout { .. }) => Answered::No,
            // A connection that broke tells its own end.
            Err(_) => Answered::Unknown,
        }
    }

    /// Asks to be told of list changes, as modern upstreams want it.
    ///
    /// # Errors
    /// The upstream's refusal, a broken connection, or no acknowledgement within [`ACKNOWLEDGED_WITHIN`].
    pub async fn listen(&self) -> Result<Subscription, ServiceError> {
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = self.tells.tools.then_some(true);
        filter.resources_list_changed = self.tells.resources.then_some(true);
        filter.prompts_list_changed = self.tells.prompts.then_some(true);
        let acknowledged = tokio::time::timeout(ACKNOWLEDGED_WITHIN, self.peer.listen(filter)).await;
        acknowledged.unwrap_or(Err(ServiceError::Timeout {
            timeout: ACKNOWLEDGED_WITHIN,
        }))
    }

    /// True once the connection is gone.
    pub fn is_over(&self) -> bool {
        self.end.over.is_cancelled() || self.peer.is_transport_closed()
    }
}

/// How a session ended.
#[derive(Debug)]
pub struct Ended {
    /// Why, when nobody here asked for it.
    pub cause: Cause,
}

/// The owning side of a session. Dropping it ends the session too, but nobody waits for that.
pub struct Keeper {
    stop: DropGuard,
    ended: oneshot::Receiver<Ended>,
}

impl Keeper {
    /// `stop` ends the session when cancelled; `ended` is told once everything of it is gone.
    pub fn new(stop: CancellationToken, ended: oneshot::Receiver<Ended>) -> Self {
        Self {
            stop: stop.drop_guard(),
            ended,
        }
    }

    /// Resolves when the session is over and its process gone, whoever ended it.
    pub async fn over(&mut self) -> Ended {
        (&mut self.ended).await.unwrap_or(Ended { cause: Cause::Stopped })
    }

    /// Ends the session and waits until its process tree is gone, or for as long as that may take.
    pub async fn close(self) {
        drop(self.stop);
        if tokio::time::timeout(CLOSED_WITHIN, self.ended).await.is_err() {
            tracing::error!("a session did not end within {} s", CLOSED_WITHIN.as_secs());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_date_names_a_revision_of_the_protocol() {
        for known in ProtocolVersion::KNOWN_VERSIONS {
            assert!(is_revision(known.as_str()), "{known}");
        }
        assert!(is_revision("2031-01-01"));
        for other in [
            "",
            "draft",
            "DRAFT-2026-v1",
            "2025-11-2",
            "2025-11-255",
            "2025/11/25",
            "SENTINEL-2",
            "２025-11-2",
        ] {
            assert!(!is_revision(other), "{other}");
        }
    }
}
