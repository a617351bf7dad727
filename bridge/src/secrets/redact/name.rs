//! Whether a name says that its value is secret.

/// Words that make a name secret wherever they stand in it.
const SECRET: &[&str] = &[
    "key",
    "token",
    "pwd",
    "passphrase",
    "credential",
    "credentials",
    "cookie",
    "bearer",
    "jwt",
];

/// Endings of a word written together, such as `authtoken`.
const ENDINGS: &[&str] = &[
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "passphrase",
];

/// A word with one of these in it is secret, but for the ordinary words.
const PARTS: &[&str] = &["password", "passwd", "secret"];

/// A name that says something about a secret, not the secret: `TOKEN_URL`, `key_count`.
const ABOUT: &[&str] = &[
    "at", "budget", "count", "dir", "endpoint", "expires", "expiry", "file", "in", "length", "limit", "name", "names",
    "path", "size", "ttl", "type", "uri", "url", "usage",
];

/// Keys and tokens that everybody may see, and what went wrong with one (`KeyError: 'name'`).
const OPEN: &[&str] = &[
    "error",
    "exception",
    "cache",
    "foreign",
    "page",
    "partition",
    "primary",
    "progress",
    "public",
    "routing",
    "sort",
];

/// Whether values of this name are secret. `api_key`, `X-Api-Key`, `apiKey` and `APIKEY` are one name.
pub(crate) fn is_secret(name: &str) -> bool {
    // The shell's folder, not a password.
    if matches!(name, "PWD" | "OLDPWD") {
        return false;
    }
    let words = words(name);
    if words.last().is_some_and(|last| ABOUT.contains(&last.as_str())) {
        return false;
    }
    if words.iter().any(|word| OPEN.contains(&word.as_str())) {
        return false;
    }
    let last_of_several = |word: &str| words.len() > 1 && words.last().is_some_and(|last| last == word);
    is_header(name)
        || last_of_several("pass")
        || last_of_several("pat")
        || words.iter().any(|word| {
            SECRET.contains(&word.as_str())
                || ENDINGS.iter().any(|ending| word.ends_with(ending))
                || (PARTS.iter().any(|part| word.contains(part)) && !word.starts_with("secretar"))
        })
}

/// Whether a name alone may mean something else, as a test that passes, and a quoted value makes it one of a secret.
pub(super) fn is_secret_if_quoted(name: &str) -> bool {
    name.eq_ignore_ascii_case("pass")
}

/// Headers whose whole value is secret, spaces and all.
pub(super) fn is_header(name: &str) -> bool {
    [
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "cookie2",
    ]
    .iter()
    .any(|header| name.eq_ignore_ascii_case(header))
}

/// A name as prose has it before a colon as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prose {
    /// "missing key: 'path'".
    Key,
    /// "unexpected token: 'x'".
    Word,
    /// "password: x" is no prose, nor is `api_key: x`.
    None,
}

pub(super) fn prose(name: &str) -> Prose {
    if words(name).len() > 1 || PARTS.iter().any(|part| name.to_ascii_lowercase().contains(part)) {
        Prose::None
    } else if name.eq_ignore_ascii_case("key") {
        Prose::Key
    } else {
        Prose::Word
    }
}

/// The words in small letters, cut at what is no letter or digit and where `camelCase` turns.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        let turns = was_small && c.is_ascii_uppercase();
        was_small = c.is_ascii_lowercase() || c.is_ascii_digit();
        if turns || !c.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_secret_by_its_words_however_it_is_written() {
        for name in [
            "KEY",
            "API_KEY",
            "X-Api-Key",
            "apiKey",
            "OPENAI_APIKEY",
            "GITHUB_TOKEN",
            "accessToken",
            "_authToken",
            "authtoken",
            "PASSWORD",
            "DBPASSWORD",
            "db_pass",
            "MYSQL_PWD",
            "client_secret",
            "ClientSecret",
            "AWS_SECRET_ACCESS_KEY",
            "vault.secret_id",
            "GITHUB_PAT",
            "Authorization",
            "set-cookie",
            "session_cookie",
        ] {
            assert!(is_secret(name), "{name}");
        }
    }

    #[test]
    fn names_that_only_sound_alike_are_ordinary() {
        for name in [
            "keyboard",
            "monkey",
            "keys",
            "max_tokens",
            "tokenizer",
            "TOKEN_URL",
            "KEY_FILE",
            "token_type",
            "expires_in",
            "public_key",
            "progressToken",
            "nextPageToken",
            "secretary",
            "KeyError",
            "TokenExpiredError",
            "PWD",
            "pass",
            "author",
            "path",
            "compass",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
