//! Which folders are searched for a command.

use std::{
    collections::HashSet,
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

/// Where package managers put programs, below the person's home.
const OF_PERSON: [&str; 14] = [
    ".local/bin",
    "bin",
    ".cargo/bin",
    ".bun/bin",
    ".deno/bin",
    ".volta/bin",
    ".local/share/fnm/aliases/default/bin",
    ".local/share/mise/shims",
    ".asdf/shims",
    ".pyenv/shims",
    ".local/share/pnpm",
    ".npm-global/bin",
    ".nix-profile/bin",
    ".docker/bin",
];

/// Where package managers put programs for everyone.
const OF_SYSTEM: [&str; 10] = [
    "/opt/homebrew/bin",
    "/opt/homebrew/sbin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/snap/bin",
    "/run/current-system/sw/bin",
    "/usr/bin",
    "/bin",
    "/usr/sbin",
];

/// The login shell's PATH, then ours, then the usual folders that exist. Relative entries are left out: they would mean
/// whatever lies in a connector's working folder.
pub fn search_folders(login: Option<&OsStr>, ours: Option<&OsStr>, home: &Path) -> Vec<PathBuf> {
    let named = [login, ours].into_iter().flatten().flat_map(env::split_paths);
    let usual = OF_PERSON
        .iter()
        .map(|folder| home.join(folder))
        .chain(node_of_nvm(&home.join(".nvm")))
        .chain(OF_SYSTEM.iter().map(PathBuf::from))
        .filter(|folder| folder.is_dir());
    let mut seen = HashSet::new();
    named
        .chain(usual)
        .filter(|folder| folder.is_absolute() && seen.insert(folder.clone()))
        .collect()
}

/// The programs of the Node.js version that nvm would use in a new shell, else of the newest.
fn node_of_nvm(nvm: &Path) -> Option<PathBuf> {
    let versions = nvm.join("versions/node");
    let mut installed: Vec<(Version, PathBuf)> = fs::read_dir(&versions)
        .ok()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((Version::parse(entry.file_name().to_str()?)?, entry.path().join("bin")))
        })
        .collect();
    installed.sort();
    let default = fs::read_to_string(nvm.join("alias/default")).unwrap_or_default();
    let wanted = installed
        .iter()
        .rposition(|(version, _)| version.is_named(default.trim()))
        .or(installed.len().checked_sub(1))?;
    Some(installed.swap_remove(wanted).1)
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version(Vec<u32>);

impl Version {
    /// `v22.1.0`
    fn parse(name: &str) -> Option<Self> {
        let numbers = name.strip_prefix('v')?.split('.').map(|n| n.parse().ok());
        numbers.collect::<Option<_>>().map(Self)
    }

    /// `22`, `v22.1` and the like; names such as `lts/*` name no version.
    fn is_named(&self, alias: &str) -> bool {
        let digits = alias.strip_prefix('v').unwrap_or(alias);
        Self::parse(&format!("v{digits}")).is_some_and(|alias| self.0.starts_with(&alias.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shells_path_comes_first_and_nothing_twice() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(".cargo/bin")).unwrap();
        let folders = search_folders(
            Some(OsStr::new("/a:/b:.::bin:/a")),
            Some(OsStr::new("/b:/c")),
            home.path(),
        );
        let named = ["/a", "/b", "/c"].map(PathBuf::from);
        assert_eq!(folders[..3], named);
        assert_eq!(folders[3], home.path().join(".cargo/bin"));
        assert!(folders.contains(&"/usr/bin".into()));
        assert!(folders.iter().all(|folder| folder.is_absolute()));
        assert!(!folders.contains(&home.path().join(".bun/bin")), "it does not exist");
    }

    #[test]
    fn nvms_own_choice_of_a_version_is_followed() {
        let home = tempfile::tempdir().unwrap();
        let nvm = home.path().join(".nvm");
        for version in ["v9.11.2", "v20.3.0", "v20.19.1", "v22.1.0", "junk"] {
            fs::create_dir_all(nvm.join("versions/node").join(version).join("bin")).unwrap();
        }
        let chosen = || {
            node_of_nvm(&nvm)
                .unwrap()
                .strip_prefix(nvm.join("versions/node"))
                .unwrap()
                .to_owned()
        };
        assert_eq!(chosen(), Path::new("v22.1.0/bin"));
        fs::create_dir_all(nvm.join("alias")).unwrap();
        for (alias, version) in [
            ("20\n", "v20.19.1/bin"),
            ("v20.3.0", "v20.3.0/bin"),
            ("lts/*", "v22.1.0/bin"),
            ("2", "v22.1.0/bin"),
            ("", "v22.1.0/bin"),
        ] {
            fs::write(nvm.join("alias/default"), alias).unwrap();
            assert_eq!(chosen(), Path::new(version), "{alias}");
        }
        assert!(search_folders(None, None, home.path()).contains(&nvm.join("versions/node/v22.1.0/bin")));
    }
}
