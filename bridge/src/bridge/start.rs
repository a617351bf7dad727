//! How a bridge comes to life: lock, sweep, store, file, lists, and only then the API.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64},
    },
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use indexmap::IndexMap;
use tokio::sync::{Notify, OnceCell, Semaphore, mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    BridgeHandle, Caller, Inner, Published,
    decide::{self, Rules, ViewDesk},
    owner::Owner,
    person_file::PersonFile,
    pins::PinBoard,
    reviews::ReviewList,
};
use crate::{
    activity::Recorder,
    approval::{Approvals, Patience},
    builtin,
    clients::{AtGate, Callers},
    clock::unix_ms,
    config::{Config, ConfigFile, MAX_CALL_MS, WatchError, Watcher},
    connector::{
        Admission, Logs, Pauses, Tuning, Wakes, World,
        process::{self, Spawner},
    },
    event::{Event, EventLog},
    home::{Home, HomeError, LockError},
    http::{self, Limits, ServeOptions},
    ledger::{Host, Ledger, LedgerOptions},
    oauth::{SignInOptions, SignIns},
    secrets::{KeepSecrets, Keychain, KeychainError, Places},
    settings::{Retry, Settings},
    snapshot::{ApiView, ConfigView, KeptIn, KeychainView, Notice, NoticeLevel, Reviews, Snapshot, TrustView},
    store::{ResultError, ResultStore, Store, StoreError},
    tools::ToolList,
    wishes::Wishes,
};

/// Where the loopback API listens unless told otherwise.
pub const DEFAULT_PORT: u16 = 7771;
/// A call's time without any other word about it (DESIGN §6.2).
const DEFAULT_CALL_TIME: Duration = Duration::from_secs(600);
/// More requests to the owner than this wait at their senders.
const COMMANDS: usize = 64;

/// What a bridge is started with.
#[derive(Debug, Clone)]
pub struct BridgeOptions {
    pub home: Home,
    /// The name the next bridge of this home is told.
    pub program: &'static str,
    /// Our own `neuron-connectd`, for connectors that name it.
    pub own_binary: PathBuf,
    /// Overrides settings and `NEURON_CONNECTD_PORT`; 0 = any free port.
    pub port: Option<u16>,
    /// What is around it.
    pub shell: Shell,
    /// Where tokens and secrets are kept.
    pub secrets: KeepSecrets,
    /// How long questions wait for the person.
    pub patience: Patience,
}

/// What is around a bridge: whether there is a window in which the person decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// The window is the owner; whoever uses the local socket is a walk-in.
    Tray,
    /// The command line is the owner, over the local socket.
    Headless(Headless),
}

/// What a bridge without a window is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Headless {
    /// What runs needs a look first, as in the tray app.
    pub review: bool,
    /// Calls of programs without a token are asked about, where the person said nothing else.
    pub ask: bool,
    /// Nobody without a token is served over the port.
    pub require_token: bool,
}

impl Shell {
    /// Whether nobody without a token is served over the port, whatever was decided.
    fn requires_token(self) -> bool {
        match self {
            Self::Tray => false,
            Self::Headless(headless) => headless.require_token,
        }
    }

    /// Whom the local socket's clients count as.
    fn socket_caller(self) -> Caller {
        match self {
            Self::Tray => Caller::walk_in(),
            Self::Headless(_) => Caller::Owner,
        }
    }
}

/// Why no bridge runs.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Results(#[from] ResultError),
    #[error("The person's home folder is not known: set HOME.")]
    NoPerson,
    #[error("NEURON_CONNECTD_PORT is \"{0}\"; it must be a port number from 0 to 65535.")]
    Port(String),
    #[error("NEURON_CONNECTD_TIMEOUT_MS is \"{0}\"; it must be a number of milliseconds from 1 to {MAX_CALL_MS}.")]
    CallTime(String),
    #[error("This computer gives the app no more threads: {0}.")]
    Threads(#[source] std::io::Error),
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error(transparent)]
    Keychain(#[from] KeychainError),
}

impl BridgeHandle {
    /// Starts a bridge and returns once its tool list is published and its API is being opened.
    ///
    /// # Errors
    /// [`StartError`], each a sentence that says what to do.
    pub async fn start(options: BridgeOptions) -> Result<Self, StartError> {
        let person_home = std::env::home_dir()
            .filter(|home| home.is_absolute())
            .ok_or(StartError::NoPerson)?;
        let home = options.home.clone();
        let default_call_time = call_time()?;
        home.prepare()?;
        let lock = Arc::new(home.lock(options.program)?);
        let (settings, settings_notices) = Settings::load(&home.settings_file());
        let port = port(options.port, &settings)?;
        let (api, api_changed) = watch::channel(ApiView::Starting { port });
        let events = Arc::new(EventLog::default());
        let world = open_world(&options, &home, person_home, &settings, &events, &api)?;
        let results = Arc::new(ResultStore::open(home.results_folder())?);
        results.prune(SystemTime::now());

        // Watched before it is read, so that no change falls between.
        let (watcher, file_changed) = Watcher::start(home.config_file())?;
        let mut file = PersonFile::new(ConfigFile::new(home.config_file()));
        let first = file.first();
        let mut notices = world.store.take_notices();
        if file.is_default()
            && let Err(error) = builtin::prepare_sandbox(&world.person_home)
        {
            notices.push(sandbox_notice(&world, &error));
        }

        let (commands, orders) = mpsc::channel(COMMANDS);
        let snapshot = Arc::new(empty_snapshot(&home, port));
        let view = Arc::new(decide::empty_view());
        let published = Published {
            snapshot: snapshot.clone(),
            tools: Arc::new(ToolList::build(Vec::new())),
            rows: Vec::new(),
            looked: HashMap::new(),
            doors: HashMap::new(),
            view: view.clone(),
            rules: Arc::new(Rules::default()),
        };
        let callers = Callers::new(world.ledger.clone(), options.shell.requires_token());
        let wishes = Arc::new(Wishes::new(events.clone()));
        let inner = Arc::new(Inner {
            published: ArcSwap::from_pointee(published),
            snapshots: watch::channel(snapshot).0,
            views: watch::channel(view).0,
            events,
            commands,
            api: api.clone(),
            results,
            approvals: world.approvals.clone(),
            wishes,
            callers: callers.clone(),
            meddled: Mutex::default(),
            shell: options.shell,
            world: world.clone(),
            deep_links: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            default_call_time,
        });
        let pinned = world.ledger.clone();
        let mut owner = Owner {
            world,
            inner: inner.clone(),
            file,
            config: Config {
                entries: Vec::new(),
                notices: Vec::new(),
            },
            notices,
            settings_notices,
            connectors: IndexMap::new(),
            list_key: None,
            pins: PinBoard::new(pinned),
            views: ViewDesk::new(),
            has_window: false,
            leaving: HashMap::new(),
            forgets: None,
            reviews: ReviewList::default(),
            stopping: TaskTracker::new(),
            http_stop: CancellationToken::new(),
            http: TaskTracker::new(),
            _watcher: watcher,
        };
        owner.begin_review(options.shell).await;
        owner.begin_asking(options.shell).await;
        owner.pins.join(owner.adoption());
        owner.apply(first).await;
        owner.publish_settled().await;
        owner.choose_for_files().await;
        let handle = Self { inner };
        let kin = http::Kin::new(owner.world.spawner.clone());
        owner.http.spawn(http::serve(
            handle.clone(),
            ServeOptions {
                port,
                lock,
                socket_caller: options.shell.socket_caller(),
                kin,
                clients: Arc::new(AtGate(callers)),
                limits: Limits::default(),
            },
            api,
            owner.http_stop.clone(),
        ));
        tokio::spawn(owner.run(orders, file_changed, api_changed));
        Ok(handle)
    }
}

/// Browsers reach this bridge at the port that it really has.
fn sign_ins(api: &watch::Sender<ApiView>, keychain: Keychain) -> Arc<SignIns> {
    let api = api.subscribe();
    SignIns::new(SignInOptions {
        keychain,
        loopback_port: Arc::new(move || match &*api.borrow() {
            ApiView::Listening { port } => Some(*port),
            ApiView::Starting { .. } | ApiView::PortTaken { .. } => None,
        }),
        now: Arc::new(unix_ms),
    })
}

fn open_world(
    options: &BridgeOptions,
    home: &Home,
    person_home: PathBuf,
    settings: &Settings,
    events: &Arc<EventLog>,
    api: &watch::Sender<ApiView>,
) -> Result<Arc<World>, StartError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let children = home.children_file();
    let swept = process::sweep(&children);
    if swept.killed > 0 {
        tracing::info!(
            killed = swept.killed,
            "ended what a bridge that did not stop properly had left running"
        );
    }
    let store = Arc::new(Store::open(home.database())?);
    let activity = {
        let events = events.clone();
        let told = move |newest| events.publish(Event::ActivityRecorded { newest });
        Recorder::start(store.clone(), settings.activity, told).map_err(StartError::Threads)?
    };
    let places = Places {
        service: home.keychain_service(),
        home: home.root().to_owned(),
        file: home.secrets_file(),
        store: store.clone(),
    };
    let keychain = Keychain::start(options.secrets.clone(), places)?;
    let ledger = open_ledger(options, home, &store, &keychain)?;
    Ok(Arc::new(World {
        sign_ins: sign_ins(api, keychain.clone()),
        pauses: Pauses::default(),
        admission: Arc::new(Admission::new(ledger.clone(), person_home.clone())),
        ledger,
        keychain,
        home: home.clone(),
        programs: OnceCell::new(),
        own_binary: options.own_binary.clone(),
        store,
        spawner: Spawner::start(home.root(), children).map_err(StartError::Threads)?,
        logs: Logs::start(home.clone()).map_err(StartError::Threads)?,
        person_home,
        slots: Arc::new(Semaphore::new(cores)),
        tuning: ArcSwap::from_pointee(tuning(settings, Tuning::NEVER)),
        wakes: Wakes::start(),
        approvals: Arc::new(Approvals::new(events.clone(), activity.clone(), options.patience)),
        activity,
        changed: Notify::new(),
    }))
}

/// A bridge without a window looks at the system's keychain wherever secrets are kept, as it may say that this home belongs
/// to a tray app. Whoever keeps none there hears nothing of that look.
fn open_ledger(
    options: &BridgeOptions,
    home: &Home,
    store: &Arc<Store>,
    keychain: &Keychain,
) -> Result<Arc<Ledger>, KeychainError> {
    let (host, keychain) = match options.shell {
        Shell::Headless(_) => (
            Host::Headless,
            Keychain::beside(home.keychain_service(), store.clone())?,
        ),
        Shell::Tray => (Host::Tray, keychain.clone()),
    };
    Ok(Ledger::open(LedgerOptions {
        host,
        store: store.clone(),
        keychain,
        kept_in: match options.secrets {
            KeepSecrets::Keychain => KeptIn::Keychain,
            KeepSecrets::File(_) => KeptIn::File,
            KeepSecrets::Memory => KeptIn::Memory,
        },
        key_file: home.trust_key(),
    }))
}

/// What the settings say about connections; a refused policy leaves the one in force before.
pub(super) fn tuning(settings: &Settings, before: Tuning) -> Tuning {
    Tuning {
        policy: match settings.retry {
            Retry::Policy(policy) => policy,
            Retry::Refused => before.policy,
        },
        ping_every: settings.ping_every.0,
    }
}

fn sandbox_notice(world: &World, error: &std::io::Error) -> Notice {
    let folder = builtin::sandbox_path(&world.person_home);
    Notice {
        level: NoticeLevel::Warning,
        message: format!(
            "The folder {} of the built-in files connector could not be made: {error}. Make it yourself, or choose another folder in the connector's settings.",
            folder.display()
        ),
        line: None,
        column: None,
        server: Some(builtin::FILES_ID.to_owned()),
    }
}

fn empty_snapshot(home: &Home, port: u16) -> Snapshot {
    Snapshot {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        api: ApiView::Starting { port },
        config: ConfigView {
            path: home.config_file().display().to_string(),
            is_default: false,
            notices: Vec::new(),
        },
        connectors: Vec::new(),
        needs: BTreeMap::new(),
        keychain: KeychainView::unused(KeptIn::Keychain),
        sign_ins: Vec::new(),
        approvals: Vec::new(),
        missed: Vec::new(),
        reviews: Reviews::default(),
        trust: TrustView::default(),
    }
}

fn port(flag: Option<u16>, settings: &Settings) -> Result<u16, StartError> {
    if let Some(port) = flag {
        return Ok(port);
    }
    match std::env::var("NEURON_CONNECTD_PORT") {
        Ok(text) if !text.is_empty() => text.trim().parse().map_err(|_| StartError::Port(text)),
        _ => Ok(settings.port.unwrap_or(DEFAULT_PORT)),
    }
}

fn call_time() -> Result<Duration, StartError> {
    match std::env::var("NEURON_CONNECTD_TIMEOUT_MS") {
        Ok(text) if !text.is_empty() => match text.trim().parse() {
            Ok(ms @ 1..=MAX_CALL_MS) => Ok(Duration::from_millis(ms)),
            _ => Err(StartError::CallTime(text)),
        },
        _ => Ok(DEFAULT_CALL_TIME),
    }
}

impl http::Family for Spawner {
    fn is_alive(&self) -> bool {
        self.has_family()
    }

    fn has(&self, pid: u32) -> bool {
        self.is_kin(pid)
    }

    fn members(&self) -> Vec<u32> {
        self.family()
    }
}
