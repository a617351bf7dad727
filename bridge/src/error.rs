//! The one error shape that leaves the bridge: a code to branch on, a sentence for a person, an action.

use std::time::Duration;

use serde::Serialize;
use ts_rs::TS;

/// What a caller may branch on. Each code has exactly one HTTP status (DESIGN §6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum Code {
    BadRequest,
    /// The token is missing or wrong.
    Unauthorized,
    HostNotAllowed,
    OriginNotAllowed,
    PeerNotOwner,
    ScopeMissing,
    /// The person, or the person's rule, said no.
    Denied,
    /// The person did not answer in time.
    ApprovalTimeout,
    UnknownTool,
    UnknownServer,
    NotFound,
    MethodNotAllowed,
    /// The person has to look at something first; the message says at what.
    NeedsReview,
    /// The tool is not the one that was approved.
    ToolChanged,
    NeedsSignIn,
    NeedsSecret,
    Disabled,
    AlreadyExists,
    TooLarge,
    UnsupportedMediaType,
    RateLimited,
    Internal,
    NotSaved,
    UpstreamError,
    ResultTooLarge,
    /// A sign-in page whose address is not safe to open.
    UnsafeAuthorizationUrl,
    /// An authorization server that does not say it protects codes (PKCE).
    PkceNotSupported,
    Unavailable,
    /// The keychain is locked, absent or silent; what needs it waits.
    KeychainUnavailable,
    /// Nobody would hear the answer of a sign-in: the port is not ours.
    CallbackUnavailable,
    UpstreamTimeout,
}

impl Code {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::Unauthorized => "unauthorized",
            Self::HostNotAllowed => "host_not_allowed",
            Self::OriginNotAllowed => "origin_not_allowed",
            Self::PeerNotOwner => "peer_not_owner",
            Self::ScopeMissing => "scope_missing",
            Self::Denied => "denied",
            Self::ApprovalTimeout => "approval_timeout",
            Self::UnknownTool => "unknown_tool",
            Self::UnknownServer => "unknown_server",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::NeedsReview => "needs_review",
            Self::ToolChanged => "tool_changed",
            Self::NeedsSignIn => "needs_sign_in",
            Self::NeedsSecret => "needs_secret",
            Self::Disabled => "disabled",
            Self::AlreadyExists => "already_exists",
            Self::TooLarge => "too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::RateLimited => "rate_limited",
            Self::Internal => "internal",
            Self::NotSaved => "not_saved",
            Self::UpstreamError => "upstream_error",
            Self::ResultTooLarge => "result_too_large",
            Self::UnsafeAuthorizationUrl => "unsafe_authorization_url",
            Self::PkceNotSupported => "pkce_not_supported",
            Self::Unavailable => "unavailable",
            Self::KeychainUnavailable => "keychain_unavailable",
            Self::CallbackUnavailable => "callback_unavailable",
            Self::UpstreamTimeout => "upstream_timeout",
        }
    }

    /// The HTTP status that goes with the code.
    pub fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::HostNotAllowed
            | Self::OriginNotAllowed
            | Self::PeerNotOwner
            | Self::ScopeMissing
            | Self::Denied
            | Self::ApprovalTimeout => 403,
            Self::UnknownTool | Self::UnknownServer | Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NeedsReview
            | Self::ToolChanged
            | Self::NeedsSignIn
            | Self::NeedsSecret
            | Self::Disabled
            | Self::AlreadyExists => 409,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::RateLimited => 429,
            Self::Internal => 500,
            Self::UpstreamError | Self::ResultTooLarge | Self::UnsafeAuthorizationUrl | Self::PkceNotSupported => 502,
            Self::Unavailable | Self::KeychainUnavailable | Self::CallbackUnavailable => 503,
            Self::UpstreamTimeout => 504,
            Self::NotSaved => 507,
        }
    }
}

/// The one thing a person can do about a connector's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum Action {
    /// Turn it on.
    Enable,
    /// Try to connect now.
    Reconnect,
    /// Correct its entry.
    Edit,
    /// Give the missing secret.
    SetSecret,
    /// Sign in at its server.
    SignIn,
    /// Unlock or start the keychain, or choose to keep secrets until the app quits.
    UnlockKeychain,
    /// Look at what it runs or contacts.
    Review,
    /// End the pause.
    Resume,
}

/// A refusal or failure, as HTTP, the window and the command line show it.
///
/// `message` is one sentence for a person and never empty; it holds no secret, no raw upstream body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, TS)]
#[error("{message}")]
#[ts(export_to = "bridge.ts")]
pub struct ApiError {
    /// What to branch on.
    pub code: Code,
    /// What went wrong, where, and what to do.
    #[serde(rename = "error")]
    pub message: String,
    /// The one click that helps, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub action: Option<Action>,
    /// For `Retry-After`; not part of the body.
    #[serde(skip)]
    #[ts(skip)]
    pub retry_after: Option<Duration>,
}

impl ApiError {
    /// An error without an action.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        debug_assert!(!message.is_empty(), "an error needs a sentence");
        Self {
            code,
            message,
            action: None,
            retry_after: None,
        }
    }

    /// Adds the one action that helps.
    #[must_use]
    pub fn with_action(mut self, action: Option<Action>) -> Self {
        self.action = action;
        self
    }

    /// Adds the shortest wait after which another try makes sense.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The connector of this name is off.
    pub fn turned_off(name: &str) -> Self {
        Self::new(Code::Disabled, format!("{name} is turned off.")).with_action(Some(Action::Enable))
    }

    /// A fault of this program's own, which its log tells of.
    pub fn internal() -> Self {
        Self::new(
            Code::Internal,
            "Something went wrong inside Neuron Connect. Please report this with the program's log.",
        )
    }

    /// Shorthand for a malformed request.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }
}
