//! Answers to questions. The window names a question by its id; what it is about is held by the bridge.

use neuron_bridge::{
    approval::ApprovalAnswer,
    caller::Caller,
    error::{ApiError, Code},
    snapshot::{ApprovalState, ChangeQuestion, Elicitation, Question},
};
use serde::Deserialize;
use tauri::State;

use super::{Answer, object};
use crate::{app::Shell, browser};

/// The person's word.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    Approve,
    Deny,
}

/// `content` is the JSON text of a form's values.
#[tauri::command]
pub(super) async fn answer_approval(
    shell: State<'_, Shell>,
    id: String,
    answer: Word,
    content: Option<String>,
) -> Answer<()> {
    let answer = match answer {
        Word::Approve => {
            let content = content.map(|text| object(&text, "The answer")).transpose()?;
            ApprovalAnswer::Approve(content)
        }
        Word::Deny => ApprovalAnswer::Deny,
    };
    let approval = shell.bridge.answer_approval(id, answer).await?;
    // The yes to a sign-in that a program wished for.
    let is_sign_in = match &approval.question {
        Question::Manage { change, .. } => matches!(**change, ChangeQuestion::SignIn),
        Question::Elicitation { .. } | Question::Call { .. } => false,
    };
    match shell.bridge.snapshot().sign_in_page(approval.server.as_str()) {
        Some(page) if is_sign_in && approval.state == ApprovalState::Approved => {
            browser::open(&shell.bridge, page.to_owned()).await
        }
        Some(_) | None => Ok(()),
    }
}

/// Gives the person more time.
#[tauri::command]
pub(super) async fn extend_approval(shell: State<'_, Shell>, id: String) -> Answer<()> {
    shell.bridge.extend_approval(id).await.map(drop)
}

/// Opens the page that a question is about; a click is the only way to it.
#[tauri::command]
pub(super) async fn open_approval_url(shell: State<'_, Shell>, id: String) -> Answer<()> {
    let approval = shell.bridge.approval(Caller::Owner, id).await?;
    let Question::Elicitation {
        asks: Elicitation::Url { url, .. },
    } = approval.question
    else {
        return Err(ApiError::bad_request("This question is about no page."));
    };
    match approval.state {
        ApprovalState::Waiting => browser::open(&shell.bridge, url).await,
        ApprovalState::Approved | ApprovalState::Denied | ApprovalState::Expired => Err(ApiError::new(
            Code::ApprovalTimeout,
            "The time to answer this question is over.",
        )),
    }
}
