//! Whose program is at the other end of a connection: by user id, over the local socket also by process.
//!
//! One exact lookup per connection. Knows nothing of what the peer may do.

#[cfg(target_os = "linux")]
use std::net::{IpAddr, SocketAddr};
use std::{fmt, sync::Arc};

/// What is known about the peer's user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// The user this bridge runs as.
    Owner,
    /// Another user. Also a peer that is gone already, which could have been anybody's.
    Stranger,
    /// A connector's program, or one that it started, of the user this bridge runs as.
    Connector,
    /// The system cannot tell.
    Unknown,
}

/// Tells by its id whether a process belongs to a connector.
#[derive(Clone)]
pub struct Kin(Arc<dyn Fn(u32) -> bool + Send + Sync>);

impl Kin {
    pub fn new(is_kin: impl Fn(u32) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_kin))
    }
}

impl fmt::Debug for Kin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kin")
    }
}

/// Looks up the users behind loopback connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerLookup {
    #[cfg(target_os = "linux")]
    works: bool,
}

#[cfg(target_os = "linux")]
impl PeerLookup {
    /// Tries the lookup on our own listening socket: a kernel without it answers like one that does not know the peer.
    pub(super) fn for_listener(listener: SocketAddr) -> Self {
        let nobody = SocketAddr::new(IpAddr::from([0, 0, 0, 0]), 0);
        let works = sock_diag::find(listener, nobody).is_ok();
        if !works {
            tracing::warn!(
                "this system does not tell which user connects; other users of this computer are not refused"
            );
        }
        Self { works }
    }

    /// The user of the socket that is `peer` and connected to our `local`.
    pub(super) fn of(self, peer: SocketAddr, local: SocketAddr) -> Peer {
        if !self.works {
            return Peer::Unknown;
        }
        let found = sock_diag::find(peer, local);
        if let Err(error) = &found
            && *error != rustix::io::Errno::NOENT
        {
            tracing::warn!("the user behind {peer} could not be looked up and is refused: {error}");
        }
        judge(found.map(|socket| (socket.uid, socket.inode)))
    }
}

/// What an answer of a lookup that works says, as user id and inode. One that fails now and then (no files left, say)
/// must not let everybody in meanwhile.
#[cfg(target_os = "linux")]
fn judge(found: Result<(u32, u32), rustix::io::Errno>) -> Peer {
    match found {
        Ok((uid, inode)) if inode != 0 && uid == our_uid() => Peer::Owner,
        // Without an inode nobody holds the socket any more, and its user reads as 0.
        Ok(_) | Err(_) => Peer::Stranger,
    }
}

/// Not implemented for this system, so the lookup is impossible.
#[cfg(not(target_os = "linux"))]
impl PeerLookup {
    pub(super) fn for_listener(_listener: std::net::SocketAddr) -> Self {
        Self {}
    }

    pub(super) fn of(self, _peer: std::net::SocketAddr, _local: std::net::SocketAddr) -> Peer {
        Peer::Unknown
    }
}

/// The user and process of a local socket's peer, which the system always knows.
#[cfg(unix)]
pub(super) fn of_socket(stream: &tokio::net::UnixStream, kin: &Kin) -> Peer {
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == our_uid() => match peer.pid().and_then(|pid| u32::try_from(pid).ok()) {
            Some(pid) if (kin.0)(pid) => Peer::Connector,
            // A system that tells no process tells no connector's either.
            Some(_) | None => Peer::Owner,
        },
        Ok(_) | Err(_) => Peer::Stranger,
    }
}

#[cfg(unix)]
fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// `sock_diag(7)`: one request, one answer, about one TCP socket.
#[cfg(target_os = "linux")]
mod sock_diag {
    use std::{
        net::{IpAddr, SocketAddr},
        time::Duration,
    };

    use rustix::{
        io::Errno,
        net::{
            AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
            sockopt::{Timeout, set_socket_timeout},
        },
    };

    /// The kernel answers within the call; this only keeps a surprise from holding up the program.
    const ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLM_F_REQUEST: u16 = 1;
    const NLMSG_ERROR: u16 = 2;
    const AF_INET: u8 = 2;
    const AF_INET6: u8 = 10;
    const IPPROTO_TCP: u8 = 6;
    const HEADER: usize = 16;
    const REQUEST: usize = HEADER + 56;
    /// Offsets in `struct inet_diag_msg`, after the netlink header.
    const UID: usize = HEADER + 64;
    const INODE: usize = HEADER + 68;

    pub(super) struct Socket {
        pub(super) uid: u32,
        pub(super) inode: u32,
    }

    /// The TCP socket bound to `source` and connected to `destination` (0.0.0.0:0 for one that listens).
    /// `NOENT` = there is none, or the kernel cannot tell.
    pub(super) fn find(source: SocketAddr, destination: SocketAddr) -> Result<Socket, Errno> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_TIMEOUT))?;
        send(&socket, &request(source, destination), SendFlags::empty())?;
        let mut answer = [0; 1024];
        let (_, length) = recv(&socket, &mut answer, RecvFlags::empty())?;
        read(answer.get(..length).unwrap_or_default())
    }

    fn request(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
        let mut out = Vec::with_capacity(REQUEST);
        // struct nlmsghdr
        out.extend((REQUEST as u32).to_ne_bytes());
        out.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        out.extend(NLM_F_REQUEST.to_ne_bytes());
        out.extend([0; 8]);
        // struct inet_diag_req_v2
        out.push(if source.is_ipv4() { AF_INET } else { AF_INET6 });
        out.push(IPPROTO_TCP);
        out.extend([0; 2]);
        out.extend(u32::MAX.to_ne_bytes());
        // struct inet_diag_sockid
        out.extend(source.port().to_be_bytes());
        out.extend(destination.port().to_be_bytes());
        for address in [source.ip(), destination.ip()] {
            match address {
                IpAddr::V4(four) => {
                    out.extend(four.octets());
                    out.extend([0; 12]);
                }
                IpAddr::V6(six) => out.extend(six.octets()),
            }
        }
        out.extend(0_u32.to_ne_bytes());
        // INET_DIAG_NOCOOKIE
        out.extend([0xff; 8]);
        out
    }

    fn read(answer: &[u8]) -> Result<Socket, Errno> {
        let number = |at: usize| {
            let bytes = answer.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_ne_bytes(bytes))
        };
        let kind = answer
            .get(4..6)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u16::from_ne_bytes);
        match kind {
            Some(SOCK_DIAG_BY_FAMILY) => match (number(UID), number(INODE)) {
                (Some(uid), Some(inode)) => Ok(Socket { uid, inode }),
                _ => Err(Errno::PROTO),
            },
            Some(NLMSG_ERROR) => {
                let code = number(HEADER).map_or(0, |code| (code as i32).wrapping_neg());
                Err(if code > 0 {
                    Errno::from_raw_os_error(code)
                } else {
                    Errno::PROTO
                })
            }
            _ => Err(Errno::PROTO),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn an_answer_that_is_cut_or_of_another_kind_is_an_error() {
            for answer in [&[][..], &[0; 16], &[0; 4]] {
                assert!(read(answer).is_err());
            }
            let mut short = vec![0; 40];
            short[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
            assert_eq!(read(&short).err(), Some(Errno::PROTO));
            let mut missing = vec![0; 36];
            missing[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
            missing[16..20].copy_from_slice(&(-2_i32).to_ne_bytes());
            assert_eq!(read(&missing).err(), Some(Errno::NOENT));
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_lookup_that_fails_lets_nobody_in() {
        let us = our_uid();
        assert_eq!(judge(Ok((us, 1))), Peer::Owner);
        for nobody in [
            Ok((us, 0)),
            Ok((us + 1, 1)),
            Err(rustix::io::Errno::NOENT),
            Err(rustix::io::Errno::MFILE),
            Err(rustix::io::Errno::AGAIN),
        ] {
            assert_eq!(judge(nobody), Peer::Stranger, "{nobody:?}");
        }
    }

    #[test]
    fn our_own_connection_is_the_owners_and_a_closed_or_unknown_one_nobodys() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let lookup = PeerLookup::for_listener(local);
        let client = TcpStream::connect(local).unwrap();
        let (server, peer) = listener.accept().unwrap();
        assert_eq!(lookup.of(peer, server.local_addr().unwrap()), Peer::Owner);
        drop(client);
        assert_eq!(lookup.of(peer, server.local_addr().unwrap()), Peer::Stranger);
        assert_eq!(lookup.of("127.0.0.1:1".parse().unwrap(), local), Peer::Stranger);
    }

    #[test]
    fn a_lookup_that_never_works_says_so() {
        let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let lookup = PeerLookup::for_listener(unused);
        assert_eq!(lookup.of("127.0.0.1:1".parse().unwrap(), unused), Peer::Unknown);
    }
}
