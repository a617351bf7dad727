//! The built-in files server: one folder over stdio, and nothing outside of it.
//!
//! `root` keeps paths inside; `read`, `write`, `edit`, `look` and `walk` do the work; `tools` says what callers see; `server`
//! speaks MCP. `neuron-connectd files --print-tools` prints the tool list that the bridge has compiled in
//! (`bridge/src/builtin/files_tools.json`).

mod edit;
mod look;
mod read;
mod root;
mod server;
mod tools;
mod walk;
mod write;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use neuron_bridge::builtin;
use rmcp::{
    ServiceExt as _,
    transport::{async_rw::AsyncRwTransport, stdio_pipes},
};

use crate::exit::Failure;
use root::Root;
use server::Files;

/// Where the app's own files are, as the bridge tells its child.
pub(crate) const HOME_VARIABLE: &str = "NEURON_CONNECT_HOME";

/// Longest message that is read, in bytes. The SDK drops a longer one unanswered, so it is far above what is accepted.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// What is to be served and what is never to be.
pub(crate) struct Settings {
    /// As given; `~` is the person's home, a relative one is relative to the working folder.
    pub(crate) folder: PathBuf,
    /// May neither lie in the folder nor hold it.
    pub(crate) private: Vec<PathBuf>,
    /// The person's home.
    pub(crate) home: Option<PathBuf>,
}

/// Serves until the client closes our standard input.
pub(crate) async fn run(settings: Settings) -> Result<(), Failure> {
    let files = open(&settings)?;
    let (input, output) = stdio_pipes();
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE);
    let serving = match files.serve(transport).await {
        Ok(serving) => serving,
        // A client that leaves before it says anything has done nothing wrong.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(e) => return Err(Failure::failed(format!("The client's first message was no MCP: {e}."))),
    };
    match serving.waiting().await {
        Ok(_) => Ok(()),
        Err(e) => Err(Failure::failed(format!("The files server stopped: {e}."))),
    }
}

/// The tool list as the bridge compiles it in: pretty JSON with a final line end.
pub(crate) fn tools_json() -> Result<String, Failure> {
    let tools = tools::list().map_err(Failure::failed)?;
    serde_json::to_string_pretty(&tools)
        .map(|json| json + "\n")
        .map_err(|e| Failure::failed(format!("The tool list could not be written down: {e}.")))
}

fn open(settings: &Settings) -> Result<Files, Failure> {
    let folder = absolute(&settings.folder, settings.home.as_deref())?;
    if let Some(home) = &settings.home
        && folder == builtin::sandbox_path(home)
    {
        builtin::prepare_sandbox(home)
            .map_err(|e| Failure::usage(format!("The folder {} could not be made: {e}.", folder.display())))?;
    }
    match fs::metadata(&folder) {
        Ok(m) if m.is_dir() => {}
        Ok(_) => {
            return Err(Failure::usage(format!(
                "{} is a file, not a folder: name the folder that may be used.",
                folder.display()
            )));
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(Failure::usage(format!(
                "The folder {} does not exist: make it first, or name another one.",
                folder.display()
            )));
        }
        Err(e) => return Err(cannot_open(&folder, &e)),
    }
    for private in &settings.private {
        let private = absolute(private, settings.home.as_deref())?;
        if overlap(&folder, &private).map_err(|e| cannot_open(&folder, &e))? {
            return Err(Failure::usage(format!(
                "{} cannot be served, because it contains or lies in {}, where Neuron Connect keeps its own files: name another folder.",
                folder.display(),
                private.display()
            )));
        }
    }
    let root = Root::open(folder.clone(), settings.home.clone()).map_err(|e| cannot_open(&folder, &e))?;
    Ok(Files::new(root, tools::list().map_err(Failure::failed)?))
}

fn cannot_open(folder: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("The folder {} cannot be opened: {error}.", folder.display()))
}

fn absolute(path: &Path, home: Option<&Path>) -> Result<PathBuf, Failure> {
    let expanded = match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    };
    let absolute = std::path::absolute(&expanded)
        .map_err(|e| Failure::usage(format!("The path \"{}\" cannot be used: {e}.", path.display())))?;
    // Without a trailing slash and `.`, so that two spellings of one folder are equal.
    Ok(absolute.components().collect())
}

/// Whether one of two folders holds the other, links resolved. `folder` exists; `private` may not yet.
fn overlap(folder: &Path, private: &Path) -> io::Result<bool> {
    let folder = folder.canonicalize()?;
    let private = resolve(private)?;
    Ok(folder.starts_with(&private)
        || private.starts_with(&folder)
        || is_ancestor(&folder, &private)
        || is_ancestor(&private, &folder))
}

/// The path with the links of the part that exists resolved.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Ok(real) => Ok(real),
        Err(e) if e.kind() == io::ErrorKind::NotFound => match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Ok(resolve(parent)?.join(name)),
            _ => Err(e),
        },
        Err(e) => Err(e),
    }
}

/// Whether `upper` is `lower` or above it, by what the system says they are: catches other spellings of one folder
/// (letter case, bind mounts) that texts do not.
#[cfg(unix)]
fn is_ancestor(upper: &Path, lower: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |path: &Path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let Some(wanted) = id(upper) else {
        return false;
    };
    lower.ancestors().any(|folder| id(folder) == Some(wanted))
}

#[cfg(not(unix))]
fn is_ancestor(_upper: &Path, _lower: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(folder: &Path, private: &Path) -> Option<String> {
        let settings = Settings {
            folder: folder.to_owned(),
            private: vec![private.to_owned()],
            home: None,
        };
        open(&settings).err().map(|f| f.message)
    }

    #[test]
    fn a_folder_that_holds_or_lies_in_the_apps_home_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().join(".neuron");
        fs::create_dir_all(home.join("connect")).unwrap();
        fs::create_dir_all(base.path().join("work")).unwrap();
        for folder in [base.path(), &home, &home.join("connect"), Path::new("/")] {
            let said = refusal(folder, &home).unwrap();
            assert!(said.contains("cannot be served"), "{said}");
        }
        assert_eq!(refusal(&base.path().join("work"), &home), None);
        // Not a path prefix by components.
        fs::create_dir(base.path().join(".neuron-work")).unwrap();
        assert_eq!(refusal(&base.path().join(".neuron-work"), &home), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_does_not_get_around_that() {
        let base = tempfile::tempdir().unwrap();
        let home = base.path().join("real/.neuron");
        fs::create_dir_all(&home).unwrap();
        std::os::unix::fs::symlink(&home, base.path().join("link")).unwrap();
        std::os::unix::fs::symlink(base.path().join("real"), base.path().join("up")).unwrap();
        assert!(refusal(&base.path().join("link"), &home).is_some());
        assert!(refusal(&base.path().join("real"), &base.path().join("up/.neuron/later")).is_some());
    }

    #[test]
    fn a_folder_that_is_missing_or_a_file_is_named_and_not_made() {
        let base = tempfile::tempdir().unwrap();
        let missing = base.path().join("missing");
        assert!(
            refusal(&missing, &base.path().join("h"))
                .unwrap()
                .contains("does not exist")
        );
        assert!(!missing.exists());
        fs::write(&missing, "").unwrap();
        assert!(refusal(&missing, &base.path().join("h")).unwrap().contains("is a file"));
    }

    #[test]
    fn only_the_default_folder_is_made_when_it_is_missing() {
        let home = tempfile::tempdir().unwrap();
        let settings = |folder: &str| Settings {
            folder: folder.into(),
            private: vec![home.path().join(".neuron")],
            home: Some(home.path().to_owned()),
        };
        assert!(open(&settings("~/other")).is_err());
        assert!(open(&settings("~/neuron-connectd-sandbox/")).is_ok());
        assert!(home.path().join("neuron-connectd-sandbox/welcome.md").exists());
    }

    #[test]
    fn the_compiled_in_list_is_what_the_server_lists() {
        let compiled: serde_json::Value = serde_json::from_str(builtin::files_tools()).unwrap();
        let real: serde_json::Value = serde_json::from_str(&tools_json().unwrap()).unwrap();
        assert_eq!(
            compiled, real,
            "run `neuron-connectd files --print-tools > bridge/src/builtin/files_tools.json`"
        );
    }
}
