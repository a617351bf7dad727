//! The tray app: a window and a tray around the bridge. Decides nothing; what it knows is Tauri and the desktop.

#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

mod app;
mod browser;
mod commands;
mod deep_link;
mod desktop;
mod notify;
#[cfg(target_os = "linux")]
mod scheme;
mod tray;

use std::process::ExitCode;

fn main() -> ExitCode {
    match app::run() {
        Ok(code) => code,
        Err(why) => {
            eprintln!("neuron-connect: {why}");
            ExitCode::FAILURE
        }
    }
}
