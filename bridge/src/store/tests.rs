use std::fs;

use tempfile::TempDir;

use super::*;
use crate::{
    config::{AutoApprove, Connector, Launch, Start, StdioLaunch, Timeouts},
    ids::ConnectorId,
    snapshot::{ActivityFilter, Era},
    trust::{LaunchContext, LaunchIdentity},
};

fn key(connector: &str, command: &str) -> SnapshotKey {
    let id = ConnectorId::parse(connector).unwrap();
    let connector = Connector {
        id: id.clone(),
        enabled: true,
        name: None,
        description: None,
        launch: Launch::Stdio(StdioLaunch {
            command: command.into(),
            args: Vec::new(),
            env: indexmap::IndexMap::new(),
            cwd: None,
            env_file: None,
        }),
        auto_approve: AutoApprove::None,
        disabled_tools: Vec::new(),
        timeouts: Timeouts::default(),
        start: Start::OnDemand,
    };
    let context = LaunchContext {
        env: &|_| None,
        home: Path::new("/home/p"),
        env_file: None,
    };
    SnapshotKey {
        connector: id,
        identity: LaunchIdentity::of(&connector, &context),
    }
}

fn snapshot(tools: &str, saved_at: u64) -> StoredSnapshot {
    StoredSnapshot {
        era: Era::Modern,
        protocol: Some("2026-07-28".into()),
        server_info: Some(r#"{"name":"x"}"#.into()),
        instructions: None,
        tools: tools.into(),
        resources: Some(r#"[{"uri":"a:b"}]"#.into()),
        templates: Some("[]".into()),
        prompts: None,
        saved_at,
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_snapshot_is_there_again_after_a_restart_byte_for_byte() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("connect/state.db");
    let saved = snapshot(r#"[{"name":"a","n":1.10}]"#, 7);
    Store::open(&path)
        .unwrap()
        .save_snapshot(&key("x", "a"), &saved)
        .unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.snapshot(&key("x", "a")).unwrap(), Some(saved));
    assert_eq!(store.era(&key("x", "a")).unwrap(), Some(Era::Modern));
    assert!(store.take_notices().is_empty());
}

#[test]
fn a_database_from_before_the_other_lists_keeps_its_tools() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("state.db");
    let mut old = Connection::open(&path).unwrap();
    prepare(&mut old, &STEPS[..1]).unwrap();
    // `prepare` counts all steps; this one had taken one.
    old.pragma_update(None, "user_version", 1).unwrap();
    let key = key("x", "a");
    let row = [key.connector.as_str(), &key.identity.to_string()].map(str::to_owned);
    old.execute(
        "INSERT INTO snapshot (connector, identity, era, tools, saved_at) VALUES (?1, ?2, 'legacy', '[1]', 5)",
        row,
    )
    .unwrap();
    drop(old);
    let store = Store::open(&path).unwrap();
    let found = store.snapshot(&key).unwrap().unwrap();
    assert_eq!(
        (found.tools.as_str(), found.era, found.resources),
        ("[1]", Era::Legacy, None)
    );
    store.save_snapshot(&key, &snapshot("[2]", 6)).unwrap();
    let renewed = Store::open(&path).unwrap().snapshot(&key).unwrap().unwrap();
    assert_eq!(renewed, snapshot("[2]", 6));
}

#[test]
fn activity_from_before_scripts_were_kept_is_still_told() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("state.db");
    let mut old = Connection::open(&path).unwrap();
    prepare(&mut old, &STEPS[..5]).unwrap();
    // `prepare` counts all steps; this one had taken five.
    old.pragma_update(None, "user_version", 5).unwrap();
    old.execute_batch(
        "INSERT INTO activity (at, kind, server, what, caller, program, pid, outcome, allowed_by, warnings)
         VALUES (5, 'sign_in', 'a', '{\"kind\":\"sign_in\",\"server\":\"a\"}', 'walk_in', 'python3', 7, 'ok',
                 '{\"by\":\"nobody\"}', 0)",
    )
    .unwrap();
    drop(old);
    let store = Store::open(&path).unwrap();
    let page = store.activity(&ActivityFilter::default(), ActivityCursor::Newest, 10);
    let who = &page.unwrap().entries[0].record.who;
    assert_eq!((who.pid, who.program_script.as_deref()), (Some(7), None));
}

#[test]
fn a_list_that_was_not_read_this_time_stays_saved() {
    let home = TempDir::new().unwrap();
    let store = Store::open(home.path().join("state.db")).unwrap();
    let key = key("x", "a");
    store.save_snapshot(&key, &snapshot("[1]", 1)).unwrap();
    let partial = StoredSnapshot {
        resources: None,
        templates: Some("[2]".into()),
        ..snapshot("[3]", 2)
    };
    store.save_snapshot(&key, &partial).unwrap();
    let found = store.snapshot(&key).unwrap().unwrap();
    assert_eq!(found.resources, snapshot("", 0).resources);
    assert_eq!((found.templates.as_deref(), found.tools.as_str()), (Some("[2]"), "[3]"));
}

#[test]
fn another_identity_or_another_connector_has_no_part_in_it() {
    let home = TempDir::new().unwrap();
    let store = Store::open(home.path().join("state.db")).unwrap();
    store.save_snapshot(&key("x", "a"), &snapshot("[1]", 1)).unwrap();
    assert_eq!(store.snapshot(&key("x", "b")).unwrap(), None);
    assert_eq!(store.snapshot(&key("y", "a")).unwrap(), None);
    store.save_snapshot(&key("y", "a"), &snapshot("[2]", 2)).unwrap();
    store.save_snapshot(&key("x", "a"), &snapshot("[3]", 3)).unwrap();
    assert_eq!(store.snapshot(&key("x", "a")).unwrap().unwrap().tools, "[3]");
    store.remove_snapshot(&key("x", "a").connector).unwrap();
    assert_eq!(store.snapshot(&key("x", "a")).unwrap(), None);
    assert_eq!(store.era(&key("x", "a")).unwrap(), None);
    assert_eq!(store.snapshot(&key("y", "a")).unwrap().unwrap().tools, "[2]");
}

#[test]
fn an_undone_edit_finds_its_tools_but_old_identities_do_not_pile_up() {
    let home = TempDir::new().unwrap();
    let store = Store::open(home.path().join("state.db")).unwrap();
    let keys: Vec<_> = (0..8).map(|n| key("x", &n.to_string())).collect();
    for (at, key) in (0..).zip(&keys) {
        store.save_snapshot(key, &snapshot("[]", at)).unwrap();
    }
    let kept: Vec<_> = keys.iter().map(|key| store.snapshot(key).unwrap().is_some()).collect();
    assert_eq!(kept, [false, false, false, true, true, true, true, true]);
    // The clock may have been set back: what was saved just now stays all the same.
    store.save_snapshot(&keys[0], &snapshot("[]", 0)).unwrap();
    assert!(store.snapshot(&keys[0]).unwrap().is_some());
}

#[test]
fn an_era_is_remembered_without_a_snapshot_and_can_be_forgotten() {
    let home = TempDir::new().unwrap();
    let store = Store::open(home.path().join("state.db")).unwrap();
    let key = key("x", "a");
    assert_eq!(store.era(&key).unwrap(), None);
    store.remember_era(&key, Some(Era::Legacy)).unwrap();
    assert_eq!(store.era(&key).unwrap(), Some(Era::Legacy));
    store.remember_era(&key, None).unwrap();
    assert_eq!(store.era(&key).unwrap(), None);
}

#[test]
fn a_file_that_is_no_database_is_set_aside_with_a_notice() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("state.db");
    for round in 1..=2 {
        fs::write(&path, "no database at all, ".repeat(500)).unwrap();
        fs::write(home.path().join("state.db-wal"), "old log").unwrap();
        let store = Store::open(&path).unwrap();
        let notices = store.take_notices();
        assert_eq!(notices.len(), 1);
        assert!(notices[0].message.contains(&format!("state.db.damaged-{round}")));
        assert!(store.take_notices().is_empty());
        store.save_snapshot(&key("x", "a"), &snapshot("[]", 1)).unwrap();
        drop(store);
    }
    assert!(
        fs::read(home.path().join("state.db.damaged-1"))
            .unwrap()
            .starts_with(b"no database")
    );
    assert!(names(home.path()).contains(&"state.db.damaged-2".to_owned()));
}

#[test]
fn damage_found_while_running_costs_the_snapshots_and_nothing_else() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("state.db");
    let store = Store::open(&path).unwrap();
    let large = format!("[{}]", "\"x\",".repeat(50_000));
    store.save_snapshot(&key("x", "a"), &snapshot(&large, 1)).unwrap();
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..].fill(0xff);
    fs::write(&path, bytes).unwrap();

    let store = Store::open(&path).unwrap();
    assert_eq!(store.snapshot(&key("x", "a")).unwrap(), None);
    assert_eq!(store.take_notices().len(), 1);
    store.save_snapshot(&key("x", "a"), &snapshot("[]", 2)).unwrap();
    assert_eq!(store.snapshot(&key("x", "a")).unwrap().unwrap().saved_at, 2);
}

#[test]
fn a_newer_or_foreign_database_is_left_alone_and_named() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("state.db");
    drop(Store::open(&path).unwrap());
    let set = |pragma, value: i64| {
        Connection::open(&path)
            .unwrap()
            .pragma_update(None, pragma, value)
            .unwrap()
    };
    set("user_version", 99);
    let message = Store::open(&path).err().unwrap().to_string();
    assert!(
        message.contains("newer version") && message.contains("state.db"),
        "{message}"
    );
    set("application_id", 1);
    let message = Store::open(&path).err().unwrap().to_string();
    assert!(message.contains("another program"), "{message}");
    assert!(!names(home.path()).iter().any(|name| name.contains("damaged")));
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_in_words() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("state.db");
    fs::create_dir(&path).unwrap();
    let message = Store::open(&path).err().unwrap().to_string();
    assert!(message.contains("state.db cannot be used"), "{message}");
    fs::write(home.path().join("file"), "").unwrap();
    assert!(Store::open(home.path().join("file/state.db")).is_err());
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_the_database_or_its_folder() {
    use std::os::unix::fs::PermissionsExt;
    let home = TempDir::new().unwrap();
    let folder = home.path().join("connect");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.join("state.db");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
    let store = Store::open(&path).unwrap();
    store.save_snapshot(&key("x", "a"), &snapshot("[]", 1)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for name in names(&folder) {
        assert_eq!(mode(&folder.join(&name)), 0o600, "{name}");
    }
    assert!(names(&folder).len() > 1, "the log is there too");
}
