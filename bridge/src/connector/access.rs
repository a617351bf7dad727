//! How a connector's requests are let in: by nothing, by a key of its entry, or by a sign-in.
//!
//! Owns that decision and, for a sign-in that is to begin, what its server says to those who are not signed in. Never
//! begins a sign-in.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use http::HeaderMap;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, NumberOrString, PingRequest};
use secrecy::SecretString;

use super::{
    World, attempt,
    cause::Cause,
    log::Log,
    transport::{Authorization, Credentials, Denied, Tokens, Web},
};
use crate::{
    config::{self, Auth, Grant, HttpLaunch, Launch, Resolved, ResolvedOAuth, SecretUrl},
    oauth::{AuthFault, Bearer, Challenge, SignInNeed, Signed, Target, WhySignIn},
    reach,
    secrets::is_secret_name,
};

/// Until a server has said what it wants of those who are not signed in; some never begin to answer.
const ASKED_WITHIN: Duration = Duration::from_secs(15);

/// By what an entry wants to be let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A program, which is let in by being run.
    Program,
    /// Its entry wants neither a sign-in nor a token.
    Open,
    /// A key of its own: a token that was entered, or a secret in its headers or its address.
    OwnKey,
    /// A sign-in, at the latest when its server asks for one.
    SignIn,
}

impl Access {
    pub fn of(entry: &config::Connector) -> Self {
        let Launch::Http(launch) = &entry.launch else {
            return Self::Program;
        };
        let has_key = carries_key(launch);
        match launch.auth {
            Some(Auth::Token) => Self::OwnKey,
            Some(Auth::OAuth) => Self::SignIn,
            None if launch.oauth.is_some() => Self::SignIn,
            Some(Auth::None) | None if has_key => Self::OwnKey,
            Some(Auth::None) => Self::Open,
            None => Self::SignIn,
        }
    }
}

/// Whether every request of an entry carries a key of its own: in its address, or in a header.
fn carries_key(launch: &HttpLaunch) -> bool {
    config::refers_to_secret(&launch.url) || launch.headers.keys().any(|name| is_key(launch, name))
}

/// Whether a header of an entry holds a key: it refers to a secret, or its name says that it is one.
fn is_key(launch: &HttpLaunch, header: &str) -> bool {
    let mut headers = launch.headers.iter();
    let value = headers.find(|(name, _)| name.eq_ignore_ascii_case(header));
    is_secret_name(header) || value.is_some_and(|(_, value)| config::refers_to_secret(value))
}

/// Whether an entry's requests may go to its address with these credentials: what is secret goes encrypted, or does not
/// leave this computer.
///
/// # Errors
/// The cause, where they may not.
fn may_be_sent(launch: &HttpLaunch, credentials: &Credentials, url: &SecretUrl) -> Result<(), Cause> {
    let is_secret = match credentials {
        Credentials::None | Credentials::Unknown(_) => carries_key(launch),
        Credentials::OwnKey | Credentials::SignedIn(_) => true,
    };
    match is_secret {
        true => is_kept_secret(url),
        false => Ok(()),
    }
}

fn is_kept_secret(url: &SecretUrl) -> Result<(), Cause> {
    if reach::is_secure(url.expose()) {
        return Ok(());
    }
    Err(Cause::Entry(
        "Its address begins with http://, so its key could be read on the way. Write https:// instead.".to_owned(),
    ))
}

/// What an attempt sends.
pub(super) struct Entrance {
    pub credentials: Credentials,
    /// The sign-in that it uses.
    pub bearer: Option<Arc<Bearer>>,
}

impl Entrance {
    fn plain(credentials: Credentials) -> Self {
        Self {
            credentials,
            bearer: None,
        }
    }
}

/// How an entry's requests are let in now. Contacts no server that is not signed in to.
///
/// # Errors
/// The cause, where nobody is to be contacted.
pub(super) async fn entrance(
    world: &World,
    entry: &config::Connector,
    url: &SecretUrl,
    oauth: Option<Arc<ResolvedOAuth>>,
) -> Result<Entrance, Cause> {
    let entrance = match Access::of(entry) {
        Access::Program | Access::Open => Entrance::plain(Credentials::None),
        Access::OwnKey => Entrance::plain(Credentials::OwnKey),
        Access::SignIn => signed_in(world, entry, url, oauth).await?,
    };
    if let Launch::Http(launch) = &entry.launch {
        may_be_sent(launch, &entrance.credentials, url)?;
    }
    Ok(entrance)
}

async fn signed_in(
    world: &World,
    entry: &config::Connector,
    url: &SecretUrl,
    oauth: Option<Arc<ResolvedOAuth>>,
) -> Result<Entrance, Cause> {
    let Launch::Http(launch) = &entry.launch else {
        return Ok(Entrance::plain(Credentials::None));
    };
    has_plain_address(launch)?;
    let by_itself = matches!(&oauth, Some(oauth) if oauth.settings.grant == Grant::ClientCredentials);
    match world.sign_ins.bearer(target_of(entry, url, oauth)).await {
        Ok(Signed::In(bearer)) => Ok(Entrance {
            credentials: Credentials::SignedIn(Arc::new(OfBearer::new(bearer.clone(), world.log_of(entry)))),
            bearer: Some(bearer),
        }),
        Ok(Signed::SignedOut) => Err(Cause::SignIn(SignInNeed {
            why: WhySignIn::SignedOut,
            challenge: None,
        })),
        Ok(Signed::Nothing) if launch.auth == Some(Auth::OAuth) && !by_itself => {
            Err(Cause::SignIn(SignInNeed::first(None)))
        }
        Ok(Signed::Nothing) => Ok(Entrance::plain(Credentials::None)),
        // Most servers want no sign-in, and must not wait for a keychain because of those that do.
        Err(AuthFault::Keychain(fault)) if launch.auth.is_none() => Ok(Entrance::plain(Credentials::Unknown(fault))),
        Err(fault) => Err(Denied::from(fault).into()),
    }
}

/// The address is told to whoever signs the person in, so that nothing of it may be secret.
fn has_plain_address(launch: &HttpLaunch) -> Result<(), Cause> {
    if config::refers_to_secret(&launch.url) {
        return Err(Cause::Entry(
            "Its address holds a secret, which a sign-in would tell to others. Send the secret in a header instead."
                .to_owned(),
        ));
    }
    Ok(())
}

fn target_of(entry: &config::Connector, url: &SecretUrl, oauth: Option<Arc<ResolvedOAuth>>) -> Target {
    Target {
        connector: entry.id.clone(),
        name: entry.name.clone().unwrap_or_else(|| entry.id.to_string()),
        url: url.expose().clone(),
        oauth,
    }
}

/// What a sign-in begins with.
pub struct Beginnings {
    pub target: Target,
    /// What the server says to those who are not signed in.
    pub challenge: Option<Challenge>,
}

/// For whom a sign-in would be, and what its server says; `known` is what it said last. Where that is not known it is
/// asked once, without any credentials: the entry's own keys stay here too.
///
/// # Errors
/// The cause: it cannot be filled in or reached, or asks for another scheme.
pub async fn beginnings(
    world: &World,
    entry: &config::Connector,
    known: Option<Challenge>,
) -> Result<Beginnings, Cause> {
    let Resolved::Http {
        url,
        headers,
        sse,
        oauth,
        ..
    } = attempt::admit(world, entry, &world.log_of(entry)).await?.resolved
    else {
        return Err(Cause::Entry("Its entry names no address.".to_owned()));
    };
    let Launch::Http(launch) = &entry.launch else {
        return Err(Cause::Entry("Its entry names no address.".to_owned()));
    };
    has_plain_address(launch)?;
    // What the sign-in gives could never be sent otherwise.
    is_kept_secret(&url)?;
    let challenge = match known {
        Some(challenge) => Some(challenge),
        None => {
            let web =
                Web::new(url.expose(), Authorization::default()).map_err(|error| Cause::Entry(format!("{error}.")))?;
            let open = headers.into_iter().filter(|(name, _)| !is_key(launch, name.as_str()));
            let headers = attempt::custom_headers(open)?.into_iter().collect();
            let asked = tokio::time::timeout(ASKED_WITHIN, ask(&web, &url, headers, sse));
            asked.await.map_err(|_elapsed| Cause::NoAnswer(ASKED_WITHIN))??
        }
    };
    Ok(Beginnings {
        target: target_of(entry, &url, oauth.map(Arc::from)),
        challenge,
    })
}

async fn ask(web: &Web, url: &SecretUrl, headers: HeaderMap, sse: bool) -> Result<Option<Challenge>, Cause> {
    let url = url.expose().as_str();
    let asked = if sse {
        web.get_events(url, headers).await
    } else {
        // Opens nothing at a server that lets it in.
        let request = ClientRequest::PingRequest(PingRequest::default());
        let message = ClientJsonRpcMessage::request(request, NumberOrString::Number(0));
        web.post(url, headers, &message).await
    };
    match asked {
        Ok(_) => Ok(None),
        Err(error) => match Denied::within(&error) {
            Some(Denied::SignIn(need)) => Ok(need.challenge.clone()),
            Some(denied) => Err(denied.clone().into()),
            None => match super::fault::cause_of_answer(&error) {
                // Whatever it answers, it is there; its metadata may say more.
                Cause::HttpStatus { .. } | Cause::Protocol(_) => Ok(None),
                cause => Err(cause),
            },
        },
    }
}

/// The tokens of a sign-in, as transports want them. None is given out that is not hidden from then on in whatever its
/// server writes.
struct OfBearer {
    bearer: Arc<Bearer>,
    log: Log,
}

impl OfBearer {
    fn new(bearer: Arc<Bearer>, log: Log) -> Self {
        let tokens = Self { bearer, log };
        tokens.hide();
        tokens
    }

    fn hide(&self) {
        self.log.redactor().hold_sign_in(self.bearer.secrets());
    }

    /// Before and after: a renewal uses up the one and gives the other.
    async fn hidden(
        &self,
        token: impl Future<Output = Result<SecretString, AuthFault>> + Send,
    ) -> Result<SecretString, Denied> {
        self.hide();
        let token = token.await;
        self.hide();
        Ok(token?)
    }
}

impl Tokens for OfBearer {
    fn token(&self) -> BoxFuture<'_, Result<SecretString, Denied>> {
        Box::pin(self.hidden(self.bearer.token()))
    }

    fn refused<'a>(
        &'a self,
        used: &'a SecretString,
        challenge: &'a Challenge,
    ) -> BoxFuture<'a, Result<SecretString, Denied>> {
        Box::pin(self.hidden(self.bearer.refused(used, challenge.clone())))
    }

    fn accepted(&self, used: &SecretString) {
        self.bearer.accepted(used);
    }
}

impl From<AuthFault> for Denied {
    fn from(fault: AuthFault) -> Self {
        match fault {
            AuthFault::SignIn(need) => Self::SignIn(need),
            AuthFault::Keychain(fault) => Self::Keychain(fault),
            AuthFault::Unavailable(why) => Self::NoAnswer(why),
            AuthFault::Entry(why) => Self::Entry(why),
        }
    }
}

impl fmt::Debug for Beginnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beginnings").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EntryKind;

    #[test]
    fn an_entry_is_let_in_by_its_own_key_before_anybody_signs_in() {
        for (entry, access) in [
            (r#"{"command": "x", "env": {"TOKEN": "${secret:T}"}}"#, Access::Program),
            (r#"{"url": "https://a.example"}"#, Access::SignIn),
            (
                r#"{"url": "https://a.example", "headers": {"X-Team": "a"}}"#,
                Access::SignIn,
            ),
            (r#"{"url": "https://a.example", "auth": "oauth"}"#, Access::SignIn),
            (
                r#"{"url": "https://a.example", "auth": "oauth", "headers": {"X": "${secret:K}"}}"#,
                Access::SignIn,
            ),
            (r#"{"url": "https://a.example", "auth": "none"}"#, Access::Open),
            (r#"{"url": "https://a.example", "auth": "token"}"#, Access::OwnKey),
            (
                r#"{"url": "https://a.example", "headers": {"Authorization": "Basic eDp5"}}"#,
                Access::OwnKey,
            ),
            (
                r#"{"url": "https://a.example", "headers": {"X-Team": "${secret:T}"}}"#,
                Access::OwnKey,
            ),
            (
                r#"{"url": "https://a.example/${secret:T}/mcp", "auth": "none"}"#,
                Access::OwnKey,
            ),
        ] {
            let config = config::parse(format!("{{\"servers\": {{\"a\": {entry}}}}}").as_bytes()).unwrap();
            let EntryKind::Valid(connector) = &config.entries[0].kind else {
                panic!("{entry}")
            };
            assert_eq!(Access::of(connector), access, "{entry}");
        }
    }
}
