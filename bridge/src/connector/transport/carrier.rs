//! How raw results travel through the SDK's typed service layer.
//!
//! The SDK's result types drop members they do not know, and one bad tool spoils a whole list. So a transport
//! replaces the results that the bridge must see verbatim before the SDK parses them, and the reader takes the
//! original text out again with [`raw_of`]. Pure: text in, messages out.

use std::borrow::Cow;

use rmcp::model::{
    CustomResult, ErrorCode, ErrorData, ListToolsResult, MetaObject, RequestId, ResultType, ServerJsonRpcMessage,
    ServerNotification, ServerRequest, ServerResult, Tool,
};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};

use super::{BROKEN_ANSWER, FRAME_TOO_LARGE};
use crate::tools::open::has_reserved_name;

/// What `elicitation/create` is called on its way through the SDK, whose types of a form drop members and refuse some forms
/// whole.
pub const ELICITATION: &str = "ai.neuron.connect/elicitation";

/// Member of `_meta` in a carried tool list: the JSON text of the whole original `result`.
pub const RAW_META_KEY: &str = "ai.neuron.connect/raw";

/// How the answer to a request is carried, decided by the request's method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `tools/list`: typed with every tool the SDK can read (its HTTP worker learns header schemas from them), the
    /// original text in `_meta` under [`RAW_META_KEY`].
    ToolsList,
    /// Other lists, calls and reads: the original text as a string in `ServerResult::CustomResult`.
    Raw,
    /// Everything else: as the SDK parses it.
    Typed,
}

impl Method {
    /// The carriage of a request method's answer.
    pub fn of(method: &str) -> Self {
        match method {
            "tools/list" => Self::ToolsList,
            "resources/list"
            | "resources/templates/list"
            | "prompts/list"
            | "tools/call"
            | "resources/read"
            | "prompts/get" => Self::Raw,
            _ => Self::Typed,
        }
    }
}

/// The JSON text of a `result` that [`decode`] or [`carry`] replaced, exactly as the upstream wrote it;
/// `None` for one that travelled typed.
///
/// Ask only for answers whose request's [`Method`] is not `Typed`: a typed result that is a bare JSON string looks the same.
pub fn raw_of(result: ServerResult) -> Option<String> {
    match result {
        ServerResult::CustomResult(CustomResult(Value::String(text))) => Some(text),
        ServerResult::ListToolsResult(list) => match list.meta?.0.swap_remove(RAW_META_KEY)? {
            Value::String(text) => Some(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        },
        _ => None,
    }
}

/// What one JSON text is. Borrows the text, so that results stay verbatim.
#[derive(Debug)]
pub enum Opened<'a> {
    /// An answer, its result unread.
    Response { id: RequestId, result: &'a RawValue },
    /// An error answer; without an id when the upstream could not tell which request it means.
    Error { id: Option<RequestId>, error: ErrorData },
    /// A request or notification of the upstream.
    Call(Box<ServerJsonRpcMessage>),
    /// Both `result` and `error`: belongs to nobody.
    Ambiguous,
    /// Not JSON, or JSON that is no JSON-RPC message.
    Noise,
}

/// Why a text is no message for the SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("it holds both a result and an error")]
    Ambiguous,
    #[error("it is no JSON-RPC message")]
    Noise,
}

/// The messages of a batch (2025-03-26 allowed arrays), or the text itself.
pub fn messages(text: &str) -> Vec<&str> {
    if !text.trim_start().starts_with('[') {
        return vec![text];
    }
    serde_json::from_str::<Vec<&RawValue>>(text)
        .map(|parts| parts.into_iter().map(RawValue::get).collect())
        .unwrap_or_else(|_| vec![text])
}

/// Reads the envelope of one message, leaving `result` as it is.
///
/// Lenient where the meaning is clear: a missing or odd `jsonrpc` on an answer or a method of the protocol, `null` for
/// the absent one of `result` and `error`, an error without code or message. A member whose name is
/// [reserved](crate::tools::open::RESERVED) makes an error answer of an answer, and noise of anything else.
pub fn open(text: &str) -> Opened<'_> {
    let text = text.trim_start();
    // A struct would also be read from an array.
    if !text.starts_with('{') {
        return Opened::Noise;
    }
    let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(text) else {
        return Opened::Noise;
    };
    if has_reserved_name(text) {
        return envelope.refused();
    }
    envelope.classify()
}

/// Turns one message into what the SDK is to see. `method` is that of the request this could answer.
///
/// # Errors
/// [`Unreadable`], for the caller to drop and count, or to fail its call with.
pub fn decode(method: Method, message_text: &str) -> Result<ServerJsonRpcMessage, Unreadable> {
    open(message_text).carried(method)
}

impl Opened<'_> {
    /// As [`decode`], of what was opened already.
    ///
    /// # Errors
    /// [`Unreadable`]
    pub fn carried(self, method: Method) -> Result<ServerJsonRpcMessage, Unreadable> {
        match self {
            Self::Response { id, result } => Ok(carry(method, id, result)),
            Self::Error { id, error } => Ok(ServerJsonRpcMessage::error(error, id)),
            Self::Call(message) => Ok(*message),
            Self::Ambiguous => Err(Unreadable::Ambiguous),
            Self::Noise => Err(Unreadable::Noise),
        }
    }
}

/// The error answer for a call whose answer is over `limit` bytes.
pub fn frame_too_large(limit: usize) -> ErrorData {
    let message = format!("The server's answer is larger than {} MiB.", limit >> 20);
    ErrorData::new(ErrorCode(FRAME_TOO_LARGE), message, None)
}

/// Whether an error answer is one that [`frame_too_large`] made.
pub fn is_frame_too_large(error: &ErrorData) -> bool {
    error.code.0 == FRAME_TOO_LARGE
}

/// An answer as the SDK is to see it. A result the SDK cannot hold at all (nested too deeply) becomes an error answer
/// with code [`BROKEN_ANSWER`].
pub fn carry(method: Method, id: RequestId, result: &RawValue) -> ServerJsonRpcMessage {
    match method {
        Method::ToolsList => ServerJsonRpcMessage::response(ServerResult::ListToolsResult(tool_list(result)), id),
        Method::Raw => {
            let text = Value::String(result.get().to_owned());
            ServerJsonRpcMessage::response(ServerResult::CustomResult(CustomResult(text)), id)
        }
        Method::Typed => match serde_json::from_str::<ServerResult>(result.get()) {
            Ok(result) => ServerJsonRpcMessage::response(result, id),
            Err(error) => ServerJsonRpcMessage::error(broken_answer(&error.to_string()), Some(id)),
        },
    }
}

/// The error answer for a call whose answer cannot be read.
pub(super) fn broken_answer(why: &str) -> ErrorData {
    let message = format!("The server's answer could not be read: {why}.");
    ErrorData::new(ErrorCode(BROKEN_ANSWER), message, None)
}

fn tool_list(result: &RawValue) -> ListToolsResult {
    #[derive(Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
        #[serde(rename = "nextCursor", default)]
        next_cursor: Option<String>,
    }

    let mut list = ListToolsResult {
        result_type: Some(ResultType::COMPLETE),
        ..ListToolsResult::default()
    };
    if result.get().starts_with('{')
        && let Ok(page) = serde_json::from_str::<Page<'_>>(result.get())
    {
        list.tools = page
            .tools
            .into_iter()
            .filter_map(|tool| serde_json::from_str::<Tool>(tool.get()).ok())
            .collect();
        list.next_cursor = page.next_cursor;
    }
    let mut meta = MetaObject::default();
    meta.0
        .insert(RAW_META_KEY.to_owned(), Value::String(result.get().to_owned()));
    list.meta = Some(meta);
    list
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A member that is there, even as `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(d: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(d).map(Some)
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

impl<'a> Envelope<'a> {
    /// What may not be read any further fails the call that it answers, if it is an answer.
    fn refused(self) -> Opened<'a> {
        match self.id.and_then(request_id) {
            Some(id) if self.method.is_none() => Opened::Error {
                id: Some(id),
                error: broken_answer("it has a member whose name is reserved"),
            },
            Some(_) | None => Opened::Noise,
        }
    }

    fn classify(self) -> Opened<'a> {
        if let Some(method) = self.method {
            return match (self.result, self.error) {
                (None, None) => self.call(method),
                (Some(_), _) | (_, Some(_)) => Opened::Noise,
            };
        }
        let (result, error) = match (self.result, self.error) {
            (Some(result), Some(error)) if is_null(error) => (Some(result), None),
            (Some(result), Some(error)) if is_null(result) => (None, Some(error)),
            both_or_one => both_or_one,
        };
        match (result, error) {
            (Some(_), Some(_)) => Opened::Ambiguous,
            (Some(result), None) => match self.id.and_then(request_id) {
                Some(id) => Opened::Response { id, result },
                None => Opened::Noise,
            },
            (None, Some(error)) => match self.id {
                Some(id) if !is_null(id) => match request_id(id) {
                    Some(id) => Opened::Error {
                        id: Some(id),
                        error: error_data(error),
                    },
                    None => Opened::Noise,
                },
                // Without any claim to be JSON-RPC, `{"error": …}` is a log line.
                None if !self.is_version_2() => Opened::Noise,
                Some(_) | None => Opened::Error {
                    id: None,
                    error: error_data(error),
                },
            },
            (None, None) => Opened::Noise,
        }
    }

    fn is_version_2(&self) -> bool {
        self.jsonrpc.is_some_and(|version| version.get() == "\"2.0\"")
    }

    fn call(&self, method: &RawValue) -> Opened<'a> {
        let Ok(name) = serde_json::from_str::<String>(method.get()) else {
            return Opened::Noise;
        };
        if !self.is_version_2() && !is_protocol_method(&name) {
            return Opened::Noise;
        }
        let method = if name == "elicitation/create" && self.id.is_some() {
            Cow::Owned(format!("\"{ELICITATION}\""))
        } else {
            Cow::Borrowed(method.get())
        };
        let body = match self.params {
            Some(params) if !is_null(params) => {
                format!(r#"{{"method":{method},"params":{}}}"#, params.get())
            }
            Some(_) | None => format!(r#"{{"method":{method}}}"#),
        };
        let message = match self.id {
            Some(id) => {
                let (Some(id), Ok(request)) = (request_id(id), serde_json::from_str::<ServerRequest>(&body)) else {
                    return Opened::Noise;
                };
                ServerJsonRpcMessage::request(request, id)
            }
            None => match serde_json::from_str::<ServerNotification>(&body) {
                Ok(notification) => ServerJsonRpcMessage::notification(notification),
                Err(_unreadable) => return Opened::Noise,
            },
        };
        Opened::Call(Box::new(message))
    }
}

fn is_protocol_method(name: &str) -> bool {
    name.starts_with("notifications/")
        || matches!(
            name,
            "ping" | "roots/list" | "sampling/createMessage" | "elicitation/create"
        )
}

fn request_id(id: &RawValue) -> Option<RequestId> {
    serde_json::from_str(id.get()).ok()
}

/// Upstreams write errors freely; whatever can be understood is kept, and a sentence is never missing.
fn error_data(error: &RawValue) -> ErrorData {
    if let Ok(data) = serde_json::from_str::<ErrorData>(error.get())
        && !data.message.trim().is_empty()
    {
        return data;
    }
    let value = serde_json::from_str::<Value>(error.get()).unwrap_or(Value::Null);
    let code = value
        .get("code")
        .and_then(Value::as_i64)
        .and_then(|code| i32::try_from(code).ok())
        .map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    let message = value
        .as_str()
        .or_else(|| value.get("message").and_then(Value::as_str))
        .filter(|message| !message.trim().is_empty())
        .unwrap_or("The server reported an error without saying which.")
        .to_owned();
    ErrorData::new(code, message, value.get("data").cloned())
}

#[cfg(test)]
mod tests;
