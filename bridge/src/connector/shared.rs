//! What callers see of a connector without asking its task.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::{ArcSwap, ArcSwapOption};

use super::{
    cause::Cause,
    discovery::{Offers, RawList},
    log::Log,
    session::{Session, SessionName},
    state::Machine,
};
use crate::{
    clock::unix_ms,
    config,
    ids::ConnectorId,
    oauth::{Bearer, Challenge},
    snapshot::{Era, RejectedTool, Status},
    tools::{ParsedTools, Tool},
};

/// What others may see of a connector: one immutable value per change.
#[derive(Debug, Clone)]
pub struct View {
    pub machine: Machine,
    pub tools: Arc<KnownTools>,
    pub offers: Offers,
    /// What the upstream says about itself, without the connector's secrets.
    pub instructions: Option<Arc<str>>,
}

/// A connector's list as it was last read.
#[derive(Debug, Default, PartialEq)]
pub struct KnownTools {
    pub tools: Vec<Arc<Tool>>,
    pub rejected: Vec<RejectedTool>,
}

impl From<ParsedTools> for KnownTools {
    fn from(parsed: ParsedTools) -> Self {
        Self {
            tools: parsed.tools.into_iter().map(Arc::new).collect(),
            rejected: parsed.rejected,
        }
    }
}

/// Lists from before this start.
#[derive(Debug)]
pub struct Known {
    pub list: RawList,
    pub offers: Offers,
    /// What the upstream said about itself.
    pub instructions: Option<Arc<str>>,
    /// The era its upstream spoke, tried first; `None` = not known.
    pub era: Option<Era>,
}

/// States kept for those who are told of each; the owner takes them within milliseconds.
const MOST_PASSED: usize = 256;

/// A state that a connector entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    pub status: Status,
    pub sequence: u64,
}

/// The side of a connector that callers share.
pub struct Shared {
    pub id: ConnectorId,
    /// Set by the owner of the configuration, so that a change is seen by whoever was told that it is made.
    pub(super) entry: ArcSwap<config::Connector>,
    pub(super) view: ArcSwap<View>,
    pub(super) passed: Mutex<VecDeque<Passed>>,
    pub(super) session: ArcSwapOption<Session>,
    /// The sign-in that the last attempt used.
    pub(super) bearer: Arc<ArcSwapOption<Bearer>>,
    /// Unix milliseconds of the last call; 0 = none in this run.
    pub(super) used_at: AtomicU64,
    pub log: Log,
}

impl Shared {
    /// What the configuration says of it.
    pub fn entry(&self) -> Arc<config::Connector> {
        self.entry.load_full()
    }

    /// The name for people.
    pub fn name(&self) -> String {
        let entry = self.entry.load();
        entry.name.clone().unwrap_or_else(|| self.id.to_string())
    }

    /// The present state.
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Every state that was entered since the last time, up to the one with this number.
    pub fn take_passed(&self, until: u64) -> Vec<Passed> {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let count = passed.iter().take_while(|state| state.sequence <= until).count();
        passed.drain(..count).collect()
    }

    /// Shows a view; its state is remembered where it is another one.
    pub(super) fn show(&self, view: View) {
        let sequence = view.machine.sequence();
        {
            let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
            if sequence != self.view.load().machine.sequence() {
                if passed.len() == MOST_PASSED {
                    passed.pop_front();
                }
                passed.push_back(Passed {
                    status: view.machine.status(),
                    sequence,
                });
            }
        }
        self.view.store(Arc::new(view));
    }

    /// The session, if one stands.
    pub fn session(&self) -> Option<Arc<Session>> {
        self.session.load_full().filter(|session| !session.is_over())
    }

    /// What the sign-in that is used allows; `None` where none is known in this run.
    pub fn access(&self) -> Option<Vec<String>> {
        self.bearer.load().as_ref().map(|bearer| bearer.scopes())
    }

    /// What the server said when it last wanted a sign-in.
    pub fn challenge(&self) -> Option<Challenge> {
        let view = self.view();
        if let Cause::SignIn(need) = &view.machine.failure()?.cause {
            return need.challenge.clone();
        }
        None
    }

    /// What the session that stands is called in logs.
    pub(super) fn session_name(&self) -> Option<SessionName> {
        self.session.load().as_ref().map(|session| session.name.clone())
    }

    /// Unix milliseconds of the last call, in this run.
    pub fn used_at(&self) -> Option<u64> {
        Some(self.used_at.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }

    /// Notes that a call uses the connector now.
    pub fn mark_used(&self) {
        self.used_at.store(unix_ms(), Ordering::Relaxed);
    }
}
