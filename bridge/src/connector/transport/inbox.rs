//! Sorts what an upstream says: answers to whoever waits, its own calls, and what belongs to nobody.
//!
//! Owns the requests that are owed an answer. A broken or oversized answer costs its own call and nothing else; nothing
//! here reads or writes a connection.

use std::{collections::VecDeque, sync::Arc};

use indexmap::IndexMap;
use rmcp::{
    RoleClient,
    model::{ClientNotification, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage},
    service::TxJsonRpcMessage,
};

use super::{
    MAX_FRAME, Method,
    carrier::{self, Opened},
    peek,
    stats::{TransportStats, count},
};
use crate::connector::log::Log;

/// What is no message may run on for this long before the upstream is given up.
pub(super) const MAX_NOISE: u64 = 64 * 1024 * 1024;

/// What began as a message may run on for this long: it costs its call, not the session.
const MAX_SKIPPED: u64 = 1024 * 1024 * 1024;

/// What arrived over one connection, and who waits for it.
pub(super) struct Inbox {
    waiting: Waiting,
    ready: VecDeque<ServerJsonRpcMessage>,
    skipped: Skipped,
    stats: Arc<TransportStats>,
    log: Log,
    /// What lines about it begin with in the log.
    label: &'static str,
}

/// What is known about the oversized message that is being skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skipped {
    /// Its call is failed already, or it is nobody's answer.
    Settled,
    /// It began as a message; whose it is may show at its end.
    Unknown,
    /// It is no message.
    Noise,
}

impl Inbox {
    pub(super) fn new(stats: Arc<TransportStats>, log: Log, label: &'static str) -> Self {
        Self {
            waiting: Waiting::default(),
            ready: VecDeque::new(),
            skipped: Skipped::Settled,
            stats,
            log,
            label,
        }
    }

    /// A message goes out: its answer is waited for.
    pub(super) fn note(&mut self, item: &TxJsonRpcMessage<RoleClient>) {
        self.waiting.note(item);
    }

    /// The request did not go out after all.
    pub(super) fn unsent(&mut self, id: &RequestId) {
        self.waiting.forget(id);
    }

    /// The request was turned away, which is its answer.
    pub(super) fn refused(&mut self, id: &RequestId, error: ErrorData) {
        if let Some((id, _)) = self.settle(id) {
            self.ready.push_back(ServerJsonRpcMessage::error(error, Some(id)));
        }
    }

    /// True while the request's answer is waited for.
    pub(super) fn awaits(&self, id: &RequestId) -> bool {
        self.waiting.answered(id).is_some()
    }

    /// The next message for the SDK.
    pub(super) fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        self.ready.pop_front()
    }

    /// Takes one message or a batch, as it came.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0' || c == '\u{feff}');
        if text.is_empty() {
            return;
        }
        for message in carrier::messages(text) {
            self.take_message(message);
        }
    }

    /// A message turned out too long; `head` is its beginning.
    pub(super) fn begin_skipping(&mut self, head: &[u8]) {
        count(&self.stats.oversized);
        self.skipped = self.whose(head);
    }

    /// The message that was too long is over; `tail` is its end.
    pub(super) fn end_skipping(&mut self, tail: &[u8]) {
        if self.skipped == Skipped::Unknown {
            let id = peek::tail(tail).and_then(|id| self.waiting.answered(&id));
            if let Some(id) = id.or_else(|| self.waiting.oldest()) {
                self.fail_oversized(id);
            }
        }
        self.skipped = Skipped::Settled;
    }

    /// How many bytes of the message under way may be skipped before its sender is given up.
    pub(super) fn longest_skip(&self) -> u64 {
        match self.skipped {
            Skipped::Noise => MAX_NOISE,
            Skipped::Settled | Skipped::Unknown => MAX_SKIPPED,
        }
    }

    fn whose(&mut self, head: &[u8]) -> Skipped {
        let seen = peek::head(head);
        if !seen.json {
            self.noise(head);
            return Skipped::Noise;
        }
        if seen.method {
            self.note_line("a message over 16 MiB was skipped");
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
        self.note_line("an answer over 16 MiB was skipped, its call failed");
        let error = carrier::frame_too_large(MAX_FRAME);
        self.ready.push_back(ServerJsonRpcMessage::error(error, Some(id)));
    }

    fn note_line(&self, text: &str) {
        self.log.line(&format!("{} {text}", self.label));
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
                    self.note_line(&error.message);
                }
            },
            Opened::Ambiguous => {
                count(&self.stats.ambiguous);
                self.note_line("an answer with both a result and an error was dropped");
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
                self.note_line(message);
            }
            None => self.noise(message.as_bytes()),
        }
    }

    fn noise(&self, bytes: &[u8]) {
        count(&self.stats.noise);
        self.note_line(&String::from_utf8_lossy(bytes));
    }

    fn settle(&mut self, id: &RequestId) -> Option<(RequestId, Method)> {
        let id = self.waiting.answered(id)?;
        let method = self.waiting.forget(&id)?;
        Some((id, method))
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
