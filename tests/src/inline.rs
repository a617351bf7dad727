//! Programs that are nothing but code in their arguments: each is a new process, and nothing lasting tells it from others
//! of its interpreter.

use std::{
    io::Read as _,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{daemon::Daemon, program};

const POST: &str = "import sys, http.client as h\n\
    c = h.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n\
    c.request('POST', sys.argv[2], sys.argv[3].encode(), {'Content-Type': 'application/json'})\n\
    sys.stdout.write(c.getresponse().read().decode())\n";

/// One of them, which sends one request and ends with its answer.
pub struct Inline(Child);

impl Inline {
    /// Starts it.
    ///
    /// # Panics
    /// When Python is not installed.
    pub fn post(bridge: &Daemon, path: &str, body: &Value) -> Self {
        let mut command = Command::new(program::any_system(&["python3", "python"]));
        command
            .args(["-c", POST, &bridge.port.to_string(), path, &body.to_string()])
            .stdout(Stdio::piped());
        Self(command.spawn().expect("Python starts"))
    }

    /// Whether it has ended.
    ///
    /// # Panics
    /// When the system does not say.
    pub fn is_over(&mut self) -> bool {
        self.0.try_wait().expect("the system tells").is_some()
    }

    /// What it was answered.
    ///
    /// # Panics
    /// When that is no JSON.
    pub fn answer(mut self) -> Value {
        let mut said = String::new();
        let pipe = self.0.stdout.as_mut().expect("its output is a pipe");
        pipe.read_to_string(&mut said).expect("it is text");
        serde_json::from_str(&said).expect("an answer")
    }
}

impl Drop for Inline {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
