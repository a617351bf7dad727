//! The token that a connector sends.

use std::sync::Arc;

use secrecy::SecretString;

use super::{
    fault::AuthFault,
    need::{Challenge, SignInNeed, WhySignIn},
};

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
#[derive(Debug)]
pub struct Bearer {}

impl Bearer {
    /// The token to send now, renewed ahead of its end. However many ask at once, one request is made.
    ///
    /// # Errors
    /// [`AuthFault`].
    pub async fn token(&self) -> Result<SecretString, AuthFault> {
        Err(AuthFault::SignIn(SignInNeed::first(None)))
    }

    /// Another token in place of one that the server turned away with a 401. A request asks once; what it gets then is
    /// final.
    ///
    /// # Errors
    /// [`AuthFault`]; [`AuthFault::SignIn`] where only the person helps.
    pub async fn refused(&self, used: &SecretString, challenge: Challenge) -> Result<SecretString, AuthFault> {
        let _ = used;
        Err(AuthFault::SignIn(SignInNeed {
            why: WhySignIn::Over,
            challenge: Some(challenge),
        }))
    }

    /// What the person allowed, as far as the server told.
    pub fn scopes(&self) -> Vec<String> {
        Vec::new()
    }
}
