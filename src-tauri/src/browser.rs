//! Pages open in the person's own browser, never in our window, and never by a word of our window: it names a sign-in or a
//! question, and the address is what the bridge has for it.

use neuron_bridge::{
    bridge::BridgeHandle,
    error::{ApiError, Code},
};

/// Opens an address that the bridge has looked at.
///
/// # Errors
/// `unavailable` when this desktop starts no browser.
pub(crate) async fn open(bridge: &BridgeHandle, url: String) -> Result<(), ApiError> {
    let bridge = bridge.clone();
    // It may look for several programs, one after the other.
    let opened = tauri::async_runtime::spawn_blocking(move || bridge.open_for_person(open::commands(url))).await;
    match opened {
        Ok(Ok(())) => Ok(()),
        // Its words hold the address.
        Ok(Err(_)) | Err(_) => Err(ApiError::new(
            Code::Unavailable,
            "Your browser could not be started. Copy the link and open it yourself.",
        )),
    }
}
