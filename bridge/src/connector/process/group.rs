//! Process groups and the system's process table.

/// Sends a signal to a whole group. A group that is gone is no error.
///
/// The caller must know that the id still means its group: its leader is not reaped, or a member was just seen.
pub(super) fn signal_group(group: u32, signal: i32) {
    // 0 and 1 would mean our own group and every process there is.
    if let Ok(group) = i32::try_from(group)
        && group > 1
    {
        // SAFETY: a system call without pointers.
        unsafe { libc::kill(-group, signal) };
    }
}

/// Whether a member other than zombies is left.
#[cfg(target_os = "linux")]
pub(super) fn is_alive(group: u32) -> bool {
    table::processes().any(|process| process.group == group && !process.zombie)
}

/// Whether a member other than zombies is left.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_alive(group: u32) -> bool {
    // A group of zombies alone is refused.
    i32::try_from(group).is_ok_and(|group| {
        // SAFETY: signal 0 only asks.
        unsafe { libc::kill(-group, 0) == 0 }
    })
}

#[cfg(target_os = "linux")]
pub(super) mod table {
    //! `/proc`, read process by process; whatever vanishes meanwhile is left out.

    use std::fs;

    /// One process.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in super::super) struct Process {
        pub pid: u32,
        pub group: u32,
        /// Clock ticks since the system's start.
        pub started: u64,
        pub zombie: bool,
    }

    pub(in super::super) fn processes() -> impl Iterator<Item = Process> {
        pids().filter_map(process)
    }

    pub(in super::super) fn pids() -> impl Iterator<Item = u32> {
        fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
    }

    pub(in super::super) fn process(pid: u32) -> Option<Process> {
        parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The value of a variable in the environment a process was started with.
    pub(in super::super) fn variable(pid: u32, name: &str) -> Option<Vec<u8>> {
        let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environ.split(|b| *b == 0).find_map(|entry| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(value.to_vec())
        })
    }

    /// Where a process comes from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in super::super) struct Kinship {
        pub parent: u32,
        pub group: u32,
        pub session: u32,
    }

    pub(in super::super) fn kinship(pid: u32) -> Option<Kinship> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace().skip(1).map(|field| field.parse().ok());
        Some(Kinship {
            parent: fields.next()??,
            group: fields.next()??,
            session: fields.next()??,
        })
    }

    /// proc_pid_stat(5): the name in brackets may hold anything, so fields count from the last bracket.
    fn parse_stat(pid: u32, stat: &str) -> Option<Process> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?;
        Some(Process {
            pid,
            group,
            started,
            zombie: matches!(state, "Z" | "X"),
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_process_named_to_deceive_is_read_rightly() {
            let stat = "77 (a) S 1 2 (b c) Z 1 50 50 0 -1 4194560 1 0 0 0 1 2 3 4 20 0 1 0 123456 9 8";
            let expected = Process {
                pid: 77,
                group: 50,
                started: 123_456,
                zombie: true,
            };
            assert_eq!(parse_stat(77, stat), Some(expected));
            assert_eq!(parse_stat(77, "77 (x) S 1"), None);
        }

        #[test]
        fn this_process_is_in_the_table() {
            let own = process(std::process::id()).unwrap();
            assert!(processes().any(|process| process == own));
            assert!(own.started > 0 && !own.zombie);
        }
    }
}
