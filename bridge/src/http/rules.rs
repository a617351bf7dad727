//! The person's rules, and what they let a caller do without a question.

use axum::{extract::State, response::Response};
use serde::Serialize;

use super::{
    api::Api,
    extract::{Asker, Json, Name, Owner, Refused},
    respond,
    routes::Routes,
};
use crate::{
    error::{ApiError, Code},
    ids::ExposedName,
    snapshot::RuleView,
    trust::rules::{Rule, RuleDraft, RuleId},
};

pub(super) async fn list<A: Api>(State(routes): State<Routes<A>>, _: Owner) -> Result<Response, Refused> {
    #[derive(Serialize)]
    struct List {
        rules: Vec<RuleView>,
    }
    let rules = routes.api.rules().await?;
    Ok(respond::json(&List { rules }))
}

#[derive(Serialize)]
struct Made {
    ok: bool,
    rule: Rule,
}

pub(super) async fn add<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Json(draft): Json<RuleDraft>,
) -> Result<Response, Refused> {
    let rule = routes.api.add_rule(draft).await?;
    Ok(respond::json(&Made { ok: true, rule }))
}

pub(super) async fn withdraw<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Name(id): Name,
) -> Result<Response, Refused> {
    let id: RuleId = id
        .parse()
        .map_err(|_| ApiError::new(Code::NotFound, "There is no such rule; GET /mcp/rules lists them."))?;
    routes.api.withdraw_rule(id).await?;
    Ok(respond::json(&super::manage::DONE))
}

/// `rules` are those with conditions: they allow some arguments.
#[derive(Serialize)]
struct AutoApproved {
    tools: Vec<ExposedName>,
    rules: Vec<Rule>,
}

pub(super) async fn auto_approved<A: Api>(State(routes): State<Routes<A>>, Asker(caller): Asker) -> Response {
    let found = routes.api.auto_approved(caller).await;
    respond::json(&AutoApproved {
        tools: found.tools,
        rules: found.rules,
    })
}
