//! Rules that allow and were made for another launch of their connector: which sleep, what carries them over, and what the
//! person says about them.
//!
//! A rule goes on by the person's word alone: for what a review or this question showed them, or with their own change of
//! the entry that leaves the place as it is. Whether a rule counts is `trust::decision`'s.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::{
    BridgeHandle, activity,
    decide::{first_digits, standing_of},
    owner::{Command, Owner},
    person_file::Edit,
    publish::Row,
};
use crate::{
    clock::unix_ms,
    config::{Config, Connector},
    error::{ApiError, Code},
    ids::ConnectorId,
    ledger::{Change, LedgerFault, Row as LedgerRow, RowKind, Standing},
    snapshot::{ActivityReview, LaunchShown, RuleSaid, SleepingRules},
    trust::{
        LaunchIdentity, OLD_RULES_BOUND,
        decision::ConnectorStanding,
        review::is_same_place,
        rules::{self, Effect, Rule, RuleId},
    },
};

/// Begins the id of rules that sleep.
pub(crate) const ASLEEP: &str = "asleep-";

/// Rules of one connector that were made for another launch than what it may run or contact now.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asleep {
    pub server: ConnectorId,
    /// What it may run or contact now.
    pub launch: LaunchIdentity,
    pub rules: Vec<Arc<Rule>>,
}

impl BridgeHandle {
    /// The person's answer to rules that sleep because their connector runs or contacts something else by now: they go on
    /// for that, or are withdrawn.
    ///
    /// # Errors
    /// `not_found`, also where the rules or the launch are others by now; `not_saved`, `keychain_unavailable`.
    pub async fn answer_asleep(&self, id: String, keep: bool) -> Result<(), ApiError> {
        if keep {
            let server = self.asleep(&id)?.server;
            self.order(|reply| Command::KeepRules(id, reply)).await?;
            let kept = activity::decided(Some(&server), ActivityReview::RulesKept, None);
            self.inner.world.activity.record(kept);
            return Ok(());
        }
        let asleep = self.asleep(&id)?;
        for rule in &asleep.rules {
            self.withdraw_rule(rule.id).await?;
        }
        Ok(())
    }

    fn asleep(&self, id: &str) -> Result<Asleep, ApiError> {
        let published = self.inner.published.load();
        let found = published.rules.asleep.iter().find(|(known, _)| known == id);
        found.map(|(_, asleep)| asleep.clone()).ok_or_else(none_asleep)
    }
}

impl Owner {
    /// Rules that sleep go on for what their connector may run or contact now.
    ///
    /// # Errors
    /// As [`BridgeHandle::answer_asleep`].
    pub(super) async fn keep_rules(&mut self, id: &str) -> Result<(), ApiError> {
        let found = self.views.rules().asleep.iter().find(|(known, _)| known == id);
        let (_, asleep) = found.cloned().ok_or_else(none_asleep)?;
        let is_shown = |rule: &Rule| asleep.rules.iter().any(|shown| shown.id == rule.id);
        self.rules_go_on(&asleep.server, asleep.launch, is_shown).await?;
        Ok(())
    }

    /// Those of a connector's rules that allow and are chosen hold for this launch from now on.
    ///
    /// # Errors
    /// [`LedgerFault`]; kept rules then sleep on.
    pub(super) async fn rules_go_on(
        &mut self,
        server: &ConnectorId,
        launch: LaunchIdentity,
        chosen: impl Fn(&Rule) -> bool,
    ) -> Result<(), LedgerFault> {
        let moves = |rule: &Rule| {
            rule.effect == Effect::Allow && rule.server == *server && rule.launch != Some(launch) && chosen(rule)
        };
        let kept = rules::read(&self.world.ledger.rows(RowKind::Rule));
        let moved = kept.iter().filter(|rule| moves(rule)).map(|rule| rule.moved(launch));
        let changes = written(moved)?;
        if !changes.is_empty() {
            self.world.ledger.write(changes).await?;
        }
        self.views.move_for_run(launch, moves);
        Ok(())
    }

    /// The launch whose rules go on with the person's own change: what it changes was approved, and the place stays.
    pub(super) async fn carried_by(&self, edit: &Edit, next: &Config) -> Option<(ConnectorId, LaunchIdentity)> {
        let (id, is_pinning) = match edit {
            Edit::Replace(id, _) => (id, false),
            // No more than a package's version is written so.
            Edit::Args(id, _) => (id, true),
            Edit::Add(..)
            | Edit::Enabled(..)
            | Edit::ToolEnabled(..)
            | Edit::DisabledTools(..)
            | Edit::AutoApprove(..)
            | Edit::Remove(_) => return None,
        };
        let (before, after) = (self.valid(id.as_str())?, super::owner::valid(next, id.as_str())?);
        let stays = is_pinning || is_same_place(&before.launch, &after.launch, &self.world.person_home);
        let from = self.world.launch_in_force(&before).filter(|_| stays)?;
        // What waits for a look was not what the rules were made for.
        let is_what_it_says = !self.world.admission.review_on()
            || self.world.admission.needs_no_look(&before)
            || self.world.prepare(&before).await.identity == from;
        is_what_it_says.then(|| (id.clone(), from))
    }

    /// Once the change is made and recorded.
    pub(super) async fn carry_rules(&mut self, carried: Option<(ConnectorId, LaunchIdentity)>) {
        let Some((id, from)) = carried else { return };
        let to = self
            .valid(id.as_str())
            .and_then(|entry| self.world.launch_in_force(&entry));
        let Some(to) = to else { return };
        if let Err(fault) = self.rules_go_on(&id, to, |rule| rule.launch == Some(from)).await {
            tracing::warn!(connector = %id, %fault, "what it may do without asking sleeps until the person keeps it");
        }
    }

    /// Rules from before they named a launch are for the one that is approved now: once, so that none wakes with a later one.
    pub(super) async fn bind_old_rules(&self) {
        match self.world.admission.standing() {
            Standing::Verified => {}
            Standing::Fresh | Standing::Broken(_) | Standing::Unknown(_) | Standing::ForThisRun => return,
        }
        let ledger = &self.world.ledger;
        let is_done = ledger.row(RowKind::Setting, OLD_RULES_BOUND).is_some();
        let kept = rules::read(&ledger.rows(RowKind::Rule));
        let outcome = match bound_once(is_done, &kept, |server| self.launch_of(server)) {
            Ok(changes) if changes.is_empty() => Ok(()),
            Ok(changes) => ledger.write(changes).await,
            Err(fault) => Err(fault),
        };
        if let Err(fault) = outcome {
            tracing::warn!(%fault, "rules of an earlier version sleep until they can be written");
        }
    }

    fn launch_of(&self, server: &ConnectorId) -> Option<LaunchIdentity> {
        let entry = self.valid(server.as_str())?;
        self.world.launch_in_force(&entry)
    }

    /// As they are shown.
    pub(super) fn sleeping_rules(&self) -> Vec<SleepingRules> {
        let asleep = self.views.rules().asleep.iter();
        let shown = asleep.filter_map(|(id, asleep)| {
            let entry = self.valid(asleep.server.as_str())?;
            let server_name = name_of(&entry);
            Some(SleepingRules {
                id: id.clone(),
                server: asleep.server.clone(),
                rules: asleep.rules.iter().map(|rule| said(rule, &server_name)).collect(),
                server_name,
                now: self.shown_in_force(&entry, asleep.launch),
            })
        });
        shown.collect()
    }

    /// This launch as the person approved it: what the entry says meanwhile may be another one.
    fn shown_in_force(&self, entry: &Connector, launch: LaunchIdentity) -> LaunchShown {
        let approved = self.world.admission.approved(&entry.id);
        let approved = approved.filter(|approved| approved.identity == launch);
        approved.map_or_else(|| self.world.shown(entry), |approved| approved.shown.clone())
    }

    /// Those that sleep under a launch that waits for a look.
    pub(super) fn asleep_under(&self, entry: &Connector, launch: LaunchIdentity) -> Vec<RuleSaid> {
        let now = unix_ms();
        let all = self.views.rules().all.iter();
        let others = all.filter(|rule| rule.server == entry.id && !rule.is_for(Some(launch)) && !rule.is_over(now));
        others.map(|rule| said(rule, &name_of(entry))).collect()
    }

    /// The person keeps these for what they approve.
    pub(super) async fn keep_for_review(&mut self, server: &ConnectorId, launch: LaunchIdentity, kept: &[RuleId]) {
        if let Err(fault) = self.rules_go_on(server, launch, |rule| kept.contains(&rule.id)).await {
            tracing::warn!(connector = %server, %fault, "what it may do without asking sleeps until the person keeps it");
        }
    }
}

fn name_of(entry: &Connector) -> String {
    entry.name.clone().unwrap_or_else(|| entry.id.to_string())
}

fn said(rule: &Rule, connector: &str) -> RuleSaid {
    RuleSaid {
        rule: rule.id,
        sentence: rule.sentence(connector, None),
    }
}

/// What is written of rules that name no launch, where there are any; those of connectors that may run nothing sleep on.
fn bound_once(
    is_done: bool,
    kept: &[Rule],
    launch_of: impl Fn(&ConnectorId) -> Option<LaunchIdentity>,
) -> Result<Vec<Change>, LedgerFault> {
    let is_old = |rule: &&Rule| rule.effect == Effect::Allow && rule.launch.is_none();
    let mut old = kept.iter().filter(is_old).peekable();
    if is_done || old.peek().is_none() {
        return Ok(Vec::new());
    }
    let mut changes = written(old.filter_map(|rule| Some(rule.moved(launch_of(&rule.server)?))))?;
    changes.push(Change::Put(LedgerRow {
        kind: RowKind::Setting,
        key: OLD_RULES_BOUND.to_owned(),
        body: "true".to_owned(),
    }));
    Ok(changes)
}

fn written(rules: impl Iterator<Item = Rule>) -> Result<Vec<Change>, LedgerFault> {
    let put = |rule: Rule| {
        rule.put()
            .map_err(|error| LedgerFault::NotSaved(format!("The rule could not be saved: {error}.")))
    };
    rules.map(put).collect()
}

/// Of connectors that may be used, and whose launch is therefore decided.
pub(super) fn asleep(rows: &[Row], rules: &[Arc<Rule>]) -> Vec<(String, Asleep)> {
    let live = rows.iter().filter_map(|row| row.live.as_ref());
    let decided = live.filter(|live| match standing_of(live) {
        ConnectorStanding::Ready | ConnectorStanding::Paused => true,
        ConnectorStanding::NeedsReview
        | ConnectorStanding::TrustUnknown
        | ConnectorStanding::Disabled
        | ConnectorStanding::Invalid => false,
    });
    let now = unix_ms();
    let found = decided.filter_map(|live| {
        let launch = live.launch?;
        let server = &live.entry.id;
        let others = rules
            .iter()
            .filter(|rule| rule.server == *server && !rule.is_for(Some(launch)) && !rule.is_over(now));
        let asleep = Asleep {
            server: server.clone(),
            launch,
            rules: others.cloned().collect(),
        };
        (!asleep.rules.is_empty()).then(|| (asleep_id(&asleep), asleep))
    });
    found.collect()
}

fn asleep_id(asleep: &Asleep) -> String {
    let mut hash = Sha256::new();
    hash.update(asleep.server.as_str());
    hash.update([0]);
    hash.update(asleep.launch.as_bytes());
    for rule in &asleep.rules {
        hash.update(rule.id.to_string());
        hash.update([0]);
        // A rule is its JSON; one that has none cannot be kept.
        hash.update(serde_json::to_vec(&**rule).unwrap_or_default());
        hash.update([0]);
    }
    format!("{ASLEEP}{}", first_digits(&hash.finalize()))
}

fn none_asleep() -> ApiError {
    ApiError::new(
        Code::NotFound,
        "No rules sleep under this id: they, or what their connector runs, are others by now; look at it again.",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn old(number: u8, server: &str) -> Rule {
        let rule = json!({
            "id": format!("{number:032x}"), "effect": "allow", "server": server, "kind": "resources", "patterns": ["*"],
            "arguments": {"which": "any"}, "caller": {"who": "anyone"}, "lasts": "kept", "bound": [],
            "origin": "person", "made_at": 1, "note": "",
        });
        serde_json::from_value(rule).unwrap()
    }

    #[test]
    fn rules_of_an_earlier_version_are_bound_once_and_what_could_not_be_then_sleeps() {
        let launch = "a".repeat(64).parse::<LaunchIdentity>().unwrap();
        let is_there = |server: &ConnectorId| (server.as_str() == "there").then_some(launch);
        let [there, gone] = [old(1, "there"), old(2, "gone")];
        let changes = bound_once(false, &[there.clone(), gone.clone()], is_there).unwrap();
        let [bound, done]: [Change; 2] = changes.try_into().unwrap();
        assert_eq!(bound, there.moved(launch).put().unwrap());
        assert!(matches!(done, Change::Put(row) if row.key == OLD_RULES_BOUND));
        // Whatever is approved of a connector later wakes nothing.
        let later = bound_once(true, &[there.moved(launch), gone], |_| Some(launch));
        assert!(later.unwrap().is_empty());
        let none_is_old = bound_once(false, &[there.moved(launch)], is_there);
        assert!(none_is_old.unwrap().is_empty());
    }
}
