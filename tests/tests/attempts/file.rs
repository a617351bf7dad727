//! Ways through `connectors.json` and what lies around it.

use std::fs;

use neuron_tests::{
    fake::Fake,
    home::{Home, config_text},
    http::Connection,
    tray::Tray,
};
use serde_json::{Map, Value, json};

use crate::world::{Effects, READ, World, rule, text};

/// How one edit of the file shows to the person.
#[derive(Clone, Copy)]
enum Asks {
    /// The connector waits for a look, and neither runs nor is contacted.
    ToRun(&'static str),
    /// `x` goes on as it was, and this kind waits.
    More(&'static str),
}

type Edit = (&'static str, fn(&World, &mut Map<String, Value>), Asks);

/// Every way to get something out of `connectors.json`.
const EDITS: [Edit; 22] = [
    ("another program", |w, s| s["x"] = w.marker.entry(), Asks::ToRun("x")),
    (
        "one more argument",
        |w, s| {
            let arguments = s["x"]["args"].as_array_mut().expect("arguments");
            arguments.extend([json!("--record"), w.marker.entry()["args"][2].clone()]);
        },
        Asks::ToRun("x"),
    ),
    (
        "one more variable",
        |_, s| s["x"]["env"]["MORE"] = json!("1"),
        Asks::ToRun("x"),
    ),
    (
        "a library of one's own",
        |_, s| s["x"]["env"]["LD_PRELOAD"] = json!("/tmp/x.so"),
        Asks::ToRun("x"),
    ),
    (
        "another variable of the person",
        |_, s| s["x"]["env"]["GIVEN"] = json!("${env:HOME}"),
        Asks::ToRun("x"),
    ),
    (
        "another folder",
        |w, s| s["x"]["cwd"] = json!(w.bridge.home.path()),
        Asks::ToRun("x"),
    ),
    (
        "a shell around it",
        |w, s| {
            let marker = w.bridge.home.record("marker");
            s["x"]["command"] = json!("sh");
            s["x"]["args"] = json!(["-c", format!("echo '# start 1' > {}", marker.display())]);
        },
        Asks::ToRun("x"),
    ),
    (
        "another file of variables",
        |w, s| {
            let other = w.bridge.home.path().join("other.env");
            fs::write(&other, "LD_PRELOAD=/tmp/x.so\n").expect("the home is writable");
            s["x"]["envFile"] = json!(other);
        },
        Asks::ToRun("x"),
    ),
    (
        "a server in place of the program",
        |w, s| s["x"] = w.thief.entry(),
        Asks::ToRun("x"),
    ),
    (
        "another address for the token",
        |w, s| s["remote"]["url"] = json!(w.thief.url()),
        Asks::ToRun("remote"),
    ),
    (
        "another path of the same server",
        |w, s| s["remote"]["url"] = json!(w.remote.url_at("/other")),
        Asks::ToRun("remote"),
    ),
    (
        "a header with one of the person's variables",
        |_, s| s["remote"]["headers"] = json!({"X-Home": "${env:HOME}"}),
        Asks::ToRun("remote"),
    ),
    (
        "a header with another connector's secret",
        |_, s| s["remote"]["headers"] = json!({"X-Key": "${secret:KEY}"}),
        Asks::ToRun("remote"),
    ),
    (
        "a sign-in of one's own",
        |_, s| {
            let members = s["remote"].as_object_mut().expect("an entry");
            members.remove("auth");
            members.insert("oauth".to_owned(), json!({"clientId": "theirs"}));
        },
        Asks::ToRun("remote"),
    ),
    (
        "a new program",
        |w, s| drop(s.insert("new".to_owned(), w.marker.entry())),
        Asks::ToRun("new"),
    ),
    (
        "a new server that is given a known secret",
        |w, s| {
            let mut entry = w.thief.entry();
            entry["headers"] = json!({"Authorization": "${secret:KEY}"});
            s.insert("new".to_owned(), entry);
        },
        Asks::ToRun("new"),
    ),
    (
        "what is allowed, under another name",
        |_, s| drop(s.insert("copy".to_owned(), s["x"].clone())),
        Asks::ToRun("copy"),
    ),
    (
        "another program under the name of one with secrets, which goes under another",
        |w, s| {
            let before = std::mem::replace(&mut s["x"], w.marker.entry());
            s["x"]["env"] = before["env"].clone();
            s.insert("moved".to_owned(), before);
        },
        Asks::ToRun("moved"),
    ),
    (
        "what is off, on",
        |_, s| s["off"]["enabled"] = json!(true),
        Asks::ToRun("off"),
    ),
    (
        "what is off, on, as it is where nothing is said",
        |_, s| drop(s["off"].as_object_mut().expect("an entry").remove("enabled")),
        Asks::ToRun("off"),
    ),
    (
        "no tool hidden",
        |_, s| s["x"]["disabledTools"] = json!([]),
        Asks::More("launch"),
    ),
    (
        "every tool without a question",
        |_, s| s["x"]["autoApprove"] = json!(true),
        Asks::More("rule"),
    ),
];

/// What holds while an edit waits for the person.
fn waits(world: &World, before: &Effects, what: &str, asks: Asks) {
    match asks {
        Asks::ToRun(id) => {
            world.bridge.wait_for_status(id, "needs_review");
            let again = json!({"id": id});
            for path in ["/mcp/servers/reconnect", "/mcp/servers/stop-trying"] {
                world.bridge.post(path, &again);
            }
            world.bridge.wait_for_status(id, "needs_review");
        }
        Asks::More(kind) => drop(world.bridge.wait_for(kind, "x")),
    }
    world.walk_ins_cannot_answer(what);
    for name in [
        READ,
        "mcp__x__hidden",
        "mcp__new__echo",
        "mcp__off__echo",
        "mcp__copy__read",
    ] {
        world.is_not_called(name, &json!({"path": "b.txt"}));
    }
    world.assert_no_effect(before, what);
}

#[test]
fn no_edit_of_the_file_starts_sends_shows_or_allows_anything_while_the_app_runs() {
    let world = World::start();
    let before = world.effects();
    for (what, change, asks) in EDITS {
        let mut servers = world.servers.clone();
        change(&world, &mut servers);
        world.write(&servers);
        waits(&world, &before, what, asks);
        assert_eq!(
            world.bridge.home.config(),
            text(&servers),
            "{what}: nobody changes what was written"
        );
        world.write(&world.servers);
        world.is_well();
    }
    // Nor by a link in its place.
    let elsewhere = world.bridge.home.path().join("theirs.json");
    let mut servers = world.servers.clone();
    servers.insert("new".to_owned(), world.marker.entry());
    fs::write(&elsewhere, text(&servers)).unwrap();
    fs::remove_file(world.bridge.home.config_file()).unwrap();
    std::os::unix::fs::symlink(&elsewhere, world.bridge.home.config_file()).unwrap();
    waits(&world, &before, "a link in its place", Asks::ToRun("new"));
    // The yes works, for exactly that.
    world.bridge.approve("new");
    world.bridge.wait_for_status("new", "connected");
    assert_eq!(world.marker.seen().starts().len(), 1);
    world.bridge.close();
}

#[test]
fn no_edit_of_the_file_starts_sends_shows_or_allows_anything_while_the_app_is_closed() {
    let mut world = World::start();
    let before = world.effects();
    for (what, change, asks) in EDITS {
        let mut servers = world.servers.clone();
        change(&world, &mut servers);
        world = world.while_closed(|home| home.write_config(&text(&servers)));
        waits(&world, &before, what, asks);
        world.write(&world.servers);
        world.is_well();
    }
    world.bridge.close();
}

#[test]
fn nothing_around_the_file_counts_for_more_than_the_file() {
    let world = World::start();
    let before = world.effects();
    // What the file of variables says, while it runs and while it does not.
    let env_file = world.env_file.clone();
    let world = world.while_closed(|_| fs::write(&env_file, "A=1\nLD_PRELOAD=/tmp/x.so\n").unwrap());
    waits(&world, &before, "the file of variables", Asks::ToRun("x"));
    fs::write(&world.env_file, "A=1\n").unwrap();
    world.bridge.owner_post("/mcp/servers/reconnect", &json!({"id": "x"}));
    world.is_well();
    // An older and wider entry, put back after a narrower one was allowed.
    let wider = world.servers.clone();
    let mut narrower = wider.clone();
    narrower["x"]["env"]["SCOPE"] = json!("narrow");
    let mut world = world;
    world.write(&narrower);
    world.bridge.approve("x");
    // The rules go on for it.
    let asleep = world.bridge.wait_for("asleep", "x");
    world.bridge.answer(&asleep, "approve").ok();
    world.servers = narrower;
    world.is_well();
    let before = world.effects();
    world.write(&wider);
    waits(&world, &before, "an older entry", Asks::ToRun("x"));
    let world = world.while_closed(|_| ());
    waits(&world, &before, "an older entry, after a restart", Asks::ToRun("x"));
    // Settings that sound like trust.
    world.write(&world.servers);
    let mut servers = world.servers.clone();
    servers.insert("new".to_owned(), world.marker.entry());
    let world = world.while_closed(|home| {
        home.write_config(&text(&servers));
        let every = json!({
            "walk_in": "allow", "walkIn": "allow", "api_mode": "open", "apiMode": "open", "review": false,
            "trust": {"review": false, "walk_in": "allow"}, "owner": "walk_in", "socket": "owner",
            "allowed_origins": ["https://evil.example"], "allowedOrigins": ["https://evil.example"],
            "rules": [rule("allow", "*", Value::Null)], "askers": ["*"], "approved": ["x", "new"], "autoApprove": true,
            "shell": "headless", "host": "headless", "secrets": "memory", "clients": [{"token": "theirs"}],
        });
        home.write_settings(&every);
    });
    waits(&world, &before, "settings", Asks::ToRun("new"));
    let page = [("origin", "https://evil.example")];
    for door in world.bridge.doors() {
        let answer = Connection::open(&door).send("GET", "/mcp/tools", &page, b"");
        answer.refused(403, "origin_not_allowed");
    }
    world.bridge.close();
}

/// The rule of a first start is for a home in which nothing was decided yet.
#[test]
fn a_file_that_goes_allows_nothing() {
    let home = Home::new();
    home.write_config(&config_text([("x", Fake::new("ok").entry())]));
    let tray = Tray::start(home);
    tray.approve("x");
    tray.wait_for_status("x", "connected");
    let (home, session) = tray.close();
    fs::remove_file(home.config_file()).unwrap();
    let tray = Tray::start_with(home, session);
    tray.wait_for_status("filesystem", "sleeping");
    let tools = tray.get("/mcp/tools").ok();
    assert!(tools.to_string().contains("mcp__filesystem__read_text_file"), "{tools}");
    assert_eq!(tray.owner_get("/mcp/rules").ok()["rules"], json!([]));
    assert_eq!(tray.get("/mcp/auto-approved").ok()["tools"], json!([]));
    tray.close();
}
