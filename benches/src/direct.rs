//! The same upstream without the bridge: what a call costs at least.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use neuron_tests::program;

pub(crate) struct Direct {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Direct {
    pub(crate) fn start() -> Self {
        let mut child = Command::new(program::fake_upstream())
            .arg("ok")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the upstream starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let line = String::new();
        let mut direct = Self {
            child,
            input,
            output,
            line,
        };
        direct.exchange(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#);
        direct
    }

    /// Calls echo and reads the answer.
    pub(crate) fn call(&mut self, arguments: &str) {
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#
        );
        self.exchange(&request);
    }

    fn exchange(&mut self, request: &str) {
        self.input
            .write_all(format!("{request}\n").as_bytes())
            .expect("the upstream reads");
        self.line.clear();
        self.output.read_line(&mut self.line).expect("the upstream answers");
        assert!(self.line.contains("\"result\""), "{}", self.line);
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
