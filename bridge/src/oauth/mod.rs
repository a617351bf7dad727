//! Signing in at servers: OAuth 2.1 as the MCP authorization specification (2026-07-28) wants it, with what older servers
//! need.
//!
//! This room owns the way from a server's challenge to a token: discovery, registration, the flows that wait for a
//! browser, tokens and their refresh, signing out. It keeps what it knows in the keychain, opens no browser itself, and
//! never lets a token, a code or a verifier into a log, a view or an error.

#![expect(dead_code, reason = "what begins and ends a sign-in is still to come")]

mod bearer;
mod callback;
mod challenge;
mod fault;
mod need;
mod sign_ins;
mod target;
mod vault;

pub use self::{
    bearer::{Bearer, Signed},
    callback::{CALLBACK_PATH, Callback, DEEP_LINK, InvalidCallback},
    challenge::Wanted,
    fault::{AuthFault, SignInError},
    need::{Challenge, SignInNeed, WhySignIn},
    sign_ins::{Finished, SignInOptions, SignIns},
    target::{Ask, Begun, Target},
    vault::{Account, Keychain},
};
