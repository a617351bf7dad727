//! A real headless bridge in a home of its own.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    home::{Home, config_text},
    http::{Address, Answer, Connection},
    process, program,
    wait::{SOON, eventually},
};

/// Design: no process left and gone, five seconds after it was told to.
pub const SHUTDOWN: Duration = Duration::from_secs(5);

/// What differs from a plain start.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Added to the cleared environment.
    pub variables: Vec<(String, String)>,
    /// Instead of this run's own.
    pub path: Option<String>,
    pub arguments: Vec<String>,
    /// In a network that has nothing but loopback; only the local socket is then reached from here.
    pub alone: bool,
}

impl Setup {
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    #[must_use]
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }
}

/// A running bridge. Dropping it kills it; dropping its home kills what it started.
pub struct Daemon {
    pub home: Home,
    setup: Setup,
    child: Child,
    pub port: u16,
    pub socket: PathBuf,
}

impl Daemon {
    /// Starts on an empty home, or one with this `connectors.json`.
    pub fn start(config: Option<&str>) -> Self {
        let home = Home::new();
        if let Some(config) = config {
            home.write_config(config);
        }
        Self::start_in(home, Setup::default())
    }

    /// Starts with these connectors.
    pub fn serving<'a>(home: Home, servers: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        home.write_config(&config_text(servers));
        Self::start_in(home, Setup::default())
    }

    /// Starts on a prepared home and waits until it answers.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_in(home: Home, setup: Setup) -> Self {
        let _ = fs::remove_file(home.api_file());
        let child = serve_command(&home, &setup)
            .args(["--port", "0"])
            .spawn()
            .expect("the bridge starts");
        let mut daemon = Self {
            home,
            setup,
            child,
            port: 0,
            socket: PathBuf::new(),
        };
        daemon.wait_until_ready();
        daemon
    }

    fn wait_until_ready(&mut self) {
        let pid = self.child.id();
        let (port, socket) = eventually("the bridge's start", SOON, || {
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("the bridge ended at once with {status}: {}", self.log());
            }
            let api: Value = serde_json::from_slice(&fs::read(self.home.api_file()).ok()?).ok()?;
            let port = u16::try_from(api["port"].as_u64()?).ok()?;
            let ours = api["pid"].as_u64()? == u64::from(pid);
            let socket = PathBuf::from(api["socket"].as_str()?);
            let answers = |address| {
                Connection::try_open(&address)
                    .ok()
                    .and_then(|mut c| c.try_send("GET", "/healthz", &[], b"").ok())
                    .is_some_and(|a| a.status == 200)
            };
            (ours && (self.setup.alone || answers(Address::Tcp(port))) && answers(Address::Socket(socket.clone())))
                .then_some((port, socket))
        });
        self.port = port;
        self.socket = socket;
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the bridge printed so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.log_file()).unwrap_or_default()
    }

    pub fn tcp(&self) -> Address {
        Address::Tcp(self.port)
    }

    pub fn local(&self) -> Address {
        Address::Socket(self.socket.clone())
    }

    /// A GET as a walk-in.
    pub fn get(&self, path: &str) -> Answer {
        Connection::open(&self.tcp()).send("GET", path, &[], b"")
    }

    /// A POST as a walk-in.
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, &body.to_string())
    }

    /// A POST as a walk-in, with a body that is sent as written.
    pub fn post_text(&self, path: &str, body: &str) -> Answer {
        Connection::open(&self.tcp()).send("POST", path, &[], body.as_bytes())
    }

    /// A GET as the owner.
    pub fn owner_get(&self, path: &str) -> Answer {
        Connection::open(&self.local()).send("GET", path, &[], b"")
    }

    /// A POST as the owner.
    pub fn owner_post(&self, path: &str, body: &Value) -> Answer {
        Connection::open(&self.local()).send("POST", path, &[], body.to_string().as_bytes())
    }

    /// The names in `GET /mcp/tools`.
    ///
    /// # Panics
    /// When the list has another shape.
    pub fn tool_names(&self) -> Vec<String> {
        let answer = self.get("/mcp/tools").ok();
        let tools = answer["tools"].as_array().expect("a list of tools");
        tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect()
    }

    /// Waits until a tool is listed.
    pub fn wait_for_tool(&self, name: &str) {
        eventually(&format!("{name} in the list"), SOON, || {
            self.tool_names().iter().any(|listed| listed == name).then_some(())
        });
    }

    /// One row of `GET /mcp/servers`, as the owner sees it.
    pub fn server(&self, id: &str) -> Option<Value> {
        let answer = self.owner_get("/mcp/servers").ok();
        answer["servers"]
            .as_array()?
            .iter()
            .find(|row| row["id"] == id)
            .cloned()
    }

    /// A connector's state; empty where it does not exist.
    pub fn status(&self, id: &str) -> String {
        let row = self.server(id).unwrap_or_default();
        row["status"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a connector has this state, and returns its row.
    pub fn wait_for_status(&self, id: &str, status: &str) -> Value {
        let mut seen = Value::Null;
        let begin = Instant::now();
        while begin.elapsed() < SOON {
            seen = self.server(id).unwrap_or_default();
            if seen["status"] == status {
                return seen;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{id} did not become {status}: {seen}");
    }

    /// Calls a tool and returns the whole answer.
    pub fn call(&self, name: &str, input: &Value) -> Answer {
        self.post("/mcp/call", &json!({"name": name, "input": input}))
    }

    /// Calls a tool that must succeed and returns its text.
    ///
    /// # Panics
    /// When it does not.
    pub fn call_text(&self, name: &str, input: &Value) -> String {
        let answer = self.call(name, input).ok();
        assert_eq!(answer["ok"], true, "{answer}");
        answer["text"].as_str().expect("a text").to_owned()
    }

    /// Living processes that this bridge's home started.
    pub fn children(&self) -> Vec<u32> {
        process::children_of_home(self.home.path())
    }

    /// Kills the bridge as a crash would; returns its home.
    ///
    /// # Panics
    /// When it cannot be reaped.
    pub fn kill9(mut self) -> Home {
        self.child.kill().expect("our own child can be killed");
        self.child.wait().expect("our own child can be reaped");
        std::mem::take(&mut self.home)
    }

    /// Sends SIGTERM and checks that the bridge is gone in time, leaving no process; returns its home.
    ///
    /// # Panics
    /// When it takes longer, fails, or leaves a process.
    pub fn terminate(mut self) -> Home {
        process::signal(self.pid(), Signal::TERM);
        let status = process::wait_for_exit(&mut self.child, "the bridge", SHUTDOWN);
        assert!(status.success(), "the bridge ended with {status}: {}", self.log());
        assert_eq!(self.children(), [0_u32; 0], "processes that outlived the bridge");
        std::mem::take(&mut self.home)
    }

    /// Ends and starts again on the same home.
    #[must_use]
    pub fn restart(self) -> Self {
        let setup = self.setup.clone();
        Self::start_in(self.terminate(), setup)
    }

    pub fn signal(&self, signal: Signal) {
        process::signal(self.pid(), signal);
    }

    /// Runs our command line against this bridge.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn command(&self, arguments: &[&str]) -> Output {
        command_in(&self.home, arguments)
    }
}

/// Runs our command line in a home.
///
/// # Panics
/// When it cannot be started.
pub fn command_in(home: &Home, arguments: &[&str]) -> Output {
    command_line(home, arguments).output().expect("the command line starts")
}

/// Our command line in a home, ready to be started.
pub fn command_line(home: &Home, arguments: &[&str]) -> Command {
    let mut command = Command::new(program::bridge());
    environment(&mut command, home, &Setup::default());
    command.args(arguments).stdin(Stdio::null());
    command
}

/// `neuron-connectd serve` for this home, ready to be started; its port is still to be said.
///
/// # Panics
/// When the home is not writable.
pub fn serve_command(home: &Home, setup: &Setup) -> Command {
    let log = File::options()
        .create(true)
        .append(true)
        .open(home.log_file())
        .expect("the home is writable");
    let mut command = if setup.alone {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""]);
        command.arg(program::bridge());
        command
    } else {
        Command::new(program::bridge())
    };
    environment(&mut command, home, setup);
    command.arg("serve").args(&setup.arguments);
    if !setup.arguments.iter().any(|argument| argument == "--secrets") {
        // Never the keychain of whoever runs the tests.
        command.args(["--secrets", "memory"]);
    }
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a file handle"))
        .stderr(log);
    command
}

pub(crate) fn environment(command: &mut Command, home: &Home, setup: &Setup) {
    let path = setup
        .path
        .clone()
        .or_else(|| std::env::var("PATH").ok())
        .unwrap_or_default();
    command
        .env_clear()
        .env("PATH", path)
        .env("HOME", home.path())
        .env("NEURON_HOME", home.neuron())
        // Else the bus of whoever runs the tests would be found at its usual place, and their keychain there.
        .env(
            "DBUS_SESSION_BUS_ADDRESS",
            format!("unix:path={}", home.path().join("no-bus").display()),
        )
        .envs(setup.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(home.path());
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- what the bridge printed ---\n{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
