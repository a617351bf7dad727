//! What an entry needs from the keychain: read before anything is started or contacted, and given to nothing but what it
//! was entered for.

use std::collections::HashMap;

use http::header::AUTHORIZATION;
use secrecy::{ExposeSecret as _, SecretString};

use super::{Log, World};
use crate::{
    config::{self, Connector, Launch, Resolved},
    connector::{binding_of, cause::Cause},
    secrets::{Account, Bound, Named, SecretName},
    trust::LaunchIdentity,
};

/// The name under which the static token is hidden in results.
const TOKEN: &str = "token";

/// The values that an entry names.
#[derive(Default)]
pub(super) struct Keys {
    secrets: HashMap<String, SecretString>,
    token: Option<SecretString>,
}

/// Reads them, and hides them from now on in whatever the upstream writes. An entry that names none asks nobody.
///
/// # Errors
/// `MissingSecret` for the first that is missing or withheld, or `Keychain`.
pub(super) async fn read(world: &World, entry: &Connector, identity: LaunchIdentity, log: &Log) -> Result<Keys, Cause> {
    let names = config::secret_names(entry);
    let wants_token = config::wants_token(&entry.launch);
    if names.is_empty() && !wants_token {
        return Ok(Keys::default());
    }
    let binding = binding_of(entry, identity);
    let mut keys = Keys::default();
    for name in names {
        // The entry was checked: the two rules for names are one.
        let Ok(legal) = SecretName::parse(name) else { continue };
        let account = Account::Secret(entry.id.clone(), legal);
        let found = world.keychain.read_bound(&account, &binding).await;
        let value = given(found.map_err(Cause::Keychain)?, &format!("The secret {name}"), entry)?;
        keys.secrets.insert(name.to_owned(), value);
    }
    if wants_token {
        let account = Account::Token(entry.id.clone());
        let found = world.keychain.read_bound(&account, &binding).await;
        keys.token = Some(given(
            found.map_err(Cause::Keychain)?,
            "The token for this server",
            entry,
        )?);
    }
    log.redactor().hold_named(keys.named());
    Ok(keys)
}

impl Keys {
    pub(super) fn secret(&self, name: &str) -> Option<SecretString> {
        self.secrets.get(name).cloned()
    }

    /// Has the token sent with every request (RFC 6750 §2.1), in place of a header of the entry.
    pub(super) fn authorize(&self, resolved: &mut Resolved) {
        if let (Resolved::Http { headers, .. }, Some(token)) = (resolved, &self.token) {
            headers.retain(|(name, _)| name != AUTHORIZATION);
            let value = SecretString::from(format!("Bearer {}", token.expose_secret()));
            headers.push((AUTHORIZATION, value));
        }
    }

    fn named(&self) -> Vec<Named> {
        let secrets = self.secrets.iter().map(|(name, value)| Named {
            name: name.clone(),
            value: value.clone(),
        });
        let token = self.token.iter().map(|value| Named {
            name: TOKEN.to_owned(),
            value: value.clone(),
        });
        secrets.chain(token).collect()
    }
}

fn given(found: Bound, what: &str, entry: &Connector) -> Result<SecretString, Cause> {
    let missing = match found {
        Bound::Value(value) => return Ok(value),
        Bound::Missing => format!("{what} is not set. Enter it."),
        Bound::Withheld => match &entry.launch {
            Launch::Http(_) => format!(
                "{what} was entered for another address, so it is not sent to this one. Enter it again, or change the \
                 address back."
            ),
            Launch::Stdio(_) => format!(
                "{what} was entered for another command, so this one does not get it. Enter it again, or change the \
                 entry back."
            ),
        },
    };
    Err(Cause::MissingSecret(missing))
}
