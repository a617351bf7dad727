//! Looks at tools and prompts. The window names exactly the versions that it shows; what they say is held by the bridge.

use neuron_bridge::ids::ToolName;
use serde::Deserialize;
use tauri::State;

use super::{Answer, connector_id};
use crate::app::Shell;

/// A version of a tool, as its review names it.
#[derive(Deserialize)]
pub(super) struct Version {
    tool: String,
    version: String,
}

/// Approves these versions, all of them or none.
#[tauri::command]
pub(super) async fn approve_tools(shell: State<'_, Shell>, server: String, versions: Vec<Version>) -> Answer<()> {
    let versions = versions.into_iter();
    let versions = versions.map(|one| (ToolName::new(one.tool), one.version)).collect();
    shell.bridge.approve_tools(connector_id(&server)?, versions).await
}

/// Leaves a version of a tool blocked, and does not show it again.
#[tauri::command]
pub(super) async fn keep_tool_blocked(
    shell: State<'_, Shell>,
    server: String,
    tool: String,
    version: String,
) -> Answer<()> {
    let server = connector_id(&server)?;
    shell
        .bridge
        .keep_tool_blocked(server, ToolName::new(tool), version)
        .await
}

/// Approves a version of a prompt about which something stands out.
#[tauri::command]
pub(super) async fn approve_prompt(
    shell: State<'_, Shell>,
    server: String,
    prompt: String,
    version: String,
) -> Answer<()> {
    let server = connector_id(&server)?;
    shell.bridge.approve_prompt(server, prompt, version).await
}

/// Leaves a version of a prompt blocked, and does not show it again.
#[tauri::command]
pub(super) async fn keep_prompt_blocked(
    shell: State<'_, Shell>,
    server: String,
    prompt: String,
    version: String,
) -> Answer<()> {
    let server = connector_id(&server)?;
    shell.bridge.keep_prompt_blocked(server, prompt, version).await
}

/// Approves a version of what a server tells assistants about itself.
#[tauri::command]
pub(super) async fn approve_instructions(shell: State<'_, Shell>, server: String, version: String) -> Answer<()> {
    shell.bridge.approve_instructions(connector_id(&server)?, version).await
}

/// Keeps a version of it from assistants, and does not show it again.
#[tauri::command]
pub(super) async fn keep_instructions_withheld(shell: State<'_, Shell>, server: String, version: String) -> Answer<()> {
    let server = connector_id(&server)?;
    shell.bridge.keep_instructions_withheld(server, version).await
}
