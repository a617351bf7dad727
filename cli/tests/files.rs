//! The files server as a client meets it: a real process, JSON-RPC over its pipes.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod files_server;

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use files_server::*;

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
    assert_eq!(stop(server).code(), Some(0));
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
    assert_eq!(stop(server).code(), Some(0));
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

fn stop(mut server: Server) -> std::process::ExitStatus {
    drop(server.input.take());
    server.child.wait().unwrap()
}

fn compiled_in() -> Value {
    serde_json::from_str(neuron_bridge::builtin::files_tools()).unwrap()
}
