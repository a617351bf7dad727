//! Looks at launches. The window names what it shows by ids; what they stand for is held by the bridge.

use neuron_bridge::bridge::PackageVersions;
use tauri::State;

use super::{Answer, connector_id, rules::rule_id};
use crate::app::Shell;

/// Lets these launches run, all of them or none. `keep`: ids of rules that go on for them.
#[tauri::command]
pub(super) async fn approve_launches(shell: State<'_, Shell>, ids: Vec<String>, keep: Vec<String>) -> Answer<()> {
    let keep = keep.iter().map(|id| rule_id(id)).collect::<Answer<_>>()?;
    shell.bridge.approve_launches(ids, keep).await
}

/// Rules that sleep go on for what their connector runs or contacts now, or are withdrawn.
#[tauri::command]
pub(super) async fn answer_asleep(shell: State<'_, Shell>, id: String, keep: bool) -> Answer<()> {
    shell.bridge.answer_asleep(id, keep).await
}

/// Turns a connector that waits off, or hides again what its entry shows.
#[tauri::command]
pub(super) async fn keep_blocked(shell: State<'_, Shell>, id: String) -> Answer<()> {
    shell.bridge.keep_blocked(id).await
}

/// Asks a package manager for the newest version of a connector's package.
#[tauri::command]
pub(super) async fn versions_of(shell: State<'_, Shell>, server: String) -> Answer<PackageVersions> {
    shell.bridge.versions_of(connector_id(&server)?).await
}

/// Writes a version into a connector's entry.
#[tauri::command]
pub(super) async fn use_version(shell: State<'_, Shell>, server: String, version: String) -> Answer<()> {
    shell.bridge.use_version(connector_id(&server)?, version).await
}
