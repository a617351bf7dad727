//! A person's home folder that exists for one test.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::Signal;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::{process, program};

/// A home with a `.neuron` folder to be; gone when dropped, with every process that a bridge started in it.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// An empty home.
    ///
    /// # Panics
    /// Without a writable temporary folder.
    pub fn new() -> Self {
        Self {
            folder: TempDir::with_prefix("nc-").expect("a temporary folder"),
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `NEURON_HOME`.
    pub fn neuron(&self) -> PathBuf {
        self.path().join(".neuron")
    }

    pub fn config_file(&self) -> PathBuf {
        self.neuron().join("connectors.json")
    }

    pub fn api_file(&self) -> PathBuf {
        self.neuron().join("connect/api.json")
    }

    /// Where an upstream of this name may record what it saw.
    pub fn record(&self, name: &str) -> PathBuf {
        self.path().join(format!("{name}.record"))
    }

    /// What the bridge itself printed.
    pub fn log_file(&self) -> PathBuf {
        self.path().join("bridge.log")
    }

    /// Writes `connectors.json` in place.
    ///
    /// # Panics
    /// When the home is not writable.
    pub fn write_config(&self, text: &str) {
        fs::create_dir_all(self.neuron()).expect("the home is writable");
        fs::write(self.config_file(), text).expect("the home is writable");
    }

    /// Writes `settings.json`, for a bridge that is yet to start.
    ///
    /// # Panics
    /// When the home is not writable.
    pub fn write_settings(&self, settings: &Value) {
        let folder = self.neuron().join("connect");
        fs::create_dir_all(&folder).expect("the home is writable");
        fs::write(folder.join("settings.json"), settings.to_string()).expect("the home is writable");
    }

    /// Runs SQL on the database, as somebody who may write in the home can, also while a bridge runs.
    ///
    /// # Panics
    /// When that fails.
    pub fn change_database(&self, sql: &str) {
        let script =
            "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\ndb.executescript(sys.argv[2])\ndb.commit()";
        let done = Command::new(program::any_system(&["python3", "python"]))
            .args(["-c", script])
            .arg(self.neuron().join("connect/state.db"))
            .arg(sql)
            .status();
        assert!(done.expect("Python runs").success(), "{sql}");
    }

    /// The text of `connectors.json`.
    ///
    /// # Panics
    /// When there is none.
    pub fn config(&self) -> String {
        String::from_utf8(fs::read(self.config_file()).expect("connectors.json exists")).expect("it is UTF-8")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for pid in process::children_of_home(self.path()) {
            process::signal(pid, Signal::KILL);
        }
    }
}

/// A `connectors.json` with these entries.
///
/// # Panics
/// Never.
pub fn config_text<'a>(servers: impl IntoIterator<Item = (&'a str, Value)>) -> String {
    let servers: Map<String, Value> = servers.into_iter().map(|(id, entry)| (id.to_owned(), entry)).collect();
    serde_json::to_string_pretty(&json!({ "servers": servers })).expect("values become text") + "\n"
}
