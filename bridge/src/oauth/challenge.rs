//! What a server asks for when it turns a request away. Pure.

use http_auth::ChallengeParser;
use url::Url;

use super::need::Challenge;

/// Longest list of scopes that is looked at.
const MOST_SCOPES: usize = 100;

/// What a challenge wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// A sign-in; also where nothing legible was said.
    SignIn,
    /// A token that allows more: these scopes (RFC 6750 §3.1 `insufficient_scope`).
    MoreScopes(Vec<String>),
    /// Only schemes that this app does not have; the first one's name.
    Unsupported(String),
}

impl Challenge {
    /// What the server wants.
    pub fn wanted(&self) -> Wanted {
        read(self).map_or_else(Wanted::Unsupported, |asked| {
            if asked.error.as_deref() == Some("insufficient_scope") {
                Wanted::MoreScopes(asked.scopes)
            } else {
                Wanted::SignIn
            }
        })
    }
}

/// The bearer challenge among a server's challenges; empty where it said nothing legible.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Asked {
    /// RFC 9728 §5.1; may be relative to the server's own address.
    pub(super) resource_metadata: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) error: Option<String>,
}

impl Asked {
    /// Where the server says that its metadata is.
    pub(super) fn metadata_url(&self, server: &Url) -> Option<Url> {
        server.join(self.resource_metadata.as_deref()?).ok()
    }
}

/// Reads the bearer challenge among all; the error is the name of the only schemes there are.
///
/// What cannot be read ends the reading; what was read before it counts.
pub(super) fn read(challenge: &Challenge) -> Result<Asked, String> {
    let mut other = None;
    // The parser takes no other letters, which only the words for people hold.
    let text: String = challenge
        .0
        .chars()
        .map(|c| if c.is_ascii() { c } else { '?' })
        .collect();
    for part in ChallengeParser::new(&text) {
        let Ok(part) = part else { break };
        let is = |name: &str| part.scheme.eq_ignore_ascii_case(name);
        if is("Bearer") || is("OAuth") {
            return Ok(asked(&part.params));
        }
        other = other.or_else(|| Some(part.scheme.to_owned()));
    }
    other.map_or_else(|| Ok(Asked::default()), |scheme| Err(shown(&scheme)))
}

fn asked(parameters: &[(&str, http_auth::ParamValue<'_>)]) -> Asked {
    let value = |name: &str| {
        let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_unescaped())
    };
    Asked {
        resource_metadata: value("resource_metadata"),
        scopes: value("scope").map(|text| scopes(&text)).unwrap_or_default(),
        error: value("error"),
    }
}

/// The scopes of a space-separated list (RFC 6749 §3.3), each once; what is no scope is left out.
pub(super) fn scopes(text: &str) -> Vec<String> {
    let mut scopes = Vec::new();
    for scope in text.split(' ').filter(|scope| is_scope(scope)).take(MOST_SCOPES) {
        if !scopes.iter().any(|known| known == scope) {
            scopes.push(scope.to_owned());
        }
    }
    scopes
}

/// RFC 6749 §3.3.
pub(super) fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\'))
}

fn shown(scheme: &str) -> String {
    scheme.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Asked, String> {
        read(&Challenge(text.to_owned()))
    }

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        let text =
            r#"Basic realm="a", bearer error="invalid_token", resource_metadata="https://x.example/m", scope="b c b""#;
        let asked = of(text).unwrap();
        assert_eq!(asked.resource_metadata.as_deref(), Some("https://x.example/m"));
        assert_eq!(asked.scopes, ["b", "c"]);
        assert_eq!(asked.error.as_deref(), Some("invalid_token"));
    }

    #[test]
    fn silence_and_noise_are_a_plain_wish_to_sign_in() {
        for text in ["", "Bearer", "\u{fffd}", "=,=", "Bearer realm=\"caf\u{e9}\""] {
            assert_eq!(Challenge(text.to_owned()).wanted(), Wanted::SignIn, "{text:?}");
        }
    }

    #[test]
    fn a_scheme_that_this_app_does_not_have_is_named() {
        for (text, scheme) in [("Basic realm=\"x\"", "Basic"), ("Digest a=b, Negotiate", "Digest")] {
            assert_eq!(
                Challenge(text.to_owned()).wanted(),
                Wanted::Unsupported(scheme.into()),
                "{text}"
            );
        }
    }

    #[test]
    fn more_scopes_are_asked_for_by_name() {
        let more = Challenge(r#"Bearer error="insufficient_scope", scope="read write""#.to_owned());
        assert_eq!(more.wanted(), Wanted::MoreScopes(vec!["read".into(), "write".into()]));
    }

    #[test]
    fn metadata_may_be_given_relative_to_the_server() {
        let server = Url::parse("https://x.example/a/mcp").unwrap();
        for (given, found) in [
            ("/.well-known/m", "https://x.example/.well-known/m"),
            ("m", "https://x.example/a/m"),
            ("https://y.example/m", "https://y.example/m"),
        ] {
            let asked = of(&format!("Bearer resource_metadata=\"{given}\"")).unwrap();
            assert_eq!(asked.metadata_url(&server).unwrap().as_str(), found);
        }
    }
}
