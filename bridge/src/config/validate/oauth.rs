//! The `oauth` member of an entry.

use jsonc_parser::{ast::ObjectProp, common::Ranged as _};
use url::Url;

use super::members::{Reader, References};
use crate::{
    config::{ClientAuth, Grant, OAuth, Redirect, json::key},
    reach::is_secure,
    snapshot::Notice,
};

/// Algorithms that a private key can sign a client assertion with.
const ALGORITHMS: [(&str, &str); 5] = [
    ("ES256", "ES256"),
    ("ES384", "ES384"),
    ("RS256", "RS256"),
    ("RS384", "RS384"),
    ("RS512", "RS512"),
];

const MEMBERS: [&str; 11] = [
    "clientId",
    "clientSecret",
    "scopes",
    "issuer",
    "redirect",
    "grant",
    "clientAuth",
    "privateKey",
    "algorithm",
    "clientMetadataUrl",
    "allowMissingPkce",
];

pub(super) fn read(reader: &mut Reader<'_>, property: &ObjectProp<'_>) -> Result<OAuth, Notice> {
    let object = reader.object(property, "oauth")?;
    let mut oauth = OAuth {
        client_id: None,
        client_secret: None,
        scopes: None,
        issuer: None,
        redirect: Redirect::Auto,
        grant: Grant::AuthorizationCode,
        client_auth: ClientAuth::Secret,
        private_key: None,
        algorithm: None,
        client_metadata_url: None,
        allow_missing_pkce: false,
    };
    for member in &object.properties {
        let path = format!("oauth.{}", key(member));
        match key(member) {
            "clientId" => oauth.client_id = Some(reader.referring(member, &path, References::Literal)?),
            "clientSecret" => {
                let text = reader.referring(member, &path, References::Filled)?;
                reader.warn_of_plain_secret(member, &path, &text, "CLIENT_SECRET");
                oauth.client_secret = Some(text);
            }
            "scopes" => oauth.scopes = Some(scopes(reader, member, &path)?),
            "issuer" => oauth.issuer = Some(secure_url(reader, member, &path)?.0),
            "redirect" => {
                let choices = [
                    ("auto", Redirect::Auto),
                    ("deep-link", Redirect::DeepLink),
                    ("loopback", Redirect::Loopback),
                ];
                oauth.redirect = reader.choice(member, &path, &choices)?;
            }
            "grant" => {
                let choices = [
                    ("authorization_code", Grant::AuthorizationCode),
                    ("client_credentials", Grant::ClientCredentials),
                ];
                oauth.grant = reader.choice(member, &path, &choices)?;
            }
            "clientAuth" => {
                let choices = [
                    ("secret", ClientAuth::Secret),
                    ("private_key_jwt", ClientAuth::PrivateKeyJwt),
                ];
                oauth.client_auth = reader.choice(member, &path, &choices)?;
            }
            "privateKey" => {
                let text = reader.referring(member, &path, References::Filled)?;
                reader.warn_of_plain_secret(member, &path, &text, "KEY");
                oauth.private_key = Some(text);
            }
            "algorithm" => oauth.algorithm = Some(reader.choice(member, &path, &ALGORITHMS)?.to_owned()),
            "clientMetadataUrl" => oauth.client_metadata_url = Some(secure_url(reader, member, &path)?.1),
            "allowMissingPkce" => oauth.allow_missing_pkce = reader.boolean(member, &path)?,
            other => {
                let hint = super::similar(other, &MEMBERS);
                reader.unknown(member, &path, hint)?;
            }
        }
    }
    check_together(reader, property.value.start(), &oauth)?;
    Ok(oauth)
}

fn check_together(reader: &Reader<'_>, offset: usize, oauth: &OAuth) -> Result<(), Notice> {
    let needs = |what: &str, missing: &str| Err(reader.fault(offset, format!("{what} needs \"{missing}\"; add it")));
    if oauth.client_auth == ClientAuth::PrivateKeyJwt {
        let with = "\"oauth.clientAuth\": \"private_key_jwt\"";
        if oauth.client_id.is_none() {
            return needs(with, "oauth.clientId");
        }
        if oauth.private_key.is_none() {
            return needs(with, "oauth.privateKey");
        }
        if oauth.algorithm.is_none() {
            return needs(with, "oauth.algorithm");
        }
    }
    if oauth.grant == Grant::ClientCredentials {
        let with = "\"oauth.grant\": \"client_credentials\"";
        if oauth.client_id.is_none() {
            return needs(with, "oauth.clientId");
        }
        if oauth.client_auth == ClientAuth::Secret && oauth.client_secret.is_none() {
            return needs(with, "oauth.clientSecret");
        }
    }
    Ok(())
}

fn scopes(reader: &mut Reader<'_>, member: &ObjectProp<'_>, path: &str) -> Result<Vec<String>, Notice> {
    let scopes = reader.texts(member, path, References::Literal)?;
    // RFC 6749 §3.3: scope tokens are printable ASCII without space, quote and backslash.
    let legal = |scope: &String| {
        !scope.is_empty()
            && scope
                .bytes()
                .all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\'))
    };
    match scopes.iter().position(|scope| !legal(scope)) {
        Some(index) => Err(reader.fault(
            member.value.start(),
            format!("\"{path}[{index}]\" is no scope; write each scope as its own text without spaces"),
        )),
        None => Ok(scopes),
    }
}

/// The address as written and as parsed: https, or http to this computer.
fn secure_url(reader: &mut Reader<'_>, member: &ObjectProp<'_>, path: &str) -> Result<(String, Url), Notice> {
    let text = reader.referring(member, path, References::Literal)?;
    let plain = |url: &Url| url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    match Url::parse(&text) {
        Ok(url) if plain(&url) && is_secure(&url) => Ok((text, url)),
        Ok(_) | Err(_) => Err(reader.fault(
            member.value.start(),
            format!("\"{path}\" must be an address that begins with https://, such as \"https://example.com/x\""),
        )),
    }
}
