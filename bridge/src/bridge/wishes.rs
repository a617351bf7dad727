//! What programs may change: a little at once, everything else after the person's yes.
//!
//! Looks at a wish as far as it can be looked at without doing anything, words the question, and grants it: exactly what
//! was shown, which is looked at once more then. `wishes` holds those that wait.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::{
    BridgeHandle, Caller, Shell, pauses::PauseOrder, permit::asker, secrets, sign_in::SignInAsk, unknown_server,
};
use crate::{
    activity::{Entry, Outcome, WhoRecord},
    approval::Asker,
    caller::Scope,
    config::{self, AutoApprove, Connector, Launch},
    error::{ApiError, Code},
    ids::ConnectorId,
    secrets::{Account, Binding, Bound as Found, SecretName},
    snapshot::{
        ActivityCaller, ActivityQuestion, ActivityWhat, AllowedBy, ApprovalState, ApprovalView, ChangeQuestion,
        ConnectorView, EntryOrigin, LaunchReview, LaunchWhy, PersonAnswer, Question, Status, WhoView,
    },
    trust::{LaunchIdentity, review::review_id},
    wishes::{Asked, Bound, Full, Placed, Taken, Wish, Wishing},
};

/// Between two times that programs without the right to manage reconnect or pause one connector (DESIGN §7.2).
const MEDDLE_EVERY: Duration = Duration::from_secs(30);
/// A question says whether a secret takes another's place, if the keychain answers by then.
const SEEN_WITHIN: Duration = Duration::from_millis(500);
/// When a wish that found no place is worth trying again.
const FULL_FOR: Duration = Duration::from_secs(60);

/// A wish that waits for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub approval_id: String,
    /// What waits, and where it is answered.
    pub message: String,
}

impl BridgeHandle {
    /// Puts a change that a program wishes for to the person. Nothing of it is done.
    ///
    /// # Errors
    /// `scope_missing`, `unknown_server`, `already_exists`, `bad_request`, `rate_limited` where too many wait,
    /// or the person told this program to stop asking.
    pub async fn wish(&self, caller: Caller, wish: Wish) -> Result<Pending, ApiError> {
        may_manage(&caller)?;
        let asker = asker(&caller).await;
        self.not_stopped(&asker)?;
        let wish = self.looked_at(&caller, wish)?;
        let who = caller.shown().await;
        let server_name = self.name_of(&wish);
        let Asked { question, bound } = self.question(&wish, &who).await?;
        let words = wish.words();
        let is_launch = matches!(wish, Wish::Add(..));
        let id = draw_id()?;
        // The person may have said so while this was looked at.
        self.not_stopped(&asker)?;
        let wishing = Wishing {
            wish,
            asker,
            server_name,
            question,
            bound,
        };
        let Placed { id, made_way } = self.inner.wishes.put(id, wishing).map_err(|full| {
            ApiError::new(
                Code::RateLimited,
                match full {
                    Full::OfOne => {
                        "Five changes of this program wait for the person already. Try again once some are answered."
                    }
                    Full::InAll => "Too many changes wait for the person already. Try again once some are answered.",
                },
            )
            .with_retry_after(FULL_FOR)
        })?;
        if let Some(view) = made_way {
            self.inner.world.activity.record(entry(&view));
        }
        if is_launch {
            self.look_for_its_program(id.clone());
        }
        Ok(Pending {
            message: match self.inner.shell {
                Shell::Tray => format!("{words} waits for the person's yes in the Neuron Connect window."),
                Shell::Headless(_) => {
                    format!("{words} waits for the person's yes: neuron-connectd approve {id}.")
                }
            },
            approval_id: id,
        })
    }

    /// A program wants a connector reconnected.
    ///
    /// # Errors
    /// As [`BridgeHandle::reconnect`]; `scope_missing` for one that works, from a program that may not manage;
    /// `rate_limited`.
    pub async fn reconnect_for(&self, caller: Caller, id: ConnectorId) -> Result<(ConnectorView, bool), ApiError> {
        let view = self.seen_by(&caller, &id)?;
        if !has_free_hand(&caller)? {
            match view.status {
                Status::Error | Status::Retrying => {}
                Status::Disabled
                | Status::Sleeping
                | Status::Connecting
                | Status::Connected
                | Status::NeedsSignIn
                | Status::NeedsSecret
                | Status::NeedsReview
                | Status::Paused
                | Status::KeychainUnavailable
                | Status::Invalid => {
                    return Err(ApiError::new(
                        Code::ScopeMissing,
                        format!(
                            "A program may reconnect {} only while it fails. The person can do it in the Neuron Connect \
                             window.",
                            view.name
                        ),
                    ));
                }
            }
            self.meddle(&id)?;
        }
        self.reconnect(id).await
    }

    /// A program wants a connector off: paused until the next start, unwritten. One with the right to manage turns it off
    /// in the file.
    ///
    /// # Errors
    /// `unknown_server`, `scope_missing`, `rate_limited`, `not_saved`.
    pub async fn turn_off_for(&self, caller: Caller, id: ConnectorId) -> Result<(), ApiError> {
        self.seen_by(&caller, &id)?;
        if has_free_hand(&caller)? {
            return self.set_enabled(id, false).await;
        }
        if self.inner.world.pauses.is_paused(&id) {
            return Ok(());
        }
        self.meddle(&id)?;
        let who = caller.shown().await;
        let told = WhoRecord::from(&who);
        self.pause(PauseOrder::Pause(id.clone(), who)).await?;
        self.told_of_pause(told, Some(&id), true);
        Ok(())
    }

    /// The person's yes or no to a wish; `None` = the id is of no wish.
    ///
    /// # Errors
    /// Those of what is to be done, which then waits again; `needs_review` where it is not what was shown any more;
    /// `already_exists`, `approval_timeout`.
    pub(super) async fn answer_wish(&self, id: &str, yes: bool) -> Option<Result<ApprovalView, ApiError>> {
        let (wish, view, bound) = match self.inner.wishes.take(id)? {
            Taken::Wish { wish, view, bound } => (wish, view, bound),
            Taken::UnderWay => {
                return Some(Err(ApiError::new(
                    Code::AlreadyExists,
                    "This was answered a moment ago and is being done.",
                )));
            }
            Taken::Over(state) => return Some(Err(super::approvals::over(state))),
        };
        if !yes {
            return Some(Ok(self.wish_ended(id, ApprovalState::Denied, *view)));
        }
        // What was begun goes on when whoever answered leaves.
        let (handle, id) = (self.clone(), id.to_owned());
        let granting = tokio::spawn(async move { handle.grant(&id, &wish, *view, &bound).await });
        Some(granting.await.unwrap_or_else(|error| {
            tracing::error!(%error, "granting a wish ended abnormally");
            Err(ApiError::internal())
        }))
    }

    async fn grant(&self, id: &str, wish: &Wish, view: ApprovalView, bound: &Bound) -> Result<ApprovalView, ApiError> {
        let asker = self.inner.wishes.asker(id);
        if !asker.is_none_or(|asker| self.may_still_wish(&asker, wish)) {
            self.wish_ended(id, ApprovalState::Expired, view);
            self.settled().await;
            return Err(ApiError::new(
                Code::Denied,
                "The program that wished this may not ask for it any more. Nothing was done.",
            ));
        }
        let done = match self.still_as_shown(wish, &view, bound).await {
            Ok(None) => self.do_as_wished(wish, bound).await,
            Ok(Some(asked)) => {
                self.inner.wishes.put_back(id, Some(asked));
                self.settled().await;
                return Err(changed());
            }
            Err(error) => Err(error),
        };
        match done {
            Ok(()) => Ok(self.wish_ended(id, ApprovalState::Approved, view)),
            Err(error) => {
                match error.code {
                    // It can never be done as it was shown.
                    Code::UnknownServer | Code::AlreadyExists => {
                        self.wish_ended(id, ApprovalState::Expired, view);
                    }
                    // Only when it was done it turned out to be another one.
                    Code::NeedsReview => {
                        let now = self.still_as_shown(wish, &view, bound).await;
                        self.inner.wishes.put_back(id, now.ok().flatten());
                    }
                    _ => self.inner.wishes.put_back(id, None),
                }
                self.settled().await;
                Err(error)
            }
        }
    }

    fn wish_ended(&self, id: &str, state: ApprovalState, before: ApprovalView) -> ApprovalView {
        let Some((view, _)) = self.inner.wishes.settle(id, state) else {
            return before;
        };
        self.inner.world.activity.record(entry(&view));
        view
    }

    /// The question as it would be now, where a yes to the one that was shown would cover something else.
    async fn still_as_shown(&self, wish: &Wish, view: &ApprovalView, shown: &Bound) -> Result<Option<Asked>, ApiError> {
        let Question::Manage { who, change: before } = &view.question else {
            return Ok(None);
        };
        let asked = self.question(wish, who).await?;
        let Question::Manage { change: now, .. } = &asked.question else {
            return Ok(None);
        };
        let takes_anothers_place = match (&**before, &**now) {
            (ChangeQuestion::SetSecret { replaces: before, .. }, ChangeQuestion::SetSecret { replaces: now, .. }) => {
                *now && !*before
            }
            (_, _) => false,
        };
        Ok((asked.bound != *shown || takes_anothers_place).then_some(asked))
    }

    async fn do_as_wished(&self, wish: &Wish, shown: &Bound) -> Result<(), ApiError> {
        match wish {
            Wish::Add(id, entry) => match shown {
                Bound::Launch(launch) => self.add_as_shown(id.clone(), entry.clone(), *launch).await,
                // It was never shown as what it would run.
                Bound::Nothing | Bound::Tools { .. } | Bound::Place(_) => Err(changed()),
            },
            Wish::Enable(id) => self.set_enabled(id.clone(), true).await,
            Wish::AutoApprove(id, value) => match shown {
                Bound::Tools { tools, .. } => self.set_auto_approve_as_shown(id.clone(), value.clone(), tools).await,
                Bound::Nothing | Bound::Launch(_) | Bound::Place(_) => Err(changed()),
            },
            Wish::Remove(id) => self.remove(id.clone()).await,
            Wish::SetSecret { id, name, value } => match shown {
                Bound::Place(place) => {
                    self.keep_secret(id.clone(), name.clone(), value.clone(), Some(place))
                        .await
                }
                Bound::Nothing | Bound::Launch(_) | Bound::Tools { .. } => Err(changed()),
            },
            Wish::ForgetSecret(id, name) => self.forget_secret(id.clone(), name.clone()).await,
            // Whoever shows the window opens the page; it stands in the snapshot.
            Wish::SignIn(id) => self.sign_in(id.clone(), SignInAsk::default()).await.map(drop),
            Wish::SignOut(id) => self.sign_out(id.clone()).await,
        }
    }

    /// The wish, where it can be granted at all. Says no more of an entry than its caller may know.
    fn looked_at(&self, caller: &Caller, wish: Wish) -> Result<Wish, ApiError> {
        match wish {
            Wish::Add(id, entry) => {
                // To whom it is unknown, that it is there is no business of theirs: a yes to theirs comes to nothing.
                if caller.sees(id.as_str()) && self.view_of(&id).is_ok() {
                    return Err(ApiError::new(
                        Code::AlreadyExists,
                        format!("There is already a connector \"{id}\"; choose another id."),
                    ));
                }
                config::validate_body(&id, &entry).map_err(ApiError::bad_request)?;
                Ok(Wish::Add(id, entry))
            }
            Wish::SetSecret { id, name, value } => {
                self.seen_by(caller, &id)?;
                let entry = self.door(&id)?.shared.entry();
                let value = secrets::usable(&entry, name.as_ref(), value)?;
                secrets::mentioned(&entry, name.as_ref()).map_err(|_unsaid| {
                    ApiError::bad_request(format!("The entry of {id} does not mention that. Nothing was kept."))
                })?;
                Ok(Wish::SetSecret { id, name, value })
            }
            Wish::Enable(_)
            | Wish::AutoApprove(..)
            | Wish::Remove(_)
            | Wish::ForgetSecret(..)
            | Wish::SignIn(_)
            | Wish::SignOut(_) => {
                self.seen_by(caller, wish.server())?;
                Ok(wish)
            }
        }
    }

    async fn question(&self, wish: &Wish, who: &WhoView) -> Result<Asked, ApiError> {
        let (change, bound) = match wish {
            Wish::Add(id, entry) => {
                let (launch, identity) = self.launch(id, entry, who).await?;
                (ChangeQuestion::Add { launch }, Bound::Launch(identity))
            }
            Wish::Enable(_) => (ChangeQuestion::Enable, Bound::Nothing),
            Wish::AutoApprove(id, value) => {
                let entry = self.door(id)?.shared.entry();
                let launch = self.inner.world.prepare(&entry).await.identity;
                let bound = self.wished(id, value);
                let patterns = match value {
                    AutoApprove::None => Vec::new(),
                    AutoApprove::All => vec!["*".to_owned()],
                    AutoApprove::Patterns(patterns) => patterns.clone(),
                };
                let tools = bound.iter().map(|bound| bound.tool.to_string()).collect();
                (
                    ChangeQuestion::AutoApprove { patterns, tools },
                    Bound::Tools { launch, tools: bound },
                )
            }
            Wish::Remove(_) => (ChangeQuestion::Remove, Bound::Nothing),
            Wish::SetSecret { id, name, .. } => {
                let entry = self.door(id)?.shared.entry();
                let binding = self.inner.world.binding(&entry).await;
                let change = ChangeQuestion::SetSecret {
                    name: name.as_ref().map(ToString::to_string),
                    replaces: self.is_set(id, name.as_ref(), &binding).await,
                    goes_to: goes_to(&entry),
                };
                (change, Bound::Place(binding))
            }
            Wish::ForgetSecret(_, name) => {
                let name = name.as_ref().map(ToString::to_string);
                (ChangeQuestion::ForgetSecret { name }, Bound::Nothing)
            }
            Wish::SignIn(id) => {
                let entry = self.door(id)?.shared.entry();
                (
                    ChangeQuestion::SignIn,
                    Bound::Place(self.inner.world.binding(&entry).await),
                )
            }
            Wish::SignOut(_) => (ChangeQuestion::SignOut, Bound::Nothing),
        };
        let question = Question::Manage {
            who: who.clone(),
            change: Box::new(change),
        };
        Ok(Asked { question, bound })
    }

    async fn launch(
        &self,
        id: &ConnectorId,
        entry: &Map<String, Value>,
        who: &WhoView,
    ) -> Result<(LaunchReview, LaunchIdentity), ApiError> {
        let entry = config::validate_body(id, entry).map_err(ApiError::bad_request)?;
        let world = &self.inner.world;
        let prepared = world.prepare(&entry).await;
        let now = world.shown(&entry);
        let review = LaunchReview {
            id: review_id(id, &prepared.identity, &LaunchWhy::New),
            server: id.clone(),
            server_name: entry.name.clone().unwrap_or_else(|| id.to_string()),
            why: LaunchWhy::New,
            came_from: EntryOrigin::Caller { who: who.clone() },
            stands_out: world.stands_out(&entry, &now, &prepared),
            now,
            before: None,
            // What was decided of its connector is looked at once it is allowed.
            asleep: Vec::new(),
        };
        Ok((review, prepared.identity))
    }

    /// The question names the program once it is known where programs are; the login shell may take seconds to say it.
    fn look_for_its_program(&self, id: String) {
        if self.inner.world.known_programs().is_some() {
            return;
        }
        let handle = self.clone();
        tokio::spawn(async move {
            handle.inner.world.look_for_programs().await;
            let Some(view) = handle.inner.wishes.find(&id, None) else {
                return;
            };
            if let (Question::Manage { who, .. }, Some(wish)) = (&view.question, handle.inner.wishes.wish(&id))
                && let Ok(asked) = handle.question(&wish, who).await
            {
                handle.inner.wishes.show(&id, asked.question);
            }
        });
    }

    /// Whether there is a secret already, for whatever; a keychain that does not say so soon says no.
    async fn is_set(&self, id: &ConnectorId, name: Option<&SecretName>, binding: &Binding) -> bool {
        let account = Account::entered(id.clone(), name.cloned());
        let looked = self.inner.world.keychain.read_bound(&account, binding);
        match tokio::time::timeout(SEEN_WITHIN, looked).await {
            Ok(Ok(Found::Value(_) | Found::Withheld)) => true,
            Ok(Ok(Found::Missing) | Err(_)) | Err(_) => false,
        }
    }

    fn name_of(&self, wish: &Wish) -> String {
        let id = wish.server();
        match wish {
            Wish::Add(_, entry) => match entry.get("name") {
                Some(Value::String(name)) => super::shown(name),
                _ => id.to_string(),
            },
            Wish::Enable(_)
            | Wish::AutoApprove(..)
            | Wish::Remove(_)
            | Wish::SetSecret { .. }
            | Wish::ForgetSecret(..)
            | Wish::SignIn(_)
            | Wish::SignOut(_) => self.view_of(id).map_or_else(|_| id.to_string(), |view| view.name),
        }
    }

    /// The connector, where this caller may know of it.
    pub(super) fn seen_by(&self, caller: &Caller, id: &ConnectorId) -> Result<ConnectorView, ApiError> {
        match caller.sees(id.as_str()) {
            true => self.view_of(id),
            false => Err(unknown_server(id.as_str())),
        }
    }

    /// Refuses a program that the person told to stop asking.
    fn not_stopped(&self, asker: &Asker) -> Result<(), ApiError> {
        match self.inner.approvals.stopped_for(asker) {
            Some(left) => Err(ApiError::new(
                Code::RateLimited,
                "The person does not want to be asked by this program for now; nothing was changed.",
            )
            .with_retry_after(left)),
            None => Ok(()),
        }
    }

    /// Counts a reconnect or a pause by a program.
    fn meddle(&self, id: &ConnectorId) -> Result<(), ApiError> {
        let now = Instant::now();
        let mut last = self
            .inner
            .meddled
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        last.retain(|_, at| now.saturating_duration_since(*at) < MEDDLE_EVERY);
        if let Some(at) = last.get(id) {
            let wait = MEDDLE_EVERY.saturating_sub(now.saturating_duration_since(*at));
            return Err(ApiError::new(
                Code::RateLimited,
                format!("Programs may do this to {id} once in 30 seconds."),
            )
            .with_retry_after(wait));
        }
        last.insert(id.clone(), now);
        Ok(())
    }
}

/// The refusal of a yes to something else than was shown.
pub(super) fn changed() -> ApiError {
    ApiError::new(
        Code::NeedsReview,
        "What this would do has changed since it was shown. Nothing was done; look at it once more.",
    )
}

/// Whether the caller may ask for changes at all.
fn may_manage(caller: &Caller) -> Result<(), ApiError> {
    match caller {
        Caller::Owner | Caller::WalkIn(_) => Ok(()),
        Caller::Client { .. } => has_free_hand(caller).map(drop),
    }
}

/// Whether it reconnects and turns off as it likes.
fn has_free_hand(caller: &Caller) -> Result<bool, ApiError> {
    match caller {
        Caller::Owner => Ok(true),
        Caller::WalkIn(_) => Ok(false),
        Caller::Client { .. } => caller.needs(Scope::Manage).map(|()| true),
    }
}

/// Where what is entered or signed in for goes, for people.
fn goes_to(entry: &Connector) -> String {
    match &entry.launch {
        Launch::Http(http) => {
            config::host_of(http).map_or_else(|| http.url.clone(), |url| url.origin().ascii_serialization())
        }
        Launch::Stdio(stdio) => stdio.command.clone(),
    }
}

/// What became of a wish.
pub(super) fn entry(view: &ApprovalView) -> Entry {
    let who = match &view.question {
        Question::Manage { who, .. } => WhoRecord::from(who),
        Question::Elicitation { .. } | Question::Call { .. } => WhoRecord::plain(ActivityCaller::WalkIn),
    };
    let what = ActivityWhat::Question {
        server: view.server.clone(),
        asks: ActivityQuestion::Change,
    };
    let (outcome, answer) = match view.state {
        ApprovalState::Approved => (Outcome::Ok, PersonAnswer::Once),
        ApprovalState::Denied => (Outcome::Denied(Code::Denied.name()), PersonAnswer::Denied),
        ApprovalState::Expired | ApprovalState::Waiting => {
            (Outcome::Denied(Code::ApprovalTimeout.name()), PersonAnswer::Unanswered)
        }
    };
    let mut entry = Entry::new(who, what).ended(outcome);
    entry.duration_ms = Some(entry.at.saturating_sub(view.asked_at));
    entry.allowed_by = AllowedBy::Person { answer };
    entry
}

pub(super) fn draw_id() -> Result<String, ApiError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| {
        tracing::error!(%error, "the system gives no random numbers");
        ApiError::internal()
    })?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
