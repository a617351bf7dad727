//! Pages open in the person's own browser, never in our window, and never by a word of our window: it names a sign-in or a
//! question, and the address is what the bridge has for it.

use neuron_bridge::error::{ApiError, Code};

/// Opens an address that the bridge has looked at.
///
/// # Errors
/// `unavailable` when this desktop starts no browser.
pub(crate) async fn open(url: String) -> Result<(), ApiError> {
    // It may look for several programs, one after the other.
    let opened = tauri::async_runtime::spawn_blocking(move || tauri_plugin_opener::open_url(url, None::<&str>)).await;
    match opened {
        Ok(Ok(())) => Ok(()),
        // Its words hold the address.
        Ok(Err(_)) | Err(_) => Err(ApiError::new(
            Code::Unavailable,
            "Your browser could not be started. Copy the link and open it yourself.",
        )),
    }
}
