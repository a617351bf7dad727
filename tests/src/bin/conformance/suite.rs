//! Runs the suite: one bridge, one scenario after another. Scenarios in parallel would disturb each other's timing, and
//! the suite's own runs of many ignore how the client ended.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use neuron_tests::{
    daemon::{Daemon, Setup},
    home::Home,
    process::Owned,
    program,
};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    api::API_FILE,
    drive,
    plan::{self, Expected, Scenario},
    report::{self, Extent, Outcome},
};

/// How long the suite waits for its command; the driver ends before.
const TIMEOUT_MS: &str = "30000";
/// Longest run of one scenario. Its server waits for its clients to hang up, however long they take.
const LONGEST: Duration = Duration::from_secs(60);
/// How often it is looked for a scenario's end.
const LOOK: Duration = Duration::from_millis(5);

/// Runs everything, or only the scenarios whose names begin with one of the words.
pub(crate) fn run(only: &[&str]) -> ExitCode {
    let suite = Suite::installed();
    let plan = plan::plan(&suite.folder, &suite.list());
    let wanted = |scenario: &&Scenario| only.is_empty() || only.iter().any(|word| scenario.name.starts_with(word));
    let setup = Setup {
        arguments: vec!["--secrets".to_owned(), "memory".to_owned()],
        ..Setup::default()
    };
    let bridge = Daemon::start_in(Home::new(), setup);
    let mut outcomes = Vec::new();
    for scenario in plan.scenarios.iter().filter(wanted) {
        let outcome = suite.outcome(&bridge, scenario);
        report::print_row(scenario, &outcome);
        outcomes.push((scenario, outcome));
    }
    let left = bridge.owner_get("/mcp/servers").ok()["servers"]
        .as_array()
        .map(Vec::len)
        .unwrap_or_default();
    // Nothing but the default connector was there before.
    assert_eq!(left, 1, "connectors that no scenario's driver removed");
    if outcomes.iter().any(|(_, outcome)| !outcome.faults.is_empty()) {
        eprintln!("--- what the bridge printed ---\n{}", bridge.log());
    }
    bridge.terminate();
    let extent = match only {
        [] => Extent::Whole,
        _ => Extent::Part,
    };
    report::print_end(&plan, extent, &outcomes)
}

struct Suite {
    folder: PathBuf,
    node: PathBuf,
}

impl Suite {
    /// # Panics
    /// When `make setup` has not installed it.
    fn installed() -> Self {
        let installed = program::workspace().join("tests/conformance/node_modules");
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => other,
        };
        let suite = Self {
            folder: installed.join("@modelcontextprotocol/conformance"),
            node: installed.join(format!("node-{}-{architecture}/bin/node", std::env::consts::OS)),
        };
        for path in [&suite.folder, &suite.node] {
            assert!(path.exists(), "{} is missing: run `make setup` once", path.display());
        }
        suite
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.folder.join("dist/index.js")).stdin(Stdio::null());
        command
    }

    fn list(&self) -> String {
        let output = self.command().arg("list").output().expect("node starts");
        assert!(output.status.success(), "the suite lists its scenarios: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn outcome(&self, bridge: &Daemon, scenario: &Scenario) -> Outcome {
        let kept = TempDir::with_prefix("conformance-").expect("a temporary folder");
        let driver = std::env::current_exe().expect("a running program has a path");
        let mut command = self.command();
        command
            .args(["client", "--timeout", TIMEOUT_MS, "--scenario", &scenario.name])
            .args(["--command", &format!("'{}' drive", driver.display())])
            .arg("--output-dir")
            .arg(kept.path())
            .env(API_FILE, bridge.home.api_file());
        if let Some(revision) = &scenario.revision {
            command.args(["--spec-version", revision]);
        }
        judge(scenario, &finished(command), kept.path())
    }
}

/// What a run of the suite printed; one that does not end is ended.
fn finished(mut command: Command) -> Output {
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut suite = Owned::start(&mut command);
    let mut stderr = suite.0.stderr.take().expect("piped");
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let read = stderr.read_to_end(&mut text);
        read.map(|_| text)
    });
    let begun = Instant::now();
    let status = loop {
        match suite.0.try_wait().expect("our own child can be waited for") {
            Some(status) => break status,
            None if begun.elapsed() > LONGEST => {
                suite.0.kill().expect("our own child can be ended");
                break suite.0.wait().expect("our own child can be waited for");
            }
            None => thread::sleep(LOOK),
        }
    };
    Output {
        status,
        stdout: Vec::new(),
        stderr: reader.join().expect("the reader ends").unwrap_or_default(),
    }
}

fn judge(scenario: &Scenario, output: &Output, kept: &Path) -> Outcome {
    let checks: Value = find(kept, "checks.json")
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let checks = checks.as_array().cloned().unwrap_or_default();
    let count = |status: &str| checks.iter().filter(|check| check["status"] == status).count();
    let said = find(kept, "stdout.txt").unwrap_or_default();
    let last = said.lines().rev().find_map(|line| line.strip_prefix(drive::OUTCOME));
    let wanted = match scenario.expected() {
        Expected::Done => drive::DONE,
        Expected::Refused => drive::REFUSED,
    };
    let mut faults = Vec::new();
    for check in &checks {
        if check["status"] == "FAILURE" || check["status"] == "WARNING" {
            faults.push(format!(
                "{} {}: {} ({})",
                check["status"].as_str().unwrap_or_default(),
                check["id"].as_str().unwrap_or_default(),
                check["description"].as_str().unwrap_or_default(),
                check["errorMessage"].as_str().unwrap_or_default(),
            ));
        }
    }
    if count("SUCCESS") == 0 {
        faults.push("nothing was checked".to_owned());
    }
    if !last.is_some_and(|last| last.starts_with(wanted)) {
        faults.push(format!("the driver was to end with “{wanted}”"));
    }
    if !output.status.success() {
        faults.push(format!("the suite ended with {}", output.status));
    }
    Outcome {
        passed: count("SUCCESS"),
        skipped: count("SKIPPED"),
        story: match faults.is_empty() {
            true => String::new(),
            false => format!(
                "{said}{}{}",
                find(kept, "stderr.txt").unwrap_or_default(),
                String::from_utf8_lossy(&output.stderr)
            ),
        },
        faults,
    }
}

/// A file of the suite's; its folder's name has the time in it.
fn find(folder: &Path, name: &str) -> Option<String> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if let Some(found) = find(&path, name) {
                return Some(found);
            }
        } else if path.ends_with(name) {
            return fs::read_to_string(path).ok();
        }
    }
    None
}
