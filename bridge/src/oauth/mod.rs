//! Signing in at servers: OAuth 2.1 as the MCP authorization specification (2026-07-28) wants it, with what older servers
//! need.
//!
//! This room owns the way from a server's challenge to a token: discovery, registration, the flows that wait for a
//! browser, tokens and their refresh, signing out. It keeps what it knows in the keychain, opens no browser itself, and
//! never lets a token, a code or a verifier into a log, a view or an error.

mod authorize;
mod bearer;
mod begin;
mod board;
mod callback;
mod challenge;
mod core;
mod discovery;
mod fault;
mod fetch;
mod finish;
mod flows;
mod metadata;
mod need;
mod pair;
mod record;
mod register;
mod renewal;
mod revoke;
mod safe_url;
mod scopes;
mod sign_ins;
mod slot;
mod target;
mod token;
mod ways;

pub(crate) use self::target::canonical;
pub use self::{
    bearer::{Bearer, Signed},
    callback::{CALLBACK_PATH, Callback, DEEP_LINK, InvalidCallback},
    challenge::Wanted,
    fault::{AuthFault, SignInError},
    need::{Challenge, SignInNeed, WhySignIn},
    sign_ins::{Finished, SignInOptions, SignIns},
    target::{Ask, Begun, Target},
};
