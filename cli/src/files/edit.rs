//! Replacing passages of a text, and showing the change. Pure.

use similar::TextDiff;

use super::{
    root::{Refusal, quoted},
    walk::{GivenUp, NOBODY_WAITS},
};

/// Longest diff that is handed back, in bytes.
const MAX_DIFF: usize = 200_000;

/// How long a diff may be searched for before a coarser one will do.
const DIFF_TIME: std::time::Duration = std::time::Duration::from_secs(2);

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
}

/// The text after all edits, each applied to what the ones before it left. An edit replaces the first place that is
/// exactly its old text; where there is none, the first run of lines that differs from it only in the whitespace
/// around lines, keeping the indentation found there. Line ends stay as the file has them.
pub(crate) fn apply(text: &str, edits: &[Edit<'_>], given_up: GivenUp<'_>) -> Result<String, Refusal> {
    let line_end = LineEnd::of(text);
    let mut now = line_end.to_lf(text);
    for (i, edit) in edits.iter().enumerate() {
        if given_up() {
            return Err(format!("{NOBODY_WAITS} Nothing was changed."));
        }
        let (old, new) = (line_end.to_lf(edit.old), line_end.to_lf(edit.new));
        if old.is_empty() {
            return Err(format!(
                "Edit {} has an empty oldText: give the passage to replace; to insert, repeat the line beside it. Nothing was changed.",
                i + 1
            ));
        }
        now = match now.find(&old) {
            Some(at) => [&now[..at], &new, &now[at + old.len()..]].concat(),
            None => replace_lines(&now, &old, &new).ok_or_else(|| {
                format!(
                    "Edit {}: its oldText {} is not in the file: read the file again and copy the passage exactly. Nothing was changed.",
                    i + 1,
                    quoted(edit.old)
                )
            })?,
        };
    }
    Ok(line_end.restore(now))
}

/// The change as a git-style diff in a fence that nothing in it can close.
pub(crate) fn diff(path: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(old, new);
    let mut shown = diff
        .unified_diff()
        .context_radius(3)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string();
    if shown.len() > MAX_DIFF {
        shown.truncate(shown.floor_char_boundary(MAX_DIFF));
        shown.push_str("\n… (the rest of the diff is left out)\n");
    }
    let mut fence = "```".to_owned();
    while shown.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}diff\n{shown}{fence}\n")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    /// Also mixed ones, which are left alone.
    AsIs,
    /// Every line end is CR LF.
    CrLf,
}

impl LineEnd {
    fn of(text: &str) -> Self {
        let all = text.matches('\n').count();
        if all > 0 && text.matches("\r\n").count() == all {
            Self::CrLf
        } else {
            Self::AsIs
        }
    }

    fn to_lf(self, text: &str) -> String {
        match self {
            Self::AsIs => text.to_owned(),
            Self::CrLf => text.replace("\r\n", "\n"),
        }
    }

    fn restore(self, text: String) -> String {
        match self {
            Self::AsIs => text,
            Self::CrLf => text.replace('\n', "\r\n"),
        }
    }
}

fn replace_lines(text: &str, old: &str, new: &str) -> Option<String> {
    // A final line end of oldText is no line of its own.
    let (old, new) = match (old.strip_suffix('\n'), new.strip_suffix('\n')) {
        (Some(old), Some(new)) => (old, new),
        _ => (old, new),
    };
    let wanted: Vec<&str> = old.split('\n').collect();
    if wanted.iter().all(|line| line.trim().is_empty()) {
        return None;
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let at = lines
        .windows(wanted.len())
        .position(|window| window.iter().zip(&wanted).all(|(a, b)| a.trim() == b.trim()))?;
    let found_indent = indent(lines[at]);
    let old_indent = indent(wanted[0]);
    let replacement = new.split('\n').map(|line| {
        if line.trim().is_empty() {
            return line.to_owned();
        }
        match line.strip_prefix(old_indent) {
            Some(rest) => format!("{found_indent}{rest}"),
            None => format!("{found_indent}{}", line.trim_start()),
        }
    });
    let mut out: Vec<String> = lines[..at].iter().map(|&l| l.to_owned()).collect();
    out.extend(replacement);
    out.extend(lines[at + wanted.len()..].iter().map(|&l| l.to_owned()));
    Some(out.join("\n"))
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str, old: &str, new: &str) -> Result<String, Refusal> {
        apply(text, &[Edit { old, new }], &|| false)
    }

    #[test]
    fn an_exact_passage_is_replaced_once_and_verbatim() {
        assert_eq!(one("a a", "a", "$& b").unwrap(), "$& b a");
        assert_eq!(one("x\ny\n", "y\n", "").unwrap(), "x\n");
    }

    #[test]
    fn later_edits_see_what_earlier_ones_left() {
        let edits = [Edit { old: "a", new: "b" }, Edit { old: "b", new: "c" }];
        assert_eq!(apply("a", &edits, &|| false).unwrap(), "c");
    }

    #[test]
    fn lines_match_whatever_the_whitespace_around_them_and_keep_their_indentation() {
        let text = "fn f() {\n        if x {\n            y();\n        }\n}\n";
        let new = one(text, "if x {\n    y();\n}", "if x {\n    z();\n\n}").unwrap();
        assert_eq!(new, "fn f() {\n        if x {\n            z();\n\n        }\n}\n");
    }

    #[test]
    fn line_ends_of_the_file_are_kept_whichever_the_caller_uses() {
        assert_eq!(
            one("a\r\nb\r\nc\r\n", "a\nb", "a\nB\nB").unwrap(),
            "a\r\nB\r\nB\r\nc\r\n"
        );
        assert_eq!(one("a\r\nb\nc\n", "b\n", "B\n").unwrap(), "a\r\nB\nc\n");
    }

    #[test]
    fn an_edit_that_does_not_apply_names_itself_and_changes_nothing() {
        let edits = [Edit { old: "a", new: "b" }, Edit { old: "nope", new: "" }];
        let refusal = apply("a", &edits, &|| false).unwrap_err();
        assert!(refusal.contains("Edit 2") && refusal.contains("nope"), "{refusal}");
        assert!(one("a", "", "b").unwrap_err().contains("empty oldText"));
        assert!(one("a\n\n\nb", " \n ", "x").is_err());
    }

    #[test]
    fn edits_without_end_stop_when_nobody_waits() {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let given_up = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 2;
        let edits: Vec<_> = (0..1_000_000).map(|_| Edit { old: "a", new: "a" }).collect();
        assert!(
            apply("a", &edits, &given_up)
                .unwrap_err()
                .contains("Nothing was changed")
        );
        assert_eq!(asked.into_inner(), 3);
    }

    #[test]
    fn the_diff_is_git_style_and_its_fence_holds() {
        let shown = diff("n/a.md", "1\n2\n3\n", "1\n```\n3\n");
        assert_eq!(
            shown,
            "````diff\n--- a/n/a.md\n+++ b/n/a.md\n@@ -1,3 +1,3 @@\n 1\n-2\n+```\n 3\n````\n"
        );
    }

    #[test]
    fn a_huge_change_is_shown_in_part() {
        let old: String = (0..50_000).map(|i| format!("{i}\n")).collect();
        let shown = diff("f", &old, "");
        assert!(shown.len() < MAX_DIFF + 200);
        assert!(shown.contains("left out"));
    }
}
