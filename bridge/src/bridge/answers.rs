//! The person's answers to questions about calls. What goes beyond one call is a rule, and a kept rule is written before
//! the call is released: where it cannot be saved the question goes on waiting.

use super::{
    BridgeHandle, activity,
    approvals::{over, refusal},
    owner::RunRule,
    rules::{asked_for, pattern_of},
    wishes,
};
use crate::{
    approval::{ApprovalAnswer, Asker, OpenCall, Reach, Subject},
    error::{ApiError, Code},
    ids::ConnectorId,
    snapshot::{ActivityReview, ApprovalState, ApprovalView, Question, WhoView},
    trust::rules::{Arguments, Condition, Effect, Kind, Lasts, RuleDraft},
};

/// What the person says to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallReply {
    /// This one call; with `also_same` those that ask for exactly the same at this moment too.
    Once {
        also_same: bool,
    },
    /// This caller, this tool as it is, whatever the arguments, until the bridge ends.
    UntilQuit,
    Deny,
    /// No, and this caller never again this tool.
    Block,
}

impl BridgeHandle {
    /// The person's answer to a call; what has become of the question.
    ///
    /// # Errors
    /// As [`BridgeHandle::answer_approval`]; `bad_request` where a rule would be needed for a program that cannot be told
    /// from others; `not_saved`, and the question goes on waiting.
    pub async fn answer_call(&self, id: String, reply: CallReply) -> Result<ApprovalView, ApiError> {
        match reply {
            CallReply::Once { also_same } => {
                let reach = if also_same { Reach::AlsoSame } else { Reach::Once };
                self.answer_approval(id, ApprovalAnswer::Allow(reach)).await
            }
            CallReply::Deny => self.answer_approval(id, ApprovalAnswer::Deny).await,
            CallReply::UntilQuit => {
                let open = self.open(&id)?;
                let draft = RuleDraft {
                    arguments: Arguments::Any,
                    lasts: Lasts::ThisRun,
                    ..draft_of(&open, Effect::Allow)?
                };
                let rule = self.made(draft, Some(&open)).await?;
                // First the answer, so that the question says how it was given.
                let view = self
                    .answer_approval(id, ApprovalAnswer::Allow(Reach::UntilQuit))
                    .await?;
                self.run_rule(RunRule::Add(Box::new(rule))).await;
                Ok(view)
            }
            CallReply::Block => {
                let open = self.open(&id)?;
                let draft = RuleDraft {
                    arguments: Arguments::Any,
                    ..draft_of(&open, Effect::Deny)?
                };
                let rule = self.made(draft, Some(&open)).await?;
                self.keep(&rule).await?;
                let view = match self.answer_approval(id.clone(), ApprovalAnswer::Deny).await {
                    Ok(view) => view,
                    // The rule itself may have ended it.
                    Err(error) => self.ended(&id).ok_or(error)?,
                };
                self.settled().await;
                Ok(view)
            }
        }
    }

    /// What a rule for this question would be: this caller, this tool, the arguments that were given, and none that were left
    /// out.
    ///
    /// # Errors
    /// As [`BridgeHandle::answer_call`].
    pub async fn draft_rule(&self, id: String) -> Result<RuleDraft, ApiError> {
        let open = self.open(&id)?;
        let mut draft = draft_of(&open, Effect::Allow)?;
        let declared = self.declared(&open);
        if let (Subject::Tool { .. } | Subject::Prompt(_), Arguments::Each { conditions }) =
            (&open.matter.subject, &mut draft.arguments)
        {
            for name in declared {
                let given = open.matter.arguments.get(&name);
                let condition = given.map_or(Condition::Absent, |value| Condition::Equals { value: value.clone() });
                conditions.insert(name, condition);
            }
        }
        Ok(draft)
    }

    /// Makes the rule, and answers this question with yes.
    ///
    /// # Errors
    /// As [`BridgeHandle::answer_call`]; `bad_request` for a rule that cannot be made, with why.
    pub async fn always_allow(&self, id: String, draft: RuleDraft) -> Result<ApprovalView, ApiError> {
        let open = self.open(&id)?;
        if draft.server != open.matter.server || draft.effect != Effect::Allow {
            return Err(ApiError::bad_request("The rule is not about what this question asks."));
        }
        let rule = self.made(draft, Some(&open)).await?;
        self.keep(&rule).await?;
        let view = match self
            .answer_approval(id.clone(), ApprovalAnswer::Allow(Reach::Always))
            .await
        {
            Ok(view) => view,
            // The rule itself may have ended it.
            Err(error) => self.ended(&id).ok_or(error)?,
        };
        self.settled().await;
        Ok(view)
    }

    /// Whoever asks or wishes this may do neither for an hour, and all that it asks and wishes is denied.
    ///
    /// # Errors
    /// As [`BridgeHandle::answer_approval`].
    pub async fn stop_asking(&self, id: String) -> Result<(), ApiError> {
        let (asker, who) = self.asked_by(&id)?;
        self.inner.approvals.stop(&asker, &who);
        for view in self.inner.wishes.deny(&asker.group()) {
            self.inner.world.activity.record(wishes::entry(&view));
        }
        self.decided(None, ActivityReview::Muted, Some(who.name));
        self.settled().await;
        Ok(())
    }

    /// Tells of what the person decided.
    pub(super) fn decided(&self, server: Option<&ConnectorId>, of: ActivityReview, subject: Option<String>) {
        self.inner.world.activity.record(activity::decided(server, of, subject));
    }

    /// Lets a muted caller ask again.
    ///
    /// # Errors
    /// `not_found`
    pub async fn let_ask(&self, caller: String) -> Result<(), ApiError> {
        let (_, muted) = self.inner.approvals.left();
        let who = muted.into_iter().find(|muted| muted.id == caller);
        if !self.inner.approvals.let_ask(&caller) {
            return Err(ApiError::new(
                Code::NotFound,
                "Nobody of this name is kept from asking.",
            ));
        }
        self.decided(None, ActivityReview::Unmuted, who.map(|muted| muted.who.name));
        self.settled().await;
        Ok(())
    }

    /// Lets the call of a missed question go once without asking, within ten minutes.
    ///
    /// # Errors
    /// `not_found`
    pub async fn allow_next_time(&self, id: String) -> Result<(), ApiError> {
        let (missed, _) = self.inner.approvals.left();
        let missed = missed.into_iter().find(|missed| missed.id == id);
        if !self.inner.approvals.allow_next_time(&id) {
            return Err(ApiError::new(
                Code::NotFound,
                "This question is not among those that were missed.",
            ));
        }
        if let Some(missed) = missed {
            let subject = match &missed.question {
                Question::Call { call } => Some(call.subject.name().to_owned()),
                Question::Elicitation { .. } | Question::Manage { .. } => None,
            };
            self.decided(Some(&missed.server), ActivityReview::NextTime, subject);
        }
        self.settled().await;
        Ok(())
    }

    /// The person is there, and may be asked by everybody again.
    pub fn back(&self) {
        self.inner.approvals.back();
    }

    fn asked_by(&self, id: &str) -> Result<(Asker, WhoView), ApiError> {
        let Some(view) = self.inner.wishes.find(id, None) else {
            let open = self.open(id)?;
            return Ok((open.asker, open.question.who));
        };
        match (view.question, self.inner.wishes.asker(id)) {
            (Question::Manage { who, .. }, Some(asker)) => Ok((asker, who)),
            (Question::Manage { .. } | Question::Call { .. } | Question::Elicitation { .. }, _) => {
                Err(over(view.state))
            }
        }
    }

    fn open(&self, id: &str) -> Result<OpenCall, ApiError> {
        self.inner.approvals.open_call(id).map_err(|why| refusal(id, why))
    }

    /// A question that ended otherwise: by the rule itself, or because its caller went away.
    fn ended(&self, id: &str) -> Option<ApprovalView> {
        let view = self.inner.approvals.find(id, None)?;
        match view.state {
            ApprovalState::Approved | ApprovalState::Denied | ApprovalState::Expired => Some(view),
            ApprovalState::Waiting => None,
        }
    }

    fn declared(&self, open: &OpenCall) -> Vec<String> {
        match &open.matter.subject {
            Subject::Tool { name, .. } => {
                let published = self.inner.published.load();
                let looked = published.looked.get(&open.matter.server);
                let tool = looked.and_then(|looked| looked.served(name));
                let properties = tool.and_then(|tool| tool.input_schema.get("properties")?.as_object());
                properties.into_iter().flatten().map(|(name, _)| name.clone()).collect()
            }
            Subject::Prompt(_) => open.matter.arguments.keys().cloned().collect(),
            Subject::Resource(_) => Vec::new(),
        }
    }
}

/// This caller and this subject; of the arguments nothing is said yet.
fn draft_of(open: &OpenCall, effect: Effect) -> Result<RuleDraft, ApiError> {
    let (kind, arguments) = match &open.matter.subject {
        Subject::Tool { .. } => (Kind::Tools, none_said()),
        Subject::Prompt(_) => (Kind::Prompts, none_said()),
        Subject::Resource(_) => (Kind::Resources, Arguments::Any),
    };
    Ok(RuleDraft {
        effect,
        server: open.matter.server.clone(),
        kind,
        patterns: vec![pattern_of(&open.matter.subject)?],
        arguments,
        caller: asked_for(&open.asker)?,
        expires_at: None,
        lasts: Lasts::Kept,
        note: String::new(),
    })
}

fn none_said() -> Arguments {
    Arguments::Each {
        conditions: std::collections::BTreeMap::new(),
    }
}
