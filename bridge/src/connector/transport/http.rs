//! Streamable HTTP under rmcp's worker, with what the SDK's own client loses or leaves hanging.
//!
//! Repairs (each has a test): a greeting has its whole answer in time (see `greeting`); a 400 with an error that names
//! no request is given its request's id, or is taken for a lost session when it speaks of one, and so is an error that
//! says so in a success, except that a call which was accepted is never sent again; a busy server's status counts more
//! than the error in its body; a 401 without `WWW-Authenticate` is still a 401; an event that cannot be read fails its
//! call instead of leaving it to wait; streams are opened again at a bearable pace. Results travel raw (see `carrier`).

mod answer;
mod greeting;
mod listen;
mod messages;
mod sessions;

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{StreamExt, stream, stream::BoxStream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientNotification, ErrorCode, JsonRpcError, JsonRpcMessage, RequestId,
        ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
    },
};
use sse_stream::Sse;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::{
    answer::Answer,
    greeting::{Greeting, in_time, refused_probe},
    listen::{Ask, listen},
    messages::{Messages, is_session_unknown, names_session, unreadable},
    sessions::Sessions,
};
use super::{
    Method, carrier,
    events::read_events,
    watch::Watch,
    web::{
        ContentKind, CustomHeaders, Error, Web, Whole, content_kind, header_text, overloaded, plain_refusal,
        read_refusal, read_whole, runs_a_tool,
    },
};

const SESSION_HEADER: &str = "mcp-session-id";

/// Statuses with which servers of the old HTTP+SSE transport, and others that are no streamable HTTP at all, refuse a
/// greeting.
const UNSUPPORTED: [StatusCode; 6] = [
    StatusCode::BAD_REQUEST,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::NOT_ACCEPTABLE,
    StatusCode::LENGTH_REQUIRED,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
];

/// Errors that only a server of the modern era makes (2026-07-28): header mismatch, missing capability, unsupported
/// revision.
const MODERN_ERRORS: std::ops::RangeInclusive<i32> = -32022..=-32020;

type EventStream = BoxStream<'static, Result<Sse, SseError>>;

/// One transport's HTTP side; clones share everything.
#[derive(Clone)]
pub struct HttpClient {
    web: Web,
    watch: Watch,
    greetings: Arc<Greetings>,
    state: Arc<State>,
}

/// What one transport has open.
#[derive(Default)]
struct State {
    messages: Messages,
    sessions: Sessions,
    /// Set off by each request.
    used: Notify,
    /// The transport is no longer wanted. The SDK's worker does not look up from its first messages.
    over: CancellationToken,
}

/// Which greetings were refused as something that the server does not know.
#[derive(Default)]
struct Greetings {
    discover: AtomicBool,
    initialize: AtomicBool,
}

impl HttpClient {
    /// A client for one transport; contacts nobody yet.
    pub fn new(web: Web, watch: Watch) -> Self {
        Self {
            web,
            watch,
            greetings: Arc::default(),
            state: Arc::default(),
        }
    }

    /// A client for another transport to the same upstream: nothing is open yet.
    pub fn another(&self) -> Self {
        Self {
            state: Arc::default(),
            ..self.clone()
        }
    }

    /// Ends whatever this transport waits for or reads when it is dropped. Only the end of its session is still told.
    pub fn guard(&self) -> DropGuard {
        self.state.over.clone().drop_guard()
    }

    /// True when the server refused both the modern and the legacy greeting as it would refuse any unknown request, over
    /// this transport or one that it is [`another`](Self::another) of. It may then be of the time before streamable HTTP.
    pub fn knows_no_greeting(&self) -> bool {
        self.greetings.discover.load(Ordering::Relaxed) && self.greetings.initialize.load(Ordering::Relaxed)
    }

    fn note_unsupported(&self, message: &ClientJsonRpcMessage) {
        match Greeting::of(message) {
            Some(Greeting::Discover) => self.greetings.discover.store(true, Ordering::Relaxed),
            Some(Greeting::Initialize) => self.greetings.initialize.store(true, Ordering::Relaxed),
            None => {}
        }
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: CustomHeaders,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session_id, auth_header, custom_headers, limits)
            .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: CustomHeaders,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Error> {
        if self.state.sessions.is_lost(session_id.as_deref()) {
            return Err(StreamableHttpError::SessionExpired);
        }
        let asked = self.state.messages.remember(&message);
        if asked.is_some() {
            self.state.used.notify_waiters();
        }
        let headers = headers(session_id.as_deref(), auth_header.as_deref(), custom_headers)?;
        let ask = Ask {
            url: uri,
            headers,
            limit: limits.max_sse_event_size,
        };
        let exchange = self.exchange(&message, asked.clone(), session_id.as_deref(), ask, limits);
        let outcome = tokio::select! {
            biased;
            () = self.state.over.cancelled() => Err(StreamableHttpError::TransportChannelClosed),
            outcome = in_time(&message, exchange) => outcome,
        };
        // A greeting's answer is read by now, whatever it was.
        let is_over = outcome.is_err() || Greeting::of(&message).is_some();
        if let Some((id, _)) = asked.filter(|_| is_over) {
            self.state.messages.forget(&id);
        }
        outcome
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: CustomHeaders,
    ) -> Result<(), Error> {
        let headers = headers(Some(&session_id), auth_header.as_deref(), custom_headers)?;
        let status = self.web.delete(&uri, headers).await?;
        // A server may not let clients end sessions, or may have forgotten this one.
        if status.is_success() || matches!(status, StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND) {
            return Ok(());
        }
        Err(plain_refusal(status, None))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: CustomHeaders,
    ) -> Result<EventStream, Error> {
        let limit = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, custom_headers, limit)
            .await
    }

    /// Only asked for once in a session: the stream opens itself again, and answers are resumed by their own streams.
    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: CustomHeaders,
        max_sse_event_size: usize,
    ) -> Result<EventStream, Error> {
        let ask = Ask {
            url: uri,
            headers: headers(session_id.as_deref(), auth_header.as_deref(), custom_headers)?,
            limit: max_sse_event_size,
        };
        let over = self.state.over.clone().cancelled_owned();
        Ok(listen(self.clone(), ask, last_event_id).take_until(over).boxed())
    }
}

impl HttpClient {
    async fn exchange(
        &self,
        message: &ClientJsonRpcMessage,
        asked: Option<(RequestId, Method)>,
        session: Option<&str>,
        ask: Ask,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let response = self.web.post(&ask.url, ask.headers.clone(), message).await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return self.refused(message, asked, session.is_some(), status, response).await;
        }
        if let Some(session) = session.filter(|_| is_initialized(message)) {
            self.agreed(session);
        }
        let Some((id, method)) = asked.filter(|_| !matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT))
        else {
            // Nothing is awaited, so nothing in the body matters.
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        let assigned = header_text(response.headers(), SESSION_HEADER);
        match content_kind(response.headers()) {
            ContentKind::EventStream => {
                let events = read_events(response.bytes_stream(), ask.limit).boxed();
                let answer = Answer::new(self.clone(), ask, id, events);
                let over = self.state.over.clone().cancelled_owned();
                Ok(StreamableHttpPostResponse::Sse(
                    answer.read().take_until(over).boxed(),
                    assigned,
                ))
            }
            ContentKind::Json => {
                let limit = limits.max_json_response_size;
                match read_whole(response, limit).await? {
                    Whole::Complete(body) => {
                        let text = String::from_utf8_lossy(&body);
                        let text = text.trim_start_matches('\u{feff}');
                        self.json_answer(text, id, method, &ask.headers, runs_a_tool(message), assigned)
                    }
                    Whole::TooLarge => {
                        self.state.messages.forget(&id);
                        let error = ServerJsonRpcMessage::error(carrier::frame_too_large(limit), Some(id));
                        Ok(StreamableHttpPostResponse::Json(error, assigned))
                    }
                }
            }
            ContentKind::Other(found) => Err(StreamableHttpError::UnexpectedContentType(found)),
        }
    }

    /// A success was accepted. When it says that the session is unknown, a call may have run all the same, so only the
    /// next request gets a new session; anything else is asked again at once.
    fn json_answer(
        &self,
        text: &str,
        id: RequestId,
        method: Method,
        asked_with: &HeaderMap,
        is_call: bool,
        assigned: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        if text.trim_start().starts_with('[') {
            let rewritten = self.state.messages.rewrite(Some(&id), text);
            if rewritten.session_gone {
                self.state.sessions.lost(asked_with);
            }
            let events = rewritten.texts.into_iter().map(|text| Ok(Sse::default().data(text)));
            return Ok(StreamableHttpPostResponse::Sse(stream::iter(events).boxed(), assigned));
        }
        self.state.messages.forget(&id);
        let message = carrier::decode(method, text).map_or_else(
            |why| unreadable(id.clone(), &why.to_string()),
            |message| with_id(message, &id),
        );
        if let JsonRpcMessage::Error(error) = &message
            && asked_with.contains_key(SESSION_HEADER)
            && is_session_unknown(&error.error)
        {
            if !is_call {
                return Err(StreamableHttpError::SessionExpired);
            }
            self.state.sessions.lost(asked_with);
        }
        Ok(StreamableHttpPostResponse::Json(message, assigned))
    }

    fn agreed(&self, session: &str) {
        if let Some(earlier) = self.state.sessions.agreed(session) {
            (self.watch.replaced)(&earlier, session);
        }
    }

    /// Makes what it can of a status outside 2xx: an error of the protocol, a lost session, or a plain status.
    async fn refused(
        &self,
        message: &ClientJsonRpcMessage,
        asked: Option<(RequestId, Method)>,
        had_session: bool,
        status: StatusCode,
        response: reqwest::Response,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let retry = overloaded(status, response.headers());
        if status == StatusCode::TOO_MANY_REQUESTS
            && let Some(error) = retry
        {
            return Err(error.into());
        }
        let Some((id, _)) = asked else {
            return Err(plain_refusal(status, retry));
        };
        let body = read_refusal(response).await;
        self.state.messages.forget(&id);
        if let Ok(JsonRpcMessage::Error(error)) = serde_json::from_str::<ServerJsonRpcMessage>(&body) {
            if had_session && refuses_session(status, &error) {
                return Err(StreamableHttpError::SessionExpired);
            }
            if is_passing(status, &error) && !runs_a_tool(message) {
                return Err(plain_refusal(status, retry));
            }
            if UNSUPPORTED.contains(&status) && !MODERN_ERRORS.contains(&error.error.code.0) {
                self.note_unsupported(message);
            }
            let message = ServerJsonRpcMessage::error(error.error, Some(id));
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        if UNSUPPORTED.contains(&status) {
            self.note_unsupported(message);
        }
        if status.is_client_error() && Greeting::of(message) == Some(Greeting::Discover) {
            return Ok(refused_probe(id, format!("HTTP {}", status.as_u16())));
        }
        Err(plain_refusal(status, retry))
    }
}

/// True when a status and its error say together that the request was turned away because its session is unknown. A
/// server that failed (5xx) may speak of sessions of its own after it has carried a call out.
fn refuses_session(status: StatusCode, error: &JsonRpcError) -> bool {
    let is_nameless = status == StatusCode::BAD_REQUEST && error.id.is_none() && names_session(&error.error);
    is_nameless || (status.is_client_error() && is_session_unknown(&error.error))
}

/// True when a later attempt may fare better, whatever the error's words: the status alone says so. A server that has no
/// such method has none later either.
fn is_passing(status: StatusCode, error: &JsonRpcError) -> bool {
    (status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT)
        && error.error.code != ErrorCode::METHOD_NOT_FOUND
}

fn is_initialized(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Notification(n)
        if matches!(n.notification, ClientNotification::InitializedNotification(_)))
}

/// Other events (`ping`, `endpoint`, …) are no messages.
fn is_message(event: &Sse) -> bool {
    matches!(event.event.as_deref(), None | Some("" | "message"))
}

/// An error without an id inside a 200 answer belongs to the request it answers.
fn with_id(message: ServerJsonRpcMessage, id: &RequestId) -> ServerJsonRpcMessage {
    match message {
        JsonRpcMessage::Error(error) if error.id.is_none() => {
            ServerJsonRpcMessage::error(error.error, Some(id.clone()))
        }
        other @ (JsonRpcMessage::Error(_)
        | JsonRpcMessage::Request(_)
        | JsonRpcMessage::Response(_)
        | JsonRpcMessage::Notification(_)) => other,
    }
}

fn headers(session: Option<&str>, bearer: Option<&str>, custom: CustomHeaders) -> Result<HeaderMap, Error> {
    let mut headers: HeaderMap = custom.into_iter().collect();
    if let Some(session) = session {
        let value = HeaderValue::from_str(session).map_err(|_| {
            StreamableHttpError::UnexpectedServerResponse(Cow::from("its session id is no header value"))
        })?;
        headers.insert(HeaderName::from_static(SESSION_HEADER), value);
    }
    if let Some(bearer) = bearer {
        let mut value = HeaderValue::from_str(&format!("Bearer {bearer}"))
            .map_err(|_| StreamableHttpError::UnexpectedServerResponse(Cow::from("the token is no header value")))?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests;
