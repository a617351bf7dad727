//! The running bridge's API, as the owner over the local socket and as a walk-in over loopback.

use std::{fs, path::PathBuf};

use neuron_tests::http::{Address, Answer, Connection};
use serde_json::Value;

/// Names the bridge's `api.json` to the driver.
pub(crate) const API_FILE: &str = "NEURON_CONFORMANCE_API";

/// Where a bridge listens.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) port: u16,
    socket: PathBuf,
}

impl Api {
    /// The bridge that the suite was started for.
    ///
    /// # Panics
    /// Outside of a run.
    pub(crate) fn of_this_run() -> Self {
        let file = std::env::var_os(API_FILE).expect("the driver is started by a run of the suite");
        let text = fs::read(file).expect("the bridge says where it listens");
        let text: Value = serde_json::from_slice(&text).expect("api.json is JSON");
        Self {
            port: text["port"]
                .as_u64()
                .and_then(|port| port.try_into().ok())
                .expect("a port"),
            socket: text["socket"].as_str().expect("a socket").into(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        Connection::open(&Address::Tcp(self.port)).send("GET", path, &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        Connection::open(&Address::Tcp(self.port)).send("POST", path, &[], body.to_string().as_bytes())
    }

    pub(crate) fn owner_get(&self, path: &str) -> Answer {
        Connection::open(&Address::Socket(self.socket.clone())).send("GET", path, &[], b"")
    }

    pub(crate) fn owner_post(&self, path: &str, body: &Value) -> Answer {
        Connection::open(&Address::Socket(self.socket.clone())).send("POST", path, &[], body.to_string().as_bytes())
    }
}
