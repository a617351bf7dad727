//! Paired clients and how one is paired, and what holds for all callers.

use axum::{extract::State, response::Response};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};

use super::{
    api::Api,
    extract::{Asker, Json, Name, Owner, Refused},
    manage::DONE,
    respond,
    routes::Routes,
};
use crate::{
    bridge::{ClientChange, Terms, TrustChange},
    clients::pairing::Polled,
    error::{ApiError, Code},
    snapshot::{ApiMode, AskerView, ClientView, PairingView, WalkInPolicy},
};

pub(super) async fn list<A: Api>(State(routes): State<Routes<A>>, _: Owner) -> Response {
    #[derive(Serialize)]
    struct List {
        clients: Vec<ClientView>,
    }
    respond::json(&List {
        clients: routes.api.clients(),
    })
}

pub(super) async fn change<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Name(id): Name,
    Json(change): Json<ClientChange>,
) -> Result<Response, Refused> {
    #[derive(Serialize)]
    struct Changed {
        ok: bool,
        client: ClientView,
    }
    let client = routes.api.change_client(id, change).await?;
    Ok(respond::json(&Changed { ok: true, client }))
}

pub(super) async fn revoke<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Name(id): Name,
) -> Result<Response, Refused> {
    routes.api.revoke_client(id).await?;
    Ok(respond::json(&DONE))
}

/// Either a name, to begin, or the id of what was begun.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PairBody {
    name: Option<String>,
    pairing_id: Option<String>,
}

pub(super) async fn pair<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Json(body): Json<PairBody>,
) -> Result<Response, Refused> {
    #[derive(Serialize)]
    struct Begun<'a> {
        ok: bool,
        pairing_id: &'a str,
        /// To be shown to the person, who types it.
        code: &'a str,
        /// Seconds until it is too late.
        expires_in: u64,
    }
    match (body.name, body.pairing_id) {
        (Some(name), None) => {
            let begun = routes.api.ask_pairing(caller, name).await?;
            Ok(respond::json(&Begun {
                ok: true,
                pairing_id: &begun.id,
                code: begun.code.expose_secret(),
                expires_in: begun.within.as_secs(),
            }))
        }
        (None, Some(id)) => polled(routes.api.poll_pairing(id).await),
        (Some(_), Some(_)) | (None, None) => Err(Refused(ApiError::bad_request(
            "Send either a name, to be paired, or the pairing_id that was answered to it.",
        ))),
    }
}

fn polled(polled: Polled) -> Result<Response, Refused> {
    #[derive(Serialize)]
    struct State<'a> {
        ok: bool,
        state: &'static str,
        /// Given once.
        #[serde(skip_serializing_if = "Option::is_none")]
        token: Option<&'a str>,
    }
    let state = |state| {
        Ok(respond::json(&State {
            ok: true,
            state,
            token: None,
        }))
    };
    match polled {
        Polled::Waiting => state("waiting"),
        Polled::Paired(token) => Ok(respond::json(&State {
            ok: true,
            state: "paired",
            token: Some(token.expose_secret()),
        })),
        Polled::Taken => state("taken"),
        Polled::Denied => state("denied"),
        Polled::Expired => state("expired"),
        Polled::Unknown => Err(Refused(ApiError::new(
            Code::NotFound,
            "No pairing of this id is under way; it may be too long ago.",
        ))),
    }
}

/// The person opens pairing, closes it, types the code, or turns whoever asked away.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PairingBody {
    /// Opens it, or closes it.
    open: Option<bool>,
    answer: Option<AnswerBody>,
    /// The id of a request.
    turn_away: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    pairing_id: String,
    code: String,
    terms: Terms,
}

#[derive(Serialize)]
struct PairingState {
    ok: bool,
    pairing: Option<PairingView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<ClientView>,
}

pub(super) async fn pairing<A: Api>(State(routes): State<Routes<A>>, _: Owner) -> Response {
    respond::json(&PairingState {
        ok: true,
        pairing: routes.api.snapshot().trust.pairing.clone(),
        client: None,
    })
}

pub(super) async fn set_pairing<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Json(body): Json<PairingBody>,
) -> Result<Response, Refused> {
    let client = match (body.open, body.answer, body.turn_away) {
        (Some(true), None, None) => {
            routes.api.open_pairing().await;
            None
        }
        (Some(false), None, None) => {
            routes.api.close_pairing().await;
            None
        }
        (None, None, Some(id)) => {
            routes.api.turn_away(id).await?;
            None
        }
        (None, Some(answer), None) => {
            let AnswerBody {
                pairing_id,
                code,
                terms,
            } = answer;
            Some(routes.api.answer_pairing(pairing_id, code, terms).await?)
        }
        _ => {
            return Err(Refused(ApiError::bad_request(
                "Send one of open, answer and turn_away.",
            )));
        }
    };
    Ok(respond::json(&PairingState {
        ok: true,
        pairing: routes.api.snapshot().trust.pairing.clone(),
        client,
    }))
}

#[derive(Serialize)]
struct Trust {
    ok: bool,
    api_mode: ApiMode,
    /// It was not chosen: what was chosen is lost, or cannot be read at present.
    api_mode_assumed: bool,
    walk_in: WalkInPolicy,
    review: bool,
    paused: bool,
    allowed_origins: Vec<String>,
    askers: Vec<AskerView>,
}

pub(super) async fn trust<A: Api>(State(routes): State<Routes<A>>, _: Owner) -> Response {
    told(&routes)
}

pub(super) async fn set_trust<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Json(change): Json<TrustChange>,
) -> Result<Response, Refused> {
    routes.api.set_trust(change).await?;
    Ok(told(&routes))
}

fn told<A: Api>(routes: &Routes<A>) -> Response {
    let snapshot = routes.api.snapshot();
    respond::json(&Trust {
        ok: true,
        api_mode: snapshot.trust.api_mode,
        api_mode_assumed: snapshot.trust.api_mode_assumed,
        walk_in: snapshot.trust.walk_in,
        review: snapshot.trust.review,
        paused: snapshot.trust.paused,
        allowed_origins: routes.api.allowed_origins(),
        askers: routes.api.askers(),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskerBody {
    path: String,
    script: Option<String>,
    on: bool,
}

pub(super) async fn set_asker<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Json(body): Json<AskerBody>,
) -> Result<Response, Refused> {
    routes.api.set_asker(body.path, body.script, body.on).await?;
    Ok(told(&routes))
}

#[cfg(test)]
mod tests;
