//! The children's file: what a next start needs to end what a killed bridge left behind.
//!
//! A child is announced by its marker before it exists and identified right after. Ending a stranger would be worse
//! than leaving an orphan, so only a process that carries the very marker in its environment is ever killed.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct File {
    children: Vec<Record>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    marker: String,
    /// Process and group id; absent while the child is only announced.
    pid: Option<u32>,
    /// Clock ticks between the system's start and the child's.
    started: Option<u64>,
}

/// The file while this bridge runs.
#[derive(Debug)]
pub(super) struct Registry {
    path: PathBuf,
    file: Mutex<File>,
}

impl Registry {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: Mutex::default(),
        }
    }

    /// A child is about to be started.
    pub(super) fn announce(&self, marker: &str) {
        self.change(|children| {
            children.push(Record {
                marker: marker.to_owned(),
                pid: None,
                started: None,
            });
        });
    }

    /// The child exists.
    pub(super) fn identify(&self, marker: &str, pid: u32) {
        self.change(|children| {
            for child in children.iter_mut().filter(|child| child.marker == marker) {
                child.pid = Some(pid);
                child.started = started(pid);
            }
        });
    }

    /// The child and its group are gone.
    pub(super) fn forget(&self, marker: &str) {
        self.change(|children| children.retain(|child| child.marker != marker));
    }

    /// A file that cannot be written is no reason to start nothing: the kernel ends children with us on most systems.
    fn change(&self, change: impl FnOnce(&mut Vec<Record>)) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut file.children);
        if let Err(error) = save(&self.path, &file) {
            tracing::warn!(path = %self.path.display(), %error, "the list of running programs cannot be written");
        }
    }
}

/// Atomic, but not synced: it matters after our death, not after the system's, which no child survives.
fn save(path: &Path, file: &File) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut temporary = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    temporary.write_all(&serde_json::to_vec(file)?)?;
    temporary.persist(path)?;
    Ok(())
}

/// What [`sweep`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Processes that were killed.
    pub killed: usize,
    /// Recorded children of which nothing was left.
    pub gone: usize,
}

/// Ends what a bridge that did not stop properly left running, and empties the file. Call before [`super::Spawner::start`]
/// while holding the home's lock. Blocks. Without a file, or with an unreadable one, does nothing.
pub fn sweep(path: &Path) -> Swept {
    let mut swept = Swept::default();
    let Ok(text) = fs::read_to_string(path) else {
        return swept;
    };
    match serde_json::from_str::<File>(&text) {
        Ok(file) => {
            for child in &file.children {
                match kill(child) {
                    0 => swept.gone += 1,
                    killed => swept.killed += killed,
                }
            }
        }
        Err(error) => tracing::warn!(path = %path.display(), %error, "the list of running programs cannot be read"),
    }
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "the list of running programs cannot be removed");
    }
    swept
}

#[cfg(target_os = "linux")]
mod found {
    use std::{collections::HashSet, thread, time::Duration};

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::{
        super::{
            MARKER,
            group::table::{self, Process},
        },
        Record,
    };

    /// A process may fork while we look; it cannot for ever.
    const ROUNDS: usize = 20;

    /// A killed process needs a moment to be gone.
    const BETWEEN_ROUNDS: Duration = Duration::from_millis(10);

    pub(super) fn started(pid: u32) -> Option<u64> {
        table::process(pid).map(|process| process.started)
    }

    /// Kills what is left of a recorded child, returns how many processes that were.
    pub(super) fn kill(record: &Record) -> usize {
        let mut killed = HashSet::new();
        for _ in 0..ROUNDS {
            let found: Vec<_> = table::processes()
                .filter(|process| !process.zombie && could_be(record, process) && carries(record, process.pid))
                .collect();
            if found.is_empty() {
                break;
            }
            for process in found {
                if kill_surely(record, &process) {
                    killed.insert(process.pid);
                }
            }
            thread::sleep(BETWEEN_ROUNDS);
        }
        killed.len()
    }

    /// A member of the recorded group; where only the marker was recorded, anyone who carries it.
    pub(super) fn could_be(record: &Record, process: &Process) -> bool {
        if process.pid == std::process::id() {
            return false;
        }
        match record.pid {
            None => true,
            Some(leader) if process.pid == leader => record.started == Some(process.started),
            Some(leader) => process.group == leader,
        }
    }

    fn carries(record: &Record, pid: u32) -> bool {
        !record.marker.is_empty() && table::variable(pid, MARKER).is_some_and(|value| value == record.marker.as_bytes())
    }

    /// The handle is taken before the identity is checked again, so the signal cannot reach a successor of the id.
    fn kill_surely(record: &Record, process: &Process) -> bool {
        let Some(pid) = Pid::from_raw(process.pid.cast_signed()) else {
            return false;
        };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            return false;
        };
        table::process(process.pid).is_some_and(|again| again.started == process.started)
            && carries(record, process.pid)
            && pidfd_send_signal(&handle, Signal::KILL).is_ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod found {
    //! Elsewhere a process cannot be told from its successor with what we read, so nothing is killed.

    use super::Record;

    pub(super) fn started(_pid: u32) -> Option<u64> {
        None
    }

    pub(super) fn kill(_record: &Record) -> usize {
        0
    }
}

use found::{kill, started};

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{super::group::table::Process, found::could_be, *};

    #[test]
    fn only_the_recorded_group_and_its_very_leader_come_into_question() {
        let record = |pid, started| Record {
            marker: "h:r".to_owned(),
            pid,
            started,
        };
        let process = |pid, group, started| Process {
            pid,
            group,
            started,
            zombie: false,
        };
        let known = record(Some(500), Some(9));
        assert!(could_be(&known, &process(500, 500, 9)));
        assert!(could_be(&known, &process(501, 500, 12)), "a grandchild");
        assert!(!could_be(&known, &process(500, 500, 10)), "the id was given away");
        assert!(!could_be(&known, &process(501, 77, 12)), "it left the group");
        assert!(!could_be(&record(Some(500), None), &process(500, 500, 9)));
        assert!(could_be(&record(None, None), &process(500, 77, 9)));
        assert!(!could_be(&record(None, None), &process(std::process::id(), 1, 1)));
    }

    #[test]
    fn an_unreadable_list_kills_nothing_and_is_put_away() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("children.json");
        assert_eq!(sweep(&path), Swept::default());
        for text in ["", "{", r#"{"children":[{"pid":1}]}"#, "[]"] {
            fs::write(&path, text).unwrap();
            assert_eq!(sweep(&path), Swept::default());
            assert!(!path.exists());
        }
    }

    #[test]
    fn the_list_is_private_and_follows_every_change() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run/children.json");
        let registry = Registry::new(path.clone());
        registry.announce("h:1");
        let read = || {
            serde_json::from_slice::<File>(&fs::read(&path).unwrap())
                .unwrap()
                .children
        };
        assert_eq!((read()[0].marker.as_str(), read()[0].pid), ("h:1", None));
        registry.identify("h:1", std::process::id());
        assert_eq!(read()[0].pid, Some(std::process::id()));
        assert!(read()[0].started.unwrap() > 0);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        registry.forget("h:1");
        assert_eq!(read(), []);
    }
}
