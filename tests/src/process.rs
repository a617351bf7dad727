//! Processes as the kernel sees them.

use std::{
    fs,
    path::Path,
    process::{Child, Command, ExitStatus},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// Set by the bridge in the environment of every upstream it starts.
pub const MARKER: &str = "NEURON_CONNECT_CHILD";

/// Whether the process exists and is no zombie.
pub fn is_alive(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        // The state follows the name, which is in parentheses and may hold any character.
        Ok(stat) => stat
            .rsplit_once(')')
            .is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X'])),
        Err(_) => false,
    }
}

/// Megabytes (10^6) that this process has to itself, shared pages by their share; its children excluded.
///
/// # Panics
/// When the process is gone or not ours.
pub fn memory(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("a process of our own");
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    kib(line.expect("a Pss line")) * 1024.0 / 1_000_000.0
}

/// Megabytes (10^6) that this process had resident at most so far.
///
/// # Panics
/// When the process is gone.
pub fn peak_memory(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("a living process");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    kib(line.expect("a VmHWM line")) * 1024.0 / 1_000_000.0
}

fn kib(text: &str) -> f64 {
    text.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Living processes that a bridge of this home started, and what those started.
pub fn children_of_home(home: &Path) -> Vec<u32> {
    let home = format!("HOME={}", home.display());
    with_environment(|variables| {
        variables.contains(&home.as_bytes()) && variables.iter().any(|variable| variable.starts_with(MARKER.as_bytes()))
    })
}

/// Living processes whose environment holds exactly this `NAME=value`.
pub fn with_variable(variable: &str) -> Vec<u32> {
    with_environment(|variables| variables.contains(&variable.as_bytes()))
}

fn with_environment(wanted: impl Fn(&[&[u8]]) -> bool) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environment| wanted(&environment.split(|byte| *byte == 0).collect::<Vec<_>>()))
    })
    .filter(|pid| is_alive(*pid))
    .collect()
}

/// Sends a signal to one process; one that is gone is no fault.
pub fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    let _ = kill_process(pid, signal);
}

/// A process that ends with its owner, also when a test fails.
pub struct Owned(pub Child);

impl Owned {
    /// # Panics
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().expect("the program starts"))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // One that has ended by itself is no fault.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a child to end.
///
/// # Panics
/// After `deadline`.
pub fn wait_for_exit(child: &mut Child, what: &str, deadline: Duration) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("our own child can be waited for") {
            return status;
        }
        assert!(begin.elapsed() < deadline, "{what} is still running after {deadline:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a bridge may be started in a network of its own. Says so loudly where it may not; on CI that is a failure.
///
/// # Panics
/// On CI where the system refuses.
pub fn may_have_its_own_network() -> bool {
    if Command::new("unshare")
        .args(["--net", "true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "CI may make networks, so that no test of them is skipped"
    );
    eprintln!("SKIPPED: a network of its own needs root; run the tests as root for this one");
    false
}

/// Whether this run may become another user. Says so loudly where it may not; on CI that is a failure.
///
/// # Panics
/// On CI without root.
pub fn may_become_another_user() -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "CI runs these tests as root, so that none is skipped"
    );
    eprintln!("SKIPPED: becoming another user needs root; run the tests as root for this one");
    false
}
