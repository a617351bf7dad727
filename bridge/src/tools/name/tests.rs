use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn tool(server: &str, tool: &str) -> Claimant {
    Claimant {
        server: ConnectorId::parse(server).unwrap(),
        tool: ToolName::new(tool),
        claim: Claim::Approved,
    }
}

fn waiting(server: &str, name: &str) -> Claimant {
    Claimant {
        claim: Claim::Waiting,
        ..tool(server, name)
    }
}

fn exposed(routes: &Routes, server: &str, name: &str) -> String {
    let Claimant { server, tool, .. } = tool(server, name);
    routes.exposed(&server, &tool).unwrap().to_string()
}

/// What a name stands for: nothing, one tool, or several.
fn meant(routes: &Routes, name: &str) -> Vec<String> {
    match routes.resolve(name) {
        Resolved::One(route) => vec![route.tool().to_string()],
        Resolved::Several(routes) => routes.into_iter().map(|route| route.exposed.to_string()).collect(),
        Resolved::Nothing => Vec::new(),
    }
}

/// The right-hand sides are what `createMcpToolName` of npm's `@earendil-works/pi-mcp` 1.6.0 returns.
#[test]
fn names_without_a_collision_are_those_of_pi_mcp() {
    let long = "y".repeat(200);
    for (server, name, expected) in [
        ("files", "read_file", "mcp__files__read_file"),
        ("my.server", "x", "mcp__my_server__x"),
        ("a-b", "c/d.e", "mcp__a_b__c_d_e"),
        ("a", "_x", "mcp__a___x"),
        ("a", "größe", "mcp__a__gr__e"),
        ("a", "日本", "mcp__a____"),
        ("a", "🦀", "mcp__a____"),
        ("a", "x\u{200f}y", "mcp__a__x_y"),
        ("a", "", "mcp__a__"),
        ("srv", &"x".repeat(54), &format!("mcp__srv__{}", "x".repeat(54))),
        ("srv", &"x".repeat(55), SRV_X55),
        ("srv", &long, SRV_Y200),
        ("srv", &"🦀".repeat(40), SRV_CRAB40),
    ] {
        assert_eq!(
            exposed(&expose([tool(server, name)]), server, name),
            expected,
            "{server} {name}"
        );
    }
}

const SRV_X55: &str = "mcp__srv__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_89af8a8d";
const SRV_Y200: &str = "mcp__srv__yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy_63778a22";
const SRV_CRAB40: &str = "mcp__srv________________________________________________3037273f";

#[test]
fn every_party_of_a_collision_gets_its_suffix_and_keeps_its_way_back() {
    let routes = expose([tool("s", "a-b"), tool("s", "a_b"), tool("s", "other")]);
    let (dash, line) = (exposed(&routes, "s", "a-b"), exposed(&routes, "s", "a_b"));
    assert_eq!(dash, "mcp__s__a_b_ed3867d6");
    assert_eq!(line, "mcp__s__a_b_8d47d403");
    assert_eq!(exposed(&routes, "s", "other"), "mcp__s__other");
    assert_eq!(meant(&routes, &dash), ["a-b"]);
    assert_eq!(meant(&routes, &line), ["a_b"]);
    assert!(routes.unnamed().is_empty());
}

#[test]
fn ids_that_differ_only_in_punctuation_collide_too() {
    let routes = expose([tool("a-b", "x"), tool("a.b", "x"), tool("a__b", "c"), tool("a", "b__c")]);
    let names: BTreeSet<_> = routes.iter().map(|route| route.exposed.as_str()).collect();
    assert_eq!(names.len(), 4);
    assert!(
        names.iter().all(|name| name.len() > "mcp__a_b__x".len() + 8),
        "{names:?}"
    );
}

#[test]
fn a_tool_named_like_anothers_suffixed_name_takes_a_suffix_itself() {
    let long = "x".repeat(90);
    let suffixed = exposed(&expose([tool("s", &long)]), "s", &long);
    let twin = suffixed.strip_prefix("mcp__s__").unwrap();
    let routes = expose([tool("s", twin), tool("s", &long)]);
    assert_eq!(exposed(&routes, "s", &long), suffixed);
    assert_ne!(exposed(&routes, "s", twin), suffixed);
    assert_eq!(meant(&routes, &suffixed), [long]);
}

#[test]
fn a_tool_named_as_another_would_be_with_its_suffix_never_has_that_name() {
    let alone = expose([tool("my--mail", "send"), tool("my", "mail__send")]);
    let suffixed = exposed(&alone, "my--mail", "send");
    let twin = suffixed.strip_prefix("mcp__my__").unwrap();
    let routes = expose([tool("my--mail", "send"), tool("my", twin)]);
    assert_eq!(exposed(&routes, "my--mail", "send"), "mcp__my__mail__send");
    assert_ne!(exposed(&routes, "my", twin), suffixed);
    assert_eq!(
        meant(&routes, &suffixed),
        [twin],
        "its raw name, and nobody else's name yet"
    );
}

#[test]
fn tools_that_collide_even_with_a_suffix_are_rejected_together_with_a_reason() {
    let routes = expose([tool("s", "a"), tool("s", "a"), tool("s", "b")]);
    assert_eq!(routes.iter().count(), 1);
    assert_eq!(routes.unnamed().len(), 2);
    assert!(routes.unnamed()[0].reason.contains("same name"));
    assert_eq!(routes.resolve("mcp__s__a"), Resolved::Nothing);
}

#[test]
fn the_raw_name_is_understood_when_exactly_one_tool_spells_it() {
    let routes = expose([tool("my.server", "read file"), tool("a__b", "c"), tool("a", "b__c")]);
    assert_eq!(meant(&routes, "mcp__my.server__read file"), ["read file"]);
    assert_eq!(
        meant(&routes, "mcp__a__b__c"),
        [exposed(&routes, "a__b", "c"), exposed(&routes, "a", "b__c")]
    );
    assert_eq!(routes.resolve("mcp__nobody__c"), Resolved::Nothing);
    assert_eq!(routes.resolve(""), Resolved::Nothing);
}

#[test]
fn a_raw_name_that_was_or_would_be_anothers_exposed_name_is_neithers() {
    let name = "mcp__my__mail__send";
    let routes = expose([tool("my--mail", "send"), tool("my", "mail__send")]);
    let both = [
        exposed(&routes, "my--mail", "send"),
        exposed(&routes, "my", "mail__send"),
    ];
    assert_eq!(meant(&routes, name), both);
    assert_eq!(meant(&routes, "mcp__my--mail__send"), ["send"]);

    // One that is too long to be exposed as it is spelled; and two of one name, of which none can be called.
    let long = "x".repeat(80);
    let routes = expose([tool("my--mail", &long), tool("my", &format!("mail__{long}"))]);
    assert_eq!(meant(&routes, &format!("mcp__my__mail__{long}")).len(), 2);
    let routes = expose([tool("my--mail", "x"), tool("my--mail", "x"), tool("my", "mail__x")]);
    assert_eq!(routes.resolve("mcp__my__mail__x"), Resolved::Nothing);
}

#[test]
fn what_was_not_approved_takes_no_name_and_no_spelling_from_what_was() {
    let victim = tool("my--mail", "send");
    let name = "mcp__my__mail__send";
    let routes = expose([waiting("my", "mail__send"), victim.clone()]);
    assert_eq!(exposed(&routes, "my--mail", "send"), name);
    assert_eq!(meant(&routes, name), ["send"]);
    let later = expose([tool("my", "mail__send"), victim.clone()]);
    assert_eq!(
        exposed(&routes, "my", "mail__send"),
        exposed(&later, "my", "mail__send"),
        "it has the name already that it will have"
    );

    // Where the approved ones collide among themselves, and where it is spelled as an approved one's raw name.
    let routes = expose([victim, tool("my__mail", "send"), waiting("my", "mail__send")]);
    assert_eq!(
        meant(&routes, name),
        [
            exposed(&routes, "my--mail", "send"),
            exposed(&routes, "my__mail", "send")
        ]
    );
    let routes = expose([tool("a__b.c", "d"), waiting("a", "b.c__d")]);
    assert_eq!(meant(&routes, "mcp__a__b.c__d"), ["d"]);
    // And where its name with the suffix is the approved one's plain name.
    let suffixed = exposed(&expose([waiting("s", "a-b"), waiting("s", "a_b")]), "s", "a-b");
    let twin = suffixed.strip_prefix("mcp__s__").unwrap();
    let routes = expose([waiting("s", "a-b"), waiting("s", "a_b"), tool("s", twin)]);
    assert_eq!(exposed(&routes, "s", twin), suffixed);
    assert!(routes.unnamed()[0].is(&ConnectorId::parse("s").unwrap(), &ToolName::new("a-b")));
}

#[test]
fn a_wrong_name_is_answered_with_the_likely_one() {
    let routes = expose([
        tool("files", "read_file"),
        tool("files", "write_file"),
        tool("m", "add"),
        tool("m", "sub"),
    ]);
    let suggest = |wanted: &str| did_you_mean(wanted, routes.iter().map(|r| &r.exposed)).map(ExposedName::as_str);
    assert_eq!(suggest("mcp__files__raed_file"), Some("mcp__files__read_file"));
    assert_eq!(suggest("mcp__files__read-file"), Some("mcp__files__read_file"));
    assert_eq!(suggest("write_file"), Some("mcp__files__write_file"));
    assert_eq!(suggest("mcp__files__reed_file"), Some("mcp__files__read_file"));
    assert_eq!(suggest("mcp__m__mul"), None);
    assert_eq!(suggest("mcp__other__thing"), None);
    assert_eq!(suggest(""), None);
    assert_eq!(suggest(&"x".repeat(100_000)), None);
}

fn any_tool() -> impl Strategy<Value = Claimant> {
    let id = prop_oneof!["[ab][._-]{1,2}[ab]", "[ab](__[ab])?", "[a-z]{1,5}", "[a-z]{60,64}"];
    let name = prop_oneof!["[ab][-_./ ][ab]", "([ab]__)?[ab]", "\\PC{0,8}", "[a-z]{40,80}"];
    (id, name).prop_map(|(id, name)| tool(&id, &name))
}

/// Each tool once, some of them never approved.
fn any_tools() -> impl Strategy<Value = Vec<Claimant>> {
    let tools = proptest::collection::btree_set(any_tool(), 0..25);
    (tools, proptest::collection::vec(any::<bool>(), 25)).prop_map(|(tools, approved)| {
        let claims = approved.into_iter().map(|approved| match approved {
            true => Claim::Approved,
            false => Claim::Waiting,
        });
        let tools = tools.into_iter().zip(claims);
        tools.map(|(tool, claim)| Claimant { claim, ..tool }).collect()
    })
}

fn table(routes: &Routes) -> BTreeMap<Claimant, ExposedName> {
    let of = |route: &Route| (route.claimant.clone(), route.exposed.clone());
    routes.iter().map(of).collect()
}

proptest! {
    #[test]
    fn names_are_legal_distinct_and_free_of_order(tools in any_tools(), seed in any::<u64>()) {
        let mut shuffled = tools.clone();
        shuffled.sort_by_key(|tool| {
            let hash = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(tool.server.as_str());
            hash.chain_update(tool.tool.as_str()).finalize()
        });
        let routes = expose(tools.clone());
        prop_assert_eq!(table(&routes), table(&expose(shuffled)));
        prop_assert_eq!(routes.iter().count() + routes.unnamed().len(), tools.len());
        let mut seen = BTreeSet::new();
        for route in routes.iter() {
            let name = route.exposed.as_str();
            prop_assert!(name.len() <= MAX_NAME_LENGTH);
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
            prop_assert!(seen.insert(name.to_owned()));
            prop_assert_eq!(routes.resolve(name), Resolved::One(route));
        }
    }

    #[test]
    fn whatever_waits_beside_them_approved_tools_keep_their_names_and_spellings(tools in any_tools()) {
        let approved = tools.iter().filter(|tool| tool.claim == Claim::Approved).cloned();
        let (alone, beside) = (expose(approved), expose(tools.clone()));
        let mut names = table(&beside);
        names.retain(|tool, _| tool.claim == Claim::Approved);
        prop_assert_eq!(table(&alone), names);
        for tool in &tools {
            for name in [tool.plain(), format!("mcp__{}__{}", tool.server, tool.tool)] {
                match alone.resolve(&name) {
                    Resolved::Nothing => {}
                    stands @ (Resolved::One(_) | Resolved::Several(_)) => prop_assert_eq!(stands, beside.resolve(&name)),
                }
            }
        }
    }

    #[test]
    fn a_name_never_goes_from_one_tool_to_another_because_a_third_is_approved(tools in any_tools(), which in any::<prop::sample::Index>()) {
        prop_assume!(!tools.is_empty());
        let before = expose(tools.clone());
        let mut later = tools;
        let which = which.index(later.len());
        later[which].claim = Claim::Approved;
        let after = expose(later);
        for route in before.iter().filter(|route| route.claimant.claim == Claim::Approved) {
            match after.resolve(route.exposed.as_str()) {
                Resolved::One(now) => prop_assert_eq!((route.server(), route.tool()), (now.server(), now.tool())),
                Resolved::Several(_) | Resolved::Nothing => {}
            }
        }
    }
}
