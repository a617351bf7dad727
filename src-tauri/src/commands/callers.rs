//! Who may use the API: paired clients, pairing, programs that ask by themselves, and what holds for all.

use neuron_bridge::{
    bridge::{ClientChange, Terms},
    caller::Scope,
    error::ApiError,
    snapshot::{ApiMode, AskerView, ClientView, WalkInPolicy},
};
use tauri::State;

use super::{Answer, MAX_TEXT, connector_id};
use crate::app::Shell;

#[tauri::command]
pub(super) fn clients(shell: State<'_, Shell>) -> Vec<ClientView> {
    shell.bridge.clients()
}

/// `change` is the JSON text of what is to be another one.
#[tauri::command]
pub(super) async fn change_client(shell: State<'_, Shell>, id: String, change: String) -> Answer<()> {
    if change.len() > MAX_TEXT {
        return Err(ApiError::bad_request("The change is too long."));
    }
    let change: ClientChange = serde_json::from_str(&change)
        .map_err(|error| ApiError::bad_request(format!("The change cannot be used: {error}.")))?;
    shell.bridge.change_client(id, change).await.map(drop)
}

#[tauri::command]
pub(super) async fn revoke_client(shell: State<'_, Shell>, id: String) -> Answer<()> {
    shell.bridge.revoke_client(id).await
}

#[tauri::command]
pub(super) async fn open_pairing(shell: State<'_, Shell>) -> Answer<()> {
    shell.bridge.open_pairing().await;
    Ok(())
}

#[tauri::command]
pub(super) async fn close_pairing(shell: State<'_, Shell>) -> Answer<()> {
    shell.bridge.close_pairing().await;
    Ok(())
}

/// Turns whoever asked away; others may ask in the time that is left.
#[tauri::command]
pub(super) async fn turn_away(shell: State<'_, Shell>, id: String) -> Answer<()> {
    shell.bridge.turn_away(id).await
}

/// The code that the assistant shows, and what it may do.
#[tauri::command]
pub(super) async fn answer_pairing(
    shell: State<'_, Shell>,
    id: String,
    code: String,
    scopes: Vec<Scope>,
    servers: Option<Vec<String>>,
    expires_at: Option<u64>,
    asks_itself: bool,
) -> Answer<()> {
    let terms = Terms {
        scopes,
        servers,
        expires_at,
        asks_itself,
    };
    shell.bridge.answer_pairing(id, code, terms).await.map(drop)
}

#[tauri::command]
pub(super) fn askers(shell: State<'_, Shell>) -> Vec<AskerView> {
    shell.bridge.askers()
}

#[tauri::command]
pub(super) async fn set_asker(shell: State<'_, Shell>, path: String, script: Option<String>, on: bool) -> Answer<()> {
    shell.bridge.set_asker(path, script, on).await
}

/// Origins of the web pages that may use the API.
#[tauri::command]
pub(super) fn pages(shell: State<'_, Shell>) -> Vec<String> {
    shell.bridge.allowed_origins()
}

#[tauri::command]
pub(super) async fn set_page(shell: State<'_, Shell>, origin: String, on: bool) -> Answer<()> {
    shell.bridge.set_page(origin, on).await
}

#[tauri::command]
pub(super) async fn set_api_mode(shell: State<'_, Shell>, mode: ApiMode) -> Answer<()> {
    shell.bridge.set_api_mode(mode).await
}

#[tauri::command]
pub(super) async fn set_walk_in(shell: State<'_, Shell>, policy: WalkInPolicy) -> Answer<()> {
    shell.bridge.set_walk_in(policy).await
}

#[tauri::command]
pub(super) async fn pause_all(shell: State<'_, Shell>, on: bool) -> Answer<()> {
    shell.bridge.pause_all(on).await
}

/// Ends the pause of one connector.
#[tauri::command]
pub(super) async fn resume(shell: State<'_, Shell>, server: String) -> Answer<()> {
    shell.bridge.resume(connector_id(&server)?).await
}
