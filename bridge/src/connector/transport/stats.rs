//! What a transport saw and why it ended, for the sentence a person reads.

use std::{
    fmt,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Shared by a transport and whoever wants to know about it.
#[derive(Debug, Default)]
pub struct TransportStats {
    pub(super) noise: AtomicU64,
    pub(super) stray: AtomicU64,
    pub(super) ambiguous: AtomicU64,
    pub(super) unaddressed: AtomicU64,
    pub(super) oversized: AtomicU64,
    pub(super) broken: AtomicU64,
    cause: OnceLock<CloseCause>,
}

/// Messages that were not passed on, since the transport began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines that were no JSON-RPC.
    pub noise: u64,
    /// Answers to nothing that waits: unknown, repeated, or late.
    pub stray: u64,
    /// Answers with both a result and an error.
    pub ambiguous: u64,
    /// Errors without an id while not exactly one request waited.
    pub unaddressed: u64,
    /// Lines over the size bound.
    pub oversized: u64,
    /// Unreadable answers whose call could be told and was failed.
    pub broken: u64,
}

/// Why a transport ended. `Display` is half a sentence: "the program …".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseCause {
    /// The upstream closed its output, mostly by exiting.
    Ended,
    /// We closed it.
    Closed,
    /// It did not read its input for the named time.
    NotReading { seconds: u64 },
    /// Its input could not be written.
    Write(String),
    /// Its output could not be read.
    Read(String),
    /// It wrote this many bytes without a line end.
    Flood { bytes: u64 },
}

impl fmt::Display for CloseCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the program closed its output"),
            Self::Closed => f.write_str("the connection was closed"),
            Self::NotReading { seconds } => write!(f, "the program did not read its input for {seconds} s"),
            Self::Write(why) => write!(f, "the program's input could not be written: {why}"),
            Self::Read(why) => write!(f, "the program's output could not be read: {why}"),
            Self::Flood { bytes } => {
                write!(
                    f,
                    "the program wrote {} MiB to its output without a line end",
                    bytes >> 20
                )
            }
        }
    }
}

impl Counts {
    /// What was passed over, as the end of a sentence about a session; `None` when that was nothing.
    pub fn sentence(&self) -> Option<String> {
        let parts: Vec<String> = [
            (self.noise, "lines that were no messages"),
            (self.stray, "answers to nothing that waited"),
            (self.ambiguous, "answers with both a result and an error"),
            (self.unaddressed, "errors that named no request"),
            (self.oversized, "lines over the size bound"),
            (self.broken, "answers that could not be read"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        (!parts.is_empty()).then(|| format!("had {}", parts.join(", ")))
    }
}

impl TransportStats {
    /// The present counts.
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            noise: read(&self.noise),
            stray: read(&self.stray),
            ambiguous: read(&self.ambiguous),
            unaddressed: read(&self.unaddressed),
            oversized: read(&self.oversized),
            broken: read(&self.broken),
        }
    }

    /// Why the transport ended; `None` while it lives.
    pub fn close_cause(&self) -> Option<CloseCause> {
        self.cause.get().cloned()
    }

    /// The first cause stays; what follows are its consequences.
    pub(super) fn closed_by(&self, cause: CloseCause) {
        let _ = self.cause.set(cause);
    }
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
