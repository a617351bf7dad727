//! The table of connections with their processes, and the users of those.

use std::{
    collections::HashMap,
    ffi::c_void,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    ptr,
};

use windows_sys::Win32::{
    Foundation::{CloseHandle, HANDLE, NO_ERROR},
    NetworkManagement::IpHelper::{
        GetExtendedTcpTable, MIB_TCPROW_OWNER_PID, TCP_TABLE_CLASS, TCP_TABLE_OWNER_PID_CONNECTIONS,
        TCP_TABLE_OWNER_PID_LISTENER,
    },
    Networking::WinSock::AF_INET,
    Security::{EqualSid, GetTokenInformation, TOKEN_QUERY, TOKEN_USER, TokenUser},
    System::Threading::{GetCurrentProcess, OpenProcess, OpenProcessToken, PROCESS_QUERY_LIMITED_INFORMATION},
};

use super::{Socket, Whose};

/// The table grows while it is read; then it is read again.
const READS: usize = 4;

pub(super) fn can_tell(listener: SocketAddr) -> bool {
    let own = std::process::id();
    table(TCP_TABLE_OWNER_PID_LISTENER)
        .iter()
        .any(|row| row.here == listener && row.pid == own)
        && user_of(own).is_some()
}

pub(super) fn whose(peer: SocketAddr, local: SocketAddr) -> Whose {
    match holder(peer, local) {
        Some(pid) if is_our_user(pid) => Whose::Ours(Socket {
            peer,
            local,
            id: pid.into(),
        }),
        Some(_) | None => Whose::Others,
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
    holder(socket.peer, socket.local)
        .filter(|pid| among.is_none_or(|among| among.contains(pid)))
        .into_iter()
        .collect()
}

fn holder(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    table(TCP_TABLE_OWNER_PID_CONNECTIONS)
        .into_iter()
        .find(|row| row.here == peer && row.there == local)
        .map(|row| row.pid)
        .filter(|pid| *pid != 0)
}

struct Row {
    here: SocketAddr,
    there: SocketAddr,
    pid: u32,
}

fn table(class: TCP_TABLE_CLASS) -> Vec<Row> {
    let mut size = 64 * 1024_u32;
    for _ in 0..READS {
        // Of u32, for the table's alignment.
        let mut buffer = vec![0_u32; size as usize / 4 + 1];
        size = u32::try_from(buffer.len() * 4).unwrap_or(u32::MAX);
        // SAFETY: the system writes at most `size` bytes, the buffer's own.
        let result = unsafe {
            GetExtendedTcpTable(
                buffer.as_mut_ptr().cast::<c_void>(),
                &raw mut size,
                0,
                u32::from(AF_INET),
                class,
                0,
            )
        };
        if result == NO_ERROR {
            return rows(&buffer);
        }
    }
    Vec::new()
}

/// `MIB_TCPTABLE_OWNER_PID`: the count, then that many rows; both of u32 alone.
fn rows(buffer: &[u32]) -> Vec<Row> {
    const WORDS: usize = size_of::<MIB_TCPROW_OWNER_PID>() / 4;
    let Some((count, rest)) = buffer.split_first() else {
        return Vec::new();
    };
    let end = |address: u32, port: u32| {
        // Both in network order.
        let port = u16::from_be(port as u16);
        SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::from(address.to_ne_bytes()), port))
    };
    rest.chunks_exact(WORDS)
        .take(*count as usize)
        .filter_map(|row| match *row {
            [_state, here, here_port, there, there_port, pid] => Some(Row {
                here: end(here, here_port),
                there: end(there, there_port),
                pid,
            }),
            _ => None,
        })
        .collect()
}

fn is_our_user(pid: u32) -> bool {
    let (Some(theirs), Some(ours)) = (user_of(pid), user_of(std::process::id())) else {
        return false;
    };
    // SAFETY: both buffers begin with a TOKEN_USER whose SID the system wrote into the same buffer.
    unsafe {
        let theirs = (*theirs.as_ptr().cast::<TOKEN_USER>()).User.Sid;
        let ours = (*ours.as_ptr().cast::<TOKEN_USER>()).User.Sid;
        EqualSid(theirs, ours) != 0
    }
}

/// The `TOKEN_USER` of a process, in a buffer that is aligned for it.
fn user_of(pid: u32) -> Option<Vec<u64>> {
    let process = Handle::process(pid)?;
    let mut token: HANDLE = ptr::null_mut();
    // SAFETY: a handle that is open, and a place for the one that is opened.
    if unsafe { OpenProcessToken(process.0, TOKEN_QUERY, &raw mut token) } == 0 {
        return None;
    }
    let token = Handle(token);
    let mut buffer = vec![0_u64; 32];
    let room = u32::try_from(buffer.len() * 8).ok()?;
    let mut written = 0;
    // SAFETY: the system writes at most `room` bytes, the buffer's own; a SID has at most 68.
    let done = unsafe {
        GetTokenInformation(
            token.0,
            TokenUser,
            buffer.as_mut_ptr().cast::<c_void>(),
            room,
            &raw mut written,
        )
    };
    (done != 0).then_some(buffer)
}

/// Closed when dropped.
struct Handle(HANDLE);

impl Handle {
    fn process(pid: u32) -> Option<Self> {
        // SAFETY: system calls without pointers. Our own pseudo-handle need not be closed, but may.
        let handle = unsafe {
            if pid == std::process::id() {
                GetCurrentProcess()
            } else {
                OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid)
            }
        };
        (!handle.is_null()).then_some(Self(handle))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and open.
        unsafe { CloseHandle(self.0) };
    }
}
