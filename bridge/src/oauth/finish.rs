//! The way from a browser's answer to a token that is kept.

use std::sync::Arc;

use secrecy::SecretString;
use url::Url;

use super::{
    bearer::with_tokens,
    board::TOO_LATE,
    callback::{Answer, Callback},
    record::{ClientOrigin, Flow, Grant},
    revoke,
    sign_ins::{Finished, Inner},
    slot::{Entry, Held, Kept, Reason, TURN_WAIT},
    target::place,
    token::{TokenEndpoint, TokenError, error_code},
};
use crate::{
    ids::ConnectorId,
    secrets::Written,
    snapshot::{SignInOutcome, SignInStage, SignInView},
};

/// Most characters of a server's own words.
const LONGEST_WORDS: usize = 200;

pub(super) async fn finish(inner: Arc<Inner>, id: ConnectorId, callback: Callback) -> Finished {
    // Before it is claimed: what gives it up from now on is not overlooked.
    let entry = inner.core.slot(&id).entry();
    let claimed = match inner.flows.claim(&id, &callback.state).await {
        Ok(claimed) => claimed,
        Err(fault) => return nobody(SignInOutcome::Failed, fault.sentence()),
    };
    let Some(flow) = claimed else {
        return nobody_waits();
    };
    if flow.expires_at <= inner.core.now() && inner.board.is_over(&id) {
        // Its end was told already.
        return nobody(SignInOutcome::Expired, TOO_LATE.to_owned());
    }
    let at = |text: &str| Url::parse(text).map_or_else(|_| String::new(), |url| place(&url));
    let ticket = inner.board.open(SignInView {
        server: id.clone(),
        sign_in_at: Some(flow.server.page.clone().unwrap_or_else(|| at(&flow.server.issuer))),
        access_goes_to: at(&flow.url),
        since: inner.core.now(),
        stage: SignInStage::Finishing,
    });
    let (outcome, message) = match end(&inner, &id, &flow, entry, callback).await {
        Ok(Written::NotWanted) => {
            inner.board.close(&id, ticket);
            let words = "This sign-in was given up meanwhile, and nothing of it is kept.";
            return nobody(SignInOutcome::Cancelled, words.to_owned());
        }
        Ok(Written::Yes) => {
            inner.add_to_row(&id);
            inner.board.close(&id, ticket);
            (SignInOutcome::SignedIn, format!("You are signed in for {}.", flow.name))
        }
        Err((outcome, message)) => {
            let now = inner.core.now();
            inner.board.change(&id, ticket, |view| {
                view.since = now;
                view.stage = SignInStage::Failed {
                    outcome,
                    message: message.clone(),
                };
            });
            (outcome, message)
        }
    };
    Finished {
        server: Some(id),
        outcome,
        message,
    }
}

/// What a stranger's answer comes to, and one that was used.
pub(super) fn nobody_waits() -> Finished {
    let words = "This address belongs to another sign-in or was used already. Copy it again, or sign in again.";
    nobody(SignInOutcome::InvalidState, words.to_owned())
}

fn nobody(outcome: SignInOutcome, message: String) -> Finished {
    Finished {
        server: None,
        outcome,
        message,
    }
}

type Ended = Result<Written, (SignInOutcome, String)>;

fn failed(message: impl Into<String>) -> (SignInOutcome, String) {
    (SignInOutcome::Failed, message.into())
}

async fn end(inner: &Inner, id: &ConnectorId, flow: &Flow, entry: Entry, callback: Callback) -> Ended {
    if flow.expires_at <= inner.core.now() {
        return Err((SignInOutcome::Expired, TOO_LATE.to_owned()));
    }
    // RFC 9207 §2.4, before anything else of the answer is looked at: it may be another server's.
    let is_from_there = match &callback.iss {
        Some(iss) => *iss == flow.server.issuer,
        None => !flow.promises_iss,
    };
    if !is_from_there {
        return Err(failed(
            "The answer does not come from where you were sent to sign in. Nothing of it was used. Try again; if it \
             happens again, tell the makers of the server.",
        ));
    }
    match callback.answer {
        Answer::Code(code) => exchange(inner, id, flow, entry, &code).await,
        Answer::Refusal { error, description } => Err(refusal(&error, description.as_deref())),
    }
}

fn refusal(error: &str, description: Option<&str>) -> (SignInOutcome, String) {
    let words = description.map(|words| words.chars().take(LONGEST_WORDS).collect::<String>());
    let words = words
        .map(|words| format!(" It says: {}", words.trim()))
        .unwrap_or_default();
    if error == "access_denied" {
        (SignInOutcome::Denied, format!("The sign-in was not allowed.{words}"))
    } else {
        failed(format!(
            "The server did not sign you in ({}).{words}",
            error_code(error)
        ))
    }
}

async fn exchange(inner: &Inner, id: &ConnectorId, flow: &Flow, entry: Entry, code: &SecretString) -> Ended {
    let slot = inner.core.slot(id);
    let Some(life) = slot.wants(entry) else {
        return Ok(Written::NotWanted);
    };
    let url = Url::parse(&flow.url).map_err(|_not_a_url| failed("The connector has no address."))?;
    let fetch = inner.core.fetches.named_by(&url).await;
    let fetch = fetch.map_err(|error| failed(format!("Signing in did not work: {error}.")))?;
    let now = inner.core.now();
    let endpoint = TokenEndpoint {
        fetch: &fetch,
        server: &flow.server,
        client: &flow.client,
        now,
    };
    let tokens = endpoint
        .exchange(code, &flow.verifier, &flow.redirect_uri, &flow.resource)
        .await;
    let tokens = match tokens {
        Ok(tokens) => tokens,
        Err(TokenError::UnknownClient) => {
            if flow.client.origin == ClientOrigin::Dynamic {
                let forgotten = inner.core.forget_client(id, life, &flow.client.id).await;
                forgotten.map_err(|fault| failed(fault.sentence()))?;
            }
            return Err(failed(match flow.client.origin {
                ClientOrigin::Entry => format!(
                    "{} did not accept the client id or secret of the entry. Check both.",
                    place(&flow.server.token)
                ),
                ClientOrigin::Dynamic | ClientOrigin::Document => {
                    "The server does not know this app any longer. Sign in again.".to_owned()
                }
            }));
        }
        Err(TokenError::Over) => return Err(failed("This sign-in was already used or is too old. Try again.")),
        Err(TokenError::Unavailable(what) | TokenError::Refused(what)) => {
            return Err(failed(format!("Signing in did not work: {what}. Try again later.")));
        }
    };
    let empty = Grant {
        url: flow.url.clone(),
        resource: flow.resource.clone(),
        server: flow.server.clone(),
        client: flow.client.clone(),
        access: None,
        refresh: None,
        issued_at: now,
        expires_at: None,
        scopes: flow.scopes.clone(),
    };
    let grant = with_tokens(empty, tokens, now);
    // A renewal of the old token must not be written over the new one.
    let turn = tokio::time::timeout(TURN_WAIT, slot.turn().lock_owned()).await;
    let _turn = turn.map_err(|_elapsed| failed("An older sign-in is still being renewed. Sign in again."))?;
    let is_wanted = {
        let slot = slot.clone();
        move || slot.wants(entry).is_some()
    };
    let kept = inner.core.keep_grant(id, &grant, is_wanted).await;
    match kept.map_err(|fault| failed(fault.sentence()))? {
        Written::Yes if slot.hold(life, Some(Held::new(grant.clone(), Reason::Plain, Kept::InKeychain))) => {
            Ok(Written::Yes)
        }
        Written::Yes | Written::NotWanted => {
            revoke::soon(&inner.core, grant);
            Ok(Written::NotWanted)
        }
    }
}
