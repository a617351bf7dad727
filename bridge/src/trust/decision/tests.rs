use std::{path::PathBuf, sync::Arc};

use serde_json::json;

use super::*;
use crate::{
    error::Code,
    trust::{
        LaunchIdentity,
        fingerprint::Fingerprint,
        rules::{Arguments, Bound, ClientId, Condition, Lasts, Origin, ProgramId, RuleCaller},
    },
};

const NOW: u64 = 1_000;
const APPROVED: [u8; 32] = [1; 32];
const CHANGED: [u8; 32] = [2; 32];

fn server() -> ConnectorId {
    ConnectorId::parse("files").unwrap()
}

fn fingerprint() -> Fingerprint {
    Fingerprint::from_bytes(APPROVED)
}

fn launch(number: u8) -> LaunchIdentity {
    format!("{number:02x}").repeat(32).parse().unwrap()
}

fn id(number: u8) -> RuleId {
    RuleId::from_bytes([number; 16])
}

fn program(path: &str, script: Option<&str>) -> ProgramId {
    ProgramId {
        path: path.to_owned(),
        script: script.map(str::to_owned),
    }
}

fn by_program(path: &str, script: Option<&str>) -> RuleCaller {
    RuleCaller::Program {
        program: program(path, script),
    }
}

fn arguments(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other} is no object"),
    }
}

/// Allows `tool` of `files` for anyone, whatever the arguments, until told otherwise.
fn allow(number: u8, tool: &str) -> Rule {
    Rule {
        id: id(number),
        effect: Effect::Allow,
        server: server(),
        kind: Kind::Tools,
        patterns: vec![tool.to_owned()],
        arguments: Arguments::Any,
        caller: RuleCaller::Anyone,
        expires_at: None,
        lasts: Lasts::Kept,
        bound: vec![Bound {
            tool: ToolName::new(tool),
            fingerprint: fingerprint(),
        }],
        launch: Some(launch(1)),
        origin: Origin::Person,
        made_at: 0,
        note: String::new(),
    }
}

fn deny(number: u8, pattern: &str) -> Rule {
    Rule {
        effect: Effect::Deny,
        bound: Vec::new(),
        launch: None,
        ..allow(number, pattern)
    }
}

fn only(name: &str, value: Value) -> Arguments {
    Arguments::Each {
        conditions: [(name.to_owned(), Condition::Equals { value })].into(),
    }
}

/// Of every tool.
fn schema() -> Map<String, Value> {
    arguments(json!({"type": "object", "properties": {
        "path": {"type": "string"}, "mode": {"type": "string", "default": "all"},
    }}))
}

/// `read_file`, `search_a`, `search_b` and `write_file`, approved; walk-ins are asked about.
fn parts(rules: impl IntoIterator<Item = Rule>) -> ViewParts {
    let tools = ["read_file", "search_a", "search_b", "write_file"];
    ViewParts {
        connectors: vec![ConnectorFacts {
            id: server(),
            standing: ConnectorStanding::Ready,
            launch: Some(launch(1)),
            tools: tools
                .map(|tool| ToolFacts {
                    name: ToolName::new(tool),
                    standing: ToolStanding::Approved(fingerprint()),
                    input_schema: Arc::new(schema()),
                })
                .into(),
        }],
        rules: rules.into_iter().map(Arc::new).collect(),
        walk_in: WalkInPolicy::Ask,
        askers: Askers::default(),
    }
}

fn view(rules: impl IntoIterator<Item = Rule>) -> View {
    View::new(parts(rules))
}

fn nowhere(_: &str) -> Option<Vec<PathBuf>> {
    None
}

fn decide(view: &View, who: Who<'_>, tool: &str, given: Value) -> Decision {
    let name = ToolName::new(tool);
    decide_on(view, who, Subject::Tool(&name), given)
}

fn decide_on(view: &View, who: Who<'_>, subject: Subject<'_>, given: Value) -> Decision {
    let call = Call {
        who,
        server: &server(),
        subject,
        arguments: &arguments(given),
        resolve: &nowhere,
    };
    decision(&call, view, NOW)
}

fn allowed(number: u8) -> Decision {
    Decision::Allow(By::Rule(id(number)))
}

fn denied(number: u8) -> Decision {
    Decision::Refuse(Refusal::Denied(id(number)))
}

const NO_RULE: Decision = Decision::Ask(Why::NoRule);

const REFUSING_CONNECTORS: [(ConnectorStanding, Refusal, Code); 5] = [
    (
        ConnectorStanding::NeedsReview,
        Refusal::ConnectorNeedsReview,
        Code::NeedsReview,
    ),
    (
        ConnectorStanding::TrustUnknown,
        Refusal::KeychainUnavailable,
        Code::KeychainUnavailable,
    ),
    (ConnectorStanding::Disabled, Refusal::ConnectorDisabled, Code::Disabled),
    (ConnectorStanding::Paused, Refusal::ConnectorPaused, Code::Disabled),
    (ConnectorStanding::Invalid, Refusal::Unavailable, Code::Unavailable),
];

const REFUSING_TOOLS: [(ToolStanding, Refusal, Code); 5] = [
    (ToolStanding::Pending, Refusal::ToolPending, Code::NeedsReview),
    (ToolStanding::Held, Refusal::ToolHeld, Code::NeedsReview),
    (ToolStanding::Changed, Refusal::ToolChanged, Code::ToolChanged),
    (ToolStanding::Missing, Refusal::UnknownTool, Code::UnknownTool),
    (ToolStanding::Disabled, Refusal::ToolDisabled, Code::Disabled),
];

/// Every set of the six things that can decide, in their order: the first that holds decides.
#[test]
fn the_first_of_connector_no_tool_yes_own_asking_and_policy_decides() {
    let caller = program("/usr/bin/tool", None);
    let client = ClientId::from_bytes([7; 16]);
    for who in [Who::WalkIn(Some(&caller)), Who::Client(client), Who::Owner] {
        for (connector, of_connector, _) in REFUSING_CONNECTORS {
            for (tool, of_tool, _) in REFUSING_TOOLS {
                for set in 0_u8..64 {
                    let [bad_connector, no, bad_tool, yes, asks, open] =
                        [0, 1, 2, 3, 4, 5].map(|bit| set >> bit & 1 == 1);
                    let mut parts = parts(
                        no.then(|| deny(1, "*"))
                            .into_iter()
                            .chain(yes.then(|| allow(2, "read_file"))),
                    );
                    if bad_connector {
                        parts.connectors[0].standing = connector;
                    }
                    if bad_tool {
                        parts.connectors[0].tools[0].standing = tool;
                    }
                    if asks {
                        parts.askers.programs.insert(caller.clone());
                        parts.askers.clients.insert(client);
                    }
                    if open {
                        parts.walk_in = WalkInPolicy::Allow;
                    }
                    let is_owner = who == Who::Owner;
                    let in_order = [
                        (bad_connector, Decision::Refuse(of_connector)),
                        (no && !is_owner, denied(1)),
                        (bad_tool, Decision::Refuse(of_tool)),
                        (is_owner, Decision::Allow(By::Owner)),
                        (yes, allowed(2)),
                        (asks, Decision::Allow(By::AsksItself)),
                        (open && matches!(who, Who::WalkIn(_)), Decision::Allow(By::WalkInPolicy)),
                        (true, NO_RULE),
                    ];
                    let expected = in_order.iter().find(|(holds, _)| *holds).map(|(_, decision)| *decision);
                    let found = decide(&View::new(parts), who, "read_file", json!({"path": "a"}));
                    assert_eq!(Some(found), expected, "{who:?} {connector:?} {tool:?} {set:06b}");
                }
            }
        }
    }
}

#[test]
fn each_refusal_has_its_code_and_names_what_it_is_about() {
    let connectors = REFUSING_CONNECTORS.map(|(_, refusal, code)| (refusal, code));
    let tools = REFUSING_TOOLS.map(|(_, refusal, code)| (refusal, code));
    let others = [
        (Refusal::UnknownServer, Code::UnknownServer),
        (Refusal::Denied(id(1)), Code::Denied),
    ];
    for (refusal, code) in connectors.into_iter().chain(tools).chain(others) {
        let error = refusal.error(&server(), "read_file");
        assert_eq!(error.code, code);
        assert!(error.message.contains("\"files\""), "{}", error.message);
        assert!(error.message.ends_with('.'), "{}", error.message);
    }
}

#[test]
fn what_the_view_does_not_know_is_refused_to_everybody() {
    let view = view([allow(1, "*")]);
    for who in [Who::Owner, Who::WalkIn(None)] {
        assert_eq!(
            decide(&view, who, "gone", json!({})),
            Decision::Refuse(Refusal::UnknownTool)
        );
    }
    let other = ConnectorId::parse("other").unwrap();
    let name = ToolName::new("read_file");
    let call = Call {
        who: Who::Owner,
        server: &other,
        subject: Subject::Tool(&name),
        arguments: &Map::new(),
        resolve: &nowhere,
    };
    assert_eq!(decision(&call, &view, NOW), Decision::Refuse(Refusal::UnknownServer));
}

#[test]
fn a_no_beats_every_yes_whichever_of_them_is_wider() {
    let every = Rule {
        bound: ["read_file", "search_a", "search_b", "write_file"]
            .map(|tool| Bound {
                tool: ToolName::new(tool),
                fingerprint: fingerprint(),
            })
            .into(),
        ..allow(1, "*")
    };
    for (pattern, read, search_a, search_b, write) in [
        ("*", false, false, false, false),
        ("search*", true, false, false, true),
        ("search_?", true, false, false, true),
        ("*_a", true, false, true, true),
        ("write_file", true, true, true, false),
        ("WRITE_FILE", true, true, true, true),
        ("write", true, true, true, true),
    ] {
        let view = view([every.clone(), deny(2, pattern)]);
        for (tool, may) in [
            ("read_file", read),
            ("search_a", search_a),
            ("search_b", search_b),
            ("write_file", write),
        ] {
            let expected = if may { allowed(1) } else { denied(2) };
            assert_eq!(
                decide(&view, Who::WalkIn(None), tool, json!({})),
                expected,
                "{pattern} {tool}"
            );
        }
    }
}

#[test]
fn a_yes_to_every_tool_covers_those_it_was_made_for_and_no_later_one() {
    let view = view([Rule {
        patterns: vec!["*".into()],
        ..allow(1, "read_file")
    }]);
    assert_eq!(decide(&view, Who::WalkIn(None), "read_file", json!({})), allowed(1));
    assert_eq!(decide(&view, Who::WalkIn(None), "write_file", json!({})), NO_RULE);
}

#[test]
fn a_yes_sleeps_while_its_tool_is_another_one_and_a_no_does_not() {
    let changed = |standing| {
        move |rule: Rule| {
            let mut parts = parts([rule]);
            parts.connectors[0].tools[0].standing = standing;
            decide(&View::new(parts), Who::WalkIn(None), "read_file", json!({}))
        }
    };
    let anew = changed(ToolStanding::Approved(Fingerprint::from_bytes(CHANGED)));
    assert_eq!(anew(allow(1, "read_file")), Decision::Ask(Why::OtherFingerprint(id(1))));
    assert_eq!(anew(deny(1, "read_file")), denied(1));
    let wording = changed(ToolStanding::Wording(fingerprint()));
    assert_eq!(wording(allow(1, "read_file")), allowed(1));
    let returned = changed(ToolStanding::Approved(fingerprint()));
    assert_eq!(returned(allow(1, "read_file")), allowed(1));
}

#[test]
fn a_rule_ends_in_the_millisecond_that_it_names() {
    for (end, allow_says, deny_says) in [
        (NOW - 1, Decision::Ask(Why::Expired(id(1))), NO_RULE),
        (NOW, Decision::Ask(Why::Expired(id(1))), NO_RULE),
        (NOW + 1, allowed(1), denied(1)),
    ] {
        let until = |rule| Rule {
            expires_at: Some(end),
            ..rule
        };
        for (rule, expected) in [(allow(1, "read_file"), allow_says), (deny(1, "read_file"), deny_says)] {
            let found = decide(&view([until(rule)]), Who::WalkIn(None), "read_file", json!({}));
            assert_eq!(found, expected, "{end}");
        }
    }
}

#[test]
fn a_rule_is_about_its_caller_alone() {
    let mine = ClientId::from_bytes([1; 16]);
    let other = ClientId::from_bytes([2; 16]);
    let python = program("/usr/bin/python3", None);
    let script = program("/usr/bin/python3", Some("/home/me/agent.py"));
    let other_script = program("/usr/bin/python3", Some("/home/me/other.py"));
    let same_name = program("/tmp/python3", None);
    let callers = [
        Who::Client(mine),
        Who::Client(other),
        Who::WalkIn(Some(&python)),
        Who::WalkIn(Some(&script)),
        Who::WalkIn(Some(&other_script)),
        Who::WalkIn(Some(&same_name)),
        Who::WalkIn(None),
    ];
    for (caller, fits) in [
        (RuleCaller::Anyone, [true; 7]),
        (
            RuleCaller::Client { client: mine },
            [true, false, false, false, false, false, false],
        ),
        (
            by_program("/usr/bin/python3", None),
            [false, false, true, false, false, false, false],
        ),
        (
            by_program("/usr/bin/python3", Some("/home/me/agent.py")),
            [false, false, false, true, false, false, false],
        ),
    ] {
        let view = view([Rule {
            caller: caller.clone(),
            ..allow(1, "read_file")
        }]);
        for (who, fits) in callers.into_iter().zip(fits) {
            let expected = if fits { allowed(1) } else { NO_RULE };
            assert_eq!(
                decide(&view, who, "read_file", json!({})),
                expected,
                "{caller:?} {who:?}"
            );
        }
    }
}

#[test]
fn a_program_that_cannot_be_found_out_gets_no_yes_where_a_program_is_forbidden() {
    let blocked = Rule {
        caller: by_program("/usr/bin/bad", None),
        ..deny(2, "read_file")
    };
    let mut parts = parts([allow(1, "read_file"), allow(3, "write_file"), blocked]);
    parts.walk_in = WalkInPolicy::Allow;
    let view = View::new(parts);
    let decide = |who, tool| decide(&view, who, tool, json!({}));
    let (bad, good) = (program("/usr/bin/bad", None), program("/usr/bin/good", None));
    assert_eq!(decide(Who::WalkIn(Some(&bad)), "read_file"), denied(2));
    assert_eq!(decide(Who::WalkIn(Some(&good)), "read_file"), allowed(1));
    assert_eq!(
        decide(Who::WalkIn(None), "read_file"),
        Decision::Ask(Why::UnknownProgram(id(2)))
    );
    assert_eq!(decide(Who::WalkIn(None), "write_file"), allowed(3));
}

#[test]
fn the_program_is_wanted_only_where_it_could_decide() {
    let needs = |parts: ViewParts, who: Who<'_>, tool: &str| {
        let name = ToolName::new(tool);
        let call = Call {
            who,
            server: &server(),
            subject: Subject::Tool(&name),
            arguments: &Map::new(),
            resolve: &nowhere,
        };
        needs_program(&call, &View::new(parts))
    };
    let named = |rule| Rule {
        caller: by_program("/usr/bin/tool", None),
        ..rule
    };
    let known = program("/usr/bin/tool", None);
    let client = Who::Client(ClientId::from_bytes([1; 16]));
    for rule in [named(allow(1, "read_file")), named(deny(1, "read_*"))] {
        let parts = || parts([rule.clone()]);
        assert!(needs(parts(), Who::WalkIn(None), "read_file"));
        assert!(!needs(parts(), Who::WalkIn(None), "write_file"));
        for who in [Who::Owner, client, Who::WalkIn(Some(&known))] {
            assert!(!needs(parts(), who, "read_file"));
        }
    }
    assert!(!needs(parts([allow(1, "read_file")]), Who::WalkIn(None), "read_file"));
    let mut asleep = parts([named(allow(1, "read_file"))]);
    asleep.connectors[0].tools[0].standing = ToolStanding::Approved(Fingerprint::from_bytes(CHANGED));
    assert!(!needs(asleep, Who::WalkIn(None), "read_file"));
    let mut asking = parts([]);
    asking.askers.programs.insert(known);
    assert!(needs(asking, Who::WalkIn(None), "write_file"));
}

#[test]
fn the_question_tells_the_rule_that_came_nearest() {
    let expired = Rule {
        expires_at: Some(1),
        ..allow(1, "read_file")
    };
    let asleep = Rule {
        bound: vec![Bound {
            tool: ToolName::new("read_file"),
            fingerprint: Fingerprint::from_bytes(CHANGED),
        }],
        ..allow(2, "read_file")
    };
    let narrow = Rule {
        arguments: only("path", json!("a")),
        ..allow(3, "read_file")
    };
    let ask = |rules: &[&Rule]| {
        let rules: Vec<_> = rules.iter().map(|rule| (*rule).clone()).collect();
        decide(&view(rules), Who::WalkIn(None), "read_file", json!({"path": "b"}))
    };
    assert_eq!(
        ask(&[&narrow, &asleep, &expired]),
        Decision::Ask(Why::OtherArguments(id(3)))
    );
    assert_eq!(ask(&[&expired, &asleep]), Decision::Ask(Why::OtherFingerprint(id(2))));
    assert_eq!(ask(&[&expired]), Decision::Ask(Why::Expired(id(1))));
}

#[test]
fn resources_and_prompts_are_decided_like_calls_and_apart_from_tools() {
    let resources = Rule {
        kind: Kind::Resources,
        bound: Vec::new(),
        ..allow(1, "file:///notes/*")
    };
    let no_resource = Rule {
        kind: Kind::Resources,
        ..deny(2, "*/secret*")
    };
    let prompt = Rule {
        kind: Kind::Prompts,
        bound: Vec::new(),
        arguments: only("style", json!("short")),
        ..allow(3, "summary")
    };
    let no_prompt = Rule {
        kind: Kind::Prompts,
        arguments: only("style", json!("long")),
        ..deny(4, "summary")
    };
    let view = view([resources, no_resource, prompt, no_prompt, deny(5, "*")]);
    let short = || json!({"style": "short"});
    for (subject, given, expected) in [
        (Subject::Resource("file:///notes/a"), json!({}), allowed(1)),
        (Subject::Resource("file:///notes/secret"), json!({}), denied(2)),
        (Subject::Resource("file:///else"), json!({}), NO_RULE),
        (Subject::CompleteResource("file:///notes/{name}"), json!({}), allowed(1)),
        (Subject::Prompt("summary"), short(), allowed(3)),
        (Subject::Prompt("summary"), json!({"style": "long"}), denied(4)),
        (Subject::Prompt("other"), short(), NO_RULE),
        // Half an argument could become the forbidden one.
        (Subject::CompletePrompt("summary"), short(), denied(4)),
        (Subject::CompletePrompt("other"), short(), NO_RULE),
    ] {
        assert_eq!(
            decide_on(&view, Who::WalkIn(None), subject, given),
            expected,
            "{subject:?}"
        );
    }
    let owner = decide_on(&view, Who::Owner, Subject::Resource("file:///notes/secret"), json!({}));
    assert_eq!(owner, Decision::Allow(By::Owner));
}

mod conditions;
mod launches;
mod spelling;
