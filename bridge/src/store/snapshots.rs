//! The last complete lists of each launch identity, raw, and the era its upstream was last met in.

use rusqlite::{OptionalExtension, params};

use super::{Store, StoreError};
use crate::{ids::ConnectorId, snapshot::Era, trust::LaunchIdentity};

pub(super) const SCHEMA: &str = "
    CREATE TABLE snapshot (
        connector    TEXT NOT NULL,
        identity     TEXT NOT NULL,
        era          TEXT NOT NULL,
        protocol     TEXT,
        server_info  TEXT,
        instructions TEXT,
        tools        TEXT NOT NULL,
        saved_at     INTEGER NOT NULL,
        PRIMARY KEY (connector, identity)
    ) STRICT;
    CREATE TABLE era (
        connector TEXT NOT NULL,
        identity  TEXT NOT NULL,
        era       TEXT NOT NULL,
        PRIMARY KEY (connector, identity)
    ) STRICT, WITHOUT ROWID;
";

/// Lists besides tools. `NULL` in a row from before them: not known until the next connection.
pub(super) const WITH_OFFERS: &str = "
    ALTER TABLE snapshot ADD COLUMN resources TEXT;
    ALTER TABLE snapshot ADD COLUMN templates TEXT;
    ALTER TABLE snapshot ADD COLUMN prompts TEXT;
";

/// Older identities of one connector that are kept, so that undoing an edit finds its tools at once.
const KEPT_IDENTITIES: u32 = 4;

/// Whose snapshot: what one connector runs or contacts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SnapshotKey {
    pub connector: ConnectorId,
    pub identity: LaunchIdentity,
}

/// What is known of an upstream without contacting it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSnapshot {
    pub era: Era,
    /// The negotiated revision, such as `2025-11-25`.
    pub protocol: Option<String>,
    /// The upstream's description of itself, as received JSON.
    pub server_info: Option<String>,
    pub instructions: Option<String>,
    /// JSON array of the items of all pages, as received.
    pub tools: String,
    /// The same of the other lists; `None` = not known, and on saving: keep what is there.
    pub resources: Option<String>,
    pub templates: Option<String>,
    pub prompts: Option<String>,
    /// Unix milliseconds.
    pub saved_at: u64,
}

impl Store {
    /// The last complete lists of this identity.
    ///
    /// # Errors
    /// [`StoreError`] when the database cannot be read.
    pub fn snapshot(&self, key: &SnapshotKey) -> Result<Option<StoredSnapshot>, StoreError> {
        let row = self.with(|connection| {
            connection
                .prepare_cached(
                    "SELECT era, protocol, server_info, instructions, tools, resources, templates, prompts, saved_at
                     FROM snapshot WHERE connector = ?1 AND identity = ?2",
                )?
                .query_row(params![key.connector.as_str(), key.identity.to_string()], |row| {
                    Ok((
                        row.get::<_, String>(0)?,
                        StoredSnapshot {
                            era: Era::Legacy,
                            protocol: row.get(1)?,
                            server_info: row.get(2)?,
                            instructions: row.get(3)?,
                            tools: row.get(4)?,
                            resources: row.get(5)?,
                            templates: row.get(6)?,
                            prompts: row.get(7)?,
                            saved_at: row.get(8)?,
                        },
                    ))
                })
                .optional()
        })?;
        // A row that makes no sense counts as absent: the list is read again.
        Ok(row.and_then(|(era, snapshot)| {
            Some(StoredSnapshot {
                era: era_from(&era)?,
                ..snapshot
            })
        }))
    }

    /// Keeps complete lists, and the era with them; they replace the previous ones of the same identity.
    ///
    /// # Errors
    /// [`StoreError`]; the previous snapshot is still there then.
    pub fn save_snapshot(&self, key: &SnapshotKey, snapshot: &StoredSnapshot) -> Result<(), StoreError> {
        let (connector, identity) = (key.connector.as_str(), key.identity.to_string());
        self.with(|connection| {
            let change = connection.transaction()?;
            change.execute(
                "INSERT INTO snapshot
                 (connector, identity, era, protocol, server_info, instructions, tools, saved_at,
                  resources, templates, prompts)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
                 ON CONFLICT (connector, identity) DO UPDATE SET
                 era = excluded.era, protocol = excluded.protocol, server_info = excluded.server_info,
                 instructions = excluded.instructions, tools = excluded.tools, saved_at = excluded.saved_at,
                 resources = coalesce(excluded.resources, resources),
                 templates = coalesce(excluded.templates, templates),
                 prompts = coalesce(excluded.prompts, prompts)",
                params![
                    connector,
                    identity,
                    era_word(snapshot.era),
                    snapshot.protocol,
                    snapshot.server_info,
                    snapshot.instructions,
                    snapshot.tools,
                    snapshot.saved_at,
                    snapshot.resources,
                    snapshot.templates,
                    snapshot.prompts
                ],
            )?;
            change.execute(
                "INSERT OR REPLACE INTO era (connector, identity, era) VALUES (?1, ?2, ?3)",
                params![connector, identity, era_word(snapshot.era)],
            )?;
            change.execute(
                "DELETE FROM snapshot WHERE connector = ?1 AND identity != ?2 AND identity NOT IN
                 (SELECT identity FROM snapshot WHERE connector = ?1 AND identity != ?2
                  ORDER BY saved_at DESC, rowid DESC LIMIT ?3)",
                params![connector, identity, KEPT_IDENTITIES],
            )?;
            change.execute(
                "DELETE FROM era WHERE connector = ?1 AND identity NOT IN
                 (SELECT identity FROM snapshot WHERE connector = ?1)",
                params![connector],
            )?;
            change.commit()
        })
    }

    /// Forgets everything about a connector, whatever its identities.
    ///
    /// # Errors
    /// [`StoreError`] when the database cannot be written.
    pub fn remove_snapshot(&self, connector: &ConnectorId) -> Result<(), StoreError> {
        self.with(|connection| {
            let change = connection.transaction()?;
            change.execute("DELETE FROM snapshot WHERE connector = ?1", [connector.as_str()])?;
            change.execute("DELETE FROM era WHERE connector = ?1", [connector.as_str()])?;
            change.commit()
        })
    }

    /// The era this identity was last met in, also when its list could not be read.
    ///
    /// # Errors
    /// [`StoreError`] when the database cannot be read.
    pub fn era(&self, key: &SnapshotKey) -> Result<Option<Era>, StoreError> {
        let era: Option<String> = self.with(|connection| {
            connection
                .prepare_cached("SELECT era FROM era WHERE connector = ?1 AND identity = ?2")?
                .query_row(params![key.connector.as_str(), key.identity.to_string()], |row| {
                    row.get(0)
                })
                .optional()
        })?;
        Ok(era.as_deref().and_then(era_from))
    }

    /// Remembers the era for the next connection; `None` = find out anew.
    ///
    /// # Errors
    /// [`StoreError`] when the database cannot be written.
    pub fn remember_era(&self, key: &SnapshotKey, era: Option<Era>) -> Result<(), StoreError> {
        let (connector, identity) = (key.connector.as_str(), key.identity.to_string());
        self.with(|connection| {
            match era {
                Some(era) => connection.execute(
                    "INSERT OR REPLACE INTO era (connector, identity, era) VALUES (?1, ?2, ?3)",
                    params![connector, identity, era_word(era)],
                ),
                None => connection.execute(
                    "DELETE FROM era WHERE connector = ?1 AND identity = ?2",
                    params![connector, identity],
                ),
            }
            .map(drop)
        })
    }
}

fn era_word(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

fn era_from(word: &str) -> Option<Era> {
    match word {
        "legacy" => Some(Era::Legacy),
        "modern" => Some(Era::Modern),
        _ => None,
    }
}
