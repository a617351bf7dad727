//! What was approved is a hash of what runs and of what is offered: the launch identity and the fingerprints. And the rows
//! in which that is kept.

pub mod fingerprint;
mod identity;
pub(crate) mod rows;

pub use fingerprint::{Fingerprint, HintsPrint, Unprintable};
pub(crate) use identity::expand_home;
pub use identity::{LaunchContext, LaunchIdentity};
pub use rows::{Change, Distrust, Row, RowKind, TRAY_MARK};
