//! The names under which secrets are kept (DESIGN §9). Pure.

use std::{fmt, sync::Arc};

use crate::ids::ConnectorId;

/// Longest name of a secret, in characters.
const MAX_NAME: usize = 128;

/// The name of one of a connector's secrets, as `${secret:NAME}` spells it: `[A-Za-z0-9_.-]{1,128}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretName(Arc<str>);

/// A text that names no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a secret's name has letters, digits, \"_\", \".\" and \"-\", at most 128 of them")]
pub struct InvalidName;

impl SecretName {
    /// # Errors
    /// [`InvalidName`]
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if text.is_empty() || text.len() > MAX_NAME || !text.chars().all(legal) {
            return Err(InvalidName);
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What one value in the keychain is. Its text is the account's name there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Account {
    /// `<id>`: the static token.
    Token(ConnectorId),
    /// `<id>:oauth`: what a sign-in gave.
    OAuth(ConnectorId),
    /// `<id>:client`: how this app is registered at the authorization server.
    Client(ConnectorId),
    /// `<id>:verifier`: sign-ins under way, by their state.
    Verifier(ConnectorId),
    /// `<id>:secret:<NAME>`
    Secret(ConnectorId, SecretName),
    /// `:trust`: the key of the trust rows.
    Trust,
}

impl Account {
    /// What a person enters for a connector: its token, or a secret by name.
    pub fn entered(id: ConnectorId, name: Option<SecretName>) -> Self {
        match name {
            Some(name) => Self::Secret(id, name),
            None => Self::Token(id),
        }
    }

    /// The connector whose it is.
    pub fn connector(&self) -> Option<&ConnectorId> {
        match self {
            Self::Token(id) | Self::OAuth(id) | Self::Client(id) | Self::Verifier(id) | Self::Secret(id, _) => Some(id),
            Self::Trust => None,
        }
    }

    /// All that a connector may have, besides its named secrets.
    pub fn unnamed_of(id: &ConnectorId) -> [Self; 4] {
        [
            Self::Token(id.clone()),
            Self::OAuth(id.clone()),
            Self::Client(id.clone()),
            Self::Verifier(id.clone()),
        ]
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(id) => write!(f, "{id}"),
            Self::OAuth(id) => write!(f, "{id}:oauth"),
            Self::Client(id) => write!(f, "{id}:client"),
            Self::Verifier(id) => write!(f, "{id}:verifier"),
            Self::Secret(id, name) => write!(f, "{id}:secret:{name}"),
            Self::Trust => f.write_str(":trust"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_spelled_as_documented() {
        let id = ConnectorId::parse("git.hub").unwrap();
        let name = SecretName::parse("X_KEY").unwrap();
        let spelled = [
            (Account::Token(id.clone()), "git.hub"),
            (Account::OAuth(id.clone()), "git.hub:oauth"),
            (Account::Client(id.clone()), "git.hub:client"),
            (Account::Verifier(id.clone()), "git.hub:verifier"),
            (Account::Secret(id, name), "git.hub:secret:X_KEY"),
            (Account::Trust, ":trust"),
        ];
        for (account, text) in spelled {
            assert_eq!(account.to_string(), text);
        }
    }

    #[test]
    fn a_name_holds_nothing_that_could_make_it_another_account() {
        for text in ["", "a:b", "a b", "ä", "a/b", &"x".repeat(129)] {
            assert!(SecretName::parse(text).is_err(), "{text}");
        }
        assert!(SecretName::parse("A.b-c_9").is_ok());
    }
}
