//! `serve`: the bridge in the foreground, and the signals that steer it.

use std::{path::Path, time::Duration};

use neuron_bridge::{
    bridge::{BridgeHandle, BridgeOptions, Headless, Patience, Shell},
    home::Home,
    program_log,
    secrets::{FileKey, KeepSecrets},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};
use tracing::{info, warn};

use crate::{
    args::{Secrets, ServeArgs},
    exit::Failure,
};

/// The bridge's own promise, and the moment after which we leave without it.
const SHUTDOWN: Duration = Duration::from_secs(5);

/// Runs until it is told to stop.
pub(crate) async fn run(home: &Path, args: &ServeArgs) -> Result<(), Failure> {
    program_log::to_stderr();
    let orders = orders().map_err(|e| Failure::failed(format!("The system's signals cannot be received: {e}.")))?;
    let bridge = start(home, args).await?;
    supervise(&bridge, orders).await;
    Ok(())
}

async fn start(home: &Path, args: &ServeArgs) -> Result<BridgeHandle, Failure> {
    let own_binary = std::env::current_exe()
        .map_err(|e| Failure::failed(format!("This program's own file cannot be told: {e}.")))?;
    let options = BridgeOptions {
        home: Home::at(home).map_err(|e| Failure::failed(e.to_string()))?,
        program: "neuron-connectd serve",
        own_binary,
        port: args.port,
        shell: Shell::Headless(Headless {
            review: args.review,
            require_token: args.require_token,
            ask: args.ask,
        }),
        secrets: keep_secrets(args.secrets)?,
        patience: Patience::default(),
    };
    BridgeHandle::start(options)
        .await
        .map_err(|e| Failure::failed(e.to_string()))
}

fn keep_secrets(chosen: Secrets) -> Result<KeepSecrets, Failure> {
    match chosen {
        Secrets::Keychain => {
            if !has_session_bus() {
                warn!(
                    "this session has no bus, and so no keychain: connectors that need a token or secret wait. Start with \
                     --secrets file or --secrets memory to keep them elsewhere"
                );
            }
            Ok(KeepSecrets::Keychain)
        }
        Secrets::File => match FileKey::from_environment() {
            Ok(key) => Ok(KeepSecrets::File(key)),
            Err(error) => Err(Failure::failed(error.to_string())),
        },
        Secrets::Memory => {
            info!("tokens and secrets are forgotten when the bridge stops");
            Ok(KeepSecrets::Memory)
        }
    }
}

/// Whether programs of this session can reach a keychain; elsewhere than on Linux it needs no bus.
fn has_session_bus() -> bool {
    let named = std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty());
    let usual = std::env::var_os("XDG_RUNTIME_DIR").is_some_and(|folder| Path::new(&folder).join("bus").exists());
    cfg!(not(target_os = "linux")) || named || usual
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Reload,
    Stop,
}

/// The part of a bridge that signals reach.
trait Steered {
    async fn reload(&self);
    async fn shutdown(&self);
}

impl Steered for BridgeHandle {
    async fn reload(&self) {
        Self::reload(self).await;
    }

    async fn shutdown(&self) {
        Self::shutdown(self).await;
    }
}

/// Carries out orders until one says stop, or says it again while stopping.
async fn supervise(bridge: &impl Steered, mut orders: mpsc::Receiver<Order>) {
    while let Some(Order::Reload) = orders.recv().await {
        info!("reading connectors.json again");
        bridge.reload().await;
    }
    info!("stopping");
    let again = async {
        while let Some(order) = orders.recv().await {
            if order == Order::Stop {
                return;
            }
        }
        std::future::pending().await
    };
    tokio::select! {
        done = tokio::time::timeout(SHUTDOWN, bridge.shutdown()) => match done {
            Ok(()) => info!("stopped"),
            Err(_elapsed) => warn!("not everything stopped within {} seconds", SHUTDOWN.as_secs()),
        },
        () = again => warn!("told to stop again: leaving at once"),
    }
}

fn orders() -> std::io::Result<mpsc::Receiver<Order>> {
    let (sender, orders) = mpsc::channel(8);
    for (kind, order) in [
        (SignalKind::terminate(), Order::Stop),
        (SignalKind::interrupt(), Order::Stop),
        (SignalKind::hangup(), Order::Reload),
    ] {
        let mut signals = signal(kind)?;
        let sender = sender.clone();
        // Ends with the runtime, or at the first signal after nobody listens any more.
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if sender.send(order).await.is_err() {
                    break;
                }
            }
        });
    }
    Ok(orders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Recorder {
        heard: Mutex<Vec<&'static str>>,
        hangs: bool,
    }

    impl Recorder {
        fn new(hangs: bool) -> Self {
            Self {
                heard: Mutex::default(),
                hangs,
            }
        }
    }

    impl Steered for Recorder {
        async fn reload(&self) {
            self.heard.lock().unwrap().push("reload");
        }

        async fn shutdown(&self) {
            self.heard.lock().unwrap().push("shutdown");
            if self.hangs {
                std::future::pending().await
            }
        }
    }

    async fn told(orders: &[Order], hangs: bool) -> (Vec<&'static str>, Duration) {
        let (sender, receiver) = mpsc::channel(8);
        for order in orders {
            sender.send(*order).await.unwrap();
        }
        let bridge = Recorder::new(hangs);
        let start = tokio::time::Instant::now();
        supervise(&bridge, receiver).await;
        drop(sender);
        (bridge.heard.into_inner().unwrap(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_hangup_reloads_and_a_stop_shuts_down() {
        let (heard, took) = told(&[Order::Reload, Order::Reload, Order::Stop], false).await;
        assert_eq!(heard, ["reload", "reload", "shutdown"]);
        assert!(took.is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn a_bridge_that_hangs_is_left_after_five_seconds() {
        let (_, took) = told(&[Order::Stop], true).await;
        assert_eq!(took, SHUTDOWN);
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_stop_leaves_at_once() {
        let (_, took) = told(&[Order::Stop, Order::Reload, Order::Stop], true).await;
        assert!(took.is_zero());
    }
}
