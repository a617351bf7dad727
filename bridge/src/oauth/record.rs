//! What is kept in the keychain of sign-ins: three values a connector, each a JSON object with its version. Pure.
//!
//! Everything is bound to the address it was made for; what belongs to another address is neither used nor deleted.

use std::collections::HashMap;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use url::Url;

use super::{
    metadata::ServerMetadata,
    target::{Target, place},
};
use crate::snapshot::RedirectKind;

/// Of all three values. Another version is read as nothing.
const VERSION: u32 = 1;

/// Account `<id>:oauth`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub(super) enum Access {
    /// The person signed out; nobody is contacted before they sign in again.
    SignedOut,
    SignedIn(Box<Grant>),
}

/// What a sign-in gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Grant {
    /// The address it is for ([`Target::canonical`]).
    pub(super) url: String,
    pub(super) resource: String,
    pub(super) server: Endpoints,
    pub(super) client: Client,
    /// `None` once the server says that it is over.
    #[serde(with = "maybe_secret")]
    pub(super) access: Option<SecretString>,
    #[serde(with = "maybe_secret")]
    pub(super) refresh: Option<SecretString>,
    /// Unix milliseconds.
    pub(super) issued_at: u64,
    /// Unix milliseconds; `None` where the server did not tell.
    pub(super) expires_at: Option<u64>,
    /// What was allowed, as far as the server told, else what was asked for.
    pub(super) scopes: Vec<String>,
}

/// What is kept of an authorization server, so that a start needs no network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Endpoints {
    pub(super) issuer: String,
    /// Where people sign in, as host and port; `None` where nobody does, or it was not kept.
    #[serde(default)]
    pub(super) page: Option<String>,
    pub(super) token: Url,
    pub(super) revocation: Option<Url>,
}

impl From<&ServerMetadata> for Endpoints {
    fn from(server: &ServerMetadata) -> Self {
        Self {
            issuer: server.issuer.clone(),
            page: server
                .authorization_endpoint
                .as_deref()
                .and_then(|page| Url::parse(page).ok())
                .map(|page| place(&page)),
            token: server.token_endpoint.clone(),
            revocation: server.revocation_endpoint.clone(),
        }
    }
}

/// Who we are to an authorization server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) proof: Proof,
    pub(super) origin: ClientOrigin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientOrigin {
    /// The person registered it; it is in the entry.
    Entry,
    /// Its id is the address of a document that describes it.
    Document,
    /// Registered by this app.
    Dynamic,
}

/// How a client proves who it is at the token endpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub(super) enum Proof {
    None,
    ClientSecretBasic {
        #[serde(with = "secret")]
        secret: SecretString,
    },
    ClientSecretPost {
        #[serde(with = "secret")]
        secret: SecretString,
    },
    PrivateKeyJwt {
        #[serde(with = "secret")]
        key: SecretString,
        algorithm: String,
    },
}

impl Client {
    /// With the secrets that the entry has now, where it is the entry's.
    pub(super) fn with_secrets_of(mut self, target: &Target) -> Self {
        let Some(oauth) = target.oauth.as_ref().filter(|_| self.origin == ClientOrigin::Entry) else {
            return self;
        };
        match &mut self.proof {
            Proof::None => {}
            Proof::ClientSecretBasic { secret } | Proof::ClientSecretPost { secret } => {
                secret.clone_from(oauth.client_secret.as_ref().unwrap_or(&secret.clone()));
            }
            Proof::PrivateKeyJwt { key, .. } => {
                key.clone_from(oauth.private_key.as_ref().unwrap_or(&key.clone()));
            }
        }
        self
    }
}

impl Grant {
    /// Whether it may be used for this connector: made for its address, at its issuer, with its client.
    pub(super) fn is_for(&self, target: &Target) -> bool {
        let settings = target.oauth.as_ref().map(|oauth| &oauth.settings);
        let same = |wanted: Option<&String>, ours: &String| wanted.is_none_or(|wanted| wanted == ours);
        self.url == target.canonical()
            && same(settings.and_then(|s| s.issuer.as_ref()), &self.server.issuer)
            && same(settings.and_then(|s| s.client_id.as_ref()), &self.client.id)
    }
}

/// Account `<id>:client`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Registration {
    pub(super) url: String,
    pub(super) issuer: String,
    pub(super) client: Client,
    /// The way back that is registered.
    pub(super) redirect_uri: String,
    /// Scopes that it was registered for; empty: any.
    pub(super) scopes: Vec<String>,
    /// Unix milliseconds after which its secret is over.
    pub(super) expires_at: Option<u64>,
    /// The way back that the person chose for this issuer.
    pub(super) chosen: Option<RedirectKind>,
}

/// Account `<id>:verifier`: sign-ins that wait for a browser, by `state`.
pub(super) type Waiting = HashMap<String, Flow>;

/// A sign-in that waits for a browser.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Flow {
    /// The connector's name for people.
    pub(super) name: String,
    pub(super) url: String,
    pub(super) resource: String,
    pub(super) server: Endpoints,
    /// Whether the server promises to say who it is in its answer (RFC 9207).
    pub(super) promises_iss: bool,
    pub(super) client: Client,
    pub(super) redirect_uri: String,
    #[serde(with = "secret")]
    pub(super) verifier: SecretString,
    pub(super) scopes: Vec<String>,
    /// Unix milliseconds.
    pub(super) expires_at: u64,
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    value: T,
}

/// The text for the keychain.
pub(super) fn to_text<T: Serialize>(value: &T) -> SecretString {
    let text = serde_json::to_string(&Versioned {
        version: VERSION,
        value,
    });
    // Plain data with texts as keys always becomes JSON.
    text.unwrap_or_default().into()
}

/// `None` for what another version wrote, or nobody.
pub(super) fn from_text<T: DeserializeOwned>(text: &SecretString) -> Option<T> {
    let versioned: Versioned<T> = serde_json::from_str(text.expose_secret()).ok()?;
    (versioned.version == VERSION).then_some(versioned.value)
}

mod secret {
    use super::*;

    pub(super) fn serialize<S: Serializer>(secret: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(secret.expose_secret())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
        String::deserialize(deserializer).map(Into::into)
    }
}

mod maybe_secret {
    use super::*;

    pub(super) fn serialize<S: Serializer>(secret: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
        secret.as_ref().map(SecretString::expose_secret).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(Into::into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant() -> Grant {
        Grant {
            url: "https://x.example/mcp".to_owned(),
            resource: "https://x.example/mcp".to_owned(),
            server: Endpoints {
                issuer: "https://auth.x.example".to_owned(),
                page: None,
                token: Url::parse("https://auth.x.example/token").unwrap(),
                revocation: None,
            },
            client: Client {
                id: "client-1".to_owned(),
                proof: Proof::ClientSecretBasic {
                    secret: "SENTINEL_CLIENT".to_owned().into(),
                },
                origin: ClientOrigin::Dynamic,
            },
            access: Some("SENTINEL_ACCESS".to_owned().into()),
            refresh: Some("SENTINEL_REFRESH".to_owned().into()),
            issued_at: 1,
            expires_at: Some(2),
            scopes: vec!["read".to_owned()],
        }
    }

    #[test]
    fn what_is_kept_is_read_back_and_never_shown() {
        let access = Access::SignedIn(Box::new(grant()));
        assert!(!format!("{access:?}").contains("SENTINEL"));
        let text = to_text(&access);
        let Some(Access::SignedIn(read)) = from_text(&text) else {
            panic!("a grant")
        };
        assert_eq!(read.refresh.unwrap().expose_secret(), "SENTINEL_REFRESH");
        assert!(matches!(
            from_text(&to_text(&Access::SignedOut)),
            Some(Access::SignedOut)
        ));
    }

    #[test]
    fn what_another_version_wrote_is_nothing() {
        for text in ["", "{}", r#"{"version":2,"value":{"state":"signed_out"}}"#, "null"] {
            assert!(from_text::<Access>(&text.to_owned().into()).is_none(), "{text}");
        }
    }

    #[test]
    fn a_grant_is_for_the_address_it_was_made_for() {
        let target = |url: &str| Target {
            connector: crate::ids::ConnectorId::parse("x").unwrap(),
            name: "X".to_owned(),
            url: Url::parse(url).unwrap(),
            oauth: None,
        };
        assert!(grant().is_for(&target("https://x.example/mcp")));
        for other in [
            "https://x.example/other",
            "https://y.example/mcp",
            "https://x.example/mcp?a=b",
        ] {
            assert!(!grant().is_for(&target(other)), "{other}");
        }
    }
}
