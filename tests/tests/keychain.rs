//! The real keyring: where secrets lie, and what happens when it is not there, locked, or silent.

use neuron_tests::{
    authority::Authority,
    daemon::Daemon,
    fake::{Fake, HttpFake},
    home::{Home, config_text},
    keyring::Session,
    signing_in::SignIn,
    wait::{SOON, eventually, eventually_equals},
};
use serde_json::{Value, json};

const SERVICE: &str = "ai.neuron.connect";
/// The account of the key of what the person decided.
const TRUST: &str = ":trust";

/// A server that wants a token, at launch, and a program that wants nothing.
fn home_with_token(server: &HttpFake, home: Home) -> Home {
    let mut entry = server.entry();
    entry["auth"] = json!("token");
    entry["start"] = json!("at-launch");
    home.write_config(&config_text([("tracker", entry), ("plain", Fake::new("ok").entry())]));
    home
}

fn server_with_key(home: &Home) -> HttpFake {
    HttpFake::start(home.path(), "server", &[("key", "the-token-of-tracker")])
}

fn set_token(bridge: &Daemon) {
    let body = json!({"id": "tracker", "secret": "the-token-of-tracker"});
    bridge.owner_post("/mcp/servers/secret", &body).ok();
    bridge.wait_for_status("tracker", "connected");
}

fn keychain(bridge: &Daemon) -> Value {
    bridge.owner_get("/mcp/servers").ok()["keychain"].clone()
}

fn look_again(bridge: &Daemon) -> Value {
    bridge
        .owner_post("/mcp/keychain", &json!({"action": "look_again"}))
        .ok()["keychain"]
        .clone()
}

#[test]
fn accounts_lie_in_the_keyring_as_documented_survive_a_restart_and_go_with_their_connector() {
    let session = Session::start();
    let home = Home::new();
    let server = server_with_key(&home);
    let home = home_with_token(&server, home);
    let program = Fake::new("ok").member("env", json!({"API_KEY": "${secret:API_KEY}"}));
    let mut config: Value = serde_json::from_str(&home.config()).unwrap();
    config["servers"]["program"] = program.entry();
    home.write_config(&config.to_string());

    let bridge = Daemon::start_in(home, session.setup());
    bridge.wait_for_status("tracker", "needs_secret");
    assert_eq!(session.entered(SERVICE), [""; 0]);
    set_token(&bridge);
    let body = json!({"id": "program", "name": "API_KEY", "secret": "the-key-of-program"});
    bridge.owner_post("/mcp/servers/secret", &body).ok();
    bridge.wait_for_status("program", "connected");
    assert_eq!(session.accounts(SERVICE), [TRUST, "program:secret:API_KEY", "tracker"]);

    let bridge = bridge.restart();
    bridge.wait_for_status("tracker", "connected");
    let environment = bridge.call_text("mcp__program__env", &json!({}));
    assert!(
        environment
            .lines()
            .any(|line| line == "API_KEY=[REDACTED:secret:API_KEY]"),
        "{environment}"
    );
    for id in ["program", "tracker"] {
        bridge.owner_post("/mcp/servers/remove", &json!({ "id": id })).ok();
    }
    assert_eq!(session.accounts(SERVICE), [TRUST]);
    bridge.terminate();
}

#[test]
fn a_keyring_that_comes_after_the_start_is_found_without_a_restart() {
    let mut session = Session::start();
    let home = Home::new();
    let server = server_with_key(&home);
    let bridge = Daemon::start_in(home_with_token(&server, home), session.setup());
    bridge.wait_for_status("tracker", "needs_secret");
    set_token(&bridge);
    let home = bridge.terminate();

    session.stop_keyring();
    let bridge = Daemon::start_in(home, session.setup());
    let row = bridge.wait_for_status("tracker", "keychain_unavailable");
    assert_eq!(row["action"], "unlock_keychain");
    assert_eq!(keychain(&bridge)["state"], "absent");
    // The key of what was decided is missing too; nothing is kept anywhere in place of the keyring.
    let plain = bridge.call("mcp__plain__echo", &json!({}));
    plain.refused(503, "keychain_unavailable");
    let body = json!({"id": "tracker", "secret": "another-token-that-is-not-kept"});
    bridge
        .owner_post("/mcp/servers/secret", &body)
        .refused(503, "keychain_unavailable");

    session.start_keyring();
    bridge.wait_for_status("tracker", "connected");
    assert_eq!(keychain(&bridge)["state"], "ready");
    bridge.call_text("mcp__tracker__echo", &json!({}));
    bridge.terminate();
}

#[test]
fn a_locked_keyring_is_told_at_once_loses_nothing_and_is_found_open_again() {
    let session = Session::start();
    let home = Home::new();
    let server = server_with_key(&home);
    let bridge = Daemon::start_in(home_with_token(&server, home), session.setup());
    bridge.wait_for_status("tracker", "needs_secret");
    set_token(&bridge);
    let home = bridge.terminate();

    session.lock();
    let bridge = Daemon::start_in(home, session.setup());
    bridge.wait_for_status("tracker", "keychain_unavailable");
    assert_eq!(keychain(&bridge)["state"], "locked");
    // All of this is answered while it is locked.
    let answer = bridge.call("mcp__tracker__echo", &json!({}));
    assert!(answer.header("retry-after").is_some());
    answer.refused(503, "keychain_unavailable");
    let plain = bridge.call("mcp__plain__echo", &json!({}));
    plain.refused(503, "keychain_unavailable");
    let detail = bridge.owner_get("/mcp/servers/tracker").ok();
    assert_eq!(
        detail["secrets"],
        json!([{"name": null, "set": null, "withheld": false}])
    );
    // Nobody can be asked here; it stays locked, and says so.
    assert_eq!(look_again(&bridge)["state"], "locked");
    assert_eq!(session.entered(SERVICE), ["tracker"]);
    let asked = server.seen().requests("POST");

    session.unlock();
    bridge.wait_for_status("tracker", "connected");
    assert!(server.seen().requests("POST") > asked);
    bridge.call_text("mcp__tracker__echo", &json!({}));
    let detail = bridge.owner_get("/mcp/servers/tracker").ok();
    assert_eq!(
        detail["secrets"],
        json!([{"name": null, "set": true, "withheld": false}])
    );
    bridge.terminate();
}

#[test]
fn a_locked_keyring_is_what_is_told_of_a_server_that_wants_a_sign_in_only_for_its_tools() {
    let session = Session::start();
    let home = Home::new();
    let authority = Authority::start(home.path(), "authority", &[]);
    home.write_config(&config_text([("remote", authority.entry())]));
    let bridge = Daemon::start_in(home, session.setup());
    let here = SignIn { bridge, authority };
    here.sign_in("remote");
    let bridge = here.bridge;

    session.lock();
    let options = [
        ("refuse", "401"),
        ("refuse-method", "tools/call"),
        ("refuse-times", "1"),
    ];
    let server = HttpFake::start(bridge.home.path(), "server", &options);
    bridge.home.write_config(&config_text([("remote", server.entry())]));
    // It is another server, with another tool of that name.
    let id = eventually("a changed tool", SOON, || {
        let waiting = bridge.owner_get("/mcp/approvals").ok();
        let mut waiting = waiting["approvals"].as_array()?.iter();
        let tools = waiting.find(|one| one["kind"] == "tools" && one["server"] == "remote")?;
        tools["id"].as_str().map(str::to_owned)
    });
    bridge
        .owner_post(&format!("/mcp/approvals/{id}"), &json!({"answer": "approve"}))
        .ok();
    bridge.wait_for_tool("mcp__remote__echo");
    bridge
        .call("mcp__remote__echo", &json!({}))
        .refused(503, "keychain_unavailable");
    bridge.wait_for_status("remote", "keychain_unavailable");
    session.unlock();
    bridge.wait_for_status("remote", "connected");
    assert_eq!(bridge.call_text("mcp__remote__echo", &json!({"n": 1})), "{\"n\":1}");
    bridge.terminate();
}

#[test]
fn what_is_removed_while_the_keyring_is_locked_is_gone_once_it_is_open() {
    let session = Session::start();
    let home = Home::new();
    let server = server_with_key(&home);
    let bridge = Daemon::start_in(home_with_token(&server, home), session.setup());
    bridge.wait_for_status("tracker", "needs_secret");
    set_token(&bridge);
    session.lock();
    bridge.owner_post("/mcp/servers/remove", &json!({"id": "tracker"})).ok();
    let bridge = bridge.restart();
    assert_eq!(session.entered(SERVICE), ["tracker"]);
    // Another connector of that name does not get it, however the keyring is.
    let mut entry = server.entry();
    entry["auth"] = json!("token");
    entry["id"] = json!("tracker");
    bridge.owner_post("/mcp/servers/add", &entry).ok();
    bridge.wait_for_status("tracker", "keychain_unavailable");
    session.unlock();
    bridge.wait_for_status("tracker", "needs_secret");
    eventually_equals("the accounts in the keyring", Vec::<String>::new(), SOON, || {
        session.entered(SERVICE)
    });
    bridge.terminate();
}

#[test]
fn a_keyring_that_does_not_answer_holds_up_nobody_else() {
    let session = Session::start();
    let home = Home::new();
    let server = server_with_key(&home);
    let bridge = Daemon::start_in(home_with_token(&server, home), session.setup());
    bridge.wait_for_status("tracker", "needs_secret");
    set_token(&bridge);
    session.freeze_keyring();
    // While a call to the keyring is held.
    let body = json!({"id": "tracker", "secret": "another-token"});
    std::thread::scope(|scope| {
        let held = scope.spawn(|| bridge.owner_post("/mcp/servers/secret", &body));
        for path in ["/healthz", "/mcp/tools", "/mcp/servers", "/mcp/servers/tracker"] {
            bridge.get(path).ok();
        }
        bridge.owner_get("/mcp/servers").ok();
        bridge.call_text("mcp__plain__echo", &json!({}));
        assert!(!held.is_finished());
        held.join().unwrap().refused(503, "keychain_unavailable");
    });
    let bridge = bridge.restart();
    // While the keyring is silent, nobody knows which tools were approved.
    let plain = bridge.call("mcp__plain__echo", &json!({}));
    plain.refused(503, "keychain_unavailable");
    bridge.wait_for_status("tracker", "keychain_unavailable");
    assert_eq!(keychain(&bridge)["state"], "slow");
    bridge
        .call("mcp__tracker__echo", &json!({}))
        .refused(503, "keychain_unavailable");
    session.thaw_keyring();
    eventually("an open keyring", SOON, || {
        (look_again(&bridge)["state"] == "ready").then_some(())
    });
    bridge.wait_for_status("tracker", "connected");
    bridge.terminate();
}

#[test]
fn without_a_keyring_a_person_who_uses_no_secrets_hears_nothing_of_it() {
    let session = Session::without_keyring();
    let home = Home::new();
    home.write_config(&config_text([("plain", Fake::new("ok").entry())]));
    let bridge = Daemon::start_in(home, session.setup());
    bridge.wait_for_tool("mcp__plain__echo");
    bridge.call_text("mcp__plain__echo", &json!({}));
    let mut added = Fake::new("ok").entry();
    added["id"] = json!("added");
    bridge.owner_post("/mcp/servers/add", &added).ok();
    bridge.wait_for_tool("mcp__added__echo");
    bridge.call_text("mcp__added__echo", &json!({}));
    let before = bridge.server("plain").unwrap()["connection"]["generation"].clone();
    bridge.home.write_config(&config_text([
        ("plain", Fake::new("ok").member("env", json!({"A": "1"})).entry()),
        ("added", Fake::new("ok").entry()),
    ]));
    eventually("another session of plain", SOON, || {
        // It is gone for a moment.
        bridge.call("mcp__plain__echo", &json!({}));
        (bridge.server("plain").unwrap()["connection"]["generation"] != before).then_some(())
    });
    bridge.owner_post("/mcp/servers/remove", &json!({"id": "added"})).ok();
    assert_eq!(keychain(&bridge)["state"], "unused");
    bridge.terminate();
}

#[test]
fn without_a_keyring_a_person_may_choose_to_keep_secrets_until_the_end() {
    let session = Session::without_keyring();
    let home = Home::new();
    let server = server_with_key(&home);
    let bridge = Daemon::start_in(home_with_token(&server, home), session.setup());
    bridge.wait_for_status("tracker", "keychain_unavailable");
    let chosen = bridge.owner_post("/mcp/keychain", &json!({"action": "keep_until_quit"}));
    assert_eq!(chosen.ok()["keychain"], json!({"kept_in": "memory", "state": "ready"}));
    bridge.wait_for_status("tracker", "needs_secret");
    set_token(&bridge);
    let bridge = bridge.restart();
    bridge.wait_for_status("tracker", "keychain_unavailable");
    bridge.terminate();
}

/// The key of trust rows, as a tray app leaves it.
const TRUST_KEY: &str = r#"{"key":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=","generation":3,"tray":true}"#;

fn tells_of_lost_decisions(bridge: &Daemon) -> bool {
    let notices = bridge.owner_get("/mcp/servers").ok()["notices"].clone();
    notices.as_array().is_some_and(|notices| {
        notices.iter().any(|notice| {
            let message = notice["message"].as_str().unwrap_or_default();
            message.contains("allowed is gone from connect/state.db")
        })
    })
}

#[test]
fn a_deleted_database_is_noticed_by_the_key_in_the_keyring_wherever_secrets_are_kept() {
    let session = Session::start();
    session.put(SERVICE, TRUST, TRUST_KEY);
    for secrets in ["keychain", "memory"] {
        let bridge = Daemon::start_in(Home::new(), session.setup_with(secrets));
        eventually(secrets, SOON, || tells_of_lost_decisions(&bridge).then_some(()));
        bridge.terminate();
    }
    assert_eq!(session.accounts(SERVICE), [TRUST]);

    // Locked, nothing is known; and once it is open, the same is known as before.
    session.lock();
    let bridge = Daemon::start_in(Home::new(), session.setup());
    assert!(!tells_of_lost_decisions(&bridge));
    session.unlock();
    eventually("the notice after unlocking", SOON, || {
        tells_of_lost_decisions(&bridge).then_some(())
    });
    bridge.terminate();
}

#[test]
fn a_new_home_has_nothing_to_tell_and_leaves_nothing_in_the_keyring_but_the_key_of_what_is_decided() {
    for (secrets, left) in [("keychain", &[TRUST][..]), ("memory", &[])] {
        let session = Session::start();
        let home = Home::new();
        let server = HttpFake::start(home.path(), "server", &[]);
        home.write_config(&config_text([("tracker", server.entry())]));
        let bridge = Daemon::start_in(home, session.setup_with(secrets));
        bridge.wait_for_tool("mcp__tracker__echo");
        assert!(!tells_of_lost_decisions(&bridge));
        bridge.terminate();
        assert_eq!(session.accounts(SERVICE), left);
    }
}
