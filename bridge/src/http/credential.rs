//! Tokens at the gate: who sends one counts as the client it belongs to, and a wrong one is refused everywhere.
//!
//! Owns the count of wrong tokens. Which tokens there are is for [`Clients`] to tell; what a client may do, for the
//! routes.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use http::{HeaderMap, Method, header, request::Parts};

use super::gate::{CALLBACK_PATH, Door};
use crate::{
    caller::Caller,
    caller::{
        Pass,
        token::{Presented, TokenHash},
    },
    error::{ApiError, Code},
    secrets::TRY_AGAIN,
    snapshot::ApiMode,
};

/// Where a client asks to be paired; while that is open, it cannot have a token yet.
pub(super) const PAIR_PATH: &str = "/mcp/clients/pair";

/// Wrong tokens that are told so within [`WRONG_WINDOW`], from all programs together. More are put off, right ones never.
const MOST_WRONG: usize = 20;
const WRONG_WINDOW: Duration = Duration::from_secs(60);

/// A client whose token holds.
#[derive(Debug, Clone)]
pub struct Known {
    pub hash: TokenHash,
    pub pass: Arc<Pass>,
}

/// What the gate asks about clients. Answered from memory on every request.
pub trait Clients: Send + Sync {
    /// The client of this id; `None` = there is none, or its token was revoked or has expired.
    fn find(&self, id: &str) -> Option<Known>;
    fn api_mode(&self) -> ApiMode;
    /// Whether it is known at present who has a token.
    fn are_known(&self) -> bool {
        true
    }
    /// Whether a program may ask to be paired right now.
    fn is_pairing_open(&self) -> bool;
    /// The token of this client was shown, and holds.
    fn used(&self, _id: &str) {}
    /// The pages that may use the API.
    fn origins(&self) -> Arc<[String]> {
        Arc::default()
    }
}

/// Nobody is paired, and nobody needs to be.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoClients;

impl Clients for NoClients {
    fn find(&self, _id: &str) -> Option<Known> {
        None
    }

    fn api_mode(&self) -> ApiMode {
        ApiMode::Open
    }

    fn is_pairing_open(&self) -> bool {
        false
    }
}

/// The clients, and how many wrong tokens were sent. One for both doors.
#[derive(Clone)]
pub(super) struct Credentials {
    clients: Arc<dyn Clients>,
    wrong: Arc<Mutex<WrongTokens>>,
}

impl Credentials {
    pub(super) fn new(clients: Arc<dyn Clients>) -> Self {
        Self {
            clients,
            wrong: Arc::default(),
        }
    }

    pub(super) fn origins(&self) -> Arc<[String]> {
        self.clients.origins()
    }

    pub(super) fn api_mode(&self) -> ApiMode {
        self.clients.api_mode()
    }

    /// Whom a request counts as, which came in by this door as `caller`.
    ///
    /// # Errors
    /// `unauthorized` for a token that is wrong or missing, `rate_limited` for one wrong token too many.
    pub(super) fn check(&self, head: &Parts, door: Door, caller: &Caller, now: Instant) -> Result<Caller, ApiError> {
        // A browser has no token; the sign-in's state protects it.
        if head.method == Method::GET && head.uri.path() == CALLBACK_PATH {
            return Ok(caller.clone());
        }
        match bearer(&head.headers) {
            Bearer::Absent if self.is_needed(head, door, caller) => Err(ApiError::new(
                Code::Unauthorized,
                "Programs need a token here: pair this one in the Neuron Connect window and send its token as \
                 \"Authorization: Bearer …\".",
            )),
            Bearer::Absent => Ok(caller.clone()),
            Bearer::Malformed => Err(self.wrong(now)),
            Bearer::Token(token) => match self.clients.find(&token.id) {
                Some(known) if known.hash.matches(&token.hash) => {
                    self.clients.used(&token.id);
                    Ok(caller.clone().with(known.pass))
                }
                None if !self.clients.are_known() => Err(ApiError::new(
                    Code::KeychainUnavailable,
                    "Who has a token cannot be checked for want of the keychain. Unlock it, and try again.",
                )
                .with_retry_after(TRY_AGAIN)),
                Some(_) | None => Err(self.wrong(now)),
            },
        }
    }

    fn is_needed(&self, head: &Parts, door: Door, caller: &Caller) -> bool {
        match self.clients.api_mode() {
            ApiMode::Open => false,
            ApiMode::Token => !needs_none(&head.method, head.uri.path(), door, caller, || {
                self.clients.is_pairing_open()
            }),
        }
    }

    fn wrong(&self, now: Instant) -> ApiError {
        let counted = self.wrong.lock().unwrap_or_else(PoisonError::into_inner).count(now);
        match counted {
            Ok(()) => ApiError::new(
                Code::Unauthorized,
                "The token in the Authorization header is not right. It may have been withdrawn or have expired: pair \
                 this program again in the Neuron Connect window, or leave the header out.",
            ),
            Err(wait) => ApiError::new(
                Code::RateLimited,
                "Too many wrong tokens were sent to Neuron Connect. Wait a moment before trying another one.",
            )
            .with_retry_after(wait),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// What needs no token where programs need one.
fn needs_none(method: &Method, path: &str, door: Door, caller: &Caller, pairing: impl Fn() -> bool) -> bool {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    match (door, caller) {
        (_, Caller::Owner) => true,
        (Door::Socket, Caller::WalkIn(_) | Caller::Client { .. }) if reads => true,
        (Door::Socket | Door::Port(_), Caller::WalkIn(_) | Caller::Client { .. }) => match path {
            "/healthz" => reads,
            PAIR_PATH => *method == Method::POST && pairing(),
            _ => false,
        },
    }
}

/// What the `Authorization` header says.
#[derive(Debug)]
enum Bearer {
    Absent,
    /// Another scheme, another form, or more than one.
    Malformed,
    Token(Presented),
}

fn bearer(headers: &HeaderMap) -> Bearer {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let token = match (all.next(), all.next()) {
        (None, _) => return Bearer::Absent,
        (Some(one), None) => one.to_str().ok().and_then(|text| {
            let (scheme, token) = text.split_once(' ')?;
            scheme
                .eq_ignore_ascii_case("bearer")
                .then(|| Presented::parse(token.trim_start_matches(' ')))?
        }),
        (Some(_), Some(_)) => None,
    };
    token.map_or(Bearer::Malformed, Bearer::Token)
}

/// When the latest wrong tokens came. Pure.
#[derive(Debug, Default)]
struct WrongTokens(VecDeque<Instant>);

impl WrongTokens {
    /// Counts one more. `Err` = it is one too many, and when the next may come.
    fn count(&mut self, now: Instant) -> Result<(), Duration> {
        while self
            .0
            .front()
            .is_some_and(|first| now.saturating_duration_since(*first) >= WRONG_WINDOW)
        {
            self.0.pop_front();
        }
        match self.0.front() {
            Some(first) if self.0.len() >= MOST_WRONG => {
                Err(WRONG_WINDOW.saturating_sub(now.saturating_duration_since(*first)))
            }
            _ => {
                self.0.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
