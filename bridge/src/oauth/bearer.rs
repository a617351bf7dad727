//! The token that a connector sends.

use std::{fmt, sync::Arc};

use super::{
    core::Core,
    fault::AuthFault,
    need::Challenge,
    record::{Grant, Proof},
    renewal::{Renewal, Why},
    slot::{Life, Slot, TURN_WAIT},
    target::Target,
    token::Tokens,
};
use crate::config;
use secrecy::SecretString;

/// Whether a connector is signed in.
#[derive(Debug, Clone)]
pub enum Signed {
    /// Nothing is known: it connects without a token, and its server says whether it wants one.
    Nothing,
    /// The person signed out: nobody is contacted until they sign in again.
    SignedOut,
    /// It is.
    In(Arc<Bearer>),
}

/// A connector's sign-in; it outlives its tokens.
pub struct Bearer {
    core: Arc<Core>,
    slot: Arc<Slot>,
    target: Target,
    /// A sign-out or a removal ends it.
    life: Life,
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bearer")
            .field("connector", &self.target.connector)
            .finish_non_exhaustive()
    }
}

impl Bearer {
    pub(super) fn new(core: Arc<Core>, target: Target, life: Life) -> Self {
        let slot = core.slot(&target.connector);
        Self {
            core,
            slot,
            target,
            life,
        }
    }

    /// The token to send now, renewed ahead of its end. However many ask at once, one request is made.
    ///
    /// # Errors
    /// [`AuthFault`]; [`AuthFault::SignIn`] where only the person helps.
    pub async fn token(&self) -> Result<SecretString, AuthFault> {
        let held = self.slot.held(&self.target);
        match held.and_then(|held| held.fresh(self.core.now())) {
            Some(token) => Ok(token),
            None => self.renew(Why::Due).await,
        }
    }

    /// Another token in place of one that the server turned away with a 401. A request asks once; what it gets then is
    /// final.
    ///
    /// # Errors
    /// [`AuthFault`]; [`AuthFault::SignIn`] where only the person helps.
    pub async fn refused(&self, used: &SecretString, challenge: Challenge) -> Result<SecretString, AuthFault> {
        self.renew(Why::Refused(used.clone(), challenge)).await
    }

    /// The server accepted what [`Self::refused`] gave. Some end their tokens earlier than they say, each time.
    pub fn accepted(&self, used: &SecretString) {
        self.slot.accepted(used);
    }

    /// What it uses now: its tokens, and what the client proves itself with.
    pub fn secrets(&self) -> Vec<SecretString> {
        let Some(held) = self.slot.held(&self.target) else {
            return Vec::new();
        };
        let grant = &held.grant;
        let proof = match &grant.client.proof {
            Proof::None => None,
            Proof::ClientSecretBasic { secret } | Proof::ClientSecretPost { secret } => Some(secret),
            Proof::PrivateKeyJwt { key, .. } => Some(key),
        };
        [grant.access.as_ref(), grant.refresh.as_ref(), proof]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// What the person allowed, as far as the server told.
    pub fn scopes(&self) -> Vec<String> {
        let held = self.slot.held(&self.target);
        held.map(|held| held.grant.scopes.clone()).unwrap_or_default()
    }

    /// Waits for its turn. A renewal that was begun is carried through whatever becomes of the caller, because the
    /// server may have used the old token up.
    async fn renew(&self, why: Why) -> Result<SecretString, AuthFault> {
        let seen = self.slot.attempts();
        let turn = tokio::time::timeout(TURN_WAIT, self.slot.turn().lock_owned()).await;
        let turn = turn.map_err(|_elapsed| AuthFault::Unavailable("renewing its sign-in takes too long".to_owned()))?;
        let renewal = Renewal {
            core: self.core.clone(),
            slot: self.slot.clone(),
            target: self.target.clone(),
            life: self.life,
            why,
            seen,
        };
        match tokio::spawn(renewal.run(turn)).await {
            Ok(result) => result,
            Err(error) => {
                tracing::error!(connector = %self.target.connector, %error, "renewing a token ended abnormally");
                Err(AuthFault::Unavailable("renewing its sign-in failed".to_owned()))
            }
        }
    }
}

/// Whether the connector signs in by itself.
pub(super) fn is_own(target: &Target) -> bool {
    let settings = target.oauth.as_ref().map(|oauth| &oauth.settings);
    settings.is_some_and(|settings| settings.grant == config::Grant::ClientCredentials)
}

/// A grant with what the server gave last; what it leaves out stays as it was (RFC 6749 §6).
pub(super) fn with_tokens(mut grant: Grant, tokens: Tokens, now: u64) -> Grant {
    let life = tokens
        .lifetime
        .map(|life| u64::try_from(life.as_millis()).unwrap_or(u64::MAX));
    grant.access = Some(tokens.access);
    grant.refresh = tokens.refresh.or(grant.refresh);
    grant.issued_at = now;
    grant.expires_at = life.map(|life| now.saturating_add(life));
    if let Some(scopes) = tokens.scopes.filter(|scopes| !scopes.is_empty()) {
        grant.scopes = scopes;
    }
    grant
}
