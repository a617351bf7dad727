//! The one HTTP client of this room: short answers, no other origins, checked addresses, a deadline for each step.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::StreamExt as _;
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::Value;
use url::Url;

use super::target::place;
use crate::{
    reach::{Resolver, Zone, is_secure},
    tools::open::has_reserved_name,
};

/// Until an answer has arrived whole.
const STEP_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest answer that is read.
const LONGEST_ANSWER: usize = 1024 * 1024;
/// How often a document may say that it lies elsewhere on its origin.
const MAX_MOVES: usize = 3;

/// An answer, whatever its status.
pub(super) struct Fetched {
    pub(super) status: StatusCode,
    pub(super) content_type: Option<HeaderValue>,
    location: Option<String>,
    pub(super) body: Vec<u8>,
}

impl Fetched {
    /// The body as a JSON object, where it is one.
    pub(super) fn object<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        let text = std::str::from_utf8(&self.body).ok()?;
        (!has_reserved_name(text)).then(|| serde_json::from_str(text).ok())?
    }

    /// Whether the server has a problem of its own, or asks to be left alone for a while.
    pub(super) fn is_busy(&self) -> bool {
        self.status.is_server_error()
            || matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
    }
}

/// Why there is no answer. Texts are the ends of sentences and never hold more of an address than host and port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FetchError {
    /// It may not be contacted.
    #[error("{0} may not be contacted")]
    Forbidden(String),
    /// It did not answer, or not in time, or has a problem of its own.
    #[error("{0}")]
    Unreachable(String),
    /// It answered with more than anybody needs.
    #[error("{0} answered with far too much")]
    TooMuch(String),
}

/// Asks what a server in one zone named.
#[derive(Clone)]
pub(super) struct Fetch {
    http: reqwest::Client,
    zone: Zone,
}

/// One client for each zone, made when it is needed.
#[derive(Default)]
pub(super) struct Fetches {
    by_zone: Mutex<HashMap<Zone, Fetch>>,
}

impl Fetches {
    /// For what the server at `url` names.
    pub(super) async fn named_by(&self, url: &Url) -> Result<Fetch, FetchError> {
        let zone = tokio::time::timeout(STEP_TIMEOUT, Zone::of(url)).await;
        let zone = zone
            .map_err(|_elapsed| FetchError::Unreachable(format!("{} is not found in time", place(url))))?
            .map_err(|error| FetchError::Unreachable(format!("{} is not found: {error}", place(url))))?;
        let mut by_zone = self.by_zone.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fetch) = by_zone.get(&zone) {
            return Ok(fetch.clone());
        }
        let fetch = Fetch::new(zone)?;
        by_zone.insert(zone, fetch.clone());
        Ok(fetch)
    }
}

impl Fetch {
    fn new(zone: Zone) -> Result<Self, FetchError> {
        let http = reqwest::Client::builder()
            .timeout(STEP_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(std::sync::Arc::new(Resolver::NamedBy(zone)))
            .no_proxy()
            .user_agent(concat!("neuron-connect/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| FetchError::Unreachable(format!("HTTPS cannot be set up on this computer: {error}")))?;
        Ok(Self { http, zone })
    }

    pub(super) fn zone(&self) -> Zone {
        self.zone
    }

    /// A public document; it may have moved on its origin.
    pub(super) async fn get(&self, url: &Url) -> Result<Fetched, FetchError> {
        let mut at = url.clone();
        for _ in 0..=MAX_MOVES {
            let fetched = self.send(Method::GET, &at, &[], None).await?;
            let moved = fetched.location.as_deref().filter(|_| fetched.status.is_redirection());
            match moved.and_then(|location| at.join(location).ok()) {
                Some(next) if next.origin() == url.origin() => at = next,
                Some(_) | None => return Ok(fetched),
            }
        }
        Err(FetchError::TooMuch(place(url)))
    }

    pub(super) async fn post_json(&self, url: &Url, body: &Value) -> Result<Fetched, FetchError> {
        let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        self.send(Method::POST, url, &headers, Some(body.to_string().into_bytes()))
            .await
    }

    /// Sends exactly this request; a redirect is its answer.
    pub(super) async fn carry(&self, request: http::Request<Vec<u8>>) -> Result<http::Response<Vec<u8>>, FetchError> {
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string());
        let url = url.map_err(|_not_a_url| FetchError::Forbidden("something that is no address".to_owned()))?;
        let headers: Vec<_> = head
            .headers
            .into_iter()
            .filter_map(|(name, value)| Some((name?, value)))
            .collect();
        let fetched = self.send(head.method, &url, &headers, Some(body)).await?;
        if fetched.is_busy() {
            return Err(busy(&url, fetched.status));
        }
        let mut response = http::Response::new(fetched.body);
        // The caller knows one success only.
        *response.status_mut() = if fetched.status.is_success() {
            StatusCode::OK
        } else {
            fetched.status
        };
        if let Some(kind) = fetched.content_type {
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
        }
        Ok(response)
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &[(header::HeaderName, HeaderValue)],
        body: Option<Vec<u8>>,
    ) -> Result<Fetched, FetchError> {
        self.check(url)?;
        let mut request = self
            .http
            .request(method, url.clone())
            .header(header::ACCEPT, "application/json");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.map_err(|error| unreachable_at(url, &error))?;
        let header = |name| response.headers().get(name).cloned();
        let (status, content_type) = (response.status(), header(header::CONTENT_TYPE));
        let location = header(header::LOCATION).and_then(|value| value.to_str().map(ToOwned::to_owned).ok());
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| unreachable_at(url, &error))?;
            if chunk.len() > LONGEST_ANSWER - body.len() {
                return Err(FetchError::TooMuch(place(url)));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Fetched {
            status,
            content_type,
            location,
            body,
        })
    }

    /// Only https, or http on this computer; no credentials in the address; an address that its namer may name.
    fn check(&self, url: &Url) -> Result<(), FetchError> {
        let is_plain = url.username().is_empty() && url.password().is_none();
        if is_secure(url) && is_plain && self.zone.may_name_url(url) {
            Ok(())
        } else {
            Err(FetchError::Forbidden(place(url)))
        }
    }
}

/// That a server has a problem of its own.
pub(super) fn busy(url: &Url, status: StatusCode) -> FetchError {
    FetchError::Unreachable(format!("{} answered with HTTP status {}", place(url), status.as_u16()))
}

fn unreachable_at(url: &Url, error: &reqwest::Error) -> FetchError {
    let what = if error.is_timeout() {
        "did not answer in time"
    } else if error.is_connect() {
        "could not be reached"
    } else {
        "broke its answer off"
    };
    FetchError::Unreachable(format!("{} {what}", place(url)))
}
