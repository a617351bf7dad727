//! Notifications of the desktop: for what ends or begins while nobody looks at the window. Which there are, and what they
//! say, is decided in the bridge; nothing can be answered in one.

use std::time::{Duration, Instant};

use neuron_bridge::{event::Event, tray::Told};
use tauri::{AppHandle, Manager};
use tokio::sync::broadcast::error::RecvError;

use crate::{app::Shell, desktop};

/// What a question is about is known by then.
const SHOWN_WITHIN: Duration = Duration::from_secs(1);

/// Tells of what happens from now on, for the life of the program.
pub(crate) fn tell(app: &AppHandle) {
    let app = app.clone();
    let bridge = app.state::<Shell>().bridge.clone();
    let (_before, mut events) = bridge.events(None);
    tauri::async_runtime::spawn(async move {
        let mut desk = bus::Desk::default();
        let mut told = Told::default();
        loop {
            let event = match events.recv().await {
                Ok(numbered) => numbered.event,
                // What was missed shows in the window.
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return,
            };
            if let Event::ApprovalRequested { approval, .. } = &event {
                let mut snapshots = bridge.watch();
                let shown = snapshots.wait_for(|now| now.approvals.iter().any(|view| view.id == *approval));
                // One that ended at once is told of without more.
                let _ = tokio::time::timeout(SHOWN_WITHIN, shown).await;
            }
            let Some(banner) = told.banner(&event, &bridge.snapshot(), Instant::now()) else {
                continue;
            };
            if desktop::is_looked_at(&app) {
                continue;
            }
            let app = app.clone();
            desk = tauri::async_runtime::spawn_blocking(move || {
                desktop::call_for(&app, &banner.route);
                desk.show(&banner.text);
                desk
            })
            .await
            .unwrap_or_default();
        }
    });
}

#[cfg(target_os = "linux")]
mod bus {
    use std::collections::HashMap;

    use zbus::{blocking::Connection, zvariant::Value};

    use crate::desktop::BUS_DEADLINE;

    /// The place notifications go to. Some desktops take them back when the connection ends, so it is kept.
    #[derive(Default)]
    pub(super) struct Desk(Option<Connection>);

    impl Desk {
        pub(super) fn show(&mut self, text: &str) {
            if let Err(e) = self.try_show(text) {
                tracing::debug!("No notification: {e}.");
                self.0 = None;
            }
        }

        fn try_show(&mut self, text: &str) -> zbus::Result<()> {
            const NOTIFICATIONS: &str = "org.freedesktop.Notifications";

            let bus = match self.0.take() {
                Some(bus) => bus,
                None => zbus::blocking::connection::Builder::session()?
                    .method_timeout(BUS_DEADLINE)
                    .build()?,
            };
            let bus = self.0.insert(bus);
            let hints: HashMap<&str, Value<'_>> = HashMap::from([("desktop-entry", "neuron-connect".into())]);
            let actions: &[&str] = &[];
            bus.call_method(
                Some(NOTIFICATIONS),
                "/org/freedesktop/Notifications",
                Some(NOTIFICATIONS),
                "Notify",
                &(
                    "Neuron Connect",
                    0_u32,
                    "",
                    "Neuron Connect",
                    as_markup(text),
                    actions,
                    hints,
                    -1_i32,
                ),
            )?;
            Ok(())
        }
    }

    /// Some desktops read a notification's body as markup.
    fn as_markup(text: &str) -> String {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    }
}

#[cfg(not(target_os = "linux"))]
mod bus {
    #[derive(Default)]
    pub(super) struct Desk;

    impl Desk {
        pub(super) fn show(&mut self, _text: &str) {}
    }
}
