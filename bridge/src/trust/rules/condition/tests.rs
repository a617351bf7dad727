use serde_json::json;

use super::*;

fn nowhere(_: &str) -> Option<Vec<PathBuf>> {
    None
}

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

#[test]
fn a_value_is_equal_only_as_it_is_written_and_unsure_where_readers_disagree() {
    for (wanted, given, expected) in [
        ("1", "1", Fit::Fits),
        ("1", "1.0", Fit::Unsure),
        ("100", "1e2", Fit::Unsure),
        ("0", "-0", Fit::Unsure),
        ("1", "2", Fit::Differs),
        ("1", "\"1\"", Fit::Differs),
        ("9007199254740993", "9007199254740993", Fit::Fits),
        ("9007199254740993", "9007199254740992", Fit::Unsure),
        ("\"a\"", "\"a\"", Fit::Fits),
        ("\"a\"", "\"A\"", Fit::Differs),
        ("\"a\"", "\"a \"", Fit::Differs),
        ("\"a\"", "[\"a\"]", Fit::Differs),
        ("null", "null", Fit::Fits),
        ("null", "false", Fit::Differs),
        (r#"{"a":1,"b":[2]}"#, r#"{"b":[2],"a":1}"#, Fit::Fits),
        (r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1}"#, Fit::Unsure),
        (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, Fit::Differs),
        ("[1,2]", "[2,1]", Fit::Differs),
    ] {
        let fit = equals(wanted).fit(Some(&parsed(given)), &nowhere);
        assert_eq!(fit, expected, "{given} for {wanted}");
    }
}

#[test]
fn one_of_several_values_is_as_sure_as_the_surest() {
    let condition = Condition::OneOf {
        values: vec![json!(1), json!("a")],
    };
    for (given, expected) in [
        ("1", Fit::Fits),
        ("\"a\"", Fit::Fits),
        ("1.0", Fit::Unsure),
        ("2", Fit::Differs),
    ] {
        assert_eq!(condition.fit(Some(&parsed(given)), &nowhere), expected, "{given}");
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
        (r#"{"mode":7}"#, false, false),
        ("{}", false, false),
    ] {
        let given_object = object(given);
        assert_eq!(rule.cover(&given_object, &nowhere), covered, "{given}");
        assert_eq!(rule.may_mean(&given_object, &nowhere), meant, "{given}");
    }
    assert!(Arguments::Any.cover(&object(r#"{"whatever":1}"#), &nowhere));
    assert!(!each(&[]).cover(&object(r#"{"whatever":1}"#), &nowhere));
}

#[test]
fn what_can_be_read_in_two_ways_is_neither_allowed_nor_kept_from_a_no() {
    let url = each(&[(
        "url",
        Condition::Url {
            origin: "https://internal.example".into(),
            path: vec![],
        },
    )]);
    let inside = each(&[("url", Condition::Inside { folder: "/etc".into() })]);
    for given in [
        r#"{"url":"https://x@internal.example/"}"#,
        r#"{"url":7}"#,
        r#"{"url":{"href":"https://internal.example"}}"#,
        r#"{"url":null}"#,
        r#"{"url":["https://internal.example/","https://other.example/"]}"#,
    ] {
        let given_object = object(given);
        for rule in [&url, &inside] {
            assert!(!rule.cover(&given_object, &nowhere), "{given}");
            assert!(rule.may_mean(&given_object, &nowhere), "{given}");
        }
    }
}

#[test]
fn of_a_list_every_part_has_to_fit() {
    let condition = Condition::Inside {
        folder: "/notes".into(),
    };
    let resolve = |text: &str| Some(vec![PathBuf::from(text)]);
    for (given, expected) in [
        (r#"["/notes/a","/notes/b"]"#, Fit::Fits),
        (r#"["/notes/a","/secret"]"#, Fit::Unsure),
        (r#"["/secret","/notes/a"]"#, Fit::Unsure),
        (r#"["/secret","/else"]"#, Fit::Differs),
        (r#"["/notes/a",1]"#, Fit::Unsure),
        (r#"[["/notes/a"]]"#, Fit::Unsure),
        ("[]", Fit::Differs),
        ("\"/notes/a\"", Fit::Fits),
        ("\"/notesx\"", Fit::Differs),
    ] {
        assert_eq!(condition.fit(Some(&parsed(given)), &resolve), expected, "{given}");
    }
}
