//! Fifty stdio connectors at once: how soon all are connected, and what they cost when nothing happens.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use neuron_tests::{
    daemon::{Daemon, Setup},
    fake::Fake,
    home::{Home, config_text},
    program,
    wait::eventually,
};
use serde_json::{Value, json};

use crate::report::{Budget, Line, median};

const CONNECTORS: usize = 50;
const ROUNDS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(60);
const IDLE: Duration = Duration::from_secs(60);

/// What a program does before it can answer, as node and Python do; in milliseconds.
const OWN_START: u64 = 200;

pub(crate) fn measure() -> Vec<Line> {
    let quick = Fake::new("ok");
    let slow = Fake::new("ok").option("delay", OWN_START);
    vec![
        Line {
            what: "50 stdio connectors started together ÷ bare driver",
            measured: ratio(&quick),
            unit: "×",
            budget: Budget::AtMost(1.3),
        },
        Line {
            what: "the same with upstreams that take 0.2 s to start",
            measured: ratio(&slow),
            unit: "×",
            budget: Budget::AtMost(1.3),
        },
        idle(&quick),
    ]
}

/// Interleaved, so that whatever else the machine does hits both.
fn ratio(fake: &Fake) -> f64 {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(bare(fake));
        with.push(through_the_bridge(fake));
    }
    let (with, without) = (median(with), median(without));
    eprintln!("{CONNECTORS} connectors: {with:.3} s through the bridge, {without:.3} s bare");
    with / without
}

/// Seconds until all are started and initialized, one per core at a time.
fn bare(fake: &Fake) -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, running) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < CONNECTORS {
                    let child = initialized(fake);
                    running.lock().expect("no holder panics").push(child);
                }
            });
        }
    });
    let took = begin.elapsed().as_secs_f64();
    for mut child in running.into_inner().expect("no holder panics") {
        let _ = child.kill();
        let _ = child.wait();
    }
    took
}

fn initialized(fake: &Fake) -> Child {
    let mut child = Command::new(program::fake_upstream())
        .args(fake.arguments())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the upstream starts");
    let input = child.stdin.as_mut().expect("piped");
    let greeting =
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}});
    writeln!(input, "{greeting}").expect("the upstream reads");
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.as_mut().expect("piped"));
    output.read_line(&mut line).expect("the upstream answers");
    assert!(line.contains("\"result\""), "{line}");
    child
}

fn ids() -> Vec<String> {
    (0..CONNECTORS).map(|n| format!("fake{n}")).collect()
}

fn serving(fake: &Fake) -> Daemon {
    let home = Home::new();
    let ids = ids();
    home.write_config(&config_text(ids.iter().map(|id| (id.as_str(), fake.entry()))));
    Daemon::start_in(home, Setup::default())
}

/// Seconds from the bridge's own start until the last one is connected and listed, as the bridge itself dates it.
fn through_the_bridge(fake: &Fake) -> f64 {
    let begin = UNIX_EPOCH.elapsed().map_or(0.0, |since| since.as_secs_f64());
    let bridge = serving(fake);
    connected_at(&bridge) - begin
}

/// When the last one connected, in seconds since 1970. Looks seldom: looking costs the bridge time.
fn connected_at(bridge: &Daemon) -> f64 {
    let begin = SystemTime::now();
    loop {
        let answer = bridge.get("/mcp/servers").ok();
        let rows = answer["servers"].as_array().expect("a list");
        if rows.iter().all(|row| row["status"] == "connected") {
            let since = |row: &Value| row["connection"]["since"].as_f64();
            return rows.iter().filter_map(since).fold(0.0, f64::max) / 1000.0;
        }
        let waited = begin.elapsed().unwrap_or_default();
        assert!(waited < PATIENCE, "not all connected: {answer}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn idle(fake: &Fake) -> Line {
    let bridge = serving(fake);
    connected_at(&bridge);
    // A session that was used stays; the others would be closed meanwhile.
    for id in ids() {
        bridge.call_text(&format!("mcp__{id}__echo"), &json!({}));
    }
    let pid = bridge.pid();
    eventually("quiet after the start", PATIENCE, || {
        let before = cpu(pid);
        std::thread::sleep(Duration::from_secs(1));
        (cpu(pid) - before < 1.0).then_some(())
    });
    let before = cpu(pid);
    std::thread::sleep(IDLE);
    let spent = cpu(pid) - before;
    assert_eq!(bridge.children().len(), CONNECTORS, "all still stand");
    Line {
        what: "the bridge's processor time in 60 idle seconds, 50 connected",
        measured: spent,
        unit: "ms",
        budget: Budget::AtMost(60.0),
    }
}

/// Milliseconds of processor time that a process has used, threads that ended included (proc_pid_stat(5), fields 14
/// and 15).
fn cpu(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a living process");
    let (_, rest) = stat.rsplit_once(')').expect("a name in brackets");
    let ticks = |field: &str| field.parse::<f64>().expect("a number");
    let ticks: f64 = rest.split_whitespace().skip(11).take(2).map(ticks).sum();
    ticks * 1000.0 / rustix::param::clock_ticks_per_second() as f64
}
