//! What a connector's tools and prompts came to, as something that waits for the owner: what changed, what is new, what stands out.

use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    super::{api::Api, extract::Refused, respond, routes::Routes},
    AnswerBody, Answered, Said, Waits,
};
use crate::{
    error::ApiError,
    ids::ToolName,
    snapshot::{ApprovalState, PromptReview, Snapshot, ToolReview, ToolsReview},
    trust::fingerprint::print_of_text,
};

/// Digits of an id that tell what it was about.
const DIGITS: usize = 16;

/// The tools and prompts of one connector that wait, for the owner only. They wait without an end.
#[derive(Serialize)]
pub(super) struct Tools<'a> {
    /// Names exactly these versions.
    id: String,
    kind: &'static str,
    state: ApprovalState,
    server: &'a str,
    server_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a ToolsReview>,
}

impl<'a> Tools<'a> {
    pub(super) fn waiting(review: &'a ToolsReview) -> Self {
        Self {
            id: id(review),
            kind: "tools",
            state: ApprovalState::Waiting,
            server: review.server.as_str(),
            server_name: &review.server_name,
            tools: Some(review),
        }
    }

    /// What was left as it is.
    pub(super) fn left(review: &'a ToolsReview) -> Self {
        Self {
            state: ApprovalState::Denied,
            ..Self::waiting(review)
        }
    }

    fn answered(self, state: ApprovalState) -> Self {
        Self {
            state,
            tools: None,
            ..self
        }
    }
}

/// What waits under this id, or was left as it is: none where anything about it changed since.
pub(super) fn find<'s>(snapshot: &'s Snapshot, wanted: &str) -> Option<&'s ToolsReview> {
    let server = wanted.strip_prefix("tools:")?.rsplit_once(':')?.0;
    let mut reviews = snapshot.reviews.tools.iter().chain(&snapshot.reviews.left);
    reviews.find(|review| review.server.as_str() == server && id(review) == wanted)
}

fn id(review: &ToolsReview) -> String {
    let versions = review.tools.iter().map(|tool| tool.version.as_str());
    let text = review.instructions.as_ref().map(|text| text.version.as_str());
    let prompts = review.prompts.iter().map(|prompt| prompt.version.as_str());
    let all: Vec<_> = versions.chain(prompts).chain(text).collect();
    let print = print_of_text(&all.join(" ")).to_string();
    format!("tools:{}:{}", review.server, &print[..DIGITS])
}

/// Which of it an answer is about; all that is left out of it stays as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chosen {
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    prompts: Vec<String>,
    /// What the server says about itself.
    #[serde(default)]
    instructions: bool,
}

impl Chosen {
    fn read(content: Map<String, Value>) -> Result<Self, Refused> {
        let chosen = serde_json::from_value(Value::Object(content));
        chosen.map_err(|error| Refused(ApiError::bad_request(format!("The member content: {error}."))))
    }

    /// Everything about which nothing stands out.
    fn unflagged(review: &ToolsReview) -> Self {
        let tools = review.tools.iter().filter(|tool| tool.findings.is_empty());
        let text = review.instructions.as_ref();
        Self {
            tools: tools.map(|tool| tool.tool.to_string()).collect(),
            // Something stands out about each.
            prompts: Vec::new(),
            instructions: text.is_some_and(|text| text.findings.is_empty()),
        }
    }

    fn prompts_of<'r>(&self, review: &'r ToolsReview) -> Result<Vec<&'r PromptReview>, Refused> {
        let named = |name: &String| {
            let found = review.prompts.iter().find(|prompt| prompt.prompt == *name);
            found.map(AsRef::as_ref).ok_or_else(|| none_of("prompt", name))
        };
        self.prompts.iter().map(named).collect()
    }

    fn of<'r>(&self, review: &'r ToolsReview) -> Result<Vec<&'r ToolReview>, Refused> {
        let named = |name: &String| {
            let found = review.tools.iter().find(|tool| tool.tool.as_str() == name);
            found.map(AsRef::as_ref).ok_or_else(|| none_of("tool", name))
        };
        self.tools.iter().map(named).collect()
    }
}

fn none_of(what: &str, name: &str) -> Refused {
    Refused(ApiError::bad_request(format!(
        "There is no {what} \"{}\" among these; nothing was changed.",
        name.escape_debug()
    )))
}

/// Approves what is chosen, by itself everything that nothing stands out about; or leaves it blocked.
pub(super) async fn answer<A: Api>(
    routes: &Routes<A>,
    review: &ToolsReview,
    body: AnswerBody,
) -> Result<Response, Refused> {
    let server = review.server.clone();
    let state = match (body.answer, body.content) {
        (Said::Approve, content) => {
            let chosen = match content {
                Some(content) => Chosen::read(content)?,
                None => Chosen::unflagged(review),
            };
            let tools = chosen.of(review)?;
            let prompts = chosen.prompts_of(review)?;
            if tools.is_empty() && prompts.is_empty() && !chosen.instructions {
                return Err(Refused(ApiError::bad_request(
                    "Something stands out about all of these: name what you approve, one by one.",
                )));
            }
            let version = |tool: &&ToolReview| (tool.tool.clone(), tool.version.clone());
            let versions: Vec<(ToolName, String)> = tools.iter().map(version).collect();
            if !versions.is_empty() {
                routes.api.approve_tools(server.clone(), versions).await?;
            }
            for prompt in prompts {
                let (name, version) = (prompt.prompt.clone(), prompt.version.clone());
                routes.api.approve_prompt(server.clone(), name, version).await?;
            }
            if let (true, Some(text)) = (chosen.instructions, &review.instructions) {
                routes.api.approve_instructions(server, text.version.clone()).await?;
            }
            ApprovalState::Approved
        }
        (Said::Deny, content) => {
            let (tools, prompts, instructions) = match content {
                Some(content) => {
                    let chosen = Chosen::read(content)?;
                    (chosen.of(review)?, chosen.prompts_of(review)?, chosen.instructions)
                }
                None => (
                    review.tools.iter().map(AsRef::as_ref).collect(),
                    review.prompts.iter().map(AsRef::as_ref).collect(),
                    true,
                ),
            };
            for tool in tools {
                let (name, version) = (tool.tool.clone(), tool.version.clone());
                routes.api.keep_tool_blocked(server.clone(), name, version).await?;
            }
            for prompt in prompts {
                let (name, version) = (prompt.prompt.clone(), prompt.version.clone());
                routes.api.keep_prompt_blocked(server.clone(), name, version).await?;
            }
            if let (true, Some(text)) = (instructions, &review.instructions) {
                let version = text.version.clone();
                routes.api.keep_instructions_withheld(server, version).await?;
            }
            ApprovalState::Denied
        }
        (Said::Cancel | Said::Longer | Said::UntilQuit | Said::Always | Said::Block, _) => {
            return Err(Refused(ApiError::bad_request(
                "Tools are answered with \"approve\" or \"deny\"; they wait without an end.",
            )));
        }
    };
    Ok(respond::json(&Answered {
        ok: true,
        auth_url: None,
        approval: Waits::Tools(Box::new(Tools::waiting(review).answered(state))),
    }))
}
