//! Real upstreams, as people run them. `make setup` installs them; a missing one fails the test.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{program, wait};

/// An npm server by the name of its program.
///
/// # Panics
/// When `make setup` has not installed it.
pub fn node(name: &str) -> PathBuf {
    installed(format!("tests/upstreams/node_modules/.bin/{name}"))
}

/// A PyPI server by the name of its program.
///
/// # Panics
/// When `make setup` has not installed it.
pub fn python(name: &str) -> PathBuf {
    installed(format!("tests/upstreams/.venv/bin/{name}"))
}

fn installed(path: String) -> PathBuf {
    let path = program::workspace().join(path);
    assert!(path.exists(), "{} is missing: run `make setup` once", path.display());
    path
}

/// `server-everything` over streamable HTTP; ends with its owner.
pub struct EverythingOverHttp {
    child: Child,
    port: u16,
}

impl EverythingOverHttp {
    /// # Panics
    /// When it does not start.
    pub fn start() -> Self {
        let port = free_port();
        let child = Command::new(node("mcp-server-everything"))
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("node starts");
        let server = Self { child, port };
        wait::eventually("server-everything listens", Duration::from_secs(30), || {
            std::net::TcpStream::connect(("127.0.0.1", server.port)).ok()
        });
        server
    }

    /// The member of `servers`.
    pub fn entry(&self) -> Value {
        json!({"transport": "http", "url": format!("http://127.0.0.1:{}/mcp", self.port)})
    }
}

impl Drop for EverythingOverHttp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago, for programs that cannot choose one themselves.
///
/// # Panics
/// Without a free port.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("bound").port()
}
