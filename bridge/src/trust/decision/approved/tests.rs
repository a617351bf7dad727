use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use proptest::{prelude::*, sample::subsequence};
use serde_json::{Map, Value, json};

use super::*;
use crate::trust::{
    LaunchIdentity,
    decision::{
        Askers, By, Call, ConnectorFacts, ConnectorStanding, Decision, Subject, ToolFacts, ToolStanding, ViewParts,
        WalkInPolicy, decision,
    },
    fingerprint::Fingerprint,
    rules::{Arguments, Bound, ClientId, Condition, Effect, Kind, Lasts, Origin, ProgramId, RuleCaller},
};

const NOW: u64 = 10;

fn fingerprint(number: u8) -> Fingerprint {
    Fingerprint::from_bytes([number; 32])
}

fn launch(number: u8) -> LaunchIdentity {
    format!("{number:02x}").repeat(32).parse().unwrap()
}

fn client(number: u8) -> ClientId {
    ClientId::from_bytes([number; 16])
}

fn programs() -> [ProgramId; 3] {
    let program = |path: &str, script: Option<&str>| ProgramId {
        path: path.to_owned(),
        script: script.map(str::to_owned),
    };
    [
        program("/bin/a", None),
        program("/bin/python", None),
        program("/bin/python", Some("/x.py")),
    ]
}

const SERVERS: [&str; 2] = ["one", "two"];
const TOOLS: [&str; 4] = ["a", "ab", "b", "ba"];

fn any_server() -> impl Strategy<Value = ConnectorId> {
    prop::sample::select(&SERVERS[..]).prop_map(|id| ConnectorId::parse(id).unwrap())
}

fn any_condition() -> impl Strategy<Value = Condition> {
    prop_oneof![
        2 => Just(Condition::Any),
        1 => Just(Condition::Absent),
        1 => Just(Condition::Equals { value: json!(1) }),
        1 => Just(Condition::Equals { value: json!("1") }),
        1 => Just(Condition::OneOf { values: vec![json!(1), json!("1")] }),
    ]
}

fn any_arguments() -> impl Strategy<Value = Arguments> {
    let each = prop::collection::btree_map(prop::sample::select(&["x", "y"][..]), any_condition(), 0..3);
    prop_oneof![
        2 => Just(Arguments::Any),
        1 => each.prop_map(|named| Arguments::Each {
            conditions: named.into_iter().map(|(name, c)| (name.to_owned(), c)).collect::<BTreeMap<_, _>>(),
        }),
    ]
}

fn any_caller() -> impl Strategy<Value = RuleCaller> {
    let program = prop::sample::select(programs().to_vec()).prop_map(|program| RuleCaller::Program { program });
    let client = (0_u8..2).prop_map(|number| RuleCaller::Client { client: client(number) });
    prop_oneof![2 => Just(RuleCaller::Anyone), 1 => program, 1 => client]
}

fn any_bound() -> impl Strategy<Value = Vec<Bound>> {
    let all: Vec<_> = TOOLS
        .iter()
        .flat_map(|tool| {
            [1, 1, 2].map(|number| Bound {
                tool: ToolName::new(*tool),
                fingerprint: fingerprint(number),
            })
        })
        .collect();
    subsequence(all, 0..=12)
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let effect = prop_oneof![3 => Just(Effect::Allow), 1 => Just(Effect::Deny)];
    let kind = prop_oneof![8 => Just(Kind::Tools), 1 => Just(Kind::Resources), 1 => Just(Kind::Prompts)];
    let patterns = subsequence(vec!["*", "a", "a*", "?b", "b", "*a", "z"], 1..=2);
    let end = prop_oneof![4 => Just(None), 1 => Just(Some(NOW)), 1 => Just(Some(NOW + 1))];
    let lasts = prop_oneof![Just(Lasts::Kept), Just(Lasts::ThisRun)];
    let launch = prop_oneof![6 => Just(Some(launch(1))), 1 => Just(Some(launch(2))), 1 => Just(None)];
    let rest = (any_caller(), end, lasts, any_bound(), launch, any::<[u8; 16]>());
    (effect, any_server(), kind, patterns, any_arguments(), rest).prop_map(
        |(effect, server, kind, patterns, arguments, (caller, expires_at, lasts, bound, launch, id))| Rule {
            id: RuleId::from_bytes(id),
            effect,
            server,
            kind,
            patterns: patterns.into_iter().map(str::to_owned).collect(),
            arguments,
            caller,
            expires_at,
            lasts,
            bound: if effect == Effect::Allow { bound } else { Vec::new() },
            launch,
            origin: Origin::Person,
            made_at: 0,
            note: String::new(),
        },
    )
}

/// One argument that is always known, one whose absence nobody can read.
fn schema() -> Map<String, Value> {
    let schema = json!({"properties": {"x": {"type": "string", "default": "1"}, "y": {}}});
    schema.as_object().cloned().unwrap_or_default()
}

fn any_connector(id: &'static str) -> impl Strategy<Value = ConnectorFacts> {
    let standing = prop_oneof![
        6 => Just(ConnectorStanding::Ready),
        1 => Just(ConnectorStanding::NeedsReview),
        1 => Just(ConnectorStanding::Paused),
    ];
    let tool = prop_oneof![
        5 => Just(ToolStanding::Approved(fingerprint(1))),
        2 => Just(ToolStanding::Approved(fingerprint(2))),
        1 => Just(ToolStanding::Wording(fingerprint(1))),
        1 => Just(ToolStanding::Changed),
        1 => Just(ToolStanding::Held),
    ];
    let launch = prop_oneof![6 => Just(Some(launch(1))), 1 => Just(Some(launch(2))), 1 => Just(None)];
    let parts = (standing, launch, prop::collection::vec(tool, TOOLS.len()));
    parts.prop_map(move |(standing, launch, tools)| ConnectorFacts {
        id: ConnectorId::parse(id).unwrap(),
        standing,
        launch,
        tools: TOOLS
            .iter()
            .zip(tools)
            .map(|(tool, standing)| ToolFacts {
                name: ToolName::new(*tool),
                standing,
                input_schema: Arc::new(schema()),
            })
            .collect(),
    })
}

/// Every way to give or leave out three arguments, one of which no rule names.
fn argument_sets() -> Vec<Map<String, Value>> {
    let values = || [None, Some(json!(1)), Some(json!("1")), Some(json!(2))];
    let mut sets = Vec::new();
    for x in values() {
        for y in values() {
            for z in [None, Some(json!(0))] {
                let given = [("x", x.clone()), ("y", y.clone()), ("z", z)];
                let given = given
                    .into_iter()
                    .filter_map(|(name, value)| Some((name.to_owned(), value?)));
                sets.push(given.collect());
            }
        }
    }
    sets
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn the_list_and_the_decision_never_disagree(
        one in any_connector("one"),
        two in any_connector("two"),
        rules in prop::collection::vec(any_rule(), 0..12),
    ) {
        let rules: Vec<_> = rules.into_iter().map(Arc::new).collect();
        let connectors = vec![one, two];
        let asking = View::new(ViewParts {
            connectors: connectors.clone(),
            rules: rules.clone(),
            walk_in: WalkInPolicy::Ask,
            askers: Askers::default(),
        });
        let programs = programs();
        let open = View::new(ViewParts {
            connectors: connectors.clone(),
            rules: rules.clone(),
            walk_in: WalkInPolicy::Allow,
            askers: Askers {
                clients: [client(0), client(1)].into(),
                programs: programs.clone().into(),
            },
        });
        let walk_ins = programs.iter().map(Some).chain([None]).map(Who::WalkIn);
        let clients = [0, 1, 2].map(|number| Who::Client(client(number)));
        for who in walk_ins.chain(clients).chain([Who::Owner]) {
            let listed = auto_approved(who, &asking, NOW);
            prop_assert_eq!(&listed, &auto_approved(who, &open, NOW), "another policy makes another list");
            for connector in &connectors {
                for ToolFacts { name, .. } in &connector.tools {
                    let decisions: Vec<_> = argument_sets().iter().map(|arguments| {
                        let call = Call {
                            who,
                            server: &connector.id,
                            subject: Subject::Tool(name),
                            arguments,
                            resolve: &|_| None::<Vec<PathBuf>>,
                        };
                        decision(&call, &asking, NOW)
                    }).collect();
                    let always = decisions.iter().all(|decision| matches!(decision, Decision::Allow(_)));
                    let is_listed = listed.tools.contains(&(connector.id.clone(), name.clone()));
                    prop_assert_eq!(is_listed, always, "{:?} {} {:?}", who, name, decisions);
                    // A rule that lets through some calls alone is told of.
                    for decision in &decisions {
                        if let (false, Decision::Allow(By::Rule(rule))) = (is_listed, decision) {
                            let conditional = rules.iter().any(|r| r.id == *rule && !r.arguments.are_any());
                            prop_assert!(!conditional || listed.rules.contains(rule));
                        }
                    }
                }
            }
        }
    }
}
