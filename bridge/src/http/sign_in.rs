//! Signing in and out, and the page on which a browser comes back.
//!
//! The page is one of a few fixed ones: nothing of the request is in it, no script, no style, nothing from elsewhere.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderValue, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};

use super::{
    api::Api,
    extract::{Asker, Json, Owner, Refused, existing_id},
    manage::wish,
    respond,
    routes::Routes,
};
use crate::{
    bridge::SignInAsk,
    error::{ApiError, Code},
    oauth::Callback,
    snapshot::{RedirectKind, SignInOutcome},
    wishes::Wish,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StartBody {
    id: String,
    /// The issuer that the person ticked.
    accept_issuer: Option<String>,
    /// The way back, in place of the automatic choice.
    redirect: Option<RedirectKind>,
}

pub(super) async fn start<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Json(body): Json<StartBody>,
) -> Result<Response, Refused> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Started {
        auth_url: String,
    }
    if !caller.is_owner() {
        if body.accept_issuer.is_some() || body.redirect.is_some() {
            return Err(Refused(ApiError::new(
                Code::ScopeMissing,
                "How a sign-in goes is for the person to say: leave out accept_issuer and redirect.",
            )));
        }
        return wish(&routes, caller, Wish::SignIn(existing_id(&body.id)?)).await;
    }
    let ask = SignInAsk {
        accept_issuer: body.accept_issuer,
        redirect: body.redirect,
    };
    let auth_url = routes.api.sign_in(existing_id(&body.id)?, ask).await?;
    Ok(respond::json(&Started { auth_url }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IdBody {
    id: String,
}

pub(super) async fn cancel<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Json(body): Json<IdBody>,
) -> Result<Response, Refused> {
    #[derive(Serialize)]
    struct Cancelled {
        ok: bool,
    }
    routes.api.cancel_sign_in(existing_id(&body.id)?).await?;
    Ok(respond::json(&Cancelled { ok: true }))
}

pub(super) async fn sign_out<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Json(body): Json<IdBody>,
) -> Result<Response, Refused> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct SignedOut {
        ok: bool,
        signed_out: bool,
    }
    let id = existing_id(&body.id)?;
    if !caller.is_owner() {
        return wish(&routes, caller, Wish::SignOut(id)).await;
    }
    routes.api.sign_out(id).await?;
    Ok(respond::json(&SignedOut {
        ok: true,
        signed_out: true,
    }))
}

/// The browser's way back. Whoever it is, only a sign-in that waits for this answer hears of it.
pub(super) async fn callback<A: Api>(State(routes): State<Routes<A>>, uri: Uri) -> Response {
    let outcome = match Callback::from_query(uri.query().unwrap_or_default()) {
        Ok(callback) => routes.api.finish_sign_in(callback).await.outcome,
        Err(_unreadable) => SignInOutcome::InvalidState,
    };
    page(outcome, routes.api.deep_links())
}

/// What a browser shows at the end.
struct Page {
    status: StatusCode,
    title: &'static str,
    text: &'static str,
}

impl Page {
    fn of(outcome: SignInOutcome) -> Self {
        let (status, title, text) = match outcome {
            SignInOutcome::SignedIn => (
                StatusCode::OK,
                "You are signed in",
                "You can close this page and go back to Neuron Connect.",
            ),
            SignInOutcome::Expired => (
                StatusCode::BAD_REQUEST,
                "This sign-in took too long",
                "Its ten minutes are over. Go back to Neuron Connect and begin the sign-in again.",
            ),
            SignInOutcome::InvalidState | SignInOutcome::Cancelled => (
                StatusCode::BAD_REQUEST,
                "No sign-in waits for this answer",
                "It may be finished already, or was given up. Look in Neuron Connect, and begin the sign-in again if it \
                 is still wanted.",
            ),
            SignInOutcome::Denied => (
                StatusCode::BAD_REQUEST,
                "The access was not allowed",
                "Nothing was changed. If that was not meant, begin the sign-in again in Neuron Connect.",
            ),
            SignInOutcome::Failed => (
                StatusCode::BAD_REQUEST,
                "The sign-in did not work",
                "Neuron Connect shows why, and what to do about it.",
            ),
        };
        Self { status, title, text }
    }
}

fn page(outcome: SignInOutcome, deep_links: bool) -> Response {
    let Page { status, title, text } = Page::of(outcome);
    // A link that nobody answers is worse than none.
    let back = match deep_links {
        true => "<p><a href=\"neuron-connect://open\">Back to Neuron Connect</a></p>\n",
        false => "",
    };
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} - Neuron Connect</title>\n</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n<p>{text}</p>\n{back}</main>\n</body>\n</html>\n"
    );
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests;
