//! What comes back from a browser. Pure: it only reads.

use std::fmt;

use secrecy::SecretString;
use url::form_urlencoded;

/// The address that a browser opens to come back to the app, without its query.
pub const DEEP_LINK: &str = "neuron-connect://oauth/callback";

/// Where the bridge's own server takes the browser's answer.
pub const CALLBACK_PATH: &str = "/mcp/oauth/callback";

/// Longest deep link in bytes.
const LONGEST_LINK: usize = 2048;
/// Longest query of the loopback callback in bytes.
const LONGEST_QUERY: usize = 8192;
/// Longest state in bytes; ours is shorter.
const LONGEST_STATE: usize = 256;

/// The answer of an authorization server, as a browser brought it (RFC 6749 §4.1.2, RFC 9207). Nothing in it is believed
/// before its state is found.
#[derive(Debug, Clone)]
pub struct Callback {
    pub(super) state: String,
    /// The issuer that claims to have sent it.
    pub(super) iss: Option<String>,
    pub(super) answer: Answer,
}

#[derive(Debug, Clone)]
pub(super) enum Answer {
    Code(SecretString),
    Refusal { error: String, description: Option<String> },
}

/// That a text is no answer of an authorization server. It tells nothing of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCallback {
    #[error("it is too long")]
    TooLong,
    #[error("it does not lead to a sign-in")]
    Elsewhere,
    #[error("it holds something twice")]
    Twice,
    #[error("it holds something that an answer does not")]
    Strange,
    #[error("it lacks a state, or an answer")]
    Incomplete,
}

/// Names that an answer may hold.
const NAMES: [&str; 6] = ["code", "state", "iss", "error", "error_description", "error_uri"];
/// What common authorization servers add and nobody needs.
const ADDED: [&str; 5] = ["session_state", "scope", "authuser", "prompt", "hd"];

/// What happens to a parameter of another name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    Ignored,
    Refused,
}

impl Callback {
    /// From the query of `GET /mcp/oauth/callback`, without its question mark. Parameters that no answer has are ignored
    /// (RFC 6749 §4.1.2), such as the `id` that earlier contracts of this API used.
    ///
    /// # Errors
    /// [`InvalidCallback`].
    pub fn from_query(query: &str) -> Result<Self, InvalidCallback> {
        if query.len() > LONGEST_QUERY {
            return Err(InvalidCallback::TooLong);
        }
        read(query, Others::Ignored)
    }

    /// From a whole deep link: exactly our scheme, host and path, at most 2 KiB, each parameter once.
    ///
    /// # Errors
    /// [`InvalidCallback`].
    pub fn from_deep_link(link: &str) -> Result<Self, InvalidCallback> {
        if link.len() > LONGEST_LINK {
            return Err(InvalidCallback::TooLong);
        }
        let query = link.strip_prefix(DEEP_LINK).and_then(|rest| rest.strip_prefix('?'));
        let query = query.ok_or(InvalidCallback::Elsewhere)?;
        if !query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return Err(InvalidCallback::Strange);
        }
        read(query, Others::Refused)
    }

    /// From an address that a person pasted: a deep link, or the loopback callback on any port.
    ///
    /// # Errors
    /// [`InvalidCallback`].
    pub fn from_pasted(text: &str) -> Result<Self, InvalidCallback> {
        let text = text.trim();
        if text.starts_with(DEEP_LINK) {
            return Self::from_deep_link(text);
        }
        let url = url::Url::parse(text).map_err(|_not_a_url| InvalidCallback::Elsewhere)?;
        match url.query() {
            Some(query) if url.path() == CALLBACK_PATH => Self::from_query(query),
            Some(_) | None => Err(InvalidCallback::Elsewhere),
        }
    }
}

fn read(query: &str, others: Others) -> Result<Callback, InvalidCallback> {
    let mut found: [Option<String>; NAMES.len()] = Default::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some(index) = NAMES.iter().position(|known| *known == name) else {
            if others == Others::Refused && !ADDED.contains(&name.as_ref()) {
                return Err(InvalidCallback::Strange);
            }
            continue;
        };
        if found[index].replace(value.into_owned()).is_some() {
            return Err(InvalidCallback::Twice);
        }
    }
    let [code, state, iss, error, description, uri] = found;
    let visible = |text: &Option<String>| text.as_ref().is_none_or(|t| t.bytes().all(|b| b.is_ascii_graphic()));
    let readable = |text: &Option<String>| text.as_ref().is_none_or(|t| !t.chars().any(char::is_control));
    if ![&code, &state, &iss, &error, &uri].into_iter().all(visible) || !readable(&description) {
        return Err(InvalidCallback::Strange);
    }
    let state = state
        .filter(|state| !state.is_empty())
        .ok_or(InvalidCallback::Incomplete)?;
    if state.len() > LONGEST_STATE || !state.bytes().all(in_state) {
        return Err(InvalidCallback::Strange);
    }
    let answer = match (code.filter(|code| !code.is_empty()), error) {
        (Some(code), None) => Answer::Code(code.into()),
        (None, Some(error)) => Answer::Refusal { error, description },
        (Some(_), Some(_)) => return Err(InvalidCallback::Strange),
        (None, None) => return Err(InvalidCallback::Incomplete),
    };
    Ok(Callback { state, iss, answer })
}

fn in_state(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'-')
}

impl fmt::Display for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the answer of a sign-in")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_from_a_query_and_from_a_link() {
        let query = "code=4%2F0Ab!c*d&state=abc.github&iss=https%3A%2F%2Fauth.example.com&id=github&x=1";
        let callback = Callback::from_query(query).unwrap();
        assert_eq!(callback.state, "abc.github");
        assert_eq!(callback.iss.as_deref(), Some("https://auth.example.com"));
        assert!(matches!(callback.answer, Answer::Code(_)));
        let link = "neuron-connect://oauth/callback?error=access_denied&error_description=not+now&state=abc";
        let Answer::Refusal { error, description } = Callback::from_deep_link(link).unwrap().answer else {
            panic!("a refusal")
        };
        assert_eq!(
            (error.as_str(), description.as_deref()),
            ("access_denied", Some("not now"))
        );
        assert!(Callback::from_deep_link("neuron-connect://oauth/callback?code=a&state=b&session_state=c").is_ok());
    }

    #[test]
    fn a_link_that_is_no_answer_is_refused() {
        let long = format!("neuron-connect://oauth/callback?code={}&state=b", "a".repeat(10_000));
        for link in [
            "neuron-connect://add?code=a&state=b",
            "neuron-connect://oauth/callback/../x?code=a&state=b",
            "neuron-connect://oauth/callback?code=a&state=b&state=c",
            long.as_str(),
            "neuron-connect://oauth/callback?code=a%0d%0aX&state=b",
            "neuron-connect://me@oauth/callback?code=a&state=b",
            "neuron-connect://oauth/callback?code=a&state=b#c",
            "NEURON-CONNECT://oauth/callback?code=a&state=b",
            "neuron-connect://oauth/callback?code=a",
            "neuron-connect://oauth/callback?state=b",
            "neuron-connect://oauth/callback?code=a&error=b&state=c",
            "neuron-connect://oauth/callback?code=a&state=b&command=c",
            "neuron-connect://oauth/callback?code=a&state=b c",
            "neuron-connect://oauth/callback?code=a&state=%22b",
            "neuron-connect://oauth:1/callback?code=a&state=b",
            "neuron-connect:oauth/callback?code=a&state=b",
            "file:///etc/passwd",
            "",
        ] {
            assert!(Callback::from_deep_link(link).is_err(), "{link}");
        }
    }

    #[test]
    fn a_pasted_address_is_one_of_our_two_ways_back() {
        assert!(Callback::from_pasted(" http://127.0.0.1:7771/mcp/oauth/callback?code=a&state=b\n").is_ok());
        assert!(Callback::from_pasted("neuron-connect://oauth/callback?code=a&state=b").is_ok());
        for other in [
            "https://example.com/?code=a&state=b",
            "code=a&state=b",
            "http://127.0.0.1:7771/mcp/oauth/callback",
        ] {
            assert!(Callback::from_pasted(other).is_err(), "{other}");
        }
    }

    #[test]
    fn no_debug_output_holds_a_code() {
        let callback = Callback::from_query("code=SENTINEL&state=b").unwrap();
        assert!(!format!("{callback:?}").contains("SENTINEL"));
    }
}
