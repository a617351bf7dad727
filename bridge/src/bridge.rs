//! The one owner of state, and the only door to it.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::sync::{broadcast, watch};

use crate::{
    config::AutoApprove,
    error::ApiError,
    event::Numbered,
    ids::{ConnectorId, ToolName},
    snapshot::{CallAnswer, ConnectorDetail, ConnectorView, Snapshot},
    tools::ToolList,
};

/// Who asks (DESIGN §7.2), with the label under which its calls and events are filed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Caller {
    /// No token, over the loopback port; or the local socket while the tray app runs.
    WalkIn,
    /// Our window; headless also the local socket.
    Owner,
}

impl Caller {
    /// A word for events and logs.
    pub fn label(&self) -> &'static str {
        match self {
            Self::WalkIn => "walk-in",
            Self::Owner => "owner",
        }
    }
}

/// One call as it came in; `input` is forwarded exactly as it is.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// Exposed name, or the raw `mcp__<id>__<tool>` where unambiguous.
    pub name: String,
    pub input: Map<String, Value>,
    /// At most one hour.
    pub timeout: Option<Duration>,
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

/// The only way in for HTTP, window and command line. Cheap to clone.
#[derive(Clone)]
pub struct BridgeHandle {}

impl BridgeHandle {
    /// The present state, as one immutable value.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        todo!()
    }

    /// Told of every later snapshot. Subscribe first, then read.
    pub fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        todo!()
    }

    /// The present tool list, as one immutable view.
    pub fn tools(&self) -> Arc<ToolList> {
        todo!()
    }

    /// Events after `last`, and all later ones.
    pub fn events(&self, _last: Option<u64>) -> (Vec<Numbered>, broadcast::Receiver<Numbered>) {
        todo!()
    }

    /// Runs a tool. Dropping the future cancels the call at its upstream.
    ///
    /// # Errors
    /// `unknown_tool`, `disabled`, `unavailable`, `needs_secret`, `needs_sign_in`, `upstream_error`,
    /// `result_too_large`, `upstream_timeout`.
    pub async fn call(&self, _caller: Caller, _request: CallRequest) -> Result<CallAnswer, ApiError> {
        todo!()
    }

    /// Reads from a stored large result, which only the caller whose call made it may do.
    /// `limit` is in characters.
    ///
    /// # Errors
    /// `not_found`.
    pub async fn result(
        &self,
        _caller: Caller,
        _result_id: String,
        _offset: u64,
        _limit: u64,
    ) -> Result<ResultPiece, ApiError> {
        todo!()
    }

    /// One connector with its tools.
    ///
    /// # Errors
    /// `unknown_server`.
    pub async fn connector(&self, _id: String) -> Result<ConnectorDetail, ApiError> {
        todo!()
    }

    /// Adds an entry to the file and to what runs. `entry` is the member of `servers` as JSON.
    ///
    /// # Errors
    /// `bad_request` (where), `already_exists`, `not_saved`.
    pub async fn add(&self, _id: ConnectorId, _entry: Map<String, Value>) -> Result<ConnectorView, ApiError> {
        todo!()
    }

    /// Replaces an entry, keeping its comments where its members stay.
    ///
    /// # Errors
    /// `unknown_server`, `bad_request`, `not_saved`.
    pub async fn replace(&self, _id: ConnectorId, _entry: Map<String, Value>) -> Result<ConnectorView, ApiError> {
        todo!()
    }

    /// Turns a connector on or off, in the file.
    ///
    /// # Errors
    /// `unknown_server`, `not_saved`.
    pub async fn set_enabled(&self, _id: ConnectorId, _enabled: bool) -> Result<(), ApiError> {
        todo!()
    }

    /// Turns one tool on or off (`disabledTools`), in the file.
    ///
    /// # Errors
    /// `unknown_server`, `not_saved`.
    pub async fn set_tool_enabled(&self, _id: ConnectorId, _tool: ToolName, _enabled: bool) -> Result<(), ApiError> {
        todo!()
    }

    /// Sets `autoApprove`, in the file.
    ///
    /// # Errors
    /// `unknown_server`, `bad_request`, `not_saved`.
    pub async fn set_auto_approve(&self, _id: ConnectorId, _value: AutoApprove) -> Result<(), ApiError> {
        todo!()
    }

    /// Stops the connector and removes its entry, snapshots and log.
    ///
    /// # Errors
    /// `unknown_server`, `not_saved`.
    pub async fn remove(&self, _id: ConnectorId) -> Result<(), ApiError> {
        todo!()
    }

    /// Closes the present session and waits for one new attempt; `true` = its discovery completed.
    ///
    /// # Errors
    /// `unknown_server`, `disabled`.
    pub async fn reconnect(&self, _id: ConnectorId) -> Result<(ConnectorView, bool), ApiError> {
        todo!()
    }

    /// The last lines an upstream wrote to stderr, oldest first.
    ///
    /// # Errors
    /// `unknown_server`.
    pub async fn log_tail(&self, _id: ConnectorId, _lines: usize) -> Result<Vec<String>, ApiError> {
        todo!()
    }

    /// Reads the file again, as SIGHUP does.
    pub async fn reload(&self) {
        todo!()
    }

    /// Stops everything: no new calls, upstreams closed, processes gone. Under five seconds.
    pub async fn shutdown(&self) {
        todo!()
    }
}
