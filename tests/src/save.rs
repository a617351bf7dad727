//! The ways in which editors save a file.

use std::{fs, io::Write, path::Path};

/// How the new text gets into the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editor {
    /// Opens, cuts to nothing, writes.
    InPlace,
    /// Writes a neighbour and renames it over the file.
    RenameOver,
    /// Removes the file, then creates it.
    DeleteAndCreate,
    /// Moves the old file to a backup, then creates a new one (vim's `backupcopy=no`).
    BackupAndCreate,
}

pub const EDITORS: [Editor; 4] = [
    Editor::InPlace,
    Editor::RenameOver,
    Editor::DeleteAndCreate,
    Editor::BackupAndCreate,
];

impl Editor {
    /// # Panics
    /// When the folder is not writable.
    pub fn save(self, path: &Path, text: &str) {
        match self {
            Self::InPlace => write(path, text),
            Self::RenameOver => {
                let beside = path.with_extension("json.swp");
                write(&beside, text);
                fs::rename(&beside, path).expect("a rename in one folder");
            }
            Self::DeleteAndCreate => {
                fs::remove_file(path).expect("the file exists");
                write(path, text);
            }
            Self::BackupAndCreate => {
                fs::rename(path, path.with_extension("json~")).expect("a rename in one folder");
                write(path, text);
            }
        }
    }
}

fn write(path: &Path, text: &str) {
    let mut file = fs::File::create(path).expect("the folder is writable");
    file.write_all(text.as_bytes()).expect("the folder is writable");
}
