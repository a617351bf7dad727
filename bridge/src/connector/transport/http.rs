//! Streamable HTTP under rmcp's worker, with what the SDK's own client loses or leaves hanging.
//!
//! Three repairs (each has a test): a 400 with an error that names no request is given its request's id, or is taken
//! for a lost session when it speaks of one; a 401 without `WWW-Authenticate` is still a 401; an event that cannot be
//! read fails its call instead of leaving it to wait. Results travel raw (see `carrier`). Redirects stay on their
//! origin and keep their method; link-local addresses are never contacted.

mod address;
mod events;

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{Stream, StreamExt, stream::BoxStream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
        StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
    },
};
use sse_stream::Sse;
use url::Url;

use self::{
    address::{PublicResolver, follow_same_origin, link_local_host},
    events::{EventError, read_events},
};
use super::carrier::{self, Method, Opened};

/// Until a TCP and TLS connection stands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Shorter than the five seconds after which common servers drop an idle connection, so that a request rarely meets a
/// connection that is being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// A diagnostic is read this far and no further.
const ERROR_BODY_LIMIT: usize = 64 * 1024;
const SESSION_HEADER: &str = "mcp-session-id";
const LAST_EVENT_HEADER: &str = "last-event-id";

type Error = StreamableHttpError<reqwest::Error>;
type EventStream = BoxStream<'static, Result<Sse, SseError>>;

/// Why a URL is not contacted.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// Its host is a link-local address.
    #[error("{0} is a link-local address, which is never contacted")]
    LinkLocal(String),
    /// The client could not be built (TLS roots unreadable).
    #[error("HTTPS cannot be set up on this computer: {0}")]
    Setup(#[source] reqwest::Error),
}

/// One upstream's HTTP side; clones share connections.
#[derive(Clone)]
pub struct HttpClient {
    http: reqwest::Client,
    /// Which method each open request used: a resumed stream may carry the answer to any of them.
    methods: Arc<Mutex<HashMap<RequestId, Method>>>,
}

impl HttpClient {
    /// Prepares to speak to `url`; contacts nobody yet.
    ///
    /// # Errors
    /// [`HttpClientError`].
    pub fn new(url: &Url) -> Result<Self, HttpClientError> {
        if let Some(ip) = link_local_host(url) {
            return Err(HttpClientError::LinkLocal(ip.to_string()));
        }
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .redirect(reqwest::redirect::Policy::custom(follow_same_origin))
            .dns_resolver(Arc::new(PublicResolver))
            .no_proxy()
            .user_agent(concat!("neuron-connect/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(HttpClientError::Setup)?;
        Ok(Self {
            http,
            methods: Arc::default(),
        })
    }

    fn remember(&self, message: &ClientJsonRpcMessage) -> Option<(RequestId, Method)> {
        let JsonRpcMessage::Request(request) = message else {
            return None;
        };
        let method = Method::of(request.request.method());
        let mut methods = self.methods.lock().unwrap_or_else(PoisonError::into_inner);
        // Answered requests are taken out when their answer passes; this bound only meets servers that never answer.
        if methods.len() > 4096 {
            methods.clear();
        }
        methods.insert(request.id.clone(), method);
        Some((request.id.clone(), method))
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
        custom_headers: HashMap<HeaderName, HeaderValue>,
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
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let asked = self.remember(&message);
        let had_session = session_id.is_some();
        let request = self
            .http
            .post(uri.as_ref())
            .header(header::ACCEPT, "application/json, text/event-stream")
            .headers(common_headers(
                session_id.as_deref(),
                auth_header.as_deref(),
                custom_headers,
            )?)
            .json(&message);
        let response = request.send().await.map_err(client_error)?;
        let status = response.status();
        refuse_unauthorized(status, response.headers())?;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && had_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = header_text(response.headers(), SESSION_HEADER);
        let kind = content_kind(response.headers());
        if !status.is_success() {
            return self.refused(&message, asked, had_session, status, response).await;
        }
        let Some((id, method)) = asked else {
            // Nothing is awaited, so nothing in the body matters.
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        match kind {
            ContentKind::EventStream => {
                let events = read_events(response.bytes_stream(), limits.max_sse_event_size);
                Ok(StreamableHttpPostResponse::Sse(
                    self.carry_events(events, Some(id)),
                    session,
                ))
            }
            ContentKind::Json => {
                let body = match read_whole(response, limits.max_json_response_size).await? {
                    Whole::Complete(body) => body,
                    Whole::TooLarge => {
                        return Ok(StreamableHttpPostResponse::Json(
                            too_large(id, limits.max_json_response_size),
                            session,
                        ));
                    }
                };
                self.forget(&id);
                let text = String::from_utf8_lossy(&body);
                let message = carrier::decode(method, text.trim_start_matches('\u{feff}')).map_or_else(
                    |why| unreadable(id.clone(), &why.to_string()),
                    |message| with_id(message, &id),
                );
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            ContentKind::Other(found) => Err(StreamableHttpError::UnexpectedContentType(found)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let request = self.http.delete(uri.as_ref()).headers(common_headers(
            Some(&session_id),
            auth_header.as_deref(),
            custom_headers,
        )?);
        let response = request.send().await.map_err(client_error)?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Ok(());
        }
        response.error_for_status().map(drop).map_err(client_error)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<EventStream, Error> {
        let limit = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, custom_headers, limit)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<EventStream, Error> {
        let mut headers = common_headers(session_id.as_deref(), auth_header.as_deref(), custom_headers)?;
        if let Some(id) = last_event_id.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(HeaderName::from_static(LAST_EVENT_HEADER), id);
        }
        let request = self
            .http
            .get(uri.as_ref())
            .header(header::ACCEPT, "text/event-stream")
            .headers(headers);
        let response = request.send().await.map_err(client_error)?;
        let status = response.status();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        refuse_unauthorized(status, response.headers())?;
        if let Some(error) = overloaded(status, response.headers()) {
            return Err(error.into());
        }
        let response = response.error_for_status().map_err(client_error)?;
        match content_kind(response.headers()) {
            ContentKind::EventStream => {
                Ok(self.carry_events(read_events(response.bytes_stream(), max_sse_event_size), None))
            }
            ContentKind::Json => Err(StreamableHttpError::UnexpectedContentType(Some(
                "application/json".to_owned(),
            ))),
            ContentKind::Other(found) => Err(StreamableHttpError::UnexpectedContentType(found)),
        }
    }
}

impl HttpClient {
    fn forget(&self, id: &RequestId) {
        self.methods.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
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
        let body = match read_whole(response, ERROR_BODY_LIMIT).await? {
            Whole::Complete(body) => String::from_utf8_lossy(&body).into_owned(),
            Whole::TooLarge => String::new(),
        };
        let Some((id, _)) = asked else {
            return Err(plain_refusal(status, retry));
        };
        self.forget(&id);
        if let Ok(JsonRpcMessage::Error(error)) = serde_json::from_str::<ServerJsonRpcMessage>(&body) {
            let names_session = error.error.message.to_ascii_lowercase().contains("session");
            if had_session && error.id.is_none() && names_session {
                return Err(StreamableHttpError::SessionExpired);
            }
            let message = ServerJsonRpcMessage::error(error.error, Some(id));
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        let is_probe =
            matches!(message, JsonRpcMessage::Request(r) if matches!(r.request, ClientRequest::DiscoverRequest(_)));
        if is_probe && status.is_client_error() {
            // Older servers refuse an unknown first request in many ways; the lifecycle then falls back to initialize.
            let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("HTTP {}", status.as_u16()), None);
            return Ok(StreamableHttpPostResponse::Json(
                ServerJsonRpcMessage::error(error, Some(id)),
                None,
            ));
        }
        Err(plain_refusal(status, retry))
    }

    /// Lets results travel raw through rmcp's own parser, and fails the call whose event cannot be read.
    fn carry_events(
        &self,
        events: impl Stream<Item = Result<Sse, EventError>> + Send + 'static,
        awaited: Option<RequestId>,
    ) -> EventStream {
        let methods = self.methods.clone();
        events
            .map(move |event| {
                let mut event = match (event, &awaited) {
                    (Ok(event), _) => event,
                    (Err(EventError::TooLarge(limit)), Some(id)) => {
                        return Ok(Sse::default().data(text_of(&too_large(id.clone(), limit))));
                    }
                    (Err(EventError::TooLarge(limit)), None) => {
                        return Err(SseError::Body(format!("an event is larger than {limit} bytes").into()));
                    }
                    (Err(EventError::Stream(error)), _) => return Err(error),
                };
                if event.event.as_deref().is_some_and(|name| name != "message") {
                    return Ok(event);
                }
                if let Some(data) = event.data.take().filter(|data| !data.trim().is_empty()) {
                    event.data = Some(rewrite(&methods, awaited.as_ref(), data));
                }
                Ok(event)
            })
            .boxed()
    }
}

/// Batches are one message per event here: rmcp reads one.
fn rewrite(methods: &Mutex<HashMap<RequestId, Method>>, awaited: Option<&RequestId>, data: String) -> String {
    let method = match carrier::open(&data) {
        Opened::Response { id, .. } | Opened::Error { id: Some(id), .. } => {
            methods.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
        }
        Opened::Error { id: None, error } => {
            return awaited.map_or(data, |id| {
                text_of(&ServerJsonRpcMessage::error(error, Some(id.clone())))
            });
        }
        Opened::Call(_) | Opened::Ambiguous | Opened::Noise => None,
    };
    match (carrier::rewrite_event(method, &data), awaited) {
        (Ok(text), _) => text,
        (Err(why), Some(id)) => text_of(&unreadable(id.clone(), &why.to_string())),
        (Err(_), None) => data,
    }
}

fn text_of(message: &ServerJsonRpcMessage) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

fn unreadable(id: RequestId, why: &str) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(carrier::broken_answer(why), Some(id))
}

fn too_large(id: RequestId, limit: usize) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(carrier::frame_too_large(limit), Some(id))
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

fn common_headers(
    session: Option<&str>,
    bearer: Option<&str>,
    custom: HashMap<HeaderName, HeaderValue>,
) -> Result<HeaderMap, Error> {
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

fn refuse_unauthorized(status: StatusCode, headers: &HeaderMap) -> Result<(), Error> {
    let challenge = headers
        .get(header::WWW_AUTHENTICATE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match (status, challenge) {
        (StatusCode::UNAUTHORIZED, challenge) => Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(
            challenge.unwrap_or_default(),
        ))),
        (StatusCode::FORBIDDEN, Some(challenge)) => Err(StreamableHttpError::InsufficientScope(
            InsufficientScopeError::new(challenge, None),
        )),
        _ => Ok(()),
    }
}

fn overloaded(status: StatusCode, headers: &HeaderMap) -> Option<HttpStatusError> {
    (status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()).then(|| {
        HttpStatusError::new(
            status.as_u16(),
            header_text(headers, "retry-after").filter(|v| v.len() <= 64),
        )
    })
}

fn plain_refusal(status: StatusCode, retry: Option<HttpStatusError>) -> Error {
    match retry {
        Some(error) => error.into(),
        None => StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {}", status.as_u16()))),
    }
}

fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

/// The SDK logs errors, and a URL's query may be secret.
fn client_error(error: reqwest::Error) -> Error {
    StreamableHttpError::Client(error.without_url())
}

enum ContentKind {
    Json,
    EventStream,
    Other(Option<String>),
}

fn content_kind(headers: &HeaderMap) -> ContentKind {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return ContentKind::Other(None);
    };
    let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
    let essence = text.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        ContentKind::Json
    } else if essence.eq_ignore_ascii_case("text/event-stream") {
        ContentKind::EventStream
    } else {
        ContentKind::Other(Some(text))
    }
}

enum Whole {
    Complete(Vec<u8>),
    TooLarge,
}

async fn read_whole(response: reqwest::Response, limit: usize) -> Result<Whole, Error> {
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Ok(Whole::TooLarge);
    }
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(client_error)?;
        if chunk.len() > limit - body.len() {
            return Ok(Whole::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Whole::Complete(body))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[test]
    fn link_local_hosts_are_refused_before_anything_is_sent() {
        for url in [
            "http://169.254.169.254/latest",
            "http://[fe80::1]/mcp",
            "http://[::ffff:169.254.1.1]/",
        ] {
            assert!(HttpClient::new(&Url::parse(url).unwrap()).is_err(), "{url}");
        }
        for url in ["http://127.0.0.1:9/mcp", "https://example.com/mcp", "http://[::1]:1/"] {
            assert!(HttpClient::new(&Url::parse(url).unwrap()).is_ok(), "{url}");
        }
    }

    #[tokio::test]
    async fn no_error_names_the_address_whose_query_may_be_secret() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).await.unwrap();
                let refusal = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(refusal).await.unwrap();
            }
        });
        let url = format!("http://{address}/mcp?key=SENTINEL");
        let client = HttpClient::new(&Url::parse(&url).unwrap()).unwrap();
        let ask = async |uri: &str| {
            let deleted = client
                .delete_session(uri.into(), "s".into(), None, HashMap::new())
                .await;
            let streamed = client.get_stream(uri.into(), None, None, None, HashMap::new()).await;
            [deleted.unwrap_err(), streamed.err().unwrap()]
        };
        let answered = ask(&url).await;
        server.abort();
        let _ = server.await;
        let unreachable = ask(&url).await;
        for error in answered.iter().chain(&unreachable) {
            let told = format!("{error} {error:?}");
            assert!(!told.contains("SENTINEL"), "{told}");
        }
    }
}
