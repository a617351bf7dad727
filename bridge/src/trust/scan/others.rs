//! Names of other connectors' tools in a definition.

use aho_corasick::AhoCorasick;

use crate::ids::ConnectorId;

/// The distinctive names of all connectors' tools, made once for each set of tools.
#[derive(Debug, Default)]
pub struct OtherTools {
    /// `None` where there is no name to look for.
    names: Option<AhoCorasick>,
    /// Whose each name is.
    owners: Vec<Vec<ConnectorId>>,
}

/// Shorter names are words that any text may have.
const MIN_NAME_CHARS: usize = 6;

impl OtherTools {
    /// Of all connectors' tools by their raw names, whichever connector is to be looked at. Names that could be plain
    /// words are left out.
    pub fn new<'a>(tools: impl IntoIterator<Item = (&'a ConnectorId, &'a str)>) -> Self {
        let mut names: indexmap::IndexMap<&str, Vec<ConnectorId>> = indexmap::IndexMap::new();
        for (owner, name) in tools {
            if is_distinctive(name) {
                let owners = names.entry(name).or_default();
                if !owners.contains(owner) {
                    owners.push(owner.clone());
                }
            }
        }
        if names.is_empty() {
            return Self::default();
        }
        Self {
            // Fails only beyond billions of names; then none is looked for.
            names: AhoCorasick::builder()
                .match_kind(aho_corasick::MatchKind::LeftmostLongest)
                .build(names.keys())
                .ok(),
            owners: names.into_values().collect(),
        }
    }

    /// The first name in `text` that only other connectors than `own` have.
    pub(super) fn first_in<'t>(&self, text: &'t str, own: &ConnectorId) -> Option<&'t str> {
        self.names.as_ref()?.find_iter(text).find_map(|found| {
            let range = found.range();
            let alone = !text[..range.start].ends_with(is_of_name) && !text[range.end..].starts_with(is_of_name);
            let others = !self.owners[found.pattern().as_usize()].contains(own);
            (alone && others).then(|| &text[range])
        })
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// Whether a name is no word of a language: parts joined by `_`, `-` or a capital.
fn is_distinctive(name: &str) -> bool {
    let hump = || {
        name.chars()
            .zip(name.chars().skip(1))
            .any(|(a, b)| a.is_lowercase() && b.is_uppercase())
    };
    name.chars().count() >= MIN_NAME_CHARS && (name.contains('_') || hump())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(id: &str) -> ConnectorId {
        ConnectorId::parse(id).unwrap()
    }

    #[test]
    fn a_name_that_only_another_connector_has_is_found() {
        let (mail, files) = (id("mail"), id("files"));
        let others = OtherTools::new([
            (&mail, "send_email"),
            (&mail, "sendEmailNow"),
            (&mail, "read_file"),
            (&files, "read_file"),
            (&mail, "search"),
            (&mail, "a_b"),
        ]);
        for (text, own, expected) in [
            ("Before send_email is called, call me.", &files, Some("send_email")),
            ("Before send_email is called, call me.", &mail, None),
            ("Use \"sendEmailNow\".", &files, Some("sendEmailNow")),
            ("Like read_file, but faster.", &files, None),
            ("A search for a_b.", &files, None),
            ("resend_email, send_emails and send_email2", &files, None),
            ("resend_email and send_email", &files, Some("send_email")),
        ] {
            assert_eq!(others.first_in(text, own), expected, "{text}");
        }
        assert_eq!(OtherTools::default().first_in("send_email", &files), None);
    }
}
