//! Keeps connectors' own programs out: whether a connection's other end is held by one of them.
//!
//! Those trees' sockets are searched, once per connection and off the accepting loop, and then the others' until somebody
//! holds the connection: a socket that nobody holds is on its way between two programs. While no connector's program runs
//! it costs nothing. Knows the trees through [`Family`] alone.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, PoisonError},
    time::Instant,
};

use tokio::sync::Mutex;

use super::peer::Peer;
use crate::caller::socket::{self, Socket};

/// The processes of connectors: what was started for them, and what those started.
pub trait Family: Send + Sync {
    /// Whether there can be one at all. Cheap.
    fn is_alive(&self) -> bool;
    /// Whether this process is one. Reads a few files.
    fn has(&self, pid: u32) -> bool;
    /// All of them. Reads the whole process table.
    fn members(&self) -> Vec<u32>;
}

/// The processes that may use neither door.
#[derive(Clone)]
pub struct Kin {
    family: Arc<dyn Family>,
    latest: Arc<Mutex<Option<List>>>,
    /// Who was found last: where one program asks often, nobody else is looked at.
    holders: Arc<std::sync::Mutex<VecDeque<u32>>>,
}

/// Programs that are remembered.
const MOST_HOLDERS: usize = 8;

/// Who holds a connection's other end.
enum Holder {
    Kin,
    Another,
    Nobody,
}

/// All members, as they were some time after `begun`.
struct List {
    begun: Instant,
    members: Arc<[u32]>,
}

impl Kin {
    pub fn new(family: impl Family + 'static) -> Self {
        Self {
            family: Arc::new(family),
            latest: Arc::default(),
            holders: Arc::default(),
        }
    }

    /// For the local socket, where the system names the process.
    pub(super) fn has(&self, pid: u32) -> bool {
        self.family.has(pid)
    }

    /// What the peer is after its process was looked for among the connectors'. `accepted` is when the connection was.
    ///
    /// A search that fails leaves the peer what its user id made it: the socket's owner is known by then, and refusing
    /// would shut out every assistant while a connector runs on a system that hides its processes.
    pub(super) async fn judge(&self, peer: Peer, socket: Socket, accepted: Instant) -> Peer {
        if peer != Peer::Owner || !self.family.is_alive() {
            return peer;
        }
        let found = match socket.process() {
            Some(pid) => {
                let family = self.family.clone();
                tokio::task::spawn_blocking(move || match family.has(pid) {
                    true => Holder::Kin,
                    false => Holder::Another,
                })
                .await
            }
            None => self.search(socket, accepted).await,
        };
        match found {
            Ok(Holder::Kin) => Peer::Connector,
            Ok(Holder::Another) => peer,
            Ok(Holder::Nobody) => Peer::Hidden,
            Err(error) => {
                tracing::error!("could not look whether a connector's program connected: {error}");
                peer
            }
        }
    }

    async fn search(&self, socket: Socket, accepted: Instant) -> Result<Holder, tokio::task::JoinError> {
        let members = self.members(accepted).await?;
        let holders = self.holders.clone();
        tokio::task::spawn_blocking(move || {
            if !socket::holders(socket, Some(&members)).is_empty() {
                return Holder::Kin;
            }
            let known = holders.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match socket::holder_outside(socket, &members, &Vec::from(known)) {
                None => Holder::Nobody,
                Some(pid) => {
                    let mut holders = holders.lock().unwrap_or_else(PoisonError::into_inner);
                    holders.retain(|known| *known != pid);
                    holders.push_front(pid);
                    holders.truncate(MOST_HOLDERS);
                    Holder::Another
                }
            }
        })
        .await
    }

    /// A list that was begun after that moment. Connections that come in together share one.
    async fn members(&self, after: Instant) -> Result<Arc<[u32]>, tokio::task::JoinError> {
        let mut latest = self.latest.lock().await;
        if let Some(list) = &*latest
            && list.begun >= after
        {
            return Ok(list.members.clone());
        }
        let begun = Instant::now();
        let family = self.family.clone();
        let members: Arc<[u32]> = tokio::task::spawn_blocking(move || family.members()).await?.into();
        let list = latest.insert(List { begun, members });
        Ok(list.members.clone())
    }
}

impl fmt::Debug for Kin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kin")
    }
}

/// Nobody's family, for tests.
#[cfg(test)]
pub(super) struct Nobody;

#[cfg(test)]
impl Family for Nobody {
    fn is_alive(&self) -> bool {
        false
    }

    fn has(&self, _pid: u32) -> bool {
        false
    }

    fn members(&self) -> Vec<u32> {
        Vec::new()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use crate::caller::socket::{Whose, whose};

    /// A family of these processes that counts how often it was listed.
    struct Listed {
        members: Vec<u32>,
        times: Arc<AtomicUsize>,
    }

    impl Family for Listed {
        fn is_alive(&self) -> bool {
            !self.members.is_empty()
        }

        fn has(&self, pid: u32) -> bool {
            self.members.contains(&pid)
        }

        fn members(&self) -> Vec<u32> {
            self.times.fetch_add(1, Ordering::Relaxed);
            self.members.clone()
        }
    }

    fn family(members: &[u32]) -> (Kin, Arc<AtomicUsize>) {
        let times = Arc::new(AtomicUsize::new(0));
        let kin = Kin::new(Listed {
            members: members.to_vec(),
            times: times.clone(),
        });
        (kin, times)
    }

    #[tokio::test]
    async fn a_connector_s_end_is_found_and_another_program_s_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let _client = TcpStream::connect(local).unwrap();
        let (_server, peer) = listener.accept().unwrap();
        let Whose::Ours(socket) = whose(peer, local) else {
            panic!("not ours")
        };
        let us = std::process::id();

        let (ours, times) = family(&[us]);
        let now = Instant::now();
        let both = tokio::join!(
            ours.judge(Peer::Owner, socket, now),
            ours.judge(Peer::Owner, socket, now)
        );
        assert_eq!(both, (Peer::Connector, Peer::Connector));
        assert_eq!(
            times.load(Ordering::Relaxed),
            1,
            "both came in before the list was begun"
        );
        ours.judge(Peer::Owner, socket, Instant::now()).await;
        assert_eq!(
            times.load(Ordering::Relaxed),
            2,
            "a list from before it came in proves nothing"
        );

        let (others, _) = family(&[1]);
        assert_eq!(others.judge(Peer::Owner, socket, now).await, Peer::Owner);
        let (none, times) = family(&[]);
        assert_eq!(none.judge(Peer::Owner, socket, now).await, Peer::Owner);
        assert_eq!(times.load(Ordering::Relaxed), 0);
        assert_eq!(ours.judge(Peer::Stranger, socket, now).await, Peer::Stranger);
        assert_eq!(ours.judge(Peer::Unknown, socket, now).await, Peer::Unknown);
    }
}
