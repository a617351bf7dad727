//! Resources that are kept as files: whole or not there at all.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::Fake,
    home::Home,
    http::{Answer, Connection},
    process, program,
    wait::{SOON, eventually},
};
use serde_json::json;

/// A bridge with one upstream named `fake`.
fn serving(fake: Fake) -> Daemon {
    let home = Home::new();
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    bridge
}

fn standard() -> Daemon {
    serving(Fake::new("ok").option("offers", "standard"))
}

fn save(bridge: &Daemon, uri: &str) -> Answer {
    bridge.owner_post(
        "/mcp/resources/read",
        &json!({"server": "fake", "uri": uri, "save": true}),
    )
}

fn results_folder(home: &Home) -> PathBuf {
    home.neuron().join("connect/results")
}

/// Files in the folder of results, hidden ones too.
fn results(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(results_folder(home)).expect("the folder is there");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// What the fake puts at `fake://blob`.
fn blob(count: usize) -> Vec<u8> {
    (0..count).map(|n| (n.wrapping_mul(167) >> 3) as u8).collect()
}

#[test]
fn a_large_binary_resource_is_saved_byte_for_byte_in_a_private_file() {
    use std::os::unix::fs::PermissionsExt;
    let count = 7_654_321;
    let bridge = serving(Fake::new("ok").option("offers", "standard").option("bytes", count));
    let answer = save(&bridge, "fake://blob").ok();
    assert_eq!(answer["bytes"], count);
    let path = PathBuf::from(answer["path"].as_str().unwrap());
    assert!(
        path.is_absolute() && path.starts_with(results_folder(&bridge.home)),
        "{path:?}"
    );
    assert!(fs::read(&path).unwrap() == blob(count), "the same bytes");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(results(&bridge.home), std::slice::from_ref(&path));

    let id = answer["result_id"].as_str().unwrap();
    let message = bridge
        .owner_get(&format!("/mcp/results/{id}"))
        .refused(400, "bad_request");
    assert!(message.contains(path.to_str().unwrap()), "{message}");
    bridge.get(&format!("/mcp/results/{id}")).refused(404, "not_found");

    let text = save(&bridge, "fake://ünïcode/日本 x").ok();
    assert_eq!(fs::read_to_string(text["path"].as_str().unwrap()).unwrap(), "weit weg");
    assert_eq!(text["bytes"], 8);
    assert_eq!(
        fs::read(save(&bridge, "fake://escaped").ok()["path"].as_str().unwrap()).unwrap(),
        [255, 254, 253]
    );
    assert_ne!(
        save(&bridge, "fake://blob").ok()["path"],
        answer["path"],
        "nothing is overwritten"
    );
}

#[test]
fn what_cannot_be_saved_leaves_no_file() {
    let bridge = standard();
    let message = save(&bridge, "fake://broken").refused(502, "upstream_error");
    assert!(message.contains("base64"), "{message}");
    let message = save(&bridge, "fake://several").refused(400, "bad_request");
    assert!(
        message.contains("fake://a") && message.contains("fake://b"),
        "{message}"
    );
    save(&bridge, "fake://none").refused(502, "upstream_error");
    save(&bridge, "fake://not-here").refused(404, "not_found");
    assert_eq!(results(&bridge.home), [""; 0].map(PathBuf::from));
}

/// A disk of one megabyte, mounted at a folder for one test.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn at(folder: &Path) -> Self {
        fs::create_dir_all(folder).expect("the folder can be made");
        let mount = Command::new(program::system("mount"))
            .args(["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs"])
            .arg(folder)
            .status();
        assert!(mount.expect("mount starts").success(), "root may mount a disk");
        Self(folder.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a bridge may still have its files open.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_said_so_and_leaves_nothing_half_written() {
    if !process::may_become_another_user() {
        return;
    }
    let home = Home::new();
    let disk = SmallDisk::at(&results_folder(&home));
    let fake = Fake::new("ok").option("offers", "standard").option("bytes", 3_000_000);
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    let message = save(&bridge, "fake://blob").refused(507, "not_saved");
    assert!(message.contains("results"), "{message}");
    assert_eq!(results(&bridge.home), [""; 0].map(PathBuf::from));
    assert_eq!(
        save(&bridge, "fake://text").ok()["bytes"],
        10,
        "what has room is saved all the same"
    );
    let home = bridge.terminate();
    // A folder that is mounted on cannot be removed.
    drop(disk);
    drop(home);
}

#[test]
fn a_folder_that_cannot_be_written_is_said_so() {
    let bridge = standard();
    fs::remove_dir_all(results_folder(&bridge.home)).unwrap();
    let message = save(&bridge, "fake://text").refused(507, "not_saved");
    assert!(message.contains("results"), "{message}");
    let read = json!({"server": "fake", "uri": "fake://text"});
    assert_eq!(bridge.owner_post("/mcp/resources/read", &read).status, 200);
}

#[test]
fn a_file_that_a_killed_bridge_was_writing_is_swept_at_the_next_start() {
    let bridge = standard();
    let kept = save(&bridge, "fake://text").ok();
    let folder = results_folder(&bridge.home);
    fs::write(folder.join(".unfinished-x7"), "half").unwrap();
    let bridge = Daemon::start_in(bridge.kill9(), Setup::default());
    assert_eq!(results(&bridge.home), [PathBuf::from(kept["path"].as_str().unwrap())]);
}

#[test]
fn bridges_killed_while_they_save_leave_whole_files_only() {
    let count = 6_000_000;
    let fake = Fake::new("ok").option("offers", "standard").option("bytes", count);
    let mut bridge = serving(fake);
    for round in 0..5 {
        let address = bridge.local();
        let before = results(&bridge.home).len();
        let saver = std::thread::spawn(move || {
            let body = br#"{"server":"fake","uri":"fake://blob","save":true}"#;
            let mut connection = Connection::try_open(&address).ok()?;
            connection.try_send("POST", "/mcp/resources/read", &[], body).ok()
        });
        if round > 0 {
            // Killed as soon as a file of any name appears, which is in the middle of writing it.
            eventually("a file appears", SOON, || {
                (results(&bridge.home).len() > before).then_some(())
            });
        }
        let home = bridge.kill9();
        let _ = saver.join();
        bridge = Daemon::start_in(home, Setup::default());
        for path in results(&bridge.home) {
            assert_eq!(fs::metadata(&path).unwrap().len(), count as u64, "{path:?}");
        }
    }
}
