//! JSON-RPC lines over a child's stdin and stdout (the stdio transport of every protocol revision).
//!
//! Owns the framing, the answers that are waited for, and one writer task. An upstream's noise, oversized or broken
//! lines cost at most their own call; only a dead pipe, a child that stops reading or an endless line end the session.

use std::{
    collections::VecDeque,
    future::Future,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use indexmap::IndexMap;
use rmcp::{
    RoleClient,
    model::{ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
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
    MAX_FRAME, Method,
    carrier::{self, Opened},
    framing::{Frame, Framer, Limits},
    peek,
    stats::{CloseCause, TransportStats, count},
};
use crate::connector::log::Log;

/// How much of an oversized line is searched for its id.
const LIMITS: Limits = Limits {
    line: MAX_FRAME,
    head: 64 * 1024,
    tail: 4 * 1024,
};

/// A line that is no message may run on for this long before the program is given up.
const MAX_NOISE: u64 = 64 * 1024 * 1024;

/// A line that began as a message may run on for this long: it costs its call, not the session.
const MAX_SKIPPED: u64 = 1024 * 1024 * 1024;

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
    skipped: Skipped,
    ready: VecDeque<ServerJsonRpcMessage>,
    ended: bool,
    waiting: Waiting,
    outgoing: Outgoing,
    writer: Option<JoinHandle<()>>,
    /// Cancelled when the child's input is beyond use.
    broken: CancellationToken,
    give_up_at: Option<Instant>,
    input_done: CancellationToken,
    _input_closer: DropGuard,
    stats: Arc<TransportStats>,
    log: Log,
}

/// What is known about the oversized line that is being skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skipped {
    /// Its call is failed already, or it is nobody's answer.
    Settled,
    /// It began as a message; whose it is may show at its end.
    Unknown,
    /// It is no message.
    Noise,
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
            skipped: Skipped::Settled,
            ready: VecDeque::new(),
            ended: false,
            waiting: Waiting::default(),
            outgoing: Outgoing { sender, queued_bytes },
            writer: Some(tokio::spawn(writer.run())),
            broken,
            give_up_at: None,
            _input_closer: input_done.clone().drop_guard(),
            input_done,
            stats: stats.clone(),
            log,
        };
        (transport, stats)
    }

    fn end(&mut self, cause: CloseCause) {
        self.stats.closed_by(cause);
        self.ended = true;
    }

    fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Line(line) => self.take_line(&line),
            Frame::TooLong { head } => {
                count(&self.stats.oversized);
                self.skipped = self.begin_skipping(&head);
            }
            Frame::SkippedEnd { tail } => {
                if self.skipped == Skipped::Unknown {
                    let id = peek::tail(&tail).and_then(|id| self.waiting.answered(&id));
                    if let Some(id) = id.or_else(|| self.waiting.oldest()) {
                        self.fail_oversized(id);
                    }
                }
                self.skipped = Skipped::Settled;
            }
        }
    }

    fn begin_skipping(&mut self, head: &[u8]) -> Skipped {
        let seen = peek::head(head);
        if !seen.json {
            self.noise(head);
            return Skipped::Noise;
        }
        if seen.method {
            self.log
                .line("[stdout] a message of the program over 16 MiB was skipped");
            return Skipped::Settled;
        }
        let Some(id) = seen.id else {
            return Skipped::Unknown;
        };
        match self.waiting.answered(&id) {
            Some(id) => self.fail_oversized(id),
            None => count(&self.stats.stray),
        }
        Skipped::Settled
    }

    fn fail_oversized(&mut self, id: RequestId) {
        self.waiting.forget(&id);
        self.log
            .line("[stdout] an answer over 16 MiB was skipped, its call failed");
        let error = carrier::frame_too_large(MAX_FRAME);
        self.ready.push_back(ServerJsonRpcMessage::error(error, Some(id)));
    }

    fn take_line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0' || c == '\u{feff}');
        if text.is_empty() {
            return;
        }
        for message in carrier::messages(text) {
            self.take_message(message);
        }
    }

    fn take_message(&mut self, message: &str) {
        match carrier::open(message) {
            Opened::Call(call) => self.ready.push_back(*call),
            Opened::Response { id, result } => match self.settle(&id) {
                Some((id, method)) => self.ready.push_back(carrier::carry(method, id, result)),
                None => count(&self.stats.stray),
            },
            Opened::Error { id: Some(id), error } => match self.settle(&id) {
                Some((id, _)) => self.ready.push_back(ServerJsonRpcMessage::error(error, Some(id))),
                None => count(&self.stats.stray),
            },
            Opened::Error { id: None, error } => match self.waiting.only() {
                Some(id) => {
                    self.waiting.forget(&id);
                    self.ready.push_back(ServerJsonRpcMessage::error(error, Some(id)));
                }
                None => {
                    count(&self.stats.unaddressed);
                    self.log.line(&format!("[stdout] {}", error.message));
                }
            },
            Opened::Ambiguous => {
                count(&self.stats.ambiguous);
                self.log
                    .line("[stdout] an answer with both a result and an error was dropped");
            }
            Opened::Noise => self.take_noise(message),
        }
    }

    /// A broken answer would leave its caller waiting for nothing, so one whose call can be told fails it.
    fn take_noise(&mut self, message: &str) {
        let head = peek::head(message.as_bytes());
        let owner = head.id.filter(|_| head.jsonrpc && !head.method);
        match owner.and_then(|id| self.settle(&id)) {
            Some((id, _)) => {
                count(&self.stats.broken);
                let error = carrier::broken_answer("it is not valid JSON");
                self.ready.push_back(ServerJsonRpcMessage::error(error, Some(id)));
                self.log.line(&format!("[stdout] {message}"));
            }
            None => self.noise(message.as_bytes()),
        }
    }

    fn noise(&self, bytes: &[u8]) {
        count(&self.stats.noise);
        self.log.line(&format!("[stdout] {}", String::from_utf8_lossy(bytes)));
    }

    fn settle(&mut self, id: &RequestId) -> Option<(RequestId, Method)> {
        let id = self.waiting.answered(id)?;
        let method = self.waiting.forget(&id)?;
        Some((id, method))
    }

    /// True when a line has run on for too long.
    fn is_flooded(&self) -> bool {
        let bound = match self.skipped {
            Skipped::Noise => MAX_NOISE,
            Skipped::Settled | Skipped::Unknown => MAX_SKIPPED,
        };
        self.framer.skipped() > bound
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
        self.waiting.note(&item);
        let queued = serde_json::to_vec(&item)
            .map_err(StdioError::from)
            .and_then(|line| self.outgoing.queue(line));
        if let (Err(_), JsonRpcMessage::Request(request)) = (&queued, &item) {
            self.waiting.forget(&request.id);
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
            if let Some(message) = self.ready.pop_front() {
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

/// The requests that the upstream owes an answer.
#[derive(Debug, Default)]
struct Waiting {
    /// Oldest first.
    calls: IndexMap<RequestId, Method>,
    /// Open subscriptions: answered when they end, so never the one that an unnamed failure means.
    subscriptions: IndexMap<RequestId, Method>,
}

impl Waiting {
    fn note(&mut self, item: &TxJsonRpcMessage<RoleClient>) {
        match item {
            JsonRpcMessage::Request(request) => {
                let method = request.request.method();
                if method == "initialize" {
                    // The SDK gave up its probe; a late answer to it would break the handshake.
                    self.calls.clear();
                }
                let list = match method {
                    "subscriptions/listen" => &mut self.subscriptions,
                    _ => &mut self.calls,
                };
                list.insert(request.id.clone(), Method::of(method));
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.forget(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// Our id for an upstream's spelling of it, if it waits. Some answer `"5"` to `5`.
    fn answered(&self, id: &RequestId) -> Option<RequestId> {
        let known = |id: &RequestId| self.calls.contains_key(id) || self.subscriptions.contains_key(id);
        if known(id) {
            return Some(id.clone());
        }
        let RequestId::String(text) = id else {
            return None;
        };
        let number = RequestId::Number(text.parse().ok()?);
        known(&number).then_some(number)
    }

    fn forget(&mut self, id: &RequestId) -> Option<Method> {
        self.calls
            .shift_remove(id)
            .or_else(|| self.subscriptions.shift_remove(id))
    }

    fn oldest(&self) -> Option<RequestId> {
        self.calls.keys().next().cloned()
    }

    fn only(&self) -> Option<RequestId> {
        (self.calls.len() == 1).then(|| self.oldest()).flatten()
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
