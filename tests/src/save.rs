//! The ways in which editors save a file.

use std::{fs, io::Write, path::Path, ptr::NonNull};

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};

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

/// A file that is changed through memory, which no watcher is told of.
pub struct Mapped {
    place: NonNull<u8>,
    length: usize,
    // Closing it would be an event.
    _file: fs::File,
}

impl Mapped {
    /// # Panics
    /// When the file cannot be opened for writing.
    pub fn open(path: &Path) -> Self {
        let file = fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .expect("the file is writable");
        let length = usize::try_from(file.metadata().expect("an open file").len()).expect("a small file");
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping; nothing is known to lie at its address.
        let place = unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, rights, MapFlags::SHARED, &file, 0) };
        let place = NonNull::new(place.expect("a file can be mapped").cast()).expect("no mapping lies at null");
        Self {
            place,
            length,
            _file: file,
        }
    }

    /// Replaces the whole content.
    ///
    /// # Panics
    /// When the text is not as long as the file.
    pub fn write(&self, text: &str) {
        assert_eq!(text.len(), self.length, "a mapping does not grow");
        // SAFETY: the mapping is `length` bytes long, writable, and of no one else in this process.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.place.as_ptr(), self.length);
            rustix::mm::msync(self.place.as_ptr().cast(), self.length, MsyncFlags::SYNC).expect("the disk is writable");
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: made by `open`, and nobody refers to it any more. What is left mapped goes with the process.
        let _ = unsafe { rustix::mm::munmap(self.place.as_ptr().cast(), self.length) };
    }
}
