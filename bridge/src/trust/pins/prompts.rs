//! Prompts about which something stands out: each is held until the person approves exactly what is listed. One about
//! which nothing stands out is offered as it is, and is no matter of pins. Pure.

#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{
    super::{
        fingerprint::{Fingerprint, Unprintable, print_of_item, print_of_text},
        rows::Change,
        scan,
    },
    Pins, Stale,
    approving::Approving,
    row::{put, remove},
    unprintable,
};
use crate::{
    ids::ConnectorId,
    snapshot::{FindingView, PromptArgument, PromptReview, PromptText, ToolState},
};

/// Parts of a row's key.
const PROMPT: &str = "prompt/";
const KEPT: &str = "kept-prompt/";

/// A prompt as listed, about which something stands out.
#[derive(Debug, Clone, PartialEq)]
pub struct FlaggedPrompt {
    pub name: String,
    /// As received.
    pub raw: Value,
    /// What a yes is bound to, or why none can be.
    pub print: Result<Fingerprint, Unprintable>,
    /// Never empty.
    pub findings: Vec<FindingView>,
}

impl FlaggedPrompt {
    /// `None` where nothing stands out.
    pub fn of(name: &str, raw: &Value) -> Option<Self> {
        let found = scan::item(raw);
        if found.is_empty() {
            return None;
        }
        let print = print_of_item(raw);
        let fault = print.as_ref().err().map(unprintable);
        Some(Self {
            name: name.to_owned(),
            raw: raw.clone(),
            findings: fault.into_iter().chain(found.iter().map(FindingView::from)).collect(),
            print,
        })
    }

    /// What names exactly this version.
    fn version(&self) -> String {
        match &self.print {
            Ok(print) => print.to_string(),
            Err(_) => print_of_text(&self.raw.to_string()).to_string(),
        }
    }
}

/// What the person said about prompts of one connector.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct PromptPins {
    approved: HashMap<String, PromptPin>,
    /// Versions that the person looked at and keeps blocked.
    kept: HashMap<String, String>,
}

/// One approved prompt.
#[derive(Debug, Clone, PartialEq)]
struct PromptPin {
    fingerprint: Fingerprint,
    /// As it was received when it was approved.
    raw: Value,
    /// Unix milliseconds.
    approved_at: u64,
}

#[derive(Serialize, Deserialize)]
struct Body {
    prompt: String,
    fingerprint: Fingerprint,
    raw: Box<RawValue>,
    approved_at: u64,
}

/// How one flagged prompt stands.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptStanding {
    pub now: Arc<FlaggedPrompt>,
    pub stand: PromptStand,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PromptStand {
    /// Exactly this was approved.
    Approved,
    /// It is blocked; the person is shown this.
    Waits(Arc<PromptReview>),
    /// It is blocked; the person looked at this version and leaves it so.
    Kept(Arc<PromptReview>),
}

impl PromptStanding {
    /// What the person is shown, where it waits for a look.
    pub fn review(&self) -> Option<&Arc<PromptReview>> {
        match &self.stand {
            PromptStand::Waits(review) => Some(review),
            PromptStand::Approved | PromptStand::Kept(_) => None,
        }
    }

    /// What the person was shown, where they left it blocked.
    pub fn left(&self) -> Option<&Arc<PromptReview>> {
        match &self.stand {
            PromptStand::Kept(review) => Some(review),
            PromptStand::Approved | PromptStand::Waits(_) => None,
        }
    }
}

impl Pins {
    /// Whether exactly this prompt was approved.
    pub fn approves(&self, prompt: &FlaggedPrompt) -> bool {
        let pin = self.prompts.approved.get(&prompt.name);
        pin.is_some_and(|pin| prompt.print.as_ref() == Ok(&pin.fingerprint))
    }

    pub(super) fn standing_of(&self, now: &Arc<FlaggedPrompt>) -> PromptStanding {
        let stand = if self.approves(now) {
            PromptStand::Approved
        } else {
            let review = Arc::new(self.review_of(now));
            match self.prompts.kept.get(&now.name) == Some(&review.version) {
                true => PromptStand::Kept(review),
                false => PromptStand::Waits(review),
            }
        };
        PromptStanding {
            now: now.clone(),
            stand,
        }
    }

    fn review_of(&self, now: &FlaggedPrompt) -> PromptReview {
        let before = self.prompts.approved.get(&now.name);
        PromptReview {
            prompt: now.name.clone(),
            state: match before {
                Some(_) => ToolState::Changed,
                None => ToolState::Held,
            },
            version: now.version(),
            before: before.map(|pin| shown(&pin.raw)),
            now: shown(&now.raw),
            findings: now.findings.clone(),
            approved_at: before.map(|pin| pin.approved_at),
        }
    }
}

impl Approving<'_> {
    /// The rows of the person's yes to exactly this version of a prompt.
    ///
    /// # Errors
    /// [`Stale`]
    pub fn prompt(&self, standings: &[PromptStanding], name: &str, version: &str) -> Result<Vec<Change>, Stale> {
        let now = that(standings, name, version)?;
        let put = put_prompt(self.server, now, self.now).ok_or_else(|| Stale::Unprintable(name.to_owned()))?;
        Ok(vec![put, remove(self.server, &format!("{KEPT}{name}"))])
    }

    /// The rows of: it stays blocked, until it changes again.
    ///
    /// # Errors
    /// [`Stale`]
    pub fn keep_prompt(&self, standings: &[PromptStanding], name: &str, version: &str) -> Result<Vec<Change>, Stale> {
        that(standings, name, version)?;
        let version = Value::from(version).to_string();
        Ok(vec![put(self.server, &format!("{KEPT}{name}"), version)])
    }
}

/// The prompt that is blocked now and is still this one.
fn that<'s>(standings: &'s [PromptStanding], name: &str, version: &str) -> Result<&'s FlaggedPrompt, Stale> {
    let mut named = standings.iter().filter(|one| one.now.name == name);
    let one = named.next().ok_or_else(|| Stale::NotHeld(name.to_owned()))?;
    match &one.stand {
        PromptStand::Approved => Err(Stale::NotHeld(name.to_owned())),
        PromptStand::Waits(review) | PromptStand::Kept(review) if review.version == version => Ok(&one.now),
        PromptStand::Waits(_) | PromptStand::Kept(_) => Err(Stale::Changed(name.to_owned())),
    }
}

fn put_prompt(server: &ConnectorId, now: &FlaggedPrompt, approved_at: u64) -> Option<Change> {
    let body = Body {
        prompt: now.name.clone(),
        fingerprint: *now.print.as_ref().ok()?,
        raw: RawValue::from_string(now.raw.to_string()).ok()?,
        approved_at,
    };
    let body = serde_json::to_string(&body).ok()?;
    Some(put(server, &format!("{PROMPT}{}", now.name), body))
}

impl PromptPins {
    /// Takes in a row, where it is about a prompt. One whose print is not that of the prompt beside it counts as absent.
    pub(super) fn put(&mut self, what: &str, body: &str) {
        if let Some(name) = what.strip_prefix(PROMPT) {
            if let Some(pin) = pin(name, body) {
                self.approved.insert(name.to_owned(), pin);
            }
        } else if let Some(name) = what.strip_prefix(KEPT)
            && let Ok(version) = serde_json::from_str(body)
        {
            self.kept.insert(name.to_owned(), version);
        }
    }

    pub(super) fn remove(&mut self, what: &str) {
        if let Some(name) = what.strip_prefix(PROMPT) {
            self.approved.remove(name);
        } else if let Some(name) = what.strip_prefix(KEPT) {
            self.kept.remove(name);
        }
    }
}

fn pin(name: &str, body: &str) -> Option<PromptPin> {
    let body: Body = serde_json::from_str(body).ok()?;
    let raw: Value = serde_json::from_str(body.raw.get()).ok()?;
    let is_whole = body.prompt == name && print_of_item(&raw).ok()? == body.fingerprint;
    is_whole.then_some(PromptPin {
        fingerprint: body.fingerprint,
        raw,
        approved_at: body.approved_at,
    })
}

fn shown(raw: &Value) -> PromptText {
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let arguments = raw.get("arguments").and_then(Value::as_array);
    let argument = |argument: &Value| {
        Some(PromptArgument {
            name: text(argument, "name")?,
            description: text(argument, "description"),
            required: argument.get("required").and_then(Value::as_bool).unwrap_or(false),
        })
    };
    PromptText {
        title: text(raw, "title"),
        description: text(raw, "description"),
        arguments: arguments.into_iter().flatten().filter_map(argument).collect(),
        whole: serde_json::to_string_pretty(raw).unwrap_or_default(),
    }
}
