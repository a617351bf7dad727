use serde_json::json;

use super::*;

fn tool(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn print(text: &str) -> Fingerprint {
    Fingerprint::of(&tool(text)).unwrap()
}

const READ: &str = r#"{"name":"read","title":"Read","description":"Reads a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Which"},"n":{"maximum":1.50}}}}"#;

#[test]
fn the_order_of_names_and_blanks_between_them_change_nothing() {
    let again = r#" { "inputSchema": {"properties": {"n": {"maximum": 15e-1}, "path":
        {"description": "Which", "type": "string"}}, "type": "object"},
        "description": "Reads a file.", "title": "Read", "name": "read" } "#;
    assert_eq!(print(READ), print(again));
    assert_eq!(difference(&tool(READ), &tool(again)), Difference::Nothing);
}

#[test]
fn what_no_model_reads_and_what_a_tool_claims_are_no_part_of_its_print() {
    let mut more = tool(READ);
    more["_meta"] = json!({"n": 5});
    more["icons"] = json!([{"src": "https://x.example/i.png"}]);
    more["annotations"] = json!({"readOnlyHint": true});
    assert_eq!(Fingerprint::of(&more).unwrap(), print(READ));
    assert_ne!(HintsPrint::of(&more), HintsPrint::of(&tool(READ)));
    assert_eq!(difference(&tool(READ), &more), Difference::Nothing);
}

#[test]
fn whatever_else_differs_makes_another_print() {
    let mut seen = vec![print(READ)];
    for (pointer, value) in [
        ("/name", json!("read_")),
        ("/title", json!("Read ")),
        ("/description", json!("Reads a file. ")),
        ("/description", json!("Reads a file\u{200b}.")),
        ("/inputSchema/properties/path/description", json!("which")),
        ("/inputSchema/properties/n/maximum", json!(1.6)),
        ("/inputSchema/type", json!(["object"])),
    ] {
        let mut other = tool(READ);
        *other.pointer_mut(pointer).unwrap() = value;
        seen.push(Fingerprint::of(&other).unwrap());
    }
    let mut unknown = tool(READ);
    unknown["x-new"] = json!(null);
    seen.push(Fingerprint::of(&unknown).unwrap());
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

#[test]
fn letters_that_only_look_the_same_make_another_print() {
    assert_ne!(print_of_text("caf\u{e9}"), print_of_text("cafe\u{301}"));
    assert_ne!(print_of_text("\u{fb01}le"), print_of_text("file"));
}

#[test]
fn a_print_of_one_kind_is_none_of_another() {
    let text = Fingerprint::of(&json!("x")).unwrap();
    let prints = [text, print_of_text("x"), print_of_item(&json!("x")).unwrap()];
    assert!(prints[0] != prints[1] && prints[1] != prints[2] && prints[0] != prints[2]);
}

#[test]
fn a_print_is_the_same_as_when_it_was_stored() {
    // What people approved is kept under these: another hash here means that everybody is asked again.
    assert_eq!(
        print(READ).to_string(),
        "cba6327b0ab625c446bf6b2d411ea12d1ebc2d2cde8401e33700b6ab4278aa89"
    );
    assert_eq!(
        print_of_text("Use it with care.").to_string(),
        "199d51e9db534a78e47ba4abdf728f97bbe067b0888144857226fe07ceb4eb27"
    );
}

#[test]
fn a_print_is_read_back_from_its_own_text_only() {
    let one = print(READ);
    let text = one.to_string();
    assert_eq!(text.parse(), Ok(one));
    assert_eq!(Fingerprint::from_bytes(*one.as_bytes()), one);
    assert_eq!(serde_json::to_value(one).unwrap(), json!(text));
    assert_eq!(serde_json::from_value::<Fingerprint>(json!(text)).unwrap(), one);
    for bad in [
        "",
        &text[1..],
        &format!("{text}0"),
        &text.to_uppercase(),
        &text.replace(&text[..1], "g"),
    ] {
        assert_eq!(bad.parse::<Fingerprint>(), Err(NoFingerprint), "{bad}");
    }
}

#[test]
fn a_tool_with_a_number_that_is_not_exact_has_no_print_and_says_where_it_is() {
    for number in [
        "9007199254740993",
        "-9007199254740992",
        "0.12345678901234567890",
        "1e+999",
    ] {
        let raw = tool(&format!(
            r#"{{"name":"x","inputSchema":{{"properties":{{"n":{{"enum":[1,{number}]}}}}}}}}"#
        ));
        let fault = Fingerprint::of(&raw).unwrap_err();
        let place = "inputSchema.properties.n.enum.1".to_owned();
        assert!(fault.sentence().contains(number) && fault.sentence().contains(&place));
        assert_eq!(
            fault,
            Unprintable::Number {
                number: number.to_owned(),
                place
            }
        );
        assert_eq!(difference(&raw, &raw), Difference::Nothing);
    }
    let exact = tool(r#"{"name":"x","_meta":{"n":9007199254740993},"inputSchema":{"maximum":9007199254740991}}"#);
    assert!(Fingerprint::of(&exact).is_ok(), "what is left out holds nothing up");
}

#[test]
fn an_unknown_formula_prints_nothing() {
    assert_eq!(fingerprint_with(FORMULA, &tool(READ)), Ok(print(READ)));
    assert_eq!(fingerprint_with(0, &tool(READ)), Err(Unprintable::Formula(0)));
}

#[test]
fn only_the_tools_own_words_count_as_wording() {
    let set = |pointer: &str, name: &str, value: Value| {
        let mut raw = tool(READ);
        raw["annotations"] = json!({});
        raw.pointer_mut(pointer).unwrap()[name] = value;
        raw
    };
    for (pointer, name, value, expected) in [
        ("", "description", json!("Reads one file."), Difference::Wording),
        ("", "title", json!("Read a file"), Difference::Wording),
        ("/annotations", "title", json!("Read a file"), Difference::Wording),
        ("/annotations", "readOnlyHint", json!(true), Difference::Nothing),
        ("", "description", json!({"en": "Reads"}), Difference::Structure),
        ("", "name", json!("write"), Difference::Structure),
        ("", "execution", json!({}), Difference::Structure),
        ("", "outputSchema", json!({}), Difference::Structure),
        ("/inputSchema", "description", json!("new"), Difference::Structure),
        (
            "/inputSchema/properties/path",
            "description",
            json!("new"),
            Difference::Structure,
        ),
        (
            "/inputSchema/properties/path",
            "title",
            json!("new"),
            Difference::Structure,
        ),
    ] {
        assert_eq!(
            difference(&tool(READ), &set(pointer, name, value.clone())),
            expected,
            "{pointer} {name}"
        );
        assert_eq!(
            difference(&set(pointer, name, value), &tool(READ)),
            expected,
            "back: {pointer} {name}"
        );
    }
    let mut both = set("", "description", json!("new"));
    both["inputSchema"]["required"] = json!(["path"]);
    assert_eq!(difference(&tool(READ), &both), Difference::Structure);
    let mut without = tool(READ);
    without.as_object_mut().unwrap().remove("description");
    assert_eq!(difference(&tool(READ), &without), Difference::Wording);
}

#[test]
fn hints_loosen_where_they_claim_less_danger() {
    let hints = |read_only, destructive, open_world| ToolHints {
        read_only,
        destructive,
        open_world,
        idempotent: None,
    };
    let none = ToolHints::default();
    for (before, after, expected) in [
        (none, hints(Some(true), None, None), true),
        (hints(Some(false), None, None), hints(Some(true), None, None), true),
        (none, hints(None, Some(false), None), true),
        (hints(None, Some(true), None), hints(None, Some(false), None), true),
        (none, hints(None, None, Some(false)), true),
        (hints(None, None, Some(true)), hints(None, None, Some(false)), true),
        // Nothing new is claimed.
        (none, none, false),
        (none, hints(Some(false), Some(true), Some(true)), false),
        (hints(Some(true), None, None), none, false),
        (
            hints(Some(true), None, None),
            hints(Some(true), Some(false), None),
            false,
        ),
        (
            hints(Some(true), None, None),
            hints(Some(false), Some(false), None),
            false,
        ),
        (hints(None, Some(false), Some(false)), none, false),
        (
            none,
            ToolHints {
                idempotent: Some(true),
                ..none
            },
            false,
        ),
        // One that tightens does not pay for one that loosens.
        (hints(Some(true), None, None), hints(None, None, Some(false)), true),
    ] {
        assert_eq!(loosened(&before, &after), expected, "{before:?} -> {after:?}");
    }
}
