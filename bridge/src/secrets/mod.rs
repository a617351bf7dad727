//! What is secret, and that it stays so: the keychain, and redaction, the last door before a text reaches a log, an error
//! or the window.
//!
//! This room alone calls the system's keychain (`keychain`, on threads of its own: `workers`), and keeps each value under
//! its connector's account (`account`) with what it was entered for (`record`), in one of several vaults (`system`,
//! `file`, `vault`). It owns the decision what in a text is a secret, and the values a connector holds for as long as the
//! connector runs. No value ever leaves it but as `SecretString`, and none is logged. Redaction is a net under the rule
//! that secrets do not get into texts, for the texts that others write: what an upstream garbles on purpose passes.

mod account;
mod chores;
mod entry;
mod fault;
mod file;
mod keychain;
mod named;
mod parts;
mod record;
mod redact;
mod redactor;
mod system;
mod vault;
mod workers;

pub use account::{Account, InvalidName, SecretName};
pub use entry::{held_by, held_by_variables};
pub use fault::{KeychainFault, TRY_AGAIN};
pub use file::{FileKey, FileVaultError};
#[cfg(test)]
pub(crate) use keychain::desk::Desk;
pub use keychain::{KeepSecrets, Keychain, KeychainError, Places, Written};
pub use named::Named;
pub use record::{Binding, Bound, Change as BindingChange};
pub(crate) use redact::is_secret_name;
pub use redact::{Held, MARK, redact, redact_held};
pub use redactor::Redactor;
