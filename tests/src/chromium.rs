//! The browser that people use, without its window.

use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::program;

/// Opens a page as a person's browser does, goes wherever it is sent, and gives what stands there at last, as HTML.
///
/// It reaches this computer alone, and leaves nothing behind.
///
/// # Panics
/// When no Chromium is installed, or it fails.
pub fn open(address: &str) -> String {
    let profile = TempDir::with_prefix("chromium-").expect("a temporary folder");
    let output = Command::new(program::any_system(&["chromium", "google-chrome"]))
        .args(["--headless=new", "--dump-dom", "--disable-gpu"])
        // The sandbox needs a user of its own; the pages are our own.
        .arg("--no-sandbox")
        .args([
            "--no-first-run",
            "--disable-sync",
            "--disable-breakpad",
            "--disable-dev-shm-usage",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--no-proxy-server",
        ])
        .arg("--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE 127.0.0.1")
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(address)
        .env("HOME", profile.path())
        .stdin(Stdio::null())
        .output()
        .expect("chromium starts");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "chromium ended with {}: {words}",
        output.status
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
