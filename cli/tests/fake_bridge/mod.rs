//! A bridge that answers as told over a real local socket, and the program run against it.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tempfile::TempDir;

pub type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// An API on a socket: answers what it was given answers for, keeps what it was asked. Several answers to one
/// question are given in turn, the last one for ever.
pub struct Bridge {
    pub home: TempDir,
    pub socket: PathBuf,
    pub asked: Asked,
    /// Stands for the loopback port.
    pub _port: TcpListener,
}

impl Bridge {
    pub fn answering(answers: &[(&str, u16, Value)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let connect = home.path().join("connect");
        fs::create_dir(&connect).unwrap();
        fs::set_permissions(&connect, fs::Permissions::from_mode(0o700)).unwrap();
        let socket = connect.join("bridge.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let api = json!({
            "port": port.local_addr().unwrap().port(), "pid": std::process::id(), "version": "0.1.0", "socket": socket,
        });
        fs::write(connect.join("api.json"), api.to_string()).unwrap();
        let asked = Asked::default();
        let mut answers: Vec<_> = answers
            .iter()
            .map(|(q, s, b)| ((*q).to_owned(), *s, b.clone()))
            .collect();
        let record = Arc::clone(&asked);
        // Ends with the test's process, or when the socket is told to.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Some((question, body)) = read_request(stream.as_ref().unwrap()) else {
                    return;
                };
                let found = answers.iter().position(|(q, ..)| *q == question);
                let (status, answer) = match found {
                    Some(i) if answers[i + 1..].iter().any(|(q, ..)| *q == question) => {
                        let (_, status, answer) = answers.remove(i);
                        (status, answer)
                    }
                    Some(i) => (answers[i].1, answers[i].2.clone()),
                    None => (
                        404,
                        json!({"ok": false, "error": format!("No answer to {question}."), "code": "not_found"}),
                    ),
                };
                record.lock().unwrap().push((question, body));
                // A text is sent as it is, such as a stream of events.
                let answer = answer.as_str().map_or_else(|| answer.to_string(), ToOwned::to_owned);
                let head = format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: ");
                write!(stream.unwrap(), "{head}{}\r\n\r\n{answer}", answer.len()).unwrap();
            }
        });
        Self {
            home,
            socket,
            asked,
            _port: port,
        }
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        run(&self.home, arguments, "")
    }

    pub fn run_with(&self, arguments: &[&str], stdin: &str) -> Ran {
        run(&self.home, arguments, stdin)
    }

    pub fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }

    /// Stops listening and leaves the files behind.
    pub fn end(self) -> TempDir {
        UnixStream::connect(&self.socket).unwrap();
        fs::remove_file(&self.socket).unwrap();
        self.home
    }
}

/// `None` when the peer says nothing.
pub fn read_request(stream: &UnixStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut words = line.split(' ');
    let question = format!("{} {}", words.next()?, words.next()?);
    let (mut length, mut host, mut json) = (0, String::new(), false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "host" => host = value.to_owned(),
            "content-type" => json = value == "application/json",
            _ => {}
        }
    }
    assert_eq!(host, "localhost");
    assert_eq!(json, question.starts_with("POST"), "{question}");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&body).unwrap()
    };
    Some((question, body))
}

pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn ends(&self, code: i32) {
        assert_eq!(self.code, Some(code), "out: {}\nerr: {}", self.out, self.err);
    }
}

pub fn run(home: &TempDir, arguments: &[&str], stdin: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_neuron-connectd"))
        .args(arguments)
        .env("NEURON_HOME", home.path())
        .env("HOME", "/nonexistent")
        .env_remove("NEURON_CONNECTD_PORT")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that reads nothing may be gone already.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
