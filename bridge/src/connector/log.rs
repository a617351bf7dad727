//! What an upstream writes to stderr, as a file for later and a tail for now.
//!
//! One thread writes all files. Whoever logs never waits for a disk: when the thread falls behind, lines are dropped
//! and counted. Memory per log is bounded, whatever an upstream writes.

use std::{
    fmt, io,
    path::PathBuf,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, SyncSender, TrySendError},
    },
    thread,
    time::{Duration, SystemTime},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::Notify,
    time::Instant,
};

use crate::{clock::stamp, secrets::Redactor};

mod file;
mod tail;
mod text;

use file::LogFile;
use tail::Tail;
pub use tail::{Cursor, NotACursor, Page, TAIL_LINE, TAIL_LINES};
use text::{LineCutter, MAX_LINE, cut_at, visible};

/// What lines of ours about the connection begin with.
const OURS: &str = "[session]";

/// Lines that may wait for the writing thread.
const QUEUED_LINES: usize = 1024;

/// Bytes that may wait for the writing thread.
const QUEUED_BYTES: usize = 2 * 1024 * 1024;

/// A full queue is tried again this often.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Lines that come within this time after the first one reach a follower together.
const GATHER: Duration = Duration::from_millis(50);

/// One line and when it came. `Display` is as in the file: UTC time, a space, the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    pub at: SystemTime,
    /// Redacted, control characters made visible.
    pub text: Arc<str>,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", stamp(self.at), self.text)
    }
}

/// The one writing thread. Cheap to clone; the thread ends with the last clone and log.
#[derive(Clone)]
pub struct LogWriter {
    queue: SyncSender<Job>,
    queued_bytes: Arc<AtomicUsize>,
}

enum Job {
    Line {
        log: Arc<Inner>,
        line: LogLine,
        dropped_before: u64,
    },
    Remove {
        log: Arc<Inner>,
        done: mpsc::Sender<()>,
    },
    Flush(mpsc::Sender<()>),
}

impl LogWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start() -> io::Result<Self> {
        let (queue, jobs) = mpsc::sync_channel(QUEUED_LINES);
        let queued_bytes = Arc::<AtomicUsize>::default();
        let waiting = queued_bytes.clone();
        thread::Builder::new()
            .name("connector-logs".to_owned())
            .spawn(move || write_jobs(&jobs, &waiting))?;
        Ok(Self { queue, queued_bytes })
    }

    /// A connector's log. `path` is the newest file (`connect/logs/<id>.log`); older ones get `.1` to `.4`. Every line
    /// goes through `redactor` before anything else sees it. Touches no disk yet. Keep one per path.
    pub fn open(&self, path: PathBuf, redactor: Redactor) -> Log {
        Log(Arc::new(Inner {
            writer: self.clone(),
            redactor,
            tail: Mutex::default(),
            news: Notify::new(),
            is_removed: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
            file: Mutex::new(LogFile::new(path)),
        }))
    }

    /// Waits, at most `patience`, until everything logged so far is in its file. Blocks: not for async threads.
    pub fn flush(&self, patience: Duration) -> bool {
        let (done, wait) = mpsc::channel();
        send_within(&self.queue, Job::Flush(done), patience) && wait.recv_timeout(patience).is_ok()
    }
}

fn write_jobs(jobs: &mpsc::Receiver<Job>, queued_bytes: &AtomicUsize) {
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Line {
                log,
                line,
                dropped_before,
            } => {
                let mut file = log.file.lock().unwrap_or_else(PoisonError::into_inner);
                if dropped_before > 0 {
                    file.append(&format!("{} {dropped_before} lines dropped\n", stamp(line.at)));
                }
                file.append(&format!("{line}\n"));
                queued_bytes.fetch_sub(line.text.len(), Ordering::Relaxed);
            }
            Job::Remove { log, done } => {
                log.file.lock().unwrap_or_else(PoisonError::into_inner).remove();
                let _ = done.send(());
            }
            Job::Flush(done) => {
                let _ = done.send(());
            }
        }
    }
}

/// One connector's log. Cheap to clone.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

struct Inner {
    writer: LogWriter,
    redactor: Redactor,
    tail: Mutex<Tail>,
    /// Wakes followers at each line, and at the removal.
    news: Notify,
    is_removed: AtomicBool,
    /// Lines not written since the last one that was.
    dropped: AtomicU64,
    /// Only the writing thread locks it.
    file: Mutex<LogFile>,
}

/// A full queue before a disk that hangs is given up after `patience`.
fn send_within(queue: &SyncSender<Job>, job: Job, patience: Duration) -> bool {
    let until = SystemTime::now() + patience;
    let mut job = job;
    loop {
        match queue.try_send(job) {
            Ok(()) => return true,
            Err(TrySendError::Full(back)) if SystemTime::now() < until => job = back,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => return false,
        }
        thread::sleep(BETWEEN_TRIES);
    }
}

impl Log {
    /// Adds a line that this app wrote; one that begins with `[session] ` tells of the connection. What an upstream wrote
    /// comes through [`Log::drain`], or behind a label of ours. Never waits; what goes over 64 KiB is cut off.
    pub fn line(&self, text: &str) {
        if self.0.is_removed.load(Ordering::Relaxed) {
            return;
        }
        // Before anything looks for secrets in it: an upstream's message may be of 16 MiB.
        let text = self.0.redactor.line(cut_at(text, MAX_LINE));
        let text = visible(&text);
        let line = LogLine {
            at: SystemTime::now(),
            text: text.as_ref().into(),
        };
        self.remember(&line);
        self.write(line);
    }

    /// Adds a line as an upstream wrote it, which must not pass for one of ours.
    fn foreign(&self, text: &str) {
        if text.starts_with(OURS) {
            self.line(&format!("\\{text}"));
        } else {
            self.line(text);
        }
    }

    /// What redacts this log's lines; texts about the same upstream go through it too.
    pub fn redactor(&self) -> &Redactor {
        &self.0.redactor
    }

    /// The last `n` lines, oldest first, each at most [`TAIL_LINE`] long.
    pub fn tail(&self, n: usize) -> Vec<LogLine> {
        self.last(n).lines
    }

    /// The last `most` lines, and the place after them.
    pub fn last(&self, most: usize) -> Page {
        self.kept().last(most)
    }

    /// At most `most` lines after a place, oldest first, as far as they are still kept.
    pub fn after(&self, cursor: Cursor, most: usize) -> Page {
        self.kept().after(cursor, most)
    }

    /// As [`Log::after`], and waits at most `patience` while there is none. Comes back early when the log is removed.
    pub async fn follow(&self, cursor: Cursor, most: usize, patience: Duration) -> Page {
        let deadline = Instant::now() + patience;
        loop {
            let mut news = pin!(self.0.news.notified());
            // From here on nothing is missed.
            news.as_mut().enable();
            let page = self.after(cursor, most);
            if !page.lines.is_empty() || page.missed || self.0.is_removed.load(Ordering::Relaxed) {
                break;
            }
            if tokio::time::timeout_at(deadline, news).await.is_err() {
                return page;
            }
        }
        tokio::time::sleep_until(deadline.min(Instant::now() + GATHER)).await;
        self.after(cursor, most)
    }

    /// Logs what an upstream writes until the end, line by line. A line without an end is cut every 64 KiB; one that
    /// begins as ours about the connection gets a backslash before it.
    pub async fn drain(&self, mut from: impl AsyncRead + Unpin) {
        let mut cutter = LineCutter::default();
        let mut chunk = vec![0; 16 * 1024];
        loop {
            match from.read(&mut chunk).await {
                Ok(0) => break,
                Ok(n) => cutter.push(&chunk[..n], |line| self.foreign(&line)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.line(&format!("[the log could not be read further: {error}]"));
                    break;
                }
            }
        }
        cutter.finish(|line| self.foreign(&line));
    }

    /// Deletes the files and the tail. Blocks, at most `patience`: not for async threads.
    pub fn remove(&self, patience: Duration) -> bool {
        *self.kept() = Tail::default();
        self.0.is_removed.store(true, Ordering::Relaxed);
        self.0.news.notify_waiters();
        let (done, wait) = mpsc::channel();
        let job = Job::Remove {
            log: self.0.clone(),
            done,
        };
        send_within(&self.0.writer.queue, job, patience) && wait.recv_timeout(patience).is_ok()
    }

    fn remember(&self, line: &LogLine) {
        self.kept().push(line);
        self.0.news.notify_waiters();
    }

    fn kept(&self) -> MutexGuard<'_, Tail> {
        self.0.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, line: LogLine) {
        let inner = &self.0;
        let size = line.text.len();
        let queued_bytes = &inner.writer.queued_bytes;
        let before = queued_bytes.fetch_add(size, Ordering::Relaxed);
        let dropped_before = inner.dropped.swap(0, Ordering::Relaxed);
        let job = Job::Line {
            log: inner.clone(),
            line,
            dropped_before,
        };
        let queued = before + size <= QUEUED_BYTES && inner.writer.queue.try_send(job).is_ok();
        if !queued {
            queued_bytes.fetch_sub(size, Ordering::Relaxed);
            inner.dropped.fetch_add(dropped_before + 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
