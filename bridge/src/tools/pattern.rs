//! Tool patterns of `autoApprove` and `disabledTools`: `*` is any run of characters, `?` exactly one, all else itself.
//!
//! Compared with the upstream's own tool name, whole and case-sensitive. No brackets, braces or escapes, so that a
//! name can be written as it is.

/// Whether the whole of `name` fits `pattern`. Takes at most `pattern × name` steps whatever the pattern.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // Where to go on when the run covered by the last `*` turns out to be too short.
    let mut longer_run = None;
    loop {
        let before = name.clone();
        match (pattern.next(), name.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                name = before;
                longer_run = Some((pattern.clone(), name.clone()));
            }
            (Some('?'), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            (Some(_) | None, _) => {
                let Some((after_star, mut run)) = longer_run.take() else {
                    return false;
                };
                if run.next().is_none() {
                    return false;
                }
                pattern = after_star.clone();
                name = run.clone();
                longer_run = Some((after_star, run));
            }
        }
    }
}

/// Whether any of the patterns fits.
pub fn any_matches<P: AsRef<str>>(patterns: &[P], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern.as_ref(), name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pattern_covers_the_whole_name_and_minds_case() {
        for (pattern, name, expected) in [
            ("get_*", "get_user", true),
            ("get_*", "get_", true),
            ("get_*", "forget_user", false),
            ("get_*", "Get_user", false),
            ("*", "", true),
            ("*", "anything at all", true),
            ("", "", true),
            ("", "x", false),
            ("?", "", false),
            ("?", "ß", true),
            ("?", "🦀", true),
            ("?", "ab", false),
            ("a?c", "abc", true),
            ("*_file", "read_file", true),
            ("*_file", "read_files", false),
            ("*a*b", "xaxaxb", true),
            ("*a*b", "xaxaxbx", false),
            ("**", "x", true),
            ("a**b", "a/b", true),
            ("delete", "delete", true),
            ("delete", "delete_all", false),
            ("*delete*", "undelete_all", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern:?} on {name:?}");
        }
    }

    #[test]
    fn signs_that_other_pattern_languages_know_stand_for_themselves() {
        for sign in ["[ab]", "{a,b}", "a\\b", ".", "a|b", "^a$", "!a"] {
            assert!(matches(sign, sign));
        }
        assert!(!matches("[ab]", "a"));
        assert!(!matches("{a,b}", "a"));
        assert!(!matches("a.c", "abc"));
    }

    #[test]
    fn a_pattern_made_to_be_slow_is_answered_all_the_same() {
        assert!(!matches(&format!("{}c", "a*".repeat(500)), &"a".repeat(1_000)));
        assert!(!matches(&format!("{}b", "*".repeat(5_000)), &"a".repeat(5_000)));
    }

    /// The definition, letter by letter.
    fn by_definition(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            ([], _) => false,
            (['*', rest @ ..], _) => (0..=name.len()).any(|taken| by_definition(rest, &name[taken..])),
            (['?', rest @ ..], [_, others @ ..]) => by_definition(rest, others),
            ([wanted, rest @ ..], [found, others @ ..]) => wanted == found && by_definition(rest, others),
            (_, []) => false,
        }
    }

    proptest! {
        #[test]
        fn it_says_what_the_definition_says(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(matches(&pattern, &name), by_definition(&letters(&pattern), &letters(&name)));
        }
    }
}
