//! With review, nothing runs, is contacted or is sent before the person allowed exactly that.

mod homes;

use std::{fs, process::Command};

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::{Fake, HttpFake},
    home::{Home, config_text},
    program,
    wait::{SOON, eventually, eventually_equals},
};
use serde_json::{Value, json};

const KEY: &str = "SENTINEL-of-a-key";

fn with_review() -> Setup {
    Setup::default().argument("--review")
}

fn serve<'a>(home: Home, servers: impl IntoIterator<Item = (&'a str, Value)>) -> Daemon {
    home.write_config(&config_text(servers));
    Daemon::start_in(home, with_review())
}

/// What waits for a look, by connector: `(id, server, why)`.
fn waiting(bridge: &Daemon) -> Vec<(String, String, String)> {
    let body = bridge.owner_get("/mcp/approvals").ok();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = body["approvals"].as_array().unwrap().iter();
    let launches = all.filter(|one| one["kind"] == "launch");
    launches
        .map(|one| {
            (
                text(&one["id"]),
                text(&one["server"]),
                text(&one["launch"]["why"]["why"]),
            )
        })
        .collect()
}

/// The id of the one look at this connector, once it waits for this reason.
fn wait_for_look(bridge: &Daemon, server: &str, why: &str) -> String {
    eventually(&format!("{server} waits for a look: {why}"), SOON, || {
        let found = waiting(bridge)
            .into_iter()
            .find(|(_, of, because)| of == server && because == why);
        found.map(|(id, ..)| id)
    })
}

fn answer(bridge: &Daemon, id: &str, answer: &str) {
    bridge
        .owner_post(&format!("/mcp/approvals/{id}"), &json!({"answer": answer}))
        .ok();
}

fn approve(bridge: &Daemon, server: &str, why: &str) {
    answer(bridge, &wait_for_look(bridge, server, why), "approve");
}

fn echo(bridge: &Daemon, server: &str) {
    bridge.wait_for_tool(&format!("mcp__{server}__echo"));
    bridge.call_text(&format!("mcp__{server}__echo"), &json!({}));
}

fn assert_waits(bridge: &Daemon, server: &str) {
    let row = bridge.wait_for_status(server, "needs_review");
    assert_eq!((&row["action"], &row["tools"]), (&json!("review"), &json!(0)), "{row}");
    let refused = bridge.call(&format!("mcp__{server}__echo"), &json!({}));
    refused.refused(409, "needs_review");
    let again = bridge.owner_post("/mcp/servers/reconnect", &json!({"id": server})).ok();
    assert_eq!(again["verified"], false);
    assert_eq!(bridge.status(server), "needs_review");
    assert!(
        !bridge
            .tool_names()
            .iter()
            .any(|name| name.starts_with(&format!("mcp__{server}__")))
    );
}

#[test]
fn a_program_runs_after_a_yes_and_neither_before_nor_after_a_no() {
    let home = Home::new();
    let fakes = ["yes", "no", "waits"].map(|name| Fake::new("ok").record(&home.record(name)));
    let [yes, no, waits] = &fakes;
    let bridge = serve(
        home,
        [("yes", yes.entry()), ("no", no.entry()), ("waits", waits.entry())],
    );
    for server in ["yes", "no", "waits"] {
        assert_waits(&bridge, server);
    }
    let shown = bridge.owner_get("/mcp/approvals").ok();
    let line = &shown["approvals"][0]["launch"]["now"]["command_line"];
    assert_eq!(line[0], yes.entry()["command"], "{shown}");
    // No one but the owner sees or answers it.
    let id = wait_for_look(&bridge, "yes", "new");
    assert!(!bridge.get("/mcp/approvals").text().contains(&id));
    bridge.get(&format!("/mcp/approvals/{id}")).refused(404, "not_found");
    let walk_in = bridge.post(&format!("/mcp/approvals/{id}"), &json!({"answer": "approve"}));
    walk_in.refused(403, "scope_missing");

    answer(&bridge, &wait_for_look(&bridge, "no", "new"), "deny");
    bridge.wait_for_status("no", "disabled");
    answer(&bridge, &id, "approve");
    echo(&bridge, "yes");
    assert_eq!(yes.seen().starts().len(), 1);
    assert_eq!((no.seen().starts(), waits.seen().starts()), (vec![], vec![]));
    assert_eq!(bridge.status("waits"), "needs_review");
    // What was answered is no question any more.
    bridge
        .owner_post(&format!("/mcp/approvals/{id}"), &json!({"answer": "approve"}))
        .refused(404, "not_found");
    // It is off, and turning it on in the file is a question again.
    assert!(bridge.home.config().contains("\"enabled\": false"));
    let on = bridge.home.config().replace("\"enabled\": false", "\"enabled\": true");
    bridge.home.write_config(&on);
    assert_waits(&bridge, "no");
    assert_eq!(no.seen().starts(), [0_u32; 0]);
    bridge.terminate();
}

#[test]
fn an_edit_of_a_running_one_stops_it_and_waits_and_the_way_back_asks_nothing() {
    let home = Home::new();
    let first = Fake::new("ok").record(&home.record("first"));
    let second = Fake::new("ok").record(&home.record("second"));
    let bridge = serve(home, [("x", first.entry())]);
    approve(&bridge, "x", "new");
    echo(&bridge, "x");
    let before = waiting(&bridge);
    assert!(before.is_empty(), "{before:?}");

    bridge.home.write_config(&config_text([("x", second.entry())]));
    assert_waits(&bridge, "x");
    eventually_equals("the old program is gone", Vec::<u32>::new(), SOON, || bridge.children());
    let old = wait_for_look(&bridge, "x", "changed");
    let shown = bridge.owner_get(&format!("/mcp/approvals/{old}")).ok();
    assert!(
        shown["launch"]["before"]["command_line"]
            .to_string()
            .contains("first.record"),
        "{shown}"
    );

    bridge.home.write_config(&config_text([("x", first.entry())]));
    echo(&bridge, "x");
    assert_eq!(second.seen().starts(), [0_u32; 0]);
    assert!(waiting(&bridge).is_empty());
    // A yes to what is not there any more is none.
    bridge
        .owner_post(&format!("/mcp/approvals/{old}"), &json!({"answer": "approve"}))
        .refused(404, "not_found");

    // Approving the second retires the first.
    bridge.home.write_config(&config_text([("x", second.entry())]));
    approve(&bridge, "x", "changed");
    echo(&bridge, "x");
    bridge.home.write_config(&config_text([("x", first.entry())]));
    assert_waits(&bridge, "x");
    assert_eq!(first.seen().starts().len(), 2);
    bridge.terminate();
}

#[test]
fn what_was_allowed_holds_over_a_restart_and_what_changed_meanwhile_waits() {
    let home = Home::new();
    let same = Fake::new("ok").record(&home.record("same"));
    let narrow = Fake::new("ok").record(&home.record("narrow"));
    let wide = Fake::new("ok").record(&home.record("wide"));
    let bridge = serve(home, [("same", same.entry()), ("x", wide.entry())]);
    approve(&bridge, "same", "new");
    approve(&bridge, "x", "new");
    echo(&bridge, "same");
    bridge
        .home
        .write_config(&config_text([("same", same.entry()), ("x", narrow.entry())]));
    approve(&bridge, "x", "changed");
    echo(&bridge, "x");
    let home = bridge.terminate();
    let starts = wide.seen().starts().len();

    // The older, wider entry is put back while nothing runs.
    home.write_config(&config_text([("same", same.entry()), ("x", wide.entry())]));
    let bridge = Daemon::start_in(home, with_review());
    echo(&bridge, "same");
    assert_waits(&bridge, "x");
    assert_eq!(wide.seen().starts().len(), starts);
    bridge.terminate();
}

#[test]
fn rows_that_are_deleted_rolled_back_or_without_their_key_allow_nothing() {
    let home = Home::new();
    let fakes = ["a", "b"].map(|name| Fake::new("ok").record(&home.record(name)));
    let [a, b] = &fakes;
    let bridge = serve(home, [("a", a.entry()), ("b", b.entry())]);
    approve(&bridge, "a", "new");
    echo(&bridge, "a");
    let home = bridge.terminate();
    let folder = home.neuron().join("connect");
    let files = ["state.db", "state.db-wal", "state.db-shm"];
    let copy: Vec<_> = files.iter().map(|file| fs::read(folder.join(file)).ok()).collect();
    let bridge = Daemon::start_in(home, with_review());
    approve(&bridge, "b", "new");
    echo(&bridge, "b");
    let home = bridge.terminate();
    let restore = |copy: &[Option<Vec<u8>>]| {
        for (file, content) in files.iter().zip(copy) {
            let path = folder.join(file);
            match content {
                Some(content) => fs::write(path, content).unwrap(),
                None => drop(fs::remove_file(path)),
            }
        }
    };
    let present: Vec<_> = files.iter().map(|file| fs::read(folder.join(file)).ok()).collect();
    let starts = (a.seen().starts().len(), b.seen().starts().len());
    let asks = |home: Home, what: &str| {
        let bridge = Daemon::start_in(home, with_review());
        for server in ["a", "b"] {
            bridge.wait_for_status(server, "needs_review");
            let call = json!({"name": format!("mcp__{server}__echo"), "input": {}});
            bridge.owner_post("/mcp/call", &call).refused(409, "needs_review");
            bridge.post("/mcp/call", &call).refused(401, "unauthorized");
        }
        assert_eq!((a.seen().starts().len(), b.seen().starts().len()), starts, "{what}");
        bridge.terminate()
    };
    restore(&copy);
    let home = asks(home, "rolled back");
    restore(&[None, None, None]);
    let home = asks(home, "deleted");
    restore(&present);
    let key = folder.join("trust.key");
    let kept = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let home = asks(home, "without its key");
    // With everything back as it was, everything is as it was.
    restore(&present);
    fs::write(&key, kept).unwrap();
    let bridge = Daemon::start_in(home, with_review());
    echo(&bridge, "a");
    bridge.terminate();
}

#[test]
fn what_goes_into_a_launch_by_value_counts() {
    let home = Home::new();
    let file = home.path().join("x.env");
    fs::write(&file, "A=1\n").unwrap();
    let program = Fake::new("ok")
        .record(&home.record("program"))
        .member("envFile", json!(file));
    let server = HttpFake::start(home.path(), "server", &[]);
    let mut contact = server.entry();
    contact["headers"] = json!({"X-Team": "${env:TEAM}"});
    home.write_config(&config_text([("program", program.entry()), ("contact", contact)]));
    let setup = |team: &str| with_review().variable("TEAM", team);
    let bridge = Daemon::start_in(home, setup("one"));
    assert_waits(&bridge, "contact");
    assert_eq!(server.seen().requests("POST") + server.seen().requests("GET"), 0);
    approve(&bridge, "program", "new");
    approve(&bridge, "contact", "new");
    echo(&bridge, "program");
    echo(&bridge, "contact");
    let home = bridge.terminate();
    let (starts, posts) = (program.seen().starts().len(), server.seen().requests("POST"));

    fs::write(&file, "A=2\n").unwrap();
    let bridge = Daemon::start_in(home, setup("two"));
    assert_waits(&bridge, "program");
    assert_waits(&bridge, "contact");
    assert_eq!(
        (program.seen().starts().len(), server.seen().requests("POST")),
        (starts, posts)
    );
    // Changed once more after it was shown: the yes is for nothing that is there.
    let id = wait_for_look(&bridge, "program", "changed");
    fs::write(&file, "A=3\nLD_PRELOAD=/x\n").unwrap();
    bridge
        .owner_post(&format!("/mcp/approvals/{id}"), &json!({"answer": "approve"}))
        .refused(404, "not_found");
    assert_eq!(program.seen().starts().len(), starts);
    let next = eventually("the newer content waits", SOON, || {
        let now = waiting(&bridge).into_iter().find(|(_, of, _)| of == "program")?;
        (now.0 != id).then_some(now.0)
    });
    let shown = bridge.owner_get(&format!("/mcp/approvals/{next}")).ok();
    assert!(
        shown["launch"]["stands_out"].to_string().contains("LD_PRELOAD"),
        "{shown}"
    );
    // Put back, it is what was allowed.
    fs::write(&file, "A=1\n").unwrap();
    bridge
        .owner_post("/mcp/servers/reconnect", &json!({"id": "program"}))
        .ok();
    echo(&bridge, "program");
    bridge.terminate();
}

#[test]
fn what_the_file_alone_turns_on_or_shows_waits() {
    let home = Home::new();
    let program = Fake::new("ok")
        .record(&home.record("program"))
        .member("disabledTools", json!(["slow"]));
    let bridge = serve(home, [("x", program.entry())]);
    approve(&bridge, "x", "new");
    echo(&bridge, "x");
    let with = |name: &str, value: Value| config_text([("x", program.clone().member(name, value).entry())]);

    // Fewer hidden tools: it goes on running, and the tool stays hidden.
    bridge.home.write_config(&with("disabledTools", json!([])));
    let id = wait_for_look(&bridge, "x", "tools_shown");
    assert_eq!(bridge.status("x"), "connected");
    bridge.call("mcp__x__slow", &json!({})).refused(409, "disabled");
    echo(&bridge, "x");
    answer(&bridge, &id, "deny");
    eventually("the file hides it again", SOON, || {
        bridge.home.config().contains("slow").then_some(())
    });
    assert!(waiting(&bridge).is_empty());
    bridge.home.write_config(&with("disabledTools", json!([])));
    approve(&bridge, "x", "tools_shown");
    bridge.wait_for_tool("mcp__x__slow");

    // Turned off in the file at once, and on again after a look.
    bridge.home.write_config(&with("enabled", json!(false)));
    bridge.wait_for_status("x", "disabled");
    let starts = program.seen().starts().len();
    bridge.home.write_config(&with("enabled", json!(true)));
    wait_for_look(&bridge, "x", "turned_on");
    assert_waits(&bridge, "x");
    assert_eq!(program.seen().starts().len(), starts);
    // The owner's own click is the look.
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "x", "enabled": true}))
        .ok();
    echo(&bridge, "x");
    bridge.terminate();
}

#[test]
fn a_look_waits_and_can_be_taken_while_the_connector_is_paused_and_the_pause_goes_on() {
    let home = Home::new();
    let program = Fake::new("ok")
        .record(&home.record("program"))
        .member("disabledTools", json!(["slow"]));
    let bridge = serve(home, [("x", program.entry())]);
    let off = || {
        bridge
            .post("/mcp/servers/toggle", &json!({"id": "x", "enabled": false}))
            .ok()
    };

    // Paused while it waits: nothing is hidden from the person.
    assert_waits(&bridge, "x");
    off();
    assert_waits(&bridge, "x");
    approve(&bridge, "x", "new");
    bridge.wait_for_status("x", "paused");
    bridge.call("mcp__x__echo", &json!({})).refused(409, "disabled");
    assert!(waiting(&bridge).is_empty());
    assert_eq!(program.seen().starts(), [0_u32; 0]);

    // What comes to wait during a pause is shown too.
    bridge.home.write_config(&config_text([(
        "x",
        program.clone().member("disabledTools", json!([])).entry(),
    )]));
    approve(&bridge, "x", "tools_shown");
    bridge.home.write_config(&config_text([(
        "x",
        program.clone().member("env", json!({"A": "1"})).entry(),
    )]));
    wait_for_look(&bridge, "x", "changed");
    assert_waits(&bridge, "x");
    bridge.home.write_config(&config_text([("x", program.entry())]));
    bridge.wait_for_status("x", "paused");
    assert_eq!(program.seen().starts(), [0_u32; 0]);

    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "x", "enabled": true}))
        .ok();
    echo(&bridge, "x");
    bridge.terminate();
}

#[test]
fn what_another_launch_listed_is_never_offered_in_the_name_of_the_allowed_one() {
    let bridge = serve(Home::new(), [("x", Fake::new("ok").entry())]);
    approve(&bridge, "x", "new");
    bridge.wait_for_tool("mcp__x__echo");
    // It lists nothing, however long one waits.
    let silent = Fake::new("never-initialize").entry();
    bridge.home.write_config(&config_text([("x", silent)]));
    approve(&bridge, "x", "changed");
    assert_eq!(bridge.tool_names(), [""; 0]);
    bridge.call("mcp__x__echo", &json!({})).refused(404, "unknown_tool");
    assert_eq!(bridge.tool_names(), [""; 0]);
    bridge.terminate();
}

#[test]
fn a_yes_to_what_stands_under_an_id_turns_nothing_else_on() {
    let home = Home::new();
    let [mine, other] = ["mine", "other"].map(|name| Fake::new("ok").record(&home.record(name)));
    let bridge = serve(home, [("x", mine.entry())]);
    approve(&bridge, "x", "new");
    echo(&bridge, "x");
    let toggle = |enabled: bool| {
        let body = json!({"id": "x", "enabled": enabled});
        bridge.owner_post("/mcp/servers/toggle", &body).ok();
    };
    toggle(false);
    bridge.wait_for_status("x", "disabled");
    let starts = mine.seen().starts().len();
    let comes_back = || {
        bridge.home.write_config(&config_text([("x", mine.entry())]));
        assert_waits(&bridge, "x");
        assert_eq!(mine.seen().starts().len(), starts);
    };

    // The switch, for another program.
    let off = other.clone().member("enabled", json!(false));
    bridge.home.write_config(&config_text([("x", off.entry())]));
    bridge.wait_for_status("x", "disabled");
    toggle(true);
    assert_waits(&bridge, "x");
    assert_eq!(other.seen().starts(), [0_u32; 0]);
    comes_back();

    // A yes, for the files of this program.
    let files = json!({"command": "neuron-connectd", "args": ["files", "~/neuron-connectd-sandbox"]});
    bridge.home.write_config(&config_text([("x", files)]));
    approve(&bridge, "x", "turned_on");
    bridge.wait_for_tool("mcp__x__list_directory");
    comes_back();
    bridge.terminate();
}

#[test]
fn a_secret_goes_to_the_launch_it_was_entered_for_and_on_to_the_one_that_is_allowed() {
    let home = Home::new();
    let env = json!({"GIVEN": "${secret:KEY}"});
    let first = Fake::new("ok").record(&home.record("first")).member("env", env.clone());
    let second = Fake::new("ok").record(&home.record("second")).member("env", env);
    let (here, there) = (
        HttpFake::start(home.path(), "here", &[]),
        HttpFake::start(home.path(), "there", &[]),
    );
    let with_token = |server: &HttpFake| {
        let mut entry = server.entry();
        entry["auth"] = json!("token");
        entry
    };
    let bridge = serve(home, [("program", first.entry()), ("contact", with_token(&here))]);
    let enter = |id: &str| {
        let name = (id == "program").then_some("KEY");
        bridge.owner_post("/mcp/servers/secret", &json!({"id": id, "name": name, "secret": KEY}))
    };
    for id in ["program", "contact"] {
        assert_waits(&bridge, id);
        enter(id).refused(409, "needs_review");
        approve(&bridge, id, "new");
        bridge.wait_for_status(id, "needs_secret");
        enter(id).ok();
        echo(&bridge, id);
    }
    bridge.home.write_config(&config_text([
        ("program", second.entry()),
        ("contact", with_token(&there)),
    ]));
    assert_waits(&bridge, "program");
    assert_waits(&bridge, "contact");
    assert_eq!(second.seen().starts(), [0_u32; 0]);
    assert_eq!(there.seen().requests("POST") + there.seen().requests("GET"), 0);
    // What is typed while the file already says another place is kept for neither.
    enter("program").refused(409, "needs_review");
    enter("contact").refused(409, "needs_review");
    // Another command of the same connector gets the secret, as it was shown; another server does not.
    approve(&bridge, "program", "changed");
    approve(&bridge, "contact", "changed");
    bridge.wait_for_tool("mcp__program__env");
    let told = bridge.call_text("mcp__program__env", &json!({}));
    assert!(told.contains("GIVEN=[REDACTED:secret:KEY]"), "{told}");
    let row = bridge.wait_for_status("contact", "needs_secret");
    assert!(row["error"].as_str().unwrap().contains("not set"), "{row}");
    assert!(!there.seen().lines().iter().any(|line| line.contains(KEY)));
    bridge.terminate();
}

#[test]
fn the_owners_own_changes_are_their_own_look_and_a_removed_one_asks_anew() {
    let home = Home::new();
    let program = Fake::new("ok").record(&home.record("program"));
    let bridge = serve(home, []);
    let mut body = program.entry();
    body["id"] = json!("x");
    bridge.owner_post("/mcp/servers/add", &body).ok();
    echo(&bridge, "x");
    bridge.owner_post("/mcp/servers/remove", &json!({"id": "x"})).ok();
    let starts = program.seen().starts().len();
    bridge.home.write_config(&config_text([("x", program.entry())]));
    wait_for_look(&bridge, "x", "new");
    assert_waits(&bridge, "x");
    // Turning a strange entry off and on by a click is no look at what it runs.
    for enabled in [false, true] {
        bridge
            .owner_post("/mcp/servers/toggle", &json!({"id": "x", "enabled": enabled}))
            .ok();
    }
    assert_waits(&bridge, "x");
    assert_eq!(program.seen().starts().len(), starts);
    bridge.terminate();
}

#[test]
fn the_default_connector_needs_no_look_and_the_same_server_on_all_of_the_home_does() {
    let bridge = Daemon::start_in(Home::new(), with_review());
    bridge.call_text("mcp__filesystem__list_directory", &json!({"path": "."}));
    assert!(waiting(&bridge).is_empty());
    let wide = json!({"command": "neuron-connectd", "args": ["files", "~"]});
    bridge.home.write_config(&config_text([("filesystem", wide)]));
    let id = wait_for_look(&bridge, "filesystem", "new");
    assert_waits(&bridge, "filesystem");
    let shown = bridge.owner_get(&format!("/mcp/approvals/{id}")).ok();
    assert!(
        shown["launch"]["stands_out"].to_string().contains("wide_folder"),
        "{shown}"
    );
    bridge.terminate();
}

#[test]
fn the_command_line_shows_everything_that_waits_and_allows_it_at_once() {
    let home = Home::new();
    let fakes = ["a", "b"].map(|name| Fake::new("ok").record(&home.record(name)));
    let [a, b] = &fakes;
    let bridge = serve(home, [("a", a.entry()), ("b", b.entry())]);
    wait_for_look(&bridge, "b", "new");
    let told = |arguments: &[&str]| {
        let output = bridge.command(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let list = told(&["approvals"]);
    for part in ["a (a) is new", "b (b) is new", "runs: ", "a.record", "b.record"] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let status = told(&["status"]);
    assert!(status.contains("neuron-connectd approvals"), "{status}");
    let allowed = told(&["approve", "--all"]);
    assert_eq!(allowed.trim(), "Allowed: a, b.");
    echo(&bridge, "a");
    echo(&bridge, "b");
    assert_eq!(told(&["approvals"]).trim(), "Nothing waits for you.");
    bridge.terminate();
}
