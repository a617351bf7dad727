//! Finds the program behind a connection, at most once for each, and only when somebody asks.
//!
//! Looking through the processes takes milliseconds, so it happens off the runtime and a few at a time.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::{OnceCell, Semaphore};

use super::{
    process::{self, Facts},
    program::Program,
    socket::{self, Socket},
};

/// Searches at once; more wait at their askers. Each reads all of this user's processes.
const SEARCHES: usize = 2;

/// The file name of our command line, whose `mcp` speaks for the program that started it.
const SHIM: &str = "neuron-connectd";

/// Makes the cells of one server's connections.
#[derive(Debug, Clone)]
pub struct ProgramLookup(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    searches: Arc<Semaphore>,
    /// Where our own programs lie.
    own_folder: Option<PathBuf>,
}

/// Where a program is looked for.
#[derive(Debug, Clone, Copy)]
enum Behind {
    Connection(Socket),
    /// When it had started, in the system's unit: the id alone may mean another one later.
    Process {
        pid: u32,
        started: u64,
    },
    Nobody,
}

/// The program behind one connection. Clones share what was found.
#[derive(Clone)]
pub struct ProgramCell(Arc<Cell>);

struct Cell {
    behind: Behind,
    lookup: ProgramLookup,
    found: OnceCell<Option<Arc<Program>>>,
}

impl Default for ProgramLookup {
    fn default() -> Self {
        let own = std::env::current_exe().ok();
        Self::beside(own.as_deref().and_then(Path::parent))
    }
}

impl ProgramLookup {
    fn beside(own_folder: Option<&Path>) -> Self {
        Self(Arc::new(Shared {
            searches: Arc::new(Semaphore::new(SEARCHES)),
            own_folder: own_folder.map(Path::to_owned),
        }))
    }

    /// The program that holds the other end of a loopback connection.
    pub(crate) fn of_connection(&self, socket: Socket) -> ProgramCell {
        self.cell(Behind::Connection(socket))
    }

    /// The program of a process that the system names, as it does for the local socket.
    pub(crate) fn of_process(&self, pid: u32) -> ProgramCell {
        self.cell(match process::facts(pid) {
            Some(Facts { started, .. }) => Behind::Process { pid, started },
            None => Behind::Nobody,
        })
    }

    fn find(&self, behind: Behind) -> Option<Program> {
        let (pid, facts) = match behind {
            Behind::Connection(socket) => holder(socket)?,
            Behind::Process { pid, started } => (pid, process::facts(pid).filter(|now| now.started == started)?),
            Behind::Nobody => return None,
        };
        if is_shim(&facts, self.0.own_folder.as_deref()) {
            return parent_of(pid, &facts);
        }
        Some(Program::from_facts(pid, &facts))
    }

    fn cell(&self, behind: Behind) -> ProgramCell {
        ProgramCell(Arc::new(Cell {
            behind,
            lookup: self.clone(),
            found: OnceCell::new(),
        }))
    }
}

impl ProgramCell {
    /// Of nobody who could be found: the owner's window, and in tests.
    pub fn unknown() -> Self {
        ProgramLookup::default().cell(Behind::Nobody)
    }

    /// The program, looked for on the first call. `None` = unknown: it is gone, belongs to another user, or the system
    /// does not tell. Dropping the future loses nothing; the next call looks again.
    pub async fn get(&self) -> Option<Arc<Program>> {
        let cell = &self.0;
        let search = async {
            let behind = cell.behind;
            if let Behind::Nobody = behind {
                return None;
            }
            let lookup = cell.lookup.clone();
            let place = lookup.0.searches.clone().acquire_owned().await;
            let found = tokio::task::spawn_blocking(move || {
                let _place = place;
                lookup.find(behind)
            });
            found.await.ok().flatten().map(Arc::new)
        };
        cell.found.get_or_init(|| search).await.clone()
    }

    /// Begins to look for it, where nobody does and nothing else is looked for: of many connections that come and go, most
    /// stay unknown rather than keep the processor busy. What is found is told by [`Self::known`].
    pub fn look(&self) {
        let is_wanted = !matches!(self.0.behind, Behind::Nobody) && !self.0.found.initialized();
        if is_wanted && self.0.lookup.0.searches.available_permits() == SEARCHES {
            let cell = self.clone();
            // It ends with its search, and holds nothing of whoever asked.
            tokio::spawn(async move { cell.get().await });
        }
    }

    /// The program if it was looked for already; `Some(None)` = it was, and is unknown. Costs nothing.
    pub fn known(&self) -> Option<Option<Arc<Program>>> {
        self.0.found.get().cloned()
    }

    /// Whether both stand for the same connection.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for ProgramCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgramCell").field(&self.known()).finish()
    }
}

/// The process that holds a connection's other end. Where several do, because one was started with it, the oldest.
fn holder(socket: Socket) -> Option<(u32, Facts)> {
    let mut holders: Vec<_> = socket::holders(socket, None)
        .into_iter()
        .filter_map(|pid| Some((pid, process::facts(pid)?)))
        .collect();
    holders.sort_by_key(|(pid, facts)| (facts.started, *pid));
    let (pid, facts) = holders.into_iter().next()?;
    // Between the two reads it may have ended, or become another program.
    let still = socket::holders(socket, Some(&[pid])) == [pid] && process::facts(pid).as_ref() == Some(&facts);
    still.then_some((pid, facts))
}

/// Only the one that came with us: anybody can give a program that name.
fn is_shim(facts: &Facts, own_folder: Option<&Path>) -> bool {
    let Some(exe) = &facts.exe else { return false };
    own_folder.is_some()
        && exe.parent() == own_folder
        && exe.file_stem().is_some_and(|name| name == SHIM)
        && facts.args.get(1).is_some_and(|command| command == "mcp")
}

fn parent_of(pid: u32, facts: &Facts) -> Option<Program> {
    let parent = process::facts(facts.parent)?;
    // A child whose parent ended gets another one.
    let still = process::facts(pid).is_some_and(|now| (now.started, now.parent) == (facts.started, facts.parent));
    (still && parent.started <= facts.started).then(|| Program::from_facts(facts.parent, &parent))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
