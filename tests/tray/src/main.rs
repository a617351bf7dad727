//! The bridge as the tray app starts it, and a stand-in for its window: the same routes with the owner behind them, in a
//! folder of the test's own. Never part of what is shipped; decides nothing.
//!
//! `beside-tray APP-HOME WINDOW-HOME NEURON-CONNECTD [FIRST LONGEST]`, until SIGTERM: questions wait so many milliseconds for
//! their answer, and in all once more time is asked for. `beside-tray --routes` tells every route.

use std::{env, error::Error, path::PathBuf, sync::Arc, time::Duration};

use neuron_bridge::{
    bridge::{BridgeHandle, BridgeOptions, Caller, Patience, Shell},
    home::Home,
    http::{self, Family, Kin, Limits, NoClients, ServeOptions},
    program_log,
    secrets::KeepSecrets,
    snapshot::ApiView,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use tokio_util::sync::CancellationToken;

const USAGE: &str = "usage: beside-tray APP-HOME WINDOW-HOME NEURON-CONNECTD [FIRST LONGEST]";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if env::args().nth(1).as_deref() == Some("--routes") {
        for (method, path) in http::served() {
            println!("{method} {path}");
        }
        return Ok(());
    }
    program_log::to_stderr();
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let mut next = || arguments.next().ok_or(USAGE);
    let (app, window, own_binary) = (next()?, next()?, next()?);
    let mut stop = signal(SignalKind::terminate())?;
    let bridge = BridgeHandle::start(BridgeOptions {
        home: Home::at(app)?,
        program: "Neuron Connect",
        own_binary,
        port: None,
        shell: Shell::Tray,
        secrets: KeepSecrets::Keychain,
        patience: patience()?,
    })
    .await?;
    let window = Home::at(window)?;
    window.prepare()?;
    let options = ServeOptions {
        port: 0,
        lock: Arc::new(window.lock("the window")?),
        socket_caller: Caller::Owner,
        kin: Kin::new(NoPrograms),
        clients: Arc::new(NoClients),
        limits: Limits::default(),
    };
    let (state, _) = watch::channel(ApiView::Starting { port: 0 });
    let closed = CancellationToken::new();
    let served = tokio::spawn(http::serve(bridge.clone(), options, state, closed.clone()));
    stop.recv().await;
    bridge.shutdown().await;
    closed.cancel();
    served.await?;
    Ok(())
}

/// As it was told, or the app's own.
fn patience() -> Result<Patience, Box<dyn Error>> {
    let told: Vec<u64> = env::args().skip(4).map(|text| text.parse()).collect::<Result<_, _>>()?;
    match told[..] {
        [] => Ok(Patience::default()),
        [first, longest] => Ok(Patience {
            first: Duration::from_millis(first),
            longest: Duration::from_millis(longest),
        }),
        _ => Err(USAGE.into()),
    }
}

/// Nobody is kept from the window's stand-in: only its test knows where it is.
struct NoPrograms;

impl Family for NoPrograms {
    fn is_alive(&self) -> bool {
        false
    }

    fn has(&self, _: u32) -> bool {
        false
    }

    fn members(&self) -> Vec<u32> {
        Vec::new()
    }
}
