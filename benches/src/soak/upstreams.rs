//! The four upstreams, and what they say at the end about which calls they ran.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use neuron_tests::{
    fake::{Fake, HttpFake},
    home::{Home, config_text},
    upstream,
};
use serde_json::{Value, json};

/// Two fakes over stdio, one over HTTP, a real server over stdio.
pub(super) const IDS: [&str; 4] = ["one", "two", "remote", "everything"];

/// Those that run as programs of the bridge.
pub(super) const PROGRAMS: [&str; 3] = ["one", "two", "everything"];

pub(super) struct Upstreams {
    folder: PathBuf,
    remote: Option<HttpFake>,
    port: u16,
    /// What edits have changed so far, by connector.
    edits: HashMap<&'static str, Edits>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Edits {
    name: u64,
    env: u64,
    disabled: bool,
}

impl Upstreams {
    pub(super) fn start(home: &Home) -> Self {
        let folder = home.path().to_owned();
        let remote = start_remote(&folder, 0);
        Self {
            port: remote.port,
            folder,
            remote: Some(remote),
            edits: HashMap::new(),
        }
    }

    /// The text of `connectors.json` after all edits so far.
    pub(super) fn config(&self) -> String {
        config_text(IDS.map(|id| (id, self.entry(id))))
    }

    fn entry(&self, id: &str) -> Value {
        let edits = self.edits.get(id).copied().unwrap_or_default();
        let mut entry = match id {
            "remote" => json!({"transport": "http", "url": format!("http://127.0.0.1:{}/mcp", self.port)}),
            "everything" => json!({"command": upstream::node("mcp-server-everything"), "args": ["stdio"]}),
            id => Fake::new("ok")
                .option("list", "rude")
                .option("counter", marks(&self.folder, id).display())
                .entry(),
        };
        entry["name"] = json!(format!("{id}, renamed {} times", edits.name));
        entry["enabled"] = json!(!edits.disabled);
        if id != "remote" {
            entry["env"] = json!({"EDITED": edits.env.to_string()});
        }
        entry
    }

    pub(super) fn rename(&mut self, id: &'static str) {
        self.edits.entry(id).or_default().name += 1;
    }

    pub(super) fn change_env(&mut self, id: &'static str) {
        self.edits.entry(id).or_default().env += 1;
    }

    pub(super) fn set_disabled(&mut self, id: &'static str, disabled: bool) {
        self.edits.entry(id).or_default().disabled = disabled;
    }

    /// Kills the HTTP server; it is gone when this returns.
    pub(super) fn stop_remote(&mut self) {
        self.remote = None;
    }

    /// At the same port as before.
    pub(super) fn start_remote(&mut self) {
        self.remote = Some(start_remote(&self.folder, self.port));
    }

    /// The exposed names that are listed when all is well.
    pub(super) fn tools(&self) -> [String; 4] {
        IDS.map(tool)
    }

    /// How many programs of the bridge run when all is well.
    pub(super) fn programs(&self) -> usize {
        PROGRAMS.len()
    }

    /// Whether each call ran at most once, and each that was answered with success did run.
    pub(super) fn verdict(&self, answered: &[String]) -> Vec<String> {
        let mut broken = Vec::new();
        let mut ran = HashSet::new();
        for id in ["one", "two", "remote"] {
            let text = fs::read_to_string(marks(&self.folder, id)).unwrap_or_default();
            for key in text.lines() {
                if !ran.insert(key.to_owned()) {
                    broken.push(format!("The call {key} ran twice at {id}."));
                }
            }
        }
        let marked = |key: &&String| !key.starts_with("everything-");
        let invented = answered.iter().filter(marked).filter(|key| !ran.contains(*key));
        broken.extend(invented.map(|key| format!("The call {key} was answered with success, but never ran.")));
        println!("{} calls left their mark at the fakes", ran.len());
        broken
    }
}

/// The exposed name of the tool that is called at this upstream.
pub(super) fn tool(id: &str) -> String {
    match id {
        "everything" => "mcp__everything__echo".to_owned(),
        id => format!("mcp__{id}__mark"),
    }
}

/// Words in the command line of an upstream's program that no other one has.
pub(super) fn sign(id: &str) -> String {
    match id {
        "everything" => "mcp-server-everything".to_owned(),
        id => format!("/{id}.marks"),
    }
}

fn marks(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.marks"))
}

fn start_remote(folder: &Path, port: u16) -> HttpFake {
    let marks = marks(folder, "remote").display().to_string();
    HttpFake::start_at(port, folder, "remote", &[("list", "rude"), ("counter", &marks)])
}
