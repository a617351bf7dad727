//! Where a connector's program looks for the paths that its arguments name. Pure: of its entry alone.

use std::path::{Path, PathBuf};

use crate::{
    builtin,
    config::{Launch, StdioLaunch},
    trust::{expand_home, packages::base_name},
};

/// Where a program on this computer looks for paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    /// Where it runs; `None` where it may have gone elsewhere.
    pub(super) folder: Option<PathBuf>,
    /// What its entry names, in which it may look too where that is a folder.
    pub(super) named: Vec<PathBuf>,
    pub(super) tilde: Tilde,
}

/// What `~` at the beginning of a path is to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tilde {
    /// This folder.
    Home(PathBuf),
    /// This folder, or a name like any other.
    Perhaps(PathBuf),
    Unknown,
}

/// Programs whose work is done under another root or on another computer.
const AWAY: &[&str] = &[
    "adb",
    "apptainer",
    "az",
    "buildah",
    "bwrap",
    "chroot",
    "colima",
    "container",
    "crictl",
    "ctr",
    "devcontainer",
    "distrobox",
    "docker",
    "docker-compose",
    "finch",
    "firejail",
    "flatpak",
    "gcloud",
    "incus",
    "kubectl",
    "lima",
    "limactl",
    "lxc",
    "lxc-attach",
    "machinectl",
    "mcp-proxy",
    "mcp-remote",
    "mosh",
    "multipass",
    "nc",
    "ncat",
    "nerdctl",
    "nsenter",
    "oc",
    "plink",
    "podman",
    "podman-compose",
    "proot",
    "rsh",
    "singularity",
    "socat",
    "ssh",
    "sshpass",
    "supergateway",
    "systemd-nspawn",
    "telnet",
    "toolbox",
    "unshare",
    "vagrant",
    "wsl",
];

/// Programs that run another one in a folder of their choice.
const MOVING: &[&str] = &[
    "bash",
    "cmd",
    "csh",
    "dash",
    "doas",
    "elvish",
    "fish",
    "just",
    "ksh",
    "make",
    "nu",
    "pnpm",
    "powershell",
    "pwsh",
    "runuser",
    "sh",
    "su",
    "sudo",
    "systemd-run",
    "task",
    "tcsh",
    "xonsh",
    "yarn",
    "zsh",
];

/// Options that name the folder to run in.
const MOVING_OPTIONS: &[&str] = &[
    "--chdir",
    "--cwd",
    "--dir",
    "--directory",
    "--prefix",
    "--project-dir",
    "--work-dir",
    "--workdir",
    "--working-directory",
];

impl Ground {
    /// Of the program that an entry starts, which runs in `own_folder` unless the entry says where; `None` where it is not
    /// this computer's files that it sees.
    pub fn of(launch: &Launch, own_folder: &Path, home: &Path) -> Option<Self> {
        let stdio = match launch {
            Launch::Stdio(stdio) => stdio,
            Launch::Http(_) => return None,
        };
        if let Some(folder) = builtin::files_folder(launch, home) {
            return Some(Self {
                folder: Some(folder),
                named: Vec::new(),
                tilde: tilde(stdio, |home| Tilde::Home(home.to_owned()), home),
            });
        }
        if words(stdio).any(|word| AWAY.contains(&base(word).as_str())) {
            return None;
        }
        let folder = match &stdio.cwd {
            None => own_folder.to_owned(),
            Some(cwd) => PathBuf::from(expand_home(cwd, home)),
        };
        let stays = folder.is_absolute() && !goes_elsewhere(stdio);
        Some(Self {
            named: named(stdio, &folder, home),
            folder: stays.then_some(folder),
            tilde: tilde(stdio, |home| Tilde::Perhaps(home.to_owned()), home),
        })
    }
}

/// The command, and every word of its arguments as a shell would see them.
fn words(stdio: &StdioLaunch) -> impl Iterator<Item = &str> {
    let args = stdio.args.iter().flat_map(|arg| {
        arg.split(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '"' | '\'' | '=' | '`'))
    });
    std::iter::once(stdio.command.as_str()).chain(args)
}

/// A program's bare name, without the version that a runner is told.
fn base(word: &str) -> String {
    let name = base_name(word);
    match name.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => name,
    }
}

fn goes_elsewhere(stdio: &StdioLaunch) -> bool {
    let runs_scripts = matches!(base(&stdio.command).as_str(), "npm" | "bun")
        && stdio
            .args
            .iter()
            .any(|arg| matches!(arg.as_str(), "run" | "start" | "run-script"));
    runs_scripts
        || words(stdio).any(|word| MOVING.contains(&base(word).as_str()))
        || stdio.args.iter().any(|arg| {
            // What its value is, is not known here.
            arg.contains("${")
                || arg.starts_with("-C")
                || MOVING_OPTIONS.contains(&arg.split_once('=').map_or(arg.as_str(), |(option, _)| option))
        })
}

/// What may be a folder in which the program looks.
fn named(stdio: &StdioLaunch, folder: &Path, home: &Path) -> Vec<PathBuf> {
    let args = stdio.args.iter().flat_map(|arg| match arg.split_once('=') {
        Some((_, value)) => [Some(arg.as_str()), Some(value)],
        None => [Some(arg.as_str()), None],
    });
    let values = stdio.env.values().map(|value| Some(value.as_str()));
    let mut named: Vec<_> = args
        .chain(values)
        .flatten()
        .filter(|text| !text.is_empty())
        .map(|text| folder.join(expand_home(text, home)))
        .filter(|path| path != folder)
        .collect();
    named.sort();
    named.dedup();
    named
}

fn tilde(stdio: &StdioLaunch, known: impl Fn(&Path) -> Tilde, home: &Path) -> Tilde {
    let is_home = |name: &str| matches!(name, "HOME" | "USERPROFILE");
    let is_set = stdio.env.keys().any(|name| is_home(name))
        || stdio.env_file.is_some()
        || words(stdio).any(|word| is_home(word) || matches!(base(word).as_str(), "sudo" | "su" | "doas" | "runuser"));
    if is_set { Tilde::Unknown } else { known(home) }
}

#[cfg(test)]
mod tests;
