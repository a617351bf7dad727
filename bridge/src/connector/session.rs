//! One live connection to an upstream: its handshake, its calls, its end.
//!
//! The connector's task owns a [`Keeper`] and ends the session through it; callers share the [`Session`] and can only
//! call. A call is sent once and never again.

mod requests;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::{
    ClientHandler, Peer, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    },
    service::{NotificationContext, RunningService},
};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::requests::CallFault;
use super::state::{Cause, SessionFacts};
use crate::snapshot::{Era, Readiness};

/// What an upstream's messages set off in its connector.
#[derive(Debug, Default)]
pub struct Signals {
    /// The upstream says that its tool list is another one now.
    pub tools_changed: Notify,
    progress: Mutex<HashMap<ProgressToken, Arc<Notify>>>,
}

/// Our side of the protocol: neither sampling nor roots nor elicitation are declared.
#[derive(Clone)]
pub struct Handler {
    signals: Arc<Signals>,
}

impl Handler {
    /// A side that reports to `signals`.
    pub fn new(signals: Arc<Signals>) -> Self {
        Self { signals }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("neuron-connect", env!("CARGO_PKG_VERSION")).with_title("Neuron Connect");
        let mut config = ClientConfig::new(ClientCapabilities::default(), us);
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let progress = self.signals.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(renew) = progress.get(&params.progress_token) {
            renew.notify_one();
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.signals.tools_changed.notify_one();
    }
}

/// The shared side of a session.
#[derive(Debug)]
pub struct Session {
    /// What the handshake told.
    pub facts: SessionFacts,
    /// True when the upstream said that it has tools.
    pub has_tools: bool,
    /// The upstream's own name and version, where given.
    pub server: Option<String>,
    /// What the upstream tells assistants about itself.
    pub instructions: Option<String>,
    /// Set off by the upstream.
    pub signals: Arc<Signals>,
    peer: Peer<RoleClient>,
    ended: CancellationToken,
}

impl Session {
    /// Reads the facts off a finished handshake.
    pub fn new(
        service: &RunningService<RoleClient, Handler>,
        signals: Arc<Signals>,
        over_stdio: bool,
        ended: CancellationToken,
    ) -> Self {
        let peer = service.peer().clone();
        let info = peer.peer_info();
        let protocol = info
            .as_ref()
            .map(|info| info.protocol_version.clone())
            .unwrap_or_default();
        let era = if protocol.has_initialize() {
            Era::Legacy
        } else {
            Era::Modern
        };
        Self {
            facts: SessionFacts {
                era,
                protocol: protocol.as_str().to_owned(),
                readiness: if over_stdio {
                    Readiness::Ready
                } else {
                    Readiness::Unknown
                },
            },
            has_tools: info.as_ref().is_some_and(|info| info.capabilities.tools.is_some()),
            server: info
                .as_ref()
                .and_then(|info| info.server_info.as_ref())
                .map(|server| format!("{} {}", server.name, server.version)),
            instructions: info.as_ref().and_then(|info| info.instructions.clone()),
            signals,
            peer,
            ended,
        }
    }

    /// True once the connection is gone.
    pub fn is_over(&self) -> bool {
        self.ended.is_cancelled() || self.peer.is_transport_closed()
    }
}

/// How a session ended.
#[derive(Debug)]
pub struct Ended {
    /// Why, when nobody here asked for it.
    pub cause: Cause,
}

/// The owning side of a session. Dropping it ends the session too, but nobody waits for that.
pub struct Keeper {
    stop: DropGuard,
    ended: oneshot::Receiver<Ended>,
}

impl Keeper {
    /// `stop` ends the session when cancelled; `ended` is told once everything of it is gone.
    pub fn new(stop: CancellationToken, ended: oneshot::Receiver<Ended>) -> Self {
        Self {
            stop: stop.drop_guard(),
            ended,
        }
    }

    /// Resolves when the session is over and its process gone, whoever ended it.
    pub async fn over(&mut self) -> Ended {
        (&mut self.ended).await.unwrap_or(Ended { cause: Cause::Stopped })
    }

    /// Ends the session and waits until its process tree is gone.
    pub async fn close(self) {
        drop(self.stop);
        // The sender is only lost with the runtime, and everything with it.
        let _ = self.ended.await;
    }
}
