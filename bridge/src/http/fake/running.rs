//! The server that the fake stands behind.

use std::{net::SocketAddr, sync::Arc};

use tempfile::TempDir;
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    sync::{mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::{FakeApi, Reply};
use crate::{
    caller::Caller,
    home::{Home, HomeLock},
    http::{
        Limits, ServeOptions,
        credential::{Clients, NoClients},
        kin::{Kin, Nobody},
        routes,
        server::serve_router,
    },
    snapshot::ApiView,
};

/// A server over a [`FakeApi`] in a home of its own.
pub(in crate::http) struct Running {
    pub(in crate::http) api: FakeApi,
    pub(in crate::http) hangs: mpsc::UnboundedReceiver<&'static str>,
    pub(in crate::http) address: SocketAddr,
    pub(in crate::http) lock: Arc<HomeLock>,
    pub(in crate::http) shutdown: CancellationToken,
    pub(in crate::http) task: JoinHandle<()>,
    _folder: TempDir,
}

impl Running {
    pub(in crate::http) async fn start() -> Self {
        Self::start_with(Limits::default()).await
    }

    pub(in crate::http) async fn start_with(limits: Limits) -> Self {
        Self::start_for(limits, Arc::new(NoClients)).await
    }

    /// With these clients.
    pub(in crate::http) async fn start_for(limits: Limits, clients: Arc<dyn Clients>) -> Self {
        let (folder, lock) = home();
        let (api, hangs) = FakeApi::new();
        let shutdown = CancellationToken::new();
        let (state, mut watched) = watch::channel(ApiView::Starting { port: 0 });
        let router = routes::router(api.clone(), shutdown.clone());
        let options = ServeOptions {
            port: 0,
            lock: lock.clone(),
            socket_caller: Caller::Owner,
            kin: Kin::new(Nobody),
            clients,
            limits,
        };
        let task = tokio::spawn(serve_router(router, options, state, shutdown.clone()));
        let port = listening(&mut watched).await;
        Self {
            api,
            hangs,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            lock,
            shutdown,
            task,
            _folder: folder,
        }
    }

    /// Sends these bytes on a connection of their own and reads one answer.
    pub(in crate::http) async fn ask(&self, bytes: impl AsRef<[u8]>) -> Reply {
        let mut stream = self.connect().await;
        // A refusal may close the connection while the rest is on its way.
        let _ = stream.write_all(bytes.as_ref()).await;
        Reply::read(&mut stream).await
    }

    pub(in crate::http) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    #[cfg(unix)]
    pub(in crate::http) async fn connect_local(&self) -> tokio::net::UnixStream {
        tokio::net::UnixStream::connect(self.lock.home().socket_path())
            .await
            .unwrap()
    }

    pub(in crate::http) async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.unwrap();
    }
}

pub(in crate::http) fn home() -> (TempDir, Arc<HomeLock>) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path()).unwrap();
    home.prepare().unwrap();
    let lock = Arc::new(home.lock("test").unwrap());
    (folder, lock)
}

/// Waits until the port is bound.
pub(in crate::http) async fn listening(state: &mut watch::Receiver<ApiView>) -> u16 {
    let is_bound = |view: &ApiView| matches!(view, ApiView::Listening { .. });
    match &*state.wait_for(is_bound).await.unwrap() {
        ApiView::Listening { port } => *port,
        ApiView::Starting { .. } | ApiView::PortTaken { .. } => unreachable!(),
    }
}
