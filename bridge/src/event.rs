//! What happened, in order: one numbered stream that HTTP, window and command line can resume. A reader that cannot be
//! given all it missed is told so, never left with a silent gap.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;
use tokio::sync::broadcast;

use crate::{
    caller::Caller,
    ids::{ConnectorId, ExposedName},
    snapshot::{ApprovalState, Notice, SignInOutcome, Status},
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
    /// A sign-in ended; the owner's.
    SignInFinished {
        /// Absent where no sign-in waited for the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        server: Option<ConnectorId>,
        outcome: SignInOutcome,
        /// One sentence for the person.
        message: String,
    },
    /// A question waits for the person.
    ApprovalRequested {
        approval: String,
        server: ConnectorId,
        /// Whose call it belongs to.
        caller: String,
    },
    /// A question was answered, or its time is over.
    ApprovalResolved {
        approval: String,
        server: ConnectorId,
        caller: String,
        state: ApprovalState,
    },
    /// Something that happened can be read; the owner's.
    ActivityRecorded {
        /// The id of the newest entry.
        newest: u64,
    },
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
            Self::SignInFinished { .. } => "sign_in_finished",
            Self::ApprovalRequested { .. } => "approval_requested",
            Self::ApprovalResolved { .. } => "approval_resolved",
            Self::ActivityRecorded { .. } => "activity_recorded",
        }
    }

    /// What a walk-in may see of it: that the file has a problem and where, not what is written there; how far a call has
    /// come, not the upstream's words about it, for any program on this computer is a walk-in and the call may be another's.
    pub fn for_walk_in(&self) -> Cow<'_, Self> {
        let notices = match self {
            Self::ConfigError { notices } => notices,
            Self::CallProgress { message: Some(_), .. } => {
                let mut unsaid = self.clone();
                if let Self::CallProgress { message, .. } = &mut unsaid {
                    *message = None;
                }
                return Cow::Owned(unsaid);
            }
            Self::CallProgress { message: None, .. }
            | Self::ToolsChanged { .. }
            | Self::ServerStatus { .. }
            | Self::CallStarted { .. }
            | Self::CallFinished { .. }
            | Self::SignInFinished { .. }
            | Self::ApprovalRequested { .. }
            | Self::ApprovalResolved { .. }
            | Self::ActivityRecorded { .. } => return Cow::Borrowed(self),
        };
        let unsaid = |notice: &Notice| Notice {
            message: "connectors.json needs a look; Neuron Connect's window says more.".to_owned(),
            ..notice.clone()
        };
        Cow::Owned(Self::ConfigError {
            notices: notices.iter().map(unsaid).collect(),
        })
    }

    /// The connector that it is about; `None` = none, or all of them.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::ServerStatus { server, .. } => Some(server),
            Self::CallStarted { server, .. }
            | Self::CallProgress { server, .. }
            | Self::CallFinished { server, .. }
            | Self::ApprovalRequested { server, .. }
            | Self::ApprovalResolved { server, .. } => Some(server.as_str()),
            Self::SignInFinished { server, .. } => server.as_ref().map(ConnectorId::as_str),
            Self::ToolsChanged { .. } | Self::ConfigError { .. } | Self::ActivityRecorded { .. } => None,
        }
    }

    /// The caller this event belongs to; `None` is everybody's.
    pub fn caller(&self) -> Option<&str> {
        match self {
            Self::CallStarted { caller, .. }
            | Self::CallProgress { caller, .. }
            | Self::CallFinished { caller, .. }
            | Self::ApprovalRequested { caller, .. }
            | Self::ApprovalResolved { caller, .. } => Some(caller),
            Self::SignInFinished { .. } | Self::ActivityRecorded { .. } => Some(Caller::Owner.label()),
            Self::ToolsChanged { .. } | Self::ServerStatus { .. } | Self::ConfigError { .. } => None,
        }
    }

    /// Whether a reader that resumes needs it. Progress is of use only while it happens, and comes so often that it would
    /// push out everything else; what was recorded is read from where one stopped.
    fn is_kept(&self) -> bool {
        match self {
            Self::CallProgress { .. } | Self::ActivityRecorded { .. } => false,
            Self::ToolsChanged { .. }
            | Self::ServerStatus { .. }
            | Self::CallStarted { .. }
            | Self::CallFinished { .. }
            | Self::ConfigError { .. }
            | Self::SignInFinished { .. }
            | Self::ApprovalRequested { .. }
            | Self::ApprovalResolved { .. } => true,
        }
    }
}

/// An event with its place in the stream.
#[derive(Debug, Clone)]
pub struct Numbered {
    /// Starts at 1 and grows by 1 for the life of the process. `None` has no place: it is not given again, and a reader
    /// resumes from the number before it.
    pub id: Option<u64>,
    pub event: Event,
}

/// The stream: keeps the last [`KEPT_EVENTS`] that have a number and hands new ones to whoever listens.
pub struct EventLog {
    kept: Mutex<Kept>,
    sender: broadcast::Sender<Numbered>,
}

#[derive(Default)]
struct Kept {
    /// The newest number.
    last: u64,
    events: VecDeque<Numbered>,
    /// How many there are, as last told.
    tools: usize,
}

impl Default for EventLog {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            sender: broadcast::channel(KEPT_EVENTS).0,
        }
    }
}

impl EventLog {
    /// Appends and hands out.
    pub fn publish(&self, event: Event) {
        let mut kept = self.kept();
        if let Event::ToolsChanged { tools } = &event {
            kept.tools = *tools;
        }
        let numbered = if event.is_kept() {
            kept.last += 1;
            let id = Some(kept.last);
            let numbered = Numbered { id, event };
            if kept.events.len() == KEPT_EVENTS {
                kept.events.pop_front();
            }
            kept.events.push_back(numbered.clone());
            numbered
        } else {
            Numbered { id: None, event }
        };
        // Sent under the lock, so that every reader sees the order of the numbers. No reader is no fault.
        let _ = self.sender.send(numbered);
    }

    /// What came after `last` (nothing for `None`), and everything from now on, without repeat.
    ///
    /// A number that was not reached yet is of an earlier run: then all of this run is new. Where something is missing
    /// between `last` and what is kept, a [`Event::ToolsChanged`] without a number comes first: its reader has to read
    /// everything anew.
    pub fn subscribe(&self, last: Option<u64>) -> (Vec<Numbered>, broadcast::Receiver<Numbered>) {
        let kept = self.kept();
        let missed = last.map(|last| kept.after(last)).unwrap_or_default();
        (missed, self.sender.subscribe())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn after(&self, last: u64) -> Vec<Numbered> {
        let of_this_run = last <= self.last;
        let from = if of_this_run { last } else { 0 };
        let new = self.events.iter().filter(|event| event.id.is_some_and(|id| id > from));
        let oldest = self.last - self.events.len() as u64;
        let gap = (!of_this_run || from < oldest).then_some(Numbered {
            id: None,
            event: Event::ToolsChanged { tools: self.tools },
        });
        gap.into_iter().chain(new.cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(message: Option<&str>) -> Event {
        Event::CallProgress {
            call: 1,
            server: ConnectorId::parse("files").unwrap(),
            tool: ExposedName::new("mcp__files__read"),
            caller: "walk-in".to_owned(),
            progress: 1.0,
            total: Some(2.0),
            message: message.map(ToOwned::to_owned),
        }
    }

    fn ids(events: &[Numbered]) -> Vec<Option<u64>> {
        events.iter().map(|event| event.id).collect()
    }

    #[test]
    fn a_reader_that_resumes_gets_what_it_missed_once_and_in_order() {
        let log = EventLog::default();
        for tools in 0..3 {
            log.publish(Event::ToolsChanged { tools });
        }
        let (missed, mut live) = log.subscribe(Some(1));
        assert_eq!(ids(&missed), [Some(2), Some(3)]);
        log.publish(Event::ToolsChanged { tools: 9 });
        assert_eq!(live.try_recv().unwrap().id, Some(4));
        assert!(live.try_recv().is_err());
        assert!(log.subscribe(Some(4)).0.is_empty() && log.subscribe(None).0.is_empty());
    }

    #[test]
    fn a_reader_that_missed_more_than_is_kept_is_told_to_read_everything_anew() {
        let log = EventLog::default();
        for tools in 1..=KEPT_EVENTS + 10 {
            log.publish(Event::ToolsChanged { tools });
        }
        for (last, gap) in [(0, true), (9, true), (10, false), (5_000, true)] {
            let missed = log.subscribe(Some(last)).0;
            assert_eq!(missed.len(), KEPT_EVENTS + usize::from(gap), "{last}");
            assert_eq!(missed[0].id.is_none(), gap, "{last}");
            let tools = if gap { KEPT_EVENTS + 10 } else { 11 };
            assert!(
                matches!(missed[0].event, Event::ToolsChanged { tools: told } if told == tools),
                "{missed:?}"
            );
        }
        let of_an_earlier_run = EventLog::default().subscribe(Some(7)).0;
        assert_eq!(ids(&of_an_earlier_run), [None]);
    }

    #[test]
    fn progress_pushes_nothing_out_and_leaves_no_hole_in_the_numbers() {
        let log = EventLog::default();
        let (_, mut live) = log.subscribe(None);
        log.publish(Event::ToolsChanged { tools: 1 });
        for _ in 0..KEPT_EVENTS / 2 {
            log.publish(progress(None));
        }
        log.publish(Event::ToolsChanged { tools: 2 });
        assert_eq!(ids(&log.subscribe(Some(0)).0), [Some(1), Some(2)]);
        assert_eq!(live.try_recv().unwrap().id, Some(1));
        let told = live.try_recv().unwrap();
        assert!(
            told.id.is_none() && matches!(told.event, Event::CallProgress { .. }),
            "{told:?}"
        );
    }

    #[test]
    fn a_walk_in_learns_how_far_a_call_is_but_not_what_is_said_of_it() {
        let event = progress(Some("SENTINEL"));
        let told = serde_json::to_string(&*event.for_walk_in()).unwrap();
        assert!(!told.contains("SENTINEL") && !told.contains("message"), "{told}");
        assert!(told.contains("\"progress\":1.0,\"total\":2.0"), "{told}");
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
