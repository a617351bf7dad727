//! Looking at one folder or entry: its list, its sizes, its facts. Links are shown as links.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    io,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use cap_std::fs::{Dir, DirEntry, FileType, Metadata};
use neuron_bridge::trust::scan::one_line;

use super::root::{Refusal, Root};

/// Most entries in one answer.
pub(crate) const MAX_ENTRIES: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Name,
    Size,
}

/// An answer's text, and what it leaves out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) text: String,
    pub(crate) note: Option<String>,
}

/// The entries of one folder, by name.
pub(crate) fn list(root: &Root, given: &str) -> Result<Listing, Refusal> {
    let dir = root.open_dir(&root.inside(given)?, given)?;
    let (entries, note) = sorted(root, &dir, given)?;
    let mut text = String::new();
    for (name, kind) in &entries {
        push_line(&mut text, &format!("{} {}", label(*kind), one_line(name)));
    }
    if entries.is_empty() {
        text.push_str("(this folder is empty)");
    }
    Ok(Listing { text, note })
}

/// The entries of one folder with the files' sizes, and their sum.
pub(crate) fn list_with_sizes(root: &Root, given: &str, order: Order) -> Result<Listing, Refusal> {
    let dir = root.open_dir(&root.inside(given)?, given)?;
    let (entries, note) = sorted(root, &dir, given)?;
    let mut rows: Vec<(String, Kind, u64)> = entries
        .into_iter()
        .map(|(name, kind)| {
            let size = match kind {
                Kind::File => dir.symlink_metadata(&name).map_or(0, |m| m.len()),
                Kind::Folder | Kind::Link | Kind::Other => 0,
            };
            (name, kind, size)
        })
        .collect();
    if order == Order::Size {
        rows.sort_by_key(|row| std::cmp::Reverse(row.2));
    }
    let mut text = String::new();
    for (name, kind, size) in &rows {
        let size = if *kind == Kind::File {
            size_text(*size)
        } else {
            String::new()
        };
        push_line(
            &mut text,
            format!("{} {:<30} {:>10}", label(*kind), one_line(name), size).trim_end(),
        );
    }
    let folders = rows.iter().filter(|r| r.1 == Kind::Folder).count();
    let total: u64 = rows.iter().map(|r| r.2).sum();
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\n\nTotal: {} files, {folders} directories\nCombined size: {}",
        rows.len() - folders,
        size_text(total)
    );
    Ok(Listing { text, note })
}

/// One entry's facts, a line each.
pub(crate) fn info(root: &Root, given: &str) -> Result<String, Refusal> {
    let inside = root.inside(given)?;
    let explain = |e: &io::Error| root.explain(given, "look at", e);
    let itself = root.dir().symlink_metadata(inside.path()).map_err(|e| explain(&e))?;
    let metadata = root.dir().metadata(inside.path()).map_err(|e| explain(&e))?;
    let mut text = format!("path: {}\n", one_line(&inside.path().to_string_lossy()));
    let when = |time: io::Result<cap_std::time::SystemTime>| {
        time.map_or_else(|_| "unknown".to_owned(), |t| time_text(t.into_std()))
    };
    let lines = [
        ("size", metadata.len().to_string()),
        ("created", when(metadata.created())),
        ("modified", when(metadata.modified())),
        ("accessed", when(metadata.accessed())),
        ("isDirectory", metadata.is_dir().to_string()),
        ("isFile", metadata.is_file().to_string()),
        ("isLink", itself.is_symlink().to_string()),
        ("permissions", permissions(&metadata)),
    ];
    for (key, value) in lines {
        push_line(&mut text, &format!("{key}: {value}"));
    }
    Ok(text)
}

/// A size for a person: `1.50 KB` is 1,536 bytes.
pub(crate) fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.2} {}", UNITS[unit])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    File,
    Link,
    Other,
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        if kind.is_dir() {
            Self::Folder
        } else if kind.is_file() {
            Self::File
        } else if kind.is_symlink() {
            Self::Link
        } else {
            Self::Other
        }
    }
}

type Named = (String, Kind);

/// The first [`MAX_ENTRIES`] entries of one folder as the system gives them, by name.
fn sorted(root: &Root, dir: &Dir, given: &str) -> Result<(Vec<Named>, Option<String>), Refusal> {
    let explain = |e: io::Error| root.explain(given, "read", &e);
    let mut entries = Vec::new();
    let mut note = None;
    for entry in dir.entries().map_err(explain)? {
        if entries.len() == MAX_ENTRIES {
            note = Some(format!(
                "Note: Only {MAX_ENTRIES} entries are shown, and there are more: use search_files to find the others."
            ));
            break;
        }
        let entry = entry.map_err(explain)?;
        entries.push((lossy(&entry.file_name()), kind_of(&entry)));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Ok((entries, note))
}

pub(crate) fn kind_of(entry: &DirEntry) -> Kind {
    entry.file_type().map_or(Kind::Other, Kind::from)
}

pub(crate) fn lossy(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

fn label(kind: Kind) -> &'static str {
    match kind {
        Kind::Folder => "[DIR]",
        Kind::File | Kind::Other => "[FILE]",
        Kind::Link => "[LINK]",
    }
}

pub(crate) fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

#[cfg(unix)]
fn permissions(metadata: &Metadata) -> String {
    use cap_std::fs::PermissionsExt as _;
    format!("{:03o}", metadata.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn permissions(metadata: &Metadata) -> String {
    if metadata.permissions().readonly() {
        "read-only"
    } else {
        "read-write"
    }
    .to_owned()
}

/// RFC 3339 in UTC, to the second. Days to a date after Howard Hinnant's `civil_from_days`.
fn time_text(time: SystemTime) -> String {
    let seconds = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_secs().cast_signed(),
        Err(before) => -before.duration().max(Duration::from_secs(1)).as_secs().cast_signed(),
    };
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_list_tells_folders_from_files_by_name_or_size() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("b.md"), vec![b'x'; 2048]).unwrap();
        fs::write(dir.path().join("a.txt"), "abc").unwrap();
        let root = Root::open(dir.path().to_owned(), None).unwrap();
        assert_eq!(list(&root, ".").unwrap().text, "[FILE] a.txt\n[FILE] b.md\n[DIR] sub");
        let sizes = list_with_sizes(&root, ".", Order::Size).unwrap().text;
        assert!(sizes.starts_with("[FILE] b.md"), "{sizes}");
        assert!(sizes.contains("2.00 KB"), "{sizes}");
        assert!(
            sizes.ends_with("Total: 2 files, 1 directories\nCombined size: 2.00 KB"),
            "{sizes}"
        );
    }

    #[test]
    fn a_list_stops_at_its_limit_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        for i in 0..=MAX_ENTRIES {
            fs::write(dir.path().join(i.to_string()), "").unwrap();
        }
        let root = Root::open(dir.path().to_owned(), None).unwrap();
        let listing = list(&root, ".").unwrap();
        assert_eq!(listing.text.lines().count(), MAX_ENTRIES);
        assert!(listing.note.unwrap().contains("10000 entries"));
    }

    #[test]
    fn times_are_written_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_996_799, "2026-11-29T23:59:59Z"),
        ] {
            assert_eq!(time_text(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn sizes_are_written_for_people() {
        for (bytes, text) in [(0, "0 B"), (1023, "1023 B"), (1536, "1.50 KB"), (10 << 20, "10.00 MB")] {
            assert_eq!(size_text(bytes), text);
        }
    }
}
