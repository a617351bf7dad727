//! What installed servers list: each is started over its pipes, asked for its tools and ended. None needs a key, a browser
//! or a network to say what it could do.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::LazyLock,
};

use neuron_tests::upstream;
use serde_json::{Value, json};

/// Every tool with the server that lists it; asked once.
pub fn of_installed_servers() -> &'static [(&'static str, Value)] {
    static TOOLS: LazyLock<Vec<(&'static str, Value)>> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().to_str().unwrap();
        let servers: [(&str, PathBuf, &[&str]); 9] = [
            ("everything", upstream::node("mcp-server-everything"), &[]),
            ("filesystem", upstream::node("mcp-server-filesystem"), &[folder]),
            ("memory", upstream::node("mcp-server-memory"), &[]),
            ("thinking", upstream::node("mcp-server-sequential-thinking"), &[]),
            ("github", upstream::node("mcp-server-github"), &[]),
            ("playwright", upstream::node("playwright-mcp"), &[]),
            (
                "devtools",
                upstream::node("chrome-devtools-mcp"),
                &["--no-usage-statistics"],
            ),
            ("time", upstream::python("mcp-server-time"), &[]),
            ("git", upstream::python("mcp-server-git"), &[]),
        ];
        let mut tools = Vec::new();
        for (name, program, arguments) in servers {
            let mut server = Server::start(program, arguments, folder);
            tools.extend(server.tools().into_iter().map(|tool| (name, tool)));
        }
        tools
    });
    &TOOLS
}

struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    sent: u64,
}

impl Server {
    fn start(program: PathBuf, arguments: &[&str], folder: &str) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .env("HOME", folder)
            .env("CI", "true")
            .env("CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS", "true")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self {
            child,
            stdin,
            stdout,
            sent: 0,
        };
        server.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "scan", "version": "1"}}),
        );
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn tools(&mut self) -> Vec<Value> {
        let mut tools = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let page = match &cursor {
                Value::Null => json!({}),
                cursor => json!({ "cursor": cursor }),
            };
            let mut answer = self.ask("tools/list", &page);
            match answer["tools"].take() {
                Value::Array(items) => tools.extend(items),
                other => panic!("no list: {other}"),
            }
            cursor = answer["nextCursor"].take();
            if cursor.is_null() {
                return tools;
            }
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.sent += 1;
        let id = self.sent;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(
                self.stdout.read_line(&mut line).unwrap(),
                0,
                "it ended before it answered {method}"
            );
            let Ok(mut message) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            if message["id"] == id {
                return message["result"].take();
            }
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
