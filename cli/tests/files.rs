//! The files server as a client meets it: a real process, JSON-RPC over its pipes, hostile paths and folders.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use tempfile::TempDir;

#[test]
fn a_legacy_client_initializes_lists_and_calls() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    let hello = server.request(
        "initialize",
        json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        }),
    );
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    assert!(hello["result"]["capabilities"]["tools"].is_object(), "{hello}");
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(server.request("ping", json!({}))["result"], json!({}));
    assert_eq!(
        server.call("list_directory", json!({})),
        Ok("(this folder is empty)".to_owned())
    );
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_modern_client_discovers_lists_and_calls_without_initialize() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    server.meta = modern_meta();
    let found = server.request("server/discover", json!({}));
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{found}");
    let list = server.request("tools/list", json!({}));
    assert_eq!(list["result"]["tools"], compiled_in());
    assert_eq!(list["result"]["resultType"], "complete");
    server
        .call("write_file", json!({"path": "a.txt", "content": "hi"}))
        .unwrap();
    assert_eq!(
        server.call("read_text_file", json!({"path": "a.txt"})),
        Ok("hi".to_owned())
    );
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn the_list_on_the_wire_is_the_one_that_the_bridge_has_compiled_in() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::ready(folder.path());
    assert_eq!(
        server.request("tools/list", json!({}))["result"]["tools"],
        compiled_in()
    );
    let printed = program().args(["files", "--print-tools"]).output().unwrap();
    assert_eq!(
        String::from_utf8(printed.stdout).unwrap(),
        neuron_bridge::builtin::files_tools()
    );
}

#[test]
fn an_unknown_tool_is_a_protocol_error_and_bad_arguments_are_the_tools() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::ready(folder.path());
    let answer = server.request("tools/call", json!({"name": "rm", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let why = server.call("write_file", json!({"path": "a"})).unwrap_err();
    assert!(why.contains("content"), "{why}");
}

#[test]
fn every_tool_works_on_names_with_spaces_and_of_any_script() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::ready(folder.path());
    let dir = "Meine Döcs/日本 👍";
    let file = format!("{dir}/a b.md");
    assert!(
        server
            .call("create_directory", json!({"path": dir}))
            .unwrap()
            .starts_with("Created")
    );
    assert!(
        server
            .call("create_directory", json!({"path": dir}))
            .unwrap()
            .contains("exists already")
    );
    let written = server.call("write_file", json!({"path": file, "content": "eins\nzwei\ndrei\n"}));
    assert!(written.unwrap().starts_with("Created"));
    assert_eq!(
        server.call("read_text_file", json!({"path": file, "head": 1})).unwrap(),
        "eins"
    );
    assert_eq!(
        server.call("read_file", json!({"path": file, "tail": 1})).unwrap(),
        "drei"
    );
    let absolute = folder.path().join(&file);
    let absolute = absolute.to_str().unwrap();
    assert_eq!(
        server.call("read_text_file", json!({"path": absolute})).unwrap(),
        "eins\nzwei\ndrei\n"
    );

    let edit = json!({"path": file, "edits": [{"oldText": "zwei", "newText": "two"}], "dryRun": true});
    assert!(server.call("edit_file", edit.clone()).unwrap().contains("-zwei\n+two"));
    assert_eq!(fs::read_to_string(absolute).unwrap(), "eins\nzwei\ndrei\n");
    let mut edit = edit;
    edit["dryRun"] = json!(false);
    assert!(server.call("edit_file", edit).unwrap().starts_with("```diff\n--- a/"));
    assert_eq!(fs::read_to_string(absolute).unwrap(), "eins\ntwo\ndrei\n");

    assert_eq!(
        server.call("list_directory", json!({"path": dir})).unwrap(),
        "[FILE] a b.md"
    );
    assert!(
        server
            .call("list_directory_with_sizes", json!({"path": dir}))
            .unwrap()
            .contains("14 B")
    );
    assert!(
        server
            .call("directory_tree", json!({}))
            .unwrap()
            .contains("\"name\": \"日本 👍\"")
    );
    assert_eq!(
        server.call("search_files", json!({"pattern": "**/*.md"})).unwrap(),
        file
    );
    let moved = json!({"source": file, "destination": "c.md"});
    assert!(server.call("move_file", moved).unwrap().starts_with("Moved"));
    let info = server.call("get_file_info", json!({"path": "c.md"})).unwrap();
    assert!(info.contains("size: 14\n") && info.contains("isFile: true"), "{info}");
    let both = server
        .call("read_multiple_files", json!({"paths": ["c.md", file]}))
        .unwrap();
    assert!(both.contains("c.md:\neins") && both.contains("Error - "), "{both}");
    let folders = server.call("list_allowed_directories", json!({})).unwrap();
    assert_eq!(folders, format!("Allowed directories:\n{}", folder.path().display()));
    fs::write(folder.path().join("p.png"), [0x89, b'P']).unwrap();
    let media = server.request(
        "tools/call",
        json!({"name": "read_media_file", "arguments": {"path": "p.png"}}),
    );
    assert_eq!(
        media["result"]["content"],
        json!([{"type": "image", "data": "iVA=", "mimeType": "image/png"}])
    );
}

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

#[test]
fn what_must_not_be_overwritten_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("read-only"), "kept").unwrap();
    fs::set_permissions(path("read-only"), fs::Permissions::from_mode(0o444)).unwrap();
    fs::write(path("a"), "a").unwrap();
    fs::write(path("b"), "b").unwrap();
    fs::create_dir(path("dir")).unwrap();
    let mut server = Server::ready(folder.path());
    for (tool, arguments, says) in [
        ("write_file", json!({"path": "read-only", "content": ""}), "read-only"),
        ("write_file", json!({"path": "dir", "content": ""}), "folder"),
        ("write_file", json!({"path": ".", "content": ""}), "folder itself"),
        (
            "write_file",
            json!({"path": "no/such", "content": ""}),
            "create_directory",
        ),
        ("write_file", json!({"path": "a/b", "content": ""}), "not a folder"),
        ("create_directory", json!({"path": "a"}), "file already"),
        ("create_directory", json!({"path": "a/b"}), "not a folder"),
        (
            "move_file",
            json!({"source": "a", "destination": "b"}),
            "exists already",
        ),
        (
            "move_file",
            json!({"source": "a", "destination": "dir"}),
            "exists already",
        ),
        (
            "move_file",
            json!({"source": "dir", "destination": "dir/in"}),
            "into itself",
        ),
        (
            "move_file",
            json!({"source": ".", "destination": "x"}),
            "cannot be moved",
        ),
        (
            "move_file",
            json!({"source": "gone", "destination": "x"}),
            "does not exist",
        ),
        (
            "edit_file",
            json!({"path": "a", "edits": [{"oldText": "zz", "newText": ""}]}),
            "not in the file",
        ),
        ("edit_file", json!({"path": "a", "edits": []}), "empty"),
        ("read_text_file", json!({"path": "dir"}), "list_directory"),
        ("read_text_file", json!({"path": "a", "head": 1, "tail": 1}), "together"),
        ("list_directory", json!({"path": "a"}), "not a folder"),
        ("read_multiple_files", json!({"paths": []}), "empty"),
    ] {
        let why = server
            .call(tool, arguments.clone())
            .expect_err(&format!("{tool} {arguments}"));
        assert!(why.contains(says), "{tool} {arguments}: {why}");
    }
    let content = |name: &str| fs::read_to_string(path(name)).unwrap();
    assert_eq!(
        (content("read-only"), content("a"), content("b")),
        ("kept".into(), "a".into(), "b".into())
    );
}

#[test]
fn long_names_work_up_to_the_systems_limit_and_are_refused_above() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::ready(folder.path());
    let name = "n".repeat(255);
    server
        .call("write_file", json!({"path": name, "content": "x"}))
        .unwrap();
    server
        .call("write_file", json!({"path": name, "content": "y"}))
        .unwrap();
    assert_eq!(server.call("read_text_file", json!({"path": name})).unwrap(), "y");
    for path in ["n".repeat(256), "d/".repeat(3000)] {
        let why = server
            .call("write_file", json!({"path": path, "content": "x"}))
            .unwrap_err();
        assert!(why.contains("shorter"), "{why}");
    }
}

#[test]
fn large_files_are_read_in_parts_and_refused_whole() {
    let folder = tempfile::tempdir().unwrap();
    let line = "0123456789abcdef".repeat(16);
    let text = (line + "\n").repeat(60_000);
    fs::write(folder.path().join("big.txt"), &text).unwrap();
    let mut server = Server::ready(folder.path());
    let why = server.call("read_text_file", json!({"path": "big.txt"})).unwrap_err();
    assert!(why.contains("14.71 MB") && why.contains("head or tail"), "{why}");
    assert_eq!(
        server
            .call("read_text_file", json!({"path": "big.txt", "tail": 2}))
            .unwrap()
            .len(),
        513
    );
    let why = server.call("read_media_file", json!({"path": "big.txt"})).unwrap_err();
    assert!(why.contains("10 MiB"), "{why}");
    let huge = "x".repeat(20 << 20);
    let why = server
        .call("write_file", json!({"path": "huge.txt", "content": huge}))
        .unwrap_err();
    assert!(why.contains("20.00 MB") && why.contains("split it"), "{why}");
    // As large as one answer may be, there and back.
    let nine = "x".repeat(9 << 20);
    server
        .call("write_file", json!({"path": "nine.txt", "content": nine}))
        .unwrap();
    assert_eq!(
        server
            .call("read_text_file", json!({"path": "nine.txt"}))
            .unwrap()
            .len(),
        9 << 20
    );
}

#[test]
fn pipes_and_devices_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut server = Server::ready(folder.path());
    for (tool, arguments) in [
        ("read_text_file", json!({"path": "pipe"})),
        ("read_media_file", json!({"path": "pipe"})),
        ("write_file", json!({"path": "pipe", "content": "x"})),
    ] {
        let why = server.call(tool, arguments).unwrap_err();
        assert!(why.contains("not a regular file"), "{tool}: {why}");
    }
}

#[test]
fn edits_that_come_together_all_count() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..40).map(|i| format!("line-{i}.\n")).collect();
    fs::write(folder.path().join("f"), text).unwrap();
    let mut server = Server::ready(folder.path());
    for i in 0..40 {
        let edits = json!([{"oldText": format!("line-{i}."), "newText": "done"}]);
        let arguments = json!({"path": "f", "edits": edits});
        server.send(&json!({
            "jsonrpc": "2.0", "id": format!("e{i}"), "method": "tools/call",
            "params": {"name": "edit_file", "arguments": arguments},
        }));
    }
    for _ in 0..40 {
        assert_eq!(server.receive()["result"]["isError"], false);
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("f")).unwrap(),
        "done\n".repeat(40)
    );
}

#[test]
fn a_folder_that_cannot_be_served_ends_the_program_with_a_sentence() {
    let base = tempfile::tempdir().unwrap();
    let home = base.path().join("app");
    fs::create_dir_all(home.join("connect")).unwrap();
    fs::create_dir(base.path().join("other")).unwrap();
    symlink(&home, base.path().join("link")).unwrap();
    let run = |arguments: &[&OsStr]| -> Output {
        program()
            .arg("files")
            .args(arguments)
            .env("NEURON_CONNECT_HOME", &home)
            .env("HOME", base.path().join("person"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let private = base.path().join("other");
    for (arguments, says) in [
        (vec![home.as_os_str()], "cannot be served"),
        (vec![base.path().as_os_str()], "cannot be served"),
        (vec![home.join("connect").as_os_str()], "cannot be served"),
        (vec![base.path().join("link").as_os_str()], "cannot be served"),
        (vec![OsStr::new("/")], "cannot be served"),
        (
            vec![private.as_os_str(), OsStr::new("--private-dir"), private.as_os_str()],
            "cannot be served",
        ),
        (vec![base.path().join("missing").as_os_str()], "does not exist"),
    ] {
        let ended = run(&arguments);
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(says) && ended.stdout.is_empty(), "{arguments:?}: {said}");
    }
    let fine = run(&[private.as_os_str()]);
    assert_eq!(fine.status.code(), Some(0), "{}", String::from_utf8_lossy(&fine.stderr));
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

struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Of every request; modern clients say everything each time.
    meta: Value,
    last: u64,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut child = program()
            .arg("files")
            .arg(folder)
            // No real home is looked at.
            .env("HOME", "/nonexistent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            meta: Value::Null,
            last: 0,
        }
    }

    /// For tests that are not about the protocol.
    fn ready(folder: &Path) -> Self {
        let mut server = Self::start(folder);
        server.meta = modern_meta();
        server.request("server/discover", json!({}));
        server
    }

    fn send(&mut self, message: &Value) {
        let mut message = message.clone();
        if message["method"] == "tools/call" && !self.meta.is_null() {
            message["params"]["_meta"] = self.meta.clone();
        }
        let input = self.input.as_mut().unwrap();
        input.write_all((message.to_string() + "\n").as_bytes()).unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.last += 1;
        if !self.meta.is_null() {
            params["_meta"] = self.meta.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        let answer = self.receive();
        assert_eq!(answer["id"], self.last, "{answer}");
        answer
    }

    /// The tool's text, or the text of its error.
    fn call(&mut self, tool: &str, arguments: Value) -> Result<String, String> {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let blocks = result["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let text = blocks
            .iter()
            .filter_map(|b| b["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n");
        if result["isError"] == true { Err(text) } else { Ok(text) }
    }

    fn stop(mut self) -> std::process::ExitStatus {
        drop(self.input.take());
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        // Ended already, or it ends with its input.
        let _ = self.child.wait();
    }
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuron-connectd"));
    command.env_remove("NEURON_HOME").env_remove("NEURON_CONNECT_HOME");
    command
}

fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}

fn compiled_in() -> Value {
    serde_json::from_str(neuron_bridge::builtin::files_tools()).unwrap()
}
