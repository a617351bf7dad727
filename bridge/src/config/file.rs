//! The person's file on disk: read with its checks, written whole, never over something that was not read.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{
    atomic::{Disk, RealDisk, replace_file},
    links, parse,
};
use crate::snapshot::{Notice, NoticeLevel};

/// Largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 5 * 1024 * 1024;

/// `connectors.json` at one path, and what was last seen there.
#[derive(Debug)]
pub struct ConfigFile {
    path: PathBuf,
    seen: Seen,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    /// Not read yet, or not readable.
    Nothing,
    Missing,
    Content([u8; 32]),
}

/// What stands on disk.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// No file, or a symlink to none.
    Missing,
    File {
        /// At most [`MAX_FILE_BYTES`].
        bytes: Vec<u8>,
        /// What was mended while reading.
        notices: Vec<Notice>,
    },
}

/// Why the file was not read or not written; each is a sentence with the mend.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It may not be the person's alone, or is no ordinary file.
    #[error("{0}")]
    Refused(String),
    #[error("{path} could not be {done}: {source}", path = path.display())]
    Io {
        /// "read", "saved" or "backed up".
        done: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The disk holds something else than was last read; read again and repeat the change.
    #[error("{path} was changed by another program meanwhile; nothing was saved, try again", path = .0.display())]
    Changed(PathBuf),
    /// The file on disk, or the text to be saved, cannot be parsed. Nothing was saved.
    #[error("nothing was saved: {message}", message = .0.message)]
    Unreadable(Notice),
}

impl ConfigFile {
    /// Touches nothing yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            seen: Seen::Nothing,
        }
    }

    /// As given, symlinks not followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file and remembers what it saw.
    ///
    /// # Errors
    /// [`FileError::Refused`] where somebody else can change it, where it is no file or too large; [`FileError::Io`].
    pub fn read(&mut self) -> Result<Content, FileError> {
        let loaded = self.load();
        self.seen = loaded.as_ref().map_or(Seen::Nothing, seen);
        loaded
    }

    /// Reads the file; `None` where it is what was last read or written. This is how the app's own write causes no
    /// reload.
    ///
    /// # Errors
    /// As [`ConfigFile::read`].
    pub fn read_if_changed(&mut self) -> Result<Option<Content>, FileError> {
        let before = self.seen.clone();
        let content = self.read()?;
        Ok((self.seen != before).then_some(content))
    }

    /// Saves `text` in place of what was last read, and what was there as `<name>.bak` beside `path`.
    ///
    /// A symlink is followed: its target is replaced, the link stays. Folders that are missing are made.
    ///
    /// # Errors
    /// [`FileError::Changed`] where the disk holds something else than was last read, [`FileError::Unreadable`] where
    /// that or `text` cannot be parsed, else as [`ConfigFile::read`]. Old content then stays, except where only the
    /// rename could not be made durable; the next [`ConfigFile::read_if_changed`] shows which it is.
    pub fn write(&mut self, text: &str) -> Result<(), FileError> {
        self.write_to(&mut RealDisk, text)
    }

    fn write_to(&mut self, disk: &mut dyn Disk, text: &str) -> Result<(), FileError> {
        parse(text.as_bytes()).map_err(FileError::Unreadable)?;
        let present = self.load()?;
        if seen(&present) != self.seen {
            return Err(FileError::Changed(self.path.clone()));
        }
        if let Content::File { bytes, .. } = &present {
            parse(bytes).map_err(FileError::Unreadable)?;
            let backup = backup_path(&self.path);
            replace_file(disk, &backup, bytes).map_err(|source| FileError::Io {
                done: "backed up",
                path: self.path.clone(),
                source,
            })?;
        }
        let saved = self.target().and_then(|target| {
            make_folder(target.parent())?;
            replace_file(disk, &target, text.as_bytes())
        });
        saved.map_err(|source| FileError::Io {
            done: "saved",
            path: self.path.clone(),
            source,
        })?;
        self.seen = Seen::Content(Sha256::digest(text.as_bytes()).into());
        Ok(())
    }

    fn load(&self) -> Result<Content, FileError> {
        let failed = |source| FileError::Io {
            done: "read",
            path: self.path.clone(),
            source,
        };
        let target = self.target().map_err(failed)?;
        let mut file = match open(&target) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Content::Missing);
            }
            Err(error) => return Err(failed(error)),
        };
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            let shown = target.display();
            return Err(FileError::Refused(format!(
                "{shown} is no file; move it away and try again"
            )));
        }
        let notices = check_owner(&self.path, &target, &file, &metadata)?;
        let mut bytes = Vec::new();
        file.by_ref()
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
            let shown = self.path.display();
            return Err(FileError::Refused(format!(
                "{shown} is larger than 5 MiB and is not read; make it smaller"
            )));
        }
        Ok(Content::File { bytes, notices })
    }

    fn target(&self) -> io::Result<PathBuf> {
        Ok(links::chain(&self.path)?.pop().unwrap_or_else(|| self.path.clone()))
    }
}

fn seen(content: &Content) -> Seen {
    match content {
        Content::Missing => Seen::Missing,
        Content::File { bytes, .. } => Seen::Content(Sha256::digest(bytes).into()),
    }
}

fn backup_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".bak");
    path.with_file_name(name)
}

fn make_folder(folder: Option<&Path>) -> io::Result<()> {
    let Some(folder) = folder.filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) else {
        return Ok(());
    };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Opens for reading; a pipe at this place must not block, a symlink put there meanwhile is not followed.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOFOLLOW);
    options.open(path)
}

#[cfg(unix)]
fn check_owner(path: &Path, target: &Path, file: &File, metadata: &fs::Metadata) -> Result<Vec<Notice>, FileError> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::owner::{Facts, Person, Verdict, judge};

    let facts = Facts {
        owner: metadata.uid(),
        group: metadata.gid(),
        mode: metadata.mode() & 0o7777,
    };
    match judge(target, facts, Person::current()) {
        Verdict::Fine => Ok(Vec::new()),
        Verdict::Refuse(why) => Err(FileError::Refused(why)),
        Verdict::Tighten => {
            let tightened = file.set_permissions(fs::Permissions::from_mode(0o600));
            tightened.map_err(|source| FileError::Io {
                done: "made private",
                path: path.to_owned(),
                source,
            })?;
            Ok(vec![Notice {
                level: NoticeLevel::Info,
                message: format!("{} could be changed by your group; now only you can.", target.display()),
                line: None,
                column: None,
                server: None,
            }])
        }
    }
}

/// Elsewhere the profile folder's access list protects the file.
#[cfg(not(unix))]
fn check_owner(_: &Path, _: &Path, _: &File, _: &fs::Metadata) -> Result<Vec<Notice>, FileError> {
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::atomic::FailingDisk;

    const OLD: &str = "{\"servers\": {}} // old\n";
    const NEW: &str = "{\"servers\": {\"a\": {\"command\": \"x\"}}} // new\n";

    struct Home {
        folder: tempfile::TempDir,
        file: ConfigFile,
    }

    impl Home {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let file = ConfigFile::new(folder.path().join("connectors.json"));
            Self { folder, file }
        }

        fn with(text: &str) -> Self {
            let mut home = Self::new();
            home.put(text);
            home.file.read().unwrap();
            home
        }

        /// As another program saves.
        fn put(&self, text: &str) {
            fs::write(self.file.path(), text).unwrap();
        }

        fn on_disk(&self) -> String {
            fs::read_to_string(self.file.path()).unwrap()
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.folder.path()).unwrap();
            let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    #[test]
    fn a_missing_file_is_told_from_an_unreadable_one_and_the_first_write_makes_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = ConfigFile::new(folder.path().join("home/connectors.json"));
        assert_eq!(file.read().unwrap(), Content::Missing);
        file.write(NEW).unwrap();
        assert_eq!(fs::read_to_string(file.path()).unwrap(), NEW);
        let mut is_folder = ConfigFile::new(folder.path());
        assert!(matches!(is_folder.read(), Err(FileError::Refused(_))));
    }

    #[test]
    fn a_write_keeps_the_previous_version_and_causes_no_reload_of_itself() {
        let mut home = Home::with(OLD);
        home.file.write(NEW).unwrap();
        assert_eq!(home.on_disk(), NEW);
        assert_eq!(
            fs::read_to_string(home.folder.path().join("connectors.json.bak")).unwrap(),
            OLD
        );
        assert_eq!(home.names(), ["connectors.json", "connectors.json.bak"]);
        assert_eq!(home.file.read_if_changed().unwrap(), None);
        home.put(OLD);
        assert!(
            matches!(home.file.read_if_changed().unwrap(), Some(Content::File { bytes, .. }) if bytes == OLD.as_bytes())
        );
        fs::remove_file(home.file.path()).unwrap();
        assert_eq!(home.file.read_if_changed().unwrap(), Some(Content::Missing));
    }

    #[test]
    fn another_programs_change_is_never_overwritten() {
        let mut home = Home::with(OLD);
        home.put("{}");
        assert!(matches!(home.file.write(NEW), Err(FileError::Changed(_))));
        assert_eq!(home.on_disk(), "{}");
        home.file.read().unwrap();
        home.file.write(NEW).unwrap();
        fs::remove_file(home.file.path()).unwrap();
        assert!(matches!(home.file.write(OLD), Err(FileError::Changed(_))));

        let mut unread = Home::new();
        assert!(matches!(unread.file.write(NEW), Err(FileError::Changed(_))));
        unread.file.read().unwrap();
        unread.put(OLD);
        assert!(matches!(unread.file.write(NEW), Err(FileError::Changed(_))));
    }

    #[test]
    fn nothing_is_written_over_or_from_what_cannot_be_parsed() {
        for broken in ["", "{\"servers\": {", "\u{0}\u{0}\u{0}\u{0}"] {
            let mut home = Home::with(broken);
            assert!(
                matches!(home.file.write(NEW), Err(FileError::Unreadable(_))),
                "{broken:?}"
            );
            assert_eq!((home.on_disk().as_str(), home.names().len()), (broken, 1));
        }
        let mut home = Home::with(OLD);
        assert!(matches!(home.file.write("{"), Err(FileError::Unreadable(_))));
        assert_eq!(home.on_disk(), OLD);
    }

    #[test]
    fn a_fault_at_any_step_leaves_old_or_new_says_so_and_the_state_follows_the_disk() {
        for fail_at in 1.. {
            let mut home = Home::with(OLD);
            let mut disk = FailingDisk { fail_at, steps: 0 };
            let done = home.file.write_to(&mut disk, NEW);
            let content = home.on_disk();
            if done.is_ok() {
                assert_eq!((content.as_str(), fail_at), (NEW, disk.steps + 1));
                assert!(fail_at > 8, "both writes were covered");
                break;
            }
            let said = done.unwrap_err().to_string();
            assert!(said.contains("connectors.json could not be"), "{said}");
            match home.file.read_if_changed().unwrap() {
                None => assert_eq!(content, OLD, "step {fail_at}"),
                Some(_) => assert_eq!(content, NEW, "step {fail_at}"),
            }
            home.file.write(NEW).unwrap();
            assert_eq!(home.on_disk(), NEW);
        }
    }

    #[test]
    fn a_file_over_five_mebibytes_is_refused() {
        let largest = usize::try_from(MAX_FILE_BYTES).unwrap();
        let mut home = Home::with(&" ".repeat(largest));
        home.put(&" ".repeat(largest + 1));
        assert!(matches!(home.file.read(), Err(FileError::Refused(why)) if why.contains("5 MiB")));
    }

    #[cfg(unix)]
    mod unix {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

        use super::*;

        fn mode(path: &Path) -> u32 {
            fs::metadata(path).unwrap().mode() & 0o777
        }

        #[test]
        fn a_file_that_everyone_can_change_is_refused_with_the_mend() {
            let mut home = Home::with(OLD);
            fs::set_permissions(home.file.path(), fs::Permissions::from_mode(0o666)).unwrap();
            assert!(matches!(home.file.read(), Err(FileError::Refused(why)) if why.contains("chmod 600")));
            assert!(matches!(home.file.write(NEW), Err(FileError::Refused(_))));
            assert_eq!(home.on_disk(), OLD);
            fs::set_permissions(home.file.path(), fs::Permissions::from_mode(0o600)).unwrap();
            home.file.read().unwrap();
        }

        #[test]
        fn a_symlink_is_followed_written_beside_its_target_and_stays() {
            let mut home = Home::new();
            let elsewhere = tempfile::tempdir().unwrap();
            let target = elsewhere.path().join("dotfile.json");
            fs::write(&target, OLD).unwrap();
            let middle = elsewhere.path().join("middle");
            symlink("dotfile.json", &middle).unwrap();
            symlink(&middle, home.file.path()).unwrap();
            assert!(matches!(home.file.read().unwrap(), Content::File { .. }));
            home.file.write(NEW).unwrap();
            assert!(fs::symlink_metadata(home.file.path()).unwrap().is_symlink());
            assert!(fs::symlink_metadata(&middle).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(&target).unwrap(), NEW);
            assert_eq!(mode(&target), 0o600);
            assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 2);
            assert_eq!(home.names(), ["connectors.json", "connectors.json.bak"]);
        }

        #[test]
        fn a_symlink_to_nothing_is_missing_and_one_in_a_circle_an_error() {
            let mut home = Home::new();
            symlink("nowhere/none.json", home.file.path()).unwrap();
            assert_eq!(home.file.read().unwrap(), Content::Missing);
            home.file.write(NEW).unwrap();
            assert_eq!(
                fs::read_to_string(home.folder.path().join("nowhere/none.json")).unwrap(),
                NEW
            );
            fs::remove_file(home.file.path()).unwrap();
            symlink("connectors.json", home.file.path()).unwrap();
            assert!(home.file.read().unwrap_err().to_string().contains("circle"));
        }

        #[test]
        fn a_pipe_in_its_place_is_refused_without_waiting() {
            let mut home = Home::new();
            let made = std::process::Command::new("mkfifo")
                .arg(home.file.path())
                .status()
                .unwrap();
            assert!(made.success());
            assert!(matches!(home.file.read(), Err(FileError::Refused(why)) if why.contains("no file")));
        }

        #[test]
        fn a_file_of_another_user_is_refused_even_behind_a_symlink() {
            let mut home = Home::with(OLD);
            // Only the superuser can give a file away; anyone else can point at one of the superuser's.
            if rustix::process::geteuid().is_root() {
                std::os::unix::fs::chown(home.file.path(), Some(65534), None).unwrap();
            } else {
                fs::remove_file(home.file.path()).unwrap();
                symlink("/etc/passwd", home.file.path()).unwrap();
            }
            assert!(matches!(home.file.read(), Err(FileError::Refused(why)) if why.contains("another user")));
            assert!(home.file.write(NEW).is_err());
        }
    }
}
