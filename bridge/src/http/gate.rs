//! Which requests may come in at all: decided before routing, for every path, on the head alone.
//!
//! Keeps web pages out (DNS rebinding, cross-site requests) and refuses every head that two programs could read in two
//! ways. Pure. Who the peer is gets decided in `peer`, what a caller may do in the routes.

use http::{HeaderMap, HeaderValue, Method, header, request::Parts};

use crate::error::{ApiError, Code};

/// Where a sign-in comes back to: a top-level navigation from another site, which its `state` protects.
pub(super) const CALLBACK_PATH: &str = crate::oauth::CALLBACK_PATH;

/// What a request came in by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// The loopback port with this number.
    Port(u16),
    /// The local socket, whose clients have no port to name.
    Socket,
}

/// Passes the head or says why not. `raw` is the head as it came in, which shows what the parser may have left out.
///
/// # Errors
/// `bad_request`, `host_not_allowed`, `origin_not_allowed`, `method_not_allowed`, `unsupported_media_type`, `too_large`.
pub fn check(head: &Parts, raw: &[u8], door: Door, allowed_origins: &[String]) -> Result<(), ApiError> {
    has_origin_form(head)?;
    has_our_host(&head.headers, door)?;
    comes_from_no_foreign_page(head, allowed_origins)?;
    if head.method == Method::OPTIONS {
        return Err(ApiError::new(
            Code::MethodNotAllowed,
            "OPTIONS is not answered: this API is not for web pages of other sites.",
        ));
    }
    has_one_framing(head, raw)?;
    has_plain_json(head)?;
    declares_no_more_than(body_limit(head.uri.path()), &head.headers)
}

/// How long a body for this path may be, in bytes.
pub(super) fn body_limit(path: &str) -> usize {
    match path {
        "/mcp/call" => 1024 * 1024,
        _ => 64 * 1024,
    }
}

/// The refusal of a body over its limit.
pub(super) fn too_large(limit: usize) -> ApiError {
    ApiError::new(
        Code::TooLarge,
        format!("The request body is larger than the {} KiB allowed here.", limit / 1024),
    )
}

fn has_origin_form(head: &Parts) -> Result<(), ApiError> {
    let uri = &head.uri;
    if uri.scheme().is_none() && uri.authority().is_none() && uri.path().starts_with('/') {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "The request target has to be a path such as /mcp/tools, not a whole address.",
    ))
}

fn has_our_host(headers: &HeaderMap, door: Door) -> Result<(), ApiError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(ApiError::bad_request("The request needs exactly one Host header."));
    };
    if host.is_empty() {
        return Err(ApiError::bad_request("The Host header is empty."));
    }
    if is_our_host(host, door) {
        return Ok(());
    }
    Err(ApiError::new(
        Code::HostNotAllowed,
        match door {
            Door::Port(port) => format!("The Host header does not name this API: use 127.0.0.1:{port}."),
            Door::Socket => "The Host header does not name this API: use localhost.".to_owned(),
        },
    ))
}

fn is_our_host(host: &HeaderValue, door: Door) -> bool {
    let Ok(host) = host.to_str() else { return false };
    let host = host.to_ascii_lowercase();
    let Some(rest) = ["127.0.0.1", "localhost", "[::1]"]
        .iter()
        .find_map(|name| host.strip_prefix(name))
    else {
        return false;
    };
    match (rest.strip_prefix(':'), door) {
        (None, _) => rest.is_empty(),
        (Some(port), Door::Port(ours)) => port == ours.to_string(),
        (Some(port), Door::Socket) => port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok(),
    }
}

fn comes_from_no_foreign_page(head: &Parts, allowed_origins: &[String]) -> Result<(), ApiError> {
    if head.method == Method::GET && head.uri.path() == CALLBACK_PATH {
        return Ok(());
    }
    let refused = || {
        Err(ApiError::new(
            Code::OriginNotAllowed,
            "Web pages may not use this API. Programs have to leave out the Origin and Sec-Fetch-Site headers.",
        ))
    };
    let mut origins = head.headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => {}
        (Some(origin), None) if is_allowed_origin(origin, allowed_origins) => return Ok(()),
        (Some(_), _) => return refused(),
    }
    let same_site = |site: &HeaderValue| matches!(site.as_bytes(), b"none" | b"same-origin");
    if head.headers.get_all("sec-fetch-site").iter().all(same_site) {
        return Ok(());
    }
    refused()
}

/// `null` is what sandboxed pages and files send, so nobody can be allowed under that name.
fn is_allowed_origin(origin: &HeaderValue, allowed: &[String]) -> bool {
    origin != "null" && allowed.iter().any(|one| origin == one.as_str())
}

fn has_one_framing(head: &Parts, raw: &[u8]) -> Result<(), ApiError> {
    if head.headers.contains_key(header::EXPECT) {
        return Err(ApiError::bad_request(
            "The Expect header is not supported: send the body at once.",
        ));
    }
    if head.headers.contains_key(header::TRANSFER_ENCODING) && !is_without_length(raw, &head.method) {
        return Err(ApiError::bad_request(
            "Transfer-Encoding cannot be combined with Content-Length, nor with a request sent ahead of the last answer.",
        ));
    }
    Ok(())
}

/// hyper drops a Content-Length that stands beside Transfer-Encoding, so this looks at the bytes. A head that is not
/// whole there came in before the last answer was out.
fn is_without_length(raw: &[u8], method: &Method) -> bool {
    let mut lines = raw
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
        .map(<[u8]>::trim_ascii)
        .skip_while(|line| line.is_empty());
    if !lines
        .next()
        .is_some_and(|line| line.starts_with(method.as_str().as_bytes()))
    {
        return false;
    }
    for line in lines {
        if line.is_empty() {
            return true;
        }
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if name.eq_ignore_ascii_case(b"content-length") {
            return false;
        }
    }
    false
}

fn has_plain_json(head: &Parts) -> Result<(), ApiError> {
    if head.headers.contains_key(header::CONTENT_ENCODING) {
        return Err(ApiError::new(
            Code::UnsupportedMediaType,
            "Compressed request bodies are not supported: leave out Content-Encoding.",
        ));
    }
    if head.method != Method::POST {
        return Ok(());
    }
    let mut types = head.headers.get_all(header::CONTENT_TYPE).iter();
    match (types.next().map(HeaderValue::to_str), types.next()) {
        (Some(Ok(one)), None) if is_utf8_json(one) => Ok(()),
        _ => Err(ApiError::new(
            Code::UnsupportedMediaType,
            "The request body has to be JSON in UTF-8: send Content-Type: application/json.",
        )),
    }
}

fn is_utf8_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    essence.eq_ignore_ascii_case("application/json")
        && parts.all(|parameter| {
            let parameter = parameter.to_ascii_lowercase();
            matches!(parameter.as_str(), "" | "charset=utf-8" | "charset=\"utf-8\"")
        })
}

fn declares_no_more_than(limit: usize, headers: &HeaderMap) -> Result<(), ApiError> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    match declared.map(str::parse::<usize>) {
        Some(Ok(length)) if length <= limit => Ok(()),
        None => Ok(()),
        Some(_) => Err(too_large(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOOR: Door = Door::Port(7771);

    fn head(method: &str, target: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    /// The status of a request with one good Host and these headers; 200 = passes.
    fn status(method: &str, target: &str, headers: &[(&str, &str)]) -> u16 {
        let mut all = vec![("host", "127.0.0.1:7771")];
        all.extend_from_slice(headers);
        let raw = format!("{method} {target} HTTP/1.1\r\nhost: 127.0.0.1:7771\r\n\r\n");
        check(&head(method, target, &all), raw.as_bytes(), DOOR, &[]).map_or_else(|e| e.code.status(), |()| 200)
    }

    fn host_status(door: Door, hosts: &[&str]) -> u16 {
        let headers: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
        check(&head("GET", "/nothing", &headers), b"", door, &[]).map_or_else(|e| e.code.status(), |()| 200)
    }

    #[test]
    fn only_our_own_names_pass_as_host() {
        for host in ["127.0.0.1", "localhost", "LocalHost", "[::1]"] {
            assert_eq!(host_status(DOOR, &[host]), 200, "{host}");
            assert_eq!(host_status(DOOR, &[&format!("{host}:7771")]), 200, "{host}:7771");
        }
        for host in [
            "evil.com",
            "evil.com:7771",
            "127.0.0.1.nip.io:7771",
            "localhost.evil.com",
            "localhost.:7771",
            "0.0.0.0:7771",
            "2130706433:7771",
            "127.0.0.1:80",
            "127.0.0.1:",
            "127.0.0.1:07771",
            "127.0.0.1:7771:7771",
            "127.1:7771",
            "[::]:7771",
            "::1",
            "[::1",
            "x.local",
            "user@127.0.0.1:7771",
            "127.0.0.1, evil.com",
            "localhost7771",
        ] {
            assert_eq!(host_status(DOOR, &[host]), 403, "{host}");
        }
    }

    #[test]
    fn no_host_an_empty_one_and_two_are_malformed() {
        assert_eq!(host_status(DOOR, &[]), 400);
        assert_eq!(host_status(DOOR, &[""]), 400);
        assert_eq!(host_status(DOOR, &["127.0.0.1:7771", "127.0.0.1:7771"]), 400);
        assert_eq!(host_status(DOOR, &["127.0.0.1:7771", "evil.com"]), 400);
    }

    #[test]
    fn on_the_local_socket_any_port_will_do_and_no_other_name() {
        for host in ["localhost", "localhost:80", "127.0.0.1:1", "[::1]:65535"] {
            assert_eq!(host_status(Door::Socket, &[host]), 200, "{host}");
        }
        for host in [
            "evil.com",
            "localhost:",
            "localhost:x",
            "localhost:+1",
            "localhost:65536",
        ] {
            assert_eq!(host_status(Door::Socket, &[host]), 403, "{host}");
        }
        assert_eq!(host_status(Door::Socket, &[]), 400);
    }

    #[test]
    fn a_target_that_is_no_path_is_malformed() {
        assert_eq!(status("GET", "http://127.0.0.1:7771/healthz", &[]), 400);
        assert_eq!(status("GET", "*", &[]), 400);
        assert_eq!(status("CONNECT", "127.0.0.1:7771", &[]), 400);
        assert_eq!(status("GET", "/anything/at?all", &[]), 200);
    }

    #[test]
    fn pages_of_other_sites_are_refused_on_every_path() {
        for path in ["/healthz", "/mcp/tools", "/no/such/path", "/mcp/oauth/callback/"] {
            for headers in [
                [("origin", "https://evil.example")],
                [("origin", "null")],
                [("origin", "")],
                [("origin", "http://127.0.0.1:7771")],
                [("sec-fetch-site", "cross-site")],
                [("sec-fetch-site", "same-site")],
                [("sec-fetch-site", "")],
                [("sec-fetch-site", "None")],
            ] {
                assert_eq!(status("GET", path, &headers), 403, "{path} {headers:?}");
            }
            for headers in [
                [("sec-fetch-site", "none")],
                [("sec-fetch-site", "same-origin")],
                [("sec-fetch-mode", "cors")],
            ] {
                assert_eq!(status("GET", path, &headers), 200, "{path} {headers:?}");
            }
        }
        let twice = [("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")];
        assert_eq!(status("GET", "/healthz", &twice), 403);
    }

    #[test]
    fn an_allowed_origin_passes_once_and_null_cannot_be_allowed() {
        let allowed = ["https://ok.example".to_owned(), "null".to_owned()];
        let with = |headers: &[(&str, &str)]| {
            let mut all = vec![("host", "localhost")];
            all.extend_from_slice(headers);
            check(&head("GET", "/healthz", &all), b"", DOOR, &allowed).is_ok()
        };
        assert!(with(&[("origin", "https://ok.example")]));
        assert!(with(&[
            ("origin", "https://ok.example"),
            ("sec-fetch-site", "cross-site")
        ]));
        assert!(!with(&[("origin", "https://ok.example.evil")]));
        assert!(!with(&[
            ("origin", "https://ok.example"),
            ("origin", "https://ok.example")
        ]));
        assert!(!with(&[("origin", "null")]));
    }

    #[test]
    fn only_the_get_of_the_sign_in_callback_may_come_from_another_site() {
        let cross = [("origin", "null"), ("sec-fetch-site", "cross-site")];
        assert_eq!(status("GET", "/mcp/oauth/callback?state=x&code=y", &cross), 200);
        assert_eq!(status("HEAD", "/mcp/oauth/callback", &cross), 403);
        assert_eq!(status("POST", "/mcp/oauth/callback", &cross), 403);
        assert_eq!(status("GET", "/mcp/oauth/callback/x", &cross), 403);
        assert_eq!(status("GET", "/mcp/oauth%2Fcallback", &cross), 403);
        assert_eq!(status("GET", "//mcp/oauth/callback", &cross), 403);
        let host = head("GET", CALLBACK_PATH, &[("host", "evil.com")]);
        assert_eq!(check(&host, b"", DOOR, &[]).unwrap_err().code, Code::HostNotAllowed);
    }

    #[test]
    fn preflights_get_nothing() {
        assert_eq!(status("OPTIONS", "/mcp/call", &[]), 405);
        assert_eq!(status("OPTIONS", "/no/such/path", &[]), 405);
    }

    #[test]
    fn a_post_is_json_in_utf8_and_nothing_else() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
            "application/json;",
        ] {
            assert_eq!(status("POST", "/x", &[("content-type", good)]), 200, "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "text/plain;application/json",
            "text/plain; application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/json; charset=utf-7",
            "application/json; charset=utf-8; charset=utf-7",
            "application/json; boundary=x",
            "application/jsonx",
            "application/problem+json",
            "application/json, text/plain",
        ] {
            assert_eq!(status("POST", "/x", &[("content-type", bad)]), 415, "{bad}");
        }
        assert_eq!(status("POST", "/x", &[]), 415);
        let json = ("content-type", "application/json");
        assert_eq!(status("POST", "/x", &[json, json]), 415);
        assert_eq!(status("POST", "/x", &[json, ("content-encoding", "gzip")]), 415);
        assert_eq!(status("POST", "/x", &[json, ("content-encoding", "identity")]), 415);
        assert_eq!(status("POST", "/x", &[json, ("expect", "100-continue")]), 400);
    }

    #[test]
    fn a_declared_length_over_the_limit_is_refused_before_a_byte_of_it() {
        let json = ("content-type", "application/json");
        for (path, length, expected) in [
            ("/mcp/call", "1048576", 200),
            ("/mcp/call", "1048577", 413),
            ("/mcp/servers/add", "65536", 200),
            ("/mcp/servers/add", "65537", 413),
            ("/no/such/path", "65537", 413),
            ("/mcp/call", "99999999999999999999999", 413),
        ] {
            let headers = [json, ("content-length", length)];
            assert_eq!(status("POST", path, &headers), expected, "{path} {length}");
        }
    }

    #[test]
    fn two_framings_of_one_body_are_refused_whatever_the_parser_dropped() {
        let chunked = head(
            "POST",
            "/x",
            &[
                ("host", "localhost"),
                ("content-type", "application/json"),
                ("transfer-encoding", "chunked"),
            ],
        );
        let verdict = |raw: &str| check(&chunked, raw.as_bytes(), DOOR, &[]).is_ok();
        assert!(verdict(
            "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\ncontent-length: 5"
        ));
        assert!(verdict("\r\nPOST /x HTTP/1.1\nTransfer-Encoding: chunked\n\n"));
        for raw in [
            "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
            "POST /x HTTP/1.1\r\ncontent-LENGTH:5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n",
            "x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "",
        ] {
            assert!(!verdict(raw), "{raw:?}");
        }
    }
}
