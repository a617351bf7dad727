//! The rows by which something is approved: what joined by itself, and the person's answers, each to exactly one version.

use std::collections::{HashMap, HashSet};

use super::{
    super::rows::Change,
    Adopted, ApprovedBy, Pin, Pins, Prints, Stand, Standing, Standings, Text,
    row::{Marker, drop_tool, keep, keep_text, put_marker, put_text, put_tool, unkeep, unkeep_text},
    version,
};
use crate::{
    ids::{ConnectorId, ToolName},
    tools::Tool,
};

/// Why an answer of the person does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stale {
    #[error("{0} is not in the list any more. Nothing was approved.")]
    Gone(String),
    #[error("{0} changed again since you looked. Look at it once more; nothing was approved.")]
    Changed(String),
    #[error("{0} cannot be approved: a change of it could pass unseen.")]
    Unprintable(String),
    #[error(
        "{0} does not wait any more: it is gone from the list, or nothing about it stands out now. Nothing was changed."
    )]
    NotHeld(String),
    #[error(
        "What the server says about itself changed again since you looked, or does not wait. Nothing was approved."
    )]
    Text,
}

/// Where, when and of whom something is approved.
pub struct Approving<'a> {
    pub server: &'a ConnectorId,
    /// Unix milliseconds.
    pub now: u64,
    /// What the server calls itself.
    pub server_name: Option<&'a str>,
}

impl Approving<'_> {
    /// The rows that say what joined by itself.
    pub fn adopted(&self, standings: &Standings) -> Vec<Change> {
        let Adopted {
            tools,
            by,
            instructions,
            begins,
        } = &standings.adopted;
        let mut changes = Vec::new();
        if *begins {
            changes.push(put_marker(self.server, Marker { asks: false }));
        }
        let by = by.unwrap_or(ApprovedBy::Baseline);
        let tools = tools.iter().filter_map(|place| standings.tools.get(*place));
        changes.extend(tools.filter_map(|tool| self.put(&tool.now, by)));
        if let (true, Text::Waits { now, .. }) = (*instructions, &standings.instructions) {
            changes.push(put_text(self.server, now, self.now));
        }
        changes
    }

    /// The rows by which tools that joined by themselves and are listed no more are forgotten, the oldest first, where with
    /// these that join now there would be more than `most`. What the person approved stays.
    pub fn outgrown(&self, standings: &Standings, pins: &Pins, joining: usize, most: usize) -> Vec<Change> {
        let too_many = (pins.tools.len() + joining).saturating_sub(most);
        if too_many == 0 {
            return Vec::new();
        }
        let listed: HashSet<&ToolName> = standings.tools.iter().map(|tool| &tool.now.name).collect();
        let mut gone: Vec<_> = pins
            .tools
            .iter()
            .filter(|(name, pin)| pin.by != ApprovedBy::Person && !listed.contains(name))
            .map(|(name, pin)| (pin.approved_at, name))
            .collect();
        gone.sort_unstable_by(|(one, a), (other, b)| one.cmp(other).then_with(|| a.as_str().cmp(b.as_str())));
        gone.into_iter()
            .take(too_many)
            .map(|(_, name)| drop_tool(self.server, name))
            .collect()
    }

    /// The rows of the person's yes to exactly these versions: to all of them or to none.
    ///
    /// # Errors
    /// [`Stale`]
    pub fn tools(
        &self,
        standings: &Standings,
        pins: &Pins,
        versions: &[(ToolName, String)],
    ) -> Result<Vec<Change>, Stale> {
        let mut changes = Vec::new();
        let by_name: HashMap<_, _> = standings.tools.iter().map(|tool| (&tool.now.name, tool)).collect();
        for (name, wanted) in versions {
            let tool = by_name.get(name).ok_or_else(|| Stale::Gone(name.to_string()))?;
            let is_that = match tool.waiting() {
                Some(waiting) => waiting.version == *wanted,
                None => version(&tool.now) == *wanted,
            };
            if !is_that {
                return Err(Stale::Changed(name.to_string()));
            }
            let put = self.put(&tool.now, ApprovedBy::Person);
            changes.push(put.ok_or_else(|| Stale::Unprintable(name.to_string()))?);
            changes.push(unkeep(self.server, name));
        }
        let asks_for = |tool: &&Standing| matches!(&tool.stand, Stand::Pending(_) | Stand::Held(_));
        let mut left = standings.tools.iter().filter(asks_for);
        let all = left.all(|tool| versions.iter().any(|(name, _)| *name == tool.now.name));
        let asks = pins.marker.is_none_or(|marker| marker.asks);
        if asks {
            changes.push(put_marker(self.server, Marker { asks: !all }));
        }
        Ok(changes)
    }

    /// The rows of: it stays as it is, until it changes again.
    ///
    /// # Errors
    /// [`Stale`]
    pub fn keep(&self, standings: &Standings, name: &ToolName, version: &str) -> Result<Vec<Change>, Stale> {
        let mut tools = standings.tools.iter();
        let tool = tools.find(|tool| tool.now.name == *name);
        let tool = tool.ok_or_else(|| Stale::Gone(name.to_string()))?;
        match tool.waiting() {
            Some(waiting) if waiting.version == version => Ok(vec![keep(self.server, name, version)]),
            Some(_) | None => Err(Stale::Changed(name.to_string())),
        }
    }

    /// The rows of the person's yes to what the server says about itself.
    ///
    /// # Errors
    /// [`Stale`]
    pub fn instructions(&self, standings: &Standings, wanted: &str) -> Result<Vec<Change>, Stale> {
        match &standings.instructions {
            Text::Waits { version, now, .. } if version == wanted => {
                Ok(vec![put_text(self.server, now, self.now), unkeep_text(self.server)])
            }
            Text::Waits { .. } | Text::None | Text::Approved(_) => Err(Stale::Text),
        }
    }

    /// The rows of: what the server says about itself stays withheld, until it says something else.
    ///
    /// # Errors
    /// [`Stale`]
    pub fn keep_instructions(&self, standings: &Standings, wanted: &str) -> Result<Vec<Change>, Stale> {
        match &standings.instructions {
            Text::Waits { version, .. } if version == wanted => Ok(vec![keep_text(self.server, version)]),
            Text::Waits { .. } | Text::None | Text::Approved(_) => Err(Stale::Text),
        }
    }

    /// `None` where it has no print.
    pub(super) fn put(&self, tool: &Tool, by: ApprovedBy) -> Option<Change> {
        let prints = Prints::of(tool).ok()?;
        let pin = Pin {
            fingerprint: prints.fingerprint,
            hints: prints.hints,
            raw: tool.raw.to_string().into(),
            approved_at: self.now,
            by,
            server: self.server_name.map(str::to_owned),
        };
        put_tool(self.server, &tool.name, &pin)
    }
}
