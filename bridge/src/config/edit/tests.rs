use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::config::{EntryKind, parse};

fn entry(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => panic!("no object"),
    }
}

fn object(text: &str) -> Result<Map<String, Value>, Fault> {
    let tree = json::tree(json::without_bom(text).0)?;
    Ok(entry(tree.as_ref().map(to_value).unwrap()))
}

fn new_entry() -> Map<String, Value> {
    entry(json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}))
}

/// Each has a connector `a` with `enabled: true`, and `b` without; numbers with unusual spelling; many have comments.
const FIXTURES: &[&str] = &[
    "{\"servers\":{\"a\":{\"command\":\"x\",\"enabled\":true,\"n\":1.10},\"b\":{\"command\":\"y\"}}}",
    "{ \"servers\": { \"a\": { \"command\": \"x\", \"enabled\": true, \"n\": 1E5 }, \"b\": { \"command\": \"y\" } } }",
    "{ \"servers\" : { \"a\" : { \"command\" : \"x\" , \"enabled\" : true } , \"b\" : { \"command\" : \"y\" } } }",
    "{\n  \"servers\": {\n    \"a\": {\n      \"command\": \"x\",\n      \"enabled\": true\n    },\n    \"b\": {\n      \"command\": \"y\"\n    }\n  }\n}\n",
    "{\n  \"servers\": {\n    \"a\": { \"command\": \"x\", \"enabled\": true },\n    \"b\": { \"command\": \"y\" }\n  }\n}",
    "{\n\t\"servers\": {\n\t\t\"a\": {\n\t\t\t\"command\": \"x\",\n\t\t\t\"enabled\": true\n\t\t},\n\t\t\"b\": {\"command\": \"y\"}\n\t}\n}\n",
    "{\r\n  \"servers\": {\r\n    \"a\": {\r\n      \"command\": \"x\",\r\n      \"enabled\": true\r\n    },\r\n    \"b\": {\r\n      \"command\": \"y\"\r\n    }\r\n  }\r\n}\r\n",
    "\u{feff}{\r\n\t\"servers\": {\r\n\t\t\"a\": {\"command\": \"x\", \"enabled\": true},\r\n\t\t\"b\": {\"command\": \"y\"}\r\n\t}\r\n}",
    "\u{feff}{\"servers\": {\"a\": {\"enabled\": true, \"command\": \"x\"}, \"b\": {\"command\": \"y\"}}}\n",
    "{\n  \"servers\": {\n    \"a\": {\n      \"command\": \"x\",\n      \"enabled\": true,\n    },\n    \"b\": {\n      \"command\": \"y\",\n    },\n  },\n}\n",
    "// top\n{\n  // servers\n  \"servers\": {\n    // about a\n    \"a\": { // open a\n      \"command\": \"x\", // command\n      \"enabled\": true // on\n      // end of a\n    }, // after a\n    // about b\n    \"b\": { \"command\": \"y\" } // after b\n    // end of servers\n  } // after servers\n} // after all\n// bottom",
    "/* top */ { /* 1 */ \"servers\" /* 2 */ : /* 3 */ { /* 4 */ \"a\" /* 5 */ : /* 6 */ { \"command\": \"x\" /* 7 */ , /* 8 */ \"enabled\" /* 9 */ : /* 10 */ true /* 11 */ } /* 12 */ , \"b\": { \"command\": \"y\" /* 13 */ } /* 14 */ } /* 15 */ } /* 16 */",
    "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\",\n      \"enabled\": true\n    },\n    \"b\": {\n      \"command\": \"y\"\n    }\n  },\n  \"preferences\": {\"sidebar\": [1.0, 2.50, 1e+2]}\n}",
    "{\n    \"inputs\": [ ],\n    \"servers\": {\n        \"a\": {\n            \"command\": \"x\",\n            \"enabled\": true\n        },\n        \"b\": {\n            \"command\": \"y\"\n        }\n    }\n}",
    "{\n  \"servers\": {\n    \"a\": {\n  \"command\": \"x\",\n  \"enabled\": true\n},\n    \"b\": {\n  \"command\": \"y\"\n}\n\n  }\n}\n",
    "{\n\t\"servers\": {\n\t\t\"a\": {\n\t\t\t\"command\": \"x\",\n\t\t\t\"enabled\": true\n\t\t},\n\t\t\"b\": {\n      \"command\": \"y\"\n    }\n\t}\n}",
    "{\n  \"servers\": {\n    \"a\": {\n      \"enabled\": true,\n\n      \"command\": \"x\"\n    },\n\n\n    \"b\": {\n\n      \"command\": \"y\"\n\n    }\n\n  }\n\n}\n\n\n",
    "{\"servers\": {\n\"a\": {\n\"command\": \"x\",\n\"enabled\": true\n},\n\"b\": {\n\"command\": \"y\"\n}\n}\n}\n",
    "{\n  \"servers\":\n  {\n    \"a\":\n    {\n      \"command\": \"x\",\n      \"enabled\": true\n    },\n    \"b\":\n    {\n      \"command\": \"y\"\n    }\n  }\n}\n",
    "{\n  \"servers\": {\n    \"a\": {\n      \"command\": \"x\"\n      , \"enabled\": true\n    }\n    , \"b\": {\n      \"command\": \"y\"\n    }\n  }\n}\n",
    "{\n  \"servers\": {\n    \"a\": {\n      \"command\": \"x\",\n      \"enabled\": true },\n    \"b\": {\n      \"command\": \"y\" } } }\n",
    "{   \"servers\"   :   {   \"a\"   :   {   \"enabled\"   :   true   ,   \"command\"   :   \"x\"   }   ,   \"b\"   :   {   \"command\"   :   \"y\"   }   }   }",
    "{\n  \"$schema\": \"https://x.example/s.json\",\n  \"servers\": {\n    \"a\": {\"command\": \"x\", \"args\": [\n      \"1\", // one\n      \"2\",\n    ], \"enabled\": true},\n    \"b\": {\"command\": \"y\", \"env\": {\n      \"A\": \"1\" /* a */\n    }}\n  }\n}\n",
    "{\n  \"servers\": {\n    \"a\": {\n      \"command\": \"x // no comment /* \\\" */\",\n      \"args\": [],\n      \"enabled\": true\n    },\n    \"b\": {\n      \"command\": \"日本 \\u00e9 \\/ }{,\"\n    }\n  }\n}\n",
    "{\n  \"servers\": {\n    // \"off\": {\"command\": \"z\"},\n    \"a\": {\"command\": \"x\", \"enabled\": true}, /* multi\n    line */\n    \"b\": {\"command\": \"y\"}, // last\n    // \"later\": {\"command\": \"w\"}\n  }\n}\n",
    "{\r  \"servers\": {\r    \"a\": {\"command\": \"x\", \"enabled\": true}, // c\r    \"b\": {\"command\": \"y\"}\r  }\r}\r",
    "{\n \"servers\": {\n  \"a\": {\n   \"command\": \"x\",\n   \"enabled\": true\n  },\n  \"b\": {\n   \"command\": \"y\"\n  }\n }\n}",
    "\n\n  {\n    \"servers\": {\n      \"a\": {\"command\": \"x\", \"enabled\": true},\n      \"b\": {\"command\": \"y\"}\n    }\n  }\n  ",
    "{\n  \"servers\": {\n    \"a\": {\"command\": \"x\", \"enabled\": true}, \"b\": {\"command\": \"y\"}\n  }\n}\n",
    "{\n  \"servers\": {\n    \"a\": {\"command\": \"x\", \"enabled\": true,}, \"b\": {\"command\": \"y\",},\n  },\n}\n",
    "{\n  \"servers\": {\n    \"b\": {\n      \"command\": \"y\" // why\n    }, // b\n    \"a\": {\n      /* x */ \"command\": \"x\",\n      /* y */ \"enabled\": true, /* z */\n    }\n    /* end */\n  },\n  \"z\": 0.10\n}\n",
    "{ // c\n  \"servers\": { // d\n    \"a\": { // e\n      // f\n\n      \"command\": \"x\", \"enabled\": true // g\n      // h\n    }, \"b\": { \"command\": \"y\" // i\n    } // j\n  } // k\n}",
    "{\n  \"servers\": {\n    \"a\": {\"command\": \"x\", \"enabled\": true},\n    \"b\": {\"command\": \"y\"},\n    \"b2\": {\"command\": \"y\", \"q\": [[1.0], {}]},\n    \"bad\": 5, \"also bad\": null\n  }\n}\n",
    "{\n    \"servers\": {\n\t\"a\": {\n\t    \"command\": \"x\",   \n\t    \"enabled\": true   \n\t},   \n\t\"b\": {   \n\t    \"command\": \"y\"\n\t}   \n    }   \n}   \n",
];

fn comments(text: &str) -> Vec<&str> {
    let (bare, _) = json::without_bom(text);
    let lexemes = json::lexemes(bare).unwrap();
    lexemes
        .iter()
        .map(|lexeme| &bare[lexeme.range.start..lexeme.range.end])
        .filter(|token| token.starts_with("//") || token.starts_with("/*"))
        .collect()
}

#[test]
fn there_are_many_fixtures_and_all_hold_both_connectors() {
    assert!(FIXTURES.len() >= 30);
    for text in FIXTURES {
        let config = parse(text.as_bytes()).unwrap();
        let valid = config
            .entries
            .iter()
            .filter(|entry| matches!(entry.kind, EntryKind::Valid(_)))
            .count();
        assert!(valid >= 2, "{text}");
    }
}

#[test]
fn turning_off_and_on_again_gives_the_same_bytes() {
    for text in FIXTURES {
        let off = set_member(text, "a", "enabled", &json!(false)).unwrap();
        assert_eq!(off, text.replacen("true", "false", 1), "{text}");
        assert_eq!(&set_member(&off, "a", "enabled", &json!(true)).unwrap(), text);
    }
}

#[test]
fn a_new_member_and_its_removal_give_the_same_bytes() {
    for text in FIXTURES {
        for id in ["a", "b"] {
            let with = set_member(text, id, "enabled2", &json!({"x": [1]})).unwrap();
            assert_eq!(comments(&with), comments(text), "{with}");
            assert_eq!(&remove_member(&with, id, "enabled2").unwrap(), text, "via {with}");
        }
    }
}

#[test]
fn a_new_entry_and_its_removal_give_the_same_bytes() {
    for text in FIXTURES {
        let with = add_entry(text, "new", &new_entry()).unwrap();
        let config = parse(with.as_bytes()).unwrap();
        assert_eq!(config.entries.last().unwrap().key, "new");
        assert_eq!(&remove_entry(&with, "new").unwrap(), text, "via {with}");
    }
}

#[test]
fn removing_any_entry_keeps_every_comment_outside_it_and_the_other_entries() {
    for text in FIXTURES {
        for (gone, stays) in [("a", "b"), ("b", "a")] {
            let without = remove_entry(text, gone).unwrap();
            let before = parse(text.as_bytes()).unwrap();
            let after = parse(without.as_bytes()).unwrap();
            let of = |config: &crate::config::Config| {
                config
                    .entries
                    .iter()
                    .find(|entry| entry.key == stays)
                    .map(|entry| entry.text.clone())
                    .unwrap()
            };
            assert_eq!(of(&before), of(&after));
            assert_eq!(after.entries.len() + 1, before.entries.len());
            let removed = before.entries.iter().find(|entry| entry.key == gone).unwrap();
            let kept = comments(text).len() - comments(&removed.text).len();
            // Between the name and its value there is no place left for a comment.
            let lost_between = if text.contains("/* 5 */") && gone == "a" { 2 } else { 0 };
            assert_eq!(comments(&without).len(), kept - lost_between, "{without}");
        }
        let none = remove_entry(&remove_entry(text, "a").unwrap(), "b").unwrap();
        parse(none.as_bytes()).unwrap();
    }
}

#[test]
fn additions_take_the_style_of_their_neighbours() {
    let spaces = "{\n    \"servers\": {\n        \"a\": {\n            \"command\": \"x\"\n        }\n    }\n}\n";
    assert_eq!(
        add_entry(spaces, "n", &new_entry()).unwrap(),
        "{\n    \"servers\": {\n        \"a\": {\n            \"command\": \"x\"\n        },\n        \"n\": {\n            \"command\": \"npx\",\n            \"args\": [\"-y\", \"x\"],\n            \"env\": {\n                \"A\": \"b\"\n            }\n        }\n    }\n}\n"
    );
    let tabs = "{\r\n\t\"servers\": {\r\n\t}\r\n}";
    assert_eq!(
        add_entry(tabs, "n", &entry(json!({"url": "u"}))).unwrap(),
        "{\r\n\t\"servers\": {\r\n\t\t\"n\": {\r\n\t\t\t\"url\": \"u\"\r\n\t\t}\r\n\t}\r\n}"
    );
    let compact = "{\"servers\":{\"a\":{\"command\":\"x\"}}}";
    assert_eq!(
        add_entry(compact, "n", &new_entry()).unwrap(),
        "{\"servers\":{\"a\":{\"command\":\"x\"},\"n\":{\"command\":\"npx\",\"args\":[\"-y\",\"x\"],\"env\":{\"A\":\"b\"}}}}"
    );
    let one_line = "{\n  \"servers\": {\n    \"a\": { \"command\": \"x\" }\n  }\n}";
    assert_eq!(
        set_member(one_line, "a", "enabled", &json!(false)).unwrap(),
        "{\n  \"servers\": {\n    \"a\": { \"command\": \"x\", \"enabled\": false }\n  }\n}"
    );
    let trailing = "{\n  \"servers\": {\n    \"a\": {\"command\": \"x\"}, // a\n  },\n}";
    assert_eq!(
        add_entry(trailing, "n", &entry(json!({"url": "u"}))).unwrap(),
        "{\n  \"servers\": {\n    \"a\": {\"command\": \"x\"}, // a\n    \"n\": {\n      \"url\": \"u\"\n    },\n  },\n}"
    );
}

#[test]
fn files_without_connectors_get_their_first_one() {
    let lines = "{\n  \"servers\": {\n    \"n\": {\n      \"url\": \"u\"\n    }\n  }\n}";
    for (text, expected) in [
        ("", format!("{lines}\n")),
        (" \n", format!("{lines}\n")),
        ("\u{feff}", format!("\u{feff}{lines}\n")),
        ("// mine\n", format!("// mine\n{lines}\n")),
        ("{}", lines.to_owned()),
        ("{}\r\n", format!("{}\r\n", lines.replace('\n', "\r\n"))),
        ("{\n  \"servers\": {}\n}", lines.to_owned()),
        ("{\n  \"servers\": { }\n}", lines.to_owned()),
        ("{\n  \"servers\": {\n  }\n}", lines.to_owned()),
        ("{\"servers\":{}}", "{\"servers\":{\"n\":{\"url\":\"u\"}}}".to_owned()),
        (
            "{ \"servers\": {} }",
            "{ \"servers\": { \"n\": { \"url\": \"u\" } } }".to_owned(),
        ),
        (
            "{\"z\": 1.0}",
            "{\"z\": 1.0, \"servers\": {\"n\": {\"url\": \"u\"}}}".to_owned(),
        ),
        (
            "{\n  \"servers\": { // none yet\n  }\n}",
            lines.replacen("{\n    \"n\"", "{ // none yet\n    \"n\"", 1),
        ),
    ] {
        let with = add_entry(text, "n", &entry(json!({"url": "u"}))).unwrap();
        assert_eq!(with, expected, "{text:?}");
        parse(remove_entry(&with, "n").unwrap().as_bytes()).unwrap();
    }
    for text in [
        "{\n  \"servers\": {}\n}\n",
        "{\"servers\":{}}",
        "{ \"mcpServers\": {} }",
    ] {
        let with = add_entry(text, "n", &new_entry()).unwrap();
        assert_eq!(remove_entry(&with, "n").unwrap(), text);
    }
}

#[test]
fn replacing_an_entry_keeps_comments_order_and_spelling_of_what_stays() {
    let text = "{\n  \"servers\": {\n    \"a\": {\n      // how\n      \"command\": \"x\", // program\n      \"n\": 1.10,\n      \"env\": {\n        \"A\": \"1\", // one\n        \"B\": \"2\"\n      },\n      \"cwd\": \"~\"\n    }\n  }\n}\n";
    let new = json!({"enabled": false, "env": {"A": "1", "C": "3"}, "n": serde_json::from_str::<Value>("1.10").unwrap(), "command": "y"});
    assert_eq!(
        replace_entry(text, "a", &entry(new)).unwrap(),
        "{\n  \"servers\": {\n    \"a\": {\n      // how\n      \"command\": \"y\", // program\n      \"n\": 1.10,\n      \"env\": {\n        \"A\": \"1\", // one\n        \"C\": \"3\"\n      },\n      \"enabled\": false\n    }\n  }\n}\n"
    );
    for text in FIXTURES {
        let config = object(text).unwrap();
        let servers = config.get("servers").or(config.get("mcpServers")).unwrap();
        assert_eq!(&replace_entry(text, "a", &entry(servers["a"].clone())).unwrap(), text);
        let other = replace_entry(text, "b", &new_entry()).unwrap();
        let read = object(&other).unwrap();
        assert_eq!(
            read.get("servers").or(read.get("mcpServers")).unwrap()["b"],
            Value::Object(new_entry())
        );
    }
}

#[test]
fn an_invalid_entry_can_be_removed_or_replaced() {
    for text in [
        "{\"servers\": {\"a\": 5, \"b\": {}}}",
        "{\"servers\": {\"a\": {}, \"b\": {}, \"a\": {}}}",
    ] {
        assert_eq!(remove_entry(text, "a").unwrap(), "{\"servers\": {\"b\": {}}}");
    }
    let replaced = replace_entry("{\"servers\": {\"a\": 5}}", "a", &entry(json!({"url": "u"}))).unwrap();
    assert_eq!(replaced, "{\"servers\": {\"a\": {\"url\": \"u\"}}}");
}

#[test]
fn what_cannot_be_changed_is_refused_with_a_sentence() {
    let bad = "{\"servers\": {\"a\": {}";
    assert!(matches!(add_entry(bad, "n", &new_entry()), Err(EditError::Unreadable(said)) if said.contains("line 1")));
    for bad in [
        "[]",
        "{\"servers\": 1}",
        "{\"servers\": {}, \"mcpServers\": {}}",
        "{\"servers\": {}, \"servers\": {}}",
    ] {
        assert!(
            matches!(add_entry(bad, "n", &new_entry()), Err(EditError::Unreadable(_))),
            "{bad}"
        );
    }
    let text = "{\"servers\": {\"a\": {\"x\": 1, \"x\": 2}, \"b\": 5, \"c\": {}, \"c\": {}}}";
    assert!(matches!(
        add_entry(text, "a", &new_entry()),
        Err(EditError::AlreadyExists { .. })
    ));
    assert!(matches!(remove_entry(text, "z"), Err(EditError::NoSuchEntry { .. })));
    assert!(matches!(
        set_member(text, "z", "enabled", &json!(true)),
        Err(EditError::NoSuchEntry { .. })
    ));
    assert!(matches!(
        set_member("", "z", "enabled", &json!(true)),
        Err(EditError::NoSuchEntry { .. })
    ));
    assert!(matches!(
        set_member(text, "b", "enabled", &json!(true)),
        Err(EditError::NotAnObject { .. })
    ));
    assert!(matches!(
        set_member(text, "a", "x", &json!(true)),
        Err(EditError::Ambiguous { .. })
    ));
    assert!(matches!(
        set_member(text, "c", "x", &json!(true)),
        Err(EditError::Ambiguous { .. })
    ));
}

#[test]
fn removing_next_to_line_comments_never_swallows_code() {
    for (text, id, expected) in [
        ("{\"servers\": {// c\n\"a\": {}}}", "a", "{\"servers\": {// c\n}}"),
        (
            "{\"servers\": {\"b\": {}, // c\n\"a\": {}}}",
            "a",
            "{\"servers\": {\"b\": {} // c\n}}",
        ),
        (
            "{\"servers\": {\"a\": {} // c\n, \"b\": {}}}",
            "a",
            "{\"servers\": {// c\n \"b\": {}}}",
        ),
        (
            "{\"servers\": {\n  \"a\": {}, // about a\n  \"b\": {}\n}}",
            "a",
            "{\"servers\": {\n  // about a\n  \"b\": {}\n}}",
        ),
    ] {
        assert_eq!(remove_entry(text, id).unwrap(), expected);
    }
}

#[derive(Debug, Clone)]
enum Op {
    Add(String, Map<String, Value>),
    Remove(String),
    Set(String, String, Value),
    Unset(String, String),
    Replace(String, Map<String, Value>),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let id = prop::sample::select(vec!["a", "b", "c", "we\"ird"]).prop_map(str::to_owned);
    let name = prop::sample::select(vec!["enabled", "n", "env", "x y"]).prop_map(str::to_owned);
    let value = prop::sample::select(vec![
        json!(true),
        json!(null),
        json!([1, {"p": [], "q": {}}]),
        json!({"A": "x // y", "B": {"C": "日本\n"}}),
        json!({}),
        json!("a long text ".repeat(9)),
        json!(["a long text ".repeat(4), "b".repeat(40)]),
    ]);
    let map = proptest::collection::btree_map(name.clone(), value.clone(), 0..4).prop_map(Map::from_iter);
    let op = prop_oneof![
        (id.clone(), map.clone()).prop_map(|(id, map)| Op::Add(id, map)),
        id.clone().prop_map(Op::Remove),
        (id.clone(), name.clone(), value).prop_map(|(id, name, value)| Op::Set(id, name, value)),
        (id.clone(), name).prop_map(|(id, name)| Op::Unset(id, name)),
        (id, map).prop_map(|(id, map)| Op::Replace(id, map)),
    ];
    proptest::collection::vec(op, 1..8)
}

proptest! {
    #[test]
    fn any_edits_read_back_as_the_same_edits_of_the_values(index in 0..FIXTURES.len(), ops in ops()) {
        let mut text = FIXTURES[index].to_owned();
        let before = comments(&text).len();
        let name = if text.contains("mcpServers") { "mcpServers" } else { "servers" };
        let mut model = object(&text).unwrap();
        for op in ops {
            let servers = model[name].as_object_mut().unwrap();
            let edited = match &op {
                Op::Add(id, map) => {
                    if !servers.contains_key(id) { servers.insert(id.clone(), Value::Object(map.clone())); }
                    add_entry(&text, id, map)
                }
                Op::Remove(id) => { servers.shift_remove(id); remove_entry(&text, id) }
                Op::Set(id, member, value) => {
                    if let Some(Value::Object(e)) = servers.get_mut(id) { e.insert(member.clone(), value.clone()); }
                    set_member(&text, id, member, value)
                }
                Op::Unset(id, member) => {
                    if let Some(Value::Object(e)) = servers.get_mut(id) { e.shift_remove(member); }
                    remove_member(&text, id, member)
                }
                Op::Replace(id, map) => {
                    if servers.contains_key(id) { servers.insert(id.clone(), Value::Object(map.clone())); }
                    replace_entry(&text, id, map)
                }
            };
            match edited {
                Ok(new) => text = new,
                Err(EditError::AlreadyExists { .. } | EditError::NoSuchEntry { .. }) => {}
                Err(other) => prop_assert!(false, "{other} for {op:?} in {text}"),
            }
            prop_assert_eq!(&object(&text).unwrap(), &model, "{}", text);
        }
        prop_assert!(comments(&text).len() <= before);
    }
}
