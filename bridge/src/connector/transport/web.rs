//! What both HTTP transports stand on: which addresses are contacted, what a status means, how much of a body is read.
//!
//! Redirects stay on their origin and keep their method; link-local addresses are never contacted; no error names an
//! address, whose query may be secret.

use std::{borrow::Cow, collections::HashMap, io, sync::Arc, time::Duration};

use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use rmcp::{
    model::{ClientJsonRpcMessage, JsonRpcMessage},
    transport::streamable_http_client::{HttpStatusError, StreamableHttpError},
};
use url::Url;

use super::authorization::{Authorization, Purpose};
use crate::reach::{Resolver, follow_same_origin, link_local_host};

/// Until a TCP and TLS connection stands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Shorter than the five seconds after which common servers drop an idle connection, so that a request rarely meets a
/// connection that is being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// Until a server begins to answer a message that runs no tool. Nothing else works that long before its first byte.
pub(super) const HEADERS_TIMEOUT: Duration = Duration::from_secs(60);
/// Until a refusal's own words have arrived; without them the status alone is told.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// A diagnostic is read this far and no further.
const ERROR_BODY_LIMIT: usize = 64 * 1024;
/// Longest `Retry-After` that is looked at.
const RETRY_AFTER_LIMIT: usize = 64;

pub(in crate::connector) type Error = StreamableHttpError<reqwest::Error>;

/// Headers as an entry gives them.
pub type CustomHeaders = HashMap<HeaderName, HeaderValue>;

/// Why a URL is not contacted.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// Its host is a link-local address.
    #[error("{0} is a link-local address, which is never contacted")]
    LinkLocal(String),
    /// The client could not be built (TLS roots unreadable).
    #[error("HTTPS cannot be set up on this computer: {0}")]
    Setup(#[source] reqwest::Error),
}

/// The way to one upstream's address; clones share connections.
#[derive(Clone)]
pub struct Web {
    http: reqwest::Client,
    authorization: Authorization,
}

impl Web {
    /// Prepares to speak to `url`; contacts nobody yet.
    ///
    /// # Errors
    /// [`WebError`].
    pub fn new(url: &Url, authorization: Authorization) -> Result<Self, WebError> {
        if let Some(ip) = link_local_host(url) {
            return Err(WebError::LinkLocal(ip.to_string()));
        }
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .redirect(reqwest::redirect::Policy::custom(follow_same_origin))
            .dns_resolver(Arc::new(Resolver::Given))
            .no_proxy()
            .user_agent(concat!("neuron-connect/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(WebError::Setup)?;
        Ok(Self { http, authorization })
    }

    /// Sends a message; its answer's status and headers. A call's own deadline bounds a call.
    pub(in crate::connector) async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        message: &ClientJsonRpcMessage,
    ) -> Result<reqwest::Response, Error> {
        let request = self
            .http
            .post(url)
            .header(header::ACCEPT, "application/json, text/event-stream")
            .headers(headers)
            .json(message);
        let request = self.authorization.send(request, Purpose::Message);
        if runs_a_tool(message) {
            request.await
        } else {
            tokio::time::timeout(HEADERS_TIMEOUT, request)
                .await
                .map_err(|_elapsed| io::Error::from(io::ErrorKind::TimedOut))?
        }
    }

    /// Asks for a stream of events. Some servers send the headers with the first event only, so the caller knows how
    /// long it waits.
    pub(in crate::connector) async fn get_events(
        &self,
        url: &str,
        headers: HeaderMap,
    ) -> Result<reqwest::Response, Error> {
        let request = self.http.get(url).header(header::ACCEPT, "text/event-stream");
        let request = request.headers(headers);
        let response = self.authorization.send(request, Purpose::Stream).await?;
        let status = response.status();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            return Err(plain_refusal(status, overloaded(status, response.headers())));
        }
        match content_kind(response.headers()) {
            ContentKind::EventStream => Ok(response),
            ContentKind::Json => Err(StreamableHttpError::UnexpectedContentType(Some(
                "application/json".to_owned(),
            ))),
            ContentKind::Other(found) => Err(StreamableHttpError::UnexpectedContentType(found)),
        }
    }

    pub(super) async fn delete(&self, url: &str, headers: HeaderMap) -> Result<StatusCode, Error> {
        let request = self.http.delete(url).headers(headers);
        let response = self.authorization.send(request, Purpose::End).await?;
        Ok(response.status())
    }
}

pub(super) fn runs_a_tool(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(request) if request.request.method() == "tools/call")
}

pub(super) fn overloaded(status: StatusCode, headers: &HeaderMap) -> Option<HttpStatusError> {
    let asks_for_time = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    (asks_for_time || status.is_server_error()).then(|| {
        HttpStatusError::new(
            status.as_u16(),
            header_text(headers, "retry-after").filter(|v| v.len() <= RETRY_AFTER_LIMIT),
        )
    })
}

pub(super) fn plain_refusal(status: StatusCode, retry: Option<HttpStatusError>) -> Error {
    match retry {
        Some(error) => error.into(),
        None => StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {}", status.as_u16()))),
    }
}

pub(super) fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

/// The SDK logs errors, and a URL's query may be secret.
pub(super) fn client_error(error: reqwest::Error) -> Error {
    StreamableHttpError::Client(error.without_url())
}

pub(super) enum ContentKind {
    Json,
    EventStream,
    Other(Option<String>),
}

pub(super) fn content_kind(headers: &HeaderMap) -> ContentKind {
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

pub(super) enum Whole {
    Complete(Vec<u8>),
    TooLarge,
}

/// A body of at most `limit` bytes, counted after decompression.
pub(super) async fn read_whole(response: reqwest::Response, limit: usize) -> Result<Whole, Error> {
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

/// What a refusal says beside its status; empty where that is too long, too slow or cut off.
pub(super) async fn read_refusal(response: reqwest::Response) -> String {
    let body = tokio::time::timeout(ERROR_BODY_TIMEOUT, read_whole(response, ERROR_BODY_LIMIT)).await;
    match body {
        Ok(Ok(Whole::Complete(body))) => String::from_utf8_lossy(&body).into_owned(),
        Ok(Ok(Whole::TooLarge) | Err(_)) | Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_hosts_are_refused_before_anything_is_sent() {
        for url in [
            "http://169.254.169.254/latest",
            "http://[fe80::1]/mcp",
            "http://[::ffff:169.254.1.1]/",
        ] {
            assert!(
                Web::new(&Url::parse(url).unwrap(), Authorization::default()).is_err(),
                "{url}"
            );
        }
        for url in ["http://127.0.0.1:9/mcp", "https://example.com/mcp", "http://[::1]:1/"] {
            assert!(
                Web::new(&Url::parse(url).unwrap(), Authorization::default()).is_ok(),
                "{url}"
            );
        }
    }
}
