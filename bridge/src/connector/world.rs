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
    admission::Admission,
    attempt::{self, Listed},
    cause::Cause,
    discovery::{Lists, Offers, RawList, RawOffers},
    env_file,
    episode::Policy,
    health::DEFAULT_PING_EVERY,
    log::{Log, LogWriter},
    pauses::Pauses,
    process::Spawner,
    program::{self, Programs},
    session::Session,
    shared::Known,
    wake::Wakes,
};
use crate::{
    activity::Recorder,
    approval::Approvals,
    builtin,
    config::{self, Launch, Lookup, StdioLaunch},
    home::Home,
    ids::ConnectorId,
    ledger::{Ledger, Standing},
    oauth::SignIns,
    secrets::{self, Binding, Keychain, Redactor},
    snapshot::{KeychainState, LaunchShown, StandsOut},
    store::{SnapshotKey, Store, StoredSnapshot},
    trust::{
        LaunchContext, LaunchIdentity, expand_home,
        review::Verdict,
        shown::{ShownWith, shown},
        stands_out::{Surroundings, stands_out},
    },
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
    /// What may run by the person's word.
    pub admission: Arc<Admission>,
    /// What does not run although it may.
    pub pauses: Pauses,
    /// What the person decided.
    pub ledger: Arc<Ledger>,
    /// Where everything that happens is recorded.
    pub activity: Recorder,
    /// Where upstreams' questions wait for the person.
    pub approvals: Arc<Approvals>,
    pub sign_ins: Arc<SignIns>,
    /// Told whenever a connector has something new to show.
    pub changed: Notify,
}

/// What an entry would run or contact, with the bytes by which it is known.
pub struct Prepared {
    pub identity: LaunchIdentity,
    /// The content of its `envFile`, where it has one; else why that cannot be used, in a sentence.
    pub env_file: Option<Result<Vec<u8>, String>>,
}

/// What a token or secret of an entry of this identity is entered for: its origin, or its launch identity.
pub fn binding_of(entry: &config::Connector, identity: LaunchIdentity) -> Binding {
    match &entry.launch {
        Launch::Http(launch) => {
            let origin = config::host_of(launch).map(|url| url.origin().ascii_serialization());
            // Validation lets no entry without an address come so far.
            Binding::Origin(origin.unwrap_or_else(|| launch.url.clone()))
        }
        Launch::Stdio(_) => Binding::Launch(identity.to_string()),
    }
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

    /// What an entry would run or contact now. Its `envFile` is read here and nowhere else.
    pub async fn prepare(&self, entry: &config::Connector) -> Prepared {
        let env_file = match &entry.launch {
            Launch::Stdio(StdioLaunch {
                env_file: Some(path), ..
            }) => {
                let path = expand_home(path, &self.person_home);
                let read = tokio::time::timeout(ENV_FILE_WITHIN, env_file::read(path.as_ref())).await;
                let read = read.unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()));
                let unusable = |error: io::Error| format!("The \"envFile\" {path} cannot be used: {error}.");
                Some(read.map_err(unusable))
            }
            Launch::Stdio(_) | Launch::Http(_) => None,
        };
        let identity = LaunchIdentity::of(
            entry,
            &LaunchContext {
                env: &Self::env,
                home: &self.person_home,
                env_file: env_file.as_ref().and_then(|read| read.as_deref().ok()),
            },
        );
        Prepared { identity, env_file }
    }

    /// As [`World::prepare`], where it may be run or contacted.
    ///
    /// # Errors
    /// `Paused`, `NeedsReview`, `TrustUnknown`; `Entry` for an `envFile` that cannot be read.
    pub async fn admit(&self, entry: &config::Connector) -> Result<Prepared, Cause> {
        let prepared = self.prepare(entry).await;
        match self.refusal(entry, &prepared) {
            Some(cause) => Err(cause),
            None => Ok(prepared),
        }
    }

    /// Why what was prepared may not be run or contacted.
    pub fn refusal(&self, entry: &config::Connector, prepared: &Prepared) -> Option<Cause> {
        let unusable = match &prepared.env_file {
            Some(Err(unusable)) => Some(Cause::Entry(unusable.clone())),
            Some(Ok(_)) | None => None,
        };
        let held = match self.admission.verdict(entry, prepared.identity) {
            Verdict::MayRun => None,
            Verdict::NeedsReview(why) => Some(Cause::NeedsReview {
                why,
                identity: prepared.identity,
            }),
            Verdict::TrustUnknown => Some(Cause::TrustUnknown(match self.admission.standing() {
                Standing::Unknown(state) => state,
                Standing::Fresh | Standing::Verified | Standing::Broken(_) | Standing::ForThisRun => {
                    KeychainState::Unused
                }
            })),
        };
        told_first(self.pauses.is_paused(&entry.id), unusable, held)
    }

    /// What a token or secret of the entry is entered for as it stands: its origin, or its launch identity.
    pub async fn binding(&self, entry: &config::Connector) -> Binding {
        binding_of(entry, self.prepare(entry).await.identity)
    }

    /// What an entry may run or contact at present: the approved launch, where what runs needs a look first. Elsewhere the
    /// file says it, and the content of an `envFile` does not count.
    pub fn launch_in_force(&self, entry: &config::Connector) -> Option<LaunchIdentity> {
        if self.admission.review_on() && !self.admission.needs_no_look(entry) {
            return self.admission.approved(&entry.id).map(|approved| approved.identity);
        }
        let context = LaunchContext {
            env: &Self::env,
            home: &self.person_home,
            env_file: None,
        };
        Some(LaunchIdentity::of(entry, &context))
    }

    /// The list an entry can show before anything runs: compiled in, or saved under its identity.
    pub async fn known_list(&self, entry: &config::Connector, identity: LaunchIdentity) -> Option<Known> {
        if builtin::is_files_server(&entry.launch) {
            let list = RawList::from_text(builtin::files_tools().to_owned()).ok()?;
            return Some(Known {
                list,
                offers: Offers::default(),
                instructions: None,
                era: None,
            });
        }
        let key = SnapshotKey {
            connector: entry.id.clone(),
            identity,
        };
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
                    instructions: snapshot.instructions.map(Arc::from),
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
        let key = SnapshotKey {
            connector: entry.id.clone(),
            identity: session.identity,
        };
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

    /// As [`World::programs`], where that is known already.
    pub fn known_programs(&self) -> Option<&Programs> {
        self.programs.get()
    }

    /// Finds out where programs are searched.
    pub async fn look_for_programs(&self) {
        self.programs().await;
    }

    /// A launch as the person is shown it; the program only where it is known where to search.
    pub fn shown(&self, entry: &config::Connector) -> LaunchShown {
        let own_programs;
        let programs = if builtin::is_files_server(&entry.launch) {
            own_programs = self.own_programs();
            Some(&own_programs)
        } else {
            self.known_programs()
        };
        let program = match &entry.launch {
            Launch::Stdio(launch) => programs.and_then(|programs| {
                let path = |text: &String| PathBuf::from(expand_home(text, &self.person_home));
                let cwd = launch
                    .cwd
                    .as_ref()
                    .map_or_else(|| self.home.run_folder_of(&entry.id), path);
                programs
                    .find(&expand_home(&launch.command, &self.person_home), &cwd)
                    .ok()
            }),
            Launch::Http(_) => None,
        };
        let with = ShownWith {
            env: &Self::env,
            home: &self.person_home,
            program: program.as_deref(),
        };
        shown(entry, &with)
    }

    /// What about a launch a person should look at twice.
    pub fn stands_out(&self, entry: &config::Connector, shown: &LaunchShown, prepared: &Prepared) -> Vec<StandsOut> {
        let content = prepared.env_file.as_ref().and_then(|read| read.as_deref().ok());
        let pairs = content.and_then(|content| config::parse_env_file(&String::from_utf8_lossy(content)).ok());
        let names: Vec<String> = pairs.into_iter().flatten().map(|(name, _)| name).collect();
        let around = Surroundings {
            home: &self.person_home,
            own_folder: self.home.root(),
            env_file_names: &names,
            is_looked_up: self.known_programs().is_some(),
        };
        stands_out(entry, shown, &around)
    }

    /// A text of an entry without the secret values that it names or holds.
    pub fn without_secrets(&self, entry: &config::Connector, text: &str) -> String {
        self.log_of(entry).redactor().sentence(text).into_owned()
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

/// Which of the reasons why nothing may run is told. A look that waits is, also during a pause: it can be taken meanwhile, and
/// the pause goes on after it. `held`: by what was approved.
fn told_first(is_paused: bool, unusable: Option<Cause>, held: Option<Cause>) -> Option<Cause> {
    if unusable.is_none() && matches!(held, Some(Cause::NeedsReview { .. })) {
        return held;
    }
    is_paused.then_some(Cause::Paused).or(unusable).or(held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::LaunchWhy;

    #[test]
    fn a_look_that_waits_is_told_during_a_pause_and_nothing_else_is() {
        let needs = || {
            let identity = "0".repeat(64).parse().unwrap();
            Some(Cause::NeedsReview {
                why: LaunchWhy::Changed,
                identity,
            })
        };
        let unusable = || Some(Cause::Entry("it cannot be read".into()));
        let unknown = || Some(Cause::TrustUnknown(KeychainState::Locked));
        let paused = Some(Cause::Paused);
        for (is_paused, broken, held, told) in [
            (false, None, None, None),
            (false, None, needs(), needs()),
            (false, None, unknown(), unknown()),
            (false, unusable(), None, unusable()),
            (false, unusable(), needs(), unusable()),
            (true, None, None, paused.clone()),
            (true, None, needs(), needs()),
            (true, None, unknown(), paused.clone()),
            (true, unusable(), None, paused.clone()),
            (true, unusable(), needs(), paused.clone()),
        ] {
            let case = format!("{is_paused} {broken:?} {held:?}");
            let found = told_first(is_paused, broken, held);
            assert!(
                !is_paused || found.as_ref().is_some_and(Cause::withholds_tools),
                "{case}"
            );
            assert_eq!(found, told, "{case}");
        }
    }

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
