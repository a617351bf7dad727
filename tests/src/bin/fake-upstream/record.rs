//! The file in which a test finds what arrived, byte for byte.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Mutex,
};

/// The note of a process's start, before its id.
const START: &str = "# start ";

/// Appends; several processes of one connector, one after the other, share the file.
pub(crate) struct Record {
    file: Option<Mutex<File>>,
    /// How many processes wrote to it before this one.
    pub(crate) earlier_starts: usize,
}

impl Record {
    /// Opens the file and notes this process in it, and the one before it where that one is still there.
    pub(crate) fn open(path: Option<&Path>) -> Self {
        let earlier = path.map(earlier_starts).unwrap_or_default();
        let file = path.map(|path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            Mutex::new(file.unwrap_or_else(|e| panic!("cannot record to {}: {e}", path.display())))
        });
        let record = Self {
            file,
            earlier_starts: earlier.len(),
        };
        record.note(&format!("start {}", std::process::id()));
        if let Some(pid) = earlier.last().filter(|pid| is_alive(pid)) {
            record.note(&format!("beside {pid}"));
        }
        record
    }

    /// A line of our own.
    pub(crate) fn note(&self, text: &str) {
        self.line(format!("# {text}").as_bytes());
    }

    /// A line as it came in.
    pub(crate) fn line(&self, line: &[u8]) {
        if let Some(file) = &self.file {
            let mut whole = line.to_vec();
            whole.push(b'\n');
            // One write per line, so that a reader never sees half of one.
            file.lock()
                .expect("no writer panics")
                .write_all(&whole)
                .expect("the record can be written");
        }
    }
}

fn earlier_starts(path: &Path) -> Vec<String> {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let pids = text.lines().filter_map(|line| line.strip_prefix(START));
    pids.map(ToOwned::to_owned).collect()
}

/// A zombie has ended, whoever has yet to take note of it.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
