//! `${env:NAME}`, `${env:NAME:-default}` and `${secret:NAME}` in a text, found in one pass. Pure.

/// A text cut into what stays and what is filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Text(&'t str),
    Env { name: &'t str, default: Option<&'t str> },
    Secret { name: &'t str },
}

/// Why a reference cannot be read: one sentence without the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("\"${{{kind}:\" is never closed; add the missing \"}}\"")]
    Open { kind: &'static str },
    #[error("\"{reference}\" has no usable name; write it as {example}")]
    Name { reference: String, example: &'static str },
}

/// What follows a `~` that means the home folder.
pub(crate) fn tilde(text: &str) -> Option<&str> {
    text.strip_prefix('~')
        .filter(|rest| rest.is_empty() || rest.starts_with(std::path::is_separator))
}

/// What a reference to a variable stands for. As in a shell, the default of `:-` also stands in for a variable that is
/// set to nothing; `None` = it is unset and has no default.
pub(crate) fn env_value(name: &str, default: Option<&str>, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let value = env(name).filter(|value| default.is_none() || !value.is_empty());
    value.or_else(|| default.map(str::to_owned))
}

/// Longest name of a variable or secret in characters.
const MAX_NAME: usize = 128;

/// Cuts a text. `${` that begins neither `${env:` nor `${secret:` is text.
///
/// # Errors
/// [`Malformed`] where one of the two is not closed or has no usable name.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Malformed> {
    let mut found = Vec::new();
    let mut text_start = 0;
    let mut from = 0;
    while let Some(offset) = text[from..].find("${") {
        let start = from + offset;
        let inner = &text[start + 2..];
        let kind = match inner {
            _ if inner.starts_with("env:") => "env",
            _ if inner.starts_with("secret:") => "secret",
            _ => {
                from = start + 2;
                continue;
            }
        };
        let close = inner.find('}').ok_or(Malformed::Open { kind })?;
        let end = start + 2 + close + 1;
        let body = &inner[kind.len() + 1..close];
        let piece = if kind == "env" { env(body) } else { secret(body) };
        let piece = piece.ok_or_else(|| Malformed::Name {
            reference: text[start..end].chars().take(MAX_NAME).collect(),
            example: if kind == "env" {
                "${env:NAME} or ${env:NAME:-default}"
            } else {
                "${secret:NAME}"
            },
        })?;
        if start > text_start {
            found.push(Piece::Text(&text[text_start..start]));
        }
        found.push(piece);
        (from, text_start) = (end, end);
    }
    if text_start < text.len() {
        found.push(Piece::Text(&text[text_start..]));
    }
    Ok(found)
}

fn env(body: &str) -> Option<Piece<'_>> {
    let (name, default) = match body.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (body, None),
    };
    // Parentheses occur on Windows: ProgramFiles(x86).
    let legal = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '(' | ')');
    is_name(name, legal).then_some(Piece::Env { name, default })
}

fn secret(name: &str) -> Option<Piece<'_>> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    is_name(name, legal).then_some(Piece::Secret { name })
}

fn is_name(name: &str, legal: impl Fn(char) -> bool) -> bool {
    !name.is_empty() && name.chars().count() <= MAX_NAME && name.chars().all(legal)
}

/// The name in the first `${…}` that reads like a reference of another program and will stay as it is, such as
/// `HOME` in `${HOME}`.
pub(crate) fn foreign(text: &str) -> Option<&str> {
    let mut from = 0;
    while let Some(offset) = text[from..].find("${") {
        let start = from + offset;
        let inner = &text[start + 2..];
        let close = inner.find('}')?;
        let name = inner[..close].split(":-").next().unwrap_or_default();
        let ours = inner.starts_with("env:") || inner.starts_with("secret:");
        let known = name.strip_prefix("input:").unwrap_or(name);
        if !ours && is_name(known, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
            return Some(name);
        }
        from = start + 2;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_cut_out_and_the_rest_stays() {
        assert_eq!(
            pieces("a${env:X}b${secret:Y}${env:Z:-d:-e}$${x} ${").unwrap(),
            [
                Piece::Text("a"),
                Piece::Env {
                    name: "X",
                    default: None
                },
                Piece::Text("b"),
                Piece::Secret { name: "Y" },
                Piece::Env {
                    name: "Z",
                    default: Some("d:-e")
                },
                Piece::Text("$${x} ${"),
            ]
        );
        assert_eq!(pieces("pa$$w0rd$").unwrap(), [Piece::Text("pa$$w0rd$")]);
        assert_eq!(pieces("").unwrap(), []);
    }

    #[test]
    fn an_unclosed_or_nameless_reference_is_an_error() {
        for text in [
            "${env:X",
            "a ${secret:",
            "${env:}",
            "${secret:}",
            "${secret:a b}",
            "${env:A B}",
            "${env::-x}",
        ] {
            assert!(pieces(text).is_err(), "{text}");
        }
    }

    #[test]
    fn references_of_other_programs_are_recognised() {
        assert_eq!(foreign("x ${HOME}/y"), Some("HOME"));
        assert_eq!(foreign("${API:-https://a}"), Some("API"));
        assert_eq!(foreign("${input:key}"), Some("input:key"));
        assert_eq!(foreign("${env:A} ${secret:B} $X ${ } ${"), None);
    }
}
