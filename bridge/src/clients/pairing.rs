//! How a program comes to have a token: the person opens pairing, the program shows a code, the person types it.
//!
//! One at a time; two minutes each for the program to ask and for the person to type; the token is given once. Three wrong
//! codes, or the person's word, turn a program away: others may ask in the time that is left, it may not. Pure; time and
//! random bits are passed in.

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use crate::{
    snapshot::{PairingRequest, PairingView, ProgramView},
    traffic::Source,
};

/// How long a program may ask, how long the person may type, and how long the token waits to be taken.
pub const OPEN_FOR: Duration = Duration::from_secs(120);
/// So many wrong codes end it.
pub const MOST_WRONG: u32 = 3;

/// Where pairing stands. One for a bridge.
#[derive(Default)]
pub struct Pairing {
    /// While a program may ask.
    open: Option<Opening>,
    request: Option<Request>,
    /// What became of the last request.
    last: Option<(String, Ended)>,
}

/// An end in both clocks: the one that times, and Unix milliseconds for people.
#[derive(Clone, Copy)]
struct End {
    at: Instant,
    shown: u64,
}

impl End {
    fn after(now: Instant, unix_ms: u64) -> Self {
        Self {
            at: now + OPEN_FOR,
            shown: unix_ms + u64::try_from(OPEN_FOR.as_millis()).unwrap_or(0),
        }
    }
}

struct Opening {
    ends: End,
    /// Each by a click or three codes of the person, within two minutes.
    turned_away: Vec<Source>,
}

/// A program that wants to be paired.
#[derive(Debug)]
pub struct Applicant {
    /// What it calls itself.
    pub name: String,
    pub program: Option<ProgramView>,
    /// Who is counted as one with it ([`Source::group`]).
    pub group: Source,
}

struct Request {
    id: String,
    by: Applicant,
    code: SecretString,
    wrong: u32,
    /// The code was right, and what it was for is being written down.
    is_taken: bool,
    ends: End,
}

enum Ended {
    /// The token, until it is taken or the time is over.
    Granted {
        token: Option<SecretString>,
        until: Instant,
    },
    Denied,
    Expired,
}

/// Why a program cannot be paired now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The person did not open it.
    NotOpen,
    /// Another one is being paired.
    Busy,
    /// It was turned away before, while pairing was open as it is now.
    TurnedAway,
}

/// What a program that waits hears.
#[derive(Debug)]
pub enum Polled {
    Waiting,
    /// Once.
    Paired(SecretString),
    /// The token was taken before.
    Taken,
    Denied,
    Expired,
    Unknown,
}

/// Why a code was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotThat {
    /// So many tries are left.
    Wrong(u32),
    /// It was the last one.
    Last,
    /// Nothing of this id waits.
    Unknown,
}

/// Whom the person let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetIn {
    pub name: String,
    pub program: Option<ProgramView>,
}

impl Pairing {
    /// For two minutes programs may ask, one at a time, until one is paired. What was under way is over, and nobody is
    /// turned away yet.
    pub fn open(&mut self, now: Instant, unix_ms: u64) {
        self.end(Ended::Denied);
        self.open = Some(Opening {
            ends: End::after(now, unix_ms),
            turned_away: Vec::new(),
        });
    }

    /// Nobody may ask any more; whoever waits hears no.
    pub fn close(&mut self) {
        self.end(Ended::Denied);
        self.open = None;
    }

    /// Whether a program may ask, or has something to hear.
    pub fn is_of_use(&mut self, now: Instant) -> bool {
        self.pass(now);
        let token_waits = matches!(&self.last, Some((_, Ended::Granted { token: Some(_), .. })));
        self.open.is_some() || self.request.is_some() || token_waits
    }

    /// The person turns the program away that asked; the name that it chose. `None` where nothing of this id waits.
    pub fn turn_away(&mut self, id: &str, now: Instant) -> Option<String> {
        self.pass(now);
        let request = self.request.as_ref().filter(|request| request.id == id)?;
        let name = request.by.name.clone();
        if let Some(open) = &mut self.open {
            open.turned_away.push(request.by.group.clone());
        }
        self.end(Ended::Denied);
        Some(name)
    }

    /// A program asks, with an id and a code that were drawn for it. `now` in both clocks.
    ///
    /// # Errors
    /// [`Closed`]
    pub fn ask(&mut self, id: String, by: Applicant, code: SecretString, now: (Instant, u64)) -> Result<(), Closed> {
        let (now, unix_ms) = now;
        self.pass(now);
        let open = self.open.as_ref();
        if open.is_some_and(|open| open.turned_away.contains(&by.group)) {
            return Err(Closed::TurnedAway);
        }
        if self.request.is_some() {
            return Err(Closed::Busy);
        }
        if open.is_none() {
            return Err(Closed::NotOpen);
        }
        self.request = Some(Request {
            id,
            by,
            code,
            wrong: 0,
            is_taken: false,
            ends: End::after(now, unix_ms),
        });
        Ok(())
    }

    /// A program wants to know.
    pub fn poll(&mut self, id: &str, now: Instant) -> Polled {
        self.pass(now);
        if self.request.as_ref().is_some_and(|request| same(&request.id, id)) {
            return Polled::Waiting;
        }
        match &mut self.last {
            Some((last, ended)) if same(last, id) => match ended {
                Ended::Granted { token, .. } => token.take().map_or(Polled::Taken, Polled::Paired),
                Ended::Denied => Polled::Denied,
                Ended::Expired => Polled::Expired,
            },
            Some(_) | None => Polled::Unknown,
        }
    }

    /// The person typed a code.
    ///
    /// # Errors
    /// [`NotThat`]
    pub fn check(&mut self, id: &str, code: &str, now: Instant) -> Result<LetIn, NotThat> {
        self.pass(now);
        let request = self.request.as_mut().filter(|request| request.id == id);
        let request = request.filter(|request| !request.is_taken).ok_or(NotThat::Unknown)?;
        let typed: String = code.chars().filter(|char| !char.is_whitespace()).collect();
        if bool::from(request.code.expose_secret().as_bytes().ct_eq(typed.as_bytes())) {
            request.is_taken = true;
            return Ok(LetIn {
                name: request.by.name.clone(),
                program: request.by.program.clone(),
            });
        }
        request.wrong += 1;
        match MOST_WRONG.saturating_sub(request.wrong) {
            0 => {
                self.turn_away(id, now);
                Err(NotThat::Last)
            }
            left => Err(NotThat::Wrong(left)),
        }
    }

    /// Takes a right answer back: what it was for could not be written down.
    pub fn release(&mut self, id: &str) {
        if let Some(request) = self.request.as_mut().filter(|request| request.id == id) {
            request.is_taken = false;
        }
    }

    /// The token for whom the code was right.
    pub fn grant(&mut self, id: &str, token: SecretString, now: Instant) {
        if self.request.as_ref().is_some_and(|request| request.id == id) {
            self.end(Ended::Granted {
                token: Some(token),
                until: now + OPEN_FOR,
            });
            self.open = None;
        }
    }

    /// When something changes by time alone.
    pub fn first_end(&self) -> Option<Instant> {
        let request = self.request.as_ref().map(|request| request.ends.at);
        let token = match &self.last {
            Some((_, Ended::Granted { token: Some(_), until })) => Some(*until),
            Some(_) | None => None,
        };
        [self.open.as_ref().map(|open| open.ends.at), request, token]
            .into_iter()
            .flatten()
            .min()
    }

    /// As the window shows it.
    pub fn view(&mut self, now: Instant) -> Option<PairingView> {
        self.pass(now);
        let request = self.request.as_ref();
        let open = self.open.as_ref();
        let ends = request.map(|request| request.ends).or(open.map(|open| open.ends))?;
        Some(PairingView {
            open_until: ends.shown,
            request: request.map(|request| PairingRequest {
                id: request.id.clone(),
                name: request.by.name.clone(),
                program: request.by.program.clone(),
                wrong_codes: request.wrong,
            }),
        })
    }

    /// Lets time pass.
    fn pass(&mut self, now: Instant) {
        self.open.take_if(|open| open.ends.at <= now);
        if self.request.as_ref().is_some_and(|request| request.ends.at <= now) {
            self.end(Ended::Expired);
        }
        if let Some((_, ended)) = &mut self.last
            && let Ended::Granted { until, .. } = ended
            && *until <= now
        {
            *ended = Ended::Expired;
        }
    }

    fn end(&mut self, ended: Ended) {
        if let Some(request) = self.request.take() {
            self.last = Some((request.id, ended));
        }
    }
}

fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

#[cfg(test)]
mod tests;
