use super::*;
use crate::{
    config::{EntryKind, parse},
    snapshot::KeychainState,
    trust::LaunchContext,
};

fn connector(entry: &str) -> Connector {
    let config = parse(format!("{{\"servers\": {{\"a\": {entry}}}}}").as_bytes()).unwrap();
    match config.entries[0].kind.clone() {
        EntryKind::Valid(connector) => *connector,
        EntryKind::Invalid(notice) => panic!("{}", notice.message),
    }
}

const HOME: &str = "/home/u";

fn identity(entry: &Connector) -> LaunchIdentity {
    LaunchIdentity::of(
        entry,
        &LaunchContext {
            env: &|_| None,
            home: Path::new(HOME),
            env_file: None,
        },
    )
}

fn approved(entry: &str) -> Reviewed {
    let entry = connector(entry);
    Reviewed {
        identity: identity(&entry),
        enabled: entry.enabled,
        disabled_tools: entry.disabled_tools.clone(),
        shown: LaunchShown::Run {
            command_line: Vec::new(),
            program: None,
            cwd: None,
            env_file: None,
            env: Vec::new(),
        },
        place: Place::Program,
        secrets: Vec::new(),
        approved_at: 1,
        by: ApprovedBy::Review,
    }
}

fn verdict(entry: &str, reviewed: Option<&Reviewed>, standing: Standing) -> Verdict {
    let entry = connector(entry);
    judge(&Case {
        identity: identity(&entry),
        entry: &entry,
        reviewed,
        standing,
        review_on: true,
        home: Path::new(HOME),
    })
}

const X: &str = r#"{"command": "x"}"#;
const Y: &str = r#"{"command": "x", "args": ["y"]}"#;
const FILES: &str = r#"{"command": "neuron-connectd", "args": ["files", "~/neuron-connectd-sandbox"]}"#;
const ALL_FILES: &str = r#"{"command": "neuron-connectd", "args": ["files", "~"]}"#;

#[test]
fn only_the_last_approved_launch_runs() {
    let x = approved(X);
    let needs = |why| Verdict::NeedsReview(why);
    assert_eq!(verdict(X, None, Standing::Verified), needs(LaunchWhy::New));
    assert_eq!(verdict(X, Some(&x), Standing::Verified), Verdict::MayRun);
    assert_eq!(verdict(Y, Some(&x), Standing::Verified), needs(LaunchWhy::Changed));
    // Approving another one retires the earlier.
    let y = approved(Y);
    assert_eq!(verdict(Y, Some(&y), Standing::Verified), Verdict::MayRun);
    assert_eq!(verdict(X, Some(&y), Standing::Verified), needs(LaunchWhy::Changed));
}

#[test]
fn looks_and_limits_are_no_other_launch() {
    let other =
        r#"{"command": "x", "name": "N", "timeouts": {"callMs": 5}, "autoApprove": true, "start": "at-launch"}"#;
    assert_eq!(verdict(other, Some(&approved(X)), Standing::Verified), Verdict::MayRun);
}

#[test]
fn what_was_off_is_not_turned_on_by_the_file() {
    let mut off = approved(X);
    off.enabled = false;
    let turned_on = Verdict::NeedsReview(LaunchWhy::TurnedOn);
    assert_eq!(verdict(X, Some(&off), Standing::Verified), turned_on);
    let mut files = approved(FILES);
    files.enabled = false;
    assert_eq!(verdict(FILES, Some(&files), Standing::Verified), turned_on);
    // Another launch besides says so first.
    assert_eq!(
        verdict(Y, Some(&off), Standing::Verified),
        Verdict::NeedsReview(LaunchWhy::Changed)
    );
}

#[test]
fn while_nobody_can_say_nothing_runs_but_what_is_compiled_in() {
    let unknown = Standing::Unknown(KeychainState::Locked);
    assert_eq!(verdict(X, Some(&approved(X)), unknown), Verdict::TrustUnknown);
    assert_eq!(verdict(X, None, unknown), Verdict::TrustUnknown);
    assert_eq!(verdict(FILES, None, unknown), Verdict::MayRun);
    assert_eq!(
        verdict(X, None, Standing::ForThisRun),
        Verdict::NeedsReview(LaunchWhy::New)
    );
}

#[test]
fn the_default_connector_needs_no_look_and_one_that_resembles_it_does() {
    assert_eq!(verdict(FILES, None, Standing::Fresh), Verdict::MayRun);
    let absolute =
        r#"{"command": "neuron-connectd", "args": ["files", "/home/u/neuron-connectd-sandbox"], "name": "F"}"#;
    assert_eq!(verdict(absolute, None, Standing::Fresh), Verdict::MayRun);
    for other in [
        ALL_FILES,
        r#"{"command": "neuron-connectd", "args": ["files", "~/neuron-connectd-sandbox", "/"]}"#,
        r#"{"command": "neuron-connectd", "args": ["files", "~/neuron-connectd-sandbox/.."]}"#,
        r#"{"command": "neuron-connectd", "args": ["files", "~/neuron-connectd-sandbox"], "env": {"LD_PRELOAD": "x"}}"#,
        r#"{"command": "neuron-connectd", "args": ["files", "~/neuron-connectd-sandbox"], "envFile": "x"}"#,
        r#"{"command": "/tmp/neuron-connectd", "args": ["files", "~/neuron-connectd-sandbox"]}"#,
    ] {
        assert_eq!(
            verdict(other, None, Standing::Fresh),
            Verdict::NeedsReview(LaunchWhy::New),
            "{other}"
        );
    }
}

#[test]
fn without_review_the_file_is_the_authority() {
    let entry = connector(X);
    let case = Case {
        identity: identity(&entry),
        entry: &entry,
        reviewed: None,
        standing: Standing::Unknown(KeychainState::Absent),
        review_on: false,
        home: Path::new(HOME),
    };
    assert_eq!(judge(&case), Verdict::MayRun);
    let mut kept = approved(X);
    kept.disabled_tools = vec!["del_*".to_owned()];
    assert_eq!(hidden(&[], Some(&kept), false), Hidden::default());
}

#[test]
fn the_file_hides_more_by_itself_and_less_only_after_a_look() {
    let list = |patterns: &[&str]| patterns.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>();
    for (file, approved_list, in_force, dropped) in [
        (&["a", "b"][..], &["a"][..], &["a", "b"][..], &[][..]),
        (&["a"], &["a", "b"], &["a", "b"], &["b"]),
        (&[], &["del_*"], &["del_*"], &["del_*"]),
        // A wider pattern hides no less.
        (&["del_*"], &["del_one"], &["del_*"], &[]),
        (&["*"], &["del_*"], &["*"], &[]),
        (&["del_o*"], &["del_*"], &["del_o*", "del_*"], &["del_*"]),
    ] {
        let mut reviewed = approved(X);
        reviewed.disabled_tools = list(approved_list);
        let expected = Hidden {
            patterns: list(in_force),
            dropped: list(dropped),
        };
        assert_eq!(
            hidden(&list(file), Some(&reviewed), true),
            expected,
            "{file:?} {approved_list:?}"
        );
    }
}

#[test]
fn what_the_file_turned_off_is_remembered_so_that_turning_it_on_again_asks() {
    let reviewed = approved(X);
    assert_eq!(tightened(&connector(X), &reviewed), None);
    let off = tightened(&connector(r#"{"command": "x", "enabled": false}"#), &reviewed).unwrap();
    assert!(!off.enabled && off.identity == reviewed.identity);
    let fewer = tightened(&connector(r#"{"command": "x", "disabledTools": ["a"]}"#), &reviewed).unwrap();
    assert_eq!(fewer.disabled_tools, ["a"]);
    assert_eq!(hidden(&[], Some(&fewer), true).dropped, ["a"]);
    assert_eq!(tightened(&connector(X), &fewer), None);
}

#[test]
fn a_reviews_id_names_server_launch_and_reason() {
    let id = |server: &str, entry: &str, why: LaunchWhy| {
        review_id(&ConnectorId::parse(server).unwrap(), &identity(&connector(entry)), &why)
    };
    let tools = |tool: &str| LaunchWhy::ToolsShown {
        tools: vec![tool.to_owned()],
    };
    let ids = [
        id("a", X, LaunchWhy::New),
        id("b", X, LaunchWhy::New),
        id("a", Y, LaunchWhy::New),
        id("a", X, LaunchWhy::Changed),
        id("a", X, LaunchWhy::TurnedOn),
        id("a", X, tools("t")),
        id("a", X, tools("u")),
    ];
    for (index, one) in ids.iter().enumerate() {
        assert!(one.starts_with(REVIEW_ID) && !ids[index + 1..].contains(one), "{one}");
    }
    assert_eq!(ids[0], id("a", X, LaunchWhy::New));
}

#[test]
fn a_row_is_read_as_it_was_written() {
    let mut row = approved(X);
    row.place = Place::Address {
        origin: "https://a.example".to_owned(),
        canonical: "https://a.example/mcp".to_owned(),
    };
    let text = serde_json::to_string(&row).unwrap();
    assert_eq!(serde_json::from_str::<Reviewed>(&text).unwrap(), row);
    assert!(serde_json::from_str::<Reviewed>(&text.replacen("\"identity\":\"", "\"identity\":\"z", 1)).is_err());
}

#[test]
fn a_place_is_command_arguments_and_folder_or_the_address() {
    let x = r#"{"command": "x", "args": ["~/notes"], "cwd": "~"}"#;
    let url = r#"{"url": "https://a.example/mcp?t=1"}"#;
    for (one, other, stays) in [
        (
            x,
            r#"{"command": "x", "args": ["/home/u/notes"], "cwd": "/home/u", "env": {"A": "b"}}"#,
            true,
        ),
        (x, r#"{"command": "x", "args": ["~"], "cwd": "~"}"#, false),
        (x, r#"{"command": "x", "args": ["~/notes"]}"#, false),
        (x, r#"{"command": "y", "args": ["~/notes"], "cwd": "~"}"#, false),
        (
            url,
            r#"{"url": "https://a.example/mcp?t=1", "headers": {"X-A": "b"}}"#,
            true,
        ),
        (url, r#"{"url": "https://a.example/mcp?t=2"}"#, false),
        (url, r#"{"url": "https://b.example/mcp?t=1"}"#, false),
        (url, x, false),
    ] {
        let [a, b] = [one, other].map(|entry| connector(entry).launch);
        let home = Path::new(HOME);
        assert_eq!(
            (is_same_place(&a, &b, home), is_same_place(&b, &a, home)),
            (stays, stays),
            "{other}"
        );
    }
}
