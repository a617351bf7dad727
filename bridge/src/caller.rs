//! Who asks (DESIGN §7.2): a program without a token, a client with one, or the person.
//!
//! Owns what is known of a caller while its request runs. Never decides what it may do: the routes and `trust` do.

pub mod lookup;
mod process;
pub mod program;
pub(crate) mod socket;
pub mod token;
mod who;

use std::sync::Arc;

pub use self::{
    lookup::{ProgramCell, ProgramLookup},
    program::{Program, ProgramKey, Script},
};
use crate::{
    error::{ApiError, Code},
    snapshot::ProgramView,
};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Who asks.
#[derive(Debug, Clone)]
pub enum Caller {
    /// No token, over the loopback port; or the local socket while the tray app runs.
    WalkIn(ProgramCell),
    /// A paired client, by its token.
    Client { pass: Arc<Pass>, program: ProgramCell },
    /// Our window; headless also the local socket.
    Owner,
}

impl Caller {
    /// A program of which nothing is known.
    pub fn walk_in() -> Self {
        Self::WalkIn(ProgramCell::unknown())
    }

    /// The word under which its calls, events and results are filed: `walk-in`, `owner`, or `client:<id>`. All walk-ins
    /// share one: any of them can make itself look like another.
    pub fn label(&self) -> &str {
        match self {
            Self::WalkIn(_) => "walk-in",
            Self::Client { pass, .. } => &pass.label,
            Self::Owner => Self::OWNER,
        }
    }

    /// The same program, as the client whose token it showed.
    #[must_use]
    pub fn with(self, pass: Arc<Pass>) -> Self {
        let program = match self {
            Self::WalkIn(program) | Self::Client { program, .. } => program,
            Self::Owner => ProgramCell::unknown(),
        };
        Self::Client { pass, program }
    }

    /// Whether it may know of this connector.
    pub fn sees(&self, server: &str) -> bool {
        match self {
            Self::Owner | Self::WalkIn(_) => true,
            Self::Client { pass, .. } => match &pass.servers {
                Some(servers) => servers.iter().any(|seen| seen == server),
                None => true,
            },
        }
    }

    /// Refuses a client whose token is not good for this. What a walk-in may do is for each route to say.
    ///
    /// # Errors
    /// `scope_missing`
    pub fn needs(&self, scope: Scope) -> Result<(), ApiError> {
        let Self::Client { pass, .. } = self else {
            return Ok(());
        };
        if pass.scopes.contains(&scope) {
            return Ok(());
        }
        let may = match scope {
            Scope::Read => "read lists",
            Scope::Call => "use tools",
            Scope::Manage => "change connectors",
        };
        Err(ApiError::new(
            Code::ScopeMissing,
            format!(
                "The token of {} does not let it {may}. The person can change that in the Neuron Connect window, under \
                 Assistants.",
                pass.name
            ),
        ))
    }

    /// The owner's label.
    pub const OWNER: &'static str = "owner";

    /// Whether it is the person.
    pub fn is_owner(&self) -> bool {
        match self {
            Self::Owner => true,
            Self::WalkIn(_) | Self::Client { .. } => false,
        }
    }
}

/// What a token gives its client, as it was when the request came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Of the paired client: lower-case hexadecimal digits.
    pub id: String,
    /// The name it was paired under.
    pub name: String,
    pub scopes: Vec<Scope>,
    /// The connectors it sees; `None` = all.
    pub servers: Option<Vec<String>>,
    /// The person marked it as doing its own asking.
    pub asks_itself: bool,
    /// `client:<id>`
    pub label: String,
    /// The program that was paired, where that was known.
    pub paired: Option<PairedProgram>,
}

/// The program that a token was given to. Another one that shows the token is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairedProgram {
    pub path: String,
    /// What it runs, for an interpreter.
    pub script: Option<String>,
}

impl Pass {
    /// Whether a program is the one that was paired; where nobody knew that one, every program is. One that nothing lasting
    /// tells from others, such as code in the arguments of an interpreter, is none that was paired.
    pub fn is_shown_by(&self, program: Option<&Program>) -> bool {
        let Some(paired) = &self.paired else { return true };
        let shown = program.filter(|program| program.key().is_some()).map(ProgramView::from);
        shown.is_some_and(|shown| shown.path.as_ref() == Some(&paired.path) && shown.script == paired.script)
    }
}

/// What a token is good for. `manage` still waits for the person where a walk-in's wish does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum Scope {
    Read,
    Call,
    Manage,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(script: Option<&str>) -> Pass {
        Pass {
            id: "1".to_owned(),
            name: "Agent".to_owned(),
            scopes: vec![Scope::Call],
            servers: None,
            asks_itself: true,
            label: "client:1".to_owned(),
            paired: Some(PairedProgram {
                path: "/usr/bin/python3".to_owned(),
                script: script.map(str::to_owned),
            }),
        }
    }

    fn python(script: Option<Script>) -> Program {
        Program {
            name: "python3".to_owned(),
            path: Some("/usr/bin/python3".into()),
            pid: 7,
            script,
        }
    }

    #[test]
    fn code_in_arguments_is_never_the_program_that_was_paired() {
        let file = Script::File("/a.py".into());
        assert!(pass(Some("/a.py")).is_shown_by(Some(&python(Some(file)))));
        assert!(pass(None).is_shown_by(Some(&python(None))));
        for script in [Script::Inline, Script::Unclear] {
            assert!(!pass(None).is_shown_by(Some(&python(Some(script)))));
        }
        assert!(!pass(None).is_shown_by(None));
    }
}
