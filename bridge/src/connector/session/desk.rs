//! Where the questions of one session's upstream (MCP elicitation) reach the person, and how they are answered.
//!
//! Shows a question as the upstream's own, only once its session stands, and never one that must not be shown. Opens and
//! looks up nothing.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use futures::future;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{End, under_way::UnderWay};
use crate::{
    approval::{Approvals, Asker, Asking, Verdict, Waiting, elicitation},
    caller::Caller,
    config,
    connector::log::Log,
    ids::ConnectorId,
    snapshot::{Elicitation, Era, Question},
};

/// Pages whose completion is waited for at once; more than questions can wait.
const MOST_PAGES: usize = 32;

/// Questions without a call that may be denied or left alone; until the next call, more are declined unseen.
const MOST_UNWANTED: usize = 2;

/// One session's way to the person.
pub struct Desk {
    approvals: Arc<Approvals>,
    server: ConnectorId,
    server_name: String,
    log: Log,
    /// Its session, once that stands.
    session: OnceLock<Arc<End>>,
    /// By the upstream's id of each.
    pages: Mutex<HashMap<String, CancellationToken>>,
    uncalled: Mutex<Uncalled>,
}

/// What the upstream asked while no call was under way.
#[derive(Debug, Default)]
struct Uncalled {
    /// How many calls there had been.
    calls: u64,
    waits: bool,
    unwanted: usize,
    is_told: bool,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// What an upstream is answered (`ElicitResult`).
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Response {
    /// Yes; of a form, with its values.
    Accept(Option<Map<String, Value>>),
    /// No: by the person, or because it must not be asked.
    Decline,
    /// The person did not choose.
    Cancel,
}

impl Response {
    pub fn to_json(&self) -> Value {
        match self {
            Self::Accept(Some(content)) => json!({"action": "accept", "content": content}),
            Self::Accept(None) => json!({"action": "accept"}),
            Self::Decline => json!({"action": "decline"}),
            Self::Cancel => json!({"action": "cancel"}),
        }
    }
}

impl From<Verdict> for Response {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Approved(content) => Self::Accept(content),
            Verdict::Denied => Self::Decline,
            // A yes to a call is none to a form.
            Verdict::Cancelled | Verdict::Expired | Verdict::MadeWay | Verdict::Allowed(_) => Self::Cancel,
        }
    }
}

impl Desk {
    /// For the sessions of this entry; what is not shown to the person is told in `log`.
    pub fn new(approvals: Arc<Approvals>, entry: &config::Connector, log: Log) -> Self {
        Self {
            approvals,
            server: entry.id.clone(),
            server_name: entry.name.clone().unwrap_or_else(|| entry.id.to_string()),
            log,
            session: OnceLock::new(),
            pages: Mutex::default(),
            uncalled: Mutex::default(),
        }
    }

    /// Its session stands: questions are taken until that is over.
    pub(super) fn open(&self, end: Arc<End>) {
        // A desk serves one session.
        let _ = self.session.set(end);
    }

    /// A question that came by itself (revisions up to 2025-11-25), while `calls` are under way, of `begun` that there ever
    /// were. It belongs to the one call there is; with several or none it is nobody's, which the owner answers. It ends with
    /// the last of them. Without a call one waits at a time, and only as long as the person wants them.
    pub(super) async fn asked(
        &self,
        era: Option<Era>,
        calls: Vec<Arc<UnderWay>>,
        begun: u64,
        params: &Value,
    ) -> Response {
        let is_unrelated = calls.is_empty() && era == Some(Era::Modern);
        if is_unrelated {
            self.note("it belongs to no request, which the protocol forbids");
            return Response::Decline;
        }
        if calls.iter().any(|call| !call.may_ask()) {
            self.note("one request asked too often");
            return Response::Cancel;
        }
        if calls.is_empty() {
            return match self.turn(begun) {
                Ok(turn) => turn.take(self.put(Caller::Owner.label().to_owned(), params)).await,
                Err(response) => response,
            };
        }
        let caller = match &calls[..] {
            [only] => only.caller.clone(),
            _ => Caller::Owner.label().to_owned(),
        };
        let _standing: Vec<_> = calls.iter().map(|call| call.clock.stop()).collect();
        let all_over = future::join_all(calls.iter().map(|call| call.over.cancelled()));
        tokio::select! {
            response = self.put(caller, params) => response,
            _ = all_over => Response::Cancel,
        }
    }

    /// A question that certainly belongs to this request. The request's time stands still meanwhile.
    pub(super) async fn ask_for(&self, request: &UnderWay, params: &Value) -> Response {
        if !request.may_ask() {
            self.note("one request asked too often");
            return Response::Cancel;
        }
        let _standing = request.clock.stop();
        self.put(request.caller.clone(), params).await
    }

    /// The upstream says that what it wanted of a page is done.
    pub(super) fn completed(&self, id: &str) {
        if let Some(page) = self.pages().get(id) {
            page.cancel();
        }
    }

    async fn put(&self, caller: String, params: &Value) -> Response {
        let Some(end) = self.session.get() else {
            self.note("its session did not stand yet");
            return Response::Cancel;
        };
        let asks = match self.read(params) {
            Ok(asks) => asks,
            Err(why) => {
                self.note(&why);
                return Response::Decline;
            }
        };
        let page = match &asks {
            Elicitation::Url { .. } => params["elicitationId"].as_str(),
            Elicitation::Form { .. } => None,
        };
        let page = page.map(|id| self.page(id));
        let asking = Asking {
            server: self.server.clone(),
            server_name: self.server_name.clone(),
            asker: Asker {
                label: caller,
                source: None,
                shown_by: None,
            },
            question: Question::Elicitation { asks },
            matter: None,
        };
        let mut waiting = match self.approvals.ask(asking) {
            Ok(waiting) => waiting,
            Err(error) => {
                self.note(&error.to_string());
                return Response::Cancel;
            }
        };
        tokio::select! {
            biased;
            verdict = waiting.verdict() => verdict.into(),
            () = end.is_over() => Response::Cancel,
            () = completion(page.as_ref()) => done(waiting),
        }
    }

    fn read(&self, params: &Value) -> Result<Elicitation, String> {
        let asks = elicitation::read(params).map_err(|unfit| unfit.to_string())?;
        // What it knows already needs no showing, and a secret is shown nowhere.
        if self.log.redactor().is_told_in(params) {
            return Err("it repeats a secret of this connector".to_owned());
        }
        Ok(asks)
    }

    /// Lets one question without a call ask, or says how it ends at once. A flood of them is told once.
    fn turn(&self, begun: u64) -> Result<Turn<'_>, Response> {
        let mut uncalled = self.uncalled();
        if uncalled.calls != begun {
            *uncalled = Uncalled {
                calls: begun,
                waits: uncalled.waits,
                ..Uncalled::default()
            };
        }
        let (response, why) = if uncalled.unwanted >= MOST_UNWANTED {
            (Response::Decline, "it asks again without being called")
        } else if uncalled.waits {
            (Response::Cancel, "another one waits, and no call is under way")
        } else {
            uncalled.waits = true;
            uncalled.unwanted += 1;
            return Ok(Turn { desk: self });
        };
        if !std::mem::replace(&mut uncalled.is_told, true) {
            self.note(why);
        }
        Err(response)
    }

    fn uncalled(&self) -> MutexGuard<'_, Uncalled> {
        self.uncalled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, why: &str) {
        self.log.line(&format!(
            "[approval] a question of the server was not put to you: {why}"
        ));
    }

    fn page(&self, id: &str) -> Page<'_> {
        let done = CancellationToken::new();
        let mut pages = self.pages();
        let is_listed = pages.len() < MOST_PAGES && !pages.contains_key(id);
        if is_listed {
            pages.insert(id.to_owned(), done.clone());
        }
        Page {
            desk: self,
            id: is_listed.then(|| id.to_owned()),
            done,
        }
    }

    fn pages(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one question without a call; unwanted unless the person says yes to it.
struct Turn<'d> {
    desk: &'d Desk,
}

impl Turn<'_> {
    async fn take(self, question: impl Future<Output = Response>) -> Response {
        let response = question.await;
        if matches!(response, Response::Accept(_)) {
            self.desk.uncalled().unwanted = 0;
        }
        response
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.desk.uncalled().waits = false;
    }
}

/// A page that the person was asked to open.
struct Page<'d> {
    desk: &'d Desk,
    id: Option<String>,
    done: CancellationToken,
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.desk.pages().remove(id);
        }
    }
}

async fn completion(page: Option<&Page<'_>>) {
    match page {
        Some(page) => page.done.cancelled().await,
        None => future::pending().await,
    }
}

fn done(waiting: Waiting) -> Response {
    waiting.done();
    Response::Accept(None)
}
