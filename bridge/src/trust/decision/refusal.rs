//! What is refused without a question, and how that is said.

use super::super::rules::RuleId;
use crate::{
    error::{ApiError, Code},
    ids::ConnectorId,
};

/// Why nobody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    UnknownServer,
    UnknownTool,
    /// The connector waits for the person's review.
    ConnectorNeedsReview,
    /// The tool is new to the person.
    ToolPending,
    /// Something stands out in the tool.
    ToolHeld,
    ToolChanged,
    ConnectorDisabled,
    ConnectorPaused,
    ToolDisabled,
    /// The connector's entry cannot be used.
    Unavailable,
    /// Whether anything was approved cannot be told at present.
    KeychainUnavailable,
    /// A rule of the person says no.
    Denied(RuleId),
}

impl Refusal {
    pub fn code(self) -> Code {
        match self {
            Self::UnknownServer => Code::UnknownServer,
            Self::UnknownTool => Code::UnknownTool,
            Self::ConnectorNeedsReview | Self::ToolPending | Self::ToolHeld => Code::NeedsReview,
            Self::ToolChanged => Code::ToolChanged,
            Self::ConnectorDisabled | Self::ConnectorPaused | Self::ToolDisabled => Code::Disabled,
            Self::Unavailable => Code::Unavailable,
            Self::KeychainUnavailable => Code::KeychainUnavailable,
            Self::Denied(_) => Code::Denied,
        }
    }

    /// The answer to whoever called; `name` is the tool's, the prompt's or the resource's.
    pub fn error(self, server: &ConnectorId, name: &str) -> ApiError {
        let message = match self {
            Self::UnknownServer => format!("There is no connector \"{server}\"."),
            Self::UnknownTool => format!("The connector \"{server}\" has no tool \"{name}\"."),
            Self::ConnectorNeedsReview => {
                format!("The connector \"{server}\" waits for the person's review in Neuron Connect; nothing was sent.")
            }
            Self::ToolPending => format!(
                "The tool \"{name}\" of \"{server}\" is new and waits for the person's review in Neuron Connect."
            ),
            Self::ToolHeld => format!(
                "The tool \"{name}\" of \"{server}\" is held: something stands out in its description. It waits for the person's review in Neuron Connect."
            ),
            Self::ToolChanged => format!(
                "The tool \"{name}\" of \"{server}\" is not what the person approved; it waits for their review in Neuron Connect."
            ),
            Self::ConnectorDisabled => format!("The connector \"{server}\" is turned off."),
            Self::ConnectorPaused => {
                format!("The connector \"{server}\" is paused; resume it in Neuron Connect.")
            }
            Self::ToolDisabled => format!("The tool \"{name}\" of \"{server}\" is turned off."),
            Self::Unavailable => format!("The entry of the connector \"{server}\" cannot be used as it is."),
            Self::KeychainUnavailable => format!(
                "What was approved of \"{server}\" cannot be checked while the keychain gives nothing: unlock it, then try again."
            ),
            Self::Denied(_) => format!("A rule of the person forbids \"{name}\" of \"{server}\"."),
        };
        ApiError::new(self.code(), message)
    }
}
