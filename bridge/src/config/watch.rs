//! Noticing that the person's file changed, without polling.
//!
//! Folders are watched, never files: editors replace files. For a path whose end is a chain of symlinks, every folder
//! of the chain is watched, and each folder's parent, so that a folder that is deleted and made again is found again.
//! Only events about exactly these names count.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, event::AccessKind, event::AccessMode};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::Instant,
};

use super::links;

/// A save consists of several events; this long after the last one it is over.
const QUIET: Duration = Duration::from_millis(300);
/// Somebody who saves without a pause is still heard this long after the first event.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many times arming is repeated while the folders keep changing under it; later events arm again.
const MAX_ARMINGS: usize = 8;

/// Why a file cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be watched for changes: {source}; changes take effect after a restart", path = path.display())]
pub struct WatchError {
    path: PathBuf,
    source: notify::Error,
}

/// Watches one path until dropped.
#[derive(Debug)]
pub struct Watcher {
    task: JoinHandle<()>,
}

impl Watcher {
    /// Begins to watch `path`, which need not exist; needs a tokio runtime.
    ///
    /// Each signal says: read again. Signals come 300 ms after the last event and at most 2 s after the first; one that
    /// nobody took yet stands for all later ones. The receiver ends when the watcher is dropped.
    ///
    /// # Errors
    /// Where the system refuses, such as at its limit of watches.
    pub fn start(path: impl AsRef<Path>) -> Result<(Self, mpsc::Receiver<()>), WatchError> {
        let path = path.as_ref().to_owned();
        let failed = |source| WatchError {
            path: path.clone(),
            source,
        };
        let hits = Arc::new(Hits::default());
        let handler = Arc::clone(&hits);
        let watcher = notify::recommended_watcher(move |event| handler.note(event)).map_err(failed)?;
        let mut armed = Armed {
            watcher,
            folders: BTreeSet::new(),
            hits: Arc::clone(&hits),
        };
        armed.arm(&path).map_err(failed)?;
        let (sender, receiver) = mpsc::channel(1);
        let task = tokio::spawn(run(path, armed, hits, sender));
        Ok((Self { task }, receiver))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(path: PathBuf, mut armed: Armed, hits: Arc<Hits>, sender: mpsc::Sender<()>) {
    let mut debounce = Debounce::default();
    loop {
        let due = debounce.due();
        tokio::select! {
            () = hits.wake.notified() => {
                if hits.rearm.swap(false, Ordering::AcqRel)
                    && let Err(error) = armed.arm(&path)
                {
                    tracing::warn!(%error, "part of the configuration's folders cannot be watched");
                }
                debounce.event(Instant::now());
            }
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                debounce = Debounce::default();
                // Full means that a signal already waits.
                if let Err(mpsc::error::TrySendError::Closed(())) = sender.try_send(()) {
                    return;
                }
            }
        }
    }
}

/// When a burst of events is over.
#[derive(Debug, Default)]
struct Debounce {
    /// The burst's first and last event.
    burst: Option<(Instant, Instant)>,
}

impl Debounce {
    fn event(&mut self, now: Instant) {
        let first = self.burst.map_or(now, |(first, _)| first);
        self.burst = Some((first, now));
    }

    fn due(&self) -> Option<Instant> {
        self.burst.map(|(first, last)| (last + QUIET).min(first + PATIENCE))
    }
}

/// What matters of the system's events, handed from its thread to ours.
#[derive(Debug, Default)]
struct Hits {
    names: Mutex<Names>,
    rearm: AtomicBool,
    wake: Notify,
}

/// Paths whose events count.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Names {
    /// The file and the symlinks on the way to it.
    files: BTreeSet<PathBuf>,
    /// The folders they are in; an event about one means to look for all of them again.
    folders: BTreeSet<PathBuf>,
}

/// What an event means to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Nothing,
    /// The file's content may differ.
    Content,
    /// A folder or symlink may be another one.
    Place,
}

impl Names {
    fn meaning(&self, kind: EventKind, path: &Path) -> Meaning {
        let only_looked_at = match kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
            EventKind::Access(_) => true,
            EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => {
                false
            }
        };
        if only_looked_at {
            return Meaning::Nothing;
        }
        let moved = matches!(
            kind,
            EventKind::Create(_)
                | EventKind::Remove(_)
                | EventKind::Modify(notify::event::ModifyKind::Name(_))
                | EventKind::Any
        );
        if self.files.contains(path) {
            return if moved { Meaning::Place } else { Meaning::Content };
        }
        if moved && self.folders.contains(path) {
            Meaning::Place
        } else {
            Meaning::Nothing
        }
    }
}

impl Hits {
    /// Called on the system's thread.
    fn note(&self, event: notify::Result<notify::Event>) {
        let meaning = match event {
            // Events were lost, or watching failed in part: look at everything again.
            Err(_) => Meaning::Place,
            Ok(event) if event.need_rescan() => Meaning::Place,
            Ok(event) => {
                let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
                let meanings = event.paths.iter().map(|path| names.meaning(event.kind, path));
                meanings.fold(Meaning::Nothing, |found, next| match (found, next) {
                    (Meaning::Place, _) | (_, Meaning::Place) => Meaning::Place,
                    (Meaning::Content, _) | (_, Meaning::Content) => Meaning::Content,
                    (Meaning::Nothing, Meaning::Nothing) => Meaning::Nothing,
                })
            }
        };
        match meaning {
            Meaning::Nothing => return,
            Meaning::Content => {}
            Meaning::Place => self.rearm.store(true, Ordering::Release),
        }
        self.wake.notify_one();
    }
}

struct Armed {
    watcher: RecommendedWatcher,
    folders: BTreeSet<PathBuf>,
    hits: Arc<Hits>,
}

impl Armed {
    /// Watches what `path` needs now. A folder with an old name may be a new one, so all are watched afresh.
    fn arm(&mut self, path: &Path) -> notify::Result<()> {
        for folder in std::mem::take(&mut self.folders) {
            // A folder that is gone is no longer watched anyway.
            let _ = self.watcher.unwatch(&folder);
        }
        let mut plan = plan(path);
        let mut failure = None;
        for _ in 0..MAX_ARMINGS {
            *self.hits.names.lock().unwrap_or_else(PoisonError::into_inner) = plan.names.clone();
            for folder in &plan.folders {
                if self.folders.contains(folder) {
                    continue;
                }
                match self.watcher.watch(folder, RecursiveMode::NonRecursive) {
                    Ok(()) => {
                        self.folders.insert(folder.clone());
                    }
                    // It went away between the plan and the watch; its parent tells when it is back.
                    Err(_) if !folder.is_dir() => {}
                    Err(error) => failure = Some(error),
                }
            }
            let now = self::plan(path);
            if now == plan {
                break;
            }
            plan = now;
        }
        failure.map_or(Ok(()), Err)
    }
}

/// What to watch for one path.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Existing folders.
    folders: BTreeSet<PathBuf>,
    names: Names,
}

fn plan(path: &Path) -> Plan {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let chain = links::chain(&path).unwrap_or_else(|_| vec![path]);
    let mut plan = Plan::default();
    for link in chain {
        let (Some(folder), Some(name)) = (link.parent(), link.file_name()) else {
            continue;
        };
        // Some systems report the folder's real path.
        if let Ok(real) = folder.canonicalize() {
            plan.names.files.insert(real.join(name));
        }
        plan.names.files.insert(link.clone());
        watch_folder(folder, &mut plan);
    }
    plan
}

/// The folder and its parent; while it is missing, the nearest one that exists.
fn watch_folder(folder: &Path, plan: &mut Plan) {
    for folder in folder.ancestors() {
        plan.names.folders.insert(folder.to_owned());
        if !folder.is_dir() {
            continue;
        }
        plan.folders.insert(folder.to_owned());
        if let Some(parent) = folder.parent() {
            plan.folders.insert(parent.to_owned());
            if let (Ok(real), Some(name)) = (parent.canonicalize(), folder.file_name()) {
                plan.names.folders.insert(real.join(name));
            }
        }
        return;
    }
}

#[cfg(test)]
mod tests;
