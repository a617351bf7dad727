//! `sock_diag(7)`: one request, one answer, about one TCP socket.

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

pub(super) struct Found {
    pub(super) uid: u32,
    pub(super) inode: u32,
}

/// The TCP socket bound to `source` and connected to `destination` (0.0.0.0:0 for one that listens).
/// `NOENT` = there is none, or the kernel cannot tell.
pub(super) fn find(source: SocketAddr, destination: SocketAddr) -> Result<Found, Errno> {
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

fn read(answer: &[u8]) -> Result<Found, Errno> {
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
            (Some(uid), Some(inode)) => Ok(Found { uid, inode }),
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
