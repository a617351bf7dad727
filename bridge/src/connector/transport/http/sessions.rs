//! The session ids that a server gave one transport, and which of them it has forgotten.

use std::sync::{Mutex, MutexGuard, PoisonError};

use http::HeaderMap;

use super::SESSION_HEADER;

/// What one transport knows about its session.
#[derive(Default)]
pub(super) struct Sessions(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The one that both sides have agreed on.
    current: Option<String>,
    /// One that the server said it does not know, in an answer that came too late to be asked again.
    lost: Option<String>,
}

impl Sessions {
    /// Both sides have agreed on `id`; the id that it takes the place of.
    pub(super) fn agreed(&self, id: &str) -> Option<String> {
        let mut known = self.lock();
        known.lost = None;
        known.current.replace(id.to_owned())
    }

    /// The session that a request with these headers named is gone.
    pub(super) fn lost(&self, headers: &HeaderMap) {
        let named = headers.get(SESSION_HEADER).and_then(|value| value.to_str().ok());
        self.lock().lost = named.map(str::to_owned);
    }

    /// True when nothing of `id` is left at the server.
    pub(super) fn is_lost(&self, id: Option<&str>) -> bool {
        id.is_some() && self.lock().lost.as_deref() == id
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
