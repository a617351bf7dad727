//! Tokens, named secrets and the keychain: the owner's; a program's wish waits for the person. A value goes in and never comes out.

use axum::{extract::State, response::Response};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    api::Api,
    extract::{Asker, Json, Owner, Refused, existing_id},
    manage::{DONE, wish},
    respond,
    routes::Routes,
};
use crate::{error::ApiError, secrets::SecretName, snapshot::KeychainView, wishes::Wish};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretBody {
    id: String,
    /// Absent: the token.
    name: Option<String>,
    /// Any value first, so that no refusal repeats it.
    secret: Value,
}

pub(super) async fn set<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Json(body): Json<SecretBody>,
) -> Result<Response, Refused> {
    let Value::String(secret) = body.secret else {
        return Err(Refused(ApiError::bad_request("The member secret has to be a text.")));
    };
    let secret = SecretString::from(secret);
    let name = body.name.as_deref().map(legal).transpose()?;
    let id = existing_id(&body.id)?;
    if !caller.is_owner() {
        let value = secret;
        return wish(&routes, caller, Wish::SetSecret { id, name, value }).await;
    }
    routes.api.set_secret(id, name, secret).await?;
    Ok(respond::json(&DONE))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ForgetBody {
    id: String,
    /// Absent: the token.
    name: Option<String>,
}

pub(super) async fn forget<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Json(body): Json<ForgetBody>,
) -> Result<Response, Refused> {
    let name = body.name.as_deref().map(legal).transpose()?;
    let id = existing_id(&body.id)?;
    if !caller.is_owner() {
        return wish(&routes, caller, Wish::ForgetSecret(id, name)).await;
    }
    routes.api.forget_secret(id, name).await?;
    Ok(respond::json(&DONE))
}

fn legal(name: &str) -> Result<SecretName, ApiError> {
    SecretName::parse(name).map_err(|error| ApiError::bad_request(format!("The member name cannot be used: {error}.")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeychainBody {
    action: KeychainAction,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeychainAction {
    LookAgain,
    KeepUntilQuit,
}

#[derive(Serialize)]
struct Keychain<'a> {
    ok: bool,
    keychain: &'a KeychainView,
}

pub(super) async fn keychain<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Json(body): Json<KeychainBody>,
) -> Result<Response, Refused> {
    let view = match body.action {
        KeychainAction::LookAgain => routes.api.look_at_keychain().await?,
        KeychainAction::KeepUntilQuit => routes.api.keep_until_quit().await?,
    };
    Ok(respond::json(&Keychain {
        ok: true,
        keychain: &view,
    }))
}

#[cfg(test)]
mod tests;
