//! What happened, in the order in which it was written. Rows are never changed, and a place between two of them stays where
//! it is while others arrive and old ones go: the oldest first, of what programs use and of what is decided each for
//! itself, so that no program's calls take away what was decided.

use rusqlite::{Connection, Row, ToSql, params, params_from_iter};
use serde::{Serialize, de::DeserializeOwned};

use super::{Store, StoreError};
use crate::{
    clock::date,
    snapshot::{
        ActivityDay, ActivityEntry, ActivityFilter, ActivityOutcome, ActivityPage, ActivityRecord, ActivityWho,
        AllowedBy, RuleUse,
    },
};

/// `what` and `allowed_by` are JSON; what is looked for by itself stands in columns too.
pub(super) const SCHEMA: &str = "
    CREATE TABLE activity (
        id           INTEGER PRIMARY KEY AUTOINCREMENT,
        at           INTEGER NOT NULL,
        kind         TEXT NOT NULL,
        server       TEXT,
        what         TEXT NOT NULL,
        caller       TEXT NOT NULL,
        client       TEXT,
        client_name  TEXT,
        program      TEXT,
        program_path TEXT,
        pid          INTEGER,
        outcome      TEXT NOT NULL,
        code         TEXT,
        duration_ms  INTEGER,
        allowed_by   TEXT NOT NULL,
        rule         TEXT,
        warnings     INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX activity_by_server ON activity (server, id);
    CREATE INDEX activity_by_rule ON activity (rule, at) WHERE rule IS NOT NULL;
";

/// What a program runs, for an interpreter.
pub(super) const SCRIPTS: &str = "ALTER TABLE activity ADD COLUMN program_script TEXT;";

/// What programs cause at will.
macro_rules! used {
    () => {
        "('call', 'read', 'prompt')"
    };
}

/// Finds everything else among the calls.
pub(super) const DECIDED: &str = concat!(
    "CREATE INDEX activity_decided ON activity (id) WHERE kind NOT IN ",
    used!()
);

/// Of all entries that are kept, this part may be others than uses: one of so many.
const DECIDED_PART: u64 = 5;

const COLUMNS: &str = "id, at, what, caller, client, client_name, program, program_path, program_script, pid, \
                       outcome, code, duration_ms, allowed_by, warnings";

/// Longest text that is looked for, in characters.
const LONGEST_SEARCH: usize = 200;

/// What is kept when something is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivityBounds {
    /// Older entries go; Unix milliseconds.
    pub since: u64,
    /// The oldest go where there are more.
    pub most: u64,
}

/// From where a page goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityCursor {
    /// The newest entries.
    Newest,
    /// Those before this id, the newest first.
    Before(u64),
    /// Those after this id, the oldest first.
    After(u64),
}

impl Store {
    /// Adds entries in one step and takes away old ones; the id of the newest that there is.
    ///
    /// # Errors
    /// [`StoreError`]; nothing was added then.
    pub fn append_activity(&self, records: &[ActivityRecord], keep: ActivityBounds) -> Result<u64, StoreError> {
        self.beside(|db| {
            let change = db.transaction()?;
            {
                let mut insert = change.prepare_cached(
                    "INSERT INTO activity (at, kind, server, what, caller, client, client_name, program, program_path,
                                           program_script, pid, outcome, code, duration_ms, allowed_by, rule, warnings)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
                )?;
                for record in records {
                    insert.execute(params![
                        record.at,
                        word(&record.what.kind())?,
                        record.what.server(),
                        json(&record.what)?,
                        word(&record.who.kind)?,
                        record.who.client_id,
                        record.who.client_name,
                        record.who.program_name,
                        record.who.program_path,
                        record.who.program_script,
                        record.who.pid,
                        word(&record.outcome)?,
                        record.code,
                        record.duration_ms,
                        json(&record.allowed_by)?,
                        rule(&record.allowed_by),
                        record.warnings,
                    ])?;
                }
            }
            prune(&change, keep)?;
            let newest = newest(&change)?;
            change.commit()?;
            Ok(newest)
        })
    }

    /// At most `limit` entries that the filter lets through.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn activity(
        &self,
        filter: &ActivityFilter,
        cursor: ActivityCursor,
        limit: usize,
    ) -> Result<ActivityPage, StoreError> {
        self.beside(|db| {
            let mut wanted = Wanted::of(filter)?;
            let order = match cursor {
                ActivityCursor::Newest => "DESC",
                ActivityCursor::Before(id) => {
                    wanted.add("id < ?", id);
                    "DESC"
                }
                ActivityCursor::After(id) => {
                    wanted.add("id > ?", id);
                    "ASC"
                }
            };
            // One more tells whether there are more.
            let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
            let conditions = wanted.conditions();
            let mut page = db.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM activity{conditions} ORDER BY id {order} LIMIT {most}"
            ))?;
            let rows = page.query_map(params_from_iter(wanted.values), |row| {
                Ok((row.get::<_, u64>(0)?, readable(entry(row))?))
            })?;
            let mut rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            let has_more = rows.len() > limit;
            rows.truncate(limit);
            Ok(ActivityPage {
                next: rows.last().filter(|_| has_more).map(|(id, _)| *id),
                entries: rows.into_iter().filter_map(|(_, entry)| entry).collect(),
            })
        })
    }

    /// The calls, reads and prompts of the last `days` days, each of which is there, the oldest first. Days begin at
    /// midnight where the clock is `offset_minutes` ahead of UTC; `now` in Unix milliseconds.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn activity_days(&self, days: u32, offset_minutes: i32, now: u64) -> Result<Vec<ActivityDay>, StoreError> {
        const DAY: i64 = 24 * 3600 * 1000;
        let offset = i64::from(offset_minutes) * 60_000;
        let today = (i64::try_from(now).unwrap_or(i64::MAX - offset.abs()) + offset).div_euclid(DAY);
        let first = today - i64::from(days.saturating_sub(1));
        let counted = self.beside(|db| {
            let mut counts = db.prepare_cached(
                "SELECT (at + ?1) / ?2 AS day, count(*), sum(outcome != 'ok') FROM activity
                 WHERE kind IN ('call', 'read', 'prompt') AND at >= ?3 GROUP BY day",
            )?;
            let since = first * DAY - offset;
            let rows = counts.query_map(params![offset, DAY, since], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, u64>(1)?, row.get::<_, u64>(2)?))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let of = |day: i64| {
            let found = counted.iter().find(|(counted, ..)| *counted == day);
            let (calls, failures) = found.map_or((0, 0), |(_, calls, failures)| (*calls, *failures));
            ActivityDay {
                day: date(u64::try_from(day).unwrap_or(0)),
                calls,
                failures,
            }
        };
        Ok((first..=today).map(of).collect())
    }

    /// How often each rule decided, the one that was used last first.
    ///
    /// # Errors
    /// [`StoreError`]
    pub fn rule_uses(&self) -> Result<Vec<RuleUse>, StoreError> {
        self.beside(|db| {
            let mut uses = db.prepare_cached(
                "SELECT rule, count(*), max(at) AS last FROM activity WHERE rule IS NOT NULL GROUP BY rule
                 ORDER BY last DESC",
            )?;
            let rows = uses.query_map([], |row| {
                Ok(RuleUse {
                    rule: row.get(0)?,
                    times: row.get(1)?,
                    last: row.get(2)?,
                })
            })?;
            rows.collect()
        })
    }
}

/// From the oldest on: an entry that is older than one before it stays as long as that one.
fn prune(db: &Connection, keep: ActivityBounds) -> rusqlite::Result<()> {
    db.prepare_cached(concat!(
        "DELETE FROM activity WHERE kind NOT IN ",
        used!(),
        " AND id <= (SELECT id FROM activity WHERE kind NOT IN ",
        used!(),
        " ORDER BY id DESC LIMIT 1 OFFSET ?1)"
    ))?
    .execute(params![keep.most / DECIDED_PART])?;
    // What is left of the room is for the rest.
    db.prepare_cached(concat!(
        "DELETE FROM activity WHERE kind IN ",
        used!(),
        " AND id <= (SELECT max(id) FROM activity) - ?1 + (SELECT count(*) FROM activity WHERE kind NOT IN ",
        used!(),
        ")"
    ))?
    .execute(params![keep.most])?;
    db.prepare_cached(
        "DELETE FROM activity WHERE id < coalesce(
             (SELECT id FROM activity WHERE at >= ?1 ORDER BY id LIMIT 1),
             (SELECT max(id) + 1 FROM activity))",
    )?
    .execute(params![keep.since])
    .map(drop)
}

fn newest(db: &Connection) -> rusqlite::Result<u64> {
    db.prepare_cached("SELECT coalesce(max(id), 0) FROM activity")?
        .query_row([], |row| row.get(0))
}

fn entry(row: &Row<'_>) -> rusqlite::Result<ActivityEntry> {
    let text = |at: usize| row.get::<_, String>(at);
    Ok(ActivityEntry {
        id: row.get(0)?,
        record: ActivityRecord {
            at: row.get(1)?,
            what: from_json(2, &text(2)?)?,
            who: ActivityWho {
                kind: from_word(3, text(3)?)?,
                client_id: row.get(4)?,
                client_name: row.get(5)?,
                program_name: row.get(6)?,
                program_path: row.get(7)?,
                program_script: row.get(8)?,
                pid: row.get(9)?,
            },
            outcome: from_word(10, text(10)?)?,
            code: row.get(11)?,
            duration_ms: row.get(12)?,
            allowed_by: from_json(13, &text(13)?)?,
            warnings: row.get(14)?,
        },
    })
}

/// A row that makes no sense, such as one of a later version, counts as absent.
fn readable(entry: rusqlite::Result<ActivityEntry>) -> rusqlite::Result<Option<ActivityEntry>> {
    match entry {
        Ok(entry) => Ok(Some(entry)),
        Err(
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..),
        ) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The conditions that a filter stands for.
#[derive(Default)]
struct Wanted {
    conditions: Vec<&'static str>,
    values: Vec<Box<dyn ToSql>>,
}

impl Wanted {
    fn of(filter: &ActivityFilter) -> rusqlite::Result<Self> {
        let mut wanted = Self::default();
        let ActivityFilter {
            server,
            caller,
            client,
            program,
            outcome,
            kind,
            text,
            from,
            to,
        } = filter;
        if let Some(server) = server {
            wanted.add("server = ?", server.clone());
        }
        if let Some(caller) = caller {
            wanted.add("caller = ?", word(caller)?);
        }
        if let Some(client) = client {
            wanted.add("client = ?", client.clone());
        }
        if let Some(program) = program {
            wanted.add("program_path = ?", program.clone());
        }
        if let Some(outcome) = outcome {
            wanted.add("outcome = ?", word::<ActivityOutcome>(outcome)?);
        }
        if let Some(kind) = kind {
            wanted.add("kind = ?", word(kind)?);
        }
        if let Some(from) = from {
            wanted.add("at >= ?", *from);
        }
        if let Some(to) = to {
            wanted.add("at < ?", *to);
        }
        if let Some(text) = text.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
            // The first one is quick and lets through too much: names of members too.
            wanted.add(
                "(what || coalesce(client_name, '') || coalesce(program_path, program, '') ||
                  coalesce(program_script, '') || coalesce(code, '') || allowed_by) LIKE ? ESCAPE '\\'",
                pattern(text),
            );
            wanted.add(
                "(coalesce(server, '') || ' ' ||
                  coalesce(what -> '$.tool', what -> '$.uri', what -> '$.name', what -> '$.subject', '') || ' ' ||
                  coalesce(what -> '$.arguments.value', '') || ' ' || coalesce(client_name, '') || ' ' ||
                  coalesce(program_path, program, '') || ' ' || coalesce(program_script, '') || ' ' ||
                  coalesce(code, '') || ' ' || coalesce(allowed_by -> '$.name', '')) LIKE ? ESCAPE '\\'",
                pattern(text),
            );
        }
        Ok(wanted)
    }

    fn add(&mut self, condition: &'static str, value: impl ToSql + 'static) {
        self.conditions.push(condition);
        self.values.push(Box::new(value));
    }

    fn conditions(&self) -> String {
        if self.conditions.is_empty() {
            return String::new();
        }
        format!(" WHERE {}", self.conditions.join(" AND "))
    }
}

/// For `LIKE`. Quotation marks and backslashes stand in JSON as they are escaped there.
fn pattern(text: &str) -> String {
    let text: String = text.chars().take(LONGEST_SEARCH).collect();
    let quoted = serde_json::Value::String(text).to_string();
    let mut pattern = String::from("%");
    for c in quoted[1..quoted.len() - 1].chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

fn rule(allowed_by: &AllowedBy) -> Option<&str> {
    match allowed_by {
        AllowedBy::Rule { rule, .. } => Some(rule),
        AllowedBy::Owner | AllowedBy::Nobody | AllowedBy::Person { .. } | AllowedBy::Policy { .. } => None,
    }
}

/// The word by which an enum is known everywhere.
fn word<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    let json = json(value)?;
    Ok(json.trim_matches('"').to_owned())
}

fn json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn from_word<T: DeserializeOwned>(column: usize, word: String) -> rusqlite::Result<T> {
    serde_json::from_value(serde_json::Value::String(word)).map_err(|error| unreadable(column, error))
}

fn from_json<T: DeserializeOwned>(column: usize, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| unreadable(column, error))
}

fn unreadable(column: usize, error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into())
}

#[cfg(test)]
mod tests;
