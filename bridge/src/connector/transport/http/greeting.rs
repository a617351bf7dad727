//! The greetings, which the SDK's worker awaits to the end without looking at anything else: each is answered in time.

use std::{future::Future, io, time::Duration};

use futures::{StreamExt, stream};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{StreamableHttpError, StreamableHttpPostResponse},
};
use tokio::time::timeout;

use super::super::{
    carrier::{self, Opened},
    web::{Error, HEADERS_TIMEOUT},
};

/// Until a server has answered the newest greeting. An older one may hold a request that it does not know open for ever.
/// Shorter than the ten seconds after which the SDK gives it up without the worker's knowing.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(8);

/// What begins a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    Discover,
    Initialize,
}

impl Greeting {
    /// `None` for anything else.
    pub(super) fn of(message: &ClientJsonRpcMessage) -> Option<Self> {
        let JsonRpcMessage::Request(request) = message else {
            return None;
        };
        match request.request {
            ClientRequest::DiscoverRequest(_) => Some(Self::Discover),
            ClientRequest::InitializeRequest(_) => Some(Self::Initialize),
            _ => None,
        }
    }
}

/// What `exchange` gives; for a greeting, read to its end and within the time that greeting has.
///
/// # Errors
/// Those of the exchange, and a timeout where initialize is not answered.
pub(super) async fn in_time(
    message: &ClientJsonRpcMessage,
    exchange: impl Future<Output = Result<StreamableHttpPostResponse, Error>> + Send,
) -> Result<StreamableHttpPostResponse, Error> {
    let (JsonRpcMessage::Request(request), Some(greeting)) = (message, Greeting::of(message)) else {
        return exchange.await;
    };
    let time = match greeting {
        Greeting::Discover => DISCOVER_TIMEOUT,
        Greeting::Initialize => HEADERS_TIMEOUT,
    };
    let whole = async { Ok(whole(exchange.await?).await) };
    match (timeout(time, whole).await, greeting) {
        (Ok(answered), _) => answered,
        (Err(_), Greeting::Discover) => {
            let why = format!("no answer within {} s", time.as_secs());
            Ok(refused_probe(request.id.clone(), why))
        }
        (Err(_), Greeting::Initialize) => Err(StreamableHttpError::Io(io::ErrorKind::TimedOut.into())),
    }
}

/// Older servers refuse an unknown first request in many ways; the lifecycle then falls back to initialize.
pub(super) fn refused_probe(id: RequestId, why: String) -> StreamableHttpPostResponse {
    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None);
    StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, Some(id)), None)
}

/// The response with its stream read as far as the SDK will read it: to the answer.
async fn whole(response: StreamableHttpPostResponse) -> StreamableHttpPostResponse {
    let StreamableHttpPostResponse::Sse(mut events, assigned) = response else {
        return response;
    };
    let mut answer = None;
    while let Some(event) = events.next().await {
        let is_answer = match &event {
            Ok(event) => event.data.as_deref().is_some_and(is_answer),
            Err(_) => true,
        };
        if is_answer {
            answer = Some(event);
            break;
        }
    }
    StreamableHttpPostResponse::Sse(stream::iter(answer).boxed(), assigned)
}

fn is_answer(text: &str) -> bool {
    match carrier::open(text) {
        Opened::Response { .. } | Opened::Error { .. } => true,
        Opened::Call(_) | Opened::Ambiguous | Opened::Noise => false,
    }
}
