//! Links of our own scheme. Any program and any page can send one, so they are read here, in Rust, and handed to nobody
//! else: the answer of a sign-in goes to the bridge, everything else does nothing but show the window.

use std::{
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use neuron_bridge::{oauth::Callback, tray::Route};
use tauri::{AppHandle, Manager};

use crate::{
    app::Shell,
    desktop::{self, Reason},
};

/// Answers that came before they could be looked at; more than people wait for. Whoever brings another one waits.
const QUEUED_CALLBACKS: usize = 64;

/// What a start of the program asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    /// To see the window.
    Window,
    /// To end a sign-in.
    SignIn(Box<Callback>),
}

impl Asked {
    /// Reads the arguments of a start, the program's own name first. A link counts only where it is all there is.
    pub(crate) fn by<S: AsRef<str>>(arguments: &[S]) -> Self {
        match arguments {
            [_program, link] => match Callback::from_deep_link(link.as_ref()) {
                Ok(callback) => Self::SignIn(Box::new(callback)),
                // Not even a part of it is logged: it may hold a code.
                Err(_invalid) => Self::Window,
            },
            _ => Self::Window,
        }
    }
}

/// Answers on their way to the bridge, which may still be starting.
pub(crate) struct Callbacks {
    sender: SyncSender<Callback>,
    receiver: Mutex<Option<Receiver<Callback>>>,
}

impl Default for Callbacks {
    fn default() -> Self {
        let (sender, receiver) = sync_channel(QUEUED_CALLBACKS);
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
        }
    }
}

impl Callbacks {
    /// Hands an answer on; waits where [`QUEUED_CALLBACKS`] others wait already.
    pub(crate) fn bring(&self, callback: Callback) {
        // The other end lives as long as the program.
        let _ = self.sender.send(callback);
    }

    /// From now on answers reach the bridge, each for itself: a slow server holds up no other sign-in.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn reach(&self, app: &AppHandle) -> std::io::Result<()> {
        let Some(receiver) = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let app = app.clone();
        thread::Builder::new().name("deep-links".to_owned()).spawn(move || {
            for callback in receiver {
                tauri::async_runtime::spawn(finish(app.clone(), callback));
            }
        })?;
        Ok(())
    }
}

/// Ends the sign-in that waits for this answer and shows the person where it was begun.
async fn finish(app: AppHandle, callback: Callback) {
    // Whoever comes back from a browser wants to see the app, also while it is still at work.
    desktop::open(&app, Reason::Asked, None);
    let finished = app.state::<Shell>().bridge.finish_sign_in(callback).await;
    if let Some(server) = finished.server {
        desktop::open(&app, Reason::Asked, Some(&Route::Connector(server.to_string())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "neuron-connect://oauth/callback?code=c&state=s";

    fn is_sign_in(arguments: &[&str]) -> bool {
        matches!(Asked::by(arguments), Asked::SignIn(_))
    }

    #[test]
    fn a_link_alone_ends_a_sign_in() {
        assert!(is_sign_in(&["neuron-connect", LINK]));
    }

    #[test]
    fn arguments_that_are_not_one_link_to_a_sign_in_only_show_the_window() {
        let long = format!("{LINK}&iss={}", "x".repeat(2048));
        let hostile: &[&[&str]] = &[
            &[],
            &["neuron-connect"],
            &[LINK],
            &["neuron-connect", LINK, LINK],
            &["neuron-connect", "--flag", LINK],
            &["neuron-connect", LINK, "--flag"],
            &["neuron-connect", &long],
            &["neuron-connect", "neuron-connect://add?name=x&config=e30="],
            &["neuron-connect", "neuron-connect://oauth/callback"],
            &[
                "neuron-connect",
                "neuron-connect://oauth/callback/../add?code=c&state=s",
            ],
            &[
                "neuron-connect",
                "neuron-connect://oauth.example/callback?code=c&state=s",
            ],
            &[
                "neuron-connect",
                "neuron-connect://oauth/callback?code=c&state=s&state=t",
            ],
            &["neuron-connect", "neuron-connect://oauth/callback?code=c&state=s#x"],
            &["neuron-connect", "https://oauth/callback?code=c&state=s"],
            &["neuron-connect", "file:///etc/passwd"],
            &["neuron-connect", " neuron-connect://oauth/callback?code=c&state=s"],
            &[
                "neuron-connect",
                "neuron-connect://oauth/callback?code=c&state=s\u{202e}",
            ],
        ];
        for arguments in hostile {
            assert!(!is_sign_in(arguments), "{arguments:?}");
        }
    }

    #[test]
    fn a_link_is_never_written_anywhere() {
        let asked = Asked::by(&[
            "neuron-connect",
            "neuron-connect://oauth/callback?code=SENTINEL&state=s",
        ]);
        assert!(!format!("{asked:?}").contains("SENTINEL"));
    }
}
