//! Signing in and out. The window names a connector; addresses are the bridge's, and it alone has looked at them.

use neuron_bridge::{
    bridge::SignInAsk,
    error::{ApiError, Code},
    oauth::Callback,
    snapshot::{RedirectKind, SignInOutcome},
};
use serde::Serialize;
use tauri::State;

use super::{Answer, connector_id};
use crate::{app::Shell, browser};

/// Begins a sign-in and opens its page in the browser. `accept_issuer` is what the person ticked.
#[tauri::command]
pub(super) async fn sign_in(
    shell: State<'_, Shell>,
    id: String,
    accept_issuer: Option<String>,
    redirect: Option<RedirectKind>,
) -> Answer<()> {
    let ask = SignInAsk {
        accept_issuer,
        redirect,
    };
    let page = shell.bridge.sign_in(connector_id(&id)?, ask).await?;
    browser::open(&shell.bridge, page).await
}

#[tauri::command]
pub(super) async fn cancel_sign_in(shell: State<'_, Shell>, id: String) -> Answer<()> {
    shell.bridge.cancel_sign_in(connector_id(&id)?).await
}

/// Opens the page of the sign-in that waits, once more.
#[tauri::command]
pub(super) async fn open_sign_in_again(shell: State<'_, Shell>, id: String) -> Answer<()> {
    let page = shell.bridge.snapshot().sign_in_page(&id).map(str::to_owned);
    let page = page.ok_or_else(|| ApiError::new(Code::NotFound, "This sign-in is over. Begin it anew."))?;
    browser::open(&shell.bridge, page).await
}

/// What a pasted address came to.
#[derive(Serialize)]
pub(super) struct Pasted {
    server: Option<String>,
    outcome: SignInOutcome,
    message: String,
}

/// Takes the address on which the browser ended.
#[tauri::command]
pub(super) async fn paste_sign_in(shell: State<'_, Shell>, address: String) -> Answer<Pasted> {
    let callback = Callback::from_pasted(&address)
        .map_err(|e| ApiError::bad_request(format!("This is not the address that a sign-in ends on: {e}.")))?;
    let finished = shell.bridge.finish_sign_in(callback).await;
    Ok(Pasted {
        server: finished.server.map(|server| server.to_string()),
        outcome: finished.outcome,
        message: finished.message,
    })
}

#[tauri::command]
pub(super) async fn sign_out(shell: State<'_, Shell>, id: String) -> Answer<()> {
    shell.bridge.sign_out(connector_id(&id)?).await
}
