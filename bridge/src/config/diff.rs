//! Two readings of the file → what has to happen to each connector. Pure.

use std::collections::HashMap;

use super::{Config, Connector, Entry, EntryKind};

/// What a new reading of the file asks for. Entries are compared as written; whether filled-in values changed is the
/// caller's to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is to be there and enabled, and was not.
    Start,
    /// It is gone, disabled or invalid, and was enabled; or a disabled or invalid one is gone.
    Stop,
    /// What is run or contacted differs: stop the old, then start the new.
    Restart,
    /// Only what is shown or asked at call time differs (name, description, autoApprove, disabledTools, timeouts,
    /// start), or an entry that does not run differs or is new.
    Update,
    /// Equal.
    Nothing,
}

/// One change for each key of either reading: first those that are gone, then those of `new` in its order.
pub fn diff(old: &Config, new: &Config) -> Vec<(String, Change)> {
    let before: HashMap<&str, &Entry> = old.entries.iter().map(|entry| (entry.key.as_str(), entry)).collect();
    let after: HashMap<&str, &Entry> = new.entries.iter().map(|entry| (entry.key.as_str(), entry)).collect();
    let gone = old
        .entries
        .iter()
        .filter(|entry| !after.contains_key(entry.key.as_str()));
    let stops = gone.map(|entry| (entry.key.clone(), Change::Stop));
    let others = new.entries.iter().map(|entry| {
        let change = match before.get(entry.key.as_str()) {
            Some(old) => between(&old.kind, &entry.kind),
            None if enabled(&entry.kind).is_some() => Change::Start,
            None => Change::Update,
        };
        (entry.key.clone(), change)
    });
    stops.chain(others).collect()
}

fn between(old: &EntryKind, new: &EntryKind) -> Change {
    match (enabled(old), enabled(new)) {
        (None, Some(_)) => Change::Start,
        (Some(_), None) => Change::Stop,
        (Some(old), Some(new)) if old.launch != new.launch => Change::Restart,
        (Some(_), Some(_)) | (None, None) if old == new => Change::Nothing,
        (Some(_), Some(_)) | (None, None) => Change::Update,
    }
}

fn enabled(kind: &EntryKind) -> Option<&Connector> {
    match kind {
        EntryKind::Valid(connector) if connector.enabled => Some(connector),
        EntryKind::Valid(_) | EntryKind::Invalid(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::parse;

    fn config(servers: &str) -> Config {
        parse(format!("{{\"servers\": {{{servers}}}}}").as_bytes()).unwrap()
    }

    fn only(old: &str, new: &str) -> Change {
        let changes = diff(&config(old), &config(new));
        assert_eq!(changes.len(), 1, "{old} → {new}");
        changes[0].1
    }

    const PLAIN: &str = r#""a": {"command": "x", "args": ["1"]}"#;

    #[test]
    fn what_is_run_or_contacted_decides_a_restart() {
        for new in [
            r#""a": {"command": "y", "args": ["1"]}"#,
            r#""a": {"command": "x", "args": ["2"]}"#,
            r#""a": {"command": "x", "args": ["1"], "env": {"A": "b"}}"#,
            r#""a": {"command": "x", "args": ["1"], "cwd": "~"}"#,
            r#""a": {"url": "https://x.example"}"#,
        ] {
            assert_eq!(only(PLAIN, new), Change::Restart, "{new}");
        }
        let sse = r#""a": {"transport": "sse", "url": "https://x.example"}"#;
        assert_eq!(only(r#""a": {"url": "https://x.example"}"#, sse), Change::Restart);
    }

    #[test]
    fn what_is_only_shown_or_asked_at_call_time_never_restarts() {
        for member in [
            r#""name": "N""#,
            r#""description": "d""#,
            r#""autoApprove": true"#,
            r#""disabledTools": ["x"]"#,
            r#""timeouts": {"callMs": 5}"#,
            r#""start": "at-launch""#,
        ] {
            assert_eq!(
                only(PLAIN, &PLAIN.replace('}', &format!(", {member}}}"))),
                Change::Update,
                "{member}"
            );
        }
    }

    #[test]
    fn format_comments_and_unknown_members_are_no_change() {
        let new = "/* c */ \"a\":\n{\"args\":[\"1\",], \"command\":\"x\", \"enabled\": true, \"z\": 1}";
        assert_eq!(only(PLAIN, new), Change::Nothing);
    }

    #[test]
    fn entries_come_go_flip_and_break() {
        let off = r#""a": {"command": "x", "args": ["1"], "enabled": false}"#;
        let other_off = r#""a": {"command": "y", "enabled": false}"#;
        let broken = r#""a": {"command": 1}"#;
        let still_broken = "\n\"a\": {\"command\": 1}";
        for (old, new, change) in [
            ("", PLAIN, Change::Start),
            (PLAIN, "", Change::Stop),
            ("", off, Change::Update),
            (off, "", Change::Stop),
            (PLAIN, off, Change::Stop),
            (off, PLAIN, Change::Start),
            (off, other_off, Change::Update),
            (off, off, Change::Nothing),
            (PLAIN, broken, Change::Stop),
            (broken, PLAIN, Change::Start),
            (broken, broken, Change::Nothing),
            (broken, still_broken, Change::Update),
            (broken, off, Change::Update),
            (off, broken, Change::Update),
            ("", broken, Change::Update),
            (broken, "", Change::Stop),
        ] {
            assert_eq!(only(old, new), change, "{old} → {new}");
        }
    }

    #[test]
    fn one_entrys_change_leaves_its_neighbours_alone_and_stops_come_first() {
        let old = config(r#""a": {"command": "1"}, "b": {"command": "2"}, "c": {"command": "3"}"#);
        let new = config(r#""d": {"command": "4"}, "c": {"command": "9"}, "b": {"command": "2"}"#);
        let expected = [
            ("a", Change::Stop),
            ("d", Change::Start),
            ("c", Change::Restart),
            ("b", Change::Nothing),
        ];
        assert_eq!(diff(&old, &new), expected.map(|(key, change)| (key.to_owned(), change)));
    }

    proptest! {
        #[test]
        fn equal_readings_change_nothing(
            entries in proptest::collection::btree_map("[a-z]{1,4}", prop::sample::select(vec![
                r#"{"command": "x"}"#, r#"{"url": "https://x.example"}"#, "7", r#"{"command": "x", "enabled": false}"#,
            ]), 0..6)
        ) {
            let text = entries.iter().map(|(key, entry)| format!("\"{key}\": {entry}")).collect::<Vec<_>>().join(",");
            let changes = diff(&config(&text), &config(&text));
            prop_assert_eq!(changes.len(), entries.len());
            prop_assert!(changes.iter().all(|(_, change)| *change == Change::Nothing));
        }
    }
}
