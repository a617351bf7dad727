//! The room that signs in, against an authorization server in a process of its own.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test and its harness report by panicking"
)]

mod clients;
mod hostile;
mod room;
mod sign_in;
mod tokens;
