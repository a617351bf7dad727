//! The threads that call a vault, one at a time. One that does not come back is left behind and another goes on with what
//! is queued; should the first come back after all, it does nothing more.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use secrecy::SecretString;

use super::{KeychainFault, vault::Vault};

/// Calls that wait for the keychain; more are refused as if it were slow.
const QUEUED_CALLS: usize = 256;
/// Threads that may be left behind in calls that do not come back.
const MOST_STUCK: usize = 3;

/// What a vault is asked, with the lease of the thread that asks.
pub(super) type Job = Box<dyn FnOnce(&mut dyn Vault, &Lease) + Send>;
/// Makes a thread's own access to the vault.
pub(super) type MakeVault = Box<dyn Fn() -> Box<dyn Vault> + Send>;
/// Told that a thread that was left behind came back.
pub(super) type CameBack = Box<dyn Fn() + Send + Sync>;

/// Ends its threads when it is dropped.
pub(super) struct Workers {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    news: Condvar,
    came_back: CameBack,
}

struct State {
    jobs: VecDeque<(Ticket, Job)>,
    submitted: u64,
    /// To be done at a time, where nothing else asks before.
    later: Option<(Instant, Job)>,
    make: MakeVault,
    /// Counts the changes of `make`.
    vault: u64,
    /// The thread that works; the others were left behind.
    current: u64,
    /// The first thread on the present vault; earlier ones count no longer.
    first: u64,
    /// Those of the present vault that were left behind.
    stuck: usize,
    busy_since: Option<Instant>,
    /// The job under way, unless it is one of `later`.
    under_way: Option<Ticket>,
    over: bool,
}

/// One job that was submitted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// Says whether a thread is still the one that works, and on the vault that counts.
pub(super) struct Lease {
    shared: Arc<Shared>,
    thread: u64,
    vault: AtomicU64,
    /// The job under way asked the vault something.
    asked: AtomicBool,
}

impl Lease {
    pub(super) fn holds(&self) -> bool {
        let state = self.shared.lock();
        state.current == self.thread && state.vault == self.vault.load(Ordering::Relaxed) && !state.over
    }

    /// Whether the job that has this lease asked the vault anything.
    pub(super) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Whether a call was taken.
pub(super) struct Full;

impl Workers {
    /// With why the system gave no thread, where it gave none.
    pub(super) fn start(make: MakeVault, came_back: CameBack) -> (Self, Option<io::Error>) {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                submitted: 0,
                later: None,
                make,
                vault: 0,
                current: 0,
                first: 0,
                stuck: 0,
                busy_since: None,
                under_way: None,
                over: false,
            }),
            news: Condvar::new(),
            came_back,
        });
        let failed = spawn(&shared, 0).err();
        (Self { shared }, failed)
    }

    pub(super) fn submit(&self, job: Job) -> Result<Ticket, Full> {
        let mut state = self.shared.lock();
        if state.jobs.len() >= QUEUED_CALLS {
            return Err(Full);
        }
        state.submitted += 1;
        let ticket = Ticket(state.submitted);
        state.jobs.push_back((ticket, job));
        drop(state);
        self.shared.news.notify_all();
        Ok(ticket)
    }

    /// Does it then, in place of an earlier such wish.
    pub(super) fn submit_later(&self, after: Duration, job: Job) {
        self.shared.lock().later = Some((Instant::now() + after, job));
        self.shared.news.notify_all();
    }

    /// Whoever submitted `mine` waited for this long. Leaves the working thread behind where it is at that job, or at
    /// another one for as long; whether it is.
    pub(super) fn leave_behind(&self, mine: Ticket, after: Duration) -> bool {
        let mut state = self.shared.lock();
        let is_too_long = |since: Instant| state.under_way == Some(mine) || since.elapsed() >= after;
        if !state.busy_since.is_some_and(is_too_long) {
            return false;
        }
        if state.stuck < MOST_STUCK && self.go_on(&mut state) {
            state.stuck += 1;
        }
        true
    }

    /// Every later call goes to another vault, and does not wait for one that is under way.
    pub(super) fn change(&self, make: MakeVault) {
        let mut state = self.shared.lock();
        state.make = make;
        state.vault += 1;
        state.later = None;
        if state.busy_since.is_some() {
            self.go_on(&mut state);
        }
        state.first = state.current;
        state.stuck = 0;
    }

    /// Another thread works from now on, where the system gives one.
    fn go_on(&self, state: &mut State) -> bool {
        let next = state.current + 1;
        match spawn(&self.shared, next) {
            Ok(()) => {
                state.current = next;
                state.busy_since = None;
                true
            }
            Err(error) => {
                tracing::error!(%error, "the keychain has no thread");
                false
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.news.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next thing to do for this thread; `None` = nothing ever again.
    fn next(&self, thread: u64) -> Option<(Job, u64)> {
        let mut state = self.lock();
        loop {
            if state.over {
                return None;
            }
            if state.current != thread {
                if thread >= state.first {
                    state.stuck -= 1;
                    drop(state);
                    (self.came_back)();
                }
                return None;
            }
            state.busy_since = None;
            let first = state.jobs.pop_front().map(|(ticket, job)| (Some(ticket), job));
            let job = first.or_else(|| {
                let due = state.later.as_ref().is_some_and(|(at, _)| *at <= Instant::now());
                state.later.take_if(|_| due).map(|(_, job)| (None, job))
            });
            if let Some((ticket, job)) = job {
                state.busy_since = Some(Instant::now());
                state.under_way = ticket;
                return Some((job, state.vault));
            }
            state = match state.later.as_ref().map(|(at, _)| *at) {
                Some(at) => {
                    let left = at.saturating_duration_since(Instant::now());
                    let waited = self.news.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.news.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

fn spawn(shared: &Arc<Shared>, thread: u64) -> io::Result<()> {
    let lease = Lease {
        shared: shared.clone(),
        thread,
        vault: AtomicU64::new(0),
        asked: AtomicBool::new(false),
    };
    let named = std::thread::Builder::new().name("keychain".to_owned());
    named.spawn(move || run(&lease)).map(drop)
}

fn run(lease: &Lease) {
    let mut opened: Option<(u64, Box<dyn Vault>)> = None;
    while let Some((job, vault)) = lease.shared.next(lease.thread) {
        lease.vault.store(vault, Ordering::Relaxed);
        lease.asked.store(false, Ordering::Relaxed);
        let opened = match opened.take_if(|(of, _)| *of != vault) {
            Some(_) | None => opened.get_or_insert_with(|| (vault, (lease.shared.lock().make)())),
        };
        let mut leased = Leased {
            vault: opened.1.as_mut(),
            lease,
        };
        job(&mut leased, lease);
    }
}

/// A vault for as long as the lease holds: a call of several steps that was given up ends between two of them.
struct Leased<'v> {
    vault: &'v mut dyn Vault,
    lease: &'v Lease,
}

impl Leased<'_> {
    fn vault(&mut self) -> Result<&mut dyn Vault, KeychainFault> {
        self.lease.asked.store(true, Ordering::Relaxed);
        match self.lease.holds() {
            true => Ok(self.vault),
            false => Err(KeychainFault::Slow),
        }
    }
}

impl Vault for Leased<'_> {
    fn get(&mut self, account: &str) -> Result<Option<SecretString>, KeychainFault> {
        self.vault()?.get(account)
    }

    /// A keychain tells what it holds also while it is locked, so this alone is no sign that it is open.
    fn holds(&mut self, account: &str) -> Result<bool, KeychainFault> {
        let asked_before = self.lease.asked();
        let holds = self.vault()?.holds(account)?;
        self.lease.asked.store(asked_before, Ordering::Relaxed);
        Ok(holds)
    }

    fn set(&mut self, account: &str, value: &SecretString) -> Result<(), KeychainFault> {
        self.vault()?.set(account, value)
    }

    fn delete(&mut self, account: &str) -> Result<(), KeychainFault> {
        self.vault()?.delete(account)
    }

    fn check(&mut self) -> Result<(), KeychainFault> {
        self.vault()?.check()
    }

    fn limit(&self) -> Option<usize> {
        self.vault.limit()
    }
}
