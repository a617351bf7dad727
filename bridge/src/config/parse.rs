//! The bytes of `connectors.json` → [`Config`]. Pure.

use jsonc_parser::{
    ast::{Object, ObjectProp, Value as Tree},
    common::Ranged as _,
};

use super::{
    Config, Entry, EntryKind,
    json::{self, Fault, Place, key, key_range},
    validate,
};
use crate::snapshot::{Notice, NoticeLevel};

/// Reads a whole file: JSON with comments and trailing commas, with or without byte order mark, with any line ends.
///
/// An entry that cannot be used becomes [`EntryKind::Invalid`] and takes nobody along; its error also stands in
/// [`Config::notices`], which is ordered errors first.
///
/// # Errors
/// One sentence with line and column where the file as a whole cannot be used.
pub fn parse(bytes: &[u8]) -> Result<Config, Notice> {
    read(bytes).map_err(file_error)
}

fn read(bytes: &[u8]) -> Result<Config, Fault> {
    let (text, _) = json::without_bom(json::decode(bytes)?);
    let root = match json::tree(text)? {
        Some(Tree::Object(root)) => root,
        Some(other) => {
            return Err(Fault::at(
                text,
                other.start(),
                "the outermost value must be an object, as in {\"servers\": {}}",
            ));
        }
        None if text.trim().is_empty() => {
            return Err(Fault::whole(
                "it is empty; write {\"servers\": {}} if no connector is wanted",
            ));
        }
        None => {
            return Err(Fault::whole(
                "it holds only comments; write {\"servers\": {}} if no connector is wanted",
            ));
        }
    };
    let mut notices = Vec::new();
    let entries = match servers(text, &root)? {
        Some(servers) => entries(text, servers, &mut notices),
        None => Vec::new(),
    };
    unknown_members(text, &root, &mut notices);
    notices.sort_by_key(|notice| notice.level);
    Ok(Config { entries, notices })
}

/// The object that holds the entries, under either of its names.
pub(super) fn servers<'r, 'a>(text: &str, root: &'r Object<'a>) -> Result<Option<&'r Object<'a>>, Fault> {
    let mut found: Option<&ObjectProp<'_>> = None;
    for property in root.properties.iter().filter(|property| is_servers(key(property))) {
        if let Some(first) = found {
            let place = Place::of(text, key_range(first).start);
            let message = if key(first) == key(property) {
                format!(
                    "\"{}\" already stands at {place}; move its connectors there and remove this one",
                    key(first)
                )
            } else {
                format!(
                    "both \"servers\" and \"mcpServers\" are given (the other one at {place}); move all connectors into \"servers\""
                )
            };
            return Err(Fault::at(text, key_range(property).start, message));
        }
        found = Some(property);
    }
    match found.map(|property| (key(property), &property.value)) {
        None => Ok(None),
        Some((_, Tree::Object(servers))) => Ok(Some(servers)),
        Some((name, other)) => Err(Fault::at(
            text,
            other.start(),
            format!("\"{name}\" must be an object in \"{{\" and \"}}\""),
        )),
    }
}

fn is_servers(name: &str) -> bool {
    name == "servers" || name == "mcpServers"
}

fn entries(text: &str, servers: &Object<'_>, notices: &mut Vec<Notice>) -> Vec<Entry> {
    let mut entries: Vec<(Entry, usize)> = Vec::with_capacity(servers.properties.len());
    let mut places = std::collections::HashMap::new();
    for property in &servers.properties {
        let written = &text[property.value.start()..property.value.end()];
        let start = key_range(property).start;
        if let Some(index) = places.get(key(property)).copied() {
            let (entry, first): &mut (Entry, usize) = &mut entries[index];
            let notice = validate::duplicate_entry(text, key(property), *first, start);
            entry.text = format!("{}\n{written}", entry.text);
            entry.kind = EntryKind::Invalid(notice.clone());
            // Remarks about either definition would only distract from the one thing to do.
            notices.retain(|other| other.server.as_deref() != Some(key(property)));
            notices.push(notice);
            continue;
        }
        let (kind, remarks) = validate::validate(text, property);
        notices.extend(remarks);
        places.insert(key(property), entries.len());
        let entry = Entry {
            key: key(property).to_owned(),
            kind,
            text: written.to_owned(),
        };
        entries.push((entry, start));
    }
    entries.into_iter().map(|(entry, _)| entry).collect()
}

fn unknown_members(text: &str, root: &Object<'_>, notices: &mut Vec<Notice>) {
    for property in root
        .properties
        .iter()
        .filter(|p| !is_servers(key(p)) && key(p) != "$schema")
    {
        let place = Place::of(text, key_range(property).start);
        notices.push(Notice {
            level: NoticeLevel::Warning,
            message: format!(
                "connectors.json, {place}: \"{}\" is not known here and has no effect; it is kept.",
                key(property).escape_debug()
            ),
            line: Some(place.line),
            column: Some(place.column),
            server: None,
        });
    }
}

fn file_error(fault: Fault) -> Notice {
    let message = match fault.place {
        Some(place) => format!("connectors.json cannot be read ({place}): {}.", fault.message),
        None => format!("connectors.json cannot be read: {}.", fault.message),
    };
    Notice {
        level: NoticeLevel::Error,
        message,
        line: fault.place.map(|place| place.line),
        column: fault.place.map(|place| place.column),
        server: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(bytes: &[u8]) -> Notice {
        let notice = parse(bytes).unwrap_err();
        assert_eq!(notice.level, NoticeLevel::Error);
        assert!(
            notice.message.starts_with("connectors.json cannot be read"),
            "{}",
            notice.message
        );
        notice
    }

    fn valid(config: &Config) -> Vec<&str> {
        let is_valid = |entry: &&Entry| matches!(entry.kind, EntryKind::Valid(_));
        config
            .entries
            .iter()
            .filter(is_valid)
            .map(|entry| entry.key.as_str())
            .collect()
    }

    #[test]
    fn comments_trailing_commas_byte_order_marks_and_crlf_are_read() {
        let text =
            "\u{feff}// mine\r\n{\r\n  \"servers\": {\r\n    /* a */ \"a\": {\"command\": \"x\",},\r\n  },\r\n}\r\n";
        let config = parse(text.as_bytes()).unwrap();
        assert_eq!(valid(&config), ["a"]);
        assert_eq!(config.entries[0].text, "{\"command\": \"x\",}");
        assert!(config.notices.is_empty());
    }

    #[test]
    fn a_file_without_connectors_is_legal() {
        for text in ["{}", "{\"servers\": {}}", "{\"$schema\": \"x\"}"] {
            assert_eq!(
                parse(text.as_bytes()).unwrap(),
                Config {
                    entries: vec![],
                    notices: vec![]
                },
                "{text}"
            );
        }
    }

    #[test]
    fn mcp_servers_is_understood_but_not_beside_servers() {
        let config = parse(br#"{"mcpServers": {"a": {"command": "x"}}}"#).unwrap();
        assert_eq!(valid(&config), ["a"]);
        let notice = error(b"{\"mcpServers\": {},\n \"servers\": {}}");
        assert_eq!((notice.line, notice.column), (Some(2), Some(2)));
        assert!(
            notice.message.contains("\"servers\" and \"mcpServers\"") && notice.message.contains("line 1, column 2")
        );
    }

    #[test]
    fn servers_twice_is_an_error_of_the_file() {
        let notice = error(b"{\"servers\": {},\n\"servers\": {}}");
        assert_eq!((notice.line, notice.column), (Some(2), Some(1)));
        assert!(notice.message.contains("line 1, column 2"), "{}", notice.message);
    }

    #[test]
    fn unusable_files_say_where_and_why() {
        for (bytes, line, word) in [
            (&b""[..], None, "empty"),
            (b" \n\t", None, "empty"),
            (b"\xef\xbb\xbf", None, "empty"),
            (b"// x", None, "comments"),
            (b"[]", Some(1), "object"),
            (b"{\"servers\": []}", Some(1), "object"),
            (b"{\"servers\": null}", Some(1), "object"),
            (b"{\"servers\":", Some(1), "value is missing"),
            (
                b"{\n\"servers\": {\n\"a\": {\"command\": \"x\"\n",
                Some(3),
                "never closed",
            ),
            (b"{\n'servers': {}}", Some(2), "double quotes"),
            (b"{\n\n\"servers\": \"\xff\"}", Some(3), "UTF-8"),
            (b"\xff\xfe{\0}\0", None, "UTF-16"),
            (b"\0\0\0\0", None, "zero bytes"),
        ] {
            let notice = error(bytes);
            assert!(
                notice.line == line && notice.message.contains(word),
                "{bytes:?}: {notice:?}"
            );
        }
    }

    #[test]
    fn one_bad_entry_takes_nobody_along() {
        let config =
            parse(br#"{"servers": {"a": {"command": 1}, "b": {"command": "x"}, "c d": {"command": "x"}, "e": 5}}"#)
                .unwrap();
        assert_eq!(valid(&config), ["b"]);
        assert_eq!(config.entries.len(), 4);
        assert_eq!(config.notices.len(), 3);
        assert!(config.notices.iter().any(|n| n.message.contains("\"c-d\"")));
    }

    #[test]
    fn an_id_that_stands_twice_makes_one_invalid_entry_with_both_places() {
        let config = parse(
            b"{\"servers\": {\n\"a\": {\"command\": \"x\"},\n\"b\": {\"command\": \"x\"},\n \"a\": {\"command\": 7}}}",
        )
        .unwrap();
        assert_eq!(
            config.entries.iter().map(|e| e.key.as_str()).collect::<Vec<_>>(),
            ["a", "b"]
        );
        let EntryKind::Invalid(notice) = &config.entries[0].kind else {
            panic!()
        };
        assert!(
            notice.message.contains("line 2, column 1") && notice.message.contains("line 4, column 2"),
            "{}",
            notice.message
        );
        assert_eq!(config.notices.iter().collect::<Vec<_>>(), [notice]);
    }

    #[test]
    fn unknown_members_of_the_file_are_reported_once_each_after_the_errors() {
        let config = parse(b"{\"inputs\": [],\n\"x\": 1, \"servers\": {\"a\": {}}}").unwrap();
        let lines: Vec<_> = config.notices.iter().map(|n| (n.level, n.line)).collect();
        assert_eq!(
            lines,
            [
                (NoticeLevel::Error, Some(2)),
                (NoticeLevel::Warning, Some(1)),
                (NoticeLevel::Warning, Some(2))
            ]
        );
    }

    #[test]
    fn a_deeply_nested_file_is_refused_without_harm() {
        error("{\"servers\": ".repeat(50_000).as_bytes());
        error("[".repeat(1_000_000).as_bytes());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_with_a_sentence(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Err(notice) = parse(&bytes) {
                prop_assert!(!notice.message.is_empty());
            }
        }

        #[test]
        fn any_text_of_json_like_pieces_is_read_or_refused(
            pieces in proptest::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "d83d", "\"servers\"", "\"a\"", "\"command\"", "\"url\"",
                    "//", "/*", "*/", "\n", "\r", " ", "1", "-", "e", ".", "null", "true", "'", "é", "\u{feff}", "\u{2028}",
                    "\"${env:\"", "\"https://x/${secret:A}\"", "{\"servers\": {\"a\": {", "\"headers\": {", "\u{0}",
                ]),
                0..40,
            )
        ) {
            if let Err(notice) = parse(pieces.concat().as_bytes()) {
                prop_assert!(!notice.message.is_empty());
            }
        }
    }
}
