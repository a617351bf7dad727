//! What was approved is a hash of what runs and of what is offered, and what may be called is what the person said:
//! identity, fingerprints, rules, the decision on a call, and the rows in which all that is kept.

pub mod decision;
pub mod fingerprint;
mod identity;
pub(crate) mod packages;
pub mod pins;
pub(crate) mod review;
pub(crate) mod rows;
pub mod rules;
pub mod scan;
pub(crate) mod shown;
pub(crate) mod stands_out;

pub use fingerprint::{Fingerprint, HintsPrint, Unprintable};
pub(crate) use identity::expand_home;
pub use identity::{LaunchContext, LaunchIdentity};
pub(crate) use rows::{API_MODE, API_MODE_ASSUMED, FILES_CHOICE, OLD_RULES_BOUND, PAUSED, WALK_IN};
pub use rows::{Change, Distrust, Row, RowKind, TRAY_MARK};
