//! Who lets a call, a read or a prompt happen: the decision on the published view, and where that says so the person
//! (DESIGN §7.3). While the person is asked nothing is held: no place among the calls, no session. A question whose tool
//! changes, or whose answer a rule gives meanwhile, ends there.

use std::{cell::Cell, sync::Arc};

use serde_json::{Map, Value};
use tokio::sync::watch;

use super::{BridgeHandle, Caller, Inner, Published, activity::DecidedBy, decide::client_id, pins, question};
use crate::{
    approval::{Asker, Asking, Matter, Mute, NotAsked, Subject, Verdict},
    builtin,
    caller::{Program, ProgramCell, Scope},
    clock::unix_ms,
    config::Launch,
    connector::Door,
    error::{ApiError, Code},
    ids::{ExposedName, ToolName},
    snapshot::{AllowedBy, ApiMode, FileWrite, PersonAnswer, StandingPolicy},
    tools::Unlisted,
    traffic::{Place, Source},
    trust::{
        Fingerprint, LaunchIdentity,
        decision::{self, By, Call, Decision, Refusal, View, Why},
        rules::{ClientId, Ground, ProgramId, Resolve, RuleId, Who, real_places},
    },
};

/// While a list keeps changing, it is looked at so often before a call is given up.
pub(super) const LOOKS: usize = 3;

/// What somebody wants.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    Tool {
        name: ToolName,
        exposed: ExposedName,
    },
    /// By its URI.
    Resource(String),
    Prompt(String),
}

/// What was decided on, which the last look compares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leave {
    /// What a tool was approved as then.
    fingerprint: Option<Fingerprint>,
    /// Of what the person was asked: the launch that they were shown.
    asked_of: Option<LaunchIdentity>,
}

/// One request on its way to a leave.
pub(super) struct Permit<'a> {
    pub inner: &'a Arc<Inner>,
    pub caller: &'a Caller,
    pub door: &'a Door,
    pub wanted: Wanted,
    pub arguments: Arc<Map<String, Value>>,
    /// Given up while the person is asked.
    pub turn: Option<Arc<Place>>,
    /// Told who let it happen, or did not.
    pub decided: &'a DecidedBy,
}

impl Permit<'_> {
    /// Before anything is connected for it.
    ///
    /// # Errors
    /// `denied` where a rule of the person says so.
    pub async fn not_denied(&self, published: &Published) -> Result<(), ApiError> {
        match self.refusal(&published.view).await {
            Some(refusal @ Refusal::Denied(_)) => Err(self.refused(refusal)),
            Some(_) | None => Ok(()),
        }
    }

    /// Decides, and asks the person where that is the decision. To be called once its connector is connected.
    ///
    /// # Errors
    /// As the refusal says; `denied`, `approval_timeout`, `rate_limited` where the person was to be asked.
    pub async fn leave(&self) -> Result<Leave, ApiError> {
        // Before it is read, so that no change falls between.
        let views = self.inner.views.subscribe();
        let published = self.current().await?;
        let fingerprint = self.fingerprint(&published.view);
        let mut asked_of = None;
        let by = match self.decided(&published.view).await {
            Decision::Refuse(refusal) => return Err(self.refused(refusal)),
            Decision::Allow(by) => self.allowed_by(by),
            Decision::Ask(_) => {
                if let Some(turn) = &self.turn {
                    turn.pause();
                }
                let answer = self.ask(&published, fingerprint, views).await;
                if let Some(turn) = &self.turn {
                    turn.resume();
                }
                asked_of = published.view.launch(&self.door.shared.id);
                answer?
            }
        };
        self.decided.set(by);
        Ok(Leave { fingerprint, asked_of })
    }

    /// The last look, at the hand-over: nothing refuses it by now, its caller's token holds, and what the session lists
    /// has the fingerprint that was decided on. What the person was asked about goes to the launch that they were shown.
    ///
    /// # Errors
    /// `unauthorized`, `unavailable`, `tool_changed`, and as the refusal says.
    pub async fn still(&self, decided: Leave) -> Result<(), ApiError> {
        let published = self.current().await?;
        self.is_let_in()?;
        if let Some(refusal) = self.refusal(&published.view).await {
            return Err(self.refused(refusal));
        }
        if decided.asked_of.is_some() {
            self.is_launched_as(decided.asked_of, &published.view)?;
        }
        match &self.wanted {
            Wanted::Tool { .. } => match self.fingerprint(&published.view) {
                Some(now) if Some(now) == decided.fingerprint => Ok(()),
                Some(_) | None => Err(self.refused(Refusal::ToolChanged)),
            },
            Wanted::Resource(_) | Wanted::Prompt(_) => Ok(()),
        }
    }

    fn is_launched_as(&self, shown: Option<LaunchIdentity>, view: &View) -> Result<(), ApiError> {
        if view.launch(&self.door.shared.id) == shown {
            return Ok(());
        }
        self.decided.set(AllowedBy::Nobody);
        Err(ApiError::new(
            Code::Unavailable,
            format!(
                "{} runs or contacts something else since the person was asked; nothing was sent. Try again.",
                self.door.shared.name()
            ),
        ))
    }

    fn is_let_in(&self) -> Result<(), ApiError> {
        let handle = BridgeHandle {
            inner: self.inner.clone(),
        };
        let outcome = match handle.renewed(self.caller) {
            None => Err(ApiError::new(
                Code::Unauthorized,
                "The token of this program was withdrawn meanwhile.",
            )),
            Some(Caller::WalkIn(_)) if handle.api_mode() == ApiMode::Token => {
                Err(ApiError::new(Code::Unauthorized, "Programs need a token by now."))
            }
            Some(now) if !now.sees(self.door.shared.id.as_str()) => Err(ApiError::new(
                Code::ScopeMissing,
                "The token of this program is not for this connector any more.",
            )),
            Some(now) => now.needs(Scope::Call),
        };
        if outcome.is_err() {
            self.decided.set(AllowedBy::Nobody);
        }
        outcome
    }

    /// What is published, once what the session lists was looked at.
    async fn current(&self) -> Result<Arc<Published>, ApiError> {
        let shared = &self.door.shared;
        if !matches!(self.wanted, Wanted::Tool { .. }) {
            return Ok(self.inner.published.load_full());
        }
        for _ in 0..LOOKS {
            let listed = shared.view().tools.clone();
            let published = self.inner.published.load_full();
            let looked = published.looked.get(&shared.id);
            if looked.is_some_and(|looked| Arc::ptr_eq(looked.list(), &listed)) {
                return Ok(published);
            }
            let handle = BridgeHandle {
                inner: self.inner.clone(),
            };
            handle.settled().await;
        }
        Err(ApiError::new(
            Code::Unavailable,
            format!("What {} offers is changing at this moment; try again.", shared.name()),
        ))
    }

    async fn refusal(&self, view: &Arc<View>) -> Option<Refusal> {
        self.on(view, |call: &Call<'_>, view: &View| {
            decision::refusal(call, view, unix_ms())
        })
        .await
    }

    async fn decided(&self, view: &Arc<View>) -> Decision {
        let look = |call: &Call<'_>, view: &View| decision::decision(call, view, unix_ms());
        match self.on(view, look).await {
            // A token that another program shows is no reason to let it do what its owner may.
            Decision::Allow(By::AsksItself | By::Rule(_)) if !shows_its_own(self.caller).await => {
                Decision::Ask(Why::NoRule)
            }
            decision => decision,
        }
    }

    /// Runs a pure look on a view. The disk is looked at only where a condition on folders is met, off the runtime.
    async fn on<T: Send + 'static>(
        &self,
        view: &Arc<View>,
        look: impl Fn(&Call<'_>, &View) -> T + Send + Copy + 'static,
    ) -> T {
        let mut who = Known::at_once(self.caller);
        let (first, met) = match self.needs_program(&who, view) {
            false => self.without_disk(&who, view, look),
            true => {
                who = Known::looked_up(self.caller).await;
                self.without_disk(&who, view, look)
            }
        };
        let wanted = self.wanted.clone();
        let (server, arguments) = (self.door.shared.id.clone(), self.arguments.clone());
        let Some(ground) = self.ground().filter(|_| met) else {
            return first;
        };
        let view = view.clone();
        let looking = tokio::task::spawn_blocking(move || {
            let call = Call {
                who: who.who(),
                server: &server,
                subject: wanted.subject(),
                arguments: &arguments,
                resolve: &|text| real_places(text, &ground),
            };
            look(&call, &view)
        });
        // One that ended abnormally leaves what was found without the disk, which allows nothing more.
        looking.await.unwrap_or(first)
    }

    fn needs_program(&self, who: &Known, view: &View) -> bool {
        decision::needs_program(&self.call(who, &|_| None), view)
    }

    /// With whether a condition on folders was met.
    fn without_disk<T>(&self, who: &Known, view: &View, look: impl Fn(&Call<'_>, &View) -> T) -> (T, bool) {
        let met = Cell::new(false);
        let unresolved = |_: &str| {
            met.set(true);
            None
        };
        let first = look(&self.call(who, &unresolved), view);
        (first, met.get())
    }

    fn call<'c>(&'c self, who: &'c Known, resolve: &'c Resolve<'c>) -> Call<'c> {
        Call {
            who: who.who(),
            server: &self.door.shared.id,
            subject: self.wanted.subject(),
            arguments: &self.arguments,
            resolve,
        }
    }

    /// Where a program on this computer looks for paths.
    fn ground(&self) -> Option<Ground> {
        let (world, shared) = (&self.inner.world, &self.door.shared);
        Ground::of(
            &shared.entry().launch,
            &world.home.run_folder_of(&shared.id),
            &world.person_home,
        )
    }

    fn fingerprint(&self, view: &View) -> Option<Fingerprint> {
        match &self.wanted {
            Wanted::Tool { name, .. } => view.tool(&self.door.shared.id, name)?.fingerprint(),
            Wanted::Resource(_) | Wanted::Prompt(_) => None,
        }
    }

    fn matter(&self, view: &View, fingerprint: Option<Fingerprint>) -> Result<Matter, ApiError> {
        let subject = match (&self.wanted, fingerprint) {
            (Wanted::Tool { name, exposed }, Some(fingerprint)) => Subject::Tool {
                name: name.clone(),
                exposed: exposed.clone(),
                fingerprint,
            },
            (Wanted::Tool { .. }, None) => return Err(self.refused(Refusal::ToolChanged)),
            (Wanted::Resource(uri), _) => Subject::Resource(uri.clone()),
            (Wanted::Prompt(name), _) => Subject::Prompt(name.clone()),
        };
        Ok(Matter {
            server: self.door.shared.id.clone(),
            launch: view.launch(&self.door.shared.id),
            subject,
            arguments: self.arguments.clone(),
        })
    }

    async fn ask(
        &self,
        published: &Published,
        fingerprint: Option<Fingerprint>,
        mut views: watch::Receiver<Arc<View>>,
    ) -> Result<AllowedBy, ApiError> {
        let approvals = &self.inner.approvals;
        let matter = self.matter(&published.view, fingerprint)?;
        let launch = matter.launch;
        let asker = asker(self.caller).await;
        if approvals.take_leave(&asker, &matter) {
            return Ok(person(PersonAnswer::Once));
        }
        let entry = self.door.shared.entry();
        let writes = self.writes(&entry.launch).await;
        let asking = Asking {
            server: entry.id.clone(),
            server_name: self.door.shared.name(),
            question: question::of(published, &entry, self.caller.shown().await, &matter, writes),
            asker,
            matter: Some(matter),
        };
        let mut waiting = approvals.ask(asking).map_err(|why| self.not_asked(&why))?;
        // Looked at once it can be withdrawn, so that no end of its token falls between.
        self.is_let_in()?;
        loop {
            tokio::select! {
                biased;
                verdict = waiting.verdict() => return self.answered(&verdict),
                Ok(()) = views.changed() => {
                    let view = views.borrow_and_update().clone();
                    if self.fingerprint(&view) != fingerprint {
                        let why = self.refusal(&view).await;
                        return Err(self.refused(why.unwrap_or(Refusal::ToolChanged)));
                    }
                    let decided = self.decided(&view).await;
                    if let Decision::Ask(_) | Decision::Allow(_) = decided {
                        self.is_launched_as(launch, &view)?;
                    }
                    match decided {
                        Decision::Ask(_) => {}
                        Decision::Refuse(refusal) => return Err(self.refused(refusal)),
                        Decision::Allow(by) => {
                            waiting.done();
                            return Ok(self.allowed_by(by));
                        }
                    }
                }
            }
        }
    }

    /// What writing a file would do now. Only the built-in files server's folder is looked into.
    async fn writes(&self, launch: &Launch) -> Option<FileWrite> {
        let path = match &self.wanted {
            Wanted::Tool { name, .. } if name.as_str() == "write_file" => {
                self.arguments.get("path")?.as_str()?.to_owned()
            }
            Wanted::Tool { .. } | Wanted::Resource(_) | Wanted::Prompt(_) => return None,
        };
        let folder = builtin::files_folder(launch, &self.inner.world.person_home)?;
        let looking = tokio::task::spawn_blocking(move || builtin::file_write(&folder, &path));
        looking.await.ok().flatten()
    }

    fn answered(&self, verdict: &Verdict) -> Result<AllowedBy, ApiError> {
        let what = self.wanted.words();
        let shown = self.door.shared.name();
        match verdict {
            Verdict::Allowed(answer) => Ok(person(*answer)),
            Verdict::Approved(_) => Ok(person(PersonAnswer::Once)),
            Verdict::Denied | Verdict::Cancelled => {
                self.decided.set(person(PersonAnswer::Denied));
                Err(ApiError::new(
                    Code::Denied,
                    format!("The person was asked about {what} of {shown} and said no."),
                ))
            }
            Verdict::Expired => {
                self.decided.set(person(PersonAnswer::Unanswered));
                Err(ApiError::new(
                    Code::ApprovalTimeout,
                    format!(
                        "The person was asked about {what} of {shown} and did not answer in time; nothing was sent."
                    ),
                ))
            }
            Verdict::MadeWay => {
                self.decided.set(person(PersonAnswer::Unanswered));
                Err(ApiError::new(
                    Code::RateLimited,
                    format!(
                        "The question about {what} of {shown} was put off, because too many wait and most of them are of \
                         this program; nothing was sent. Wait until some are answered."
                    ),
                ))
            }
        }
    }

    fn not_asked(&self, why: &NotAsked) -> ApiError {
        if let NotAsked::Muted(_) = why {
            self.decided.set(AllowedBy::Policy {
                policy: StandingPolicy::MayNotAsk,
            });
        }
        match why {
            NotAsked::Full(full) => ApiError::new(
                Code::RateLimited,
                format!("The person cannot be asked about this now: {full}. Wait until those are answered."),
            ),
            NotAsked::Muted(Mute::Stopped) => ApiError::new(
                Code::Denied,
                "The person does not want to be asked by this program for now; nothing was sent.",
            ),
            NotAsked::Muted(Mute::UntilBack) => ApiError::new(
                Code::ApprovalTimeout,
                "The person did not answer the last questions of this program, and is asked again once they are back; nothing was sent.",
            ),
            NotAsked::Random(error) => {
                tracing::error!(%error, "a question could not be asked");
                ApiError::new(Code::Internal, "The person could not be asked; try again.")
            }
        }
    }

    fn allowed_by(&self, by: By) -> AllowedBy {
        match by {
            By::Owner => AllowedBy::Owner,
            By::AsksItself => AllowedBy::Policy {
                policy: StandingPolicy::AsksItself,
            },
            By::WalkInPolicy => AllowedBy::Policy {
                policy: StandingPolicy::WalkInsMayCall,
            },
            By::Rule(id) => self.by_rule(id),
        }
    }

    fn by_rule(&self, id: RuleId) -> AllowedBy {
        let published = self.inner.published.load();
        let rule = published.rules.find(id);
        AllowedBy::Rule {
            rule: id.to_string(),
            name: rule.map(|rule| rule.sentence(&self.door.shared.name(), client_name(self.caller))),
        }
    }

    fn refused(&self, refusal: Refusal) -> ApiError {
        self.decided.set(match refusal {
            Refusal::Denied(rule) => self.by_rule(rule),
            Refusal::UnknownServer
            | Refusal::UnknownTool
            | Refusal::ConnectorNeedsReview
            | Refusal::ConnectorDisabled
            | Refusal::ConnectorPaused
            | Refusal::ToolPending
            | Refusal::ToolHeld
            | Refusal::ToolChanged
            | Refusal::ToolDisabled
            | Refusal::KeychainUnavailable
            | Refusal::Unavailable => AllowedBy::Nobody,
        });
        let shared = &self.door.shared;
        let Wanted::Tool { name: tool, .. } = &self.wanted else {
            return refusal.error(&shared.id, self.wanted.name());
        };
        let unlisted = match refusal {
            Refusal::ConnectorNeedsReview => Unlisted::ConnectorWaits,
            Refusal::ToolPending => Unlisted::Pending,
            Refusal::ToolHeld => Unlisted::Held,
            Refusal::ToolChanged => Unlisted::Changed,
            Refusal::ConnectorDisabled => Unlisted::ConnectorOff,
            Refusal::ToolDisabled => Unlisted::Disabled,
            Refusal::KeychainUnavailable => Unlisted::TrustUnknown,
            Refusal::UnknownServer
            | Refusal::UnknownTool
            | Refusal::ConnectorPaused
            | Refusal::Unavailable
            | Refusal::Denied(_) => return refusal.error(&shared.id, tool.as_str()),
        };
        pins::refusal(unlisted, &shared.id, &shared.name(), tool)
    }
}

impl Wanted {
    fn subject(&self) -> decision::Subject<'_> {
        match self {
            Self::Tool { name, .. } => decision::Subject::Tool(name),
            Self::Resource(uri) => decision::Subject::Resource(uri),
            Self::Prompt(name) => decision::Subject::Prompt(name),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Tool { name, .. } => name.as_str(),
            Self::Resource(uri) => uri,
            Self::Prompt(name) => name,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Tool { name, .. } => name.to_string(),
            Self::Resource(uri) => format!("the resource \"{}\"", super::shown(uri)),
            Self::Prompt(name) => format!("the prompt \"{}\"", super::shown(name)),
        }
    }
}

/// Whether a client is still the program that was paired.
pub(super) async fn shows_its_own(caller: &Caller) -> bool {
    match caller {
        Caller::Owner | Caller::WalkIn(_) => true,
        Caller::Client { pass, .. } if pass.paired.is_none() => true,
        Caller::Client { pass, program } => pass.is_shown_by(program.get().await.as_deref()),
    }
}

/// Whose questions these are: walk-ins are told apart by their programs.
pub(super) async fn asker(caller: &Caller) -> Asker {
    Asker {
        label: caller.label().to_owned(),
        source: Some(Source::of(caller).await),
        shown_by: match caller {
            Caller::Client { program, .. } => Some(Source::of_program(program.get().await.as_deref())),
            Caller::Owner | Caller::WalkIn(_) => None,
        },
    }
}

/// Who calls, as rules know them.
#[derive(Debug, Clone)]
pub(super) enum Known {
    Owner,
    Client(ClientId),
    WalkIn(Option<ProgramId>),
}

impl Known {
    /// Looks nothing up.
    pub fn at_once(caller: &Caller) -> Self {
        let found = |cell: &ProgramCell| cell.known().flatten();
        match caller {
            Caller::Owner => Self::Owner,
            Caller::Client { pass, .. } => Self::Client(client_id(&pass.id)),
            Caller::WalkIn(cell) => Self::WalkIn(found(cell).as_deref().and_then(program_id)),
        }
    }

    /// With the program behind a walk-in.
    pub async fn looked_up(caller: &Caller) -> Self {
        match caller {
            Caller::WalkIn(cell) => Self::WalkIn(cell.get().await.as_deref().and_then(program_id)),
            Caller::Owner | Caller::Client { .. } => Self::at_once(caller),
        }
    }

    pub fn who(&self) -> Who<'_> {
        match self {
            Self::Owner => Who::Owner,
            Self::Client(client) => Who::Client(*client),
            Self::WalkIn(program) => Who::WalkIn(program.as_ref()),
        }
    }
}

fn program_id(program: &Program) -> Option<ProgramId> {
    ProgramId::of(&program.key()?)
}

fn client_name(caller: &Caller) -> Option<&str> {
    match caller {
        Caller::Client { pass, .. } => Some(&pass.name),
        Caller::Owner | Caller::WalkIn(_) => None,
    }
}

fn person(answer: PersonAnswer) -> AllowedBy {
    AllowedBy::Person { answer }
}
