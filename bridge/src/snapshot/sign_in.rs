//! The keychain and the sign-ins, as the window shows them.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::ids::ConnectorId;

/// Where secrets are kept, and whether they can be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct KeychainView {
    pub kept_in: KeptIn,
    pub state: KeychainState,
    /// Why not and what to do, where secrets cannot be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub message: Option<String>,
}

impl KeychainView {
    /// Before anybody asked for a secret.
    pub fn unused(kept_in: KeptIn) -> Self {
        Self {
            kept_in,
            state: KeychainState::Unused,
            message: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum KeptIn {
    /// The system's keychain.
    Keychain,
    /// An encrypted file of this home (headless, by choice).
    File,
    /// Memory: everything is forgotten when the app quits (by choice).
    Memory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum KeychainState {
    /// Nobody asked it for anything yet.
    Unused,
    Ready,
    /// It waits for the person's password.
    Locked,
    /// There is none on this desktop.
    Absent,
    /// It does not answer.
    Slow,
    /// It answers with a refusal.
    Refused,
}

/// A sign-in as the window shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[ts(export_to = "bridge.ts")]
pub struct SignInView {
    #[ts(type = "string")]
    pub server: ConnectorId,
    /// The page where the person signs in, as host and port; absent before that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub sign_in_at: Option<String>,
    /// Where the access goes, as host and port.
    pub access_goes_to: String,
    /// Unix milliseconds at which the stage began.
    #[ts(type = "number")]
    pub since: u64,
    pub stage: SignInStage,
}

/// How far a sign-in is, and what the person has to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS)]
#[serde(tag = "stage", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum SignInStage {
    /// The servers are asked how to sign in.
    Preparing,
    /// The person signs in at another domain than the access goes to, or at another issuer than before, or at a page of
    /// another domain than the issuer's: this issuer, with the page at `sign_in_at`, needs their tick.
    Confirm {
        issuer: String,
        /// Whether it was another issuer before.
        changed: bool,
        /// Host and port at which the page's answer becomes the access, where that is of another domain than the issuer.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        code_goes_to: Option<String>,
    },
    /// The server registers no programs by itself: the person registers this one there and enters what they get.
    NeedsClient {
        issuer: String,
        /// Exactly what to register there.
        redirect_uri: String,
    },
    /// The server does not say that it protects codes (PKCE).
    NoPkce { issuer: String },
    /// The browser was opened; the answer comes back by itself.
    Waiting {
        /// To open or copy once more.
        url: String,
        redirect: RedirectKind,
        /// Whether there is another way back, and which.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        other_way: Option<RedirectKind>,
        scopes: Vec<String>,
        /// Unix milliseconds after which the answer no longer counts.
        #[ts(type = "number")]
        expires_at: u64,
    },
    /// The answer came and is being exchanged.
    Finishing,
    /// It came to nothing; shown until the person goes on.
    Failed { outcome: SignInOutcome, message: String },
}

/// The way back from the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
#[ts(export_to = "bridge.ts")]
pub enum RedirectKind {
    /// `neuron-connect://oauth/callback`
    DeepLink,
    /// `http://127.0.0.1:<port>/mcp/oauth/callback`
    Loopback,
}

/// What a sign-in came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum SignInOutcome {
    SignedIn,
    /// Its ten minutes were over.
    Expired,
    /// No sign-in waits for this answer.
    InvalidState,
    /// The person or the server said no.
    Denied,
    Failed,
    /// The person gave it up here.
    Cancelled,
}
