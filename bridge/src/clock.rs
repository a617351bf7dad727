//! The wall clock, read in one place. Decisions get the time passed in.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix milliseconds.
pub fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
