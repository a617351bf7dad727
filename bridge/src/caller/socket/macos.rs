//! libproc: which of this user's processes holds a socket, by looking through their open files (`<sys/proc_info.h>`).
//! That takes milliseconds, but there is no shorter way.

use std::{
    collections::HashMap,
    ffi::{c_int, c_void},
    mem::size_of,
    net::{IpAddr, SocketAddr},
    ptr,
};

use super::{Socket, Whose};

const PROC_UID_ONLY: u32 = 4;
const PROC_PIDLISTFDS: c_int = 1;
const PROC_PIDFDSOCKETINFO: c_int = 3;
const PROX_FDTYPE_SOCKET: u32 = 2;
const SOCKINFO_TCP: i32 = 2;

/// `struct socket_fdinfo` and the offsets in it: `proc_fileinfo` has 24 bytes, `soi_kind` and `soi_proto` of
/// `socket_info` stand at 232 and 240.
const SOCKET_INFO: usize = 792;
const KIND: usize = 24 + 232;
const FOREIGN_PORT: usize = 24 + 240;
const LOCAL_PORT: usize = FOREIGN_PORT + 4;
/// The last four bytes of `insi_faddr` and `insi_laddr` hold an IPv4 address.
const FOREIGN_ADDRESS: usize = FOREIGN_PORT + 32 + 12;
const LOCAL_ADDRESS: usize = FOREIGN_PORT + 48 + 12;

/// `struct proc_fdinfo`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Descriptor {
    number: i32,
    kind: u32,
}

pub(super) fn can_tell(listener: SocketAddr) -> bool {
    let nobody = SocketAddr::new(IpAddr::from([0, 0, 0, 0]), 0);
    holds(std::process::id(), listener, nobody)
}

/// Other users' processes cannot be looked into, so a socket that none of ours holds is another's.
pub(super) fn whose(peer: SocketAddr, local: SocketAddr) -> Whose {
    match our_processes().into_iter().find(|pid| holds(*pid, peer, local)) {
        Some(pid) => Whose::Ours(Socket {
            peer,
            local,
            id: pid.into(),
        }),
        None => Whose::Others,
    }
}

/// Known from the look-up of the user.
/// The process was named with its user.
pub(super) fn holder_outside(socket: Socket, of: &[u32], _first: &[u32]) -> Option<u32> {
    socket.process().filter(|pid| !of.contains(pid))
}

pub(super) fn processes(sockets: &[Socket]) -> HashMap<u64, u32> {
    sockets
        .iter()
        .filter_map(|socket| Some((socket.id, socket.process()?)))
        .collect()
}

pub(super) fn holders(socket: Socket, among: Option<&[u32]>) -> Vec<u32> {
    let mut candidates = among.map_or_else(our_processes, <[u32]>::to_vec);
    candidates.retain(|pid| holds(*pid, socket.peer, socket.local));
    candidates
}

fn our_processes() -> Vec<u32> {
    // SAFETY: a system call without pointers.
    let us = unsafe { libc::geteuid() };
    // SAFETY: without a buffer only the size is told.
    let size = unsafe { libc::proc_listpids(PROC_UID_ONLY, us, ptr::null_mut(), 0) };
    // Some may start meanwhile.
    let mut pids = vec![0_u32; usize::try_from(size).unwrap_or(0) / size_of::<u32>() + 64];
    let room = c_int::try_from(pids.len() * size_of::<u32>()).unwrap_or(c_int::MAX);
    // SAFETY: the system writes at most `room` bytes, the buffer's own.
    let written = unsafe { libc::proc_listpids(PROC_UID_ONLY, us, pids.as_mut_ptr().cast::<c_void>(), room) };
    pids.truncate(usize::try_from(written).unwrap_or(0) / size_of::<u32>());
    pids.retain(|pid| *pid != 0);
    pids
}

/// Whether the process holds the IPv4 socket that is bound to `here` and connected to `there`.
fn holds(pid: u32, here: SocketAddr, there: SocketAddr) -> bool {
    let Ok(pid) = c_int::try_from(pid) else { return false };
    descriptors(pid)
        .into_iter()
        .filter(|descriptor| descriptor.kind == PROX_FDTYPE_SOCKET)
        .filter_map(|descriptor| ends(pid, descriptor.number))
        .any(|ends| ends == (here, there))
}

fn descriptors(pid: c_int) -> Vec<Descriptor> {
    // SAFETY: without a buffer only the size is told.
    let size = unsafe { libc::proc_pidinfo(pid, PROC_PIDLISTFDS, 0, ptr::null_mut(), 0) };
    let mut all = vec![Descriptor::default(); usize::try_from(size).unwrap_or(0) / size_of::<Descriptor>() + 16];
    let room = c_int::try_from(all.len() * size_of::<Descriptor>()).unwrap_or(c_int::MAX);
    // SAFETY: the system writes at most `room` bytes, the buffer's own.
    let written = unsafe { libc::proc_pidinfo(pid, PROC_PIDLISTFDS, 0, all.as_mut_ptr().cast::<c_void>(), room) };
    all.truncate(usize::try_from(written).unwrap_or(0) / size_of::<Descriptor>());
    all
}

/// Where an IPv4 socket is bound and connected to.
fn ends(pid: c_int, descriptor: i32) -> Option<(SocketAddr, SocketAddr)> {
    let mut info = [0_u8; SOCKET_INFO];
    let room = c_int::try_from(SOCKET_INFO).ok()?;
    // SAFETY: the system writes at most `room` bytes, the buffer's own.
    let written = unsafe {
        libc::proc_pidfdinfo(
            pid,
            descriptor,
            PROC_PIDFDSOCKETINFO,
            info.as_mut_ptr().cast::<c_void>(),
            room,
        )
    };
    let four = |at: usize| info.get(at..at + 4)?.try_into().ok();
    if written != room || i32::from_ne_bytes(four(KIND)?) != SOCKINFO_TCP {
        return None;
    }
    // An int that holds a port in network order.
    let port = |at| Some(u16::from_be_bytes([*info.get(at)?, *info.get(at + 1)?]));
    let address = |at| Some(IpAddr::from(<[u8; 4]>::from(four(at)?)));
    Some((
        SocketAddr::new(address(LOCAL_ADDRESS)?, port(LOCAL_PORT)?),
        SocketAddr::new(address(FOREIGN_ADDRESS)?, port(FOREIGN_PORT)?),
    ))
}
