//! An upstream that is restarted under a session that callers hold: how soon the next call is answered.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use neuron_tests::{daemon::Daemon, home::Home, http::Connection, process, upstream::free_port, wait::eventually};
use rustix::{process::Signal, time::ClockId};

use crate::{
    everything::{Everything, Over},
    report::{Budget, Line, median},
};

const ROUNDS: usize = 5;

/// A call that is not answered by then is not going to be.
const PATIENCE: Duration = Duration::from_secs(60);

const CALL: &[u8] = br#"{"name":"mcp__everything__echo","input":{"message":"hello"}}"#;

pub(crate) fn measure() -> Vec<Line> {
    let ways = [
        (
            Over::Stdio,
            "restart under a held session, stdio: next answer ÷ bare first answer",
        ),
        (Over::Http, "the same over HTTP"),
        (Over::Sse, "the same over HTTP+SSE"),
    ];
    let sessions = [
        "new sessions for each of these restarts, stdio, at most",
        "the same over HTTP",
        "the same over HTTP+SSE",
    ];
    let mut lines = Vec::new();
    for ((over, what), sessions) in ways.into_iter().zip(sessions) {
        // A transport that does not work yet costs its own lines and no other's.
        let measured = catch_unwind(AssertUnwindSafe(|| measure_one(over)));
        let (ratio, most) = measured.unwrap_or((f64::NAN, f64::NAN));
        lines.push(Line {
            what,
            measured: ratio,
            unit: "×",
            budget: Budget::AtMost(1.25),
        });
        lines.push(Line {
            what: sessions,
            measured: most,
            unit: "",
            budget: Budget::AtMost(1.0),
        });
    }
    lines
}

/// The ratio of medians, and the most new sessions that one restart took.
fn measure_one(over: Over) -> (f64, f64) {
    let home = Home::new();
    let folder = home.path().to_owned();
    let beside = folder.join("bare");
    fs::create_dir(&beside).expect("the home is writable");
    let port = free_port();
    let mut server = (over != Over::Stdio).then(|| Everything::start(over, port, &folder));
    let bridge = Daemon::serving(home, [("everything", over.entry(port))]);
    eventually("server-everything's tools", PATIENCE, || {
        bridge
            .tool_names()
            .contains(&"mcp__everything__echo".to_owned())
            .then_some(())
    });
    let mut connection = Connection::open(&bridge.tcp());
    answered(&mut connection);
    let (mut with, mut without, mut most) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        without.push(Everything::bare_first_answer(over, &beside).as_secs_f64());
        let (took, sessions) = match server.take() {
            Some(old) => {
                drop(old);
                let new = server.insert(Everything::start(over, port, &folder));
                answered(&mut connection);
                (new.started.elapsed().as_secs_f64(), new.sessions())
            }
            None => restart_child(&bridge, &mut connection),
        };
        with.push(took);
        most = most.max(sessions);
    }
    let (with, without) = (median(with), median(without));
    eprintln!("{over:?}: {with:.3} s through the bridge, {without:.3} s bare");
    (with / without, most as f64)
}

/// Kills the one child; seconds from the start of its successor to the next answer, and how many successors there were.
fn restart_child(bridge: &Daemon, connection: &mut Connection) -> (f64, usize) {
    let before = bridge.children();
    for pid in &before {
        process::signal(*pid, Signal::KILL);
    }
    answered(connection);
    let answered_at = since_boot();
    let after: Vec<_> = bridge
        .children()
        .into_iter()
        .filter(|pid| !before.contains(pid))
        .collect();
    let started_at = after
        .iter()
        .filter_map(|pid| started_at(*pid))
        .fold(f64::INFINITY, f64::min);
    (answered_at - started_at, after.len())
}

/// Calls again and again until a call is answered.
fn answered(connection: &mut Connection) {
    let begin = Instant::now();
    loop {
        let answer = connection.send("POST", "/mcp/call", &[], CALL);
        if answer.status == 200 {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "still {}", answer.text());
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn since_boot() -> f64 {
    let now = rustix::time::clock_gettime(ClockId::Boottime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Seconds after boot, to the hundredth that the kernel tells (proc_pid_stat(5), field 22).
fn started_at(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks: f64 = rest.split_whitespace().nth(19)?.parse().ok()?;
    Some(ticks / rustix::param::clock_ticks_per_second() as f64)
}
