//! One live connection to an upstream: its handshake, its calls, its end.
//!
//! The connector's task owns a [`Keeper`] and ends the session through it; callers share the [`Session`] and can only
//! call. A call is sent once and never again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rmcp::{
    ClientHandler, Peer, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, ErrorData,
        Implementation, ListToolsRequest, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
        ProtocolVersion, ServerResult,
    },
    service::{NotificationContext, PeerRequestOptions, RequestHandle, RunningService, ServiceError},
};
use serde_json::{Map, Value};
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    fault::{self, cause_of_service_error},
    state::{Cause, SessionFacts},
    transport::carrier,
};
use crate::snapshot::{Era, Readiness};

/// How often progress may renew a call's deadline (DESIGN §6.2).
const RENEWALS: u32 = 3;

/// What an upstream's messages set off in its connector.
#[derive(Debug, Default)]
pub struct Signals {
    /// The upstream says that its tool list is another one now.
    pub tools_changed: Notify,
    progress: Mutex<HashMap<ProgressToken, Arc<Notify>>>,
}

/// Our side of the protocol: neither sampling nor roots nor elicitation are declared.
#[derive(Clone)]
pub struct Handler {
    signals: Arc<Signals>,
}

impl Handler {
    /// A side that reports to `signals`.
    pub fn new(signals: Arc<Signals>) -> Self {
        Self { signals }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("neuron-connect", env!("CARGO_PKG_VERSION")).with_title("Neuron Connect");
        let mut config = ClientConfig::new(ClientCapabilities::default(), us);
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let progress = self.signals.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(renew) = progress.get(&params.progress_token) {
            renew.notify_one();
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.signals.tools_changed.notify_one();
    }
}

/// One page of `tools/list`, as received.
#[derive(Debug, Clone)]
pub struct RawPage {
    /// JSON text of the whole `result`.
    pub text: String,
}

/// Why a call has no result.
#[derive(Debug)]
pub enum CallFault {
    /// The upstream answered with an error of the protocol; its own words, shortened.
    Refused(String),
    /// The result was larger than a frame may be.
    TooLarge,
    /// No result within the time allowed; the upstream was told to stop.
    TimedOut(Duration),
    /// The session was over before the call was handed to it; nothing was sent.
    NotSent,
    /// The connection broke or could not carry the call. Whether the upstream ran it is not known.
    Lost(Cause),
}

/// The shared side of a session.
#[derive(Debug)]
pub struct Session {
    /// What the handshake told.
    pub facts: SessionFacts,
    /// True when the upstream said that it has tools.
    pub has_tools: bool,
    /// The upstream's own name and version, where given.
    pub server: Option<String>,
    /// What the upstream tells assistants about itself.
    pub instructions: Option<String>,
    /// Set off by the upstream.
    pub signals: Arc<Signals>,
    peer: Peer<RoleClient>,
    ended: CancellationToken,
}

impl Session {
    /// Reads the facts off a finished handshake.
    pub fn new(
        service: &RunningService<RoleClient, Handler>,
        signals: Arc<Signals>,
        over_stdio: bool,
        ended: CancellationToken,
    ) -> Self {
        let peer = service.peer().clone();
        let info = peer.peer_info();
        let protocol = info
            .as_ref()
            .map(|info| info.protocol_version.clone())
            .unwrap_or_default();
        let era = if protocol.has_initialize() {
            Era::Legacy
        } else {
            Era::Modern
        };
        Self {
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
            server: info
                .as_ref()
                .and_then(|info| info.server_info.as_ref())
                .map(|server| format!("{} {}", server.name, server.version)),
            instructions: info.as_ref().and_then(|info| info.instructions.clone()),
            signals,
            peer,
            ended,
        }
    }

    /// True once the connection is gone.
    pub fn is_over(&self) -> bool {
        self.ended.is_cancelled() || self.peer.is_transport_closed()
    }

    /// Asks for one page of tools.
    ///
    /// # Errors
    /// The cause, when the upstream refuses, breaks off or does not answer within `deadline`.
    pub async fn list_tools(&self, cursor: Option<String>, deadline: Instant) -> Result<RawPage, Cause> {
        let request = ListToolsRequest {
            params: cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor))),
            ..ListToolsRequest::default()
        };
        let asked = self
            .send(ClientRequest::ListToolsRequest(request))
            .await
            .map_err(|e| cause_of_service_error(&e))?;
        let mut pending = Pending::new(asked);
        let answer = tokio::time::timeout_at(deadline, pending.answer())
            .await
            .map_err(|_| Cause::Network("its tool list did not arrive in time".to_owned()))?
            .map_err(|error| match error {
                ServiceError::McpError(error) => Cause::Protocol(format!(
                    "it refused to list its tools ({})",
                    fault::short(&error.message)
                )),
                other => cause_of_service_error(&other),
            })?;
        carrier::raw_of(answer)
            .map(|text| RawPage { text })
            .ok_or_else(|| Cause::Protocol("it answered the tool list with something else".to_owned()))
    }

    /// Runs a tool with exactly these arguments; the JSON text of the result as received.
    ///
    /// Progress renews the time up to three times. Dropping the future tells the upstream to stop.
    ///
    /// # Errors
    /// [`CallFault`].
    pub async fn call(&self, tool: &str, input: Map<String, Value>, time: Duration) -> Result<String, CallFault> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let asked = self.send(request).await.map_err(|_| CallFault::NotSent)?;
        let renew = self.watch_progress(&asked);
        let mut pending = Pending::new(asked);
        let mut deadline = Instant::now() + time;
        let mut renewals = 0;
        let answer = loop {
            tokio::select! {
                biased;
                answer = pending.answer() => break answer,
                () = renew.renewed(), if renewals < RENEWALS => {
                    renewals += 1;
                    deadline = Instant::now() + time;
                }
                () = tokio::time::sleep_until(deadline) => return Err(CallFault::TimedOut(time)),
            }
        };
        match answer {
            Ok(result) => carrier::raw_of(result)
                .ok_or_else(|| CallFault::Refused("it answered the call with something else".to_owned())),
            Err(ServiceError::McpError(error)) if carrier::is_frame_too_large(&error) => Err(CallFault::TooLarge),
            Err(ServiceError::McpError(ErrorData { message, .. })) => Err(CallFault::Refused(fault::short(&message))),
            Err(error) => Err(CallFault::Lost(cause_of_service_error(&error))),
        }
    }

    async fn send(&self, request: ClientRequest) -> Result<RequestHandle<RoleClient>, ServiceError> {
        self.peer
            .send_request_with_option(request, PeerRequestOptions::no_options())
            .await
    }

    fn watch_progress(&self, asked: &RequestHandle<RoleClient>) -> ProgressWatch<'_> {
        let notify = Arc::new(Notify::new());
        let token = asked.progress_token.clone();
        self.signals
            .progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(token.clone(), notify.clone());
        ProgressWatch {
            signals: &self.signals,
            token,
            notify,
        }
    }
}

struct ProgressWatch<'a> {
    signals: &'a Signals,
    token: ProgressToken,
    notify: Arc<Notify>,
}

impl ProgressWatch<'_> {
    async fn renewed(&self) {
        self.notify.notified().await;
    }
}

impl Drop for ProgressWatch<'_> {
    fn drop(&mut self) {
        self.signals
            .progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.token);
    }
}

/// A request under way. Dropped before its answer, it tells the upstream to stop, with the upstream's own request id.
struct Pending {
    handle: Option<RequestHandle<RoleClient>>,
}

impl Pending {
    fn new(handle: RequestHandle<RoleClient>) -> Self {
        Self { handle: Some(handle) }
    }

    /// Safe to drop and call again until it returns.
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = self.handle.as_mut() else {
            return Err(ServiceError::TransportClosed);
        };
        let answer = (&mut handle.rx).await;
        self.handle = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.handle.take(), tokio::runtime::Handle::try_current()) {
            // Not awaited: the caller is gone. A closed connection needs no cancellation.
            runtime.spawn(handle.cancel(Some("the caller no longer waits".to_owned())));
        }
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

    /// Ends the session and waits until its process tree is gone.
    pub async fn close(self) {
        drop(self.stop);
        // The sender is only lost with the runtime, and everything with it.
        let _ = self.ended.await;
    }
}
