//! As what servers may read a resource's address. Pure.
//!
//! A rule that denies is about what is read, however its address is spelled. So its patterns are compared with every
//! reading that is known; where an address cannot be read for certain, it counts as each of them.

use percent_encoding::percent_decode_str;
use url::Url;

use crate::tools::pattern;

/// An address that was encoded more often than this was meant to be unclear.
const MOST_DECODED: usize = 4;

/// What a resource's address may mean, without regard to the case of letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Readings {
    /// Nobody can say: anything.
    Unclear,
    Known(Vec<String>),
}

/// A pattern of a rule that denies resources, in the forms that addresses are read in.
#[derive(Debug, Clone)]
pub(super) struct Denied(Vec<String>);

impl Readings {
    pub(super) fn of(address: &str) -> Self {
        let Some(clear) = decoded(address) else {
            return Self::Unclear;
        };
        let mut known = vec![address.to_lowercase(), clear.to_lowercase()];
        let mut forms = vec![plain(&clear, None), plain_whole(&clear)];
        // Some servers cut `file://` off, and what stands where a host would is a folder to them.
        let file = clear.to_lowercase();
        forms.extend(
            file.strip_prefix("file://")
                .map(|path| format!("file:///{path}"))
                .into_iter()
                .flat_map(|file| [plain(&file, None), plain_whole(&file)]),
        );
        match Url::parse(address) {
            Ok(url) => forms.push(decoded(url.as_str()).and_then(|read| plain(&read, host_of(&url)))),
            // What has a host has to be an address; all else is a name that the server gives.
            Err(_) if clear.contains("://") => return Self::Unclear,
            Err(_) => {}
        }
        for form in forms {
            match form {
                Some(form) => known.extend(with_less(&form)),
                None => return Self::Unclear,
            }
        }
        known.sort();
        known.dedup();
        Self::Known(known)
    }
}

impl Denied {
    pub(super) fn of(pattern: &str) -> Self {
        let mut forms = vec![pattern.to_lowercase()];
        // One that cannot be read otherwise stands as it is written.
        if let Some(clear) = decoded(pattern) {
            forms.push(clear.to_lowercase());
            forms.extend(plain(&clear, None));
        }
        forms.sort();
        forms.dedup();
        Self(forms)
    }

    pub(super) fn may_mean(&self, readings: &Readings) -> bool {
        match readings {
            Readings::Unclear => true,
            Readings::Known(known) => known.iter().any(|reading| pattern::any_matches(&self.0, reading)),
        }
    }
}

/// With all that is encoded read; `None` where that says nothing for certain.
fn decoded(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    for _ in 0..MOST_DECODED {
        if text.contains(char::is_control) {
            return None;
        }
        let next = percent_decode_str(&text).decode_utf8().ok()?.into_owned();
        if next == text {
            return Some(text);
        }
        text = next;
    }
    None
}

/// The host without its port where that goes without saying, and without the dots at its end.
fn host_of(url: &Url) -> Option<String> {
    let host = url.host_str()?.trim_end_matches('.');
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

/// In small letters, with one slash where there are several, without parts that lead nowhere or back, and of
/// files without a host; `None` where it leads out of where it begins. `host`: as it was read, in place of what is written.
fn plain(text: &str, host: Option<String>) -> Option<String> {
    straightened(text, host, &['?', '#'])
}

/// The same to servers for which a path goes on behind these signs.
fn plain_whole(text: &str) -> Option<String> {
    straightened(text, None, &[])
}

/// `ends`: what a path ends at.
fn straightened(text: &str, host: Option<String>, ends: &[char]) -> Option<String> {
    let text = text.to_lowercase().replace('\\', "/");
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        Some(_) | None => (None, text.as_str()),
    };
    let (begin, path) = match (scheme, rest.strip_prefix("//")) {
        (Some(scheme), Some(rest)) => {
            let end = rest.find(|c| c == '/' || ends.contains(&c)).unwrap_or(rest.len());
            let (written, path) = rest.split_at(end);
            let host = host.unwrap_or_else(|| without_idle_parts(scheme, written));
            // Whatever the host, servers read files of theirs.
            let host = if scheme == "file" { "" } else { &host };
            (format!("{scheme}://{host}"), path)
        }
        // `file:/x` and `file:///x` are one.
        (Some("file"), None) => ("file://".to_owned(), rest),
        (Some(scheme), None) => (format!("{scheme}:"), rest),
        (None, _) => (String::new(), rest),
    };
    let (path, more) = path.split_at(path.find(ends).unwrap_or(path.len()));
    Some(format!("{begin}{}{more}", straight(path)?))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Of a host as it is written: no names of users, no port that goes without saying, no dots at its end.
fn without_idle_parts(scheme: &str, written: &str) -> String {
    let host = written.rsplit_once('@').map_or(written, |(_, host)| host);
    let port = match scheme {
        "http" | "ws" => ":80",
        "https" | "wss" => ":443",
        "ftp" => ":21",
        _ => "",
    };
    host.strip_suffix(port).unwrap_or(host).trim_end_matches('.').to_owned()
}

fn straight(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            // A whole path ends at its root; another one leads out of where it begins.
            ".." if parts.pop().is_none() && !path.starts_with('/') => return None,
            ".." => {}
            part => parts.push(part),
        }
    }
    let begin = if path.starts_with('/') { "/" } else { "" };
    let end = if path.ends_with('/') && !parts.is_empty() {
        "/"
    } else {
        ""
    };
    Some(format!("{begin}{}{end}", parts.join("/")))
}

/// The same without what servers may leave out: what follows the path, and the slash at its end.
fn with_less(plain: &str) -> Vec<String> {
    let path = &plain[..plain.find(['?', '#']).unwrap_or(plain.len())];
    let trimmed = path.strip_suffix('/').filter(|rest| !rest.ends_with('/'));
    [Some(plain), Some(path), trimmed]
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denies(pattern: &str, address: &str) -> bool {
        Denied::of(pattern).may_mean(&Readings::of(address))
    }

    #[test]
    fn no_spelling_of_a_forbidden_address_gets_past_its_rule() {
        for (pattern, addresses) in [
            (
                "file:///secret/*",
                &[
                    "file:///secret/a",
                    "file:///x/../secret/a",
                    "file:///x/y/../../secret/a",
                    "file:///../secret/a",
                    "file:///./secret/a",
                    "file:///secret/./a",
                    "file:////secret/a",
                    "file:///secret//a",
                    "FILE:///secret/a",
                    "file:///SECRET/a",
                    "file:///%73ecret/a",
                    "file:///%2573ecret/a",
                    "file:///secret%2Fa",
                    "file:///secret%2fa",
                    "file:///x%2f..%2fsecret/a",
                    "file:///%2e%2e/secret/a",
                    "file:///x/%2E%2E/secret/a",
                    "file:///secret%5Ca",
                    "file:///secret\\a",
                    "file:\\\\\\secret\\a",
                    "file://localhost/secret/a",
                    "file://LOCALHOST/secret/a",
                    "file://localhost./secret/a",
                    "file://other/secret/a",
                    "file://secret/a",
                    "file:/secret/a",
                    "file:secret/a",
                    "file:///secret/a?x=1",
                    "file:///secret/a#x",
                    "file:///secret/a/../b",
                    "file:///x?/../secret/a",
                    "file:///x#/../secret/a",
                    "file:///x%3F/../secret/a",
                    "file:///x?y/../../secret/a#z",
                    "file://x?/../secret/a",
                    " file:///secret/a",
                    "file:///sec\tret/a",
                    "file:///secret/\u{0}a",
                    "file:///%00/a",
                    "file:///%ff",
                    "file:///%25252525252541",
                ][..],
            ),
            (
                "file:///secret",
                &["file:///secret/", "file:///secret/.", "file:///x/../secret?y"],
            ),
            ("FILE:///Secret/%61*", &["file:///secret/abc"]),
            ("file://localhost/secret/*", &["file:///secret/a"]),
            ("file:/secret/*", &["file:///secret/a"]),
            (
                "https://a.example/private/*",
                &[
                    "https://A.EXAMPLE/private/x",
                    "https://a.example./private/x",
                    "https://a.example:443/private/x",
                    "https://me@a.example/private/x",
                    "https:/a.example/private/x",
                    "https:\\\\a.example\\private\\x",
                    "https://a.example/x/..//private/x?y",
                    "https://%61.example/private/x",
                    "https://\u{ff41}.example/private/x",
                ],
            ),
            ("https://127.0.0.1/*", &["https://2130706433/x", "https://0x7f.1/x"]),
            (
                "notes:private/*",
                &[
                    "NOTES:private/a",
                    "notes:x/../private/a",
                    "notes:%70rivate/a",
                    "notes:../x",
                ],
            ),
            (
                "memo://box/private/*",
                &[
                    "memo://BOX/private/a",
                    "memo://box/x/../private/a",
                    "memo://box//private/a",
                ],
            ),
            (
                "private/*",
                &["private/a", "./private/a", "x/../private/a", "../private/a"],
            ),
            ("file:///caf\u{e9}/*", &["file:///caf%C3%A9/a", "file:///CAF\u{c9}/a"]),
        ] {
            for address in addresses {
                assert!(
                    denies(pattern, address),
                    "{pattern} and {address}: {:?}",
                    Readings::of(address)
                );
            }
        }
    }

    #[test]
    fn what_is_elsewhere_however_it_is_read_is_not_meant() {
        for (pattern, addresses) in [
            (
                "file:///secret/*",
                &[
                    "file:///notes/today.md",
                    "file:///secrets/a",
                    "file:///x/secret/a",
                    "file:///notes/100%",
                    "notes:secret/a",
                    "https://a.example/secret/a",
                ][..],
            ),
            (
                "https://a.example/private/*",
                &["https://a.example/public", "http://a.example/private/x"],
            ),
            ("notes:private/*", &["notes:today", "notes:privately/a"]),
        ] {
            for address in addresses {
                assert!(
                    !denies(pattern, address),
                    "{pattern} and {address}: {:?}",
                    Readings::of(address)
                );
            }
        }
    }
}
