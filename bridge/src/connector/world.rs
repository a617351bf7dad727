//! What all connectors share of the world: folders, store, the spawning thread, the start slots.

use std::{
    borrow::Cow,
    collections::HashMap,
    ffi::OsStr,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::{
    sync::{Notify, OnceCell, Semaphore},
    task::JoinHandle,
};

use super::{
    attempt::{self, Listed},
    cause::Cause,
    discovery::{Lists, Offers, RawList, RawOffers},
    env_file,
    episode::Policy,
    health::DEFAULT_PING_EVERY,
    log::{Log, LogWriter},
    process::Spawner,
    program::{self, Programs},
    session::Session,
    shared::Known,
    wake::Wakes,
};
use crate::{
    approval::Approvals,
    builtin,
    config::{self, Launch, Lookup, StdioLaunch},
    home::Home,
    ids::ConnectorId,
    ledger::Ledger,
    oauth::SignIns,
    secrets::{self, Binding, Keychain, Redactor},
    store::{SnapshotKey, Store, StoredSnapshot},
    trust::{LaunchContext, LaunchIdentity, expand_home},
};

/// An `envFile` that is not read by then, on a disk that hangs, counts as missing.
const ENV_FILE_WITHIN: Duration = Duration::from_secs(2);
/// The log thread is waited for this long.
const LOG_PATIENCE: Duration = Duration::from_millis(500);

/// What the settings say about connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// For the next episode; one under way keeps its own.
    pub policy: Policy,
    /// Between two pings of a session that may fall silent; for the next session.
    pub ping_every: Duration,
}

impl Tuning {
    /// Before any settings are known: nothing is tried again by itself.
    pub const NEVER: Self = Self {
        policy: Policy::NEVER,
        ping_every: DEFAULT_PING_EVERY,
    };
}

/// Shared by every connector's task; made once by the bridge.
pub struct World {
    pub home: Home,
    /// The person's home folder, for `~`.
    pub person_home: PathBuf,
    /// Our own `neuron-connectd`, for connectors that name it.
    pub own_binary: PathBuf,
    pub store: Arc<Store>,
    pub spawner: Spawner,
    /// Found out at the first use: the login shell is asked for its PATH.
    pub programs: OnceCell<Programs>,
    pub logs: Logs,
    /// One background start per core at a time.
    pub slots: Arc<Semaphore>,
    pub tuning: ArcSwap<Tuning>,
    pub wakes: Wakes,
    pub keychain: Keychain,
    /// What the person decided.
    pub ledger: Arc<Ledger>,
    /// Where upstreams' questions wait for the person.
    pub approvals: Arc<Approvals>,
    pub sign_ins: Arc<SignIns>,
    /// Told whenever a connector has something new to show.
    pub changed: Notify,
}

impl World {
    /// Variables of our own environment, read when a connector starts.
    pub fn env(name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    /// The log of an entry's connector, which shows none of the secret values that the entry names.
    pub(super) fn log_of(&self, entry: &config::Connector) -> Log {
        let log = self.logs.connector(&entry.id);
        let lookup = Lookup {
            env: &Self::env,
            secret: &|_, _| None,
            home: &self.person_home,
        };
        // An entry that cannot be filled in starts nothing that could tell.
        if let Ok(resolved) = config::expand(entry, &lookup) {
            log.redactor().hold(secrets::held_by(&resolved));
        }
        log
    }

    /// The launch identity of an entry as it would start now.
    pub async fn identity(&self, entry: &config::Connector) -> LaunchIdentity {
        let env_file = match &entry.launch {
            Launch::Stdio(StdioLaunch {
                env_file: Some(path), ..
            }) => {
                let path = expand_home(path, &self.person_home);
                let read = env_file::read(path.as_ref());
                tokio::time::timeout(ENV_FILE_WITHIN, read)
                    .await
                    .ok()
                    .and_then(Result::ok)
            }
            Launch::Stdio(_) | Launch::Http(_) => None,
        };
        LaunchIdentity::of(
            entry,
            &LaunchContext {
                env: &Self::env,
                home: &self.person_home,
                env_file: env_file.as_deref(),
            },
        )
    }

    /// What a token or secret of the entry is entered for as it stands: its origin, or its launch identity.
    pub async fn binding(&self, entry: &config::Connector) -> Binding {
        match &entry.launch {
            Launch::Http(launch) => {
                let origin = config::host_of(launch).map(|url| url.origin().ascii_serialization());
                // Validation lets no entry without an address come so far.
                Binding::Origin(origin.unwrap_or_else(|| launch.url.clone()))
            }
            Launch::Stdio(_) => Binding::Launch(self.identity(entry).await.to_string()),
        }
    }

    async fn key(&self, entry: &config::Connector) -> SnapshotKey {
        SnapshotKey {
            connector: entry.id.clone(),
            identity: self.identity(entry).await,
        }
    }

    /// The list an entry can show before anything runs: compiled in, or saved under its identity.
    pub async fn known_list(&self, entry: &config::Connector) -> Option<Known> {
        if builtin::is_files_server(&entry.launch) {
            let list = RawList::from_text(builtin::files_tools().to_owned()).ok()?;
            return Some(Known {
                list,
                offers: Offers::default(),
                era: None,
            });
        }
        let key = self.key(entry).await;
        let store = self.store.clone();
        let read = tokio::task::spawn_blocking(move || store.snapshot(&key)).await;
        match read {
            Ok(Ok(snapshot)) => snapshot.and_then(|snapshot| {
                let list = RawList::from_text(snapshot.tools).ok()?;
                let saved = |text: Option<String>| RawList::from_text(text?).ok();
                let offers = RawOffers {
                    resources: saved(snapshot.resources),
                    templates: saved(snapshot.templates),
                    prompts: saved(snapshot.prompts),
                };
                Some(Known {
                    list,
                    offers: Offers::default().updated(offers),
                    era: Some(snapshot.era),
                })
            }),
            Ok(Err(error)) => {
                tracing::warn!(connector = %entry.id, %error, "its saved tool list could not be read");
                None
            }
            Err(error) => {
                tracing::error!(connector = %entry.id, %error, "reading a saved tool list ended abnormally");
                None
            }
        }
    }

    /// Keeps complete lists for the next start. A failure is logged: the session works without.
    pub(super) async fn save_lists(&self, entry: &config::Connector, session: &Session, lists: &Lists) {
        let text = |list: &Option<RawList>| list.as_ref().map(|list| list.text.clone());
        let redactor = self.logs.connector(&entry.id);
        let shown = |text: &str| redactor.redactor().sentence(text).into_owned();
        let key = self.key(entry).await;
        let snapshot = StoredSnapshot {
            era: session.facts.era,
            protocol: Some(session.facts.protocol.clone()),
            server_info: session.server.as_deref().map(&shown),
            instructions: session.instructions.as_deref().map(&shown),
            tools: lists.tools.text.clone(),
            resources: text(&lists.offers.resources),
            templates: text(&lists.offers.templates),
            prompts: text(&lists.offers.prompts),
            saved_at: crate::clock::unix_ms(),
        };
        let store = self.store.clone();
        let saved = tokio::task::spawn_blocking(move || store.save_snapshot(&key, &snapshot)).await;
        match saved {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(connector = %entry.id, %error, "its tool list could not be saved"),
            Err(error) => tracing::error!(connector = %entry.id, %error, "saving a tool list ended abnormally"),
        }
    }

    /// Where programs are searched. The first use asks the login shell, which may take seconds.
    pub(super) async fn programs(&self) -> &Programs {
        self.programs
            .get_or_init(|| async {
                let ours = std::env::var_os("PATH");
                let shell = std::env::var_os("SHELL")
                    .map(PathBuf::from)
                    .filter(|shell| shell.is_absolute());
                let shell = shell.unwrap_or_else(|| PathBuf::from("/bin/sh"));
                let login = match program::login_shell_path(
                    &self.spawner,
                    &shell,
                    &self.person_home,
                    std::env::vars_os().collect::<Vec<_>>(),
                )
                .await
                {
                    Ok(path) => Some(path),
                    Err(error) => {
                        tracing::warn!(%error, "programs are searched on this app's own PATH");
                        None
                    }
                };
                self.search(login.as_deref(), ours.as_deref())
            })
            .await
    }

    /// Without asking the login shell, for our own program.
    pub(super) fn own_programs(&self) -> Programs {
        self.search(None, std::env::var_os("PATH").as_deref())
    }

    fn search(&self, login: Option<&OsStr>, ours: Option<&OsStr>) -> Programs {
        let folders = program::search_folders(login, ours, &self.person_home);
        Programs {
            folders,
            own: self.own_binary.clone(),
        }
    }

    /// Reads all lists again over the session that stands.
    pub(super) fn refresh(
        self: &Arc<Self>,
        entry: &Arc<config::Connector>,
        session: &Arc<Session>,
        log: &Log,
    ) -> JoinHandle<Result<Listed, Cause>> {
        let (world, entry, session, log) = (self.clone(), entry.clone(), session.clone(), log.clone());
        tokio::spawn(async move { attempt::list(&world, &entry, &session, &log).await })
    }

    /// Forgets what was kept of a removed connector: its log and its lists.
    pub async fn forget(self: &Arc<Self>, id: &ConnectorId) {
        let (world, log) = (self.clone(), id.clone());
        if let Err(error) = tokio::task::spawn_blocking(move || world.logs.forget(&log)).await {
            tracing::error!(%error, "removing a log ended abnormally");
        }
        self.forget_lists(id).await;
    }

    /// Forgets the saved lists of a removed connector.
    pub async fn forget_lists(self: &Arc<Self>, id: &ConnectorId) {
        let (store, id) = (self.store.clone(), id.clone());
        match tokio::task::spawn_blocking(move || store.remove_snapshot(&id)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "saved tool lists could not be removed"),
            Err(error) => tracing::error!(%error, "removing saved tool lists ended abnormally"),
        }
    }

    /// Ends every process that is still there, at once.
    pub fn kill_all(&self) {
        self.spawner.kill_all();
    }
}

/// One log per connector.
pub struct Logs {
    home: Home,
    writer: LogWriter,
    open: Mutex<HashMap<ConnectorId, Log>>,
}

impl Logs {
    /// Starts the writing thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(home: Home) -> io::Result<Self> {
        Ok(Self {
            home,
            writer: LogWriter::start()?,
            open: Mutex::default(),
        })
    }

    /// The log of a connector, the same one each time.
    pub fn connector(&self, id: &ConnectorId) -> Log {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.entry(id.clone())
            .or_insert_with(|| self.writer.open(self.home.log_of(id), Redactor::default()))
            .clone()
    }

    /// Deletes a connector's log. Blocks for a moment: not for async threads.
    pub fn forget(&self, id: &ConnectorId) {
        let log = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(log) = log {
            log.remove(LOG_PATIENCE);
        }
    }

    /// Waits a moment until what was logged is on disk. Blocks: not for async threads.
    pub fn flush(&self) {
        self.writer.flush(LOG_PATIENCE);
    }
}

/// The command line or address as written, for the owner.
pub fn summary_of(launch: &Launch) -> String {
    match launch {
        Launch::Stdio(stdio) => {
            let words = std::iter::once(&stdio.command).chain(&stdio.args);
            words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
        }
        Launch::Http(http) => http.url.clone(),
    }
}

/// No shell reads it, so only what would hide where a word ends is quoted.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '\\'));
    if plain {
        Cow::Borrowed(word)
    } else {
        shell_words::quote(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_shows_where_each_word_ends_and_no_more_quotes() {
        let config =
            config::parse(br#"{"servers": {"a": {"command": "x y", "args": ["~/z", "", "--n=1", "it's", "$HOME"]}}}"#);
        let config::EntryKind::Valid(connector) = &config.unwrap().entries[0].kind else {
            panic!("invalid")
        };
        assert_eq!(summary_of(&connector.launch), r#"'x y' ~/z '' --n=1 'it'\''s' $HOME"#);
    }
}
