//! The decision on a call: allow, ask or refuse, in the order of DESIGN §7.3, on one immutable [`View`].
//!
//! Connector's state → deny rule → tool state → allow rule → does its own asking → walk-ins' policy → ask. Owns that
//! order and nothing else: connecting and listing before a question is asked, looking a program up, asking and the last
//! comparison at the hand-over are the caller's doing. Whatever the view does not know is refused.

mod approved;
mod index;
mod readings;
mod refusal;
mod roundabout;
mod view;

use serde_json::{Map, Value};

pub use self::{
    approved::{AutoApproved, auto_approved},
    refusal::Refusal,
    view::{Askers, ConnectorFacts, ConnectorStanding, ToolFacts, ToolStanding, View, ViewParts},
};
use self::{roundabout::is_roundabout, view::Sleep};
use super::rules::{Declared, Effect, Fit, Kind, Resolve, Rule, RuleId, Who};
use crate::{
    ids::{ConnectorId, ToolName},
    snapshot::WalkInPolicy,
};

/// One call, read, prompt or completion that somebody wants.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub who: Who<'a>,
    pub server: &'a ConnectorId,
    pub subject: Subject<'a>,
    /// As they will be sent; empty for a resource.
    pub arguments: &'a Map<String, Value>,
    /// Asked only where a condition on folders is met.
    pub resolve: &'a Resolve<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    Tool(&'a ToolName),
    /// By its URI.
    Resource(&'a str),
    Prompt(&'a str),
    /// Of a prompt's argument, by the prompt's name.
    CompletePrompt(&'a str),
    /// Of a resource template's variable, by the template.
    CompleteResource(&'a str),
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allow(By),
    Ask(Why),
    Refuse(Refusal),
}

/// Who allowed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Owner,
    Rule(RuleId),
    /// The person said that this client or program asks by itself.
    AsksItself,
    /// Walk-ins are not asked about.
    WalkInPolicy,
}

/// Why the person is asked: what came nearest to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// No rule is about this.
    NoRule,
    /// This rule is, but not with these arguments.
    OtherArguments(RuleId),
    /// This one is for the tool as it was.
    OtherFingerprint(RuleId),
    /// This one is for what the connector ran or contacted before.
    OtherLaunch(RuleId),
    /// This one has ended.
    Expired(RuleId),
    /// A rule forbids it to a program, and which program calls could not be found out.
    UnknownProgram(RuleId),
}

/// Whether the decision could depend on which program the walk-in is. Where it does, look the program up and decide with it; for a
/// question it is looked up anyway.
pub fn needs_program(call: &Call<'_>, view: &View) -> bool {
    match call.who {
        Who::Owner | Who::Client(_) | Who::WalkIn(Some(_)) => false,
        Who::WalkIn(None) => {
            let unsure = |rule: &Rule| rule.caller.fits(call.who) == Fit::Unsure;
            view.has_asking_programs()
                || view.denying(call).any(unsure)
                || view
                    .allowing(call)
                    .any(|candidate| candidate.sleep == Sleep::Awake && unsure(candidate.rule))
        }
    }
}

/// What refuses it whatever is allowed: before anything is started or connected for it.
pub fn refusal(call: &Call<'_>, view: &View, now: u64) -> Option<Refusal> {
    passed(call, view, now).err()
}

/// The whole decision. After connecting for it, decide again on the view of then.
pub fn decision(call: &Call<'_>, view: &View, now: u64) -> Decision {
    let perhaps_denied = match passed(call, view, now) {
        Ok(perhaps) => perhaps,
        Err(refusal) => return Decision::Refuse(refusal),
    };
    match call.who {
        Who::Owner => return Decision::Allow(By::Owner),
        Who::Client(_) | Who::WalkIn(_) => {}
    }
    if let Some(rule) = perhaps_denied {
        return Decision::Ask(Why::UnknownProgram(rule));
    }
    match allowance(call, view, now) {
        Ok(rule) => Decision::Allow(By::Rule(rule)),
        Err(_) if view.asks_itself(call.who) => Decision::Allow(By::AsksItself),
        Err(why) => match (call.who, view.walk_in()) {
            (Who::WalkIn(_), WalkInPolicy::Allow) => Decision::Allow(By::WalkInPolicy),
            (Who::WalkIn(_), WalkInPolicy::Ask) | (Who::Client(_) | Who::Owner, _) => Decision::Ask(why),
        },
    }
}

/// Past all that refuses; with the rule that would deny it if the caller, who is not known, is the program it names.
fn passed(call: &Call<'_>, view: &View, now: u64) -> Result<Option<RuleId>, Refusal> {
    view.standing_refusal(call).map_or(Ok(()), Err)?;
    let perhaps = denial(call, view, now)?;
    view.tool_refusal(call).map_or(Ok(perhaps), Err)
}

fn denial(call: &Call<'_>, view: &View, now: u64) -> Result<Option<RuleId>, Refusal> {
    let declared = view.declared(call);
    let mut perhaps = None;
    for rule in view.denying(call) {
        let caller = rule.caller.fits(call.who);
        if caller == Fit::Differs || rule.is_over(now) || !call.may_be_meant_by(rule, declared) {
            continue;
        }
        if caller == Fit::Fits {
            return Err(Refusal::Denied(rule.id));
        }
        perhaps = perhaps.or(Some(rule.id));
    }
    Ok(perhaps)
}

/// The first rule that allows it, or why none does.
fn allowance(call: &Call<'_>, view: &View, now: u64) -> Result<RuleId, Why> {
    let declared = view.declared(call);
    let mut why = Why::NoRule;
    for candidate in view.allowing(call) {
        let rule = candidate.rule;
        if rule.caller.fits(call.who) != Fit::Fits {
            continue;
        }
        let nearer = match candidate.sleep {
            _ if rule.is_over(now) => Why::Expired(rule.id),
            Sleep::OtherLaunch => Why::OtherLaunch(rule.id),
            Sleep::OtherTool => Why::OtherFingerprint(rule.id),
            Sleep::Awake if !call.is_covered_by(rule, declared) => Why::OtherArguments(rule.id),
            Sleep::Awake => return Ok(rule.id),
        };
        if nearer.nearness() > why.nearness() {
            why = nearer;
        }
    }
    Err(why)
}

impl Why {
    fn nearness(self) -> u8 {
        match self {
            Self::NoRule => 0,
            Self::Expired(_) => 1,
            Self::OtherFingerprint(_) => 2,
            Self::OtherLaunch(_) => 3,
            Self::OtherArguments(_) => 4,
            Self::UnknownProgram(_) => 5,
        }
    }
}

impl Call<'_> {
    fn is_covered_by(&self, rule: &Rule, declared: Declared<'_>) -> bool {
        debug_assert_eq!(rule.effect, Effect::Allow);
        match self.subject {
            Subject::Resource(uri) if is_roundabout(uri) && rule.patterns.iter().all(|pattern| pattern != uri) => false,
            Subject::Tool(_) | Subject::Resource(_) | Subject::Prompt(_) => {
                rule.arguments.cover(self.arguments, declared, self.resolve)
            }
            // What is completed is no whole set of arguments that a condition could be about.
            Subject::CompletePrompt(_) | Subject::CompleteResource(_) => rule.arguments.are_any(),
        }
    }

    fn may_be_meant_by(&self, rule: &Rule, declared: Declared<'_>) -> bool {
        debug_assert_eq!(rule.effect, Effect::Deny);
        match self.subject {
            Subject::Tool(_) | Subject::Resource(_) | Subject::Prompt(_) => {
                rule.arguments.may_mean(self.arguments, declared, self.resolve)
            }
            Subject::CompletePrompt(_) | Subject::CompleteResource(_) => true,
        }
    }
}

impl<'a> Subject<'a> {
    /// What rules about it are about, and the name that their patterns are compared with.
    fn into_named(self) -> (Kind, &'a str) {
        match self {
            Self::Tool(name) => (Kind::Tools, name.as_str()),
            Self::Resource(uri) | Self::CompleteResource(uri) => (Kind::Resources, uri),
            Self::Prompt(name) | Self::CompletePrompt(name) => (Kind::Prompts, name),
        }
    }
}

#[cfg(test)]
mod tests;
