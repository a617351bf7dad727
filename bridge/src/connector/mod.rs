//! Connections to upstreams: one owned task per connector.
//!
//! `door` is how others reach a connector. `task` decides when to connect and close, `state` what that is called,
//! `cause` why there is no session,
//! `admission` says what may run at all, `pauses` what does not although it may, `access` what lets its requests in, `attempt` opens one session, `episode` says whether and when to try again. `live` holds the session that stands,
//! `health` and `listen` keep it true, `session` runs calls over it. `wake` tells of sleep and of the network. `transport` and `process` touch the world. No connector waits for another.

mod access;
mod admission;
mod attempt;
mod cause;
mod discovery;
mod door;
mod env_file;
mod episode;
mod fault;
mod health;
mod listen;
mod live;
pub mod log;
mod pauses;
pub mod process;
pub mod program;
mod session;
mod shared;
mod state;
mod task;
pub mod transport;
mod under_way;
mod wake;
mod world;

pub use access::{Access, Beginnings, beginnings};
pub use admission::Admission;
pub use cause::{Cause, unavailable};
pub use discovery::{Argument, Items, Offers, Prompt, RawList, Rejected, Resource, Template};
pub use door::{Beginning, Door, Earlier, Handle};
pub use episode::Policy;
pub use health::DEFAULT_PING_EVERY;
pub use pauses::Pauses;
pub use session::{CallFault, Session, Step, Tell, Whose};
pub use shared::{Known, KnownTools, Shared, View};
pub use state::Machine;
pub use wake::Wakes;
pub use world::{Logs, Prepared, Tuning, World, binding_of, summary_of};
