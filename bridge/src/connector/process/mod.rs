//! Children: how they are started, stopped, and found again after a crash of ours.
//!
//! All children are started from one thread that outlives them, because the kernel's "kill it when its parent dies"
//! is bound to the *thread* that forked. Every child leads its own session and so its own process group, which is what
//! is signalled; every child is recorded in a file before it can be lost. Knows nothing of MCP.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::{OsStr, OsString},
    fmt, fs, io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError, mpsc::RecvTimeoutError},
    thread,
    time::Duration,
};

use sha2::{Digest as _, Sha256};
use tokio::sync::{mpsc, oneshot};

mod child;
mod family;
mod group;
mod launch;
mod registry;

pub use child::{Child, ChildIo, Ended, Exit, How};
pub use registry::{Swept, sweep};

use child::Held;
use registry::Registry;

/// The environment variable by which our children are known. Its value is `<home>:<random>`.
pub const MARKER: &str = "NEURON_CONNECT_CHILD";

/// Starts that wait for the spawning thread; more wait at their askers.
const QUEUED_STARTS: usize = 64;

/// How often what connectors left behind, and has ended, is taken out of the process table.
const BURY_AFTER: Duration = Duration::from_secs(60);

/// The thread that does only reads a few files.
const BURY_STACK: usize = 128 * 1024;

/// What to run. Nothing is expanded, no shell is involved.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// An existing file (see `program`).
    pub program: PathBuf,
    /// Without the program's own name.
    pub args: Vec<OsString>,
    /// The whole environment; [`MARKER`] is added.
    pub env: BTreeMap<OsString, OsString>,
    /// An existing folder.
    pub cwd: PathBuf,
}

/// Arguments and environment may hold secrets.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// Why a program did not start. The sentences are for a person.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("The folder {} to run in does not exist. Create it or correct \"cwd\".", .0.display())]
    FolderMissing(PathBuf),
    #[error("The program {} is not there any more.", .0.display())]
    ProgramMissing(PathBuf),
    #[error("{} needs {interpreter}, which is not installed here.", .program.display())]
    InterpreterMissing { program: PathBuf, interpreter: String },
    #[error("{} is not allowed to run. Make it executable (chmod +x).", .0.display())]
    NotExecutable(PathBuf),
    #[error("{} is not a program this computer can run.", .0.display())]
    WrongFormat(PathBuf),
    #[error("{} could not be started: {source}.", .program.display())]
    Other { program: PathBuf, source: io::Error },
    #[error("No program can be started any more: Neuron Connect is shutting down.")]
    ShutDown,
}

/// Starts children. Cheap to clone; the thread behind it lives until the last clone and child are gone.
#[derive(Clone, Debug)]
pub struct Spawner {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    requests: mpsc::Sender<Request>,
    home: String,
    registry: Registry,
    /// Gone with the last clone, which ends the thread that buries.
    _alive: std::sync::mpsc::Sender<()>,
    /// By marker; entries leave when the child is reaped.
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    children: HashMap<String, Arc<Held>>,
    /// What an ended child left running, outside its group.
    left: Vec<family::Member>,
    /// Sessions of programs that were opened for the person.
    opened: HashSet<u32>,
    shut_down: bool,
}

struct Request {
    command: Command,
    spawner: Spawner,
    reply: oneshot::Sender<Result<Child, SpawnError>>,
}

impl Spawner {
    /// Starts the thread. `home` tells bridges apart in markers; `registry` is `connect/children.json`, which
    /// [`sweep`] must have read before.
    ///
    /// # Errors
    /// When the system gives no thread, or does not leave us what our children leave behind.
    pub fn start(home: &Path, registry: PathBuf) -> io::Result<Self> {
        family::adopt_orphans()?;
        let (requests, queue) = mpsc::channel(QUEUED_STARTS);
        thread::Builder::new()
            .name("spawner".to_owned())
            .spawn(move || serve(queue))?;
        let (alive, gone) = std::sync::mpsc::channel();
        let shared = Arc::new(Shared {
            requests,
            home: home_hash(home),
            registry: Registry::new(registry),
            _alive: alive,
            running: Mutex::default(),
        });
        let of_all = Arc::downgrade(&shared);
        thread::Builder::new()
            .name("burial".to_owned())
            .stack_size(BURY_STACK)
            .spawn(move || {
                let mut ended = HashSet::new();
                while gone.recv_timeout(BURY_AFTER) == Err(RecvTimeoutError::Timeout) {
                    let Some(shared) = of_all.upgrade() else { return };
                    ended = Self { shared }.bury(&ended);
                }
            })?;
        Ok(Self { shared })
    }

    /// Starts a program for the person, such as their browser: it and what it starts belong to no connector, and go on when
    /// this program ends.
    ///
    /// # Errors
    /// The system's; nothing is started then.
    pub fn open(&self, command: &mut std::process::Command) -> io::Result<()> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A session of its own, by which it is known.
        // SAFETY: `setsid` is async-signal-safe and does not allocate.
        unsafe {
            command.pre_exec(|| match libc::setsid() {
                -1 => Err(io::Error::last_os_error()),
                _ => Ok(()),
            });
        }
        // Not before it is known: what it starts may be asked about at once.
        let mut running = self.running();
        let mut started = command.spawn()?;
        running.opened.insert(started.id());
        drop(running);
        thread::Builder::new()
            .name("opened".to_owned())
            .stack_size(BURY_STACK)
            .spawn(move || started.wait())?;
        Ok(())
    }

    /// Runs a program. Dropping the future before it is ready leaves nothing running.
    ///
    /// # Errors
    /// [`SpawnError`], nothing is left running.
    pub async fn spawn(&self, command: Command) -> Result<Child, SpawnError> {
        let (reply, child) = oneshot::channel();
        let request = Request {
            command,
            spawner: self.clone(),
            reply,
        };
        self.shared
            .requests
            .send(request)
            .await
            .map_err(|_thread_gone| SpawnError::ShutDown)?;
        child.await.map_err(|_thread_gone| SpawnError::ShutDown)?
    }

    /// Kills every group at once and refuses new ones: the last resort before the process ends.
    pub fn kill_all(&self) {
        let mut running = self.running();
        running.shut_down = true;
        for child in running.children.values() {
            child.kill_group();
        }
    }

    /// How many children are not reaped yet.
    pub fn running_count(&self) -> usize {
        self.running().children.len()
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Running> {
        self.shared.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// On the spawner's thread.
    fn launch(&self, command: &Command) -> Result<Child, SpawnError> {
        if self.running().shut_down {
            return Err(SpawnError::ShutDown);
        }
        let marker = format!("{}:{}", self.shared.home, random());
        self.shared.registry.announce(&marker);
        let launched = launch::start(command, &marker).map_err(|error| spawn_error(command, error));
        let launched = match launched {
            Ok(launched) => launched,
            Err(error) => {
                self.shared.registry.forget(&marker);
                return Err(error);
            }
        };
        self.shared.registry.identify(&marker, launched.pid);
        let child = Child::adopt(launched, marker.clone(), self.clone());
        let mut running = self.running();
        running.children.insert(marker, child.held());
        let too_late = running.shut_down;
        drop(running);
        if too_late { Err(SpawnError::ShutDown) } else { Ok(child) }
    }

    /// The child is reaped, nothing of it can be found any more.
    fn reaped(&self, marker: &str) {
        let left = family::carriers(marker);
        self.shared.registry.forget(marker);
        // Last: where nothing runs, nothing is recorded.
        let mut running = self.running();
        running.left.extend(left);
        running.children.remove(marker);
    }
}

fn serve(mut queue: mpsc::Receiver<Request>) {
    while let Some(request) = queue.blocking_recv() {
        let launched = request.spawner.launch(&request.command);
        // Nobody waits any more: dropping the child kills it.
        drop(request.reply.send(launched));
    }
}

/// Names a home in markers without telling where it is.
fn home_hash(home: &Path) -> String {
    let digest = Sha256::digest(home.as_os_str().as_encoded_bytes());
    digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 128 bits that no other child has. Unique, not secret: the standard library's hash keys come from the system.
fn random() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    format!(
        "{:016x}{:016x}",
        RandomState::new().hash_one(std::process::id()),
        RandomState::new().hash_one(std::time::SystemTime::now())
    )
}

fn spawn_error(command: &Command, error: io::Error) -> SpawnError {
    let program = command.program.clone();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) if !command.cwd.is_dir() => SpawnError::FolderMissing(command.cwd.clone()),
        Some(libc::ENOENT | libc::ENOTDIR) => match interpreter(&command.program) {
            _ if !program.exists() => SpawnError::ProgramMissing(program),
            Some(interpreter) => SpawnError::InterpreterMissing { program, interpreter },
            None => SpawnError::WrongFormat(program),
        },
        Some(libc::EACCES | libc::EPERM) => SpawnError::NotExecutable(program),
        Some(libc::ENOEXEC) => SpawnError::WrongFormat(program),
        _ => SpawnError::Other { program, source: error },
    }
}

/// The program named in a script's first line.
fn interpreter(script: &Path) -> Option<String> {
    use io::Read as _;
    let mut beginning = Vec::new();
    fs::File::open(script)
        .ok()?
        .take(256)
        .read_to_end(&mut beginning)
        .ok()?;
    let line = beginning.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let word = String::from_utf8_lossy(line);
    word.split_whitespace().next().map(str::to_owned)
}

/// `KEY=value` of a child's environment.
fn marked(env: &BTreeMap<OsString, OsString>, marker: &str) -> BTreeMap<OsString, OsString> {
    let mut env = env.clone();
    env.insert(OsStr::new(MARKER).to_owned(), OsString::from(marker));
    env
}

#[cfg(test)]
mod tests;
