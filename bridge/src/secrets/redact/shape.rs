//! Secrets that their own shape gives away: well-known tokens, credentials after a scheme's name, private keys.

use std::{ops::Range, sync::LazyLock};

use base64::Engine as _;
use regex::Regex;

use super::pattern;

/// Tokens whose makers gave them a beginning of their own.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}",
        r"|[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}",
        r"|(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}",
        r"|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{24,}|lin_(?:api|oauth)_[A-Za-z0-9]{16,}|pypi-[A-Za-z0-9_-]{32,})",
    ))
});

/// Tokens of several parts. Each has its own pattern: a first part that goes on and on would be gone through again
/// after every other token in it.
static DOTTED: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [
        pattern(r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)*"),
        pattern(r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ]
});

/// `sk-` begins names of programs as well; a key has digits.
static SK: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|[^A-Za-z0-9_-])(sk-[A-Za-z0-9_-]{16,})"));

/// Whoever puts a scheme before a header's whole value writes it twice.
static SCHEME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i-u)\b(?:(?:bearer|basic)(?:[ \t]+|%20|\+))*(bearer|basic)(?:[ \t]+|%20|\+)([A-Za-z0-9._~+/-]+=*)")
});

/// What a challenge or a sentence has after the scheme's name.
const PARAMETERS: &[&str] = &[
    "algorithm=",
    "charset=",
    "error=",
    "error_description=",
    "error_uri=",
    "realm=",
    "resource_metadata=",
    "scope=",
];

/// A longer run of letters is no word.
const LONGEST_WORD: usize = 16;

static PRIVATE_KEY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)",
    )
});

pub(super) fn find(text: &str, found: &mut Vec<Range<usize>>) {
    found.extend(TOKEN.find_iter(text).map(|token| token.range()));
    for dotted in DOTTED.iter() {
        found.extend(dotted.find_iter(text).map(|token| token.range()));
    }
    let keys = SK.captures_iter(text).filter_map(|captures| captures.get(1));
    found.extend(
        keys.filter(|key| key.as_str().bytes().any(|b| b.is_ascii_digit()))
            .map(|key| key.range()),
    );
    for captures in SCHEME.captures_iter(text) {
        if let (Some(scheme), Some(credential)) = (captures.get(1), captures.get(2)) {
            let is_secret = if scheme.as_str().eq_ignore_ascii_case("basic") {
                is_user_and_password(credential.as_str())
            } else {
                is_token(credential.as_str())
            };
            if is_secret {
                found.push(credential.range());
            }
        }
    }
    let bodies = PRIVATE_KEY.captures_iter(text).filter_map(|captures| captures.get(1));
    found.extend(bodies.filter(|body| !body.is_empty()).map(|body| body.range()));
}

/// "Basic authentication" is no credential; base64 with a colon in it is.
fn is_user_and_password(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    let decoded = base64::engine::general_purpose::STANDARD_NO_PAD
        .decode(bare)
        .or_else(|_| base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(bare));
    decoded.is_ok_and(|bytes| bytes.contains(&b':'))
}

fn is_token(text: &str) -> bool {
    let word = text.trim_end_matches('.');
    let is_word = word.len() <= LONGEST_WORD
        && word.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-')
        && word.bytes().skip(1).all(|b| !b.is_ascii_uppercase());
    !is_word && !PARAMETERS.contains(&text)
}
