//! Signing in at servers: OAuth 2.1 as the MCP authorization specification (2026-07-28) wants it, with what older servers
//! need.

mod need;

pub use self::need::{Challenge, SignInNeed, WhySignIn};
