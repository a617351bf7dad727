//! The official conformance suite against the built bridge.
//!
//! `conformance` starts one headless bridge and has the suite run its scenarios one by one. For each, the suite starts
//! `conformance drive URL`, which lets the bridge meet the scenario's server through the bridge's own API and nothing else.

mod api;
mod arguments;
mod drive;
mod plan;
mod report;
mod suite;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["drive", url] => drive::run(url),
        only => suite::run(only),
    }
}
