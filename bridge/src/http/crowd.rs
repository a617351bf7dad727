//! Keeps one process from taking more than its half of the connections.
//!
//! Which process holds a connection is only looked for while more are open than one may have, and then for all of them
//! in one pass. Owns the list of open connections on the loopback port; what becomes of one too many is for `server`.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::caller::socket::{self, Socket};

/// The open connections. Clones share them.
#[derive(Clone)]
pub(super) struct Crowd(Arc<Shared>);

struct Shared {
    most_of_one: usize,
    next: AtomicU64,
    open: Mutex<HashMap<u64, Open>>,
    /// One search at a time; whoever comes meanwhile is found by the next.
    search: tokio::sync::Mutex<()>,
}

struct Open {
    socket: Socket,
    process: Process,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Process {
    NotLookedFor,
    /// Gone, or hidden from us.
    Unknown,
    Is(u32),
}

/// One open connection, which leaves the list when this is dropped.
pub(super) struct Seat {
    crowd: Crowd,
    number: u64,
}

impl Crowd {
    pub(super) fn new(most_of_one: usize) -> Self {
        Self(Arc::new(Shared {
            most_of_one,
            next: AtomicU64::new(0),
            open: Mutex::default(),
            search: tokio::sync::Mutex::default(),
        }))
    }

    pub(super) fn enter(&self, socket: Socket) -> Seat {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let process = Process::NotLookedFor;
        self.open().insert(number, Open { socket, process });
        Seat {
            crowd: self.clone(),
            number,
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Open>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for the processes of all connections that have none yet.
    async fn search(&self) {
        let new: Vec<_> = {
            let open = self.open();
            let new = open.iter().filter(|(_, open)| open.process == Process::NotLookedFor);
            new.map(|(number, open)| (*number, open.socket)).collect()
        };
        if new.is_empty() {
            return;
        }
        let sockets: Vec<_> = new.iter().map(|(_, socket)| *socket).collect();
        let found = tokio::task::spawn_blocking(move || socket::processes(&sockets))
            .await
            .unwrap_or_default();
        let mut open = self.open();
        for (number, socket) in new {
            if let Some(open) = open.get_mut(&number) {
                open.process = found.get(&socket.id).map_or(Process::Unknown, |pid| Process::Is(*pid));
            }
        }
    }
}

impl Seat {
    /// Whether its process had its share already when this connection came. Blocks nobody else.
    pub(super) async fn is_one_too_many(&self) -> bool {
        let most = self.crowd.0.most_of_one;
        if self.crowd.open().len() <= most {
            return false;
        }
        let _turn = self.crowd.0.search.lock().await;
        self.crowd.search().await;
        let open = self.crowd.open();
        let Some(Process::Is(pid)) = open.get(&self.number).map(|own| own.process) else {
            return false;
        };
        let earlier = open
            .iter()
            .filter(|(number, open)| **number < self.number && open.process == Process::Is(pid));
        earlier.count() >= most
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.crowd.open().remove(&self.number);
    }
}
