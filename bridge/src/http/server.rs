//! Listens: binds the loopback port and the local socket, counts connections, ends them in order.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::Router;
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore, watch},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connection::{self, Lane, Visit},
    credential::{Clients, Credentials},
    crowd::{Crowd, Seat},
    gate::Door,
    kin::Kin,
    limits::Limits,
    peer::{Peer, PeerLookup},
    port, routes,
};
use crate::{
    bridge::BridgeHandle,
    caller::Caller,
    caller::{ProgramCell, ProgramLookup, socket::Socket},
    home::{ApiFile, HomeLock},
    snapshot::ApiView,
};

/// What [`serve`] needs to know.
#[derive(Clone)]
pub struct ServeOptions {
    /// On 127.0.0.1; 0 = any free one.
    pub port: u16,
    /// Proof that this process is the bridge of its home: it may replace a socket that was left behind.
    pub lock: Arc<HomeLock>,
    /// Whom the local socket's clients count as.
    pub socket_caller: Caller,
    /// Whom both doors are closed to.
    pub kin: Kin,
    /// Whose tokens hold.
    pub clients: Arc<dyn Clients>,
    pub limits: Limits,
}

/// Serves the API over the loopback port and the local socket until `shutdown` is cancelled and what was under way is
/// answered or [`Limits::drain`] is over.
///
/// A port that is taken is told in `api_state` and tried again, never exchanged for another one; meanwhile the local
/// socket works. `connect/api.json` is there from the first try to the end, and names only a port that is bound. A local socket that cannot be made is
/// logged and missing there.
pub async fn serve(
    handle: BridgeHandle,
    options: ServeOptions,
    api_state: watch::Sender<ApiView>,
    shutdown: CancellationToken,
) {
    let router = routes::router(handle, shutdown.clone());
    serve_router(router, options, api_state, shutdown).await;
}

/// [`serve`] over any router.
pub(super) async fn serve_router(
    router: Router,
    options: ServeOptions,
    api_state: watch::Sender<ApiView>,
    shutdown: CancellationToken,
) {
    let house = House {
        router,
        limits: options.limits,
        programs: ProgramLookup::default(),
        kin: options.kin.clone(),
        credentials: Credentials::new(options.clients.clone()),
        clients: TaskTracker::new(),
        closing: shutdown.clone(),
        cut: CancellationToken::new(),
    };

    #[cfg(unix)]
    let socket = local::Socket::open(&options.lock)
        .inspect_err(|error| tracing::warn!("the local socket could not be opened: {error}"))
        .ok();
    #[cfg(unix)]
    let socket_path = socket.as_ref().map(|socket| socket.path().to_owned());
    #[cfg(not(unix))]
    let socket_path = None;

    let publish = |port| {
        let api = ApiFile {
            port,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            socket: socket_path.clone(),
        };
        if let Err(error) = options.lock.publish(&api) {
            tracing::warn!("api.json could not be written, so programs cannot find this bridge: {error}");
        }
    };
    let loopback = async {
        let taken = |message| {
            tracing::warn!("{message}");
            publish(None);
            let port = options.port;
            api_state.send_replace(ApiView::PortTaken { port, message });
        };
        if let Some((listener, address)) = bind(options.port, taken, &shutdown).await {
            publish(Some(address.port()));
            api_state.send_replace(ApiView::Listening { port: address.port() });
            house.accept_tcp(listener, address).await;
        }
        options.lock.unpublish();
    };
    #[cfg(unix)]
    let socket_clients = async {
        if let Some(socket) = &socket {
            house.accept_local(socket, &options).await;
        }
    };
    #[cfg(not(unix))]
    let socket_clients = std::future::ready(());
    tokio::join!(loopback, socket_clients);
    house.close().await;
}

/// Keeps trying, and says each time why it must. `None` = shut down before the port was free.
async fn bind(wanted: u16, taken: impl Fn(String), shutdown: &CancellationToken) -> Option<(TcpListener, SocketAddr)> {
    let mut pause = Duration::from_secs(1);
    loop {
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted)).await;
        let error = match bound.and_then(|listener| listener.local_addr().map(|address| (listener, address))) {
            Ok(bound) => return Some(bound),
            Err(error) => error,
        };
        // Looks through all processes.
        let message = tokio::task::spawn_blocking(move || port::refusal(wanted, &error))
            .await
            .unwrap_or_else(|_| format!("Port {wanted} is in use. It is tried again by itself."));
        taken(message);
        tokio::select! {
            () = shutdown.cancelled() => return None,
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_BIND_PAUSE);
    }
}

const LONGEST_BIND_PAUSE: Duration = Duration::from_secs(30);

/// After a failed accept (out of files, mostly): time for connections to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Everything that clients of both doors share.
struct House {
    router: Router,
    limits: Limits,
    programs: ProgramLookup,
    kin: Kin,
    credentials: Credentials,
    clients: TaskTracker,
    /// No new connections or requests.
    closing: CancellationToken,
    /// Whatever still runs ends here.
    cut: CancellationToken,
}

impl House {
    async fn accept_tcp(&self, listener: TcpListener, address: SocketAddr) {
        let lookup = PeerLookup::for_listener(address);
        let places = Places::new(&self.limits);
        let crowd = Crowd::new(self.limits.connections_of_one);
        loop {
            let accepted = tokio::select! {
                () = self.closing.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let (stream, from) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!("a connection could not be taken: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (peer, socket) = match stream.local_addr() {
                Ok(local) => lookup.of(from, local),
                Err(_) => (Peer::Stranger, None),
            };
            let Some((place, lane)) = places.take(peer) else {
                continue;
            };
            let visit = Visit {
                door: Door::Port(address.port()),
                peer,
                lane,
                caller: Caller::WalkIn(
                    socket.map_or_else(ProgramCell::unknown, |socket| self.programs.of_connection(socket)),
                ),
                credentials: self.credentials.clone(),
            };
            // Without it an answer may wait for the client's acknowledgement of an earlier one.
            let _ = stream.set_nodelay(true);
            let arrival = socket.map(|socket| Arrival {
                socket,
                seat: crowd.enter(socket),
                accepted: Instant::now(),
                places: places.clone(),
            });
            self.welcome(stream, visit, arrival, place);
        }
    }

    #[cfg(unix)]
    async fn accept_local(&self, socket: &local::Socket, options: &ServeOptions) {
        let places = Arc::new(Semaphore::new(self.limits.socket_connections));
        loop {
            let place = tokio::select! {
                () = self.closing.cancelled() => return,
                place = places.clone().acquire_owned() => place,
            };
            let Ok(place) = place else { return };
            let accepted = tokio::select! {
                () = self.closing.cancelled() => return,
                accepted = socket.accept() => accepted,
            };
            match accepted {
                Ok(stream) => {
                    let (peer, pid) = super::peer::of_socket(&stream, &options.kin);
                    let caller = match &options.socket_caller {
                        Caller::Owner => Caller::Owner,
                        Caller::WalkIn(_) | Caller::Client { .. } => {
                            Caller::WalkIn(pid.map_or_else(ProgramCell::unknown, |pid| self.programs.of_process(pid)))
                        }
                    };
                    let visit = Visit {
                        door: Door::Socket,
                        peer,
                        lane: Lane::Whole,
                        caller,
                        credentials: self.credentials.clone(),
                    };
                    self.welcome(stream, visit, None, place);
                }
                Err(error) => {
                    tracing::warn!("a connection to the local socket could not be taken: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn welcome<S>(&self, stream: S, mut visit: Visit, arrival: Option<Arrival>, mut place: OwnedSemaphorePermit)
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (kin, router, limits) = (self.kin.clone(), self.router.clone(), self.limits);
        let (closing, cut) = (self.closing.clone(), self.cut.clone());
        let client = async move {
            let mut seat = None;
            if let Some(arrival) = arrival {
                visit.peer = kin.judge(visit.peer, arrival.socket, arrival.accepted).await;
                if arrival.seat.is_one_too_many().await {
                    let Some(reserved) = arrival.places.reserved() else {
                        return;
                    };
                    place = reserved;
                    visit.lane = Lane::CallbackOnly;
                } else {
                    seat = Some(arrival.seat);
                }
            }
            connection::run(stream, visit, router, limits, closing).await;
            drop((place, seat));
        };
        self.clients.spawn(async move {
            cut.run_until_cancelled(client).await;
        });
    }

    async fn close(self) {
        self.clients.close();
        if tokio::time::timeout(self.limits.drain, self.clients.wait())
            .await
            .is_err()
        {
            self.cut.cancel();
            self.clients.wait().await;
        }
    }
}

/// A connection on the loopback port about whose process nothing is known yet.
struct Arrival {
    socket: Socket,
    seat: Seat,
    accepted: Instant,
    places: Places,
}

/// How many more connections on the loopback port there may be. Clones share them.
#[derive(Clone)]
struct Places {
    whole: Arc<Semaphore>,
    callback: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
}

impl Places {
    fn new(limits: &Limits) -> Self {
        Self {
            whole: Arc::new(Semaphore::new(limits.connections)),
            callback: Arc::new(Semaphore::new(limits.callback_connections)),
            strangers: Arc::new(Semaphore::new(limits.stranger_connections)),
        }
    }

    /// A place for a connection of this peer, if one is left.
    fn take(&self, peer: Peer) -> Option<(OwnedSemaphorePermit, Lane)> {
        match peer {
            Peer::Stranger => place(&self.strangers).map(|place| (place, Lane::Whole)),
            Peer::Owner | Peer::Connector | Peer::Hidden | Peer::Unknown => place(&self.whole)
                .map(|place| (place, Lane::Whole))
                .or_else(|| self.reserved().map(|place| (place, Lane::CallbackOnly))),
        }
    }

    /// A place on which only a sign-in may come back.
    fn reserved(&self) -> Option<OwnedSemaphorePermit> {
        place(&self.callback)
    }
}

fn place(from: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    from.clone().try_acquire_owned().ok()
}

#[cfg(unix)]
mod local {
    use std::{
        fs, io,
        os::unix::fs::{FileTypeExt, PermissionsExt},
        path::Path,
    };

    use tokio::net::{UnixListener, UnixStream};

    use crate::home::{HomeLock, SocketPlace};

    /// The local socket, which goes away with this value.
    pub(super) struct Socket {
        listener: UnixListener,
        place: SocketPlace,
    }

    impl Socket {
        /// Replaces what a killed bridge left; that nobody listens there is what the lock proves.
        pub(super) fn open(lock: &HomeLock) -> io::Result<Self> {
            let place = lock.socket_place()?;
            match fs::symlink_metadata(&place.path) {
                Ok(found) if found.file_type().is_socket() => fs::remove_file(&place.path)?,
                Ok(_) => {
                    return Err(io::Error::other(format!(
                        "{} is in the way and no socket; move it away",
                        place.path.display()
                    )));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            let listener = UnixListener::bind(&place.path)?;
            fs::set_permissions(&place.path, fs::Permissions::from_mode(0o600))?;
            Ok(Self { listener, place })
        }

        pub(super) fn path(&self) -> &Path {
            &self.place.path
        }

        pub(super) async fn accept(&self) -> io::Result<UnixStream> {
            self.listener.accept().await.map(|(stream, _)| stream)
        }
    }

    impl Drop for Socket {
        fn drop(&mut self) {
            if let Err(error) = fs::remove_file(&self.place.path) {
                tracing::warn!("could not remove {}: {error}", self.place.path.display());
            }
        }
    }
}

#[cfg(test)]
mod tests;
