//! The upstream that behaves as told: its entry, and what it saw.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Map, Value, json};

use crate::{
    program,
    wait::{SOON, eventually},
};

/// A stdio upstream to be; [`Fake::entry`] is its member of `servers`.
#[derive(Debug, Clone)]
pub struct Fake {
    arguments: Vec<String>,
    members: Map<String, Value>,
    record: Option<PathBuf>,
}

impl Fake {
    /// `kind` as in the fake's own options.
    pub fn new(kind: &str) -> Self {
        Self {
            arguments: vec![kind.to_owned()],
            members: Map::new(),
            record: None,
        }
    }

    /// Adds `--name value`.
    #[must_use]
    pub fn option(mut self, name: &str, value: impl ToString) -> Self {
        self.arguments.extend([format!("--{name}"), value.to_string()]);
        self
    }

    /// Records what arrives in this file.
    #[must_use]
    pub fn record(mut self, path: &Path) -> Self {
        self.record = Some(path.to_owned());
        self.option("record", path.display())
    }

    /// Adds a member to the entry, such as `timeouts`.
    #[must_use]
    pub fn member(mut self, name: &str, value: Value) -> Self {
        self.members.insert(name.to_owned(), value);
        self
    }

    /// The member of `servers`.
    pub fn entry(&self) -> Value {
        let mut entry = json!({
            "transport": "stdio",
            "command": program::fake_upstream(),
            "args": self.arguments,
        });
        for (name, value) in &self.members {
            entry[name] = value.clone();
        }
        entry
    }

    /// What it saw.
    ///
    /// # Panics
    /// Without a record.
    pub fn seen(&self) -> Seen {
        Seen::at(self.record.as_deref().expect("a record was asked for"))
    }

    /// Its command line, for a test that talks to it directly.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }
}

/// The record of an upstream, read afresh at each question.
#[derive(Debug, Clone)]
pub struct Seen(PathBuf);

impl Seen {
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Every line, notes included.
    pub fn lines(&self) -> Vec<String> {
        let bytes = fs::read(&self.0).unwrap_or_default();
        String::from_utf8_lossy(&bytes).lines().map(ToOwned::to_owned).collect()
    }

    /// The process ids of all its starts, in order.
    pub fn starts(&self) -> Vec<u32> {
        self.notes("start ")
    }

    /// The process ids of all its grandchildren, in order.
    pub fn grandchildren(&self) -> Vec<u32> {
        self.notes("grandchild ")
    }

    /// The process ids of those that were still there when the next one started.
    pub fn met_their_successor(&self) -> Vec<u32> {
        self.notes("beside ")
    }

    /// Whether it wrote a note of exactly these words.
    pub fn noted(&self, words: &str) -> bool {
        self.lines().iter().any(|line| line.strip_prefix("# ") == Some(words))
    }

    fn notes(&self, kind: &str) -> Vec<u32> {
        let lines = self.lines();
        let notes = lines
            .iter()
            .filter_map(|line| line.strip_prefix("# ")?.strip_prefix(kind));
        notes.filter_map(|pid| pid.parse().ok()).collect()
    }

    /// The lines of messages with this method, as received.
    pub fn messages(&self, method: &str) -> Vec<String> {
        let is_wanted =
            |line: &String| serde_json::from_str::<Value>(line).is_ok_and(|message| message["method"] == method);
        self.lines().into_iter().filter(is_wanted).collect()
    }

    /// How many HTTP requests of this method came.
    pub fn requests(&self, method: &str) -> usize {
        let begin = format!("# {method} ");
        self.lines().iter().filter(|line| line.starts_with(&begin)).count()
    }

    /// Waits until this many messages with this method have arrived.
    pub fn wait_for(&self, method: &str, count: usize) -> Vec<String> {
        eventually(&format!("{count} × {method} at the upstream"), SOON, || {
            let messages = self.messages(method);
            (messages.len() >= count).then_some(messages)
        })
    }

    /// Waits until it has been started this often.
    pub fn wait_for_starts(&self, count: usize) -> Vec<u32> {
        eventually(&format!("start number {count} of the upstream"), SOON, || {
            let starts = self.starts();
            (starts.len() >= count).then_some(starts)
        })
    }
}

/// A running HTTP upstream; ends with its owner.
pub struct HttpFake {
    child: Child,
    pub port: u16,
    seen: Seen,
}

impl HttpFake {
    /// # Panics
    /// When it does not start.
    pub fn start(folder: &Path, name: &str, options: &[(&str, &str)]) -> Self {
        Self::start_at(0, folder, name, options)
    }

    /// At a given port, to come back where another one was.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_at(port: u16, folder: &Path, name: &str, options: &[(&str, &str)]) -> Self {
        Self::start_kind("ok", port, folder, name, options)
    }

    /// Of another kind, as in the fake's own options.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_kind(kind: &str, port: u16, folder: &Path, name: &str, options: &[(&str, &str)]) -> Self {
        let record = folder.join(format!("{name}.record"));
        let mut child = Command::new(program::fake_upstream())
            .arg(kind)
            .args(["--http", &port.to_string()])
            .arg("--record")
            .arg(&record)
            .args(
                options
                    .iter()
                    .flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()]),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the fake starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("a line");
        let port = line.trim().parse().unwrap_or_else(|_| panic!("no port: {line:?}"));
        Self {
            child,
            port,
            seen: Seen::at(&record),
        }
    }

    pub fn url(&self) -> String {
        self.url_at("/mcp")
    }

    pub fn url_at(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The member of `servers`.
    pub fn entry(&self) -> Value {
        json!({"transport": "http", "url": self.url()})
    }

    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// The id of the session that it opened as the `number`th.
    pub fn session(&self, number: usize) -> String {
        format!("session-{}-{number}", self.child.id())
    }
}

impl Drop for HttpFake {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
