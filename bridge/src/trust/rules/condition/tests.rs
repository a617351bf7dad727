use serde_json::json;

use super::*;

fn each(conditions: &[(&str, Condition)]) -> Arguments {
    Arguments::Each {
        conditions: conditions
            .iter()
            .map(|(name, c)| ((*name).to_owned(), c.clone()))
            .collect(),
    }
}

/// As they come over the wire: a number is what was written.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap()
}

fn equals(text: &str) -> Condition {
    Condition::Equals { value: parsed(text) }
}

/// `path` and `mode` as servers in wide use declare them, and what is declared otherwise.
fn tool() -> Value {
    json!({"type": "object", "properties": {
        "path": {"type": "string"},
        "paths": {"type": "array", "items": {"type": "string"}},
        "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "unclear": {"description": "A path."},
        "count": {"type": "integer"},
        "mode": {"type": "string", "default": "delete"},
        "force": {"type": "boolean", "default": false},
        "filter": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }})
}

fn covers(rule: &Arguments, given: &str) -> bool {
    rule.cover(&object(given), Declared::Tool(tool().as_object()), &here)
}

fn may_mean(rule: &Arguments, given: &str) -> bool {
    rule.may_mean(&object(given), Declared::Tool(tool().as_object()), &here)
}

/// What is written is where it leads.
fn here(text: &str) -> Option<Vec<PathBuf>> {
    text.starts_with('/').then(|| vec![PathBuf::from(text)])
}

#[test]
fn a_yes_to_a_value_covers_it_as_it_is_written_alone() {
    for (condition, covered, not) in [
        (
            equals("1"),
            vec!["1"],
            vec!["1.0", "\"1\"", "true", "1e0", "[1]", "null", "2"],
        ),
        (
            Condition::OneOf {
                values: vec![json!(1), json!(2)],
            },
            vec!["1", "2"],
            vec!["1.0", "\"2\"", "3"],
        ),
    ] {
        let rule = each(&[("count", condition)]);
        for given in covered {
            assert!(covers(&rule, &format!(r#"{{"count":{given}}}"#)), "{given}");
        }
        for given in not {
            assert!(!covers(&rule, &format!(r#"{{"count":{given}}}"#)), "{given}");
        }
    }
    assert!(!covers(
        &each(&[("mode", equals("\"delete\""))]),
        r#"{"mode":"Delete"}"#
    ));
}

#[test]
fn a_no_to_a_value_holds_for_whatever_a_server_could_turn_into_it() {
    let one = each(&[("count", equals("1"))]);
    for given in ["1", "1.0", "\"1\"", "true", "null", "[1]"] {
        assert!(may_mean(&one, &format!(r#"{{"count":{given}}}"#)), "{given}");
    }
    assert!(!may_mean(&one, r#"{"count":2}"#));
    let delete = each(&[("mode", equals("\"delete\""))]);
    for given in ["\"delete\"", "\" DELETE\"", "null", "[\"delete\"]", r#""d\u00adelete""#] {
        assert!(may_mean(&delete, &format!(r#"{{"mode":{given}}}"#)), "{given}");
    }
    assert!(!may_mean(&delete, r#"{"mode":"read"}"#));
    let several = each(&[(
        "count",
        Condition::OneOf {
            values: vec![json!(1), json!(2)],
        },
    )]);
    assert!(may_mean(&several, r#"{"count":"2"}"#));
    assert!(!may_mean(&several, r#"{"count":3}"#));
}

#[test]
fn a_no_holds_for_what_is_left_out_unless_the_tool_says_what_it_takes_instead() {
    let inside = Condition::Inside {
        folder: "/secret".into(),
    };
    for (name, condition, held) in [
        ("mode", equals("\"delete\""), true),
        ("mode", equals("\"read\""), false),
        ("force", equals("true"), false),
        ("force", equals("false"), true),
        ("count", equals("1"), true),
        ("path", inside.clone(), true),
        // No argument of this tool.
        ("other", equals("1"), false),
        ("other", inside, false),
    ] {
        let rule = each(&[(name, condition.clone())]);
        assert_eq!(may_mean(&rule, "{}"), held, "{name} {condition:?}");
        assert!(!covers(&rule, "{}"), "{name} {condition:?}");
    }
}

#[test]
fn what_is_to_be_left_out_may_not_be_given() {
    let rule = each(&[("path", equals("\"a\"")), ("force", Condition::Absent)]);
    for (given, covered, meant) in [
        (r#"{"path":"a"}"#, true, true),
        (r#"{"path":"a","force":true}"#, false, false),
        (r#"{"path":"a","force":false}"#, false, false),
        (r#"{"path":"a","force":null}"#, false, true),
        (r#"{"path":"a","Force":true}"#, false, true),
    ] {
        assert_eq!(covers(&rule, given), covered, "{given}");
        assert_eq!(may_mean(&rule, given), meant, "{given}");
    }
}

#[test]
fn another_spelling_of_an_arguments_name_gets_past_no_rule() {
    let rule = each(&[("mode", equals("\"delete\""))]);
    for given in [r#"{"mode":"read","Mode":"delete"}"#, r#"{"mode":"read","MODE":"x"}"#] {
        assert!(may_mean(&rule, given), "{given}");
        assert!(!covers(&rule, given), "{given}");
    }
}

#[test]
fn an_argument_that_no_condition_names_is_not_covered_and_does_not_undo_a_no() {
    let rule = each(&[("path", equals("\"a\"")), ("mode", Condition::Any)]);
    for (given, covered, meant) in [
        (r#"{"path":"a"}"#, true, true),
        (r#"{"path":"a","mode":7}"#, true, true),
        (r#"{"path":"a","extra":null}"#, false, true),
        (r#"{"path":"b"}"#, false, false),
        (r#"{"mode":7}"#, false, true),
        ("{}", false, true),
    ] {
        assert_eq!(covers(&rule, given), covered, "{given}");
        assert_eq!(may_mean(&rule, given), meant, "{given}");
    }
    assert!(covers(&Arguments::Any, r#"{"whatever":1}"#));
    assert!(!covers(&each(&[]), r#"{"whatever":1}"#));
    // A rule for several tools names what only another one of them declares.
    let wider = each(&[("path", Condition::Any), ("extra", Condition::Any)]);
    assert!(!covers(&wider, r#"{"path":"a","extra":1}"#));
}

#[test]
fn what_can_be_read_in_two_ways_is_neither_allowed_nor_kept_from_a_no() {
    let origin = "https://internal.example".to_owned();
    let url = Condition::Url { origin, path: vec![] };
    let inside = Condition::Inside { folder: "/etc".into() };
    for given in [
        r#"{"path":"https://x@internal.example/"}"#,
        r#"{"path":7}"#,
        r#"{"path":{"href":"https://internal.example"}}"#,
        r#"{"path":null}"#,
        r#"{"path":["https://internal.example/"]}"#,
        r#"{"paths":["https://internal.example/","https://other.example/"]}"#,
        r#"{"paths":["https://internal.example/",1]}"#,
        // Read as JSON by widely used servers.
        r#"{"paths":"https://internal.example/"}"#,
        r#"{"paths":"/etc/hosts"}"#,
        r#"{"paths":"[\"/etc/hosts\"]"}"#,
        r#"{"either":"[\"/etc/hosts\"]"}"#,
        r#"{"either":"\"/etc/hosts\""}"#,
        r#"{"unclear":"/etc/hosts"}"#,
        r#"{"unclear":"https://internal.example/"}"#,
        r#"{"count":"/etc/hosts"}"#,
    ] {
        let name = object(given).keys().next().cloned().unwrap();
        for condition in [&url, &inside] {
            let rule = each(&[(&name, condition.clone())]);
            assert!(!covers(&rule, given), "{given}");
            assert!(may_mean(&rule, given), "{given}");
        }
    }
}

#[test]
fn of_a_list_every_part_has_to_fit() {
    let inside = Condition::Inside {
        folder: "/notes".into(),
    };
    for (name, given, covered, meant) in [
        ("paths", r#"["/notes/a","/notes/b"]"#, true, true),
        ("paths", r#"["/notes/a","/secret"]"#, false, true),
        ("paths", r#"["/secret","/notes/a"]"#, false, true),
        ("paths", r#"["/secret","/else"]"#, false, false),
        ("paths", r#"["/notes/a",1]"#, false, true),
        ("paths", r#"[["/notes/a"]]"#, false, true),
        ("paths", "[]", false, false),
        ("either", r#"["/notes/a"]"#, true, true),
        ("either", r#""/notes/a""#, true, true),
        ("path", r#""/notes/a""#, true, true),
        ("path", r#""/notesx""#, false, false),
    ] {
        let rule = each(&[(name, inside.clone())]);
        let given = format!(r#"{{"{name}":{given}}}"#);
        assert_eq!(covers(&rule, &given), covered, "{given}");
        assert_eq!(may_mean(&rule, &given), meant, "{given}");
    }
}

#[test]
fn a_path_that_may_lead_to_several_places_has_to_fit_at_each() {
    let rule = each(&[(
        "path",
        Condition::Inside {
            folder: "/notes".into(),
        },
    )]);
    for (places, covered, meant) in [
        (vec!["/notes/a", "/notes/b"], true, true),
        (vec!["/notes/a", "/else"], false, true),
        (vec!["/else", "/more"], false, false),
        (vec![], false, true),
    ] {
        let resolve = |_: &str| Some(places.iter().map(PathBuf::from).collect());
        let (given, tool) = (object(r#"{"path":"a"}"#), tool());
        let declared = Declared::Tool(tool.as_object());
        assert_eq!(rule.cover(&given, declared, &resolve), covered, "{places:?}");
        assert_eq!(rule.may_mean(&given, declared, &resolve), meant, "{places:?}");
    }
}
