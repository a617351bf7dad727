//! What an entry would come to that is not added yet. Looks, and never starts, contacts or writes anything of it.

use serde_json::{Map, Value};

use super::BridgeHandle;
use crate::{
    config::{Launch, validate_body},
    connector::World,
    ids::ConnectorId,
    snapshot::LaunchShown,
};

/// Stands in for the id, which is not chosen yet.
const NO_ID: &str = "prospect";

impl BridgeHandle {
    /// The program that an entry names and that is not found on this computer. `None` where it is found, where the entry
    /// runs none, and where it cannot be read.
    pub async fn missing_program(&self, entry: Map<String, Value>) -> Option<String> {
        let world = &self.inner.world;
        world.look_for_programs().await;
        missing_program(world, &entry)
    }
}

fn missing_program(world: &World, entry: &Map<String, Value>) -> Option<String> {
    let id = ConnectorId::parse(NO_ID).ok()?;
    let entry = validate_body(&id, entry).ok()?;
    let Launch::Stdio(launch) = &entry.launch else {
        return None;
    };
    match world.shown(&entry) {
        LaunchShown::Run { program: None, .. } => Some(launch.command.clone()),
        LaunchShown::Run { program: Some(_), .. } | LaunchShown::Contact { .. } => None,
    }
}
