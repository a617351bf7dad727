//! Measures a release build of the bridge against its budgets and prints a table; judges, but asserts nothing.
//!
//! `make bench` and `make bench-quick` build what it needs and start it.

mod client;
mod decide;
mod direct;
mod everything;
mod fifty;
mod quick;
mod report;
mod restart;
mod soak;
mod trust;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("decide") => report::print(&decide::measure()),
        Some("quick") => report::print(&quick::measure()),
        Some("trust") => report::print(&trust::measure()),
        Some("fifty") => report::print(&fifty::measure()),
        Some("restart") => report::print(&restart::measure()),
        Some("all") => {
            let mut lines = quick::measure();
            lines.extend(decide::measure());
            lines.extend(trust::measure());
            lines.extend(fifty::measure());
            lines.extend(restart::measure());
            report::print(&lines);
        }
        Some("soak") => {
            if let (Some(minutes), Some(seed)) = (number(words.next(), 30.0), number(words.next(), seed_of_now())) {
                return soak::run(minutes, seed);
            }
            return usage();
        }
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: neuron-bench all | quick | decide | trust | fifty | restart | soak [MINUTES [SEED]]");
    ExitCode::from(64)
}

/// The word as a number, what stands for a missing one, or nothing for nonsense.
fn number<T: std::str::FromStr>(word: Option<String>, missing: T) -> Option<T> {
    word.map_or(Some(missing), |word| word.parse().ok())
}

fn seed_of_now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
}
