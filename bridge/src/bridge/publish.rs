//! From what the connectors are to what everybody sees: one snapshot, one tool list. Pure.

use std::sync::Arc;

use crate::{
    config::{self, Entry, EntryKind},
    connector::{View, log::Log, summary_of},
    error::Action,
    ids::ConnectorId,
    snapshot::{
        AuthState, AuthView, ConnectionView, ConnectorDetail, ConnectorView, PausedView, Readiness, RejectedTool,
        SecretView, Status, ToolState, ToolView, TransportKind,
    },
    tools::{Listing, Offer, ToolList, pattern, schema},
    trust::review::Hidden,
};

/// One row of the configuration with what runs for it.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub entry: Entry,
    /// Absent for an invalid entry.
    pub live: Option<RowLive>,
}

#[derive(Debug, Clone)]
pub(crate) struct RowLive {
    pub entry: Arc<config::Connector>,
    pub view: Arc<View>,
    pub used_at: Option<u64>,
    pub log: Log,
    /// What its sign-in allows, where one is known.
    pub access: Option<Vec<String>>,
    /// Who paused it, where it is.
    pub paused: Option<PausedView>,
    /// Which of its tools are hidden.
    pub hidden: Hidden,
}

impl RowLive {
    /// Whether its tools may be seen at all.
    pub fn shows_tools(&self) -> bool {
        self.entry.enabled && self.view.machine.withheld().is_none()
    }
}

/// What the tool list depends on; the list is made anew only when this changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListKey(Vec<(ConnectorId, usize, bool, Vec<String>)>);

pub(crate) fn list_key(rows: &[Row]) -> ListKey {
    let live = rows.iter().filter_map(|row| row.live.as_ref());
    ListKey(
        live.map(|live| {
            let list = Arc::as_ptr(&live.view.tools).cast::<()>() as usize;
            (
                live.entry.id.clone(),
                list,
                live.shows_tools(),
                live.hidden.patterns.clone(),
            )
        })
        .collect(),
    )
}

/// Every known tool of every connector, in the order of the file; hidden ones keep their names.
pub(crate) fn tool_list(rows: &[Row]) -> ToolList {
    let mut offers = Vec::new();
    for live in rows.iter().filter_map(|row| row.live.as_ref()) {
        for tool in &live.view.tools.tools {
            let shown = live.shows_tools() && !pattern::any_matches(&live.hidden.patterns, tool.name.as_str());
            offers.push(Offer {
                server: live.entry.id.clone(),
                tool: tool.clone(),
                listing: if shown { Listing::Listed } else { Listing::Hidden },
            });
        }
    }
    ToolList::build(offers)
}

/// One row as lists show it. `listed` is the number of its tools in the present list.
pub(crate) fn connector_view(row: &Row, listed: usize) -> ConnectorView {
    let tools = u32::try_from(listed).unwrap_or(u32::MAX);
    match (&row.entry.kind, &row.live) {
        (EntryKind::Valid(_), Some(live)) => {
            let machine = &live.view.machine;
            let entry = &live.entry;
            let (error, error_detail) = machine.error();
            // An upstream may repeat a value that only its entry shows to be secret.
            let shown = |text: &String| live.log.redactor().sentence(text).into_owned();
            let error = error.as_ref().map(shown);
            // What a server says that a sign-in allows is its own text too.
            let access = live.access.as_ref().map(|scopes| scopes.iter().map(shown).collect());
            ConnectorView {
                id: row.entry.key.clone(),
                name: entry.name.clone().unwrap_or_else(|| row.entry.key.clone()),
                description: entry.description.clone().unwrap_or_default(),
                transport: entry.launch.transport(),
                summary: summary_of(&entry.launch),
                enabled: entry.enabled,
                status: machine.status(),
                tools,
                action: machine.action(),
                error,
                error_detail,
                progress: machine.progress_text(),
                auth: machine.auth(access),
                connection: machine.connection(),
                used_at: live.used_at,
                paused: live.paused.clone().filter(|_| entry.enabled),
            }
        }
        (EntryKind::Valid(connector), None) => {
            invalid_view(row, connector.launch.transport(), "It is being started.".to_owned())
        }
        (EntryKind::Invalid(notice), _) => invalid_view(row, TransportKind::Stdio, notice.message.clone()),
    }
}

fn invalid_view(row: &Row, transport: TransportKind, error: String) -> ConnectorView {
    ConnectorView {
        id: row.entry.key.clone(),
        name: row.entry.key.clone(),
        description: String::new(),
        transport,
        summary: String::new(),
        enabled: false,
        status: Status::Invalid,
        tools: 0,
        action: Some(Action::Edit),
        error: Some(error),
        error_detail: None,
        progress: None,
        auth: AuthView {
            state: AuthState::None,
            scopes: None,
        },
        connection: ConnectionView {
            generation: 0,
            sequence: 0,
            since: 0,
            observed_at: 0,
            era: None,
            protocol: None,
            retry: None,
            readiness: Readiness::Unknown,
        },
        used_at: None,
        paused: None,
    }
}

/// One connector with all its tools, shown or hidden.
pub(crate) fn detail(row: &Row, view: ConnectorView, list: &ToolList, secrets: Vec<SecretView>) -> ConnectorDetail {
    let Some(live) = &row.live else {
        return ConnectorDetail {
            connector: view,
            tools: Vec::new(),
            rejected: Vec::new(),
            entry: row.entry.text.clone(),
            secrets,
        };
    };
    let entry = &live.entry;
    let mut rejected: Vec<RejectedTool> = live.view.tools.rejected.clone();
    let mut tools = Vec::new();
    for tool in &live.view.tools.tools {
        let Some(exposed) = list.exposed(&live.entry.id, &tool.name) else {
            let reason = list
                .unnamed()
                .iter()
                .find(|u| u.server == live.entry.id && u.tool == tool.name);
            rejected.push(RejectedTool {
                name: tool.name.to_string(),
                reason: reason.map_or_else(
                    || "Its name cannot be told from another's.".to_owned(),
                    |u| u.reason.clone(),
                ),
            });
            continue;
        };
        tools.push(ToolView {
            name: tool.name.clone(),
            exposed_name: exposed.clone(),
            title: tool.title.clone(),
            description: tool.description.clone(),
            input_schema: serde_json::Value::Object(schema::listed_input(&tool.input_schema).into_owned()),
            hints: tool.hints,
            enabled: !pattern::any_matches(&live.hidden.patterns, tool.name.as_str()),
            state: ToolState::Approved,
            findings: Vec::new(),
            auto_approved: entry.auto_approve.covers(tool.name.as_str()),
        });
    }
    ConnectorDetail {
        connector: view,
        tools,
        rejected,
        entry: row.entry.text.clone(),
        secrets,
    }
}
