//! The program behind a connection.

use std::{path::PathBuf, sync::Arc};

/// A program of this computer, as it was when it asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    /// What it calls itself, such as `claude`.
    pub name: String,
    /// Absolute; `None` where the system does not tell.
    pub path: Option<PathBuf>,
    pub pid: u32,
    /// What an interpreter runs.
    pub script: Option<String>,
}

/// Whoever holds a connection. The program behind it is found when somebody needs it, once.
#[derive(Debug, Clone, Default)]
pub struct Visitor;

impl Visitor {
    /// The program, looked up now where it was not before; `None` = the system does not tell, or it is gone.
    pub async fn program(&self) -> Option<Arc<Program>> {
        None
    }

    /// The program, where it was looked up before.
    pub fn known(&self) -> Option<Arc<Program>> {
        None
    }
}
