//! Questions that wait for the person: who sees which, and what an answer comes to.

use super::{ApprovalAnswer, BridgeHandle, Caller, shown};
use crate::{
    approval::{NotTaken, Unanswerable},
    error::{ApiError, Code},
    snapshot::{ApprovalState, ApprovalView},
};

impl BridgeHandle {
    /// Questions that wait, the oldest first: all of them for the owner, those of its own calls for anybody else.
    pub async fn approvals(&self, caller: Caller) -> Vec<ApprovalView> {
        let mut waiting = self.inner.approvals.waiting(only(&caller));
        waiting.extend(self.inner.wishes.waiting(only(&caller)));
        waiting.sort_by_key(|view| view.asked_at);
        waiting
    }

    /// A question that waits, or one of the newest that did.
    ///
    /// # Errors
    /// `not_found`, also for a question that belongs to somebody else's call.
    pub async fn approval(&self, caller: Caller, id: String) -> Result<ApprovalView, ApiError> {
        let found = self.inner.approvals.find(&id, only(&caller));
        let found = found.or_else(|| self.inner.wishes.find(&id, only(&caller)));
        found.ok_or_else(|| unknown(&id))
    }

    /// The person's answer; what has become of the question.
    ///
    /// # Errors
    /// `not_found`; `bad_request` for values that do not fit, with the field, and the question goes on waiting;
    /// `already_exists` when it was answered before; `approval_timeout` when its time is over. Of a yes to a change, also
    /// those of what it does; `needs_review` where that is not what was shown any more. It then waits again.
    pub async fn answer_approval(&self, id: String, answer: ApprovalAnswer) -> Result<ApprovalView, ApiError> {
        let yes = matches!(answer, ApprovalAnswer::Approve(_));
        if let Some(answered) = self.answer_wish(&id, yes).await {
            let view = answered?;
            self.settled().await;
            return Ok(view);
        }
        let taken = self.inner.approvals.answer(&id, answer);
        let view = taken.map_err(|why| match why {
            NotTaken::Wrong(wrong) => ApiError::bad_request(wrong.to_string()),
            NotTaken::Unanswerable(why) => refusal(&id, why),
        })?;
        self.settled().await;
        Ok(view)
    }

    /// Gives the person ten minutes in all to answer it.
    ///
    /// # Errors
    /// As [`BridgeHandle::answer_approval`].
    pub async fn extend_approval(&self, id: String) -> Result<ApprovalView, ApiError> {
        // A change waits long enough as it is.
        if let Some(view) = self.inner.wishes.find(&id, None) {
            return match view.state {
                ApprovalState::Waiting => Ok(view),
                state => Err(over(state)),
            };
        }
        let view = self.inner.approvals.extend(&id).map_err(|why| refusal(&id, why))?;
        self.settled().await;
        Ok(view)
    }
}

/// The only caller whose questions are seen; `None` = everybody's are.
fn only(caller: &Caller) -> Option<&str> {
    match caller {
        Caller::Owner => None,
        Caller::WalkIn(_) | Caller::Client { .. } => Some(caller.label()),
    }
}

pub(super) fn refusal(id: &str, why: Unanswerable) -> ApiError {
    match why {
        Unanswerable::Unknown => unknown(id),
        Unanswerable::Over(state) => over(state),
    }
}

/// The refusal of an answer to a question that ended so.
pub(super) fn over(state: ApprovalState) -> ApiError {
    match state {
        ApprovalState::Expired => ApiError::new(Code::ApprovalTimeout, "The time to answer this question is over."),
        ApprovalState::Approved | ApprovalState::Waiting => ApiError::new(
            Code::AlreadyExists,
            "This question has been answered already, with yes; the first answer holds.",
        ),
        ApprovalState::Denied => ApiError::new(
            Code::AlreadyExists,
            "This question has been answered already, with no; the first answer holds.",
        ),
    }
}

fn unknown(id: &str) -> ApiError {
    let id = shown(id);
    ApiError::new(
        Code::NotFound,
        format!("There is no question \"{id}\", or it is too long ago; GET /mcp/approvals lists those that wait."),
    )
}
