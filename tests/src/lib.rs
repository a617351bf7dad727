//! What black-box tests need: a bridge in a home of its own, upstreams that behave as told, and honest waiting.
//!
//! Nothing here touches the real home, keychain or network; every process that is started is ended with its owner.

pub mod asking;
pub mod authority;
pub mod browser;
pub mod chromium;
pub mod daemon;
pub mod fake;
pub mod home;
pub mod http;
pub mod inline;
#[cfg(target_os = "linux")]
pub mod keyring;
pub mod process;
pub mod program;
pub mod save;
pub mod signing_in;
#[cfg(target_os = "linux")]
pub mod tray;
pub mod upstream;
pub mod wait;
