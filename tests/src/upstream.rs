//! Real upstreams, as people run them. `make setup` installs them; a missing one fails the test.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{program, wait};

/// Interpreters read many files at their first start.
pub const SLOW_START: Duration = Duration::from_secs(60);

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

/// One of the Python scripts beside the installed servers, with its arguments, as a member of `servers`.
pub fn script(name: &str, arguments: &[&str]) -> Value {
    let script = installed(format!("tests/upstreams/{name}")).display().to_string();
    let arguments: Vec<_> = std::iter::once(script.as_str())
        .chain(arguments.iter().copied())
        .collect();
    json!({"command": python("python"), "args": arguments})
}

/// One of the Python scripts, serving HTTP at a port; ends with its owner.
pub struct Served {
    child: Child,
    pub port: u16,
}

impl Served {
    /// # Panics
    /// When it does not listen.
    pub fn start_at(port: u16, script: &str) -> Self {
        Self::start_with(port, script, &[])
    }

    /// With more arguments after the port.
    ///
    /// # Panics
    /// When it does not listen.
    pub fn start_with(port: u16, script: &str, arguments: &[&str]) -> Self {
        let child = Command::new(python("python"))
            .arg(installed(format!("tests/upstreams/{script}")))
            .arg(port.to_string())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("python starts");
        let server = Self { child, port };
        wait::eventually(&format!("{script} listens"), SLOW_START, || {
            std::net::TcpStream::connect(("127.0.0.1", server.port)).ok()
        });
        server
    }

    /// The member of `servers`.
    pub fn entry(&self) -> Value {
        json!({"url": format!("http://127.0.0.1:{}/mcp", self.port)})
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended by itself is no fault.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How `server-everything` is reached over HTTP.
#[derive(Debug, Clone, Copy)]
pub enum Everything {
    StreamableHttp,
    Sse,
}

impl Everything {
    fn word(self) -> &'static str {
        match self {
            Self::StreamableHttp => "streamableHttp",
            Self::Sse => "sse",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::StreamableHttp => "/mcp",
            Self::Sse => "/sse",
        }
    }
}

/// `server-everything` over HTTP; ends with its owner.
pub struct EverythingOverHttp {
    child: Child,
    pub port: u16,
    way: Everything,
}

impl EverythingOverHttp {
    /// # Panics
    /// When it does not start.
    pub fn start(way: Everything) -> Self {
        Self::start_at(free_port(), way)
    }

    /// At a given port, to come back where another one was.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_at(port: u16, way: Everything) -> Self {
        let child = Command::new(node("mcp-server-everything"))
            .arg(way.word())
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("node starts");
        let server = Self { child, port, way };
        wait::eventually("server-everything listens", SLOW_START, || {
            std::net::TcpStream::connect(("127.0.0.1", server.port)).ok()
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, self.way.path())
    }

    /// The member of `servers`, its transport left out.
    pub fn entry(&self) -> Value {
        json!({"url": self.url()})
    }
}

impl Drop for EverythingOverHttp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An MCP server in Node that wants a sign-in at an authorization server of its own.
#[derive(Debug, Clone, Copy)]
pub enum Guarded {
    /// The official SDK's example, which lets everybody in without a page.
    SdkExample,
    /// `oidc-provider`: pages to sign in and to agree, an issuer in each answer, tokens for one resource.
    OidcProvider,
    /// `oauth2-mock-server`: known by OpenID Connect discovery alone, registers nobody.
    OidcOnly,
}

/// One of them, running; ends with its owner.
pub struct GuardedServer {
    child: Child,
    port: u16,
    authorization: u16,
}

impl GuardedServer {
    /// # Panics
    /// When it does not listen.
    pub fn start(which: Guarded) -> Self {
        let (port, authorization) = (free_port(), free_port());
        let mut command = Command::new("node");
        match which {
            Guarded::SdkExample => {
                let example = "@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js";
                command
                    .arg(installed(format!("tests/upstreams/node_modules/{example}")))
                    .args(["--oauth", "--oauth-strict"])
                    .env("MCP_PORT", port.to_string())
                    .env("MCP_AUTH_PORT", authorization.to_string());
            }
            Guarded::OidcProvider => {
                command
                    .arg(installed("tests/upstreams/oidc_provider.mjs".to_owned()))
                    .args([port.to_string(), authorization.to_string()]);
            }
            Guarded::OidcOnly => {
                command
                    .arg(installed("tests/upstreams/oauth2_mock.mjs".to_owned()))
                    .args([port.to_string(), authorization.to_string()]);
            }
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("node starts");
        let server = Self {
            child,
            port,
            authorization,
        };
        for port in [port, authorization] {
            wait::eventually(&format!("{which:?} listens"), SLOW_START, || {
                std::net::TcpStream::connect(("127.0.0.1", port)).ok()
            });
        }
        server
    }

    /// The protected address.
    pub fn url(&self) -> String {
        format!("http://localhost:{}/mcp", self.port)
    }

    /// The authorization server.
    pub fn issuer(&self) -> String {
        format!("http://localhost:{}", self.authorization)
    }

    /// The member of `servers`.
    pub fn entry(&self) -> Value {
        json!({"url": self.url()})
    }
}

impl Drop for GuardedServer {
    fn drop(&mut self) {
        // One that has ended by itself is no fault.
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
