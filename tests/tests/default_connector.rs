//! The first minute: nothing installed, nothing configured, and yet a working tool.

use neuron_tests::{
    daemon::{Daemon, Setup},
    home::Home,
    http::Connection,
    save::Editor,
    wait::{SOON, eventually},
};
use serde_json::json;

const LIST: &str = "mcp__filesystem__list_directory";

fn bare() -> Daemon {
    Daemon::start_in(Home::new(), Setup::default().path("/usr/bin:/bin"))
}

#[test]
fn the_very_first_list_has_the_files_tools_before_any_process_exists() {
    let bridge = bare();
    let names = bridge.tool_names();
    assert!(names.contains(&LIST.to_owned()), "{names:?}");
    assert!(
        names.iter().all(|name| name.starts_with("mcp__filesystem__")),
        "{names:?}"
    );
    assert_eq!(bridge.children(), [0_u32; 0], "a list starts nothing");
    assert_eq!(bridge.status("filesystem"), "sleeping");
}

#[test]
fn the_sandbox_has_a_welcome_file_and_the_first_call_lists_it() {
    let bridge = bare();
    let sandbox = bridge.home.path().join("neuron-connectd-sandbox");
    let files: Vec<_> = std::fs::read_dir(&sandbox)
        .expect("the sandbox exists at once")
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files.len(), 1, "one welcome file: {files:?}");
    assert!(
        !std::fs::read_to_string(sandbox.join(&files[0]))
            .unwrap()
            .trim()
            .is_empty()
    );

    let listing = bridge.call_text(LIST, &json!({"path": "."}));
    assert!(listing.contains(&files[0]), "{listing}");
    assert_eq!(bridge.children().len(), 1, "one process, started by the call");
}

#[test]
fn every_compiled_in_tool_is_what_the_running_server_offers() {
    let bridge = bare();
    let before = bridge.get("/mcp/tools").ok();
    bridge.call_text(LIST, &json!({"path": "."}));
    bridge.wait_for_status("filesystem", "connected");
    assert_eq!(
        bridge.get("/mcp/tools").ok(),
        before,
        "the list a caller read does not change by connecting"
    );
}

#[test]
fn no_path_leads_out_of_the_sandbox() {
    let bridge = bare();
    let sandbox = bridge.home.path().join("neuron-connectd-sandbox");
    std::fs::write(bridge.home.path().join("outside.txt"), "private").unwrap();
    std::os::unix::fs::symlink(bridge.home.path(), sandbox.join("way-out")).unwrap();
    for path in [
        "../outside.txt",
        "/etc/passwd",
        "way-out/outside.txt",
        "./../outside.txt",
    ] {
        let answer = bridge.call("mcp__filesystem__read_file", &json!({"path": path})).ok();
        assert_eq!(answer["ok"], false, "{path}: {answer}");
        assert_eq!(answer["code"], "tool_error", "{path}: {answer}");
        assert!(!answer.to_string().contains("private"), "{path}: {answer}");
    }
}

#[test]
fn the_default_is_written_only_with_the_first_change_and_keeps_working() {
    let bridge = bare();
    assert!(!bridge.home.config_file().exists());
    let add = json!({"id": "more", "url": "http://127.0.0.1:9/mcp", "enabled": false});
    bridge.owner_post("/mcp/servers/add", &add).ok();
    let written: serde_json::Value = serde_json::from_str(&bridge.home.config()).expect("plain JSON");
    assert_eq!(
        written["servers"]["filesystem"]["command"], "neuron-connectd",
        "{written}"
    );
    assert_eq!(written["servers"]["more"]["enabled"], false, "{written}");

    let bridge = bridge.restart();
    assert!(bridge.tool_names().contains(&LIST.to_owned()));
    bridge.call_text(LIST, &json!({"path": "."}));
}

#[test]
fn a_file_created_later_takes_the_default_away_within_a_second() {
    let bridge = bare();
    bridge.home.write_config("{\"servers\": {}}");
    eventually("the default is gone", SOON, || {
        bridge.tool_names().is_empty().then_some(())
    });
    // The file as it was wanted: nothing. It does not come back by itself.
    Editor::RenameOver.save(&bridge.home.config_file(), "{\"servers\": {} }\n");
    assert_eq!(
        Connection::open(&bridge.tcp())
            .send("GET", "/mcp/servers", &[], b"")
            .ok()["servers"],
        json!([])
    );
}
