use super::*;

/// As they come over the wire: a number is what was written.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_value_is_another_one_only_where_no_server_could_turn_it_into_the_one_that_is_meant() {
    for (wanted, given) in [
        // As widely used servers turn them.
        ("1", r#""1""#),
        ("1", "true"),
        ("1", "1.0"),
        ("1", "1.00000000000000000001"),
        ("1", "[1]"),
        ("1", "null"),
        ("0", "-0"),
        ("100", "1e2"),
        ("9007199254740993", "9007199254740992"),
        ("true", r#""true""#),
        ("true", "1"),
        ("true", r#""yes""#),
        ("true", r#""on""#),
        ("true", r#""t""#),
        ("[7]", r#""[7]""#),
        ("[7]", r#"["7"]"#),
        ("[7]", "[7.0]"),
        ("[7]", "[7,7]"),
        ("[1,2]", "[2,1]"),
        ("[]", r#""""#),
        (r#"{"a":1}"#, r#"{"a":1,"b":2}"#),
        (r#"{"a":1,"b":2}"#, r#"{"a":1}"#),
        (r#"{"a":1,"b":[2]}"#, r#"{"b":["2"],"a":1}"#),
        (r#""delete""#, "null"),
        (r#""delete""#, r#"["delete"]"#),
        (r#""delete""#, r#"{"value":"delete"}"#),
        (r#""delete""#, r#""Delete""#),
        (r#""delete""#, r#"" delete\n""#),
        (r#""delete""#, r#""dele\u200bte""#),
        (r#""delete""#, r#""ｄｅｌｅｔｅ""#),
        (r#""delete""#, r#""de\u0000lete""#),
        (r#""private""#, r#""prıvate""#),
        (r#""caf\u00e9""#, r#""cafe\u0301""#),
        (r#""straße""#, r#""STRASSE""#),
        // As a number that is given as a text.
        (r#""7""#, r#""07""#),
        (r#""true""#, r#""yes""#),
    ] {
        let (wanted, given) = (parsed(wanted), parsed(given));
        assert_eq!(sameness(&wanted, &given, false), Fit::Unsure, "{given} for {wanted}");
    }
    for (wanted, given) in [
        ("1", "2"),
        ("true", "false"),
        (r#""delete""#, r#""read""#),
        (r#""delete""#, r#""deleted""#),
        ("[7]", "[8]"),
        ("[7]", "[7,8]"),
        (r#"{"a":1,"b":2}"#, r#"{"a":2}"#),
    ] {
        let (wanted, given) = (parsed(wanted), parsed(given));
        assert_eq!(sameness(&wanted, &given, false), Fit::Differs, "{given} for {wanted}");
    }
    for same in ["1", "1.0", "null", r#""Delete ""#, r#"{"a":[1]}"#] {
        assert_eq!(sameness(&parsed(same), &parsed(same), false), Fit::Fits, "{same}");
    }
    let members = (parsed(r#"{"a":1,"b":2}"#), parsed(r#"{"b":2,"a":1}"#));
    assert_eq!(sameness(&members.0, &members.1, false), Fit::Fits);
}

#[test]
fn where_a_text_is_wanted_no_text_is_turned_into_anything() {
    for (wanted, given) in [("7", "07"), ("true", "yes"), ("", "a")] {
        let (wanted, given) = (Value::from(wanted), Value::from(given));
        assert_eq!(sameness(&wanted, &given, true), Fit::Differs, "{given} for {wanted}");
    }
    assert_eq!(sameness(&Value::from("a"), &Value::from("A "), true), Fit::Unsure);
}

#[test]
fn a_name_in_other_letters_is_a_twin() {
    for other in [
        "Mode_name",
        "modeName",
        "mode-name",
        "MODENAME",
        "mode name",
        "ｍodeName",
    ] {
        assert!(is_twin(other, "mode_name"), "{other}");
    }
    for other in ["mode_name", "mode", "mode_name2", "nodeName"] {
        assert!(!is_twin(other, "mode_name"), "{other}");
    }
}
