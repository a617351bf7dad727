//! What servers say of themselves, and where they say it. Pure.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::reach::is_secure;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OIDC: &str = "/.well-known/openid-configuration";

/// RFC 9728 §2, as far as a client needs it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ProtectedResource {
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Option<Vec<String>>,
    #[serde(default)]
    pub(super) scopes_supported: Option<Vec<String>>,
}

/// RFC 8414 §2 or OpenID Connect Discovery §3, as far as a client needs it. Addresses are as written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    #[serde(default)]
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Url,
    #[serde(default)]
    pub(super) registration_endpoint: Option<Url>,
    #[serde(default)]
    pub(super) revocation_endpoint: Option<Url>,
    #[serde(default)]
    pub(super) scopes_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: Option<bool>,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: Option<bool>,
}

impl ServerMetadata {
    /// What a server has that says nothing of itself (the 2025-03-26 specification's defaults).
    pub(super) fn assumed(origin: &Url) -> Option<Self> {
        let at = |path: &str| origin.join(path).ok();
        Some(Self {
            issuer: origin.origin().ascii_serialization(),
            authorization_endpoint: Some(at("/authorize")?.into()),
            token_endpoint: at("/token")?,
            registration_endpoint: at("/register"),
            revocation_endpoint: None,
            scopes_supported: None,
            code_challenge_methods_supported: None,
            token_endpoint_auth_methods_supported: None,
            authorization_response_iss_parameter_supported: None,
            client_id_metadata_document_supported: None,
        })
    }

    /// Whether it says that it protects codes with S256 (RFC 7636).
    pub(super) fn has_s256(&self) -> bool {
        let methods = self.code_challenge_methods_supported.as_deref().unwrap_or_default();
        methods.iter().any(|method| method == "S256")
    }

    pub(super) fn promises_iss(&self) -> bool {
        self.authorization_response_iss_parameter_supported == Some(true)
    }

    pub(super) fn scopes(&self) -> &[String] {
        self.scopes_supported.as_deref().unwrap_or_default()
    }
}

/// Where RFC 9728 metadata of a server may be, in the order in which it is looked for.
pub(super) fn places_of_resource(told: Option<Url>, server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut places: Vec<_> = told.into_iter().collect();
    push(&mut places, server, &format!("{RESOURCE}{path}"));
    push(&mut places, server, RESOURCE);
    places
}

/// Where metadata of an issuer may be, in the order of the MCP specification, then where careless servers have it.
pub(super) fn places_of_issuer(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = Vec::new();
    push(&mut places, issuer, &format!("{OAUTH}{path}"));
    push(&mut places, issuer, &format!("{OIDC}{path}"));
    push(&mut places, issuer, &format!("{path}{OIDC}"));
    push(&mut places, issuer, &format!("{path}{OAUTH}"));
    push(&mut places, issuer, OAUTH);
    places
}

fn push(places: &mut Vec<Url>, base: &Url, path: &str) {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    if !places.contains(&url) {
        places.push(url);
    }
}

/// Whether metadata about `resource` is about the server at `server`: the same address, or a path above it on the same
/// origin, which is how servers name themselves that have one resource only.
pub(super) fn is_about(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    if resource.origin() != server.origin() || resource.fragment().is_some() || !resource.username().is_empty() {
        return false;
    }
    if resource.query().is_some() && resource.query() != server.query() {
        return false;
    }
    let above = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// An issuer as an address: https, or http on this computer; without query and fragment (RFC 8414 §2).
pub(super) fn issuer_url(issuer: &str) -> Option<Url> {
    let url = Url::parse(issuer).ok()?;
    let is_web = is_secure(&url);
    let is_plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    (is_web && is_plain && issuer.bytes().all(|b| b.is_ascii_graphic())).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn texts(urls: Vec<Url>) -> Vec<String> {
        urls.into_iter().map(Into::into).collect()
    }

    #[test]
    fn metadata_is_looked_for_in_the_order_of_the_specification() {
        assert_eq!(
            texts(places_of_resource(
                Some(url("https://x.example/m")),
                &url("https://x.example/a/mcp?key=SENTINEL")
            )),
            [
                "https://x.example/m",
                "https://x.example/.well-known/oauth-protected-resource/a/mcp",
                "https://x.example/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(
            texts(places_of_issuer(&url("https://x.example/tenant/"))),
            [
                "https://x.example/.well-known/oauth-authorization-server/tenant",
                "https://x.example/.well-known/openid-configuration/tenant",
                "https://x.example/tenant/.well-known/openid-configuration",
                "https://x.example/tenant/.well-known/oauth-authorization-server",
                "https://x.example/.well-known/oauth-authorization-server",
            ]
        );
        assert_eq!(
            texts(places_of_issuer(&url("https://x.example"))),
            [
                "https://x.example/.well-known/oauth-authorization-server",
                "https://x.example/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn metadata_of_another_server_is_not_ours() {
        let server = url("https://x.example/a/mcp?team=1");
        for (resource, ours) in [
            ("https://x.example/a/mcp", true),
            ("https://x.example/a/mcp?team=1", true),
            ("https://x.example/a", true),
            ("https://x.example/", true),
            ("https://x.example", true),
            ("https://x.example/a/mc", false),
            ("https://x.example/a/mcp/more", false),
            ("https://x.example/b", false),
            ("https://x.example/a/mcp?team=2", false),
            ("https://x.example:8443/a/mcp", false),
            ("http://x.example/a/mcp", false),
            ("https://y.example/a/mcp", false),
            ("https://me@x.example/a/mcp", false),
            ("x", false),
        ] {
            assert_eq!(is_about(resource, &server), ours, "{resource}");
        }
    }

    #[test]
    fn an_issuer_is_a_plain_secure_address() {
        for (issuer, legal) in [
            ("https://auth.example.com", true),
            ("https://auth.example.com/tenant", true),
            ("http://127.0.0.1:9", true),
            ("http://auth.example.com", false),
            ("https://auth.example.com?x", false),
            ("https://auth.example.com#x", false),
            ("https://me@auth.example.com", false),
            ("auth.example.com", false),
        ] {
            assert_eq!(issuer_url(issuer).is_some(), legal, "{issuer}");
        }
    }

    #[test]
    fn a_list_that_is_null_is_no_list() {
        let text = r#"{"issuer":"https://a.example","token_endpoint":"https://a.example/t","registration_endpoint":null,
            "code_challenge_methods_supported":null,"scopes_supported":null}"#;
        let metadata: ServerMetadata = serde_json::from_str(text).unwrap();
        assert!(metadata.registration_endpoint.is_none() && !metadata.has_s256());
    }
}
