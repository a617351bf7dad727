//! `connectors.json`: reading, checking, comparing, editing, saving and watching the person's file.
//!
//! Parsing, validation, expansion and diff are pure. Edits work on the text, so that every byte that was not meant
//! stays. Nothing here starts or stops a connector.

pub(crate) mod atomic;
mod diff;
pub mod edit;
mod entry;
mod env_file;
mod expand;
mod file;
pub(crate) mod json;
mod links;
#[cfg(unix)]
mod owner;
mod parse;
pub(crate) mod reference;
mod resolved;
mod secrets;
mod validate;
mod watch;

pub use diff::{Change, diff};
pub use entry::{
    Auth, AutoApprove, ClientAuth, Config, Connector, Entry, EntryKind, Grant, HttpLaunch, Launch, OAuth, Redirect,
    Start, StdioLaunch, Timeouts,
};
pub use env_file::{EnvFileError, parse_env_file};
pub use expand::{ExpandError, Lookup, expand};
pub use file::{ConfigFile, Content, FileError, MAX_FILE_BYTES};
pub use parse::parse;
pub use resolved::{Resolved, ResolvedOAuth, SecretUrl};
pub use secrets::{host_of, refers_to_secret, secret_names, wants_token};
pub use validate::{MAX_CALL_MS, MAX_CONNECT_MS, MAX_DESCRIPTION, validate_body};
pub use watch::{WatchError, Watcher};

/// Puts `bytes` in place of the file `path` (0600), whole: a kill at any instant leaves the old or the new version.
///
/// # Errors
/// Of the step that failed; the old content then stays, unless only the last step failed, making it durable.
pub fn replace_file_atomically(path: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    atomic::replace_file(&mut atomic::RealDisk, path, bytes)
}
