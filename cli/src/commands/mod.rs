//! The client commands: each asks the running bridge one thing and shows what it answers.

mod activity;
mod add;
mod approvals;
mod call;
mod doctor;
mod logs;
mod manage;
mod rules;
mod secret;
mod sign_in;
mod status;
mod tools;
mod trust;
mod words;

use std::path::PathBuf;

use crate::{
    args::{ClientCommand, SecretCommand},
    client::Client,
    exit::Failure,
    screen::{self, Screen},
};

/// Where and how a command works.
pub(crate) struct Context {
    pub(crate) home: PathBuf,
    pub(crate) screen: Screen,
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Text,
    Json,
}

impl Context {
    fn client(&self) -> Result<Client, Failure> {
        Client::find(&self.home)
    }

    /// Prints the body for `--json`, else what `text` makes of it.
    fn show(&self, body: &serde_json::Value, text: impl FnOnce() -> String) {
        match self.output {
            Output::Json => screen::print_json(body),
            Output::Text => screen::print(&text()),
        }
    }
}

/// Runs a command against the bridge of this home.
///
/// # Errors
/// What the bridge or the way to it refuses, as a person at a terminal understands it.
pub(crate) async fn run(context: &Context, command: &ClientCommand) -> Result<(), Failure> {
    let ended = ask(context, command).await;
    ended.map_err(|failure| words::in_terminal(failure, command))
}

async fn ask(context: &Context, command: &ClientCommand) -> Result<(), Failure> {
    match command {
        ClientCommand::Status => status::run(context).await,
        ClientCommand::Tools(args) => tools::run(context, args).await,
        ClientCommand::Call(args) => call::run(context, args).await,
        ClientCommand::Add(args) => add::run(context, args).await,
        ClientCommand::Remove(arg) => manage::remove(context, &arg.id).await,
        ClientCommand::Enable(arg) => manage::toggle(context, &arg.id, true).await,
        ClientCommand::Disable(arg) => manage::toggle(context, &arg.id, false).await,
        ClientCommand::Reconnect(arg) => manage::reconnect(context, &arg.id).await,
        ClientCommand::StopTrying(arg) => manage::stop_trying(context, &arg.id).await,
        ClientCommand::SignIn(args) => sign_in::sign_in(context, args).await,
        ClientCommand::SignOut(arg) => sign_in::sign_out(context, &arg.id).await,
        ClientCommand::Secret(SecretCommand::Set(arg)) => secret::set(context, arg).await,
        ClientCommand::Secret(SecretCommand::Forget(arg)) => secret::forget(context, arg).await,
        ClientCommand::Logs(args) => logs::run(context, args).await,
        ClientCommand::Approvals(args) => approvals::list(context, args).await,
        ClientCommand::Approve(args) => approvals::approve(context, args).await,
        ClientCommand::Pair(args) => trust::pair(context, args).await,
        ClientCommand::Clients(args) => trust::clients(context, args).await,
        ClientCommand::Trust(args) => trust::trust(context, args).await,
        ClientCommand::Deny(arg) => approvals::deny(context, arg).await,
        ClientCommand::Rules { command } => rules::run(context, command.as_ref()).await,
        ClientCommand::Activity(args) => activity::run(context, args).await,
        ClientCommand::Doctor => doctor::run(context).await,
    }
}
