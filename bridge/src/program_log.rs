//! The program's own log, on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::{
    EnvFilter, Layer as _,
    filter::{FilterExt as _, LevelFilter, filter_fn},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

/// Begins it, as `NEURON_LOG` says (the syntax of `tracing_subscriber::EnvFilter`), else with what concerns people.
///
/// Below info the SDK logs whole messages, and its sign-in module codes and tokens: that is never shown.
pub fn to_stderr() {
    let chosen = EnvFilter::try_from_env("NEURON_LOG").unwrap_or_else(|_| EnvFilter::new("info,rmcp=off"));
    let no_secrets = filter_fn(|m| !(m.target().starts_with("rmcp") && *m.level() > LevelFilter::INFO));
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .with_filter(chosen.and(no_secrets));
    // A second subscriber can only be there in a test.
    let _ = tracing_subscriber::registry().with(layer).try_init();
}
