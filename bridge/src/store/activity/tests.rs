use serde_json::json;

use super::*;
use crate::{
    ids::{ConnectorId, ToolName},
    snapshot::{ActivityCaller, ActivityKind, ActivityReview, ActivityWhat, Arguments},
};

const KEEP_ALL: ActivityBounds = ActivityBounds {
    since: 0,
    most: 1_000_000,
};

fn open() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("state.db")).unwrap();
    (folder, store)
}

fn call(at: u64, server: &str, tool: &str, outcome: ActivityOutcome) -> ActivityRecord {
    ActivityRecord {
        at,
        who: ActivityWho {
            kind: ActivityCaller::Client,
            client_id: Some("c1".into()),
            client_name: Some("Claude".into()),
            program_name: Some("node".into()),
            program_path: Some("/usr/bin/node".into()),
            program_script: Some("/opt/agent.js".into()),
            pid: Some(4),
        },
        what: ActivityWhat::Call {
            server: ConnectorId::parse(server).unwrap(),
            tool: ToolName::new(tool),
            arguments: Arguments::Shape(json!({"path": "text(3)"})),
        },
        outcome,
        code: (outcome == ActivityOutcome::Failed).then(|| "tool_error".into()),
        duration_ms: Some(3),
        allowed_by: AllowedBy::Rule {
            rule: format!("rule-{server}"),
            name: Some("Reads files".into()),
        },
        warnings: true,
    }
}

fn page(store: &Store, filter: &ActivityFilter, cursor: ActivityCursor, limit: usize) -> (Vec<u64>, Option<u64>) {
    let page = store.activity(filter, cursor, limit).unwrap();
    (page.entries.iter().map(|entry| entry.id).collect(), page.next)
}

#[test]
fn an_entry_comes_back_as_it_was_kept() {
    let (_folder, store) = open();
    let record = call(5, "files", "read", ActivityOutcome::Failed);
    assert_eq!(
        store.append_activity(std::slice::from_ref(&record), KEEP_ALL).unwrap(),
        1
    );
    let page = store
        .activity(&ActivityFilter::default(), ActivityCursor::Newest, 10)
        .unwrap();
    assert_eq!(page.entries, [ActivityEntry { id: 1, record }]);
}

#[test]
fn pages_neither_repeat_nor_skip_while_entries_arrive() {
    let (_folder, store) = open();
    let some = |n: usize| vec![call(1, "files", "read", ActivityOutcome::Ok); n];
    store.append_activity(&some(5), KEEP_ALL).unwrap();
    let all = ActivityFilter::default();
    assert_eq!(page(&store, &all, ActivityCursor::Newest, 2), (vec![5, 4], Some(4)));
    store.append_activity(&some(3), KEEP_ALL).unwrap();
    assert_eq!(page(&store, &all, ActivityCursor::Before(4), 2), (vec![3, 2], Some(2)));
    assert_eq!(page(&store, &all, ActivityCursor::Before(2), 2), (vec![1], None));
    assert_eq!(page(&store, &all, ActivityCursor::After(5), 2), (vec![6, 7], Some(7)));
    assert_eq!(page(&store, &all, ActivityCursor::After(7), 2), (vec![8], None));
}

#[test]
fn every_filter_lets_through_what_it_names_and_nothing_else() {
    let (_folder, store) = open();
    let mut other = call(20, "git", "log_%", ActivityOutcome::Ok);
    other.who = ActivityWho {
        kind: ActivityCaller::Owner,
        client_id: None,
        client_name: None,
        program_name: None,
        program_path: None,
        program_script: None,
        pid: None,
    };
    other.what = ActivityWhat::Read {
        server: ConnectorId::parse("git").unwrap(),
        uri: "file:///a \"b\"\\c".into(),
    };
    other.allowed_by = AllowedBy::Owner;
    store
        .append_activity(
            &[call(10, "files", "read_100%", ActivityOutcome::Failed), other],
            KEEP_ALL,
        )
        .unwrap();
    let none = ActivityFilter::default;
    let text = |text: &str| ActivityFilter {
        text: Some(text.into()),
        ..none()
    };
    for (filter, wanted) in [
        (none(), vec![2, 1]),
        (
            ActivityFilter {
                server: Some("git".into()),
                ..none()
            },
            vec![2],
        ),
        (
            ActivityFilter {
                caller: Some(ActivityCaller::Client),
                ..none()
            },
            vec![1],
        ),
        (
            ActivityFilter {
                client: Some("c1".into()),
                ..none()
            },
            vec![1],
        ),
        (
            ActivityFilter {
                program: Some("/usr/bin/node".into()),
                ..none()
            },
            vec![1],
        ),
        (
            ActivityFilter {
                outcome: Some(ActivityOutcome::Ok),
                ..none()
            },
            vec![2],
        ),
        (
            ActivityFilter {
                kind: Some(ActivityKind::Read),
                ..none()
            },
            vec![2],
        ),
        (
            ActivityFilter {
                from: Some(10),
                to: Some(20),
                ..none()
            },
            vec![1],
        ),
        (text("READ_1"), vec![1]),
        (text("0%"), vec![1]),
        (text("d_%0"), vec![]),
        (text("Claude"), vec![1]),
        (text("bin/nod"), vec![1]),
        (text("tool_error"), vec![1]),
        (text("\"b\"\\c"), vec![2]),
        (text("path"), vec![1]),
        (text("reads files"), vec![1]),
        (text("  "), vec![2, 1]),
        // Names of our own members are no words of the entries.
        (text("server"), vec![]),
        (text("kind"), vec![]),
        (text("kept"), vec![]),
    ] {
        assert_eq!(
            page(&store, &filter, ActivityCursor::Newest, 10).0,
            wanted,
            "{filter:?}"
        );
    }
}

#[test]
fn the_oldest_entries_go_when_there_are_too_many_or_they_are_too_old() {
    let (_folder, store) = open();
    let keep = |since, most| ActivityBounds { since, most };
    let at = |times: &[u64]| -> Vec<ActivityRecord> {
        let of = |at: &u64| call(*at, "files", "read", ActivityOutcome::Ok);
        times.iter().map(of).collect()
    };
    let all = ActivityFilter::default();
    store.append_activity(&at(&[1, 2, 3, 4, 5]), keep(0, 3)).unwrap();
    assert_eq!(page(&store, &all, ActivityCursor::Newest, 10).0, [5, 4, 3]);
    store.append_activity(&at(&[6]), keep(5, 3)).unwrap();
    assert_eq!(page(&store, &all, ActivityCursor::Newest, 10).0, [6, 5]);
    // A place of before stays a place: no id is given twice.
    assert_eq!(store.append_activity(&[], keep(100, 3)).unwrap(), 0);
    assert_eq!(store.append_activity(&at(&[200]), keep(100, 3)).unwrap(), 7);
}

#[test]
fn no_number_of_calls_takes_away_what_was_decided_and_no_number_of_decisions_the_calls() {
    let (_folder, store) = open();
    let keep = ActivityBounds { since: 0, most: 100 };
    let decided = |at: u64| ActivityRecord {
        what: ActivityWhat::Review {
            server: None,
            of: ActivityReview::WalkInsAsked,
            subject: None,
        },
        ..call(at, "files", "read", ActivityOutcome::Ok)
    };
    let calls = |n: usize| vec![call(1, "files", "read", ActivityOutcome::Denied); n];
    store.append_activity(&[decided(1), decided(2)], keep).unwrap();
    for _ in 0..5 {
        store.append_activity(&calls(200), keep).unwrap();
    }
    let of = |kind| ActivityFilter {
        kind: Some(kind),
        ..ActivityFilter::default()
    };
    let count = |kind| page(&store, &of(kind), ActivityCursor::Newest, 1000).0.len();
    assert_eq!((count(ActivityKind::Review), count(ActivityKind::Call)), (2, 98));
    let many: Vec<_> = (0..200).map(decided).collect();
    store.append_activity(&many, keep).unwrap();
    store.append_activity(&calls(10), keep).unwrap();
    assert_eq!((count(ActivityKind::Review), count(ActivityKind::Call)), (20, 10));
    // The log is one, in order, and its pages miss nothing.
    let all = ActivityFilter::default();
    let (first, next) = page(&store, &all, ActivityCursor::Newest, 15);
    let (second, end) = page(&store, &all, ActivityCursor::Before(next.unwrap()), 15);
    let ids: Vec<_> = first.into_iter().chain(second).collect();
    assert_eq!((ids.len(), end), (30, None));
    assert!(ids.is_sorted_by(|a, b| a > b));
}

#[test]
fn days_begin_where_the_person_is_and_each_is_there() {
    let (_folder, store) = open();
    let hour = 3_600_000;
    let midnight = 20_000 * 24 * hour;
    let records = [
        call(midnight - hour, "a", "x", ActivityOutcome::Ok),
        call(midnight + hour, "a", "x", ActivityOutcome::Denied),
        call(midnight + 2 * hour, "a", "x", ActivityOutcome::Ok),
    ];
    store.append_activity(&records, KEEP_ALL).unwrap();
    let counts = |offset| {
        let days = store.activity_days(3, offset, midnight + 3 * hour).unwrap();
        days.into_iter()
            .map(|day| (day.day, day.calls, day.failures))
            .collect::<Vec<_>>()
    };
    let day = |text: &str, calls, failures| (text.to_owned(), calls, failures);
    assert_eq!(
        counts(0),
        [
            day("2024-10-02", 0, 0),
            day("2024-10-03", 1, 0),
            day("2024-10-04", 2, 1)
        ]
    );
    assert_eq!(
        counts(120),
        [
            day("2024-10-02", 0, 0),
            day("2024-10-03", 0, 0),
            day("2024-10-04", 3, 1)
        ]
    );
    assert_eq!(
        counts(-240),
        [
            day("2024-10-01", 0, 0),
            day("2024-10-02", 0, 0),
            day("2024-10-03", 3, 1)
        ]
    );
}

#[test]
fn the_uses_of_a_rule_are_counted() {
    let (_folder, store) = open();
    let records = [
        call(1, "a", "x", ActivityOutcome::Ok),
        call(9, "b", "x", ActivityOutcome::Ok),
        call(5, "a", "x", ActivityOutcome::Ok),
    ];
    store.append_activity(&records, KEEP_ALL).unwrap();
    let of = |rule: &str, times, last| RuleUse {
        rule: rule.into(),
        times,
        last,
    };
    assert_eq!(store.rule_uses().unwrap(), [of("rule-b", 1, 9), of("rule-a", 2, 5)]);
}

#[test]
fn a_row_that_makes_no_sense_is_passed_over_and_paging_goes_on() {
    let (folder, store) = open();
    let records = vec![call(1, "a", "x", ActivityOutcome::Ok); 4];
    store.append_activity(&records, KEEP_ALL).unwrap();
    let other = Connection::open(folder.path().join("state.db")).unwrap();
    other
        .execute("UPDATE activity SET what = '{\"kind\":\"later\"}' WHERE id = 3", [])
        .unwrap();
    let all = ActivityFilter::default();
    assert_eq!(page(&store, &all, ActivityCursor::Newest, 2), (vec![4], Some(3)));
    assert_eq!(page(&store, &all, ActivityCursor::Before(3), 2), (vec![2, 1], None));
}

#[test]
fn a_damaged_file_is_set_aside_once_whoever_meets_it() {
    let (folder, store) = open();
    let record = [call(1, "a", "x", ActivityOutcome::Ok)];
    store.append_activity(&record, KEEP_ALL).unwrap();
    drop(store);
    let path = folder.path().join("state.db");
    let mut bytes = std::fs::read(&path).unwrap();
    for page in bytes.chunks_mut(4096).skip(1) {
        page.fill(0x5a);
    }
    std::fs::write(&path, bytes).unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.append_activity(&record, KEEP_ALL).unwrap(), 1);
    assert_eq!(store.append_activity(&record, KEEP_ALL).unwrap(), 2);
    assert_eq!(store.take_notices().len(), 1);
    let names = std::fs::read_dir(folder.path()).unwrap();
    let aside = names.filter(|name| {
        let name = name.as_ref().unwrap().file_name().into_string().unwrap();
        name.contains("damaged") && !name.ends_with("-wal") && !name.ends_with("-shm")
    });
    assert_eq!(aside.count(), 1);
}

#[test]
fn a_hundred_thousand_rows_are_paged_and_searched_quickly_and_no_more_are_kept() {
    let (folder, store) = open();
    let keep = ActivityBounds {
        since: 0,
        most: 100_000,
    };
    let batch: Vec<_> = (0..256)
        .map(|n| call(n, "files", "read", ActivityOutcome::Ok))
        .collect();
    let begun = std::time::Instant::now();
    for _ in 0..400 {
        store.append_activity(&batch, keep).unwrap();
    }
    let written = begun.elapsed();
    let timed = |filter: &ActivityFilter| {
        let begun = std::time::Instant::now();
        let found = page(&store, filter, ActivityCursor::Newest, 100).0.len();
        (found, begun.elapsed())
    };
    let (newest, quick) = timed(&ActivityFilter::default());
    let (none, slow) = timed(&ActivityFilter {
        text: Some("nowhere".into()),
        ..ActivityFilter::default()
    });
    assert_eq!((newest, none), (100, 0));
    let rows: u64 = Connection::open(folder.path().join("state.db"))
        .unwrap()
        .query_row("SELECT count(*) FROM activity", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 100_000);
    let begun = std::time::Instant::now();
    store.activity_days(30, 0, 1).unwrap();
    println!(
        "400 batches of 256: {written:?}; a page: {quick:?}; a search without a hit: {slow:?}; days: {:?}",
        begun.elapsed()
    );
    assert!(quick < std::time::Duration::from_millis(500), "{quick:?}");
}

#[test]
fn what_reads_before_it_writes_waits_for_activity_and_is_not_refused() {
    let (_folder, store) = open();
    let id = ConnectorId::parse("files").unwrap();
    store.note_secret(&id, "token").unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..300 {
                store.append_activity(&[call(1, "files", "read", ActivityOutcome::Ok)], KEEP_ALL)?;
            }
            Ok::<(), StoreError>(())
        });
        let mut turn = 0;
        while !writer.is_finished() {
            turn += 1;
            let present = [id.clone()].into_iter().filter(|_| turn % 2 == 0).collect();
            store.secrets_without_entry(&present, 5, 1).unwrap();
        }
        writer.join().unwrap().unwrap();
    });
}
