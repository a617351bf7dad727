//! The connector that is there without a file: the built-in files server on a folder of its own.
//!
//! Owns its entry, its tool list as data and the making of its folder. The server itself is `neuron-connectd files`;
//! `files_tools.json` is what that program prints with `neuron-connectd files --print-tools`, and a test of it fails
//! when the two differ.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    path::{Component, Path, PathBuf},
};

use crate::{config::Launch, snapshot::FileWrite, trust::expand_home};

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

/// The folder of a files server, where its arguments name that and nothing else.
pub fn files_folder(launch: &Launch, home_dir: &Path) -> Option<PathBuf> {
    if !is_files_server(launch) {
        return None;
    }
    match launch {
        Launch::Stdio(stdio) => match stdio.args.as_slice() {
            [_, folder] => Some(PathBuf::from(expand_home(folder, home_dir))).filter(|folder| folder.is_absolute()),
            _ => None,
        },
        Launch::Http(_) => None,
    }
}

/// What writing to this path would do now; `None` where a look does not tell, or the server would not write there. Looks at
/// the disk.
pub fn file_write(folder: &Path, given: &str) -> Option<FileWrite> {
    let given = Path::new(given);
    let is_plain = |part| matches!(part, Component::Normal(_) | Component::RootDir | Component::Prefix(_));
    if given.as_os_str().is_empty() || given.starts_with("~") || !given.components().all(is_plain) {
        return None;
    }
    let target = folder.join(given);
    if !target.starts_with(folder) {
        return None;
    }
    // A link on the way may lead out of the folder.
    let (real, parent) = (folder.canonicalize().ok()?, target.parent()?.canonicalize().ok()?);
    if !parent.starts_with(&real) || !parent.is_dir() {
        return None;
    }
    match fs::symlink_metadata(parent.join(target.file_name()?)) {
        Ok(found) if found.is_file() => Some(FileWrite::Replaces),
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(FileWrite::Creates),
        Err(_) => None,
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
    fn whether_a_file_is_created_or_replaced_is_said_only_where_a_look_inside_the_folder_tells() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("sandbox");
        fs::create_dir_all(folder.join("notes")).unwrap();
        fs::write(folder.join("notes/a.md"), "a").unwrap();
        fs::write(home.path().join("outside.md"), "a").unwrap();
        let there = folder.join("notes/a.md").display().to_string();
        let outside = home.path().join("outside.md").display().to_string();
        for (given, wanted) in [
            ("notes/a.md", Some(FileWrite::Replaces)),
            (there.as_str(), Some(FileWrite::Replaces)),
            ("notes/b.md", Some(FileWrite::Creates)),
            ("new.md", Some(FileWrite::Creates)),
            ("notes", None),
            ("no_such/a.md", None),
            ("notes/a.md/b", None),
            ("notes/../notes/a.md", None),
            ("../outside.md", None),
            (outside.as_str(), None),
            ("~/outside.md", None),
            ("", None),
            ("a\0b", None),
        ] {
            assert_eq!(file_write(&folder, given), wanted, "{given}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(home.path(), folder.join("out")).unwrap();
            std::os::unix::fs::symlink("notes/a.md", folder.join("link.md")).unwrap();
            assert_eq!(file_write(&folder, "out/outside.md"), None);
            assert_eq!(file_write(&folder, "link.md"), None);
        }
    }

    #[test]
    fn a_home_that_cannot_be_written_says_so() {
        let home = tempfile::tempdir().unwrap();
        assert!(prepare_sandbox(&home.path().join("gone")).is_err());
    }
}
