use super::*;

#[test]
fn a_yes_holds_for_the_launch_it_was_made_for_and_a_no_for_all() {
    let resources = Rule {
        kind: Kind::Resources,
        bound: Vec::new(),
        ..allow(1, "notes:*")
    };
    let old = Rule {
        launch: None,
        ..allow(4, "search_a")
    };
    let mut parts = parts([resources, allow(2, "read_file"), deny(3, "write_file"), old]);
    let look = |parts: &ViewParts, subject| decide_on(&View::new(parts.clone()), Who::WalkIn(None), subject, json!({}));
    let [read, write, search] = ["read_file", "write_file", "search_a"].map(ToolName::new);
    let [reads, writes, searches] = [&read, &write, &search].map(Subject::Tool);
    let here = [Subject::Resource("notes:a"), reads, writes, searches].map(|subject| look(&parts, subject));
    assert_eq!(
        here,
        [
            allowed(1),
            allowed(2),
            denied(3),
            Decision::Ask(Why::OtherLaunch(id(4)))
        ]
    );
    for elsewhere in [Some(launch(2)), None] {
        parts.connectors[0].launch = elsewhere;
        let there = [Subject::Resource("notes:a"), reads, writes].map(|subject| look(&parts, subject));
        let asleep = |number| Decision::Ask(Why::OtherLaunch(id(number)));
        assert_eq!(there, [asleep(1), asleep(2), denied(3)], "{elsewhere:?}");
    }
}

#[test]
fn rules_of_one_connector_mean_nothing_to_another() {
    let other = ConnectorId::parse("other").unwrap();
    let mut parts = parts([allow(1, "read_file"), deny(2, "write_file")]);
    parts.connectors.push(ConnectorFacts {
        id: other.clone(),
        ..parts.connectors[0].clone()
    });
    let view = View::new(parts);
    for tool in ["read_file", "write_file"] {
        let name = ToolName::new(tool);
        let call = Call {
            who: Who::WalkIn(None),
            server: &other,
            subject: Subject::Tool(&name),
            arguments: &Map::new(),
            resolve: &nowhere,
        };
        assert_eq!(decision(&call, &view, NOW), NO_RULE, "{tool}");
    }
}
