//! Which accounts of the keychain belong to which connector, and since when a connector with some has no entry. Names
//! only: never a value.

use std::collections::HashSet;

use rusqlite::{OptionalExtension as _, params};

use super::{Store, StoreError};
use crate::ids::ConnectorId;

pub(super) const SCHEMA: &str = "
    CREATE TABLE secret_accounts (
        connector TEXT NOT NULL,
        account   TEXT NOT NULL,
        PRIMARY KEY (connector, account)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE secret_owners (
        connector TEXT PRIMARY KEY,
        missed_at INTEGER,
        to_clear  INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;
";

impl Store {
    /// Notes that an account may hold something of the connector.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn note_secret(&self, id: &ConnectorId, account: &str) -> Result<(), StoreError> {
        self.with(|db| {
            db.execute(
                "INSERT OR IGNORE INTO secret_accounts (connector, account) VALUES (?1, ?2)",
                params![id.as_str(), account],
            )?;
            db.execute(
                "INSERT OR IGNORE INTO secret_owners (connector) VALUES (?1)",
                params![id.as_str()],
            )
            .map(drop)
        })
    }

    /// The accounts that were noted for the connector.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn secrets_of(&self, id: &ConnectorId) -> Result<Vec<String>, StoreError> {
        self.with(|db| {
            let mut accounts = db.prepare_cached("SELECT account FROM secret_accounts WHERE connector = ?1")?;
            let rows = accounts.query_map(params![id.as_str()], |row| row.get(0))?;
            rows.collect()
        })
    }

    /// Remembers that everything of the connector is to be removed from the keychain.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn secrets_are_to_be_cleared(&self, id: &ConnectorId) -> Result<(), StoreError> {
        self.with(|db| {
            db.execute(
                "INSERT INTO secret_owners (connector, to_clear) VALUES (?1, 1)
                 ON CONFLICT (connector) DO UPDATE SET to_clear = 1",
                params![id.as_str()],
            )
            .map(drop)
        })
    }

    /// The connectors whose removal was not finished.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn secrets_to_clear(&self) -> Result<Vec<ConnectorId>, StoreError> {
        self.with(|db| ids(db, "SELECT connector FROM secret_owners WHERE to_clear = 1"))
    }

    /// Everything of the connector is gone.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn secrets_cleared(&self, id: &ConnectorId) -> Result<(), StoreError> {
        self.with(|db| {
            let change = db.transaction()?;
            change.execute("DELETE FROM secret_accounts WHERE connector = ?1", params![id.as_str()])?;
            change.execute("DELETE FROM secret_owners WHERE connector = ?1", params![id.as_str()])?;
            change.commit()
        })
    }

    /// Notes which connectors with secrets have no entry at `now`, and gives those that had none since `since` or longer.
    /// Both in Unix milliseconds.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn secrets_without_entry(
        &self,
        present: &HashSet<ConnectorId>,
        now: u64,
        since: u64,
    ) -> Result<Vec<ConnectorId>, StoreError> {
        let (now, since) = (as_integer(now), as_integer(since));
        self.with(|db| {
            let change = db.transaction()?;
            let owners = ids(&change, "SELECT connector FROM secret_owners WHERE to_clear = 0")?;
            let mut over = Vec::new();
            for id in owners {
                let key = params![id.as_str()];
                if present.contains(&id) {
                    let back =
                        "UPDATE secret_owners SET missed_at = NULL WHERE connector = ?1 AND missed_at IS NOT NULL";
                    change.execute(back, key)?;
                    continue;
                }
                let missed = "UPDATE secret_owners SET missed_at = ?2 WHERE connector = ?1 AND missed_at IS NULL";
                change.execute(missed, params![id.as_str(), now])?;
                let first = "SELECT 1 FROM secret_owners WHERE connector = ?1 AND missed_at <= ?2";
                let is_over = change.query_row(first, params![id.as_str(), since], |_| Ok(()));
                if is_over.optional()?.is_some() {
                    over.push(id);
                }
            }
            change.commit()?;
            Ok(over)
        })
    }
}

/// Ids that are legal; others were never written by this program.
fn ids(db: &rusqlite::Connection, query: &str) -> rusqlite::Result<Vec<ConnectorId>> {
    let mut statement = db.prepare(query)?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let texts: Vec<String> = rows.collect::<Result<_, _>>()?;
    Ok(texts.iter().filter_map(|text| ConnectorId::parse(text).ok()).collect())
}

fn as_integer(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_comes_back_in_time_keeps_its_secrets_and_one_that_does_not_loses_them() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("state.db")).unwrap();
        let [a, b] = ["a", "b"].map(|id| ConnectorId::parse(id).unwrap());
        store.note_secret(&a, "a").unwrap();
        store.note_secret(&a, "a:secret:K").unwrap();
        store.note_secret(&b, "b").unwrap();
        let both = HashSet::from([a.clone(), b.clone()]);
        let missing = |present: &HashSet<ConnectorId>, now: u64| {
            store
                .secrets_without_entry(present, now, now.saturating_sub(30))
                .unwrap()
        };
        assert!(missing(&both, 100).is_empty());
        assert!(missing(&HashSet::new(), 110).is_empty());
        let without_a = HashSet::from([b.clone()]);
        assert!(missing(&without_a, 139).is_empty());
        assert_eq!(missing(&without_a, 140), std::slice::from_ref(&a));
        assert!(missing(&HashSet::new(), 160).contains(&a));
        assert!(
            !missing(&HashSet::new(), 169).contains(&b),
            "it had come back meanwhile"
        );
        store.secrets_cleared(&a).unwrap();
        assert!(store.secrets_of(&a).unwrap().is_empty());
        assert_eq!(missing(&HashSet::new(), 999), [b]);
    }

    #[test]
    fn a_removal_that_could_not_be_finished_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let id = ConnectorId::parse("a").unwrap();
        let store = Store::open(&path).unwrap();
        store.note_secret(&id, "a:oauth").unwrap();
        store.secrets_are_to_be_cleared(&id).unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.secrets_to_clear().unwrap(), std::slice::from_ref(&id));
        store.secrets_cleared(&id).unwrap();
        assert!(store.secrets_to_clear().unwrap().is_empty());
    }
}
