//! What an HTTP transport tells its connector while a session goes on.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Told with the earlier session's id and the new one's.
pub type Replaced = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Whom a transport tells.
#[derive(Clone)]
pub struct Watch {
    /// True while the server may send messages of its own: a stream to us stands.
    pub stream_open: Arc<AtomicBool>,
    /// The server had forgotten the session, and there is a new one.
    pub replaced: Replaced,
}

impl Watch {
    /// A stream stands, until the guard is dropped.
    pub(super) fn stream(&self) -> StreamGuard {
        self.stream_open.store(true, Ordering::Relaxed);
        StreamGuard(self.stream_open.clone())
    }
}

/// Says that the stream is gone when it is.
pub(super) struct StreamGuard(Arc<AtomicBool>);

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
