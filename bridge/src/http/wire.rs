//! The byte stream under one connection, as hyper sees it.
//!
//! Three things hyper does not do: a client that stops reading is dropped after a while, hyper's bare refusals of
//! unreadable heads leave in the shape of this API, and the head of the present request can be read as it came in.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use http::StatusCode;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    time::Sleep,
};

use super::respond;
use crate::error::{ApiError, Code};

/// The longest head, in bytes: request line and headers together.
pub(super) const LONGEST_HEAD: usize = 16 * 1024;

/// What the stream and the service of one connection tell each other.
#[derive(Default)]
pub(super) struct Exchange {
    /// A request was read and its answer is not out yet.
    busy: AtomicBool,
    /// The answer may go out while the client still sends, so the connection must not be cut off at once.
    refused: AtomicBool,
    /// What came in since the last answer was out; at most [`LONGEST_HEAD`].
    head: Mutex<Vec<u8>>,
}

impl Exchange {
    /// A request was read: takes the bytes it was read from (and perhaps the beginning of its body).
    pub(super) fn begin(&self) -> Vec<u8> {
        self.busy.store(true, Ordering::Relaxed);
        std::mem::take(&mut *self.head.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Its answer is out. Gives the buffer back for the next one.
    pub(super) fn end(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// The request was answered without reading all of it.
    pub(super) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    fn record(&self, bytes: &[u8]) {
        if self.busy.load(Ordering::Relaxed) {
            return;
        }
        let mut head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        let room = LONGEST_HEAD.saturating_sub(head.len());
        head.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }
}

/// The stream of one client.
pub(super) struct Wire<S> {
    stream: S,
    exchange: Arc<Exchange>,
    /// How long a client may leave an answer unread.
    stall_timeout: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    /// Our answer in place of a bare one, and how much of it is out.
    replacement: Vec<u8>,
    written: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    pub(super) fn new(stream: S, exchange: Arc<Exchange>, stall_timeout: Duration) -> Self {
        Self {
            stream,
            exchange,
            stall_timeout,
            stalled: None,
            replacement: Vec::new(),
            written: 0,
        }
    }

    /// Ends the connection so that the client can still read the last answer: the system throws an answer away when the
    /// socket is closed over unread input.
    pub(super) async fn close(mut self, patience: Duration) {
        let _ = self.shutdown().await;
        if !self.exchange.refused.load(Ordering::Relaxed) {
            return;
        }
        let drain = async {
            let mut left = 8 * 1024 * 1024_usize;
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(count @ 1..) = self.stream.read(&mut buffer).await {
                left = left.saturating_sub(count);
                if left == 0 {
                    break;
                }
            }
        };
        // Either way the socket closes now.
        let _ = tokio::time::timeout(patience, drain).await;
    }

    /// Passes a write's outcome on, with an end to waiting for a client that does not read.
    fn bound<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let timeout = self.stall_timeout;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_replacement(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest @ [_, ..]) = self.replacement.get(self.written..) {
            let outcome = Pin::new(&mut self.stream).poll_write(cx, rest);
            match ready!(self.bound(cx, outcome))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.exchange.record(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let ours = match bare_refusal(bytes) {
            Some((0, status)) => {
                self.exchange.refuse();
                self.replacement = respond::refusal_bytes(status, &unreadable(status));
                self.written = 0;
                return Poll::Ready(Ok(bytes.len()));
            }
            Some((start, _)) => bytes.get(..start).unwrap_or(bytes),
            None => bytes,
        };
        let outcome = Pin::new(&mut self.stream).poll_write(cx, ours);
        self.bound(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if parts.iter().any(|part| bare_refusal(part).is_some()) {
            let first = parts.iter().find(|part| !part.is_empty());
            return self.poll_write(cx, first.map_or(&[], |part| part));
        }
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.bound(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Where hyper's own answer to an unreadable head starts, if these bytes end with one. Nothing of ours looks like it:
/// our refusals have a body, and JSON holds no raw line ends.
fn bare_refusal(bytes: &[u8]) -> Option<(usize, StatusCode)> {
    let head = bytes.strip_suffix(b"\r\n\r\n")?;
    let start = head.windows(10).rposition(|window| window == b"HTTP/1.1 4")?;
    let text = std::str::from_utf8(head.get(start..)?).ok()?;
    let mut lines = text.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    lines
        .any(|line| line.eq_ignore_ascii_case("content-length: 0"))
        .then_some((start, status))
}

fn unreadable(status: StatusCode) -> ApiError {
    match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE | StatusCode::URI_TOO_LONG => ApiError::new(
            Code::TooLarge,
            format!(
                "The request's headers are more than the {} KiB or 64 lines allowed.",
                LONGEST_HEAD / 1024
            ),
        ),
        _ => ApiError::bad_request("The request is not readable as HTTP/1.1."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\ndate: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n";

    fn wire(stream: tokio::io::DuplexStream) -> Wire<tokio::io::DuplexStream> {
        Wire::new(stream, Arc::default(), Duration::from_secs(30))
    }

    #[tokio::test]
    async fn a_bare_refusal_leaves_in_our_shape_also_behind_an_earlier_answer() {
        let earlier = b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"ok\":true}";
        for before in [&b""[..], earlier] {
            let (mut client, server) = tokio::io::duplex(4096);
            let mut wire = wire(server);
            wire.write_all(&[before, BARE].concat()).await.unwrap();
            wire.flush().await.unwrap();
            wire.close(Duration::ZERO).await;
            let mut text = Vec::new();
            client.read_to_end(&mut text).await.unwrap();
            let text = String::from_utf8(text).unwrap();
            let answer = text.strip_prefix(std::str::from_utf8(before).unwrap()).unwrap();
            assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
            assert!(answer.contains("\"code\":\"bad_request\""), "{answer}");
            assert_eq!(answer.matches("HTTP/1.1 4").count(), 1, "{answer}");
        }
    }

    #[test]
    fn nothing_of_ours_is_taken_for_a_bare_refusal() {
        for ours in [
            &b"HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\n\r\n"[..],
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 61\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            b"data: x\n\n",
            b"\r\n\r\n",
            b"",
        ] {
            assert_eq!(bare_refusal(ours), None, "{:?}", String::from_utf8_lossy(ours));
        }
        assert_eq!(bare_refusal(BARE), Some((0, StatusCode::BAD_REQUEST)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stops_reading_is_dropped_and_a_slow_one_is_not() {
        let (mut client, server) = tokio::io::duplex(4);
        let mut wire = wire(server);
        let mut buffer = [0; 4];
        for _ in 0..4 {
            wire.write_all(b"four").await.unwrap();
            let (written, ()) = tokio::join!(wire.write_all(b"more"), async {
                tokio::time::sleep(Duration::from_secs(29)).await;
                client.read_exact(&mut buffer).await.unwrap();
            });
            written.unwrap();
            client.read_exact(&mut buffer).await.unwrap();
        }
        wire.write_all(b"four").await.unwrap();
        let started = tokio::time::Instant::now();
        let error = wire.write_all(b"more").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed().as_secs(), 30);
    }

    #[test]
    fn the_recorded_head_is_bounded_and_starts_after_the_last_answer() {
        let exchange = Exchange::default();
        exchange.record(b"GET /a");
        assert_eq!(exchange.begin(), b"GET /a");
        exchange.record(b"body or a request sent ahead");
        exchange.end();
        exchange.record(b"GET /b");
        exchange.record(&vec![b'x'; 2 * LONGEST_HEAD]);
        let head = exchange.begin();
        assert!(head.starts_with(b"GET /bxxx"));
        assert_eq!(head.len(), LONGEST_HEAD);
    }
}
