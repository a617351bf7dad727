//! Whether a process belongs to a connector: a child, something it started, something that it left behind.
//!
//! Told by the marker in the environment, by the session or group, and by descent. Nobody leaves by losing its parents: what
//! they leave behind becomes a child of ours, in a session that is neither ours nor one that was opened for the person, and
//! no process can join a session that it was not born in.

#[cfg(not(target_os = "linux"))]
use std::{collections::HashSet, io};

use super::Spawner;

/// A process that cannot be mistaken for its id's next holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub pid: u32,
    /// Clock ticks since the system's start.
    pub started: u64,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        collections::{HashMap, HashSet},
        fs, io,
    };

    use super::{
        super::{
            MARKER,
            group::table::{self, Kinship, variable},
        },
        Member, Spawner,
    };

    /// Ancestors that are looked at; a deeper tree is nobody's.
    const MOST_ANCESTORS: usize = 64;

    /// Makes this process the parent of whatever its descendants leave behind.
    ///
    /// # Errors
    /// The system's.
    pub(in super::super) fn adopt_orphans() -> io::Result<()> {
        // SAFETY: a plain system call without pointers.
        match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Which sessions are not those of connectors.
    struct Sessions {
        us: u32,
        ours: u32,
        opened: HashSet<u32>,
    }

    impl Sessions {
        /// Whether a child of this process is one that a connector left behind, where it is no connector itself.
        fn is_left_behind(&self, child: &Kinship) -> bool {
            child.parent == self.us && child.session != self.ours && !self.opened.contains(&child.session)
        }
    }

    impl Spawner {
        /// Whether a process is a child or was started by one. True also for one that is gone, whose descendants can be
        /// anybody's.
        pub fn is_kin(&self, pid: u32) -> bool {
            let Some(mut now) = table::kinship(pid) else {
                return true;
            };
            if carries(pid, &self.prefix()) {
                return true;
            }
            let (leaders, sessions) = (self.leaders(), self.sessions());
            for _ in 0..MOST_ANCESTORS {
                if leaders.contains(&now.session) || leaders.contains(&now.group) {
                    return true;
                }
                if now.parent == sessions.us {
                    return sessions.is_left_behind(&now);
                }
                match table::kinship(now.parent) {
                    Some(parent) => now = parent,
                    None => return false,
                }
            }
            false
        }

        /// Whether any process can belong to a connector. Cheap while none does.
        pub fn has_family(&self) -> bool {
            let mut running = self.running();
            if !running.children.is_empty() {
                return true;
            }
            if !running.left.is_empty() {
                let is_there =
                    |member: &Member| table::process(member.pid).is_some_and(|now| now.started == member.started);
                running.left.retain(is_there);
                if running.left.is_empty() {
                    // It may have started others before it ended.
                    running.left = carriers(&self.prefix());
                }
            }
            if !running.left.is_empty() {
                return true;
            }
            drop(running);
            self.has_left_behind()
        }

        fn has_left_behind(&self) -> bool {
            let sessions = self.sessions();
            let mut children = children_of(sessions.us).into_iter().filter_map(table::kinship);
            children.any(|child| sessions.is_left_behind(&child))
        }

        /// Takes the ended ones of those that were left behind out of the process table, where they were ended at the look
        /// before too. `before` is what [`Spawner::bury`] gave then.
        pub(in super::super) fn bury(&self, before: &HashSet<u32>) -> HashSet<u32> {
            let (leaders, sessions) = (self.leaders(), self.sessions());
            let is_another_s = |pid: u32| leaders.contains(&pid) || sessions.opened.contains(&pid);
            let ended = children_of(sessions.us).into_iter().filter(|pid| {
                !is_another_s(*pid)
                    && table::process(*pid).is_some_and(|process| process.zombie)
                    && table::kinship(*pid).is_some_and(|kinship| kinship.session != sessions.ours)
            });
            let ended: HashSet<u32> = ended.collect();
            for pid in ended.intersection(before) {
                if let Some(pid) = rustix::process::Pid::from_raw(pid.cast_signed()) {
                    // Somebody else may have been there first.
                    let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
                }
            }
            // A number that nobody has may be anybody's next.
            let mut running = self.running();
            if !running.opened.is_empty() {
                let there: HashSet<u32> = table::pids()
                    .filter_map(|pid| Some(table::kinship(pid)?.session))
                    .collect();
                running.opened.retain(|session| there.contains(session));
            }
            ended
        }

        fn sessions(&self) -> Sessions {
            let us = std::process::id();
            Sessions {
                us,
                ours: table::kinship(us).map_or(0, |kinship| kinship.session),
                opened: self.running().opened.clone(),
            }
        }

        /// The ids of all processes that belong to a connector. Reads the whole process table.
        pub fn family(&self) -> Vec<u32> {
            let prefix = self.prefix();
            let all: HashMap<u32, Kinship> = table::pids()
                .filter_map(|pid| Some((pid, table::kinship(pid)?)))
                .collect();
            members(&all, &self.leaders(), &self.sessions(), |pid| carries(pid, &prefix))
        }

        fn leaders(&self) -> HashSet<u32> {
            self.running().children.values().map(|child| child.pid()).collect()
        }

        /// What the markers of this home begin with.
        fn prefix(&self) -> String {
            format!("{}:", self.shared.home)
        }
    }

    /// The children of a process. Those that it did not start itself are its main thread's.
    fn children_of(pid: u32) -> Vec<u32> {
        match fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")) {
            Ok(list) => list.split_whitespace().filter_map(|word| word.parse().ok()).collect(),
            // A kernel without that list.
            Err(_) => table::pids()
                .filter(|child| table::kinship(*child).is_some_and(|kinship| kinship.parent == pid))
                .collect(),
        }
    }

    /// Of a process table, those in a leader's session or group, those with the marker, those that were left behind, and all
    /// their descendants.
    fn members(
        all: &HashMap<u32, Kinship>,
        leaders: &HashSet<u32>,
        sessions: &Sessions,
        carries: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        let mut known: HashMap<u32, bool> = HashMap::with_capacity(all.len());
        for pid in all.keys() {
            let mut way = Vec::new();
            let mut now = *pid;
            let verdict = loop {
                if let Some(verdict) = known.get(&now) {
                    break *verdict;
                }
                let Some(kinship) = all.get(&now) else { break false };
                // A table that changed while it was read may hold a ring.
                if way.len() >= MOST_ANCESTORS || way.contains(&now) {
                    break false;
                }
                way.push(now);
                if leaders.contains(&kinship.session) || leaders.contains(&kinship.group) || carries(now) {
                    break true;
                }
                if kinship.parent == sessions.us {
                    break sessions.is_left_behind(kinship);
                }
                now = kinship.parent;
            };
            known.extend(way.into_iter().map(|pid| (pid, verdict)));
        }
        known
            .into_iter()
            .filter_map(|(pid, is_member)| is_member.then_some(pid))
            .collect()
    }

    /// Living processes whose marker begins like this.
    pub(in super::super) fn carriers(prefix: &str) -> Vec<Member> {
        table::processes()
            .filter(|process| !process.zombie && carries(process.pid, prefix))
            .map(|process| Member {
                pid: process.pid,
                started: process.started,
            })
            .collect()
    }

    fn carries(pid: u32, prefix: &str) -> bool {
        variable(pid, MARKER).is_some_and(|marker| marker.starts_with(prefix.as_bytes()))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn children_their_descendants_and_who_carries_the_marker_are_members_and_nobody_else() {
            let of = |parent, group, session| Kinship { parent, group, session };
            let all = HashMap::from([
                (1, of(0, 1, 1)),
                (10, of(1, 10, 10)),
                (100, of(10, 100, 100)),
                (101, of(100, 100, 100)),
                (102, of(101, 102, 102)),
                (103, of(1, 100, 100)),
                (104, of(1, 104, 104)),
                (105, of(104, 105, 105)),
                // Left behind, and what it started.
                (200, of(10, 200, 200)),
                (201, of(200, 201, 201)),
                // Our own, and what was opened for the person.
                (202, of(10, 10, 10)),
                (203, of(202, 203, 203)),
                (400, of(10, 400, 400)),
                (401, of(10, 401, 400)),
                (402, of(401, 402, 402)),
                (300, of(301, 300, 300)),
                (301, of(300, 301, 301)),
            ]);
            let sessions = Sessions {
                us: 10,
                ours: 10,
                opened: HashSet::from([400]),
            };
            let mut found = members(&all, &HashSet::from([100]), &sessions, |pid| pid == 104);
            found.sort_unstable();
            assert_eq!(found, [100, 101, 102, 103, 104, 105, 200, 201]);
        }
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::{adopt_orphans, carriers};

/// Not implemented for this system: nobody is known to be.
#[cfg(not(target_os = "linux"))]
impl Spawner {
    pub fn is_kin(&self, _pid: u32) -> bool {
        false
    }

    pub fn has_family(&self) -> bool {
        false
    }

    pub fn family(&self) -> Vec<u32> {
        Vec::new()
    }

    pub(super) fn bury(&self, _before: &HashSet<u32>) -> HashSet<u32> {
        HashSet::new()
    }
}

/// As above.
#[cfg(not(target_os = "linux"))]
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn carriers(_prefix: &str) -> Vec<Member> {
    Vec::new()
}
