//! The event loop that owns the configuration and the connectors.
//!
//! It never waits for an upstream: connectors that must stop do so in tasks of their own, and what replaces one waits
//! for it there.

mod told;

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::FutureExt;
use indexmap::IndexMap;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Inner, activity,
    decide::ViewDesk,
    pauses::PauseOrder,
    person_file::{Edit, PersonFile},
    pins::{PinBoard, PinEdit},
    publish::ListKey,
    reviews::{ReviewList, ReviewOrder},
    sign_in, start,
};
use crate::{
    clock::unix_ms,
    config::{self, Change, Config, EntryKind, Watcher},
    connector::{Access, Beginning, Cause, Earlier, Handle, World},
    error::ApiError,
    event::Event,
    ids::ConnectorId,
    ledger::RowKind,
    secrets::{BindingChange, SecretName},
    settings::Settings,
    snapshot::{ApiView, Notice, NoticeLevel},
    trust::{
        pins::Adoption,
        rules::{self, Rule, RuleId},
    },
};

/// Stopping gives up on connectors after this long; their processes are then killed with the rest.
const STOP_WITHIN: Duration = Duration::from_secs(4);

/// What happened last is given up after this long.
const LAST_ENTRIES_WITHIN: Duration = Duration::from_millis(500);

/// Where it is told what came of an order.
pub(crate) type Reply = oneshot::Sender<Result<(), ApiError>>;

/// What the owner is asked to do.
pub(crate) enum Command {
    Edit(Edit, Reply),
    Review(ReviewOrder, Reply),
    /// Rules that sleep go on, by the id of what is shown of them.
    KeepRules(String, Reply),
    Pause(PauseOrder, Reply),
    Reload(oneshot::Sender<()>),
    /// Publishes, and tells once everything that is known was looked at.
    Publish(oneshot::Sender<()>),
    Pins(ConnectorId, PinEdit, Reply),
    RunRule(RunRule, oneshot::Sender<()>),
    Shutdown(oneshot::Sender<()>),
}

/// A change of the rules of this run.
pub(crate) enum RunRule {
    Add(Box<Rule>),
    Drop(RuleId),
}

pub(crate) struct Owner {
    pub(super) world: Arc<World>,
    pub(super) inner: Arc<Inner>,
    pub(super) file: PersonFile,
    pub(super) config: Config,
    /// Remarks that are not about the file, such as a damaged store that was set aside.
    pub(super) notices: Vec<Notice>,
    pub(super) settings_notices: Vec<Notice>,
    pub(super) connectors: IndexMap<String, Handle>,
    pub(super) list_key: Option<ListKey>,
    pub(super) pins: PinBoard,
    pub(super) views: ViewDesk,
    /// The person decides in a window.
    pub(super) has_window: bool,
    /// Connectors that are being stopped and may come back, by id.
    pub(super) leaving: HashMap<String, Earlier>,
    /// The connector whose sign-in does not go on with what takes its place.
    pub(super) forgets: Option<ConnectorId>,
    /// Launches that wait for a look, as they are shown, by the ids of their reviews.
    pub(super) reviews: ReviewList,
    pub(super) stopping: TaskTracker,
    pub(super) http_stop: CancellationToken,
    pub(super) http: TaskTracker,
    /// Watching ends when this is dropped.
    pub(super) _watcher: Watcher,
}

impl Owner {
    /// Runs until shutdown.
    pub(super) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        mut file_changed: mpsc::Receiver<()>,
        mut api: watch::Receiver<ApiView>,
    ) {
        let mut keychain = self.world.keychain.state();
        let mut standing = self.world.ledger.standing();
        // It may have changed since the first list was made.
        standing.mark_changed();
        let mut sign_ins = self.world.sign_ins.changes();
        loop {
            let (world, wishes, callers) = (
                self.world.clone(),
                self.inner.wishes.clone(),
                self.inner.callers.clone(),
            );
            let pairing_ends = callers.pairing().first_end();
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Edit(edit, reply)) => {
                        let outcome = self.edit(edit).await;
                        self.refresh().await;
                        // A window that closed meanwhile is no fault.
                        let _ = reply.send(outcome);
                    }
                    Some(Command::Review(order, reply)) => {
                        let outcome = self.review(order).await;
                        self.refresh().await;
                        // As above.
                        let _ = reply.send(outcome);
                    }
                    Some(Command::KeepRules(id, reply)) => {
                        let outcome = self.keep_rules(&id).await;
                        self.refresh().await;
                        // As above.
                        let _ = reply.send(outcome);
                    }
                    Some(Command::Pause(order, reply)) => {
                        let outcome = self.pause(order).await;
                        self.refresh().await;
                        // As above.
                        let _ = reply.send(outcome);
                    }
                    Some(Command::Reload(reply)) => {
                        self.reload_settings();
                        self.pins.try_again();
                        self.reload().await;
                        let _ = reply.send(());
                    }
                    Some(Command::Publish(reply)) => {
                        self.refresh().await;
                        self.pins.when_settled(reply);
                    }
                    Some(Command::Pins(id, edit, reply)) => self.pins.edit(id, edit, reply),
                    Some(Command::RunRule(order, reply)) => {
                        match order {
                            RunRule::Add(rule) => self.views.allow_for_run(*rule),
                            RunRule::Drop(id) => self.views.drop_for_run(|rule| rule.id == id),
                        }
                        self.publish();
                        // As above.
                        let _ = reply.send(());
                    }
                    Some(Command::Shutdown(reply)) => {
                        self.shutdown().await;
                        let _ = reply.send(());
                        return;
                    }
                    None => {
                        self.shutdown().await;
                        return;
                    }
                },
                Some(()) = file_changed.recv() => self.reload().await,
                done = self.pins.next() => {
                    self.pins.take(done);
                    self.publish();
                }
                () = world.changed.notified() => self.refresh().await,
                () = world.approvals.changed.notified() => self.publish(),
                () = wishes.changed.notified() => self.publish(),
                () = callers.changed.notified() => self.publish(),
                () = until(pairing_ends) => self.publish(),
                over = wishes.over() => {
                    for (view, _) in &over {
                        self.world.activity.record(super::wishes::entry(view));
                    }
                    self.publish();
                }
                () = world.approvals.next_end() => self.publish(),
                Ok(()) = api.changed() => self.publish(),
                Ok(()) = keychain.changed() => self.publish(),
                Ok(()) = standing.changed() => {
                    self.trust_changed().await;
                    self.refresh().await;
                    if self.has_window {
                        self.publish_settled().await;
                        self.choose_for_files().await;
                    }
                }
                Ok(()) = sign_ins.changed() => self.publish(),
                over = sign_in::over(&world) => {
                    self.publish();
                    for finished in over {
                        sign_in::tell(&self.inner, finished);
                    }
                }
            }
        }
    }

    /// What they say about connections holds from the next episode and session on.
    fn reload_settings(&mut self) {
        let (settings, notices) = Settings::load(&self.world.home.settings_file());
        let before = **self.world.tuning.load();
        self.world.tuning.store(Arc::new(start::tuning(&settings, before)));
        self.world.activity.keep(settings.activity);
        self.settings_notices = notices;
    }

    /// Reads the file again; a mistake in it leaves everything as it is.
    async fn reload(&mut self) {
        let before = self.notices();
        if let Some(config) = self.file.again() {
            for entry in activity::changed_in_file(&self.config, &config) {
                self.world.activity.record(entry);
            }
            self.apply(config).await;
        }
        self.refresh().await;
        let after = self.notices();
        if after != before {
            self.inner.events.publish(Event::ConfigError { notices: after });
        }
    }

    /// Brings what runs into line with `config`.
    pub(super) async fn apply(&mut self, config: Config) {
        let changes = config::diff(&self.config, &config);
        let gone = |entry: &&config::Entry| !config.entries.iter().any(|now| now.key == entry.key);
        for entry in self.config.entries.iter().filter(gone) {
            if let Ok(id) = ConnectorId::parse(&entry.key) {
                self.wishes_end(&id);
            }
        }
        self.config = config;
        self.tell_keychain();
        self.tighten().await;
        for (key, change) in changes {
            match change {
                Change::Nothing => {}
                Change::Update => match (self.valid(&key), self.connectors.get(&key)) {
                    (Some(entry), Some(handle)) if handle.shared.entry().launch == entry.launch => {
                        handle.update(entry);
                    }
                    _ => self.replace(key).await,
                },
                Change::Start | Change::Restart | Change::Stop => self.replace(key).await,
            }
        }
    }

    /// What was wished about one that is gone, or another by now, was not wished about this one.
    fn wishes_end(&self, id: &ConnectorId) {
        for view in self.inner.wishes.withdraw_about(id) {
            self.world.activity.record(super::wishes::entry(&view));
        }
    }

    /// Ends what runs under the key, and starts what the configuration now says; a disabled connector only shows itself.
    pub(super) async fn replace(&mut self, key: String) {
        let handle = self.connectors.shift_remove(&key);
        let signs_in = handle
            .as_ref()
            .is_some_and(|handle| self.is_signing_in(&handle.shared.entry()));
        let running = handle.map(Handle::leave);
        let first = match self.forgets.take_if(|id| id.as_str() == key) {
            Some(id) => Some(sign_in::forget(&self.world, id).boxed()),
            None => {
                // The sign-in that waits is of what was there before.
                if let (true, Ok(id)) = (signs_in, ConnectorId::parse(&key)) {
                    self.stopping.spawn(sign_in::give_up(self.inner.clone(), id));
                }
                None
            }
        };
        // One that was removed or broken a moment ago may still be stopping.
        let replaces = running.or_else(|| self.leaving.remove(&key));
        match self.valid(&key) {
            Some(entry) => {
                let prepared = self.world.prepare(&entry).await;
                let held = self.world.refusal(&entry, &prepared).filter(Cause::withholds_tools);
                let known = self.world.known_list(&entry, prepared.identity).await;
                let beginning = Beginning {
                    entry,
                    known,
                    replaces,
                    first,
                    held,
                };
                self.connectors
                    .insert(key, Handle::start(self.world.clone(), beginning));
            }
            None => {
                let first = first.unwrap_or_else(|| std::future::ready(()).boxed());
                if let Some(earlier) = replaces {
                    let earlier = earlier.then(first);
                    self.stopping.spawn(earlier.clone().gone());
                    self.leaving.retain(|_, earlier| !earlier.is_gone());
                    self.leaving.insert(key, earlier);
                } else {
                    self.stopping.spawn(first);
                }
            }
        }
    }

    /// A sign-in of this entry is prepared, waits or failed.
    fn is_signing_in(&self, entry: &config::Connector) -> bool {
        let views = self.world.sign_ins.views();
        Access::of(entry) == Access::SignIn && views.iter().any(|view| view.server == entry.id)
    }

    pub(super) fn valid(&self, key: &str) -> Option<Arc<config::Connector>> {
        valid(&self.config, key)
    }

    pub(super) async fn edit(&mut self, edit: Edit) -> Result<(), ApiError> {
        // What is on disk may be newer than what was last seen; an edit starts from it.
        self.reload().await;
        self.as_shown(&edit).await?;
        let goes_on = if let Edit::Enabled(id, _) | Edit::Remove(id) = &edit {
            self.world.pauses.resume(id)
        } else {
            false
        };
        let kept = match self.file.edit(&self.config, &edit)? {
            Some(config) => {
                self.forgets = sign_in::ends_with(&edit, &self.config, &config);
                self.secrets_follow(&edit, &config).await;
                let carried = self.carried_by(&edit, &config).await;
                // After the file: where this comes to nothing, the person is asked.
                let kept = self.record(&edit, &config).await;
                self.pins_follow(&edit).await;
                self.apply(config).await;
                self.carry_rules(carried).await;
                self.forgets = None;
                if let Edit::Enabled(id, _) = &edit {
                    // Where the file says the same in other words, what it says is as it was, and what may run is not.
                    self.judge_anew(id.to_string()).await;
                }
                kept
            }
            // The file says so already; the person says it too.
            None => {
                let kept = self.record(&edit, &self.config).await;
                self.judge_again().await;
                kept
            }
        };
        if goes_on {
            // The file may have said so already.
            self.judge_again().await;
        }
        self.world.activity.record(activity::edited(&edit));
        if let Edit::Add(id, ..) | Edit::Remove(id) = &edit {
            self.wishes_end(id);
        }
        if let Edit::Remove(id) = &edit {
            self.world.forget(id).await;
            if let Some(earlier) = self.leaving.remove(id.as_str()) {
                // A list that was being read may have been saved since.
                let (world, id) = (self.world.clone(), id.clone());
                let again = earlier.then({
                    let id = id.clone();
                    async move { world.forget_lists(&id).await }
                });
                self.stopping.spawn(again.clone().gone());
                self.leaving.insert(id.to_string(), again);
            }
        }
        kept
    }

    /// What a change by the person means for secrets, before anything runs by it.
    async fn secrets_follow(&self, edit: &Edit, next: &Config) {
        let keychain = &self.world.keychain;
        match edit {
            Edit::Add(id, ..) => keychain.forget(id, names_of(&[valid(next, id.as_str())])),
            Edit::Remove(id) => keychain.forget(id, names_of(&[self.valid(id.as_str())])),
            Edit::Replace(id, _) | Edit::Args(id, _) => {
                let (before, after) = (self.valid(id.as_str()), valid(next, id.as_str()));
                let (Some(from), Some(to)) = (&before, &after) else {
                    return;
                };
                let (from, to) = tokio::join!(self.world.binding(from), self.world.binding(to));
                let names = names_of(&[before, after]);
                match from.change(&to) {
                    BindingChange::Stays => {}
                    BindingChange::GoesOn => keychain.hand_on(id, names, from, to),
                    BindingChange::Goes => keychain.forget_entered(id, names),
                }
            }
            Edit::Enabled(..) | Edit::ToolEnabled(..) | Edit::DisabledTools(..) | Edit::AutoApprove(..) => {}
        }
    }

    /// Where nobody is asked what may run, nobody is there to ask about clean new tools either.
    pub(super) fn adoption(&self) -> Adoption {
        match self.world.admission.review_on() {
            true => Adoption::FirstList,
            false => Adoption::Clean,
        }
    }

    /// A connector that is removed or made by the person inherits nothing.
    async fn pins_follow(&mut self, edit: &Edit) {
        match edit {
            Edit::Add(id, ..) | Edit::Remove(id) => {
                self.views.drop_for_run(|rule| rule.server == *id);
                let said = self.world.ledger.row(RowKind::Setting, &rules::said_key(id));
                if (self.views.has_rules_of(id) || said.is_some())
                    && let Err(error) = self.world.ledger.write(rules::drop_all(id)).await
                {
                    tracing::warn!(connector = %id, %error, "its rules could not be removed");
                }
                if let Err(error) = self.pins.forget(id).await {
                    tracing::warn!(connector = %id, %error, "what was approved of its tools could not be forgotten");
                }
            }
            Edit::Replace(..)
            | Edit::Enabled(..)
            | Edit::ToolEnabled(..)
            | Edit::DisabledTools(..)
            | Edit::Args(..)
            | Edit::AutoApprove(..) => {}
        }
    }

    /// Secrets outlive their entry for a while. A file that cannot be read says nothing of its entries.
    fn tell_keychain(&self) {
        if self
            .file
            .notices()
            .iter()
            .any(|notice| notice.level == NoticeLevel::Error)
        {
            return;
        }
        let keys = self.config.entries.iter().map(|entry| &entry.key);
        let present = keys.filter_map(|key| ConnectorId::parse(key).ok()).collect();
        self.world.keychain.entries_are(present, unix_ms());
    }

    /// No new requests, then no sessions, then no processes.
    async fn shutdown(&mut self) {
        self.http_stop.cancel();
        self.http.close();
        for (_, handle) in self.connectors.drain(..) {
            self.stopping.spawn(handle.leave().gone());
        }
        self.stopping.close();
        let all = async {
            self.stopping.wait().await;
            self.http.wait().await;
        };
        if tokio::time::timeout(STOP_WITHIN, all).await.is_err() {
            tracing::warn!("some connectors did not stop in time; their processes are killed");
        }
        self.world.kill_all();
        self.world.ledger.counted().await;
        let world = self.world.clone();
        // What the upstreams said last is still on its way to their logs.
        let written = tokio::task::spawn_blocking(move || {
            world.logs.flush();
            world.activity.close(LAST_ENTRIES_WITHIN)
        });
        match written.await {
            Ok(true) => {}
            Ok(false) => tracing::warn!("the last of what happened could not be kept in time"),
            Err(error) => tracing::error!(%error, "writing the last log lines ended abnormally"),
        }
    }
}

/// Never, where there is no end.
async fn until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

pub(super) fn valid(config: &Config, key: &str) -> Option<Arc<config::Connector>> {
    let entry = config.entries.iter().find(|entry| entry.key == key)?;
    match &entry.kind {
        EntryKind::Valid(connector) => Some(Arc::new((**connector).clone())),
        EntryKind::Invalid(_) => None,
    }
}

/// The secrets that these entries name.
pub(super) fn names_of(entries: &[Option<Arc<config::Connector>>]) -> Vec<SecretName> {
    let names = entries.iter().flatten().flat_map(|entry| config::secret_names(entry));
    names.filter_map(|name| SecretName::parse(name).ok()).collect()
}
