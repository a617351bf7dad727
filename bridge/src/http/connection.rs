//! One client's connection: HTTP/1.1 with deadlines, and everything that is refused before routing.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use axum::{Router, body::Body};
use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{
    credential::Credentials,
    gate::{self, Door},
    limits::Limits,
    peer::Peer,
    respond, scopes,
    wire::{Exchange, LONGEST_HEAD, Wire},
};
use crate::{
    caller::Caller,
    error::{ApiError, Code},
    snapshot::ApiMode,
};

/// The most header lines in one request.
const MOST_HEADERS: usize = 64;

/// How much of the API a connection may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Whole,
    /// All places are taken: only a sign-in may still come back.
    CallbackOnly,
}

/// What is known about a client before it says anything.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    pub(super) door: Door,
    pub(super) peer: Peer,
    pub(super) lane: Lane,
    pub(super) caller: Caller,
    pub(super) credentials: Credentials,
}

/// Serves one client until it leaves, stalls, or `closing` is cancelled and its present answer is out.
///
/// When the client goes away, the handler of its present request is dropped.
pub(super) async fn run<S>(stream: S, visit: Visit, router: Router, limits: Limits, closing: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let exchange = Arc::new(Exchange::default());
    let wire = Wire::new(stream, exchange.clone(), limits.write_stall);
    let client = Arc::new(Client {
        visit,
        router,
        limits,
        exchange,
    });
    let service = service_fn(move |request| Box::pin(answer(client.clone(), request)));
    let mut connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(wire), service);

    let mut closing = std::pin::pin!(closing.cancelled());
    let mut told = false;
    let outcome = poll_fn(|cx| {
        if !told && closing.as_mut().poll(cx).is_ready() {
            told = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        connection.poll_without_shutdown(cx)
    })
    .await;
    if let Err(error) = outcome {
        tracing::debug!("a connection ended early: {error}");
    }
    // Also drops the service, and with it whatever still answered.
    let wire = connection.into_parts().io.into_inner();
    wire.close(limits.last_words).await;
}

struct Client {
    visit: Visit,
    router: Router,
    limits: Limits,
    exchange: Arc<Exchange>,
}

async fn answer(client: Arc<Client>, request: Request<Incoming>) -> Result<Response<Answer>, Infallible> {
    let raw = client.exchange.begin();
    let ongoing = Ongoing(client.exchange.clone());
    let (head, body) = request.into_parts();
    let mut response = match client.admit(&head, &raw, body).await {
        Ok((caller, body)) => client.route(caller, head, body).await,
        Err(refusal) => {
            client.exchange.refuse();
            refusal
        }
    };
    respond::add_common_headers(response.headers_mut());
    Ok(response.map(|body| Answer {
        body,
        _ongoing: ongoing,
    }))
}

impl Client {
    /// Whom the request counts as and its body, or why nothing of it is looked at.
    async fn admit(&self, head: &Parts, raw: &[u8], body: Incoming) -> Result<(Caller, Bytes), Response<Body>> {
        self.is_welcome(head).map_err(|refusal| {
            let mut response = respond::error(&refusal);
            close_after(&mut response);
            response
        })?;
        let origins = self.visit.credentials.origins();
        gate::check(head, raw, self.visit.door, &origins).map_err(|refusal| {
            let mut response = respond::error(&refusal);
            if refusal.code == Code::MethodNotAllowed {
                let allowed = HeaderValue::from_static("GET,HEAD,POST,DELETE");
                response.headers_mut().insert(header::ALLOW, allowed);
            }
            response
        })?;
        let visit = &self.visit;
        let caller = visit
            .credentials
            .check(head, visit.door, &visit.caller, Instant::now())
            .map_err(|refusal| {
                let mut response = respond::error(&refusal);
                if refusal.code == Code::Unauthorized {
                    let scheme = HeaderValue::from_static("Bearer");
                    response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
                }
                response
            })?;
        if let Some(scope) = scopes::needed(&head.method, head.uri.path()) {
            caller.needs(scope).map_err(|refusal| respond::error(&refusal))?;
        }
        if head.method != Method::POST {
            return Ok((caller, Bytes::new()));
        }
        let body = self.read(gate::body_limit(head.uri.path()), body).await?;
        Ok((caller, body))
    }

    fn is_welcome(&self, head: &Parts) -> Result<(), ApiError> {
        let is_callback = head.method == Method::GET && head.uri.path() == gate::CALLBACK_PATH;
        match self.visit.peer {
            Peer::Owner => {}
            Peer::Unknown => match self.visit.credentials.api_mode() {
                ApiMode::Open => {}
                ApiMode::Token => {
                    return Err(ApiError::new(
                        Code::PeerNotOwner,
                        "This computer does not tell which user connects, so programs that need a token are not let in \
                         over this port. Use the local socket.",
                    ));
                }
            },
            Peer::Stranger => {
                return Err(ApiError::new(
                    Code::PeerNotOwner,
                    "This API belongs to another user of this computer. Start Neuron Connect under your own account.",
                ));
            }
            Peer::Connector => {
                return Err(ApiError::new(
                    Code::PeerNotOwner,
                    "A connector's own program may not use this API.",
                ));
            }
            // What comes back there has to know what only the browser was told.
            Peer::Hidden if is_callback => {}
            Peer::Hidden => {
                return Err(ApiError::new(
                    Code::PeerNotOwner,
                    "No program is found at the other end of this connection, and while a connector runs it could be that \
                     connector's. Connect from a program that does not hide its files.",
                ));
            }
        }
        match self.visit.lane {
            Lane::CallbackOnly if !is_callback => Err(ApiError::new(
                Code::Unavailable,
                "Too many programs are connected to Neuron Connect at once. Try again in a moment.",
            )
            .with_retry_after(self.limits.header)),
            Lane::CallbackOnly | Lane::Whole => Ok(()),
        }
    }

    async fn read(&self, limit: usize, body: Incoming) -> Result<Bytes, Response<Body>> {
        let whole = Limited::new(body, limit).collect();
        match tokio::time::timeout(self.limits.body, whole).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(respond::error(&gate::too_large(limit))),
            Ok(Err(_)) => Err(respond::error(&ApiError::bad_request(
                "The request body ended early or its chunks cannot be read.",
            ))),
            Err(_) => {
                let slow = ApiError::bad_request(format!(
                    "The request body did not arrive within {} seconds.",
                    self.limits.body.as_secs_f32()
                ));
                let mut response = respond::error_with_status(StatusCode::REQUEST_TIMEOUT, &slow);
                close_after(&mut response);
                Err(response)
            }
        }
    }

    async fn route(&self, caller: Caller, mut head: Parts, body: Bytes) -> Response<Body> {
        head.extensions.insert(caller);
        let request = Request::from_parts(head, Body::from(body));
        let answered = AssertUnwindSafe(self.router.clone().oneshot(request)).catch_unwind();
        match answered.await {
            Ok(Ok(response)) => response,
            Ok(Err(impossible)) => match impossible {},
            // The panic hook has logged what happened.
            Err(_) => respond::error(&ApiError::internal()),
        }
    }
}

fn close_after(response: &mut Response<Body>) {
    response
        .headers_mut()
        .insert(header::CONNECTION, HeaderValue::from_static("close"));
}

/// Lives as long as a request is being answered.
struct Ongoing(Arc<Exchange>);

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// An answer's body, which ends the request it answers.
struct Answer {
    body: Body,
    _ongoing: Ongoing,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}
