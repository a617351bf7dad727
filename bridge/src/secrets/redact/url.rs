//! Secrets in addresses: who signs in, and the parameters that let in.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use super::{
    name, pattern,
    value::{self, End},
};

/// What stands between `//` and the last `@` of an address' host part.
static USER: LazyLock<Regex> = LazyLock::new(|| pattern(r#"[A-Za-z0-9+.-]://([^\s/?#"'`<>]+)@"#));

static PARAMETER: LazyLock<Regex> = LazyLock::new(|| pattern(r"[?&]([A-Za-z0-9_.%-]{1,64})="));

/// Services whose addresses let in by their path.
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i-u)\b(?:api\.telegram\.org/(?:file/)?bot([0-9]{3,}:[A-Za-z0-9_-]{6,})",
        r"|hooks\.slack\.com/(?:services|triggers|workflows)/([A-Za-z0-9/_-]{6,}))",
    ))
});

/// Names of parameters that let in, besides those that say so themselves.
const LETS_IN: &[&str] = &[
    "auth",
    "code",
    "session",
    "sid",
    "sig",
    "signature",
    "x-amz-credential",
    "x-amz-signature",
    "x-goog-credential",
    "x-goog-signature",
];

/// A shorter one, such as `code=404`, lets nobody in.
const SHORTEST: usize = 8;

pub(super) fn find(text: &str, found: &mut Vec<Range<usize>>) {
    let users = USER.captures_iter(text).filter_map(|captures| captures.get(1));
    found.extend(
        users
            .filter(|user| !matches!(user.as_str(), "git" | super::MARK))
            .map(|user| user.range()),
    );

    let paths = PATH.captures_iter(text);
    found.extend(paths.filter_map(|captures| Some(captures.get(1).or_else(|| captures.get(2))?.range())));

    let mut done = 0;
    for captures in PARAMETER.captures_iter(text) {
        let (Some(all), Some(parameter)) = (captures.get(0), captures.get(1)) else {
            continue;
        };
        let is_secret = name::is_secret(parameter.as_str());
        let lets_in = LETS_IN.iter().any(|name| parameter.as_str().eq_ignore_ascii_case(name));
        if all.start() < done || !(is_secret || lets_in) {
            continue;
        }
        if let Some(range) = value::at(text, all.end(), End::Parameter)
            && (is_secret || range.len() >= SHORTEST)
        {
            done = range.end;
            found.push(range);
        }
    }
}
