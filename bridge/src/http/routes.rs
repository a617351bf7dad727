//! What there is: one table, from which the router is built, and the routes that are about calls.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::State,
    handler::Handler,
    response::Response,
    routing::{MethodFilter, MethodRouter, on},
};
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    activity,
    api::Api,
    approvals, clients,
    credential::PAIR_PATH,
    events,
    extract::{Asker, Json, Name, Params, Refused, Turn},
    gate, manage, offers, respond, rules, secrets, servers, sign_in, tools,
};
use crate::{
    bridge::{BridgeHandle, CallRequest, ResultPiece},
    config::MAX_CALL_MS,
    error::{ApiError, Code},
    traffic::Traffic,
};

/// What every handler can reach.
#[derive(Clone)]
pub(super) struct Routes<A> {
    pub(super) api: A,
    /// Cancelled when the server closes; streams end then.
    pub(super) closing: CancellationToken,
    /// The places for calls.
    pub(super) traffic: Traffic,
}

/// One line of the table.
pub(super) struct Route<A> {
    pub(super) method: MethodFilter,
    pub(super) path: &'static str,
    handler: fn(MethodFilter) -> MethodRouter<Routes<A>>,
}

const GET: MethodFilter = MethodFilter::GET;
const POST: MethodFilter = MethodFilter::POST;
const DELETE: MethodFilter = MethodFilter::DELETE;

impl<A: Api> Routes<A> {
    /// Everything that is served. Bodies are limited by path in `gate`. Where an action stands in the place of a
    /// connector's id, [`action`] keeps the connector of that id readable.
    pub(super) const TABLE: &'static [Route<A>] = &[
        Route::new(GET, "/healthz", |method| on(method, health)),
        Route::new(GET, "/mcp/tools", |method| on(method, tools::list::<A>)),
        Route::new(POST, "/mcp/call", |method| on(method, call::<A>)),
        Route::new(GET, "/mcp/results/{id}", |method| on(method, result::<A>)),
        Route::new(GET, "/mcp/servers", |method| on(method, servers::list::<A>)),
        Route::new(GET, "/mcp/servers/{id}", |method| on(method, servers::one::<A>)),
        Route::new(GET, "/mcp/servers/{id}/log", |method| on(method, servers::log::<A>)),
        Route::new(GET, "/mcp/auto-approved", |method| {
            on(method, rules::auto_approved::<A>)
        }),
        Route::new(POST, "/mcp/servers/add", |method| action(method, manage::add::<A>)),
        Route::new(POST, "/mcp/servers/toggle", |method| {
            action(method, manage::toggle::<A>)
        }),
        Route::new(POST, "/mcp/servers/auto-approve", |method| {
            action(method, manage::auto_approve::<A>)
        }),
        Route::new(POST, "/mcp/servers/remove", |method| {
            action(method, manage::remove::<A>)
        }),
        Route::new(POST, "/mcp/servers/reconnect", |method| {
            action(method, manage::reconnect::<A>)
        }),
        Route::new(POST, "/mcp/servers/stop-trying", |method| {
            action(method, manage::stop_trying::<A>)
        }),
        Route::new(POST, "/mcp/servers/secret", |method| action(method, secrets::set::<A>)),
        Route::new(POST, "/mcp/servers/forget-secret", |method| {
            action(method, secrets::forget::<A>)
        }),
        Route::new(POST, "/mcp/keychain", |method| on(method, secrets::keychain::<A>)),
        Route::new(GET, "/mcp/resources", |method| on(method, offers::resources::<A>)),
        Route::new(POST, "/mcp/resources/read", |method| on(method, offers::read::<A>)),
        Route::new(GET, "/mcp/prompts", |method| on(method, offers::prompts::<A>)),
        Route::new(POST, "/mcp/prompts/get", |method| on(method, offers::prompt::<A>)),
        Route::new(GET, "/mcp/events", |method| on(method, events::stream::<A>)),
        Route::new(GET, "/mcp/activity", |method| on(method, activity::list::<A>)),
        Route::new(GET, "/mcp/approvals", |method| on(method, approvals::list::<A>)),
        Route::new(GET, "/mcp/approvals/{id}", |method| on(method, approvals::one::<A>)),
        Route::new(POST, "/mcp/approvals/{id}", |method| on(method, approvals::answer::<A>)),
        Route::new(GET, "/mcp/clients", |method| on(method, clients::list::<A>)),
        Route::new(POST, "/mcp/clients/{id}", |method| on(method, clients::change::<A>)),
        Route::new(DELETE, "/mcp/clients/{id}", |method| on(method, clients::revoke::<A>)),
        Route::new(POST, PAIR_PATH, |method| on(method, clients::pair::<A>)),
        Route::new(GET, "/mcp/pairing", |method| on(method, clients::pairing::<A>)),
        Route::new(POST, "/mcp/pairing", |method| on(method, clients::set_pairing::<A>)),
        Route::new(GET, "/mcp/trust", |method| on(method, clients::trust::<A>)),
        Route::new(POST, "/mcp/trust", |method| on(method, clients::set_trust::<A>)),
        Route::new(POST, "/mcp/trust/askers", |method| on(method, clients::set_asker::<A>)),
        Route::new(GET, "/mcp/rules", |method| on(method, rules::list::<A>)),
        Route::new(POST, "/mcp/rules", |method| on(method, rules::add::<A>)),
        Route::new(DELETE, "/mcp/rules/{id}", |method| on(method, rules::withdraw::<A>)),
        Route::new(POST, "/mcp/oauth/start", |method| on(method, sign_in::start::<A>)),
        Route::new(POST, "/mcp/oauth/cancel", |method| on(method, sign_in::cancel::<A>)),
        Route::new(POST, "/mcp/oauth/sign-out", |method| on(method, sign_in::sign_out::<A>)),
        // A HEAD would use up the answer that its GET brings.
        Route::new(GET, gate::CALLBACK_PATH, |method| {
            on(method, sign_in::callback::<A>).head(method_not_allowed)
        }),
    ];
}

impl<A> Route<A> {
    const fn new(
        method: MethodFilter,
        path: &'static str,
        handler: fn(MethodFilter) -> MethodRouter<Routes<A>>,
    ) -> Self {
        Self { method, path, handler }
    }
}

fn action<A: Api, H, T>(method: MethodFilter, handler: H) -> MethodRouter<Routes<A>>
where
    H: Handler<T, Routes<A>>,
    T: 'static,
{
    on(method, handler).get(servers::one::<A>)
}

/// The router over this API. Answers every request, unknown ones too, in the API's shape.
pub(super) fn router<A: Api>(api: A, closing: CancellationToken) -> Router {
    Routes::<A>::TABLE
        .iter()
        .fold(Router::new(), |router, route| {
            router.route(route.path, (route.handler)(route.method))
        })
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(Routes {
            api,
            closing,
            traffic: Traffic::default(),
        })
}

/// Method and path of everything that is served, with `{id}` where a name stands. For those who check all of it.
pub fn served() -> Vec<(Method, &'static str)> {
    let table = Routes::<BridgeHandle>::TABLE.iter();
    table
        .map(|route| match route.method {
            POST => (Method::POST, route.path),
            DELETE => (Method::DELETE, route.path),
            _ => (Method::GET, route.path),
        })
        .collect()
}

/// The refusal of a path that is none of the table's.
pub(super) fn nothing_here() -> ApiError {
    ApiError::new(
        Code::NotFound,
        "There is nothing at this path. GET /mcp/tools lists the tools, GET /mcp/servers the connectors.",
    )
}

async fn not_found() -> Refused {
    Refused(nothing_here())
}

/// axum adds `Allow`.
async fn method_not_allowed() -> Refused {
    Refused(ApiError::new(
        Code::MethodNotAllowed,
        "This path does not answer that method; the Allow header names those it does.",
    ))
}

async fn health() -> Response {
    respond::json_bytes(bytes::Bytes::from_static(b"{\"ok\":true}"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallBody {
    name: String,
    #[serde(default)]
    input: Option<Map<String, Value>>,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

async fn call<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Turn(place): Turn,
    Json(body): Json<CallBody>,
) -> Result<Response, Refused> {
    if body.timeout_ms.is_some_and(|ms| !(1..=MAX_CALL_MS).contains(&ms)) {
        return Err(Refused(ApiError::bad_request(format!(
            "timeout_ms has to be between 1 and {MAX_CALL_MS} (one hour)."
        ))));
    }
    let request = CallRequest {
        name: body.name,
        input: body.input.unwrap_or_default(),
        timeout: body.timeout_ms.map(Duration::from_millis),
        turn: Some(Arc::new(place)),
    };
    let answer = routes.api.call(caller, request).await?;
    Ok(respond::json(&answer))
}

/// Characters of a large result in one answer, unless asked otherwise, and at most.
const DEFAULT_PIECE: u64 = 50_000;
const LARGEST_PIECE: u64 = 200_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PieceParams {
    #[serde(default)]
    offset: u64,
    limit: Option<u64>,
}

/// Offsets and lengths are in characters; `next_offset` is missing at the end.
#[derive(Serialize)]
struct Piece {
    text: String,
    offset: u64,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

async fn result<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Name(id): Name,
    Params(params): Params<PieceParams>,
) -> Result<Response, Refused> {
    let limit = params.limit.unwrap_or(DEFAULT_PIECE);
    if !(1..=LARGEST_PIECE).contains(&limit) {
        return Err(Refused(ApiError::bad_request(format!(
            "limit has to be between 1 and {LARGEST_PIECE} characters."
        ))));
    }
    let piece = routes.api.result(caller, id, params.offset, limit).await?;
    Ok(respond::json(&Piece::from(piece)))
}

impl From<ResultPiece> for Piece {
    fn from(piece: ResultPiece) -> Self {
        let length = piece.text.chars().count() as u64;
        let next = piece.offset.saturating_add(length);
        Self {
            next_offset: (length > 0 && next < piece.total).then_some(next),
            text: piece.text,
            offset: piece.offset,
            total: piece.total,
        }
    }
}

#[cfg(test)]
mod tests;
