//! Signing in through the product, over its own API: what a person sees, what servers are asked, what stays.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    process::Stdio,
};

use neuron_tests::{
    authority::Authority,
    daemon::{Daemon, Setup, command_line, serve_command},
    fake::HttpFake,
    home::{Home, config_text},
    http::{Address, Connection, Events},
    signing_in::SignIn,
    wait::{SOON, eventually, eventually_equals},
};
use serde_json::{Value, json};
use url::Url;

const ECHO: &str = "mcp__remote__echo";

fn scopes_asked_for(auth_url: &str) -> Vec<String> {
    let url = Url::parse(auth_url).unwrap();
    let scope = url.query_pairs().find(|(name, _)| name == "scope");
    let mut scopes: Vec<_> = scope
        .map(|(_, text)| text.split(' ').map(ToOwned::to_owned).collect())
        .unwrap_or_default();
    scopes.sort();
    scopes
}

/// The event that ends a sign-in.
fn finished(events: &mut Events) -> Value {
    events
        .next("the sign-in's end", |event| event.name == "sign_in_finished")
        .data
}

/// Everything that the authority was asked besides MCP.
fn asked_of_authority(authority: &Authority) -> usize {
    authority
        .requests()
        .iter()
        .filter(|request| request["path"] != "/mcp")
        .count()
}

#[test]
fn a_person_without_a_window_signs_in_by_the_address_and_the_tools_work() {
    let here = SignIn::behind(&[("scopes", "read")]);
    let row = here.bridge.wait_for_status("remote", "needs_sign_in");
    assert_eq!(
        (&row["auth"]["state"], &row["action"]),
        (&json!("needs-sign-in"), &json!("sign_in")),
        "{row}"
    );
    let mut events = Connection::open(&here.bridge.local()).events("/mcp/events", &[]);
    let row = here.sign_in("remote");
    assert_eq!(row["auth"], json!({"state": "signed-in", "scopes": ["read"]}), "{row}");
    let finished = finished(&mut events);
    assert_eq!(
        (&finished["server"], &finished["outcome"]),
        (&json!("remote"), &json!("signed_in")),
        "{finished}"
    );
    assert_eq!(here.bridge.call_text(ECHO, &json!({"n": 1})), "{\"n\":1}");
    for request in here.authority.requests_to("/mcp") {
        let carried = request["authorization"].as_str().unwrap();
        assert!(carried.is_empty() || carried.starts_with("Bearer "), "{request}");
    }
}

#[test]
fn a_walk_in_learns_neither_the_address_nor_how_a_sign_in_ended() {
    let here = SignIn::behind(&[]);
    here.bridge.wait_for_status("remote", "needs_sign_in");
    here.bridge
        .post("/mcp/oauth/cancel", &json!({"id": "remote"}))
        .refused(403, "scope_missing");
    for path in ["/mcp/oauth/start", "/mcp/oauth/sign-out"] {
        let waits = here.bridge.post(path, &json!({"id": "remote"}));
        assert_eq!(waits.status, 202, "{}", waits.text());
        assert!(!waits.text().contains("http"), "{}", waits.text());
    }
    let mut events = Connection::open(&here.bridge.tcp()).events("/mcp/events", &[]);
    here.sign_in("remote");
    here.bridge.call_text(ECHO, &json!({}));
    events.next("the call's end", |event| {
        assert_ne!(event.name, "sign_in_finished");
        event.name == "call_finished"
    });
}

#[test]
fn twenty_calls_that_find_the_token_over_cost_one_refresh_and_have_twenty_answers() {
    let here = SignIn::behind(&[("lifetime", "1")]);
    here.sign_in("remote");
    here.authority.set(&[("lifetime", "3600"), ("token-delay", "300")]);
    eventually_equals("whether the token is over", 1, SOON, || here.authority.count("over"));
    let before = here.authority.count("refreshed");
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..20)
            .map(|n| {
                scope.spawn({
                    let bridge = &here.bridge;
                    move || bridge.call_text(ECHO, &json!({"n": n}))
                })
            })
            .collect();
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(call.join().unwrap(), format!("{{\"n\":{n}}}"));
        }
    });
    assert_eq!(here.authority.count("refreshed"), before + 1);
    assert_eq!(here.authority.count("replayed"), 0, "no refresh token was used twice");
}

#[test]
fn a_restart_keeps_the_person_signed_in_and_asks_the_authority_nothing() {
    let here = SignIn::behind(&[]);
    here.sign_in("remote");
    let before = asked_of_authority(&here.authority);
    let here = here.restart();
    here.bridge.wait_for_tool(ECHO);
    assert_eq!(here.bridge.call_text(ECHO, &json!({"n": 2})), "{\"n\":2}");
    assert_eq!(here.bridge.server("remote").unwrap()["auth"]["state"], "signed-in");
    assert_eq!(asked_of_authority(&here.authority), before);
}

#[test]
fn who_signed_out_stays_so_over_restarts_and_nobody_is_contacted() {
    let here = SignIn::behind(&[]);
    here.sign_in("remote");
    let answer = here
        .bridge
        .owner_post("/mcp/oauth/sign-out", &json!({"id": "remote"}))
        .ok();
    assert_eq!(answer, json!({"ok": true, "signedOut": true}));
    let row = here.bridge.wait_for_status("remote", "needs_sign_in");
    assert_eq!(row["auth"]["state"], "needs-sign-in", "{row}");
    eventually("the server is asked to forget the tokens", SOON, || {
        (!here.authority.revoked().is_empty()).then_some(())
    });
    let before = here.authority.requests().len();
    here.bridge.call(ECHO, &json!({})).refused(409, "needs_sign_in");
    let here = here.restart();
    here.bridge.wait_for_tool(ECHO);
    here.bridge.call(ECHO, &json!({})).refused(409, "needs_sign_in");
    here.bridge
        .owner_post("/mcp/servers/reconnect", &json!({"id": "remote"}))
        .ok();
    here.bridge.wait_for_status("remote", "needs_sign_in");
    assert_eq!(here.authority.requests().len(), before);
    here.sign_in("remote");
    assert_eq!(here.bridge.call_text(ECHO, &json!({"n": 3})), "{\"n\":3}");
}

#[test]
fn a_server_that_takes_the_token_no_longer_asks_for_one_sign_in_and_no_loop() {
    let here = SignIn::behind(&[]);
    here.sign_in("remote");
    here.bridge.call_text(ECHO, &json!({}));
    here.authority.set(&[("refuse-tokens", "true")]);
    let told = here.bridge.call(ECHO, &json!({})).refused(409, "needs_sign_in");
    assert!(told.contains("did not run"), "{told}");
    let row = here.bridge.wait_for_status("remote", "needs_sign_in");
    assert_eq!(row["auth"]["state"], "needs-sign-in", "{row}");
    assert_eq!(here.authority.count("refreshed"), 1, "another token was tried once");
    let before = here.authority.requests().len();
    here.bridge.call(ECHO, &json!({})).refused(409, "needs_sign_in");
    assert_eq!(here.authority.requests().len(), before);
    here.authority.set(&[("refuse-tokens", "false")]);
    here.sign_in("remote");
    assert_eq!(here.bridge.call_text(ECHO, &json!({"n": 1})), "{\"n\":1}");
}

#[test]
fn a_call_that_needs_more_says_which_and_one_more_sign_in_allows_both() {
    let here = SignIn::behind(&[("scopes", "read"), ("step-up", "write")]);
    here.sign_in("remote");
    let told = here
        .bridge
        .call("mcp__remote__write", &json!({}))
        .refused(409, "needs_sign_in");
    assert!(told.contains("write"), "{told}");
    let row = here.bridge.wait_for_status("remote", "needs_sign_in");
    assert_eq!(
        row["auth"],
        json!({"state": "needs-sign-in", "scopes": ["write"]}),
        "{row}"
    );
    let page = here.begin("remote");
    assert_eq!(scopes_asked_for(&page), ["read", "write"]);
    here.come_back(&here.authority.follow(&page));
    let row = here.bridge.wait_for_status("remote", "connected");
    assert_eq!(row["auth"]["state"], "signed-in", "{row}");
    here.bridge.call_text("mcp__remote__write", &json!({}));
    here.bridge.call_text(ECHO, &json!({}));
}

#[test]
fn a_server_that_never_has_enough_gets_three_sign_ins_and_no_fourth() {
    let here = SignIn::behind(&[("scopes", "read"), ("step-up", "endless")]);
    let mut authorized = 0;
    for _ in 0..6 {
        let answer = here.ask_to_begin(&json!({"id": "remote"}));
        if answer.status != 200 {
            break;
        }
        let page = answer.json()["authUrl"].as_str().unwrap().to_owned();
        here.come_back(&here.authority.follow(&page));
        authorized += 1;
        here.bridge.wait_for_status("remote", "connected");
        here.bridge
            .call("mcp__remote__write", &json!({}))
            .refused(409, "needs_sign_in");
        here.bridge.wait_for_status("remote", "needs_sign_in");
    }
    assert_eq!(authorized, 3);
    assert_eq!(here.authority.count("authorized"), 3);
}

#[test]
fn an_address_that_the_file_changes_gets_no_token_and_changing_it_back_signs_nobody_out() {
    let here = SignIn::behind(&[]);
    here.sign_in("remote");
    let home = here.bridge.home.path().to_owned();
    let elsewhere = Authority::start(&home, "elsewhere", &[("open", "true")]);
    here.bridge
        .home
        .write_config(&config_text([("remote", elsewhere.entry())]));
    eventually("the other address is asked", SOON, || {
        (!elsewhere.requests().is_empty()).then_some(())
    });
    here.bridge.wait_for_status("remote", "connected");
    here.bridge.call_text(ECHO, &json!({}));
    for request in elsewhere.requests() {
        assert_eq!(request["authorization"], "", "{request}");
    }
    here.bridge
        .home
        .write_config(&config_text([("remote", here.authority.entry())]));
    let served = here.authority.count("served");
    eventually("the first address is used again", SOON, || {
        here.bridge.call(ECHO, &json!({}));
        (here.authority.count("served") > served).then_some(())
    });
    let row = here.bridge.wait_for_status("remote", "connected");
    assert_eq!(row["auth"]["state"], "signed-in", "{row}");
    assert_eq!(here.authority.count("authorized"), 1);
}

#[test]
fn what_is_removed_and_added_again_here_inherits_no_sign_in() {
    let here = SignIn::behind(&[]);
    here.sign_in("remote");
    here.bridge
        .owner_post("/mcp/servers/remove", &json!({"id": "remote"}))
        .ok();
    let mut entry = here.authority.entry();
    entry["id"] = "remote".into();
    here.bridge.owner_post("/mcp/servers/add", &entry).ok();
    here.bridge.wait_for_status("remote", "needs_sign_in");
    let before = here.authority.count("registered");
    here.sign_in("remote");
    assert_eq!(
        here.authority.count("registered"),
        before + 1,
        "not even the registration"
    );
}

#[test]
fn the_same_server_twice_has_two_sign_ins_that_both_complete() {
    let here = SignIn::behind(&[]);
    let both = config_text([("remote", here.authority.entry()), ("twin", here.authority.entry())]);
    here.bridge.home.write_config(&both);
    here.bridge.wait_for_status("twin", "needs_sign_in");
    let pages = [here.begin("remote"), here.begin("twin")];
    let places = pages.map(|page| here.authority.follow(&page));
    std::thread::scope(|scope| {
        for place in places.iter().rev() {
            scope.spawn(|| assert_eq!(here.come_back(place).status, 200));
        }
    });
    for id in ["remote", "twin"] {
        here.bridge.wait_for_status(id, "connected");
    }
}

#[test]
fn forged_replayed_and_unknown_answers_change_nothing() {
    let here = SignIn::behind(&[]);
    let page = here.begin("remote");
    let place = here.authority.follow(&page);
    let state = Url::parse(&page).unwrap();
    let state = state
        .query_pairs()
        .find(|(name, _)| name == "state")
        .unwrap()
        .1
        .into_owned();
    let base = place.split('?').next().unwrap();
    let requests = asked_of_authority(&here.authority);
    for query in [
        "state=guess&code=forged".to_owned(),
        format!("state={}&code=forged", state.to_uppercase()),
        format!("state={state}x&error=access_denied"),
        format!("state={state}&state=guess&code=forged"),
        format!("state={state}"),
        "code=forged".to_owned(),
        String::new(),
    ] {
        let page = here.come_back(&format!("{base}?{query}"));
        assert_eq!(page.status, 400, "{query}");
        assert!(page.text().contains("No sign-in waits"), "{query}: {}", page.text());
    }
    assert_eq!(asked_of_authority(&here.authority), requests, "no code was tried");
    assert_eq!(here.come_back(&place).status, 200, "the flow is intact");
    here.bridge.wait_for_status("remote", "connected");
    let again = here.come_back(&place);
    assert_eq!(again.status, 400, "an answer counts once");
    assert_eq!(
        here.bridge.call_text(ECHO, &json!({"n": 1})),
        "{\"n\":1}",
        "and nobody is signed out by it"
    );
}

#[test]
fn a_no_is_told_calmly_and_no_page_repeats_the_servers_words() {
    for (iss, title) in [
        ("right", "The access was not allowed"),
        ("wrong", "The sign-in did not work"),
    ] {
        let here = SignIn::behind(&[("authorize", "deny"), ("iss", iss)]);
        let mut events = Connection::open(&here.bridge.local()).events("/mcp/events", &[]);
        let page = here.come_back(&here.authority.follow(&here.begin("remote")));
        assert_eq!(page.status, 400);
        assert!(page.text().contains(title), "{iss}: {}", page.text());
        let csp = page.header("content-security-policy");
        assert_eq!(csp, Some("default-src 'none'; frame-ancestors 'none'"));
        let finished = finished(&mut events);
        assert_ne!(finished["outcome"], "signed_in", "{finished}");
        assert!(!page.text().contains("SENTINEL"), "{}", page.text());
        if iss == "wrong" {
            // It may be another server that speaks.
            let told = format!("{}{finished}", page.text());
            for words in ["SENTINEL", "access_denied", "someone-else"] {
                assert!(!told.contains(words), "{told}");
            }
        }
        here.bridge.wait_for_status("remote", "needs_sign_in");
    }
}

#[test]
fn a_sign_in_that_is_given_up_is_over_for_its_browser_too() {
    let here = SignIn::behind(&[]);
    let place = here.authority.follow(&here.begin("remote"));
    here.bridge
        .owner_post("/mcp/oauth/cancel", &json!({"id": "remote"}))
        .ok();
    assert_eq!(here.come_back(&place).status, 400);
    here.bridge.wait_for_status("remote", "needs_sign_in");
    here.sign_in("remote");
}

#[test]
fn an_edit_at_the_same_address_keeps_the_sign_in_and_gives_up_the_one_that_waits() {
    let here = SignIn::behind(&[]);
    here.sign_in("remote");
    let place = here.authority.follow(&here.begin("remote"));
    let sequence = |row: &Value| row["connection"]["sequence"].as_u64().unwrap();
    let before = sequence(&here.bridge.server("remote").unwrap());
    let mut entry = here.authority.entry();
    entry["headers"] = json!({"X-Team": "a"});
    here.bridge.home.write_config(&config_text([("remote", entry)]));
    eventually("the file is read", SOON, || {
        let row = here.bridge.server("remote")?;
        (sequence(&row) > before && row["status"] != "connecting").then_some(())
    });
    here.bridge.wait_for_tool(ECHO);
    assert_eq!(here.bridge.call_text(ECHO, &json!({"n": 1})), "{\"n\":1}");
    assert_eq!(
        here.come_back(&place).status,
        400,
        "what waited was for what was there before"
    );
}

#[test]
fn who_signs_in_nowhere_is_told_why() {
    let home = Home::new();
    let upstream = HttpFake::start(home.path(), "basic", &[("refuse", "challenge=401 Negotiate")]);
    let mut keyed = upstream.entry();
    keyed["headers"] = json!({"Authorization": "Bearer 0123456789"});
    let mut open = upstream.entry();
    open["auth"] = "none".into();
    let bridge = Daemon::serving(
        home,
        [
            ("basic", upstream.entry()),
            ("keyed", keyed),
            ("open", open),
            ("program", json!({"command": "true"})),
        ],
    );
    bridge.wait_for_status("basic", "error");
    let start = |id: &str| bridge.owner_post("/mcp/oauth/start", &json!({"id": id}));
    let told = start("basic").refused(503, "unavailable");
    assert!(told.contains("Negotiate"), "{told}");
    for id in ["keyed", "open", "program"] {
        start(id).refused(400, "bad_request");
    }
    start("nobody").refused(404, "unknown_server");
}

#[test]
fn who_signs_in_nowhere_cannot_be_signed_out_either_and_goes_on() {
    let bridge = Daemon::start(None);
    let call = || bridge.call_text("mcp__filesystem__list_directory", &json!({"path": "."}));
    let before = call();
    bridge
        .owner_post("/mcp/oauth/sign-out", &json!({"id": "filesystem"}))
        .refused(400, "bad_request");
    bridge.wait_for_status("filesystem", "connected");
    assert_eq!(call(), before);
}

#[test]
fn beginning_a_sign_in_tells_nobody_a_key_of_the_entry() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = std::thread::spawn(move || {
        let mut heads = Vec::new();
        // The question, then those for metadata; all get the same answer.
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            heads.push(String::from_utf8(head).unwrap());
            stream
                .write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .unwrap();
        }
        heads
    });
    let remote = json!({
        "url": format!("http://127.0.0.1:{port}/mcp"),
        "auth": "oauth",
        "headers": {"X-Team": "team-a", "X-Key": "${secret:K}", "X-Api-Key": "SENTINEL_LITERAL"},
    });
    let mut clear = remote.clone();
    clear["url"] = "http://192.0.2.1/mcp".into();
    let mut told = remote.clone();
    told["url"] = format!("http://127.0.0.1:{port}/mcp?key=${{secret:K}}").into();
    let bridge = Daemon::serving(Home::new(), [("remote", remote), ("clear", clear), ("told", told)]);
    for id in ["remote", "clear", "told"] {
        let body = json!({"id": id, "name": "K", "secret": "SENTINEL_SECRET"});
        bridge.owner_post("/mcp/servers/secret", &body).ok();
    }
    let start = |id: &str| bridge.owner_post("/mcp/oauth/start", &json!({"id": id}));
    let clear = start("clear").json();
    assert!(clear["error"].as_str().unwrap().contains("https://"), "{clear}");
    let told = start("told").json();
    assert!(told["error"].as_str().unwrap().contains("holds a secret"), "{told}");
    // Whatever comes of it: nobody is there any more after two answers.
    start("remote");
    let heads = heads.join().unwrap();
    assert!(heads[0].starts_with("POST /mcp "), "{heads:?}");
    assert!(heads[0].to_lowercase().contains("x-team: team-a"), "{heads:?}");
    assert!(heads.iter().all(|head| !head.contains("SENTINEL")), "{heads:?}");
}

#[test]
fn a_server_that_never_answers_keeps_nobody_from_giving_the_sign_in_up() {
    for transport in ["http", "sse"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let entry = json!({"url": url, "transport": transport, "auth": "oauth"});
        let bridge = Daemon::serving(Home::new(), [("remote", entry)]);
        let mut events = Connection::open(&bridge.local()).events("/mcp/events", &[]);
        std::thread::scope(|scope| {
            let start = scope.spawn(|| bridge.owner_post("/mcp/oauth/start", &json!({"id": "remote"})));
            let _silent = listener.accept().unwrap();
            bridge.owner_post("/mcp/oauth/cancel", &json!({"id": "remote"})).ok();
            start.join().unwrap().refused(503, "unavailable");
        });
        assert_eq!(finished(&mut events)["outcome"], "cancelled", "{transport}");
    }
}

#[test]
fn the_command_line_signs_in_by_a_pasted_address_and_signs_out() {
    let here = SignIn::behind(&[]);
    let mut command = command_line(&here.bridge.home, &["sign-in", "remote"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut input = child.stdin.take().unwrap();
    let mut seen = String::new();
    let page = loop {
        let start = seen.len();
        assert_ne!(out.read_line(&mut seen).unwrap(), 0, "{seen}");
        let line = seen[start..].trim();
        if line.starts_with("http") {
            break line.to_owned();
        }
    };
    let place = here.authority.follow(&page);
    writeln!(input, "hello\n{place}").unwrap();
    let status = child.wait().unwrap();
    out.read_to_string(&mut seen).unwrap();
    let mut complaints = String::new();
    child.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
    assert!(status.success(), "{seen}{complaints}");
    assert!(seen.contains("Signed in to remote"), "{seen}");
    assert!(
        complaints.contains("not the address") && !complaints.contains("code="),
        "{complaints}"
    );
    here.bridge.wait_for_status("remote", "connected");
    let out = here.bridge.command(&["sign-out", "remote"]);
    assert!(out.status.success(), "{out:?}");
    here.bridge.wait_for_status("remote", "needs_sign_in");
    let shown = here.bridge.command(&["status"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("neuron-connectd sign-in remote"), "{shown}");
}

#[test]
fn where_no_browser_would_be_heard_that_is_said_before_one_is_opened() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port().to_string();
    let home = Home::new();
    let authority = Authority::start(home.path(), "authority", &[]);
    home.write_config(&config_text([("remote", authority.entry())]));
    let mut child = serve_command(&home, &Setup::default())
        .args(["--port", &port])
        .spawn()
        .unwrap();
    let socket = eventually("the bridge's local socket", SOON, || {
        let api: Value = serde_json::from_slice(&std::fs::read(home.api_file()).ok()?).ok()?;
        assert!(api["port"].is_null(), "{api}");
        Some(Address::Socket(api["socket"].as_str()?.into()))
    });
    let ask = || {
        let body = json!({"id": "remote"}).to_string();
        Connection::open(&socket).send("POST", "/mcp/oauth/start", &[], body.as_bytes())
    };
    let told = ask().refused(503, "callback_unavailable");
    assert!(told.contains("port"), "{told}");
    assert_eq!(authority.count("authorized") + authority.count("registered"), 0);
    child.kill().unwrap();
    child.wait().unwrap();
}
