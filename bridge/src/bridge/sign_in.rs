//! Signing in and out, as the owner asks for it.
//!
//! Finds the connector, and connects it once it is signed in; `oauth` does the rest. What was begun goes on when whoever
//! asked for it leaves: a code that came back is good once.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use url::Url;

use super::{BridgeHandle, Inner, activity, person_file::Edit};
use crate::{
    activity::{Entry, Outcome, WhoRecord},
    config::{Config, Connector, EntryKind, Grant, Launch, host_of},
    connector::{self, Access, Cause, Door, World, unavailable},
    error::ApiError,
    event::Event,
    ids::ConnectorId,
    oauth::{Ask, Callback, Finished, SignInError, SignInNeed, WhySignIn, canonical},
    snapshot::{ActivityCaller, ActivityWhat, RedirectKind, SignInOutcome},
};

/// A clock that stood still while the computer slept is looked at this often.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(30);

/// How a sign-in is to go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignInAsk {
    /// The issuer that the person ticked, exactly as the refusal named it.
    pub accept_issuer: Option<String>,
    /// The way back from the browser, in place of the automatic choice.
    pub redirect: Option<RedirectKind>,
}

impl BridgeHandle {
    /// Begins a sign-in; the address of the page where the person signs in, checked and fit to be opened.
    ///
    /// # Errors
    /// `unknown_server`; `disabled`; `bad_request` where nobody signs in; `needs_review` for a launch that waits for a look,
    /// or naming an issuer that needs the person's tick; `needs_secret` where the server registers no programs by itself, with what to register there;
    /// `unsafe_authorization_url`, `pkce_not_supported`, `callback_unavailable`, `keychain_unavailable`,
    /// `upstream_error`, `unavailable`.
    pub async fn sign_in(&self, id: ConnectorId, ask: SignInAsk) -> Result<String, ApiError> {
        let door = self.door(&id)?;
        let world = self.inner.world.clone();
        to_its_end(async move { begin(&world, &door, ask).await }).await?
    }

    /// Gives up the sign-in that is under way or failed.
    ///
    /// # Errors
    /// `unknown_server`.
    pub async fn cancel_sign_in(&self, id: ConnectorId) -> Result<(), ApiError> {
        self.view_of(&id)?;
        to_its_end(give_up(self.inner.clone(), id)).await
    }

    /// Takes what a browser brought back. After signing in, the connector connects.
    pub async fn finish_sign_in(&self, callback: Callback) -> Finished {
        let handle = self.clone();
        let finished = to_its_end(async move { finish(&handle, callback).await }).await;
        finished.unwrap_or_else(|error| Finished {
            server: None,
            outcome: SignInOutcome::Failed,
            message: error.message,
        })
    }

    /// Closes the session and forgets tokens, registration and flows; the server is asked to forget them too. The
    /// connector then waits for a sign-in, also after a restart.
    ///
    /// # Errors
    /// `unknown_server`; `bad_request` where nobody signs in; `keychain_unavailable`; the session is closed all the same.
    pub async fn sign_out(&self, id: ConnectorId) -> Result<(), ApiError> {
        let door = self.door(&id)?;
        let world = self.inner.world.clone();
        to_its_end(async move {
            let signed_out = sign_out(&world, &door).await;
            let who = WhoRecord::plain(ActivityCaller::Owner);
            let server = door.shared.id.clone();
            let entry = Entry::new(who, ActivityWhat::SignOut { server });
            world.activity.record(entry.ended(Outcome::of_result(&signed_out)));
            signed_out
        })
        .await?
    }

    /// Says whether `neuron-connect://` links reach this program; until then they do not.
    pub fn set_deep_links(&self, reach_us: bool) {
        self.inner.deep_links.store(reach_us, Ordering::Relaxed);
        self.inner.world.sign_ins.set_deep_links(reach_us);
    }

    /// Whether `neuron-connect://` links reach this program.
    pub fn deep_links(&self) -> bool {
        self.inner.deep_links.load(Ordering::Relaxed)
    }
}

/// The connector whose sign-in a change made here ends: it is removed, added anew, or moved to another address. A change
/// that the file brings only withholds it.
pub(super) fn ends_with(edit: &Edit, before: &Config, after: &Config) -> Option<ConnectorId> {
    let id = match edit {
        Edit::Add(id, ..) if address(after, id).is_some() => id,
        Edit::Remove(id) if address(before, id).is_some() => id,
        Edit::Replace(id, _) if address(before, id).is_some_and(|was| address(after, id) != Some(was)) => id,
        Edit::Add(..)
        | Edit::Remove(_)
        | Edit::Replace(..)
        | Edit::Enabled(..)
        | Edit::ToolEnabled(..)
        | Edit::DisabledTools(..)
        | Edit::Args(..)
        | Edit::AutoApprove(..) => return None,
    };
    Some(id.clone())
}

/// Where a connector that may be signed in to is.
fn address(config: &Config, id: &ConnectorId) -> Option<String> {
    let entry = config.entries.iter().find(|entry| entry.key == id.as_str())?;
    let EntryKind::Valid(connector) = &entry.kind else {
        return None;
    };
    match (&connector.launch, Access::of(connector)) {
        (Launch::Http(http), Access::SignIn) => {
            Some(Url::parse(&http.url).map_or_else(|_unfilled| http.url.clone(), |url| canonical(&url)))
        }
        (Launch::Http(_) | Launch::Stdio(_), _) => None,
    }
}

/// Forgets everything of a connector's sign-in, at once; the future waits until it is gone from the keychain too.
pub(super) fn forget(world: &World, id: ConnectorId) -> impl Future<Output = ()> + Send + use<> {
    let gone = world.sign_ins.forget(&id);
    async move {
        if let Err(fault) = gone.await {
            tracing::warn!(connector = %id, "its sign-in is not yet removed: {}", fault.sentence());
        }
    }
}

/// Gives up a connector's sign-in that waits or failed, and tells of it.
pub(super) async fn give_up(inner: Arc<Inner>, id: ConnectorId) {
    if inner.world.sign_ins.cancel(&id).await {
        let finished = Finished {
            server: Some(id),
            outcome: SignInOutcome::Cancelled,
            message: "The sign-in was given up here.".to_owned(),
        };
        tell(&inner, finished);
    }
}

/// Goes on also when nobody waits any more.
async fn to_its_end<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, ApiError> {
    tokio::spawn(work).await.map_err(|error| {
        tracing::error!(%error, "a sign-in ended abnormally");
        ApiError::internal()
    })
}

async fn begin(world: &Arc<World>, door: &Door, ask: SignInAsk) -> Result<String, ApiError> {
    let (entry, name) = (door.shared.entry(), door.shared.name());
    if !entry.enabled {
        return Err(ApiError::turned_off(&name));
    }
    let server = where_people_sign_in(&entry, &name)?;
    let admitted = world.admit(&entry).await;
    admitted.map_err(|cause| unavailable(&name, &cause))?;
    if signs_in_by_itself(&entry) {
        // That is what signing in means there.
        world.sign_ins.let_in_again(&door.shared.id).await?;
        door.reconnect_soon().await;
        return Err(SignInError::NobodySignsIn.into());
    }
    let (id, known) = (door.shared.id.clone(), door.shared.challenge());
    let beginnings = {
        let world = world.clone();
        async move {
            let told = |cause| SignInError::Told(Box::new(unavailable(&name, &cause)));
            let beginnings = connector::beginnings(&world, &entry, known).await.map_err(told)?;
            let ask = Ask {
                challenge: beginnings.challenge,
                accept_issuer: ask.accept_issuer,
                redirect: ask.redirect,
            };
            Ok((beginnings.target, ask))
        }
    };
    let begun = world.sign_ins.begin_after(id, &server, beginnings).await?;
    Ok(begun.auth_url.into())
}

fn signs_in_by_itself(entry: &Connector) -> bool {
    match &entry.launch {
        Launch::Http(http) => matches!(&http.oauth, Some(oauth) if oauth.grant == Grant::ClientCredentials),
        Launch::Stdio(_) => false,
    }
}

/// The host of a connector that is signed in to and out of.
///
/// # Errors
/// `bad_request` where nobody does, and why.
fn where_people_sign_in(entry: &Connector, name: &str) -> Result<Url, ApiError> {
    let why = match (&entry.launch, Access::of(entry)) {
        (Launch::Http(http), Access::SignIn) => match host_of(http) {
            Some(host) => return Ok(host),
            None => "has no address",
        },
        (Launch::Stdio(_), _) | (_, Access::Program) => "runs on this computer; nobody signs in there",
        (Launch::Http(_), Access::Open) => "is to be used without a sign-in, its entry says (\"auth\": \"none\")",
        (Launch::Http(_), Access::OwnKey) => "sends a key of its own; take that out of its entry to sign in instead",
    };
    Err(ApiError::bad_request(format!("{name} {why}.")))
}

/// Resolves once the ten minutes of sign-ins are over that nobody came back to; what they came to.
pub(super) async fn over(world: &World) -> Vec<Finished> {
    while let Some(left) = world.sign_ins.first_ends_in() {
        tokio::time::sleep(left.min(LOOK_AT_CLOCK)).await;
        let over = world.sign_ins.expire();
        if !over.is_empty() {
            return over;
        }
    }
    // Whoever waits here begins anew when a sign-in changes.
    std::future::pending().await
}

/// Tells how a connector's sign-in ended.
pub(super) fn tell(inner: &Inner, finished: Finished) {
    if let Some(entry) = activity::signed_in(&finished) {
        inner.world.activity.record(entry);
    }
    inner.events.publish(Event::SignInFinished {
        server: finished.server,
        outcome: finished.outcome,
        message: finished.message,
    });
}

async fn finish(handle: &BridgeHandle, callback: Callback) -> Finished {
    let inner: &Inner = &handle.inner;
    let is_connector = |id: &ConnectorId| handle.door(id).is_ok();
    let finished = inner.world.sign_ins.finish(callback, is_connector).await;
    // A stranger's answer is nobody's business.
    let Some(id) = finished.server.clone() else {
        return finished;
    };
    tell(inner, finished.clone());
    if finished.outcome == SignInOutcome::SignedIn
        && let Ok(door) = handle.door(&id)
    {
        door.reconnect_soon().await;
    }
    finished
}

async fn sign_out(world: &World, door: &Door) -> Result<(), ApiError> {
    where_people_sign_in(&door.shared.entry(), &door.shared.name())?;
    // First, so that no call connects with what is about to be forgotten.
    door.rest(Cause::SignIn(SignInNeed {
        why: WhySignIn::SignedOut,
        challenge: None,
    }))
    .await?;
    if let Err(fault) = world.sign_ins.sign_out(&door.shared.id).await {
        let cause = Cause::Keychain(fault);
        let refusal = unavailable(&door.shared.name(), &cause);
        door.rest(cause).await?;
        return Err(refusal);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> ConnectorId {
        ConnectorId::parse("a").unwrap()
    }

    fn config(entry: Option<&str>) -> Config {
        let entry = entry.map(|entry| format!("\"a\": {entry}")).unwrap_or_default();
        crate::config::parse(format!("{{\"servers\": {{{entry}}}}}").as_bytes()).unwrap()
    }

    const HERE: &str = r#"{"url": "https://a.example/mcp"}"#;

    #[test]
    fn a_sign_in_ends_with_the_address_that_it_is_for_and_with_nothing_less() {
        let entry = serde_json::Map::new;
        let replace = || Edit::Replace(id(), entry());
        for (edit, before, after, ends) in [
            (replace(), Some(HERE), Some(r#"{"url": "https://b.example/mcp"}"#), true),
            (
                replace(),
                Some(HERE),
                Some(r#"{"url": "https://a.example/mcp?x=1"}"#),
                true,
            ),
            (replace(), Some(HERE), Some(r#"{"command": "x"}"#), true),
            (
                replace(),
                Some(HERE),
                Some(r#"{"url": "https://a.example/mcp", "auth": "token"}"#),
                true,
            ),
            (
                replace(),
                Some(HERE),
                Some(r#"{"url": "HTTPS://A.example:443/mcp", "name": "A"}"#),
                false,
            ),
            (
                replace(),
                Some(HERE),
                Some(r#"{"url": "https://a.example/mcp", "headers": {"X-Team": "b"}}"#),
                false,
            ),
            (replace(), Some(r#"{"command": "x"}"#), Some(HERE), false),
            (Edit::Remove(id()), Some(HERE), None, true),
            (Edit::Remove(id()), Some(r#"{"command": "x"}"#), None, false),
            (Edit::Add(id(), entry(), None), None, Some(HERE), true),
            (Edit::Add(id(), entry(), None), None, Some(r#"{"command": "x"}"#), false),
            (
                Edit::Enabled(id(), false),
                Some(HERE),
                Some(r#"{"url": "https://a.example/mcp", "enabled": false}"#),
                false,
            ),
        ] {
            let ended = ends_with(&edit, &config(before), &config(after));
            assert_eq!(ended, ends.then(id), "{before:?} → {after:?}");
        }
    }
}
