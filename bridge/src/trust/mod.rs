//! What was approved is a hash of what runs: the launch identity. And the rows in which that is kept.

mod identity;
pub(crate) mod packages;
pub(crate) mod review;
pub(crate) mod rows;
pub(crate) mod shown;
pub(crate) mod stands_out;

pub(crate) use identity::expand_home;
pub use identity::{LaunchContext, LaunchIdentity};
pub use rows::{Change, Distrust, Row, RowKind, TRAY_MARK};
