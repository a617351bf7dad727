//! What the bridge holds of the system, minute by minute, and whether that stays the same.

use std::{fs, sync::Mutex, time::Duration};

use neuron_tests::{daemon::Daemon, process};

use super::Tally;
use crate::report::median;

/// A look at the bridge this often.
const LOOK: Duration = Duration::from_secs(2);

/// What is compared at the end: the fifth minute, or the first third of a shorter run.
const SETTLED: Duration = Duration::from_secs(5 * 60);
const WINDOW: Duration = Duration::from_secs(60);

/// What the last window may hold more than the settled one.
const MOST_GROWTH: f64 = 1.10;

#[derive(Debug, Clone, Copy)]
struct Look {
    at: Duration,
    files: f64,
    memory: f64,
    threads: f64,
    children: f64,
}

pub(super) struct Watch {
    pid: u32,
    time: Duration,
    looks: Vec<Look>,
    minutes_told: u64,
}

impl Watch {
    /// Of a process that will be looked at for `time`.
    pub(super) fn new(pid: u32, time: Duration) -> Self {
        Self {
            pid,
            time,
            looks: Vec::new(),
            minutes_told: 0,
        }
    }

    /// Waits for the next look, and tells every minute what was seen.
    pub(super) fn look(&mut self, at: Duration, bridge: &Daemon, tally: &Mutex<Tally>) {
        std::thread::sleep(LOOK.min(self.time.saturating_sub(at)));
        self.looks.push(Look {
            at,
            files: entries(self.pid, "fd"),
            memory: process::memory(self.pid),
            threads: entries(self.pid, "task"),
            children: bridge.children().len() as f64,
        });
        let minutes = (at + LOOK).as_secs() / 60;
        if minutes > self.minutes_told {
            self.minutes_told = minutes;
            let last = self.between(at.saturating_sub(WINDOW), at);
            let tally = tally.lock().expect("no holder panics");
            println!(
                "minute {minutes}: {} calls, {} ok, {:?}; {:.0} files, {:.1} MB, {:.0} threads, {:.0} children",
                tally.calls,
                tally.ok.len(),
                tally.errors,
                last.files,
                last.memory,
                last.threads,
                last.children
            );
        }
    }

    /// The middle of each figure in that time.
    fn between(&self, from: Duration, to: Duration) -> Look {
        let looks = || self.looks.iter().filter(|look| (from..=to).contains(&look.at));
        let middle = |figure: fn(&Look) -> f64| median(looks().map(figure).collect());
        Look {
            at: from,
            files: middle(|look| look.files),
            memory: middle(|look| look.memory),
            threads: middle(|look| look.threads),
            children: middle(|look| look.children),
        }
    }

    /// Whether files and memory are at the end what they were when all had settled.
    pub(super) fn verdict(&self) -> Vec<String> {
        let third = self.time / 3;
        let (settled, last) = if self.time > SETTLED + WINDOW {
            (
                self.between(SETTLED - WINDOW, SETTLED),
                self.between(self.time - WINDOW, self.time),
            )
        } else {
            (self.between(Duration::ZERO, third), self.between(third * 2, self.time))
        };
        let mut broken = Vec::new();
        let mut compare = |what: &str, before: f64, after: f64| {
            println!("{what}: {before:.1} when settled, {after:.1} at the end");
            if after > before * MOST_GROWTH {
                broken.push(format!(
                    "{what} grew from {before:.1} to {after:.1}, which is more than a tenth."
                ));
            }
        };
        compare("Open files", settled.files, last.files);
        compare("Memory in MB", settled.memory, last.memory);
        broken
    }
}

fn entries(pid: u32, what: &str) -> f64 {
    fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0.0, |entries| entries.count() as f64)
}

/// Zombies, orphans, and programs that run more or less than once, each as a sentence.
pub(super) fn strays(bridge: &Daemon, programs: usize) -> Vec<String> {
    let mut broken = Vec::new();
    let children = bridge.children();
    if children.len() != programs {
        broken.push(format!(
            "{} programs run where {programs} should: {children:?}.",
            children.len()
        ));
    }
    for pid in children {
        if state_and_parent(pid).is_some_and(|(_, parent)| parent != bridge.pid()) {
            broken.push(format!("The program {pid} is an orphan."));
        }
    }
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if state_and_parent(pid).is_some_and(|(state, parent)| state == 'Z' && parent == bridge.pid()) {
            broken.push(format!("The program {pid} ended and stays as a zombie."));
        }
    }
    broken
}

fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}
