//! The loopback API: gate, routes and events over TCP and the local socket.
//!
//! From the outside in: `server` listens, `connection` speaks HTTP with one client and lets `gate` and `peer` refuse
//! before anything is routed, `routes` is the table of what there is. Decides nothing about connectors: every route is
//! one operation of [`Api`].

mod activity;
mod api;
mod approvals;
mod body;
mod clients;
mod connection;
mod credential;
mod crowd;
mod events;
mod extract;
pub mod gate;
mod kin;
mod limits;
mod manage;
mod offers;
mod peer;
mod port;
mod respond;
mod routes;
mod rules;
mod scopes;
mod secrets;
mod server;
mod servers;
mod sign_in;
mod tools;
mod wire;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod negative;

pub use credential::{Clients, Known, NoClients};
pub use kin::{Family, Kin};
pub use limits::Limits;
pub use routes::served;
pub use server::{ServeOptions, serve};
