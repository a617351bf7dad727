//! Connectors as callers see them. What only the owner may see is left out for everybody else here.

use std::time::Duration;

use axum::{extract::State, response::Response};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    api::Api,
    extract::{Asker, Name, Owner, Params, Refused, existing_id},
    respond,
    routes::Routes,
};
use crate::{
    bridge::LogQuery,
    caller::Caller,
    connector::log::{Cursor, TAIL_LINES},
    error::{Action, ApiError, Code},
    snapshot::{
        ApiView, AuthView, ConnectionView, ConnectorDetail, ConnectorView, KeychainView, Notice, RejectedTool,
        SecretView, Status, ToolHints, ToolState, ToolView, TransportKind,
    },
};

/// One connector in an answer.
#[derive(Serialize)]
pub(super) struct Server<'a> {
    id: &'a str,
    status: Status,
    /// How many are listed.
    tools: u32,
    name: &'a str,
    description: &'a str,
    transport: TransportKind,
    auth: &'a AuthView,
    connection: &'a ConnectionView,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Action>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(flatten)]
    private: Option<PrivatePart<'a>>,
}

/// For the owner only: command lines and what an upstream wrote.
#[derive(Serialize)]
struct PrivatePart<'a> {
    enabled: bool,
    summary: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_at: Option<u64>,
}

impl<'a> Server<'a> {
    /// As much of it as this caller may see.
    pub(super) fn for_caller(caller: &Caller, view: &'a ConnectorView) -> Self {
        Self {
            id: &view.id,
            status: view.status,
            tools: view.tools,
            name: &view.name,
            description: &view.description,
            transport: view.transport,
            auth: &view.auth,
            connection: &view.connection,
            action: view.action,
            error: view.error.as_deref(),
            private: match caller {
                Caller::WalkIn(_) | Caller::Client { .. } => None,
                Caller::Owner => Some(PrivatePart {
                    enabled: view.enabled,
                    summary: &view.summary,
                    error_detail: view.error_detail.as_deref(),
                    progress: view.progress.as_deref(),
                    used_at: view.used_at,
                }),
            },
        }
    }
}

pub(super) async fn list<A: Api>(State(routes): State<Routes<A>>, Asker(caller): Asker) -> Response {
    #[derive(Serialize)]
    struct List<'a> {
        servers: Vec<Server<'a>>,
        /// Remarks about the file, for the owner only.
        #[serde(skip_serializing_if = "Option::is_none")]
        notices: Option<&'a [Notice]>,
        /// Where this API itself stands, for the owner only.
        #[serde(skip_serializing_if = "Option::is_none")]
        api: Option<&'a ApiView>,
        /// Where secrets are kept, for the owner only.
        #[serde(skip_serializing_if = "Option::is_none")]
        keychain: Option<&'a KeychainView>,
    }
    let snapshot = routes.api.snapshot();
    let seen = snapshot.connectors.iter().filter(|view| caller.sees(&view.id));
    let servers = seen.map(|view| Server::for_caller(&caller, view));
    let is_owner = caller.is_owner();
    respond::json(&List {
        servers: servers.collect(),
        notices: is_owner.then_some(&snapshot.config.notices[..]),
        api: is_owner.then_some(&snapshot.api),
        keychain: is_owner.then_some(&snapshot.keychain),
    })
}

#[derive(Serialize)]
struct Detail<'a> {
    server: Server<'a>,
    tools: Vec<ToolView>,
    /// Tools that cannot be offered at all.
    rejected: &'a [RejectedTool],
    /// What the server tells assistants about itself, as the person approved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    /// The entry as written in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<&'a str>,
    /// What the entry names, and whether it is set; never a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets: Option<&'a [SecretView]>,
}

pub(super) async fn one<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    Name(id): Name,
) -> Result<Response, Refused> {
    let detail = routes.api.connector(caller.clone(), id).await?;
    Ok(respond::json(&Detail {
        server: Server::for_caller(&caller, &detail.connector),
        tools: tools(&caller, &detail),
        rejected: &detail.rejected,
        instructions: detail.instructions.as_deref(),
        entry: match caller {
            Caller::WalkIn(_) | Caller::Client { .. } => None,
            Caller::Owner => Some(&detail.entry),
        },
        secrets: match caller {
            Caller::WalkIn(_) | Caller::Client { .. } => None,
            Caller::Owner => Some(&detail.secrets),
        },
    }))
}

/// What was not approved says nothing to anybody but the owner: an assistant would read it.
fn tools(caller: &Caller, detail: &ConnectorDetail) -> Vec<ToolView> {
    let connector_hides = match detail.connector.status {
        Status::Disabled => Some("The connector is turned off."),
        Status::Invalid => Some("The connector's entry in connectors.json cannot be used."),
        Status::NeedsReview => Some("The person has to look at what the connector runs or contacts first."),
        Status::Paused => Some("The connector is paused."),
        Status::Sleeping
        | Status::Connecting
        | Status::Connected
        | Status::Retrying
        | Status::NeedsSignIn
        | Status::NeedsSecret
        | Status::KeychainUnavailable
        | Status::Error => None,
    };
    let shown = |view: &ToolView| {
        let mut view = view.clone();
        if let Some(why) = connector_hides {
            view.hidden = Some(why.to_owned());
        }
        let is_approved = match view.state {
            ToolState::Approved | ToolState::Reworded => true,
            ToolState::Pending | ToolState::Held | ToolState::Changed => false,
        };
        if !caller.is_owner() {
            view.findings.clear();
        }
        if !is_approved && !caller.is_owner() {
            view.title = None;
            view.description.clear();
            view.input_schema = json!({"type": "object", "properties": {}});
            view.hints = ToolHints::default();
        }
        view
    };
    detail.tools.iter().map(shown).collect()
}

/// Lines of a log in one answer, unless asked otherwise; more than are kept there cannot be.
const DEFAULT_LINES: usize = 200;
/// A longer wait would look like an answer that never comes.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogParams {
    lines: Option<usize>,
    /// The `next` of an earlier answer.
    after: Option<String>,
    wait_ms: Option<u64>,
}

impl LogParams {
    fn query(self) -> Result<LogQuery, ApiError> {
        let after = self.after.map(|after| after.parse::<Cursor>());
        let after = after.transpose().map_err(|_| {
            ApiError::bad_request("after has to be the next of an earlier answer; without it the newest lines come.")
        })?;
        let wait = Duration::from_millis(self.wait_ms.unwrap_or(0));
        if wait > LONGEST_WAIT {
            return Err(ApiError::bad_request(format!(
                "wait_ms has to be between 0 and {} (30 seconds).",
                LONGEST_WAIT.as_millis()
            )));
        }
        if after.is_none() && !wait.is_zero() {
            return Err(ApiError::bad_request(
                "wait_ms needs after: it waits for lines later than those of an earlier answer.",
            ));
        }
        Ok(LogQuery {
            after,
            lines: self.lines.unwrap_or(DEFAULT_LINES).min(TAIL_LINES),
            wait,
        })
    }
}

pub(super) async fn log<A: Api>(
    State(routes): State<Routes<A>>,
    Name(id): Name,
    _: Owner,
    Params(params): Params<LogParams>,
) -> Result<Response, Refused> {
    let query = params.query()?;
    tokio::select! {
        page = routes.api.log(existing_id(&id)?, query) => Ok(respond::json(&page?)),
        () = routes.closing.cancelled() => Err(Refused(ApiError::new(
            Code::Unavailable,
            "Neuron Connect is being stopped; ask again once it runs.",
        ))),
    }
}
