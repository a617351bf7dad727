//! Connections to upstreams: one owned task per connector.
//!
//! `task` decides when to connect and close, `state` what that is called, `attempt` opens one session, `session` runs
//! calls over it. `transport` and `process` touch the world. No connector waits for another.

mod attempt;
mod discovery;
mod env_file;
mod fault;
pub mod log;
pub mod process;
pub mod program;
mod session;
mod state;
mod task;
pub mod transport;
mod world;

pub use discovery::RawTools;
pub use session::{CallFault, Session};
pub use state::{Cause, Machine};
pub use task::{Beginning, Door, Handle, Known, KnownTools, Shared, View};
pub use world::{Logs, World, summary_of};
