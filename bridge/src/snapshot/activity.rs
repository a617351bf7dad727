//! What happened, as the window, the API and the database hold it: one row for each thing, never a secret.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use crate::ids::{ConnectorId, ToolName};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ActivityEntry {
    /// Grows with every entry that is kept; never given twice in one database.
    #[ts(type = "number")]
    pub id: u64,
    #[serde(flatten)]
    pub record: ActivityRecord,
}

/// What is kept of it.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ActivityRecord {
    /// Unix milliseconds at which it ended; it began `duration_ms` earlier.
    #[ts(type = "number")]
    pub at: u64,
    pub who: ActivityWho,
    pub what: ActivityWhat,
    pub outcome: ActivityOutcome,
    /// The API's code for what went wrong or stood in the way, such as `tool_error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub duration_ms: Option<u64>,
    pub allowed_by: AllowedBy,
    /// Something about it deserves a look: the result held text that looks like instructions, or the like.
    pub warnings: bool,
}

/// Who did it, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ActivityWho {
    pub kind: ActivityCaller,
    /// Of a paired client.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub client_id: Option<String>,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub client_name: Option<String>,
    /// The program at the other end of the connection, as a person reads it: `calling.py (python3.12)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub program_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub program_path: Option<String>,
    /// What it runs, for an interpreter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub program_script: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub pid: Option<u32>,
}

/// The kinds of those who do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum ActivityCaller {
    /// The person: our window, or without one the command line.
    Owner,
    /// A program of this computer without a token.
    WalkIn,
    /// A paired assistant.
    Client,
    /// Nobody: an upstream, the file, the clock.
    Itself,
}

/// What happened. Names and addresses are the upstream's or the caller's: never to be rendered as markup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum ActivityWhat {
    /// A tool was called.
    Call {
        #[ts(type = "string")]
        server: ConnectorId,
        #[ts(type = "string")]
        tool: ToolName,
        arguments: Arguments,
    },
    /// A resource was read.
    Read {
        #[ts(type = "string")]
        server: ConnectorId,
        uri: String,
    },
    /// A prompt was fetched.
    Prompt {
        #[ts(type = "string")]
        server: ConnectorId,
        name: String,
        arguments: Arguments,
    },
    /// The person was asked for something by an upstream, or whether a program may change something. A question about
    /// a call is told by the call's own entry.
    Question {
        #[ts(type = "string")]
        server: ConnectorId,
        asks: ActivityQuestion,
    },
    /// A sign-in ended.
    SignIn {
        #[ts(type = "string")]
        server: ConnectorId,
    },
    /// A sign-in was given back.
    SignOut {
        #[ts(type = "string")]
        server: ConnectorId,
    },
    /// The person decided about something; the outcome is the answer.
    Review {
        /// `null` where it is about no connector.
        #[ts(type = "string | null")]
        server: Option<ConnectorId>,
        of: ActivityReview,
        /// The tool, rule or assistant, where it is about one.
        subject: Option<String>,
    },
    /// The configuration changed, or a secret.
    Change {
        /// As written in the file (may be no legal id); `null` where it is about no connector.
        server: Option<String>,
        change: ActivityChange,
        /// The tool or secret, where it is about one.
        subject: Option<String>,
    },
    /// Entries that came too fast to be kept.
    Lost {
        #[ts(type = "number")]
        entries: u64,
    },
}

/// A call's arguments, as far as they are kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kept", content = "value", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum Arguments {
    /// Names, types and sizes without contents: `{"path":"text(12)","lines":"list(3)","force":true}`.
    Shape(#[ts(type = "JsonValue")] Value),
    /// As they were sent, without secrets.
    Full(#[ts(type = "JsonValue")] Value),
}

/// What the person was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum ActivityQuestion {
    Form,
    Page,
    /// Something that a program wanted changed.
    Change,
}

/// What the person looked at and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum ActivityReview {
    /// What a connector runs or contacts.
    Launch,
    Tools,
    /// A prompt about which something stands out.
    Prompt,
    /// A rule was made; its subject is how it reads.
    Rule,
    RuleChanged,
    RuleWithdrawn,
    /// Rules that were made for another launch go on.
    RulesKept,
    /// One call that was missed may happen once without asking.
    NextTime,
    /// A program may not ask for an hour.
    Muted,
    /// It may ask again.
    Unmuted,
    /// An assistant was paired, or turned away.
    Paired,
    /// What a paired assistant may do.
    ClientChanged,
    Unpaired,
    /// An assistant or program is trusted to ask by itself.
    AsksItself,
    /// It is asked about here again.
    AskedHere,
    /// Every program needs a token.
    TokenNeeded,
    TokenNotNeeded,
    /// Calls of programs without a token are asked about.
    WalkInsAsked,
    WalkInsAllowed,
    /// The pages that may use the API; its subject is all of them.
    Pages,
}

/// What became different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum ActivityChange {
    Added,
    Edited,
    Removed,
    TurnedOn,
    TurnedOff,
    ToolTurnedOn,
    ToolTurnedOff,
    AutoApprove,
    SecretSet,
    SecretForgotten,
    /// Somebody saved the file with another entry of this connector.
    FileAdded,
    FileEdited,
    FileRemoved,
    /// Without a connector: everything.
    Paused,
    Resumed,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum ActivityOutcome {
    Ok,
    Failed,
    /// Nobody let it happen: the person, a rule, a review that waits.
    Denied,
    /// Whoever wanted it went away.
    Cancelled,
}

/// Who let it happen; of something denied, who did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "by", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum AllowedBy {
    /// The owner's own doing needs no leave.
    Owner,
    /// Nobody was asked.
    Nobody,
    /// A rule of the person.
    Rule {
        rule: String,
        /// How the rule reads for people.
        name: Option<String>,
    },
    /// The person's answer to a question.
    Person { answer: PersonAnswer },
    /// A standing choice of the person.
    Policy { policy: StandingPolicy },
}

/// How far the person's answer reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum PersonAnswer {
    Once,
    UntilQuit,
    Always,
    Denied,
    /// The person did not answer in time.
    Unanswered,
}

/// Standing choices that stand in for a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum StandingPolicy {
    /// Programs without a token may call.
    WalkInsMayCall,
    /// The assistant asks the person itself.
    AsksItself,
    /// It may not ask at present: it was told to stop, or its last questions were not answered.
    MayNotAsk,
}

/// Which entries are wanted; a member that is absent excludes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, TS)]
#[serde(default, deny_unknown_fields)]
#[ts(export_to = "bridge.ts", optional_fields)]
pub struct ActivityFilter {
    /// A connector's id.
    pub server: Option<String>,
    pub caller: Option<ActivityCaller>,
    /// A paired client's id.
    pub client: Option<String>,
    /// A program's path.
    pub program: Option<String>,
    pub outcome: Option<ActivityOutcome>,
    pub kind: Option<ActivityKind>,
    /// Occurs in the names, addresses, arguments or codes, whatever the case of its letters.
    pub text: Option<String>,
    /// Unix milliseconds, itself included.
    #[ts(optional, type = "number")]
    pub from: Option<u64>,
    /// Unix milliseconds, itself not included.
    #[ts(optional, type = "number")]
    pub to: Option<u64>,
}

/// The kinds of [`ActivityWhat`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum ActivityKind {
    Call,
    Read,
    Prompt,
    Question,
    SignIn,
    SignOut,
    Review,
    Change,
    Lost,
}

/// Some entries, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ActivityPage {
    pub entries: Vec<ActivityEntry>,
    /// To ask for the rest with; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub next: Option<u64>,
}

/// The calls, reads and prompts of one day where the person is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ActivityDay {
    /// `2026-07-28`
    pub day: String,
    #[ts(type = "number")]
    pub calls: u64,
    /// Those of them that did not end well.
    #[ts(type = "number")]
    pub failures: u64,
}

/// How often a rule decided, within what is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct RuleUse {
    pub rule: String,
    #[ts(type = "number")]
    pub times: u64,
    /// Unix milliseconds of the last time.
    #[ts(type = "number")]
    pub last: u64,
}

/// A file that an export was written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct ActivityExport {
    /// Absolute.
    pub path: String,
    #[ts(type = "number")]
    pub entries: u64,
}

/// How an export is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum ExportFormat {
    /// One JSON object on each line.
    Jsonl,
    /// RFC 4180 with a header line.
    Csv,
}

impl ActivityWhat {
    /// Which kind it is.
    pub fn kind(&self) -> ActivityKind {
        match self {
            Self::Call { .. } => ActivityKind::Call,
            Self::Read { .. } => ActivityKind::Read,
            Self::Prompt { .. } => ActivityKind::Prompt,
            Self::Question { .. } => ActivityKind::Question,
            Self::SignIn { .. } => ActivityKind::SignIn,
            Self::SignOut { .. } => ActivityKind::SignOut,
            Self::Review { .. } => ActivityKind::Review,
            Self::Change { .. } => ActivityKind::Change,
            Self::Lost { .. } => ActivityKind::Lost,
        }
    }

    /// The connector it is about.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Call { server, .. }
            | Self::Read { server, .. }
            | Self::Prompt { server, .. }
            | Self::Question { server, .. }
            | Self::SignIn { server }
            | Self::SignOut { server } => Some(server.as_str()),
            Self::Review { server, .. } => server.as_ref().map(ConnectorId::as_str),
            Self::Change { server, .. } => server.as_deref(),
            Self::Lost { .. } => None,
        }
    }

    /// The tool, address, prompt, rule, secret or assistant it is about.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Self::Call { tool, .. } => Some(tool.as_str()),
            Self::Read { uri, .. } => Some(uri),
            Self::Prompt { name, .. } => Some(name),
            Self::Review { subject, .. } | Self::Change { subject, .. } => subject.as_deref(),
            Self::Question { .. } | Self::SignIn { .. } | Self::SignOut { .. } | Self::Lost { .. } => None,
        }
    }

    /// What was sent along.
    pub fn arguments(&self) -> Option<&Arguments> {
        match self {
            Self::Call { arguments, .. } | Self::Prompt { arguments, .. } => Some(arguments),
            Self::Read { .. }
            | Self::Question { .. }
            | Self::SignIn { .. }
            | Self::SignOut { .. }
            | Self::Review { .. }
            | Self::Change { .. }
            | Self::Lost { .. } => None,
        }
    }
}
