//! The one window, made when somebody wants to see it and destroyed when closed, and what the desktop around it offers.

use std::{
    path::PathBuf,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use neuron_bridge::tray::Route;
use serde::Serialize;
use tauri::{
    AppHandle, Manager, Url, UserAttentionType, WebviewUrl, WebviewWindow, WebviewWindowBuilder,
    async_runtime::JoinHandle, ipc::Channel, webview::NewWindowResponse,
};

/// Label of the one window; `capabilities/main.json` names it too.
const LABEL: &str = "main";
/// A window that was asked to close is gone long before.
const CLOSING_DEADLINE: Duration = Duration::from_secs(5);
/// A session bus that does not answer within this is as good as none.
pub(crate) const BUS_DEADLINE: Duration = Duration::from_secs(2);

/// Why the window opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    /// The person asked for it.
    Asked,
    /// Nothing was set up in this home before.
    FirstRun,
    /// There is no tray to reach the program by.
    NoTrayHost,
}

/// What a new window is told about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Opening {
    reason: Reason,
    /// Where it is to start, such as `#/add`.
    route: Option<String>,
}

/// What belongs to the present window and goes with it.
pub(crate) struct Window {
    present: Mutex<Present>,
    gone: Condvar,
    /// Held while a window is looked for and made, so that two requests never make two.
    making: Mutex<()>,
}

struct Present {
    opening: Opening,
    /// Was asked to close, and takes no more requests.
    closing: bool,
    routes: Option<Channel<String>>,
    snapshots: Option<JoinHandle<()>>,
    activity: Option<JoinHandle<()>>,
}

impl Default for Present {
    fn default() -> Self {
        Self {
            opening: Opening {
                reason: Reason::Asked,
                route: None,
            },
            closing: false,
            routes: None,
            snapshots: None,
            activity: None,
        }
    }
}

impl Default for Window {
    fn default() -> Self {
        Self {
            present: Mutex::new(Present::default()),
            gone: Condvar::new(),
            making: Mutex::new(()),
        }
    }
}

impl Window {
    /// Why the present window opened.
    pub(crate) fn opening(&self) -> Opening {
        self.present().opening.clone()
    }

    /// Later places are sent there; an earlier channel is forgotten.
    pub(crate) fn send_routes_to(&self, channel: Channel<String>) {
        self.present().routes = Some(channel);
    }

    /// The task that feeds the window; it ends with the window, or when another takes its place.
    pub(crate) fn fed_by(&self, task: JoinHandle<()>) {
        if let Some(earlier) = self.present().snapshots.replace(task) {
            earlier.abort();
        }
    }

    /// The task that tells the window of what happens; likewise.
    pub(crate) fn told_by(&self, task: JoinHandle<()>) {
        if let Some(earlier) = self.present().activity.replace(task) {
            earlier.abort();
        }
    }

    /// The window was asked to close: whoever wants one from now on waits until it is gone.
    pub(crate) fn closing(&self) {
        self.present().closing = true;
    }

    /// Forgets everything of a window that is gone.
    pub(crate) fn closed(&self) {
        let gone = std::mem::take(&mut *self.present());
        for task in [gone.snapshots, gone.activity].into_iter().flatten() {
            task.abort();
        }
        self.gone.notify_all();
    }

    fn wait_until_gone_if_closing(&self) {
        let _ = self
            .gone
            .wait_timeout_while(self.present(), CLOSING_DEADLINE, |present| present.closing);
    }

    fn go_to(&self, route: &Route) {
        let mut present = self.present();
        let Some(routes) = &present.routes else {
            // Its page is still loading, and will ask where it is to start.
            present.opening.route = Some(route.fragment());
            return;
        };
        if let Err(e) = routes.send(route.fragment()) {
            tracing::warn!("The window did not take the way to {}: {e}.", route.fragment());
        }
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a window that is shown takes the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    Taken,
    /// It stays where it is; a new window asks for a look.
    Left,
}

/// Shows the window, at `route` where one is given, and gives it the focus. Returns at once.
pub(crate) fn open(app: &AppHandle, reason: Reason, route: Option<&Route>) {
    show(app, reason, route, Focus::Taken);
}

fn show(app: &AppHandle, reason: Reason, route: Option<&Route>, focus: Focus) {
    let app = app.clone();
    let route = route.cloned();
    // Not here: this may be the main thread, and a window that is closing needs it to go.
    tauri::async_runtime::spawn_blocking(move || {
        let state = app.state::<Window>();
        let _making = state.making.lock().unwrap_or_else(PoisonError::into_inner);
        state.wait_until_gone_if_closing();
        let shown = match app.get_webview_window(LABEL) {
            Some(window) => {
                if let Some(route) = &route {
                    state.go_to(route);
                }
                match focus {
                    Focus::Taken => bring_forward(&window),
                    Focus::Left => window.request_user_attention(Some(UserAttentionType::Informational)),
                }
            }
            None => {
                state.present().opening = Opening {
                    reason,
                    route: route.as_ref().map(Route::fragment),
                };
                make_undisturbed(&app, focus)
            }
        };
        if let Err(e) = shown {
            tracing::error!("The window could not be shown: {e}.");
        }
    });
}

/// Whether the person has the window before them and works in it.
pub(crate) fn is_looked_at(app: &AppHandle) -> bool {
    let is_focused = |window: WebviewWindow| window.is_focused().unwrap_or(false);
    app.get_webview_window(LABEL).is_some_and(is_focused)
}

/// Asks for a look without taking the focus: by the window that there is, or by a new one where no tray leads to it.
/// Waits for the session bus.
pub(crate) fn call_for(app: &AppHandle, route: &Route) {
    match app.get_webview_window(LABEL) {
        Some(window) => {
            if let Err(e) = window.request_user_attention(Some(UserAttentionType::Informational)) {
                tracing::debug!("The window could not ask for a look: {e}.");
            }
        }
        None => match tray_host() {
            TrayHost::Present => {}
            TrayHost::Missing(_) => show(app, Reason::Asked, Some(route), Focus::Left),
        },
    }
}

/// Destroys the window, if there is one.
pub(crate) fn close(app: &AppHandle) {
    let Some(window) = app.get_webview_window(LABEL) else {
        return;
    };
    app.state::<Window>().closing();
    if let Err(e) = window.destroy() {
        tracing::warn!("The window could not be closed: {e}.");
    }
}

/// On the main thread no event comes between making the window and registering it. A window closed in between would stay
/// registered for ever.
#[cfg(not(windows))]
fn make_undisturbed(app: &AppHandle, focus: Focus) -> tauri::Result<()> {
    let (made, result) = std::sync::mpsc::sync_channel(1);
    let on_main = app.clone();
    app.run_on_main_thread(move || {
        let _ = made.send(make(&on_main, focus));
    })?;
    // Without an answer the program is ending.
    result.recv().unwrap_or(Ok(()))
}

/// The webview of Windows cannot be made on the main thread from here: it needs the events it would hold up.
#[cfg(windows)]
fn make_undisturbed(app: &AppHandle, focus: Focus) -> tauri::Result<()> {
    make(app, focus)
}

fn make(app: &AppHandle, focus: Focus) -> tauri::Result<()> {
    let window = WebviewWindowBuilder::new(app, LABEL, WebviewUrl::App("index.html".into()))
        .title("Neuron Connect")
        .inner_size(1080.0, 720.0)
        .min_inner_size(480.0, 400.0)
        .center()
        .zoom_hotkeys_enabled(true)
        .disable_drag_drop_handler()
        .devtools(cfg!(debug_assertions))
        .on_navigation(is_ours)
        .on_new_window(|_url, _features| NewWindowResponse::Deny)
        .focused(focus == Focus::Taken)
        .build()?;
    match focus {
        Focus::Taken => Ok(()),
        Focus::Left => window.request_user_attention(Some(UserAttentionType::Informational)),
    }
}

fn bring_forward(window: &WebviewWindow) -> tauri::Result<()> {
    window.unminimize()?;
    window.show()?;
    window.set_focus()
}

/// Whether an address is the program's own page. Everything else stays out of the window.
fn is_ours(url: &Url) -> bool {
    let (scheme, host) = if cfg!(windows) {
        ("http", "tauri.localhost")
    } else {
        ("tauri", "localhost")
    };
    url.scheme() == scheme && url.host_str() == Some(host) && url.port().is_none()
}

/// Whether something on this desktop shows tray icons.
pub(crate) enum TrayHost {
    Present,
    /// Why not, for people.
    Missing(String),
}

/// Asks the session bus for a StatusNotifierWatcher with a host.
#[cfg(target_os = "linux")]
pub(crate) fn tray_host() -> TrayHost {
    const WATCHER: &str = "org.kde.StatusNotifierWatcher";

    let registered = || -> zbus::Result<bool> {
        let bus = zbus::blocking::connection::Builder::session()?
            .method_timeout(BUS_DEADLINE)
            .build()?;
        let watcher: zbus::blocking::Proxy<'_> = zbus::blocking::proxy::Builder::new(&bus)
            .destination(WATCHER)?
            .path("/StatusNotifierWatcher")?
            .interface(WATCHER)?
            .cache_properties(zbus::proxy::CacheProperties::No)
            .build()?;
        watcher.get_property("IsStatusNotifierHostRegistered")
    };
    match registered() {
        Ok(true) => TrayHost::Present,
        Ok(false) => TrayHost::Missing("nothing on this desktop shows tray icons".to_owned()),
        Err(e) => TrayHost::Missing(format!("this desktop has no place for tray icons ({e})")),
    }
}

/// Elsewhere the system itself has a tray.
#[cfg(not(target_os = "linux"))]
pub(crate) fn tray_host() -> TrayHost {
    TrayHost::Present
}

/// Refuses to go on where no window could ever open.
#[cfg(target_os = "linux")]
pub(crate) fn need_display() -> Result<(), String> {
    let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    if set("DISPLAY") || set("WAYLAND_DISPLAY") {
        Ok(())
    } else {
        Err("there is no display. Run `neuron-connectd serve` for the same without a window.".to_owned())
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn need_display() -> Result<(), String> {
    Ok(())
}

/// `neuron-connectd`, which must lie beside this program: another one of that name could be anybody's.
///
/// # Errors
/// A sentence that says where it was expected.
pub(crate) fn own_binary() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("This program's own place is unknown: {e}."))?;
    let binary = own.with_file_name(format!("neuron-connectd{}", std::env::consts::EXE_SUFFIX));
    if binary.is_file() {
        Ok(binary)
    } else {
        Err(format!(
            "{} is missing. It belongs beside the app: install Neuron Connect again.",
            binary.display()
        ))
    }
}

/// Says one thing without our window, for when there is nothing that a window could show.
#[cfg(target_os = "linux")]
pub(crate) fn tell(sentence: &str) {
    use gtk::prelude::{DialogExt, GtkWindowExt};

    let dialog = gtk::MessageDialog::new(
        gtk::Window::NONE,
        gtk::DialogFlags::MODAL,
        gtk::MessageType::Error,
        gtk::ButtonsType::Close,
        sentence,
    );
    dialog.set_title("Neuron Connect");
    dialog.run();
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn tell(_sentence: &str) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_page_is_ours() {
        let ours = |url: &str| is_ours(&Url::parse(url).unwrap());
        let page = if cfg!(windows) {
            "http://tauri.localhost/"
        } else {
            "tauri://localhost/"
        };
        assert!(ours(page));
        assert!(ours(&format!("{page}index.html#/add")));
        for other in [
            "https://example.com/",
            "http://127.0.0.1:7771/healthz",
            "https://tauri.localhost.example.com/",
            "tauri://localhost.example.com/",
            "tauri://localhost:8080/",
            "file:///etc/passwd",
            "data:text/html,hello",
            "about:blank",
            "ipc://localhost/",
        ] {
            assert!(!ours(other), "{other}");
        }
    }
}
