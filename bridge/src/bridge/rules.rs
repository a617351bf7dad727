//! The person's rules: seen, made, changed, withdrawn, and what they let whoever asks do. Kept ones are trust rows;
//! what they decide is `trust::decision`'s.

use std::{path::PathBuf, sync::Arc};

use tokio::sync::oneshot;

use super::{
    BridgeHandle, Caller, Published, activity,
    owner::{Command, RunRule},
    permit::{Known, shows_its_own},
    person_file::Edit,
    pins::Looked,
    unknown_server,
};
use crate::{
    approval::{Asker, OpenCall, Subject},
    caller::Scope,
    clock::unix_ms,
    config::{AutoApprove, Launch},
    error::{ApiError, Code},
    ids::{ConnectorId, ExposedName},
    ledger::{Change, RowKind},
    snapshot::{ActivityReview, RuleSleep, RuleView},
    traffic::Source,
    trust::{
        LaunchIdentity,
        decision::{View, auto_approved},
        expand_home,
        pins::{Stand, Standing},
        rules::{
            self, Arguments, Bound, Candidate, Choice, Condition, Declined, Effect, FileValue, Ground, Kind, Lasts,
            Made, Origin, Place, ProgramId, Proposal, Rule, RuleCaller, RuleDraft, RuleId, choice_rule, real_folder,
            said_key,
        },
    },
};

use super::decide::client_id;

/// What a caller may do without a question, whatever the walk-ins' policy and its own asking say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AutoApproved {
    /// Whatever the arguments; listed ones only, in the order of the list.
    pub tools: Vec<ExposedName>,
    /// Those that allow some arguments.
    pub rules: Vec<Rule>,
}

impl BridgeHandle {
    /// Every rule, the newest first.
    ///
    /// # Errors
    /// `internal` where what they were used for cannot be read.
    pub async fn rules(&self) -> Result<Vec<RuleView>, ApiError> {
        let published = self.inner.published.load_full();
        let uses = self.rule_uses().await?;
        let mut views: Vec<_> = published
            .rules
            .all
            .iter()
            .map(|rule| {
                let id = rule.id.to_string();
                let used = uses.iter().find(|one| one.rule == id);
                let server_name = name_of(&published, &rule.server);
                RuleView {
                    sentence: self.said(rule, &server_name),
                    server_name,
                    used: used.map_or(0, |used| used.times),
                    last_used_at: used.map(|used| used.last),
                    sleeps: sleeps(&published.view, rule),
                    rule: Rule::clone(rule),
                }
            })
            .collect();
        views.sort_by_key(|view| std::cmp::Reverse(view.rule.made_at));
        Ok(views)
    }

    /// Makes a rule of the person.
    ///
    /// # Errors
    /// `bad_request` with why it cannot be made; `unknown_server`, `not_saved`, `keychain_unavailable`.
    pub async fn add_rule(&self, draft: RuleDraft) -> Result<Rule, ApiError> {
        let rule = self.made(draft, None).await?;
        match rule.lasts {
            Lasts::Kept => self.keep(&rule).await?,
            Lasts::ThisRun => self.run_rule(RunRule::Add(Box::new(rule.clone()))).await,
        }
        self.settled().await;
        Ok(rule)
    }

    /// Takes what a person may choose of a rule from this one; the rest, and without another pattern the tools that it is
    /// bound to, stays as it was.
    ///
    /// # Errors
    /// As [`BridgeHandle::add_rule`]; `not_found`.
    pub async fn save_rule(&self, edited: Rule) -> Result<Rule, ApiError> {
        let before = self.rule(edited.id)?;
        if before.origin == Origin::File && !self.snapshot().trust.review {
            return Err(ApiError::bad_request(
                "This rule is what connectors.json says: change \"autoApprove\" there, or withdraw the rule.",
            ));
        }
        let made = Made {
            id: before.id,
            origin: before.origin,
            at: before.made_at,
            // Checked where it is made; what the rule was made for stays with its tools.
            launch: None,
        };
        let stays = edited.patterns == before.patterns && edited.kind == before.kind && edited.effect == before.effect;
        if edited.server != before.server || edited.lasts != before.lasts {
            return Err(ApiError::bad_request(
                "A rule stays with its connector, and lasts as long as it was made to; make another one.",
            ));
        }
        let draft = RuleDraft {
            effect: edited.effect,
            server: edited.server,
            kind: edited.kind,
            patterns: edited.patterns,
            arguments: edited.arguments,
            caller: edited.caller,
            expires_at: edited.expires_at,
            lasts: edited.lasts,
            note: edited.note,
        };
        let mut rule = self.make(draft, made, None).await?;
        if stays {
            rule.bound.clone_from(&before.bound);
            rule.launch = before.launch;
        }
        match rule.lasts {
            Lasts::Kept => self.write_rule(&rule).await?,
            Lasts::ThisRun => {
                self.run_rule(RunRule::Drop(rule.id)).await;
                self.run_rule(RunRule::Add(Box::new(rule.clone()))).await;
            }
        }
        self.told(&rule, ActivityReview::RuleChanged);
        self.settled().await;
        Ok(rule)
    }

    /// Withdraws a rule. A wish of the file that it came from stays declined until the file says another.
    ///
    /// # Errors
    /// `not_found`, `not_saved`, `keychain_unavailable`.
    pub async fn withdraw_rule(&self, id: RuleId) -> Result<(), ApiError> {
        let rule = self.rule(id)?;
        match rule.lasts {
            Lasts::ThisRun => self.run_rule(RunRule::Drop(id)).await,
            Lasts::Kept => {
                let mut changes = vec![rule.delete()];
                if rule.origin == Origin::File {
                    for pattern in &rule.patterns {
                        let declined = Declined {
                            server: rule.server.clone(),
                            value: value_of(pattern),
                        };
                        changes.push(declined.put().map_err(|error| unwritable(&error))?);
                    }
                }
                self.write_rules(changes).await?;
            }
        }
        self.told(&rule, ActivityReview::RuleWithdrawn);
        self.settled().await;
        Ok(())
    }

    /// The person's answer to what assistants may do with a new connector without asking. It takes the place of an earlier
    /// answer, and of what came with the app.
    ///
    /// # Errors
    /// As [`BridgeHandle::add_rule`].
    pub async fn choose(&self, server: ConnectorId, choice: Choice) -> Result<(), ApiError> {
        let published = self.inner.published.load_full();
        let looked = looked(&published, &server)?;
        let candidates = candidates(looked);
        let launch = launch_of(&published, &server)?;
        let rule = choice_rule(&server, &choice, &candidates, launch, draw_id()?, unix_ms());
        let earlier = published.rules.all.iter();
        let earlier =
            earlier.filter(|rule| matches!(rule.origin, Origin::Choice | Origin::BuiltIn) && rule.server == server);
        let mut changes: Vec<Change> = earlier.map(|rule| rule.delete()).collect();
        if let Some(rule) = &rule {
            changes.push(rule.put().map_err(|error| unwritable(&error))?);
        }
        if !changes.is_empty() {
            self.write_rules(changes).await?;
        }
        if let Some(rule) = &rule {
            self.told(rule, ActivityReview::Rule);
        }
        self.settled().await;
        Ok(())
    }

    /// The person's answer to a wish of the file. A no holds until the file says another.
    ///
    /// # Errors
    /// `not_found`, also where what a yes would cover is another by now; `not_saved`, `keychain_unavailable`.
    pub async fn answer_proposal(&self, id: String, yes: bool) -> Result<(), ApiError> {
        let published = self.inner.published.load_full();
        let found = published.rules.proposals.iter().find(|(known, _)| *known == id);
        let Some((_, proposal)) = found else {
            return Err(ApiError::new(
                Code::NotFound,
                "This wish of the file does not wait, or its tools are others by now; look at it again.",
            ));
        };
        if yes {
            let launch = launch_of(&published, &proposal.server)?;
            self.keep(&proposal.accepted(launch, draw_id()?, unix_ms())).await?;
        } else {
            let declined = Declined {
                server: proposal.server.clone(),
                value: proposal.value.clone(),
            };
            self.write_rules(vec![declined.put().map_err(|error| unwritable(&error))?])
                .await?;
        }
        self.settled().await;
        Ok(())
    }

    /// Sets `autoApprove`, in the file, and makes rules of it at once, for the tools of now: the person's own wish needs no
    /// second word. What else the file wishes for by then goes on waiting.
    ///
    /// # Errors
    /// `unknown_server`, `bad_request`, `not_saved`, `keychain_unavailable`.
    pub async fn set_auto_approve(&self, id: ConnectorId, value: AutoApprove) -> Result<(), ApiError> {
        let shown = self.wished(&id, &value);
        self.set_auto_approve_as_shown(id, value, &shown).await
    }

    /// The tools of now that this would let run, as they are.
    pub(super) fn wished(&self, id: &ConnectorId, value: &AutoApprove) -> Vec<Bound> {
        let published = self.inner.published.load();
        let looked = published.looked.get(id);
        looked.map_or_else(Vec::new, |looked| rules::wished(value, &candidates(looked)))
    }

    /// The same, for no other tools than were shown.
    ///
    /// # Errors
    /// As [`BridgeHandle::set_auto_approve`].
    pub(super) async fn set_auto_approve_as_shown(
        &self,
        id: ConnectorId,
        value: AutoApprove,
        shown: &[Bound],
    ) -> Result<(), ApiError> {
        let said: Vec<String> = match &value {
            AutoApprove::None => Vec::new(),
            AutoApprove::All => vec!["*".to_owned()],
            AutoApprove::Patterns(patterns) => patterns.clone(),
        };
        self.edit(Edit::AutoApprove(id.clone(), value.clone())).await?;
        let rules = self.inner.published.load().rules.clone();
        let mut changes = Vec::new();
        if self.inner.world.ledger.row(RowKind::Setting, &said_key(&id)).is_some() {
            // The person says it now, so it is about the tools of now.
            changes.push(Change::Delete(RowKind::Setting, said_key(&id)));
        }
        for no in rules.declined.iter().filter(|no| no.server == id) {
            if no.value.patterns().iter().all(|pattern| said.contains(pattern)) {
                changes.push(no.delete().map_err(|error| unwritable(&error))?);
            }
        }
        let of_file = rules
            .all
            .iter()
            .filter(|rule| rule.origin == Origin::File && rule.server == id);
        let gone = of_file.filter(|rule| !rule.patterns.iter().all(|pattern| said.contains(pattern)));
        changes.extend(gone.filter(|_| self.snapshot().trust.review).map(|rule| rule.delete()));
        let asleep = rules.asleep.iter().filter(|(_, asleep)| asleep.server == id);
        let asleep = asleep.flat_map(|(_, asleep)| asleep.rules.iter().map(|rule| (rule, asleep.launch)));
        let said_again = asleep
            .filter(|(rule, _)| rule.origin == Origin::File)
            .filter(|(rule, _)| rule.patterns.iter().all(|pattern| said.contains(pattern)))
            .filter(|(rule, _)| rule.bound.iter().all(|tool| shown.contains(tool)));
        for (rule, launch) in said_again {
            changes.push(rule.moved(launch).put().map_err(|error| unwritable(&error))?);
        }
        if !changes.is_empty() {
            self.write_rules(changes).await?;
        }
        self.settled().await;
        let published = self.inner.published.load_full();
        let is_said = |proposal: &Proposal| proposal.server == id && proposal.is_within(&value, shown);
        let wished = published.rules.proposals.iter();
        for (_, proposal) in wished.filter(|(_, proposal)| is_said(proposal)) {
            let launch = launch_of(&published, &id)?;
            self.keep(&proposal.accepted(launch, draw_id()?, unix_ms())).await?;
        }
        self.settled().await;
        Ok(())
    }

    /// What rules let this caller do without a question: nothing where its token is for reading alone, or where another
    /// program shows it than the one that was paired.
    pub async fn auto_approved(&self, caller: Caller) -> AutoApproved {
        if caller.needs(Scope::Call).is_err() || !shows_its_own(&caller).await {
            return AutoApproved::default();
        }
        let known = Known::looked_up(&caller).await;
        let published = self.inner.published.load_full();
        let found = auto_approved(known.who(), &published.view, unix_ms());
        let is_found = |server: &ConnectorId, tool| found.tools.iter().any(|(s, t)| s == server && t == tool);
        let listed = published.tools.tools.iter();
        AutoApproved {
            tools: listed
                .filter(|listed| caller.sees(listed.server.as_str()))
                .filter(|listed| is_found(&listed.server, &listed.tool.name))
                .map(|listed| listed.exposed.clone())
                .collect(),
            rules: found
                .rules
                .iter()
                .filter_map(|id| published.rules.find(*id))
                .filter(|rule| caller.sees(rule.server.as_str()))
                // A hash of what runs is a word about what runs.
                .map(|rule| Rule {
                    launch: rule.launch.filter(|_| caller.is_owner()),
                    ..Rule::clone(rule)
                })
                .collect(),
        }
    }

    fn rule(&self, id: RuleId) -> Result<Arc<Rule>, ApiError> {
        let published = self.inner.published.load();
        let found = published.rules.find(id).cloned();
        found.ok_or_else(|| ApiError::new(Code::NotFound, "There is no such rule; GET /mcp/rules lists them."))
    }

    /// A new rule of the person; `asked` is the question that it answers.
    pub(super) async fn made(&self, draft: RuleDraft, asked: Option<&OpenCall>) -> Result<Rule, ApiError> {
        let made = Made {
            id: draw_id()?,
            origin: Origin::Person,
            at: unix_ms(),
            launch: None,
        };
        self.make(draft, made, asked).await
    }

    /// One that allows is for what its connector may run or contact now.
    async fn make(&self, draft: RuleDraft, mut made: Made, asked: Option<&OpenCall>) -> Result<Rule, ApiError> {
        let published = self.inner.published.load_full();
        let draft = self.resolved(draft).await?;
        let door = published.doors.get(&draft.server);
        let door = door.ok_or_else(|| unknown_server(draft.server.as_str()))?;
        let world = &self.inner.world;
        let own_folder = world.home.run_folder_of(&draft.server);
        let launch = &door.shared.entry().launch;
        let place = match (launch, Ground::of(launch, &own_folder, &world.person_home)) {
            (Launch::Http(_), _) => Place::Elsewhere,
            (Launch::Stdio(_), Some(_)) => Place::Here,
            (Launch::Stdio(_), None) => Place::Away,
        };
        if draft.effect == Effect::Allow {
            made.launch = Some(launch_of(&published, &draft.server)?);
        }
        let mut candidates = match draft.kind {
            Kind::Tools => candidates(looked(&published, &draft.server)?),
            Kind::Resources | Kind::Prompts => Vec::new(),
        };
        // A name may have signs in it that a pattern reads as more than one name.
        if let Some(Subject::Tool { name, fingerprint, .. }) = asked.map(|open| &open.matter.subject)
            && draft.patterns == [name.as_str()]
        {
            candidates.retain(|tool| tool.name == name && tool.fingerprint == *fingerprint);
        }
        draft
            .make(made, place, &candidates)
            .map_err(|unfit| ApiError::bad_request(unfit.to_string()))
    }

    /// With the folders of its conditions as they are on the disk.
    async fn resolved(&self, mut draft: RuleDraft) -> Result<RuleDraft, ApiError> {
        let Arguments::Each { conditions } = &mut draft.arguments else {
            return Ok(draft);
        };
        for condition in conditions.values_mut() {
            let Condition::Inside { folder } = condition else {
                continue;
            };
            let home = self.inner.world.person_home.clone();
            let written = expand_home(folder, &home);
            let looking = tokio::task::spawn_blocking(move || real_folder(&written, &home));
            let place: Option<PathBuf> = looking.await.ok().flatten();
            let place = place.as_deref().and_then(std::path::Path::to_str);
            match place {
                Some(place) => place.clone_into(folder),
                None => {
                    return Err(ApiError::bad_request(format!(
                        "The folder {} cannot be looked at; choose one that is there.",
                        super::shown(folder)
                    )));
                }
            }
        }
        Ok(draft)
    }

    /// Writes it down; nothing counts before.
    pub(super) async fn keep(&self, rule: &Rule) -> Result<(), ApiError> {
        self.write_rule(rule).await?;
        self.told(rule, ActivityReview::Rule);
        Ok(())
    }

    async fn write_rule(&self, rule: &Rule) -> Result<(), ApiError> {
        self.write_rules(vec![rule.put().map_err(|error| unwritable(&error))?])
            .await
    }

    async fn write_rules(&self, changes: Vec<Change>) -> Result<(), ApiError> {
        Ok(self.inner.world.ledger.write(changes).await?)
    }

    pub(super) async fn run_rule(&self, order: RunRule) {
        let (reply, done) = oneshot::channel();
        if self.inner.commands.send(Command::RunRule(order, reply)).await.is_ok() {
            // Gone only when the bridge is being stopped, where nothing is called any more.
            let _ = done.await;
        }
    }

    fn told(&self, rule: &Rule, of: ActivityReview) {
        let name = name_of(&self.inner.published.load(), &rule.server);
        let entry = activity::decided(Some(&rule.server), of, Some(self.said(rule, &name)));
        self.inner.world.activity.record(entry);
    }

    /// The rule in one sentence, with the name of the assistant that it is about.
    fn said(&self, rule: &Rule, server_name: &str) -> String {
        let client = match &rule.caller {
            RuleCaller::Client { client } => {
                let paired = self.clients();
                let found = paired.into_iter().find(|paired| client_id(&paired.id) == *client);
                found.map(|paired| paired.name)
            }
            RuleCaller::Anyone | RuleCaller::Program { .. } => None,
        };
        rule.sentence(server_name, client.as_deref())
    }
}

/// The name of what is asked about, as a pattern that fits it alone.
pub(super) fn pattern_of(subject: &Subject) -> Result<String, ApiError> {
    match subject {
        // Bound to this one tool all the same.
        Subject::Tool { name, .. } => Ok(name.to_string()),
        Subject::Resource(name) | Subject::Prompt(name) if name.contains(['*', '?']) => Err(ApiError::bad_request(
            "Its name has signs in it that a rule would read as more than this one: it can only be answered once.",
        )),
        Subject::Resource(name) | Subject::Prompt(name) => Ok(name.clone()),
    }
}

/// Whoever asked, as a rule names it.
pub(super) fn asked_for(asker: &Asker) -> Result<RuleCaller, ApiError> {
    let unnamed = || {
        ApiError::bad_request(
            "This program cannot be told from others, so no rule can be about it: answer once, or make a rule for any program.",
        )
    };
    match &asker.source {
        Some(Source::Client(id)) => Ok(RuleCaller::Client { client: client_id(id) }),
        Some(Source::Program(key)) => Ok(RuleCaller::Program {
            program: ProgramId::of(key).ok_or_else(unnamed)?,
        }),
        Some(Source::Owner | Source::Process { .. } | Source::File(_) | Source::Unresolved | Source::Unknown)
        | None => Err(unnamed()),
    }
}

/// The tools that rules may be made for: those that are approved, as they are.
pub(super) fn candidates(looked: &Looked) -> Vec<Candidate<'_>> {
    looked.standings().filter_map(candidate).collect()
}

fn candidate(standing: &Standing) -> Option<Candidate<'_>> {
    let served = match &standing.stand {
        Stand::Approved(served) | Stand::Reworded(served, _) => served,
        Stand::Pending(_) | Stand::Held(_) | Stand::Changed(_) => return None,
    };
    Some(Candidate {
        name: &served.tool.name,
        fingerprint: served.fingerprint,
        input_schema: &served.tool.input_schema,
        hints: served.tool.hints,
        clean: served.tool.findings.is_empty(),
    })
}

fn looked<'p>(published: &'p Published, server: &ConnectorId) -> Result<&'p Looked, ApiError> {
    let looked = published.looked.get(server).map(AsRef::as_ref);
    looked.ok_or_else(|| unknown_server(server.as_str()))
}

/// What rules of a connector are made for at present.
fn launch_of(published: &Published, server: &ConnectorId) -> Result<LaunchIdentity, ApiError> {
    published.view.launch(server).ok_or_else(|| {
        ApiError::new(
            Code::NeedsReview,
            format!(
                "{} waits for your look; nothing can be allowed before.",
                name_of(published, server)
            ),
        )
    })
}

fn name_of(published: &Published, server: &ConnectorId) -> String {
    let door = published.doors.get(server);
    door.map_or_else(|| server.to_string(), |door| door.shared.name())
}

/// Why it decides nothing at present.
fn sleeps(view: &View, rule: &Rule) -> Option<RuleSleep> {
    if rule.is_over(unix_ms()) {
        return Some(RuleSleep::Expired);
    }
    match view.connector(&rule.server) {
        Some(standing) if standing.refusal().is_none() => {}
        Some(_) | None => return Some(RuleSleep::Review),
    }
    if !rule.is_for(view.launch(&rule.server)) {
        return Some(RuleSleep::Elsewhere);
    }
    if rule.kind != Kind::Tools || rule.effect == Effect::Deny {
        return None;
    }
    let is_awake = rule.bound.iter().any(|bound| {
        let standing = view.tool(&rule.server, &bound.tool);
        standing.and_then(crate::trust::decision::ToolStanding::fingerprint) == Some(bound.fingerprint)
    });
    (!is_awake).then_some(RuleSleep::Changed)
}

fn value_of(pattern: &str) -> FileValue {
    match pattern {
        "*" => FileValue::All,
        pattern => FileValue::Pattern {
            pattern: pattern.to_owned(),
        },
    }
}

pub(super) fn draw_id() -> Result<RuleId, ApiError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| {
        tracing::error!(%error, "a rule got no id");
        ApiError::new(Code::Internal, "The rule could not be made; try again.")
    })?;
    Ok(RuleId::from_bytes(bits))
}

pub(super) fn unwritable(error: &serde_json::Error) -> ApiError {
    tracing::error!(%error, "a rule could not be written");
    ApiError::new(Code::Internal, "The rule could not be written down; try again.")
}
