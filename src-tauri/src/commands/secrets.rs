//! Keys, and the keychain they lie in. What goes in here never comes out again.

use neuron_bridge::secrets::SecretName;
use tauri::State;

use super::{Answer, connector_id};
use crate::app::Shell;
use neuron_bridge::error::ApiError;

/// `name` is absent for the token itself. The one command that takes a secret.
#[tauri::command]
pub(super) async fn set_secret(shell: State<'_, Shell>, id: String, name: Option<String>, value: String) -> Answer<()> {
    shell
        .bridge
        .set_secret(connector_id(&id)?, secret_name(name)?, value.into())
        .await
}

#[tauri::command]
pub(super) async fn forget_secret(shell: State<'_, Shell>, id: String, name: Option<String>) -> Answer<()> {
    shell.bridge.forget_secret(connector_id(&id)?, secret_name(name)?).await
}

/// From now on secrets are kept in memory alone.
#[tauri::command]
pub(super) async fn keep_until_quit(shell: State<'_, Shell>) -> Answer<()> {
    shell.bridge.keep_until_quit().await;
    Ok(())
}

/// Asks the keychain once more; how it stands shows in the snapshot.
#[tauri::command]
pub(super) async fn look_at_keychain(shell: State<'_, Shell>) -> Answer<()> {
    shell.bridge.look_at_keychain().await;
    Ok(())
}

fn secret_name(name: Option<String>) -> Answer<Option<SecretName>> {
    name.map(|name| SecretName::parse(&name))
        .transpose()
        .map_err(|e| ApiError::bad_request(e.to_string()))
}
