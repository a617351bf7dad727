//! The trust rows and the head that speaks for all of them, as they were handed over: whether they are ours is decided
//! elsewhere, with a key that is not here.

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::{Store, StoreError};
use crate::trust::rows::{Code, Delta, Row, Stored, StoredHead, StoredRow};

pub(super) const SCHEMA: &str = "
    CREATE TABLE trust (
        kind TEXT NOT NULL,
        key  TEXT NOT NULL,
        body TEXT NOT NULL,
        mac  BLOB NOT NULL,
        PRIMARY KEY (kind, key)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE trust_head (
        id         INTEGER PRIMARY KEY CHECK (id = 1),
        generation INTEGER NOT NULL,
        mac        BLOB NOT NULL
    ) STRICT;
";

impl Store {
    /// All that is there.
    ///
    /// # Errors
    /// [`StoreError`]
    pub(crate) fn trust_rows(&self) -> Result<Stored, StoreError> {
        self.with(|db| {
            // One view of both tables.
            let view = db.transaction_with_behavior(TransactionBehavior::Deferred)?;
            let head = head(&view)?;
            let rows = rows(&view)?;
            Ok(Stored { head, rows })
        })
    }

    /// What one row says; `None` where there is none.
    ///
    /// # Errors
    /// [`StoreError`]
    pub(crate) fn trust_row(&self, kind: &str, key: &str) -> Result<Option<String>, StoreError> {
        self.with(|db| {
            let mut query = db.prepare_cached("SELECT body FROM trust WHERE kind = ?1 AND key = ?2")?;
            query.query_row(params![kind, key], |row| row.get(0)).optional()
        })
    }

    /// Stores a change of the set that `before` speaks for, and the head of what it makes, all or nothing. Where another set
    /// lies there, as after a database that was damaged and made anew, `whole` is written in its place first.
    ///
    /// # Errors
    /// [`StoreError`]; nothing was changed then.
    pub(crate) fn change_trust(
        &self,
        before: Option<&StoredHead>,
        delta: &Delta,
        whole: &dyn Fn() -> Vec<(Row, Code)>,
    ) -> Result<(), StoreError> {
        self.with(|db| {
            // Its generation is counted elsewhere next, where a power failure loses nothing: neither may it here.
            db.pragma_update(None, "synchronous", "full")?;
            let stored = change_in(db, before, delta, whole);
            db.pragma_update(None, "synchronous", "normal")?;
            stored
        })
    }
}

fn change_in(
    db: &mut Connection,
    before: Option<&StoredHead>,
    delta: &Delta,
    whole: &dyn Fn() -> Vec<(Row, Code)>,
) -> rusqlite::Result<()> {
    let change = db.transaction()?;
    let fits = before.is_some() && head(&change).is_ok_and(|head| head.as_ref() == before);
    if !fits {
        // Also where somebody took the tables away.
        change.execute_batch("DROP TABLE IF EXISTS trust; DROP TABLE IF EXISTS trust_head;")?;
        change.execute_batch(SCHEMA)?;
        put(&change, &whole())?;
    }
    {
        let mut gone = change.prepare_cached("DELETE FROM trust WHERE kind = ?1 AND key = ?2")?;
        for (kind, key) in &delta.delete {
            gone.execute(params![kind.word(), key])?;
        }
    }
    put(&change, &delta.put)?;
    let head = delta.head();
    change.execute(
        "INSERT OR REPLACE INTO trust_head (id, generation, mac) VALUES (1, ?1, ?2)",
        params![as_integer(head.generation), head.code],
    )?;
    change.commit()
}

fn put(change: &Transaction<'_>, rows: &[(Row, Code)]) -> rusqlite::Result<()> {
    let mut statement =
        change.prepare_cached("INSERT OR REPLACE INTO trust (kind, key, body, mac) VALUES (?1, ?2, ?3, ?4)")?;
    for (row, code) in rows {
        statement.execute(params![row.kind.word(), row.key, row.body, code.as_bytes()])?;
    }
    Ok(())
}

fn head(db: &Connection) -> rusqlite::Result<Option<StoredHead>> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(StoredHead {
            // A negative number was never written here: as the first it is behind every other.
            generation: u64::try_from(row.get::<_, i64>(0)?).unwrap_or_default(),
            code: row.get(1)?,
        })
    };
    db.query_row("SELECT generation, mac FROM trust_head WHERE id = 1", [], read)
        .optional()
}

fn rows(db: &Connection) -> rusqlite::Result<Vec<StoredRow>> {
    let mut all = db.prepare("SELECT kind, key, body, mac FROM trust")?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(StoredRow {
            kind: row.get(0)?,
            key: row.get(1)?,
            body: row.get(2)?,
            code: row.get(3)?,
        })
    };
    all.query_map([], read)?.collect()
}

fn as_integer(generation: u64) -> i64 {
    i64::try_from(generation).unwrap_or(i64::MAX)
}
