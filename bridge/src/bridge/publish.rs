//! From what the connectors are to what everybody sees: one snapshot, one tool list. Pure.

use std::sync::Arc;

use super::{
    Published,
    pins::{self, Looked},
};
use crate::{
    clock::unix_ms,
    config::{self, Entry, EntryKind},
    connector::{Cause, View, log::Log, summary_of},
    error::Action,
    ids::ConnectorId,
    snapshot::{
        AuthState, AuthView, ConnectionView, ConnectorDetail, ConnectorView, PausedView, Readiness, RejectedTool,
        SecretView, Status, ToolState, ToolView, ToolsReview, TransportKind,
    },
    tools::{Listing, Offer, Tool, ToolList, Unlisted, pattern, schema},
    trust::{LaunchIdentity, decision::auto_approved, pins::Standing, review::Hidden, rules::Who},
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
    /// What it may run or contact at present.
    pub launch: Option<LaunchIdentity>,
    /// What the upstream of its session calls itself.
    pub server: Option<String>,
    /// How what it lists stands; absent until its first list was looked at.
    pub looked: Option<Arc<Looked>>,
}

impl RowLive {
    /// Whether its tools may be seen at all.
    pub fn shows_tools(&self) -> bool {
        self.entry.enabled && self.view.machine.withheld().is_none()
    }

    /// Whether it may be used as it is in `view`, and what it lists there is still being looked at.
    pub fn is_looked_at(&self, view: &View) -> bool {
        let is_done = self.looked.as_ref().is_some_and(|looked| looked.is_of(&view.tools));
        self.entry.enabled && view.machine.withheld().is_none() && !is_done
    }

    /// Whether the person may look at what waits of its tools: a pause keeps nobody from that.
    fn shows_what_waits(&self) -> bool {
        self.entry.enabled && matches!(self.view.machine.withheld(), None | Some(Cause::Paused))
    }
}

/// That a connector can be used is told together with what it lists, once that was looked at: until then what stood before
/// stays, so that nobody who waits for it finds the tools missing.
pub(crate) fn hold_back_unseen(rows: &mut [Row], before: &[Row]) {
    for live in rows.iter_mut().filter_map(|row| row.live.as_mut()) {
        if !live.is_looked_at(&live.view) {
            continue;
        }
        let earlier = before.iter().filter_map(|row| row.live.as_ref());
        let mut earlier = earlier.filter(|earlier| earlier.entry.id == live.entry.id);
        let can_be_used = |live: &RowLive| match live.view.machine.status() {
            Status::Connected | Status::Sleeping => true,
            Status::Disabled
            | Status::Paused
            | Status::Connecting
            | Status::Retrying
            | Status::NeedsSignIn
            | Status::NeedsSecret
            | Status::NeedsReview
            | Status::KeychainUnavailable
            | Status::Error
            | Status::Invalid => false,
        };
        if let Some(earlier) = earlier.next()
            && can_be_used(live)
            && !can_be_used(earlier)
        {
            live.view = earlier.view.clone();
        }
    }
}

/// What the tool list depends on; the list is made anew only when this changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListKey(Vec<(ConnectorId, usize, bool, Vec<String>)>);

pub(crate) fn list_key(rows: &[Row]) -> ListKey {
    let live = rows.iter().filter_map(|row| row.live.as_ref());
    ListKey(
        live.map(|live| {
            // Of rows that are still published, so that no other look has its address.
            let list = live.looked.as_ref().map_or(0, |looked| Arc::as_ptr(looked) as usize);
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
        for (tool, served) in live.looked.iter().flat_map(|looked| looked.tools()) {
            let (tool, listing) = match (off(live, tool), served) {
                (Some(why), _) | (None, Err(why)) => (tool, Listing::Hidden(why)),
                (None, Ok(served)) => (served, Listing::Listed),
            };
            let claim = pins::claim(served);
            offers.push(Offer {
                server: live.entry.id.clone(),
                tool: tool.clone(),
                claim,
                listing,
            });
        }
    }
    ToolList::build(offers)
}

/// Whether the file hides a tool, or its connector waits.
fn off(live: &RowLive, tool: &Tool) -> Option<Unlisted> {
    if !live.entry.enabled {
        return Some(Unlisted::ConnectorOff);
    }
    if !live.shows_tools() {
        return Some(Unlisted::ConnectorWaits);
    }
    pattern::any_matches(&live.hidden.patterns, tool.name.as_str()).then_some(Unlisted::Disabled)
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
pub(crate) fn detail(
    row: &Row,
    view: ConnectorView,
    published: &Published,
    secrets: Vec<SecretView>,
) -> ConnectorDetail {
    let list = &published.tools;
    let Some(live) = &row.live else {
        return ConnectorDetail {
            connector: view,
            tools: Vec::new(),
            rejected: Vec::new(),
            instructions: None,
            entry: row.entry.text.clone(),
            secrets,
        };
    };
    let entry = &live.entry;
    let name = entry.name.clone().unwrap_or_else(|| row.entry.key.clone());
    let looked = live.looked.as_deref();
    // Of any program, as far as the person is not asked about it.
    let unasked = auto_approved(Who::WalkIn(None), &published.view, unix_ms()).tools;
    let unasked: Vec<_> = unasked
        .into_iter()
        .filter(|(server, _)| *server == entry.id)
        .map(|(_, tool)| tool)
        .collect();
    let mut rejected: Vec<RejectedTool> = looked.map(|looked| looked.list().rejected.clone()).unwrap_or_default();
    let mut tools = Vec::new();
    for (tool, served) in looked.into_iter().flat_map(Looked::tools) {
        let standing = looked.and_then(|looked| looked.standing(&tool.name));
        let hidden = off(live, tool).or(served.err());
        let tool = served.unwrap_or(tool);
        let Some(exposed) = list.exposed(&live.entry.id, &tool.name) else {
            let reason = list
                .unnamed()
                .iter()
                .find(|unnamed| unnamed.is(&live.entry.id, &tool.name));
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
            state: standing.map_or(ToolState::Pending, Standing::state),
            findings: standing
                .and_then(Standing::waiting)
                .map(|waiting| waiting.findings.clone())
                .unwrap_or_default(),
            hidden: hidden.map(|why| pins::refusal(why, &entry.id, &name, &tool.name).message),
            auto_approved: unasked.contains(&tool.name),
        });
    }
    ConnectorDetail {
        connector: view,
        tools,
        rejected,
        instructions: looked.and_then(Looked::instructions).map(str::to_owned),
        entry: row.entry.text.clone(),
        secrets,
    }
}

/// What waits for the person's look, or was left as it is, by connector, in the order of the file.
pub(crate) fn tools_reviews(
    rows: &[Row],
    of: impl Fn(&Looked, &ConnectorId, String) -> Option<ToolsReview>,
) -> Vec<ToolsReview> {
    let live = rows.iter().filter_map(|row| row.live.as_ref());
    live.filter(|live| live.shows_what_waits())
        .filter_map(|live| {
            let (id, name) = (&live.entry.id, &live.entry.name);
            let name = name.clone().unwrap_or_else(|| id.to_string());
            of(live.looked.as_ref()?, id, name)
        })
        .collect()
}
