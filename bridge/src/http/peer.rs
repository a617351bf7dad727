//! Whose program is at the other end of a connection: by user, and whether it is a connector's.
//!
//! One exact look-up per connection. Knows nothing of what the peer may do.

use std::net::SocketAddr;

use crate::caller::socket::{self, Socket, Whose};

/// What is known about the peer's user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// The user this bridge runs as.
    Owner,
    /// Another user. Also a peer that is gone already, which could have been anybody's.
    Stranger,
    /// A connector's program, or one that it started, of the user this bridge runs as.
    Connector,
    /// Of the user this bridge runs as, while a connector's program runs, and no process is found that holds its end: a
    /// connector's program can hide so.
    Hidden,
    /// The system cannot tell.
    Unknown,
}

/// Looks up the users behind loopback connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerLookup {
    works: bool,
}

impl PeerLookup {
    /// Tries the look-up on our own listening socket.
    pub(super) fn for_listener(listener: SocketAddr) -> Self {
        let works = socket::can_tell(listener);
        if !works {
            tracing::warn!(
                "this system does not tell which user connects; other users of this computer are not refused"
            );
        }
        Self { works }
    }

    /// The user of the socket that is `peer` and connected to our `local`, and that socket where it is ours.
    pub(super) fn of(self, peer: SocketAddr, local: SocketAddr) -> (Peer, Option<Socket>) {
        if !self.works {
            return (Peer::Unknown, None);
        }
        match socket::whose(peer, local) {
            Whose::Ours(socket) => (Peer::Owner, Some(socket)),
            Whose::Others => (Peer::Stranger, None),
        }
    }
}

/// The user and process of a local socket's peer, which the system always knows.
#[cfg(unix)]
pub(super) fn of_socket(stream: &tokio::net::UnixStream, kin: &super::kin::Kin) -> (Peer, Option<u32>) {
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == rustix::process::geteuid().as_raw() => {
            match peer.pid().and_then(|pid| u32::try_from(pid).ok()) {
                Some(pid) if kin.has(pid) => (Peer::Connector, Some(pid)),
                // A system that tells no process tells no connector's either.
                pid => (Peer::Owner, pid),
            }
        }
        Ok(_) | Err(_) => (Peer::Stranger, None),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_look_up_that_never_works_says_so() {
        let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let lookup = PeerLookup::for_listener(unused);
        assert_eq!(lookup.of("127.0.0.1:1".parse().unwrap(), unused), (Peer::Unknown, None));
    }
}
