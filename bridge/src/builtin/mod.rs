//! The connector that is there without a file: the built-in files server on a folder of its own.
//!
//! Owns its entry, its tool list as data and the making of its folder. The server itself is `neuron-connectd files`;
//! `files_tools.json` is what that program prints with `neuron-connectd files --print-tools`, and a test of it fails
//! when the two differ.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use crate::config::Launch;

/// The name by which an entry means our own program, wherever that is.
pub const OWN_PROGRAM: &str = "neuron-connectd";

/// The id of the default connector.
pub const FILES_ID: &str = "filesystem";

/// The folder of the default connector, in the person's home.
pub const SANDBOX: &str = "neuron-connectd-sandbox";

/// The files server's tool list: a JSON array of list items exactly as its `tools/list` answers.
pub fn files_tools() -> &'static str {
    include_str!("files_tools.json")
}

/// What `connectors.json` would say if it said what happens without it.
pub fn default_config_text() -> &'static str {
    include_str!("connectors.json")
}

/// Whether a connector is the built-in files server, on whichever folder.
pub fn is_files_server(launch: &Launch) -> bool {
    match launch {
        Launch::Stdio(stdio) => stdio.command == OWN_PROGRAM && stdio.args.first().is_some_and(|arg| arg == "files"),
        Launch::Http(_) => false,
    }
}

/// Where the default connector's folder is.
pub fn sandbox_path(home_dir: &Path) -> PathBuf {
    home_dir.join(SANDBOX)
}

/// Makes the default connector's folder with a short welcome file, when there is none; else touches nothing.
/// `home_dir` is the person's home (`~`), not the app's.
///
/// # Errors
/// What the system says when the folder or the file cannot be made.
pub fn prepare_sandbox(home_dir: &Path) -> io::Result<()> {
    let folder = sandbox_path(home_dir);
    // A link that leads nowhere is somebody's doing too.
    if fs::symlink_metadata(&folder).is_ok() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(&folder) {
        Ok(()) => OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(folder.join("welcome.md"))?
            .write_all(include_bytes!("welcome.md")),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn the_default_is_one_connector_on_the_sandbox_run_by_our_own_program() {
        let config: Value = serde_json::from_str(default_config_text()).unwrap();
        let servers = config["servers"].as_object().unwrap();
        assert_eq!(servers.keys().collect::<Vec<_>>(), [FILES_ID]);
        let entry = &servers[FILES_ID];
        assert_eq!(entry["command"], "neuron-connectd");
        assert_eq!(entry["args"], serde_json::json!(["files", format!("~/{SANDBOX}")]));
        assert_eq!(entry["name"], "Files");
    }

    #[test]
    fn every_compiled_in_tool_has_what_a_caller_needs() {
        let tools: Vec<Value> = serde_json::from_str(files_tools()).unwrap();
        assert!(tools.len() > 10);
        for tool in &tools {
            assert!(tool["name"].is_string(), "{tool}");
            assert!(!tool["description"].as_str().unwrap().is_empty(), "{tool}");
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert_eq!(tool["annotations"]["openWorldHint"], false, "{tool}");
        }
    }

    #[test]
    fn a_missing_sandbox_is_made_with_a_welcome_and_only_for_its_owner() {
        let home = tempfile::tempdir().unwrap();
        prepare_sandbox(home.path()).unwrap();
        let folder = sandbox_path(home.path());
        assert!(fs::read_to_string(folder.join("welcome.md")).unwrap().starts_with("# "));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn a_sandbox_that_exists_is_left_as_it_is_even_without_a_welcome() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(sandbox_path(home.path())).unwrap();
        prepare_sandbox(home.path()).unwrap();
        assert_eq!(fs::read_dir(sandbox_path(home.path())).unwrap().count(), 0);
    }

    #[test]
    fn a_home_that_cannot_be_written_says_so() {
        let home = tempfile::tempdir().unwrap();
        assert!(prepare_sandbox(&home.path().join("gone")).is_err());
    }
}
