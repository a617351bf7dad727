//! Who holds a port that we want. Only looked at after binding failed.

use std::io;

/// The sentence for a port that could not be bound, with its holder where the system tells.
pub(super) fn refusal(port: u16, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let holder = holder(port).map_or_else(|| "another program".to_owned(), |holder| holder.sentence());
            format!(
                "Port {port} is in use by {holder}. Assistants cannot reach Neuron Connect until it is free or another port is chosen in the settings; it is tried again by itself."
            )
        }
        _ => format!(
            "Port {port} could not be opened: {error}. Choose another port in the settings; this one is tried again by itself."
        ),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct PortHolder {
    uid: u32,
    process: Option<crate::home::Holder>,
}

impl PortHolder {
    fn sentence(&self) -> String {
        match &self.process {
            Some(process) => process.to_string(),
            None => format!("a program of another user (number {})", self.uid),
        }
    }
}

#[cfg(target_os = "linux")]
use linux::holder;

#[cfg(not(target_os = "linux"))]
fn holder(_port: u16) -> Option<PortHolder> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs, path::PathBuf};

    use super::PortHolder;
    use crate::home::Holder;

    pub(super) fn holder(port: u16) -> Option<PortHolder> {
        let (uid, inode) = ["/proc/net/tcp", "/proc/net/tcp6"]
            .iter()
            .filter_map(|table| fs::read_to_string(table).ok())
            .find_map(|table| listener(&table, port))?;
        Some(PortHolder {
            uid,
            process: process_with_socket(inode),
        })
    }

    /// User and inode of the socket that listens on the port, from `/proc/net/tcp` (proc_net(5)).
    pub(super) fn listener(table: &str, port: u16) -> Option<(u32, u64)> {
        const LISTEN: &str = "0A";
        table.lines().skip(1).find_map(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (_, local_port) = fields.next()?.rsplit_once(':')?;
            let (_remote, state) = (fields.next()?, fields.next()?);
            if state != LISTEN || u16::from_str_radix(local_port, 16).ok()? != port {
                return None;
            }
            let mut fields = fields.skip(3);
            let (uid, _timeout, inode) = (fields.next()?, fields.next()?, fields.next()?);
            Some((uid.parse().ok()?, inode.parse().ok()?))
        })
    }

    /// Looks through the open files of the processes that we may look into.
    fn process_with_socket(inode: u64) -> Option<Holder> {
        let wanted = PathBuf::from(format!("socket:[{inode}]"));
        fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
            let pid = process.file_name().to_str()?.parse().ok()?;
            let files = fs::read_dir(process.path().join("fd")).ok()?;
            files
                .flatten()
                .any(|file| fs::read_link(file.path()).is_ok_and(|target| target == wanted))
                .then(|| Holder {
                    pid,
                    program: fs::read_to_string(process.path().join("comm"))
                        .map_or_else(|_| "a program".to_owned(), |name| name.trim().to_owned()),
                })
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_listens_on_a_port_is_named_with_its_process_id() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let process = holder(port).unwrap().process.unwrap();
        assert_eq!(process.pid, std::process::id());
        let sentence = refusal(port, &io::ErrorKind::AddrInUse.into());
        assert!(sentence.contains(&process.to_string()), "{sentence}");
    }

    #[test]
    fn a_port_that_nobody_listens_on_has_no_holder() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        drop(taken);
        assert_eq!(holder(port), None);
        assert!(refusal(port, &io::ErrorKind::AddrInUse.into()).contains("another program"));
        assert!(refusal(80, &io::ErrorKind::PermissionDenied.into()).contains("permission denied"));
    }

    #[test]
    fn lines_of_the_table_that_cannot_be_read_are_passed_over() {
        let table = "  sl  local_address rem_address   st\n   0: x\n\n   1: 0100007F:1E5B 00000000:0000 01 0:0 0:0 0 1000 0 7\n   2: 0100007F:1E5B 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4321 1 x\n";
        assert_eq!(linux::listener(table, 7771), Some((1000, 4321)));
        assert_eq!(linux::listener(table, 7772), None);
        assert_eq!(linux::listener("", 7771), None);
    }
}
