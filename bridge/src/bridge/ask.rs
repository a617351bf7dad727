//! One request to an upstream, whatever it is for: the session it takes, the one second try, and what its failures are
//! called. Never shapes an answer.

use std::{sync::Arc, time::Duration};

use super::{results, shown};
use crate::{
    config::MAX_CALL_MS,
    connector::{CallFault, Cause, Door, Session, transport::BROKEN_ANSWER},
    error::{ApiError, Code},
    ids::ToolName,
};

/// JSON-RPC and MCP codes that say what is not there.
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
/// `resource not found` until 2025-11-25; since then it is [`INVALID_PARAMS`].
const RESOURCE_NOT_FOUND: i32 = -32002;

/// What is asked for, as far as sentences need it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject<'a> {
    Tool(&'a ToolName),
    /// By its URI.
    Resource(&'a str),
    /// By its name.
    Prompt(&'a str),
}

/// The session that stands, or one that is opened now. The connector counts as in use before and after: one that ends in
/// the first request of its session was used.
///
/// # Errors
/// As [`Door::acquire`].
pub(super) async fn session(door: &Door) -> Result<Arc<Session>, ApiError> {
    door.shared.mark_used();
    let session = door.acquire().await.map_err(|error| unsaid(door, error))?;
    door.shared.mark_used();
    Ok(session)
}

/// How long an answer may take: what the request says, else the connector's entry, else `default`; at most an hour.
pub(super) fn time(door: &Door, of_request: Option<Duration>, default: Duration) -> Duration {
    of_request
        .or(door.shared.entry().timeouts.call)
        .unwrap_or(default)
        .min(Duration::from_millis(MAX_CALL_MS))
}

/// Sends with `send` in this session; where that ended before the request reached it, in one more. Each time `before` has
/// the last word. Gives the JSON text of the result, without the connector's secrets.
///
/// # Errors
/// As [`BridgeHandle::call`](super::BridgeHandle::call) for a tool, as
/// [`BridgeHandle::read_resource`](super::BridgeHandle::read_resource) for others.
pub(super) async fn send<B, F>(
    door: &Door,
    subject: Subject<'_>,
    session: Arc<Session>,
    before: impl Fn() -> B,
    send: impl Fn(Arc<Session>) -> F,
) -> Result<String, ApiError>
where
    B: Future<Output = Result<(), ApiError>>,
    F: Future<Output = Result<String, CallFault>>,
{
    before().await?;
    let mut outcome = send(session).await;
    if matches!(outcome, Err(CallFault::NotSent)) {
        let session = self::session(door).await?;
        before().await?;
        outcome = send(session).await;
    }
    door.shared.mark_used();
    match outcome {
        Ok(raw) => Ok(results::without_secrets(door, raw).await),
        Err(fault) => Err(unsaid(door, subject.refusal(door, fault))),
    }
}

/// The error without values that are the connector's secrets: an upstream may repeat them.
pub(super) fn unsaid(door: &Door, error: ApiError) -> ApiError {
    ApiError {
        message: door.shared.log.redactor().sentence(&error.message).into_owned(),
        ..error
    }
}

impl Subject<'_> {
    /// In a sentence.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Tool(tool) => tool.to_string(),
            Self::Resource(uri) => format!("the resource \"{}\"", shown(uri)),
            Self::Prompt(name) => format!("the prompt \"{}\"", shown(name)),
        }
    }

    fn refusal(&self, door: &Door, fault: CallFault) -> ApiError {
        let (server, subject) = (&door.shared.id, self.shown());
        match fault {
            CallFault::Refused {
                code: BROKEN_ANSWER,
                words,
            } => {
                let did = match self {
                    Self::Tool(_) => "ran",
                    Self::Resource(_) | Self::Prompt(_) => "answered for",
                };
                let message = format!("{server} {did} {subject}, but its answer is of no use: {words}");
                ApiError::new(Code::UpstreamError, message)
            }
            CallFault::Refused { code, words } => self.refused(door, code, &words),
            CallFault::TooLarge => {
                let message = match self {
                    Self::Tool(_) => {
                        format!("The result of {subject} is larger than 16 MiB and was dropped; ask for less of it.")
                    }
                    Self::Resource(_) | Self::Prompt(_) => {
                        format!("What {server} gave for {subject} is larger than 16 MiB and was dropped.")
                    }
                };
                ApiError::new(Code::ResultTooLarge, message)
            }
            CallFault::TimedOut(time) => {
                let seconds = time.as_secs_f32();
                let message = match self {
                    Self::Tool(_) => {
                        format!("{subject} of {server} had no result after {seconds} s and was told to stop.")
                    }
                    Self::Resource(_) | Self::Prompt(_) => {
                        format!("{server} had no answer for {subject} after {seconds} s and was told to stop.")
                    }
                };
                ApiError::new(Code::UpstreamTimeout, message)
            }
            CallFault::Declined => ApiError::new(
                Code::Denied,
                format!("{server} wanted a page opened before {subject}, and that was not done."),
            ),
            CallFault::NotSent => ApiError::new(Code::Unavailable, format!("{server} ended just now; try again.")),
            CallFault::Lost(cause) => self.lost(door, &cause),
        }
    }

    fn refused(&self, door: &Door, code: i32, words: &str) -> ApiError {
        let (server, subject) = (&door.shared.id, self.shown());
        let not_found = || ApiError::new(Code::NotFound, format!("{server} does not know {subject}: {words}"));
        match (self, code) {
            (Self::Tool(_), _) => ApiError::new(
                Code::UpstreamError,
                format!("{server} refused to run {subject}: {words}"),
            ),
            (Self::Resource(_) | Self::Prompt(_), METHOD_NOT_FOUND)
            | (Self::Resource(_), RESOURCE_NOT_FOUND | INVALID_PARAMS) => not_found(),
            (Self::Prompt(name), INVALID_PARAMS) => {
                let view = door.shared.view();
                if !view.offers.lists_prompt(name) {
                    return not_found();
                }
                ApiError::bad_request(format!("{server} does not take these arguments for {subject}: {words}"))
            }
            (Self::Resource(_) | Self::Prompt(_), _) => {
                ApiError::new(Code::UpstreamError, format!("{server} refused {subject}: {words}"))
            }
        }
    }

    fn lost(&self, door: &Door, cause: &Cause) -> ApiError {
        let (server, subject) = (&door.shared.id, self.shown());
        let code = match cause.code() {
            Code::Unavailable => Code::UpstreamError,
            other => other,
        };
        let loss = Loss::of(cause);
        let message = match (self, loss) {
            (Self::Tool(_), Loss::Refused) => format!("{server} did not run {subject}. {}", cause.sentence()),
            (Self::Tool(_), Loss::Unanswered) => format!(
                "{server} gave no result of {subject}; it may or may not have done it. {}",
                cause.sentence()
            ),
            (Self::Tool(_), Loss::Session) => format!(
                "{server} was lost while {subject} ran; it may or may not have done it. {}",
                cause.sentence()
            ),
            (Self::Resource(_) | Self::Prompt(_), loss) => {
                // What the connector shows by now knows more, such as how its process ended.
                let shown = match loss {
                    Loss::Session => door.shared.view().machine.error().0,
                    Loss::Refused | Loss::Unanswered => None,
                };
                let why = shown.unwrap_or_else(|| cause.sentence());
                format!("{server} gave no answer for {subject}. {why}")
            }
        };
        ApiError::new(code, message)
    }
}

/// What a loss says about what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// It was turned away before anything was done.
    Refused,
    /// The request alone failed, perhaps after it was done: a proxy may give up on a server that goes on.
    Unanswered,
    /// The whole session is gone, and the request with it.
    Session,
}

impl Loss {
    fn of(cause: &Cause) -> Self {
        match cause {
            Cause::SignIn(_)
            | Cause::TokenRefused { .. }
            | Cause::UnsupportedAuth(_)
            | Cause::Keychain(_)
            | Cause::Authority(_) => Self::Refused,
            Cause::HttpStatus { status: 408, .. } => Self::Unanswered,
            Cause::HttpStatus { status: 400..=499, .. } => Self::Refused,
            Cause::HttpStatus { .. } => Self::Unanswered,
            Cause::NeedsReview { .. }
            | Cause::TrustUnknown(_)
            | Cause::Paused
            | Cause::MissingSecret(_)
            | Cause::Entry(_)
            | Cause::ProgramNotFound(_)
            | Cause::NotStarted(_)
            | Cause::Exited(_)
            | Cause::NoAnswer(_)
            | Cause::Network(_)
            | Cause::Protocol(_)
            | Cause::Stopped
            | Cause::GivenUp(_) => Self::Session,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::SignInNeed;

    #[test]
    fn only_a_refusal_says_that_nothing_was_done() {
        let of_status = |status| {
            Loss::of(&Cause::HttpStatus {
                status,
                retry_after: None,
            })
        };
        for status in [400, 403, 404, 409, 413, 422, 429, 451, 499] {
            assert_eq!(of_status(status), Loss::Refused, "{status}");
        }
        for status in [408, 500, 501, 502, 503, 504, 599, 302, 204] {
            assert_eq!(of_status(status), Loss::Unanswered, "{status}");
        }
        assert_eq!(Loss::of(&Cause::SignIn(SignInNeed::first(None))), Loss::Refused);
        for cause in [
            Cause::Network("reset".into()),
            Cause::Exited("ended".into()),
            Cause::Stopped,
        ] {
            assert_eq!(Loss::of(&cause), Loss::Session, "{cause:?}");
        }
    }
}
