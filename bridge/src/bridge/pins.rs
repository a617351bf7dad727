//! The owner's side of pins: how everything stands, what that means for whoever calls, and the person's answers. What a
//! change means is decided in `trust::pins`; `board` has every list looked at before callers see it, `looking` is one
//! such look. Lists are never read here.

mod board;
mod looking;

use std::{collections::HashMap, sync::Arc};

pub(super) use self::board::PinBoard;
use self::looking::Key;
use super::{BridgeHandle, activity, owner::Command};
use crate::{
    activity::{Entry, Outcome},
    connector::{KnownTools, Offers},
    error::{Action, ApiError, Code},
    ids::{ConnectorId, ToolName},
    secrets::TRY_AGAIN,
    snapshot::{ActivityReview, PromptReview, TextReview, ToolReview, ToolsReview},
    tools::{Claim, Tool, Unlisted},
    trust::{
        Fingerprint,
        pins::{FlaggedPrompt, PromptStanding, Stand, Standing, Standings, Text},
    },
};

/// An answer of the person about what one connector offers.
#[derive(Debug)]
pub(crate) enum PinEdit {
    /// These versions of these tools, all or none.
    Approve(Vec<(ToolName, String)>),
    /// This version stays blocked, and is not shown again.
    Keep(ToolName, String),
    /// This version of a prompt about which something stands out.
    ApprovePrompt(String, String),
    /// This version of a prompt stays blocked, and is not shown again.
    KeepPrompt(String, String),
    /// What the server says about itself.
    Instructions(String),
    /// This version of it stays withheld, and is not shown again.
    KeepInstructions(String),
}

impl PinEdit {
    /// What is told of it where it holds.
    fn told(&self, server: &ConnectorId) -> Vec<Entry> {
        let of = match self {
            Self::Approve(_) | Self::Keep(..) | Self::Instructions(_) | Self::KeepInstructions(_) => {
                ActivityReview::Tools
            }
            Self::ApprovePrompt(..) | Self::KeepPrompt(..) => ActivityReview::Prompt,
        };
        let entry = |subject: Option<&str>, outcome| {
            activity::decided(Some(server), of, subject.map(str::to_owned)).ended(outcome)
        };
        match self {
            Self::Approve(versions) => versions
                .iter()
                .map(|(tool, _)| entry(Some(tool.as_str()), Outcome::Ok))
                .collect(),
            Self::Keep(tool, _) => vec![entry(Some(tool.as_str()), Outcome::of(Code::Denied))],
            Self::ApprovePrompt(name, _) => vec![entry(Some(name), Outcome::Ok)],
            Self::KeepPrompt(name, _) => vec![entry(Some(name), Outcome::of(Code::Denied))],
            Self::Instructions(_) => vec![entry(None, Outcome::Ok)],
            Self::KeepInstructions(_) => vec![entry(None, Outcome::of(Code::Denied))],
        }
    }
}

/// How everything that one connector lists stands.
#[derive(Debug)]
pub(crate) struct Looked {
    key: Key,
    /// `None` = nobody can tell at present.
    standings: Option<Standings>,
    places: HashMap<ToolName, usize>,
    /// What waits for the person.
    reviews: Vec<Arc<ToolReview>>,
    prompts: Vec<Arc<PromptReview>>,
    instructions: Option<TextReview>,
    /// What the person left as it is.
    left: (Vec<Arc<ToolReview>>, Vec<Arc<PromptReview>>, Option<TextReview>),
}

impl Looked {
    fn new(key: Key, standings: Option<Standings>) -> Self {
        let tools = standings.iter().flat_map(|standings| &standings.tools);
        let places = tools.clone().enumerate();
        let prompts = standings.iter().flat_map(|standings| &standings.prompts);
        Self {
            places: places.map(|(place, tool)| (tool.now.name.clone(), place)).collect(),
            left: (
                tools.clone().filter_map(Standing::left).map(Arc::new).collect(),
                prompts.clone().filter_map(PromptStanding::left).cloned().collect(),
                standings.as_ref().and_then(|standings| standings.instructions.left()),
            ),
            reviews: tools.filter_map(Standing::review).map(Arc::new).collect(),
            prompts: prompts.filter_map(PromptStanding::review).cloned().collect(),
            instructions: standings.as_ref().and_then(|standings| standings.instructions.review()),
            standings,
            key,
        }
    }

    /// The list that was looked at.
    pub fn list(&self) -> &Arc<KnownTools> {
        &self.key.list
    }

    /// Whether this is a look at what a connector that may be used lists now.
    pub fn is_of(&self, list: &Arc<KnownTools>) -> bool {
        Arc::ptr_eq(self.list(), list) && !self.key.is_withheld
    }

    /// Every tool of it, with what callers see of it or why they do not.
    pub fn tools(&self) -> impl Iterator<Item = (&Arc<Tool>, Result<&Arc<Tool>, Unlisted>)> {
        let known = self.standings.iter().flat_map(|standings| &standings.tools);
        let known = known.map(|tool| (&tool.now, served(tool).map(|served| served.1)));
        let unknown = match self.standings {
            Some(_) => &[][..],
            None => &self.key.list.tools,
        };
        known.chain(unknown.iter().map(|tool| (tool, Err(Unlisted::TrustUnknown))))
    }

    /// How every tool stands; nothing where nobody can tell.
    pub fn standings(&self) -> impl Iterator<Item = &Standing> {
        self.standings.iter().flat_map(|standings| &standings.tools)
    }

    /// Whether nobody can tell at present.
    pub fn is_unknown(&self) -> bool {
        self.standings.is_none()
    }

    /// How a tool stands; `None` where it is not listed, or nobody can tell.
    pub fn standing(&self, tool: &ToolName) -> Option<&Standing> {
        self.standings.as_ref()?.tools.get(*self.places.get(tool)?)
    }

    /// A tool as callers see it, where they may call it.
    pub fn served(&self, tool: &ToolName) -> Option<&Tool> {
        let (_, tool) = served(self.standing(tool)?).ok()?;
        Some(tool)
    }

    /// Whether these prompts were looked at.
    pub fn saw(&self, offers: &Offers) -> bool {
        Arc::ptr_eq(&self.key.prompts, &offers.flagged)
    }

    /// Whether exactly this prompt was approved, as far as anybody can tell at present.
    pub fn approves(&self, prompt: &FlaggedPrompt) -> bool {
        self.standings.is_some() && self.key.pins.approves(prompt)
    }

    /// What the server may tell assistants.
    pub fn instructions(&self) -> Option<&str> {
        match &self.standings.as_ref()?.instructions {
            Text::Approved(text) => Some(text),
            Text::None | Text::Waits { .. } => None,
        }
    }

    /// What waits for the person.
    pub fn review(&self, server: &ConnectorId, name: String) -> Option<ToolsReview> {
        let waits = !self.reviews.is_empty() || !self.prompts.is_empty() || self.instructions.is_some();
        waits.then(|| ToolsReview {
            server: server.clone(),
            server_name: name,
            tools: self.reviews.clone(),
            prompts: self.prompts.clone(),
            instructions: self.instructions.clone(),
        })
    }

    /// What the person looked at and left as it is, where there is any.
    pub fn left(&self, server: &ConnectorId, name: String) -> Option<ToolsReview> {
        let (tools, prompts, instructions) = &self.left;
        let any = !tools.is_empty() || !prompts.is_empty() || instructions.is_some();
        any.then(|| ToolsReview {
            server: server.clone(),
            server_name: name,
            tools: tools.clone(),
            prompts: prompts.clone(),
            instructions: instructions.clone(),
        })
    }
}

fn served(tool: &Standing) -> Result<(Fingerprint, &Arc<Tool>), Unlisted> {
    match &tool.stand {
        Stand::Approved(served) | Stand::Reworded(served, _) => Ok((served.fingerprint, &served.tool)),
        Stand::Pending(_) => Err(Unlisted::Pending),
        Stand::Held(_) => Err(Unlisted::Held),
        Stand::Changed(_) => Err(Unlisted::Changed),
    }
}

/// What a tool may ask of the names of others, whether or not it is shown at present.
pub(super) fn claim(served: Result<&Arc<Tool>, Unlisted>) -> Claim {
    match served {
        Ok(_) | Err(Unlisted::Changed) => Claim::Approved,
        Err(
            Unlisted::Pending
            | Unlisted::Held
            | Unlisted::TrustUnknown
            | Unlisted::ConnectorOff
            | Unlisted::ConnectorWaits
            | Unlisted::Disabled,
        ) => Claim::Waiting,
    }
}

impl BridgeHandle {
    /// Approves exactly these versions of a connector's tools, as [`ToolReview::version`] names them: all or none.
    ///
    /// # Errors
    /// `unknown_server`; `tool_changed` where one changed again, went, or cannot be approved; `not_saved`,
    /// `keychain_unavailable`.
    pub async fn approve_tools(&self, server: ConnectorId, versions: Vec<(ToolName, String)>) -> Result<(), ApiError> {
        self.pin_edit(server, PinEdit::Approve(versions)).await
    }

    /// Leaves this version of a tool blocked, and does not show it again until it changes.
    ///
    /// # Errors
    /// As [`BridgeHandle::approve_tools`].
    pub async fn keep_tool_blocked(
        &self,
        server: ConnectorId,
        tool: ToolName,
        version: String,
    ) -> Result<(), ApiError> {
        self.pin_edit(server, PinEdit::Keep(tool, version)).await
    }

    /// Approves exactly this version of a prompt about which something stands out, as [`PromptReview::version`] names it.
    ///
    /// # Errors
    /// As [`BridgeHandle::approve_tools`].
    pub async fn approve_prompt(&self, server: ConnectorId, prompt: String, version: String) -> Result<(), ApiError> {
        self.pin_edit(server, PinEdit::ApprovePrompt(prompt, version)).await
    }

    /// Leaves this version of a prompt blocked, and does not show it again until it changes.
    ///
    /// # Errors
    /// As [`BridgeHandle::approve_tools`].
    pub async fn keep_prompt_blocked(
        &self,
        server: ConnectorId,
        prompt: String,
        version: String,
    ) -> Result<(), ApiError> {
        self.pin_edit(server, PinEdit::KeepPrompt(prompt, version)).await
    }

    /// Approves exactly this version of what a server tells assistants about itself.
    ///
    /// # Errors
    /// As [`BridgeHandle::approve_tools`].
    pub async fn approve_instructions(&self, server: ConnectorId, version: String) -> Result<(), ApiError> {
        self.pin_edit(server, PinEdit::Instructions(version)).await
    }

    /// Keeps this version of what a server says about itself from assistants, and does not show it again until it changes.
    ///
    /// # Errors
    /// As [`BridgeHandle::approve_tools`].
    pub async fn keep_instructions_withheld(&self, server: ConnectorId, version: String) -> Result<(), ApiError> {
        self.pin_edit(server, PinEdit::KeepInstructions(version)).await
    }

    /// What a server may tell assistants about itself: only what was approved.
    pub fn instructions(&self, server: &ConnectorId) -> Option<String> {
        let published = self.inner.published.load();
        let looked = published.looked.get(server)?;
        looked.instructions().map(str::to_owned)
    }

    async fn pin_edit(&self, server: ConnectorId, edit: PinEdit) -> Result<(), ApiError> {
        let reviewed = edit.told(&server);
        self.order(|reply| Command::Pins(server, edit, reply)).await?;
        for entry in reviewed {
            self.inner.world.activity.record(entry);
        }
        Ok(())
    }
}

/// Why a hidden tool cannot be called. `shown` is its connector's name for people.
pub(super) fn refusal(hidden: Unlisted, server: &ConnectorId, shown: &str, tool: &ToolName) -> ApiError {
    let (code, message) = match hidden {
        Unlisted::ConnectorOff => return ApiError::turned_off(shown),
        Unlisted::ConnectorWaits => (
            Code::NeedsReview,
            format!("{shown} waits until you have looked at what it runs or contacts, in Neuron Connect."),
        ),
        Unlisted::Disabled => (
            Code::Disabled,
            format!("The tool {tool} of {shown} is turned off (\"disabledTools\" of {server} in connectors.json)."),
        ),
        Unlisted::TrustUnknown => return trust_unknown(shown),
        Unlisted::Pending => (
            Code::NeedsReview,
            format!("The tool {tool} of {shown} is new. It can be used once you have approved it in Neuron Connect."),
        ),
        Unlisted::Held => (
            Code::NeedsReview,
            format!(
                "Something about the tool {tool} of {shown} stands out. It is blocked until you have looked at it in Neuron Connect."
            ),
        ),
        Unlisted::Changed => (
            Code::ToolChanged,
            format!(
                "The tool {tool} of {shown} is not the one that you approved. It is blocked until you have looked at it in Neuron Connect."
            ),
        ),
    };
    let action = match hidden {
        Unlisted::Pending | Unlisted::Held | Unlisted::Changed | Unlisted::ConnectorWaits => Some(Action::Review),
        Unlisted::ConnectorOff | Unlisted::Disabled | Unlisted::TrustUnknown => None,
    };
    ApiError::new(code, message).with_action(action)
}

pub(super) fn trust_unknown(shown: &str) -> ApiError {
    ApiError::new(
        Code::KeychainUnavailable,
        format!("Whether you approved the tools of {shown} cannot be looked up: the keychain gives nothing at present. Unlock it, then try again."),
    )
    .with_action(Some(Action::UnlockKeychain))
    .with_retry_after(TRY_AGAIN)
}
