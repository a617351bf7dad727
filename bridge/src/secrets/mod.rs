//! What is secret, and that it stays so: so far redaction, the last door before a text reaches a log, an error or the
//! window.
//!
//! This room owns the decision what in a text is a secret, and the values a connector holds, for as long as the
//! connector runs. It never writes, sends or keeps a text, and never logs. Redaction is a net under the rule that
//! secrets do not get into texts, for the texts that others write: what an upstream garbles on purpose passes.

mod entry;
mod fault;
mod redact;
mod redactor;

pub use entry::{held_by, held_by_variables};
pub use fault::KeychainFault;
pub use redact::{Held, MARK, redact, redact_held};
pub use redactor::Redactor;
