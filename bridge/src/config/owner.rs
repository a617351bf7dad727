//! Who may change the person's file. Pure, but for [`Person::current`].

use std::path::Path;

/// What the system says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// User id.
    pub(crate) owner: u32,
    /// Group id.
    pub(crate) group: u32,
    /// Permission bits.
    pub(crate) mode: u32,
}

/// Who this program runs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Person {
    /// User id.
    pub(crate) user: u32,
    /// The id of a group that nobody else is in.
    pub(crate) private_group: Option<u32>,
}

/// What to do with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    /// Take the group's right to write away and say so.
    Tighten,
    /// Why it is not read, and the mend.
    Refuse(String),
}

/// Whether a file at `path` can be trusted to be the person's.
pub(crate) fn judge(path: &Path, facts: Facts, person: Person) -> Verdict {
    let shown = path.display();
    if facts.owner != person.user {
        return Verdict::Refuse(format!(
            "{shown} belongs to another user (id {}) and is not read; replace it with a file of your own",
            facts.owner
        ));
    }
    if facts.mode & 0o002 != 0 {
        return Verdict::Refuse(format!(
            "every user of this computer can change {shown}, so it is not read; run: chmod 600 '{shown}'"
        ));
    }
    match facts.mode & 0o020 != 0 {
        false => Verdict::Fine,
        true if person.private_group == Some(facts.group) => Verdict::Tighten,
        true => Verdict::Refuse(format!(
            "other users (group id {}) can change {shown}, so it is not read; run: chmod 600 '{shown}'",
            facts.group
        )),
    }
}

impl Person {
    /// The user of this process.
    #[cfg(unix)]
    pub(crate) fn current() -> Self {
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        // Unreadable account files make no group private, so that it is refused rather than trusted.
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let private = is_private(user, group, &read("/etc/passwd"), &read("/etc/group"));
        Self {
            user,
            private_group: private.then_some(group),
        }
    }
}

/// Whether nobody but `user` is in `group`, by the texts of `passwd(5)` and `group(5)`.
fn is_private(user: u32, group: u32, passwd: &str, groups: &str) -> bool {
    let mut name = None;
    for line in passwd.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let (Some(account), Some(id), Some(primary)) = (fields.first(), number(&fields, 2), number(&fields, 3)) else {
            continue;
        };
        if id == user {
            name = Some((*account).to_owned());
        } else if primary == group {
            return false;
        }
    }
    let Some(name) = name else {
        return false;
    };
    groups.lines().any(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let members = fields.get(3).copied().unwrap_or_default();
        number(&fields, 2) == Some(group)
            && members
                .split(',')
                .all(|member| member.is_empty() || member.trim() == name)
    })
}

fn number(fields: &[&str], index: usize) -> Option<u32> {
    fields.get(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Person = Person {
        user: 1000,
        private_group: Some(1000),
    };

    #[test]
    fn only_a_file_that_nobody_else_can_change_is_trusted() {
        for (owner, group, mode, expected) in [
            (1000, 1000, 0o600, "fine"),
            (1000, 1000, 0o644, "fine"),
            (1000, 100, 0o640, "fine"),
            (1000, 1000, 0o664, "tighten"),
            (1000, 100, 0o664, "chmod 600"),
            (1000, 1000, 0o666, "chmod 600"),
            (1000, 1000, 0o602, "chmod 600"),
            (0, 0, 0o600, "another user"),
            (1001, 1000, 0o600, "another user"),
        ] {
            let said = match judge(Path::new("/h/c.json"), Facts { owner, group, mode }, ME) {
                Verdict::Fine => "fine".to_owned(),
                Verdict::Tighten => "tighten".to_owned(),
                Verdict::Refuse(why) => why,
            };
            assert!(said.contains(expected), "{owner} {group} {mode:o}: {said}");
        }
        let nobodys = Person {
            private_group: None,
            ..ME
        };
        let facts = Facts {
            owner: 1000,
            group: 1000,
            mode: 0o660,
        };
        assert!(matches!(judge(Path::new("/x"), facts, nobodys), Verdict::Refuse(_)));
    }

    #[test]
    fn a_group_is_private_when_the_account_files_show_nobody_else_in_it() {
        let passwd = "root:x:0:0::/:/bin/sh\nu:x:1000:1000:U:/home/u:/bin/sh\nv:x:1001:100::/:\n";
        let group = "root:x:0:\nusers:x:100:\nu:x:1000:\nshared:x:1002:u,v\nmine:x:1003:u\n";
        assert!(is_private(1000, 1000, passwd, group));
        assert!(is_private(1000, 1003, passwd, group));
        for (user, id) in [(1000, 100), (1000, 1002), (1000, 7), (9, 1000)] {
            assert!(!is_private(user, id, passwd, group), "{user} {id}");
        }
        assert!(!is_private(1000, 1000, "", ""));
    }
}
