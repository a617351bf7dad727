//! What is asked of an upstream over its session, each request sent once.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, ErrorData, ListToolsRequest, PaginatedRequestParams,
        ProgressToken, ServerResult,
    },
    service::{PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::{Map, Value};
use tokio::{sync::Notify, time::Instant};

use super::{Session, Signals};
use crate::connector::{
    fault::{self, cause_of_service_error},
    state::Cause,
    transport::carrier,
};

/// How often progress may renew a call's deadline (DESIGN §6.2).
const RENEWALS: u32 = 3;

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

impl Session {
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
