//! Rules, and values of the file that were declined, as trust rows.

use sha2::{Digest as _, Sha256};

use super::{Declined, Rule};
use crate::{
    ids::ConnectorId,
    trust::rows::{Change, Row, RowKind},
};

impl Rule {
    /// Writes it down, in place of what it was before.
    ///
    /// # Errors
    /// Where it has no JSON, which no rule is.
    pub fn put(&self) -> Result<Change, serde_json::Error> {
        Ok(Change::Put(Row {
            kind: RowKind::Rule,
            key: self.key(),
            body: serde_json::to_string(self)?,
        }))
    }

    /// Takes it away.
    pub fn delete(&self) -> Change {
        Change::Delete(RowKind::Rule, self.key())
    }

    fn key(&self) -> String {
        format!("{}/{}", self.server, self.id)
    }
}

impl Declined {
    /// Writes it down.
    ///
    /// # Errors
    /// As [`Rule::put`].
    pub fn put(&self) -> Result<Change, serde_json::Error> {
        let body = serde_json::to_string(self)?;
        Ok(Change::Put(Row {
            kind: RowKind::Declined,
            key: self.key(&body),
            body,
        }))
    }

    /// Takes it away.
    ///
    /// # Errors
    /// As [`Rule::put`].
    pub fn delete(&self) -> Result<Change, serde_json::Error> {
        let body = serde_json::to_string(self)?;
        Ok(Change::Delete(RowKind::Declined, self.key(&body)))
    }

    fn key(&self, body: &str) -> String {
        let hash = Sha256::digest(body.as_bytes());
        let hash: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}/{hash}", self.server)
    }
}

/// The key of the setting in which the rules of a connector are kept that follow from the file where that is the authority.
pub fn said_key(server: &ConnectorId) -> String {
    format!("file_rules/{server}")
}

/// Those rules. None where there is no such row, or it makes no sense.
pub fn read_said(row: Option<&Row>) -> Option<Vec<Rule>> {
    serde_json::from_str(&row?.body).ok()
}

/// What has to be written so that the row keeps these rules, which hold whatever is launched.
pub fn put_said(server: &ConnectorId, rules: &[Rule], row: Option<&Row>) -> Option<Change> {
    let key = said_key(server);
    if rules.is_empty() {
        return row.map(|_| Change::Delete(RowKind::Setting, key));
    }
    let rules = rules.iter().map(|rule| Rule {
        launch: None,
        ..rule.clone()
    });
    let body = serde_json::to_string(&rules.collect::<Vec<_>>()).ok()?;
    let is_kept = row.is_some_and(|row| row.body == body);
    (!is_kept).then_some(Change::Put(Row {
        kind: RowKind::Setting,
        key,
        body,
    }))
}

/// Takes away all that is about a connector.
pub fn drop_all(server: &ConnectorId) -> Vec<Change> {
    let said = Change::Delete(RowKind::Setting, said_key(server));
    [RowKind::Rule, RowKind::Declined]
        .into_iter()
        .map(|kind| Change::DeleteAll {
            kind,
            key_prefix: format!("{server}/"),
        })
        .chain([said])
        .collect()
}

/// The rules in these rows. One that cannot be read allows nothing and denies nothing: it is left out, and told.
pub fn read(rows: &[Row]) -> Vec<Rule> {
    let read = rows
        .iter()
        .filter_map(|row| match serde_json::from_str::<Rule>(&row.body) {
            Ok(rule) if rule.key() == row.key => Some(rule),
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(%error, "a rule is not understood and left out");
                None
            }
        });
    read.collect()
}

/// The declined values in these rows.
pub fn read_declined(rows: &[Row]) -> Vec<Declined> {
    let read = rows.iter().filter_map(|row| serde_json::from_str(&row.body).ok());
    read.collect()
}
