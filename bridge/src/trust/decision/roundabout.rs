//! URIs that may lead elsewhere than their letters say. Pure.

/// Whether a URI may lead elsewhere than its letters say: a pattern with `*` says nothing about it.
pub(super) fn is_roundabout(uri: &str) -> bool {
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let lower = path.to_ascii_lowercase();
    let hides = ["%2e", "%2f", "%5c", "\\"].iter().any(|code| lower.contains(code));
    let mut segments = path.split('/').skip(1).peekable();
    let mut winds = false;
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        winds |= matches!(segment, "." | "..") || (segment.is_empty() && !is_last);
    }
    hides || winds
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
            "file:///notes/a%2Fb",
            "file:///notes//x",
            "file:///notes\\..\\x",
            "file:///notes/..",
        ] {
            assert!(is_roundabout(uri), "{uri}");
        }
        for uri in [
            "file:///notes/today.md",
            "file:///notes/",
            "memo://a",
            "notes:today",
            "https://a.example/x?y=../z",
        ] {
            assert!(!is_roundabout(uri), "{uri}");
        }
    }
}
