//! Who calls, and whom a rule is about.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{ClientId, condition::Fit};
use crate::caller::{ProgramKey, Script};

/// A program as rules name it: by its file, and for an interpreter by the script that it runs as well.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(export_to = "bridge.ts")]
pub struct ProgramId {
    /// Absolute, resolved.
    pub path: String,
    /// Absolute, resolved; of interpreters only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub script: Option<String>,
}

impl ProgramId {
    /// What rules name this program by; `None` where they cannot: it runs a module by its name, or a path is no text.
    pub fn of(program: &ProgramKey) -> Option<Self> {
        let script = match &program.script {
            None => None,
            Some(Script::File(file)) => Some(file.to_str()?.to_owned()),
            Some(Script::Module(_) | Script::Inline | Script::Unclear) => return None,
        };
        Some(Self {
            path: program.path.to_str()?.to_owned(),
            script,
        })
    }
}

/// Whoever calls (DESIGN §7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who<'a> {
    Owner,
    /// A paired client; what it may reach was looked at before.
    Client(ClientId),
    /// `None`: not looked up, or not to be found.
    WalkIn(Option<&'a ProgramId>),
}

/// Whom a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(tag = "who", rename_all = "snake_case", deny_unknown_fields)]
#[ts(export_to = "bridge.ts")]
pub enum RuleCaller {
    /// Any program on this computer, paired or not.
    Anyone,
    /// A walk-in. Both parts count: an interpreter without its script is not the interpreter with one.
    Program { program: ProgramId },
    /// A paired client, whichever program it is.
    Client {
        #[ts(type = "string")]
        client: ClientId,
    },
}

impl RuleCaller {
    /// Whether `who` is meant; unsure only of a walk-in whose program is not known. The owner is nobody's rule.
    pub fn fits(&self, who: Who<'_>) -> Fit {
        let sure = |fits| if fits { Fit::Fits } else { Fit::Differs };
        match (self, who) {
            (_, Who::Owner) => Fit::Differs,
            (Self::Anyone, Who::Client(_) | Who::WalkIn(_)) => Fit::Fits,
            (Self::Program { .. }, Who::WalkIn(None)) => Fit::Unsure,
            (Self::Program { program }, Who::WalkIn(Some(caller))) => sure(program == caller),
            (Self::Program { .. }, Who::Client(_)) | (Self::Client { .. }, Who::WalkIn(_)) => Fit::Differs,
            (Self::Client { client }, Who::Client(caller)) => sure(*client == caller),
        }
    }
}
