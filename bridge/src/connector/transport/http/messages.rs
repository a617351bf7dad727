//! Which method each open request used, and an event's data as the SDK is to read it.
//!
//! Results travel raw (see `carrier`), batches one message at a time; what cannot be read fails the request that waits.

use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};

use super::super::{
    Method, SESSION_NOT_FOUND,
    carrier::{self, Opened},
    peek,
};

/// Requests that may be open at once as far as is remembered here; only a server that never answers reaches it.
const REMEMBERED: usize = 4096;

/// The requests of one transport that are not answered yet.
#[derive(Default)]
pub(super) struct Messages {
    methods: Mutex<IndexMap<RequestId, Method>>,
}

/// An event's data, rewritten.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rewritten {
    /// One JSON text per message.
    pub texts: Vec<String>,
    /// The awaited request has its answer.
    pub answered: bool,
    /// The answer says that the server does not know our session.
    pub session_gone: bool,
}

impl Messages {
    /// A message goes out; the request that it is, if it is one.
    pub(super) fn remember(&self, message: &ClientJsonRpcMessage) -> Option<(RequestId, Method)> {
        match message {
            JsonRpcMessage::Request(request) => {
                let method = Method::of(request.request.method());
                let mut methods = self.lock();
                if methods.len() >= REMEMBERED {
                    methods.shift_remove_index(0);
                }
                methods.insert(request.id.clone(), method);
                Some((request.id.clone(), method))
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.forget(id);
                }
                None
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
        }
    }

    /// The request is over; how its answer travels, if it was open.
    pub(super) fn forget(&self, id: &RequestId) -> Option<Method> {
        self.lock().shift_remove(id)
    }

    /// Rewrites what one event carries, on a stream that answers `awaited` or on one that answers nobody in particular.
    pub(super) fn rewrite(&self, awaited: Option<&RequestId>, data: &str) -> Rewritten {
        let mut rewritten = Rewritten::default();
        if data.trim().is_empty() {
            return rewritten;
        }
        for message in carrier::messages(data) {
            self.rewrite_one(awaited, message, &mut rewritten);
        }
        rewritten
    }

    /// The error answer for a request whose answer was too large to be taken, told by an end of its text.
    pub(super) fn too_large(&self, end: End<'_>, limit: usize) -> Option<String> {
        let id = match end {
            End::Head(bytes) => {
                let head = peek::head(bytes);
                head.id.filter(|_| !head.method)
            }
            End::Tail(bytes) => peek::tail(bytes),
        }?;
        self.forget(&id)?;
        Some(too_large(id, limit))
    }

    fn rewrite_one(&self, awaited: Option<&RequestId>, message: &str, to: &mut Rewritten) {
        let mut opened = carrier::open(message);
        let method = match &mut opened {
            Opened::Response { id, .. } => {
                to.answered |= awaited.is_some_and(|awaited| is_same(awaited, id));
                self.forget(id)
                    .or_else(|| awaited.filter(|own| is_same(own, id)).and_then(|own| self.forget(own)))
            }
            Opened::Error { id: Some(id), error } => {
                to.answered |= awaited.is_some_and(|awaited| is_same(awaited, id));
                to.session_gone |= is_session_unknown(error);
                self.forget(id)
            }
            Opened::Error { id: whose, error } => {
                to.session_gone |= is_session_unknown(error);
                let Some(id) = awaited else { return };
                to.answered = true;
                *whose = Some(id.clone());
                self.forget(id)
            }
            Opened::Call(_) | Opened::Ambiguous | Opened::Noise => None,
        };
        match (opened.carried(method.unwrap_or(Method::Typed)), awaited) {
            (Ok(message), _) => to.texts.push(text_of(&message)),
            (Err(why), Some(id)) => {
                self.forget(id);
                to.answered = true;
                to.texts.push(text_of(&unreadable(id.clone(), &why.to_string())));
            }
            // Nobody in particular waits for it.
            (Err(_), None) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, IndexMap<RequestId, Method>> {
        self.methods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which end of a message is known.
pub(super) enum End<'a> {
    Head(&'a [u8]),
    Tail(&'a [u8]),
}

/// True when an error answer says that the server knows no such session.
pub(super) fn is_session_unknown(error: &ErrorData) -> bool {
    error.code.0 == SESSION_NOT_FOUND && names_session(error)
}

/// True when an error's words are about a session.
pub(super) fn names_session(error: &ErrorData) -> bool {
    error.message.to_ascii_lowercase().contains("session")
}

pub(super) fn text_of(message: &ServerJsonRpcMessage) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

pub(super) fn unreadable(id: RequestId, why: &str) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(carrier::broken_answer(why), Some(id))
}

/// The error answer, as text, for a request whose answer is over `limit` bytes.
pub(super) fn too_large(id: RequestId, limit: usize) -> String {
    text_of(&ServerJsonRpcMessage::error(carrier::frame_too_large(limit), Some(id)))
}

/// Some servers answer `"5"` to `5`.
fn is_same(ours: &RequestId, theirs: &RequestId) -> bool {
    match (ours, theirs) {
        (RequestId::Number(number), RequestId::String(text)) => text.parse() == Ok(*number),
        (RequestId::Number(_) | RequestId::String(_), _) => ours == theirs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(ids: &[i64]) -> Messages {
        let messages = Messages::default();
        for id in ids {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x"}}}}"#);
            messages.remember(&serde_json::from_str(&text).unwrap());
        }
        messages
    }

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    #[test]
    fn a_batch_becomes_one_text_for_each_message() {
        let messages = waiting(&[1, 2]);
        let batch = r#"[{"jsonrpc":"2.0","method":"notifications/tools/list_changed"},{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":"1","result":{"n":1.10}}]"#;
        let rewritten = messages.rewrite(Some(&id(1)), batch);
        assert_eq!((rewritten.texts.len(), rewritten.answered), (3, true));
        let answer: ServerJsonRpcMessage = serde_json::from_str(&rewritten.texts[2]).unwrap();
        let raw = carrier::raw_of(answer.into_response().unwrap().0);
        assert_eq!(
            raw.as_deref(),
            Some(r#"{"n":1.10}"#),
            "also under a number spelt as text"
        );
    }

    #[test]
    fn what_cannot_be_read_fails_whoever_waits_on_that_stream_and_nobody_else() {
        for data in [
            "{\"id\":",
            r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#,
            r#"{"id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
        ] {
            let rewritten = waiting(&[1]).rewrite(Some(&id(1)), data);
            assert!(rewritten.answered, "{data}");
            let answer: ServerJsonRpcMessage = serde_json::from_str(&rewritten.texts[0]).unwrap();
            assert_eq!(answer.into_error().unwrap().1, Some(id(1)), "{data}");
            assert_eq!(waiting(&[1]).rewrite(None, data), Rewritten::default(), "{data}");
        }
    }

    #[test]
    fn only_an_error_that_speaks_of_a_session_with_that_code_ends_it() {
        let gone = |code: i32, message: &str| {
            let data = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"{message}"}}}}"#);
            waiting(&[1]).rewrite(Some(&id(1)), &data).session_gone
        };
        assert!(gone(-32001, "Session not found"));
        assert!(!gone(-32001, "Request timed out"));
        assert!(!gone(-32602, "No such session"));
    }

    #[test]
    fn an_oversized_answer_is_told_to_the_request_whose_id_shows() {
        let messages = waiting(&[1, 2]);
        assert!(messages.too_large(End::Head(br#"{"id":1,"result":{"te"#), 1).is_some());
        assert!(messages.too_large(End::Head(br#"{"id":1,"result":{"te"#), 1).is_none());
        assert!(messages.too_large(End::Tail(br#"xx"},"id":2}"#), 1).is_some());
        assert!(
            messages
                .too_large(End::Head(br#"{"id":7,"method":"ping","#), 1)
                .is_none()
        );
    }
}
