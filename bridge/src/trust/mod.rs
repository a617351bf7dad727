//! What was approved is a hash of what runs: the launch identity.

mod identity;

pub(crate) use identity::expand_home;
pub use identity::{LaunchContext, LaunchIdentity};
