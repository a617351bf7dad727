use std::{fs, path::Path, time::Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use super::*;
use crate::secrets::Desk;

mod headless;
mod loss;

const TRUST: &str = ":trust";

/// A home, and the keychain of its desktop.
struct Case {
    desk: Desk,
    folder: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        Self {
            desk: Desk::default(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// With two rules and a review that a tray app wrote.
    async fn decided() -> Self {
        let case = Self::new();
        let bridge = case.tray().await;
        bridge
            .ledger
            .write(vec![rule("a", "1"), rule("b", "2"), review("x")])
            .await
            .unwrap();
        bridge.ledger.counted().await;
        case
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("state.db")
    }

    fn key_file(&self) -> PathBuf {
        self.folder.path().join("trust.key")
    }

    fn start(&self, host: Host, kept_in: KeptIn) -> Bridge {
        let store = Arc::new(Store::open(self.database()).unwrap());
        let keychain = Keychain::simulated(&self.desk, store.clone());
        let ledger = Ledger::open(LedgerOptions {
            host,
            store,
            keychain: keychain.clone(),
            kept_in,
            key_file: self.key_file(),
        });
        Bridge { ledger, keychain }
    }

    /// A tray app that knows what its keychain says.
    async fn tray(&self) -> Bridge {
        let bridge = self.start(Host::Tray, KeptIn::Keychain);
        bridge.ledger.first_standing().await;
        // What it notes by itself is noted.
        drop(bridge.ledger.writer.lock().await);
        bridge
    }

    async fn headless(&self, kept_in: KeptIn) -> Bridge {
        let bridge = self.start(Host::Headless, kept_in);
        bridge.ledger.first_standing().await;
        drop(bridge.ledger.writer.lock().await);
        bridge
    }

    /// What somebody does to the database with a tool of their own.
    fn by_hand(&self, sql: &str) {
        Connection::open(self.database()).unwrap().execute_batch(sql).unwrap();
    }

    fn copy(&self, name: &str) -> PathBuf {
        let copy = self.folder.path().join(name);
        self.by_hand(&format!("VACUUM INTO '{}'", copy.display()));
        copy
    }

    fn delete_database(&self) {
        for suffix in ["", "-wal", "-shm"] {
            // Not all of them need to be there.
            let _ = fs::remove_file(self.folder.path().join(format!("state.db{suffix}")));
        }
    }

    fn put_back(&self, copy: &Path) {
        self.delete_database();
        fs::copy(copy, self.database()).unwrap();
    }

    fn count(&self, table: &str) -> i64 {
        let database = Connection::open(self.database()).unwrap();
        let query = format!("SELECT count(*) FROM {table}");
        database.query_row(&query, [], |row| row.get(0)).unwrap()
    }

    fn record(&self) -> Value {
        serde_json::from_str(&self.desk.value(TRUST).unwrap()).unwrap()
    }
}

struct Bridge {
    ledger: Arc<Ledger>,
    keychain: Keychain,
}

impl Bridge {
    fn standing(&self) -> Standing {
        *self.ledger.standing().borrow()
    }

    async fn until(&self, standing: Standing) {
        self.ledger.standing().wait_for(|now| *now == standing).await.unwrap();
    }

    fn rules(&self) -> Vec<(String, String)> {
        let rules = self.ledger.rows(RowKind::Rule);
        rules.into_iter().map(|row| (row.key, row.body)).collect()
    }

    fn has_nothing(&self) -> bool {
        RowKind::ALL.iter().all(|kind| self.ledger.rows(*kind).is_empty())
    }
}

fn put(kind: RowKind, key: &str, body: &str) -> Change {
    let (key, body) = (key.to_owned(), body.to_owned());
    Change::Put(Row { kind, key, body })
}

fn rule(key: &str, body: &str) -> Change {
    put(RowKind::Rule, key, body)
}

fn review(key: &str) -> Change {
    put(RowKind::Review, key, "{}")
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[tokio::test]
async fn a_row_is_replaced_only_as_it_was_read() {
    let case = Case::new();
    let bridge = case.tray().await;
    let row = |key: &str, body: &str| Row {
        kind: RowKind::Rule,
        key: key.to_owned(),
        body: body.to_owned(),
    };
    let (read, next) = (row("a", "1"), row("a", "2"));
    bridge.ledger.write(vec![Change::Put(read.clone())]).await.unwrap();
    bridge.ledger.replace(&read, next.clone()).await.unwrap();
    assert_eq!(bridge.ledger.row(RowKind::Rule, "a"), Some(next.clone()));
    bridge.ledger.replace(&read, row("a", "3")).await.unwrap();
    assert_eq!(bridge.ledger.row(RowKind::Rule, "a"), Some(next.clone()));
    let gone = Change::Delete(RowKind::Rule, "a".to_owned());
    bridge.ledger.write(vec![gone]).await.unwrap();
    bridge.ledger.replace(&next, row("a", "4")).await.unwrap();
    assert_eq!(bridge.ledger.row(RowKind::Rule, "a"), None);
}

#[tokio::test]
async fn what_was_decided_is_there_after_a_restart_and_its_key_lies_in_the_keychain_alone() {
    let case = Case::decided().await;
    let record = case.record();
    assert_eq!(
        record["generation"],
        json!(2),
        "the tray's own mark, then the decisions"
    );
    assert_eq!(record["tray"], json!(true));
    assert!(!case.key_file().exists());
    let key = record["key"].as_str().unwrap();
    for entry in fs::read_dir(case.folder.path()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(key.len()).any(|part| part == key.as_bytes()));
    }

    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Verified);
    assert_eq!(bridge.rules(), pairs(&[("a", "1"), ("b", "2")]));
    assert!(bridge.ledger.row(RowKind::Review, "x").is_some());
    assert!(bridge.ledger.notice().is_none());
    bridge
        .ledger
        .write(vec![rule("a", "3"), Change::Delete(RowKind::Rule, "b".to_owned())])
        .await
        .unwrap();
    bridge.ledger.counted().await;
    assert_eq!(case.record()["generation"], json!(3));
    assert_eq!(case.tray().await.rules(), pairs(&[("a", "3")]));
}

#[tokio::test]
async fn whatever_is_changed_by_hand_is_noticed_and_nothing_counts_any_more() {
    let changes = [
        "UPDATE trust SET body = '9' WHERE key = 'a'",
        "UPDATE trust SET key = 'c' WHERE key = 'a'",
        "UPDATE trust SET kind = 'pin' WHERE key = 'a'",
        "UPDATE trust SET kind = 'unheard of' WHERE key = 'a'",
        "UPDATE trust SET mac = x'00' WHERE key = 'a'",
        "UPDATE trust SET mac = zeroblob(32) WHERE key = 'a'",
        "UPDATE trust SET mac = (SELECT mac FROM trust WHERE key = 'b') WHERE key = 'a'",
        "DELETE FROM trust WHERE key = 'a'",
        "DELETE FROM trust WHERE kind = 'setting'",
        "INSERT INTO trust VALUES ('rule', 'c', '3', zeroblob(32))",
        "INSERT INTO trust SELECT 'rule', 'c', body, mac FROM trust WHERE key = 'a'",
        "DELETE FROM trust",
        "DELETE FROM trust_head",
        "UPDATE trust_head SET generation = generation + 1",
        "UPDATE trust_head SET generation = -1",
        "UPDATE trust_head SET mac = zeroblob(32)",
    ];
    for change in changes {
        let case = Case::decided().await;
        case.by_hand(change);
        let bridge = case.tray().await;
        assert_eq!(bridge.standing(), Standing::Broken(Distrust::Tampered), "{change}");
        assert!(bridge.has_nothing(), "{change}");
        assert!(bridge.ledger.notice().is_some(), "{change}");
    }
}

#[tokio::test]
async fn rows_that_are_gone_and_older_copies_are_told_apart() {
    let case = Case::decided().await;
    let copy = case.copy("older.db");
    let bridge = case.tray().await;
    bridge.ledger.write(vec![rule("a", "narrower")]).await.unwrap();
    bridge.ledger.counted().await;
    drop(bridge);

    case.put_back(&copy);
    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Broken(Distrust::RolledBack));
    assert!(bridge.has_nothing());
    drop(bridge);

    case.delete_database();
    assert_eq!(case.tray().await.standing(), Standing::Broken(Distrust::Deleted));

    case.by_hand("DELETE FROM trust; DELETE FROM trust_head");
    assert_eq!(case.tray().await.standing(), Standing::Broken(Distrust::Deleted));

    case.by_hand("DROP TABLE trust");
    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Broken(Distrust::Unreadable));
    bridge.ledger.write(vec![rule("n", "1")]).await.unwrap();
    bridge.ledger.counted().await;
    assert_eq!(case.tray().await.rules(), pairs(&[("n", "1")]));

    case.delete_database();
    fs::write(case.database(), "no database at all").unwrap();
    assert_eq!(case.tray().await.standing(), Standing::Broken(Distrust::Deleted));
}

#[tokio::test]
async fn another_key_none_or_garbage_in_its_place_makes_the_rows_count_as_absent() {
    let other = Case::decided().await.desk.value(TRUST);
    for (value, distrust) in [
        (other, Distrust::Tampered),
        (None, Distrust::KeyMissing),
        (Some("{}".to_owned()), Distrust::Unreadable),
        (
            Some(r#"{"key":"AAAA","generation":1}"#.to_owned()),
            Distrust::Unreadable,
        ),
    ] {
        let case = Case::decided().await;
        case.desk.put(TRUST, value);
        let bridge = case.tray().await;
        assert_eq!(bridge.standing(), Standing::Broken(distrust));
        assert!(bridge.has_nothing());
    }
}

#[tokio::test]
async fn after_a_break_the_first_decision_begins_a_new_set_without_the_old_rows() {
    let case = Case::decided().await;
    let whole = case.copy("whole.db");
    let key = case.record()["key"].clone();
    case.by_hand("UPDATE trust SET body = '9' WHERE key = 'a'");
    let bridge = case.tray().await;
    bridge.ledger.write(vec![rule("n", "1")]).await.unwrap();
    assert_eq!(bridge.standing(), Standing::Verified);
    assert_eq!(bridge.rules(), pairs(&[("n", "1")]));
    assert!(bridge.ledger.notice().is_some(), "it is still told what happened");
    bridge.ledger.counted().await;
    assert_ne!(case.record()["key"], key);
    drop(bridge);

    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Verified);
    assert_eq!(bridge.rules(), pairs(&[("n", "1")]));
    assert!(bridge.ledger.notice().is_none());
    assert!(bridge.ledger.row(RowKind::Setting, TRAY_MARK).is_some());
    drop(bridge);

    case.put_back(&whole);
    let bridge = case.tray().await;
    assert_eq!(
        bridge.standing(),
        Standing::Broken(Distrust::Tampered),
        "the rows of the old key"
    );
    drop(bridge);
}

#[tokio::test]
async fn a_locked_keychain_leaves_everything_unknown_until_it_is_unlocked() {
    let case = Case::decided().await;
    case.desk.answers(Some(KeychainFault::Locked));
    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Unknown(KeychainState::Locked));
    // It tells that it holds a key; that does not make it open.
    assert_eq!(bridge.keychain.state().borrow().state, KeychainState::Locked);
    assert!(bridge.has_nothing());
    let refused = bridge.ledger.write(vec![rule("n", "1")]).await.unwrap_err();
    assert_eq!(refused, LedgerFault::Keychain(KeychainFault::Locked));
    assert_eq!(ApiError::from(refused).code, Code::KeychainUnavailable);

    case.desk.answers(None);
    bridge.keychain.look_again().await.unwrap();
    bridge.until(Standing::Verified).await;
    assert_eq!(bridge.rules(), pairs(&[("a", "1"), ("b", "2")]));
    bridge.ledger.write(vec![rule("n", "1")]).await.unwrap();
}

#[tokio::test]
async fn rows_that_are_changed_while_the_keychain_is_locked_are_noticed_when_it_opens() {
    let case = Case::decided().await;
    case.desk.answers(Some(KeychainFault::Locked));
    let bridge = case.tray().await;
    case.by_hand("UPDATE trust SET body = '9' WHERE key = 'a'");
    case.desk.answers(None);
    bridge.keychain.look_again().await.unwrap();
    bridge.until(Standing::Broken(Distrust::Tampered)).await;
    assert!(bridge.has_nothing());
}

#[tokio::test]
async fn a_decision_holds_while_the_keychain_is_locked_and_is_counted_afterwards() {
    let case = Case::decided().await;
    let bridge = case.tray().await;
    case.desk.answers(Some(KeychainFault::Locked));
    bridge.ledger.write(vec![rule("n", "1")]).await.unwrap();
    assert_eq!(bridge.rules().len(), 3);
    assert_eq!(bridge.standing(), Standing::Verified);
    let mut views = bridge.keychain.state();
    views
        .wait_for(|view| view.state == KeychainState::Locked)
        .await
        .unwrap();
    assert_eq!(case.record()["generation"], json!(2));

    case.desk.answers(None);
    bridge.keychain.look_again().await.unwrap();
    bridge.ledger.counted().await;
    assert_eq!(case.record()["generation"], json!(3));
}

#[tokio::test]
async fn a_crash_between_the_rows_and_their_count_costs_nothing() {
    let case = Case::decided().await;
    let before = case.desk.value(TRUST);
    let older = case.copy("older.db");
    let bridge = case.tray().await;
    bridge.ledger.write(vec![rule("n", "1")]).await.unwrap();
    bridge.ledger.counted().await;
    drop(bridge);
    case.desk.put(TRUST, before);

    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Verified);
    assert_eq!(bridge.rules().len(), 3);
    bridge.ledger.counted().await;
    assert_eq!(
        case.record()["generation"],
        json!(3),
        "what a crash left uncounted is counted"
    );
    drop(bridge);

    case.put_back(&older);
    assert_eq!(case.tray().await.standing(), Standing::Broken(Distrust::RolledBack));
}

#[tokio::test]
async fn a_crash_between_the_first_key_and_the_first_rows_leaves_a_fresh_home() {
    let case = Case::new();
    let bridge = case.headless(KeptIn::Keychain).await;
    bridge.ledger.write(vec![rule("a", "1")]).await.unwrap();
    bridge.ledger.counted().await;
    drop(bridge);
    let mut record = case.record();
    record["generation"] = json!(0);
    case.desk.put(TRUST, Some(record.to_string()));
    case.delete_database();
    let bridge = case.headless(KeptIn::Keychain).await;
    assert_eq!(bridge.standing(), Standing::Fresh);
    bridge.ledger.write(vec![rule("a", "1")]).await.unwrap();
    assert_eq!(bridge.standing(), Standing::Verified);
}

#[tokio::test]
async fn a_decision_that_cannot_be_stored_changes_nothing_and_says_so() {
    let case = Case::decided().await;
    let bridge = case.tray().await;
    case.by_hand(
        "CREATE TRIGGER no BEFORE INSERT ON trust WHEN NEW.key = 'second' BEGIN SELECT RAISE(ABORT, 'no room'); END",
    );
    let refused = bridge
        .ledger
        .write(vec![
            rule("first", "1"),
            Change::DeleteAll {
                kind: RowKind::Rule,
                key_prefix: "a".to_owned(),
            },
            rule("second", "2"),
        ])
        .await
        .unwrap_err();
    assert_eq!(ApiError::from(refused).code, Code::NotSaved);
    assert_eq!(bridge.rules(), pairs(&[("a", "1"), ("b", "2")]));
    case.by_hand("DROP TRIGGER no");
    drop(bridge);
    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Verified);
    assert_eq!(bridge.rules(), pairs(&[("a", "1"), ("b", "2")]));
}

#[tokio::test]
async fn rows_that_vanish_while_the_bridge_runs_are_all_there_again_after_the_next_decision() {
    let case = Case::decided().await;
    let bridge = case.tray().await;
    case.by_hand("DELETE FROM trust; DELETE FROM trust_head");
    bridge.ledger.write(vec![rule("n", "1")]).await.unwrap();
    bridge.ledger.counted().await;
    drop(bridge);
    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Verified);
    assert_eq!(bridge.rules(), pairs(&[("a", "1"), ("b", "2"), ("n", "1")]));
}

#[tokio::test]
async fn decisions_of_many_at_once_are_all_there_in_the_end() {
    let case = Case::decided().await;
    let bridge = case.tray().await;
    let writers: Vec<_> = (0..40)
        .map(|number| {
            let ledger = bridge.ledger.clone();
            tokio::spawn(async move { ledger.write(vec![rule(&format!("w{number:02}"), "")]).await })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    bridge.ledger.counted().await;
    assert_eq!(case.record()["generation"], json!(42));
    drop(bridge);
    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Verified);
    assert_eq!(bridge.rules().len(), 42);
}

#[tokio::test]
async fn without_a_keychain_the_person_may_decide_for_this_run_and_nothing_of_it_stays() {
    let case = Case::new();
    case.desk.answers(Some(KeychainFault::Absent));
    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Unknown(KeychainState::Absent));
    bridge.ledger.keep_until_quit();
    bridge.keychain.keep_until_quit();
    assert_eq!(bridge.standing(), Standing::ForThisRun);
    bridge.ledger.write(vec![rule("a", "1"), review("x")]).await.unwrap();
    bridge
        .ledger
        .write(vec![Change::Delete(RowKind::Rule, "a".to_owned()), rule("b", "2")])
        .await
        .unwrap();
    assert_eq!(bridge.rules(), pairs(&[("b", "2")]));
    case.desk.answers(None);
    assert_eq!((case.count("trust"), case.count("trust_head")), (0, 0));
    assert_eq!(case.desk.accounts(), [""; 0]);
    assert_eq!(bridge.standing(), Standing::ForThisRun, "until it quits");
    drop(bridge);
    let bridge = case.tray().await;
    assert!(bridge.rules().is_empty());
}

#[tokio::test]
async fn deciding_for_this_run_leaves_rows_that_could_not_be_verified_as_they_are() {
    let case = Case::decided().await;
    case.desk.answers(Some(KeychainFault::Locked));
    let bridge = case.tray().await;
    bridge.ledger.keep_until_quit();
    bridge.keychain.keep_until_quit();
    bridge.ledger.write(vec![rule("n", "1")]).await.unwrap();
    assert_eq!(bridge.rules(), pairs(&[("n", "1")]));
    drop(bridge);
    case.desk.answers(None);
    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Verified);
    assert_eq!(bridge.rules(), pairs(&[("a", "1"), ("b", "2")]));
}

#[tokio::test]
async fn verified_rows_stay_so_when_secrets_are_kept_in_memory_from_now_on() {
    let case = Case::decided().await;
    let bridge = case.tray().await;
    bridge.ledger.keep_until_quit();
    bridge.keychain.keep_until_quit();
    bridge.ledger.write(vec![rule("n", "1")]).await.unwrap();
    bridge.ledger.counted().await;
    drop(bridge);
    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Verified);
    assert_eq!(bridge.rules().len(), 3);
}

#[tokio::test]
async fn five_thousand_pins_are_written_and_verified_within_a_moment() {
    let case = Case::decided().await;
    let bridge = case.tray().await;
    let body = format!(r#"{{"schema":"{}"}}"#, "x".repeat(1000));
    let pins: Vec<_> = (0..5000)
        .map(|number| put(RowKind::Pin, &format!("server:{number}"), &body))
        .collect();
    let began = Instant::now();
    bridge.ledger.write(pins).await.unwrap();
    let written = began.elapsed();
    let began = Instant::now();
    bridge
        .ledger
        .write(vec![put(RowKind::Pin, "server:7", "{}")])
        .await
        .unwrap();
    let one = began.elapsed();
    bridge.ledger.counted().await;
    drop(bridge);
    let began = Instant::now();
    let bridge = case.tray().await;
    let opened = began.elapsed();
    assert_eq!(bridge.standing(), Standing::Verified);
    assert_eq!(bridge.ledger.rows(RowKind::Pin).len(), 5000);
    println!("5,000 written in {written:?}, one of them in {one:?}, all opened in {opened:?}");
    // Without optimisation; a release build takes a tenth of it.
    assert!(written < Duration::from_secs(10), "{written:?}");
    assert!(opened < Duration::from_secs(5), "{opened:?}");
}
