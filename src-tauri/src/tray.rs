//! Draws the bridge's [`Menu`] as a tray and hands clicks back. Which lines there are is decided in the bridge.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
};

use neuron_bridge::{
    ids::ConnectorId,
    tray::{Click, Icon, Item, Menu, Route, menu},
};
use tauri::{
    AppHandle, Manager, Wry,
    image::Image,
    menu::{CheckMenuItemBuilder, IsMenuItem, MenuItemBuilder, PredefinedMenuItem, Submenu},
    tray::TrayIconBuilder,
};
use tokio::sync::oneshot;

use crate::{
    app::{self, Shell},
    desktop::{self, Reason},
};

const ID: &str = "main";

const NORMAL: Image<'_> = tauri::include_image!("icons/tray.png");
const ATTENTION: Image<'_> = tauri::include_image!("icons/tray-attention.png");

/// What the tray shows at this moment.
struct Shown(Mutex<Menu>);

/// Puts the icon into the tray and keeps its menu up to date from then on.
///
/// # Errors
/// A sentence, when this desktop's tray library is missing or refuses.
pub(crate) fn show(app: &AppHandle) -> Result<(), String> {
    let mut snapshots = app.state::<Shell>().bridge.watch();
    let first = menu(&snapshots.borrow_and_update());
    // The library behind the tray is loaded at its first use and panics where it is not installed.
    catch_unwind(AssertUnwindSafe(|| build(app, &first)))
        .map_err(|_| "the library that draws tray icons (libayatana-appindicator3) is not installed".to_owned())?
        .map_err(|e| format!("the tray refused the icon ({e})"))?;
    app.manage(Shown(Mutex::new(first)));

    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        while snapshots.changed().await.is_ok() {
            let next = menu(&snapshots.borrow_and_update());
            let (drawn, done) = oneshot::channel();
            let on_main = app.clone();
            let asked = app.run_on_main_thread(move || {
                redraw(&on_main, next);
                let _ = drawn.send(());
            });
            // One at a time, so that a burst of snapshots draws only its last.
            if asked.is_err() || done.await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

fn build(app: &AppHandle, shown: &Menu) -> tauri::Result<()> {
    TrayIconBuilder::with_id(ID)
        .icon(picture(shown.icon))
        .tooltip("Neuron Connect")
        .menu(&draw(app, shown)?)
        .on_menu_event(|app, event| clicked(app, event.id().as_ref()))
        .build(app)?;
    Ok(())
}

fn redraw(app: &AppHandle, next: Menu) {
    let shown = app.state::<Shown>();
    let mut shown = shown.0.lock().unwrap_or_else(PoisonError::into_inner);
    if *shown == next {
        return;
    }
    let Some(tray) = app.tray_by_id(ID) else { return };
    let drawn = draw(app, &next)
        .and_then(|menu| tray.set_menu(Some(menu)))
        .and_then(|()| {
            if shown.icon == next.icon {
                Ok(())
            } else {
                tray.set_icon(Some(picture(next.icon)))
            }
        });
    match drawn {
        Ok(()) => *shown = next,
        Err(e) => tracing::warn!("The tray menu could not be drawn: {e}."),
    }
}

fn draw(app: &AppHandle, menu: &Menu) -> tauri::Result<tauri::menu::Menu<Wry>> {
    let items = draw_items(app, &menu.items)?;
    tauri::menu::Menu::with_items(app, &references(&items))
}

type Drawn = Box<dyn IsMenuItem<Wry>>;

fn draw_items(app: &AppHandle, items: &[Item]) -> tauri::Result<Vec<Drawn>> {
    items.iter().map(|item| draw_item(app, item)).collect()
}

fn references(items: &[Drawn]) -> Vec<&dyn IsMenuItem<Wry>> {
    items.iter().map(AsRef::as_ref).collect()
}

fn draw_item(app: &AppHandle, item: &Item) -> tauri::Result<Drawn> {
    Ok(match item {
        Item::Line(text) => Box::new(MenuItemBuilder::new(literal(text)).enabled(false).build(app)?),
        Item::Button { text, click } => Box::new(MenuItemBuilder::with_id(click.id(), literal(text)).build(app)?),
        Item::Toggle { text, connector, on } => Box::new(
            CheckMenuItemBuilder::with_id(Click::Toggle(connector.clone()).id(), literal(text))
                .checked(*on)
                .build(app)?,
        ),
        Item::Submenu { text, items } => {
            let items = draw_items(app, items)?;
            Box::new(Submenu::with_items(app, literal(text), true, &references(&items))?)
        }
        Item::Separator => Box::new(PredefinedMenuItem::separator(app)?),
    })
}

/// A single `&` would mark the letter after it.
fn literal(text: &str) -> String {
    text.replace('&', "&&")
}

fn picture(icon: Icon) -> Image<'static> {
    match icon {
        Icon::Normal => NORMAL,
        Icon::Attention => ATTENTION,
    }
}

fn clicked(app: &AppHandle, id: &str) {
    match Click::parse(id) {
        Some(Click::Open(route)) => desktop::open(app, Reason::Asked, Some(&route)),
        Some(Click::Toggle(connector)) => toggle(app, connector),
        Some(Click::TryNow(connector)) => try_now(app, connector),
        Some(Click::StopTrying(connector)) => stop_trying(app, connector),
        Some(Click::PauseAll(on)) => pause_all(app, on),
        Some(Click::Quit) => app::quit(app),
        None => {}
    }
}

/// The outcome shows in the menu.
fn try_now(app: &AppHandle, connector: ConnectorId) {
    let bridge = app.state::<Shell>().bridge.clone();
    tauri::async_runtime::spawn(async move {
        if let Err(e) = bridge.reconnect(connector.clone()).await {
            tracing::warn!("{connector} could not be tried: {e}");
        }
    });
}

fn stop_trying(app: &AppHandle, connector: ConnectorId) {
    let bridge = app.state::<Shell>().bridge.clone();
    tauri::async_runtime::spawn(async move {
        if let Err(e) = bridge.stop_trying(connector.clone()).await {
            tracing::warn!("The attempts to connect {connector} could not be stopped: {e}");
        }
    });
}

fn pause_all(app: &AppHandle, on: bool) {
    let bridge = app.state::<Shell>().bridge.clone();
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        if let Err(e) = bridge.pause_all(on).await {
            tracing::warn!("everything could not be {}: {e}", if on { "paused" } else { "resumed" });
            desktop::open(&app, Reason::Asked, Some(&Route::Connectors));
        }
    });
}

fn toggle(app: &AppHandle, connector: ConnectorId) {
    let shown = app.state::<Shown>();
    let wanted = shown
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .toggled(&connector);
    let Some(enabled) = wanted else { return };
    let bridge = app.state::<Shell>().bridge.clone();
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        if let Err(e) = bridge.set_enabled(connector.clone(), enabled).await {
            tracing::warn!(
                "{connector} could not be turned {}: {e}",
                if enabled { "on" } else { "off" }
            );
            desktop::open(&app, Reason::Asked, Some(&Route::Connector(connector.to_string())));
            restore_check_mark(&app);
        }
    });
}

/// The click itself has turned the mark already; nothing else would turn it back.
fn restore_check_mark(app: &AppHandle) {
    let on_main = app.clone();
    let asked = app.run_on_main_thread(move || {
        let shown = on_main.state::<Shown>();
        let shown = shown.0.lock().unwrap_or_else(PoisonError::into_inner);
        let drawn = draw(&on_main, &shown);
        if let (Some(tray), Ok(menu)) = (on_main.tray_by_id(ID), drawn) {
            let _ = tray.set_menu(Some(menu));
        }
    });
    if let Err(e) = asked {
        tracing::warn!("The tray menu could not be drawn: {e}.");
    }
}
