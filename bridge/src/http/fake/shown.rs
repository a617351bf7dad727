//! What the fake has to show: one connector, its tools, and something of each kind that waits.

use std::sync::Arc;

use serde_json::json;

use super::PRIVATE;
use crate::{
    caller::Scope,
    ids::{ConnectorId, ExposedName, ToolName},
    snapshot::{
        ApprovalState, ApprovalView, AuthState, AuthView, ClientView, ConnectionView, ConnectorView, Elicitation,
        EntryOrigin, FindingView, LaunchReview, LaunchShown, LaunchWhy, PromptReview, PromptText, Question, Readiness,
        Status, TextReview, ToolHints, ToolReview, ToolState, ToolText, ToolView, ToolsReview, TransportKind,
    },
    tools::{Claim, Listing, Offer, Tool},
    trust::Fingerprint,
};

pub(in crate::http) fn view(id: &str) -> ConnectorView {
    ConnectorView {
        id: id.into(),
        name: "Files".into(),
        description: "Files on this computer".into(),
        transport: TransportKind::Stdio,
        summary: PRIVATE.into(),
        enabled: true,
        status: Status::Sleeping,
        tools: 1,
        action: None,
        error: None,
        error_detail: Some(PRIVATE.into()),
        progress: None,
        auth: AuthView {
            state: AuthState::None,
            scopes: None,
        },
        connection: ConnectionView {
            generation: 1,
            sequence: 2,
            since: 3,
            observed_at: 4,
            era: None,
            protocol: None,
            retry: None,
            readiness: Readiness::Unknown,
        },
        used_at: None,
        paused: None,
    }
}

fn exposed(connector: &str, tool: &str) -> ExposedName {
    ExposedName::new(format!("mcp__{connector}__{tool}"))
}

pub(super) fn tool_view(connector: &str, tool: &str, enabled: bool, auto_approved: bool) -> ToolView {
    ToolView {
        name: ToolName::new(tool),
        exposed_name: exposed(connector, tool),
        title: None,
        description: "d".into(),
        input_schema: json!({"type": "object"}),
        hints: ToolHints::default(),
        enabled,
        state: ToolState::Approved,
        findings: Vec::new(),
        hidden: (!enabled).then(|| "It is turned off.".to_owned()),
        auto_approved,
    }
}

pub(super) fn offer(connector: &str, tool: &str) -> Offer {
    let raw = json!({
        "name": tool,
        "title": "T",
        "description": "d",
        "inputSchema": {},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true},
        "_meta": {"x": 1},
    });
    Offer {
        server: ConnectorId::parse(connector).unwrap(),
        tool: Arc::new(Tool {
            name: ToolName::new(tool),
            title: Some("T".into()),
            description: "d".into(),
            input_schema: Arc::default(),
            hints: ToolHints::default(),
            print: Fingerprint::of(&raw),
            findings: Vec::new(),
            raw,
        }),
        claim: Claim::Approved,
        listing: Listing::Listed,
    }
}

pub(super) fn launch(id: &str) -> LaunchReview {
    LaunchReview {
        id: id.to_owned(),
        server: ConnectorId::parse("other").unwrap(),
        server_name: "Other".to_owned(),
        why: LaunchWhy::New,
        came_from: EntryOrigin::File,
        now: LaunchShown::Run {
            command_line: vec![PRIVATE.to_owned()],
            program: None,
            cwd: None,
            env_file: None,
            env: Vec::new(),
        },
        before: None,
        stands_out: Vec::new(),
        asleep: Vec::new(),
    }
}

pub(super) fn client(id: &str) -> ClientView {
    ClientView {
        id: id.into(),
        name: "One".into(),
        scopes: vec![Scope::Read],
        servers: None,
        asks_itself: false,
        paired_at: 1,
        expires_at: None,
        last_used_at: None,
        program: None,
    }
}

pub(super) fn tools_review() -> ToolsReview {
    let text = || ToolText {
        title: None,
        description: PRIVATE.to_owned(),
        input_schema: "{}".to_owned(),
        output_schema: None,
        hints: ToolHints::default(),
        also: None,
    };
    let finding = || FindingView {
        kind: "instruction".to_owned(),
        sentence: "It tells the assistant what to do, instead of what the tool does.".to_owned(),
        place: "description".to_owned(),
        excerpt: PRIVATE.to_owned(),
    };
    let tool = |name: &str, state, findings| {
        Arc::new(ToolReview {
            tool: ToolName::new(name),
            state,
            version: format!("v-{name}"),
            before: None,
            now: text(),
            findings,
            approved_at: None,
        })
    };
    ToolsReview {
        server: ConnectorId::parse("files").unwrap(),
        server_name: "Files".to_owned(),
        tools: vec![
            tool("new", ToolState::Pending, Vec::new()),
            tool("odd", ToolState::Held, vec![finding()]),
        ],
        prompts: vec![Arc::new(PromptReview {
            prompt: "sum".to_owned(),
            state: ToolState::Held,
            version: "v-sum".to_owned(),
            before: None,
            now: PromptText {
                title: None,
                description: Some(PRIVATE.to_owned()),
                arguments: Vec::new(),
                whole: PRIVATE.to_owned(),
            },
            findings: vec![finding()],
            approved_at: None,
        })],
        instructions: Some(TextReview {
            version: "v-text".to_owned(),
            before: None,
            now: PRIVATE.to_owned(),
            findings: Vec::new(),
        }),
    }
}

pub(super) fn question(id: &str) -> ApprovalView {
    ApprovalView {
        id: id.to_owned(),
        state: ApprovalState::Waiting,
        server: ConnectorId::parse("files").unwrap(),
        server_name: "Files".into(),
        asked_at: 1,
        refused: 0,
        expires_at: 2,
        question: Question::Elicitation {
            asks: Elicitation::Form {
                message: PRIVATE.into(),
                schema: json!({"type": "object"}),
                defaults: json!({}),
            },
        },
    }
}
