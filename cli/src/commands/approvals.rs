//! `approvals`, `approve`, `deny`: what waits for the person, and the person's word.

use std::{
    io::Read as _,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value, json, value::RawValue};

mod call;
mod change;
mod launch;
mod tools;

use super::Context;
use crate::{
    args::{ApprovalsArgs, ApproveArgs, DenyArgs},
    arguments::{self, Input},
    client::{Client, encoded},
    exit::Failure,
    screen::{Screen, Tone, harmless},
};

pub(super) async fn list(context: &Context, args: &ApprovalsArgs) -> Result<(), Failure> {
    let client = context.client()?;
    let path = match args.left {
        true => "/mcp/approvals?left=true",
        false => "/mcp/approvals",
    };
    let body = client.get(path).await?.ok()?;
    if body["approvals"] == json!([]) {
        is_ours_to_decide(&client).await?;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let none = match args.left {
        true => "You left no tool or prompt as it is.",
        false => "Nothing waits for you.",
    };
    context.show(&body, || {
        text(context.screen, &body, now).unwrap_or_else(|| none.to_owned())
    });
    Ok(())
}

pub(super) async fn approve(context: &Context, args: &ApproveArgs) -> Result<(), Failure> {
    let client = context.client()?;
    let launches = match &args.id {
        None => {
            is_ours_to_decide(&client).await?;
            waiting_launches(&client).await?
        }
        Some(id) if id.starts_with(LAUNCH) => std::iter::once(id).chain(&args.values).cloned().collect(),
        Some(_) => Vec::new(),
    };
    let Some(id) = args.id.as_ref().filter(|_| launches.is_empty()) else {
        return approve_launches(context, &client, launches).await;
    };
    let path = path(id);
    if id.starts_with(tools::TOOLS) {
        let body = tools::yes(&args.tools, &args.prompts, args.instructions).to_string();
        let answer = client.post(&path, body).await?.ok()?;
        context.show(&answer, || {
            format!(
                "Approved, of {}.",
                harmless(answer["approval"]["server_name"].as_str().unwrap_or_default())
            )
        });
        return Ok(());
    }
    if let Some(word) = beyond(args) {
        let body = match word {
            "same" => json!({"answer": "approve", "same": true}),
            word => json!({"answer": word}),
        };
        let answer = client.post(&path, body.to_string()).await?.ok()?;
        context.show(&answer, || format!("Answered {} with yes.", harmless(id)));
        return Ok(());
    }
    let body = match input(&client, &path, &args.values).await? {
        None => json!({"answer": "approve"}).to_string(),
        Some(Input::Typed(content)) => json!({"answer": "approve", "content": content}).to_string(),
        Some(Input::Verbatim(content)) => yes_with(&content),
    };
    let answer = client.post(&path, body).await?.ok()?;
    context.show(&answer, || match answer["authUrl"].as_str() {
        Some(page) => format!("Answered {} with yes. Sign in at:\n{}", harmless(id), harmless(page)),
        None => format!("Answered {} with yes.", harmless(id)),
    });
    Ok(())
}

/// Beside the window none of what waits there is told, which is not the same as nothing.
///
/// # Errors
/// The bridge's refusal where the window decides.
async fn is_ours_to_decide(client: &Client) -> Result<(), Failure> {
    client.get("/mcp/trust").await?.ok().map(drop)
}

/// How far a yes to a call goes beyond it.
fn beyond(args: &ApproveArgs) -> Option<&'static str> {
    match (args.until_quit, args.always, args.same) {
        (true, ..) => Some("until_quit"),
        (_, true, _) => Some("always"),
        (_, _, true) => Some("same"),
        (false, false, false) => None,
    }
}

/// Begins the id of every launch.
const LAUNCH: &str = "launch-";

async fn waiting_launches(client: &Client) -> Result<Vec<String>, Failure> {
    let body = client.get("/mcp/approvals").await?.ok()?;
    let waiting = body["approvals"].as_array().into_iter().flatten();
    let launches = waiting
        .filter(|one| one["kind"] == "launch")
        .filter_map(|one| one["id"].as_str());
    Ok(launches.map(str::to_owned).collect())
}

/// Each for itself: what changed since it was shown stays blocked, and the rest is let run.
async fn approve_launches(context: &Context, client: &Client, ids: Vec<String>) -> Result<(), Failure> {
    if ids.is_empty() {
        context.show(&json!({"ok": true, "approvals": []}), || {
            "No launch waits for you.".to_owned()
        });
        return Ok(());
    }
    let mut answers = Vec::new();
    for id in &ids {
        let answer = client
            .post(&path(id), json!({"answer": "approve"}).to_string())
            .await?
            .ok()?;
        answers.push(answer["approval"].clone());
    }
    let names = |answers: &[Value]| {
        let names = answers
            .iter()
            .map(|one| harmless(one["server_name"].as_str().unwrap_or_default()));
        names.collect::<Vec<_>>().join(", ")
    };
    let text = format!("Allowed: {}.", names(&answers));
    context.show(&json!({"ok": true, "approvals": answers}), || text);
    Ok(())
}

pub(super) async fn deny(context: &Context, args: &DenyArgs) -> Result<(), Failure> {
    let id = &args.id;
    let word = if args.block { "block" } else { "deny" };
    let body = json!({"answer": word}).to_string();
    let answer = context.client()?.post(&path(id), body).await?.ok()?;
    context.show(&answer, || format!("Answered {} with no.", harmless(id)));
    Ok(())
}

fn path(id: &str) -> String {
    format!("/mcp/approvals/{}", encoded(id))
}

/// Its digits and keys as they were given.
fn yes_with(content: &RawValue) -> String {
    format!(r#"{{"answer":"approve","content":{}}}"#, content.get())
}

/// The form's values: an object as it is, or what the form proposes with what is given in its place.
async fn input(client: &Client, path: &str, values: &[String]) -> Result<Option<Input>, Failure> {
    match values {
        [] => Ok(None),
        [only] if only == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|e| Failure::usage(format!("Standard input cannot be read: {e}.")))?;
            arguments::object(&text).map(Some).map_err(Failure::usage)
        }
        [only] if only.trim_start().starts_with('{') => arguments::object(only).map(Some).map_err(Failure::usage),
        given => {
            let pairs = arguments::pairs(given).map_err(Failure::usage)?;
            let question = client.get(path).await?.ok()?;
            let asks = &question["question"]["asks"];
            let input = arguments::typed(&pairs, Some(&asks["schema"])).map_err(Failure::usage)?;
            Ok(Some(match input {
                Input::Typed(given) => Input::Typed(filled(&asks["defaults"], given)),
                verbatim @ Input::Verbatim(_) => verbatim,
            }))
        }
    }
}

fn filled(defaults: &Value, given: Map<String, Value>) -> Map<String, Value> {
    let mut all = defaults.as_object().cloned().unwrap_or_default();
    all.extend(given);
    all
}

/// `None` where there is nothing; `now` since 1970.
fn text(screen: Screen, body: &Value, now: Duration) -> Option<String> {
    let questions = body["approvals"].as_array()?;
    let shown: Vec<_> = questions.iter().map(|question| shown(screen, question, now)).collect();
    (!shown.is_empty()).then(|| shown.join("\n\n"))
}

fn shown(screen: Screen, question: &Value, now: Duration) -> String {
    if question["kind"] == "launch" {
        return launch::shown(screen, question);
    }
    if question["kind"] == "rule" {
        return call::wish(screen, question);
    }
    if question["kind"] == "asleep" {
        return launch::asleep(screen, question);
    }
    if let Some(text) = change::shown(screen, question) {
        return text;
    }
    if question["kind"] == "tools" {
        return tools::shown(screen, question);
    }
    let word = |value: &Value| harmless(value.as_str().unwrap_or_default());
    let id = question["id"].as_str().unwrap_or_default();
    let expires = Duration::from_millis(question["expires_at"].as_u64().unwrap_or(0));
    if question["kind"] == "call" && question["question"].is_object() {
        return call::shown(screen, question, expires.saturating_sub(now));
    }
    let left = expires.saturating_sub(now).as_secs();
    let mut lines = vec![format!(
        "{}  {} asks, not Neuron Connect ({left} s left)",
        screen.paint(Tone::Title, &harmless(id)),
        word(&question["server_name"])
    )];
    let asks = &question["question"]["asks"];
    if asks.is_null() {
        // Beside the window, it alone shows what is asked.
        lines.push("  Read and answer it in the Neuron Connect window.".to_owned());
    }
    let message = asks["message"].as_str().unwrap_or_default();
    lines.extend(message.lines().map(|line| format!("  | {}", harmless(line))));
    match asks["mode"].as_str() {
        Some("form") => lines.extend(fields(asks)),
        Some("url") => {
            lines.push(format!("  It wants you to open {}", word(&asks["url"])));
            lines.push(format!("  at {}", word(&asks["host"])));
            if let Some(warning) = asks["warning"].as_str() {
                lines.push(format!("  {}", screen.paint(Tone::Bad, &harmless(warning))));
            }
            lines.push("  Approve it once you have done there what you wanted to.".to_owned());
        }
        Some(_) | None => {}
    }
    lines.join("\n")
}

fn fields(asks: &Value) -> Vec<String> {
    let required = |name: &str| {
        let list = asks["schema"]["required"].as_array();
        list.is_some_and(|list| list.iter().any(|required| required == name))
    };
    let properties = asks["schema"]["properties"].as_object();
    let line = |(name, property): (&String, &Value)| {
        let mut line = format!("  {}", harmless(name));
        if required(name) {
            line.push_str(" (needed)");
        }
        line.push_str(&format!(": {}", kind(property)));
        if let Some(proposed) = asks["defaults"].get(name) {
            line.push_str(&format!(", proposed {}", harmless(&proposed.to_string())));
        }
        let about = property["description"].as_str().or_else(|| property["title"].as_str());
        if let Some(about) = about {
            line.push_str(&format!(" – {}", harmless(about)));
        }
        line
    };
    properties.into_iter().flatten().map(line).collect()
}

/// What a field takes, in words.
fn kind(property: &Value) -> String {
    let choices = |schema: &Value| -> Option<String> {
        let titled = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
        let choice = |choice: &Value| {
            let value = choice["const"].as_str().unwrap_or_default();
            match choice["title"].as_str() {
                Some(title) if title != value => format!("{value} ({title})"),
                _ => value.to_owned(),
            }
        };
        let words: Vec<String> = match (schema["enum"].as_array(), titled) {
            (Some(plain), _) => plain.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            (None, Some(titled)) => titled.iter().map(choice).collect(),
            (None, None) => return None,
        };
        Some(harmless(&words.join(", ")))
    };
    match property["type"].as_str() {
        Some("array") => format!("several of {}", choices(&property["items"]).unwrap_or_default()),
        Some("boolean") => "true or false".to_owned(),
        Some("integer") => "a whole number".to_owned(),
        Some("number") => "a number".to_owned(),
        Some(_) | None => choices(property).map_or_else(|| "a text".to_owned(), |choices| format!("one of {choices}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_shown_as_the_upstreams_with_its_fields_and_without_tricks() {
        let body = json!({"approvals": [{
            "id": "q1", "server_name": "Post\u{1b}[31mgres", "expires_at": 61_000,
            "question": {"kind": "elicitation", "asks": {
                "mode": "form", "message": "Which?\nSay it.\u{1b}[2J",
                "schema": {"properties": {
                    "n": {"type": "integer", "description": "How many"},
                    "c": {"type": "string", "oneOf": [{"const": "v", "title": "Vegetarian"}]},
                    "m": {"type": "array", "items": {"enum": ["r", "g"]}},
                }, "required": ["n"]},
                "defaults": {"n": 3},
            }},
        }]});
        let text = text(Screen::Plain, &body, Duration::from_secs(1)).unwrap();
        assert!(!text.contains('\u{1b}'), "{text:?}");
        for part in [
            "gres asks, not Neuron Connect (60 s left)",
            "  | Which?\n  | Say it.",
            "  n (needed): a whole number, proposed 3 – How many",
            "  c: one of v (Vegetarian)",
            "  m: several of r, g",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_question_that_only_the_window_shows_says_so() {
        let body = json!({"approvals": [{"id": "q1", "server_name": "Postgres", "expires_at": 61_000}]});
        assert_eq!(
            text(Screen::Plain, &body, Duration::from_secs(1)).unwrap(),
            "q1  Postgres asks, not Neuron Connect (60 s left)\n  Read and answer it in the Neuron Connect window."
        );
    }

    #[test]
    fn what_is_given_takes_the_place_of_what_is_proposed() {
        let given = json!({"b": 2}).as_object().cloned().unwrap();
        assert_eq!(
            Value::Object(filled(&json!({"a": 1, "b": 1}), given)),
            json!({"a": 1, "b": 2})
        );
        let raw = RawValue::from_string(r#"{"n": 1.10}"#.to_owned()).unwrap();
        assert_eq!(yes_with(&raw), r#"{"answer":"approve","content":{"n": 1.10}}"#);
    }
}
