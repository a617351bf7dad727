//! JSON-RPC lines over a child's stdin and stdout (the stdio transport of every protocol revision).
//!
//! Owns the framing and one writer task; `inbox` knows who waits. An upstream's noise, oversized or broken
//! lines cost at most their own call; only a dead pipe, a child that stops reading or an endless line end the session.

use std::{
    future::Future,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{JsonRpcMessage, ServerJsonRpcMessage},
    service::TxJsonRpcMessage,
    transport::Transport,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    MAX_FRAME,
    framing::{Frame, Framer, Limits},
    inbox::Inbox,
    stats::{CloseCause, TransportStats},
};
use crate::connector::log::Log;

/// How much of an oversized line is searched for its id.
const LIMITS: Limits = Limits {
    line: MAX_FRAME,
    head: 64 * 1024,
    tail: 4 * 1024,
};

/// How long the child may leave its input unread while something is to be written.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);

/// After its input broke, how long the child's last words are still read.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Messages that may wait for the child to read.
const QUEUED_MESSAGES: usize = 1024;

/// Bytes that may wait for the child to read; one message alone may be larger.
const QUEUED_BYTES: usize = 64 * 1024 * 1024;

/// Read at once.
const CHUNK: usize = 32 * 1024;

/// Why a message did not go out.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    #[error("the connection to the program is closed")]
    Closed,
    #[error("the program does not read its input: {QUEUED_MESSAGES} messages or more are waiting")]
    Backlog,
    #[error("the program did not read its input for {} s", WRITE_DEADLINE.as_secs())]
    NotReading,
    #[error("the program's input could not be written: {0}")]
    Write(Arc<io::Error>),
    #[error("the message could not be written as JSON: {0}")]
    Encode(#[from] serde_json::Error),
}

/// The SDK's transport over one child. Made within a Tokio runtime; dropping it closes the child's input.
pub struct StdioTransport<R> {
    stdout: R,
    chunk: Box<[u8]>,
    framer: Framer,
    inbox: Inbox,
    ended: bool,
    outgoing: Outgoing,
    writer: Option<JoinHandle<()>>,
    /// Cancelled when the child's input is beyond use.
    broken: CancellationToken,
    give_up_at: Option<Instant>,
    input_done: CancellationToken,
    _input_closer: DropGuard,
    stats: Arc<TransportStats>,
}

impl<R: AsyncRead + Send + Unpin + 'static> StdioTransport<R> {
    /// Speaks over the two pipes. `closing` (the child's) closes its input at once; noise goes to `log`.
    pub fn new<W>(stdin: W, stdout: R, closing: &CancellationToken, log: Log) -> (Self, Arc<TransportStats>)
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let stats = Arc::<TransportStats>::default();
        let input_done = closing.child_token();
        let broken = CancellationToken::new();
        let queued_bytes = Arc::<AtomicUsize>::default();
        let (sender, queue) = mpsc::channel(QUEUED_MESSAGES);
        let writer = Writer {
            stdin,
            queue,
            queued_bytes: queued_bytes.clone(),
            input_done: input_done.clone(),
            broken: broken.clone(),
            stats: stats.clone(),
        };
        let transport = Self {
            stdout,
            chunk: vec![0; CHUNK].into_boxed_slice(),
            framer: Framer::new(LIMITS),
            inbox: Inbox::new(stats.clone(), log, "[stdout]"),
            ended: false,
            outgoing: Outgoing { sender, queued_bytes },
            writer: Some(tokio::spawn(writer.run())),
            broken,
            give_up_at: None,
            _input_closer: input_done.clone().drop_guard(),
            input_done,
            stats: stats.clone(),
        };
        (transport, stats)
    }

    fn end(&mut self, cause: CloseCause) {
        self.stats.closed_by(cause);
        self.ended = true;
    }

    fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Line(line) => self.inbox.take(&line),
            Frame::TooLong { head } => self.inbox.begin_skipping(&head),
            Frame::SkippedEnd { tail } => self.inbox.end_skipping(&tail),
        }
    }

    /// True when a line has run on for too long.
    fn is_flooded(&self) -> bool {
        self.framer.skipped() > self.inbox.longest_skip()
    }

    /// One read; safe to drop at any await.
    async fn read_more(&mut self) {
        let patience = async {
            match self.give_up_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => self.broken.cancelled().await,
            }
        };
        tokio::select! {
            biased;
            read = self.stdout.read(&mut self.chunk) => match read {
                Ok(0) => {
                    if let Some(frame) = self.framer.finish() {
                        self.take(frame);
                    }
                    self.end(CloseCause::Ended);
                }
                Ok(n) => self.framer.push(&self.chunk[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.end(CloseCause::Read(error.to_string())),
            },
            () = patience => match self.give_up_at {
                Some(_) => self.end(CloseCause::Closed),
                None => self.give_up_at = Some(Instant::now() + LAST_WORDS),
            },
        }
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleClient> for StdioTransport<R> {
    type Error = StdioError;

    /// Queues the message at once, whole and in order, whether or not the future is awaited.
    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), StdioError>> + Send + 'static {
        self.inbox.note(&item);
        let queued = serde_json::to_vec(&item)
            .map_err(StdioError::from)
            .and_then(|line| self.outgoing.queue(line));
        if let (Err(_), JsonRpcMessage::Request(request)) = (&queued, &item) {
            self.inbox.unsent(&request.id);
        }
        async move {
            match queued {
                Ok(written) => written.await.unwrap_or(Err(StdioError::Closed)),
                Err(error) => Err(error),
            }
        }
    }

    /// Safe to drop at any time: what was read stays for the next call.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.inbox.next() {
                return Some(message);
            }
            if self.ended {
                return None;
            }
            if let Some(frame) = self.framer.next_frame() {
                self.take(frame);
            } else if self.is_flooded() {
                let bytes = self.framer.skipped();
                self.end(CloseCause::Flood { bytes });
            } else {
                self.read_more().await;
            }
        }
    }

    async fn close(&mut self) -> Result<(), StdioError> {
        self.end(CloseCause::Closed);
        self.input_done.cancel();
        if let Some(writer) = self.writer.take() {
            // It only fails by a panic, and then the pipe is closed as well.
            let _ = writer.await;
        }
        Ok(())
    }
}

type Written = oneshot::Receiver<Result<(), StdioError>>;

struct Line {
    bytes: Vec<u8>,
    written: oneshot::Sender<Result<(), StdioError>>,
}

struct Outgoing {
    sender: mpsc::Sender<Line>,
    queued_bytes: Arc<AtomicUsize>,
}

impl Outgoing {
    fn queue(&self, mut bytes: Vec<u8>) -> Result<Written, StdioError> {
        bytes.push(b'\n');
        let size = bytes.len();
        let before = self.queued_bytes.fetch_add(size, Ordering::Relaxed);
        let (written, receiver) = oneshot::channel();
        let queued = if before > 0 && before + size > QUEUED_BYTES {
            Err(StdioError::Backlog)
        } else {
            self.sender
                .try_send(Line { bytes, written })
                .map_err(|error| match error {
                    mpsc::error::TrySendError::Full(_) => StdioError::Backlog,
                    mpsc::error::TrySendError::Closed(_) => StdioError::Closed,
                })
        };
        if queued.is_err() {
            self.queued_bytes.fetch_sub(size, Ordering::Relaxed);
        }
        queued.map(|()| receiver)
    }
}

/// The only one that writes to the child.
struct Writer<W> {
    stdin: W,
    queue: mpsc::Receiver<Line>,
    queued_bytes: Arc<AtomicUsize>,
    input_done: CancellationToken,
    broken: CancellationToken,
    stats: Arc<TransportStats>,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Returning drops, and so closes, the child's input; messages still queued are refused.
    async fn run(mut self) {
        let input_done = self.input_done.clone();
        loop {
            let line = tokio::select! {
                biased;
                () = input_done.cancelled() => return,
                line = self.queue.recv() => match line {
                    Some(line) => line,
                    None => return,
                },
            };
            let result = tokio::select! {
                biased;
                () = input_done.cancelled() => Err(StdioError::Closed),
                result = write_all(&mut self.stdin, &line.bytes) => result,
            };
            self.queued_bytes.fetch_sub(line.bytes.len(), Ordering::Relaxed);
            let cause = match &result {
                Ok(()) => None,
                Err(StdioError::Write(error)) => Some(CloseCause::Write(error.to_string())),
                Err(StdioError::NotReading) => Some(CloseCause::NotReading {
                    seconds: WRITE_DEADLINE.as_secs(),
                }),
                Err(StdioError::Closed | StdioError::Backlog | StdioError::Encode(_)) => Some(CloseCause::Closed),
            };
            // Nobody may be waiting for it any more.
            let _ = line.written.send(result);
            if let Some(cause) = cause {
                self.stats.closed_by(cause);
                self.broken.cancel();
                return;
            }
        }
    }
}

/// Every piece that the child takes renews the deadline.
async fn write_all<W: AsyncWrite + Unpin>(stdin: &mut W, mut bytes: &[u8]) -> Result<(), StdioError> {
    let failed = |error: io::Error| StdioError::Write(Arc::new(error));
    while !bytes.is_empty() {
        let written = timeout(WRITE_DEADLINE, stdin.write(bytes))
            .await
            .map_err(|_elapsed| StdioError::NotReading)?
            .map_err(failed)?;
        if written == 0 {
            return Err(failed(io::ErrorKind::WriteZero.into()));
        }
        bytes = &bytes[written..];
    }
    timeout(WRITE_DEADLINE, stdin.flush())
        .await
        .map_err(|_elapsed| StdioError::NotReading)?
        .map_err(failed)
}

#[cfg(test)]
mod tests;
