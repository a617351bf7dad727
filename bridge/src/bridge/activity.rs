//! What happened: recorded where it ends, read and exported for the owner.

use std::{
    fs::OpenOptions,
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use futures::{Stream, stream};
use tokio::sync::mpsc;

use super::{BridgeHandle, Edit};
use crate::{
    activity::{self, Entry, Outcome, Recorder, WhoRecord},
    clock::{stamp, unix_ms},
    config::{Config, Entry as FileEntry},
    error::{ApiError, Code},
    ids::ConnectorId,
    oauth::Finished,
    snapshot::{
        ActivityCaller, ActivityChange, ActivityDay, ActivityExport, ActivityFilter, ActivityPage, ActivityReview,
        ActivityWhat, AllowedBy, ExportFormat, RuleUse, SignInOutcome,
    },
    store::{ActivityCursor, Store, StoreError},
};

/// What was recorded a moment ago is written before it is read; without an end a full disk would hold the reader up.
const WRITTEN_WITHIN: Duration = Duration::from_secs(1);
/// Entries in one answer at most.
pub const LARGEST_ACTIVITY_PAGE: usize = 500;
/// Days that are counted at most: more are never kept.
pub const MOST_ACTIVITY_DAYS: u32 = 366;
/// Entries of an export that are read at once.
const EXPORTED_AT_ONCE: usize = 500;
/// Pieces of an export that wait for whoever takes them.
const EXPORT_PIECES: usize = 2;

impl BridgeHandle {
    /// At most `limit` entries that the filter lets through, up to this moment.
    ///
    /// # Errors
    /// `unavailable` when the database cannot be read.
    pub async fn activity(
        &self,
        filter: ActivityFilter,
        cursor: ActivityCursor,
        limit: usize,
    ) -> Result<ActivityPage, ApiError> {
        let limit = limit.clamp(1, LARGEST_ACTIVITY_PAGE);
        self.read_activity(move |store| store.activity(&filter, cursor, limit))
            .await
    }

    /// The calls, reads and prompts of the last `days` days, the oldest first; days begin at midnight where the clock is
    /// `offset_minutes` ahead of UTC.
    ///
    /// # Errors
    /// As [`BridgeHandle::activity`].
    pub async fn activity_days(&self, days: u32, offset_minutes: i32) -> Result<Vec<ActivityDay>, ApiError> {
        let days = days.clamp(1, MOST_ACTIVITY_DAYS);
        // No place is further from UTC than a day.
        let offset = offset_minutes.clamp(-24 * 60, 24 * 60);
        self.read_activity(move |store| store.activity_days(days, offset, unix_ms()))
            .await
    }

    /// How often each rule decided, within what is kept.
    ///
    /// # Errors
    /// As [`BridgeHandle::activity`].
    pub async fn rule_uses(&self) -> Result<Vec<RuleUse>, ApiError> {
        self.read_activity(Store::rule_uses).await
    }

    /// Everything that the filter lets through, the newest first, as pieces of a file. A few pages are in memory at a time,
    /// whatever its length; a piece that cannot be read ends it with an error.
    pub fn export_activity(
        &self,
        filter: ActivityFilter,
        format: ExportFormat,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        let (pieces, taken) = mpsc::channel(EXPORT_PIECES);
        let (recorder, store) = self.for_reading();
        tokio::task::spawn_blocking(move || {
            recorder.flush(WRITTEN_WITHIN);
            let ended = export(&store, &filter, format, |piece, _| {
                // Nobody takes it any more.
                pieces
                    .blocking_send(Ok(piece))
                    .map_err(|_| io::ErrorKind::BrokenPipe.into())
            });
            if let Err(error) = ended {
                let _ = pieces.blocking_send(Err(error));
            }
        });
        stream::unfold(taken, |mut taken| async move { Some((taken.recv().await?, taken)) })
    }

    /// As [`BridgeHandle::export_activity`], into a new private file in `folder`.
    ///
    /// # Errors
    /// `not_saved`, saying where and why; no half file stays.
    pub async fn export_activity_to(
        &self,
        folder: PathBuf,
        filter: ActivityFilter,
        format: ExportFormat,
    ) -> Result<ActivityExport, ApiError> {
        let (recorder, store) = self.for_reading();
        let writing = tokio::task::spawn_blocking(move || {
            recorder.flush(WRITTEN_WITHIN);
            write_export(&store, &folder, &filter, format).map_err(|error| (folder, error))
        });
        match writing.await {
            Ok(Ok(export)) => Ok(export),
            Ok(Err((folder, error))) => Err(ApiError::new(
                Code::NotSaved,
                format!(
                    "The activity could not be saved in {}: {error}. Check that the folder is yours and has room.",
                    folder.display()
                ),
            )),
            Err(error) => {
                tracing::error!(%error, "an export ended abnormally");
                Err(ApiError::internal())
            }
        }
    }

    /// Where other rooms record what they decide.
    pub fn recorder(&self) -> &Recorder {
        &self.inner.world.activity
    }

    /// The person did something about a connector's secrets.
    pub(super) fn record_change(&self, server: &str, change: ActivityChange, subject: Option<String>) {
        self.recorder()
            .record(changed(ActivityCaller::Owner, server, change, subject));
    }

    fn for_reading(&self) -> (Recorder, std::sync::Arc<Store>) {
        let world = &self.inner.world;
        (world.activity.clone(), world.store.clone())
    }

    async fn read_activity<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (recorder, store) = self.for_reading();
        let reading = tokio::task::spawn_blocking(move || {
            recorder.flush(WRITTEN_WITHIN);
            read(&store)
        });
        match reading.await {
            Ok(Ok(read)) => Ok(read),
            Ok(Err(error)) => Err(ApiError::new(Code::Unavailable, error.to_string())),
            Err(error) => {
                tracing::error!(%error, "reading the activity ended abnormally");
                Err(ApiError::internal())
            }
        }
    }
}

fn export(
    store: &Store,
    filter: &ActivityFilter,
    format: ExportFormat,
    mut take: impl FnMut(Bytes, usize) -> io::Result<()>,
) -> io::Result<()> {
    let mut text = activity::csv_header(format).to_owned();
    let mut cursor = ActivityCursor::Newest;
    loop {
        let page = store
            .activity(filter, cursor, EXPORTED_AT_ONCE)
            .map_err(io::Error::other)?;
        for entry in &page.entries {
            text.push_str(&activity::line(entry, format));
        }
        take(std::mem::take(&mut text).into(), page.entries.len())?;
        match page.next {
            Some(next) => cursor = ActivityCursor::Before(next),
            None => return Ok(()),
        }
    }
}

fn write_export(
    store: &Store,
    folder: &Path,
    filter: &ActivityFilter,
    format: ExportFormat,
) -> io::Result<ActivityExport> {
    let ending = match format {
        ExportFormat::Jsonl => "jsonl",
        ExportFormat::Csv => "csv",
    };
    // Colons are no part of a file's name everywhere; two exports within a millisecond are two clicks too many.
    let when = stamp(SystemTime::now()).replace([':', '.'], "-");
    let path = folder.join(format!("neuron-connect-activity-{when}.{ending}"));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = BufWriter::new(options.open(&path)?);
    let mut entries = 0;
    let written = export(store, filter, format, |piece, count| {
        entries += count as u64;
        file.write_all(&piece)
    });
    let kept = written
        .and_then(|()| file.flush())
        .and_then(|()| file.get_ref().sync_all());
    if let Err(error) = kept {
        // It is the reason that is told, not that the rest of it stays.
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    Ok(ActivityExport {
        path: path.display().to_string(),
        entries,
    })
}

/// Records when it is dropped how something ended that was begun; without a word about it, that its caller went away.
pub(super) struct Recording<'r> {
    recorder: &'r Recorder,
    entry: Option<Entry>,
    begun: Instant,
    outcome: Outcome,
    warnings: bool,
    pub(super) decided: DecidedBy,
}

/// Who lets something happen, or does not: set by whoever decides that while it is under way.
#[derive(Debug)]
pub(super) struct DecidedBy(Mutex<AllowedBy>);

impl DecidedBy {
    pub(super) fn set(&self, by: AllowedBy) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = by;
    }

    fn get(&self) -> AllowedBy {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<'r> Recording<'r> {
    pub(super) fn begin(recorder: &'r Recorder, entry: Entry) -> Self {
        Self {
            recorder,
            decided: DecidedBy(Mutex::new(entry.allowed_by.clone())),
            entry: Some(entry),
            begun: Instant::now(),
            outcome: Outcome::Cancelled,
            warnings: false,
        }
    }

    /// Whether something about what came back deserves a look.
    pub(super) fn warned(&mut self, warnings: bool) {
        self.warnings = warnings;
    }

    pub(super) fn ended(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        if let Some(mut entry) = self.entry.take() {
            entry.at = unix_ms();
            entry.outcome = self.outcome;
            entry.warnings = self.warnings;
            entry.allowed_by = self.decided.get();
            entry.duration_ms = Some(u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX));
            self.recorder.record(entry);
        }
    }
}

/// A change made here.
pub(super) fn edited(edit: &Edit) -> Entry {
    let (id, change, subject) = match edit {
        Edit::Add(id, ..) => (id, ActivityChange::Added, None),
        Edit::Replace(id, _) => (id, ActivityChange::Edited, None),
        Edit::Enabled(id, true) => (id, ActivityChange::TurnedOn, None),
        Edit::Enabled(id, false) => (id, ActivityChange::TurnedOff, None),
        Edit::ToolEnabled(id, tool, true) => (id, ActivityChange::ToolTurnedOn, Some(tool.to_string())),
        Edit::ToolEnabled(id, tool, false) => (id, ActivityChange::ToolTurnedOff, Some(tool.to_string())),
        Edit::DisabledTools(id, _) | Edit::Args(id, _) => (id, ActivityChange::Edited, None),
        Edit::AutoApprove(id, _) => (id, ActivityChange::AutoApprove, None),
        Edit::Remove(id) => (id, ActivityChange::Removed, None),
    };
    changed(ActivityCaller::Owner, id.as_str(), change, subject)
}

/// What the person said to a launch that waited.
pub(super) fn looked_at(server: &ConnectorId, outcome: Outcome) -> Entry {
    decided(Some(server), ActivityReview::Launch, None).ended(outcome)
}

/// What the person decided; `subject` is the tool, rule, assistant or program that it is about.
pub(super) fn decided(server: Option<&ConnectorId>, of: ActivityReview, subject: Option<String>) -> Entry {
    let server = server.cloned();
    let what = ActivityWhat::Review { server, of, subject };
    Entry::new(WhoRecord::plain(ActivityCaller::Owner), what)
}

/// A connector, or everything, was paused or goes on.
pub(super) fn paused(who: WhoRecord, server: Option<&ConnectorId>, on: bool) -> Entry {
    let what = ActivityWhat::Change {
        server: server.map(ToString::to_string),
        change: match on {
            true => ActivityChange::Paused,
            false => ActivityChange::Resumed,
        },
        subject: None,
    };
    Entry::new(who, what)
}

/// What somebody changed in the file.
pub(super) fn changed_in_file(before: &Config, after: &Config) -> Vec<Entry> {
    let find = |config: &'_ Config, key: &str| -> Option<FileEntry> {
        config.entries.iter().find(|entry| entry.key == key).cloned()
    };
    let gone = before.entries.iter().filter(|entry| find(after, &entry.key).is_none());
    let gone = gone.map(|entry| (entry, ActivityChange::FileRemoved));
    let others = after.entries.iter().filter_map(|entry| match find(before, &entry.key) {
        None => Some((entry, ActivityChange::FileAdded)),
        Some(earlier) if earlier.kind != entry.kind => Some((entry, ActivityChange::FileEdited)),
        Some(_) => None,
    });
    let entry = |(entry, change): (&FileEntry, _)| changed(ActivityCaller::Itself, &entry.key, change, None);
    gone.chain(others).map(entry).collect()
}

fn changed(who: ActivityCaller, server: &str, change: ActivityChange, subject: Option<String>) -> Entry {
    let what = ActivityWhat::Change {
        server: Some(server.to_owned()),
        change,
        subject,
    };
    Entry::new(WhoRecord::plain(who), what)
}

/// How a connector's sign-in ended; a stranger's answer is nobody's business.
pub(super) fn signed_in(finished: &Finished) -> Option<Entry> {
    let server = finished.server.clone()?;
    let outcome = match finished.outcome {
        SignInOutcome::SignedIn => Outcome::Ok,
        SignInOutcome::Expired => Outcome::Failed("expired"),
        SignInOutcome::InvalidState => Outcome::Failed("invalid_state"),
        SignInOutcome::Denied => Outcome::Denied(Code::Denied.name()),
        SignInOutcome::Failed => Outcome::Failed("failed"),
        SignInOutcome::Cancelled => Outcome::Cancelled,
    };
    let who = WhoRecord::plain(ActivityCaller::Owner);
    Some(Entry::new(who, ActivityWhat::SignIn { server }).ended(outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(servers: &str) -> Config {
        crate::config::parse(format!("{{\"servers\": {{{servers}}}}}").as_bytes()).unwrap()
    }

    #[test]
    fn what_somebody_changed_in_the_file_is_told_by_connector() {
        let before = config(r#""a": {"command": "x"}, "b": {"command": "x"}, "c": {"command": "x"}, "e e": {}"#);
        let after = config(r#""d": {"command": "x"}, "b": {"command": "y"}, "c": {"command": "x"}, "e e": {}"#);
        let told = changed_in_file(&before, &after);
        let told: Vec<_> = told
            .iter()
            .map(|entry| match &entry.what {
                ActivityWhat::Change { change, server, .. } => (server.as_deref(), *change),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            told,
            [
                (Some("a"), ActivityChange::FileRemoved),
                (Some("d"), ActivityChange::FileAdded),
                (Some("b"), ActivityChange::FileEdited),
            ]
        );
        assert!(changed_in_file(&after, &after).is_empty());
    }
}
