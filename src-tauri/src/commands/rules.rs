//! Answers to calls, and rules. The window names a question or a rule by its id; what is allowed is held by the bridge.

use neuron_bridge::{
    bridge::CallReply,
    error::ApiError,
    ids::ToolName,
    snapshot::RuleView,
    trust::rules::{Choice, Rule, RuleDraft, RuleId},
};
use serde::{Deserialize, de::DeserializeOwned};
use tauri::State;

use super::{Answer, connector_id};
use crate::app::Shell;

/// The person's word about a call.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Once,
    UntilQuit,
    Deny,
    Block,
}

/// `also_same` goes with once: those that ask for exactly the same are allowed too.
#[tauri::command]
pub(super) async fn answer_call(shell: State<'_, Shell>, id: String, answer: Reply, also_same: bool) -> Answer<()> {
    let reply = match answer {
        Reply::Once => CallReply::Once { also_same },
        Reply::UntilQuit => CallReply::UntilQuit,
        Reply::Deny => CallReply::Deny,
        Reply::Block => CallReply::Block,
    };
    shell.bridge.answer_call(id, reply).await.map(drop)
}

/// What a rule for this question would be.
#[tauri::command]
pub(super) async fn draft_rule(shell: State<'_, Shell>, id: String) -> Answer<RuleDraft> {
    shell.bridge.draft_rule(id).await
}

/// Makes the rule and answers the question with yes. `rule` is the JSON text of a draft.
#[tauri::command]
pub(super) async fn always_allow(shell: State<'_, Shell>, id: String, rule: String) -> Answer<()> {
    shell.bridge.always_allow(id, read(&rule)?).await.map(drop)
}

/// Whoever asked this may not ask for an hour.
#[tauri::command]
pub(super) async fn stop_asking(shell: State<'_, Shell>, id: String) -> Answer<()> {
    shell.bridge.stop_asking(id).await
}

/// Lets a muted caller ask again.
#[tauri::command]
pub(super) async fn let_ask(shell: State<'_, Shell>, caller: String) -> Answer<()> {
    shell.bridge.let_ask(caller).await
}

/// Lets a missed call go once.
#[tauri::command]
pub(super) async fn allow_next_time(shell: State<'_, Shell>, id: String) -> Answer<()> {
    shell.bridge.allow_next_time(id).await
}

/// The person's word about a wish of the file.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WishReply {
    Approve,
    Decline,
}

/// Answers a wish of the file.
#[tauri::command]
pub(super) async fn answer_proposal(shell: State<'_, Shell>, id: String, answer: WishReply) -> Answer<()> {
    let yes = match answer {
        WishReply::Approve => true,
        WishReply::Decline => false,
    };
    shell.bridge.answer_proposal(id, yes).await
}

/// Every rule.
#[tauri::command]
pub(super) async fn rules(shell: State<'_, Shell>) -> Answer<Vec<RuleView>> {
    shell.bridge.rules().await
}

/// `rule` is the JSON text of a whole rule, of which what a person may choose is taken.
#[tauri::command]
pub(super) async fn save_rule(shell: State<'_, Shell>, rule: String) -> Answer<()> {
    let rule: Rule = read(&rule)?;
    shell.bridge.save_rule(rule).await.map(drop)
}

/// Withdraws a rule.
#[tauri::command]
pub(super) async fn withdraw_rule(shell: State<'_, Shell>, id: String) -> Answer<()> {
    shell.bridge.withdraw_rule(rule_id(&id)?).await
}

pub(super) fn rule_id(id: &str) -> Answer<RuleId> {
    id.parse()
        .map_err(|_| ApiError::bad_request("This is not the id of a rule."))
}

/// The answer with which adding ends.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unasked {
    LookUp,
    Nothing,
    These,
}

/// What assistants may do with a connector without asking.
#[tauri::command]
pub(super) async fn choose(shell: State<'_, Shell>, server: String, choice: Unasked, tools: Vec<String>) -> Answer<()> {
    let choice = match choice {
        Unasked::LookUp => Choice::LookUp,
        Unasked::Nothing => Choice::Nothing,
        Unasked::These => Choice::These {
            tools: tools.into_iter().map(ToolName::new).collect(),
        },
    };
    shell.bridge.choose(connector_id(&server)?, choice).await
}

/// Read here and not by the webview's bridge to Rust, so that big and exact numbers stay as they are.
fn read<T: DeserializeOwned>(text: &str) -> Answer<T> {
    serde_json::from_str(text).map_err(|error| ApiError::bad_request(format!("The rule cannot be read: {error}.")))
}
