//! Changing which connectors there are: at once for the owner, after the person's yes for everybody else.

use axum::{extract::State, response::Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    api::Api,
    extract::{Asker, Json, Owner, Refused, existing_id},
    respond,
    routes::Routes,
    servers::Server,
};
use crate::{
    caller::Caller,
    config::AutoApprove,
    error::ApiError,
    ids::ConnectorId,
    snapshot::{ConnectorView, Status},
    wishes::Wish,
};

/// `{"ok":true}`
#[derive(Serialize)]
pub(super) struct Done {
    ok: bool,
}

pub(super) const DONE: Done = Done { ok: true };

#[derive(Serialize)]
struct Outcome<'a> {
    ok: bool,
    server: Server<'a>,
    /// Whether an attempt that was waited for completed its discovery; absent where none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<bool>,
    /// Whether attempts were ended, where that was asked for: there may have been none.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<bool>,
}

impl<'a> Outcome<'a> {
    fn of(caller: &Caller, view: &'a ConnectorView, verified: Option<bool>) -> Self {
        Self {
            ok: true,
            server: Server::for_caller(caller, view),
            verified,
            stopped: None,
        }
    }
}

/// Puts a change to the person.
pub(super) async fn wish<A: Api>(routes: &Routes<A>, caller: Caller, wish: Wish) -> Result<Response, Refused> {
    Ok(respond::pending(&routes.api.wish(caller, wish).await?))
}

/// The body is the entry with its id among its members.
pub(super) async fn add<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Json(mut entry): Json<Map<String, Value>>,
) -> Result<Response, Refused> {
    let id = match entry.shift_remove("id") {
        Some(Value::String(id)) => {
            ConnectorId::parse(&id).map_err(|error| ApiError::bad_request(format!("{error}.")))?
        }
        Some(_) => return Err(Refused(ApiError::bad_request("The member id has to be a text."))),
        None => {
            return Err(Refused(ApiError::bad_request(
                "The member id is missing: how the connector is called.",
            )));
        }
    };
    if !caller.is_owner() {
        return wish(&routes, caller, Wish::Add(id, entry)).await;
    }
    let view = routes.api.add(id, entry).await?;
    Ok(respond::json(&Outcome::of(&caller, &view, Some(false))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToggleBody {
    id: String,
    enabled: bool,
}

pub(super) async fn toggle<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Json(body): Json<ToggleBody>,
) -> Result<Response, Refused> {
    let id = existing_id(&body.id)?;
    match (caller, body.enabled) {
        (Caller::Owner, enabled) => routes.api.set_enabled(id, enabled).await?,
        (caller @ (Caller::WalkIn(_) | Caller::Client { .. }), true) => {
            return wish(&routes, caller, Wish::Enable(id)).await;
        }
        (caller @ (Caller::WalkIn(_) | Caller::Client { .. }), false) => routes.api.turn_off_for(caller, id).await?,
    }
    Ok(respond::json(&DONE))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AutoApproveBody {
    id: String,
    auto_approve: Value,
}

pub(super) async fn auto_approve<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Json(body): Json<AutoApproveBody>,
) -> Result<Response, Refused> {
    let id = existing_id(&body.id)?;
    let value = read_auto_approve(body.auto_approve).ok_or_else(|| {
        ApiError::bad_request("The member auto_approve has to be true, false or a list of tool patterns.")
    })?;
    if !caller.is_owner() {
        return wish(&routes, caller, Wish::AutoApprove(id, value)).await;
    }
    routes.api.set_auto_approve(id, value).await?;
    Ok(respond::json(&DONE))
}

fn read_auto_approve(value: Value) -> Option<AutoApprove> {
    match value {
        Value::Bool(true) => Some(AutoApprove::All),
        Value::Bool(false) => Some(AutoApprove::None),
        Value::Array(items) => {
            let texts = items.into_iter().map(|item| match item {
                Value::String(pattern) => Some(pattern),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
            });
            texts.collect::<Option<_>>().map(AutoApprove::Patterns)
        }
        Value::Null | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IdBody {
    id: String,
}

pub(super) async fn remove<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Json(body): Json<IdBody>,
) -> Result<Response, Refused> {
    let id = existing_id(&body.id)?;
    if !caller.is_owner() {
        return wish(&routes, caller, Wish::Remove(id)).await;
    }
    routes.api.remove(id).await?;
    Ok(respond::json(&DONE))
}

pub(super) async fn reconnect<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Json(body): Json<IdBody>,
) -> Result<Response, Refused> {
    let id = existing_id(&body.id)?;
    let (view, verified) = match &caller {
        Caller::Owner => routes.api.reconnect(id).await?,
        Caller::WalkIn(_) | Caller::Client { .. } => routes.api.reconnect_for(caller.clone(), id).await?,
    };
    Ok(respond::json(&Outcome::of(&caller, &view, Some(verified))))
}

pub(super) async fn stop_trying<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Json(body): Json<IdBody>,
) -> Result<Response, Refused> {
    let snapshot = routes.api.snapshot();
    let before = snapshot.connectors.iter().find(|view| view.id == body.id);
    let view = routes.api.stop_trying(existing_id(&body.id)?).await?;
    // Where nothing was under way, the connector enters no new state.
    let is_new = before.is_none_or(|before| before.connection.sequence != view.connection.sequence);
    Ok(respond::json(&Outcome {
        stopped: Some(is_new && view.status == Status::Error),
        ..Outcome::of(&Caller::Owner, &view, None)
    }))
}
