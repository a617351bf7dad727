//! Where a connector's command is found and which environment it gets.
//!
//! A program started from a desktop has a bare PATH, so commands are looked up on the PATH of the person's login shell
//! and in the folders where package managers put things. Lookup and environment are plain functions; only
//! [`login_shell_path`] runs something.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fmt,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{Access, access};
use tokio::{io::AsyncReadExt as _, time::timeout};

use super::process::{Command, SpawnError, Spawner};

mod folders;

pub use folders::search_folders;

/// The command name that means our own binary.
pub const OWN_PROGRAM: &str = "neuron-connectd";

/// How long a login shell may take to read its files.
const SHELL_DEADLINE: Duration = Duration::from_secs(5);

/// More output than this from a login shell is no PATH.
const SHELL_OUTPUT: usize = 1024 * 1024;

const BEGIN: &str = "__neuron_path_begin__";
const END: &str = "__neuron_path_end__";

/// What a child gets from our environment besides PATH.
const INHERITED: [&str; 12] = [
    "HOME",
    "LOGNAME",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Folders that are searched for commands, in order, and what `neuron-connectd` means. Made once per run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// Absolute, without repetition.
    pub folders: Vec<PathBuf>,
    /// Our own binary.
    pub own: PathBuf,
}

/// Why there is no program to run. The sentences are for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    #[error("The command is empty. Name a program to run.")]
    Empty,
    #[error("The program \"{command}\" was not found. {}{}", .mend.unwrap_or("Install it or give its full path."), Looked(.looked))]
    NotFound {
        command: String,
        /// The folders, or the one place a path named.
        looked: Vec<PathBuf>,
        /// How to get it, where that is known.
        mend: Option<&'static str>,
    },
    #[error("{} is not allowed to run. Make it executable (chmod +x).", .0.display())]
    NotExecutable(PathBuf),
    #[error("{} is a folder, not a program. Name the program in it.", .0.display())]
    IsFolder(PathBuf),
}

struct Looked<'a>(&'a [PathBuf]);

impl fmt::Display for Looked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, folder) in self.0.iter().enumerate() {
            let before = if n == 0 { " Looked in " } else { ", " };
            write!(f, "{before}{}", folder.display())?;
        }
        if self.0.is_empty() { Ok(()) } else { f.write_str(".") }
    }
}

impl Programs {
    /// The file that a command means. With a slash it is a path (relative to `cwd`), else it is searched for.
    ///
    /// # Errors
    /// [`LookupError`], with where it looked.
    pub fn find(&self, command: &str, cwd: &Path) -> Result<PathBuf, LookupError> {
        if command.is_empty() {
            return Err(LookupError::Empty);
        }
        if command == OWN_PROGRAM {
            return Ok(self.own.clone());
        }
        if command.contains('/') {
            let path = cwd.join(command);
            return match Candidate::at(&path) {
                Candidate::Program => Ok(path),
                Candidate::Folder => Err(LookupError::IsFolder(path)),
                Candidate::NotExecutable => Err(LookupError::NotExecutable(path)),
                Candidate::Nothing => Err(LookupError::NotFound {
                    command: command.to_owned(),
                    looked: path.parent().map(Path::to_owned).into_iter().collect(),
                    mend: None,
                }),
            };
        }
        let mut not_executable = None;
        for folder in &self.folders {
            let path = folder.join(command);
            match Candidate::at(&path) {
                Candidate::Program => return Ok(path),
                Candidate::NotExecutable => not_executable = not_executable.or(Some(path)),
                Candidate::Folder | Candidate::Nothing => {}
            }
        }
        Err(match not_executable {
            Some(path) => LookupError::NotExecutable(path),
            None => LookupError::NotFound {
                command: command.to_owned(),
                looked: self.folders.clone(),
                mend: mend(command),
            },
        })
    }

    /// The search folders as a PATH, so that what a program starts (`env node`) is found where it was.
    pub fn path(&self) -> OsString {
        // A folder with a colon in its name cannot be in a PATH.
        let fit = self
            .folders
            .iter()
            .filter(|folder| !folder.as_os_str().as_bytes().contains(&b':'));
        env::join_paths(fit).unwrap_or_default()
    }

    /// The environment every child gets, out of ours (`env::vars_os()`): a short list, PATH replaced.
    pub fn base_environment(
        &self,
        ours: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> BTreeMap<OsString, OsString> {
        let mut base = inherited(ours);
        base.insert("PATH".into(), self.path());
        base
    }
}

/// Values beginning with `()` are functions of old shells, and commands to some.
fn inherited(ours: impl IntoIterator<Item = (OsString, OsString)>) -> BTreeMap<OsString, OsString> {
    ours.into_iter()
        .filter(|(name, value)| {
            INHERITED.iter().any(|inherited| name == inherited) && !value.as_bytes().starts_with(b"()")
        })
        .collect()
}

enum Candidate {
    Program,
    NotExecutable,
    Folder,
    Nothing,
}

impl Candidate {
    fn at(path: &Path) -> Self {
        match path.metadata() {
            Ok(found) if found.is_dir() => Self::Folder,
            Ok(_) if access(path, Access::EXEC_OK).is_ok() => Self::Program,
            Ok(_) => Self::NotExecutable,
            Err(_unreachable) => Self::Nothing,
        }
    }
}

fn mend(command: &str) -> Option<&'static str> {
    Some(match command {
        "node" | "npx" | "npm" => "It comes with Node.js: install that from https://nodejs.org.",
        "uv" | "uvx" => "It comes with uv: install that as described at https://docs.astral.sh/uv.",
        "docker" => "It comes with Docker: install Docker Desktop or Docker Engine from https://docs.docker.com.",
        "podman" => "It comes with Podman: install that from https://podman.io.",
        "python" | "python3" | "pip" | "pipx" => "It comes with Python: install that from https://www.python.org.",
        "bun" | "bunx" => "It comes with Bun: install that from https://bun.sh.",
        "deno" => "It comes with Deno: install that from https://deno.com.",
        _ => return None,
    })
}

/// Why the login shell's PATH is not known; ours serves instead.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    #[error("the login shell {} did not answer within {} s", .0.display(), SHELL_DEADLINE.as_secs())]
    TimedOut(PathBuf),
    #[error("the login shell {} did not tell its PATH", .0.display())]
    NoAnswer(PathBuf),
    #[error("the login shell did not start: {0}")]
    NotStarted(#[from] SpawnError),
    #[error("the login shell could not be read: {0}")]
    Unreadable(#[from] std::io::Error),
}

/// The PATH that the person's shell has after reading its files. Whatever else those files print is skipped; a shell
/// that does not come to an end is killed after five seconds, with all it started.
///
/// # Errors
/// [`ShellError`]; nothing is left running.
pub async fn login_shell_path(
    spawner: &Spawner,
    shell: &Path,
    home: &Path,
    ours: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<OsString, ShellError> {
    let mut environment: BTreeMap<OsString, OsString> = ours.into_iter().collect();
    let path = environment.remove(OsStr::new("PATH"));
    environment = inherited(environment);
    environment.extend(path.map(|path| ("PATH".into(), path)));
    // An inner `sh`, because not every shell quotes, prints or even spells PATH alike.
    let tell = format!(r#"/usr/bin/env sh -c 'printf "%s%s%s" {BEGIN} "$PATH" {END}'"#);
    let mut child = spawner
        .spawn(Command {
            program: shell.to_owned(),
            args: vec!["-l".into(), "-i".into(), "-c".into(), tell.into()],
            env: environment,
            cwd: home.to_owned(),
        })
        .await?;
    let mut io = child.take_io()?;
    drop(io.stdin);
    let mut output = Vec::new();
    let answer = async {
        loop {
            if let Some(path) = told_path(&output) {
                return Ok(path);
            }
            if output.len() > SHELL_OUTPUT || io.stdout.read_buf(&mut output).await? == 0 {
                return Err(ShellError::NoAnswer(shell.to_owned()));
            }
        }
    };
    let discard_complaints = async {
        let _ = tokio::io::copy(&mut io.stderr, &mut tokio::io::sink()).await;
        std::future::pending::<()>().await;
    };
    let answer = timeout(SHELL_DEADLINE, async {
        tokio::select! {
            answer = answer => answer,
            () = discard_complaints => Err(ShellError::NoAnswer(shell.to_owned())),
        }
    });
    // The child is dropped, and so killed, on every way out.
    answer
        .await
        .unwrap_or_else(|_elapsed| Err(ShellError::TimedOut(shell.to_owned())))
}

/// What stands between the markers; the last pair counts, since a shell may echo its command.
fn told_path(output: &[u8]) -> Option<OsString> {
    let find = |haystack: &[u8], needle: &str| haystack.windows(needle.len()).rposition(|w| w == needle.as_bytes());
    let end = find(output, END)?;
    let begin = find(&output[..end], BEGIN)? + BEGIN.len();
    let path = &output[begin..end];
    let is_path = path.starts_with(b"/") && !path.contains(&b'\n') && !path.contains(&0);
    is_path.then(|| OsString::from_vec(path.to_vec()))
}

#[cfg(test)]
mod tests;
