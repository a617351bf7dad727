//! The folder that belongs to one bridge: where everything is, and who holds it.
//!
//! Knows every path under the root, keeps the folders private, holds the lock that makes a bridge the only one of its
//! home, and publishes `api.json` for programs that look for a running bridge. Never reads the person's configuration.

use std::{
    env,
    ffi::OsString,
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::ids::ConnectorId;

/// A socket's name must fit into 108 bytes on Linux and 104 on macOS, with its closing NUL.
#[cfg(unix)]
const LONGEST_SOCKET_PATH: usize = 100;

/// The service name of the accounts of `~/.neuron` in the system's keychain.
const KEYCHAIN_SERVICE: &str = "ai.neuron.connect";

/// The root folder, `~/.neuron` unless told otherwise, and every path under it. Touches nothing until
/// [`Home::prepare`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// The home at this folder; a relative path is taken from the working folder.
    ///
    /// # Errors
    /// [`HomeError::Nowhere`] for an empty path, or without a working folder.
    pub fn at(root: impl AsRef<Path>) -> Result<Self, HomeError> {
        let root = std::path::absolute(root).map_err(|_| HomeError::Nowhere)?;
        Ok(Self { root })
    }

    /// The home that was asked for: `flag` (`--home`), else `NEURON_HOME`, else `~/.neuron`.
    ///
    /// # Errors
    /// [`HomeError::Nowhere`] when nothing names a folder.
    pub fn locate(flag: Option<&Path>) -> Result<Self, HomeError> {
        choose_root(flag, env::var_os("NEURON_HOME"), env::home_dir())
            .ok_or(HomeError::Nowhere)
            .and_then(Self::at)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The person's file.
    pub fn config_file(&self) -> PathBuf {
        self.root.join("connectors.json")
    }

    /// Everything of ours apart from the person's file.
    pub fn connect_folder(&self) -> PathBuf {
        self.root.join("connect")
    }

    pub fn settings_file(&self) -> PathBuf {
        self.connect_folder().join("settings.json")
    }

    pub fn database(&self) -> PathBuf {
        self.connect_folder().join("state.db")
    }

    /// The key of the trust rows where there is no keychain.
    pub fn trust_key(&self) -> PathBuf {
        self.connect_folder().join("trust.key")
    }

    /// The secrets, where they are kept in an encrypted file.
    pub fn secrets_file(&self) -> PathBuf {
        self.connect_folder().join("secrets.bin")
    }

    /// The service name of this home's accounts in the system's keychain. Homes do not share secrets.
    pub fn keychain_service(&self) -> String {
        let is_default = env::home_dir().is_some_and(|home| home.join(".neuron") == self.root);
        if is_default {
            return KEYCHAIN_SERVICE.to_owned();
        }
        let hash = Sha256::digest(self.root.as_os_str().as_encoded_bytes());
        let hash: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{KEYCHAIN_SERVICE}.{hash}")
    }

    pub fn lock_file(&self) -> PathBuf {
        self.connect_folder().join("lock")
    }

    pub fn api_file(&self) -> PathBuf {
        self.connect_folder().join("api.json")
    }

    /// Where the local socket is unless the path is too long; `api.json` names the real place.
    pub fn socket_path(&self) -> PathBuf {
        self.connect_folder().join("bridge.sock")
    }

    pub fn run_folder(&self) -> PathBuf {
        self.connect_folder().join("run")
    }

    /// The private working folder of a connector without `cwd`. Not created by [`Home::prepare`].
    pub fn run_folder_of(&self, id: &ConnectorId) -> PathBuf {
        self.run_folder().join(id.as_str())
    }

    pub fn logs_folder(&self) -> PathBuf {
        self.connect_folder().join("logs")
    }

    /// Which programs run, for the next bridge to end them if this one cannot. Not in the run folder, where a connector
    /// may be called like it.
    pub fn children_file(&self) -> PathBuf {
        self.connect_folder().join("children.json")
    }

    /// What an upstream wrote to stderr.
    pub fn log_of(&self, id: &ConnectorId) -> PathBuf {
        self.logs_folder().join(format!("{id}.log"))
    }

    /// Large results and saved resources.
    pub fn results_folder(&self) -> PathBuf {
        self.connect_folder().join("results")
    }

    /// Creates the folders that are missing and closes ours to everybody else.
    ///
    /// # Errors
    /// [`HomeError::NotYours`], [`HomeError::Shared`], or what the system said.
    pub fn prepare(&self) -> Result<(), HomeError> {
        for folder in [
            self.root.clone(),
            self.connect_folder(),
            self.run_folder(),
            self.logs_folder(),
            self.results_folder(),
        ] {
            private_folder(&folder)?;
        }
        Ok(())
    }

    /// Takes the home for this process, until the lock is dropped or the process is gone, however it ends.
    /// `program` is the name that the next one is told. Call [`Home::prepare`] first.
    ///
    /// # Errors
    /// [`LockError::Held`] when another bridge runs here.
    pub fn lock(&self, program: &str) -> Result<HomeLock, LockError> {
        let failed = |source| LockError::Io {
            path: self.lock_file(),
            source,
        };
        let mut file = private_file(&self.lock_file()).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // Where a locked file cannot be read, the holder stays unnamed.
                let _ = file.take(4096).read_to_string(&mut text);
                return Err(LockError::Held {
                    root: self.root.clone(),
                    holder: Holder::parse(&text),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "{} {program}", std::process::id()).map_err(failed)?;
        Ok(HomeLock {
            home: self.clone(),
            file,
        })
    }
}

fn choose_root(flag: Option<&Path>, neuron_home: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    flag.map(Path::to_owned)
        .or_else(|| neuron_home.filter(|value| !value.is_empty()).map(PathBuf::from))
        .or_else(|| {
            home.filter(|folder| !folder.as_os_str().is_empty())
                .map(|folder| folder.join(".neuron"))
        })
}

/// The bridge that runs at a home, as far as its `api.json` says and its process still lives.
pub fn discover(home: &Home) -> Option<ApiFile> {
    let text = fs::read(home.api_file()).ok()?;
    let api: ApiFile = serde_json::from_slice(&text).ok()?;
    is_alive(api.pid).then_some(api)
}

/// `connect/api.json`: how to reach the bridge that runs here. Nothing in it is secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiFile {
    /// The loopback port; `None` while somebody else holds it, whom nobody may take for us.
    pub port: Option<u16>,
    pub pid: u32,
    /// Of the program that runs.
    pub version: String,
    /// The local socket, where there is one.
    pub socket: Option<PathBuf>,
}

/// Proof that this process is the only bridge of its home. Dropping it lets the next one in.
#[derive(Debug)]
pub struct HomeLock {
    home: Home,
    file: File,
}

impl HomeLock {
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Publishes how to reach this bridge, all at once.
    ///
    /// # Errors
    /// What the system said; the old file then stays.
    pub fn publish(&self, api: &ApiFile) -> io::Result<()> {
        let folder = self.home.connect_folder();
        let mut file = tempfile::Builder::new().prefix(".api-").tempfile_in(&folder)?;
        serde_json::to_writer(&mut file, api)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(self.home.api_file())?;
        #[cfg(unix)]
        File::open(&folder)?.sync_all()?;
        Ok(())
    }

    /// Takes `api.json` away; that it is not there is no fault.
    pub fn unpublish(&self) {
        match fs::remove_file(self.home.api_file()) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!("could not remove {}: {error}", self.home.api_file().display()),
        }
    }

    /// A private place for the local socket: in the home, or where its path would be too long for a socket's name, in
    /// the runtime folder, else in a fresh temporary one.
    ///
    /// # Errors
    /// What the system said, or that even the temporary folder's path is too long.
    #[cfg(unix)]
    pub fn socket_place(&self) -> io::Result<SocketPlace> {
        self.socket_place_beside(env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), &env::temp_dir())
    }

    #[cfg(unix)]
    fn socket_place_beside(&self, runtime: Option<PathBuf>, temporary: &Path) -> io::Result<SocketPlace> {
        let fits = |path: &PathBuf| path.as_os_str().len() <= LONGEST_SOCKET_PATH;
        let usual = self.home.socket_path();
        if fits(&usual) {
            return Ok(SocketPlace {
                path: usual,
                _folder: None,
            });
        }
        let folder = runtime.filter(|folder| folder.is_absolute() && folder.is_dir());
        if let Some(folder) = folder.map(|folder| folder.join("neuron-connect")) {
            let path = folder.join(format!("{}.sock", short_hash(self.home.root())));
            if fits(&path) && private_folder(&folder).is_ok() {
                return Ok(SocketPlace { path, _folder: None });
            }
        }
        let folder = tempfile::Builder::new()
            .prefix("neuron-connect-")
            .tempdir_in(temporary)?;
        private_folder(folder.path()).map_err(io::Error::other)?;
        let path = folder.path().join("bridge.sock");
        if !fits(&path) {
            return Err(io::Error::other(format!(
                "no folder with a path short enough for the local socket was found; {} is too long",
                temporary.display()
            )));
        }
        Ok(SocketPlace {
            path,
            _folder: Some(folder),
        })
    }
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        // Only tidiness: an unlocked file names nobody whatever it says.
        let _ = self.file.set_len(0);
    }
}

/// Where the local socket goes. A temporary folder that was made for it goes with this value.
#[cfg(unix)]
#[derive(Debug)]
pub struct SocketPlace {
    pub path: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

/// Why a folder cannot be a home.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("There is no folder for Neuron Connect's files: set NEURON_HOME to one that is yours, or give --home.")]
    Nowhere,
    #[error(
        "{} belongs to another user (number {owner}), who could change what runs here. Choose a folder of your own with NEURON_HOME or --home.",
        path.display()
    )]
    NotYours { path: PathBuf, owner: u32 },
    #[error("{} is shared by all users of this computer. Choose a folder of your own with NEURON_HOME or --home.", path.display())]
    Shared { path: PathBuf },
    #[error("{} is not a folder. Move it away, or choose another folder with NEURON_HOME or --home.", path.display())]
    NotAFolder { path: PathBuf },
    #[error("The folder {} could not be used: {source}. Check that it is yours and that the disk is not full.", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Why this process is not the bridge of its home.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "Neuron Connect already runs for {}: {}. Stop it first, or choose another home with NEURON_HOME or --home.",
        root.display(),
        holder.as_ref().map_or_else(|| "another program holds it".to_owned(), Holder::to_string)
    )]
    Held { root: PathBuf, holder: Option<Holder> },
    #[error("{} could not be locked: {source}. Check that its folder is yours and that the disk is not full.", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The process that holds something we want.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub program: String,
}

impl Holder {
    fn parse(text: &str) -> Option<Self> {
        let (pid, program) = text.trim().split_once(' ')?;
        Some(Self {
            pid: pid.parse().ok()?,
            program: program.to_owned(),
        })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.program, self.pid)
    }
}

/// A folder of ours: made if missing, ours, and closed to everybody else.
fn private_folder(path: &Path) -> Result<(), HomeError> {
    let failed = |source| HomeError::Io {
        path: path.to_owned(),
        source,
    };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        Ok(()) => {}
        Err(_) if path.exists() => {}
        Err(source) => return Err(failed(source)),
    }
    let found = fs::metadata(path).map_err(failed)?;
    if !found.is_dir() {
        return Err(HomeError::NotAFolder { path: path.to_owned() });
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(HomeError::NotYours {
                path: path.to_owned(),
                owner: found.uid(),
            });
        }
        // Closing a folder such as /tmp would break everybody else's programs.
        const STICKY: u32 = 0o1000;
        if found.mode() & STICKY != 0 || path.parent().is_none() {
            return Err(HomeError::Shared { path: path.to_owned() });
        }
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
    }
    Ok(())
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn short_hash(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let hash = Sha256::digest(path.as_os_str().as_bytes());
    hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    // A process of another user answers "not permitted", and lives.
    !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

/// There is no cheap way to ask here; whoever connects will see.
#[cfg(not(unix))]
fn is_alive(_pid: u32) -> bool {
    true
}

#[cfg(test)]
mod tests;
