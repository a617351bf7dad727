//! The fork itself: what a child gets and what it must not inherit.

use std::{
    io,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::process::CommandExt as _},
    process::{Command as StdCommand, Stdio},
    ptr,
};

use super::{Command, marked};

/// A started program. Its exit is for [`super::child`] to reap.
pub(super) struct Launched {
    pub pid: u32,
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// Starts a program with a session and process group of its own. Returns when it runs or could not.
///
/// # Errors
/// The system's; nothing is left running.
pub(super) fn start(command: &Command, marker: &str) -> io::Result<Launched> {
    let parent = std::process::id();
    let mut std = StdCommand::new(&command.program);
    std.args(&command.args)
        .env_clear()
        .envs(marked(&command.env, marker))
        .current_dir(&command.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: `prepare` only makes async-signal-safe system calls and does not allocate.
    unsafe { std.pre_exec(move || prepare(parent)) };
    let mut child = std.spawn()?;
    let pid = child.id();
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Launched {
            pid,
            stdin: stdin.into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
        }),
        _ => Err(io::Error::other("the pipes are missing")),
    }
}

/// Runs in the child between fork and exec: only async-signal-safe calls.
fn prepare(parent: u32) -> io::Result<()> {
    // A session of its own: no controlling terminal to read passwords from, and a process group for signals.
    // SAFETY: plain system calls without pointers.
    if unsafe { libc::setsid() } == -1 {
        return Err(io::Error::last_os_error());
    }
    default_signals();
    close_on_exec();
    die_with_parent(parent)
}

/// Neither ignored nor blocked signals are inherited.
fn default_signals() {
    for signal in 1..32 {
        // SAFETY: the default action is no handler; signals that cannot be changed are refused harmlessly.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set that `sigprocmask` then only reads.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}

#[cfg(target_os = "linux")]
fn die_with_parent(parent: u32) -> io::Result<()> {
    // SAFETY: plain system calls without pointers.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
            return Err(io::Error::last_os_error());
        }
        // The parent may have died before the line above.
        if libc::getppid().cast_unsigned() != parent {
            libc::_exit(127);
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_parent: u32) -> io::Result<()> {
    Ok(())
}

/// Marks every descriptor over stderr, also those of libraries that forgot to.
fn close_on_exec() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: a system call without pointers; it changes flags of this process's descriptors only.
        let done = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        if done == 0 {
            return;
        }
    }
    for descriptor in 3..4096 {
        // SAFETY: as above; a descriptor that is not open is refused harmlessly.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
