//! The files server against paths, links and races that would lead out of its folder.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod files_server;

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::json;
use tempfile::TempDir;

use files_server::*;

#[test]
fn no_path_leads_out() {
    let outside = Outside::new();
    let mut server = Server::ready(&outside.folder);
    let secret = outside.secret.to_str().unwrap();
    let in_url = format!("file://{secret}");
    let paths = [
        "..",
        "../secret.txt",
        "./../secret.txt",
        "sub/../../secret.txt",
        "sub/../../folder/../secret.txt",
        "..//secret.txt",
        secret,
        &format!("/{secret}"),
        &format!("{}/../secret.txt", outside.folder.display()),
        "/etc/passwd",
        "/proc/self/root/etc/passwd",
        "~/secret.txt",
        "",
        "a\0/../../secret.txt",
        // Links: to a file, to a folder, through a chain, absolute, up and over.
        "file-link",
        "dir-link/secret.txt",
        "chain/secret.txt",
        "up/secret.txt",
        "sub/up-two/secret.txt",
        "self-proc/root/etc/passwd",
        // No traversal here, whatever a decoder would make of it.
        "%2e%2e/secret.txt",
        "..%2fsecret.txt",
        "..\\secret.txt",
        &in_url,
    ];
    for path in paths {
        for (tool, arguments) in [
            ("read_text_file", json!({"path": path})),
            ("read_media_file", json!({"path": path})),
            ("read_text_file", json!({"path": path, "tail": 1})),
            ("get_file_info", json!({"path": path})),
            ("list_directory", json!({"path": path})),
            ("directory_tree", json!({"path": path})),
            ("search_files", json!({"path": path, "pattern": "**"})),
            (
                "edit_file",
                json!({"path": path, "edits": [{"oldText": "SECRET", "newText": "x"}]}),
            ),
            (
                "move_file",
                json!({"source": path, "destination": format!("stolen-{tool}", tool = "x")}),
            ),
        ] {
            let answer = server.call(tool, arguments);
            // A link itself may be renamed: what it leads to stays where it is, out of reach.
            if tool == "move_file" && path.ends_with("-link") {
                server
                    .call("move_file", json!({"source": "stolen-x", "destination": path}))
                    .unwrap();
                continue;
            }
            let why = answer.expect_err(&format!("{tool} {path:?}"));
            assert!(why.contains(": ") && !why.contains("SECRET"), "{tool} {path:?}: {why}");
        }
        let many = server.call("read_multiple_files", json!({"paths": [path]})).unwrap();
        assert!(
            many.contains("Error - ") && !many.contains("SECRET"),
            "{path:?}: {many}"
        );
    }
    outside.is_untouched();
}

#[test]
fn nothing_is_written_or_moved_outside() {
    let outside = Outside::new();
    let mut server = Server::ready(&outside.folder);
    server
        .call("write_file", json!({"path": "mine.txt", "content": "mine"}))
        .unwrap();
    let new = outside.base.path().join("new.txt");
    let new = new.to_str().unwrap();
    for path in [
        "../new.txt",
        new,
        "dir-link/new.txt",
        "up/new.txt",
        "sub/up-two/new.txt",
        "file-link",
        "dangling",
    ] {
        let written = server.call("write_file", json!({"path": path, "content": "PLANTED"}));
        assert!(written.is_err(), "{path}: {written:?}");
        let moved = server.call("move_file", json!({"source": "mine.txt", "destination": path}));
        assert!(moved.is_err(), "{path}: {moved:?}");
        let made = server.call("create_directory", json!({"path": format!("{path}/d")}));
        assert!(made.is_err(), "{path}: {made:?}");
    }
    outside.is_untouched();
    assert_eq!(fs::read_to_string(outside.folder.join("mine.txt")).unwrap(), "mine");
}

#[test]
fn links_that_stay_inside_are_followed_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("real")).unwrap();
    fs::write(folder.path().join("real/a.txt"), "old").unwrap();
    symlink("real", folder.path().join("dir")).unwrap();
    symlink("real/a.txt", folder.path().join("file")).unwrap();
    let mut server = Server::ready(folder.path());
    assert_eq!(
        server.call("read_text_file", json!({"path": "dir/a.txt"})).unwrap(),
        "old"
    );
    server
        .call("write_file", json!({"path": "file", "content": "new"}))
        .unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("real/a.txt")).unwrap(), "new");
    assert!(fs::symlink_metadata(folder.path().join("file")).unwrap().is_symlink());
    let edit = json!({"path": "file", "edits": [{"oldText": "new", "newText": "newer"}]});
    server.call("edit_file", edit).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("real/a.txt")).unwrap(), "newer");
    assert_eq!(
        server.call("list_directory", json!({})).unwrap(),
        "[LINK] dir\n[LINK] file\n[DIR] real"
    );
    // A walk shows links and does not go through them: no entry twice, no circle.
    symlink("..", folder.path().join("real/loop")).unwrap();
    assert_eq!(
        server.call("search_files", json!({"pattern": "**/*"})).unwrap(),
        "dir\nfile\nreal\nreal/a.txt\nreal/loop"
    );
}

#[test]
fn a_link_that_is_swapped_while_files_are_used_never_leads_out() {
    let outside = Outside::new();
    let folder = outside.folder.clone();
    let (inner, spare) = (folder.join("swap"), folder.join("spare"));
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("secret.txt"), "harmless").unwrap();
    symlink(outside.base.path(), &spare).unwrap();
    let mut server = Server::ready(&folder);
    let over = AtomicBool::new(false);
    let mut outcomes = [0_u32; 2];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // In one step each time, what is a folder becomes a link to where the secret is, and back.
            while !over.load(Ordering::Relaxed) {
                let here = rustix::fs::CWD;
                rustix::fs::renameat_with(here, &inner, here, &spare, rustix::fs::RenameFlags::EXCHANGE).unwrap();
            }
        });
        for i in 0..150 {
            let reads = [
                ("read_text_file", json!({"path": "swap/secret.txt"})),
                ("list_directory", json!({"path": "swap"})),
                ("search_files", json!({"path": "swap", "pattern": "**"})),
            ];
            for (tool, arguments) in reads {
                let answer = server.call(tool, arguments);
                outcomes[usize::from(answer.is_ok())] += 1;
                let said = answer.unwrap_or_else(|why| why);
                assert!(!said.contains("SECRET") && !said.contains("other.txt"), "{said}");
            }
            // Refusals are as good as successes here; what counts is where nothing appears.
            let _ = server.call(
                "write_file",
                json!({"path": format!("swap/new-{i}.txt"), "content": "PLANTED"}),
            );
            let edit = json!({"path": "swap/secret.txt", "edits": [{"oldText": "harm", "newText": "harm"}]});
            let _ = server.call("edit_file", edit);
            let _ = server.call(
                "move_file",
                json!({"source": format!("swap/new-{i}.txt"), "destination": format!("swap/moved-{i}.txt")}),
            );
            let _ = server.call("create_directory", json!({"path": format!("swap/dir-{i}")}));
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "the race was one: {outcomes:?}");
    outside.is_untouched();
}

#[test]
fn a_replaced_file_is_whole_keeps_its_mode_and_leaves_hard_links_alone() {
    let outside = Outside::new();
    let file = outside.folder.join("f.sh");
    fs::hard_link(&outside.secret, &file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
    let mut server = Server::ready(&outside.folder);
    let written = server
        .call("write_file", json!({"path": "f.sh", "content": "mine"}))
        .unwrap();
    assert!(written.starts_with("Replaced"), "{written}");
    assert_eq!(fs::read_to_string(&outside.secret).unwrap(), "SECRET");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o750);
    let left: Vec<_> = fs::read_dir(&outside.folder)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(!left.iter().any(|n| n.to_string_lossy().contains(".tmp")), "{left:?}");
}

/// A folder to serve beside things that must stay out of reach, with links to them.
struct Outside {
    base: TempDir,
    folder: std::path::PathBuf,
    secret: std::path::PathBuf,
}

impl Outside {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("folder");
        let secret = base.path().join("secret.txt");
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::write(&secret, "SECRET").unwrap();
        fs::write(base.path().join("other.txt"), "SECRET too").unwrap();
        for (target, link) in [
            ("../secret.txt", "file-link"),
            ("..", "up"),
            ("../..", "sub/up-two"),
            ("up", "chain"),
            ("../planted.txt", "dangling"),
            ("/proc/self", "self-proc"),
        ] {
            symlink(target, folder.join(link)).unwrap();
        }
        symlink(base.path(), folder.join("dir-link")).unwrap();
        Self { base, folder, secret }
    }

    fn is_untouched(&self) {
        assert_eq!(fs::read_to_string(&self.secret).unwrap(), "SECRET");
        let mut names: Vec<_> = fs::read_dir(self.base.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["folder", "other.txt", "secret.txt"]);
    }
}
