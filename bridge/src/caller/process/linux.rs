//! `/proc`, see proc(5).

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
};

use super::Facts;

pub(super) fn facts(pid: u32) -> Option<Facts> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let (parent, started) = stat(&fs::read_to_string(folder.join("stat")).ok()?)?;
    let link = folder.join("exe");
    let target = fs::read_link(&link).ok();
    let (exe, exe_is_at_its_path) = match target {
        Some(target) => {
            let (path, deleted) = without_mark(target);
            // A program in a namespace of its own can lay any file over a path; a deleted one has left its place.
            let at_its_path = deleted || same_file(&link, &path);
            (Some(path), at_its_path)
        }
        None => (None, false),
    };
    let args = fs::read(folder.join("cmdline")).unwrap_or_default();
    Some(Facts {
        exe,
        exe_is_at_its_path,
        name: fs::read_to_string(folder.join("comm")).unwrap_or_default(),
        args: split(&args),
        cwd: fs::read_link(folder.join("cwd")).ok(),
        parent,
        started,
    })
}

/// The parent, and when it was started in clock ticks since the system's start. The name in brackets may hold anything.
fn stat(text: &str) -> Option<(u32, u64)> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some((parent, started))
}

/// The path, and whether the system has marked it as that of a deleted file.
fn without_mark(target: PathBuf) -> (PathBuf, bool) {
    const MARK: &[u8] = b" (deleted)";
    match target.as_os_str().as_bytes().strip_suffix(MARK) {
        Some(path) if !target.exists() => (PathBuf::from(OsStr::from_bytes(path)), true),
        Some(_) | None => (target, false),
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

fn split(args: &[u8]) -> Vec<OsString> {
    let args = args.strip_suffix(b"\0").unwrap_or(args);
    if args.is_empty() {
        return Vec::new();
    }
    args.split(|byte| *byte == 0)
        .map(|arg| OsString::from_vec(arg.to_vec()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_read_as_it_is() {
        let own = facts(std::process::id()).unwrap();
        assert_eq!(own.exe.as_deref(), std::env::current_exe().ok().as_deref());
        assert!(own.exe_is_at_its_path);
        assert_eq!(own.cwd, std::env::current_dir().ok());
        assert_eq!(own.args, std::env::args_os().collect::<Vec<_>>());
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert!(own.started > 0);
    }

    #[test]
    fn a_name_with_brackets_moves_no_field() {
        let text = "77 (a) S 1 2 (b c) S 5 50 50 0 -1 4194560 1 0 0 0 1 2 3 4 20 0 1 0 123456 9 8";
        assert_eq!(stat(text), Some((5, 123_456)));
        assert_eq!(stat("77 (x) S 1"), None);
    }

    #[test]
    fn a_file_that_is_really_called_deleted_is_not_cut() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("x (deleted)");
        assert_eq!(without_mark(odd.clone()), (folder.path().join("x"), true));
        fs::write(&odd, "").unwrap();
        assert_eq!(without_mark(odd.clone()), (odd, false));
    }

    #[test]
    fn arguments_may_be_empty_or_missing() {
        assert_eq!(split(b""), [""; 0]);
        assert_eq!(split(b"a\0\0b\0"), ["a", "", "b"]);
    }
}
