use tempfile::TempDir;

use super::*;

fn at(day: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + day * 24 * 60 * 60)
}

fn put(store: &ResultStore, text: &str, day: u64) -> ResultId {
    let id = ResultId::draw().unwrap();
    store.put(&id, "walk-in", text, at(day)).unwrap();
    id
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn is_there(store: &ResultStore, id: &ResultId) -> bool {
    store.read(id.as_str(), "walk-in", 0, 1).is_ok()
}

#[test]
fn a_result_is_read_in_pieces_by_characters() {
    let folder = TempDir::new().unwrap();
    let store = ResultStore::open(folder.path()).unwrap();
    let text: String = "aä日🦀".repeat(60_000);
    let id = put(&store, &text, 0);
    let mut whole = String::new();
    while (whole.chars().count() as u64) < 240_000 {
        let piece = store
            .read(id.as_str(), "walk-in", whole.chars().count() as u64, 70_001)
            .unwrap();
        assert_eq!(piece.total, 240_000);
        assert!(!piece.text.is_empty());
        whole.push_str(&piece.text);
    }
    assert!(whole == text);
    let read = |offset, limit| store.read(id.as_str(), "walk-in", offset, limit).unwrap().text;
    assert_eq!(read(239_999, 10), "🦀");
    assert_eq!(read(1, 2), "ä日");
    for (offset, limit) in [(240_000, 5), (u64::MAX, u64::MAX), (0, 0)] {
        assert_eq!(read(offset, limit), "");
    }
    assert_eq!(read(0, u64::MAX).chars().count() as u64, MAX_PIECE_CHARS);
}

#[test]
fn only_the_caller_whose_call_made_it_reads_it() {
    let folder = TempDir::new().unwrap();
    let store = ResultStore::open(folder.path()).unwrap();
    let id = put(&store, "mine", 0);
    let not_found = |store: &ResultStore, id: &str, caller: &str| {
        matches!(store.read(id, caller, 0, 9), Err(ResultError::NotFound))
    };
    assert!(not_found(&store, id.as_str(), "owner"));
    assert!(not_found(&store, ResultId::draw().unwrap().as_str(), "walk-in"));
    for hostile in ["", "../../etc/passwd", &"A".repeat(32)] {
        assert!(not_found(&store, hostile, "walk-in"));
    }
    let after_restart = ResultStore::open(folder.path()).unwrap();
    assert!(not_found(&after_restart, id.as_str(), "walk-in"));
    fs::remove_file(store.path(&id)).unwrap();
    assert!(not_found(&store, id.as_str(), "walk-in"));
}

#[test]
fn after_seven_days_a_result_is_gone_also_one_of_an_earlier_run() {
    let folder = TempDir::new().unwrap();
    let old = put(&ResultStore::open(folder.path()).unwrap(), "old", 0);
    let store = ResultStore::open(folder.path()).unwrap();
    let (week, fresh, ahead) = (
        put(&store, "week", 1),
        put(&store, "fresh", 7),
        put(&store, "ahead", 30),
    );
    fs::write(folder.path().join("notes.txt"), "the person's own").unwrap();
    store.prune(at(8));
    assert!(!store.path(&old).exists());
    assert!(is_there(&store, &week) && is_there(&store, &fresh) && is_there(&store, &ahead));
    store.prune(at(9));
    assert!(!is_there(&store, &week) && is_there(&store, &fresh));
    assert!(folder.path().join("notes.txt").exists());
}

#[test]
fn the_oldest_results_make_room_within_the_quota() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("other"), "x".repeat(10)).unwrap();
    let store = ResultStore::within(folder.path().to_owned(), Limits { bytes: 100, files: 9 }).unwrap();
    let [second, first, third] = [(40, 2), (40, 1), (10, 3)].map(|(size, day)| put(&store, &"x".repeat(size), day));
    let fourth = put(&store, &"x".repeat(40), 4);
    assert!(!is_there(&store, &first));
    assert!(is_there(&store, &second) && is_there(&store, &third) && is_there(&store, &fourth));
    let too_large = store.put(&ResultId::draw().unwrap(), "walk-in", &"x".repeat(91), at(5));
    assert!(matches!(too_large, Err(ResultError::Full { .. })));
    assert!(
        is_there(&store, &second),
        "nothing was sacrificed for what does not fit"
    );
    assert!(folder.path().join("other").exists());
}

#[test]
fn the_oldest_results_make_room_within_the_number_of_files() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("other"), "the person's own").unwrap();
    let limits = Limits {
        bytes: 10_000,
        files: 4,
    };
    let store = ResultStore::within(folder.path().to_owned(), limits).unwrap();
    let [second, first, third] = [2, 1, 3].map(|day| put(&store, "x", day));
    let fourth = put(&store, "x", 4);
    assert!(!is_there(&store, &first) && files(folder.path()) == 4);
    let store = ResultStore::within(folder.path().to_owned(), limits).unwrap();
    put(&store, "x", 5);
    for (id, there) in [(&second, false), (&third, true), (&fourth, true)] {
        assert_eq!(
            store.path(id).exists(),
            there,
            "{id:?}: results of an earlier run count too"
        );
    }
    assert!(folder.path().join("other").exists() && files(folder.path()) == 4);
}

#[test]
fn keeping_a_result_does_not_look_through_the_folder() {
    let folder = TempDir::new().unwrap();
    let limits = Limits { bytes: 100, files: 9 };
    let store = ResultStore::within(folder.path().to_owned(), limits).unwrap();
    // It would count if it was seen.
    fs::write(folder.path().join("large"), "x".repeat(90)).unwrap();
    let kept = put(&store, &"x".repeat(50), 1);
    put(&store, &"x".repeat(50), 2);
    assert!(is_there(&store, &kept));
}

#[test]
fn an_existing_file_is_never_overwritten_and_nothing_half_written_stays() {
    let folder = TempDir::new().unwrap();
    let store = ResultStore::open(folder.path()).unwrap();
    let id = put(&store, "first", 0);
    assert!(store.put(&id, "walk-in", "second", at(0)).is_err());
    assert_eq!(store.read(id.as_str(), "walk-in", 0, 99).unwrap().text, "first");
    assert_eq!(files(folder.path()), 1);
    fs::write(folder.path().join(format!("{UNFINISHED}abc")), "half").unwrap();
    ResultStore::open(folder.path()).unwrap();
    assert_eq!(files(folder.path()), 1);
}

#[cfg(unix)]
#[test]
fn a_result_is_private_and_no_link_is_followed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let home = TempDir::new().unwrap();
    let folder = home.path().join("connect/results");
    let store = ResultStore::open(&folder).unwrap();
    let id = put(&store, "text", 0);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&store.path(&id))), (0o700, 0o600));
    fs::write(home.path().join("secret"), "secret").unwrap();
    fs::remove_file(store.path(&id)).unwrap();
    symlink(home.path().join("secret"), store.path(&id)).unwrap();
    assert!(store.read(id.as_str(), "walk-in", 0, 9).is_err());
}

#[test]
fn names_are_random() {
    let (a, b) = (ResultId::draw().unwrap(), ResultId::draw().unwrap());
    assert_ne!(a, b);
    assert_eq!(a.as_str().len(), 32);
}
