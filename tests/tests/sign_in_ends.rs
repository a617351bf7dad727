//! What ends a sign-in ends it, whatever is under way, and whether or not the keychain can be had.

use std::time::{Duration, Instant};

use neuron_tests::{
    authority::Authority,
    daemon::Daemon,
    home::{Home, config_text},
    keyring::Session,
    signing_in::SignIn,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

const ECHO: &str = "mcp__remote__echo";
/// Milliseconds for which the authority keeps a token request waiting: time to end things meanwhile.
const SLOW: &str = "3000";

fn named(id: &str) -> Value {
    json!({ "id": id })
}

fn wait_for_token_requests(authority: &Authority, count: usize) {
    eventually("a token is asked for", SOON, || {
        (authority.requests_to("/token").len() == count).then_some(())
    });
}

fn wait_for_revoked(authority: &Authority, count: usize) {
    eventually("the server is asked to forget the tokens", SOON, || {
        (authority.revoked().len() == count).then_some(())
    });
}

/// Ends a sign-in while its code is exchanged: nothing of it may be kept or sent.
fn end_during_exchange(end: impl FnOnce(&SignIn)) {
    let here = SignIn::behind(&[]);
    let back = here.authority.follow(&here.begin("remote"));
    here.authority.set(&[("token-delay", SLOW)]);
    std::thread::scope(|scope| {
        let page = scope.spawn(|| here.come_back(&back));
        wait_for_token_requests(&here.authority, 1);
        end(&here);
        assert_eq!(here.authority.count("issued"), 0, "it ended before the tokens came");
        let page = page.join().unwrap().text();
        assert!(!page.contains("You are signed in"), "{page}");
    });
    wait_for_revoked(&here.authority, 2);
    here.authority.set(&[("token-delay", "0")]);
    let here = here.restart();
    here.bridge.owner_post("/mcp/servers/reconnect", &named("remote"));
    here.bridge.wait_for_status("remote", "needs_sign_in");
    for request in here.authority.requests_to("/mcp") {
        assert_eq!(request["authorization"], "", "{request}");
    }
    here.sign_in("remote");
}

#[test]
fn a_sign_in_that_is_given_up_while_its_code_is_exchanged_stays_given_up() {
    end_during_exchange(|here| {
        here.bridge.owner_post("/mcp/oauth/cancel", &named("remote")).ok();
    });
}

#[test]
fn who_signs_out_while_a_code_is_exchanged_is_signed_out() {
    end_during_exchange(|here| {
        here.bridge.owner_post("/mcp/oauth/sign-out", &named("remote")).ok();
    });
}

#[test]
fn a_connector_that_takes_the_place_of_one_inherits_no_sign_in_that_was_under_way() {
    end_during_exchange(|here| {
        here.bridge.owner_post("/mcp/servers/remove", &named("remote")).ok();
        let add = json!({"id": "remote", "url": here.authority.url()});
        here.bridge.owner_post("/mcp/servers/add", &add).ok();
    });
}

#[test]
fn a_sign_in_does_not_go_on_for_an_address_that_the_file_changed_meanwhile() {
    end_during_exchange(|here| {
        let mut entry = here.authority.entry();
        entry["url"] = json!(format!("{}?team=b", here.authority.url()));
        here.bridge.home.write_config(&config_text([("remote", entry)]));
        // An edit reads the file first.
        let other = json!({"id": "other", "command": "true", "enabled": false});
        here.bridge.owner_post("/mcp/servers/add", &other).ok();
    });
}

#[test]
fn who_signs_out_while_a_token_is_renewed_is_signed_out() {
    let here = SignIn::behind(&[("lifetime", "1")]);
    // It hears that it should forget, and renews all the same.
    let nowhere = format!("{}/nowhere", here.authority.base());
    here.authority.set(&[("revocation-endpoint", &nowhere)]);
    here.sign_in("remote");
    let begun = Instant::now();
    eventually("the token's second is over", SOON, || {
        (begun.elapsed() > Duration::from_secs(1)).then_some(())
    });
    let before = here.authority.requests_to("/token").len();
    let issued = here.authority.count("issued");
    here.authority.set(&[("lifetime", "3600"), ("token-delay", SLOW)]);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| here.bridge.call(ECHO, &json!({})));
        wait_for_token_requests(&here.authority, before + 1);
        here.bridge.owner_post("/mcp/oauth/sign-out", &named("remote")).ok();
        assert_eq!(here.authority.count("issued"), issued, "it ended before the token came");
        assert_ne!(call.join().unwrap().status, 200);
    });
    // What was kept, and what came too late: two tokens each.
    eventually("the server is asked to forget all of them", SOON, || {
        (here.authority.requests_to("/nowhere").len() == 4).then_some(())
    });
    let here = here.restart();
    here.bridge.wait_for_tool(ECHO);
    here.bridge.call(ECHO, &json!({})).refused(409, "needs_sign_in");
    assert_eq!(here.authority.count("issued"), issued + 1);
}

#[test]
fn a_connector_with_its_clients_own_key_signs_out_at_once_and_in_again_at_a_click() {
    let options = [
        ("client-id", "mine"),
        ("client-secret", "s3cret-of-this-client"),
        ("auth-methods", "client_secret_basic"),
        ("lifetime", "1"),
    ];
    let here = SignIn::with(&options, |authority| {
        let mut entry = authority.entry();
        entry["oauth"] = json!({
            "grant": "client_credentials", "clientId": "mine", "clientSecret": "s3cret-of-this-client",
            "issuer": authority.base(),
        });
        entry
    });
    here.bridge.wait_for_tool(ECHO);
    here.bridge.call_text(ECHO, &json!({}));
    let begun = Instant::now();
    eventually("the token's second is over", SOON, || {
        (begun.elapsed() > Duration::from_secs(1)).then_some(())
    });
    let before = here.authority.requests_to("/token").len();
    here.authority.set(&[("lifetime", "3600"), ("token-delay", SLOW)]);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| here.bridge.call(ECHO, &json!({})));
        wait_for_token_requests(&here.authority, before + 1);
        here.bridge.owner_post("/mcp/oauth/sign-out", &named("remote")).ok();
        assert_ne!(call.join().unwrap().status, 200);
    });
    let all = before + 1;
    wait_for_revoked(&here.authority, 2);
    here.authority.set(&[("token-delay", "0")]);
    let here = here.restart();
    here.bridge.wait_for_tool(ECHO);
    here.bridge.call(ECHO, &json!({})).refused(409, "needs_sign_in");
    assert_eq!(here.authority.requests_to("/token").len(), all);

    let told = here.ask_to_begin(&named("remote")).refused(400, "bad_request");
    assert!(told.contains("by itself"), "{told}");
    here.bridge.wait_for_status("remote", "connected");
    let here = here.restart();
    here.bridge.wait_for_tool(ECHO);
    assert_eq!(here.bridge.call_text(ECHO, &json!({"n": 1})), "{\"n\":1}");
}

#[test]
fn the_server_of_a_removed_connector_is_asked_to_forget_its_tokens() {
    let here = SignIn::behind(&[]);
    here.sign_in("remote");
    here.bridge.owner_post("/mcp/servers/remove", &named("remote")).ok();
    wait_for_revoked(&here.authority, 2);
}

fn signed_in_with_a_keyring(session: &Session) -> (Daemon, Authority) {
    let home = Home::new();
    let authority = Authority::start(home.path(), "authority", &[]);
    home.write_config(&config_text([("remote", authority.entry())]));
    let here = SignIn {
        bridge: Daemon::start_in(home, session.setup()),
        authority,
    };
    here.sign_in("remote");
    (here.bridge, here.authority)
}

#[test]
fn who_signs_out_while_the_keyring_is_locked_is_signed_out_and_stays_so() {
    let session = Session::start();
    let (bridge, authority) = signed_in_with_a_keyring(&session);
    session.lock();
    bridge
        .owner_post("/mcp/oauth/sign-out", &named("remote"))
        .refused(503, "keychain_unavailable");
    let before = authority.requests_to("/mcp").len();
    let answer = bridge.call(ECHO, &json!({}));
    assert!(matches!(answer.status, 409 | 503), "{}", answer.text());
    session.unlock();
    bridge.wait_for_status("remote", "needs_sign_in");
    bridge.call(ECHO, &json!({})).refused(409, "needs_sign_in");
    eventually("the keyring has only the mark", SOON, || {
        (session.entered("ai.neuron.connect") == ["remote:oauth"]).then_some(())
    });
    assert!(authority.revoked().len() >= 2);
    let bridge = bridge.restart();
    bridge.wait_for_tool(ECHO);
    bridge.call(ECHO, &json!({})).refused(409, "needs_sign_in");
    assert_eq!(authority.requests_to("/mcp").len(), before);
    bridge.terminate();
}

#[test]
fn a_connector_that_was_removed_while_the_keyring_was_locked_leaves_no_token_to_the_next_one() {
    let session = Session::start();
    let (bridge, authority) = signed_in_with_a_keyring(&session);
    session.lock();
    bridge.owner_post("/mcp/servers/remove", &named("remote")).ok();
    let before = authority.requests_to("/mcp").len();
    let add = json!({"id": "remote", "url": authority.url()});
    bridge.owner_post("/mcp/servers/add", &add).ok();
    bridge.owner_post("/mcp/servers/reconnect", &named("remote"));
    session.unlock();
    bridge.wait_for_status("remote", "needs_sign_in");
    eventually("the keyring has nothing of it", SOON, || {
        session.entered("ai.neuron.connect").is_empty().then_some(())
    });
    eventually("the server is asked to forget the tokens", SOON, || {
        (authority.revoked().len() >= 2).then_some(())
    });
    for request in authority.requests_to("/mcp").iter().skip(before) {
        assert_eq!(request["authorization"], "", "{request}");
    }
    bridge.terminate();
}
