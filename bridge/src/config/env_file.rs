//! `envFile`: lines of `KEY=value`. Pure.

/// A line that cannot be read; says which and why, never what it holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct EnvFileError {
    /// 1-based.
    pub line: usize,
    /// What is wrong and what to write.
    pub reason: &'static str,
}

/// Reads `KEY=value` lines in order; a repeated key's last value counts for whoever applies them in turn.
///
/// Understands blank lines, `#` comments (a whole line, or after white space behind an unquoted or quoted value),
/// `export `, single quotes (as written) and double quotes (with `\n`, `\r`, `\t`, `\"`, `\\` and `\$`), both over
/// several lines. Values are never expanded.
///
/// # Errors
/// [`EnvFileError`] for the first line without `=`, with an unusable name, or with a quote that is never closed.
pub fn parse_env_file(text: &str) -> Result<Vec<(String, String)>, EnvFileError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .enumerate();
    let mut pairs = Vec::new();
    while let Some((index, line)) = lines.next() {
        let error = |reason| EnvFileError {
            line: index + 1,
            reason,
        };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').ok_or(error("write it as KEY=value"))?;
        let name = match name.trim().split_once(char::is_whitespace) {
            Some(("export", name)) => name.trim(),
            Some(_) | None => name.trim(),
        };
        let legal = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
        if name.is_empty() || !name.chars().all(legal) {
            return Err(error("the name before \"=\" may hold only letters, digits and \"_\""));
        }
        let value = match value.trim_start() {
            quoted if quoted.starts_with(['"', '\'']) => {
                let more = || lines.next().map(|(_, line)| line);
                unquote(quoted, more).map_err(error)?
            }
            plain => without_comment(plain).to_owned(),
        };
        if value.contains('\0') {
            return Err(error("a zero character cannot be passed to a program; remove it"));
        }
        pairs.push((name.to_owned(), value));
    }
    Ok(pairs)
}

fn without_comment(value: &str) -> &str {
    let comment = value
        .char_indices()
        .find(|(index, c)| *c == '#' && value[..*index].chars().next_back().is_none_or(char::is_whitespace));
    value[..comment.map_or(value.len(), |(index, _)| index)].trim_end()
}

/// The inside of a quoted text that may go on over `more` lines; nothing but a comment may follow it.
fn unquote<'t>(first: &'t str, mut more: impl FnMut() -> Option<&'t str>) -> Result<String, &'static str> {
    let mut chars = first.chars();
    let quote = chars.next();
    let mut value = String::new();
    loop {
        let Some(c) = chars.next() else {
            value.push('\n');
            chars = more().ok_or("a quote is never closed; close it")?.chars();
            continue;
        };
        if Some(c) == quote {
            break;
        }
        if c != '\\' || quote == Some('\'') {
            value.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => value.push('\n'),
            Some('r') => value.push('\r'),
            Some('t') => value.push('\t'),
            Some(c @ ('"' | '\\' | '$')) => value.push(c),
            Some(c) => value.extend(['\\', c]),
            None => value.push('\\'),
        }
    }
    let rest = chars.as_str();
    if rest.trim().is_empty() || (rest.starts_with(char::is_whitespace) && rest.trim_start().starts_with('#')) {
        Ok(value)
    } else {
        Err("something follows the closing quote; quote the whole value")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_usual_kind_are_read() {
        let text = "\u{feff}# c\r\nA=1\r\n\n export B = two words # c\nC=\"x\\n\\\"y\\\" # no\" # c\nD='$HOME\\n'\nE=\nF=a#b\nG=a=b=\nH=\"l1\nl2\"\nI=pa$$w0rd${x}\nJ=\"C:\\dir\"";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "x\n\"y\" # no"),
            ("D", "$HOME\\n"),
            ("E", ""),
            ("F", "a#b"),
            ("G", "a=b="),
            ("H", "l1\nl2"),
            ("I", "pa$$w0rd${x}"),
            ("J", "C:\\dir"),
        ];
        assert_eq!(
            parse_env_file(text).unwrap(),
            expected.map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
    }

    #[test]
    fn an_unreadable_line_is_named_without_its_content() {
        for (text, line) in [
            ("A=1\nSENTINEL", 2),
            ("=SENTINEL", 1),
            ("A B=SENTINEL", 1),
            ("\n\nA=\"SENTINEL", 3),
            ("A='SENTINEL'x", 1),
            ("A=SENTINEL\0", 1),
        ] {
            let error = parse_env_file(text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}");
            assert!(!error.to_string().contains("SENTINEL"));
        }
    }
}
