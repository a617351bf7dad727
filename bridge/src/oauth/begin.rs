//! The way from "sign in" to a page that may be opened.

use std::sync::Arc;

use url::Url;

use super::{
    authorize,
    board::Ticket,
    challenge::{self, Asked},
    discovery::{self, Found},
    fault::SignInError,
    fetch::Fetch,
    pair::{self, Places},
    record::{Access, Client, Endpoints, Flow, Grant, Registration},
    register::{self, Registered},
    safe_url::safe,
    scopes::{self, Wishes},
    sign_ins::Inner,
    slot::{Life, Standing},
    target::{Ask, Begun, Target, place},
    ways::{Choice, Registers},
};
use crate::{
    config::Redirect,
    ids::ConnectorId,
    reach::Zone,
    secrets::{Account, Written},
    snapshot::{RedirectKind, SignInOutcome, SignInStage, SignInView},
};

/// How long an answer of the browser is waited for, in milliseconds.
const FLOW_LIFE: u64 = 10 * 60 * 1000;

/// A client and the way back that it has.
struct Chosen {
    client: Client,
    kind: RedirectKind,
    redirect_uri: String,
}

/// What was kept of earlier sign-ins of a connector at its present address.
struct Before {
    grant: Option<Grant>,
    registration: Option<Registration>,
}

impl Before {
    /// Where one signed in so far.
    fn issuer(&self) -> Option<&str> {
        let grant = self.grant.as_ref().map(|grant| grant.server.issuer.as_str());
        grant.or_else(|| {
            self.registration
                .as_ref()
                .map(|registration| registration.issuer.as_str())
        })
    }

    /// Where the last sign-in led.
    fn places(&self) -> Option<Places> {
        let server = &self.grant.as_ref()?.server;
        Some(Places {
            issuer: server.issuer.clone(),
            page: server.page.clone()?,
            tokens: place(&server.token),
        })
    }
}

/// What a sign-in needs before a browser is waited for.
struct Prepared {
    found: Found,
    chosen: Chosen,
    scopes: Vec<String>,
    endpoint: Url,
    zone: Zone,
}

pub(super) async fn begin(
    inner: Arc<Inner>,
    id: ConnectorId,
    access_goes_to: String,
    beginnings: impl Future<Output = Result<(Target, Ask), SignInError>>,
) -> Result<Begun, SignInError> {
    let slot = inner.core.slot(&id);
    slot.next_entry();
    let life = slot.life();
    let ticket = inner.board.open(SignInView {
        server: id.clone(),
        sign_in_at: None,
        access_goes_to,
        since: inner.core.now(),
        stage: SignInStage::Preparing,
    });
    let preparing = async {
        let (target, ask) = beginnings.await?;
        let prepared = prepare(&inner, &target, &ask, ticket, life).await?;
        Ok((target, prepared))
    };
    let prepared = tokio::select! {
        biased;
        () = inner.board.gone(&id, ticket) => Err(SignInError::Replaced),
        prepared = preparing => prepared,
    };
    let result = match prepared {
        // Carried through, so that what waits is the same in memory and in the keychain.
        Ok((target, prepared)) => wait(&inner, &target, prepared, ticket).await,
        Err(error) => Err(error),
    };
    if let Some(stage) = result.as_ref().err().and_then(stage_of) {
        let now = inner.core.now();
        inner.board.change(&id, ticket, |view| {
            view.since = now;
            view.stage = stage;
        });
    }
    result
}

/// A connector that signs in by itself does so again, where the person had signed out.
pub(super) async fn let_in_again(inner: &Inner, id: &ConnectorId) -> Result<(), SignInError> {
    if let Some(Access::SignedOut) = inner.core.access(id).await? {
        inner.core.keychain.delete(&Account::OAuth(id.clone())).await?;
    }
    inner.core.slot(id).stand(Standing::Kept);
    Ok(())
}

/// What the person is shown where it does not go on.
fn stage_of(error: &SignInError) -> Option<SignInStage> {
    Some(match error {
        SignInError::Replaced => return None,
        SignInError::Confirm {
            issuer,
            page: _,
            code_goes_to,
            changed,
        } => SignInStage::Confirm {
            issuer: issuer.clone(),
            changed: *changed,
            code_goes_to: code_goes_to.clone(),
        },
        SignInError::NeedsClient { issuer, redirect_uri } => SignInStage::NeedsClient {
            issuer: issuer.clone(),
            redirect_uri: redirect_uri.clone(),
        },
        SignInError::NoPkce { issuer } => SignInStage::NoPkce { issuer: issuer.clone() },
        SignInError::Keychain(_)
        | SignInError::Unsupported(_)
        | SignInError::NeedsIssuer { .. }
        | SignInError::OtherIssuer { .. }
        | SignInError::UnsafeUrl
        | SignInError::CallbackUnavailable(_)
        | SignInError::TooMany
        | SignInError::NobodySignsIn
        | SignInError::Told(_)
        | SignInError::Unavailable(_)
        | SignInError::Refused(_) => SignInStage::Failed {
            outcome: SignInOutcome::Failed,
            message: error.sentence(),
        },
    })
}

async fn prepare(
    inner: &Inner,
    target: &Target,
    ask: &Ask,
    ticket: Ticket,
    life: Life,
) -> Result<Prepared, SignInError> {
    let id = &target.connector;
    let asked = ask
        .challenge
        .as_ref()
        .map_or_else(|| Ok(Asked::default()), challenge::read);
    let asked = asked.map_err(SignInError::Unsupported)?;
    let wants_more = asked.error.as_deref() == Some("insufficient_scope");
    if asked.error.is_some() && inner.row_is_full(id) {
        return Err(SignInError::TooMany);
    }
    let entry = target.oauth.as_ref().map(|oauth| &oauth.settings);
    let redirect = entry.map_or(Redirect::Auto, |entry| entry.redirect);
    // Before anybody is contacted: without any way back there is nothing to begin.
    inner
        .ways()
        .to_try(Choice::of(ask.redirect, redirect, None), Registers::ThisApp)?;
    let before = before(inner, target).await?;

    let fetch = inner.core.fetches.named_by(&target.url).await?;
    let of_entry = entry.and_then(|entry| entry.issuer.as_deref());
    let preferred: Vec<_> = of_entry.into_iter().chain(before.issuer()).collect();
    let found = discovery::discover(&fetch, target, &asked, &preferred).await?;
    inner
        .board
        .change(id, ticket, |view| view.sign_in_at = Some(place(&found.issuer)));

    let endpoint = found.server.authorization_endpoint.as_deref();
    let endpoint =
        endpoint.ok_or_else(|| SignInError::Refused(format!("{} has no page to sign in at", place(&found.issuer))))?;
    let endpoint = safe(endpoint, fetch.zone()).ok_or(SignInError::UnsafeUrl)?;
    inner
        .board
        .change(id, ticket, |view| view.sign_in_at = Some(place(&endpoint)));
    if !found.server.has_s256() && !entry.is_some_and(|entry| entry.allow_missing_pkce) {
        return Err(SignInError::NoPkce {
            issuer: found.server.issuer.clone(),
        });
    }
    let client = register::of_entry(target, &found)?;
    confirm(inner, target, &found, &endpoint, &before, ask)?;

    let scopes = scopes::choose(Wishes {
        configured: entry.and_then(|entry| entry.scopes.as_deref()),
        challenged: &asked.scopes,
        of_resource: &found.resource_scopes,
        of_authority: found.server.scopes(),
        allowed: wants_more.then(|| before.grant.as_ref().map(|grant| &grant.scopes[..]).unwrap_or_default()),
    });
    let chosen = match client {
        Some(client) => {
            let earlier = inner.chosen(&found.server.issuer);
            let ways = inner
                .ways()
                .to_try(Choice::of(ask.redirect, redirect, earlier), Registers::Others)?;
            let (kind, redirect_uri) = first(ways)?;
            Chosen {
                client,
                kind,
                redirect_uri,
            }
        }
        None => registered(inner, &fetch, target, &found, &before, ask.redirect, &scopes, life).await?,
    };
    if let Some(kind) = ask.redirect {
        inner.remember(&found.server.issuer, kind);
    }
    Ok(Prepared {
        found,
        chosen,
        scopes,
        endpoint,
        zone: fetch.zone(),
    })
}

async fn before(inner: &Inner, target: &Target) -> Result<Before, SignInError> {
    let url = target.canonical();
    let grant = match inner.core.access(&target.connector).await? {
        Some(Access::SignedIn(grant)) => Some(*grant).filter(|grant| grant.url == url),
        Some(Access::SignedOut) | None => None,
    };
    let registration = inner.core.registration(&target.connector).await?;
    Ok(Before {
        grant,
        registration: registration.filter(|registration| registration.url == url),
    })
}

/// A new pair of "where you sign in" and "where the access goes" that does not explain itself needs the person's tick,
/// and so does an issuer that sends the person, or their code, to another domain than its own: whoever signs in there would
/// give it what they meant for somebody else. A tick covers the places that were shown.
fn confirm(
    inner: &Inner,
    target: &Target,
    found: &Found,
    page: &Url,
    before: &Before,
    ask: &Ask,
) -> Result<(), SignInError> {
    let issuer = &found.server.issuer;
    let tokens = &found.server.token_endpoint;
    let places = Places {
        issuer: issuer.clone(),
        page: place(page),
        tokens: place(tokens),
    };
    let changed = before.issuer().is_some_and(|before| before != issuer);
    let is_known = before.issuer().is_some() && !changed;
    let (mut strange_page, mut strange_tokens) = (None, None);
    if before.places().as_ref() != Some(&places) {
        let of_entry = target.oauth.as_ref().and_then(|oauth| oauth.settings.issuer.as_ref());
        let is_strange = |at: &Url| !pair::belong_together(at, &found.issuer);
        strange_page = is_strange(page).then(|| places.page.clone());
        // Who names an issuer in the entry knows it, and large ones have several domains.
        strange_tokens = (of_entry.is_none() && is_strange(tokens)).then(|| places.tokens.clone());
    }
    let leads_away = strange_page.is_some() || strange_tokens.is_some();
    let is_new = changed || (!is_known && !pair::belong_together(&found.issuer, &target.url));
    let is_ticked = ask.accept_issuer.as_ref() == Some(issuer)
        && (!leads_away || inner.board.was_shown(&target.connector, &places));
    if is_ticked || !(is_new || leads_away) {
        return Ok(());
    }
    inner.board.show(&target.connector, places);
    Err(SignInError::Confirm {
        issuer: issuer.clone(),
        page: strange_page,
        code_goes_to: strange_tokens,
        changed,
    })
}

/// The client that is registered, or one that is registered now.
#[expect(
    clippy::too_many_arguments,
    reason = "what is registered is made of all that was found"
)]
async fn registered(
    inner: &Inner,
    fetch: &Fetch,
    target: &Target,
    found: &Found,
    before: &Before,
    ask: Option<RedirectKind>,
    scopes: &[String],
    life: Life,
) -> Result<Chosen, SignInError> {
    let issuer = &found.server.issuer;
    let kept = before.registration.as_ref().filter(|kept| kept.issuer == *issuer);
    let entry = target
        .oauth
        .as_ref()
        .map_or(Redirect::Auto, |oauth| oauth.settings.redirect);
    let chosen = inner.chosen(issuer).or_else(|| kept.and_then(|kept| kept.chosen));
    let ways = inner
        .ways()
        .to_try(Choice::of(ask, entry, chosen), Registers::ThisApp)?;
    let now = inner.core.now();
    if let Some(kept) = kept {
        let way = ways.iter().find(|(_, uri)| *uri == kept.redirect_uri);
        let covers = kept.scopes.is_empty() || scopes.iter().all(|scope| kept.scopes.contains(scope));
        if let (Some((kind, uri)), true, true) = (way, covers, kept.expires_at.is_none_or(|end| now < end)) {
            return Ok(Chosen {
                client: kept.client.clone(),
                kind: *kind,
                redirect_uri: uri.clone(),
            });
        }
    }
    for (kind, redirect_uri) in ways {
        let Registered::Client {
            client,
            secret_expires_at,
        } = register::register(fetch, found, &redirect_uri, scopes).await?
        else {
            continue;
        };
        let registration = Registration {
            url: target.canonical(),
            issuer: issuer.clone(),
            client: client.clone(),
            redirect_uri: redirect_uri.clone(),
            scopes: scopes.to_vec(),
            expires_at: (secret_expires_at != 0).then(|| secret_expires_at.saturating_mul(1000)),
            chosen: ask.or(chosen),
        };
        let slot = inner.core.slot(&target.connector);
        let is_wanted = move || slot.life() == life;
        let kept = inner
            .core
            .keep_registration(&target.connector, &registration, is_wanted)
            .await?;
        if kept == Written::NotWanted {
            return Err(SignInError::Replaced);
        }
        return Ok(Chosen {
            client,
            kind,
            redirect_uri,
        });
    }
    let (_, redirect_uri) = first(inner.ways().to_try(Choice::of(ask, entry, chosen), Registers::Others)?)?;
    Err(SignInError::NeedsClient {
        issuer: issuer.clone(),
        redirect_uri,
    })
}

fn first(ways: Vec<(RedirectKind, String)>) -> Result<(RedirectKind, String), SignInError> {
    let nothing = || SignInError::CallbackUnavailable("there is no way back".to_owned());
    ways.into_iter().next().ok_or_else(nothing)
}

async fn wait(inner: &Arc<Inner>, target: &Target, prepared: Prepared, ticket: Ticket) -> Result<Begun, SignInError> {
    let Prepared {
        found,
        chosen,
        scopes,
        endpoint,
        zone,
    } = prepared;
    let id = &target.connector;
    let page = authorize::page(
        &endpoint,
        &chosen.client.id,
        &chosen.redirect_uri,
        &scopes,
        &found.resource,
        id,
    );
    let page = page.ok_or_else(|| SignInError::Refused("the way back is no address".to_owned()))?;
    let auth_url = safe(page.url.as_str(), zone).ok_or(SignInError::UnsafeUrl)?;
    let now = inner.core.now();
    let expires_at = now + FLOW_LIFE;
    let flow = Flow {
        name: target.name.clone(),
        url: target.canonical(),
        resource: found.resource.clone(),
        server: Endpoints::from(&found.server),
        promises_iss: found.server.promises_iss(),
        client: chosen.client,
        redirect_uri: chosen.redirect_uri,
        verifier: page.verifier,
        scopes: scopes.clone(),
        expires_at,
    };
    let is_wanted = {
        let (inner, id) = (inner.clone(), id.clone());
        move || inner.board.stands(&id, ticket)
    };
    match inner.flows.put(id, page.state, flow, is_wanted).await? {
        Written::Yes => {}
        Written::NotWanted => return Err(SignInError::Replaced),
    }
    let stage = SignInStage::Waiting {
        url: auth_url.as_str().to_owned(),
        redirect: chosen.kind,
        other_way: inner.ways().other(chosen.kind),
        scopes,
        expires_at,
    };
    let shown = inner.board.change(id, ticket, |view| {
        view.since = now;
        view.stage = stage;
    });
    if shown {
        Ok(Begun { auth_url })
    } else {
        Err(SignInError::Replaced)
    }
}
