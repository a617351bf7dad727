//! Connections to upstreams: processes, their logs, and the transports to speak to them.

pub mod log;
pub mod process;
pub mod program;
pub mod transport;
