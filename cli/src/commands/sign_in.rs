//! `sign-in`, `sign-out`: the address to open, and what came of it. The page is opened by the person, on any computer.

use std::{io::BufRead as _, time::Duration};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Context, Output};
use crate::{
    args::SignInArgs,
    client::{Client, Events},
    exit::{Exit, Failure},
    screen::{self, harmless},
};

/// The server is asked how to sign in, over several addresses.
const BEGINNING: Duration = Duration::from_secs(2 * 60);
/// A sign-in is over after ten minutes; what it comes to by then is told a moment later.
const SIGN_IN: Duration = Duration::from_secs(10 * 60 + 20);

pub(super) async fn sign_in(context: &Context, args: &SignInArgs) -> Result<(), Failure> {
    let client = context.client()?;
    // Before it begins, so that its end cannot be missed.
    let mut events = client.events().await?;
    let mut body = json!({ "id": args.id });
    if let Some(issuer) = &args.accept_issuer {
        body["accept_issuer"] = issuer.as_str().into();
    }
    let started = client
        .post_slowly("/mcp/oauth/start", body.to_string(), BEGINNING)
        .await?
        .ok()?;
    let url = started["authUrl"].as_str().unwrap_or_default().to_owned();
    // Before the address is out: who pastes at once is heard too.
    let mut pasted = lines_of_input();
    context.show(&started, || {
        format!(
            "Open this address in a browser and sign in there:\n\n  {}\n\nWaiting for the browser to come back. If it \
             cannot, paste the address where it ended here.",
            harmless(&url)
        )
    });
    let outcome = tokio::time::timeout(SIGN_IN, wait(&client, &mut events, &mut pasted, &args.id))
        .await
        .map_err(|_elapsed| {
            Failure::failed(format!(
                "Nothing came back within ten minutes. Begin again: neuron-connectd sign-in {}",
                args.id
            ))
        })??;
    end(context, &args.id, outcome)
}

pub(super) async fn sign_out(context: &Context, id: &str) -> Result<(), Failure> {
    let body = json!({ "id": id }).to_string();
    let client = context.client()?;
    let answer = client.post_slowly("/mcp/oauth/sign-out", body, BEGINNING).await?.ok()?;
    context.show(&answer, || format!("Signed out of {id}."));
    Ok(())
}

/// The event that ends the sign-in.
async fn wait(
    client: &Client,
    events: &mut Events,
    pasted: &mut mpsc::Receiver<String>,
    id: &str,
) -> Result<Value, Failure> {
    let mut reads = true;
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(event) if event["type"] == "sign_in_finished" && event["server"] == id => return Ok(event),
                Some(_) => {}
                None => return Err(Failure::no_bridge("The bridge ended before the sign-in did.")),
            },
            line = pasted.recv(), if reads => match line {
                Some(line) => hand_in(client, &line).await?,
                None => reads = false,
            },
        }
    }
}

/// Brings a pasted address where a browser would have brought it. It is secret, so it is never repeated.
async fn hand_in(client: &Client, line: &str) -> Result<(), Failure> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(());
    }
    let query = line.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    let is_answer =
        query.split('&').any(|part| part.starts_with("state=")) && query.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_answer {
        screen::complain("This is not the address where a sign-in ends; it has \"?\" and \"state=\" in it.");
        return Ok(());
    }
    // What it came to is told by an event, also where it was refused; a stranger's answer has none.
    let status = client.visit(&format!("/mcp/oauth/callback?{query}"), BEGINNING).await?;
    if status >= 400 {
        screen::complain(
            "No sign-in came of this address. If no reason follows, it belongs to another sign-in or was used already: \
             copy it again, or sign in again.",
        );
    }
    Ok(())
}

fn end(context: &Context, id: &str, outcome: Value) -> Result<(), Failure> {
    if outcome["outcome"] == "signed_in" {
        match context.output {
            Output::Json => screen::print_json(&outcome),
            Output::Text => screen::print(&format!("Signed in to {id}.")),
        }
        return Ok(());
    }
    let message = outcome["message"].as_str().unwrap_or("The sign-in did not work.");
    Err(Failure {
        exit: Exit::Failed,
        message: harmless(message),
        body: outcome,
    })
}

/// Lines of standard input, as long as there are some. Read on a thread of its own, which ends with the program: nothing
/// can interrupt it.
fn lines_of_input() -> mpsc::Receiver<String> {
    let (tell, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if tell.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
