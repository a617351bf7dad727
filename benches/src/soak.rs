//! A release build under load and mischief for minutes: no call lost or run twice, nothing leaked, nothing left behind.
//!
//! The seed decides what is called and what is done to whom, and in which order; how long each step takes is the
//! machine's affair. Ends with exit code 1 and a sentence for each promise that was broken.

mod callers;
mod chance;
mod mischief;
mod upstreams;
mod watch;

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use neuron_tests::{
    daemon::{Daemon, Setup},
    home::Home,
    wait::eventually,
};

use self::{chance::Chance, upstreams::Upstreams, watch::Watch};

const CALLERS: u64 = 5;

/// How long the upstreams may take to be listed at the beginning and to come back at the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the callers have seen so far.
#[derive(Default)]
struct Tally {
    calls: usize,
    /// Keys of calls that were answered with success.
    ok: Vec<String>,
    /// Refusals by their code.
    errors: BTreeMap<String, usize>,
    /// Broken promises, in words.
    broken: Vec<String>,
}

/// Runs for that long and judges.
pub(crate) fn run(minutes: f64, seed: u64) -> ExitCode {
    println!("soak: {minutes} minutes, seed {seed} (repeat it with SEED={seed})");
    let time = Duration::from_secs_f64(minutes * 60.0);
    let home = Home::new();
    let mut upstreams = Upstreams::start(&home);
    home.write_config(&upstreams.config());
    let bridge = Daemon::start_in(home, Setup::default());
    for tool in upstreams.tools() {
        eventually(&tool, PATIENCE, || bridge.tool_names().contains(&tool).then_some(()));
    }
    let (tally, over) = (Mutex::new(Tally::default()), AtomicBool::new(false));
    let mut watch = Watch::new(bridge.pid(), time);
    std::thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (address, tally, over) = (bridge.tcp(), &tally, &over);
            scope.spawn(move || callers::call_until(over, &address, caller, Chance::new(seed ^ (caller + 1)), tally));
        }
        let (bridge, upstreams, over) = (&bridge, &mut upstreams, &over);
        scope.spawn(move || mischief::until(over, bridge, upstreams, Chance::new(seed)));
        let begin = Instant::now();
        while begin.elapsed() < time {
            watch.look(begin.elapsed(), bridge, &tally);
        }
        over.store(true, Ordering::SeqCst);
    });
    let mut broken = watch.verdict();
    broken.extend(quiet_end(&bridge, &upstreams));
    let tally = tally.into_inner().expect("no holder panics");
    broken.extend(upstreams.verdict(&tally.ok));
    let share = tally.ok.len() as f64 / tally.calls.max(1) as f64;
    println!(
        "{} calls, {:.1} % answered with success, others: {:?}",
        tally.calls,
        share * 100.0,
        tally.errors
    );
    if share < callers::LEAST_SUCCESS {
        broken.push(format!(
            "Only {:.1} % of the calls were answered with success.",
            share * 100.0
        ));
    }
    broken.extend(tally.broken);
    drop(bridge.terminate());
    if broken.is_empty() {
        println!("soak: passed");
        return ExitCode::SUCCESS;
    }
    for sentence in &broken {
        println!("soak: {sentence}");
    }
    println!("soak: failed with seed {seed}");
    ExitCode::FAILURE
}

/// After the mischief every connector answers again, each program runs once, and nobody is a zombie or an orphan.
fn quiet_end(bridge: &Daemon, upstreams: &Upstreams) -> Vec<String> {
    let mut broken = Vec::new();
    let begin = Instant::now();
    for id in upstreams::IDS {
        let mut answer = callers::one_call(bridge, id);
        while answer.status != 200 && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(200));
            answer = callers::one_call(bridge, id);
        }
        if answer.status != 200 {
            broken.push(format!("{id} did not come back within {PATIENCE:?}: {}", answer.text()));
        }
    }
    let settled = || watch::strays(bridge, upstreams.programs()).is_empty();
    while !settled() && begin.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(200));
    }
    broken.extend(watch::strays(bridge, upstreams.programs()));
    broken
}
