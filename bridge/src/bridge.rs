//! The one owner of state, and the only door to it.
//!
//! [`BridgeHandle`] is what HTTP, window and command line hold. Reads come from immutable values that the owner
//! publishes; changes are messages to the owner (`owner`); calls (`calls`), reads and prompts (`offers`) go straight to
//! their connector, so that nobody waits for anybody else.

mod activity;
mod answers;
mod approvals;
mod ask;
mod asleep;
mod calls;
mod clients;
mod decide;
mod offers;
mod owner;
mod pauses;
mod permit;
mod person_file;
mod pins;
mod policy;
mod prospect;
mod publish;
mod question;
mod results;
mod reviews;
mod rules;
mod secrets;
mod sign_in;
mod start;
mod versions;
mod wishes;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use serde_json::{Map, Value};
use tokio::{
    sync::{broadcast, mpsc, oneshot, watch},
    time::Instant,
};

pub use self::activity::{LARGEST_ACTIVITY_PAGE, MOST_ACTIVITY_DAYS};
pub use self::answers::CallReply;
pub(crate) use self::asleep::ASLEEP;
pub use self::clients::{ClientChange, PairingBegun, Terms};
pub(crate) use self::decide::PROPOSAL;
pub use self::offers::{Offered, PromptAnswer, PromptList, ReadAnswer, Rejects, ResourceList, SavedResource};
pub use self::policy::TrustChange;
pub use self::rules::AutoApproved;
pub use self::sign_in::SignInAsk;
pub use self::start::{BridgeOptions, DEFAULT_PORT, Headless, Shell, StartError};
pub use self::versions::PackageVersions;
pub use self::wishes::Pending;
use self::{
    decide::Rules,
    owner::{Command, Reply},
    person_file::Edit,
    pins::Looked,
    publish::Row,
};
pub use crate::approval::{ApprovalAnswer, Patience};
use crate::{
    approval::Approvals,
    caller::Caller,
    clients::Callers,
    connector::{
        Door, World,
        log::{Cursor, Page},
    },
    error::{ApiError, Code},
    event::{EventLog, Numbered},
    ids::{ConnectorId, ToolName},
    snapshot::{ApiView, CallAnswer, ConnectorDetail, ConnectorView, LogPage, Snapshot},
    store::ResultStore,
    tools::ToolList,
    traffic::Place,
    trust::{LaunchIdentity, decision::View},
    wishes::Wishes,
};

/// What is listed is waited for at most this long.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

/// One call as it came in; `input` is forwarded exactly as it is.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// Exposed name, or the raw `mcp__<id>__<tool>` where unambiguous.
    pub name: String,
    pub input: Map<String, Value>,
    /// At most one hour.
    pub timeout: Option<Duration>,
    /// Its place among the calls, given up while the person is asked.
    pub turn: Option<Arc<Place>>,
}

/// A piece of a large result.
#[derive(Debug, Clone)]
pub struct ResultPiece {
    /// Characters `offset..offset+text.chars().count()` of the whole.
    pub text: String,
    pub offset: u64,
    /// Length of the whole, in characters.
    pub total: u64,
}

/// Which lines of a connector's log are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogQuery {
    /// Lines after this place, as [`LogPage::next`] gave it; `None` = the newest ones.
    pub after: Option<Cursor>,
    /// At most this many.
    pub lines: usize,
    /// How long to wait for a line where there is none after the place.
    pub wait: Duration,
}

/// Everything a reader may need, made at one instant.
pub(crate) struct Published {
    snapshot: Arc<Snapshot>,
    tools: Arc<ToolList>,
    rows: Vec<Row>,
    /// How what each connector lists stands.
    looked: HashMap<ConnectorId, Arc<Looked>>,
    doors: HashMap<ConnectorId, Door>,
    /// What calls are decided on.
    view: Arc<View>,
    rules: Arc<Rules>,
}

struct Inner {
    published: ArcSwap<Published>,
    snapshots: watch::Sender<Arc<Snapshot>>,
    /// The published view, for calls that wait for the person.
    views: watch::Sender<Arc<View>>,
    events: Arc<EventLog>,
    commands: mpsc::Sender<Command>,
    api: watch::Sender<ApiView>,
    results: Arc<ResultStore>,
    approvals: Arc<Approvals>,
    wishes: Arc<Wishes>,
    callers: Arc<Callers>,
    /// When a program last reconnected or paused a connector.
    meddled: Mutex<HashMap<ConnectorId, Instant>>,
    shell: Shell,
    world: Arc<World>,
    /// `neuron-connect://` links reach this program.
    deep_links: AtomicBool,
    calls: AtomicU64,
    default_call_time: Duration,
}

/// The only way in for HTTP, window and command line. Cheap to clone.
#[derive(Clone)]
pub struct BridgeHandle {
    inner: Arc<Inner>,
}

impl BridgeHandle {
    /// The present state, as one immutable value.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.inner.published.load().snapshot.clone()
    }

    /// Told of every later snapshot. Subscribe first, then read.
    pub fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.inner.snapshots.subscribe()
    }

    /// The present tool list, as one immutable view.
    pub fn tools(&self) -> Arc<ToolList> {
        self.inner.published.load().tools.clone()
    }

    /// Events after `last`, and all later ones.
    pub fn events(&self, last: Option<u64>) -> (Vec<Numbered>, broadcast::Receiver<Numbered>) {
        self.inner.events.subscribe(last)
    }

    /// Where the loopback API reports its port.
    pub fn api(&self) -> &watch::Sender<ApiView> {
        &self.inner.api
    }

    /// Runs a tool, once a rule or the person lets it. Dropping the future cancels the call at its upstream, and withdraws
    /// its question.
    ///
    /// # Errors
    /// `unknown_tool`, `disabled`, `needs_review`, `tool_changed`, `unavailable`, `needs_secret`, `needs_sign_in`,
    /// `keychain_unavailable`, `denied`, also where it needs a page that the person did not open, `approval_timeout`, `rate_limited` where too many questions wait, `upstream_error`, `result_too_large`, `upstream_timeout`.
    pub async fn call(&self, caller: Caller, request: CallRequest) -> Result<CallAnswer, ApiError> {
        calls::run(&self.inner, caller, request).await
    }

    /// Reads from a stored large result, which only the caller whose call made it may do.
    /// `limit` is in characters.
    ///
    /// # Errors
    /// `not_found`; `bad_request` for a saved file, which is opened at its path instead.
    pub async fn result(
        &self,
        caller: Caller,
        result_id: String,
        offset: u64,
        limit: u64,
    ) -> Result<ResultPiece, ApiError> {
        results::read(&self.inner, caller, result_id, offset, limit).await
    }

    /// One connector with its tools; for the owner also which of its secrets are set.
    ///
    /// # Errors
    /// `unknown_server`.
    pub async fn connector(&self, caller: Caller, id: String) -> Result<ConnectorDetail, ApiError> {
        let published = self.inner.published.load_full();
        let row = published.rows.iter().find(|row| row.entry.key == id);
        let view = published.snapshot.connectors.iter().find(|view| view.id == id);
        match (row, view) {
            (Some(row), Some(view)) if caller.sees(&id) => {
                let secrets = match (caller, &row.live) {
                    (Caller::Owner, Some(live)) => self.secrets_of(&live.entry).await,
                    (Caller::Owner, None) | (Caller::WalkIn(_) | Caller::Client { .. }, _) => Vec::new(),
                };
                Ok(publish::detail(row, view.clone(), &published, secrets))
            }
            _ => Err(unknown_server(&id)),
        }
    }

    /// Adds an entry to the file and to what runs. `entry` is the member of `servers` as JSON.
    ///
    /// # Errors
    /// `bad_request` (where), `already_exists`, `not_saved`.
    pub async fn add(&self, id: ConnectorId, entry: Map<String, Value>) -> Result<ConnectorView, ApiError> {
        self.edit(Edit::Add(id.clone(), entry, None)).await?;
        self.view_of(&id)
    }

    /// The same, of an entry that the person saw as this launch.
    ///
    /// # Errors
    /// As [`BridgeHandle::add`]; `needs_review` where it would be another launch by now. Nothing was added then.
    async fn add_as_shown(
        &self,
        id: ConnectorId,
        entry: Map<String, Value>,
        shown: LaunchIdentity,
    ) -> Result<(), ApiError> {
        self.edit(Edit::Add(id, entry, Some(shown))).await
    }

    /// Replaces an entry, keeping its comments where its members stay.
    ///
    /// # Errors
    /// `unknown_server`, `bad_request`, `not_saved`.
    pub async fn replace(&self, id: ConnectorId, entry: Map<String, Value>) -> Result<ConnectorView, ApiError> {
        self.edit(Edit::Replace(id.clone(), entry)).await?;
        self.view_of(&id)
    }

    /// Turns a connector on or off, in the file.
    ///
    /// # Errors
    /// `unknown_server`, `not_saved`.
    pub async fn set_enabled(&self, id: ConnectorId, enabled: bool) -> Result<(), ApiError> {
        self.edit(Edit::Enabled(id, enabled)).await
    }

    /// Turns one tool on or off (`disabledTools`), in the file.
    ///
    /// # Errors
    /// `unknown_server`, `bad_request` when a pattern of the file hides it, `not_saved`.
    pub async fn set_tool_enabled(&self, id: ConnectorId, tool: ToolName, enabled: bool) -> Result<(), ApiError> {
        self.edit(Edit::ToolEnabled(id, tool, enabled)).await
    }

    /// Stops the connector and removes its entry, snapshots, log, token, secrets and sign-in; where the keychain cannot be
    /// had, the last three as soon as it can.
    ///
    /// # Errors
    /// `unknown_server`, `not_saved`.
    pub async fn remove(&self, id: ConnectorId) -> Result<(), ApiError> {
        self.edit(Edit::Remove(id.clone())).await?;
        if let Err(fault) = self.inner.world.keychain.settled(&id).await {
            tracing::warn!(connector = %id, reason = %fault.sentence(), "its secrets are removed later");
        }
        Ok(())
    }

    /// Closes the present session and waits for one new attempt; `true` = its discovery completed.
    ///
    /// # Errors
    /// `unknown_server`, `disabled`.
    pub async fn reconnect(&self, id: ConnectorId) -> Result<(ConnectorView, bool), ApiError> {
        let door = self.door(&id)?;
        let verified = match door.reconnect().await {
            Ok(_) => true,
            Err(error) if error.code == Code::Disabled => return Err(error),
            Err(_) => false,
        };
        self.settled().await;
        Ok((self.view_of(&id)?, verified))
    }

    /// Gives up the attempt under way and those that are planned; a session that stands is left alone.
    ///
    /// # Errors
    /// `unknown_server`, `unavailable`.
    pub async fn stop_trying(&self, id: ConnectorId) -> Result<ConnectorView, ApiError> {
        self.door(&id)?.stop_trying().await?;
        self.settled().await;
        self.view_of(&id)
    }

    /// What an upstream wrote to stderr and what became of its sessions, oldest first, as far as it is kept in memory.
    ///
    /// # Errors
    /// `unknown_server`, also when the connector is removed during the wait.
    pub async fn log(&self, id: ConnectorId, query: LogQuery) -> Result<LogPage, ApiError> {
        let log = self.door(&id)?.shared.log.clone();
        let page = match query.after {
            None => log.last(query.lines),
            Some(after) if query.wait.is_zero() => log.after(after, query.lines),
            Some(after) => {
                let mut snapshots = self.watch();
                let is_gone = |snapshot: &Arc<Snapshot>| snapshot.connectors.iter().all(|view| view.id != id.as_str());
                tokio::select! {
                    page = log.follow(after, query.lines, query.wait) => page,
                    // It also ends when the bridge does.
                    _ = snapshots.wait_for(is_gone) => return Err(unknown_server(id.as_str())),
                }
            }
        };
        Ok(page.into())
    }

    /// Reads the file again, as SIGHUP does.
    pub async fn reload(&self) {
        let (reply, done) = oneshot::channel();
        if self.inner.commands.send(Command::Reload(reply)).await.is_ok() {
            // Gone only when the bridge is being stopped, where there is nothing to reload.
            let _ = done.await;
        }
    }

    /// Stops everything: no new calls, upstreams closed, processes gone. Under five seconds.
    pub async fn shutdown(&self) {
        let (reply, done) = oneshot::channel();
        if self.inner.commands.send(Command::Shutdown(reply)).await.is_ok() {
            let _ = done.await;
        }
    }

    /// Starts the first of these programs that is there, for the person: it and what it starts belong to no connector, and use
    /// what the person's programs may use. Blocks shortly.
    ///
    /// # Errors
    /// Why the last one could not be started.
    pub fn open_for_person(&self, ways: Vec<std::process::Command>) -> std::io::Result<()> {
        let mut outcome = Err(std::io::ErrorKind::NotFound.into());
        for mut way in ways {
            outcome = self.inner.world.spawner.open(&mut way);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    async fn edit(&self, edit: Edit) -> Result<(), ApiError> {
        self.order(|reply| Command::Edit(edit, reply)).await
    }

    /// Has the owner do what the person wants; what came of it is in the published snapshot then.
    async fn order(&self, command: impl FnOnce(Reply) -> Command) -> Result<(), ApiError> {
        let (reply, done) = oneshot::channel();
        let stopping = || {
            ApiError::new(
                Code::Unavailable,
                "Neuron Connect is being stopped; nothing was changed.",
            )
        };
        let sent = self.inner.commands.send(command(reply)).await;
        sent.map_err(|_| stopping())?;
        let outcome = done.await.unwrap_or_else(|_| Err(stopping()));
        self.settled().await;
        outcome
    }

    async fn settled(&self) {
        self.inner.settled().await;
    }

    fn door(&self, id: &ConnectorId) -> Result<Door, ApiError> {
        let published = self.inner.published.load();
        match published.doors.get(id) {
            Some(door) => Ok(door.clone()),
            None => match published.snapshot.connectors.iter().find(|view| view.id == id.as_str()) {
                Some(view) => Err(ApiError::new(
                    Code::Unavailable,
                    view.error.clone().unwrap_or_else(|| "It is being started.".to_owned()),
                )
                .with_action(view.action)),
                None => Err(unknown_server(id.as_str())),
            },
        }
    }

    fn view_of(&self, id: &ConnectorId) -> Result<ConnectorView, ApiError> {
        let snapshot = self.snapshot();
        snapshot
            .connectors
            .iter()
            .find(|view| view.id == id.as_str())
            .cloned()
            .ok_or_else(|| unknown_server(id.as_str()))
    }
}

impl Inner {
    /// Waits until everything that happened before is in the published snapshot; not longer than a keychain that hangs may
    /// keep what joins by itself.
    async fn settled(&self) {
        let (reply, done) = oneshot::channel();
        if self.commands.send(Command::Publish(reply)).await.is_ok() {
            // What is missing then comes with a later snapshot.
            let _ = tokio::time::timeout(SETTLED_WITHIN, done).await;
        }
    }
}

impl From<Page> for LogPage {
    fn from(page: Page) -> Self {
        Self {
            lines: page.lines.iter().map(ToString::to_string).collect(),
            next: page.next.to_string(),
            missed: page.missed,
        }
    }
}

/// A name that a caller gave, fit for a sentence.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// For an id that names no connector, legal or not.
pub(crate) fn unknown_server(id: &str) -> ApiError {
    let shown = shown(id);
    ApiError::new(
        Code::UnknownServer,
        format!("There is no connector \"{shown}\"; GET /mcp/servers lists them."),
    )
}
