//! Changing files and folders: whole new versions, moves, new folders.
//!
//! A file's new version is written beside it and renamed over it, so that a reader or a crash sees the old or the
//! new one, whole, and a hard link or a swapped link never carries the change elsewhere.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use cap_std::fs::{Dir, OpenOptions, Permissions};

use super::{
    look::size_text,
    read::MAX_READ,
    root::{Inside, Refusal, Root, not_regular, quoted},
};

/// Whether a written file was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Created,
    Replaced,
}

/// A place for a file: the open folder, the name in it, what lies there now.
pub(crate) struct Target {
    folder: Dir,
    name: PathBuf,
    /// Of the file that is there.
    present: Option<Permissions>,
}

/// Finds where a path's file lies or would lie, following links that stay inside, and refuses what is no file.
pub(crate) fn target(root: &Root, given: &str) -> Result<Target, Refusal> {
    let inside = root.inside(given)?;
    if inside.is_root() {
        return Err(format!(
            "{} is the folder itself: give the path of a file in it.",
            quoted(given)
        ));
    }
    let inside = through_link(root, inside, given)?;
    let Some((parent, name)) = inside.split() else {
        return Err(not_regular(given));
    };
    let folder = open_parent(root, &parent, given)?;
    let present = match folder.symlink_metadata(name) {
        Ok(m) if m.is_dir() => {
            return Err(format!(
                "{} is a folder, and a file cannot take its place: use another path.",
                quoted(given)
            ));
        }
        Ok(m) if !m.is_file() && !m.is_symlink() => return Err(not_regular(given)),
        Ok(m) if m.permissions().readonly() => {
            return Err(format!(
                "{} is marked as read-only, so it was left as it is: write to another path, or have the person allow writing to it.",
                quoted(given)
            ));
        }
        Ok(m) => Some(m.permissions()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(root.explain(given, "write", &e)),
    };
    Ok(Target {
        folder,
        name: name.to_owned(),
        present,
    })
}

impl Target {
    /// Puts `content` there, whole or not at all.
    pub(crate) fn write(&self, root: &Root, given: &str, content: &[u8]) -> Result<Written, Refusal> {
        if content.len() as u64 > MAX_READ {
            return Err(format!(
                "The text for {} would be {} large, and {} MiB is the most for a file that is written here: split it.",
                quoted(given),
                size_text(content.len() as u64),
                MAX_READ >> 20
            ));
        }
        self.replace(content).map_err(|e| root.explain(given, "write", &e))?;
        Ok(if self.present.is_some() {
            Written::Replaced
        } else {
            Written::Created
        })
    }

    fn replace(&self, content: &[u8]) -> io::Result<()> {
        let temp = temp_name();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut file = self.folder.open_with(&temp, &options)?;
        let result = (|| {
            file.write_all(content)?;
            if let Some(permissions) = &self.present {
                file.set_permissions(permissions.clone())?;
            }
            file.sync_all()?;
            self.folder.rename(&temp, &self.folder, &self.name)
        })();
        if result.is_err() {
            // The first error is the one to tell; what cannot be removed stays under a name that says what it is.
            let _ = self.folder.remove_file(&temp);
            return result;
        }
        // The content is in place; where folders cannot be synced, the file system decides when the name is.
        if let Ok(folder) = self.folder.open(".") {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

/// Makes a folder with those it lies in. `Created` unless it was there.
pub(crate) fn create_directory(root: &Root, given: &str) -> Result<Written, Refusal> {
    let inside = root.inside(given)?;
    match root.dir().metadata(inside.path()) {
        Ok(m) if m.is_dir() => return Ok(Written::Replaced),
        Ok(_) => {
            return Err(format!(
                "{} is a file already, and a folder cannot take its place: use another path.",
                quoted(given)
            ));
        }
        Err(_) => {}
    }
    root.dir().create_dir_all(inside.path()).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => format!(
            "Something in the way of {} exists already and is no folder (or a link that leads nowhere): use another path.",
            quoted(given)
        ),
        _ => root.explain(given, "create", &e),
    })?;
    Ok(Written::Created)
}

/// Moves or renames; never over something that exists.
pub(crate) fn move_file(root: &Root, source: &str, destination: &str) -> Result<(), Refusal> {
    let (from, to) = (root.inside(source)?, root.inside(destination)?);
    let (Some((from_parent, from_name)), Some((to_parent, to_name))) = (from.split(), to.split()) else {
        return Err(
            "The folder itself cannot be moved, nor anything into its place: give paths of things in it.".to_owned(),
        );
    };
    let from_folder = open_parent(root, &from_parent, source)?;
    from_folder
        .symlink_metadata(from_name)
        .map_err(|e| root.explain(source, "move", &e))?;
    let to_folder = open_parent(root, &to_parent, destination)?;
    rename_new(&from_folder, from_name, &to_folder, to_name).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => format!(
            "{} exists already, and nothing is ever moved over something else: choose another destination.",
            quoted(destination)
        ),
        io::ErrorKind::InvalidInput => format!(
            "{} cannot be moved into itself: choose a destination outside of it.",
            quoted(source)
        ),
        _ => root.explain(source, "move", &e),
    })
}

/// Where a link's file lies. Only a link at the end matters: folders on the way are followed when they are opened.
fn through_link(root: &Root, inside: Inside, given: &str) -> Result<Inside, Refusal> {
    match root.dir().symlink_metadata(inside.path()) {
        Ok(m) if m.is_symlink() => {}
        // What else may be wrong is told by whoever opens it.
        _ => return Ok(inside),
    }
    let real = root.dir().canonicalize(inside.path()).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => format!(
            "{} is a link that leads to nothing: write to another path, or to what it should lead to.",
            quoted(given)
        ),
        _ => root.explain(given, "write", &e),
    })?;
    match real.to_str() {
        Some(real) => root.inside(real),
        None => Err(not_regular(given)),
    }
}

fn open_parent(root: &Root, parent: &Inside, given: &str) -> Result<Dir, Refusal> {
    root.dir().open_dir(parent.path()).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => format!(
            "The folder for {} does not exist: make it with create_directory first.",
            quoted(given)
        ),
        _ => root.explain(given, "open the folder of", &e),
    })
}

/// One step where the system has one, so that nothing can appear between looking and moving.
fn rename_new(from: &Dir, from_name: &Path, to: &Dir, to_name: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(from, from_name, to, to_name, flags) {
            // Not every file system can; INVAL is also the answer to moving a folder into itself, told below.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {}
            other => return Ok(other?),
        }
    }
    match to.symlink_metadata(to_name) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => from.rename(from_name, to, to_name),
        Err(e) => Err(e),
    }
}

/// Short, because the target's own name may use up the whole length of a name. It need not be hard to guess: the file
/// is only ever made where nothing is.
fn temp_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(".neuron-{:x}-{now:x}-{count:x}.tmp", std::process::id())
}
