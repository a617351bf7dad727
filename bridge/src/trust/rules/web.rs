//! Whether a web address is of an origin and below a path. Pure.
//!
//! Programs disagree about addresses that are written oddly: what is before an `@`, what a backslash is, whether `%2e%2e`
//! climbs. An address fits only where no reader could take it for another one, and differs only where none could take
//! it for the one that is meant.

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::{Fit, sameness::folded};
use crate::trust::scan::is_hidden;

/// `origin` as `scheme://host[:port]`, `path` in decoded segments.
pub(super) fn fit(text: &str, origin: &str, path: &[String]) -> Fit {
    if is_file(text) {
        return Fit::Differs;
    }
    let given = Some(text).filter(|text| !is_odd(text)).and_then(Given::read);
    let (Some(given), Some(wanted)) = (given, read_origin(origin)) else {
        return Fit::Unsure;
    };
    match (given.site(&wanted), given.spelling) {
        (Site::Other, _) => Fit::Differs,
        (Site::Same, Spelling::Plain) => below(&given.segments, path),
        // The same host by another scheme: what is certainly another page stays so.
        (Site::OtherScheme, Spelling::Plain) => match below(&given.segments, path) {
            Fit::Fits | Fit::Unsure => Fit::Unsure,
            Fit::Differs => Fit::Differs,
        },
        (Site::Same | Site::OtherScheme, Spelling::Other) => Fit::Unsure,
    }
}

/// The origin alone, or nothing where it is none that a condition may name.
pub(super) fn read_origin(origin: &str) -> Option<Url> {
    let url = Url::parse(origin).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https");
    (is_web && url.origin().ascii_serialization() == origin).then_some(url)
}

/// An address with a host, which is where it seems to be.
struct Given {
    /// With `https` in place of a scheme that is none of the web's, so that its host is read like theirs.
    url: Url,
    scheme: String,
    spelling: Spelling,
    /// Decoded; `None` for one that could be read in another way.
    segments: Vec<Option<String>>,
}

/// Whether the host and port are written as they are read: no other form of a number, no letters that become others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Plain,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Site {
    Same,
    /// The same host, by another scheme that may lead to the same server.
    OtherScheme,
    Other,
}

impl Given {
    /// `text` is not odd.
    fn read(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let url = match scheme.as_str() {
            "http" | "https" => Url::parse(text),
            _ => Url::parse(&format!("https://{rest}")),
        };
        let url = url.ok()?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let spelling = match is_spelled(authority, &url) {
            true => Spelling::Plain,
            false => Spelling::Other,
        };
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        let mut segments: Vec<_> = path.strip_prefix('/').unwrap_or(path).split('/').map(decoded).collect();
        // The slash at the end ends a segment and begins none.
        if segments.last().is_some_and(|last| last.as_deref() == Some("")) {
            segments.pop();
        }
        Some(Self {
            url,
            scheme,
            spelling,
            segments,
        })
    }

    fn site(&self, wanted: &Url) -> Site {
        let (given, wanted_host) = (host(&self.url), host(wanted));
        if given.is_none() || given != wanted_host {
            return Site::Other;
        }
        if self.scheme == wanted.scheme() {
            return match self.url.port_or_known_default() == wanted.port_or_known_default() {
                // One of the names of this computer, and not the one that is meant.
                true if self.url.host() != wanted.host() => Site::OtherScheme,
                true => Site::Same,
                false => Site::Other,
            };
        }
        match self.url.port() {
            None => Site::OtherScheme,
            port if port == wanted.port_or_known_default() => Site::OtherScheme,
            Some(_) => Site::Other,
        }
    }
}

/// Neither a dot at the host's end nor IPv4 within IPv6 makes a difference, nor by which name this computer is meant.
fn host(url: &Url) -> Option<String> {
    let (name, is_here) = match url.host()? {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_owned();
            let is_here = name == "localhost" || name.ends_with(".localhost");
            (name, is_here)
        }
        Host::Ipv4(address) => (address.to_string(), address.is_loopback() || address.is_unspecified()),
        Host::Ipv6(address) => {
            let address = address.to_canonical();
            (address.to_string(), address.is_loopback() || address.is_unspecified())
        }
    };
    Some(if is_here { "localhost".to_owned() } else { name })
}

fn below(given: &[Option<String>], path: &[String]) -> Fit {
    // One doubtful segment anywhere can undo those before it.
    let Some(given) = given
        .iter()
        .map(|segment| segment.as_deref().filter(|segment| is_certain(segment)))
        .collect::<Option<Vec<_>>>()
    else {
        return Fit::Unsure;
    };
    let begins = |is_same: fn(&str, &str) -> bool| {
        given.len() >= path.len() && given.iter().zip(path).all(|(given, wanted)| is_same(given, wanted))
    };
    if begins(|given, wanted| given == wanted) {
        Fit::Fits
    } else if begins(is_alike) {
        Fit::Unsure
    } else {
        Fit::Differs
    }
}

/// Some servers do not mind case, nor blanks and dots at the end of a name.
fn is_alike(given: &str, wanted: &str) -> bool {
    let bare = |text: &str| {
        folded(text)
            .trim_end_matches(|c: char| c == '.' || c.is_whitespace())
            .to_owned()
    };
    bare(given) == bare(wanted)
}

/// Whether a segment means itself to every server.
pub(super) fn is_certain(segment: &str) -> bool {
    let seen = folded(segment);
    let bare = seen.trim_matches(|c: char| c == '.' || c.is_whitespace());
    // Only dots, also once they are written plainly.
    !bare.is_empty()
        && !seen.contains(['/', '\\', ';', '%', '?', '#'])
        && !segment.contains(['/', '\\', ';', '%', '?', '#'])
        && !segment.contains(is_hidden)
        && !segment.contains(char::is_control)
}

fn decoded(segment: &str) -> Option<String> {
    percent_decode_str(segment).decode_utf8().ok().map(Into::into)
}

/// Whether it is a file of this computer, which no host is asked for.
fn is_file(text: &str) -> bool {
    let rest = text
        .split_at_checked("file:///".len())
        .filter(|(begin, _)| begin.eq_ignore_ascii_case("file:///"));
    rest.is_some_and(|(_, path)| !path.starts_with(['/', '\\']) && !path.contains(','))
}

/// Whether readers are known to disagree about which address such a text is, or how many.
fn is_odd(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return true;
    };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    // Brackets around an IPv6 address are the only ones that stand for themselves.
    let host = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((inner, port)) if port.is_empty() || port.starts_with(':') => [inner, port],
        Some(_) | None => [authority, ""],
    };
    let is_odd = |c: char| {
        c.is_control()
            || c.is_whitespace()
            || is_hidden(c)
            || matches!(
                c,
                '\\' | ',' | '{' | '}' | '[' | ']' | '|' | '"' | '<' | '>' | '^' | '`'
            )
    };
    !is_scheme
        || authority.is_empty()
        || !authority.is_ascii()
        || authority.contains(['@', '%'])
        || host.iter().any(|part| part.contains(is_odd))
        || path.contains(is_odd)
}

/// Whether the host and port are written as they are parsed.
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

#[cfg(test)]
mod tests;
