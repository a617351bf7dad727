//! What the desktop's notifications say, made from an event and the snapshot. Pure. They hold nothing that an
//! upstream says but the name of a tool, nothing secret, no arguments and no answer to give; they lead to the window. Time is passed in.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::{Route, name, plain};
use crate::{
    event::Event,
    ids::ConnectorId,
    snapshot::{AskedSubject, CallQuestion, Question, SignInOutcome, Snapshot, WhoView},
};

/// One notification. Texts are short and without invisible characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Banner {
    pub text: String,
    /// Where the window says more.
    pub route: Route,
}

/// After a question of a connector its next ones are not told of for this long: the window has them all.
const QUIET_AFTER_QUESTION: Duration = Duration::from_secs(60);

/// What was told of lately.
#[derive(Debug, Default)]
pub struct Told {
    questions: HashMap<ConnectorId, Instant>,
}

impl Told {
    /// As [`banner`] does, but no connector makes one after the other by asking and asking.
    pub fn banner(&mut self, event: &Event, snapshot: &Snapshot, now: Instant) -> Option<Banner> {
        if let Event::ApprovalRequested { server, .. } = event {
            self.questions
                .retain(|_, at| now.duration_since(*at) < QUIET_AFTER_QUESTION);
            if self.questions.contains_key(server) {
                return None;
            }
            self.questions.insert(server.clone(), now);
        }
        banner(event, snapshot)
    }
}

/// What a person who does not look at the window has to know of an event; `None` for everything else.
pub fn banner(event: &Event, snapshot: &Snapshot) -> Option<Banner> {
    match event {
        Event::SignInFinished {
            server: Some(server),
            outcome,
            ..
        } => {
            let name = called(server, snapshot);
            let text = match outcome {
                SignInOutcome::SignedIn => format!("You are signed in to {name}."),
                SignInOutcome::Expired => format!("The sign-in to {name} took too long."),
                SignInOutcome::Denied => format!("The sign-in to {name} was turned down."),
                SignInOutcome::Failed => format!("The sign-in to {name} did not work."),
                // The person did it here, or nothing happened.
                SignInOutcome::Cancelled | SignInOutcome::InvalidState => return None,
            };
            Some(Banner {
                text,
                route: Route::Connector(server.to_string()),
            })
        }
        Event::ApprovalRequested { server, approval, .. } => {
            let asked = snapshot.approvals.iter().find(|view| view.id == *approval);
            Some(Banner {
                text: match asked.map(|view| &view.question) {
                    Some(Question::Call { call }) => wants(call, &called(server, snapshot)),
                    Some(Question::Manage { who, .. }) => format!("{} asks to change something.", asker(who)),
                    Some(Question::Elicitation { .. }) | None => {
                        format!("{} asks you something.", called(server, snapshot))
                    }
                },
                route: Route::Approvals,
            })
        }
        Event::SignInFinished { server: None, .. }
        | Event::ApprovalResolved { .. }
        | Event::ActivityRecorded { .. }
        | Event::ToolsChanged { .. }
        | Event::ServerStatus { .. }
        | Event::CallStarted { .. }
        | Event::CallProgress { .. }
        | Event::CallFinished { .. }
        | Event::ConfigError { .. } => None,
    }
}

/// Such as "Claude Code asks to use write_file of Files. Answer in the window."
fn wants(call: &CallQuestion, server: &str) -> String {
    let what = match &call.subject {
        AskedSubject::Tool { tool, .. } => format!("use {} of {server}", plain(tool)),
        AskedSubject::Resource { .. } => format!("read something of {server}"),
        AskedSubject::Prompt { .. } => format!("use a prompt of {server}"),
    };
    format!("{} asks to {what}. Answer in the window.", asker(&call.who))
}

fn asker(who: &WhoView) -> String {
    match who.name.as_str() {
        "" => "A program".to_owned(),
        name => plain(name),
    }
}

fn called(id: &ConnectorId, snapshot: &Snapshot) -> String {
    let known = snapshot.connectors.iter().find(|view| view.id == id.as_str());
    known.map_or_else(|| plain(id.as_str()), name)
}
