//! Signing in at a real server: FastMCP with its own authorization server and tokens that live for seconds.

use std::time::{Duration, Instant};

use neuron_tests::{
    daemon::Daemon,
    home::{Home, config_text},
    http::{Address, Connection},
    signing_in::kept_in_file,
    upstream::{SLOW_START, Served, free_port},
    wait::eventually,
};
use serde_json::{Value, json};
use url::{Position, Url};

const ADD: &str = "mcp__remote__add";
/// Seconds that a token lives.
const LIFETIME: u64 = 5;

/// Follows an address through every page that leads on by itself, to the one that leads to the bridge; what that answers.
fn follow(address: &str) -> (u16, String) {
    let mut url = Url::parse(address).unwrap();
    for _ in 0..10 {
        let port = url.port().unwrap();
        let place = &url[Position::BeforePath..Position::AfterQuery];
        let answer = Connection::open(&Address::Tcp(port)).send("GET", place, &[("sec-fetch-site", "cross-site")], b"");
        match answer.header("location") {
            Some(next) => url = url.join(next).unwrap(),
            None => return (answer.status, answer.text()),
        }
    }
    panic!("{url} leads in circles")
}

#[test]
fn a_person_stays_signed_in_at_a_real_server_while_its_tokens_come_and_go() {
    let home = Home::new();
    let upstream = Served::start_with(free_port(), "oauth.py", &[&LIFETIME.to_string()]);
    home.write_config(&config_text([("remote", upstream.entry())]));
    let setup = kept_in_file(&home);
    let bridge = Daemon::start_in(home, setup);
    bridge.wait_for_status("remote", "needs_sign_in");
    let started = bridge.owner_post("/mcp/oauth/start", &json!({"id": "remote"})).ok();
    let mut events = Connection::open(&bridge.local()).events("/mcp/events", &[]);
    let (status, page) = follow(started["authUrl"].as_str().unwrap());
    let finished = events.next("the sign-in's end", |event| event.name == "sign_in_finished");
    assert_eq!(status, 200, "{page} {finished:?}");
    let row = eventually("it is connected", SLOW_START, || {
        bridge.server("remote").filter(|row| row["status"] == "connected")
    });
    assert_eq!(row["auth"]["state"], "signed-in", "{row}");
    let sum = |bridge: &Daemon| bridge.call_text(ADD, &json!({"a": 2, "b": 3}));
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2 * LIFETIME + 1) {
        std::thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| assert_eq!(sum(&bridge), "5"));
            }
        });
    }
    let bridge = bridge.restart();
    bridge.wait_for_tool(ADD);
    assert_eq!(sum(&bridge), "5", "also after a restart");
    bridge.owner_post("/mcp/oauth/sign-out", &json!({"id": "remote"})).ok();
    let row: Value = bridge.wait_for_status("remote", "needs_sign_in");
    assert_eq!(row["auth"]["state"], "needs-sign-in", "{row}");
    bridge.call(ADD, &json!({"a": 1})).refused(409, "needs_sign_in");
}
