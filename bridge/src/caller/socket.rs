//! The other end of a connection on the loopback port: whose it is, and which processes hold it.
//!
//! One exact question to the system each, one way per system. Draws no conclusion.

use std::{collections::HashMap, net::SocketAddr};

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(windows)]
use windows as system;

/// A client's end of one connection, by the system's own name for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Socket {
    /// As the client sees it: where it is bound and where it is connected to.
    pub peer: SocketAddr,
    pub local: SocketAddr,
    /// Linux: the inode. Elsewhere: the process that was found holding it.
    pub id: u64,
}

impl Socket {
    /// The process, where the look-up of its user has named it already.
    pub(crate) fn process(&self) -> Option<u32> {
        if cfg!(target_os = "linux") {
            None
        } else {
            u32::try_from(self.id).ok()
        }
    }
}

/// Whose a client's end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours(Socket),
    /// Another user's, nobody's any more, or one that could not be looked up this time.
    Others,
}

#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod known {
    use super::{HashMap, Socket, SocketAddr, Whose, system};

    /// Whether this system tells whose a connection is; asked once, about our own listening socket.
    pub(crate) fn can_tell(listener: SocketAddr) -> bool {
        system::can_tell(listener)
    }

    /// Whose the socket is that is bound to `peer` and connected to our `local`.
    pub(crate) fn whose(peer: SocketAddr, local: SocketAddr) -> Whose {
        system::whose(peer, local)
    }

    /// The processes of this user that hold the socket, of those in `among` (all, if it is `None`). Blocks for
    /// milliseconds.
    pub(crate) fn holders(socket: Socket, among: Option<&[u32]>) -> Vec<u32> {
        system::holders(socket, among)
    }

    /// A process of this user, and not of those, that holds the socket; `first` are looked at first, then the latest ones.
    /// Blocks for milliseconds.
    pub(crate) fn holder_outside(socket: Socket, of: &[u32], first: &[u32]) -> Option<u32> {
        system::holder_outside(socket, of, first)
    }

    /// A process of each of these sockets, by the socket's id, in one pass. Blocks for milliseconds.
    pub(crate) fn processes(sockets: &[Socket]) -> HashMap<u64, u32> {
        system::processes(sockets)
    }
}

/// Not implemented for this system, so a look-up is impossible.
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod known {
    use super::{HashMap, Socket, SocketAddr, Whose};

    pub(crate) fn can_tell(_listener: SocketAddr) -> bool {
        false
    }

    pub(crate) fn whose(_peer: SocketAddr, _local: SocketAddr) -> Whose {
        Whose::Others
    }

    pub(crate) fn holders(_socket: Socket, _among: Option<&[u32]>) -> Vec<u32> {
        Vec::new()
    }

    pub(crate) fn holder_outside(_socket: Socket, _of: &[u32], _first: &[u32]) -> Option<u32> {
        None
    }

    pub(crate) fn processes(_sockets: &[Socket]) -> HashMap<u64, u32> {
        HashMap::new()
    }
}

pub(crate) use known::{can_tell, holder_outside, holders, processes, whose};
