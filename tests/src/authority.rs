//! The authorization server that behaves as told, with the MCP server that it protects.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use url::Url;

use crate::{
    http::{Address, Answer, Connection},
    program,
};

/// A running `fake-authority`; ends with its owner. Its options are told at the top of the program.
pub struct Authority {
    child: Child,
    pub port: u16,
    record: PathBuf,
}

impl Authority {
    /// # Panics
    /// When it does not start.
    pub fn start(folder: &Path, name: &str, options: &[(&str, &str)]) -> Self {
        let record = folder.join(format!("{name}.record"));
        // One of the same name may have been here before.
        let _ = std::fs::remove_file(&record);
        let mut child = Command::new(program::fake_authority())
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
        Self { child, port, record }
    }

    /// The protected MCP server.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.base())
    }

    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The member of `servers`.
    pub fn entry(&self) -> Value {
        json!({"transport": "http", "url": self.url()})
    }

    /// Changes options while it runs.
    ///
    /// # Panics
    /// When it does not know them.
    pub fn set(&self, options: &[(&str, &str)]) {
        let values: HashMap<_, _> = options.iter().copied().collect();
        let body = serde_json::to_vec(&values).expect("plain data");
        let headers = [("content-type", "application/json")];
        let answer = self.connection().send("POST", "/fake/set", &headers, &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// How often something happened there: `registered`, `authorized`, `issued`, `refreshed`, `replayed`, `served`; `over` is 1
    /// once the newest token's time is.
    ///
    /// # Panics
    /// When nothing of this name is counted.
    pub fn count(&self, what: &str) -> u64 {
        let counts = self.connection().send("GET", "/fake/state", &[], b"").json();
        counts[what]
            .as_u64()
            .unwrap_or_else(|| panic!("{what} is not counted: {counts}"))
    }

    /// Tokens that it was asked to revoke.
    ///
    /// # Panics
    /// Never while it runs.
    pub fn revoked(&self) -> Vec<Value> {
        let counts = self.connection().send("GET", "/fake/state", &[], b"").json();
        counts["revoked"].as_array().expect("a list").clone()
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.record).unwrap_or_default();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect()
    }

    /// The requests to one path.
    pub fn requests_to(&self, path: &str) -> Vec<Value> {
        let mut requests = self.requests();
        requests.retain(|request| request["path"] == path);
        requests
    }

    /// Opens an authorization URL as a browser does, up to the way back: the address that it leads to.
    ///
    /// # Panics
    /// When the page does not lead back.
    pub fn follow(&self, auth_url: &str) -> String {
        let answer = self.open(auth_url);
        let place = answer.header("location").map(ToOwned::to_owned);
        place.unwrap_or_else(|| panic!("status {}: {}", answer.status, answer.text()))
    }

    /// Opens an authorization URL: what the browser gets.
    ///
    /// # Panics
    /// When it is not one of ours.
    pub fn open(&self, auth_url: &str) -> Answer {
        let url = Url::parse(auth_url).expect("an address");
        assert_eq!(url.port(), Some(self.port), "{auth_url}");
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        self.connection().send("GET", path, &[], b"")
    }

    fn connection(&self) -> Connection {
        Connection::open(&Address::Tcp(self.port))
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        // One that has ended by itself is no fault.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
