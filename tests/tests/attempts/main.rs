//! Nobody but the person gets a program started, a rule widened, a secret set or sent elsewhere, a tool approved again or a
//! question answered. Each way is tried beside the tray app, where every door is for walk-ins; and the person's yes works.
#![cfg(target_os = "linux")]

mod calls;
mod database;
mod file;
mod programs;
mod requests;
mod world;
