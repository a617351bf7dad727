//! All sign-ins: what waits, what is signed in.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use secrecy::ExposeSecret as _;
use tokio::sync::watch;
use url::Url;

use super::{
    authorize::connector_of,
    bearer::{self, Bearer, Signed},
    begin,
    board::{Board, TOO_LATE},
    callback::Callback,
    core::Core,
    fault::{AuthFault, SignInError},
    finish,
    flows::Flows,
    record::{Access, to_text},
    revoke,
    slot::{Held, Kept, Reason, Standing},
    target::{Ask, Begun, Target, place},
    ways::Ways,
};
use crate::{
    ids::ConnectorId,
    secrets::{Account, Keychain, KeychainFault},
    snapshot::{RedirectKind, SignInOutcome, SignInView},
};

/// Sign-ins of one connector in a row, after which its server is not believed any longer that one more helps.
const MOST_IN_A_ROW: usize = 3;
/// How long a sign-in counts as one of a row, in milliseconds.
const ROW: u64 = 10 * 60 * 1000;

/// The world around the sign-ins.
pub struct SignInOptions {
    pub keychain: Keychain,
    /// The port of 127.0.0.1 at which this process answers `/mcp/oauth/callback`; `None` while it does not.
    pub loopback_port: Arc<dyn Fn() -> Option<u16> + Send + Sync>,
    /// Unix milliseconds.
    pub now: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// What a callback came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The connector whose sign-in it ended; `None` where no sign-in waited for it.
    pub server: Option<ConnectorId>,
    pub outcome: SignInOutcome,
    /// One sentence for a person.
    pub message: String,
}

/// The sign-ins of all connectors.
pub struct SignIns {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) core: Arc<Core>,
    pub(super) flows: Flows,
    pub(super) board: Board,
    deep_links: AtomicBool,
    loopback_port: Arc<dyn Fn() -> Option<u16> + Send + Sync>,
    /// When each connector was signed in lately.
    rows: Mutex<HashMap<ConnectorId, Vec<u64>>>,
    /// The way back that the person chose, by issuer.
    chosen: Mutex<HashMap<String, RedirectKind>>,
}

impl SignIns {
    /// Contacts nobody and reads nothing yet. Within a runtime, in which servers are asked to forget what goes from the
    /// keychain.
    pub fn new(options: SignInOptions) -> Arc<Self> {
        let core = Arc::new(Core::new(options.keychain.clone(), options.now));
        revoke::whatever_goes(&core);
        let inner = Inner {
            core,
            flows: Flows::new(options.keychain),
            board: Board::new(),
            deep_links: AtomicBool::new(false),
            loopback_port: options.loopback_port,
            rows: Mutex::default(),
            chosen: Mutex::default(),
        };
        Arc::new(Self { inner: Arc::new(inner) })
    }

    /// Whether deep links reach this app; before this is told they do not.
    pub fn set_deep_links(&self, reach_us: bool) {
        self.inner.deep_links.store(reach_us, Ordering::Release);
    }

    /// Finds out how to sign in and prepares it; the caller opens the page. A later one for the same connector takes its
    /// place. Where the person has to do something first, the error says what, and so does its view. It is carried
    /// through whatever becomes of the caller; [`Self::cancel`] ends it.
    ///
    /// # Errors
    /// [`SignInError`].
    pub async fn begin(&self, target: Target, ask: Ask) -> Result<Begun, SignInError> {
        if bearer::is_own(&target) {
            self.let_in_again(&target.connector).await?;
            return Err(SignInError::NobodySignsIn);
        }
        let (id, server) = (target.connector.clone(), target.url.clone());
        self.begin_after(id, &server, async move { Ok((target, ask)) }).await
    }

    /// Lets a connector that signs in by itself do so again, where the person had signed out.
    ///
    /// # Errors
    /// [`SignInError::Keychain`].
    pub async fn let_in_again(&self, id: &ConnectorId) -> Result<(), SignInError> {
        begin::let_in_again(&self.inner, id).await
    }

    /// As [`Self::begin`], where it has to be found out first what it begins with. That belongs to it already: its view
    /// is there, and [`Self::cancel`] ends it. `server` is an address on the server's host.
    ///
    /// # Errors
    /// [`SignInError`]; that of `beginnings`.
    pub async fn begin_after(
        &self,
        id: ConnectorId,
        server: &Url,
        beginnings: impl Future<Output = Result<(Target, Ask), SignInError>> + Send + 'static,
    ) -> Result<Begun, SignInError> {
        match tokio::spawn(begin::begin(self.inner.clone(), id, place(server), beginnings)).await {
            Ok(result) => result,
            Err(error) => {
                tracing::error!(%error, "preparing a sign-in ended abnormally");
                Err(SignInError::Unavailable("something went wrong here".to_owned()))
            }
        }
    }

    /// Ends the sign-in that waits for this answer. A stranger's answer, or one that was used, changes nothing; one that
    /// names no connector that there is costs nothing either. It is carried through whatever becomes of the caller.
    pub async fn finish(&self, callback: Callback, is_connector: impl FnOnce(&ConnectorId) -> bool) -> Finished {
        let Some(id) = connector_of(&callback.state).filter(|id| is_connector(id)) else {
            return finish::nobody_waits();
        };
        match tokio::spawn(finish::finish(self.inner.clone(), id, callback)).await {
            Ok(finished) => finished,
            Err(error) => {
                tracing::error!(%error, "finishing a sign-in ended abnormally");
                Finished {
                    server: None,
                    outcome: SignInOutcome::Failed,
                    message: "Something went wrong here. Sign in again.".to_owned(),
                }
            }
        }
    }

    /// Gives up the sign-in of a connector and takes its view away; whether one was under way.
    pub async fn cancel(&self, id: &ConnectorId) -> bool {
        let inner = &self.inner;
        inner.core.slot(id).next_entry();
        let was_under_way = inner.board.clear(id);
        inner.flows.clear(id);
        if let Err(fault) = inner.core.keychain.settled(id).await {
            tracing::warn!(
                connector = %id,
                fault = %fault.sentence(),
                "a sign-in that was given up stays in the keychain for now"
            );
        }
        was_under_way
    }

    /// Forgets tokens, registration and flows, has the server asked to do so too where it can, and remembers that the
    /// person signed out. What is under way for the connector comes too late from now on.
    ///
    /// # Errors
    /// When the keychain does not do it yet; it does it once it can be had in this run, and until then the connector is
    /// signed out all the same.
    pub async fn sign_out(&self, id: &ConnectorId) -> Result<(), KeychainFault> {
        self.end(id, Standing::SignedOut).await
    }

    /// Forgets everything of a removed connector, and has its server asked to do so too where it can. It is so when this
    /// returns; the future only waits for the keychain.
    ///
    /// # Errors
    /// When the keychain does not do it yet; it does it once it can be had.
    pub fn forget(&self, id: &ConnectorId) -> impl Future<Output = Result<(), KeychainFault>> + Send + use<> {
        self.end(id, Standing::Kept)
    }

    /// What the window shows of sign-ins, by connector.
    pub fn views(&self) -> Vec<SignInView> {
        self.inner.board.views(self.inner.core.now())
    }

    /// How long the first of all sign-ins still waits for its answer; `None` where none does.
    pub fn first_ends_in(&self) -> Option<Duration> {
        let left = self.inner.board.first_end()?.saturating_sub(self.inner.core.now());
        Some(Duration::from_millis(left))
    }

    /// What the sign-ins came to whose ten minutes are over and that nobody was told of.
    pub fn expire(&self) -> Vec<Finished> {
        let over = self.inner.board.expire(self.inner.core.now());
        let finished = |id| Finished {
            server: Some(id),
            outcome: SignInOutcome::Expired,
            message: TOO_LATE.to_owned(),
        };
        over.into_iter().map(finished).collect()
    }

    /// Counts changes of what [`Self::views`] gives.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.board.changes()
    }

    /// Whether a connector is signed in. Contacts nobody.
    ///
    /// # Errors
    /// [`AuthFault::Keychain`].
    pub async fn bearer(&self, target: Target) -> Result<Signed, AuthFault> {
        let core = &self.inner.core;
        let slot = core.slot(&target.connector);
        let life = slot.is_at(&target);
        if slot.standing() == Standing::SignedOut {
            return Ok(Signed::SignedOut);
        }
        if slot.held(&target).is_none() {
            match core.access(&target.connector).await? {
                Some(Access::SignedOut) => return Ok(Signed::SignedOut),
                Some(Access::SignedIn(grant)) if grant.is_for(&target) => {
                    slot.hold_first(life, Held::new(*grant, Reason::Plain, Kept::InKeychain), &target);
                }
                Some(Access::SignedIn(_)) | None if bearer::is_own(&target) => {}
                Some(Access::SignedIn(_)) | None => return Ok(Signed::Nothing),
            }
        }
        Ok(Signed::In(Arc::new(Bearer::new(core.clone(), target, life))))
    }

    fn end(
        &self,
        id: &ConnectorId,
        standing: Standing,
    ) -> impl Future<Output = Result<(), KeychainFault>> + Send + use<> {
        let inner = &self.inner;
        inner.board.clear(id);
        inner.lock_rows().remove(id);
        let held = inner.core.slot(id).end(standing);
        inner.flows.clear(id);
        let mark = match standing {
            Standing::SignedOut => Some(to_text(&Access::SignedOut).expose_secret().to_owned()),
            Standing::Kept => None,
        };
        inner.core.keychain.put_soon(
            id,
            vec![
                (Account::OAuth(id.clone()), mark),
                (Account::Client(id.clone()), None),
                (Account::Verifier(id.clone()), None),
            ],
        );
        let (core, id) = (inner.core.clone(), id.clone());
        async move {
            let settled = core.keychain.settled(&id).await;
            // The server forgets what the keychain gives; what that does not have, or not yet, is here alone.
            let is_here_alone = |held: &Arc<Held>| settled.is_err() || held.kept == Kept::NotYet;
            if let Some(held) = held.filter(is_here_alone) {
                revoke::soon(&core, held.grant.clone());
            }
            settled
        }
    }
}

impl Inner {
    pub(super) fn ways(&self) -> Ways {
        Ways {
            deep_links: self.deep_links.load(Ordering::Acquire),
            port: (self.loopback_port)(),
        }
    }

    /// The way back that the person chose at this issuer.
    pub(super) fn chosen(&self, issuer: &str) -> Option<RedirectKind> {
        self.chosen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(issuer)
            .copied()
    }

    pub(super) fn remember(&self, issuer: &str, kind: RedirectKind) {
        let mut chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        chosen.insert(issuer.to_owned(), kind);
    }

    /// Whether the connector was signed in as often in a row as may help.
    pub(super) fn row_is_full(&self, id: &ConnectorId) -> bool {
        let since = self.core.now().saturating_sub(ROW);
        let rows = self.lock_rows();
        rows.get(id)
            .is_some_and(|row| row.iter().filter(|at| **at > since).count() >= MOST_IN_A_ROW)
    }

    pub(super) fn add_to_row(&self, id: &ConnectorId) {
        let now = self.core.now();
        let mut rows = self.lock_rows();
        let row = rows.entry(id.clone()).or_default();
        row.retain(|at| *at > now.saturating_sub(ROW));
        row.push(now);
    }

    fn lock_rows(&self) -> std::sync::MutexGuard<'_, HashMap<ConnectorId, Vec<u64>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
