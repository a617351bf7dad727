//! The MCP server that the authorization server protects, and its metadata (RFC 9728).

use hyper::{StatusCode, header};
use serde_json::{Value, json};

use crate::{
    authority::{Token, words},
    repeating,
    web::{self, Answer, Asked, Site, html, json_answer, text, with_header},
};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// RFC 9728 metadata, where this path is where it lies.
pub(crate) fn metadata(site: &Site, path: &str) -> Option<Answer> {
    let wanted = path.strip_prefix(WELL_KNOWN)?;
    let place = site.options().get("prm").to_owned();
    if place == "broken" {
        return Some(text(StatusCode::BAD_GATEWAY, "broken"));
    }
    let there = match place.as_str() {
        "path" => wanted == "/mcp",
        "root" => wanted.is_empty(),
        "none" => false,
        other => panic!("prm {other}"),
    };
    if !there {
        return Some(text(StatusCode::NOT_FOUND, "not here"));
    }
    let (base, issuer) = (site.base(), site.issuer());
    let options = site.options();
    let mut document = json!({
        "resource": options.given("resource").map_or_else(|| format!("{base}/mcp"), ToOwned::to_owned),
        "authorization_servers": [options.given("authority").unwrap_or(&issuer)],
        "bearer_methods_supported": ["header"],
    });
    if let Some(scopes) = options.given("scopes-supported") {
        document["scopes_supported"] = json!(words(scopes));
    }
    Some(json_answer(StatusCode::OK, &document))
}

fn answer_to(site: &Site, asked: &Asked, message: &Value) -> Answer {
    let id = &message["id"];
    if id.is_null() {
        return text(StatusCode::ACCEPTED, "");
    }
    let repeats = site.options().get("repeats").to_owned();
    if repeats != "no"
        && let Some(answer) = repeating::answer_to(&repeats, asked, message)
    {
        site.books().served += 1;
        return answer;
    }
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "protected", "version": "1"},
        }),
        "ping" => json!({}),
        "tools/list" => json!({"tools": [
            {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}},
            {"name": "write", "description": "Needs more.", "inputSchema": {"type": "object"}},
        ]}),
        "tools/call" => {
            let words = message["params"]["arguments"].to_string();
            json!({"content": [{"type": "text", "text": words}]})
        }
        _ => {
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown method"}});
            return json_answer(StatusCode::OK, &error);
        }
    };
    site.books().served += 1;
    json_answer(StatusCode::OK, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

pub(crate) fn answer(site: &Site, asked: &Asked) -> Answer {
    let message = asked.json();
    if site.options().is("open", "false") {
        let token = asked.authorization.strip_prefix("Bearer ").and_then(Token::read);
        let token = token.filter(|token| token.is_for(&format!("{}/mcp", site.base())));
        let token = token.filter(|_| site.options().is("refuse-tokens", "false"));
        let Some(token) = token else {
            let error = (!asked.authorization.is_empty()).then_some("invalid_token");
            let scopes = site.options().given("scopes").map(ToOwned::to_owned);
            return challenge(site, StatusCode::UNAUTHORIZED, error, scopes.as_deref());
        };
        let has = |scope: &str| token.scopes.iter().any(|given| given == scope);
        let base_scopes = site.options().get("scopes").to_owned();
        if words(&base_scopes).iter().any(|scope| !has(scope)) {
            return challenge(
                site,
                StatusCode::FORBIDDEN,
                Some("insufficient_scope"),
                Some(&base_scopes),
            );
        }
        let is_write = message["method"] == "tools/call" && message["params"]["name"] == "write";
        let step_up = site.options().given("step-up").map(ToOwned::to_owned);
        if let Some(scope) = step_up.filter(|scope| is_write && (scope == "endless" || !has(scope))) {
            let scope = if scope == "endless" {
                format!("more{}", token.scopes.len())
            } else {
                scope
            };
            return challenge(site, StatusCode::FORBIDDEN, Some("insufficient_scope"), Some(&scope));
        }
    }
    match asked.method.as_str() {
        "POST" => answer_to(site, asked, &message),
        _ => text(StatusCode::METHOD_NOT_ALLOWED, "no stream here"),
    }
}

fn challenge(site: &Site, status: StatusCode, error: Option<&str>, scopes: Option<&str>) -> Answer {
    let base = site.base();
    let options = site.options();
    let path = if options.is("prm", "root") { "" } else { "/mcp" };
    let metadata = match (options.given("challenge-metadata"), options.get("challenge")) {
        (Some(given), _) => Some(given.to_owned()),
        (None, "absolute") => Some(format!("{base}{WELL_KNOWN}{path}")),
        (None, "relative") => Some(format!("{WELL_KNOWN}{path}")),
        (None, "bare") => None,
        (None, "absent") => return text(status, "no"),
        (None, "basic") => {
            return with_header(text(status, "no"), header::WWW_AUTHENTICATE, "Basic realm=\"x\"");
        }
        (None, "odd") => {
            let page = web::answer(status, "text/html; charset=x", "<p>no</p>");
            return with_header(page, header::WWW_AUTHENTICATE, "Digest realm=\"x\", Bearer");
        }
        (None, other) => panic!("challenge {other}"),
    };
    if options.is("prm", "none") && options.given("challenge-metadata").is_none() {
        return with_header(html(status), header::WWW_AUTHENTICATE, "Bearer");
    }
    let parts = [
        ("resource_metadata", metadata.as_deref()),
        ("error", error),
        ("scope", scopes),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}=\"{}\"", (*value)?)))
        .collect();
    let header_text = format!("Bearer {}", parts.join(", "));
    with_header(text(status, "no"), header::WWW_AUTHENTICATE, header_text.trim())
}
