//! Ways to speak to an upstream, under the SDK's service layer.
//!
//! `carrier` lets raw results pass through the SDK's types; `stdio` frames messages over a child's pipes; `http` posts them;
//! `sse` is how they were posted before that; `authorization` is what lets them in. Nothing here decides when to connect or what a failure means for the connector.

mod authorization;
pub mod carrier;
mod events;
mod framing;
mod http;
mod inbox;
mod peek;
mod sse;
mod stats;
pub mod stdio;
mod watch;
mod web;

pub use authorization::{Authorization, Credentials, Denials, Denied, Tokens};
pub use carrier::Method;
pub use http::HttpClient;
pub use sse::{EndCause, EndpointError, OpenError, SseTransport, StreamEnd};
pub use stats::{CloseCause, Counts, TransportStats};
pub use stdio::StdioTransport;
pub use watch::Watch;
pub(super) use web::Error as HttpError;
pub use web::{CustomHeaders, Web, WebError};

/// Code of the error answer that a transport makes up when an upstream's answer is over its size bound. Never on the wire.
pub const FRAME_TOO_LARGE: i32 = -32098;

/// Code of the error answer that a transport makes up when an upstream's answer cannot be read. Never on the wire.
pub const BROKEN_ANSWER: i32 = -32097;

/// Error code with which servers say that a session is unknown; others use it for other things.
const SESSION_NOT_FOUND: i32 = -32001;

/// The longest message that is accepted, in bytes.
pub const MAX_FRAME: usize = 16 * 1024 * 1024;
