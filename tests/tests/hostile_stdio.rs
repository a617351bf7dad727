//! What a program may do wrong while it is greeted and listed, one row each, all rows of a table behind one bridge.

use std::{ops::RangeInclusive, time::Duration};

use neuron_tests::{
    daemon::Daemon,
    fake::Fake,
    home::Home,
    process,
    wait::{SOON, eventually, eventually_equals},
};
use serde_json::{Value, json};

/// How long a row's upstream may take to connect that is to fail by its deadline, in milliseconds.
const IMPATIENT: u64 = 800;

/// A result that is nobody's ends a greeting that the SDK itself gives ten seconds.
const AFTER_THE_SDKS_PATIENCE: Duration = Duration::from_secs(25);

/// An upstream, and what its owner is to see of it.
struct Row {
    id: &'static str,
    fake: Fake,
    outcome: Outcome,
}

enum Outcome {
    /// It connects, lists exactly these tools, and the first one answers with its own name and arguments.
    Works {
        tools: &'static [&'static str],
        starts: RangeInclusive<usize>,
        within: Duration,
    },
    /// It fails with a sentence that says this, and lists nothing.
    Fails { says: &'static str },
}

fn works(id: &'static str, fake: Fake, starts: RangeInclusive<usize>) -> Row {
    let tools = &["tool_0", "tool_1", "tool_2"];
    lists(id, fake.option("list", "many"), tools, starts)
}

fn lists(id: &'static str, fake: Fake, tools: &'static [&'static str], starts: RangeInclusive<usize>) -> Row {
    let within = SOON;
    Row {
        id,
        fake,
        outcome: Outcome::Works { tools, starts, within },
    }
}

fn works_late(id: &'static str, fake: Fake, starts: RangeInclusive<usize>) -> Row {
    let mut row = works(id, fake, starts);
    if let Outcome::Works { within, .. } = &mut row.outcome {
        *within = AFTER_THE_SDKS_PATIENCE;
    }
    row
}

fn fails(id: &'static str, fake: Fake, says: &'static str) -> Row {
    let fake = fake.member("timeouts", json!({"connectMs": IMPATIENT}));
    Row {
        id,
        fake,
        outcome: Outcome::Fails { says },
    }
}

/// Starts one bridge with all rows and looks at them side by side; a failure names its row as the thread.
fn hold(rows: Vec<Row>) {
    let home = Home::new();
    let record = |row: Row| Row {
        fake: row.fake.record(&home.record(row.id)),
        ..row
    };
    let rows: Vec<_> = rows.into_iter().map(record).collect();
    let entries: Vec<_> = rows.iter().map(|row| (row.id, row.fake.entry())).collect();
    let bridge = Daemon::serving(home, entries);
    std::thread::scope(|scope| {
        for row in &rows {
            let look = || match &row.outcome {
                Outcome::Works { tools, starts, within } => is_used(&bridge, row, tools, starts, *within),
                Outcome::Fails { says } => is_told(&bridge, row, says),
            };
            let thread = std::thread::Builder::new().name(row.id.to_owned());
            thread.spawn_scoped(scope, look).expect("a thread starts");
        }
    });
    bridge.terminate();
}

fn listed(bridge: &Daemon, id: &str) -> Vec<String> {
    let prefix = format!("mcp__{}__", id.replace('-', "_"));
    let names = bridge.tool_names().into_iter();
    names
        .filter_map(|name| name.strip_prefix(&prefix).map(ToOwned::to_owned))
        .collect()
}

fn is_used(bridge: &Daemon, row: &Row, tools: &[&str], starts: &RangeInclusive<usize>, within: Duration) {
    let id = row.id;
    eventually_equals(&format!("the tools of {id}"), tools.to_vec(), within, || {
        let listed = listed(bridge, id);
        tools
            .iter()
            .copied()
            .filter(|tool| listed.iter().any(|l| l == tool))
            .collect()
    });
    assert_eq!(listed(bridge, id), tools);
    for n in 0..3 {
        let name = format!("mcp__{}__{}", id.replace('-', "_"), tools[0]);
        let answer = bridge.call_text(&name, &json!({"n": n}));
        assert_eq!(answer, format!("{} {{\"n\":{n}}}", tools[0]));
    }
    let shown = bridge.server(id).expect("its row");
    assert_eq!(shown["status"], "connected", "{shown}");
    assert_eq!(shown["error"], Value::Null, "{shown}");
    assert_eq!(shown["action"], Value::Null, "{shown}");
    let pids = row.fake.seen().starts();
    assert!(starts.contains(&pids.len()), "started {pids:?}");
    let alive: Vec<_> = pids.iter().filter(|pid| process::is_alive(**pid)).collect();
    assert_eq!(alive, [pids.last().expect("it started")], "of {pids:?}");
    let answered: Vec<_> = row.fake.seen().lines();
    assert!(
        !answered.iter().any(|line| line.contains("\"error\"")),
        "nobody answers noise"
    );
}

fn is_told(bridge: &Daemon, row: &Row, says: &str) {
    let id = row.id;
    let shown = eventually(&format!("{id} fails"), SOON, || {
        let failed = |shown: &Value| matches!(shown["status"].as_str(), Some("error" | "retrying"));
        bridge.server(id).filter(failed)
    });
    let error = shown["error"].as_str().unwrap_or_default();
    assert!(error.contains(says), "{says}: {shown}");
    assert_eq!(shown["action"], "reconnect", "{shown}");
    assert_eq!(shown["tools"], 0, "half a list is no list: {shown}");
    assert_eq!(listed(bridge, id), [""; 0]);
}

#[test]
fn whatever_a_legacy_program_says_to_the_modern_question_it_is_used() {
    let answers = |word: &str| Fake::new("ok").option("discover", word);
    hold(vec![
        works("error", answers("error"), 1..=1),
        works("empty", answers("empty"), 1..=2),
        works("close", answers("close"), 2..=2),
        works("html", answers("html"), 1..=2),
        works("idless", answers("idless"), 1..=2),
        works_late("html-line", answers("html-line"), 1..=2),
        works_late("silence", answers("silence"), 1..=2),
        works("changed-first", Fake::new("ok").option("announce", "first"), 1..=1),
        works(
            "changed-first-modern",
            Fake::new("ok").option("era", "modern").option("announce", "first"),
            1..=1,
        ),
    ]);
}

#[test]
fn programs_that_fail_are_told_by_their_deadline_and_hide_no_neighbour() {
    let pages = |way: &str| Fake::new("ok").option("list", way).option("tools", 4);
    let four = &["tool_0", "tool_1", "tool_2", "tool_3"];
    let two = &["tool_0", "tool_1"];
    hold(vec![
        fails("silent", Fake::new("silent"), "did not answer within 0.8 s"),
        fails(
            "never-initialize",
            Fake::new("never-initialize"),
            "did not answer within 0.8 s",
        ),
        fails(
            "ignores-stdin",
            Fake::new("ignores-stdin"),
            "did not answer within 0.8 s",
        ),
        fails("crash", Fake::new("crash").option("exit", 7), "exited with code 7"),
        fails("nonsense", Fake::new("nonsense"), "not as an MCP server does"),
        fails("page-fails", pages("pages-failing"), "the page is torn"),
        fails("page-never", pages("pages-silent"), "in time"),
        fails(
            "page-late",
            pages("pages-slow").option("page-delay", 2 * IMPATIENT),
            "in time",
        ),
        works("noise", Fake::new("noise"), 1..=1),
        lists("pages", pages("pages"), four, 1..=1),
        lists(
            "page-slow",
            pages("pages-slow").option("page-delay", IMPATIENT),
            four,
            1..=1,
        ),
        lists("page-repeated", pages("pages-repeated"), two, 1..=1),
        lists("page-empty", pages("pages-empty"), two, 1..=1),
    ]);
}

#[test]
fn bad_tools_are_named_with_a_reason_and_take_no_neighbour_along() {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").option("list", "bad").entry())]);
    bridge.wait_for_tool("mcp__fake__good");
    assert_eq!(bridge.call_text("mcp__fake__good", &json!({"n": 1})), "good {\"n\":1}");
    let one = bridge.get("/mcp/servers/fake").ok();
    let rejected = one["rejected"].as_array().unwrap();
    for item in rejected {
        assert!(item["name"].as_str().is_some_and(|name| !name.is_empty()), "{item}");
        let reason = item["reason"].as_str();
        assert!(reason.is_some_and(|reason| reason.len() > 10), "{item}");
    }
    let all = || one["tools"].as_array().unwrap().iter().chain(rejected);
    for name in [
        "no_schema",
        "null_schema",
        "true_schema",
        "array_schema",
        "text_schema",
        "text_hint",
        "list_of_hints",
        "numeric_description",
        "recursive_schema",
        "good",
    ] {
        let shown = all().filter(|item| item["name"] == name).count();
        assert_eq!(shown, 1, "{name} is shown once, listed or refused: {one}");
    }
    let twice = all().filter(|item| item["name"] == "twice").count();
    assert!(twice >= 1, "listed or refused: {one}");
    assert!(
        rejected.len() >= 5,
        "null, 7, nameless, the empty name, too deep: {one}"
    );
    assert!(bridge.tool_names().contains(&"mcp__fake__recursive_schema".to_owned()));
    for tool in bridge.get("/mcp/tools").ok()["tools"].as_array().unwrap() {
        assert_eq!(tool["input_schema"]["type"], "object", "{tool}");
        assert!(tool["input_schema"]["properties"].is_object(), "{tool}");
    }
}

#[test]
fn a_flood_on_stderr_without_a_line_end_blocks_nobody_and_stays_bounded() {
    let home = Home::new();
    let bytes = 400_000_000;
    let fake = Fake::new("stderr-flood")
        .option("bytes", bytes)
        .record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry()), ("calm", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge.wait_for_tool("mcp__calm__echo");
    let before = process::peak_memory(bridge.pid());
    for n in 0..50 {
        for id in ["fake", "calm"] {
            let input = json!({"n": n});
            assert_eq!(bridge.call_text(&format!("mcp__{id}__echo"), &input), input.to_string());
        }
    }
    assert!(
        !fake.seen().noted("flood over"),
        "the calls were answered while it wrote"
    );
    eventually("the end of the flood", Duration::from_secs(240), || {
        fake.seen().noted("flood over").then_some(())
    });
    let after = process::peak_memory(bridge.pid());
    assert!(after < before + 32.0, "from {before} to {after} MB");
    let logs = std::fs::read_dir(bridge.home.neuron().join("connect/logs")).unwrap();
    let total: u64 = logs.map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(
        total <= 6 * 1024 * 1024,
        "5 × 1 MiB at most, and the bridge's own: {total}"
    );
    assert_eq!(fake.seen().starts().len(), 1);
}
