//! Whether the address of a sign-in page may be opened. Pure.

use url::{Host, Url};

use crate::reach::{Zone, is_loopback};

/// Longest address in bytes.
const LONGEST: usize = 4096;
/// What a URL never holds as it is (RFC 3986 §2), and shells read.
const FOREIGN: [char; 10] = ['"', '\'', '<', '>', '\\', '^', '`', '{', '|', '}'];

/// The address, where it is safe to hand to the system: https, or http on this computer for a connector that is there
/// too; a plain host; no credentials, no fragment (RFC 6749 §3.1).
pub(super) fn safe(text: &str, zone: Zone) -> Option<Url> {
    if text.len() > LONGEST || !text.chars().all(|c| c.is_ascii_graphic() && !FOREIGN.contains(&c)) {
        return None;
    }
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let host = rest.split(['/', '?', '#']).next()?;
    if host.is_empty() || !host.bytes().all(in_host) {
        return None;
    }
    let url = Url::parse(text).ok()?;
    let is_web = match url.scheme() {
        "https" => true,
        "http" => zone == Zone::Loopback && is_loopback(&url),
        _ => false,
    };
    let is_named = match url.host()? {
        Host::Domain(name) => name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-')),
        Host::Ipv4(_) | Host::Ipv6(_) => true,
    };
    let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    (is_web && is_named && is_plain && zone.may_name_url(&url)).then_some(url)
}

/// A host and a port, also an address in brackets.
fn in_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':' | b'[' | b']')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_not_safe_to_open_is_refused() {
        for text in [
            r"a:$(cmd.exe /c whoami > c:\temp\pwned.txt)",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "ms-msdt:/id PCWDiagnostic",
            "http://h$(x)/",
            "https://h$(x)/",
            "https://user:pass@auth.example.com/authorize",
            "https://auth.example.com/authorize\u{0}",
            "https://auth.example.com/a\nb",
            " https://auth.example.com/",
            "https://auth.example.com/authorize#x",
            "https:auth.example.com/authorize",
            "HTTPS://auth.example.com/authorize",
            "https://auth.example.com\\@evil.example/",
            "https://auth_x.example.com/",
            "https://аuth.example.com/",
            "https:///authorize",
            "https://",
            "http://auth.example.com/authorize",
            "https://127.0.0.1/authorize",
            "https://localhost/authorize",
            "https://169.254.169.254/authorize",
            "https://10.0.0.1/authorize",
            "data:text/html,x",
            "vbscript:x",
            "neuron-connect://add?config=x",
            "https://auth.example.com/`id`",
            "",
        ] {
            assert_eq!(safe(text, Zone::Public), None, "{text}");
        }
        assert_eq!(safe("http://auth.example.com/", Zone::Loopback), None);
        assert_eq!(
            safe(&format!("https://a.example/{}", "x".repeat(5000)), Zone::Public),
            None
        );
    }

    #[test]
    fn the_page_of_an_honest_server_is_opened() {
        for text in [
            "https://auth.example.com/authorize",
            "https://auth.example.com:8443/o/authorize?tenant=a%20b",
            "https://xn--bcher-kva.example/authorize",
            "https://93.184.216.34/authorize",
        ] {
            assert_eq!(safe(text, Zone::Public).unwrap().as_str(), text);
        }
        for text in [
            "http://127.0.0.1:4000/authorize",
            "http://localhost:4000/a",
            "http://[::1]:1/a",
        ] {
            assert!(safe(text, Zone::Loopback).is_some(), "{text}");
            assert!(safe(text, Zone::Public).is_none(), "{text}");
        }
    }
}
