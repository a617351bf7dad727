//! All sign-ins: what waits, what is signed in.

use std::sync::Arc;

use tokio::sync::watch;

use super::{
    bearer::Signed,
    callback::Callback,
    fault::{AuthFault, SignInError},
    target::{Ask, Begun, Target},
    vault::Keychain,
};
use crate::{
    ids::ConnectorId,
    secrets::KeychainFault,
    snapshot::{SignInOutcome, SignInView},
};

/// The world around the sign-ins.
pub struct SignInOptions {
    pub keychain: Keychain,
    /// The port of 127.0.0.1 at which this process answers `/mcp/oauth/callback`; `None` while it does not.
    pub loopback_port: Arc<dyn Fn() -> Option<u16> + Send + Sync>,
    /// Unix milliseconds.
    pub now: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// What a callback came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The connector whose sign-in it ended; `None` where no sign-in waited for it.
    pub server: Option<ConnectorId>,
    pub outcome: SignInOutcome,
    /// One sentence for a person.
    pub message: String,
}

/// The sign-ins of all connectors.
pub struct SignIns {
    options: SignInOptions,
    changed: watch::Sender<u64>,
}

impl SignIns {
    pub fn new(options: SignInOptions) -> Arc<Self> {
        Arc::new(Self {
            options,
            changed: watch::Sender::new(0),
        })
    }

    /// Whether deep links reach this app; before this is told they do not.
    pub fn set_deep_links(&self, reach_us: bool) {
        let _ = reach_us;
    }

    /// Finds out how to sign in and prepares it; the caller opens the page. A later one for the same connector takes its
    /// place. Where the person has to do something first, the error says what, and so does its view.
    ///
    /// # Errors
    /// [`SignInError`].
    pub async fn begin(&self, target: Target, ask: Ask) -> Result<Begun, SignInError> {
        let _ = (target, ask, &self.options);
        Err(SignInError::Unavailable("it is not set up".to_owned()))
    }

    /// Ends the sign-in that waits for this answer. A stranger's answer, or one that was used, changes nothing.
    pub async fn finish(&self, callback: Callback) -> Finished {
        let _ = callback;
        Finished {
            server: None,
            outcome: SignInOutcome::InvalidState,
            message: "No sign-in waits for this answer.".to_owned(),
        }
    }

    /// Gives up the sign-in of a connector that waits or failed; whether there was one.
    pub async fn cancel(&self, id: &ConnectorId) -> bool {
        let _ = id;
        false
    }

    /// Forgets tokens, registration and flows, asks the server to do so too where it can, and remembers that the person
    /// signed out.
    ///
    /// # Errors
    /// When the keychain does not do it.
    pub async fn sign_out(&self, id: &ConnectorId) -> Result<(), KeychainFault> {
        let _ = id;
        Ok(())
    }

    /// Forgets everything of a removed connector.
    ///
    /// # Errors
    /// When the keychain does not do it.
    pub async fn forget(&self, id: &ConnectorId) -> Result<(), KeychainFault> {
        let _ = id;
        Ok(())
    }

    /// What the window shows of sign-ins, by connector.
    pub fn views(&self) -> Vec<SignInView> {
        Vec::new()
    }

    /// Counts changes of what [`Self::views`] gives.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Whether a connector is signed in. Contacts nobody.
    ///
    /// # Errors
    /// [`AuthFault::Keychain`].
    pub async fn bearer(&self, target: Target) -> Result<Signed, AuthFault> {
        let _ = target;
        Ok(Signed::Nothing)
    }
}
