use serde_json::json;

use super::*;
use crate::config::AutoApprove;

mod of_file;

fn server() -> ConnectorId {
    ConnectorId::parse("files").unwrap()
}

fn fingerprint(number: u8) -> Fingerprint {
    Fingerprint::from_bytes([number; 32])
}

fn id(number: u8) -> RuleId {
    RuleId::from_bytes([number; 16])
}

/// One tool of a list, with its own fingerprint and the arguments `path` and `mode`.
struct Known {
    name: ToolName,
    fingerprint: Fingerprint,
    schema: Map<String, Value>,
    read_only: Option<bool>,
    clean: bool,
}

fn known(name: &str, number: u8) -> Known {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}, "mode": {"type": "string"}}});
    Known {
        name: ToolName::new(name),
        fingerprint: fingerprint(number),
        schema: schema.as_object().unwrap().clone(),
        read_only: None,
        clean: true,
    }
}

fn candidates<'a>(known: &'a [Known]) -> Vec<Candidate<'a>> {
    let candidate = |tool: &'a Known| Candidate {
        name: &tool.name,
        fingerprint: tool.fingerprint,
        input_schema: &tool.schema,
        hints: ToolHints {
            read_only: tool.read_only,
            ..ToolHints::default()
        },
        clean: tool.clean,
    };
    known.iter().map(candidate).collect()
}

fn draft(pattern: &str) -> RuleDraft {
    RuleDraft::for_anyone(&server(), vec![pattern.to_owned()])
}

fn launch() -> LaunchIdentity {
    "01".repeat(32).parse().unwrap()
}

fn made() -> Made {
    Made {
        id: id(1),
        origin: Origin::Person,
        at: 100,
        launch: Some(launch()),
    }
}

fn each(conditions: &[(&str, Condition)]) -> Arguments {
    Arguments::Each {
        conditions: conditions
            .iter()
            .map(|(name, c)| ((*name).to_owned(), c.clone()))
            .collect(),
    }
}

fn make(draft: RuleDraft) -> Result<Rule, Unfit> {
    draft.make(made(), Place::Here, &candidates(&[known("read", 1), known("write", 2)]))
}

fn bound_names(rule: &Rule) -> Vec<&str> {
    rule.bound.iter().map(|bound| bound.tool.as_str()).collect()
}

#[test]
fn a_rule_is_the_same_after_it_was_kept() {
    let conditions: BTreeMap<_, _> = [
        ("any", r#"{"is":"any"}"#),
        (
            "equals",
            r#"{"is":"equals","value":{"n":9007199254740993.10,"l":[1e+2,null]}}"#,
        ),
        ("one_of", r#"{"is":"one_of","values":[1,1.0,"1"]}"#),
        ("url", r#"{"is":"url","origin":"https://example.com","path":["v1"]}"#),
        ("inside", r#"{"is":"inside","folder":"/home/me/notes"}"#),
    ]
    .map(|(name, text)| (name.to_owned(), serde_json::from_str(text).unwrap()))
    .into();
    let rule = Rule {
        caller: RuleCaller::Program {
            program: ProgramId {
                path: "/usr/bin/python3".into(),
                script: Some("/home/me/agent.py".into()),
            },
        },
        expires_at: Some(1_900_000_000_000),
        arguments: Arguments::Each { conditions },
        ..make(draft("read")).unwrap()
    };
    let text = serde_json::to_string(&rule).unwrap();
    assert!(text.contains("9007199254740993.10") && text.contains("1e+2"), "{text}");
    assert_eq!(serde_json::from_str::<Rule>(&text).unwrap(), rule);
    assert_eq!(
        serde_json::from_value::<Rule>(serde_json::to_value(&rule).unwrap()).unwrap(),
        rule
    );
    let client = Rule {
        caller: RuleCaller::Client {
            client: ClientId::from_bytes([0xab; 16]),
        },
        ..rule
    };
    let text = serde_json::to_string(&client).unwrap();
    assert_eq!(serde_json::from_str::<Rule>(&text).unwrap(), client);
}

#[test]
fn a_condition_that_is_none_of_ours_is_refused_where_it_is_read() {
    for text in [
        r#"{"is":"prefix","text":"ls"}"#,
        r#"{"is":"starts_with","value":"SELECT"}"#,
        r#"{"is":"regex","value":".*"}"#,
        r#"{"is":"url","origin":"https://example.com","path":[],"query":"x"}"#,
        r#"{"is":"inside"}"#,
        "{}",
    ] {
        assert!(serde_json::from_str::<Condition>(text).is_err(), "{text}");
    }
}

#[test]
fn an_id_has_one_spelling() {
    let text = "0123456789abcdef0123456789abcdef";
    assert_eq!(text.parse::<RuleId>().unwrap().to_string(), text);
    for text in [
        "",
        "0123456789ABCDEF0123456789ABCDEF",
        "0123456789abcdef",
        "+123456789abcdef0123456789abcdef",
    ] {
        assert!(text.parse::<RuleId>().is_err(), "{text}");
    }
}

#[test]
fn a_yes_is_bound_to_the_tools_it_matches_as_they_are_and_a_no_to_none() {
    let rule = make(draft("*")).unwrap();
    assert_eq!(bound_names(&rule), ["read", "write"]);
    assert!(rule.binds(&ToolName::new("read"), fingerprint(1)));
    assert!(!rule.binds(&ToolName::new("read"), fingerprint(2)));
    let no = make(RuleDraft {
        effect: Effect::Deny,
        ..draft("*")
    });
    assert_eq!(no.unwrap().bound, []);
}

#[test]
fn a_rule_goes_on_for_a_tool_that_was_approved_anew_only_if_it_was_made_for_the_old_one() {
    let rule = make(draft("*")).unwrap();
    let read = ToolName::new("read");
    let next = rule.rebound(&read, fingerprint(1), fingerprint(9)).unwrap();
    assert!(next.binds(&read, fingerprint(9)) && !next.binds(&read, fingerprint(1)));
    assert!(next.binds(&ToolName::new("write"), fingerprint(2)));
    assert_eq!(rule.rebound(&read, fingerprint(2), fingerprint(9)), None);
}

#[test]
fn a_rule_that_says_too_little_or_nothing_is_not_made() {
    let with = |arguments| RuleDraft {
        arguments,
        ..draft("read")
    };
    let url = |origin: &str, path: &[&str]| {
        with(each(&[
            ("mode", Condition::Any),
            (
                "path",
                Condition::Url {
                    origin: origin.into(),
                    path: path.iter().map(|segment| (*segment).to_owned()).collect(),
                },
            ),
        ]))
    };
    let inside = |folder: &str| {
        with(each(&[
            ("mode", Condition::Any),
            ("path", Condition::Inside { folder: folder.into() }),
        ]))
    };
    let by = |path: &str, script: Option<&str>| RuleDraft {
        caller: RuleCaller::Program {
            program: ProgramId {
                path: path.into(),
                script: script.map(str::to_owned),
            },
        },
        ..draft("read")
    };
    for (draft, expected) in [
        (draft("nothing"), Unfit::NoTool("nothing".into())),
        (draft(""), Unfit::NoPattern),
        (
            RuleDraft {
                patterns: vec![],
                ..draft("x")
            },
            Unfit::NoPattern,
        ),
        (draft(&"x".repeat(5_000)), Unfit::TooLong),
        (
            with(each(&[("path", Condition::Any)])),
            Unfit::Unsaid {
                tool: ToolName::new("read"),
                argument: "mode".into(),
            },
        ),
        (
            with(each(&[
                ("path", Condition::Any),
                ("mode", Condition::Any),
                ("pth", Condition::Any),
            ])),
            Unfit::NoArgument("pth".into()),
        ),
        (
            with(each(&[
                ("mode", Condition::Any),
                ("path", Condition::OneOf { values: vec![] }),
            ])),
            Unfit::NoValue("path".into()),
        ),
        (
            url("https://example.com/a", &[]),
            Unfit::NoOrigin("https://example.com/a".into()),
        ),
        (
            url("https://me@example.com", &[]),
            Unfit::NoOrigin("https://me@example.com".into()),
        ),
        (url("https://example.com", &["a", ".."]), Unfit::NoSegment("..".into())),
        (url("https://example.com", &["a/b"]), Unfit::NoSegment("a/b".into())),
        (url("https://example.com", &[""]), Unfit::NoSegment(String::new())),
        (inside("notes"), Unfit::NoFolder("notes".into())),
        (inside("/home/me/../you"), Unfit::NoFolder("/home/me/../you".into())),
        (inside("~/notes"), Unfit::NoFolder("~/notes".into())),
        (by("python3", None), Unfit::NoProgram("python3".into())),
        (
            by("/usr/bin/python3", Some("agent.py")),
            Unfit::NoProgram("agent.py".into()),
        ),
        (
            RuleDraft {
                expires_at: Some(100),
                ..draft("read")
            },
            Unfit::Over,
        ),
        (
            RuleDraft {
                kind: Kind::Resources,
                arguments: each(&[]),
                ..draft("file:///*")
            },
            Unfit::NoArguments,
        ),
        (
            RuleDraft {
                kind: Kind::Resources,
                ..draft("db://h/get?id=1")
            },
            Unfit::AnySign("db://h/get?id=1".into()),
        ),
    ] {
        let shown = format!("{draft:?}");
        assert_eq!(make(draft), Err(expected), "{shown}");
    }
    let folder = inside("/home/me/notes");
    assert!(make(folder.clone()).is_ok());
    let tools = [known("read", 1)];
    assert_eq!(
        folder.clone().make(made(), Place::Elsewhere, &candidates(&tools)),
        Err(Unfit::NotHere)
    );
    let no = RuleDraft {
        effect: Effect::Deny,
        ..folder.clone()
    };
    assert!(no.make(made(), Place::Away, &candidates(&tools)).is_ok());
    assert_eq!(
        folder.make(made(), Place::Away, &candidates(&tools)),
        Err(Unfit::NotOurs)
    );
    assert!(make(url("https://example.com:8443", &["v1", "a b"])).is_ok());
}

#[test]
fn of_several_tools_each_argument_of_each_is_said() {
    let mut other = known("other", 3);
    other.schema = json!({"properties": {"extra": {}}}).as_object().unwrap().clone();
    let tools = [known("read", 1), other];
    let make = |names: &[&str]| {
        let conditions: Vec<_> = names.iter().map(|name| (*name, Condition::Any)).collect();
        RuleDraft {
            arguments: each(&conditions),
            ..draft("*")
        }
        .make(made(), Place::Here, &candidates(&tools))
    };
    assert!(make(&["path", "mode", "extra"]).is_ok());
    assert!(matches!(make(&["path", "mode"]), Err(Unfit::Unsaid { argument, .. }) if argument == "extra"));
}

#[test]
fn the_file_proposes_the_clean_tools_of_now_and_nothing_twice() {
    let mut odd = known("search_odd", 9);
    odd.clean = false;
    let tools = [known("search_a", 1), known("read", 2), odd];
    let tools = candidates(&tools);
    let wish = AutoApprove::Patterns(vec!["search*".into(), "read".into(), "gone".into(), "read".into()]);
    let found = proposals(&server(), &wish, &tools, &[], &[]);
    let shown: Vec<_> = found
        .iter()
        .map(|p| (p.value.patterns()[0].as_str().to_owned(), p.tools.len()))
        .collect();
    assert_eq!(shown, [("read".to_owned(), 1), ("search*".to_owned(), 1)]);

    let accepted = found[0].accepted(launch(), id(3), 5);
    assert_eq!(bound_names(&accepted), ["read"]);
    assert_eq!((accepted.origin, accepted.lasts), (Origin::File, Lasts::Kept));
    let rest = proposals(&server(), &wish, &tools, std::slice::from_ref(&accepted), &[]);
    assert_eq!(rest.len(), 1);

    assert_eq!(proposals(&server(), &AutoApprove::None, &tools, &[], &[]), []);
    let all = proposals(&server(), &AutoApprove::All, &tools, &[], &[]);
    assert_eq!(all[0].tools.len(), 2);
}

#[test]
fn a_proposal_comes_again_for_a_tool_that_became_another_one() {
    let wish = AutoApprove::All;
    let before = [known("read", 1)];
    let rule = proposals(&server(), &wish, &candidates(&before), &[], &[])[0].accepted(launch(), id(3), 5);
    let after = [known("read", 2)];
    let again = proposals(&server(), &wish, &candidates(&after), &[rule], &[]);
    assert_eq!(again[0].tools, [candidates(&after)[0].bound()]);
}

#[test]
fn a_narrower_rule_of_the_person_does_not_answer_the_file() {
    let tools = [known("read", 1)];
    let tools = candidates(&tools);
    let rule = make(draft("read")).unwrap();
    for narrower in [
        Rule {
            effect: Effect::Deny,
            ..rule.clone()
        },
        Rule {
            lasts: Lasts::ThisRun,
            ..rule.clone()
        },
        Rule {
            expires_at: Some(u64::MAX),
            ..rule.clone()
        },
        Rule {
            arguments: each(&[]),
            ..rule.clone()
        },
        Rule {
            caller: RuleCaller::Client {
                client: ClientId::from_bytes([1; 16]),
            },
            ..rule.clone()
        },
        Rule {
            server: ConnectorId::parse("other").unwrap(),
            ..rule.clone()
        },
    ] {
        assert_eq!(
            proposals(&server(), &AutoApprove::All, &tools, &[narrower], &[]).len(),
            1
        );
    }
    assert_eq!(proposals(&server(), &AutoApprove::All, &tools, &[rule], &[]), []);
}

#[test]
fn a_declined_value_stays_declined_until_the_file_says_another() {
    let tools = [known("read", 1), known("write", 2)];
    let tools = candidates(&tools);
    let no = |value| Declined {
        server: server(),
        value,
    };
    let of = |pattern: &str| FileValue::Pattern {
        pattern: pattern.into(),
    };
    let reads = AutoApprove::Patterns(vec!["read".into()]);
    let declined = [no(of("read")), no(FileValue::All)];
    assert_eq!(proposals(&server(), &reads, &tools, &[], &declined), []);
    assert_eq!(proposals(&server(), &AutoApprove::All, &tools, &[], &declined), []);
    let other = AutoApprove::Patterns(vec!["write".into()]);
    assert_eq!(proposals(&server(), &other, &tools, &[], &declined).len(), 1);
    // A pattern `*` is not `true`.
    let star = AutoApprove::Patterns(vec!["*".into()]);
    assert_eq!(proposals(&server(), &star, &tools, &[], &declined).len(), 1);

    assert_eq!(still_declined(&server(), &reads, &declined), [no(of("read"))]);
    assert_eq!(still_declined(&server(), &other, &declined), []);
    let elsewhere = ConnectorId::parse("other").unwrap();
    assert_eq!(still_declined(&elsewhere, &AutoApprove::None, &declined), declined);
}

#[test]
fn looking_up_is_what_says_so_and_is_clean_and_allows_nothing_by_itself() {
    let with = |name: &str, read_only, clean| Known {
        read_only,
        clean,
        ..known(name, 1)
    };
    let tools = [
        with("get", Some(true), true),
        with("get_odd", Some(true), false),
        with("set", Some(false), true),
        with("who_knows", None, true),
    ];
    let tools = candidates(&tools);
    let names =
        |rule: Option<Rule>| rule.map_or_else(Vec::new, |rule| rule.bound.into_iter().map(|b| b.tool).collect());
    let choose = |choice| names(choice_rule(&server(), &choice, &tools, launch(), id(1), 7));
    assert_eq!(lookups(&tools), [ToolName::new("get")]);
    assert_eq!(choose(Choice::LookUp), [ToolName::new("get")]);
    assert_eq!(choose(Choice::Nothing), []);
    let these = Choice::These {
        tools: vec![ToolName::new("set"), ToolName::new("never_shown")],
    };
    assert_eq!(choose(these), [ToolName::new("set")]);
}

#[test]
fn a_chosen_tool_with_a_star_in_its_name_is_that_tool_alone() {
    let tools = [known("*", 1), known("write", 2)];
    let these = Choice::These {
        tools: vec![ToolName::new("*")],
    };
    let rule = choice_rule(&server(), &these, &candidates(&tools), launch(), id(1), 7).unwrap();
    assert_eq!(bound_names(&rule), ["*"]);
    assert_eq!(rule.origin, Origin::Choice);
}

#[test]
fn the_reading_tools_of_the_files_server_are_those_that_look_things_up() {
    let items: Vec<Value> = serde_json::from_str(crate::builtin::files_tools()).unwrap();
    let tools: Vec<_> = items
        .iter()
        .map(|item| Known {
            read_only: item["annotations"]["readOnlyHint"].as_bool(),
            ..known(item["name"].as_str().unwrap(), 1)
        })
        .collect();
    let found = lookups(&candidates(&tools));
    let found: Vec<_> = found.iter().map(ToolName::as_str).collect();
    assert!(
        found.contains(&"read_text_file") && found.contains(&"search_files"),
        "{found:?}"
    );
    for writing in ["write_file", "edit_file", "create_directory", "move_file"] {
        assert!(!found.contains(&writing), "{writing}");
    }
}

#[test]
fn a_rule_can_be_said_in_a_sentence() {
    let rule = make(draft("read")).unwrap();
    let of_client = RuleCaller::Client {
        client: ClientId::from_bytes([1; 16]),
    };
    let of_script = RuleCaller::Program {
        program: ProgramId {
            path: "/usr/bin/python3".into(),
            script: Some("/home/me/agent.py".into()),
        },
    };
    let many = ["a", "b", "c", "d"].map(|tool| Bound {
        tool: ToolName::new(tool),
        fingerprint: fingerprint(1),
    });
    let inside = each(&[
        ("force", Condition::Absent),
        ("mode", Condition::Any),
        (
            "path",
            Condition::Inside {
                folder: "/notes".into(),
            },
        ),
    ]);
    let url = each(&[(
        "url",
        Condition::Url {
            origin: "https://a.example".into(),
            path: vec!["v1".into()],
        },
    )]);
    for (rule, expected) in [
        (
            Rule {
                caller: of_client,
                ..rule.clone()
            },
            "Claude Code may use read of “Files”, whatever the arguments.",
        ),
        (
            Rule {
                caller: of_script,
                bound: many.into(),
                ..rule.clone()
            },
            "agent.py may use 4 tools of “Files”, whatever the arguments.",
        ),
        (
            Rule {
                arguments: inside,
                ..rule.clone()
            },
            "Any program on this computer may use read of “Files”, if “force” is left out and “path” is in the folder /notes.",
        ),
        (
            Rule {
                arguments: each(&[("path", Condition::Any)]),
                ..rule.clone()
            },
            "Any program on this computer may use read of “Files”, with any value of the arguments that it declares.",
        ),
        (
            Rule {
                effect: Effect::Deny,
                bound: vec![],
                patterns: vec!["*".into()],
                ..rule.clone()
            },
            "Any program on this computer may never use any tool of “Files”.",
        ),
        (
            Rule {
                effect: Effect::Deny,
                bound: vec![],
                arguments: url,
                ..rule.clone()
            },
            "Any program on this computer may never use read of “Files”, if “url” is an address below https://a.example/v1, or that cannot be told for certain.",
        ),
        (
            Rule {
                kind: Kind::Resources,
                bound: vec![],
                patterns: vec!["file:///*".into()],
                ..rule.clone()
            },
            "Any program on this computer may read file:///* of “Files”.",
        ),
    ] {
        assert_eq!(rule.sentence("Files", Some("Claude Code")), expected);
    }
}
