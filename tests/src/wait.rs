//! Waiting for something to become true, with a deadline that names what was missing.

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

/// How long a test waits for what needs no work worth mentioning; generous, because two cores may run ten tests.
pub const SOON: Duration = Duration::from_secs(15);

/// How often the world is looked at while waiting.
const LOOK: Duration = Duration::from_millis(5);

/// Looks until `look` finds something.
///
/// # Panics
/// After `deadline`, naming `what` was waited for.
pub fn eventually<T>(what: &str, deadline: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < deadline, "after {deadline:?}: {what} did not happen");
        std::thread::sleep(LOOK);
    }
}

/// Looks until `look` gives `wanted`; on failure the last value seen is told.
///
/// # Panics
/// After `deadline`.
pub fn eventually_equals<T: PartialEq + Debug>(what: &str, wanted: T, deadline: Duration, mut look: impl FnMut() -> T) {
    let begin = Instant::now();
    loop {
        let seen = look();
        if seen == wanted {
            return;
        }
        assert!(
            begin.elapsed() < deadline,
            "after {deadline:?}: {what} is {seen:?} instead of {wanted:?}"
        );
        std::thread::sleep(LOOK);
    }
}
