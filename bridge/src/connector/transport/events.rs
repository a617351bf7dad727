//! Server-sent events out of bytes, none larger than a bound.

use bytes::Bytes;
use futures::{Stream, StreamExt};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};

/// Why there is no next event.
pub(super) enum EventError {
    TooLarge(usize),
    Stream(SseError),
}

#[derive(Debug, thiserror::Error)]
enum BytesError {
    #[error("an event is larger than {0} bytes")]
    TooLarge(usize),
    #[error(transparent)]
    Http(#[from] reqwest::Error),
}

/// Splits bytes into events while no event grows past `limit`. After an event that is too large the stream ends.
pub(super) fn read_events(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    limit: usize,
) -> impl Stream<Item = Result<Sse, EventError>> + Send + 'static {
    let bounded = bytes.scan(EventMeter::new(limit), move |meter, chunk| {
        let out = match chunk {
            _ if meter.over => None,
            Ok(chunk) if meter.take(&chunk) => Some(Ok(chunk)),
            Ok(_) => Some(Err(BytesError::TooLarge(limit))),
            Err(error) => Some(Err(BytesError::Http(error.without_url()))),
        };
        std::future::ready(out)
    });
    SseStream::from_bytes_stream(Box::pin(bounded)).map(|event| {
        event.map_err(|error| match error {
            SseError::Body(inner) => match inner.downcast_ref::<BytesError>() {
                Some(BytesError::TooLarge(limit)) => EventError::TooLarge(*limit),
                Some(BytesError::Http(_)) | None => EventError::Stream(SseError::Body(inner)),
            },
            other => EventError::Stream(other),
        })
    })
}

/// Counts the bytes of the event under way; an empty line ends it.
struct EventMeter {
    limit: usize,
    size: usize,
    line_is_empty: bool,
    over: bool,
}

impl EventMeter {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            size: 0,
            line_is_empty: true,
            over: false,
        }
    }

    /// False once the event under way is larger than the limit.
    fn take(&mut self, chunk: &[u8]) -> bool {
        for byte in chunk {
            match byte {
                b'\n' if self.line_is_empty => self.size = 0,
                b'\n' => self.line_is_empty = true,
                b'\r' => {}
                _ => self.line_is_empty = false,
            }
            self.size += 1;
            if self.size > self.limit {
                self.over = true;
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_measured_up_to_its_empty_line() {
        let mut meter = EventMeter::new(12);
        assert!(meter.take(b"data: 12\n\n"));
        assert!(meter.take(b"data: 34\r\n\r\n"));
        assert!(!meter.take(b"data: 567890123"));
    }
}
