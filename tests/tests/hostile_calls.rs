//! What a program may do wrong while it works: it costs at most the call it belongs to.

use std::{
    collections::HashSet,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use neuron_tests::{
    daemon::Daemon,
    fake::{Fake, Seen},
    home::Home,
    http::Connection,
    process,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

/// Connectors of one bridge that list the rude tools, each with its record.
fn rude<'a>(fakes: impl IntoIterator<Item = (&'a str, Fake)>) -> (Daemon, Vec<Seen>) {
    let home = Home::new();
    let fakes: Vec<_> = fakes
        .into_iter()
        .map(|(id, fake)| (id, fake.option("list", "rude").record(&home.record(id))))
        .collect();
    let seen = fakes.iter().map(|(_, fake)| fake.seen()).collect();
    let bridge = Daemon::serving(home, fakes.iter().map(|(id, fake)| (*id, fake.entry())));
    for (id, _) in &fakes {
        bridge.wait_for_tool(&format!("mcp__{id}__mark"));
    }
    (bridge, seen)
}

fn timed_call(bridge: &Daemon, name: &str, input: &Value, ms: u64) -> neuron_tests::http::Answer {
    bridge.post("/mcp/call", &json!({"name": name, "input": input, "timeout_ms": ms}))
}

#[test]
fn a_storm_of_changed_lists_costs_few_requests() {
    let slow_list = Fake::new("ok").option("page-delay", 200);
    let (bridge, seen) = rude([("burst", Fake::new("ok")), ("slow", slow_list)]);
    let lists = |index: usize| seen[index].messages("tools/list").len();
    let storm = |id: &str, times: u64, ms: u64| {
        let input = json!({"times": times, "ms": ms});
        assert_eq!(bridge.call_text(&format!("mcp__{id}__storm"), &input), "calm");
        // An answer behind the storm on the same pipe: every change of it has been taken.
        bridge.call_text(&format!("mcp__{id}__echo"), &json!({}));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| storm("burst", 200, 0));
        scope.spawn(|| storm("slow", 100, 20));
    });
    for (index, id, most) in [(0, "burst", 2), (1, "slow", 12)] {
        let further = || lists(index) - 1;
        eventually("a further list", SOON, || (further() >= 1).then_some(()));
        assert!(further() <= most, "{id}: the storm took {} further requests", further());
        assert_eq!(bridge.status(id), "connected");
        assert_eq!(
            bridge.call_text(&format!("mcp__{id}__echo"), &json!({"n": 1})),
            "{\"n\":1}"
        );
    }
}

#[test]
fn changes_that_are_announced_without_end_are_read_ever_less_often() {
    let (bridge, seen) = rude([
        ("steady", Fake::new("ok")),
        ("echoing", Fake::new("ok").option("announce", "each-list")),
    ]);
    let input = json!({"times": 100, "ms": 20});
    assert_eq!(bridge.call_text("mcp__steady__storm", &input), "calm");
    for (id, seen) in ["steady", "echoing"].into_iter().zip(seen) {
        let lists = seen.messages("tools/list").len();
        assert!((2..=20).contains(&lists), "{id}: {lists} lists in two seconds");
        assert_eq!(bridge.status(id), "connected");
        assert_eq!(
            bridge.call_text(&format!("mcp__{id}__echo"), &json!({"n": 1})),
            "{\"n\":1}"
        );
    }
}

#[test]
fn answers_nobody_asked_for_and_answers_told_twice_reach_nobody() {
    let mangled = |how: &str| Fake::new("ok").option("mangle", how);
    let ways = ["duplicate", "unknown-id", "text-id", "both"];
    let ids = ["duplicate", "unknown", "text", "both"];
    let (bridge, seen) = rude(ids.into_iter().zip(ways.map(mangled)));
    std::thread::scope(|scope| {
        for id in ids {
            for caller in 0..4 {
                let bridge = &bridge;
                scope.spawn(move || {
                    for n in 0..10 {
                        let input = json!({"caller": caller, "n": n});
                        let answer = bridge.call_text(&format!("mcp__{id}__echo"), &input);
                        assert_eq!(answer, input.to_string(), "{id}");
                    }
                });
            }
        }
    });
    for (id, seen) in ids.into_iter().zip(seen) {
        assert_eq!(seen.messages("tools/call").len(), 40, "{id}: each call was sent once");
        assert_eq!(seen.starts().len(), 1, "{id}");
    }
}

#[test]
fn two_hundred_calls_at_once_of_eight_callers_each_get_their_own_answer() {
    const CALLERS: usize = 8;
    const AT_ONCE: usize = 25;
    const ROUNDS: usize = 8;
    let home = Home::new();
    let fakes = ["one", "two"].map(|id| Fake::new("ok").record(&home.record(id)));
    let bridge = Daemon::serving(home, ["one", "two"].into_iter().zip(fakes.iter().map(Fake::entry)));
    bridge.wait_for_tool("mcp__one__slow");
    bridge.wait_for_tool("mcp__two__slow");
    let address = bridge.tcp();
    std::thread::scope(|scope| {
        for number in 0..CALLERS * AT_ONCE {
            let address = &address;
            scope.spawn(move || {
                let mut connection = Connection::open(address);
                let server = if number % 2 == 0 { "one" } else { "two" };
                for round in 0..ROUNDS {
                    // Each waits another time, so that answers come in another order than the calls.
                    let ms = (number * 37 + round * 61) % 150;
                    let input = json!({"caller": number % CALLERS, "number": number, "round": round, "ms": ms});
                    let body = json!({"name": format!("mcp__{server}__slow"), "input": input}).to_string();
                    let answer = connection.send("POST", "/mcp/call", &[], body.as_bytes()).ok();
                    assert_eq!(answer["text"], input.to_string());
                    assert_eq!(answer["server"], server);
                }
            });
        }
    });
    for fake in &fakes {
        let calls = fake.seen().messages("tools/call");
        assert_eq!(calls.len(), CALLERS * AT_ONCE * ROUNDS / 2, "each call was sent once");
    }
}

/// A bridge with one recorded upstream `fake` that counts into a file.
fn counting(fake: Fake) -> (Daemon, Fake, PathBuf) {
    let home = Home::new();
    let counter = home.path().join("counter");
    let fake = fake.option("counter", counter.display()).record(&home.record("fake"));
    let bridge = Daemon::serving(home, [("fake", fake.entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    (bridge, fake, counter)
}

#[test]
fn a_call_whose_program_ends_is_never_sent_again_and_the_next_one_runs_in_a_new_process() {
    let (bridge, fake, counter) = counting(Fake::new("ok"));
    for round in 1..=3 {
        let input = json!({"key": format!("fatal-{round}"), "die": true});
        let answer = bridge.call("mcp__fake__counter", &input);
        let message = answer.refused(502, "upstream_error");
        assert!(!message.contains("dying"), "stderr is the owner's: {message}");
        let number = bridge.call_text("mcp__fake__counter", &json!({"key": format!("after-{round}")}));
        assert_eq!(number, (2 * round).to_string());
    }
    let expected = (1..=3).flat_map(|n| [format!("fatal-{n}"), format!("after-{n}")]);
    let marks = fs::read_to_string(counter).unwrap();
    assert_eq!(
        marks.lines().map(ToOwned::to_owned).collect::<Vec<_>>(),
        expected.collect::<Vec<_>>()
    );
    assert_eq!(fake.seen().starts().len(), 4, "one new process after each end");
    assert_eq!(fake.seen().met_their_successor(), [0_u32; 0]);
    bridge.call("mcp__fake__die", &json!({})).refused(502, "upstream_error");
    let log = bridge.owner_get("/mcp/servers/fake/log").text();
    assert!(log.contains("dying as told"), "{log}");
}

#[test]
fn a_program_that_closes_its_output_a_moment_before_it_ends_tells_its_exit_code_all_the_same() {
    let fake = Fake::new("ok").option("linger", 100).option("exit", 9);
    let bridge = Daemon::serving(Home::new(), [("fake", fake.entry())]);
    let row = bridge.wait_for_status("fake", "error");
    let error = row["error"].as_str().unwrap_or_default();
    assert!(error.contains("exited with code 9"), "{row}");
}

#[test]
fn callers_together_in_a_program_that_ends_each_hear_it_and_none_runs_twice() {
    let (bridge, _, counter) = counting(Fake::new("ok"));
    let call = |key: String, input: Value| {
        let answer = bridge.call("mcp__fake__counter", &input);
        let ok = answer.status == 200 && answer.json()["ok"] == true;
        if !ok {
            let code = answer.json()["code"].as_str().unwrap_or_default().to_owned();
            assert!(matches!(&*code, "upstream_error" | "unavailable"), "{}", answer.text());
        }
        ok.then_some(key)
    };
    let ok: HashSet<String> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|caller| {
                let call = &call;
                scope.spawn(move || {
                    let calls = (0..10).map(|n| {
                        let key = format!("{caller}-{n}");
                        let die = caller == 0 && n % 3 == 2;
                        call(key.clone(), json!({"key": key, "die": die}))
                    });
                    calls.flatten().collect::<Vec<_>>()
                })
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    let marks = fs::read_to_string(counter).unwrap();
    let ran: Vec<_> = marks.lines().collect();
    let once: HashSet<_> = ran.iter().map(|key| (*key).to_owned()).collect();
    assert_eq!(ran.len(), once.len(), "a call ran twice");
    let invented: Vec<_> = ok.difference(&once).collect();
    assert!(invented.is_empty(), "answered, but never ran: {invented:?}");
    assert!(ok.len() > 20, "most calls worked: {}", ok.len());
}

#[test]
fn progress_renews_a_calls_time_three_times_and_no_more() {
    const TIME: u64 = 1500;
    let (bridge, seen) = rude([
        ("busy", Fake::new("ok")),
        ("endless", Fake::new("ok")),
        ("stray", Fake::new("ok")),
    ]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let input = json!({"steps": 4, "ms": TIME * 85 / 100});
            let answer = timed_call(&bridge, "mcp__busy__progress", &input, TIME).ok();
            assert_eq!(answer["text"], "done", "3.4 times its time, with progress within each");
        });
        scope.spawn(|| {
            let begin = Instant::now();
            let input = json!({"steps": 10_000, "ms": 50});
            timed_call(&bridge, "mcp__endless__progress", &input, TIME).refused(504, "upstream_timeout");
            let took = begin.elapsed();
            assert!(took < Duration::from_millis(4 * TIME + 1000), "{took:?}");
            seen[1].wait_for("notifications/cancelled", 1);
        });
        scope.spawn(|| {
            for n in 0..5 {
                assert_eq!(bridge.call_text("mcp__stray__stray-progress", &json!({})), "done");
                let input = json!({"n": n});
                assert_eq!(bridge.call_text("mcp__stray__echo", &input), input.to_string());
            }
        });
    });
    for seen in seen {
        assert_eq!(seen.starts().len(), 1);
    }
}

#[test]
fn progress_that_comes_often_renews_a_calls_time_no_less() {
    const TIME: u64 = 1500;
    let (bridge, seen) = rude([("often", Fake::new("ok"))]);
    let input = json!({"steps": 50, "ms": TIME * 3 / 50});
    let answer = timed_call(&bridge, "mcp__often__progress", &input, TIME).ok();
    assert_eq!(
        answer["text"], "done",
        "three times its time, with progress all the time"
    );
    assert_eq!(seen[0].messages("notifications/cancelled"), [""; 0]);
}

#[test]
fn a_flood_of_progress_is_taken_without_growing_and_hurts_no_neighbour() {
    let (bridge, seen) = rude([("flood", Fake::new("ok")), ("calm", Fake::new("ok"))]);
    let before = process::peak_memory(bridge.pid());
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| bridge.call_text("mcp__flood__flood", &json!({"steps": 50_000})));
        let mut slowest = Duration::ZERO;
        while !flood.is_finished() {
            let begin = Instant::now();
            assert_eq!(bridge.call_text("mcp__calm__echo", &json!({})), "{}");
            slowest = slowest.max(begin.elapsed());
        }
        assert_eq!(flood.join().unwrap(), "done");
        assert!(slowest < Duration::from_secs(2), "a neighbour's call took {slowest:?}");
    });
    let after = process::peak_memory(bridge.pid());
    assert!(after < before + 32.0, "from {before} to {after} MB");
    assert_eq!(bridge.call_text("mcp__flood__echo", &json!({})), "{}");
    assert_eq!(seen[0].starts().len(), 1);
}

#[test]
fn a_huge_line_fails_its_own_call_and_the_next_one_works() {
    let (bridge, fake, _) = counting(Fake::new("ok"));
    let before = process::peak_memory(bridge.pid());
    std::thread::scope(|scope| {
        let huge = scope.spawn(|| {
            let answer = bridge.call("mcp__fake__big", &json!({"bytes": 100_000_000}));
            answer.refused(502, "result_too_large");
        });
        for n in 0..20 {
            let input = json!({"n": n});
            assert_eq!(bridge.call_text("mcp__fake__echo", &input), input.to_string());
        }
        huge.join().unwrap();
    });
    assert_eq!(
        bridge.call_text("mcp__fake__echo", &json!({"after": 1})),
        "{\"after\":1}"
    );
    assert_eq!(fake.seen().starts().len(), 1, "the connector lives on");
    let after = process::peak_memory(bridge.pid());
    assert!(after < before + 64.0, "from {before} to {after} MB");
}

#[test]
fn a_result_nested_too_deep_ends_its_own_call_with_a_sentence() {
    let (bridge, seen) = rude([("fake", Fake::new("ok"))]);
    for (levels, anew) in [(200, 0), (10_000, 0), (100, 1), (100, 14)] {
        let begin = Instant::now();
        let answer = bridge.call("mcp__fake__deep", &json!({"levels": levels, "anew": anew}));
        assert!(
            answer.status == 200 && anew == 0 || answer.json()["code"] == "upstream_error",
            "{}",
            answer.text()
        );
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        assert_eq!(
            bridge.call_text("mcp__fake__echo", &json!({"n": levels})),
            json!({"n": levels}).to_string()
        );
    }
    assert_eq!(seen[0].starts().len(), 1, "the connector lives on");
}

#[test]
fn a_program_that_stops_reading_fails_the_call_and_is_replaced_without_holding_up_its_neighbour() {
    let home = Home::new();
    let deaf = Fake::new("deaf").record(&home.record("deaf"));
    let bridge = Daemon::serving(home, [("deaf", deaf.entry()), ("calm", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__deaf__echo");
    bridge.wait_for_tool("mcp__calm__echo");
    // As much as one call may carry; the pipe holds a sixteenth of it.
    let input = json!({"text": "x".repeat(1_000_000)});
    std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            let begin = Instant::now();
            bridge.call("mcp__deaf__echo", &input).refused(502, "upstream_error");
            begin.elapsed()
        });
        let mut answered = 0;
        while !call.is_finished() {
            assert_eq!(bridge.call_text("mcp__calm__echo", &json!({})), "{}");
            answered += 1;
        }
        let took = call.join().unwrap();
        assert!(took < Duration::from_secs(14), "{took:?}");
        assert!(answered > 50, "the neighbour answered {answered} times");
    });
    let first = deaf.seen().starts()[0];
    eventually("the deaf process ended", SOON, || {
        (!process::is_alive(first)).then_some(())
    });
}
