//! The kernel's own table for the user, `/proc/<pid>/fd` for the processes.

use std::{
    collections::{HashMap, HashSet},
    fs,
    net::{IpAddr, SocketAddr},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use rustix::io::Errno;

use super::{Socket, Whose};

mod sock_diag;

/// A kernel without the look-up answers like one that does not know the socket.
pub(super) fn can_tell(listener: SocketAddr) -> bool {
    let nobody = SocketAddr::new(IpAddr::from([0, 0, 0, 0]), 0);
    sock_diag::find(listener, nobody).is_ok()
}

pub(super) fn whose(peer: SocketAddr, local: SocketAddr) -> Whose {
    let found = sock_diag::find(peer, local);
    if let Err(error) = &found
        && *error != Errno::NOENT
    {
        tracing::warn!("the user behind {peer} could not be looked up and is refused: {error}");
    }
    match judge(found.map(|found| (found.uid, found.inode))) {
        Some(inode) => Whose::Ours(Socket {
            peer,
            local,
            id: inode.into(),
        }),
        None => Whose::Others,
    }
}

/// The inode of a socket of ours, from an answer's user id and inode. A look-up that fails now and then (no files left,
/// say) must not let everybody in meanwhile.
fn judge(found: Result<(u32, u32), Errno>) -> Option<u32> {
    match found {
        // Without an inode nobody holds the socket any more, and its user reads as 0.
        Ok((uid, inode)) if inode != 0 && uid == our_uid() => Some(inode),
        Ok(_) | Err(_) => None,
    }
}

fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

pub(super) fn holders(socket: Socket, among: Option<&[u32]>) -> Vec<u32> {
    let target = format!("socket:[{}]", socket.id);
    let holds = |pid: &u32| holds(Path::new(&format!("/proc/{pid}/fd")), &target);
    match among {
        Some(among) => {
            let any_holds = |pid: &u32| holds(pid) || threads_hold(*pid, &target);
            among.iter().copied().filter(any_holds).collect()
        }
        None => our_processes().filter(holds).collect(),
    }
}

pub(super) fn holder_outside(socket: Socket, of: &[u32], first: &[u32]) -> Option<u32> {
    let target = format!("socket:[{}]", socket.id);
    let of: HashSet<u32> = of.iter().copied().collect();
    let mut others: Vec<u32> = our_processes().collect();
    // Whoever connects was often started for just that.
    others.sort_unstable_by(|a, b| b.cmp(a));
    let all = first
        .iter()
        .copied()
        .filter(|pid| others.contains(pid))
        .chain(others.iter().copied());
    let mut all = all.filter(|pid| !of.contains(pid));
    all.find(|pid| holds(Path::new(&format!("/proc/{pid}/fd")), &target))
}

/// Threads of a process that have files of their own (`CLONE_FILES` undone), which its own list does not show.
fn threads_with_files(pid: u32) -> impl Iterator<Item = u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let ids = threads
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(move |thread| *thread != pid && !shares_files(pid, *thread))
}

fn threads_hold(pid: u32, target: &str) -> bool {
    threads_with_files(pid).any(|thread| holds(Path::new(&format!("/proc/{thread}/fd")), target))
}

/// `kcmp(2)`. False where the system does not tell.
fn shares_files(one: u32, other: u32) -> bool {
    const KCMP_FILES: libc::c_int = 2;
    // SAFETY: a system call without pointers.
    let compared = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_FILES, 0_usize, 0_usize) };
    compared == 0
}

pub(super) fn processes(sockets: &[Socket]) -> HashMap<u64, u32> {
    let wanted: HashSet<u64> = sockets.iter().map(|socket| socket.id).collect();
    let mut found = HashMap::new();
    for pid in our_processes() {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let inodes = files.filter_map(|file| {
            let target = fs::read_link(file.path()).ok()?;
            target
                .to_str()?
                .strip_prefix("socket:[")?
                .strip_suffix(']')?
                .parse()
                .ok()
        });
        found.extend(inodes.filter(|inode| wanted.contains(inode)).map(|inode| (inode, pid)));
    }
    found
}

fn holds(files: &Path, target: &str) -> bool {
    let Ok(files) = fs::read_dir(files) else { return false };
    files
        .flatten()
        .any(|file| fs::read_link(file.path()).is_ok_and(|found| found.as_os_str() == target))
}

fn our_processes() -> impl Iterator<Item = u32> {
    let us = our_uid();
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(move |entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            (entry.metadata().ok()?.uid() == us).then_some(pid)
        })
}

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        os::fd::AsFd as _,
    };

    use super::*;

    #[test]
    fn a_look_up_that_fails_lets_nobody_in() {
        let us = our_uid();
        assert_eq!(judge(Ok((us, 1))), Some(1));
        for nobody in [
            Ok((us, 0)),
            Ok((us + 1, 1)),
            Err(Errno::NOENT),
            Err(Errno::MFILE),
            Err(Errno::AGAIN),
        ] {
            assert_eq!(judge(nobody), None, "{nobody:?}");
        }
    }

    #[test]
    fn whoever_else_holds_a_socket_is_found_and_nobody_where_it_is_on_its_way() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let client = TcpStream::connect(local).unwrap();
        let (_server, peer) = listener.accept().unwrap();
        let Whose::Ours(socket) = whose(peer, local) else {
            panic!("not ours")
        };
        let us = std::process::id();
        for first in [&[][..], &[us], &[1, us]] {
            assert_eq!(holder_outside(socket, &[1], first), Some(us));
            assert_eq!(holder_outside(socket, &[us], first), None);
        }
        // A copy is put into a message that nobody reads, and closed here.
        let (one, _other) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
        let files = [client.as_fd()];
        assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&files)));
        let words = [std::io::IoSlice::new(b"x")];
        rustix::net::sendmsg(&one, &words, &mut control, rustix::net::SendFlags::empty()).unwrap();
        drop(client);
        assert!(matches!(whose(peer, local), Whose::Ours(_)));
        assert_eq!(holder_outside(socket, &[1], &[us]), None);
    }

    #[test]
    fn a_socket_that_one_thread_alone_holds_is_found_where_its_process_is_looked_at() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        let (told, tell) = std::sync::mpsc::channel();
        let (over, until) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: a plain system call without pointers; only this thread's files are split off.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
            let client = TcpStream::connect(local).unwrap();
            told.send(client.local_addr().unwrap()).unwrap();
            let _ = until.recv();
        });
        let peer = tell.recv().unwrap();
        let (_server, _) = listener.accept().unwrap();
        let Whose::Ours(socket) = whose(peer, local) else {
            panic!("not ours")
        };
        let us = std::process::id();
        assert_eq!(holders(socket, Some(&[1, us])), [us]);
        drop(over);
        thread.join().unwrap();
    }

    #[test]
    fn our_own_end_is_ours_and_this_process_s_and_a_closed_or_unknown_one_nobody_s() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = listener.local_addr().unwrap();
        assert!(can_tell(local));
        let client = TcpStream::connect(local).unwrap();
        let (server, peer) = listener.accept().unwrap();
        let Whose::Ours(socket) = whose(peer, server.local_addr().unwrap()) else {
            panic!("our own connection is not ours");
        };
        let us = std::process::id();
        assert_eq!(holders(socket, None), [us]);
        assert_eq!(holders(socket, Some(&[1, us])), [us]);
        assert_eq!(holders(socket, Some(&[])), [0_u32; 0]);
        drop(client);
        assert_eq!(whose(peer, server.local_addr().unwrap()), Whose::Others);
        assert_eq!(holders(socket, None), [0_u32; 0]);
        assert_eq!(whose("127.0.0.1:1".parse().unwrap(), local), Whose::Others);
    }

    #[test]
    fn a_system_that_cannot_tell_says_so() {
        let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(!can_tell(unused));
    }
}
