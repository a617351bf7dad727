//! Why there is no sign-in and no token. Pure.

use super::need::SignInNeed;
use crate::{
    error::{Action, ApiError, Code},
    secrets::KeychainFault,
};

/// Why a connector has no token to send now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthFault {
    /// Only the person can get one.
    SignIn(SignInNeed),
    /// It cannot be had from the keychain, or not be kept there.
    Keychain(KeychainFault),
    /// The entry has to be corrected first: a sentence.
    Entry(String),
    /// The authorization server cannot be used just now; the sign-in stands. The end of a sentence, such as
    /// "auth.example.com answered with HTTP status 503".
    Unavailable(String),
}

/// Why a sign-in cannot begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInError {
    /// The keychain could not keep what the sign-in gives.
    Keychain(KeychainFault),
    /// The server asks for a scheme that is neither bearer nor OAuth: its name.
    Unsupported(String),
    /// The person signs in at another domain than the access goes to, or at another issuer than before, or the issuer
    /// sends them or their code elsewhere.
    Confirm {
        issuer: String,
        /// Host and port of the page to sign in at, where it is of another domain than the issuer.
        page: Option<String>,
        /// Host and port at which the code becomes the access, where that is of another domain than the issuer.
        code_goes_to: Option<String>,
        /// Whether it was another issuer before.
        changed: bool,
    },
    /// The authorization server registers no programs by itself: the person registers this one there.
    NeedsClient { issuer: String, redirect_uri: String },
    /// The entry has a client id but does not say at which issuer it is registered.
    NeedsIssuer { issuer: String },
    /// The server names another issuer than the entry.
    OtherIssuer { wanted: String, found: String },
    /// The authorization server does not say that it protects codes (PKCE with S256).
    NoPkce { issuer: String },
    /// The sign-in page's address is not safe to open.
    UnsafeUrl,
    /// Nobody would hear the browser's answer: why.
    CallbackUnavailable(String),
    /// The server wanted a sign-in three times in a row and is still not content.
    TooMany,
    /// The connector signs in by itself (client credentials).
    NobodySignsIn,
    /// It could not be found out for whom it would be, or what its server wants: what is told of that.
    Told(Box<ApiError>),
    /// Another sign-in of this connector, its removal or a click on Cancel ended this one.
    Replaced,
    /// It cannot be reached just now: the end of a sentence.
    Unavailable(String),
    /// What was found does not allow a sign-in: the end of a sentence.
    Refused(String),
}

impl SignInError {
    /// What happened and what to do, for a person.
    pub fn sentence(&self) -> String {
        match self {
            Self::Keychain(fault) => fault.sentence(),
            Self::Unsupported(scheme) => format!(
                "The server asks for a kind of sign-in that this app does not have ({scheme}). If its makers give you a \
                 key, send it in a header of the entry."
            ),
            Self::Confirm {
                issuer,
                page,
                code_goes_to,
                changed,
            } => {
                let mut text = match (changed, page, code_goes_to) {
                    (true, _, _) => {
                        format!("The server now wants you to sign in somewhere else than before: {issuer}.")
                    }
                    (false, None, None) => {
                        format!("You would sign in at {issuer}, which is not where the access goes.")
                    }
                    (false, _, _) => format!("You would sign in for {issuer}."),
                };
                if let Some(page) = page {
                    text.push_str(&format!(" Its page is at {page}, which is somebody else's."));
                }
                if let Some(place) = code_goes_to {
                    text.push_str(&format!(
                        " What the page answers goes on to {place}, which is somebody else's."
                    ));
                }
                text + " Look at it first."
            }
            Self::NeedsClient { issuer, redirect_uri } => format!(
                "{issuer} does not register programs by itself. Register this app there with the redirect address \
                 {redirect_uri}, then enter the client id that you get."
            ),
            Self::NeedsIssuer { issuer } => format!(
                "The entry has a client id but not whose it is. If it is registered at {issuer}, add this as \
                 \"oauth.issuer\"."
            ),
            Self::OtherIssuer { wanted, found } => format!(
                "The server wants you to sign in at {found}, but the entry says {wanted}. Correct \"oauth.issuer\" if \
                 that is right."
            ),
            Self::NoPkce { issuer } => format!(
                "{issuer} does not say that it protects sign-ins against theft (PKCE). Sign in only if you trust it: \
                 set \"oauth.allowMissingPkce\" in the entry."
            ),
            Self::UnsafeUrl => "The address of the server's sign-in page is not safe to open.".to_owned(),
            Self::CallbackUnavailable(why) => format!("The browser's answer would not reach this app: {why}."),
            Self::TooMany => {
                "The server asked for a sign-in again and again and is still not content. Sign out here, or ask its \
                 makers."
                    .to_owned()
            }
            Self::NobodySignsIn => "This connector signs in by itself, with its client's own key.".to_owned(),
            Self::Told(error) => error.message.clone(),
            Self::Replaced => "This sign-in was given up for another one.".to_owned(),
            Self::Unavailable(what) => format!("Signing in is not possible just now: {what}. Try again later."),
            Self::Refused(what) => format!("Signing in is not possible: {what}."),
        }
    }

    fn code(&self) -> Code {
        match self {
            Self::Keychain(_) => Code::KeychainUnavailable,
            Self::Confirm { .. } => Code::NeedsReview,
            Self::NeedsClient { .. } | Self::NeedsIssuer { .. } => Code::NeedsSecret,
            Self::NoPkce { .. } => Code::PkceNotSupported,
            Self::UnsafeUrl => Code::UnsafeAuthorizationUrl,
            Self::CallbackUnavailable(_) => Code::CallbackUnavailable,
            Self::NobodySignsIn => Code::BadRequest,
            Self::Told(error) => error.code,
            Self::Replaced | Self::Unavailable(_) => Code::Unavailable,
            Self::Unsupported(_) | Self::OtherIssuer { .. } | Self::TooMany | Self::Refused(_) => Code::UpstreamError,
        }
    }

    fn action(&self) -> Option<Action> {
        match self {
            Self::Keychain(_) => Some(Action::UnlockKeychain),
            Self::Confirm { .. } | Self::Replaced | Self::Unavailable(_) => Some(Action::SignIn),
            Self::Told(error) => error.action,
            Self::Unsupported(_)
            | Self::NeedsClient { .. }
            | Self::NeedsIssuer { .. }
            | Self::OtherIssuer { .. }
            | Self::NoPkce { .. } => Some(Action::Edit),
            Self::UnsafeUrl | Self::CallbackUnavailable(_) | Self::TooMany | Self::NobodySignsIn | Self::Refused(_) => {
                None
            }
        }
    }
}

impl From<SignInError> for ApiError {
    fn from(error: SignInError) -> Self {
        match error {
            SignInError::Keychain(fault) => fault.into(),
            SignInError::Told(error) => *error,
            error => Self::new(error.code(), error.sentence()).with_action(error.action()),
        }
    }
}

impl From<KeychainFault> for SignInError {
    fn from(fault: KeychainFault) -> Self {
        Self::Keychain(fault)
    }
}

impl From<KeychainFault> for AuthFault {
    fn from(fault: KeychainFault) -> Self {
        Self::Keychain(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keychain_that_gives_nothing_says_when_to_come_again() {
        let told = ApiError::from(SignInError::Keychain(KeychainFault::Locked));
        assert_eq!(told, ApiError::from(KeychainFault::Locked));
        assert!(told.retry_after.is_some());
    }
}
