//! Connections to upstreams: one owned task per connector.
//!
//! `task` decides when to connect and close, `state` what that is called, `attempt` opens one session, `episode` says
//! whether and when to try again, `session` runs calls over it. `transport` and `process` touch the world. No connector waits for another.

mod attempt;
mod discovery;
mod env_file;
mod episode;
mod fault;
pub mod log;
pub mod process;
pub mod program;
mod session;
mod shared;
mod state;
mod task;
pub mod transport;
mod world;

pub use discovery::RawTools;
pub use session::{CallFault, Session};
pub use shared::{Known, KnownTools, Shared, View};
pub use state::{Cause, Machine};
pub use task::{Beginning, Door, Handle};
pub use world::{Logs, World, summary_of};
