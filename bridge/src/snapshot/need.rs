//! Which connectors wait for the person, and for what: one answer for the window's list and for the tray. Pure.

use std::collections::BTreeMap;

use serde::Serialize;
use ts_rs::TS;

use super::{ConnectorView, Reviews, Status, ToolState};

/// What only the person can do about a connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(tag = "why", rename_all = "snake_case")]
#[ts(export_to = "bridge.ts")]
pub enum Need {
    /// What its state asks for.
    State,
    /// Its state asks for nothing, but so many of its tools and prompts are not offered before the person has looked at them.
    HeldBack { tools: u32, prompts: u32 },
}

/// The connectors that need the person, by [`ConnectorView::id`]; those that are off need nothing.
pub(crate) fn needs(connectors: &[ConnectorView], reviews: &Reviews) -> BTreeMap<String, Need> {
    let need =
        |connector: &ConnectorView| Some((connector.id.clone(), need_of(&connector.id, connector.status, reviews)?));
    connectors.iter().filter_map(need).collect()
}

fn need_of(id: &str, status: Status, reviews: &Reviews) -> Option<Need> {
    match status {
        Status::NeedsSignIn
        | Status::NeedsSecret
        | Status::NeedsReview
        | Status::KeychainUnavailable
        | Status::Error
        | Status::Invalid => Some(Need::State),
        Status::Disabled => None,
        Status::Paused | Status::Sleeping | Status::Connecting | Status::Connected | Status::Retrying => {
            let review = reviews.tools.iter().find(|review| review.server.as_str() == id)?;
            let held = review.tools.iter().filter(|tool| is_held_back(tool.state)).count();
            let (tools, prompts) = (counted(held), counted(review.prompts.len()));
            (tools > 0 || prompts > 0).then_some(Need::HeldBack { tools, prompts })
        }
    }
}

fn counted(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Whether it is neither offered nor run before the person has looked at it.
fn is_held_back(state: ToolState) -> bool {
    match state {
        ToolState::Approved | ToolState::Reworded => false,
        ToolState::Pending | ToolState::Held | ToolState::Changed => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        ids::{ConnectorId, ToolName},
        snapshot::{PromptReview, PromptText, ToolHints, ToolReview, ToolText, ToolsReview},
    };

    const NEEDY: [Status; 6] = [
        Status::NeedsSignIn,
        Status::NeedsSecret,
        Status::NeedsReview,
        Status::KeychainUnavailable,
        Status::Error,
        Status::Invalid,
    ];
    const OTHERS: [Status; 6] = [
        Status::Disabled,
        Status::Paused,
        Status::Sleeping,
        Status::Connecting,
        Status::Connected,
        Status::Retrying,
    ];

    #[test]
    fn a_connector_needs_the_person_by_its_state_or_by_what_is_held_back_of_it() {
        let held = [ToolState::Pending, ToolState::Held, ToolState::Changed];
        let kept = [ToolState::Approved, ToolState::Reworded];
        for status in NEEDY {
            assert_eq!(need(status, &[]), Some(Need::State), "{status:?}");
            assert_eq!(need(status, &held), Some(Need::State), "{status:?}");
        }
        for status in OTHERS {
            let held_back = (status != Status::Disabled).then_some(Need::HeldBack { tools: 3, prompts: 0 });
            assert_eq!(need(status, &[]), None, "{status:?}");
            assert_eq!(need(status, &kept), None, "{status:?}");
            assert_eq!(need(status, &[&held[..], &kept[..]].concat()), held_back, "{status:?}");
        }
    }

    #[test]
    fn what_is_held_back_of_one_is_not_anothers_need() {
        let reviews = reviews("b", &[ToolState::Held]);
        let found = ["a", "b"].map(|id| need_of(id, Status::Connected, &reviews));
        assert_eq!(found, [None, Some(Need::HeldBack { tools: 1, prompts: 0 })]);
    }

    #[test]
    fn a_prompt_that_is_held_needs_the_person_as_a_tool_does() {
        let mut reviews = reviews("a", &[]);
        reviews.tools[0].prompts = vec![held_prompt()];
        let need = need_of("a", Status::Connected, &reviews);
        assert_eq!(need, Some(Need::HeldBack { tools: 0, prompts: 1 }));
        assert_eq!(need_of("a", Status::Disabled, &reviews), None);
    }

    fn held_prompt() -> Arc<PromptReview> {
        Arc::new(PromptReview {
            prompt: "sum".to_owned(),
            state: ToolState::Held,
            version: String::new(),
            before: None,
            now: PromptText {
                title: None,
                description: None,
                arguments: Vec::new(),
                whole: "{}".to_owned(),
            },
            findings: Vec::new(),
            approved_at: None,
        })
    }

    fn need(status: Status, tools: &[ToolState]) -> Option<Need> {
        need_of("a", status, &reviews("a", tools))
    }

    fn reviews(server: &str, tools: &[ToolState]) -> Reviews {
        let tool = |state: &ToolState| {
            Arc::new(ToolReview {
                tool: ToolName::new("x"),
                state: *state,
                version: String::new(),
                before: None,
                now: ToolText {
                    title: None,
                    description: String::new(),
                    input_schema: "{}".to_owned(),
                    output_schema: None,
                    hints: ToolHints::default(),
                    also: None,
                },
                findings: Vec::new(),
                approved_at: None,
            })
        };
        let review = ToolsReview {
            server: ConnectorId::parse(server).unwrap(),
            server_name: server.to_owned(),
            tools: tools.iter().map(tool).collect(),
            prompts: Vec::new(),
            instructions: None,
        };
        Reviews {
            tools: vec![review],
            ..Reviews::default()
        }
    }
}
