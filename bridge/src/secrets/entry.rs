//! The secret values that an entry of `connectors.json` holds. Pure.

use secrecy::{ExposeSecret as _, SecretString};

use super::redact::{Held, is_secret_name};
use crate::config::Resolved;

/// What an entry, filled in, hands to its upstream under names that say it is secret: variables, headers, options,
/// parameters of its address.
pub fn held_by(launch: &Resolved) -> Held {
    let mut values = Vec::new();
    match launch {
        Resolved::Stdio { args, env, .. } => {
            values.extend(
                env.iter()
                    .filter(|(name, _)| is_secret_name(name))
                    .map(|(_, value)| value.clone()),
            );
            values.extend(of_options(args));
        }
        Resolved::Http {
            url, headers, oauth, ..
        } => {
            let secret = headers.iter().filter(|(name, _)| is_secret_name(name.as_str()));
            values.extend(secret.flat_map(|(_, value)| with_and_without_scheme(value)));
            let url = url.expose();
            values.extend(url.password().map(SecretString::from));
            let parameters = url.query_pairs().filter(|(name, _)| is_secret_name(name));
            values.extend(parameters.map(|(_, value)| SecretString::from(value.into_owned())));
            if let Some(oauth) = oauth {
                values.extend(oauth.client_secret.iter().chain(&oauth.private_key).cloned());
            }
        }
    }
    Held::new(&values)
}

/// What an `envFile` adds to that.
pub fn held_by_variables(variables: &[(String, String)]) -> Held {
    let secret = variables.iter().filter(|(name, _)| is_secret_name(name));
    Held::new(&secret.map(|(_, value)| value.clone().into()).collect::<Vec<_>>())
}

/// `--token=x`, and `--token` with `x` after it.
fn of_options(args: &[SecretString]) -> impl Iterator<Item = SecretString> {
    let secret_option = |arg: &str| arg.starts_with('-') && is_secret_name(arg.trim_start_matches('-'));
    let mut is_value = false;
    args.iter().filter_map(move |arg| {
        let text = arg.expose_secret();
        let was_named = std::mem::replace(&mut is_value, secret_option(text));
        match text.split_once('=') {
            Some((name, value)) if secret_option(name) || is_secret_name(name) => {
                is_value = false;
                Some(SecretString::from(value))
            }
            _ if was_named && !text.starts_with('-') => Some(arg.clone()),
            _ => None,
        }
    })
}

/// `Bearer x` is held as a whole and as `x`.
fn with_and_without_scheme(value: &SecretString) -> impl Iterator<Item = SecretString> {
    let bare = value
        .expose_secret()
        .split_once(' ')
        .map(|(_, rest)| SecretString::from(rest.trim()));
    std::iter::once(value.clone()).chain(bare)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{
        config::{self, EntryKind, Lookup},
        secrets::redact_held,
    };

    fn held(entry: &str) -> Held {
        let file = format!("{{\"servers\": {{\"x\": {entry}}}}}");
        let config = config::parse(file.as_bytes()).unwrap();
        let EntryKind::Valid(connector) = &config.entries[0].kind else {
            panic!("{:?}", config.entries[0].kind)
        };
        let lookup = Lookup {
            env: &|name| (name == "FROM_OUTSIDE").then(|| "outside-value".to_owned()),
            secret: &|_, _| None,
            home: Path::new("/home/p"),
        };
        held_by(&config::expand(connector, &lookup).unwrap())
    }

    #[test]
    fn what_a_program_is_given_under_secret_names_is_held_wherever_it_comes_from() {
        let held = held(
            r#"{"command": "x", "args": ["--token", "after-option", "--api-key=in-option", "--verbose", "plain-word"],
                "env": {"API_KEY": "literal-value", "TOKEN": "${env:FROM_OUTSIDE}", "MODE": "development", "PASSWORD": "short"}}"#,
        );
        let text = "after-option in-option literal-value outside-value plain-word development short";
        assert_eq!(
            redact_held(text, &held),
            "[REDACTED] [REDACTED] [REDACTED] [REDACTED] plain-word development short"
        );
    }

    #[test]
    fn what_a_server_is_sent_is_held_with_and_without_its_scheme() {
        let held = held(
            r#"{"url": "https://example.com/mcp?api_key=in-address&mode=development",
                "headers": {"Authorization": "Bearer plainwordtoken", "X-Api-Key": "header-value", "Accept": "application/json"}}"#,
        );
        let text = "refused plainwordtoken, header-value, in-address; development application/json example.com";
        assert_eq!(
            redact_held(text, &held),
            "refused [REDACTED], [REDACTED], [REDACTED]; development application/json example.com"
        );
    }
}
