//! Where an old server wants its messages: resolved against its own address, and never another origin. Pure.

use url::Url;

/// Why an endpoint is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It is no address.
    #[error("it named no usable address for messages")]
    Unreadable,
    /// It is somewhere else; the origin, without path and query.
    #[error("it wants messages, and what the entry's headers hold, sent to another place ({0}), which is refused")]
    OtherOrigin(String),
}

/// The address that an `endpoint` event names.
pub(super) fn resolve(base: &Url, endpoint: &str) -> Result<Url, EndpointError> {
    let url = base.join(endpoint.trim()).map_err(|_| EndpointError::Unreadable)?;
    if endpoint.trim().is_empty() || !matches!(url.scheme(), "http" | "https") {
        return Err(EndpointError::Unreadable);
    }
    if url.origin() != base.origin() {
        return Err(EndpointError::OtherOrigin(url.origin().ascii_serialization()));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(endpoint: &str) -> Result<String, EndpointError> {
        let base = Url::parse("https://example.com:8443/a/sse?key=1").unwrap();
        resolve(&base, endpoint).map(String::from)
    }

    #[test]
    fn an_endpoint_is_a_path_or_an_address_of_the_same_origin() {
        for (endpoint, url) in [
            ("/message?sessionId=1", "https://example.com:8443/message?sessionId=1"),
            ("message", "https://example.com:8443/a/message"),
            ("?s=1", "https://example.com:8443/a/sse?s=1"),
            (" https://example.com:8443/x ", "https://example.com:8443/x"),
        ] {
            assert_eq!(told(endpoint).as_deref(), Ok(url), "{endpoint}");
        }
    }

    #[test]
    fn any_other_origin_is_refused_by_name() {
        for (endpoint, origin) in [
            ("https://example.com/x", "https://example.com"),
            ("http://example.com:8443/x", "http://example.com:8443"),
            ("//evil.example/x?key=SECRET", "https://evil.example"),
            ("https://example.com:8443@evil.example/x", "https://evil.example"),
            ("\\\\evil.example\\x", "https://evil.example"),
        ] {
            let refused = Err(EndpointError::OtherOrigin(origin.to_owned()));
            assert_eq!(told(endpoint), refused, "{endpoint}");
        }
        for endpoint in [
            "",
            "  ",
            "javascript:alert(1)",
            "data:,x",
            "file:///etc/passwd",
            "https://",
        ] {
            assert_eq!(told(endpoint), Err(EndpointError::Unreadable), "{endpoint}");
        }
    }
}
