//! URIs that may lead elsewhere than their letters say. Pure.

use percent_encoding::percent_decode_str;

/// Whether a URI may lead elsewhere than its letters say: a pattern with `*` says nothing about it. Servers disagree about
/// where a path ends, what is decoded and how often, and what is left out; so everything behind the scheme has to mean itself.
pub(super) fn is_roundabout(uri: &str) -> bool {
    let mut segments = behind_scheme(uri).split(['/', '?', '#']).enumerate().peekable();
    while let Some((number, segment)) = segments.next() {
        // No host, and a folder's own slash.
        let may_be_empty = number == 0 || segments.peek().is_none();
        let is_plain = means_itself(segment) || (segment.is_empty() && may_be_empty);
        if !is_plain {
            return true;
        }
    }
    false
}

fn behind_scheme(uri: &str) -> &str {
    match uri.split_once(':') {
        Some((_, rest)) => rest.strip_prefix("//").unwrap_or(rest),
        None => uri,
    }
}

fn means_itself(segment: &str) -> bool {
    let Ok(decoded) = percent_decode_str(segment).decode_utf8() else {
        return false;
    };
    !matches!(&*decoded, "" | "." | "..")
        && !decoded.contains(['/', '\\', '?', '#', ';', '%'])
        && !decoded.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_that_winds_or_hides_its_way_is_roundabout() {
        for uri in [
            "file:///notes/../etc/passwd",
            "file:///notes/./secret",
            "file:///notes/%2e%2e/x",
            "file:///notes/%252e%252e/x",
            "file:///notes/a%2Fb",
            "file:///notes/a%3F/x",
            "file:///notes//x",
            "file:///notes\\..\\x",
            "file:///notes/..",
            "file:///notes/..;/x",
            "file:///notes/?/../../etc/passwd",
            "file:///notes/#/../../etc/passwd",
            "file:///notes/x?y/../../../etc/passwd",
            "file:///notes/.\t./etc/passwd",
            "file:///notes/x\n",
            "file:///notes/%00",
            "file:///notes/%ff",
            "file://../etc/passwd",
            "notes:../x",
            "../x",
        ] {
            assert!(is_roundabout(uri), "{uri}");
        }
        for uri in [
            "file:///notes/today.md",
            "file:///notes/",
            "file:///notes/caf%C3%A9%20au%20lait.md",
            "file:///notes/...",
            "memo://a",
            "notes:today",
            "today",
            "https://a.example:8080/x?y=../z",
            "https://[::1]/x#y",
        ] {
            assert!(!is_roundabout(uri), "{uri}");
        }
    }
}
