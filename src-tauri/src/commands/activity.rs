//! What happened. Exports are written here, into the person's own folder: the window touches no file.

use neuron_bridge::{
    bridge::BridgeHandle,
    error::{ApiError, Code},
    event::Event,
    snapshot::{ActivityDay, ActivityExport, ActivityFilter, ActivityPage, ExportFormat},
    store::ActivityCursor,
};
use tauri::{AppHandle, Manager as _, State, ipc::Channel};
use tokio::sync::broadcast::error::RecvError;

use super::Answer;
use crate::{app::Shell, desktop::Window};

/// `before` is where an earlier page ended, `after` the newest entry that is known; the newest ones without both.
#[tauri::command]
pub(super) async fn activity(
    shell: State<'_, Shell>,
    filter: ActivityFilter,
    before: Option<u64>,
    after: Option<u64>,
    limit: usize,
) -> Answer<ActivityPage> {
    let cursor = match (before, after) {
        (Some(id), _) => ActivityCursor::Before(id),
        (None, Some(id)) => ActivityCursor::After(id),
        (None, None) => ActivityCursor::Newest,
    };
    shell.bridge.activity(filter, cursor, limit).await
}

/// Days begin at midnight where the clock is `offset_minutes` ahead of UTC.
#[tauri::command]
pub(super) async fn activity_days(shell: State<'_, Shell>, days: u32, offset_minutes: i32) -> Answer<Vec<ActivityDay>> {
    shell.bridge.activity_days(days, offset_minutes).await
}

/// Writes a new file into the folder for downloads, or else the person's own.
#[tauri::command]
pub(super) async fn export_activity(
    app: AppHandle,
    shell: State<'_, Shell>,
    filter: ActivityFilter,
    format: ExportFormat,
) -> Answer<ActivityExport> {
    let paths = app.path();
    let downloads = paths.download_dir().ok().filter(|folder| folder.is_dir());
    let folder = downloads.or_else(|| paths.home_dir().ok()).ok_or_else(|| {
        ApiError::new(
            Code::NotSaved,
            "Your folder for downloads is not known, so there is no place for the file.",
        )
    })?;
    shell.bridge.export_activity_to(folder, filter, format).await
}

/// Tells whenever there are new entries, for the life of the window.
#[tauri::command]
pub(super) async fn watch_activity(
    shell: State<'_, Shell>,
    window: State<'_, Window>,
    channel: Channel<()>,
) -> Answer<()> {
    window.told_by(tauri::async_runtime::spawn(tell(shell.bridge.clone(), channel)));
    Ok(())
}

async fn tell(bridge: BridgeHandle, channel: Channel<()>) {
    let (_before, mut events) = bridge.events(None);
    loop {
        let is_news = match events.recv().await {
            Ok(numbered) => matches!(numbered.event, Event::ActivityRecorded { .. }),
            // There may have been some among those that were missed.
            Err(RecvError::Lagged(_)) => true,
            Err(RecvError::Closed) => return,
        };
        if is_news && channel.send(()).is_err() {
            return;
        }
    }
}
