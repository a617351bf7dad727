//! Where a sign-in leads, and whether those places belong together. Pure.

use url::{Host, Url};

use crate::reach::is_loopback;

/// Where a sign-in leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) issuer: String,
    /// Host and port of the page to sign in at.
    pub(super) page: String,
    /// Host and port at which the code becomes the access.
    pub(super) tokens: String,
}

/// Whether both are of one registrable domain (as the public suffix list has it), the same address, or both on this
/// computer.
pub(super) fn belong_together(one: &Url, other: &Url) -> bool {
    if is_loopback(one) || is_loopback(other) {
        return is_loopback(one) && is_loopback(other);
    }
    match (one.host(), other.host()) {
        (Some(Host::Domain(one)), Some(Host::Domain(other))) => registrable(one) == registrable(other),
        (one, other) => one.is_some() && one == other,
    }
}

/// A name without one, such as a host of the person's own network, stands for itself.
fn registrable(host: &str) -> &str {
    let host = host.trim_end_matches('.');
    psl::domain_str(host).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_registrable_domain_belongs_together() {
        for (one, other, together) in [
            ("https://mcp.example.com/mcp", "https://auth.example.com", true),
            ("https://example.com", "https://example.com.", true),
            ("https://example.com", "https://example.org", false),
            ("https://a.co.uk", "https://b.co.uk", false),
            ("https://one.github.io", "https://two.github.io", false),
            ("https://intranet", "https://intranet", true),
            ("https://intranet", "https://other", false),
            ("https://10.0.0.1", "https://10.0.0.1:8443", true),
            ("https://10.0.0.1", "https://10.0.0.2", false),
            ("http://127.0.0.1:1", "http://localhost:2", true),
            ("http://127.0.0.1:1", "https://example.com", false),
        ] {
            let (one, other) = (Url::parse(one).unwrap(), Url::parse(other).unwrap());
            assert_eq!(belong_together(&one, &other), together, "{one} {other}");
        }
    }
}
