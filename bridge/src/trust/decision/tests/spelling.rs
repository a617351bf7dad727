use super::*;

#[test]
fn a_no_to_a_resource_holds_for_every_spelling_of_its_address_and_a_yes_for_the_plain_one() {
    let about = |rule: Rule| Rule {
        kind: Kind::Resources,
        bound: Vec::new(),
        ..rule
    };
    let view = view([about(allow(1, "file:///*")), about(deny(2, "file:///secret/*"))]);
    for (address, expected) in [
        ("file:///notes/today.md", allowed(1)),
        ("file:///secret/a", denied(2)),
        ("file:///x/../secret/a", denied(2)),
        ("FILE:///secret/a", denied(2)),
        ("file:///%73ecret/a", denied(2)),
        ("file://localhost/secret/a", denied(2)),
        ("file:///secret\\a", denied(2)),
        // Nobody can say where this leads.
        ("file:///notes/\u{1}", denied(2)),
        ("file:///notes/../notes/a", Decision::Ask(Why::OtherArguments(id(1)))),
    ] {
        let found = decide_on(&view, Who::WalkIn(None), Subject::Resource(address), json!({}));
        assert_eq!(found, expected, "{address}");
        let completed = decide_on(&view, Who::WalkIn(None), Subject::CompleteResource(address), json!({}));
        assert_eq!(completed == denied(2), expected == denied(2), "{address}");
    }
}

#[test]
fn where_nothing_is_denied_of_resources_no_address_is_refused() {
    let view = view([deny(1, "*")]);
    let unclear = Subject::Resource("file:///notes/\u{1}");
    assert_eq!(decide_on(&view, Who::WalkIn(None), unclear, json!({})), NO_RULE);
}
