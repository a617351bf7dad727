//! Whether a web address is of an origin and below a path. Pure.
//!
//! Programs disagree about addresses that are written oddly: what is before an `@`, what a backslash is, whether `%2e%2e`
//! climbs. An address fits only where no reader could take it for another one, and differs only where none could take
//! it for the one that is meant.

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::Fit;

/// `origin` as `scheme://host[:port]`, `path` in decoded segments.
pub(super) fn fit(text: &str, origin: &str, path: &[String]) -> Fit {
    let (Ok(given), Some(wanted)) = (Url::parse(text), read_origin(origin)) else {
        return Fit::Unsure;
    };
    let Some(plain) = Plain::read(text, &given) else {
        // Written oddly. Read as a browser would, it may still be far from what is meant.
        return if is_odd(text) || same_site(&given, &wanted) {
            Fit::Unsure
        } else {
            Fit::Differs
        };
    };
    if !same_site(&given, &wanted) {
        return Fit::Differs;
    }
    if given.host() != wanted.host() {
        return Fit::Unsure;
    }
    plain.below(path)
}

/// The origin alone, or nothing where it is none that a condition may name.
pub(super) fn read_origin(origin: &str) -> Option<Url> {
    let url = Url::parse(origin).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https");
    (is_web && url.origin().ascii_serialization() == origin).then_some(url)
}

/// An address that everybody reads in the same way.
struct Plain {
    /// Decoded; `None` for one that could be read in another way.
    segments: Vec<Option<String>>,
}

impl Plain {
    /// `given` is `text`, parsed.
    fn read(text: &str, given: &Url) -> Option<Self> {
        if is_odd(text) {
            return None;
        }
        let (scheme, rest) = text.split_once("://")?;
        if !scheme.eq_ignore_ascii_case(given.scheme()) || !matches!(given.scheme(), "http" | "https") {
            return None;
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if !is_spelled(authority, given) {
            return None;
        }
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        let mut segments: Vec<_> = path.strip_prefix('/').unwrap_or(path).split('/').map(decoded).collect();
        // The slash at the end ends a segment and begins none.
        if segments.last().is_some_and(|last| last.as_deref() == Some("")) {
            segments.pop();
        }
        Some(Self { segments })
    }

    fn below(&self, path: &[String]) -> Fit {
        // One doubtful segment anywhere can undo those before it.
        if self
            .segments
            .iter()
            .any(|segment| !segment.as_deref().is_some_and(is_certain))
        {
            return Fit::Unsure;
        }
        let begins = self.segments.len() >= path.len()
            && self
                .segments
                .iter()
                .zip(path)
                .all(|(given, wanted)| given.as_ref() == Some(wanted));
        let begins_in_other_case = self.segments.len() >= path.len()
            && self.segments.iter().zip(path).all(|(given, wanted)| {
                given
                    .as_ref()
                    .is_some_and(|given| given.to_lowercase() == wanted.to_lowercase())
            });
        match (begins, begins_in_other_case) {
            (true, _) => Fit::Fits,
            // Some servers do not mind case.
            (false, true) => Fit::Unsure,
            (false, false) => Fit::Differs,
        }
    }
}

/// Whether a segment means itself to every server.
pub(super) fn is_certain(segment: &str) -> bool {
    !segment.is_empty()
        && segment != "."
        && segment != ".."
        && !segment.contains(['/', '\\', ';', '%'])
        && !segment.contains(char::is_control)
}

fn decoded(segment: &str) -> Option<String> {
    percent_decode_str(segment).decode_utf8().ok().map(Into::into)
}

/// Whether readers are known to disagree about which host such a text names.
fn is_odd(text: &str) -> bool {
    let Some((_, after_scheme)) = text.split_once(':').filter(|(_, rest)| rest.starts_with("//")) else {
        return true;
    };
    let authority = after_scheme.trim_start_matches('/');
    let authority = &authority[..authority.find(['/', '?', '#']).unwrap_or(authority.len())];
    text.contains('\\')
        || text.contains(|c: char| c.is_control() || c.is_whitespace())
        || authority.contains('@')
        || !authority.is_ascii()
}

/// Whether the host and port are written as they are parsed: no other form of a number, no letters that become others.
fn is_spelled(authority: &str, given: &Url) -> bool {
    let Some(host) = given.host_str() else {
        return false;
    };
    let spelled = |text: &str| text.eq_ignore_ascii_case(host) && !host.ends_with('.');
    if spelled(authority) {
        return given.port().is_none();
    }
    authority.rsplit_once(':').is_some_and(|(name, port)| {
        spelled(name)
            && given
                .port_or_known_default()
                .is_some_and(|number| number.to_string() == port)
    })
}

/// The same scheme, host and port; neither a dot at the host's end nor IPv4 within IPv6 makes a difference.
fn same_site(one: &Url, other: &Url) -> bool {
    let host = |url: &Url| match url.host() {
        Some(Host::Domain(name)) => Some(name.trim_end_matches('.').to_owned()),
        Some(Host::Ipv4(address)) => Some(address.to_string()),
        Some(Host::Ipv6(address)) => Some(address.to_canonical().to_string()),
        None => None,
    };
    one.scheme() == other.scheme()
        && host(one) == host(other)
        && one.port_or_known_default() == other.port_or_known_default()
}

#[cfg(test)]
mod tests;
