//! The bridge as the tray app starts it, and a stand-in for its window: the same routes with the owner behind them, in a
//! folder of the test's own. Never part of what is shipped; decides nothing.
//!
//! `beside-tray APP-HOME WINDOW-HOME NEURON-CONNECTD [FIRST LONGEST]`, until SIGTERM: questions wait so many milliseconds for
//! their answer, and in all once more time is asked for. `beside-tray --routes` tells every route. What only the window can say
//! comes as lines of JSON on standard input ([`Said`]).

use std::{env, error::Error, io::stdin, path::PathBuf, sync::Arc, thread, time::Duration};

use neuron_bridge::{
    bridge::{BridgeHandle, BridgeOptions, Patience, Shell},
    caller::Caller,
    home::Home,
    http::{self, Family, Kin, Limits, NoClients, ServeOptions},
    ids::{ConnectorId, ToolName},
    program_log,
    secrets::KeepSecrets,
    snapshot::ApiView,
    trust::rules::RuleId,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, watch},
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
    tokio::spawn(listen(bridge.clone()));
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

/// A change or an answer for which there is no route.
#[derive(Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
enum Said {
    /// The whole entry in place of what it was.
    Replace { id: ConnectorId, entry: Map<String, Value> },
    /// One tool is hidden.
    Hide { id: ConnectorId, tool: ToolName },
    /// With rules that go on for them.
    Approve { launches: Vec<String>, keep: Vec<RuleId> },
}

async fn listen(bridge: BridgeHandle) {
    let (told, mut lines) = mpsc::channel(1);
    // A thread that reads keeps nobody from ending.
    thread::spawn(move || {
        stdin()
            .lines()
            .map_while(Result::ok)
            .try_for_each(|line| told.blocking_send(line))
    });
    while let Some(line) = lines.recv().await {
        let said = match serde_json::from_str(&line) {
            Ok(Said::Replace { id, entry }) => bridge.replace(id, entry).await.map(drop),
            Ok(Said::Hide { id, tool }) => bridge.set_tool_enabled(id, tool, false).await,
            Ok(Said::Approve { launches, keep }) => bridge.approve_launches(launches, keep).await,
            Err(error) => {
                eprintln!("{line:?} says nothing: {error}");
                continue;
            }
        };
        if let Err(refused) = said {
            eprintln!("{line}: {refused:?}");
        }
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
