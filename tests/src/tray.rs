//! The bridge as the tray app starts it: the person is its window, and both its doors are for walk-ins.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    daemon::{SHUTDOWN, environment},
    home::Home,
    http::{Address, Answer, Connection},
    keyring::Session,
    process, program,
    wait::{SOON, eventually},
};

/// A running bridge with a keychain of its own. Dropping it kills it.
pub struct Tray {
    pub home: Home,
    pub session: Session,
    /// Where the window's stand-in is; nobody but the test knows of it.
    window: TempDir,
    child: process::Owned,
    port: u16,
    socket: PathBuf,
    owner: PathBuf,
}

impl Tray {
    /// # Panics
    /// When it does not start.
    pub fn start(home: Home) -> Self {
        Self::start_with(home, Session::start())
    }

    /// With a keychain that is there already.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_with(home: Home, session: Session) -> Self {
        Self::start_as_told(home, session, &[])
    }

    /// Whose questions wait so long for their answer, and in all once more time is asked for.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_waiting(home: Home, first: Duration, longest: Duration) -> Self {
        let told = [first, longest].map(|time| time.as_millis().to_string());
        Self::start_as_told(home, Session::start(), &told)
    }

    fn start_as_told(home: Home, session: Session, told: &[String]) -> Self {
        let window = TempDir::with_prefix("nw-").expect("a temporary folder");
        let _ = fs::remove_file(home.api_file());
        let log = File::options().create(true).append(true).open(home.log_file());
        let log = log.expect("the home is writable");
        let mut command = Command::new(program::beside_tray());
        environment(&mut command, &home, &session.setup());
        let command = command
            .arg(home.neuron())
            .arg(window.path())
            .arg(program::bridge())
            .args(told)
            .env("NEURON_CONNECTD_PORT", "0")
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a file handle"))
            .stderr(log);
        let mut child = process::Owned::start(command);
        let (port, socket, owner) = eventually("the bridge beside a tray", SOON, || {
            if let Ok(Some(status)) = child.0.try_wait() {
                let log = fs::read_to_string(home.log_file()).unwrap_or_default();
                panic!("it ended at once with {status}: {log}");
            }
            let (port, socket) = published(&home.api_file())?;
            let (_, owner) = published(&window.path().join("connect/api.json"))?;
            let is_up = |address| Connection::try_open(&address).is_ok();
            (is_up(Address::Tcp(port))
                && is_up(Address::Socket(socket.clone()))
                && is_up(Address::Socket(owner.clone())))
            .then_some((port, socket, owner))
        });
        Self {
            home,
            session,
            window,
            child,
            port,
            socket,
            owner,
        }
    }

    /// What the bridge printed so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.log_file()).unwrap_or_default()
    }

    /// The two doors that every program finds.
    pub fn doors(&self) -> [Address; 2] {
        [Address::Tcp(self.port), Address::Socket(self.socket.clone())]
    }

    /// Of the API.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A GET as a walk-in.
    pub fn get(&self, path: &str) -> Answer {
        Connection::open(&Address::Tcp(self.port)).send("GET", path, &[], b"")
    }

    /// A POST as a walk-in.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        Connection::open(&Address::Tcp(self.port)).send("POST", path, &[], body.to_string().as_bytes())
    }

    /// A GET as the window.
    pub fn owner_get(&self, path: &str) -> Answer {
        Connection::open(&Address::Socket(self.owner.clone())).send("GET", path, &[], b"")
    }

    /// A POST as the window.
    pub fn owner_post(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        Connection::open(&Address::Socket(self.owner.clone())).send("POST", path, &[], body.as_bytes())
    }

    /// A DELETE as the window.
    pub fn owner_delete(&self, path: &str) -> Answer {
        Connection::open(&Address::Socket(self.owner.clone())).send("DELETE", path, &[], b"")
    }

    /// One row of `GET /mcp/servers`, as the owner sees it.
    pub fn server(&self, id: &str) -> Value {
        let answer = self.owner_get("/mcp/servers").ok();
        let rows = answer["servers"].as_array().expect("a list");
        rows.iter().find(|row| row["id"] == id).cloned().unwrap_or_default()
    }

    /// Waits until a connector has this state.
    pub fn wait_for_status(&self, id: &str, status: &str) {
        let mut seen = Value::Null;
        let begin = std::time::Instant::now();
        while begin.elapsed() < SOON {
            seen = self.server(id);
            if seen["status"] == status {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{id} did not become {status}: {seen}");
    }

    /// Everything that waits for the person.
    ///
    /// # Panics
    /// When the answer has another shape.
    pub fn waiting(&self) -> Vec<Value> {
        let answer = self.owner_get("/mcp/approvals").ok();
        answer["approvals"].as_array().expect("a list").clone()
    }

    /// The id of the only thing of this kind that waits about this connector.
    pub fn wait_for(&self, kind: &str, server: &str) -> String {
        eventually(&format!("{kind} of {server} waits"), SOON, || {
            let waiting = self.waiting();
            let found = waiting
                .iter()
                .find(|one| one["kind"] == kind && one["server"] == server)?;
            Some(found["id"].as_str()?.to_owned())
        })
    }

    /// The person says something to what waits under this id.
    pub fn answer(&self, id: &str, answer: &str) -> Answer {
        self.owner_post(&format!("/mcp/approvals/{id}"), &json!({"answer": answer}))
    }

    /// The person lets this connector run.
    pub fn approve(&self, server: &str) {
        self.answer(&self.wait_for("launch", server), "approve").ok();
    }

    /// The person writes the whole entry in the window.
    pub fn replace(&mut self, id: &str, entry: &Value) {
        self.say(&json!({"say": "replace", "id": id, "entry": entry}));
    }

    /// The person hides a tool in the window.
    pub fn hide(&mut self, id: &str, tool: &str) {
        self.say(&json!({"say": "hide", "id": id, "tool": tool}));
    }

    /// The person lets these launches run, and keeps these rules for them.
    pub fn approve_keeping(&mut self, launches: &[&str], keep: &[&str]) {
        self.say(&json!({"say": "approve", "launches": launches, "keep": keep}));
    }

    fn say(&mut self, what: &Value) {
        let window = self.child.0.stdin.as_mut().expect("its input is a pipe");
        writeln!(window, "{what}").expect("it listens");
    }

    /// Ends it in order; what it kept stays.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn close(self) -> (Home, Session) {
        let Self {
            home,
            session,
            window,
            mut child,
            ..
        } = self;
        process::signal(child.0.id(), Signal::TERM);
        let status = process::wait_for_exit(&mut child.0, "the bridge", SHUTDOWN);
        assert!(status.success(), "the bridge ended with {status}");
        drop(window);
        (home, session)
    }
}

/// Where a bridge says that it listens.
fn published(file: &Path) -> Option<(u16, PathBuf)> {
    let api: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let port = u16::try_from(api["port"].as_u64()?).ok()?;
    Some((port, PathBuf::from(api["socket"].as_str()?)))
}

/// Every route there is, as `(method, path)` with `{id}` where a name stands.
///
/// # Panics
/// When they cannot be told.
pub fn routes() -> Vec<(String, String)> {
    let told = Command::new(program::beside_tray()).arg("--routes").output();
    let told = told.expect("it starts");
    let text = String::from_utf8(told.stdout).expect("text");
    let rows = text.lines().filter_map(|line| line.split_once(' '));
    rows.map(|(method, path)| (method.to_owned(), path.to_owned()))
        .collect()
}
