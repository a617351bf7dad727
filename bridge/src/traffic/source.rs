//! Who is counted as one caller, and with whom it shares its limits. Looks nothing up by itself.

use std::path::PathBuf;

use crate::caller::{Caller, Program, ProgramKey};

/// One caller, as far as it can be told from others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    Owner,
    /// A paired client, by its id.
    Client(String),
    /// Walk-ins of one program.
    Program(ProgramKey),
    /// A walk-in that nothing but its process tells from others; where known, with the file that it runs.
    Process {
        pid: u32,
        path: Option<PathBuf>,
    },
    /// Walk-ins of one file that nothing but their processes tells apart.
    File(PathBuf),
    /// Walk-ins whose program was not looked for yet.
    Unresolved,
    /// Walk-ins whose program the system does not tell.
    Unknown,
}

impl Source {
    /// Looks for the program of a walk-in.
    pub async fn of(caller: &Caller) -> Self {
        match caller {
            Caller::Owner => Self::Owner,
            Caller::Client { pass, .. } => Self::Client(pass.id.clone()),
            Caller::WalkIn(program) => Self::of_program(program.get().await.as_deref()),
        }
    }

    pub(crate) fn of_program(program: Option<&Program>) -> Self {
        match program {
            Some(program) => program.key().map_or_else(
                || Self::Process {
                    pid: program.pid,
                    path: program.path.clone(),
                },
                Self::Program,
            ),
            None => Self::Unknown,
        }
    }

    /// Under which its limits are counted. What a new process would escape is counted for all that run the same file.
    #[must_use]
    pub fn group(&self) -> Self {
        match self {
            Self::Process { path: Some(path), .. } => Self::File(path.clone()),
            Self::Process { path: None, .. } => Self::Unknown,
            Self::Owner | Self::Client(_) | Self::Program(_) | Self::File(_) | Self::Unresolved | Self::Unknown => {
                self.clone()
            }
        }
    }

    /// Wider: all that run the same file, whatever it runs. A program that writes a new script is another group, and of
    /// the same kin.
    #[must_use]
    pub fn kin(&self) -> Self {
        match self {
            Self::Program(key) => Self::File(key.path.clone()),
            Self::Process { .. } | Self::Owner | Self::Client(_) | Self::File(_) | Self::Unresolved | Self::Unknown => {
                self.group()
            }
        }
    }
}
