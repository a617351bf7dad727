//! What is asked of an upstream over its session, each request sent once.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, GetPromptRequest, GetPromptRequestParams,
        ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
        PaginatedRequestParams, ProgressToken, ReadResourceRequest, ReadResourceRequestParams, ServerResult,
    },
    service::{PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    Session, Signals,
    progress::{Progress, Tell},
};
use crate::connector::{
    cause::Cause,
    discovery::{ListFault, ListKind},
    fault::{self, cause_of_service_error},
    transport::carrier,
};

/// How often progress may renew a call's deadline (DESIGN §6.2).
const RENEWALS: u32 = 3;

/// An upstream that reports faster is told on no faster.
const BETWEEN_TOLD: Duration = Duration::from_millis(200);

/// After a session broke, how it ended is waited for this long.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why a call, a read or a prompt has no result.
#[derive(Debug)]
pub enum CallFault {
    /// The upstream answered with an error of the protocol: its code, and its own words, shortened.
    Refused { code: i32, words: String },
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
    /// True when the upstream advertises this list.
    pub fn lists(&self, kind: ListKind) -> bool {
        match kind {
            ListKind::Tools => self.has_tools,
            ListKind::Resources | ListKind::Templates => self.has_resources,
            ListKind::Prompts => self.has_prompts,
        }
    }

    /// Asks for one page of a list; the JSON text of the whole `result` as received.
    ///
    /// # Errors
    /// [`ListFault`], when the upstream refuses, breaks off or does not answer within `deadline`.
    pub async fn list_page(
        &self,
        kind: ListKind,
        cursor: Option<String>,
        deadline: Instant,
    ) -> Result<String, ListFault> {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let lost = |error: &ServiceError| ListFault::Lost(cause_of_service_error(error));
        let asked = self.send(list_request(kind, params)).await.map_err(|e| lost(&e))?;
        let mut pending = Pending::new(asked);
        let answer = tokio::time::timeout_at(deadline, pending.answer())
            .await
            .map_err(|_| ListFault::Late)?
            .map_err(|error| match error {
                ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND => ListFault::Unsupported,
                ServiceError::McpError(error) => ListFault::Refused(fault::short(&error.message)),
                other => lost(&other),
            })?;
        carrier::raw_of(answer).ok_or(ListFault::NoList)
    }

    /// Runs a tool with exactly these arguments; the JSON text of the result as received.
    ///
    /// Progress renews the time up to three times and is told to `tell`, at most five times a second. Dropping the future
    /// tells the upstream to stop.
    ///
    /// # Errors
    /// [`CallFault`].
    pub async fn call(
        &self,
        tool: &str,
        input: Map<String, Value>,
        time: Duration,
        tell: &Tell<'_>,
    ) -> Result<String, CallFault> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        self.ask(request, time, tell).await
    }

    /// Reads what is at exactly this URI; otherwise as [`Session::call`].
    ///
    /// # Errors
    /// [`CallFault`].
    pub async fn read_resource(&self, uri: &str, time: Duration) -> Result<String, CallFault> {
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        let request = ClientRequest::ReadResourceRequest(request);
        self.ask(request, time, &|_| {}).await
    }

    /// Gets a prompt with exactly these arguments; otherwise as [`Session::call`].
    ///
    /// # Errors
    /// [`CallFault`].
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        time: Duration,
    ) -> Result<String, CallFault> {
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        self.ask(request, time, &|_| {}).await
    }

    async fn ask(&self, request: ClientRequest, time: Duration, tell: &Tell<'_>) -> Result<String, CallFault> {
        let begun = Instant::now();
        let asked = match tokio::time::timeout(time, self.send(request)).await {
            Ok(asked) => asked.map_err(|_| CallFault::NotSent)?,
            Err(_) => return Err(CallFault::TimedOut(time)),
        };
        let watch = self.watch_progress(&asked);
        let mut pending = Pending::new(asked);
        let mut deadline = begun + time;
        let mut renewals = 0;
        let mut told = None;
        let answer = loop {
            let next_told = told.map_or(begun, |told| told + BETWEEN_TOLD);
            tokio::select! {
                biased;
                answer = pending.answer() => break answer,
                () = tokio::time::sleep_until(deadline) => {
                    // Progress since the last renewal counts from when it came.
                    match watch.progress.last().filter(|at| *at + time > deadline && renewals < RENEWALS) {
                        Some(at) => {
                            renewals += 1;
                            deadline = at + time;
                        }
                        None => return Err(CallFault::TimedOut(time)),
                    }
                }
                progress = watch.progress.news(next_told) => {
                    told = Some(Instant::now());
                    tell(progress);
                }
            }
        };
        let is_closed = matches!(answer, Err(ServiceError::TransportClosed));
        let answer = judge(answer);
        match &answer {
            Ok(_) => self.prove(),
            Err(CallFault::Lost(_)) if is_closed || self.is_over() => {
                // How a program ended says more than that its pipe closed.
                if let Some(cause) = self.end.cause(LAST_WORDS).await {
                    return Err(CallFault::Lost(cause));
                }
            }
            Err(
                CallFault::Refused { .. }
                | CallFault::TooLarge
                | CallFault::TimedOut(_)
                | CallFault::NotSent
                | CallFault::Lost(_),
            ) => {}
        }
        answer
    }

    async fn send(&self, request: ClientRequest) -> Result<RequestHandle<RoleClient>, ServiceError> {
        self.peer
            .send_request_with_option(request, PeerRequestOptions::no_options())
            .await
    }

    fn watch_progress(&self, asked: &RequestHandle<RoleClient>) -> ProgressWatch<'_> {
        let progress = Arc::new(Progress::default());
        let token = asked.progress_token.clone();
        self.signals
            .progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(token.clone(), progress.clone());
        ProgressWatch {
            signals: &self.signals,
            token,
            progress,
        }
    }
}

/// An answer as callers see it.
fn judge(answer: Result<ServerResult, ServiceError>) -> Result<String, CallFault> {
    match answer {
        Ok(result) => {
            carrier::raw_of(result).ok_or_else(|| refused(ErrorCode::INTERNAL_ERROR, "it answered with something else"))
        }
        Err(ServiceError::McpError(error)) if carrier::is_frame_too_large(&error) => Err(CallFault::TooLarge),
        Err(ServiceError::McpError(error)) => Err(match fault::cause_of_lost_answer(&error) {
            Some(cause) => CallFault::Lost(cause),
            None => refused(error.code, &error.message),
        }),
        Err(error) => Err(CallFault::Lost(cause_of_service_error(&error))),
    }
}

fn refused(code: ErrorCode, words: &str) -> CallFault {
    CallFault::Refused {
        code: code.0,
        words: fault::short(words),
    }
}

fn list_request(kind: ListKind, params: Option<PaginatedRequestParams>) -> ClientRequest {
    match kind {
        ListKind::Tools => ClientRequest::ListToolsRequest(ListToolsRequest {
            params,
            ..ListToolsRequest::default()
        }),
        ListKind::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest {
            params,
            ..ListResourcesRequest::default()
        }),
        ListKind::Templates => ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
            params,
            ..ListResourceTemplatesRequest::default()
        }),
        ListKind::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest {
            params,
            ..ListPromptsRequest::default()
        }),
    }
}

struct ProgressWatch<'a> {
    signals: &'a Signals,
    token: ProgressToken,
    progress: Arc<Progress>,
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
