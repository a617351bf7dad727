//! What happened, in order: one numbered stream that HTTP, window and command line can resume.

use std::{borrow::Cow, collections::VecDeque, sync::Mutex};

use serde::Serialize;
use tokio::sync::broadcast;

use crate::{
    ids::{ConnectorId, ExposedName},
    snapshot::{Notice, Status},
};

/// How many past events a resuming reader can still get.
const KEPT_EVENTS: usize = 1024;

/// One thing that happened. The name on the wire is the variant in snake case.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The list behind `GET /mcp/tools` is another one now.
    ToolsChanged { tools: usize },
    /// A connector entered another state, or its tool count changed; also when it was added or removed.
    ServerStatus {
        server: String,
        status: Option<Status>,
        sequence: u64,
    },
    /// A call was handed to a connector.
    CallStarted {
        call: u64,
        server: ConnectorId,
        tool: ExposedName,
        caller: String,
    },
    /// A call's upstream said how far it has come, in units of its own; at most five times a second.
    CallProgress {
        call: u64,
        server: ConnectorId,
        tool: ExposedName,
        caller: String,
        progress: f64,
        /// What `progress` grows to, where the upstream knows.
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// The upstream's own words, on one line, shortened.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A call ended, with its error code when it failed.
    CallFinished {
        call: u64,
        server: ConnectorId,
        tool: ExposedName,
        caller: String,
        ok: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        duration_ms: u64,
    },
    /// `connectors.json` has a problem or lost one.
    ConfigError { notices: Vec<Notice> },
}

impl Event {
    /// The wire name (`event:` line of server-sent events).
    pub fn name(&self) -> &'static str {
        match self {
            Self::ToolsChanged { .. } => "tools_changed",
            Self::ServerStatus { .. } => "server_status",
            Self::CallStarted { .. } => "call_started",
            Self::CallProgress { .. } => "call_progress",
            Self::CallFinished { .. } => "call_finished",
            Self::ConfigError { .. } => "config_error",
        }
    }

    /// What a walk-in may see of it: that the file has a problem and where, not what is written there.
    pub fn for_walk_in(&self) -> Cow<'_, Self> {
        let Self::ConfigError { notices } = self else {
            return Cow::Borrowed(self);
        };
        let unsaid = |notice: &Notice| Notice {
            message: "connectors.json needs a look; Neuron Connect's window says more.".to_owned(),
            ..notice.clone()
        };
        Cow::Owned(Self::ConfigError {
            notices: notices.iter().map(unsaid).collect(),
        })
    }

    /// The caller this event belongs to; `None` is everybody's.
    pub fn caller(&self) -> Option<&str> {
        match self {
            Self::CallStarted { caller, .. }
            | Self::CallProgress { caller, .. }
            | Self::CallFinished { caller, .. } => Some(caller),
            Self::ToolsChanged { .. } | Self::ServerStatus { .. } | Self::ConfigError { .. } => None,
        }
    }
}

/// An event with its place in the stream (starts at 1, grows by 1, for the life of the process).
#[derive(Debug, Clone)]
pub struct Numbered {
    pub id: u64,
    pub event: Event,
}

/// The stream: keeps the last [`KEPT_EVENTS`] and hands new ones to whoever listens.
pub struct EventLog {
    kept: Mutex<(u64, VecDeque<Numbered>)>,
    sender: broadcast::Sender<Numbered>,
}

impl Default for EventLog {
    fn default() -> Self {
        Self {
            kept: Mutex::new((0, VecDeque::new())),
            sender: broadcast::channel(KEPT_EVENTS).0,
        }
    }
}

impl EventLog {
    /// Appends and hands out.
    pub fn publish(&self, event: Event) {
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.0 += 1;
        let numbered = Numbered { id: kept.0, event };
        if kept.1.len() == KEPT_EVENTS {
            kept.1.pop_front();
        }
        kept.1.push_back(numbered.clone());
        // Sent under the lock, so that every reader sees the order of the numbers. No reader is no fault.
        let _ = self.sender.send(numbered);
    }

    /// What came after `last` (nothing for `None`), and everything from now on, without gap or repeat.
    pub fn subscribe(&self, last: Option<u64>) -> (Vec<Numbered>, broadcast::Receiver<Numbered>) {
        let kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let missed = match last {
            Some(last) => kept.1.iter().filter(|e| e.id > last).cloned().collect(),
            None => Vec::new(),
        };
        (missed, self.sender.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_resumes_gets_what_it_missed_once_and_in_order() {
        let log = EventLog::default();
        for tools in 0..3 {
            log.publish(Event::ToolsChanged { tools });
        }
        let (missed, mut live) = log.subscribe(Some(1));
        assert_eq!(missed.iter().map(|e| e.id).collect::<Vec<_>>(), [2, 3]);
        log.publish(Event::ToolsChanged { tools: 9 });
        assert_eq!(live.try_recv().unwrap().id, 4);
        assert!(live.try_recv().is_err());
    }

    #[test]
    fn old_events_are_dropped_and_memory_stays_bounded() {
        let log = EventLog::default();
        for tools in 0..KEPT_EVENTS + 10 {
            log.publish(Event::ToolsChanged { tools });
        }
        assert_eq!(log.subscribe(Some(0)).0.len(), KEPT_EVENTS);
    }

    #[test]
    fn a_walk_in_learns_where_the_file_is_wrong_but_not_what_it_says() {
        let event = Event::ConfigError {
            notices: vec![Notice {
                level: crate::snapshot::NoticeLevel::Error,
                message: "unknown transport \"SENTINEL\"".to_owned(),
                line: Some(3),
                column: Some(7),
                server: None,
            }],
        };
        let told = serde_json::to_string(&*event.for_walk_in()).unwrap();
        assert!(!told.contains("SENTINEL") && told.contains("\"line\":3"), "{told}");
    }
}
