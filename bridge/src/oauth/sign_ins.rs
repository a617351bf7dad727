//! All sign-ins: what waits, what is signed in.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;
use url::Url;

use super::{
    bearer::{self, Bearer, Signed},
    begin,
    board::Board,
    callback::Callback,
    core::Core,
    fault::{AuthFault, SignInError},
    finish,
    flows::Flows,
    record::{Access, Grant},
    slot::{Held, Kept, Reason, TURN_WAIT},
    target::{Ask, Begun, Target},
    token::{TokenEndpoint, TokenKind},
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
/// Until a server has forgotten a token; it is forgotten here whatever it says.
const REVOKED_WITHIN: Duration = Duration::from_secs(5);

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
    /// Contacts nobody and reads nothing yet.
    pub fn new(options: SignInOptions) -> Arc<Self> {
        let inner = Inner {
            core: Arc::new(Core::new(options.keychain.clone(), options.now)),
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
        match tokio::spawn(begin::begin(self.inner.clone(), target, ask)).await {
            Ok(result) => result,
            Err(error) => {
                tracing::error!(%error, "preparing a sign-in ended abnormally");
                Err(SignInError::Unavailable("something went wrong here".to_owned()))
            }
        }
    }

    /// Ends the sign-in that waits for this answer. A stranger's answer, or one that was used, changes nothing. It is
    /// carried through whatever becomes of the caller.
    pub async fn finish(&self, callback: Callback) -> Finished {
        match tokio::spawn(finish::finish(self.inner.clone(), callback)).await {
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

    /// Gives up the sign-in of a connector that is prepared, waits or failed; whether there was one.
    pub async fn cancel(&self, id: &ConnectorId) -> bool {
        let was_there = self.inner.board.clear(id);
        if let Err(fault) = self.inner.flows.clear(id).await {
            tracing::warn!(connector = %id, fault = %fault.sentence(), "a sign-in that was given up stays in the keychain");
        }
        was_there
    }

    /// Forgets tokens, registration and flows, asks the server to do so too where it can, and remembers that the person
    /// signed out.
    ///
    /// # Errors
    /// When the keychain does not do it.
    pub async fn sign_out(&self, id: &ConnectorId) -> Result<(), KeychainFault> {
        self.end(id, Afterwards::SignedOut).await
    }

    /// Forgets everything of a removed connector, and asks its server to do so too where it can.
    ///
    /// # Errors
    /// When the keychain does not do it.
    pub async fn forget(&self, id: &ConnectorId) -> Result<(), KeychainFault> {
        self.end(id, Afterwards::Unknown).await?;
        self.inner.core.drop_slot(id);
        Ok(())
    }

    /// What the window shows of sign-ins, by connector.
    pub fn views(&self) -> Vec<SignInView> {
        self.inner.board.views(self.inner.core.now())
    }

    /// Counts changes of what [`Self::views`] gives. That a sign-in's ten minutes are over is no change of its own.
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
        if slot.held(&target).is_none() {
            match core.access(&target.connector).await? {
                Some(Access::SignedOut) => return Ok(Signed::SignedOut),
                Some(Access::SignedIn(grant)) if grant.is_for(&target) => {
                    slot.hold_first(Held::new(*grant, Reason::Plain, Kept::InKeychain), &target);
                }
                Some(Access::SignedIn(_)) | None if bearer::is_own(&target) => {}
                Some(Access::SignedIn(_)) | None => return Ok(Signed::Nothing),
            }
        }
        Ok(Signed::In(Arc::new(Bearer::new(core.clone(), target))))
    }

    async fn end(&self, id: &ConnectorId, afterwards: Afterwards) -> Result<(), KeychainFault> {
        let inner = &self.inner;
        inner.board.clear(id);
        inner.lock_rows().remove(id);
        inner.flows.clear(id).await?;
        let slot = inner.core.slot(id);
        let grant = {
            // A renewal that goes on longer finds afterwards that it was signed out meanwhile.
            let _turn = tokio::time::timeout(TURN_WAIT, slot.turn.lock()).await.ok();
            let grant = match inner.core.access(id).await? {
                Some(Access::SignedIn(grant)) => Some(grant),
                Some(Access::SignedOut) | None => None,
            };
            match afterwards {
                Afterwards::SignedOut => inner.core.keep_access(id, &Access::SignedOut).await?,
                Afterwards::Unknown => inner.core.keychain.delete(&Account::OAuth(id.clone())).await?,
            }
            slot.hold(None);
            grant
        };
        inner.core.keychain.delete(&Account::Client(id.clone())).await?;
        if let Some(grant) = grant
            && tokio::time::timeout(REVOKED_WITHIN, inner.revoke(&grant))
                .await
                .is_err()
        {
            tracing::info!(connector = %id, "its server did not forget the sign-in in time");
        }
        Ok(())
    }
}

/// What is known of a connector after its sign-in ended.
#[derive(Clone, Copy)]
enum Afterwards {
    SignedOut,
    Unknown,
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

    /// RFC 7009, where the server offers it.
    async fn revoke(&self, grant: &Grant) {
        let Ok(url) = Url::parse(&grant.url) else { return };
        if grant.server.revocation.is_none() {
            return;
        }
        let Ok(fetch) = self.core.fetches.named_by(&url).await else {
            return;
        };
        let endpoint = TokenEndpoint {
            fetch: &fetch,
            server: &grant.server,
            client: &grant.client,
            now: self.core.now(),
        };
        let refresh = grant.refresh.as_ref().map(|token| (token, TokenKind::Refresh));
        let access = grant.access.as_ref().map(|token| (token, TokenKind::Access));
        for (token, kind) in refresh.into_iter().chain(access) {
            if !endpoint.revoke(token, kind).await {
                tracing::info!("a server did not forget a token that was signed out");
            }
        }
    }
}
