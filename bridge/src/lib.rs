//! Neuron Connect without a window: connectors, their upstreams, and the loopback API over them.
//!
//! Start with `bridge`, the one owner of state. `ARCHITECTURE.md` draws the map.

pub mod activity;
pub mod approval;
pub mod bridge;
pub mod builtin;
pub mod caller;
pub mod catalog;
pub mod clients;
pub mod clock;
pub mod config;
pub mod connector;
pub mod error;
pub mod event;
mod fairness;
pub mod home;
pub mod http;
pub mod ids;
pub mod ledger;
pub mod oauth;
pub mod program_log;
mod reach;
pub mod secrets;
pub mod settings;
pub mod snapshot;
pub mod store;
pub mod tools;
pub mod traffic;
pub mod tray;
pub mod trust;
#[cfg(test)]
mod typescript;
pub mod wishes;
