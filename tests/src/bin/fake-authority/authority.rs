//! The authorization server: metadata, registration, the sign-in page, tokens, revocation.

use std::{
    collections::{HashMap, HashSet},
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use hyper::{StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    mcp,
    web::{Answer, Asked, Site, html, json_answer, text, with_header},
};

const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OIDC: &str = "/.well-known/openid-configuration";

/// What it remembers.
#[derive(Default)]
pub(crate) struct Books {
    pub(crate) clients: HashMap<String, Client>,
    codes: HashMap<String, Code>,
    refresh: HashMap<String, Grant>,
    used: HashSet<String>,
    revoked: Vec<String>,
    issued: usize,
    refreshed: usize,
    replayed: usize,
    registered: usize,
    authorized: usize,
    /// Requests that the MCP server answered.
    pub(crate) served: usize,
    /// When the newest token is over, in Unix milliseconds.
    newest_until: u128,
}

impl Books {
    pub(crate) fn counts(&self) -> Value {
        json!({
            "registered": self.registered,
            "authorized": self.authorized,
            "issued": self.issued,
            "refreshed": self.refreshed,
            "replayed": self.replayed,
            "revoked": self.revoked,
            "served": self.served,
            "over": u64::from(self.newest_until <= now()),
        })
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    redirects: Vec<String>,
    method: String,
    secret: Option<String>,
}

struct Code {
    client: String,
    redirect: String,
    challenge: String,
    grant: Grant,
}

#[derive(Clone)]
struct Grant {
    client: String,
    scopes: Vec<String>,
    resource: String,
}

/// An access token; it carries what it is good for, so that a server of another process can read it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) scopes: Vec<String>,
    resource: String,
    /// Unix milliseconds.
    until: u128,
    number: usize,
}

impl Token {
    /// Reads one that is not over.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix("at.")?).ok()?;
        let token: Self = serde_json::from_slice(&bytes).ok()?;
        (token.until > now()).then_some(token)
    }

    /// Whether it is meant for this server; one without a resource is for everybody.
    pub(crate) fn is_for(&self, server: &str) -> bool {
        self.resource.is_empty() || server.starts_with(self.resource.trim_end_matches('/'))
    }

    fn write(&self) -> String {
        let bytes = serde_json::to_vec(self).expect("plain data");
        format!("at.{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(ToOwned::to_owned).collect()
}

fn now() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_millis()
}

fn error(status: StatusCode, code: &str) -> Answer {
    json_answer(status, &json!({"error": code, "error_description": "as told"}))
}

pub(crate) fn answer(site: &Site, asked: &Asked) -> Answer {
    if let Some(answer) = mcp::metadata(site, &asked.path).or_else(|| metadata(site, &asked.path)) {
        return answer;
    }
    let path = asked.path.clone();
    let issuer_path = site.options().get("issuer-path").to_owned();
    match (asked.method.as_str(), path.strip_prefix(&issuer_path).unwrap_or(&path)) {
        ("POST", "/register") => register(site, asked),
        ("GET", "/authorize") => authorize(site, asked),
        ("POST", "/token") => token(site, asked),
        ("POST", "/revoke") => {
            let token = asked.form().remove("token").unwrap_or_default();
            let mut books = site.books();
            books.refresh.remove(&token);
            books.revoked.push(token);
            json_answer(StatusCode::OK, &json!({}))
        }
        _ => text(StatusCode::NOT_FOUND, "nothing here"),
    }
}

fn metadata(site: &Site, path: &str) -> Option<Answer> {
    if !path.contains(OAUTH) && !path.contains(OIDC) {
        return None;
    }
    let issuer = site.issuer();
    let options = site.options();
    let tenant = options.get("issuer-path");
    let there = match options.get("metadata") {
        "inserted" => path == format!("{OAUTH}{tenant}"),
        "appended" => path == format!("{tenant}{OAUTH}"),
        "root" => path == OAUTH,
        "oidc" => path == format!("{OIDC}{tenant}"),
        "oidc-appended" => path == format!("{tenant}{OIDC}"),
        "none" => false,
        "broken" => return Some(text(StatusCode::BAD_GATEWAY, "broken")),
        other => panic!("metadata {other}"),
    };
    if !there {
        return Some(html(StatusCode::NOT_FOUND));
    }
    let own = |name: &str, path: &str| {
        options
            .given(name)
            .map_or_else(|| format!("{issuer}{path}"), ToOwned::to_owned)
    };
    let mut document = json!({
        "issuer": options.given("metadata-issuer").unwrap_or(&issuer),
        "authorization_endpoint": own("authorization-endpoint", "/authorize"),
        "token_endpoint": own("token-endpoint", "/token"),
        "revocation_endpoint": own("revocation-endpoint", "/revoke"),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "token_endpoint_auth_methods_supported": words(options.get("auth-methods")),
        "authorization_response_iss_parameter_supported": options.is("iss-advertised", "true"),
        "client_id_metadata_document_supported": options.is("metadata-documents", "true"),
    });
    match options.get("registration") {
        "absent" => {}
        "null" => document["registration_endpoint"] = Value::Null,
        _ => document["registration_endpoint"] = own("registration-endpoint", "/register").into(),
    }
    match options.get("pkce") {
        "none" => {}
        method => document["code_challenge_methods_supported"] = json!([method]),
    }
    if let Some(scopes) = options.given("authority-scopes") {
        document["scopes_supported"] = json!(words(scopes));
    }
    Some(json_answer(StatusCode::OK, &document))
}

fn is_web(redirect: &str) -> bool {
    redirect.starts_with("http://127.0.0.1")
        || redirect.starts_with("http://localhost")
        || redirect.starts_with("https:")
}

fn register(site: &Site, asked: &Asked) -> Answer {
    let mode = site.options().get("registration").to_owned();
    let wish = asked.json();
    let mut redirects: Vec<String> = serde_json::from_value(wish["redirect_uris"].clone()).unwrap_or_default();
    match mode.as_str() {
        "refused" => return error(StatusCode::FORBIDDEN, "access_denied"),
        "absent" | "null" => return text(StatusCode::NOT_FOUND, "nothing here"),
        "html" => return html(StatusCode::OK),
        "refuses-scheme" if !redirects.iter().all(|redirect| is_web(redirect)) => {
            return error(StatusCode::BAD_REQUEST, "invalid_redirect_uri");
        }
        "drops-scheme" => redirects.retain(|redirect| is_web(redirect)),
        _ => {}
    }
    let options = site.options();
    let supported = words(options.get("auth-methods"));
    let method = options
        .given("method-returned")
        .or(supported.first().map(String::as_str));
    let method = method.unwrap_or("none").to_owned();
    let mut books = site.books();
    books.registered += 1;
    let id = format!("client-{}", books.registered);
    let secret = (method != "none").then(|| format!("secret-of-{id}"));
    let mut answer = json!({
        "client_id": id,
        "redirect_uris": redirects,
        "token_endpoint_auth_method": method,
        "grant_types": wish["grant_types"],
    });
    if let Some(secret) = &secret {
        answer["client_secret"] = secret.as_str().into();
        answer["client_secret_expires_at"] = 0.into();
    }
    let client = Client {
        redirects,
        method,
        secret,
    };
    books.clients.insert(id, client);
    json_answer(StatusCode::CREATED, &answer)
}

fn client(site: &Site, id: &str) -> Option<Client> {
    let options = site.options();
    if options.given("client-id") == Some(id) {
        return Some(Client {
            redirects: Vec::new(),
            method: words(options.get("auth-methods")).swap_remove(0),
            secret: options.given("client-secret").map(ToOwned::to_owned),
        });
    }
    if options.is("metadata-documents", "true") && id.starts_with("https://") {
        return Some(Client {
            redirects: Vec::new(),
            method: "none".to_owned(),
            secret: None,
        });
    }
    site.books().clients.get(id).cloned()
}

fn authorize(site: &Site, asked: &Asked) -> Answer {
    let value = |name: &str| asked.query.get(name).cloned().unwrap_or_default();
    let (id, redirect) = (value("client_id"), value("redirect_uri"));
    let Some(client) = client(site, &id) else {
        return text(StatusCode::BAD_REQUEST, "unknown client");
    };
    let mode = site.options().get("authorize").to_owned();
    let registered = client.redirects.is_empty()
        || client.redirects.contains(&redirect)
        || site.options().is("redirects", "any-port") && is_web(&redirect);
    if !registered || (mode == "refuses-scheme" && !is_web(&redirect)) {
        return text(StatusCode::BAD_REQUEST, "this redirect address is not allowed");
    }
    if value("code_challenge_method") != "S256" || value("code_challenge").is_empty() {
        return text(StatusCode::BAD_REQUEST, "PKCE is needed");
    }
    let issuer = site.issuer();
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("state", &value("state"));
    match site.options().get("iss") {
        "right" => drop(query.append_pair("iss", &issuer)),
        "wrong" => drop(query.append_pair("iss", "https://someone-else.example")),
        "slash" => drop(query.append_pair("iss", &format!("{issuer}/"))),
        "absent" => {}
        other => panic!("iss {other}"),
    }
    if mode == "deny" {
        query.append_pair("error", "access_denied");
        query.append_pair("error_description", "SENTINEL words of the server");
    } else {
        let mut books = site.books();
        books.authorized += 1;
        let code = format!("code-{}-of-the-authority", books.authorized);
        query.append_pair("code", &code);
        let grant = Grant {
            client: id.clone(),
            scopes: words(&value("scope")),
            resource: value("resource"),
        };
        let challenge = value("code_challenge");
        let kept = Code {
            client: id,
            redirect: redirect.clone(),
            challenge,
            grant,
        };
        books.codes.insert(code, kept);
    }
    let place = format!("{redirect}?{}", query.finish());
    with_header(text(StatusCode::FOUND, "go back"), header::LOCATION, &place)
}

/// The client that a token request comes from, where it proves that.
fn authenticated(site: &Site, asked: &Asked, form: &HashMap<String, String>) -> Option<String> {
    let basic = asked.authorization.strip_prefix("Basic ").and_then(|text| {
        let text = String::from_utf8(STANDARD.decode(text).ok()?).ok()?;
        let (id, secret) = text.split_once(':')?;
        let plain = |text: &str| {
            url::form_urlencoded::parse(text.as_bytes())
                .next()
                .map(|(name, _)| name.into_owned())
        };
        Some((plain(id)?, plain(secret)?))
    });
    let (id, used, secret) = match basic {
        Some((id, secret)) => (id, "client_secret_basic", Some(secret)),
        None => {
            let id = form.get("client_id").cloned().unwrap_or_default();
            if form.contains_key("client_assertion") {
                return Some(id);
            }
            let secret = form.get("client_secret").cloned();
            let used = if secret.is_some() { "client_secret_post" } else { "none" };
            (id, used, secret)
        }
    };
    let client = client(site, &id)?;
    (client.method == used && client.secret == secret).then_some(id)
}

fn token(site: &Site, asked: &Asked) -> Answer {
    let form = asked.form();
    let value = |name: &str| form.get(name).cloned().unwrap_or_default();
    let kind = value("grant_type");
    let (fails, which) = {
        let options = site.options();
        (
            options.get("token-fails").to_owned(),
            options.get("token-fails-for").to_owned(),
        )
    };
    let concerned = match which.as_str() {
        "all" => true,
        "refresh" => kind == "refresh_token",
        "code" => kind == "authorization_code",
        other => panic!("token-fails-for {other}"),
    };
    if concerned {
        match fails.as_str() {
            "no" => {}
            "html" => return html(StatusCode::BAD_REQUEST),
            "repeats" => {
                // A broken server, or one that wants it to be logged.
                let sent = format!("{} {}", String::from_utf8_lossy(&asked.body), asked.authorization);
                let first = form.get("code_verifier").or(form.get("refresh_token"));
                let answer = json!({
                    "error": first.unwrap_or(&sent), "error_description": sent, "error_uri": format!("https://x.example/?{sent}"),
                });
                return json_answer(StatusCode::BAD_REQUEST, &answer);
            }
            "redirect" => {
                let place = format!("{}/token", site.base());
                return with_header(text(StatusCode::TEMPORARY_REDIRECT, ""), header::LOCATION, &place);
            }
            other => {
                return match other.parse::<u16>() {
                    Ok(status) => html(StatusCode::from_u16(status).expect("a status")),
                    Err(_) => error(StatusCode::BAD_REQUEST, other),
                };
            }
        }
    }
    let Some(id) = authenticated(site, asked, &form) else {
        return error(StatusCode::UNAUTHORIZED, "invalid_client");
    };
    let grant = match kind.as_str() {
        "authorization_code" => {
            let Some(code) = site.books().codes.remove(&value("code")) else {
                return error(StatusCode::BAD_REQUEST, "invalid_grant");
            };
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(value("code_verifier")));
            if code.client != id || code.redirect != value("redirect_uri") || code.challenge != challenge {
                return error(StatusCode::BAD_REQUEST, "invalid_grant");
            }
            code.grant
        }
        "refresh_token" => {
            let old = value("refresh_token");
            let rotates = site.options().is("refresh", "rotate");
            let mut books = site.books();
            if books.used.contains(&old) {
                books.replayed += 1;
            }
            let Some(grant) = books.refresh.get(&old).filter(|grant| grant.client == id).cloned() else {
                return error(StatusCode::BAD_REQUEST, "invalid_grant");
            };
            if rotates {
                books.refresh.remove(&old);
                books.used.insert(old);
            }
            books.refreshed += 1;
            grant
        }
        "client_credentials" => Grant {
            client: id,
            scopes: words(&value("scope")),
            resource: value("resource"),
        },
        _ => return error(StatusCode::BAD_REQUEST, "unsupported_grant_type"),
    };
    issue(site, &kind, grant)
}

fn issue(site: &Site, kind: &str, grant: Grant) -> Answer {
    let options = site.options();
    let lifetime: u64 = options.get("lifetime").parse().expect("seconds");
    let mut books = site.books();
    books.issued += 1;
    let number = books.issued;
    let until = now() + u128::from(lifetime) * 1000;
    books.newest_until = until;
    let token = Token {
        scopes: grant.scopes.clone(),
        resource: grant.resource.clone(),
        until,
        number,
    };
    let mut answer = json!({
        "access_token": token.write(),
        "token_type": "Bearer",
        "expires_in": lifetime,
        "scope": grant.scopes.join(" "),
    });
    let gives = match options.get("refresh") {
        "rotate" => kind != "client_credentials",
        "keep" => kind == "authorization_code",
        "none" => false,
        other => panic!("refresh {other}"),
    };
    if gives {
        let refresh = format!("rt-{number}-of-the-authority");
        answer["refresh_token"] = refresh.as_str().into();
        books.refresh.insert(refresh, grant);
    }
    json_answer(StatusCode::OK, &answer)
}
