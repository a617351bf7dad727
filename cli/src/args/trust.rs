//! Who may use the API: pairing, clients, what holds for all.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct PairArgs {
    /// What it may do: read lists, call tools, manage connectors [default: read and call]
    #[arg(long, value_enum, value_name = "WHAT")]
    scope: Vec<MayDo>,
    /// Only this connector; may be given again
    #[arg(long, value_name = "ID")]
    pub(crate) server: Vec<String>,
    /// It asks by itself before it calls a tool
    #[arg(long)]
    pub(crate) asks_itself: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MayDo {
    Read,
    Call,
    Manage,
}

impl PairArgs {
    /// As the API spells them.
    pub(crate) fn scopes(&self) -> Vec<&'static str> {
        let word = |may: &MayDo| match may {
            MayDo::Read => "read",
            MayDo::Call => "call",
            MayDo::Manage => "manage",
        };
        match self.scope.is_empty() {
            true => vec!["read", "call"],
            false => self.scope.iter().map(word).collect(),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ClientsArgs {
    /// The token of this assistant is wrong from now on
    #[arg(long, value_name = "ID")]
    pub(crate) revoke: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Who needs a token: nobody of this user, or every program
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) api: Option<ApiChoice>,
    /// Calls without a token that no rule covers: ask you, or go on
    #[arg(long, value_enum, value_name = "POLICY")]
    pub(crate) walk_in: Option<WalkInChoice>,
    /// Pause everything, until it is resumed
    #[arg(long, conflicts_with = "resume")]
    pub(crate) pause: bool,
    /// Go on
    #[arg(long)]
    pub(crate) resume: bool,
    /// Let web pages of this origin use the API, such as https://app.example.com; may be given again
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_page: Vec<String>,
    /// Let them no more
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) forbid_page: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApiChoice {
    Open,
    Token,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WalkInChoice {
    Ask,
    Allow,
}

impl ApiChoice {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Token => "token",
        }
    }
}

impl WalkInChoice {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}
