//! Whether a process belongs to a connector: a child, something it started, something that it left behind.
//!
//! Told by the marker in the environment, by the session or group, and by descent. Misses a process that was meant to be
//! missed: one that left its session, its parents and its environment.

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
    use std::collections::{HashMap, HashSet};

    use super::{
        super::{
            MARKER,
            group::table::{self, Kinship, variable},
        },
        Member, Spawner,
    };

    /// Ancestors that are looked at; a deeper tree is nobody's.
    const MOST_ANCESTORS: usize = 64;

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
            let leaders = self.leaders();
            for _ in 0..MOST_ANCESTORS {
                if leaders.contains(&now.session) || leaders.contains(&now.group) {
                    return true;
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
            if running.left.is_empty() {
                return false;
            }
            let is_there =
                |member: &Member| table::process(member.pid).is_some_and(|now| now.started == member.started);
            running.left.retain(is_there);
            if running.left.is_empty() {
                // It may have started others before it ended.
                running.left = carriers(&self.prefix());
            }
            !running.left.is_empty()
        }

        /// The ids of all processes that belong to a connector. Reads the whole process table.
        pub fn family(&self) -> Vec<u32> {
            let prefix = self.prefix();
            let all: HashMap<u32, Kinship> = table::pids()
                .filter_map(|pid| Some((pid, table::kinship(pid)?)))
                .collect();
            members(&all, &self.leaders(), |pid| carries(pid, &prefix))
        }

        fn leaders(&self) -> HashSet<u32> {
            self.running().children.values().map(|child| child.pid()).collect()
        }

        /// What the markers of this home begin with.
        fn prefix(&self) -> String {
            format!("{}:", self.shared.home)
        }
    }

    /// Of a process table, those in a leader's session or group, those with the marker, and all their descendants.
    fn members(all: &HashMap<u32, Kinship>, leaders: &HashSet<u32>, carries: impl Fn(u32) -> bool) -> Vec<u32> {
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
                (200, of(10, 200, 200)),
                (300, of(301, 300, 300)),
                (301, of(300, 301, 301)),
            ]);
            let mut found = members(&all, &HashSet::from([100]), |pid| pid == 104);
            found.sort_unstable();
            assert_eq!(found, [100, 101, 102, 103, 104, 105]);
        }
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::carriers;

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
}

#[cfg(not(target_os = "linux"))]
pub(super) fn carriers(_prefix: &str) -> Vec<Member> {
    Vec::new()
}
