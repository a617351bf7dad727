//! What lets requests in at a server, and what a server says that lets one not in.
//!
//! A request that was turned away with a token may go once more with another one: it was refused, so nothing ran. What is
//! sent goes to the entry's own origin alone (see `web`), and in the clear only to this computer. Never decides what a
//! refusal means for the connector.

use std::{fmt, io, sync::Arc};

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::watch;

use super::web::{Error, client_error};
use crate::{
    oauth::{Challenge, SignInNeed, Wanted, WhySignIn},
    secrets::KeychainFault,
};

/// Where the tokens of a sign-in come from.
pub trait Tokens: Send + Sync {
    /// The token for a request that goes out now.
    ///
    /// # Errors
    /// [`Denied`], when there is none to be had.
    fn token(&self) -> BoxFuture<'_, Result<SecretString, Denied>>;

    /// The server did not accept `used`: another token for the same request.
    ///
    /// # Errors
    /// [`Denied`], when there is none to be had.
    fn refused<'a>(
        &'a self,
        used: &'a SecretString,
        challenge: &'a Challenge,
    ) -> BoxFuture<'a, Result<SecretString, Denied>>;

    /// The server accepted what [`refused`](Self::refused) gave.
    fn accepted(&self, used: &SecretString);
}

/// What requests carry.
#[derive(Clone, Default)]
pub enum Credentials {
    /// Nothing.
    #[default]
    None,
    /// A key of the entry's own, which is among its headers or in its address.
    OwnKey,
    /// The tokens of a sign-in.
    SignedIn(Arc<dyn Tokens>),
    /// Nothing, because the keychain gives nothing: whether anybody is signed in is not known. A server that wants a
    /// sign-in gets no new one before it is.
    Unknown(KeychainFault),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::OwnKey => "OwnKey",
            Self::SignedIn(_) => "SignedIn",
            Self::Unknown(_) => "Unknown",
        })
    }
}

/// Why a request was not let in, or could not be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("the server wants a sign-in")]
    SignIn(SignInNeed),
    /// The entry's own key was turned away with this status.
    #[error("the server did not accept the key (HTTP status {0})")]
    KeyRefused(u16),
    /// The server asks for a scheme that is not spoken here.
    #[error("the server asks for the scheme {0}")]
    Scheme(String),
    #[error("the keychain gives nothing")]
    Keychain(KeychainFault),
    /// There is no token because the server that gives them cannot be asked; half a sentence.
    #[error("{0}")]
    NoAnswer(String),
    /// There is no token because of what the entry says; a sentence.
    #[error("{0}")]
    Entry(String),
}

impl Denied {
    /// What an error of a transport holds, where it is one of these.
    pub fn within(error: &Error) -> Option<&Self> {
        match error {
            StreamableHttpError::Io(error) => error.get_ref()?.downcast_ref(),
            _ => None,
        }
    }

    /// Whether only a person can mend it.
    fn is_final(&self) -> bool {
        match self {
            Self::SignIn(_) | Self::KeyRefused(_) | Self::Scheme(_) | Self::Entry(_) => true,
            Self::Keychain(_) | Self::NoAnswer(_) => false,
        }
    }

    fn into_error(self) -> Error {
        StreamableHttpError::Io(io::Error::other(self))
    }
}

/// Tells whoever owns a session that its server turned a request away. The first denial stays.
#[derive(Debug)]
pub struct Denials(watch::Sender<Option<Denied>>);

impl Default for Denials {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Denials {
    fn tell(&self, denied: &Denied) {
        self.0.send_if_modified(|told| {
            let is_first = told.is_none();
            told.get_or_insert_with(|| denied.clone());
            is_first
        });
    }

    /// Resolves once a request was turned away for good.
    pub async fn told(&self) -> Denied {
        let mut told = self.0.subscribe();
        let denied = told.wait_for(Option::is_some).await.ok().and_then(|told| told.clone());
        match denied {
            Some(denied) => denied,
            // Its sender is `self`.
            None => std::future::pending().await,
        }
    }
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A message, which the session cannot do without.
    Message,
    /// A stream of the server's own messages. A server may have none for those who sent nothing.
    Stream,
    /// The end of the session, which is told once.
    End,
}

/// How the requests to one server are let in; clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Authorization {
    credentials: Credentials,
    denials: Arc<Denials>,
}

impl Authorization {
    /// Sends `credentials` along and reports to `denials`.
    pub fn new(credentials: Credentials, denials: Arc<Denials>) -> Self {
        Self { credentials, denials }
    }

    /// Sends a request with what lets it in, and once more with another token where the first one was not accepted. Gives
    /// the answer's status and headers, whatever they are, except that the server does not let it in.
    ///
    /// # Errors
    /// No connection; [`Denied`].
    pub(super) async fn send(
        &self,
        request: reqwest::RequestBuilder,
        purpose: Purpose,
    ) -> Result<reqwest::Response, Error> {
        let answer = match &self.credentials {
            Credentials::None | Credentials::OwnKey | Credentials::Unknown(_) => {
                let response = request.send().await.map_err(client_error)?;
                self.judge(response)
            }
            Credentials::SignedIn(tokens) => self.send_signed_in(tokens.as_ref(), request, purpose).await?,
        };
        answer.map_err(|denied| {
            let (knocks_as_a_stranger, is_unknown) = match &self.credentials {
                Credentials::None => (true, false),
                Credentials::Unknown(_) => (true, true),
                Credentials::OwnKey | Credentials::SignedIn(_) => (false, false),
            };
            let is_the_sessions = match purpose {
                Purpose::Message => true,
                Purpose::Stream => !knocks_as_a_stranger,
                Purpose::End => false,
            };
            // The next session has what the keychain gives by then.
            if is_the_sessions && (denied.is_final() || is_unknown) {
                self.denials.tell(&denied);
            }
            denied.into_error()
        })
    }

    async fn send_signed_in(
        &self,
        tokens: &dyn Tokens,
        request: reqwest::RequestBuilder,
        purpose: Purpose,
    ) -> Result<Result<reqwest::Response, Denied>, Error> {
        let once_more = request.try_clone().filter(|_| purpose != Purpose::End);
        let token = match tokens.token().await {
            Ok(token) => token,
            Err(denied) => return Ok(Err(denied)),
        };
        let response = with(request, &token)?.send().await.map_err(client_error)?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(self.judge(response));
        }
        let Some(request) = once_more else {
            return Ok(self.judge(response));
        };
        let challenge = challenge_of(response.headers());
        // The connection serves the next request.
        drop(response);
        match tokens.refused(&token, &challenge).await {
            Ok(other) => {
                let response = with(request, &other)?.send().await.map_err(client_error)?;
                if response.status() != StatusCode::UNAUTHORIZED {
                    tokens.accepted(&other);
                }
                Ok(self.judge(response))
            }
            Err(denied) => Ok(Err(denied)),
        }
    }

    fn judge(&self, response: reqwest::Response) -> Result<reqwest::Response, Denied> {
        match self.denied(response.status(), response.headers()) {
            Some(denied) => Err(denied),
            None => Ok(response),
        }
    }

    /// What a status with these headers says of us, where it is about who we are. Pure.
    fn denied(&self, status: StatusCode, headers: &HeaderMap) -> Option<Denied> {
        match (self.refusal(status, headers), &self.credentials) {
            // The keychain may hold what the server wants.
            (Some(Denied::SignIn(_)), Credentials::Unknown(fault)) => Some(Denied::Keychain(fault.clone())),
            (refusal, _) => refusal,
        }
    }

    fn refusal(&self, status: StatusCode, headers: &HeaderMap) -> Option<Denied> {
        let need = |why| {
            Denied::SignIn(SignInNeed {
                why,
                challenge: Some(challenge_of(headers)),
            })
        };
        match (status, &self.credentials) {
            (StatusCode::UNAUTHORIZED, Credentials::OwnKey) => Some(Denied::KeyRefused(status.as_u16())),
            (StatusCode::UNAUTHORIZED, Credentials::SignedIn(_)) => Some(need(WhySignIn::Over)),
            (StatusCode::UNAUTHORIZED, Credentials::None | Credentials::Unknown(_)) => {
                Some(match challenge_of(headers).wanted() {
                    Wanted::Unsupported(scheme) => Denied::Scheme(scheme),
                    Wanted::SignIn | Wanted::MoreScopes(_) => need(WhySignIn::First),
                })
            }
            (StatusCode::FORBIDDEN, Credentials::None | Credentials::SignedIn(_) | Credentials::Unknown(_))
                if headers.contains_key(header::WWW_AUTHENTICATE) =>
            {
                match (challenge_of(headers).wanted(), &self.credentials) {
                    (Wanted::MoreScopes(scopes), _) => Some(need(WhySignIn::MoreScopes(scopes))),
                    // Some servers say so to those who never signed in.
                    (Wanted::SignIn, Credentials::None | Credentials::Unknown(_)) => Some(need(WhySignIn::First)),
                    (Wanted::SignIn | Wanted::Unsupported(_), _) => None,
                }
            }
            _ => None,
        }
    }
}

fn with(request: reqwest::RequestBuilder, token: &SecretString) -> Result<reqwest::RequestBuilder, Error> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret())).map_err(|_| {
        Denied::NoAnswer("the token that it gave holds characters that no header may hold".to_owned()).into_error()
    })?;
    value.set_sensitive(true);
    // In place of what else may be there under this name.
    Ok(request.headers(HeaderMap::from_iter([(header::AUTHORIZATION, value)])))
}

/// A server may name several schemes, each in a header of its own.
fn challenge_of(headers: &HeaderMap) -> Challenge {
    let all = headers.get_all(header::WWW_AUTHENTICATE).iter();
    let texts: Vec<_> = all.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    Challenge(texts.join(", "))
}

#[cfg(test)]
mod tests;
