//! The life of the tray app: one instance, the bridge in this process, tray and window, and the way out.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use neuron_bridge::{
    bridge::{self, BridgeHandle, BridgeOptions},
    home::Home,
    program_log,
    secrets::KeepSecrets,
};
use tauri::{AppHandle, Manager, RunEvent, WindowEvent, Wry, plugin::TauriPlugin};

#[cfg(target_os = "linux")]
use crate::scheme;
use crate::{
    commands::{self, Waits},
    deep_link::{Asked, Callbacks},
    desktop::{self, Reason, TrayHost, Window},
    notify, tray,
};

/// How long quitting waits for the bridge; it needs under five seconds itself.
const QUIT_DEADLINE: Duration = Duration::from_secs(6);

/// How often a start that meets an earlier instance in its last moment begins anew, which by then is gone.
#[cfg(unix)]
const MOST_TRIES: u32 = 5;
/// How long it waits before each.
#[cfg(unix)]
const TRY_AFTER: Duration = Duration::from_millis(200);
/// Tells the next start which one it is.
#[cfg(unix)]
const TRIED: &str = "NEURON_CONNECT_TRIED";

/// What the commands and the tray reach the bridge through.
pub(crate) struct Shell {
    pub(crate) bridge: BridgeHandle,
    /// `connect/settings.json`.
    pub(crate) settings: PathBuf,
    quitting: AtomicBool,
    /// The person started it again while it was quitting.
    wanted_again: AtomicBool,
}

/// Runs until the person quits.
///
/// # Errors
/// A sentence for the person, when there is no display, no home, or the bridge cannot start.
pub(crate) fn run() -> Result<ExitCode, String> {
    program_log::to_stderr();
    desktop::need_display()?;
    let home = Home::locate(None).map_err(|e| e.to_string())?;
    let first_run = !home.config_file().exists() && !home.connect_folder().exists();

    let app = tauri::Builder::default()
        .plugin(single_instance(home.root()))
        .manage(Window::default())
        .manage(Waits::default())
        .manage(Callbacks::default())
        .invoke_handler(commands::handler())
        .setup(move |app| {
            set_up(app.handle(), first_run);
            app.state::<Callbacks>().reach(app.handle())?;
            Ok(())
        })
        .build(tauri::generate_context!())
        .map_err(|error| match error {
            // An earlier instance went between being found and being told.
            tauri::Error::PluginInitialization(plugin, why) if plugin == SINGLE_INSTANCE => start_anew(&why),
            error => format!("the desktop part could not start: {error}"),
        })?;

    // A second start has ended by now; only the one instance may hold the home.
    let bridge = tauri::async_runtime::block_on(start_bridge(home.clone())).inspect_err(|why| desktop::tell(why))?;
    app.manage(Shell {
        bridge,
        settings: home.settings_file(),
        quitting: AtomicBool::new(false),
        wanted_again: AtomicBool::new(false),
    });

    if let Asked::SignIn(callback) = Asked::by(&arguments()) {
        app.state::<Callbacks>().bring(*callback);
    }

    let code = app.run_return(|app, event| match event {
        // Without a code the last window was closed; the tray stays.
        RunEvent::ExitRequested { code: None, api, .. } => api.prevent_exit(),
        RunEvent::WindowEvent { event, .. } => match event {
            WindowEvent::CloseRequested { .. } => app.state::<Window>().closing(),
            WindowEvent::Focused(true) => app.state::<Shell>().bridge.back(),
            WindowEvent::Destroyed => {
                app.state::<Waits>().stop_all();
                app.state::<Window>().closed();
            }
            _ => {}
        },
        _ => {}
    });
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Begins this process anew, for another try: what it holds of the desktop cannot be built twice. Comes back only with why
/// it will not.
#[cfg(unix)]
fn start_anew(why: &str) -> String {
    use std::{env, os::unix::process::CommandExt as _, process::Command};

    let tried = env::var(TRIED)
        .ok()
        .and_then(|tried| tried.parse().ok())
        .unwrap_or(0_u32);
    if tried >= MOST_TRIES {
        return format!("an earlier Neuron Connect does not answer. End it and start again ({why})");
    }
    tracing::info!(%why, "an earlier instance is ending");
    std::thread::sleep(TRY_AFTER);
    let failed = match env::current_exe() {
        Ok(program) => Command::new(program)
            .args(env::args_os().skip(1))
            .env(TRIED, (tried + 1).to_string())
            .exec(),
        Err(error) => error,
    };
    format!("it could not be started anew: {failed}")
}

/// Elsewhere instances are told apart in ways that have no such moment.
#[cfg(not(unix))]
fn start_anew(why: &str) -> String {
    why.to_owned()
}

/// Stops the bridge, then the program. Asked a second time, it does not wait. Started again meanwhile, it comes back.
pub(crate) fn quit(app: &AppHandle) {
    let shell = app.state::<Shell>();
    if shell.quitting.swap(true, Ordering::SeqCst) {
        app.exit(1);
        return;
    }
    desktop::close(app);
    let bridge = shell.bridge.clone();
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        if tokio::time::timeout(QUIT_DEADLINE, bridge.shutdown()).await.is_err() {
            tracing::error!("The bridge did not stop within {} s.", QUIT_DEADLINE.as_secs());
        }
        match app.state::<Shell>().wanted_again.load(Ordering::SeqCst) {
            true => app.request_restart(),
            false => app.exit(0),
        }
    });
}

/// Starts the bridge in this process.
///
/// # Errors
/// A sentence for the person, such as who holds this home already.
async fn start_bridge(home: Home) -> Result<BridgeHandle, String> {
    let options = BridgeOptions {
        home,
        program: "Neuron Connect",
        own_binary: desktop::own_binary()?,
        port: None,
        shell: bridge::Shell::Tray,
        secrets: KeepSecrets::Keychain,
        patience: bridge::Patience::default(),
    };
    BridgeHandle::start(options).await.map_err(|e| e.to_string())
}

fn set_up(app: &AppHandle, first_run: bool) {
    quit_on_signals(app);
    notify::tell(app);
    take_links(app);
    let tray_host = match desktop::tray_host() {
        TrayHost::Present => tray::show(app),
        TrayHost::Missing(why) => {
            // The icon is offered all the same: a panel that starts later will find it.
            tray::show(app).and(Err(why))
        }
    };
    if let Err(why) = &tray_host {
        tracing::warn!("No tray: {why}. Start Neuron Connect again to get its window back.");
    }
    let reason = match tray_host {
        // Also at a first start: that one shows in the snapshot, this would not.
        Err(_) => Reason::NoTrayHost,
        Ok(()) if first_run => Reason::FirstRun,
        Ok(()) => return,
    };
    desktop::open(app, reason, None);
}

/// Sign-ins may come back by links once these reach this program.
#[cfg(target_os = "linux")]
fn take_links(app: &AppHandle) {
    let bridge = app.state::<Shell>().bridge.clone();
    tauri::async_runtime::spawn(async move { bridge.set_deep_links(scheme::reaches_us().await) });
}

/// Elsewhere only an installation makes them reach it, and whether it did is not known.
#[cfg(not(target_os = "linux"))]
fn take_links(_app: &AppHandle) {}

#[cfg(unix)]
fn quit_on_signals(app: &AppHandle) {
    use tokio::signal::unix::{SignalKind, signal};

    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        let app = app.clone();
        tauri::async_runtime::spawn(async move {
            match signal(kind) {
                Ok(mut signals) => {
                    while signals.recv().await.is_some() {
                        quit(&app);
                    }
                }
                Err(e) => tracing::warn!("Signal {} cannot be waited for: {e}.", kind.as_raw_value()),
            }
        });
    }
}

#[cfg(not(unix))]
fn quit_on_signals(_app: &AppHandle) {}

/// This start's own; what is no text is no link either.
fn arguments() -> Vec<String> {
    std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect()
}

/// As Tauri knows it.
const SINGLE_INSTANCE: &str = "single-instance";

/// A second start for the same home hands over to the first and ends. Its arguments are any program's word.
fn single_instance(home: &Path) -> TauriPlugin<Wry> {
    tauri_plugin_single_instance::Builder::new()
        .dbus_id(format!("ai.neuron.connect.home{:016x}", short_hash(home)))
        .callback(|app, arguments, _folder| match Asked::by(&arguments) {
            Asked::Window => match app.try_state::<Shell>() {
                Some(shell) if shell.quitting.load(Ordering::SeqCst) => {
                    shell.wanted_again.store(true, Ordering::SeqCst);
                }
                Some(_) | None => desktop::open(app, Reason::Asked, None),
            },
            Asked::SignIn(callback) => app.state::<Callbacks>().bring(*callback),
        })
        .build()
}

/// Tells homes apart among the programs of one session; nothing is stored under it.
fn short_hash(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}
