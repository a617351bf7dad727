//! What a decision costs by itself, with many rules and tools.

use std::{path::PathBuf, sync::Arc, time::Instant};

use neuron_bridge::{
    ids::{ConnectorId, ToolName},
    snapshot::WalkInPolicy,
    trust::{
        LaunchIdentity,
        decision::{
            Askers, Call, ConnectorFacts, ConnectorStanding, Subject, ToolFacts, ToolStanding, View, ViewParts,
            decision,
        },
        fingerprint::Fingerprint,
        rules::{
            Arguments, Bound, ClientId, Condition, Effect, Kind, Lasts, Origin, ProgramId, Rule, RuleCaller, RuleId,
            Who,
        },
    },
};
use serde_json::{Map, Value, json};

use crate::report::{Budget, Line};

const RULES: usize = 1_000;
pub(crate) const TOOLS: usize = 5_000;
const DECISIONS: usize = 100_000;
const BUDGET: Budget = Budget::AtMost(20.0);

pub(crate) fn measure() -> Vec<Line> {
    let line = |what, measured| Line {
        what,
        measured,
        unit: "µs",
        budget: BUDGET,
    };
    vec![
        line(
            "decision, 1,000 rules over 50 connectors of 100 tools, p99",
            p99(&mixed(50), 50),
        ),
        line(
            "decision, 1,000 rules of one connector of 5,000 tools, p99",
            p99(&mixed(1), 1),
        ),
        line(
            "decision, 1,000 conditional rules that deny, all about each tool, p99",
            about_all(Effect::Deny),
        ),
        line(
            "decision, 1,000 conditional rules that allow, all about each tool, p99",
            about_all(Effect::Allow),
        ),
    ]
}

/// Rules of all sorts, in turn, each about a few of its connector's tools.
pub(crate) fn mixed(connectors: usize) -> View {
    let tools = TOOLS / connectors;
    let rules = (0..RULES).map(|number| {
        let pattern = match number % 4 {
            0 => tool(number * 7 % tools).as_str().to_owned(),
            1 => format!("group{}_*", number % 40),
            2 => format!("*_{}", number * 11 % tools),
            _ => format!("group{}_?*{}", number % 40, number % 10),
        };
        let effect = if number % 5 == 0 { Effect::Deny } else { Effect::Allow };
        rule(number, &server(number % connectors), effect, pattern, tools)
    });
    view(connectors, rules.collect())
}

/// No two with the same condition, none met by the call.
fn about_all(effect: Effect) -> f64 {
    let rules = (0..RULES).map(|number| Rule {
        arguments: Arguments::Each {
            conditions: [(
                "path".to_owned(),
                Condition::Equals {
                    value: json!(format!("/secret/{number}")),
                },
            )]
            .into(),
        },
        caller: RuleCaller::Anyone,
        ..rule(number, &server(0), effect, "*".to_owned(), TOOLS)
    });
    p99(&view(1, rules.collect()), 1)
}

fn rule(number: usize, server: &ConnectorId, effect: Effect, pattern: String, tools: usize) -> Rule {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_be_bytes());
    let caller = match number % 3 {
        0 => RuleCaller::Anyone,
        1 => RuleCaller::Program {
            program: program(number),
        },
        _ => RuleCaller::Client {
            client: ClientId::from_bytes(id),
        },
    };
    let conditions = [
        (
            "path".to_owned(),
            Condition::Equals {
                value: json!(format!("/notes/{number}")),
            },
        ),
        ("mode".to_owned(), Condition::Any),
    ];
    let mut rule = Rule {
        id: RuleId::from_bytes(id),
        effect,
        server: server.clone(),
        kind: Kind::Tools,
        patterns: vec![pattern],
        arguments: if number.is_multiple_of(2) {
            Arguments::Any
        } else {
            Arguments::Each {
                conditions: conditions.into(),
            }
        },
        caller,
        expires_at: None,
        lasts: Lasts::Kept,
        bound: Vec::new(),
        launch: None,
        origin: Origin::Person,
        made_at: 0,
        note: String::new(),
    };
    if effect == Effect::Allow {
        rule.launch = Some(launch());
        rule.bound = (0..tools)
            .map(tool)
            .filter(|tool| rule.names(tool.as_str()))
            .map(|tool| Bound {
                tool,
                fingerprint: fingerprint(),
            })
            .collect();
    }
    rule
}

fn launch() -> LaunchIdentity {
    "01".repeat(32).parse().expect("64 digits are an identity")
}

fn view(connectors: usize, rules: Vec<Rule>) -> View {
    let schema = json!({"type": "object", "properties": {
        "path": {"type": "string"}, "mode": {"type": "string", "default": "all"}, "limit": {"type": "integer"},
    }});
    let schema: Arc<Map<String, Value>> = Arc::new(schema.as_object().cloned().unwrap_or_default());
    let facts = |number| ConnectorFacts {
        id: server(number),
        standing: ConnectorStanding::Ready,
        launch: Some(launch()),
        tools: (0..TOOLS / connectors)
            .map(|number| ToolFacts {
                name: tool(number),
                standing: ToolStanding::Approved(fingerprint()),
                input_schema: schema.clone(),
            })
            .collect(),
    };
    View::new(ViewParts {
        connectors: (0..connectors).map(facts).collect(),
        rules: rules.into_iter().map(Arc::new).collect(),
        walk_in: WalkInPolicy::Ask,
        askers: Askers::default(),
    })
}

/// Microseconds that 99 of 100 decisions stay within, of calls to one tool after the other.
fn p99(view: &View, connectors: usize) -> f64 {
    let caller = program(1);
    let arguments = arguments();
    let nowhere = |_: &str| None::<Vec<PathBuf>>;
    let servers: Vec<_> = (0..connectors).map(server).collect();
    let tools: Vec<_> = (0..TOOLS / connectors).map(tool).collect();
    let mut took: Vec<_> = (0..DECISIONS)
        .map(|number| {
            let call = Call {
                who: Who::WalkIn(Some(&caller)),
                server: &servers[number % connectors],
                subject: Subject::Tool(&tools[number * 31 % tools.len()]),
                arguments: &arguments,
                resolve: &nowhere,
            };
            let begin = Instant::now();
            std::hint::black_box(decision(std::hint::black_box(&call), view, 1));
            begin.elapsed().as_secs_f64() * 1_000_000.0
        })
        .collect();
    took.sort_by(f64::total_cmp);
    took[DECISIONS / 100 * 99]
}

pub(crate) fn arguments() -> Map<String, Value> {
    let given = [
        ("path", json!("/notes/1")),
        ("mode", json!("all")),
        ("limit", json!(10)),
    ];
    given
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect()
}

pub(crate) fn server(number: usize) -> ConnectorId {
    ConnectorId::parse(&format!("connector-{number}")).expect("a legal id")
}

pub(crate) fn tool(number: usize) -> ToolName {
    ToolName::new(format!("group{}_tool_{number}", number % 40))
}

pub(crate) fn program(number: usize) -> ProgramId {
    ProgramId {
        path: format!("/usr/bin/program-{}", number % 7),
        script: None,
    }
}

fn fingerprint() -> Fingerprint {
    Fingerprint::from_bytes([1; 32])
}
