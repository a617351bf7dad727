//! Resources and prompts: what there is, reading, getting. Decided like calls.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    api::Api,
    extract::{Asker, Json, Params, Refused, Turn, existing_id},
    respond,
    routes::Routes,
};
use crate::{bridge::unknown_server, caller::Caller, error::ApiError, ids::ConnectorId};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListParams {
    /// Only this connector's.
    server: Option<String>,
}

pub(super) async fn resources<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Params(params): Params<ListParams>,
) -> Result<Response, Refused> {
    let server = seen(&caller, params)?;
    let mut list = routes.api.resources(server.as_ref())?;
    list.resources.retain(|one| caller.sees(one.server.as_str()));
    list.templates.retain(|one| caller.sees(one.server.as_str()));
    list.rejected.retain(|one| caller.sees(one.server.as_str()));
    Ok(respond::json(&list))
}

pub(super) async fn prompts<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Params(params): Params<ListParams>,
) -> Result<Response, Refused> {
    let server = seen(&caller, params)?;
    let mut list = routes.api.prompts(server.as_ref())?;
    list.prompts.retain(|one| caller.sees(one.server.as_str()));
    list.rejected.retain(|one| caller.sees(one.server.as_str()));
    Ok(respond::json(&list))
}

/// The one connector that is asked about, where this caller may know of it.
fn seen(caller: &Caller, params: ListParams) -> Result<Option<ConnectorId>, ApiError> {
    let server = params.server.as_deref().map(existing_id).transpose()?;
    match server {
        Some(server) if !caller.sees(server.as_str()) => Err(unknown_server(server.as_str())),
        server => Ok(server),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadBody {
    server: String,
    uri: String,
    /// Into a file instead of the answer.
    #[serde(default)]
    save: bool,
}

pub(super) async fn read<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Turn(place): Turn,
    Json(body): Json<ReadBody>,
) -> Result<Response, Refused> {
    let server = existing_id(&body.server)?;
    if body.uri.is_empty() {
        return Err(Refused(ApiError::bad_request("The member uri is empty.")));
    }
    let turn = Some(Arc::new(place));
    if body.save {
        let saved = routes.api.save_resource(caller, server, body.uri, turn).await?;
        return Ok(respond::json(&saved));
    }
    let answer = routes.api.read_resource(caller, server, body.uri, turn).await?;
    Ok(respond::json(&answer))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptBody {
    server: String,
    name: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

pub(super) async fn prompt<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Turn(place): Turn,
    Json(body): Json<PromptBody>,
) -> Result<Response, Refused> {
    let server = existing_id(&body.server)?;
    let arguments = body.arguments.unwrap_or_default();
    if let Some((name, _)) = arguments.iter().find(|(_, value)| !value.is_string()) {
        return Err(Refused(ApiError::bad_request(format!(
            "The argument {name:?} has to be a text, as all arguments of prompts are."
        ))));
    }
    let answer = routes
        .api
        .get_prompt(caller, server, body.name, arguments, Some(Arc::new(place)))
        .await?;
    Ok(respond::json(&answer))
}

#[cfg(test)]
mod tests;
