//! Pausing connectors and everything, and going on.

use serde_json::Value;

use super::{
    BridgeHandle, activity,
    owner::{Command, Owner},
};
use crate::{
    activity::WhoRecord,
    error::ApiError,
    ids::ConnectorId,
    ledger::{Change, Row, RowKind},
    snapshot::{ActivityCaller, WhoView},
    trust::PAUSED,
};

/// What is to be paused, or to go on.
pub(crate) enum PauseOrder {
    /// A program wants it, until the next start.
    Pause(ConnectorId, WhoView),
    Resume(ConnectorId),
    /// The person wants it for everything, until they say otherwise.
    All(bool),
}

impl BridgeHandle {
    /// Ends the pause of a connector that a program paused; while everything is paused, it stays so.
    ///
    /// # Errors
    /// `unknown_server`.
    pub async fn resume(&self, id: ConnectorId) -> Result<(), ApiError> {
        self.view_of(&id)?;
        let was_paused = self.inner.world.pauses.is_paused(&id);
        self.pause(PauseOrder::Resume(id.clone())).await?;
        if was_paused {
            self.told_of_pause(WhoRecord::plain(ActivityCaller::Owner), Some(&id), false);
        }
        Ok(())
    }

    /// Hides all tools and stops what runs, or goes on; holds over restarts.
    ///
    /// # Errors
    /// `keychain_unavailable`, `not_saved`; nothing is then changed.
    pub async fn pause_all(&self, on: bool) -> Result<(), ApiError> {
        let was_on = self.inner.world.pauses.all();
        self.pause(PauseOrder::All(on)).await?;
        if on != was_on {
            self.told_of_pause(WhoRecord::plain(ActivityCaller::Owner), None, on);
        }
        Ok(())
    }

    pub(super) fn told_of_pause(&self, who: WhoRecord, server: Option<&ConnectorId>, on: bool) {
        self.inner.world.activity.record(activity::paused(who, server, on));
    }

    pub(super) async fn pause(&self, order: PauseOrder) -> Result<(), ApiError> {
        self.order(|reply| Command::Pause(order, reply)).await
    }
}

impl Owner {
    pub(super) async fn pause(&mut self, order: PauseOrder) -> Result<(), ApiError> {
        let pauses = &self.world.pauses;
        match order {
            PauseOrder::Pause(id, by) => pauses.pause(id, by),
            PauseOrder::Resume(id) => {
                pauses.resume(&id);
            }
            PauseOrder::All(on) => {
                let row = Row {
                    kind: RowKind::Setting,
                    key: PAUSED.to_owned(),
                    body: Value::Bool(on).to_string(),
                };
                self.world.ledger.write(vec![Change::Put(row)]).await?;
                pauses.set_all(on);
            }
        }
        self.judge_again().await;
        Ok(())
    }
}
