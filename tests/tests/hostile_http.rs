//! HTTP servers that misbehave: what a person reads, what stays listed, and what was really asked of them.

use std::time::{Duration, Instant};

use neuron_tests::{
    daemon::Daemon,
    fake::HttpFake,
    home::Home,
    upstream::free_port,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

type Options<'a> = &'a [(&'a str, &'a str)];

struct Served {
    bridge: Daemon,
    upstream: HttpFake,
    counter: std::path::PathBuf,
}

fn serve(options: Options<'_>) -> Served {
    let home = Home::new();
    let counter = home.path().join("counter");
    let text = counter.display().to_string();
    let mut all = vec![("counter", text.as_str())];
    all.extend(options);
    let upstream = HttpFake::start(home.path(), "remote", &all);
    let bridge = Daemon::serving(home, [("remote", upstream.entry())]);
    Served {
        bridge,
        upstream,
        counter,
    }
}

impl Served {
    fn count(&self) -> Result<String, (String, String)> {
        let answer = self.bridge.call("mcp__remote__counter", &json!({}));
        let body = answer.json();
        match answer.status {
            200 => Ok(body["text"].as_str().unwrap_or_default().to_owned()),
            _ => Err((
                body["code"].as_str().unwrap_or_default().to_owned(),
                body["error"].as_str().unwrap_or_default().to_owned(),
            )),
        }
    }

    /// How often the counting tool really ran.
    fn counted(&self) -> usize {
        std::fs::read_to_string(&self.counter)
            .unwrap_or_default()
            .lines()
            .count()
    }

    fn log(&self) -> String {
        let path = self.bridge.home.path().join(".neuron/connect/logs/remote.log");
        std::fs::read_to_string(path).unwrap_or_default()
    }
}

/// A greeting that an older server refuses in its own way.
#[test]
fn however_the_newest_greeting_is_refused_an_older_server_is_used() {
    let rows: [(&str, Options<'_>); 10] = [
        ("400", &[("refuse", "status=400")]),
        ("404", &[("refuse", "status=404")]),
        ("405", &[("refuse", "status=405")]),
        ("406", &[("refuse", "status=406")]),
        ("500", &[("refuse", "status=500")]),
        ("a web page", &[("refuse", "html")]),
        ("a closed connection", &[("refuse", "close")]),
        ("an empty object", &[("discover", "empty")]),
        ("an error", &[("discover", "error")]),
        ("an unreadable event", &[("refuse", "undecodable"), ("answers", "sse")]),
    ];
    for (what, options) in rows {
        let mut all = vec![("refuse-method", "server/discover")];
        all.extend(options);
        let served = serve(&all);
        served.bridge.wait_for_tool("mcp__remote__counter");
        let row = served.bridge.wait_for_status("remote", "connected");
        assert_eq!(row["connection"]["era"], "legacy", "{what}: {row}");
        assert_eq!(served.count(), Ok("1".to_owned()), "{what}");
        assert_eq!(
            served.upstream.seen().requests("GET"),
            0,
            "{what}: no session, no stream"
        );
    }
}

#[test]
fn a_server_that_never_answers_the_newest_greeting_is_used_with_the_older_one() {
    let home = Home::new();
    let never = ["silence", "stall"];
    let upstreams = never.map(|refuse| {
        let options = [("refuse", refuse), ("refuse-method", "server/discover")];
        HttpFake::start(home.path(), refuse, &options)
    });
    let begin = Instant::now();
    let bridge = Daemon::serving(home, never.into_iter().zip(upstreams.iter().map(HttpFake::entry)));
    for (id, upstream) in never.into_iter().zip(&upstreams) {
        let tool = format!("mcp__{id}__echo");
        eventually("it is used after all", Duration::from_secs(20), || {
            bridge.tool_names().contains(&tool).then_some(())
        });
        assert_eq!(bridge.call_text(&tool, &json!({"n": 1})), "{\"n\":1}");
        assert_eq!(bridge.server(id).unwrap()["connection"]["era"], "legacy", "{id}");
        assert_eq!(
            upstream.seen().messages("server/discover").len(),
            1,
            "{id}: one attempt"
        );
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn attempts_at_a_server_that_stalls_leave_nothing_open() {
    let home = Home::new();
    let stalls = ["silence", "stall"];
    let upstreams = stalls.map(|refuse| HttpFake::start(home.path(), refuse, &[("refuse", refuse)]));
    let entries = upstreams.each_ref().map(|upstream| {
        let mut entry = upstream.entry();
        entry["timeouts"] = json!({"connectMs": 500});
        entry
    });
    let bridge = Daemon::serving(home, stalls.into_iter().zip(entries));
    let attempt = |id: &str| {
        bridge.owner_post("/mcp/servers/reconnect", &json!({"id": id}));
    };
    stalls.into_iter().for_each(attempt);
    let before = open_files(&bridge);
    for _ in 0..10 {
        stalls.into_iter().for_each(attempt);
    }
    for (id, upstream) in stalls.into_iter().zip(&upstreams) {
        assert!(upstream.seen().requests("POST") > 10, "{id}: every attempt reached it");
    }
    eventually("as many files are open as before", SOON, || {
        (open_files(&bridge) <= before).then_some(())
    });
}

fn open_files(bridge: &Daemon) -> usize {
    let folder = format!("/proc/{}/fd", bridge.pid());
    std::fs::read_dir(folder).unwrap().count()
}

/// What a person reads of a server that cannot be used.
#[test]
fn every_way_of_being_no_server_has_its_state_its_sentence_and_its_action() {
    let rows: [(Options<'_>, &str, &str, &str); 12] = [
        (&[("refuse", "401-odd")], "needs_sign_in", "sign in", "sign_in"),
        (&[("refuse", "401")], "needs_sign_in", "sign in", "sign_in"),
        (&[("refuse", "401-bare")], "needs_sign_in", "sign in", "sign_in"),
        (&[("refuse", "status=403")], "error", "status 403", "reconnect"),
        (&[("refuse", "status=404")], "error", "status 404", "reconnect"),
        (&[("refuse", "status=500")], "retrying", "status 500", "reconnect"),
        (&[("refuse", "html")], "error", "text/html", "reconnect"),
        (&[("refuse", "close")], "retrying", "without an answer", "reconnect"),
        (
            &[("refuse", "endless-headers")],
            "retrying",
            "more headers",
            "reconnect",
        ),
        (&[("refuse", "gzip-bomb")], "error", "larger than 16 MiB", "reconnect"),
        (&[("refuse", "undecodable")], "error", "could not be read", "reconnect"),
        (
            &[
                ("discover", "empty"),
                ("refuse", "status=410"),
                ("refuse-method", "initialize"),
            ],
            "error",
            "status 410",
            "reconnect",
        ),
    ];
    for (options, status, words, action) in rows {
        let served = serve(options);
        let row = served.bridge.wait_for_status("remote", status);
        let error = row["error"].as_str().unwrap_or_default();
        assert!(error.len() > 20 && error.contains(words), "{options:?}: {row}");
        assert!(
            !error.contains("SECRET-BODY") && !error.contains("127.0.0.1"),
            "{options:?}: {row}"
        );
        assert_eq!(row["action"], action, "{options:?}: {row}");
        assert_eq!(served.bridge.tool_names(), [""; 0], "{options:?}: nothing is made up");
        assert!(served.upstream.seen().lines().len() < 40, "{options:?}: no storm");
    }
}

#[test]
fn a_server_that_asks_for_time_gets_it_and_then_works() {
    let hour = 3_600_000;
    for (status, retry_after, least, most) in [
        ("429", "2", 2_000, 2_100),
        ("429", "86400", hour, hour + 100),
        ("429", "soon", 400, 1_100),
        ("429", "-5", 400, 1_100),
        ("429", "Wed, 21 Oct 2015 07:28:00 GMT", 400, 1_100),
        ("429", "Fri, 01 Jan 2100 00:00:00 GMT", hour, hour + 100),
        ("503", "2", 2_000, 2_100),
        ("503", "86400", hour, hour + 100),
    ] {
        let refuse = format!("status={status}");
        let served = serve(&[("refuse", &refuse), ("retry-after", retry_after)]);
        let row = served.bridge.wait_for_status("remote", "retrying");
        let delay = row["connection"]["retry"]["delay_ms"].as_u64().unwrap();
        assert!((least..=most).contains(&delay), "{status} {retry_after}: {row}");
    }
    for status in ["408", "500", "503"] {
        let failing = format!("failing={status}");
        let served = serve(&[
            ("refuse", &failing),
            ("retry-after", "1"),
            ("refuse-method", "initialize"),
            ("refuse-times", "2"),
        ]);
        let row = served.bridge.wait_for_status("remote", "retrying");
        let delay = row["connection"]["retry"]["delay_ms"].as_u64().unwrap();
        assert!((1_000..=1_100).contains(&delay), "{status} with an error: {row}");
        served.bridge.wait_for_tool("mcp__remote__counter");
        assert_eq!(served.count(), Ok("1".to_owned()), "{status} with an error");
        let greetings = served.upstream.seen().messages("initialize").len();
        assert_eq!(greetings, 3, "{status} with an error");
    }
    // The newest greeting and the older one are both turned away once.
    let served = serve(&[("refuse", "status=503"), ("refuse-times", "2")]);
    served.bridge.wait_for_tool("mcp__remote__counter");
    assert_eq!(served.count(), Ok("1".to_owned()));
}

#[test]
fn a_forgotten_session_is_renewed_once_told_and_nothing_runs_twice() {
    for forgotten in ["404", "400", "400-code"] {
        let served = serve(&[("forget-after", "1"), ("forgotten", forgotten)]);
        served.bridge.wait_for_tool("mcp__remote__counter");
        for n in 1..=3 {
            assert_eq!(served.count(), Ok(n.to_string()), "{forgotten}");
        }
        let seen = served.upstream.seen();
        assert_eq!(seen.messages("initialize").len(), 2, "{forgotten}: one session more");
        assert_eq!(seen.messages("tools/call").len(), 4, "{forgotten}: one was refused");
        assert_eq!(served.counted(), 3, "{forgotten}");
        let told = eventually("the log tells it", SOON, || {
            served
                .log()
                .lines()
                .find(|line| line.contains(" replaces "))
                .map(ToOwned::to_owned)
        });
        assert!(!told.contains("session-"), "an id is as good as a key: {told}");
        assert_eq!(served.log().matches(" replaces ").count(), 1, "{forgotten}");
    }
}

#[test]
fn a_session_that_is_found_gone_in_an_accepted_answer_costs_one_call() {
    for answers in ["json", "sse"] {
        let served = serve(&[("forget-after", "1"), ("forgotten", "error"), ("answers", answers)]);
        served.bridge.wait_for_tool("mcp__remote__counter");
        assert_eq!(served.count(), Ok("1".to_owned()), "{answers}");
        let (code, message) = served.count().unwrap_err();
        assert_eq!(code, "upstream_error", "{answers}: {message}");
        assert!(message.contains("Session not found"), "{answers}: {message}");
        assert_eq!(
            served.count(),
            Ok("2".to_owned()),
            "{answers}: the next one works in a new session"
        );
        let seen = served.upstream.seen();
        assert_eq!(seen.messages("initialize").len(), 2, "{answers}");
        assert_eq!(
            seen.messages("tools/call").len(),
            3,
            "{answers}: nothing was sent twice"
        );
        assert_eq!(served.counted(), 2, "{answers}");
    }
}

#[test]
fn a_call_that_ran_is_never_sent_again_whatever_is_said_of_sessions_afterwards() {
    for (afterwards, words) in [("ran-500", "database session closed"), ("ran-error", "timed out")] {
        let served = serve(&[
            ("forget-after", "1000"),
            ("refuse", afterwards),
            ("refuse-method", "tools/call"),
            ("refuse-times", "1"),
        ]);
        served.bridge.wait_for_tool("mcp__remote__counter");
        let (code, message) = served.count().unwrap_err();
        assert_eq!(code, "upstream_error", "{afterwards}: {message}");
        assert!(message.contains(words), "{afterwards}: {message}");
        assert_eq!(served.counted(), 1, "{afterwards}: it ran once");
        assert_eq!(served.count(), Ok("2".to_owned()), "{afterwards}: the next one works");
    }
}

#[test]
fn a_server_that_forgets_goes_away_and_comes_back_is_used_again() {
    let home = Home::new();
    let folder = home.path().to_owned();
    let options = [("forget-after", "1000")];
    let upstream = HttpFake::start(home.path(), "remote", &options);
    let port = upstream.port;
    let bridge = Daemon::serving(home, [("remote", upstream.entry())]);
    bridge.wait_for_tool("mcp__remote__echo");
    assert_eq!(bridge.call_text("mcp__remote__echo", &json!({})), "{}");
    drop(upstream);
    // It is there again, knows nobody, and refuses to begin anew.
    let refusing = [
        ("forget-after", "1000"),
        ("refuse", "status=503"),
        ("refuse-method", "initialize"),
    ];
    let forgetful = HttpFake::start_at(port, &folder, "forgetful", &refusing);
    let message = bridge
        .call("mcp__remote__echo", &json!({}))
        .refused(502, "upstream_error");
    assert!(message.contains("503") || message.contains("forgot"), "{message}");
    drop(forgetful);
    let message = bridge
        .call("mcp__remote__echo", &json!({}))
        .refused(502, "upstream_error");
    assert!(message.len() > 20, "{message}");
    assert!(
        bridge.tool_names().contains(&"mcp__remote__echo".to_owned()),
        "its tools stay listed"
    );
    let again = HttpFake::start_at(port, &folder, "again", &options);
    assert_eq!(bridge.call_text("mcp__remote__echo", &json!({"n": 1})), "{\"n\":1}");
    assert_eq!(again.seen().messages("initialize").len(), 1);
}

#[test]
fn the_stream_of_a_servers_own_messages_is_opened_at_a_bearable_pace() {
    let home = Home::new();
    let rows = [
        ("closes", 5),
        ("resets", 5),
        ("idles-out", 5),
        ("400", 5),
        ("405", 1),
        ("stream", 1),
    ];
    let upstreams = rows.map(|(get, _)| HttpFake::start(home.path(), get, &[("get", get), ("forget-after", "1000")]));
    let ids = rows.map(|(get, _)| format!("of-{get}"));
    let entries = ids
        .iter()
        .map(String::as_str)
        .zip(upstreams.iter().map(HttpFake::entry));
    let bridge = Daemon::serving(home, entries);
    let tools = ids.each_ref().map(|id| format!("mcp__{}__echo", id.replace('-', "_")));
    for tool in &tools {
        bridge.wait_for_tool(tool);
    }
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3) {
        for tool in &tools {
            assert_eq!(bridge.call_text(tool, &json!({})), "{}", "{tool}: calls do not suffer");
        }
    }
    for ((get, most), (id, upstream)) in rows.into_iter().zip(ids.iter().zip(&upstreams)) {
        let asked = upstream.seen().requests("GET");
        assert!((1..=most).contains(&asked), "{get}: opened {asked} times");
        assert_eq!(bridge.status(id), "connected", "{get}: that is no fault");
        assert_eq!(upstream.seen().messages("initialize").len(), 1, "{get}");
    }
}

#[test]
fn a_call_whose_session_is_lost_meanwhile_ends_at_once_and_may_have_run() {
    let served = serve(&[("answers", "sse"), ("forget-after", "1")]);
    served.bridge.wait_for_tool("mcp__remote__hang");
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| served.bridge.call("mcp__remote__hang", &json!({})));
        served.upstream.seen().wait_for("tools/call", 1);
        let begin = Instant::now();
        assert_eq!(served.count(), Ok("1".to_owned()), "this one finds the session gone");
        let told = hanging.join().unwrap().refused(502, "upstream_error");
        assert!(told.contains("may or may not") && told.contains("session"), "{told}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    });
}

#[test]
fn an_answer_whose_stream_breaks_is_had_from_behind_its_last_event() {
    let served = serve(&[
        ("answers", "sse"),
        ("forget-after", "1000"),
        ("refuse", "resumable"),
        ("refuse-method", "tools/call"),
    ]);
    served.bridge.wait_for_tool("mcp__remote__counter");
    for n in 1..=3 {
        assert_eq!(served.count(), Ok(n.to_string()));
    }
    assert_eq!(served.counted(), 3, "no call was sent twice");
    let resumed = served.upstream.seen().lines();
    let resumed = resumed.iter().filter(|line| line.contains("last-event-id=event-"));
    assert_eq!(resumed.count(), 3);
}

#[test]
fn an_answer_that_never_comes_ends_its_call_and_no_other() {
    for (refusal, status, code) in [
        ("unanswered", 502, "upstream_error"),
        ("close", 502, "upstream_error"),
        ("half-close", 502, "upstream_error"),
        ("endless-headers", 502, "upstream_error"),
        ("html", 502, "upstream_error"),
        ("status=429", 502, "upstream_error"),
        ("gzip-bomb", 502, "result_too_large"),
        ("stall", 504, "upstream_timeout"),
    ] {
        let served = serve(&[
            ("answers", "sse"),
            ("forget-after", "1000"),
            ("refuse", refusal),
            ("refuse-method", "tools/call"),
            ("refuse-times", "1"),
        ]);
        served.bridge.wait_for_tool("mcp__remote__echo");
        let begin = Instant::now();
        let body = json!({"name": "mcp__remote__echo", "input": {}, "timeout_ms": 1500});
        let message = served.bridge.post("/mcp/call", &body).refused(status, code);
        assert!(
            begin.elapsed() < Duration::from_secs(5),
            "{refusal}: {:?}",
            begin.elapsed()
        );
        assert!(!message.contains("SECRET-BODY"), "{refusal}: {message}");
        let next = served.bridge.call_text("mcp__remote__echo", &json!({"n": 1}));
        assert_eq!(next, "{\"n\":1}", "{refusal}: the next one works");
        let calls = served.upstream.seen().messages("tools/call").len();
        assert_eq!(calls, 2, "{refusal}: nothing was sent twice");
    }
}

#[test]
fn a_packed_bomb_does_not_fill_memory() {
    let served = serve(&[("refuse", "gzip-bomb"), ("refuse-method", "tools/call")]);
    served.bridge.wait_for_tool("mcp__remote__echo");
    let before = resident(&served.bridge);
    for _ in 0..4 {
        served
            .bridge
            .call("mcp__remote__echo", &json!({}))
            .refused(502, "result_too_large");
    }
    let grown = resident(&served.bridge).saturating_sub(before);
    assert!(grown < 64 * 1024, "grew by {grown} KiB over 4 × 64 MiB");
}

/// In KiB.
fn resident(bridge: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", bridge.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn one_dead_address_among_three_delays_nobody() {
    let home = Home::new();
    let one = HttpFake::start(home.path(), "one", &[]);
    let two = HttpFake::start(home.path(), "two", &[("answers", "sse")]);
    let dead = json!({"url": format!("http://127.0.0.1:{}/mcp", free_port())});
    let begin = Instant::now();
    let bridge = Daemon::serving(home, [("one", one.entry()), ("dead", dead), ("two", two.entry())]);
    bridge.wait_for_tool("mcp__one__echo");
    bridge.wait_for_tool("mcp__two__echo");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let row: Value = bridge.wait_for_status("dead", "retrying");
    assert!(
        row["error"]
            .as_str()
            .is_some_and(|error| error.contains("nothing listens")),
        "{row}"
    );
    for id in ["one", "two"] {
        assert_eq!(bridge.call_text(&format!("mcp__{id}__echo"), &json!({})), "{}");
    }
}
