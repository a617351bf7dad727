//! What happened, for the person: every call, read, question, sign-in, review and change, who did it and who let it.
//!
//! Owns the way of an entry into the database. [`Recorder::record`] costs a call next to nothing and never waits: one
//! thread writes what was recorded, in batches, and hides secrets before it does. It decides nothing and nobody waits for
//! it; what comes faster than it can be written is counted and told.

mod export;
mod recorder;
mod redacted;
mod shape;
mod writer;

use std::sync::Arc;

pub use self::{
    export::{csv_header, line},
    recorder::{Keep, KeepArguments, Recorder},
    shape::shape,
};
use crate::{
    caller::Caller,
    caller::{self, ProgramCell},
    clock::unix_ms,
    connector::log::Log,
    error::{ApiError, Code},
    snapshot::{ActivityCaller, ActivityOutcome, ActivityWhat, AllowedBy, Arguments, ProgramView, WhoKind, WhoView},
};

/// One thing that happened, as it was met.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Unix milliseconds at which it ended.
    pub at: u64,
    pub who: WhoRecord,
    pub what: ActivityWhat,
    pub outcome: Outcome,
    pub duration_ms: Option<u64>,
    pub allowed_by: AllowedBy,
    /// Something about it deserves a look.
    pub warnings: bool,
    /// The log of the connector whose secrets may stand in its texts.
    pub hides: Option<Log>,
}

impl Entry {
    /// It ended now, well, and nobody was asked.
    pub fn new(who: WhoRecord, what: ActivityWhat) -> Self {
        Self {
            at: unix_ms(),
            allowed_by: match who.kind {
                ActivityCaller::Owner => AllowedBy::Owner,
                ActivityCaller::WalkIn | ActivityCaller::Client | ActivityCaller::Itself => AllowedBy::Nobody,
            },
            who,
            what,
            outcome: Outcome::Ok,
            duration_ms: None,
            warnings: false,
            hides: None,
        }
    }

    /// How it ended.
    #[must_use]
    pub fn ended(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    /// About what this connector holds.
    #[must_use]
    pub fn hiding(mut self, log: &Log) -> Self {
        self.hides = Some(log.clone());
        self
    }

    /// Bytes that its texts take while it waits, roughly.
    fn weight(&self) -> usize {
        let arguments = match self.what.arguments() {
            Some(Arguments::Full(value)) => shape::weight(value),
            Some(Arguments::Shape(_)) | None => 0,
        };
        size_of::<Self>() + self.what.subject().map_or(0, str::len) + arguments
    }
}

/// Who did something.
#[derive(Debug, Clone)]
pub struct WhoRecord {
    pub kind: ActivityCaller,
    /// Of a paired client.
    pub client: Option<ClientRecord>,
    pub program: Option<ProgramRecord>,
}

impl WhoRecord {
    /// Somebody of whom no more is known.
    pub const fn plain(kind: ActivityCaller) -> Self {
        Self {
            kind,
            client: None,
            program: None,
        }
    }
}

impl From<&WhoView> for WhoRecord {
    fn from(who: &WhoView) -> Self {
        let program = who.program.clone().map(|program| {
            let name = match who.kind {
                // Its name is the program's, with what it runs.
                WhoKind::WalkIn => who.name.clone(),
                WhoKind::Owner | WhoKind::Client => program.name.clone(),
            };
            ProgramRecord::Known(Program::shown(name, program))
        });
        Self {
            kind: match who.kind {
                WhoKind::Owner => ActivityCaller::Owner,
                WhoKind::WalkIn => ActivityCaller::WalkIn,
                WhoKind::Client => ActivityCaller::Client,
            },
            client: who.client.as_deref().map(|id| ClientRecord {
                id: id.into(),
                name: who.name.as_str().into(),
            }),
            program,
        }
    }
}

impl From<&Caller> for WhoRecord {
    fn from(caller: &Caller) -> Self {
        match caller {
            Caller::Owner => Self::plain(ActivityCaller::Owner),
            Caller::WalkIn(program) => Self {
                program: Some(ProgramRecord::Behind(program.clone())),
                ..Self::plain(ActivityCaller::WalkIn)
            },
            Caller::Client { pass, program } => Self {
                client: Some(ClientRecord {
                    id: pass.id.as_str().into(),
                    name: pass.name.as_str().into(),
                }),
                program: Some(ProgramRecord::Behind(program.clone())),
                ..Self::plain(ActivityCaller::Client)
            },
        }
    }
}

/// A paired client, as it is called at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRecord {
    pub id: Arc<str>,
    pub name: Arc<str>,
}

/// The program behind an entry.
#[derive(Debug, Clone)]
pub enum ProgramRecord {
    /// Looked for beside the call; what is not known when the entry is written stays unknown.
    Behind(ProgramCell),
    Known(Program),
}

impl ProgramRecord {
    /// As far as it is known by now.
    pub fn get(&self) -> Option<Program> {
        match self {
            Self::Behind(cell) => cell.known().flatten().as_deref().map(Program::from),
            Self::Known(program) => Some(program.clone()),
        }
    }
}

/// A program that uses the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// As a person reads it: `calling.py (python3.12)`.
    pub name: String,
    pub path: Option<String>,
    /// What an interpreter runs.
    pub script: Option<String>,
    pub pid: u32,
}

impl Program {
    fn shown(name: String, program: ProgramView) -> Self {
        let ProgramView { path, script, pid, .. } = program;
        Self {
            name,
            path,
            script,
            pid,
        }
    }
}

impl From<&caller::Program> for Program {
    fn from(program: &caller::Program) -> Self {
        Self::shown(program.label(), ProgramView::from(program))
    }
}

/// How something ended, with the API's code for what went wrong or stood in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    Failed(&'static str),
    Denied(&'static str),
    Cancelled,
}

impl Outcome {
    /// What a refusal means: that somebody did not let it happen, or that it went wrong.
    pub fn of(code: Code) -> Self {
        match code {
            Code::Unauthorized
            | Code::HostNotAllowed
            | Code::OriginNotAllowed
            | Code::PeerNotOwner
            | Code::ScopeMissing
            | Code::Denied
            | Code::ApprovalTimeout
            | Code::NeedsReview
            | Code::ToolChanged => Self::Denied(code.name()),
            Code::BadRequest
            | Code::UnknownTool
            | Code::UnknownServer
            | Code::NotFound
            | Code::MethodNotAllowed
            | Code::NeedsSignIn
            | Code::NeedsSecret
            | Code::Disabled
            | Code::AlreadyExists
            | Code::TooLarge
            | Code::UnsupportedMediaType
            | Code::RateLimited
            | Code::Internal
            | Code::NotSaved
            | Code::UpstreamError
            | Code::ResultTooLarge
            | Code::UnsafeAuthorizationUrl
            | Code::PkceNotSupported
            | Code::Unavailable
            | Code::KeychainUnavailable
            | Code::CallbackUnavailable
            | Code::UpstreamTimeout => Self::Failed(code.name()),
        }
    }

    /// Of something that has no result worth a look.
    pub fn of_result<T>(result: &Result<T, ApiError>) -> Self {
        match result {
            Ok(_) => Self::Ok,
            Err(error) => Self::of(error.code),
        }
    }

    pub(crate) fn parts(self) -> (ActivityOutcome, Option<&'static str>) {
        match self {
            Self::Ok => (ActivityOutcome::Ok, None),
            Self::Failed(code) => (ActivityOutcome::Failed, Some(code)),
            Self::Denied(code) => (ActivityOutcome::Denied, Some(code)),
            Self::Cancelled => (ActivityOutcome::Cancelled, None),
        }
    }
}
