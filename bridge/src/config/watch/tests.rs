use std::{fs, time::Duration};

use notify::event::{CreateKind, DataChange, ModifyKind};

use super::*;

/// Long enough for any machine; a test that passes never waits for it.
const DEADLINE: Duration = Duration::from_secs(20);

struct Watched {
    folder: tempfile::TempDir,
    path: PathBuf,
    _watcher: Watcher,
    signals: mpsc::Receiver<()>,
}

impl Watched {
    fn start(prepare: impl FnOnce(&Path) -> PathBuf) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = prepare(folder.path());
        let (watcher, signals) = Watcher::start(&path).unwrap();
        Self {
            folder,
            path,
            _watcher: watcher,
            signals,
        }
    }

    fn plain() -> Self {
        Self::start(|folder| {
            let path = folder.join("connectors.json");
            fs::write(&path, "0").unwrap();
            path
        })
    }

    async fn signal(&mut self) {
        tokio::time::timeout(DEADLINE, self.signals.recv())
            .await
            .expect("a change was not noticed")
            .unwrap();
    }

    /// Renames a new file over `path`.
    fn rename_over(&self, path: &Path, text: &str) {
        let temporary = self.folder.path().join("editor.tmp");
        fs::write(&temporary, text).unwrap();
        fs::rename(&temporary, path).unwrap();
    }
}

#[tokio::test]
async fn writing_in_place_is_noticed() {
    let mut watched = Watched::plain();
    fs::write(&watched.path, "1").unwrap();
    watched.signal().await;
}

#[tokio::test]
async fn renaming_over_the_file_is_noticed_each_time() {
    let mut watched = Watched::plain();
    for text in ["1", "2", "3"] {
        watched.rename_over(&watched.path.clone(), text);
        watched.signal().await;
    }
}

#[tokio::test]
async fn deleting_and_creating_the_file_is_noticed() {
    let mut watched = Watched::plain();
    fs::remove_file(&watched.path).unwrap();
    watched.signal().await;
    fs::write(&watched.path, "1").unwrap();
    watched.signal().await;
}

#[tokio::test]
async fn a_file_that_appears_is_noticed_even_if_its_folders_appear_first() {
    let mut watched = Watched::start(|folder| folder.join("a/b/connectors.json"));
    fs::create_dir_all(watched.folder.path().join("a/b")).unwrap();
    fs::write(&watched.path, "1").unwrap();
    watched.signal().await;
    fs::write(&watched.path, "2").unwrap();
    watched.signal().await;
}

#[tokio::test]
async fn a_folder_that_is_deleted_and_made_again_is_watched_again() {
    let mut watched = Watched::start(|folder| {
        fs::create_dir(folder.join("home")).unwrap();
        folder.join("home/connectors.json")
    });
    let home = watched.folder.path().join("home");
    for round in ["1", "2"] {
        fs::write(&watched.path, round).unwrap();
        watched.signal().await;
        fs::remove_dir_all(&home).unwrap();
        watched.signal().await;
        fs::create_dir(&home).unwrap();
        watched.signal().await;
    }
    fs::rename(&home, watched.folder.path().join("away")).unwrap();
    watched.signal().await;
    fs::rename(watched.folder.path().join("away"), &home).unwrap();
    watched.signal().await;
    fs::write(&watched.path, "3").unwrap();
    watched.signal().await;
}

#[tokio::test]
async fn files_of_other_names_and_reading_give_no_signal() {
    let mut watched = Watched::plain();
    for name in [
        "connectors.json.backup.1",
        "connectors.json.bak",
        ".connectors.json.tmp",
        "xconnectors.json",
    ] {
        fs::write(watched.folder.path().join(name), "x").unwrap();
    }
    fs::read(&watched.path).unwrap();
    // The events before this one were handled before it, so a second signal could only be theirs.
    fs::write(&watched.path, "1").unwrap();
    let began = Instant::now();
    watched.signal().await;
    assert!(began.elapsed() >= QUIET);
    assert!(watched.signals.try_recv().is_err());
}

#[test]
fn only_exact_names_and_real_changes_mean_something() {
    let names = Names {
        files: [PathBuf::from("/h/connectors.json")].into(),
        folders: [PathBuf::from("/h")].into(),
    };
    let write = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    let create = EventKind::Create(CreateKind::Any);
    for (kind, path, meaning) in [
        (write, "/h/connectors.json", Meaning::Content),
        (
            EventKind::Access(AccessKind::Close(AccessMode::Write)),
            "/h/connectors.json",
            Meaning::Content,
        ),
        (
            EventKind::Access(AccessKind::Open(AccessMode::Any)),
            "/h/connectors.json",
            Meaning::Nothing,
        ),
        (
            EventKind::Access(AccessKind::Close(AccessMode::Read)),
            "/h/connectors.json",
            Meaning::Nothing,
        ),
        (create, "/h/connectors.json", Meaning::Place),
        (create, "/h/connectors.json.backup.1", Meaning::Nothing),
        (create, "/h/connectors.jso", Meaning::Nothing),
        (create, "/h/x/connectors.json", Meaning::Nothing),
        (create, "/h", Meaning::Place),
        (write, "/h", Meaning::Nothing),
    ] {
        assert_eq!(names.meaning(kind, Path::new(path)), meaning, "{kind:?} {path}");
    }
}

#[tokio::test]
async fn a_hundred_saves_in_a_second_give_few_signals_and_the_last_one_is_heard() {
    let mut watched = Watched::plain();
    let path = watched.path.clone();
    let saves = tokio::spawn(async move {
        let mut pace = tokio::time::interval(Duration::from_millis(10));
        for round in 0..100 {
            pace.tick().await;
            fs::write(&path, round.to_string()).unwrap();
        }
    });
    let mut signals = 0;
    loop {
        watched.signal().await;
        signals += 1;
        if fs::read_to_string(&watched.path).unwrap() == "99" {
            break;
        }
    }
    saves.await.unwrap();
    assert!(signals <= 3, "{signals} signals");
}

#[cfg(unix)]
mod symlinks {
    use std::os::unix::fs::symlink;

    use super::*;

    fn linked() -> Watched {
        Watched::start(|folder| {
            for name in ["home", "first", "second"] {
                fs::create_dir(folder.join(name)).unwrap();
                fs::write(folder.join(name).join("c.json"), name).unwrap();
            }
            symlink("../first/c.json", folder.join("home/connectors.json")).unwrap();
            folder.join("home/connectors.json")
        })
    }

    #[tokio::test]
    async fn editing_the_target_of_a_symlink_is_noticed() {
        let mut watched = linked();
        let target = watched.folder.path().join("first/c.json");
        fs::write(&target, "1").unwrap();
        watched.signal().await;
        watched.rename_over(&target, "2");
        watched.signal().await;
    }

    #[tokio::test]
    async fn swapping_a_symlink_is_noticed_and_its_new_target_watched() {
        let mut watched = linked();
        let swapped = watched.folder.path().join("home/swap");
        symlink("../second/c.json", &swapped).unwrap();
        fs::rename(&swapped, &watched.path).unwrap();
        watched.signal().await;
        fs::write(watched.folder.path().join("second/c.json"), "1").unwrap();
        watched.signal().await;
    }

    #[tokio::test]
    async fn a_target_that_appears_later_is_noticed() {
        let mut watched = Watched::start(|folder| {
            symlink("later/c.json", folder.join("connectors.json")).unwrap();
            folder.join("connectors.json")
        });
        fs::create_dir(watched.folder.path().join("later")).unwrap();
        watched.signal().await;
        fs::write(watched.folder.path().join("later/c.json"), "1").unwrap();
        watched.signal().await;
    }
}

#[tokio::test]
async fn dropping_the_watcher_ends_the_signals() {
    let Watched {
        folder,
        path,
        _watcher,
        mut signals,
    } = Watched::plain();
    drop(_watcher);
    fs::write(&path, "1").unwrap();
    assert_eq!(tokio::time::timeout(DEADLINE, signals.recv()).await.unwrap(), None);
    drop(folder);
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_over_300_ms_after_its_last_event_and_at_most_2_s_after_its_first() {
    let ms = Duration::from_millis;
    let start = Instant::now();
    let mut debounce = Debounce::default();
    assert_eq!(debounce.due(), None);
    debounce.event(start);
    assert_eq!(debounce.due(), Some(start + ms(300)));
    debounce.event(start + ms(200));
    assert_eq!(debounce.due(), Some(start + ms(500)));
    for at in (400..2000).step_by(200) {
        debounce.event(start + ms(at));
    }
    assert_eq!(debounce.due(), Some(start + ms(2000)));
    debounce = Debounce::default();
    debounce.event(start + ms(2100));
    assert_eq!(debounce.due(), Some(start + ms(2400)));
}
