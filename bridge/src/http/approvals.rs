//! Questions that wait for the person. The owner sees and answers them; whoever made the call sees how its own stand.

use axum::{extract::State, response::Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    api::Api,
    extract::{Asker, Json, Name, Owner, Refused},
    respond,
    routes::Routes,
};
use crate::{
    bridge::{ApprovalAnswer, Caller},
    error::ApiError,
    snapshot::{ApprovalState, ApprovalView, Question},
};

/// One question in an answer.
#[derive(Serialize)]
struct Approval<'a> {
    id: &'a str,
    /// As [`Question::kind`] spells it.
    kind: &'static str,
    state: ApprovalState,
    server: &'a str,
    server_name: &'a str,
    /// Unix milliseconds.
    asked_at: u64,
    expires_at: u64,
    /// For the owner only: what is written there is between an upstream and the person, and any program on this computer is
    /// a walk-in.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<&'a Question>,
}

impl<'a> Approval<'a> {
    fn for_caller(caller: &Caller, view: &'a ApprovalView) -> Self {
        Self {
            id: &view.id,
            kind: view.question.kind(),
            state: view.state,
            server: view.server.as_str(),
            server_name: &view.server_name,
            asked_at: view.asked_at,
            expires_at: view.expires_at,
            question: match caller {
                Caller::Owner => Some(&view.question),
                Caller::WalkIn(_) | Caller::Client { .. } => None,
            },
        }
    }
}

pub(super) async fn list<A: Api>(State(routes): State<Routes<A>>, Asker(caller): Asker) -> Response {
    #[derive(Serialize)]
    struct List<'a> {
        approvals: Vec<Approval<'a>>,
    }
    let views = routes.api.approvals(caller.clone()).await;
    let approvals = views.iter().map(|view| Approval::for_caller(&caller, view)).collect();
    respond::json(&List { approvals })
}

pub(super) async fn one<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Name(id): Name,
) -> Result<Response, Refused> {
    let view = routes.api.approval(caller.clone(), id).await?;
    Ok(respond::json(&Approval::for_caller(&caller, &view)))
}

/// What is said to a question.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Approve,
    Deny,
    Cancel,
    Longer,
}

/// `content` are the values of a form, only with `approve`; without them the form's own proposals are taken.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerBody {
    answer: Said,
    #[serde(default)]
    content: Option<Map<String, Value>>,
}

#[derive(Serialize)]
struct Answered<'a> {
    ok: bool,
    approval: Approval<'a>,
}

pub(super) async fn answer<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Name(id): Name,
    Json(body): Json<AnswerBody>,
) -> Result<Response, Refused> {
    let answer = match (body.answer, body.content) {
        (Said::Approve, content) => Some(ApprovalAnswer::Approve(content)),
        (Said::Deny, None) => Some(ApprovalAnswer::Deny),
        (Said::Cancel, None) => Some(ApprovalAnswer::Cancel),
        (Said::Longer, None) => None,
        (Said::Deny | Said::Cancel | Said::Longer, Some(_)) => {
            return Err(Refused(ApiError::bad_request(
                "The member content goes only with \"answer\": \"approve\".",
            )));
        }
    };
    let view = match answer {
        Some(answer) => routes.api.answer_approval(id, answer).await?,
        None => routes.api.extend_approval(id).await?,
    };
    Ok(respond::json(&Answered {
        ok: true,
        approval: Approval::for_caller(&Caller::Owner, &view),
    }))
}

#[cfg(test)]
mod tests;
