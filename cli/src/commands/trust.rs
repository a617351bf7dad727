//! `pair`, `clients`, `trust`: who may use the API, and on what terms.

use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use serde_json::{Map, Value, json};

use super::Context;
use crate::{
    args::{ClientsArgs, PairArgs, TrustArgs},
    client::{Client, encoded},
    exit::Failure,
    screen::{complain, harmless},
};

/// A program may ask for two minutes.
const ASKED_WITHIN: Duration = Duration::from_secs(125);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Opens pairing, waits for a program that asks, and takes the code that it shows.
pub(super) async fn pair(context: &Context, args: &PairArgs) -> Result<(), Failure> {
    let client = context.client()?;
    client
        .post("/mcp/pairing", json!({"open": true}).to_string())
        .await?
        .ok()?;
    eprintln!("Pairing is open for two minutes. Let the assistant ask now; it shows six digits.");
    loop {
        let request = tokio::time::timeout(ASKED_WITHIN, asked(&client)).await;
        let request = request.unwrap_or_else(|_| Err(Failure::failed("No assistant asked within two minutes.")))?;
        let name = harmless(request["name"].as_str().unwrap_or_default());
        let part = |name: &str| request["program"][name].as_str().map(harmless);
        let path = part("path").unwrap_or_else(|| "a program that is not known".to_owned());
        let script = part("script").map_or_else(String::new, |script| format!(" running {script}"));
        eprintln!("\"{name}\" asks, from {path}{script}.");
        match typed(args, &client, &request["id"]).await? {
            Typed::Paired(paired) => {
                context.show(&paired, || {
                    format!(
                        "Paired {name} as {}.",
                        paired["client"]["id"].as_str().unwrap_or_default()
                    )
                });
                return Ok(());
            }
            Typed::TurnedAway => eprintln!("Turned away. Another assistant may ask in the time that is left."),
        }
    }
}

/// What became of a program that asked.
enum Typed {
    Paired(Value),
    TurnedAway,
}

async fn typed(args: &PairArgs, client: &Client, id: &Value) -> Result<Typed, Failure> {
    loop {
        let code = code()?;
        if code == "n" {
            let body = json!({"turn_away": id});
            client.post("/mcp/pairing", body.to_string()).await?.ok()?;
            return Ok(Typed::TurnedAway);
        }
        let body = json!({"answer": {
            "pairing_id": id,
            "code": code,
            "terms": {
                "scopes": args.scopes(),
                "servers": (!args.server.is_empty()).then_some(&args.server),
                "asks_itself": args.asks_itself,
            },
        }});
        let answer = client.post("/mcp/pairing", body.to_string()).await?.ok();
        match answer {
            Ok(paired) => return Ok(Typed::Paired(paired)),
            // Another try is left.
            Err(failure) if failure.body["code"] == "bad_request" && std::io::stdin().is_terminal() => {
                complain(&failure.message);
            }
            Err(failure) => return Err(failure),
        }
    }
}

async fn asked(client: &Client) -> Result<Value, Failure> {
    loop {
        let body = client.get("/mcp/pairing").await?.ok()?;
        match &body["pairing"] {
            Value::Null => {
                return Err(Failure::failed(
                    "Pairing is over: nobody asked in time, or it was closed.",
                ));
            }
            pairing if pairing["request"].is_object() => return Ok(pairing["request"].clone()),
            _ => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

fn code() -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        eprint!("The code that it shows, or n to turn it away: ");
        // A prompt that is not shown is answered all the same.
        let _ = std::io::stderr().flush();
    }
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    match read {
        Ok(1..) => Ok(line.trim().to_owned()),
        Ok(_) => Err(Failure::failed("No code was given.")),
        Err(error) => Err(Failure::failed(format!("Standard input cannot be read: {error}."))),
    }
}

/// Shows the paired clients, or revokes one.
pub(super) async fn clients(context: &Context, args: &ClientsArgs) -> Result<(), Failure> {
    let client = context.client()?;
    if let Some(id) = &args.revoke {
        let answer = client.delete(&format!("/mcp/clients/{}", encoded(id))).await?.ok()?;
        context.show(&answer, || format!("{} is not paired any more.", harmless(id)));
        return Ok(());
    }
    let body = client.get("/mcp/clients").await?.ok()?;
    context.show(&body, || listed(&body));
    Ok(())
}

fn listed(body: &Value) -> String {
    let clients = body["clients"].as_array().map_or(&[][..], Vec::as_slice);
    if clients.is_empty() {
        return "No assistant is paired.".to_owned();
    }
    let words = |list: &Value| {
        let words = list.as_array().into_iter().flatten();
        let words: Vec<_> = words.filter_map(Value::as_str).map(harmless).collect();
        words.join(", ")
    };
    let line = |client: &Value| {
        let word = |member: &str| harmless(client[member].as_str().unwrap_or_default());
        let servers = match &client["servers"] {
            Value::Null => "all connectors".to_owned(),
            servers => words(servers),
        };
        let used = match client["last_used_at"].is_number() {
            true => "used",
            false => "not used yet",
        };
        format!(
            "{}  {}: {} ({servers}); {used}",
            word("id"),
            word("name"),
            words(&client["scopes"])
        )
    };
    clients.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Shows what holds for all callers, and changes it.
pub(super) async fn trust(context: &Context, args: &TrustArgs) -> Result<(), Failure> {
    let client = context.client()?;
    let mut change = Map::new();
    if let Some(api) = args.api {
        change.insert("api_mode".to_owned(), api.word().into());
    }
    if let Some(walk_in) = args.walk_in {
        change.insert("walk_in".to_owned(), walk_in.word().into());
    }
    if args.pause || args.resume {
        change.insert("paused".to_owned(), args.pause.into());
    }
    if !args.allow_page.is_empty() || !args.forbid_page.is_empty() {
        let now = client.get("/mcp/trust").await?.ok()?;
        let pages = pages(&now, &args.allow_page, &args.forbid_page).map_err(Failure::usage)?;
        change.insert("allowed_origins".to_owned(), pages.into());
    }
    let answer = match change.is_empty() {
        true => client.get("/mcp/trust").await?,
        false => client.post("/mcp/trust", Value::Object(change).to_string()).await?,
    };
    let body = answer.ok()?;
    context.show(&body, || told(&body));
    Ok(())
}

/// Those that may use the API from now on.
fn pages(now: &Value, allowed: &[String], forbidden: &[String]) -> Result<Vec<String>, String> {
    // As browsers send it, also where it was copied from an address bar.
    let origin = |page: &String| page.strip_suffix('/').unwrap_or(page).to_lowercase();
    let now = now["allowed_origins"].as_array().into_iter().flatten();
    let mut pages: Vec<String> = now.filter_map(Value::as_str).map(str::to_owned).collect();
    for page in forbidden.iter().map(origin) {
        if !pages.contains(&page) {
            return Err(format!("{} is not allowed; nothing was changed.", harmless(&page)));
        }
        pages.retain(|known| *known != page);
    }
    for page in allowed.iter().map(origin) {
        if !pages.contains(&page) {
            pages.push(page);
        }
    }
    Ok(pages)
}

fn told(body: &Value) -> String {
    let api = match body["api_mode"].as_str() {
        Some("token") if body["api_mode_assumed"] == true => {
            "Programs need a token, because what you had decided is lost or cannot be read: trust --api open lets them in."
        }
        Some("token") => "Programs need a token.",
        Some(_) | None => "Programs of this user need no token.",
    };
    let walk_in = match body["walk_in"].as_str() {
        Some("allow") => "Calls without a token go on unless a rule denies them.",
        Some(_) | None => "Calls without a token that no rule allows wait for you.",
    };
    let pages = body["allowed_origins"].as_array().into_iter().flatten();
    let pages: Vec<_> = pages.filter_map(Value::as_str).map(harmless).collect();
    let pages = match pages.is_empty() {
        true => "No web page may use the API.".to_owned(),
        false => format!("These web pages may use the API: {}.", pages.join(", ")),
    };
    let mut lines = vec![api.to_owned(), walk_in.to_owned(), pages];
    if body["paused"] == true {
        lines.push("Everything is paused.".to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_with_what_they_may() {
        assert_eq!(listed(&json!({"clients": []})), "No assistant is paired.");
        let body = json!({"clients": [{
            "id": "a1", "name": "Claude\u{1b}[2J Code", "scopes": ["read", "call"], "servers": ["files"],
            "last_used_at": 5,
        }]});
        let text = listed(&body);
        assert!(
            text.starts_with("a1  ") && text.ends_with("read, call (files); used"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn what_holds_for_all_is_told_in_words() {
        let text = told(
            &json!({"api_mode": "token", "walk_in": "allow", "paused": true, "allowed_origins": ["https://a.example"]}),
        );
        assert_eq!(text.lines().count(), 4);
        assert!(text.contains("may use the API: https://a.example."), "{text}");
        let assumed = told(&json!({"api_mode": "token", "api_mode_assumed": true}));
        assert!(assumed.contains("trust --api open"), "{assumed}");
        let default = told(&json!({"api_mode": "open", "walk_in": "ask", "paused": false}));
        assert!(
            default.contains("need no token") && default.contains("wait for you") && default.contains("No web page"),
            "{default}"
        );
    }

    #[test]
    fn a_page_is_allowed_once_as_browsers_send_it_and_forbidden_only_where_it_was_allowed() {
        let now = json!({"allowed_origins": ["https://a.example"]});
        let say = |allowed: &[&str], forbidden: &[&str]| {
            let owned = |pages: &[&str]| pages.iter().map(|page| (*page).to_owned()).collect::<Vec<_>>();
            pages(&now, &owned(allowed), &owned(forbidden))
        };
        let two = vec!["https://a.example".to_owned(), "https://b.example:8443".to_owned()];
        assert_eq!(say(&["https://B.example:8443/", "https://a.example"], &[]), Ok(two));
        assert_eq!(say(&[], &["https://a.example/"]), Ok(Vec::new()));
        assert!(
            say(&[], &["https://c.example"])
                .unwrap_err()
                .contains("nothing was changed")
        );
    }
}
