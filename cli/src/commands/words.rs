//! How the bridge's answers read in a terminal: commands in place of routes and clicks, and the screen of the window
//! where only that will do. Pure.

use neuron_bridge::secrets::KeychainFault;
use serde_json::Value;

use crate::{
    args::{ClientCommand, SecretCommand},
    client::hint,
    exit::Failure,
};

/// What the API calls by its routes, and the commands that show the same.
const ROUTES: [(&str, &str); 3] = [
    ("GET /mcp/servers", "\"neuron-connectd status\""),
    ("GET /mcp/tools", "\"neuron-connectd tools\""),
    ("GET /mcp/approvals", "\"neuron-connectd approvals\""),
];

const NO_KEYCHAIN: &str = "No keychain runs here. Start GNOME Keyring or KWallet, or run \"neuron-connectd serve --secrets \
                           file\" (or memory).";

const TO_THE_WINDOW: &str = "Its tray icon, or the command \"neuron-connect\", brings the window up.";

/// A sentence of the bridge, for somebody who has no window before them.
pub(super) fn spoken(sentence: &str) -> String {
    let mut text = sentence.replace(&KeychainFault::Absent.sentence(), NO_KEYCHAIN);
    for (route, command) in ROUTES {
        text = text.replace(&format!("{route} "), &format!("{command} "));
    }
    text
}

/// A refusal of the bridge with what this command's user can do about it.
pub(super) fn in_terminal(mut failure: Failure, command: &ClientCommand) -> Failure {
    let is_said = failure.message.is_empty();
    let (Some(code), Some(error), false) = (failure.body["code"].as_str(), failure.body["error"].as_str(), is_said)
    else {
        return failure;
    };
    // A tool's own words stay as they are.
    if code == "tool_error" || failure.message != error {
        return failure;
    }
    let error = spoken(error);
    failure.message = match (code, command) {
        ("scope_missing", command) => match screen_of(command) {
            Some(screen) => format!("Neuron Connect is open: do this in its window, {screen}. {TO_THE_WINDOW}"),
            None => error,
        },
        (_, ClientCommand::SignIn(args)) => sign_in(code, &error, &failure.body, &args.id),
        (_, command) => with_hint(error, &failure.body, connector_of(command)),
    };
    failure
}

fn with_hint(error: String, body: &Value, id: Option<&str>) -> String {
    match body["action"].as_str().and_then(|action| hint(action, id, None)) {
        Some(hint) => format!("{error} ({hint})"),
        None => error,
    }
}

/// Why a sign-in does not begin, with the line or the option that lets it.
fn sign_in(code: &str, error: &str, body: &Value, id: &str) -> String {
    let to_write =
        |line: String| format!("{error}\nWrite this into the entry of {id} in connectors.json:\n\n  {line}\n");
    match code {
        "needs_review" if body["action"] == "review" => with_hint(error.to_owned(), body, Some(id)),
        "needs_review" => format!("{error} If you know it: neuron-connectd sign-in {id} --accept-issuer ISSUER"),
        "pkce_not_supported" => to_write(r#""oauth": {"allowMissingPkce": true}"#.to_owned()),
        "needs_secret" if body["action"] == "edit" => {
            let issuer = Value::from(first_address(error).unwrap_or("…"));
            to_write(format!(r#""oauth": {{"clientId": "…", "issuer": {issuer}}}"#))
        }
        _ => with_hint(error.to_owned(), body, Some(id)),
    }
}

/// The issuer is the first one that these sentences name.
fn first_address(text: &str) -> Option<&str> {
    let is_address = |word: &&str| word.starts_with("https://") || word.starts_with("http://");
    let word = text.split_whitespace().find(is_address)?;
    Some(word.trim_end_matches(['.', ',', ';', ':']))
}

/// Where the window does what the command would.
fn screen_of(command: &ClientCommand) -> Option<String> {
    match command {
        ClientCommand::Add(_) | ClientCommand::Remove(_) | ClientCommand::Enable(_) | ClientCommand::Disable(_) => {
            Some("under Connectors".to_owned())
        }
        ClientCommand::Approvals(_)
        | ClientCommand::Approve(_)
        | ClientCommand::Deny(_)
        | ClientCommand::Rules { .. } => Some("under Approvals".to_owned()),
        ClientCommand::Activity(_) => Some("under Activity".to_owned()),
        ClientCommand::Pair(_) | ClientCommand::Clients(_) | ClientCommand::Trust(_) => {
            Some("under Assistants".to_owned())
        }
        ClientCommand::Reconnect(_)
        | ClientCommand::StopTrying(_)
        | ClientCommand::SignIn(_)
        | ClientCommand::SignOut(_)
        | ClientCommand::Secret(_)
        | ClientCommand::Logs(_) => connector_of(command).map(|id| format!("on the page of {id}")),
        ClientCommand::Status | ClientCommand::Tools(_) | ClientCommand::Call(_) | ClientCommand::Doctor => None,
    }
}

/// The one connector that the command is about.
fn connector_of(command: &ClientCommand) -> Option<&str> {
    match command {
        ClientCommand::Remove(arg)
        | ClientCommand::Enable(arg)
        | ClientCommand::Disable(arg)
        | ClientCommand::Reconnect(arg)
        | ClientCommand::StopTrying(arg)
        | ClientCommand::SignOut(arg) => Some(&arg.id),
        ClientCommand::SignIn(args) => Some(&args.id),
        ClientCommand::Secret(SecretCommand::Set(arg) | SecretCommand::Forget(arg)) => Some(&arg.id),
        ClientCommand::Logs(args) => Some(&args.id),
        ClientCommand::Status
        | ClientCommand::Tools(_)
        | ClientCommand::Call(_)
        | ClientCommand::Add(_)
        | ClientCommand::Approvals(_)
        | ClientCommand::Approve(_)
        | ClientCommand::Deny(_)
        | ClientCommand::Pair(_)
        | ClientCommand::Clients(_)
        | ClientCommand::Trust(_)
        | ClientCommand::Rules { .. }
        | ClientCommand::Activity(_)
        | ClientCommand::Doctor => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_told_as_commands_and_longer_ones_are_left() {
        assert_eq!(
            spoken("There is no connector \"x\"; GET /mcp/servers lists them."),
            "There is no connector \"x\"; \"neuron-connectd status\" lists them."
        );
        assert_eq!(spoken("See GET /mcp/tools/x now."), "See GET /mcp/tools/x now.");
    }

    #[test]
    fn a_desktop_without_a_keychain_is_told_with_the_commands_that_do_without() {
        let told = spoken(&format!("x is not available. {}", KeychainFault::Absent.sentence()));
        assert_eq!(told, format!("x is not available. {NO_KEYCHAIN}"));
    }

    #[test]
    fn the_issuer_is_read_without_what_ends_the_sentence() {
        assert_eq!(
            first_address("If it is registered at https://a.example, add"),
            Some("https://a.example")
        );
        assert_eq!(first_address("Nobody."), None);
    }
}
