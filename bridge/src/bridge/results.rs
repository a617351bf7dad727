//! A result on its way to its caller: shaped, and what is too large to be returned kept for later.

use std::{borrow::Cow, sync::Arc, time::SystemTime};

use serde_json::Value;

use super::{Caller, Inner, ResultPiece};
use crate::{
    connector::Door,
    error::{ApiError, Code},
    store::{ResultError, ResultId},
    tools::{Limits, Shaped, ShapedContents, ShapedPrompt, Undecodable},
    trust::scan,
};

/// Results over this many bytes are read off the async threads.
const LARGE_RESULT: usize = 256 * 1024;

/// What a shaping may leave to be kept.
pub(super) trait Rest: Sized + Send + 'static {
    /// Takes the whole out, where something is missing.
    fn take_full(&mut self) -> Option<String>;
}

impl Rest for Shaped {
    fn take_full(&mut self) -> Option<String> {
        self.full.take()
    }
}

impl Rest for ShapedContents {
    fn take_full(&mut self) -> Option<String> {
        self.full.take()
    }
}

impl Rest for ShapedPrompt {
    fn take_full(&mut self) -> Option<String> {
        self.full.take()
    }
}

type Shape<T> = fn(&str, &Limits, Option<&str>) -> Result<T, Undecodable>;

/// Shapes a result and keeps what is left out of it for its caller; with the id of that, where there is some.
///
/// # Errors
/// [`Undecodable`]
pub(super) async fn shape_and_keep<T: Rest>(
    inner: &Arc<Inner>,
    caller: &Caller,
    raw: String,
    shape: Shape<T>,
) -> Result<(T, Option<String>), Undecodable> {
    let raw: Arc<str> = raw.into();
    let id = ResultId::draw().ok();
    let mut result = shaped(raw.clone(), id.clone(), shape).await?;
    let Some(full) = result.take_full() else {
        return Ok((result, None));
    };
    match keep(inner, caller, id, full).await {
        Some(kept) => Ok((result, Some(kept))),
        // The note in it must not promise what is not kept.
        None => Ok((shaped(raw, None, shape).await?, None)),
    }
}

/// What stands out in what an assistant is about to read, a sentence each.
pub(super) async fn warnings(text: Cow<'_, str>) -> Vec<String> {
    let findings = if text.len() > LARGE_RESULT / 4 {
        let text = text.into_owned();
        // One that ended abnormally found nothing.
        tokio::task::spawn_blocking(move || scan::result(&text))
            .await
            .unwrap_or_default()
    } else {
        scan::result(&text)
    };
    let mut sentences: Vec<String> = Vec::new();
    for finding in findings {
        let sentence = finding.kind.sentence();
        if sentences.iter().all(|told| *told != sentence) {
            sentences.push(sentence.to_owned());
        }
    }
    sentences
}

/// Every text in these blocks.
pub(super) fn texts(blocks: &[Value]) -> String {
    let mut out = String::new();
    let mut left: Vec<&Value> = blocks.iter().rev().collect();
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items.iter().rev()),
            Value::Object(members) => {
                if let Some(text) = members.get("text").and_then(Value::as_str) {
                    out.push_str(text);
                    out.push('\n');
                }
                left.extend(members.values().filter(|value| value.is_array() || value.is_object()));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    out
}

/// The result without the connector's secrets, should the upstream repeat them in it.
pub(super) async fn without_secrets(door: &Door, raw: String) -> String {
    if !door.shared.log.redactor().looks_at_results() {
        return raw;
    }
    let log = door.shared.log.clone();
    let is_large = raw.len() > LARGE_RESULT;
    let hide = move || match log.redactor().result(&raw) {
        Cow::Borrowed(_) => raw,
        Cow::Owned(hidden) => hidden,
    };
    if is_large {
        // A result that was not looked through is shown to nobody.
        return tokio::task::spawn_blocking(hide).await.unwrap_or_default();
    }
    hide()
}

/// Keeps a whole result for its caller; its id, or `None` where that failed.
async fn keep(inner: &Arc<Inner>, caller: &Caller, id: Option<ResultId>, full: String) -> Option<String> {
    let id = id?;
    let results = inner.results.clone();
    let label = caller.label().to_owned();
    let text = id.as_str().to_owned();
    match tokio::task::spawn_blocking(move || results.put(&id, &label, &full, SystemTime::now())).await {
        Ok(Ok(())) => Some(text),
        Ok(Err(error)) => {
            tracing::warn!(%error, "a large result could not be kept");
            None
        }
        Err(error) => {
            tracing::error!(%error, "keeping a large result ended abnormally");
            None
        }
    }
}

/// A large result takes milliseconds to read, which must not hold up other callers.
async fn shaped<T: Send + 'static>(raw: Arc<str>, id: Option<ResultId>, shape: Shape<T>) -> Result<T, Undecodable> {
    let is_large = raw.len() > LARGE_RESULT;
    let read = move || shape(&raw, &Limits::default(), id.as_ref().map(ResultId::as_str));
    if is_large {
        return tokio::task::spawn_blocking(read)
            .await
            .unwrap_or_else(|error| Err(Undecodable::NotJson(error.to_string())));
    }
    read()
}

pub(super) async fn read(
    inner: &Arc<Inner>,
    caller: Caller,
    result_id: String,
    offset: u64,
    limit: u64,
) -> Result<ResultPiece, ApiError> {
    let results = inner.results.clone();
    let read = tokio::task::spawn_blocking(move || results.read(&result_id, caller.label(), offset, limit)).await;
    match read {
        Ok(Ok(piece)) => Ok(ResultPiece {
            text: piece.text,
            offset: piece.offset,
            total: piece.total,
        }),
        Ok(Err(error)) => Err(refusal(&error, Code::Internal)),
        Err(error) => {
            tracing::error!(%error, "reading a large result ended abnormally");
            Err(ApiError::new(
                Code::Internal,
                "The result could not be read; try again.",
            ))
        }
    }
}

/// A fault of the store as callers see it; `of_the_disk` is the code where the folder is at fault.
pub(super) fn refusal(error: &ResultError, of_the_disk: Code) -> ApiError {
    let code = match error {
        ResultError::NotFound => Code::NotFound,
        ResultError::IsAFile { .. } => Code::BadRequest,
        ResultError::Full { .. } | ResultError::Files { .. } => of_the_disk,
        ResultError::NotBase64 => Code::UpstreamError,
        ResultError::GivenUp => Code::Unavailable,
        ResultError::Random(_) => Code::Internal,
    };
    ApiError::new(code, error.to_string())
}
