//! A files server as a real process, and a folder with things beside it that must stay out of reach.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

pub struct Server {
    pub child: Child,
    pub input: Option<ChildStdin>,
    pub output: BufReader<ChildStdout>,
    /// Of every request; modern clients say everything each time.
    pub meta: Value,
    last: u64,
}

impl Server {
    pub fn start(folder: &Path) -> Self {
        let mut child = program()
            .arg("files")
            .arg(folder)
            // No real home is looked at.
            .env("HOME", "/nonexistent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            meta: Value::Null,
            last: 0,
        }
    }

    /// For tests that are not about the protocol.
    pub fn ready(folder: &Path) -> Self {
        let mut server = Self::start(folder);
        server.meta = modern_meta();
        server.request("server/discover", json!({}));
        server
    }

    pub fn send(&mut self, message: &Value) {
        let mut message = message.clone();
        if message["method"] == "tools/call" && !self.meta.is_null() {
            message["params"]["_meta"] = self.meta.clone();
        }
        let input = self.input.as_mut().unwrap();
        input.write_all((message.to_string() + "\n").as_bytes()).unwrap();
    }

    pub fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    pub fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.last += 1;
        if !self.meta.is_null() {
            params["_meta"] = self.meta.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        let answer = self.receive();
        assert_eq!(answer["id"], self.last, "{answer}");
        answer
    }

    /// The tool's text, or the text of its error.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Result<String, String> {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let blocks = result["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let text = blocks
            .iter()
            .filter_map(|b| b["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n");
        if result["isError"] == true { Err(text) } else { Ok(text) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        // Ended already, or it ends with its input.
        let _ = self.child.wait();
    }
}

pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuron-connectd"));
    command.env_remove("NEURON_HOME").env_remove("NEURON_CONNECT_HOME");
    command
}

pub fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}
