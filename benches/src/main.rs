//! Measures a release build of the bridge against its budgets and prints a table; judges, but asserts nothing.
//!
//! `cargo build --workspace --release && cargo run --release -p neuron-bench -- quick`

mod client;
mod direct;
mod quick;
mod report;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("quick") => report::print(&quick::measure()),
        _ => {
            eprintln!("usage: neuron-bench quick");
            std::process::exit(64);
        }
    }
}
