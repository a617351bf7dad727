//! Who we are to an authorization server: the entry's client, a document's, or one that it registers for us.

use serde::Deserialize;
use serde_json::json;

use super::{
    discovery::Found,
    fault::SignInError,
    fetch::{Fetch, busy},
    pair,
    record::{Client, ClientOrigin, Proof},
    target::{Target, place},
    token::error_code,
};
use crate::config::{ClientAuth, Grant};

/// The name under which servers show this app.
const NAME: &str = "Neuron Connect";
/// Ways to prove who we are that registration can give, the preferred one first.
const METHODS: [&str; 3] = ["none", "client_secret_basic", "client_secret_post"];

/// The client of the entry, or the one that its metadata document describes; `None` where one has to be registered.
///
/// A client id in the entry is never followed by a registration. Its secret goes nowhere but to the issuer that the entry
/// names, or, for clients that sign in by themselves, to the server's own domain.
pub(super) fn of_entry(target: &Target, found: &Found) -> Result<Option<Client>, SignInError> {
    let Some(oauth) = &target.oauth else { return Ok(None) };
    let settings = &oauth.settings;
    let issuer = &found.server.issuer;
    if let Some(wanted) = settings.issuer.as_ref().filter(|wanted| *wanted != issuer) {
        return Err(SignInError::OtherIssuer {
            wanted: wanted.clone(),
            found: issuer.clone(),
        });
    }
    if let Some(id) = &settings.client_id {
        let is_own = settings.grant == Grant::ClientCredentials
            && pair::belong_together(&found.issuer, &target.url)
            && pair::belong_together(&found.server.token_endpoint, &found.issuer);
        if settings.issuer.is_none() && !is_own {
            return Err(SignInError::NeedsIssuer { issuer: issuer.clone() });
        }
        let proof = match (settings.client_auth, &oauth.private_key, &oauth.client_secret) {
            (ClientAuth::PrivateKeyJwt, Some(key), _) => Proof::PrivateKeyJwt {
                key: key.clone(),
                algorithm: settings.algorithm.clone().unwrap_or_default(),
            },
            (ClientAuth::PrivateKeyJwt | ClientAuth::Secret, _, Some(secret)) => {
                let secret = secret.clone();
                let methods = found.server.token_endpoint_auth_methods_supported.as_deref();
                let has = |method: &str| methods.is_none_or(|methods| methods.iter().any(|m| m == method));
                if has("client_secret_basic") || !has("client_secret_post") {
                    Proof::ClientSecretBasic { secret }
                } else {
                    Proof::ClientSecretPost { secret }
                }
            }
            (ClientAuth::PrivateKeyJwt | ClientAuth::Secret, _, None) => Proof::None,
        };
        return Ok(Some(Client {
            id: id.clone(),
            proof,
            origin: ClientOrigin::Entry,
        }));
    }
    let takes_documents = found.server.client_id_metadata_document_supported == Some(true);
    Ok(settings
        .client_metadata_url
        .as_ref()
        .filter(|_| takes_documents)
        .map(|document| Client {
            id: document.as_str().to_owned(),
            proof: Proof::None,
            origin: ClientOrigin::Document,
        }))
}

/// What registering came to.
pub(super) enum Registered {
    Client {
        client: Client,
        /// Unix seconds; 0 and absent: never.
        secret_expires_at: u64,
    },
    /// The server does not register programs, or not with this way back.
    No,
}

/// RFC 7591 §3.2.1, as far as a client needs it.
#[derive(Deserialize)]
struct Answer {
    client_id: String,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(default)]
    client_secret_expires_at: Option<u64>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
    #[serde(default)]
    redirect_uris: Option<Vec<String>>,
}

/// Registers this app with one way back (RFC 7591). The answer counts: a way back that it leaves out is not registered.
pub(super) async fn register(
    fetch: &Fetch,
    found: &Found,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<Registered, SignInError> {
    let Some(at) = &found.server.registration_endpoint else {
        return Ok(Registered::No);
    };
    let supported = found.server.token_endpoint_auth_methods_supported.as_deref();
    let method = METHODS
        .into_iter()
        .find(|method| supported.is_none_or(|supported| supported.iter().any(|m| m == method)));
    let method = method.ok_or_else(|| {
        SignInError::Refused(format!(
            "{} wants programs to prove who they are in a way that this app does not have",
            place(at)
        ))
    })?;
    let mut wish = json!({
        "client_name": NAME,
        "application_type": "native",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    });
    if !scopes.is_empty() {
        wish["scope"] = scopes.join(" ").into();
    }
    let fetched = fetch.post_json(at, &wish).await?;
    if fetched.is_busy() {
        return Err(busy(at, fetched.status).into());
    }
    if fetched.status.is_client_error() || fetched.status.is_redirection() {
        return Ok(Registered::No);
    }
    let no_answer = || {
        SignInError::Refused(format!(
            "{} could not add this app by itself. Try again later",
            place(at)
        ))
    };
    let answer: Answer = fetched.object().ok_or_else(no_answer)?;
    let echoes = answer
        .redirect_uris
        .as_deref()
        .map(|uris| uris.iter().any(|uri| uri == redirect_uri));
    // One that tells no ways back has taken ours as it is, unless the specification does not oblige it to take such.
    if !echoes.unwrap_or_else(|| redirect_uri.starts_with("http")) {
        return Ok(Registered::No);
    }
    let secret = answer.client_secret.filter(|secret| !secret.is_empty());
    let returned = answer.token_endpoint_auth_method.as_deref();
    let proof = match (
        returned.unwrap_or(if secret.is_some() && method == "none" {
            "client_secret_basic"
        } else {
            method
        }),
        secret,
    ) {
        ("none", _) | (_, None) => Proof::None,
        ("client_secret_post", Some(secret)) => Proof::ClientSecretPost { secret: secret.into() },
        ("client_secret_basic", Some(secret)) => Proof::ClientSecretBasic { secret: secret.into() },
        (other, Some(_)) => {
            return Err(SignInError::Refused(format!(
                "{} wants this app to prove who it is in a way that it does not have ({})",
                place(at),
                error_code(other)
            )));
        }
    };
    Ok(Registered::Client {
        client: Client {
            id: answer.client_id,
            proof,
            origin: ClientOrigin::Dynamic,
        },
        secret_expires_at: answer.client_secret_expires_at.unwrap_or_default(),
    })
}
