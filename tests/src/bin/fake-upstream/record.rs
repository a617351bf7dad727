//! The file in which a test finds what arrived, byte for byte.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Mutex,
};

/// Appends; several processes of one connector, one after the other, share the file.
pub(crate) struct Record(Option<Mutex<File>>);

impl Record {
    /// Opens the file and notes this process in it.
    pub(crate) fn open(path: Option<&Path>) -> Self {
        let file = path.map(|path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            Mutex::new(file.unwrap_or_else(|e| panic!("cannot record to {}: {e}", path.display())))
        });
        let record = Self(file);
        record.note(&format!("start {}", std::process::id()));
        record
    }

    /// A line of our own.
    pub(crate) fn note(&self, text: &str) {
        self.line(format!("# {text}").as_bytes());
    }

    /// A line as it came in.
    pub(crate) fn line(&self, line: &[u8]) {
        if let Some(file) = &self.0 {
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
