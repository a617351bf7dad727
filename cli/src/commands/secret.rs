//! `secret set`, `secret forget`: what a connector needs and nobody may read. It is typed at a prompt that does not show
//! it, or comes through standard input; never as an argument, which other programs can see.

use std::io::{IsTerminal as _, Read as _};

use serde_json::json;

use super::Context;
use crate::{args::SecretArg, exit::Failure};

/// A pipe that gives more is no secret.
const LONGEST: u64 = 128 * 1024;

pub(super) async fn set(context: &Context, arg: &SecretArg) -> Result<(), Failure> {
    let client = context.client()?;
    let secret = read(&what(arg))?;
    let body = json!({ "id": arg.id, "name": arg.name, "secret": secret });
    let answer = client.post("/mcp/servers/secret", body.to_string()).await?.ok()?;
    context.show(&answer, || {
        format!(
            "Set {}. It is being connected: see \"neuron-connectd status\".",
            what(arg)
        )
    });
    Ok(())
}

pub(super) async fn forget(context: &Context, arg: &SecretArg) -> Result<(), Failure> {
    let body = json!({ "id": arg.id, "name": arg.name });
    let client = context.client()?;
    let answer = client
        .post("/mcp/servers/forget-secret", body.to_string())
        .await?
        .ok()?;
    context.show(&answer, || format!("Forgot {}.", what(arg)));
    Ok(())
}

fn what(arg: &SecretArg) -> String {
    match &arg.name {
        Some(name) => format!("the secret {name} of {}", arg.id),
        None => format!("the token of {}", arg.id),
    }
}

fn read(what: &str) -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        let prompt = format!("Enter {what} (it is not shown): ");
        return rpassword::prompt_password(prompt)
            .map_err(|e| Failure::failed(format!("Nothing could be read from the terminal: {e}.")));
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(LONGEST).read_to_string(&mut text);
    read.map_err(|e| Failure::failed(format!("Standard input could not be read: {e}.")))?;
    Ok(one_line_end_less(text))
}

/// `echo` ends with a line end that is no part of a secret.
fn one_line_end_less(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_end_at_the_end_is_no_part_of_a_secret() {
        for (given, taken) in [
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a", "a"),
            (" a ", " a "),
        ] {
            assert_eq!(one_line_end_less(given.to_owned()), taken, "{given:?}");
        }
    }
}
