//! Which scenarios are run, and what is expected of each. The suite's own lists say what a revision requires.

use std::{collections::BTreeSet, fs, path::Path};

/// How many scenarios each revision requires; a list that lost one is not taken for the whole.
const REQUIRED: [(&str, usize); 2] = [("2025-11-25", 18), ("2026-07-28", 32)];

/// Scenarios that were added to the suite after its lists were closed; as binding here as the others, but not counted.
const ADDED: [&str; 1] = ["json-schema-2020-12-preservation"];

/// Extensions that are built.
const EXTENSIONS: [&str; 2] = ["auth/client-credentials-basic", "auth/client-credentials-jwt"];

/// Extensions that are not, and why.
const NOT_BUILT: [(&str, &str); 8] = [
    (
        "auth/enterprise-managed-authorization",
        "needs an employer's identity provider, which no connector can name yet",
    ),
    (
        "auth/dpop",
        "proofs of possession are on the protocol's roadmap, not in a revision",
    ),
    ("auth/dpop-nonce", "as auth/dpop"),
    (
        "auth/wif-jwt-bearer",
        "workload identity is for servers in a cloud, not for a person's computer",
    ),
    ("sep-2640-client-no-prefetch", "skills are not passed on to assistants"),
    ("sep-2640-client-verify-digest", "as sep-2640-client-no-prefetch"),
    ("sep-2640-client-verify-size", "as sep-2640-client-no-prefetch"),
    ("sep-2640-client-verify-frontmatter", "as sep-2640-client-no-prefetch"),
];

/// Scenarios whose server must not be trusted: the bridge has to refuse.
const TO_REFUSE: [&str; 7] = [
    "auth/scope-retry-limit",
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];

/// A scenario as it is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) group: Group,
    pub(crate) revision: Option<String>,
}

/// What a scenario counts for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Group {
    /// A revision requires it.
    Revision(String),
    /// It must pass, and is not counted.
    Added,
    Extension,
}

/// What the driver has to come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Done,
    Refused,
}

impl Scenario {
    pub(crate) fn expected(&self) -> Expected {
        match TO_REFUSE.contains(&self.name.as_str()) {
            true => Expected::Refused,
            false => Expected::Done,
        }
    }
}

/// Everything there is.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) scenarios: Vec<Scenario>,
    /// Revisions in order, each with how many scenarios it requires.
    pub(crate) revisions: Vec<(String, usize)>,
    pub(crate) not_built: &'static [(&'static str, &'static str)],
    pub(crate) extensions: usize,
}

/// Reads the suite's lists; `offered` is what it says of itself.
///
/// # Panics
/// When they are not those that this was written for.
pub(crate) fn plan(suite: &Path, offered: &str) -> Plan {
    let offered = offers(offered);
    let mut scenarios = Vec::new();
    let mut revisions = Vec::new();
    for (revision, count) in REQUIRED {
        let file = suite.join(format!("requirements/{revision}.yaml"));
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let names = required_of_clients(&text);
        assert_eq!(names.len(), count, "what {revision} requires: {names:?}");
        scenarios.extend(names.into_iter().map(|name| Scenario {
            name,
            group: Group::Revision(revision.to_owned()),
            revision: Some(revision.to_owned()),
        }));
        revisions.push((revision.to_owned(), count));
        scenarios.extend(ADDED.map(|name| Scenario {
            name: name.to_owned(),
            group: Group::Added,
            revision: Some(revision.to_owned()),
        }));
    }
    let older: Vec<_> = offered.iter().filter(|(_, since)| since == "2025-03-26").collect();
    assert_eq!(older.len(), 2, "what is offered for 2025-03-26: {older:?}");
    revisions.push(("2025-03-26".to_owned(), older.len()));
    scenarios.extend(older.into_iter().map(|(name, since)| Scenario {
        name: name.clone(),
        group: Group::Revision(since.clone()),
        revision: Some(since.clone()),
    }));
    scenarios.extend(EXTENSIONS.map(|name| Scenario {
        name: name.to_owned(),
        group: Group::Extension,
        revision: None,
    }));
    let extensions: BTreeSet<_> = offered
        .iter()
        .filter(|(_, since)| since == "extension")
        .map(|(name, _)| name.as_str())
        .collect();
    let known: BTreeSet<_> = EXTENSIONS.into_iter().chain(NOT_BUILT.map(|(name, _)| name)).collect();
    assert_eq!(
        extensions, known,
        "extensions that the suite offers, and those that are known here"
    );
    Plan {
        scenarios,
        revisions,
        not_built: &NOT_BUILT,
        extensions: extensions.len(),
    }
}

/// The `client:` list of a requirements file: its two-space items up to the next key.
fn required_of_clients(yaml: &str) -> Vec<String> {
    yaml.lines()
        .skip_while(|line| *line != "client:")
        .skip(1)
        .take_while(|line| line.is_empty() || line.starts_with(' '))
        .filter_map(|line| line.strip_prefix("  - "))
        .map(|name| name.trim().to_owned())
        .collect()
}

/// Client scenarios of `conformance list`, each with the first revision it is for, or `extension`.
fn offers(list: &str) -> Vec<(String, String)> {
    list.lines()
        .skip_while(|line| !line.starts_with("Client scenarios"))
        .skip(1)
        .map_while(|line| line.strip_prefix("  - "))
        .filter_map(|line| {
            let (name, revisions) = line.split_once(" [")?;
            let first = revisions.trim_end_matches(']').split(',').next()?;
            Some((name.to_owned(), first.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_revision_requires_of_clients_is_read_from_the_suites_own_list() {
        let yaml = "# x\nserver:\n  - a\n\nclient:\n  - b\n  - auth/c\n\nnot_scored:\n  - scenario: d\n";
        assert_eq!(required_of_clients(yaml), ["b", "auth/c"]);
    }

    #[test]
    fn the_offered_scenarios_are_those_for_clients() {
        let list = "Server scenarios (x):\n  - ping [2025-06-18]\n\nClient scenarios (y):\n  - a [2025-03-26,2025-06-18]\n  - b [extension]\n\nAuthorization (z):\n  - c [2025-03-26]\n";
        let offered = offers(list);
        let offered: Vec<_> = offered
            .iter()
            .map(|(name, since)| (name.as_str(), since.as_str()))
            .collect();
        assert_eq!(offered, [("a", "2025-03-26"), ("b", "extension")]);
    }
}
