//! What handlers take from a request, each refused in this API's own shape.

use axum::{
    body::{self, Body},
    extract::{FromRequest, FromRequestParts, Query, Request},
    response::{IntoResponse, Response},
};
use http::request::Parts;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use super::{api::Api, respond, routes::Routes};
use crate::{
    bridge::unknown_server,
    caller::Caller,
    error::{ApiError, Code},
    ids::ConnectorId,
    traffic::{Place, Source},
};

/// An error as an answer.
#[derive(Debug)]
pub(super) struct Refused(pub(super) ApiError);

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        respond::error(&self.0)
    }
}

/// Who asks; the connection knows.
pub(super) struct Asker(pub(super) Caller);

impl<S: Sync> FromRequestParts<S> for Asker {
    type Rejection = Refused;
    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, Refused> {
        // Nothing comes in here without one; without one it would be a stranger's.
        Ok(Self(head.extensions.get().cloned().unwrap_or_else(Caller::walk_in)))
    }
}

/// Lets only the owner through.
pub(super) struct Owner;

impl<S: Sync> FromRequestParts<S> for Owner {
    type Rejection = Refused;
    async fn from_request_parts(head: &mut Parts, state: &S) -> Result<Self, Refused> {
        match Asker::from_request_parts(head, state).await?.0 {
            Caller::Owner => Ok(Self),
            Caller::WalkIn(_) | Caller::Client { .. } => Err(Refused(ApiError::new(
                Code::ScopeMissing,
                "A program may not do this by itself. Do it in the Neuron Connect window; where the bridge runs without \
                 one, the neuron-connectd command line does it through the local socket.",
            ))),
        }
    }
}

/// A place for a call, held until its answer is there.
pub(super) struct Turn(pub(super) Place);

impl<A: Api> FromRequestParts<Routes<A>> for Turn {
    type Rejection = Refused;
    async fn from_request_parts(head: &mut Parts, routes: &Routes<A>) -> Result<Self, Refused> {
        let source = match Asker::from_request_parts(head, routes).await?.0 {
            Caller::Owner => Source::Owner,
            Caller::Client { pass, .. } => Source::Client(pass.id.clone()),
            Caller::WalkIn(program) => routes.traffic.walk_in(&program).await,
        };
        Ok(Self(routes.traffic.enter(source).await?))
    }
}

/// The name in the path, decoded once: what follows `/mcp/servers/` or `/mcp/results/`. An empty one is a missing
/// segment. Read from the path itself, because a connector may be called like an action (`GET /mcp/servers/add`).
pub(super) struct Name(pub(super) String);

impl<S: Sync> FromRequestParts<S> for Name {
    type Rejection = Refused;
    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, Refused> {
        let segment = head.uri.path().split('/').nth(3).unwrap_or_default();
        if segment.is_empty() {
            return Err(Refused(super::routes::nothing_here()));
        }
        match percent_decode_str(segment).decode_utf8() {
            Ok(name) => Ok(Self(name.into_owned())),
            Err(_) => Err(Refused(ApiError::bad_request(
                "The name in the path is not UTF-8 when its percent signs are decoded.",
            ))),
        }
    }
}

/// Query parameters; `T` must refuse unknown ones itself (`deny_unknown_fields`).
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Refused;
    async fn from_request_parts(head: &mut Parts, state: &S) -> Result<Self, Refused> {
        match Query::<T>::from_request_parts(head, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(error) => Err(Refused(ApiError::bad_request(format!(
                "The query parameters cannot be used: {}.",
                error
                    .body_text()
                    .trim_start_matches("Failed to deserialize query string: ")
            )))),
        }
    }
}

/// The JSON body; `T` must refuse unknown members itself (`deny_unknown_fields`).
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Json<T> {
    type Rejection = Refused;
    async fn from_request(request: Request<Body>, _: &S) -> Result<Self, Refused> {
        // The connection has read and bounded it already.
        let bytes = body::to_bytes(request.into_body(), usize::MAX)
            .await
            .map_err(|_| ApiError::bad_request("The request body ended early."))?;
        // An array would be read as the members in their order.
        if !bytes.trim_ascii_start().starts_with(b"{") {
            return Err(Refused(ApiError::bad_request(
                "The request body has to be one JSON object.",
            )));
        }
        Ok(Self(super::body::parse(&bytes)?))
    }
}

/// The connector that is meant. A text that cannot be an id is nobody's.
pub(super) fn existing_id(text: &str) -> Result<ConnectorId, ApiError> {
    ConnectorId::parse(text).map_err(|_| unknown_server(text))
}
