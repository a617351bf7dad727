//! Paired clients and what holds for all callers: who has a token and what it is good for, who needs one, and which
//! programs do their own asking.
//!
//! Owns the rows of clients, askers and those settings, and the one pairing at a time. Of a token only its hash is kept.
//! Answers the gate from memory; what a caller may do is for the routes and for `trust`. `row` is what is kept (pure),
//! `pairing` how one comes to have a token (pure).

pub mod pairing;
pub mod row;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};

use self::{
    pairing::Pairing,
    row::{Asker, ClientRow},
};
use crate::{
    caller::{self, Pass, ProgramKey},
    clock::unix_ms,
    http,
    ledger::{Change, Ledger, LedgerFault, Row, RowKind, Standing},
    snapshot::{ApiMode, AskerView, ClientView},
    trust::{API_MODE, API_MODE_ASSUMED},
};

/// The key of a [`RowKind::Setting`] that is kept here.
pub const ALLOWED_ORIGINS: &str = "allowed_origins";

/// The last use of a token is written down if the one that is written is older than this, in milliseconds.
const WRITE_USE_AFTER: u64 = 60 * 60 * 1000;

/// Clients, askers, and the settings of who may call.
pub struct Callers {
    ledger: Arc<Ledger>,
    held: ArcSwap<Held>,
    pairing: Mutex<Pairing>,
    /// The person, or whoever started the program, wants a token of everybody.
    require_token: bool,
    /// Told whenever a snapshot has something new to show.
    pub changed: Notify,
}

#[derive(Default)]
struct Held {
    clients: BTreeMap<String, Arc<Client>>,
    askers: Vec<ProgramKey>,
    api_mode: Option<ApiMode>,
    /// It was not chosen, but assumed after a loss.
    is_mode_assumed: bool,
    origins: Arc<[String]>,
}

struct Client {
    row: ClientRow,
    known: http::Known,
    /// Unix milliseconds; 0 = never.
    used_at: AtomicU64,
    written_use: AtomicU64,
}

impl Callers {
    /// As the rows stand. With `require_token`, nobody is served without one, whatever they say.
    pub fn new(ledger: Arc<Ledger>, require_token: bool) -> Arc<Self> {
        let callers = Arc::new(Self {
            ledger,
            held: ArcSwap::default(),
            pairing: Mutex::default(),
            require_token,
            changed: Notify::new(),
        });
        callers.reload();
        callers
    }

    /// Takes what the rows say now.
    pub fn reload(&self) {
        let before = self.held.load();
        let clients = self.ledger.rows(RowKind::Client).into_iter().filter_map(|row| {
            let read: ClientRow = serde_json::from_str(&row.body)
                .ok()
                .filter(|read: &ClientRow| read.id == row.key)?;
            let used = before
                .clients
                .get(&read.id)
                .map_or(0, |client| client.used_at.load(Ordering::Relaxed));
            Some((read.id.clone(), Arc::new(Client::of(read, used)?)))
        });
        let askers = self.ledger.rows(RowKind::Asker).into_iter();
        let askers = askers.filter_map(|row| serde_json::from_str(&row.body).ok());
        let held = Held {
            clients: clients.collect(),
            askers: askers.collect(),
            api_mode: self.setting(API_MODE),
            is_mode_assumed: self.setting(API_MODE_ASSUMED).unwrap_or_default(),
            origins: self.setting::<Vec<String>>(ALLOWED_ORIGINS).unwrap_or_default().into(),
        };
        self.held.store(Arc::new(held));
        self.changed.notify_one();
    }

    /// Who needs a token.
    pub fn api_mode(&self) -> ApiMode {
        match self.require_token {
            true => ApiMode::Token,
            false => self.held.load().api_mode.unwrap_or(match self.ledger.assumed().token {
                true => ApiMode::Token,
                false => ApiMode::Open,
            }),
        }
    }

    /// Whether tokens are needed because what the person chose is lost or cannot be read at present.
    pub fn is_api_mode_assumed(&self) -> bool {
        let held = self.held.load();
        let is_unsaid = held.api_mode.is_none() && self.ledger.assumed().token;
        !self.require_token && (held.is_mode_assumed || is_unsaid)
    }

    /// Pages that may use the API.
    pub fn origins(&self) -> Arc<[String]> {
        self.held.load().origins.clone()
    }

    /// In the order of their ids, which says nothing of them.
    pub fn clients(&self) -> Vec<ClientView> {
        let held = self.held.load();
        let mut views: Vec<_> = held.clients.values().map(|client| client.view()).collect();
        views.sort_by_key(|view| view.paired_at);
        views
    }

    /// One client's row.
    pub fn client(&self, id: &str) -> Option<ClientRow> {
        let held = self.held.load();
        held.clients.get(id).map(|client| client.row.clone())
    }

    /// Programs without a token that do their own asking.
    pub fn askers(&self) -> Vec<AskerView> {
        let held = self.held.load();
        held.askers.iter().map(|key| AskerView::from(&Asker::of(key))).collect()
    }

    /// What the token of this pass is good for now; `None` where it does not hold any more.
    pub fn renewed(&self, pass: &Pass) -> Option<Arc<Pass>> {
        let held = self.held.load();
        let client = held.clients.get(&pass.id).filter(|client| client.is_in_time())?;
        Some(client.known.pass.clone())
    }

    /// Keeps a client.
    ///
    /// # Errors
    /// [`LedgerFault`]
    pub async fn keep(&self, row: &ClientRow) -> Result<(), LedgerFault> {
        self.write(vec![Change::Put(Row {
            kind: RowKind::Client,
            key: row.id.clone(),
            body: row.to_json(),
        })])
        .await
    }

    /// Forgets a client: its token is wrong from now on.
    ///
    /// # Errors
    /// [`LedgerFault`]
    pub async fn forget(&self, id: &str) -> Result<(), LedgerFault> {
        self.write(vec![Change::Delete(RowKind::Client, id.to_owned())]).await
    }

    /// Marks a program as doing its own asking, or not any more.
    ///
    /// # Errors
    /// [`LedgerFault`]
    pub async fn set_asker(&self, program: &ProgramKey, on: bool) -> Result<(), LedgerFault> {
        let asker = Asker::of(program);
        let change = match on {
            true => Change::Put(Row {
                kind: RowKind::Asker,
                key: asker.key,
                body: asker.body,
            }),
            false => Change::Delete(RowKind::Asker, asker.key),
        };
        self.write(vec![change]).await
    }

    /// Says something for all callers.
    ///
    /// # Errors
    /// [`LedgerFault`]
    pub async fn set(&self, settings: Vec<(&'static str, Value)>) -> Result<(), LedgerFault> {
        let is_chosen = settings.iter().any(|(key, _)| *key == API_MODE);
        let chosen = is_chosen.then(|| Change::Delete(RowKind::Setting, API_MODE_ASSUMED.to_owned()));
        let rows = settings.into_iter().map(|(key, value)| {
            Change::Put(Row {
                kind: RowKind::Setting,
                key: key.to_owned(),
                body: value.to_string(),
            })
        });
        self.write(rows.chain(chosen).collect()).await
    }

    /// The pairing that is open or under way.
    pub fn pairing(&self) -> MutexGuard<'_, Pairing> {
        self.pairing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, changes: Vec<Change>) -> Result<(), LedgerFault> {
        let written = self.ledger.write(changes).await;
        self.reload();
        written
    }

    fn setting<T: serde::de::DeserializeOwned>(&self, key: &str) -> Option<T> {
        let row = self.ledger.row(RowKind::Setting, key)?;
        serde_json::from_str(&row.body).ok()
    }

    /// Writes down when a token was last used, now and then.
    fn write_use(&self, client: &Client, now: u64) {
        let written = client.written_use.load(Ordering::Relaxed);
        let is_due = now.saturating_sub(written) > WRITE_USE_AFTER;
        // Only the person's decisions begin a new set of rows.
        let verified = *self.ledger.standing().borrow() == Standing::Verified;
        if !is_due || !verified || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        client.written_use.store(now, Ordering::Relaxed);
        let row = ClientRow {
            used_at: Some(now),
            ..client.row.clone()
        };
        let ledger = self.ledger.clone();
        tokio::spawn(async move {
            // One that was revoked or changed a moment ago stays so.
            let was = ledger.row(RowKind::Client, &row.id);
            let Some(was) = was.filter(|was| row.is_same_but_for_use(was)) else {
                return;
            };
            if let Err(fault) = ledger.replace(&was, row.to_row()).await {
                tracing::debug!(%fault, "the last use of a token is not written down");
            }
        });
    }
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callers")
    }
}

impl Client {
    /// `None` for a row that makes no sense.
    fn of(row: ClientRow, used_at: u64) -> Option<Self> {
        let known = http::Known {
            hash: row.hash()?,
            pass: Arc::new(Pass {
                id: row.id.clone(),
                name: row.name.clone(),
                scopes: row.scopes.clone(),
                servers: row.servers.clone(),
                asks_itself: row.asks_itself,
                label: format!("client:{}", row.id),
                paired: row.program.as_ref().and_then(|program| {
                    Some(caller::PairedProgram {
                        path: program.path.clone()?,
                        script: program.script.clone(),
                    })
                }),
            }),
        };
        let written = row.used_at.unwrap_or(0);
        Some(Self {
            known,
            used_at: AtomicU64::new(used_at.max(written)),
            written_use: AtomicU64::new(written),
            row,
        })
    }

    fn is_in_time(&self) -> bool {
        self.row.expires_at.is_none_or(|end| unix_ms() < end)
    }

    fn view(&self) -> ClientView {
        let used_at = self.used_at.load(Ordering::Relaxed);
        self.row.view((used_at > 0).then_some(used_at))
    }
}

/// The gate's side.
#[derive(Clone)]
pub struct AtGate(pub Arc<Callers>);

impl http::Clients for AtGate {
    fn find(&self, id: &str) -> Option<http::Known> {
        let held = self.0.held.load();
        let client = held.clients.get(id).filter(|client| client.is_in_time())?;
        Some(client.known.clone())
    }

    fn used(&self, id: &str) {
        let held = self.0.held.load();
        if let Some(client) = held.clients.get(id) {
            let now = unix_ms();
            client.used_at.store(now, Ordering::Relaxed);
            self.0.write_use(client, now);
        }
    }

    fn are_known(&self) -> bool {
        !matches!(*self.0.ledger.standing().borrow(), Standing::Unknown(_))
    }

    fn api_mode(&self) -> ApiMode {
        self.0.api_mode()
    }

    fn is_pairing_open(&self) -> bool {
        self.0.pairing().is_of_use(Instant::now())
    }

    fn origins(&self) -> Arc<[String]> {
        self.0.origins()
    }
}
