//! What is asked of an upstream over its session, each request sent once.

use std::time::Duration;

use futures::future;
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, GetPromptRequest, GetPromptRequestParams,
        ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
        PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams, ServerResult,
    },
    service::{PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    Session,
    desk::Response,
    input::{self, Given, Required},
    progress::Tell,
    under_way::{Mine, UnderWay},
};
use crate::{
    connector::{
        cause::Cause,
        discovery::{ListFault, ListKind},
        fault::{self, cause_of_service_error},
        transport::carrier,
    },
    snapshot::Era,
};

/// How often progress may renew a call's deadline (DESIGN §6.2).
const RENEWALS: u32 = 3;

/// An upstream that reports faster is told on no faster.
const BETWEEN_TOLD: Duration = Duration::from_millis(200);

/// An upstream that asks again and again gets this many answers, as in other SDKs (rmcp's `DEFAULT_MRTR_MAX_ROUNDS`).
const ROUNDS: u32 = 10;

/// Before an upstream that only wants to be asked again is; doubles with each round.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// After a session broke, how it ended is waited for this long.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Whose request it is, and who is told how far it has come.
#[derive(Clone, Copy)]
pub struct Whose<'a> {
    /// The caller's label.
    pub caller: &'a str,
    pub tell: &'a Tell<'a>,
}

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
    /// The upstream wanted the person to open a page first, and the person did not.
    Declined,
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
    /// Progress renews the time up to three times and is told, at most five times a second. The time stands still while a
    /// question of the upstream waits for the person. Dropping the future tells the upstream to stop.
    ///
    /// # Errors
    /// [`CallFault`].
    pub async fn call(
        &self,
        tool: &str,
        input: &Map<String, Value>,
        time: Duration,
        whose: Whose<'_>,
    ) -> Result<String, CallFault> {
        let request = |given: Given| {
            let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input.clone());
            (params.input_responses, params.request_state) = (given.responses, given.state);
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        };
        self.ask(request, time, whose).await
    }

    /// Reads what is at exactly this URI; otherwise as [`Session::call`].
    ///
    /// # Errors
    /// [`CallFault`].
    pub async fn read_resource(&self, uri: &str, time: Duration, whose: Whose<'_>) -> Result<String, CallFault> {
        let request = |given: Given| {
            let mut params = ReadResourceRequestParams::new(uri);
            (params.input_responses, params.request_state) = (given.responses, given.state);
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        };
        self.ask(request, time, whose).await
    }

    /// Gets a prompt with exactly these arguments; otherwise as [`Session::call`].
    ///
    /// # Errors
    /// [`CallFault`].
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        time: Duration,
        whose: Whose<'_>,
    ) -> Result<String, CallFault> {
        let request = |given: Given| {
            let mut params = GetPromptRequestParams::new(name).with_arguments(arguments.clone());
            (params.input_responses, params.request_state) = (given.responses, given.state);
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        };
        self.ask(request, time, whose).await
    }

    /// One request, over as many rounds as its upstream needs for it.
    async fn ask(
        &self,
        request: impl Fn(Given) -> ClientRequest,
        time: Duration,
        whose: Whose<'_>,
    ) -> Result<String, CallFault> {
        let mine = Mine::begin(whose.caller);
        let mut patience = Patience::new(time);
        let mut given = Given::default();
        let mut rounds = 0;
        let mut pages_were_asked = false;
        loop {
            let answer = match self.round(&mine, request(given), &mut patience, whose.tell).await {
                // What came before was taken: whatever becomes of it, it does not begin anew.
                Err(CallFault::NotSent) if rounds > 0 => return Err(CallFault::Lost(self.ended().await)),
                answer => answer?,
            };
            rounds += 1;
            if let Err(ServiceError::McpError(error)) = &answer
                && !pages_were_asked
                && let Some(pages) = input::pages(error)
            {
                // Refused until they have been opened, it may be sent once more.
                pages_were_asked = true;
                self.open_pages(&mine.request, pages).await?;
                given = Given::default();
                continue;
            }
            let raw = self.settle(answer).await?;
            let required = match self.facts.era {
                Era::Modern => input::required(&raw),
                Era::Legacy => None,
            };
            let required = match required {
                None => return Ok(raw),
                Some(Err(why)) => return Err(refused(ErrorCode::INTERNAL_ERROR, &why)),
                Some(Ok(_)) if rounds > ROUNDS => {
                    return Err(refused(ErrorCode::INTERNAL_ERROR, "it asked again and again"));
                }
                Some(Ok(required)) => required,
            };
            given = self.fulfil(&mine.request, required, rounds, &mut patience).await?;
        }
    }

    /// Sends once and waits for the answer.
    async fn round(
        &self,
        mine: &Mine,
        request: ClientRequest,
        patience: &mut Patience,
        tell: &Tell<'_>,
    ) -> Result<Result<ServerResult, ServiceError>, CallFault> {
        let clock = &mine.request.clock;
        let asked = tokio::select! {
            asked = self.send(request) => asked.map_err(|_| CallFault::NotSent)?,
            () = clock.reaches(patience.until) => return Err(patience.timed_out()),
        };
        let _listed = mine.listed(&self.signals.requests, asked.progress_token.clone());
        let progress = &mine.request.progress;
        let mut pending = Pending::new(asked);
        let mut next_told = Instant::now();
        loop {
            tokio::select! {
                biased;
                answer = pending.answer() => return Ok(answer),
                () = clock.reaches(patience.until) => patience.renew(progress.last())?,
                progress = progress.news(next_told) => {
                    next_told = Instant::now() + BETWEEN_TOLD;
                    tell(progress);
                }
            }
        }
    }

    /// An answer as callers see it; one of a session that broke tells how that ended.
    async fn settle(&self, answer: Result<ServerResult, ServiceError>) -> Result<String, CallFault> {
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
                | CallFault::Lost(_)
                | CallFault::Declined,
            ) => {}
        }
        answer
    }

    /// Puts to the person what the upstream needs.
    async fn fulfil(
        &self,
        request: &UnderWay,
        required: Required,
        rounds: u32,
        patience: &mut Patience,
    ) -> Result<Given, CallFault> {
        let Required { questions, state } = required;
        if questions.is_empty() {
            // It only wants to be asked again.
            let pause = (FIRST_PAUSE * 2_u32.pow(rounds.min(ROUNDS))).min(LONGEST_PAUSE);
            tokio::select! {
                () = tokio::time::sleep(pause) => return Ok(Given { responses: None, state }),
                () = request.clock.reaches(patience.until) => return Err(patience.timed_out()),
                () = self.end.is_over() => return Err(CallFault::Lost(self.ended().await)),
            }
        }
        let asked = questions.into_iter().map(|(key, question)| async move {
            let response = self.desk.ask_for(request, &question).await;
            (key, response.to_json())
        });
        tokio::select! {
            responses = future::join_all(asked) => {
                let responses = Some(responses.into_iter().collect());
                Ok(Given { responses, state })
            }
            () = self.end.is_over() => Err(CallFault::Lost(self.ended().await)),
        }
    }

    /// Puts pages to the person that have to be opened first.
    async fn open_pages(&self, request: &UnderWay, pages: Vec<Value>) -> Result<(), CallFault> {
        let asked = pages.iter().map(|page| self.desk.ask_for(request, page));
        let responses = tokio::select! {
            responses = future::join_all(asked) => responses,
            () = self.end.is_over() => return Err(CallFault::Lost(self.ended().await)),
        };
        if responses.iter().all(|response| matches!(response, Response::Accept(_))) {
            Ok(())
        } else {
            Err(CallFault::Declined)
        }
    }

    /// Why its session is over.
    async fn ended(&self) -> Cause {
        self.end.cause(LAST_WORDS).await.unwrap_or(Cause::Stopped)
    }

    async fn send(&self, request: ClientRequest) -> Result<RequestHandle<RoleClient>, ServiceError> {
        self.peer
            .send_request_with_option(request, PeerRequestOptions::no_options())
            .await
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

/// How long an answer is waited for, in the time of its request.
struct Patience {
    time: Duration,
    until: Duration,
    renewals: u32,
}

impl Patience {
    fn new(time: Duration) -> Self {
        Self {
            time,
            until: time,
            renewals: 0,
        }
    }

    /// The time is over, unless progress came since it was last renewed: then it counts from when that came.
    fn renew(&mut self, last: Option<Duration>) -> Result<(), CallFault> {
        match last.filter(|at| *at + self.time > self.until && self.renewals < RENEWALS) {
            Some(at) => {
                self.renewals += 1;
                self.until = at + self.time;
                Ok(())
            }
            None => Err(self.timed_out()),
        }
    }

    fn timed_out(&self) -> CallFault {
        CallFault::TimedOut(self.time)
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
