//! Tokens and named secrets: setting and forgetting them, and the keychain that has them. They are never read back.

use std::{sync::Arc, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};

use super::{BridgeHandle, wishes};
use crate::{
    config::{self, Connector, Launch},
    connector::{Door, binding_of},
    error::{ApiError, Code},
    ids::ConnectorId,
    secrets::{Account, Binding, Bound, KeychainFault, SecretName},
    snapshot::{ActivityChange, KeychainView, SecretView},
};

/// Longest secret, in bytes: keys and certificates are a few thousand. A request's body (64 KiB) holds one, with its line
/// breaks and quotation marks escaped.
const LONGEST_SECRET: usize = 30 * 1024;
/// A detail does not wait longer than this for the keychain; it then says that nothing is known.
const SEEN_WITHIN: Duration = Duration::from_millis(500);

impl BridgeHandle {
    /// Keeps a connector's token (`name` = `None`) or named secret in place of an earlier one, for what its entry says
    /// now, and connects it anew.
    ///
    /// # Errors
    /// `unknown_server`, `unavailable` for an entry that cannot be used, `bad_request` for a value that cannot be sent or a
    /// name that the entry does not mention, `too_large`, `keychain_unavailable`; `needs_review` where it would go to what
    /// the person did not look at.
    pub async fn set_secret(
        &self,
        id: ConnectorId,
        name: Option<SecretName>,
        value: SecretString,
    ) -> Result<(), ApiError> {
        self.keep_secret(id, name, value, None).await
    }

    /// As [`BridgeHandle::set_secret`]; `shown` is where the person was shown that it goes.
    pub(super) async fn keep_secret(
        &self,
        id: ConnectorId,
        name: Option<SecretName>,
        value: SecretString,
        shown: Option<&Binding>,
    ) -> Result<(), ApiError> {
        let door = self.door(&id)?;
        let entry = door.shared.entry();
        let value = usable(&entry, name.as_ref(), value)?;
        mentioned(&entry, name.as_ref())?;
        let world = &self.inner.world;
        let identity = world.prepare(&entry).await.identity;
        let binding = binding_of(&entry, identity);
        match shown {
            Some(shown) if *shown != binding => return Err(wishes::changed()),
            Some(_) => {}
            None if world.admission.review_on() && world.launch_in_force(&entry) != Some(identity) => {
                return Err(not_looked_at(&entry));
            }
            None => {}
        }
        let account = Account::entered(id.clone(), name.clone());
        world.keychain.write_bound(&account, &value, &binding).await?;
        let name = name.map(|name| name.to_string());
        self.record_change(id.as_str(), ActivityChange::SecretSet, name);
        connect_anew(door);
        Ok(())
    }

    /// Removes a connector's token or named secret, and connects it anew.
    ///
    /// # Errors
    /// `unknown_server`, `unavailable` for an entry that cannot be used, `keychain_unavailable`.
    pub async fn forget_secret(&self, id: ConnectorId, name: Option<SecretName>) -> Result<(), ApiError> {
        let door = self.door(&id)?;
        let account = Account::entered(id.clone(), name.clone());
        self.inner.world.keychain.delete(&account).await?;
        let name = name.map(|name| name.to_string());
        self.record_change(id.as_str(), ActivityChange::SecretForgotten, name);
        connect_anew(door);
        Ok(())
    }

    /// From now on secrets, and decisions whose key the keychain does not give, are kept in memory, until this program ends:
    /// the person's explicit choice. What the keychain holds stays there.
    pub async fn keep_until_quit(&self) -> KeychainView {
        // First: no key of rows that stay may go where it is forgotten.
        self.inner.world.ledger.keep_until_quit();
        self.inner.world.keychain.keep_until_quit();
        self.keychain_view().await
    }

    /// Looks at the keychain again because the person wants it: a locked one asks them for its password on the screen.
    pub async fn look_at_keychain(&self) -> KeychainView {
        // What it says is in the view.
        let _ = self.inner.world.keychain.look_again().await;
        self.inner.world.ledger.look_again().await;
        self.keychain_view().await
    }

    async fn keychain_view(&self) -> KeychainView {
        self.settled().await;
        let world = &self.inner.world;
        world.ledger.seen_of_keychain(world.keychain.state().borrow().clone())
    }

    /// What an entry names, and whether that is set; never a value. The keychain is asked only where the entry names
    /// something.
    pub(super) async fn secrets_of(&self, entry: &Connector) -> Vec<SecretView> {
        let wanted = wanted(entry);
        if wanted.is_empty() {
            return Vec::new();
        }
        let asked = tokio::time::timeout(SEEN_WITHIN, self.look_for(entry, &wanted)).await;
        let found = asked.unwrap_or(Err(KeychainFault::Slow)).ok();
        let view = |(index, name): (usize, Option<SecretName>)| {
            let bound = found.as_ref().and_then(|found| found.get(index));
            SecretView {
                name: name.map(|name| name.to_string()),
                set: bound.map(|bound| matches!(bound, Bound::Value(_))),
                withheld: matches!(bound, Some(Bound::Withheld)),
            }
        };
        wanted.into_iter().enumerate().map(view).collect()
    }

    async fn look_for(&self, entry: &Connector, wanted: &[Option<SecretName>]) -> Result<Vec<Bound>, KeychainFault> {
        let world = &self.inner.world;
        let binding = world.binding(entry).await;
        let mut found = Vec::new();
        for name in wanted {
            let account = Account::entered(entry.id.clone(), name.clone());
            found.push(world.keychain.read_bound(&account, &binding).await?);
        }
        Ok(found)
    }
}

/// What an entry mentions: its token (`None`), and secrets by name.
fn wanted(entry: &Connector) -> Vec<Option<SecretName>> {
    let names = config::secret_names(entry);
    let named = names.into_iter().filter_map(|name| SecretName::parse(name).ok());
    let token = config::wants_token(&entry.launch).then_some(None);
    token.into_iter().chain(named.map(Some)).collect()
}

/// Whether the entry would ever send it; the sentence says what it does mention.
pub(super) fn mentioned(entry: &Connector, name: Option<&SecretName>) -> Result<(), ApiError> {
    let wanted = wanted(entry);
    if wanted.iter().any(|wanted| wanted.as_ref() == name) {
        return Ok(());
    }
    let is_about = match name {
        Some(name) => format!("The entry of {} does not mention ${{secret:{name}}}", entry.id),
        None => format!("The entry of {} does not say \"auth\": \"token\"", entry.id),
    };
    let spelled = wanted.iter().map(|wanted| match wanted {
        Some(name) => format!("${{secret:{name}}}"),
        None => "a token".to_owned(),
    });
    let spelled: Vec<_> = spelled.collect();
    let mentions = match spelled.is_empty() {
        true => "it mentions no secret".to_owned(),
        false => format!("it mentions {}", spelled.join(", ")),
    };
    Err(ApiError::bad_request(format!(
        "{is_about}; {mentions}. Nothing was kept."
    )))
}

/// The value as it can be sent, or why it cannot; the sentence says nothing of it.
pub(super) fn usable(
    entry: &Arc<Connector>,
    name: Option<&SecretName>,
    value: SecretString,
) -> Result<SecretString, ApiError> {
    let text = value.expose_secret();
    if text.len() > LONGEST_SECRET {
        return Err(ApiError::new(
            Code::TooLarge,
            format!("This is too long for a secret: at most {} KiB.", LONGEST_SECRET / 1024),
        ));
    }
    if text.trim().is_empty() {
        return Err(ApiError::bad_request("A secret cannot be empty."));
    }
    if name.is_some() {
        return Ok(value);
    }
    if matches!(entry.launch, Launch::Stdio(_)) {
        return Err(ApiError::bad_request(format!(
            "{} is a program and takes no token; give the secret the name that its entry uses.",
            entry.id
        )));
    }
    // Pasted with what stood around it.
    let token = text.trim();
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ApiError::bad_request(
            "A token has no spaces, line breaks or other characters than letters, digits and signs; copy it again.",
        ));
    }
    Ok(SecretString::from(token))
}

fn not_looked_at(entry: &Connector) -> ApiError {
    let name = entry.name.as_deref().unwrap_or(entry.id.as_str());
    ApiError::new(
        Code::NeedsReview,
        format!(
            "Nothing was kept: what {name} runs or contacts now is not allowed yet. Look at it and allow it first, then \
             enter the key."
        ),
    )
}

fn connect_anew(door: Door) {
    // Whoever set it does not wait for the server; a connector that is off stays off.
    tokio::spawn(async move { door.reconnect().await.err() });
}
