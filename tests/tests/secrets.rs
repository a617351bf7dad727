//! Tokens and secrets: where they go and where they never do.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use neuron_tests::{
    daemon::{Daemon, Setup, command_line, serve_command},
    fake::{Fake, HttpFake},
    home::{Home, config_text},
    http::Connection,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

const TOKEN: &str = "SENTINEL-of-the-token";

fn set(bridge: &Daemon, id: &str, name: Option<&str>, secret: &str) {
    let body = json!({"id": id, "name": name, "secret": secret});
    bridge.owner_post("/mcp/servers/secret", &body).ok();
}

fn with_token(server: &HttpFake) -> Value {
    let mut entry = server.entry();
    entry["auth"] = json!("token");
    entry
}

fn with_secret_header(server: &HttpFake) -> Value {
    let mut entry = server.entry();
    entry["headers"] = json!({"Authorization": "Bearer ${secret:KEY}"});
    entry
}

fn key_file(home: &Home, name: &str, letter: &str) -> PathBuf {
    let path = home.path().join(name);
    fs::write(&path, letter.repeat(64)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn in_a_file(key: &Path) -> Setup {
    Setup::default()
        .argument("--secrets")
        .argument("file")
        .variable("NEURON_SECRETS_KEY_FILE", &key.display().to_string())
}

#[test]
fn a_file_keeps_secrets_over_a_restart_and_a_wrong_key_opens_nothing() {
    let home = Home::new();
    let server = HttpFake::start(home.path(), "server", &[("key", TOKEN)]);
    home.write_config(&config_text([("tracker", with_token(&server))]));
    let (right, wrong) = (key_file(&home, "right", "r"), key_file(&home, "wrong", "w"));
    let bridge = Daemon::start_in(home, in_a_file(&right));
    set(&bridge, "tracker", None, TOKEN);
    bridge.wait_for_status("tracker", "connected");
    assert_eq!(bridge.owner_get("/mcp/servers").ok()["keychain"]["kept_in"], "file");

    let bridge = bridge.restart();
    bridge.call_text("mcp__tracker__echo", &json!({}));
    let home = bridge.terminate();
    let kept = home.neuron().join("connect/secrets.bin");
    let before = fs::read(&kept).unwrap();

    let refused = serve_command(&home, &in_a_file(&wrong))
        .args(["--port", "0"])
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(
        told.contains("secrets.bin") && told.contains("wrong") && told.contains("move the file away"),
        "{told}"
    );
    assert_eq!(fs::read(&kept).unwrap(), before);

    let without = serve_command(&home, &Setup::default().argument("--secrets").argument("file"))
        .args(["--port", "0"])
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(told.contains("NEURON_SECRETS_KEY_FILE"), "{told}");
}

#[test]
fn a_missing_secret_is_named_and_nothing_is_started_or_contacted() {
    let home = Home::new();
    let server = HttpFake::start(home.path(), "server", &[]);
    let program = Fake::new("ok")
        .record(&home.record("program"))
        .member("env", json!({"A": "${secret:A_KEY}"}));
    let seen = program.seen();
    let bridge = Daemon::serving(
        home,
        [
            ("token", with_token(&server)),
            ("header", with_secret_header(&server)),
            ("program", program.entry()),
        ],
    );
    for (id, named) in [
        ("token", "The token for this server is not set."),
        ("header", "The secret KEY is not set."),
        ("program", "The secret A_KEY is not set."),
    ] {
        let row = bridge.wait_for_status(id, "needs_secret");
        assert!(row["error"].as_str().unwrap().starts_with(named), "{row}");
        assert_eq!(row["action"], "set_secret");
    }
    assert_eq!(seen.starts(), [0_u32; 0]);
    assert_eq!(server.seen().requests("POST") + server.seen().requests("GET"), 0);
    bridge.terminate();
}

#[test]
fn a_token_that_is_refused_is_told_as_such_and_not_sent_again_by_itself() {
    let home = Home::new();
    let server = HttpFake::start(home.path(), "server", &[("key", TOKEN)]);
    let bridge = Daemon::serving(
        home,
        [("token", with_token(&server)), ("header", with_secret_header(&server))],
    );
    for (id, name) in [("token", None), ("header", Some("KEY"))] {
        set(&bridge, id, name, "a-token-that-is-over");
        eventually("the server's refusal is told", SOON, || {
            let row = bridge.server(id)?;
            let told = row["error"].as_str()?;
            let is_told = told.contains("did not accept this token") && told.contains("401");
            (is_told && row["status"] == "needs_secret").then_some(())
        });
        let asked = server.seen().requests("POST");
        assert!(asked > 0);
        for _ in 0..3 {
            bridge.owner_get(&format!("/mcp/servers/{id}")).ok();
        }
        assert_eq!(server.seen().requests("POST"), asked);
        set(&bridge, id, name, TOKEN);
        bridge.wait_for_status(id, "connected");
        bridge.call_text(&format!("mcp__{id}__echo"), &json!({}));
    }
    let token = format!("authorization=Bearer {TOKEN}");
    assert!(server.seen().lines().iter().any(|line| line.contains(&token)));
    bridge.terminate();
}

#[test]
fn what_was_entered_for_one_address_goes_to_no_other_and_is_there_when_the_edit_is_undone() {
    let home = Home::new();
    let ours = HttpFake::start(home.path(), "ours", &[("key", TOKEN)]);
    let theirs = HttpFake::start(home.path(), "theirs", &[]);
    let entries =
        |server: &HttpFake| config_text([("token", with_token(server)), ("header", with_secret_header(server))]);
    home.write_config(&entries(&ours));
    let bridge = Daemon::start_in(home, Setup::default());
    set(&bridge, "token", None, TOKEN);
    set(&bridge, "header", Some("KEY"), TOKEN);
    for id in ["token", "header"] {
        bridge.wait_for_status(id, "connected");
    }

    bridge.home.write_config(&entries(&theirs));
    for id in ["token", "header"] {
        let row = bridge.wait_for_status(id, "needs_secret");
        let told = row["error"].as_str().unwrap();
        assert!(told.contains("was entered for another address"), "{told}");
        let detail = bridge.owner_get(&format!("/mcp/servers/{id}")).ok();
        assert_eq!(detail["secrets"][0]["set"], false);
        assert_eq!(detail["secrets"][0]["withheld"], true);
    }
    let to_them = theirs.seen().lines();
    assert!(to_them.iter().all(|line| line.starts_with("# start")), "{to_them:?}");

    bridge.home.write_config(&entries(&ours));
    for id in ["token", "header"] {
        bridge.wait_for_status(id, "sleeping");
        bridge.call_text(&format!("mcp__{id}__echo"), &json!({}));
    }

    // Entered again, it belongs to the new address, and no longer to the old one.
    bridge.home.write_config(&entries(&theirs));
    bridge.wait_for_status("token", "needs_secret");
    set(&bridge, "token", None, TOKEN);
    bridge.wait_for_status("token", "connected");
    bridge.home.write_config(&entries(&ours));
    bridge.wait_for_status("token", "sleeping");
    bridge.call("mcp__token__echo", &json!({})).refused(409, "needs_secret");
    bridge.terminate();
}

#[test]
fn what_was_entered_for_one_command_goes_to_no_other() {
    let home = Home::new();
    let program = |word: &str| {
        let fake = Fake::new("ok").record(&home.record("program")).option("say", word);
        fake.member("env", json!({"KEY": "${secret:KEY}"}))
    };
    let (one, other) = (program("one"), program("other"));
    let seen = one.seen();
    home.write_config(&config_text([("program", one.entry())]));
    let bridge = Daemon::start_in(home, Setup::default());
    set(&bridge, "program", Some("KEY"), TOKEN);
    bridge.wait_for_status("program", "connected");
    bridge.home.write_config(&config_text([("program", other.entry())]));
    let row = bridge.wait_for_status("program", "needs_secret");
    let told = row["error"].as_str().unwrap();
    assert!(told.contains("was entered for another command"), "{told}");
    assert_eq!(seen.starts().len(), 1);
    bridge.home.write_config(&config_text([("program", one.entry())]));
    bridge.wait_for_status("program", "sleeping");
    bridge.call_text("mcp__program__echo", &json!({}));
    bridge.terminate();
}

#[test]
fn a_connector_that_is_added_anew_inherits_nothing() {
    let home = Home::new();
    let server = HttpFake::start(home.path(), "server", &[("key", TOKEN)]);
    let bridge = Daemon::serving(home, [("tracker", with_token(&server))]);
    set(&bridge, "tracker", None, TOKEN);
    bridge.wait_for_status("tracker", "connected");
    let mut entry = with_token(&server);
    entry["id"] = json!("tracker");
    // Removed by a click; removed by hand.
    for by_hand in [false, true] {
        if by_hand {
            set(&bridge, "tracker", None, TOKEN);
            bridge.wait_for_status("tracker", "connected");
            bridge.home.write_config(&config_text([]));
            eventually("the entry is gone", SOON, || {
                bridge.server("tracker").is_none().then_some(())
            });
        } else {
            bridge.owner_post("/mcp/servers/remove", &json!({"id": "tracker"})).ok();
        }
        bridge.owner_post("/mcp/servers/add", &entry).ok();
        let asked = server.seen().requests("POST");
        bridge
            .owner_post("/mcp/servers/reconnect", &json!({"id": "tracker"}))
            .ok();
        let row = bridge.wait_for_status("tracker", "needs_secret");
        let told = row["error"].as_str().unwrap();
        assert!(told.contains("is not set"), "{told}");
        assert_eq!(server.seen().requests("POST"), asked);
    }
    bridge.terminate();
}

#[test]
fn a_secret_that_an_upstream_repeats_is_hidden_in_all_it_answers() {
    let home = Home::new();
    let program = Fake::new("ok")
        .option("list", "saying")
        .option("offers", "standard")
        .option("say", "${secret:KEY}")
        .member("env", json!({"KEY": "${secret:KEY}"}));
    let bridge = Daemon::serving(home, [("program", program.entry())]);
    let secret = "SENTINEL \"quoted\" / väl";
    set(&bridge, "program", Some("KEY"), secret);
    bridge.wait_for_status("program", "connected");
    let mark = "[REDACTED:secret:KEY]";
    for tool in ["env", "argv"] {
        let answer = bridge.call(&format!("mcp__program__{tool}"), &json!({})).text();
        assert!(answer.contains(mark) && !answer.contains("SENTINEL"), "{answer}");
    }
    let repeated = json!({"a": secret, "b": [1.50, {"c": format!("<{secret}>")}]});
    let answer = bridge.call_text("mcp__program__echo", &repeated);
    let same: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(same, json!({"a": mark, "b": [1.50, {"c": format!("<{mark}>")}]}));
    let tools = bridge.get("/mcp/tools").text();
    assert!(tools.contains(mark) && !tools.contains("SENTINEL"), "{tools}");
    let resource = bridge.owner_post(
        "/mcp/resources/read",
        &json!({"server": "program", "uri": format!("fake://text/{secret}")}),
    );
    assert!(!resource.text().contains("SENTINEL"), "{}", resource.text());
    bridge.terminate();
}

#[test]
fn the_command_line_takes_a_secret_from_its_input_and_never_as_an_argument() {
    let home = Home::new();
    let server = HttpFake::start(home.path(), "server", &[("key", TOKEN)]);
    let bridge = Daemon::serving(home, [("tracker", with_secret_header(&server))]);
    bridge.wait_for_status("tracker", "needs_secret");
    let mut set = command_line(&bridge.home, &["secret", "set", "tracker", "KEY"]);
    let mut set = set
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    set.stdin
        .take()
        .unwrap()
        .write_all(format!("{TOKEN}\n").as_bytes())
        .unwrap();
    let done = set.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(!String::from_utf8_lossy(&done.stdout).contains(TOKEN));
    bridge.wait_for_status("tracker", "connected");

    let refused = bridge.command(&["secret", "set", "tracker", "KEY", TOKEN]);
    assert_eq!(refused.status.code(), Some(2));

    assert!(bridge.command(&["secret", "forget", "tracker", "KEY"]).status.success());
    bridge.wait_for_status("tracker", "needs_secret");
    let status = String::from_utf8(bridge.command(&["status"]).stdout).unwrap();
    assert!(status.contains("secret set tracker"), "{status}");
    bridge.terminate();
}

#[test]
fn a_value_that_cannot_be_sent_is_refused_without_repeating_it() {
    let home = Home::new();
    let server = HttpFake::start(home.path(), "server", &[]);
    let bridge = Daemon::serving(
        home,
        [("tracker", with_token(&server)), ("program", Fake::new("ok").entry())],
    );
    for (id, secret) in [
        ("tracker", String::new()),
        ("tracker", " \n".to_owned()),
        ("tracker", "SENTINEL with spaces".to_owned()),
        ("tracker", "SENTINEL".repeat(10_000)),
        ("program", "SENTINEL-for-a-program".to_owned()),
    ] {
        let answer = bridge.owner_post("/mcp/servers/secret", &json!({"id": id, "secret": secret}));
        let body = answer.text();
        assert!(matches!(answer.status, 400 | 413), "{body}");
        assert!(!body.contains("SENTINEL"), "{body}");
    }
    let unknown = json!({"id": "nobody", "secret": "SENTINEL-for-nobody"});
    bridge
        .owner_post("/mcp/servers/secret", &unknown)
        .refused(404, "unknown_server");
    bridge.terminate();
}

#[test]
fn no_secret_is_readable_anywhere_at_the_finest_log_level() {
    let home = Home::new();
    let server = HttpFake::start(home.path(), "server", &[("key", TOKEN)]);
    let record = home.record("server");
    let mut address = server.entry();
    address["url"] = json!(format!("{}?key=${{secret:IN_ADDRESS}}", server.url()));
    address["headers"] = json!({"Authorization": format!("Bearer {TOKEN}")});
    let program = Fake::new("ok")
        .option("say", "${secret:IN_ARGUMENT}")
        .member("env", json!({"KEY": "${secret:IN_ENVIRONMENT}"}));
    let crash = Fake::new("crash")
        .option("say", "${secret:CRASH}")
        .member("env", json!({"A": "${secret:CRASH}"}));
    home.write_config(&config_text([
        ("token", with_token(&server)),
        ("header", with_secret_header(&server)),
        ("program", program.entry()),
        ("crash", crash.entry()),
    ]));
    // Outside of the home that is searched.
    let keys = Home::new();
    let setup = in_a_file(&key_file(&keys, "key", "k")).variable("NEURON_LOG", "trace");
    let bridge = Daemon::start_in(home, setup);
    let mut events = Connection::open(&bridge.local()).events("/mcp/events", &[]);
    set(&bridge, "token", None, TOKEN);
    set(&bridge, "header", Some("KEY"), TOKEN);
    for name in ["IN_ARGUMENT", "IN_ENVIRONMENT"] {
        set(&bridge, "program", Some(name), &format!("SENTINEL-{name}"));
    }
    set(&bridge, "crash", Some("CRASH"), "SENTINEL-CRASH");
    let mut said = Vec::new();
    for id in ["token", "header", "program"] {
        bridge.wait_for_status(id, "connected");
        for tool in ["echo", "env", "argv"] {
            let input = json!({"again": TOKEN});
            if id != "program" || tool != "echo" {
                said.push(bridge.call(&format!("mcp__{id}__{tool}"), &input).text());
            }
        }
    }
    bridge.wait_for_status("crash", "retrying");
    for path in [
        "/mcp/servers",
        "/mcp/tools",
        "/mcp/servers/crash/log",
        "/mcp/servers/program/log",
    ] {
        said.push(bridge.owner_get(path).text());
    }
    for id in ["token", "header", "program", "crash"] {
        said.push(bridge.owner_get(&format!("/mcp/servers/{id}")).text());
    }
    let last = events.next("the last call", |event| event.name == "call_finished");
    said.push(format!("{last:?}"));
    let home = bridge.terminate();
    for text in &said {
        assert!(!text.contains("SENTINEL"), "{text}");
    }
    let _ = fs::remove_file(record);
    assert_eq!(files_with(home.path(), b"SENTINEL"), Vec::<PathBuf>::new());
    assert!(fs::metadata(home.neuron().join("connect/secrets.bin")).unwrap().len() > 100);
}

#[test]
fn the_finest_log_level_tells_nothing_of_the_log_s_own_growing() {
    let home = Home::new();
    home.write_config(&config_text([]));
    let bridge = Daemon::start_in(home, Setup::default().variable("NEURON_LOG", "trace"));
    // Its log lies below a folder that is watched: a line about a change there would be the next change.
    bridge
        .home
        .write_config(&config_text([("program", Fake::new("ok").entry())]));
    bridge.wait_for_status("program", "connected");
    let log = bridge.log();
    assert!(log.contains("TRACE"), "{log}");
    assert!(!log.contains("inotify"), "{log}");
    bridge.terminate();
}

fn files_with(folder: &Path, wanted: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, wanted));
        } else if let Ok(bytes) = fs::read(&path)
            && bytes.windows(wanted.len()).any(|window| window == wanted)
        {
            found.push(path);
        }
    }
    found
}
