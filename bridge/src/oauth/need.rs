//! That a server wants a sign-in, and why. Pure.

/// What a server said when it turned a request away: all its `WWW-Authenticate` headers, joined by commas (RFC 9110
/// §11.6.1); empty where it sent none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Challenge(pub String);

/// That a sign-in is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInNeed {
    pub why: WhySignIn,
    /// What the server said, where it was asked.
    pub challenge: Option<Challenge>,
}

/// Why a sign-in is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhySignIn {
    /// Nobody signed in yet.
    First,
    /// What was signed in for is over, or the server no longer accepts it.
    Over,
    /// The person signed out here.
    SignedOut,
    /// It allows less than the server asks for: these scopes are wanted.
    MoreScopes(Vec<String>),
}

impl SignInNeed {
    /// Nobody signed in yet.
    pub fn first(challenge: Option<Challenge>) -> Self {
        Self {
            why: WhySignIn::First,
            challenge,
        }
    }

    /// The scopes that are wanted beyond those at hand.
    pub fn wanted(&self) -> Option<&[String]> {
        match &self.why {
            WhySignIn::MoreScopes(scopes) => Some(scopes),
            WhySignIn::First | WhySignIn::Over | WhySignIn::SignedOut => None,
        }
    }

    /// What happened and what to do, for a person.
    pub fn sentence(&self) -> String {
        match &self.why {
            WhySignIn::First => "The server wants you to sign in.".to_owned(),
            WhySignIn::Over => "Your sign-in is over. Sign in again.".to_owned(),
            WhySignIn::SignedOut => "You signed out here.".to_owned(),
            WhySignIn::MoreScopes(scopes) if scopes.is_empty() => {
                "The server wants you to allow more. Sign in once more to allow it.".to_owned()
            }
            WhySignIn::MoreScopes(scopes) => format!(
                "The server wants you to allow more ({}). Sign in once more to allow it.",
                scopes.join(", ")
            ),
        }
    }
}
