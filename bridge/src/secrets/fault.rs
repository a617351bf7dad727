//! Why the keychain gives nothing. Pure.

use std::time::Duration;

use super::redact;
use crate::{
    error::{Action, ApiError, Code},
    snapshot::KeychainState,
};

/// Why the keychain gives nothing; in none of these cases is anything known of what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeychainFault {
    /// It waits for the person's password.
    Locked,
    /// There is none on this desktop.
    Absent,
    /// It does not answer in time.
    Slow,
    /// It answers with a refusal: its own words, shortened, without secrets.
    Refused(String),
}

impl KeychainFault {
    /// What happened and what to do, for a person.
    pub fn sentence(&self) -> String {
        match self {
            Self::Locked => "The keychain is locked. Unlock it, then try again.".to_owned(),
            Self::Absent => {
                "This desktop has no keychain that runs. Start one (such as GNOME Keyring or KWallet), or keep \
                             secrets until the app quits."
                    .to_owned()
            }
            Self::Slow => {
                "The keychain does not answer. It may be waiting for a question that is open on the screen.".to_owned()
            }
            Self::Refused(words) => format!("The keychain refused: {words}."),
        }
    }

    /// The state that it puts the keychain in.
    pub fn state(&self) -> KeychainState {
        match self {
            Self::Locked => KeychainState::Locked,
            Self::Absent => KeychainState::Absent,
            Self::Slow => KeychainState::Slow,
            Self::Refused(_) => KeychainState::Refused,
        }
    }
}

/// What needs the keychain may be tried again after this.
pub const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Longest piece of another program's words in one of our sentences, in characters.
const OTHERS_WORDS: usize = 200;

/// What another program said, on one line, without secrets, shortened, as part of a sentence.
pub(super) fn short(text: &str) -> String {
    let line: String = redact(text)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(OTHERS_WORDS)
        .collect();
    match line.trim().trim_end_matches('.') {
        "" => "no reason given".to_owned(),
        line => line.to_owned(),
    }
}

impl From<KeychainFault> for ApiError {
    fn from(fault: KeychainFault) -> Self {
        Self::new(Code::KeychainUnavailable, fault.sentence())
            .with_action(Some(Action::UnlockKeychain))
            .with_retry_after(TRY_AGAIN)
    }
}
