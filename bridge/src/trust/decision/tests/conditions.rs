//! Conditions on arguments, in rules that allow and in rules that deny.

use proptest::{prelude::*, sample::select};

use super::*;
use crate::trust::rules::Declared;

#[test]
fn conditions_narrow_a_yes_and_a_no_to_their_calls() {
    let view = view([
        Rule {
            arguments: only("path", json!("a.md")),
            ..allow(1, "read_file")
        },
        allow(2, "write_file"),
        Rule {
            arguments: only("path", json!("secret")),
            ..deny(3, "*")
        },
    ]);
    for (tool, given, expected) in [
        ("read_file", json!({"path": "a.md"}), allowed(1)),
        (
            "read_file",
            json!({"path": "b.md"}),
            Decision::Ask(Why::OtherArguments(id(1))),
        ),
        // What the tool takes then is not known.
        ("read_file", json!({}), denied(3)),
        ("write_file", json!({"path": "b.md", "Path": "secret"}), denied(3)),
        ("write_file", json!({"path": ["secret"]}), denied(3)),
        ("write_file", json!({"path": " Secret"}), denied(3)),
        (
            "read_file",
            json!({"path": "a.md", "follow": true}),
            Decision::Ask(Why::OtherArguments(id(1))),
        ),
        ("read_file", json!({"path": "secret"}), denied(3)),
        ("write_file", json!({"path": "b.md", "text": "x"}), allowed(2)),
        ("write_file", json!({"path": "secret", "text": "x"}), denied(3)),
        ("write_file", json!({"path": "secret", "hidden": 1}), denied(3)),
    ] {
        let found = decide(&view, Who::WalkIn(None), tool, given.clone());
        assert_eq!(found, expected, "{tool} {given}");
    }
}

#[test]
fn a_folder_counts_where_the_path_leads() {
    let view = view([Rule {
        arguments: Arguments::Each {
            conditions: [(
                "path".to_owned(),
                Condition::Inside {
                    folder: "/notes".into(),
                },
            )]
            .into(),
        },
        ..allow(1, "read_file")
    }]);
    let name = ToolName::new("read_file");
    let leads = |to: Option<&str>| {
        let resolve = move |_: &str| to.map(|to| vec![PathBuf::from(to)]);
        let call = Call {
            who: Who::WalkIn(None),
            server: &server(),
            subject: Subject::Tool(&name),
            arguments: &arguments(json!({"path": "x"})),
            resolve: &resolve,
        };
        decision(&call, &view, NOW)
    };
    assert_eq!(leads(Some("/notes/x")), allowed(1));
    assert_eq!(leads(Some("/secret")), Decision::Ask(Why::OtherArguments(id(1))));
    // Also of a connector that does not run here.
    assert_eq!(leads(None), Decision::Ask(Why::OtherArguments(id(1))));
}

fn any_value() -> impl Strategy<Value = Value> {
    let texts = ["a", "A ", "b", "1", "yes", "[\"a\"]", ""].map(Value::from);
    let others = [json!(1), json!(true), json!(null), json!(["a"]), json!({"a": 1})];
    select([&texts[..], &others].concat())
}

fn any_condition() -> impl Strategy<Value = Condition> {
    prop_oneof![
        1 => Just(Condition::Any),
        1 => Just(Condition::Absent),
        6 => any_value().prop_map(|value| Condition::Equals { value }),
        1 => any_value().prop_map(|value| Condition::OneOf { values: vec![value, json!("z")] }),
    ]
}

fn any_schema() -> impl Strategy<Value = Map<String, Value>> {
    let one = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({})),
        any_value().prop_map(|value| json!({"type": "string", "default": value})),
        any_value().prop_map(|value| json!({"default": value})),
    ];
    prop::collection::btree_map(select(vec!["x", "y"]), one, 0..3)
        .prop_map(|properties| arguments(json!({"properties": properties})))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_rule_that_denies_is_passed_over_however_it_is_looked_up(
        conditions in prop::collection::btree_map(select(vec!["x", "y"]), any_condition(), 1..3),
        given in prop::collection::btree_map(select(vec!["x", "y", "X"]), any_value(), 0..4),
        schema in any_schema(),
    ) {
        let named = conditions.into_iter().map(|(name, condition)| (name.to_owned(), condition));
        let rule = Rule {
            arguments: Arguments::Each { conditions: named.collect() },
            ..deny(1, "read_file")
        };
        let given: Map<_, _> = given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let meant = rule.arguments.may_mean(&given, Declared::Tool(Some(&schema)), &nowhere);
        let mut parts = parts([rule]);
        parts.connectors[0].tools[0].input_schema = Arc::new(schema);
        let found = decide(&View::new(parts), Who::WalkIn(None), "read_file", Value::Object(given));
        prop_assert_eq!(found == denied(1), meant);
    }
}
