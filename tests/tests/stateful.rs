//! An upstream that owns what its session made: callers come and go, the session stays.

use std::{fs, path::PathBuf};

use base64::{Engine, prelude::BASE64_STANDARD};
use neuron_tests::{
    daemon::Daemon,
    fake::{Fake, HttpFake, Seen},
    home::Home,
    http::{Address, Connection},
    process,
    wait::{SOON, eventually},
};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A bridge before a sandbox server named `box`.
struct Setup {
    bridge: Daemon,
    /// Where the sandboxes are on disk.
    folder: PathBuf,
    seen: Seen,
    /// Present where the server is reached over HTTP.
    remote: Option<HttpFake>,
}

fn over_stdio() -> Setup {
    let home = Home::new();
    let folder = home.path().join("sandboxes");
    let fake = Fake::new("sandbox").option("folder", folder.display());
    let fake = fake.record(&home.record("box"));
    Setup {
        bridge: ready(Daemon::serving(home, [("box", fake.entry())])),
        folder,
        seen: fake.seen(),
        remote: None,
    }
}

fn over_http() -> Setup {
    let home = Home::new();
    let folder = home.path().join("sandboxes");
    let options = [
        ("folder", folder.to_str().expect("a text")),
        ("answers", "sse"),
        ("get", "stream"),
    ];
    let remote = HttpFake::start_kind("sandbox", 0, home.path(), "box", &options);
    Setup {
        bridge: ready(Daemon::serving(home, [("box", remote.entry())])),
        folder,
        seen: remote.seen().clone(),
        remote: Some(remote),
    }
}

fn ready(bridge: Daemon) -> Daemon {
    bridge.wait_for_tool("mcp__box__create");
    bridge
}

impl Setup {
    /// One caller that comes for one call and leaves.
    fn call(&self, tool: &str, input: &Value) -> Value {
        self.bridge.call(&format!("mcp__box__{tool}"), input).ok()
    }

    fn text(&self, tool: &str, input: &Value) -> String {
        let answer = self.call(tool, input);
        assert_eq!(answer["ok"], true, "{tool}: {answer}");
        answer["text"].as_str().expect("a text").to_owned()
    }

    fn left_over(&self) -> usize {
        fs::read_dir(&self.folder).map_or(0, Iterator::count)
    }

    /// Takes the session away from outside.
    fn lose_session(&self) {
        match &self.remote {
            None => {
                let starts = self.seen.starts();
                process::signal(*starts.last().expect("a process"), Signal::KILL);
                // A call that is handed to a dying process may have run, so it is not sent again.
                self.seen.wait_for_starts(starts.len() + 1);
            }
            Some(remote) => {
                let mut connection = Connection::open(&Address::Tcp(remote.port));
                let session = remote.session(1);
                let header = [("mcp-session-id", session.as_str())];
                assert_eq!(connection.send("DELETE", "/mcp", &header, b"").status, 200);
            }
        }
    }

    fn session_lines(&self) -> Vec<String> {
        let log = self.bridge.owner_get("/mcp/servers/box/log").ok();
        let lines = log["lines"].as_array().expect("lines").iter();
        let lines = lines.map(|line| line.as_str().expect("a text").to_owned());
        lines.filter(|line| line.contains("[session]")).collect()
    }
}

fn a_whole_life(setup: &Setup) {
    let id = setup.text("create", &json!({}));
    let of = |more: Value| {
        let mut input = json!({"id": id});
        for (name, value) in more.as_object().expect("an object") {
            input[name] = value.clone();
        }
        input
    };
    assert_eq!(setup.text("status", &of(json!({}))), "running");
    assert_eq!(setup.left_over(), 1);
    let command = of(json!({"command": "echo made here > note.txt; cat note.txt"}));
    assert_eq!(setup.text("exec", &command), "made here\n");

    let bytes: Vec<u8> = (0..300_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let upload = of(json!({"name": "data.bin", "content": BASE64_STANDARD.encode(&bytes)}));
    assert_eq!(setup.text("upload", &upload), "uploaded");
    assert_eq!(setup.text("list", &of(json!({}))), "data.bin\nnote.txt");
    assert_eq!(setup.text("exists", &of(json!({}))), "true");

    let link = setup.call("download", &of(json!({"name": "data.bin"})))["content"][0].clone();
    assert_eq!(link["type"], "resource_link");
    let read = json!({"server": "box", "uri": link["uri"], "save": true});
    let saved = setup.bridge.owner_post("/mcp/resources/read", &read).ok();
    assert_eq!(saved["bytes"], bytes.len());
    assert!(
        fs::read(saved["path"].as_str().expect("a path")).expect("a file") == bytes,
        "the same bytes come back"
    );

    assert_eq!(setup.text("delete", &of(json!({}))), "deleted");
    assert_eq!(setup.text("exists", &of(json!({}))), "false");
    assert_eq!(setup.call("status", &of(json!({})))["code"], "tool_error");
    setup
        .bridge
        .owner_post("/mcp/resources/read", &read)
        .refused(404, "not_found");
    assert_eq!(setup.left_over(), 0, "nothing is left on disk");

    assert_eq!(setup.seen.messages("initialize").len(), 1, "all of it in one session");
    assert_eq!(setup.seen.messages("tools/call").len(), 10, "each call went once");
}

#[test]
fn what_one_caller_makes_the_next_one_uses_over_stdio() {
    let setup = over_stdio();
    a_whole_life(&setup);
    assert_eq!(setup.seen.starts().len(), 1, "one process served them all");
}

#[test]
fn what_one_caller_makes_the_next_one_uses_over_http() {
    a_whole_life(&over_http());
}

#[test]
fn callers_at_the_same_time_share_the_session() {
    for setup in [over_stdio(), over_http()] {
        let ids: Vec<String> = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..6)
                .map(|_| scope.spawn(|| setup.text("create", &json!({}))))
                .collect();
            callers
                .into_iter()
                .map(|caller| caller.join().expect("a caller"))
                .collect()
        });
        for id in &ids {
            assert_eq!(setup.text("status", &json!({"id": id})), "running");
        }
        assert_eq!(setup.left_over(), ids.len());
        assert_eq!(setup.seen.messages("initialize").len(), 1);
    }
}

#[test]
fn what_a_lost_session_owned_is_gone_and_the_next_call_has_a_new_one() {
    for setup in [over_stdio(), over_http()] {
        let id = setup.text("create", &json!({}));
        setup.lose_session();
        assert_eq!(
            setup.text("exists", &json!({"id": id})),
            "false",
            "the new session owns nothing"
        );
        let next = setup.text("create", &json!({}));
        assert_eq!(setup.text("status", &json!({"id": next})), "running");
        assert_eq!(setup.seen.messages("initialize").len(), 2, "exactly one new session");
        let calls = setup.seen.messages("tools/call");
        let created = calls.iter().filter(|line| line.contains("\"create\"")).count();
        assert_eq!(created, 2, "nothing was made twice");
    }
}

#[test]
fn the_log_says_which_session_was_replaced() {
    for setup in [over_stdio(), over_http()] {
        setup.text("create", &json!({}));
        setup.lose_session();
        setup.text("create", &json!({}));
        eventually("a line about the new session", SOON, || {
            setup
                .session_lines()
                .iter()
                .any(|line| line.contains("replaces"))
                .then_some(())
        });
    }
}
