//! One running child: its pipes, its end, and the end of everything it started.

use std::{
    fmt,
    os::fd::OwnedFd,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

use rustix::process::{WaitId, WaitIdOptions, WaitIdStatus, waitid};
use tokio::{
    net::unix::pipe,
    sync::watch,
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{Spawner, group, launch::Launched};

/// How long a child may take to end after its input closed.
const AFTER_EOF: Duration = Duration::from_millis(500);

/// How long its group may take to end after SIGTERM.
const AFTER_TERM: Duration = Duration::from_secs(2);

/// How long the kernel may take to end a killed group; a process stuck in a system call may take longer.
const AFTER_KILL: Duration = Duration::from_secs(1);

/// The watching thread only waits and writes the children's file.
const WATCH_STACK: usize = 256 * 1024;

/// How often a group is looked at while it is ending.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How a child's own process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
    /// Someone else reaped it.
    Unknown,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::Unknown => f.write_str("ended"),
        }
    }
}

/// What it took to stop a child and everything in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// It had ended before.
    ByItself,
    /// Closing its input.
    Eof,
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
}

/// The outcome of [`Child::stop`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// Of the child itself; `None` if the kernel did not end it in time.
    pub ended: Option<Ended>,
    pub how: How,
}

/// A child's pipes, registered with the runtime.
#[derive(Debug)]
pub struct ChildIo {
    pub stdin: pipe::Sender,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
}

/// A running program and its process group. Dropping it kills the group at once, without a runtime.
#[derive(Debug)]
pub struct Child {
    held: Arc<Held>,
    io: Option<RawIo>,
    closing: CancellationToken,
    ended: watch::Receiver<Option<Ended>>,
    /// Keeps the thread alive that the child's life is bound to.
    _spawner: Spawner,
}

#[derive(Debug)]
struct RawIo {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// The part that the watching thread and emergency shutdown share: the right to use the process id.
#[derive(Debug)]
pub(super) struct Held {
    pid: u32,
    marker: String,
    state: Mutex<Hold>,
    changed: Condvar,
}

/// While the leader is not reaped, its id cannot be given to another process, so signals to the group are safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// May be signalled; not to be reaped.
    Kept,
    /// Everything is killed: may be reaped.
    Released,
    /// The id is no longer ours.
    Reaped,
}

impl Held {
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Kills the whole group, if its id is still ours.
    pub(super) fn kill_group(&self) {
        self.signal(libc::SIGKILL);
    }

    fn signal(&self, signal: i32) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match *state {
            Hold::Kept | Hold::Released => group::signal_group(self.pid, signal),
            Hold::Reaped => {}
        }
    }

    fn release(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == Hold::Kept {
            *state = Hold::Released;
            self.changed.notify_all();
        }
    }

    /// On the watching thread: the end is told at once, the id given back only when released.
    fn watch_and_reap(&self, ended: &watch::Sender<Option<Ended>>) {
        ended.send_replace(Some(self.wait_for_end()));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while *state == Hold::Kept {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.wait(WaitIdOptions::EXITED);
        *state = Hold::Reaped;
    }

    fn wait_for_end(&self) -> Ended {
        let status = self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        match status.as_ref().map(|s| (s.exit_status(), s.terminating_signal())) {
            Some((Some(code), _)) => Ended::Code(code),
            Some((None, Some(signal))) => Ended::Signal(signal),
            Some((None, None)) | None => Ended::Unknown,
        }
    }

    fn wait(&self, options: WaitIdOptions) -> Option<WaitIdStatus> {
        let pid = rustix::process::Pid::from_raw(self.pid.cast_signed())?;
        loop {
            match waitid(WaitId::Pid(pid), options) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(status) => return status,
                Err(_not_our_child_any_more) => return None,
            }
        }
    }
}

impl Child {
    /// Takes the child over and starts the thread that waits for its end.
    pub(super) fn adopt(launched: Launched, marker: String, spawner: Spawner) -> Self {
        let (sender, ended) = watch::channel(None);
        let held = Arc::new(Held {
            pid: launched.pid,
            marker,
            state: Mutex::new(Hold::Kept),
            changed: Condvar::new(),
        });
        let watching = thread::Builder::new()
            .name("child-watch".to_owned())
            .stack_size(WATCH_STACK)
            .spawn({
                let (held, spawner) = (held.clone(), spawner.clone());
                move || {
                    held.watch_and_reap(&sender);
                    spawner.reaped(&held.marker);
                }
            });
        if let Err(error) = watching {
            // Its end counts as seen at once, so it will be stopped.
            tracing::error!(%error, "no thread to watch a child with");
        }
        Self {
            held,
            io: Some(RawIo {
                stdin: launched.stdin,
                stdout: launched.stdout,
                stderr: launched.stderr,
            }),
            closing: CancellationToken::new(),
            ended,
            _spawner: spawner,
        }
    }

    pub(super) fn held(&self) -> Arc<Held> {
        self.held.clone()
    }

    /// Process id, also the id of its group and session.
    pub fn id(&self) -> u32 {
        self.held.pid
    }

    /// The pipes, once. Needs a runtime.
    ///
    /// # Errors
    /// When the runtime cannot watch them, or they were taken.
    pub fn take_io(&mut self) -> std::io::Result<ChildIo> {
        let Some(io) = self.io.take() else {
            return Err(std::io::Error::other("the child's pipes are taken already"));
        };
        Ok(ChildIo {
            stdin: pipe::Sender::from_owned_fd(io.stdin)?,
            stdout: pipe::Receiver::from_owned_fd(io.stdout)?,
            stderr: pipe::Receiver::from_owned_fd(io.stderr)?,
        })
    }

    /// Cancelled when a stop begins: whoever holds the child's input closes it then.
    pub fn closing(&self) -> CancellationToken {
        self.closing.clone()
    }

    /// How the child itself ended, once it has. Others of its group may still run.
    pub fn ended(&self) -> Option<Ended> {
        *self.ended.borrow()
    }

    /// Waits for the child itself to end. The future may outlive the child's owner.
    pub fn exited(&self) -> impl Future<Output = Ended> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            match ended.wait_for(Option::is_some).await {
                Ok(status) => status.unwrap_or(Ended::Unknown),
                Err(_watch_gone) => Ended::Unknown,
            }
        }
    }

    /// Closes its input, waits half a second, sends SIGTERM to the group, waits two seconds, sends SIGKILL. Members that
    /// outlived the child are ended as well. Dropping the future kills the group at once.
    pub async fn stop(mut self) -> Exit {
        let was_running = self.ended().is_none();
        self.io = None;
        self.closing.cancel();
        if timeout(AFTER_EOF, self.exited()).await.is_ok() && !self.group_alive().await {
            return self.exit(if was_running { How::Eof } else { How::ByItself });
        }
        self.held.signal(libc::SIGTERM);
        if self.group_gone_within(AFTER_TERM).await {
            return self.exit(How::Term);
        }
        self.held.kill_group();
        if !self.group_gone_within(AFTER_KILL).await {
            tracing::warn!(pid = self.id(), "a killed process does not end");
        }
        self.exit(How::Kill)
    }

    fn exit(&self, how: How) -> Exit {
        Exit {
            ended: self.ended(),
            how,
        }
    }

    async fn group_gone_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            // Before the child itself ended there is no need to look for others.
            if timeout(LOOK_AGAIN, self.exited()).await.is_ok() && !self.group_alive().await {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            if self.ended().is_some() {
                sleep(LOOK_AGAIN).await;
            }
        }
    }

    /// The id is kept by the unreaped leader meanwhile.
    async fn group_alive(&self) -> bool {
        let group = self.held.pid;
        spawn_blocking(move || group::is_alive(group)).await.unwrap_or(true)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.closing.cancel();
        self.held.kill_group();
        self.held.release();
    }
}
