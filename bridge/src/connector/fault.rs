//! From the SDK's errors to causes a person can read. Never an upstream's raw body, a URL's query or a header.

use std::{error::Error, time::SystemTime};

use rmcp::{
    model::ErrorData,
    service::{ClientInitializeError, ServiceError},
    transport::{
        DynamicTransportError,
        streamable_http_client::{HttpStatusError, StreamableHttpError},
    },
};

use super::{
    cause::Cause,
    episode,
    transport::{BROKEN_ANSWER, Denied, FRAME_TOO_LARGE, HttpError, OpenError},
};
use crate::secrets::redact;

/// Longest piece of an upstream's own words inside one of our sentences, in characters.
const OWN_WORDS: usize = 300;

/// More of a text is not looked at for secrets; what begins before its end still shows itself as one.
const LOOKED_AT: usize = 8 * OWN_WORDS;

/// An upstream's words, on one line, without secrets and control characters, shortened.
pub fn short(text: &str) -> String {
    let looked_at = &text[..text.floor_char_boundary(LOOKED_AT)];
    let clean: String = redact(looked_at)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(OWN_WORDS + 1)
        .collect();
    let clean = clean.trim();
    if clean.is_empty() {
        return "no reason given".to_owned();
    }
    // Whatever is cut off says so: at that place the beginning of a secret is looked for.
    if clean.chars().count() > OWN_WORDS || looked_at.len() < text.len() {
        return clean.chars().take(OWN_WORDS).chain(['…']).collect();
    }
    clean.to_owned()
}

/// Why a handshake failed.
pub fn cause_of_init_error(error: &ClientInitializeError) -> Cause {
    match error {
        ClientInitializeError::TransportError { error, .. } => cause_of_transport_error(error),
        ClientInitializeError::ConnectionClosed(_) => {
            Cause::Network("the connection closed during the greeting".into())
        }
        ClientInitializeError::JsonRpcError(data) if is_our_own(data) => Cause::Protocol(format!(
            "its answer to the greeting is of no use ({})",
            short(&data.message)
        )),
        ClientInitializeError::JsonRpcError(data) => {
            Cause::Protocol(format!("it refused the greeting ({})", short(&data.message)))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => cause_of_init_error(fallback),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            Cause::Protocol("it speaks no revision of the protocol that this app knows".into())
        }
        ClientInitializeError::Cancelled => Cause::Stopped,
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            Cause::Protocol("it answered the greeting with something else".into())
        }
        other => Cause::Protocol(short(&other.to_string())),
    }
}

/// True when the same upstream may still answer an older greeting on a fresh connection.
///
/// Everything that does not positively identify a modern server may: an answer of another kind, a connection that broke
/// off at the unknown request, an error status. A refusal to let us in, or no connection at all, may not.
pub fn may_be_legacy(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::LegacyFallbackFailed { .. }
        | ClientInitializeError::Cancelled
        | ClientInitializeError::NoCompatibleProtocolVersion { .. } => false,
        ClientInitializeError::TransportError { error, .. } if broke_off(error) => true,
        ClientInitializeError::TransportError { error, .. } => match cause_of_transport_error(error) {
            Cause::SignIn(_)
            | Cause::TokenRefused { .. }
            | Cause::UnsupportedAuth(_)
            | Cause::Keychain(_)
            | Cause::Authority(_)
            | Cause::Network(_) => false,
            Cause::HttpStatus { status, .. } => status != 429,
            Cause::NeedsReview { .. }
            | Cause::TrustUnknown(_)
            | Cause::Paused
            | Cause::MissingSecret(_)
            | Cause::Entry(_)
            | Cause::ProgramNotFound(_)
            | Cause::NotStarted(_)
            | Cause::Exited(_)
            | Cause::NoAnswer(_)
            | Cause::Protocol(_)
            | Cause::Stopped
            | Cause::GivenUp(_) => true,
        },
        _ => true,
    }
}

/// True when a server was reached and broke the connection off instead of answering.
fn broke_off(error: &DynamicTransportError) -> bool {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => error.is_request() && !error.is_connect() && !error.is_timeout(),
        _ => false,
    }
}

/// True for an error answer that a transport made up for one that it could not take.
fn is_our_own(error: &ErrorData) -> bool {
    matches!(error.code.0, FRAME_TOO_LARGE | BROKEN_ANSWER)
}

/// What the SDK answers in the upstream's name to a request that was under way when its session was replaced.
const SESSION_REPLACED: &str = "streamable HTTP session was re-initialized before the response arrived";

/// The cause, when an error answer was not the upstream's: whether it carried the request out is not known.
pub fn cause_of_lost_answer(error: &ErrorData) -> Option<Cause> {
    (error.message == SESSION_REPLACED)
        .then(|| Cause::Network("the server forgot the session before it answered".to_owned()))
}

/// Why a request had no answer that it could use.
pub(super) fn cause_of_answer(error: &HttpError) -> Cause {
    cause_of_http_error(error).unwrap_or_else(|| Cause::Network(short(&error.to_string())))
}

/// Why the old transport's stream was not opened.
pub fn cause_of_open_error(error: &OpenError) -> Cause {
    match error {
        OpenError::Http(StreamableHttpError::ServerDoesNotSupportSse) => Cause::HttpStatus {
            status: 405,
            retry_after: None,
        },
        OpenError::Http(StreamableHttpError::UnexpectedContentType(found)) => Cause::Protocol(format!(
            "it answered with {} instead of a stream of events",
            kind_of(found.as_deref())
        )),
        OpenError::Http(other) => cause_of_answer(other),
        OpenError::NoEndpoint | OpenError::Closed | OpenError::Endpoint(_) => Cause::Protocol(error.to_string()),
    }
}

impl From<Denied> for Cause {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::SignIn(need) => Self::SignIn(need),
            Denied::KeyRefused(status) => Self::TokenRefused { status },
            Denied::Scheme(scheme) => Self::UnsupportedAuth(short(&scheme)),
            Denied::Keychain(fault) => Self::Keychain(fault),
            Denied::NoAnswer(why) => Self::Authority(short(&why)),
            Denied::Entry(why) => Self::Entry(why),
        }
    }
}

fn kind_of(found: Option<&str>) -> String {
    found.map_or_else(|| "nothing readable".to_owned(), short)
}

/// Why a request had no answer.
pub fn cause_of_service_error(error: &ServiceError) -> Cause {
    match error {
        ServiceError::TransportSend(error) => cause_of_transport_error(error),
        ServiceError::TransportClosed => Cause::Network("the connection closed".into()),
        ServiceError::McpError(data) => Cause::Protocol(short(&data.message)),
        other => Cause::Protocol(short(&other.to_string())),
    }
}

fn cause_of_transport_error(error: &DynamicTransportError) -> Cause {
    let mut next: Option<&(dyn Error + 'static)> = Some(error.error.as_ref());
    while let Some(current) = next {
        if let Some(status) = current.downcast_ref::<HttpStatusError>() {
            return cause_of_status(status);
        }
        if let Some(http) = current.downcast_ref::<StreamableHttpError<reqwest::Error>>()
            && let Some(cause) = cause_of_http_error(http)
        {
            return cause;
        }
        next = current.source();
    }
    Cause::Network(short(&error.error.to_string()))
}

fn cause_of_http_error(error: &StreamableHttpError<reqwest::Error>) -> Option<Cause> {
    if let Some(denied) = Denied::within(error) {
        return Some(denied.clone().into());
    }
    Some(match error {
        // Its place in the chain of sources is taken by this error, which is transparent.
        StreamableHttpError::HttpStatus(status) => cause_of_status(status),
        StreamableHttpError::UnexpectedServerResponse(text) => {
            match text.strip_prefix("HTTP ").and_then(|status| status.parse().ok()) {
                Some(status) => Cause::HttpStatus {
                    status,
                    retry_after: None,
                },
                None => Cause::Protocol(short(text)),
            }
        }
        StreamableHttpError::UnexpectedContentType(found) => Cause::Protocol(format!(
            "it answered with {} instead of JSON",
            kind_of(found.as_deref())
        )),
        StreamableHttpError::Client(error) => Cause::Network(words_of(error)),
        StreamableHttpError::SessionExpired => Cause::Network("the server forgot the session".to_owned()),
        StreamableHttpError::SessionRecoveryTimeout => {
            Cause::Network("the server forgot the session and opened no new one in time".to_owned())
        }
        StreamableHttpError::ReinitializationFailed(error) => Cause::Network(format!(
            "the server forgot the session and refused a new one ({})",
            short(&error.message)
        )),
        StreamableHttpError::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            Cause::Network("the server did not begin to answer within the time allowed".to_owned())
        }
        StreamableHttpError::ControlRequestTimeout => {
            Cause::Network("the server did not take a message within the time allowed".to_owned())
        }
        StreamableHttpError::TransportChannelClosed => Cause::Network("the connection closed".to_owned()),
        _ => return None,
    })
}

fn cause_of_status(error: &HttpStatusError) -> Cause {
    let hint = error.retry_after.as_deref();
    Cause::HttpStatus {
        status: error.status,
        retry_after: hint.and_then(|text| episode::read_retry_after(text, SystemTime::now())),
    }
}

/// The innermost source names the fault ("Connection refused"); outer ones repeat the URL, whose query may be secret.
fn words_of(error: &reqwest::Error) -> String {
    let mut words = None;
    let mut next = error.source();
    while let Some(current) = next {
        words = Some(current.to_string());
        next = current.source();
    }
    match words {
        _ if error.is_timeout() => "no connection within the time allowed".to_owned(),
        Some(words) => plain_words(&words),
        None => "the connection failed".to_owned(),
    }
}

/// The usual faults of a network as a person says them, with the system's own words for whoever looks them up.
fn plain_words(words: &str) -> String {
    let words = words.split(" (os error").next().unwrap_or(words);
    let meaning = if words.contains("refused") {
        "nothing listens at its address; check the address, and that the server runs"
    } else if words.contains("lookup address") || words.contains("dns") {
        "there is no host of this name, or this computer is offline"
    } else if words.contains("certificate") {
        "its certificate cannot be trusted"
    } else if words.contains("before message completed") || words.contains("connection reset") {
        "the server closed the connection without an answer"
    } else if words.contains("head is too large") {
        "the server's answer begins with more headers than are read"
    } else {
        return short(words);
    };
    format!("{meaning} ({})", short(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_nobody_answers_is_told_without_its_query() {
        let error = reqwest::get("http://127.0.0.1:1/mcp?key=SENTINEL").await.unwrap_err();
        let words = words_of(&error);
        assert!(words.contains("refused") && !words.contains("SENTINEL"), "{words}");
        assert!(
            words.starts_with("nothing listens") && !words.contains("os error"),
            "{words}"
        );
    }

    #[test]
    fn a_status_is_told_as_a_status_with_the_wait_it_asks_for() {
        let busy = HttpStatusError::new(503, Some("7".to_owned()));
        let error = StreamableHttpError::<reqwest::Error>::from(busy);
        let told = cause_of_transport_error(&DynamicTransportError::from_parts(
            "test",
            std::any::TypeId::of::<()>(),
            Box::new(error),
        ));
        let retry_after = Some(std::time::Duration::from_secs(7));
        assert_eq!(
            told,
            Cause::HttpStatus {
                status: 503,
                retry_after
            }
        );
    }

    #[test]
    fn an_upstreams_words_stay_on_one_line_and_short() {
        assert_eq!(short("a\nb\u{1b}[31m"), "a b [31m");
        assert_eq!(short("bad token=hunter2 given"), "bad token=[REDACTED] given");
        assert_eq!(short(" \n "), "no reason given");
        assert_eq!(short(&"é".repeat(5000)).chars().count(), OWN_WORDS + 1);
        let mostly_secret = format!("token={} and {}", "x".repeat(LOOKED_AT - 20), "y".repeat(100));
        assert_eq!(short(&mostly_secret), "token=[REDACTED] and yyyyyyyyy…");
    }
}
