//! The validated form of `connectors.json` (DESIGN §5), before any expansion.

use std::time::Duration;

use indexmap::IndexMap;
use url::Url;

use crate::{
    ids::ConnectorId,
    snapshot::{Notice, TransportKind},
};

/// A whole file that could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// In the order of the file. An invalid entry keeps its place and takes nobody along.
    pub entries: Vec<Entry>,
    /// Remarks about the file and its entries; an invalid entry's error is also in [`Entry::kind`].
    pub notices: Vec<Notice>,
}

/// One member of `servers`.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// As written; legal exactly when `kind` is [`EntryKind::Valid`].
    pub key: String,
    pub kind: EntryKind,
    /// The member's JSON text as written, for display to the owner.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum EntryKind {
    Valid(Box<Connector>),
    /// Not usable: one sentence with what, where (line and column) and what to do.
    Invalid(Notice),
}

/// What a connector is to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Connector {
    pub id: ConnectorId,
    /// Default true.
    pub enabled: bool,
    /// Shown to people; the id where absent.
    pub name: Option<String>,
    /// At most 2,048 characters.
    pub description: Option<String>,
    pub launch: Launch,
    pub auto_approve: AutoApprove,
    /// Patterns (`*` and `?`) over the upstream's own tool names.
    pub disabled_tools: Vec<String>,
    pub timeouts: Timeouts,
    pub start: Start,
}

/// What decides what is run or contacted; a difference here restarts the connector.
#[derive(Debug, Clone, PartialEq)]
pub enum Launch {
    Stdio(StdioLaunch),
    Http(HttpLaunch),
}

impl Launch {
    pub fn transport(&self) -> TransportKind {
        match self {
            Self::Stdio(_) => TransportKind::Stdio,
            Self::Http(h) if h.sse => TransportKind::Sse,
            Self::Http(_) => TransportKind::Http,
        }
    }
}

/// Everything as written, `${…}` and `~` unexpanded.
#[derive(Debug, Clone, PartialEq)]
pub struct StdioLaunch {
    pub command: String,
    pub args: Vec<String>,
    pub env: IndexMap<String, String>,
    pub cwd: Option<String>,
    pub env_file: Option<String>,
}

/// Everything as written, `${…}` unexpanded.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpLaunch {
    /// Text, because path and query may hold `${env:…}` and `${secret:…}`; scheme and host are checked.
    pub url: String,
    pub headers: IndexMap<String, String>,
    pub auth: Option<Auth>,
    pub oauth: Option<OAuth>,
    /// The 2024-11-05 HTTP+SSE transport.
    pub sse: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    None,
    Token,
    OAuth,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OAuth {
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    pub scopes: Option<Vec<String>>,
    pub issuer: Option<String>,
    pub redirect: Redirect,
    pub grant: Grant,
    pub client_auth: ClientAuth,
    pub private_key: Option<String>,
    pub algorithm: Option<String>,
    pub client_metadata_url: Option<Url>,
    pub allow_missing_pkce: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirect {
    Auto,
    DeepLink,
    Loopback,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    AuthorizationCode,
    ClientCredentials,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    Secret,
    PrivateKeyJwt,
}

/// `false`/absent, `true`, or patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoApprove {
    None,
    All,
    Patterns(Vec<String>),
}

impl AutoApprove {
    /// Whether it covers a tool, by the upstream's own name for it.
    pub fn covers(&self, tool: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Patterns(patterns) => crate::tools::pattern::any_matches(patterns, tool),
        }
    }
}

/// Per-connector overrides; `None` = the default applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timeouts {
    pub connect: Option<Duration>,
    pub call: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    #[default]
    OnDemand,
    AtLaunch,
}
