//! The HTTP+SSE transport of 2024-11-05: one stream of events from the server, and a POST for each message to it.
//!
//! Owns the stream; when it ends, the session is over. Nothing is ever sent twice, and messages go to no other origin
//! than the entry's.

mod endpoint;

use std::{
    fmt,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream::BoxStream};
use http::{HeaderMap, StatusCode};
use rmcp::{
    RoleClient,
    model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    service::TxJsonRpcMessage,
    transport::{Transport, streamable_http_client::StreamableHttpError},
};
use tokio::{
    sync::{Notify, Semaphore},
    time::timeout,
};
use url::Url;

pub use self::endpoint::EndpointError;
use super::{
    MAX_FRAME, SESSION_NOT_FOUND,
    events::{Broken, Part, read_events},
    inbox::Inbox,
    stats::TransportStats,
    watch::{StreamGuard, Watch},
    web::{CustomHeaders, Error, Web, overloaded, plain_refusal, read_refusal, runs_a_tool},
};
use crate::connector::log::Log;

/// Until the server has said where it wants its messages: it does so first of all, before anybody works for it.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(10);
/// Messages on their way at once; more wait.
const MAX_POSTS: usize = 64;
/// How long a message may still be on its way after its request is over, so that a server which never says "accepted"
/// does not use up those places.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a stream was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The server refused, or was not reached.
    #[error(transparent)]
    Http(#[from] Error),
    /// It did not say where to send messages.
    #[error("it opened a stream but did not say within {} s where to send messages", ENDPOINT_TIMEOUT.as_secs())]
    NoEndpoint,
    /// It closed the stream before it said where to send messages.
    #[error("it closed the stream before it said where to send messages")]
    Closed,
    /// What it said is not used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

/// Why a session ended, as half a sentence. The first cause stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEnd {
    /// The server closed the stream.
    Closed,
    /// The connection broke off, or the stream could not be read.
    Broken(String),
    /// The server refused a message because it no longer knows the session.
    Forgotten,
    /// We closed it.
    ByUs,
}

impl fmt::Display for StreamEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the server closed its stream of events"),
            Self::Broken(why) => write!(f, "the server's stream of events broke off: {why}"),
            Self::Forgotten => f.write_str("the server forgot the session"),
            Self::ByUs => f.write_str("the connection was closed"),
        }
    }
}

/// How a session ended, for whoever owns it.
#[derive(Debug, Clone, Default)]
pub struct EndCause(Arc<OnceLock<StreamEnd>>);

impl EndCause {
    /// `None` while it goes on.
    pub fn get(&self) -> Option<StreamEnd> {
        self.0.get().cloned()
    }
}

type Events = BoxStream<'static, Result<Part, Broken>>;

/// The SDK's transport over one stream.
pub struct SseTransport {
    post: Post,
    /// `None` once the session is over.
    stream: Option<(Events, StreamGuard)>,
}

/// What a message needs on its way, shared with those that are.
#[derive(Clone)]
struct Post {
    web: Web,
    url: Arc<str>,
    headers: HeaderMap,
    inbox: Arc<Mutex<Inbox>>,
    slots: Arc<Semaphore>,
    /// Told whenever a request may have come to its end.
    settled: Arc<Notify>,
    end: EndCause,
    ended: Arc<Notify>,
}

impl SseTransport {
    /// Opens the stream at `url` and waits until the server has said where it wants its messages.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(
        web: &Web,
        url: &Url,
        headers: CustomHeaders,
        watch: &Watch,
        log: Log,
    ) -> Result<(Self, EndCause), OpenError> {
        let headers: HeaderMap = headers.into_iter().collect();
        let opening = async {
            let response = web.get_events(url.as_str(), headers.clone()).await?;
            let mut events: Events = read_events(response.bytes_stream(), MAX_FRAME).boxed();
            let endpoint = wait_for_endpoint(&mut events).await?;
            Ok::<_, OpenError>((events, endpoint::resolve(url, &endpoint)?))
        };
        let (events, endpoint) = timeout(ENDPOINT_TIMEOUT, opening)
            .await
            .map_err(|_elapsed| OpenError::NoEndpoint)??;
        let end = EndCause::default();
        let transport = Self {
            post: Post {
                web: web.clone(),
                url: endpoint.as_str().into(),
                headers,
                inbox: Arc::new(Mutex::new(Inbox::new(
                    Arc::<TransportStats>::default(),
                    log,
                    "[stream]",
                ))),
                slots: Arc::new(Semaphore::new(MAX_POSTS)),
                settled: Arc::default(),
                end: end.clone(),
                ended: Arc::default(),
            },
            stream: Some((events, watch.stream())),
        };
        Ok((transport, end))
    }

    fn take(&self, part: Part) {
        let mut inbox = self.post.inbox();
        match part {
            Part::Event(event) => {
                if let Some(data) = event
                    .data
                    .filter(|_| matches!(event.event.as_deref(), None | Some("" | "message")))
                {
                    inbox.take(data.as_bytes());
                }
            }
            Part::TooLarge { head } => inbox.begin_skipping(&head),
            Part::SkippedEnd { tail } => inbox.end_skipping(&tail),
        }
        drop(inbox);
        self.post.settled.notify_waiters();
    }
}

async fn wait_for_endpoint(events: &mut Events) -> Result<String, OpenError> {
    while let Some(Ok(part)) = events.next().await {
        if let Part::Event(event) = part
            && event.event.as_deref() == Some("endpoint")
        {
            return Ok(event.data.unwrap_or_default());
        }
    }
    Err(OpenError::Closed)
}

impl Post {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, why: StreamEnd) {
        // A later cause is a consequence.
        let _ = self.end.0.set(why);
        self.ended.notify_one();
    }

    /// Resolves a while after nobody waits for the request's answer any more.
    async fn long_over(&self, id: &RequestId) {
        loop {
            let mut settled = pin!(self.settled.notified());
            settled.as_mut().enable();
            if !self.inbox().awaits(id) {
                break;
            }
            settled.await;
        }
        tokio::time::sleep(ACCEPT_TIMEOUT).await;
    }

    async fn send(&self, message: &TxJsonRpcMessage<RoleClient>) -> Result<(), Error> {
        let Ok(_slot) = self.slots.acquire().await else {
            return Err(StreamableHttpError::TransportChannelClosed);
        };
        if self.end.get().is_some() {
            return Err(StreamableHttpError::TransportChannelClosed);
        }
        let response = self.web.post(&self.url, self.headers.clone(), message).await?;
        let status = response.status();
        if status.is_success() {
            // The answer comes over the stream.
            return Ok(());
        }
        let retry = overloaded(status, response.headers());
        let memory = memory(status, response).await;
        if memory == Memory::Kept {
            return Err(plain_refusal(status, retry));
        }
        let told = memory == Memory::AddressGone && self.tell_not_run(message);
        self.end(StreamEnd::Forgotten);
        if told {
            Ok(())
        } else {
            Err(StreamableHttpError::SessionExpired)
        }
    }

    /// Answers a call that the server turned away at the door, lest the end of the session leaves open whether it ran.
    /// False for other messages.
    fn tell_not_run(&self, message: &TxJsonRpcMessage<RoleClient>) -> bool {
        match message {
            JsonRpcMessage::Request(request) if runs_a_tool(message) => {
                let why = "the server had forgotten the session, so it did not run; call again";
                let error = ErrorData::new(ErrorCode(SESSION_NOT_FOUND), why, None);
                self.inbox().refused(&request.id, error);
                true
            }
            _ => false,
        }
    }
}

/// What a refusal says of the server's memory of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    Kept,
    /// Nothing is at the session's address any more, so nothing took the message.
    AddressGone,
    /// It says in words that it does not know the session.
    Lost,
}

/// The session is named in the endpoint's address, so an address that is gone is a session that is gone.
async fn memory(status: StatusCode, response: reqwest::Response) -> Memory {
    match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Memory::AddressGone,
        StatusCode::BAD_REQUEST if read_refusal(response).await.to_ascii_lowercase().contains("session") => {
            Memory::Lost
        }
        _ => Memory::Kept,
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let post = self.post.clone();
        post.inbox().note(&item);
        // It may have been a cancellation.
        post.settled.notify_waiters();
        async move {
            let JsonRpcMessage::Request(request) = &item else {
                return post.send(&item).await;
            };
            let sent = tokio::select! {
                biased;
                sent = post.send(&item) => sent,
                () = post.long_over(&request.id) => Ok(()),
            };
            if sent.is_err() {
                post.inbox().unsent(&request.id);
            }
            sent
        }
    }

    /// Safe to drop at any time: what was read stays for the next call.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let ready = self.post.inbox().next();
            if ready.is_some() {
                return ready;
            }
            let (events, _) = self.stream.as_mut()?;
            let part = tokio::select! {
                biased;
                () = self.post.ended.notified() => {
                    self.stream = None;
                    continue;
                }
                part = events.next() => part,
            };
            match part {
                Some(Ok(part)) => self.take(part),
                Some(Err(Broken(why))) => {
                    self.post.end(StreamEnd::Broken(why));
                    self.stream = None;
                }
                None => {
                    self.post.end(StreamEnd::Closed);
                    self.stream = None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.post.end(StreamEnd::ByUs);
        self.stream = None;
        Ok(())
    }
}
