//! `server-everything` as its own process, over each of its transports, and how soon it answers without the bridge.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use neuron_tests::{
    http::{Address, Connection},
    upstream,
};
use serde_json::{Value, json};

/// Longer than any start takes.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Stdio,
    Http,
    Sse,
}

impl Over {
    /// The server's own word for it.
    fn argument(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "streamableHttp",
            Self::Sse => "sse",
        }
    }

    /// What the server prints once for each session.
    fn session_line(self) -> &'static str {
        match self {
            Self::Stdio => "Starting default (STDIO) server",
            Self::Http => "Session initialized with ID",
            Self::Sse => "Client Connected",
        }
    }

    /// The member of `servers`.
    pub(crate) fn entry(self, port: u16) -> Value {
        match self {
            Self::Stdio => json!({"command": upstream::node("mcp-server-everything"), "args": ["stdio"]}),
            Self::Http => json!({"transport": "http", "url": format!("http://127.0.0.1:{port}/mcp")}),
            Self::Sse => json!({"transport": "sse", "url": format!("http://127.0.0.1:{port}/sse")}),
        }
    }
}

/// A running server; ends with its owner.
pub(crate) struct Everything {
    child: Child,
    over: Over,
    printed: PathBuf,
    pub(crate) started: Instant,
}

impl Everything {
    /// Starts it; it need not listen yet when this returns.
    pub(crate) fn start(over: Over, port: u16, folder: &Path) -> Self {
        let printed = folder.join("everything.out");
        let out = File::create(&printed).expect("the folder is writable");
        let input = match over {
            Over::Stdio => Stdio::piped(),
            Over::Http | Over::Sse => Stdio::null(),
        };
        let output = match over {
            Over::Stdio => Stdio::piped(),
            Over::Http | Over::Sse => out.try_clone().expect("a file handle").into(),
        };
        let mut command = Command::new(upstream::node("mcp-server-everything"));
        command.arg(over.argument()).env("PORT", port.to_string());
        let started = Instant::now();
        let child = command
            .stdin(input)
            .stdout(output)
            .stderr(out)
            .spawn()
            .expect("node starts");
        Self {
            child,
            over,
            printed,
            started,
        }
    }

    /// How many sessions it opened.
    pub(crate) fn sessions(&self) -> usize {
        let text = fs::read(&self.printed).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        text.matches(self.over.session_line()).count()
    }

    /// From its start to its first answer to a call, spoken to directly.
    pub(crate) fn bare_first_answer(over: Over, folder: &Path) -> Duration {
        let port = upstream::free_port();
        let mut server = Self::start(over, port, folder);
        match over {
            Over::Stdio => server.ask_over_stdio(),
            Over::Http => ask_over_http(port),
            Over::Sse => ask_over_sse(port),
        }
        server.started.elapsed()
    }

    fn ask_over_stdio(&mut self) {
        let mut input = self.child.stdin.take().expect("piped");
        let mut output = BufReader::new(self.child.stdout.take().expect("piped"));
        let mut say = |message: &Value| writeln!(input, "{message}").expect("the server reads");
        say(&initialize());
        answer_in(&mut output, 0);
        say(&initialized());
        say(&call());
        answer_in(&mut output, 1);
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}})
}

fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

fn call() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "echo", "arguments": {"message": "hello"}}})
}

/// Reads lines until one holds the answer with this id; event framing is passed over.
fn answer_in(lines: &mut impl BufRead, id: u64) {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(
            lines.read_line(&mut line).expect("the server answers") > 0,
            "it went away"
        );
        let text = line.trim().trim_start_matches("data: ");
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        if message["id"] == id {
            assert!(message["result"].is_object(), "{message}");
            return;
        }
    }
}

fn once_it_listens<T>(mut open: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(opened) = open() {
            return opened;
        }
        assert!(begin.elapsed() < PATIENCE, "the server does not listen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn ask_over_http(port: u16) {
    let mut connection = once_it_listens(|| Connection::try_open(&Address::Tcp(port)).ok());
    let mut session = String::new();
    let accept = ("accept", "application/json, text/event-stream");
    for message in [initialize(), initialized(), call()] {
        let mut headers = vec![accept];
        if !session.is_empty() {
            headers.extend([("mcp-session-id", &*session), ("mcp-protocol-version", "2025-11-25")]);
        }
        let answer = connection.send("POST", "/mcp", &headers, message.to_string().as_bytes());
        assert!(answer.status < 300, "{}", answer.text());
        if let Some(id) = message["id"].as_u64() {
            answer_in(&mut answer.body.as_slice(), id);
        }
        if let Some(given) = answer.header("mcp-session-id") {
            session = given.to_owned();
        }
    }
}

fn ask_over_sse(port: u16) {
    let mut stream = once_it_listens(|| TcpStream::connect(("127.0.0.1", port)).ok());
    write!(
        stream,
        "GET /sse HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\r\n"
    )
    .expect("the server reads");
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    while !line.starts_with("data: /") {
        line.clear();
        assert!(
            lines.read_line(&mut line).expect("the server answers") > 0,
            "it went away"
        );
    }
    let address = line.trim().trim_start_matches("data: ").to_owned();
    let mut connection = Connection::open(&Address::Tcp(port));
    for message in [initialize(), initialized(), call()] {
        let answer = connection.send("POST", &address, &[], message.to_string().as_bytes());
        assert!(answer.status < 300, "{}", answer.text());
        if let Some(id) = message["id"].as_u64() {
            answer_in(&mut lines, id);
        }
    }
}
