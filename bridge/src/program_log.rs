//! The program's own log, on standard error.

use std::io::IsTerminal as _;

use tracing::Level;
use tracing_subscriber::{
    EnvFilter, Layer as _,
    filter::{FilterExt as _, filter_fn},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

/// Begins it, as `NEURON_LOG` says (the syntax of `tracing_subscriber::EnvFilter`), else with what concerns people.
///
/// The SDK logs whole messages, what servers say of themselves among them, and its sign-in module codes and tokens: of it
/// nothing is ever shown. The watcher of the file traces every change in the folders above it too: where standard error
/// is kept in one of them, each line of it would be another change, without end.
pub fn to_stderr() {
    let chosen = EnvFilter::try_from_env("NEURON_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let shown = filter_fn(|m| {
        let of = |name: &str| m.target().starts_with(name);
        !of("rmcp") && (!of("notify") || *m.level() <= Level::INFO)
    });
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .with_filter(chosen.and(shown));
    // A second subscriber can only be there in a test.
    let _ = tracing_subscriber::registry().with(layer).try_init();
}
