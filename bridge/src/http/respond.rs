//! Answers in the one shape of this API: JSON, never cached, never readable by a web page.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use crate::{
    bridge::Pending,
    error::{Action, ApiError, Code},
};

/// On every answer. There is deliberately no `Access-Control-*` anywhere.
const COMMON_HEADERS: [(HeaderName, HeaderValue); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// Adds what every answer carries.
pub(super) fn add_common_headers(headers: &mut HeaderMap) {
    for (name, value) in &COMMON_HEADERS {
        headers.insert(name, value.clone());
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    ok: bool,
    error: &'a str,
    code: Code,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Action>,
}

/// 200 with this value.
pub(super) fn json(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(body) => json_bytes(body.into()),
        Err(cause) => {
            tracing::error!("an answer could not be written as JSON: {cause}");
            error(&ApiError::new(
                Code::Internal,
                "The answer could not be written. Please report this with the program's log.",
            ))
        }
    }
}

/// 200 with this JSON text.
pub(super) fn json_bytes(body: Bytes) -> Response<Body> {
    with_json(StatusCode::OK, body)
}

/// 202: it waits for the person.
pub(super) fn pending(pending: &Pending) -> Response<Body> {
    #[derive(Serialize)]
    struct Waits<'a> {
        /// So that nobody takes it for done.
        ok: bool,
        pending: bool,
        approval_id: &'a str,
        error: &'a str,
    }
    let mut response = json(&Waits {
        ok: false,
        pending: true,
        approval_id: &pending.approval_id,
        error: &pending.message,
    });
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// The error's own status.
pub(super) fn error(error: &ApiError) -> Response<Body> {
    let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    error_with_status(status, error)
}

/// For the few HTTP statuses that have no code of their own (408, 414, 431).
pub(super) fn error_with_status(status: StatusCode, error: &ApiError) -> Response<Body> {
    let mut response = with_json(status, error_body(error).into());
    if let Some(wait) = error.retry_after {
        // Rounded up: coming back too early would only be refused again.
        let seconds = wait.as_millis().div_ceil(1000);
        if let Ok(value) = HeaderValue::from_str(&seconds.to_string()) {
            response.headers_mut().insert(header::RETRY_AFTER, value);
        }
    }
    response
}

/// A whole HTTP answer as bytes, for what hyper refuses before there is a request.
pub(super) fn refusal_bytes(status: StatusCode, error: &ApiError) -> Vec<u8> {
    let body = error_body(error);
    let mut headers = HeaderMap::new();
    add_common_headers(&mut headers);
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::CONTENT_LENGTH, body.len().into());
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let mut out = format!("HTTP/1.1 {status}\r\n").into_bytes();
    for (name, value) in &headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&body);
    out
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

fn error_body(error: &ApiError) -> Vec<u8> {
    let body = ErrorBody {
        ok: false,
        error: &error.message,
        code: error.code,
        action: error.action,
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

fn with_json(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn an_error_has_the_shape_that_callers_branch_on() {
        let refused = ApiError::new(Code::NeedsSignIn, "Sign in first.")
            .with_action(Some(Action::SignIn))
            .with_retry_after(Duration::from_millis(1001));
        let response = error(&refused);
        assert_eq!(response.status(), 409);
        assert_eq!(response.headers()[header::RETRY_AFTER], "2");
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(
            body,
            r#"{"ok":false,"error":"Sign in first.","code":"needs_sign_in","action":"sign_in"}"#
        );
    }

    #[test]
    fn a_bare_refusal_is_a_whole_answer_of_the_same_shape() {
        let text = refusal_bytes(StatusCode::BAD_REQUEST, &ApiError::bad_request("No."));
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{text}");
        assert!(text.contains("cache-control: no-store\r\n"), "{text}");
        assert!(
            text.ends_with("\r\n\r\n{\"ok\":false,\"error\":\"No.\",\"code\":\"bad_request\"}"),
            "{text}"
        );
    }
}
