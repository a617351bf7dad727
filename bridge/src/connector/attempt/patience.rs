//! How long an attempt may take: the connect time, and longer while a package runner visibly downloads.

use std::{
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::watch,
    time::Instant,
};

use crate::config::{self, Launch};

/// No first download is waited for longer, however much it says.
const LONGEST_INSTALL: Duration = Duration::from_secs(300);
/// An installation that takes longer than this is told.
const WORTH_TELLING: Duration = Duration::from_secs(2);
/// What a person reads meanwhile.
const INSTALLING: &str = "Still installing…";

/// Programs that fetch what they run.
const PACKAGE_RUNNERS: [&str; 16] = [
    "npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "bun", "deno", "uvx", "uv", "pipx", "pip", "docker", "podman", "dnx",
    "go",
];

/// The time of one attempt.
pub(super) struct Patience {
    begun: Instant,
    time: Duration,
    /// When the program last wrote to stderr; only a package runner's matters.
    wrote: Option<Wrote>,
}

/// Shared with the reader of stderr.
type Wrote = Arc<Mutex<Option<Instant>>>;

impl Patience {
    /// Begins now; `time` without a word from the upstream is the end.
    pub fn new(entry: &config::Connector, time: Duration) -> Self {
        let fetches = match &entry.launch {
            Launch::Stdio(stdio) => is_package_runner(&stdio.command),
            Launch::Http(_) => false,
        };
        Self {
            begun: Instant::now(),
            time,
            wrote: fetches.then(Wrote::default),
        }
    }

    /// How long it has lasted, in whole seconds.
    pub fn spent(&self) -> Duration {
        Duration::from_secs(self.begun.elapsed().as_secs())
    }

    /// The latest end there can be.
    pub fn at_most(&self) -> Instant {
        let longest = match self.wrote {
            Some(_) => self.time.max(LONGEST_INSTALL),
            None => self.time,
        };
        self.begun + longest
    }

    /// A stderr whose every byte gives the program more time, where it is one that downloads.
    pub fn listen_to<R>(&self, stderr: R) -> Overheard<R> {
        Overheard {
            stderr,
            wrote: self.wrote.clone(),
        }
    }

    /// Resolves when there is none left. Tells why it takes long.
    pub async fn ends(&self, progress: &watch::Sender<Option<String>>) {
        if self.wrote.is_some() {
            tokio::time::sleep_until(self.begun + WORTH_TELLING.min(self.time)).await;
            while self.last_word().is_none() && Instant::now() < self.end() {
                tokio::time::sleep_until(self.end().min(Instant::now() + WORTH_TELLING)).await;
            }
            if self.last_word().is_some() {
                progress.send_replace(Some(INSTALLING.to_owned()));
            }
        }
        loop {
            let end = self.end();
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }

    fn end(&self) -> Instant {
        let quiet = self.last_word().unwrap_or(self.begun).max(self.begun) + self.time;
        quiet.min(self.at_most())
    }

    fn last_word(&self) -> Option<Instant> {
        let wrote = self.wrote.as_ref()?;
        *wrote.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_package_runner(command: &str) -> bool {
    let name = Path::new(command).file_stem().and_then(|name| name.to_str());
    name.is_some_and(|name| PACKAGE_RUNNERS.contains(&name.to_ascii_lowercase().as_str()))
}

/// Notes when something is read.
pub(super) struct Overheard<R> {
    stderr: R,
    wrote: Option<Wrote>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Overheard<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stderr).poll_read(context, buffer);
        if let Some(wrote) = &self.wrote
            && buffer.filled().len() > before
        {
            *wrote.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn entry(text: &str) -> config::Connector {
        let config = config::parse(format!(r#"{{"servers": {{"a": {text}}}}}"#).as_bytes()).unwrap();
        match &config.entries[0].kind {
            config::EntryKind::Valid(connector) => (**connector).clone(),
            config::EntryKind::Invalid(notice) => panic!("{notice:?}"),
        }
    }

    const TIME: Duration = Duration::from_secs(30);

    /// How long an attempt of this program lasts that writes to stderr every ten seconds for that long.
    async fn lasts(command: &str, writes_for: Duration) -> (Duration, Option<String>) {
        let begun = Instant::now();
        let patience = Patience::new(&entry(&format!(r#"{{"command": "{command}"}}"#)), TIME);
        let (mut program, stderr) = tokio::io::duplex(1024);
        let mut overheard = patience.listen_to(stderr);
        let (tell, told) = watch::channel(None);
        let reading = async {
            let mut byte = [0];
            while overheard.read(&mut byte).await.is_ok_and(|read| read > 0) {}
            std::future::pending::<()>().await;
        };
        let writing = async {
            while begun.elapsed() < writes_for {
                program.write_all(b".").await.unwrap();
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = patience.ends(&tell) => {}
            () = reading => {}
            () = writing => {}
        }
        (begun.elapsed(), told.borrow().clone())
    }

    #[tokio::test(start_paused = true)]
    async fn a_package_runner_that_writes_gets_more_time_and_that_is_told() {
        let (time, told) = lasts("npx", Duration::from_secs(95)).await;
        assert!(
            time >= Duration::from_secs(120) && time <= Duration::from_secs(130),
            "{time:?}"
        );
        assert_eq!(told.as_deref(), Some(INSTALLING));
        let (time, _) = lasts("/usr/bin/uvx", Duration::from_secs(900)).await;
        assert_eq!(time.as_secs(), LONGEST_INSTALL.as_secs(), "but not for ever");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_package_runner_and_any_other_program_get_the_connect_time() {
        assert_eq!(lasts("npx", Duration::ZERO).await, (TIME, None));
        let (time, told) = lasts("server", Duration::from_secs(900)).await;
        assert_eq!((time, told), (TIME, None));
    }
}
