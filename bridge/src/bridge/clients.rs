//! Paired clients, as the person decides it, and how a program comes to be one.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer};
use tokio::time::Instant;

use super::{BridgeHandle, Caller, activity, policy::asks, shown};
use crate::{
    activity::Outcome,
    approval::Asker,
    caller::{
        Scope,
        token::{PREFIX, TokenHash},
    },
    clients::{
        pairing::{Applicant, Closed, NotThat, OPEN_FOR, Polled},
        row::{ClientRow, hex},
    },
    clock::unix_ms,
    error::{ApiError, Code},
    ids::ConnectorId,
    snapshot::{ActivityReview, ApiMode, ClientView},
    traffic::Source,
    wishes::Wish,
};

/// The longest name of a client, in characters.
const LONGEST_NAME: usize = 60;
/// Clients that may be paired.
const MOST_CLIENTS: usize = 100;
/// A program that finds another one being paired may come again then.
const BUSY_FOR: std::time::Duration = std::time::Duration::from_secs(10);

/// What the person lets a paired client do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    pub scopes: Vec<Scope>,
    /// The connectors it sees; `None` = all.
    #[serde(default)]
    pub servers: Option<Vec<String>>,
    /// Unix milliseconds; `None` = no end.
    #[serde(default)]
    pub expires_at: Option<u64>,
    #[serde(default)]
    pub asks_itself: bool,
}

/// What of a client is to be another one; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientChange {
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub scopes: Option<Vec<Scope>>,
    /// `null` = all.
    #[serde(default, deserialize_with = "given")]
    pub servers: Option<Option<Vec<String>>>,
    /// `null` = no end.
    #[serde(default, deserialize_with = "given")]
    pub expires_at: Option<Option<u64>>,
    #[serde(default)]
    pub asks_itself: Option<bool>,
}

/// A program that asked to be paired: it shows the code, and comes back with the id.
pub struct PairingBegun {
    pub id: String,
    /// Six digits, for the person's eyes.
    pub code: SecretString,
    /// For so long the person may type it.
    pub within: std::time::Duration,
}

/// Whether a client may wish this at present. A connector that there is not yet is in nobody's list.
fn may_wish(row: &ClientRow, wish: &Wish) -> bool {
    match wish {
        Wish::Add(..) => row.scopes.contains(&Scope::Manage) && is_in_time(row),
        Wish::Enable(_)
        | Wish::AutoApprove(..)
        | Wish::Remove(_)
        | Wish::SetSecret { .. }
        | Wish::ForgetSecret(..)
        | Wish::SignIn(_)
        | Wish::SignOut(_) => may(row, Scope::Manage, wish.server()),
    }
}

fn is_in_time(row: &ClientRow) -> bool {
    row.expires_at.is_none_or(|end| unix_ms() < end)
}

/// Whether a client may do this to a connector at present.
fn may(row: &ClientRow, scope: Scope, server: &ConnectorId) -> bool {
    let sees = |seen: &Vec<String>| seen.iter().any(|id| id == server.as_str());
    row.scopes.contains(&scope) && is_in_time(row) && row.servers.as_ref().is_none_or(sees)
}

fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(from).map(Some)
}

impl BridgeHandle {
    /// The paired clients, the oldest first.
    pub fn clients(&self) -> Vec<ClientView> {
        self.inner.callers.clients()
    }

    /// Changes what a client may do, from its next request on. What it asks and may not do any more is withdrawn.
    ///
    /// # Errors
    /// `not_found`, `bad_request`, `keychain_unavailable`, `not_saved`.
    pub async fn change_client(&self, id: String, change: ClientChange) -> Result<ClientView, ApiError> {
        let mut row = self.inner.callers.client(&id).ok_or_else(|| no_client(&id))?;
        let before = row.clone();
        if let Some(name) = change.name {
            row.name = usable_name(&name)?;
        }
        row.scopes = change.scopes.unwrap_or(row.scopes);
        row.servers = change.servers.unwrap_or(row.servers);
        row.expires_at = change.expires_at.unwrap_or(row.expires_at);
        row.asks_itself = change.asks_itself.unwrap_or(row.asks_itself);
        fits(&row.scopes, row.servers.as_deref())?;
        self.inner.callers.keep(&row).await?;
        if row.asks_itself != before.asks_itself {
            self.decided(None, asks(row.asks_itself), Some(row.name.clone()));
        }
        if row
            != (ClientRow {
                asks_itself: row.asks_itself,
                ..before
            })
        {
            self.decided(None, ActivityReview::ClientChanged, Some(row.name.clone()));
        }
        let label = format!("client:{id}");
        self.inner
            .approvals
            .withdraw(&label, |server| !may(&row, Scope::Call, server));
        self.inner.wishes.withdraw(&label, |wish| !may_wish(&row, wish));
        self.settled().await;
        self.client_view(&id)
    }

    /// Forgets a client: its token is wrong from its next request on, and what it asked is withdrawn.
    ///
    /// # Errors
    /// `not_found`, `keychain_unavailable`, `not_saved`.
    pub async fn revoke_client(&self, id: String) -> Result<(), ApiError> {
        let row = self.inner.callers.client(&id).ok_or_else(|| no_client(&id))?;
        self.inner.callers.forget(&id).await?;
        self.decided(None, ActivityReview::Unpaired, Some(row.name));
        let label = format!("client:{id}");
        self.inner.wishes.withdraw(&label, |_| true);
        self.inner.approvals.withdraw(&label, |_| true);
        self.settled().await;
        Ok(())
    }

    /// This caller as it would be let in now, with what its token is good for now; `None` where it does not hold any more.
    pub fn renewed(&self, caller: &Caller) -> Option<Caller> {
        match caller {
            Caller::Owner | Caller::WalkIn(_) => Some(caller.clone()),
            Caller::Client { pass, .. } => Some(caller.clone().with(self.inner.callers.renewed(pass)?)),
        }
    }

    /// Who needs a token.
    pub fn api_mode(&self) -> ApiMode {
        self.inner.callers.api_mode()
    }

    /// Whether whoever wished this may still wish it.
    pub(super) fn may_still_wish(&self, asker: &Asker, wish: &Wish) -> bool {
        match &asker.source {
            Some(Source::Client(id)) => {
                let row = self.inner.callers.client(id);
                row.is_some_and(|row| may_wish(&row, wish))
            }
            Some(
                Source::Owner
                | Source::Program(_)
                | Source::Process { .. }
                | Source::File(_)
                | Source::Unresolved
                | Source::Unknown,
            )
            | None => true,
        }
    }

    /// For two minutes a program may ask to be paired.
    pub async fn open_pairing(&self) {
        self.inner.callers.pairing().open(Instant::now(), unix_ms());
        self.settled().await;
    }

    /// Nobody may ask any more; whoever waits hears no.
    pub async fn close_pairing(&self) {
        self.inner.callers.pairing().close();
        self.settled().await;
    }

    /// The person turns a program away that asked. Others may ask in the time that is left; it may not.
    ///
    /// # Errors
    /// `not_found` where nothing of the id waits.
    pub async fn turn_away(&self, id: String) -> Result<(), ApiError> {
        let done = self.inner.callers.pairing().turn_away(&id, Instant::now());
        if let Some(name) = &done {
            let entry = activity::decided(None, ActivityReview::Paired, Some(name.clone()));
            self.inner.world.activity.record(entry.ended(Outcome::of(Code::Denied)));
        }
        self.settled().await;
        done.map(drop).ok_or_else(|| not_that(&id, NotThat::Unknown))
    }

    /// A program asks to be paired under a name that it chose.
    ///
    /// # Errors
    /// `scope_missing` where the person did not open pairing, `rate_limited` while another one is being paired, `denied` for
    /// one that was turned away, `bad_request`.
    pub async fn ask_pairing(&self, caller: Caller, name: String) -> Result<PairingBegun, ApiError> {
        let name = usable_name(&name)?;
        // Nobody is looked up for those who may not ask anyway.
        if !self.inner.callers.pairing().is_of_use(Instant::now()) {
            return Err(closed(Closed::NotOpen));
        }
        let by = Applicant {
            name,
            program: caller.shown().await.program,
            group: Source::of(&caller).await.group(),
        };
        let (id, code) = (super::wishes::draw_id()?, draw_code()?);
        let now = (Instant::now(), unix_ms());
        let asked = self.inner.callers.pairing().ask(id.clone(), by, code.clone(), now);
        asked.map_err(closed)?;
        self.settled().await;
        Ok(PairingBegun {
            id,
            code,
            within: OPEN_FOR,
        })
    }

    /// What became of a program that asked; its token, once.
    pub async fn poll_pairing(&self, id: String) -> Polled {
        self.inner.callers.pairing().poll(&id, Instant::now())
    }

    /// The person typed the code that a program shows, and says what it may do.
    ///
    /// # Errors
    /// `bad_request` for a wrong code, and how many tries are left; `denied` for the last one; `not_found` where nothing of
    /// the id waits; `keychain_unavailable`, `not_saved`.
    pub async fn answer_pairing(&self, id: String, code: String, terms: Terms) -> Result<ClientView, ApiError> {
        fits(&terms.scopes, terms.servers.as_deref())?;
        if terms.expires_at.is_some_and(|end| end <= unix_ms()) {
            return Err(ApiError::bad_request("The end of a token has to lie ahead."));
        }
        if self.inner.callers.clients().len() >= MOST_CLIENTS {
            return Err(ApiError::bad_request(format!(
                "{MOST_CLIENTS} assistants are paired already; remove one first."
            )));
        }
        let (client, token) = draw_token()?;
        let checked = self.inner.callers.pairing().check(&id, &code, Instant::now());
        let let_in = match checked {
            Ok(let_in) => let_in,
            Err(why) => {
                self.settled().await;
                return Err(not_that(&id, why));
            }
        };
        let row = ClientRow {
            id: client.clone(),
            name: let_in.name,
            scopes: terms.scopes,
            servers: terms.servers,
            asks_itself: terms.asks_itself,
            paired_at: unix_ms(),
            expires_at: terms.expires_at,
            used_at: None,
            hash: hex(TokenHash::of(token.expose_secret()).as_bytes()),
            program: let_in.program.map(Into::into),
        };
        if let Err(fault) = self.inner.callers.keep(&row).await {
            self.inner.callers.pairing().release(&id);
            return Err(fault.into());
        }
        self.inner.callers.pairing().grant(&id, token, Instant::now());
        self.decided(None, ActivityReview::Paired, Some(row.name.clone()));
        if row.asks_itself {
            self.decided(None, ActivityReview::AsksItself, Some(row.name));
        }
        self.settled().await;
        self.client_view(&client)
    }

    fn client_view(&self, id: &str) -> Result<ClientView, ApiError> {
        let mut clients = self.clients().into_iter();
        clients.find(|client| client.id == id).ok_or_else(|| no_client(id))
    }
}

/// A name as it is shown: one line, not too long.
fn usable_name(name: &str) -> Result<String, ApiError> {
    let name: String = name.chars().filter(|char| !char.is_control()).collect();
    let name = name.trim();
    if name.is_empty() || name.chars().count() > LONGEST_NAME {
        return Err(ApiError::bad_request(format!(
            "The name has to have between 1 and {LONGEST_NAME} characters."
        )));
    }
    Ok(name.to_owned())
}

/// Whether something can be kept of it that makes sense.
fn fits(scopes: &[Scope], servers: Option<&[String]>) -> Result<(), ApiError> {
    let is_once = |scope: &Scope| scopes.iter().filter(|other| *other == scope).count() == 1;
    if scopes.is_empty() || !scopes.iter().all(is_once) {
        return Err(ApiError::bad_request(
            "Choose at least one thing that the assistant may do, each once.",
        ));
    }
    if servers.is_some_and(<[String]>::is_empty) {
        return Err(ApiError::bad_request(
            "Choose at least one connector, or let it use all of them.",
        ));
    }
    Ok(())
}

fn no_client(id: &str) -> ApiError {
    ApiError::new(
        Code::NotFound,
        format!("No assistant is paired under \"{}\".", shown(id)),
    )
}

fn closed(why: Closed) -> ApiError {
    match why {
        Closed::NotOpen => ApiError::new(
            Code::ScopeMissing,
            "Pairing is not open. The person opens it for two minutes in the Neuron Connect window, under Assistants; \
             where there is none, with neuron-connectd pair.",
        ),
        Closed::Busy => ApiError::new(
            Code::RateLimited,
            "Another assistant is being paired. Ask again when that is over.",
        )
        .with_retry_after(BUSY_FOR),
        Closed::TurnedAway => ApiError::new(
            Code::Denied,
            "This program was turned away. It may ask again once the person opens pairing anew.",
        ),
    }
}

fn not_that(id: &str, why: NotThat) -> ApiError {
    match why {
        NotThat::Wrong(1) => ApiError::bad_request("That is not the code that the assistant shows. One try is left."),
        NotThat::Wrong(left) => ApiError::bad_request(format!(
            "That is not the code that the assistant shows. {left} tries are left."
        )),
        NotThat::Last => ApiError::new(
            Code::Denied,
            "That was the third wrong code, so the assistant was turned away. If it was yours, open pairing anew.",
        ),
        NotThat::Unknown => ApiError::new(
            Code::NotFound,
            format!(
                "No assistant waits to be paired under \"{}\"; its two minutes may be over.",
                shown(id)
            ),
        ),
    }
}

/// Six digits, each as likely as any other.
fn draw_code() -> Result<SecretString, ApiError> {
    const CODES: u32 = 1_000_000;
    loop {
        let mut bits = [0; 4];
        random(&mut bits)?;
        let number = u32::from_be_bytes(bits);
        // What is left over at the end would make some codes likelier.
        if number < u32::MAX - u32::MAX % CODES {
            return Ok(format!("{:06}", number % CODES).into());
        }
    }
}

/// A client's id, and its token: `ncb_<id>_<43 base64url characters>`, 256 random bits.
fn draw_token() -> Result<(String, SecretString), ApiError> {
    let (mut id, mut bits) = ([0; 6], [0; 32]);
    random(&mut id)?;
    random(&mut bits)?;
    let id = hex(&id);
    let token = format!("{PREFIX}{id}_{}", BASE64_URL_SAFE_NO_PAD.encode(bits));
    Ok((id, token.into()))
}

fn random(bits: &mut [u8]) -> Result<(), ApiError> {
    getrandom::fill(bits).map_err(|error| {
        tracing::error!(%error, "the system gives no random numbers");
        ApiError::internal()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::caller::token::Presented;

    #[test]
    fn a_drawn_token_is_one_that_the_gate_reads_and_no_other_has_it() {
        let mut seen = HashSet::new();
        for _ in 0..100 {
            let (id, token) = draw_token().unwrap();
            let read = Presented::parse(token.expose_secret()).unwrap();
            assert_eq!(read.id, id);
            assert!(seen.insert(token.expose_secret().to_owned()));
        }
    }

    #[test]
    fn a_code_has_six_digits() {
        for _ in 0..100 {
            let code = draw_code().unwrap();
            let code = code.expose_secret();
            assert!(
                code.len() == 6 && code.bytes().all(|digit| digit.is_ascii_digit()),
                "{code}"
            );
        }
    }

    #[test]
    fn a_change_tells_all_connectors_from_no_word_about_them() {
        let read = |text: &str| serde_json::from_str::<ClientChange>(text).unwrap().servers;
        assert_eq!(read("{}"), None);
        assert_eq!(read(r#"{"servers":null}"#), Some(None));
        assert_eq!(read(r#"{"servers":["a"]}"#), Some(Some(vec!["a".to_owned()])));
        assert!(serde_json::from_str::<ClientChange>(r#"{"hash":"x"}"#).is_err());
    }
}
