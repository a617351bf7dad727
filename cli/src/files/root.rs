//! The one folder that may be used, and the way from a caller's path into it.
//!
//! Everything is opened relative to the folder's handle by `cap-std`, which follows no link out of it, however links
//! are swapped meanwhile. The textual checks here only make good sentences; they are not what keeps a path inside.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, File, Metadata, OpenOptions},
};
use neuron_bridge::trust::scan::one_line;

/// Longest path that is looked at, in bytes (Linux `PATH_MAX`).
const MAX_PATH: usize = 4096;

/// What went wrong, as a sentence that says what to do.
pub(crate) type Refusal = String;

/// The folder that is served.
pub(crate) struct Root {
    dir: Dir,
    /// Absolute, as given.
    shown: PathBuf,
    /// Absolute, with every link resolved.
    real: PathBuf,
    /// The person's home, for paths that begin with `~`.
    home: Option<PathBuf>,
}

/// A path inside the folder: relative, without `.` and `..`; empty for the folder itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inside(PathBuf);

impl Inside {
    /// For `cap-std`, which wants `.` for the folder itself.
    pub(crate) fn path(&self) -> &Path {
        if self.0.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &self.0
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// The folder it lies in and its own name; `None` for the folder itself.
    pub(crate) fn split(&self) -> Option<(Self, &Path)> {
        let name = self.0.file_name()?;
        let parent = self.0.parent().unwrap_or(Path::new(""));
        Some((Self(parent.to_owned()), Path::new(name)))
    }
}

impl Root {
    /// Opens the folder. `shown` is the absolute path as given.
    pub(crate) fn open(shown: PathBuf, home: Option<PathBuf>) -> io::Result<Self> {
        let real = shown.canonicalize()?;
        let dir = Dir::open_ambient_dir(&real, ambient_authority())?;
        Ok(Self { dir, shown, real, home })
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The folder's absolute path, as it was given.
    pub(crate) fn shown(&self) -> &Path {
        &self.shown
    }

    /// The absolute path of something inside.
    pub(crate) fn absolute(&self, inside: &Inside) -> PathBuf {
        self.real.join(&inside.0)
    }

    /// Takes a caller's path: relative to the folder, or absolute inside it.
    pub(crate) fn inside(&self, given: &str) -> Result<Inside, Refusal> {
        let folder = self.shown.display();
        if given.is_empty() {
            return Err(format!(
                "The path is empty: give one inside {folder}, for example \"notes.txt\", or \".\" for the folder itself."
            ));
        }
        if given.contains('\0') {
            return Err(format!(
                "The path {} contains a NUL character, which no file name can have: leave it out.",
                quoted(given)
            ));
        }
        if given.len() > MAX_PATH {
            return Err(format!(
                "The path is {} bytes long, and {MAX_PATH} is the most: use a shorter one.",
                given.len()
            ));
        }
        if cfg!(unix) && is_windows_path(given) {
            return Err(format!(
                "{} is a Windows path, and this computer has none: give a path inside {folder}, for example \"notes.txt\".",
                quoted(given)
            ));
        }
        let path = self.expand_home(given);
        if path.components().any(|c| c == Component::ParentDir) {
            return Err(format!(
                "{} contains \"..\", which could lead outside {folder}: give the path inside that folder without it.",
                quoted(given)
            ));
        }
        let relative = if path.is_absolute() {
            [&self.shown, &self.real]
                .iter()
                .find_map(|root| path.strip_prefix(root).ok())
                .ok_or_else(|| {
                    format!(
                        "{} is outside {folder}, and only what is in that folder can be used: give a path inside it.",
                        quoted(given)
                    )
                })?
        } else {
            &path
        };
        Ok(Inside(
            relative
                .components()
                .filter(|c| matches!(c, Component::Normal(_)))
                .collect(),
        ))
    }

    /// Opens a regular file for reading, without ever waiting for a pipe's other end.
    pub(crate) fn open_file(&self, inside: &Inside, given: &str) -> Result<(File, Metadata), Refusal> {
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
            cap_std::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
        }
        let file = self
            .dir
            .open_with(inside.path(), &options)
            .map_err(|e| self.explain(given, "read", &e))?;
        let metadata = file.metadata().map_err(|e| self.explain(given, "read", &e))?;
        if metadata.is_dir() {
            return Err(format!(
                "{} is a folder, not a file: use list_directory to see what is in it.",
                quoted(given)
            ));
        }
        if !metadata.is_file() {
            return Err(not_regular(given));
        }
        Ok((file, metadata))
    }

    /// Opens a folder, following links that stay inside.
    pub(crate) fn open_dir(&self, inside: &Inside, given: &str) -> Result<Dir, Refusal> {
        self.dir.open_dir(inside.path()).map_err(|e| match e.kind() {
            io::ErrorKind::NotADirectory => format!(
                "{} is not a folder: give a folder, or use read_text_file for a file.",
                quoted(given)
            ),
            _ => self.explain(given, "open", &e),
        })
    }

    /// The sentence for an error of the system on a caller's path. `verb` completes "could not … it".
    pub(crate) fn explain(&self, given: &str, verb: &str, error: &io::Error) -> Refusal {
        let given = quoted(given);
        let folder = self.shown.display();
        if is_escape(error) {
            return format!(
                "{given} is a link, or lies behind one, that leads outside {folder} (or is absolute), and only what is in that folder can be used: use another path."
            );
        }
        #[cfg(unix)]
        if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            return format!("{given} lies behind links that lead in a circle: use another path.");
        }
        match error.kind() {
            io::ErrorKind::NotFound => {
                format!(
                    "{given} does not exist in {folder}: use list_directory or search_files to find the right path."
                )
            }
            io::ErrorKind::PermissionDenied => {
                format!("The system does not allow to {verb} {given}: its permissions would have to be changed first.")
            }
            io::ErrorKind::NotADirectory => {
                format!("{given} leads through something that is a file and not a folder: correct the path.")
            }
            io::ErrorKind::InvalidFilename => {
                format!("{given} has a name that is too long or not allowed on this file system: use a shorter one.")
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                format!("There is no space left to {verb} {given}: free some and try again; nothing was changed.")
            }
            io::ErrorKind::ReadOnlyFilesystem => {
                format!("{given} lies on a file system that cannot be written: use another path.")
            }
            _ => format!("Could not {verb} {given}: {error}."),
        }
    }
}

impl Root {
    fn expand_home(&self, given: &str) -> PathBuf {
        match (&self.home, given.strip_prefix('~')) {
            (Some(home), Some("")) => home.clone(),
            (Some(home), Some(rest)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            _ => PathBuf::from(given),
        }
    }
}

/// The refusal of a pipe, socket or device.
pub(crate) fn not_regular(given: &str) -> Refusal {
    format!(
        "{} is not a regular file (a pipe, socket or device): only files and folders can be used.",
        quoted(given)
    )
}

/// A caller's path or a file's name for a sentence or a list, in quotes and shortened; what would break or hide in it is
/// escaped.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 300;
    let end = text.char_indices().nth(SHOWN).map_or(text.len(), |(end, _)| end);
    let more = if end < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", one_line(&text[..end]))
}

fn is_escape(error: &io::Error) -> bool {
    // cap-std reports its own refusal without an OS error; the kernel's RESOLVE_BENEATH says EXDEV.
    (error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none())
        || error.kind() == io::ErrorKind::CrossesDevices
}

fn is_windows_path(given: &str) -> bool {
    let mut chars = given.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.next() == Some(':')
        && matches!(chars.next(), None | Some('\\' | '/'))
        || given.starts_with("\\\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(dir: &Path) -> Root {
        Root::open(dir.to_owned(), Some(dir.to_owned())).unwrap()
    }

    #[test]
    fn a_path_is_relative_to_the_folder_or_absolute_inside_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = root(dir.path());
        let absolute = dir.path().join("a/b c/ü.txt");
        for (given, wanted) in [
            ("a/b c/ü.txt", "a/b c/ü.txt"),
            ("./a//b/", "a/b"),
            (absolute.to_str().unwrap(), "a/b c/ü.txt"),
            ("~/a", "a"),
            (".", "."),
            ("~", "."),
            (dir.path().to_str().unwrap(), "."),
            ("..a/b..", "..a/b.."),
        ] {
            assert_eq!(root.inside(given).unwrap().path(), Path::new(wanted), "{given}");
        }
    }

    #[test]
    fn a_path_that_is_not_inside_is_refused_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let root = root(dir.path());
        let sibling = format!("{}-evil/x", dir.path().display());
        let dotted = format!("{}/../x", dir.path().display());
        for (given, says) in [
            ("", "empty"),
            ("a\0b", "NUL"),
            ("..", "\"..\""),
            ("a/../../b", "\"..\""),
            ("a/..", "\"..\""),
            (&dotted, "\"..\""),
            ("/etc/passwd", "outside"),
            (&sibling, "outside"),
            ("//etc/passwd", "outside"),
            ("C:\\Users\\x", "Windows"),
            ("\\\\host\\share", "Windows"),
            (&"x/".repeat(3000), "bytes long"),
        ] {
            let refusal = root.inside(given).unwrap_err();
            assert!(refusal.contains(says), "{given:?}: {refusal}");
            assert!(refusal.contains(": "), "says what to do: {refusal}");
        }
    }

    #[test]
    fn names_cannot_break_a_list_or_hide_in_it() {
        assert_eq!(one_line("a\n[FILE] b\u{202e}"), "a\\u{a}[FILE] b\\u{202e}");
        // What belongs to an emoji or a script is part of a name that is given back as it is.
        let names = ["ünï 日本 👍", "❤\u{fe0f}.txt", "👩\u{200d}💻.txt", "نمی\u{200c}خواهم"];
        for name in names {
            assert_eq!(one_line(name), name);
        }
        assert_eq!(one_line("a\u{200d}b\u{e0041}\t"), "a\\u{200d}b\\u{e0041}\\u{9}");
        assert!(quoted(&"x".repeat(500)).chars().count() < 310);
    }
}
