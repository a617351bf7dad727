//! A log file that turns over at a size.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::PathBuf,
};

/// A file's greatest size in bytes.
pub(super) const MAX_FILE: u64 = 1024 * 1024;

/// How many files there are, with the one that is written.
pub(super) const FILES: usize = 5;

pub(super) struct LogFile {
    path: PathBuf,
    open: Option<(File, u64)>,
    /// A full disk is told once, not per line.
    failing: bool,
}

impl LogFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            open: None,
            failing: false,
        }
    }

    /// Adds a line with its end. A failure loses it; the next one tries again.
    pub(super) fn append(&mut self, line: &str) {
        match self.try_append(line) {
            Ok(()) => self.failing = false,
            Err(error) => {
                self.open = None;
                if !self.failing {
                    tracing::warn!(path = %self.path.display(), %error, "a connector's log cannot be written");
                }
                self.failing = true;
            }
        }
    }

    /// Deletes all files.
    pub(super) fn remove(&mut self) {
        self.open = None;
        for n in 0..FILES {
            if let Err(error) = fs::remove_file(self.numbered(n))
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(path = %self.path.display(), %error, "a connector's log cannot be removed");
            }
        }
    }

    fn try_append(&mut self, line: &str) -> io::Result<()> {
        let (mut file, size) = match self.open.take() {
            Some(open) => open,
            None => self.create()?,
        };
        let size = if size > 0 && size + line.len() as u64 > MAX_FILE {
            drop(file);
            self.turn_over()?;
            (file, _) = self.create()?;
            0
        } else {
            size
        };
        file.write_all(line.as_bytes())?;
        self.open = Some((file, size + line.len() as u64));
        Ok(())
    }

    fn create(&self) -> io::Result<(File, u64)> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&self.path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        let size = file.metadata()?.len();
        Ok((file, size))
    }

    fn turn_over(&self) -> io::Result<()> {
        for n in (1..FILES).rev() {
            match fs::rename(self.numbered(n - 1), self.numbered(n)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn numbered(&self, n: usize) -> PathBuf {
        if n == 0 {
            return self.path.clone();
        }
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{n}"));
        path.into()
    }
}
