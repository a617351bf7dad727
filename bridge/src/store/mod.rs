//! What outlives the process besides the person's file: snapshots and the trust rows in SQLite, large results as files.
//!
//! Everything here blocks on the disk: call it from `spawn_blocking`. It never decides what is trusted or listed, and
//! holds no secret.

mod activity;
mod private;
mod results;
mod secrets;
mod snapshots;
mod trust;

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::snapshot::{Notice, NoticeLevel};

pub use activity::{ActivityBounds, ActivityCursor};
pub use results::{Content, MAX_PIECE_CHARS, Piece, ResultError, ResultId, ResultStore, Saved};
pub use snapshots::{SnapshotKey, StoredSnapshot};

/// Marks the file as ours ("NeuC"), so that another program's database is never taken over.
const APPLICATION_ID: i32 = 0x4e65_7543;
/// Each step brings the schema from its position to the next; `user_version` counts the steps taken.
const STEPS: &[&str] = &[
    snapshots::SCHEMA,
    snapshots::WITH_OFFERS,
    secrets::SCHEMA,
    trust::SCHEMA,
    activity::SCHEMA,
    activity::SCRIPTS,
    activity::DECIDED,
];
/// Only our own bridge writes here; whoever holds the file longer than this is a backup or a person's tool.
const BUSY: Duration = Duration::from_secs(2);

/// `state.db`: one connection, used by one thread at a time, and one more for activity alone: a page of it may go through
/// a hundred thousand rows, and a batch may meet the moment when the log is copied back, for neither of which a connector
/// that starts has to wait. SQLite lets one write while others read.
pub struct Store {
    path: PathBuf,
    inner: Mutex<Inner>,
    /// Locked after `inner` where both are.
    activity: Mutex<Beside>,
}

#[derive(Default)]
struct Beside {
    connection: Option<Connection>,
    /// The file that it is open on, counted as [`Inner::files`].
    file: u64,
}

#[derive(Default)]
struct Inner {
    /// Absent after a damaged file could not be replaced; each use tries again.
    connection: Option<Connection>,
    notices: Vec<Notice>,
    /// How many damaged files were set aside.
    files: u64,
}

/// Why something could not be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Written by a later version of this program; left untouched.
    #[error(
        "{path} was written by a newer version of Neuron Connect (format {found}; this version knows {known}). Update Neuron Connect, or move the file away."
    )]
    Newer { path: String, found: i64, known: usize },
    #[error("{path} belongs to another program. Move it away, then start Neuron Connect again.")]
    Foreign { path: String },
    #[error("{path} cannot be used: {source}. Check that the disk has room and that the folder is yours.")]
    Files { path: String, source: std::io::Error },
    #[error("{path} cannot be used: {source}. Check that the disk has room and that no other program holds the file.")]
    Database { path: String, source: rusqlite::Error },
}

impl Store {
    /// Opens or makes the database, readable for this person only, its folder too.
    ///
    /// A damaged file is renamed to `<name>.damaged-<n>` and a new one made; [`Store::take_notices`] tells.
    ///
    /// # Errors
    /// [`StoreError`]; nothing was changed then.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let store = Self {
            path: path.into(),
            inner: Mutex::default(),
            activity: Mutex::default(),
        };
        store.with(|_| Ok(()))?;
        Ok(store)
    }

    /// What the person should know about the file, since the last time this was asked.
    pub fn take_notices(&self) -> Vec<Notice> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut inner.notices)
    }

    /// Runs `work`; where the file turns out to be damaged, once more on a new one.
    fn with<T>(&self, work: impl Fn(&mut Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match self.attempt(&mut inner, &work) {
            Err(StoreError::Database { source, .. }) if is_damage(&source) => {
                self.begin_anew(&mut inner)?;
                self.attempt(&mut inner, &work)
            }
            other => other,
        }
    }

    /// As [`Store::with`], on the connection for activity.
    fn beside<T>(&self, work: impl Fn(&mut Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let (outcome, file) = self.attempt_beside(&work)?;
        match outcome {
            Err(source) if is_damage(&source) => {
                {
                    let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
                    // Whoever met the damage first has set the file aside.
                    if inner.files == file {
                        self.begin_anew(&mut inner)?;
                    }
                }
                let (outcome, _) = self.attempt_beside(&work)?;
                outcome.map_err(|source| self.database(source))
            }
            outcome => outcome.map_err(|source| self.database(source)),
        }
    }

    /// What came of it, and on which file.
    fn attempt_beside<T>(
        &self,
        work: impl Fn(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<(rusqlite::Result<T>, u64), StoreError> {
        let is_open = || self.activity.lock().unwrap_or_else(PoisonError::into_inner);
        if is_open().connection.is_none() {
            // The other one makes the file and brings it up to date.
            self.with(|_| Ok(()))?;
            let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let mut beside = is_open();
            let opened = Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)
                .and_then(|mut connection| settle(&mut connection).map(|()| connection));
            *beside = Beside {
                connection: Some(opened.map_err(|source| self.database(source))?),
                file: inner.files,
            };
        }
        let mut beside = is_open();
        let file = beside.file;
        match &mut beside.connection {
            Some(connection) => Ok((work(connection), file)),
            // It was set aside at this very moment; the next try opens the new one.
            None => Ok((Err(damage()), file)),
        }
    }

    /// Sets a damaged file aside; the next use makes a new one.
    fn begin_anew(&self, inner: &mut Inner) -> Result<(), StoreError> {
        // Closed before the rename: Windows renames no open file, and a new file must never meet the old one's log.
        inner.connection = None;
        let mut beside = self.activity.lock().unwrap_or_else(PoisonError::into_inner);
        beside.connection = None;
        let aside = set_aside(&self.path).map_err(|source| self.files(source))?;
        inner.files += 1;
        inner.notices.push(Notice {
            level: NoticeLevel::Warning,
            message: format!(
                "{} was damaged. It was kept as {} and a new one was made; tool lists are read again from their servers.",
                self.path.display(),
                aside.display()
            ),
            line: None,
            column: None,
            server: None,
        });
        Ok(())
    }

    fn attempt<T>(
        &self,
        inner: &mut Inner,
        work: impl Fn(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let connection = match &mut inner.connection {
            Some(connection) => connection,
            closed @ None => closed.insert(self.connect()?),
        };
        work(connection).map_err(|source| self.database(source))
    }

    fn connect(&self) -> Result<Connection, StoreError> {
        private::file(&self.path).map_err(|source| self.files(source))?;
        let database = |source| self.database(source);
        let mut connection = Connection::open(&self.path).map_err(database)?;
        connection.busy_timeout(BUSY).map_err(database)?;
        let number = |connection: &Connection, pragma| connection.pragma_query_value(None, pragma, |row| row.get(0));
        let version: i64 = number(&connection, "user_version").map_err(database)?;
        let application: i64 = number(&connection, "application_id").map_err(database)?;
        let objects: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(database)?;
        let path = || self.path.display().to_string();
        if application != i64::from(APPLICATION_ID) && (application, version, objects) != (0, 0, 0) {
            return Err(StoreError::Foreign { path: path() });
        }
        let steps = usize::try_from(version).ok().and_then(|taken| STEPS.get(taken..));
        let Some(steps) = steps else {
            return Err(StoreError::Newer {
                path: path(),
                found: version,
                known: STEPS.len(),
            });
        };
        prepare(&mut connection, steps).map_err(database)?;
        Ok(connection)
    }

    fn files(&self, source: std::io::Error) -> StoreError {
        StoreError::Files {
            path: self.path.display().to_string(),
            source,
        }
    }

    fn database(&self, source: rusqlite::Error) -> StoreError {
        StoreError::Database {
            path: self.path.display().to_string(),
            source,
        }
    }
}

/// What each connection needs to be told.
fn settle(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    // One that begins by reading is refused at once, without waiting, where the other connection wrote before it writes.
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    // In WAL mode this loses no committed row when the program dies, and cannot damage the file when the power does.
    connection.pragma_update(None, "synchronous", "normal")?;
    // Kibibytes, as a negative number: a tray app has better use for memory.
    connection.pragma_update(None, "cache_size", -512)
}

fn prepare(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    settle(connection)?;
    if steps.is_empty() {
        return Ok(());
    }
    let change = connection.transaction()?;
    for step in steps {
        change.execute_batch(step)?;
    }
    change.pragma_update(None, "application_id", APPLICATION_ID)?;
    change.pragma_update(None, "user_version", STEPS.len())?;
    change.commit()
}

fn damage() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), None)
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// Renames the database and its log; a new database must never meet the old one's log.
fn set_aside(path: &Path) -> std::io::Result<PathBuf> {
    let with = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let mut number = 1_u32;
    let aside = loop {
        let candidate = with(&format!(".damaged-{number}"));
        if candidate.symlink_metadata().is_err() {
            break candidate;
        }
        number += 1;
    };
    for suffix in ["-wal", "-shm"] {
        match std::fs::rename(with(suffix), with(&format!(".damaged-{number}{suffix}"))) {
            Ok(()) => {}
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => {}
            Err(err) => return Err(err),
        }
    }
    std::fs::rename(path, &aside)?;
    Ok(aside)
}

#[cfg(test)]
mod tests;
