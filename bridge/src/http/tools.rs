//! The lists of tools: all, filtered, and what needs no asking.

use axum::{extract::State, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;

use super::{
    api::Api,
    extract::{Asker, Params, Refused, existing_id},
    respond,
    routes::Routes,
};
use crate::{
    bridge::unknown_server,
    caller::Caller,
    tools::{Format, ListQuery, Rendered},
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListParams {
    #[serde(default)]
    format: Format,
    /// Only this connector's.
    server: Option<String>,
    /// At most so many, from the start of the list.
    limit: Option<usize>,
}

pub(super) async fn list<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Params(params): Params<ListParams>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let server = params.server.as_deref().map(existing_id).transpose()?;
    if let Some(server) = &server {
        let snapshot = routes.api.snapshot();
        let is_there = snapshot.connectors.iter().any(|one| one.id == server.as_str());
        if !is_there || !caller.sees(server.as_str()) {
            return Err(Refused(unknown_server(server.as_str())));
        }
    }
    let query = ListQuery {
        format: params.format,
        server: params.server,
        servers: match caller {
            Caller::Owner | Caller::WalkIn(_) => None,
            Caller::Client { pass, .. } => pass.servers.clone(),
        },
        limit: params.limit,
    };
    let Rendered { body, etag } = routes.api.tools().render(&query);
    Ok(tagged(body, &etag, &headers))
}

fn tagged(body: Bytes, etag: &str, headers: &HeaderMap) -> Response {
    let mut response = if is_known(headers, etag) {
        let mut unchanged = Response::default();
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        unchanged
    } else {
        respond::json_bytes(body)
    };
    if let Ok(etag) = HeaderValue::from_str(etag) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    response
}

/// `If-None-Match`, compared weakly (RFC 9110 §13.1.2).
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}
