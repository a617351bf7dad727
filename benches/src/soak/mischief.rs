//! What is done to the upstreams meanwhile: kills, restarts, edits of the file.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use neuron_tests::{daemon::Daemon, process, save::Editor};
use rustix::process::Signal;

use super::{
    chance::Chance,
    upstreams::{IDS, PROGRAMS, Upstreams, sign},
};

#[derive(Debug, Clone, Copy)]
enum Deed {
    /// SIGKILL to an upstream's program.
    Kill,
    /// The HTTP server goes away for a moment.
    RestartRemote,
    Rename,
    /// Another environment: another process.
    ChangeEnv,
    /// Off in the file, and on again a moment later.
    OffAndOn,
}

/// Does one thing after the other until it is over, and leaves everything running.
pub(super) fn until(over: &AtomicBool, bridge: &Daemon, upstreams: &mut Upstreams, mut chance: Chance) {
    loop {
        if rest(over, 2000 + chance.below(4000)) {
            return;
        }
        match chance.one_of([
            Deed::Kill,
            Deed::Kill,
            Deed::RestartRemote,
            Deed::Rename,
            Deed::ChangeEnv,
            Deed::OffAndOn,
        ]) {
            Deed::Kill => kill(bridge, chance.one_of(PROGRAMS)),
            Deed::RestartRemote => {
                upstreams.stop_remote();
                rest(over, chance.below(1000));
                upstreams.start_remote();
            }
            Deed::Rename => {
                upstreams.rename(chance.one_of(IDS));
                save(bridge, upstreams);
            }
            Deed::ChangeEnv => {
                upstreams.change_env(chance.one_of(PROGRAMS));
                save(bridge, upstreams);
            }
            Deed::OffAndOn => {
                let id = chance.one_of(IDS);
                upstreams.set_disabled(id, true);
                save(bridge, upstreams);
                rest(over, 500 + chance.below(1500));
                upstreams.set_disabled(id, false);
                save(bridge, upstreams);
            }
        }
    }
}

/// Waits that long, or until it is over: then true.
fn rest(over: &AtomicBool, ms: u64) -> bool {
    let end = Instant::now() + Duration::from_millis(ms);
    while Instant::now() < end && !over.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(50));
    }
    over.load(Ordering::SeqCst)
}

fn save(bridge: &Daemon, upstreams: &Upstreams) {
    Editor::RenameOver.save(&bridge.home.config_file(), &upstreams.config());
}

fn kill(bridge: &Daemon, id: &str) {
    let sign = sign(id);
    for pid in bridge.children() {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(&sign) {
            process::signal(pid, Signal::KILL);
        }
    }
}
