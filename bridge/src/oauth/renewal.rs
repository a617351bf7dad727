//! The renewal of one connector's token, by whoever's turn it is. What comes after a sign-out, or a removal, is given back.

use std::sync::Arc;

use secrecy::SecretString;
use tokio::sync::OwnedMutexGuard;

use super::{
    bearer::{is_own, with_tokens},
    challenge,
    core::Core,
    discovery,
    fault::{AuthFault, SignInError},
    fetch::FetchError,
    need::{Challenge, SignInNeed, WhySignIn},
    record::{Access, ClientOrigin, Endpoints, Grant},
    register, revoke,
    scopes::{self, Wishes},
    slot::{Held, Kept, Life, Reason, Slot, Standing, Turn},
    target::Target,
    token::{TokenEndpoint, TokenError},
};
use crate::secrets::{KeychainFault, Written};

/// Why a token is to be renewed.
#[derive(Clone)]
pub(super) enum Why {
    Due,
    /// The server turned this one away.
    Refused(SecretString, Challenge),
}

pub(super) struct Renewal {
    pub(super) core: Arc<Core>,
    pub(super) slot: Arc<Slot>,
    pub(super) target: Target,
    pub(super) life: Life,
    pub(super) why: Why,
    /// Attempts that had ended before this one queued.
    pub(super) seen: u64,
}

/// What another token is got with.
enum Means {
    Refresh(Box<Grant>, SecretString),
    /// The client's own credentials.
    Own(Option<Box<Grant>>),
}

impl Renewal {
    pub(super) async fn run(self, mut turn: OwnedMutexGuard<Turn>) -> Result<SecretString, AuthFault> {
        if self.slot.life() != self.life {
            return Err(self.ended());
        }
        if let Some(done) = self.done_meanwhile(&turn) {
            return done;
        }
        self.save_what_is_not_yet().await?;
        let access = match self.core.access(&self.target.connector).await {
            Ok(access) => access,
            Err(fault) => return self.still_good().ok_or(AuthFault::Keychain(fault)),
        };
        let grant = match access {
            Some(Access::SignedOut) => {
                self.slot.hold(self.life, None);
                return Err(self.sign_in(WhySignIn::SignedOut));
            }
            Some(Access::SignedIn(grant)) => Some(grant).filter(|grant| grant.is_for(&self.target)),
            None => None,
        };
        let grant = grant.map(|mut grant| {
            grant.client = grant.client.with_secrets_of(&self.target);
            grant
        });
        if let Some(token) = grant.as_deref().and_then(|grant| self.adopt(grant)) {
            return Ok(token);
        }
        if self.is_final() {
            return Err(self.sign_in(WhySignIn::Over));
        }
        let means = match grant {
            Some(grant) if grant.refresh.is_some() => {
                let refresh = grant.refresh.clone().unwrap_or_default();
                Means::Refresh(grant, refresh)
            }
            grant if is_own(&self.target) => Means::Own(grant),
            grant => {
                let why = if grant.is_some() {
                    WhySignIn::Over
                } else {
                    WhySignIn::First
                };
                return self.still_good().ok_or_else(|| self.sign_in(why));
            }
        };
        let result = match means {
            Means::Refresh(grant, refresh) => self.refresh(*grant, &refresh).await,
            Means::Own(grant) => self.own(grant).await,
        };
        turn.fault = result.as_ref().err().cloned();
        // At its end, so that whoever queued while it went on shares what it came to.
        self.slot.count_attempt();
        result
    }

    /// The answer that somebody else got while this one waited for its turn.
    fn done_meanwhile(&self, turn: &Turn) -> Option<Result<SecretString, AuthFault>> {
        let held = self.slot.held(&self.target);
        let now = self.core.now();
        let token = held.and_then(|held| match &self.why {
            Why::Due => held.fresh(now),
            Why::Refused(used, _) => held.good(now).filter(|_| !held.is(used)),
        });
        if let Some(token) = token {
            return Some(Ok(token));
        }
        let fault = turn.fault.clone().filter(|_| self.slot.attempts() > self.seen)?;
        Some(self.still_good().ok_or(fault))
    }

    /// A token that is used up at the server is worth nothing; the one after it is kept first.
    async fn save_what_is_not_yet(&self) -> Result<(), AuthFault> {
        let Some(held) = self.slot.held(&self.target).filter(|held| held.kept == Kept::NotYet) else {
            return Ok(());
        };
        match self.write(&held.grant).await? {
            Written::Yes => {}
            Written::NotWanted => return Err(self.give_back(held.grant.clone())),
        }
        let kept = Held::new(held.grant.clone(), held.reason, Kept::InKeychain);
        self.slot.hold(self.life, Some(kept));
        Ok(())
    }

    /// Takes what the keychain holds where it is another token than the one in memory; gives it where it will do.
    fn adopt(&self, grant: &Grant) -> Option<SecretString> {
        let present = self.slot.held(&self.target);
        let is_known = match (&present, &grant.access) {
            (Some(held), Some(access)) => held.is(access),
            (Some(held), None) => held.grant.access.is_none(),
            (None, _) => false,
        };
        if !is_known {
            let kept = Held::new(grant.clone(), Reason::Plain, Kept::InKeychain);
            self.slot.hold(self.life, Some(kept));
        }
        let held = self.slot.held(&self.target)?;
        match &self.why {
            Why::Due => held.fresh(self.core.now()),
            Why::Refused(used, _) => held.good(self.core.now()).filter(|_| !held.is(used)),
        }
    }

    /// Whether the server turns away even what it gave because it had turned the one before away.
    fn is_final(&self) -> bool {
        let Why::Refused(used, _) = &self.why else { return false };
        let held = self.slot.held(&self.target);
        held.is_some_and(|held| held.reason == Reason::Refused && held.is(used) && held.good(self.core.now()).is_some())
    }

    /// The present token, for as long as it is not over; never one that the server turned away.
    fn still_good(&self) -> Option<SecretString> {
        match self.why {
            Why::Due => self.slot.held(&self.target)?.good(self.core.now()),
            Why::Refused(..) => None,
        }
    }

    fn sign_in(&self, why: WhySignIn) -> AuthFault {
        let challenge = match &self.why {
            Why::Due => None,
            Why::Refused(_, challenge) => Some(challenge.clone()),
        };
        AuthFault::SignIn(SignInNeed { why, challenge })
    }

    async fn refresh(&self, grant: Grant, refresh: &SecretString) -> Result<SecretString, AuthFault> {
        let fetch = self.core.fetches.named_by(&self.target.url).await;
        let fetch = match fetch {
            Ok(fetch) => fetch,
            Err(error) => return self.still_good().ok_or_else(|| unavailable(&error)),
        };
        let now = self.core.now();
        let endpoint = TokenEndpoint {
            fetch: &fetch,
            server: &grant.server,
            client: &grant.client,
            now,
        };
        match endpoint.refresh(refresh, &grant.resource).await {
            Ok(tokens) => self.keep(with_tokens(grant, tokens, now)).await,
            Err(TokenError::Unavailable(what)) => self.still_good().ok_or(AuthFault::Unavailable(what)),
            Err(TokenError::Over) => self.lapse(grant).await,
            Err(TokenError::UnknownClient) => {
                if grant.client.origin == ClientOrigin::Dynamic {
                    let id = &self.target.connector;
                    self.core.forget_client(id, self.life, &grant.client.id).await?;
                }
                self.lapse(grant).await
            }
            Err(TokenError::Refused(what)) => {
                tracing::warn!(connector = %self.target.connector, %what, "its token was not renewed");
                self.still_good().ok_or_else(|| self.sign_in(WhySignIn::Over))
            }
        }
    }

    /// The server takes what is kept no longer, which is remembered, so that it is not asked again.
    async fn lapse(&self, mut grant: Grant) -> Result<SecretString, AuthFault> {
        let still_good = self.still_good();
        grant.refresh = None;
        if still_good.is_none() {
            grant.access = None;
        }
        if !self.slot.takes(self.life, &grant.url) {
            return Err(self.ended());
        }
        let lapsed = Held::new(grant.clone(), Reason::Plain, Kept::InKeychain);
        self.slot.hold(self.life, Some(lapsed));
        self.write(&grant).await?;
        still_good.ok_or_else(|| self.sign_in(WhySignIn::Over))
    }

    /// Keeps a new token before anybody uses it.
    async fn keep(&self, grant: Grant) -> Result<SecretString, AuthFault> {
        let reason = match self.why {
            Why::Due => Reason::Plain,
            Why::Refused(..) => Reason::Refused,
        };
        let token = grant.access.clone();
        let written = self.write(&grant).await;
        let state = match written {
            Ok(Written::Yes) => Kept::InKeychain,
            Ok(Written::NotWanted) => return Err(self.give_back(grant)),
            Err(_) => Kept::NotYet,
        };
        if !self.slot.hold(self.life, Some(Held::new(grant.clone(), reason, state))) {
            return Err(self.give_back(grant));
        }
        written?;
        token.ok_or_else(|| self.sign_in(WhySignIn::Over))
    }

    async fn write(&self, grant: &Grant) -> Result<Written, KeychainFault> {
        let (slot, life, url) = (self.slot.clone(), self.life, grant.url.clone());
        let is_wanted = move || slot.takes(life, &url);
        self.core.keep_grant(&self.target.connector, grant, is_wanted).await
    }

    /// What came is not wanted any longer.
    fn give_back(&self, grant: Grant) -> AuthFault {
        revoke::soon(&self.core, grant);
        self.ended()
    }

    /// The sign-in was ended here while somebody still used it.
    fn ended(&self) -> AuthFault {
        match self.slot.standing() {
            Standing::SignedOut => self.sign_in(WhySignIn::SignedOut),
            Standing::Kept => AuthFault::Unavailable("its sign-in was ended or replaced here".to_owned()),
        }
    }

    /// A token for the client itself (RFC 6749 §4.4); nobody signs in.
    async fn own(&self, known: Option<Box<Grant>>) -> Result<SecretString, AuthFault> {
        let now = self.core.now();
        let fetch = self
            .core
            .fetches
            .named_by(&self.target.url)
            .await
            .map_err(|error| unavailable(&error))?;
        let grant = match known {
            Some(grant) => *grant,
            None => self.own_grant(&fetch).await.map_err(from_sign_in)?,
        };
        let endpoint = TokenEndpoint {
            fetch: &fetch,
            server: &grant.server,
            client: &grant.client,
            now,
        };
        match endpoint.client_credentials(&grant.scopes, &grant.resource).await {
            Ok(tokens) => self.keep(with_tokens(grant, tokens, now)).await,
            Err(TokenError::Unavailable(what) | TokenError::Refused(what)) => Err(AuthFault::Unavailable(what)),
            Err(TokenError::Over | TokenError::UnknownClient) => Err(AuthFault::Entry(format!(
                "{} does not accept the client id or the key of the entry. Correct them there.",
                grant.server.issuer
            ))),
        }
    }

    async fn own_grant(&self, fetch: &super::fetch::Fetch) -> Result<Grant, SignInError> {
        let asked = match &self.why {
            Why::Due => challenge::Asked::default(),
            Why::Refused(_, challenge) => challenge::read(challenge).map_err(SignInError::Unsupported)?,
        };
        let settings = self.target.oauth.as_ref().map(|oauth| &oauth.settings);
        let wanted = settings.and_then(|settings| settings.issuer.as_deref());
        let preferred: Vec<_> = wanted.into_iter().collect();
        let found = discovery::discover(fetch, &self.target, &asked, &preferred).await?;
        let client = register::of_entry(&self.target, &found)?.ok_or(SignInError::NobodySignsIn)?;
        let scopes = scopes::choose(Wishes {
            configured: settings.and_then(|settings| settings.scopes.as_deref()),
            challenged: &asked.scopes,
            of_resource: &found.resource_scopes,
            ..Wishes::default()
        });
        Ok(Grant {
            url: self.target.canonical(),
            resource: found.resource,
            server: Endpoints::from(&found.server),
            client,
            access: None,
            refresh: None,
            issued_at: 0,
            expires_at: None,
            scopes,
        })
    }
}

fn unavailable(error: &FetchError) -> AuthFault {
    AuthFault::Unavailable(error.to_string())
}

fn from_sign_in(error: SignInError) -> AuthFault {
    match error {
        SignInError::Keychain(fault) => AuthFault::Keychain(fault),
        SignInError::Unavailable(what) | SignInError::Refused(what) => AuthFault::Unavailable(what),
        other @ (SignInError::Told(_) | SignInError::Replaced) => AuthFault::Unavailable(half(&other.sentence())),
        other @ (SignInError::Unsupported(_)
        | SignInError::Confirm { .. }
        | SignInError::NeedsClient { .. }
        | SignInError::NeedsIssuer { .. }
        | SignInError::OtherIssuer { .. }
        | SignInError::NoPkce { .. }
        | SignInError::UnsafeUrl
        | SignInError::CallbackUnavailable(_)
        | SignInError::TooMany
        | SignInError::NobodySignsIn) => AuthFault::Entry(other.sentence()),
    }
}

fn half(sentence: &str) -> String {
    sentence.trim_end_matches('.').to_owned()
}
