//! What the system tells about a process.
//!
//! Owns the reading, one way per system; draws no conclusion. A process can end, start another program or give its id
//! away between two reads, so whoever reads looks twice ([`Facts::started`]).

use std::{ffi::OsString, path::PathBuf};

/// One process, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    /// The program's file, without the mark of a deleted one.
    pub exe: Option<PathBuf>,
    /// Whether nothing else lies at that path, as far as we can see.
    pub exe_is_at_its_path: bool,
    /// What the process calls itself.
    pub name: String,
    /// With the program's own name first; empty where the system does not tell.
    pub args: Vec<OsString>,
    pub cwd: Option<PathBuf>,
    pub parent: u32,
    /// Together with the process id names one process for ever. In the system's own unit.
    pub started: u64,
}

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(windows)]
mod windows;

/// Reads a process; `None` = it is gone, or not ours to look into.
pub(super) fn facts(pid: u32) -> Option<Facts> {
    #[cfg(target_os = "linux")]
    return linux::facts(pid);
    #[cfg(target_os = "macos")]
    return macos::facts(pid);
    #[cfg(windows)]
    return windows::facts(pid);
    #[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
    {
        let _ = pid;
        None
    }
}
