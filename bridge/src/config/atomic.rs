//! Replacing a file whole: a kill at any instant leaves the old or the new version.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// The steps that a write takes; each can fail on its own.
pub(crate) trait Disk {
    /// A new file that only the person can read; fails where there is one.
    fn create(&mut self, path: &Path) -> io::Result<File>;
    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()>;
    fn sync(&mut self, file: &File) -> io::Result<()>;
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;
    fn sync_folder(&mut self, folder: &Path) -> io::Result<()>;
    fn remove(&mut self, path: &Path) -> io::Result<()>;
}

/// The file system.
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn create(&mut self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)
    }

    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&mut self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    #[cfg(unix)]
    fn sync_folder(&mut self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    // Windows cannot open a folder for this; its rename is journaled.
    #[cfg(not(unix))]
    fn sync_folder(&mut self, _folder: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// Puts `bytes` in place of the file `path`, which need not exist; its folder must. A symlink at `path` is replaced.
///
/// # Errors
/// Of the first step that failed. The file then still has its old content, except when only the last step failed,
/// making the rename durable.
pub(crate) fn replace_file(disk: &mut dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (folder, temporary) = beside(path)?;
    let written = write_temporary(disk, &temporary, bytes).and_then(|()| disk.rename(&temporary, path));
    if let Err(error) = written {
        // Best effort: the next write removes what stays behind, and its name is no one's.
        let _ = disk.remove(&temporary);
        return Err(error);
    }
    disk.sync_folder(folder)
}

/// One fixed name, so that a killed write leaves at most one file behind.
fn beside(path: &Path) -> io::Result<(&Path, PathBuf)> {
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
    let name = path.file_name().ok_or_else(no_name)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(".tmp");
    Ok((folder, folder.join(temporary)))
}

fn write_temporary(disk: &mut dyn Disk, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = match disk.create(temporary) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk.remove(temporary)?;
            disk.create(temporary)?
        }
        other => other?,
    };
    disk.write(&mut file, bytes)?;
    disk.sync(&file)
}

/// A disk whose `fail_at`-th step (from 1) fails.
#[cfg(test)]
pub(crate) struct FailingDisk {
    pub(crate) fail_at: usize,
    pub(crate) steps: usize,
}

#[cfg(test)]
impl FailingDisk {
    fn step(&mut self) -> io::Result<()> {
        self.steps += 1;
        if self.steps == self.fail_at {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
impl Disk for FailingDisk {
    fn create(&mut self, path: &Path) -> io::Result<File> {
        self.step()?;
        RealDisk.create(path)
    }

    /// A full disk takes the first half.
    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.step() {
            RealDisk.write(file, &bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        RealDisk.write(file, bytes)
    }

    fn sync(&mut self, file: &File) -> io::Result<()> {
        self.step()?;
        RealDisk.sync(file)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        RealDisk.rename(from, to)
    }

    fn sync_folder(&mut self, folder: &Path) -> io::Result<()> {
        self.step()?;
        RealDisk.sync_folder(folder)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.step()?;
        RealDisk.remove(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_replaces_the_whole_file_for_its_owner_only_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        // What a killed write left behind.
        fs::write(folder.path().join(".f.tmp"), "half").unwrap();
        for text in ["first", "second, longer", ""] {
            replace_file(&mut RealDisk, &path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_fault_at_any_step_leaves_the_old_or_the_new_content_and_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        for fail_at in 1.. {
            fs::write(&path, "old").unwrap();
            let mut disk = FailingDisk { fail_at, steps: 0 };
            let done = replace_file(&mut disk, &path, b"new");
            let content = fs::read_to_string(&path).unwrap();
            if done.is_ok() {
                assert_eq!((content.as_str(), fail_at), ("new", disk.steps + 1));
                break;
            }
            assert!(content == "old" || content == "new", "step {fail_at}: {content}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "step {fail_at}");
        }
    }

    #[test]
    fn a_path_without_a_name_or_folder_is_an_error() {
        assert!(replace_file(&mut RealDisk, Path::new("/"), b"").is_err());
        let folder = tempfile::tempdir().unwrap();
        assert!(replace_file(&mut RealDisk, &folder.path().join("none/f"), b"").is_err());
    }
}
