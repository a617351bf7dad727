//! For whom a sign-in is, and what it should ask for. Pure.

use std::sync::Arc;

use url::Url;

use super::need::Challenge;
use crate::{config::ResolvedOAuth, ids::ConnectorId, snapshot::RedirectKind};

/// The connector that a token is for.
#[derive(Debug, Clone)]
pub struct Target {
    pub connector: ConnectorId,
    /// Its name for people.
    pub name: String,
    /// The address of its server, filled in. Never shown whole: its query may be secret.
    pub url: Url,
    /// The entry's `oauth`, its secrets filled in.
    pub oauth: Option<Arc<ResolvedOAuth>>,
}

impl Target {
    /// The address that credentials are bound to: as contacted, without a fragment.
    pub(super) fn canonical(&self) -> String {
        canonical(&self.url)
    }
}

/// The address that credentials are bound to: as contacted, without a fragment.
pub(crate) fn canonical(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

/// Host and port, for people.
pub(super) fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// What a sign-in starts from.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// What the server said when it turned us away, where it did.
    pub challenge: Option<Challenge>,
    /// The issuer that the person accepted to sign in at, exactly as [`SignInError::Confirm`] told it. Where a page or a
    /// token endpoint of another domain needs the tick too, it counts only for those that were told last.
    ///
    /// [`SignInError::Confirm`]: super::SignInError::Confirm
    pub accept_issuer: Option<String>,
    /// The way back that the person chose, in place of the automatic choice. It is remembered for the issuer.
    pub redirect: Option<RedirectKind>,
}

/// A sign-in that waits for the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// The page to open, checked: https, or http on this computer; a plain host.
    pub auth_url: Url,
}
