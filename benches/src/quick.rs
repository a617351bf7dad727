//! The figures that need nothing but this workspace, in about half a minute.

use std::{
    sync::Barrier,
    time::{Duration, Instant},
};

use neuron_tests::{
    daemon::{Daemon, Setup, serve_command},
    fake::Fake,
    home::Home,
    process,
    upstream::free_port,
    wait,
};
use rustix::process::Signal;

use crate::{
    client::Client,
    direct::Direct,
    report::{Budget, Line, median},
};

const ARGUMENTS: &str = r#"{"text":"hello","n":1}"#;

pub(crate) fn measure() -> Vec<Line> {
    let mut lines = vec![start_to_first_list(), memory_of_sleepers()];
    lines.extend(added_latency());
    lines.extend(list_of_a_thousand());
    lines.push(throughput());
    lines
}

/// Milliseconds each run of `work` took.
fn timed(runs: usize, mut work: impl FnMut()) -> Vec<f64> {
    (0..runs)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed().as_secs_f64() * 1000.0
        })
        .collect()
}

fn start_to_first_list() -> Line {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    bridge.wait_for_tool("mcp__fake__echo");
    let home = bridge.terminate();
    let rounds = (0..20).map(|_| {
        let port = free_port();
        let mut command = serve_command(&home, &Setup::default());
        command.args(["--port", &port.to_string()]);
        let begin = Instant::now();
        let mut child = command.spawn().expect("the bridge starts");
        let mut client = wait_busily(|| Client::connect(port));
        let (status, _, body) = client.send(&client.get("/mcp/tools", ""));
        let took = begin.elapsed();
        assert!(
            status == 200 && body.windows(15).any(|text| text == b"mcp__fake__echo"),
            "a whole list"
        );
        process::signal(child.id(), Signal::TERM);
        process::wait_for_exit(&mut child, "the bridge", Duration::from_secs(5));
        took.as_secs_f64() * 1000.0
    });
    Line {
        what: "process start → first tool list from snapshot, median of 20",
        measured: median(rounds.collect()),
        unit: "ms",
        budget: Budget::AtMost(60.0),
    }
}

/// Looks without a pause worth measuring.
fn wait_busily<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < wait::SOON, "the bridge does not listen");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn memory_of_sleepers() -> Line {
    let ids: Vec<String> = (0..10).map(|n| format!("fake{n}")).collect();
    let entries = ids.iter().map(|id| (id.as_str(), Fake::new("ok").entry()));
    let bridge = Daemon::serving(Home::new(), entries);
    for id in &ids {
        bridge.wait_for_tool(&format!("mcp__{id}__echo"));
    }
    let bridge = bridge.restart();
    assert_eq!(bridge.tool_names().len(), 130);
    assert_eq!(bridge.children(), [0_u32; 0], "all asleep");
    Line {
        what: "memory (Pss) with 10 sleeping connectors",
        measured: process::memory(bridge.pid()),
        unit: "MB",
        budget: Budget::AtMost(20.0),
    }
}

fn started(bridge: &Daemon) -> (Client, Vec<u8>) {
    bridge.wait_for_tool("mcp__fake__echo");
    let client = Client::connect(bridge.port).expect("the bridge listens");
    let request = client.call(&format!(r#"{{"name":"mcp__fake__echo","input":{ARGUMENTS}}}"#));
    (client, request)
}

fn added_latency() -> [Line; 2] {
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    let (mut client, request) = started(&bridge);
    let mut direct = Direct::start();
    let mut call = || assert_eq!(client.send(&request).0, 200);
    timed(500, &mut call);
    timed(500, || direct.call(ARGUMENTS));
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        without.push(median(timed(400, || direct.call(ARGUMENTS))));
        with.push(median(timed(400, &mut call)));
    }
    let (with, without) = (median(with), median(without));
    [
        Line {
            what: "a direct stdio call to the echo upstream, p50",
            measured: without,
            unit: "ms",
            budget: Budget::None,
        },
        Line {
            what: "added by /mcp/call, p50",
            measured: with - without,
            unit: "ms",
            budget: Budget::AtMost(0.10),
        },
    ]
}

fn list_of_a_thousand() -> [Line; 2] {
    let entry = Fake::new("ok").option("list", "many").option("tools", 1000).entry();
    let bridge = Daemon::serving(Home::new(), [("fake", entry)]);
    bridge.wait_for_tool("mcp__fake__tool_999");
    let mut client = Client::connect(bridge.port).expect("the bridge listens");
    let request = client.get("/mcp/tools", "");
    let (_, tag, _) = client.send(&request);
    let whole = median(timed(1000, || assert_eq!(client.send(&request).0, 200)));
    let known = client.get("/mcp/tools", &format!("If-None-Match: {tag}\r\n"));
    let unchanged = median(timed(1000, || assert_eq!(client.send(&known).0, 304)));
    [
        Line {
            what: "GET /mcp/tools of 1,000 tools, p50",
            measured: whole,
            unit: "ms",
            budget: Budget::AtMost(1.0),
        },
        Line {
            what: "the same unchanged (304), p50",
            measured: unchanged,
            unit: "ms",
            budget: Budget::AtMost(0.3),
        },
    ]
}

fn throughput() -> Line {
    const CALLERS: usize = 8;
    const CALLS: usize = 5000;
    let bridge = Daemon::serving(Home::new(), [("fake", Fake::new("ok").entry())]);
    drop(started(&bridge));
    let barrier = Barrier::new(CALLERS + 1);
    let took = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                scope.spawn(|| {
                    let (mut client, request) = started(&bridge);
                    timed(200, || assert_eq!(client.send(&request).0, 200));
                    barrier.wait();
                    timed(CALLS, || assert_eq!(client.send(&request).0, 200));
                })
            })
            .collect();
        barrier.wait();
        let begin = Instant::now();
        for caller in callers {
            caller.join().expect("a caller is done");
        }
        begin.elapsed()
    });
    Line {
        what: "calls at 8 callers (budget: 1.5 × mcp-proxy's 17,900/s)",
        measured: (CALLERS * CALLS) as f64 / took.as_secs_f64(),
        unit: "/s",
        budget: Budget::AtLeast(26_850.0),
    }
}
