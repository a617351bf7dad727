//! What the window may ask: one function each, one call on the bridge each. The window is the owner.

mod activity;
mod approvals;
mod callers;
mod reviews;
mod rules;
mod secrets;
mod sign_in;
mod tools;

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use neuron_bridge::{
    bridge::{BridgeHandle, CallRequest, LogQuery},
    caller::Caller,
    catalog::paste::{self, Paste},
    connector::log::TAIL_LINES,
    error::{ApiError, Code},
    ids::{ConnectorId, ToolName},
    settings::{Settings, Theme},
    snapshot::{CallAnswer, ConnectorDetail, ConnectorView, LogPage, Snapshot},
};
use serde::Serialize;
use serde_json::{Map, Value};
use tauri::{
    State, Wry,
    ipc::{Channel, Invoke},
};
use tokio::sync::oneshot;

use crate::{
    app::Shell,
    desktop::{Opening, Window},
};

type Answer<T> = Result<T, ApiError>;

/// Longest pasted text, entry or input that is looked at, in bytes.
const MAX_TEXT: usize = 1024 * 1024;
/// How long a wait for a log line lasts before the window asks again, so that none outlives a page that was reloaded.
const LOG_WAIT: Duration = Duration::from_secs(30);

/// All commands of the window; `build.rs` and the capability name the same ones.
pub(crate) fn handler() -> impl Fn(Invoke<Wry>) -> bool + Send + Sync + 'static {
    tauri::generate_handler![
        watch,
        routes,
        opening,
        connector,
        propose,
        missing_program,
        add,
        replace,
        set_enabled,
        set_tool_enabled,
        remove,
        reconnect,
        stop_trying,
        try_tool,
        cancel_try,
        log_tail,
        cancel_log,
        secrets::set_secret,
        secrets::forget_secret,
        secrets::keep_until_quit,
        secrets::look_at_keychain,
        sign_in::sign_in,
        sign_in::cancel_sign_in,
        sign_in::open_sign_in_again,
        sign_in::paste_sign_in,
        sign_in::sign_out,
        approvals::answer_approval,
        approvals::extend_approval,
        approvals::open_approval_url,
        tools::approve_tools,
        tools::keep_tool_blocked,
        tools::approve_prompt,
        tools::keep_prompt_blocked,
        tools::approve_instructions,
        tools::keep_instructions_withheld,
        reviews::answer_asleep,
        reviews::approve_launches,
        reviews::keep_blocked,
        reviews::versions_of,
        reviews::use_version,
        callers::clients,
        callers::change_client,
        callers::revoke_client,
        callers::open_pairing,
        callers::close_pairing,
        callers::turn_away,
        callers::answer_pairing,
        callers::askers,
        callers::set_asker,
        callers::pages,
        callers::set_page,
        callers::set_api_mode,
        callers::set_walk_in,
        callers::pause_all,
        callers::resume,
        activity::activity,
        activity::activity_days,
        activity::export_activity,
        activity::watch_activity,
        rules::answer_call,
        rules::draft_rule,
        rules::always_allow,
        rules::stop_asking,
        rules::let_ask,
        rules::allow_next_time,
        rules::answer_proposal,
        rules::rules,
        rules::save_rule,
        rules::withdraw_rule,
        rules::choose,
        settings,
        set_theme,
    ]
}

/// Sends the present snapshot and every later one, for the life of the window.
#[tauri::command]
async fn watch(shell: State<'_, Shell>, window: State<'_, Window>, channel: Channel<Snapshot>) -> Answer<()> {
    window.fed_by(tauri::async_runtime::spawn(feed(shell.bridge.clone(), channel)));
    Ok(())
}

async fn feed(bridge: BridgeHandle, channel: Channel<Snapshot>) {
    let mut snapshots = bridge.watch();
    loop {
        let snapshot = Snapshot::clone(&snapshots.borrow_and_update());
        if channel.send(snapshot).is_err() || snapshots.changed().await.is_err() {
            return;
        }
    }
}

/// Sends every place the tray asks this window to show.
#[tauri::command]
fn routes(window: State<'_, Window>, channel: Channel<String>) {
    window.send_routes_to(channel);
}

/// Why this window opened, and where it is to start.
#[tauri::command]
fn opening(window: State<'_, Window>) -> Opening {
    window.opening()
}

#[tauri::command]
async fn connector(shell: State<'_, Shell>, id: String) -> Answer<ConnectorDetail> {
    shell.bridge.connector(Caller::Owner, id).await
}

/// What a pasted text would add.
#[tauri::command]
async fn propose(text: String) -> Answer<Paste> {
    if text.len() > MAX_TEXT {
        return Err(ApiError::new(Code::TooLarge, "The text is longer than 1 MiB."));
    }
    Ok(paste::propose(&text))
}

/// The program that an entry would start and that is not found.
#[tauri::command]
async fn missing_program(shell: State<'_, Shell>, entry: String) -> Answer<Option<String>> {
    Ok(shell.bridge.missing_program(object(&entry, "The entry")?).await)
}

#[tauri::command]
async fn add(shell: State<'_, Shell>, id: String, entry: String) -> Answer<ConnectorView> {
    shell.bridge.add(connector_id(&id)?, object(&entry, "The entry")?).await
}

#[tauri::command]
async fn replace(shell: State<'_, Shell>, id: String, entry: String) -> Answer<ConnectorView> {
    shell
        .bridge
        .replace(connector_id(&id)?, object(&entry, "The entry")?)
        .await
}

#[tauri::command]
async fn set_enabled(shell: State<'_, Shell>, id: String, enabled: bool) -> Answer<()> {
    shell.bridge.set_enabled(connector_id(&id)?, enabled).await
}

#[tauri::command]
async fn set_tool_enabled(shell: State<'_, Shell>, id: String, tool: String, enabled: bool) -> Answer<()> {
    shell
        .bridge
        .set_tool_enabled(connector_id(&id)?, ToolName::new(tool), enabled)
        .await
}

#[tauri::command]
async fn remove(shell: State<'_, Shell>, id: String) -> Answer<()> {
    shell.bridge.remove(connector_id(&id)?).await
}

/// Whether the one attempt that was waited for completed.
#[derive(Serialize)]
struct Reconnected {
    verified: bool,
}

#[tauri::command]
async fn reconnect(shell: State<'_, Shell>, id: String) -> Answer<Reconnected> {
    let (_view, verified) = shell.bridge.reconnect(connector_id(&id)?).await?;
    Ok(Reconnected { verified })
}

/// Gives up the attempts to connect, the one under way and those that are scheduled; how the connector stands then.
#[tauri::command]
async fn stop_trying(shell: State<'_, Shell>, id: String) -> Answer<ConnectorView> {
    shell.bridge.stop_trying(connector_id(&id)?).await
}

/// Calls a tool for the person. `ticket` is the window's name for this call, to stop it by.
#[tauri::command]
async fn try_tool(
    shell: State<'_, Shell>,
    waits: State<'_, Waits>,
    ticket: String,
    name: String,
    input: String,
) -> Answer<CallAnswer> {
    let input = object(&input, "The input")?;
    let mut running = waits.begin(ticket)?;
    let call = shell.bridge.call(
        Caller::Owner,
        CallRequest {
            name,
            input,
            timeout: None,
            turn: None,
        },
    );
    tokio::select! {
        answer = call => answer,
        () = running.stopped() => Err(ApiError::new(Code::Unavailable, "You stopped this call.")),
    }
}

/// Stops a call of [`try_tool`]; nothing happens when it has ended.
#[tauri::command]
fn cancel_try(waits: State<'_, Waits>, ticket: String) {
    waits.stop(&ticket);
}

/// Lines of a connector's log: the newest at once, or those after a place as soon as there are some. `ticket` is the
/// window's name for this wait, to end it by.
#[tauri::command]
async fn log_tail(
    shell: State<'_, Shell>,
    waits: State<'_, Waits>,
    ticket: String,
    id: String,
    lines: usize,
    after: Option<String>,
) -> Answer<LogPage> {
    let after = after.map(|after| after.parse()).transpose();
    let query = LogQuery {
        after: after.map_err(|_| ApiError::bad_request("This is no place in a log."))?,
        lines: lines.min(TAIL_LINES),
        wait: LOG_WAIT,
    };
    let mut running = waits.begin(ticket)?;
    let page = shell.bridge.log(connector_id(&id)?, query);
    tokio::select! {
        page = page => page,
        () = running.stopped() => Err(ApiError::new(Code::Unavailable, "You stopped looking.")),
    }
}

/// Ends a wait of [`log_tail`]; nothing happens when it has ended.
#[tauri::command]
fn cancel_log(waits: State<'_, Waits>, ticket: String) {
    waits.stop(&ticket);
}

/// What the person chose for the window.
#[derive(Serialize)]
struct WindowSettings {
    theme: Theme,
}

#[tauri::command]
async fn settings(shell: State<'_, Shell>) -> Answer<WindowSettings> {
    let (settings, _notices) = Settings::load(&shell.settings);
    Ok(WindowSettings { theme: settings.theme })
}

#[tauri::command]
async fn set_theme(shell: State<'_, Shell>, theme: Theme) -> Answer<()> {
    let (mut settings, _notices) = Settings::load(&shell.settings);
    settings.theme = theme;
    settings
        .save(&shell.settings)
        .map_err(|e| ApiError::new(Code::NotSaved, format!("The choice was not saved: {e}.")))
}

/// What the window waits for at this moment, tool calls and log lines, by ticket.
#[derive(Default)]
pub(crate) struct Waits(Mutex<HashMap<String, oneshot::Sender<()>>>);

/// One of them; dropping it makes its ticket free again.
struct Running<'a> {
    waits: &'a Waits,
    ticket: String,
    stop: oneshot::Receiver<()>,
}

impl Waits {
    /// Stops all of it, as when the window is gone.
    pub(crate) fn stop_all(&self) {
        self.running().clear();
    }

    fn begin(&self, ticket: String) -> Answer<Running<'_>> {
        let (stopper, stop) = oneshot::channel();
        let mut running = self.running();
        if running.contains_key(&ticket) {
            return Err(ApiError::bad_request("This is running already."));
        }
        running.insert(ticket.clone(), stopper);
        Ok(Running {
            waits: self,
            ticket,
            stop,
        })
    }

    fn stop(&self, ticket: &str) {
        // Dropping the sender is the signal.
        self.running().remove(ticket);
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running<'_> {
    async fn stopped(&mut self) {
        let _ = (&mut self.stop).await;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.waits.stop(&self.ticket);
    }
}

fn connector_id(text: &str) -> Answer<ConnectorId> {
    ConnectorId::parse(text).map_err(|e| ApiError::bad_request(e.to_string()))
}

fn object(text: &str, what: &str) -> Answer<Map<String, Value>> {
    if text.len() > MAX_TEXT {
        return Err(ApiError::new(Code::TooLarge, format!("{what} is longer than 1 MiB.")));
    }
    serde_json::from_str(text).map_err(|e| ApiError::bad_request(format!("{what} must be one JSON object: {e}.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_json_object_of_bounded_length_is_an_entry() {
        let code = |text: &str| object(text, "The entry").map_err(|e| e.code);
        assert_eq!(code("{}"), Ok(Map::new()));
        for bad in ["", "[]", "null", "\"x\"", "{", "{} {}", "{'a': 1}"] {
            assert_eq!(code(bad), Err(Code::BadRequest), "{bad:?}");
        }
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(MAX_TEXT));
        assert_eq!(code(&long), Err(Code::TooLarge));
    }

    #[test]
    fn numbers_in_an_input_stay_as_they_were_written() {
        let text = r#"{"b":12345678901234567890123,"a":1.10}"#;
        assert_eq!(
            serde_json::to_string(&object(text, "The input").unwrap()).unwrap(),
            text
        );
    }

    #[tokio::test]
    async fn stopping_a_call_stops_that_call_only() {
        let waits = Waits::default();
        let mut first = waits.begin("1".into()).unwrap();
        let mut second = waits.begin("2".into()).unwrap();
        waits.stop("1");
        waits.stop("unknown");
        first.stopped().await;
        tokio::select! {
            biased;
            () = second.stopped() => panic!("the other call was stopped"),
            () = std::future::ready(()) => {}
        }
        waits.stop_all();
        second.stopped().await;
    }

    #[test]
    fn a_ticket_stands_for_one_call_at_a_time_and_is_free_afterwards() {
        let waits = Waits::default();
        let running = waits.begin("1".into()).unwrap();
        assert_eq!(waits.begin("1".into()).err().map(|e| e.code), Some(Code::BadRequest));
        drop(running);
        assert!(waits.begin("1".into()).is_ok());
    }
}
