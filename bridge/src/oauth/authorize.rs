//! The address of a sign-in page. Pure, but for chance.

use oauth2::{
    AuthUrl, ClientId, CsrfToken, EndpointNotSet, EndpointSet, PkceCodeChallenge, RedirectUrl, Scope,
    basic::BasicClient,
};
use secrecy::SecretString;
use url::Url;

use super::scopes::OFFLINE;
use crate::ids::ConnectorId;

/// Bytes of chance in a state.
const STATE_BYTES: u32 = 32;
/// What we say ourselves; an address that says it already would say it twice.
const OURS: [&str; 9] = [
    "response_type",
    "client_id",
    "state",
    "code_challenge",
    "code_challenge_method",
    "redirect_uri",
    "scope",
    "resource",
    "prompt",
];

/// A page to open, and what its answer will be known by.
pub(super) struct Page {
    pub(super) url: Url,
    pub(super) state: String,
    pub(super) verifier: SecretString,
}

/// RFC 6749 §4.1.1 with PKCE (S256), the resource (RFC 8707) and a state of 256 random bits behind which the connector's
/// id stands, so that its sign-in is found again after a restart.
///
/// `None` where the way back is no address.
pub(super) fn page(
    endpoint: &Url,
    client_id: &str,
    redirect_uri: &str,
    scopes: &[String],
    resource: &str,
    id: &ConnectorId,
) -> Option<Page> {
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let redirect = RedirectUrl::new(redirect_uri.to_owned()).ok()?;
    let client: BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointNotSet> =
        BasicClient::new(ClientId::new(client_id.to_owned()))
            .set_auth_uri(AuthUrl::from_url(without_ours(endpoint)))
            .set_redirect_uri(redirect);
    let state = || CsrfToken::new(format!("{}.{id}", CsrfToken::new_random_len(STATE_BYTES).secret()));
    let mut request = client
        .authorize_url(state)
        .set_pkce_challenge(challenge)
        .add_scopes(scopes.iter().cloned().map(Scope::new))
        .add_extra_param("resource", resource);
    // OpenID Connect Core §11: without it the wish for refresh tokens is ignored.
    if scopes.iter().any(|scope| scope == OFFLINE) {
        request = request.add_extra_param("prompt", "consent");
    }
    let (url, state) = request.url();
    Some(Page {
        url,
        state: state.into_secret(),
        verifier: verifier.into_secret().into(),
    })
}

/// The connector that a state names.
pub(super) fn connector_of(state: &str) -> Option<ConnectorId> {
    ConnectorId::parse(state.split_once('.')?.1).ok()
}

fn without_ours(endpoint: &Url) -> Url {
    let mut url = endpoint.clone();
    let kept: Vec<_> = endpoint
        .query_pairs()
        .into_owned()
        .filter(|(name, _)| !OURS.contains(&name.as_str()))
        .collect();
    url.set_query(None);
    if !kept.is_empty() {
        url.query_pairs_mut().extend_pairs(kept);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_said_once() {
        let endpoint = Url::parse("https://auth.example.com/a?tenant=b&resource=https://evil.example&state=c").unwrap();
        let id = ConnectorId::parse("git.hub").unwrap();
        let scopes = ["read".to_owned(), "offline_access".to_owned()];
        let page = page(
            &endpoint,
            "me",
            "http://127.0.0.1:1/back",
            &scopes,
            "https://x.example/mcp",
            &id,
        )
        .unwrap();
        let pairs: Vec<_> = page.url.query_pairs().into_owned().collect();
        let mut names: Vec<_> = pairs.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        let mut all = OURS.to_vec();
        all.push("tenant");
        all.sort_unstable();
        assert_eq!(names, all);
        let value = |name: &str| pairs.iter().find(|(key, _)| key == name).unwrap().1.clone();
        assert_eq!(value("resource"), "https://x.example/mcp");
        assert_eq!(value("code_challenge_method"), "S256");
        assert_eq!(value("scope"), "read offline_access");
        assert_eq!(value("state"), page.state);
        assert_eq!(connector_of(&page.state), Some(id));
        assert!(page.state.len() >= 43);
    }

    #[test]
    fn no_two_pages_share_a_state() {
        let endpoint = Url::parse("https://auth.example.com/a").unwrap();
        let id = ConnectorId::parse("x").unwrap();
        let state = || {
            page(&endpoint, "me", "http://127.0.0.1:1/back", &[], "r", &id)
                .unwrap()
                .state
        };
        assert_ne!(state(), state());
    }

    #[test]
    fn a_strangers_state_names_nobody() {
        for state in ["", "abc", "abc.", "abc./", ".", "abc.-x"] {
            assert_eq!(connector_of(state), None, "{state}");
        }
    }
}
