use std::sync::mpsc;

use serde_json::json;

use super::*;
use crate::{
    activity::{Outcome, ProgramRecord, WhoRecord},
    caller::ProgramLookup,
    ids::{ConnectorId, ToolName},
    snapshot::{ActivityCaller, ActivityFilter, ActivityOutcome, ActivityWhat},
    store::ActivityCursor,
};

const SOON: Duration = Duration::from_secs(20);

fn call(tool: &str) -> Entry {
    let what = ActivityWhat::Call {
        server: ConnectorId::parse("files").unwrap(),
        tool: ToolName::new(tool),
        arguments: Arguments::Shape(json!({})),
    };
    Entry::new(WhoRecord::plain(ActivityCaller::WalkIn), what)
}

fn store() -> (tempfile::TempDir, Arc<Store>) {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(folder.path().join("state.db")).unwrap());
    (folder, store)
}

fn all(store: &Store) -> Vec<ActivityWhat> {
    let page = store.activity(&ActivityFilter::default(), ActivityCursor::Newest, 200_000);
    let entries = page.unwrap().entries.into_iter();
    entries.map(|entry| entry.record.what).rev().collect()
}

fn tools(store: &Store) -> Vec<String> {
    let subject = |what: &ActivityWhat| what.subject().map(ToOwned::to_owned);
    all(store).iter().filter_map(subject).collect()
}

#[test]
fn what_is_recorded_is_written_in_order_and_told_of() {
    let (_folder, store) = store();
    let (told, newest) = mpsc::channel();
    let recorder = Recorder::start(store.clone(), Keep::default(), move |id| told.send(id).unwrap()).unwrap();
    let mut sent = Vec::new();
    for n in 0..1_000 {
        recorder.record(call(&n.to_string()));
        sent.push(n.to_string());
    }
    assert!(recorder.flush(SOON));
    assert_eq!(tools(&store), sent);
    recorder.record(call("last"));
    drop(recorder);
    // The thread ends by itself, after it has written the rest.
    let told: Vec<u64> = newest.iter().collect();
    assert!(told.is_sorted() && told.last() == Some(&1_001), "{told:?}");
}

#[tokio::test]
async fn a_program_that_becomes_known_after_the_call_is_written_with_it() {
    let (_folder, store) = store();
    let (recorder, queue) = Recorder::idle(Keep::default());
    let pid = std::process::id();
    let behind = ProgramLookup::default().of_process(pid);
    let mut entry = call("read").ended(Outcome::Denied("denied"));
    entry.who.program = Some(ProgramRecord::Behind(behind.clone()));
    recorder.record(entry);
    let program = behind.get().await.unwrap();
    drop(recorder);
    writer::run(&queue, &store, &|_| {});
    let page = store
        .activity(&ActivityFilter::default(), ActivityCursor::Newest, 10)
        .unwrap();
    let record = &page.entries[0].record;
    assert_eq!(record.who.program_name, Some(program.label()));
    assert_eq!((record.who.pid, record.outcome), (Some(pid), ActivityOutcome::Denied));
    assert_eq!(record.code.as_deref(), Some("denied"));
}

#[test]
fn what_finds_no_room_is_counted_and_the_count_is_told() {
    let (_folder, store) = store();
    let (recorder, queue) = Recorder::idle(Keep::default());
    for n in 0..QUEUED_ENTRIES + 5 {
        recorder.record(call(&n.to_string()));
    }
    drop(recorder);
    writer::run(&queue, &store, &|_| {});
    let all = all(&store);
    assert_eq!(all.len(), QUEUED_ENTRIES + 1);
    assert_eq!(all.last(), Some(&ActivityWhat::Lost { entries: 5 }));
}

#[test]
fn arguments_kept_in_full_do_not_pile_up() {
    let keep = Keep {
        arguments: KeepArguments::Full,
        ..Keep::default()
    };
    let (recorder, queue) = Recorder::idle(keep);
    let given = Map::from_iter([("a".to_owned(), json!("x".repeat(16_000)))]);
    for _ in 0..QUEUED_ENTRIES {
        let mut entry = call("write");
        if let ActivityWhat::Call { arguments, .. } = &mut entry.what {
            *arguments = recorder.arguments(&given);
        }
        recorder.record(entry);
    }
    let waiting = queue.lock().waiting.len();
    assert!((900..=QUEUED_BYTES / 16_000).contains(&waiting), "{waiting}");
}

#[test]
fn what_arguments_say_is_kept_only_where_the_person_wants_it() {
    let (recorder, _queue) = Recorder::idle(Keep::default());
    let given = Map::from_iter([("path".to_owned(), json!("/a"))]);
    assert_eq!(recorder.arguments(&given), Arguments::Shape(json!({"path": "text(2)"})));
    recorder.keep(Keep {
        arguments: KeepArguments::Full,
        ..Keep::default()
    });
    assert_eq!(recorder.arguments(&given), Arguments::Full(json!({"path": "/a"})));
    let large = Map::from_iter([("path".to_owned(), json!("x".repeat(20_000)))]);
    assert_eq!(
        recorder.arguments(&large),
        Arguments::Shape(json!({"path": "text(20000)"}))
    );
}

#[test]
fn a_database_that_takes_nothing_holds_nobody_up_and_what_is_lost_is_told_later() {
    let (folder, store) = store();
    let recorder = Recorder::start(store.clone(), Keep::default(), |_| {}).unwrap();
    let other = rusqlite::Connection::open(folder.path().join("state.db")).unwrap();
    other
        .execute_batch("CREATE TRIGGER no BEFORE INSERT ON activity BEGIN SELECT raise(ABORT, 'no'); END")
        .unwrap();
    for n in 0..3 {
        recorder.record(call(&n.to_string()));
    }
    assert!(recorder.flush(SOON));
    other.execute_batch("DROP TRIGGER no").unwrap();
    recorder.record(call("after"));
    assert!(recorder.close(SOON));
    let all = all(&store);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[1], ActivityWhat::Lost { entries: 3 });
}

#[test]
fn recording_costs_a_call_next_to_nothing_while_batches_are_written() {
    let (_folder, store) = store();
    let recorder = Recorder::start(store.clone(), Keep::default(), |_| {}).unwrap();
    let mut times: Vec<Duration> = (0..20_000)
        .map(|n| {
            let entry = call("read");
            let begun = Instant::now();
            recorder.record(entry);
            let took = begun.elapsed();
            if n % 4_000 == 0 {
                assert!(recorder.flush(SOON));
            }
            took
        })
        .collect();
    times.sort_unstable();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "recording: median {median:?}, p99 {:?}, longest {worst:?}",
        times[times.len() * 99 / 100]
    );
    assert!(median < Duration::from_micros(20), "{median:?}");
    assert!(worst < Duration::from_millis(500), "{worst:?}");
    assert!(recorder.close(SOON));
    assert_eq!(all(&store).len(), 20_000);
}
