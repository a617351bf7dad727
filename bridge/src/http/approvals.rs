//! Questions, launches and tools that wait for the person. The owner sees and answers them; whoever made the call sees how its
//! own questions stand.

mod tools;

use axum::{extract::State, response::Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    api::Api,
    extract::{Asker, Json, Name, Owner, Params, Refused},
    respond,
    routes::Routes,
};
use crate::{
    bridge::{ASLEEP, ApprovalAnswer, CallReply, PROPOSAL},
    caller::Caller,
    error::ApiError,
    snapshot::{
        ApprovalState, ApprovalView, ChangeQuestion, LaunchReview, Question, RuleProposal, SleepingRules, Snapshot,
    },
    trust::rules::RuleDraft,
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

/// A launch in an answer, for the owner only. It waits without an end.
#[derive(Serialize)]
struct Launch<'a> {
    id: &'a str,
    kind: &'static str,
    state: ApprovalState,
    server: &'a str,
    server_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    launch: Option<&'a LaunchReview>,
}

impl<'a> Launch<'a> {
    fn waiting(review: &'a LaunchReview) -> Self {
        Self {
            id: &review.id,
            kind: "launch",
            state: ApprovalState::Waiting,
            server: review.server.as_str(),
            server_name: &review.server_name,
            launch: Some(review),
        }
    }

    fn answered(self, state: ApprovalState) -> Self {
        Self {
            state,
            launch: None,
            ..self
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Waits<'a> {
    Question(Approval<'a>),
    Launch(Box<Launch<'a>>),
    Tools(Box<tools::Tools<'a>>),
    Rule(Box<Wish<'a>>),
    Asleep(Box<Asleep<'a>>),
}

/// A wish of the file.
#[derive(Serialize)]
struct Wish<'a> {
    kind: &'static str,
    state: ApprovalState,
    #[serde(flatten)]
    proposal: &'a RuleProposal,
}

/// Rules that sleep since their connector's launch is another one.
#[derive(Serialize)]
struct Asleep<'a> {
    kind: &'static str,
    state: ApprovalState,
    #[serde(flatten)]
    asleep: &'a SleepingRules,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListParams {
    /// Instead of what waits: tools and prompts that were left as they are, which can still be approved.
    #[serde(default)]
    left: bool,
}

pub(super) async fn list<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Params(params): Params<ListParams>,
) -> Response {
    #[derive(Serialize)]
    struct List<'a> {
        approvals: Vec<Waits<'a>>,
    }
    let views = routes.api.approvals(caller.clone()).await;
    let snapshot = routes.api.snapshot();
    if params.left {
        let left = snapshot.reviews.left.iter().filter(|_| caller.is_owner());
        return respond::json(&List {
            approvals: left
                .map(|review| Waits::Tools(Box::new(tools::Tools::left(review))))
                .collect(),
        });
    }
    let questions = views
        .iter()
        .map(|view| Waits::Question(Approval::for_caller(&caller, view)));
    let launches = snapshot.reviews.launches.iter().filter(|_| caller.is_owner());
    let launches = launches.map(|review| Waits::Launch(Box::new(Launch::waiting(review))));
    let tools = snapshot.reviews.tools.iter().filter(|_| caller.is_owner());
    let tools = tools.map(|review| Waits::Tools(Box::new(tools::Tools::waiting(review))));
    let wishes = snapshot.reviews.proposals.iter().filter(|_| caller.is_owner());
    let wishes = wishes.map(|proposal| {
        Waits::Rule(Box::new(Wish {
            kind: "rule",
            state: ApprovalState::Waiting,
            proposal,
        }))
    });
    let asleep = snapshot.reviews.asleep.iter().filter(|_| caller.is_owner());
    let asleep = asleep.map(|asleep| {
        Waits::Asleep(Box::new(Asleep {
            kind: "asleep",
            state: ApprovalState::Waiting,
            asleep,
        }))
    });
    let reviews = launches.chain(tools).chain(wishes).chain(asleep);
    respond::json(&List {
        approvals: questions.chain(reviews).collect(),
    })
}

/// The launch that waits under this id.
fn launch<'s>(snapshot: &'s Snapshot, id: &str) -> Option<&'s LaunchReview> {
    snapshot.reviews.launches.iter().find(|review| review.id == id)
}

pub(super) async fn one<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Name(id): Name,
) -> Result<Response, Refused> {
    let snapshot = routes.api.snapshot();
    if let Some(review) = launch(&snapshot, &id).filter(|_| caller.is_owner()) {
        return Ok(respond::json(&Launch::waiting(review)));
    }
    if let Some(review) = tools::find(&snapshot, &id).filter(|_| caller.is_owner()) {
        return Ok(respond::json(&tools::Tools::waiting(review)));
    }
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
    /// To a call: this caller may use this tool until the bridge ends.
    UntilQuit,
    /// To a call: yes, and a rule for this caller, this tool and these arguments, or as `rule` says.
    Always,
    /// To a call: no, and this caller may never use this tool.
    Block,
}

/// `content` are the values of a form, only with `approve`; without them the form's own proposals are taken.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerBody {
    answer: Said,
    #[serde(default)]
    content: Option<Map<String, Value>>,
    /// Only with `approve`, to a call: those that ask for exactly the same are allowed too.
    #[serde(default)]
    same: bool,
    /// Only with `always`.
    #[serde(default)]
    rule: Option<RuleDraft>,
}

#[derive(Serialize)]
struct Answered<'a> {
    ok: bool,
    /// Where the sign-in that was said yes to goes on.
    #[serde(rename = "authUrl", skip_serializing_if = "Option::is_none")]
    auth_url: Option<String>,
    approval: Waits<'a>,
}

/// A launch is let run, or kept from it.
async fn answer_launch<A: Api>(
    routes: &Routes<A>,
    review: &LaunchReview,
    body: AnswerBody,
) -> Result<Response, Refused> {
    let state = match (body.answer, body.content) {
        (Said::Approve, None) => {
            routes.api.approve_launches(vec![review.id.clone()]).await?;
            ApprovalState::Approved
        }
        (Said::Deny, None) => {
            routes.api.keep_blocked(review.id.clone()).await?;
            ApprovalState::Denied
        }
        (Said::Approve | Said::Deny, Some(_))
        | (Said::Cancel | Said::Longer | Said::UntilQuit | Said::Always | Said::Block, _) => {
            return Err(Refused(ApiError::bad_request(
                "A launch is answered with \"approve\" or \"deny\" alone; it waits without an end.",
            )));
        }
    };
    Ok(respond::json(&Answered {
        ok: true,
        auth_url: None,
        approval: Waits::Launch(Box::new(Launch::waiting(review).answered(state))),
    }))
}

/// Rules that sleep go on for what is launched now, or are withdrawn.
async fn answer_asleep<A: Api>(routes: &Routes<A>, id: String, body: &AnswerBody) -> Result<Response, Refused> {
    let keep = match (&body.answer, &body.content) {
        (Said::Approve, None) => true,
        (Said::Deny, None) => false,
        (Said::Approve | Said::Deny, Some(_))
        | (Said::Cancel | Said::Longer | Said::UntilQuit | Said::Always | Said::Block, _) => {
            return Err(Refused(ApiError::bad_request(
                "Rules that sleep are answered with \"approve\", to keep them, or \"deny\", to withdraw them.",
            )));
        }
    };
    routes.api.answer_asleep(id, keep).await?;
    Ok(respond::json(&super::manage::DONE))
}

/// A wish of the file is let be, or not.
async fn answer_proposal<A: Api>(routes: &Routes<A>, id: String, body: &AnswerBody) -> Result<Response, Refused> {
    let yes = match (&body.answer, &body.content) {
        (Said::Approve, None) => true,
        (Said::Deny, None) => false,
        (Said::Approve | Said::Deny, Some(_))
        | (Said::Cancel | Said::Longer | Said::UntilQuit | Said::Always | Said::Block, _) => {
            return Err(Refused(ApiError::bad_request(
                "A wish of the file is answered with \"approve\" or \"deny\" alone.",
            )));
        }
    };
    routes.api.answer_proposal(id, yes).await?;
    Ok(respond::json(&super::manage::DONE))
}

pub(super) async fn answer<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Name(id): Name,
    Json(body): Json<AnswerBody>,
) -> Result<Response, Refused> {
    let snapshot = routes.api.snapshot();
    if let Some(review) = launch(&snapshot, &id) {
        return answer_launch(&routes, review, body).await;
    }
    if let Some(review) = tools::find(&snapshot, &id) {
        return tools::answer(&routes, review, body).await;
    }
    if id.starts_with(PROPOSAL) {
        return answer_proposal(&routes, id, &body).await;
    }
    if id.starts_with(ASLEEP) {
        return answer_asleep(&routes, id, &body).await;
    }
    let api = &routes.api;
    let view = match (body.answer, body.content, body.same, body.rule) {
        (Said::Approve, None, true, None) => api.answer_call(id, CallReply::Once { also_same: true }).await?,
        (Said::Approve, content, false, None) => api.answer_approval(id, ApprovalAnswer::Approve(content)).await?,
        (Said::Deny, None, false, None) => api.answer_approval(id, ApprovalAnswer::Deny).await?,
        (Said::Cancel, None, false, None) => api.answer_approval(id, ApprovalAnswer::Cancel).await?,
        (Said::Longer, None, false, None) => api.extend_approval(id).await?,
        (Said::UntilQuit, None, false, None) => api.answer_call(id, CallReply::UntilQuit).await?,
        (Said::Block, None, false, None) => api.answer_call(id, CallReply::Block).await?,
        (Said::Always, None, false, draft) => {
            let draft = match draft {
                Some(draft) => draft,
                None => api.draft_rule(id.clone()).await?,
            };
            api.always_allow(id, draft).await?
        }
        (
            Said::Approve | Said::Deny | Said::Cancel | Said::Longer | Said::UntilQuit | Said::Block | Said::Always,
            ..,
        ) => {
            return Err(Refused(ApiError::bad_request(
                "The members content and same go only with \"answer\": \"approve\", rule only with \"always\".",
            )));
        }
    };
    let auth_url = match (&view.question, view.state) {
        (Question::Manage { change, .. }, ApprovalState::Approved) if matches!(**change, ChangeQuestion::SignIn) => {
            let snapshot = routes.api.snapshot();
            snapshot.sign_in_page(view.server.as_str()).map(str::to_owned)
        }
        _ => None,
    };
    Ok(respond::json(&Answered {
        ok: true,
        auth_url,
        approval: Waits::Question(Approval::for_caller(&Caller::Owner, &view)),
    }))
}

#[cfg(test)]
mod tests;
