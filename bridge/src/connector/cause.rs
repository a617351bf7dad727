//! Why a connector has no session, and what a person reads and can do about it. Pure.

use std::time::Duration;

use super::episode;
use crate::{
    error::{Action, ApiError, Code},
    oauth::{SignInError, SignInNeed},
    secrets::{KeychainFault, TRY_AGAIN},
    snapshot::{KeychainState, LaunchWhy, Status},
    trust::LaunchIdentity,
};

/// How long a failed connector rests before a call may try again by itself (DESIGN §8).
pub const REST_AFTER_FAILURE: Duration = Duration::from_secs(30);

/// Why there is no session. Each text is a sentence, or the end of one, for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A `${secret:NAME}` or the token is not set, or was entered for something else: which, and what to do.
    MissingSecret(String),
    /// The entry cannot be expanded: an unset variable, an unreadable file.
    Entry(String),
    /// The upstream did not accept the key that it was sent, with this status.
    TokenRefused { status: u16 },
    /// The upstream wants a sign-in.
    SignIn(SignInNeed),
    /// The upstream asks for a kind of sign-in that this app does not have: the scheme's name.
    UnsupportedAuth(String),
    /// The server of the sign-in was to give a new token and did not; half a sentence.
    Authority(String),
    /// What it needs cannot be had from the keychain.
    Keychain(KeychainFault),
    /// The person has to look first at what would be run or contacted, which has this identity.
    NeedsReview { why: LaunchWhy, identity: LaunchIdentity },
    /// What the person approved cannot be checked, for want of the keychain.
    TrustUnknown(KeychainState),
    /// A program, or the person, paused it.
    Paused,
    /// The program is not on this computer; looked up again at each use.
    ProgramNotFound(String),
    /// It could not be started for another reason.
    NotStarted(String),
    /// Its process ended by itself.
    Exited(String),
    /// No answer within the connect deadline.
    NoAnswer(Duration),
    /// It cannot be reached, or the connection broke.
    Network(String),
    /// An HTTP status that is neither a refusal to sign in nor success, and how long it asked to be left alone.
    HttpStatus { status: u16, retry_after: Option<Duration> },
    /// It answered, but not as the protocol wants.
    Protocol(String),
    /// The attempt was given up because the connector is being stopped.
    Stopped,
    /// The person stopped the attempts; the sentence that told why they were needed.
    GivenUp(Option<String>),
}

/// What a fault waits for.
enum Mend {
    Secret,
    SignIn,
    Keychain,
    /// The person's look.
    Review,
    /// The end of a pause.
    Resume,
    /// An edit of the entry.
    Entry,
    /// Another attempt.
    Another,
}

impl Cause {
    /// What happened, as one sentence that ends without a stop to its advice.
    pub fn sentence(&self) -> String {
        match self {
            Self::MissingSecret(text) | Self::Entry(text) | Self::ProgramNotFound(text) | Self::NotStarted(text) => {
                text.clone()
            }
            Self::TokenRefused { status } => format!(
                "The server did not accept this token or key (HTTP status {status}). Enter it again, or get a new one \
                 from its makers."
            ),
            Self::SignIn(need) => need.sentence(),
            Self::UnsupportedAuth(scheme) => SignInError::Unsupported(scheme.clone()).sentence(),
            Self::Authority(text) => format!(
                "The access could not be renewed where you signed in: {text}. It is tried again; nothing has to be entered."
            ),
            Self::Keychain(fault) => fault.sentence(),
            Self::NeedsReview { why, .. } => review_words(why).to_owned(),
            Self::TrustUnknown(state) => trust_words(*state).to_owned(),
            Self::Paused => "It is paused. Resume it in the Neuron Connect window.".to_owned(),
            Self::Exited(how) => format!("The program {how} by itself. Its log may say why; else check its command."),
            Self::NoAnswer(after) => format!(
                "It did not answer within {} s. Try again: a first start may have much to download. If it stays so, check \
                 the entry.",
                after.as_secs_f32()
            ),
            Self::Network(text) => format!("It could not be reached: {text}."),
            Self::HttpStatus { status, .. } => {
                format!(
                    "The server answered with HTTP status {status}{}.",
                    status_words(*status)
                )
            }
            Self::Protocol(text) => format!("It answers, but not as an MCP server does: {text}."),
            Self::Stopped => "It is being stopped.".to_owned(),
            Self::GivenUp(None) => "Connecting was stopped here.".to_owned(),
            Self::GivenUp(Some(why)) => format!("{why} Trying again was stopped here."),
        }
    }

    fn mend(&self) -> Mend {
        match self {
            Self::MissingSecret(_) | Self::TokenRefused { .. } => Mend::Secret,
            Self::SignIn(_) => Mend::SignIn,
            Self::Keychain(_) | Self::TrustUnknown(_) => Mend::Keychain,
            Self::NeedsReview { .. } => Mend::Review,
            Self::Paused => Mend::Resume,
            Self::Entry(_) | Self::UnsupportedAuth(_) => Mend::Entry,
            Self::ProgramNotFound(_)
            | Self::NotStarted(_)
            | Self::Exited(_)
            | Self::NoAnswer(_)
            | Self::Network(_)
            | Self::HttpStatus { .. }
            | Self::Authority(_)
            | Self::Protocol(_)
            | Self::Stopped
            | Self::GivenUp(_) => Mend::Another,
        }
    }

    pub(super) fn status(&self) -> Status {
        match self.mend() {
            Mend::Secret => Status::NeedsSecret,
            Mend::SignIn => Status::NeedsSignIn,
            Mend::Keychain => Status::KeychainUnavailable,
            Mend::Review => Status::NeedsReview,
            Mend::Resume => Status::Paused,
            Mend::Entry | Mend::Another => Status::Error,
        }
    }

    pub(super) fn action(&self) -> Action {
        match self.mend() {
            Mend::Secret => Action::SetSecret,
            Mend::SignIn => Action::SignIn,
            Mend::Keychain => Action::UnlockKeychain,
            Mend::Review => Action::Review,
            Mend::Resume => Action::Resume,
            Mend::Entry => Action::Edit,
            Mend::Another => Action::Reconnect,
        }
    }

    /// The code with which calls fail meanwhile.
    pub fn code(&self) -> Code {
        match self.mend() {
            Mend::Secret => Code::NeedsSecret,
            Mend::SignIn => Code::NeedsSignIn,
            Mend::Keychain => Code::KeychainUnavailable,
            Mend::Review => Code::NeedsReview,
            Mend::Resume => Code::Disabled,
            Mend::Entry | Mend::Another => Code::Unavailable,
        }
    }

    /// How long after the fault a call may start another attempt; `None` = only after a click or an edit.
    ///
    /// What is looked up on this computer alone costs nothing and is looked up at every call.
    pub(super) fn rest(&self) -> Option<Duration> {
        match self {
            Self::MissingSecret(_) | Self::Entry(_) | Self::Keychain(_) | Self::ProgramNotFound(_) | Self::Stopped => {
                Some(Duration::ZERO)
            }
            Self::NotStarted(_)
            | Self::Exited(_)
            | Self::NoAnswer(_)
            | Self::Network(_)
            | Self::HttpStatus { .. }
            | Self::Authority(_)
            | Self::GivenUp(_) => Some(REST_AFTER_FAILURE.max(episode::asked_for(self))),
            Self::TokenRefused { .. }
            | Self::SignIn(_)
            | Self::UnsupportedAuth(_)
            | Self::Protocol(_)
            | Self::NeedsReview { .. }
            | Self::TrustUnknown(_)
            | Self::Paused => None,
        }
    }

    /// Whether it is paused, or not known to be what the person allowed: then its tools are hidden too.
    pub fn withholds_tools(&self) -> bool {
        match self {
            Self::NeedsReview { .. } | Self::TrustUnknown(_) | Self::Paused => true,
            Self::MissingSecret(_)
            | Self::Entry(_)
            | Self::TokenRefused { .. }
            | Self::SignIn(_)
            | Self::UnsupportedAuth(_)
            | Self::Authority(_)
            | Self::Keychain(_)
            | Self::ProgramNotFound(_)
            | Self::NotStarted(_)
            | Self::Exited(_)
            | Self::NoAnswer(_)
            | Self::Network(_)
            | Self::HttpStatus { .. }
            | Self::Protocol(_)
            | Self::Stopped
            | Self::GivenUp(_) => false,
        }
    }
}

fn review_words(why: &LaunchWhy) -> &'static str {
    match why {
        LaunchWhy::New => "It is new. Look at what it would do, and allow it or not.",
        LaunchWhy::Changed => "It is not what you allowed any more. Look at what changed, and allow it or not.",
        LaunchWhy::TurnedOn => "It was turned on outside Neuron Connect. Look at it, and allow that or not.",
        LaunchWhy::ToolsShown { .. } => "Tools that were off were turned on outside Neuron Connect. Allow that or not.",
    }
}

fn trust_words(state: KeychainState) -> &'static str {
    match state {
        KeychainState::Unused | KeychainState::Ready => "What you allowed is being looked up in the keychain.",
        KeychainState::Locked => "The keychain is locked, so what you allowed cannot be checked. Unlock it.",
        KeychainState::Absent => {
            "This desktop has no keychain that runs, so what you allowed cannot be checked. Start one (such as GNOME \
             Keyring or KWallet), or decide until the app quits."
        }
        KeychainState::Slow => {
            "The keychain does not answer, so what you allowed cannot be checked. It may be waiting for a question that \
             is open on the screen."
        }
        KeychainState::Refused => {
            "The keychain refuses, so what you allowed cannot be checked. Try again, or decide until the app quits."
        }
    }
}

fn status_words(status: u16) -> &'static str {
    match status {
        403 => " (forbidden)",
        404 => " (nothing is at this address; check it)",
        405 | 406 => " (this address is not for MCP; check it)",
        429 => " (too many requests)",
        500..=599 => " (the server has a problem of its own)",
        _ => "",
    }
}

/// How a call meets a connector that cannot run it.
pub fn unavailable(name: &str, cause: &Cause) -> ApiError {
    let error = ApiError::new(cause.code(), format!("{name} is not available. {}", cause.sentence()))
        .with_action(Some(cause.action()));
    match cause.mend() {
        Mend::Keychain => error.with_retry_after(TRY_AGAIN),
        Mend::Secret | Mend::SignIn | Mend::Review | Mend::Resume | Mend::Entry | Mend::Another => error,
    }
}
