//! What the person's own changes say about what may run, and the rows in which an approved launch is kept.

use std::sync::Arc;

use super::super::{owner::Owner, person_file::Edit, wishes};
use crate::{
    clock::unix_ms,
    config::{self, Config, Connector, EntryKind, Launch},
    connector::{Prepared, World},
    error::ApiError,
    ids::ConnectorId,
    ledger::LedgerFault,
    oauth::canonical,
    secrets::Binding,
    trust::{
        review::{ApprovedBy, Place, Reviewed, tightened},
        shown::with_texts,
    },
};

impl Owner {
    /// What a change that the person made here says about what may run: it was seen as it was written.
    ///
    /// # Errors
    /// `not_saved`; the person is asked then.
    pub(crate) async fn record(&self, edit: &Edit, next: &Config) -> Result<(), ApiError> {
        let admission = &self.world.admission;
        if let Edit::Remove(id) = edit {
            self.forget_trust(id).await;
        }
        if !admission.review_on() {
            return Ok(());
        }
        let of = |id: &ConnectorId| valid(next, id.as_str());
        let rows = match edit {
            Edit::Add(id, _, Some(shown)) => match of(id) {
                Some(entry) => {
                    let row = self.look_at(&entry, ApprovedBy::Edit).await;
                    // Where its file of variables changed at this very moment, it waits.
                    let is_it = row.identity == *shown;
                    is_it.then(|| (id.clone(), Some(row))).into_iter().collect()
                }
                None => Vec::new(),
            },
            Edit::Add(id, _, None) => match of(id) {
                Some(entry) => vec![(id.clone(), Some(self.look_at(&entry, ApprovedBy::Edit).await))],
                None => Vec::new(),
            },
            Edit::Replace(id, _) => match of(id) {
                Some(entry) => {
                    let row = self.written_over(&entry).await;
                    row.map(|row| (id.clone(), Some(row))).into_iter().collect()
                }
                None => Vec::new(),
            },
            Edit::Args(id, _) => match (of(id), self.as_approved(id).await) {
                // Whether it is on, and what is hidden, is not what this is about.
                (Some(entry), Some(approved)) => {
                    let row = Reviewed {
                        enabled: approved.enabled,
                        disabled_tools: approved.disabled_tools.clone(),
                        ..self.look_at(&entry, ApprovedBy::Edit).await
                    };
                    vec![(id.clone(), Some(row))]
                }
                (Some(_) | None, _) => Vec::new(),
            },
            Edit::Enabled(id, on) => self.change_row(id, of(id), |row| row.enabled = *on).await,
            Edit::DisabledTools(id, patterns) => {
                self.change_row(id, of(id), |row| row.disabled_tools.clone_from(patterns))
                    .await
            }
            Edit::ToolEnabled(id, tool, on) => {
                let change = |row: &mut Reviewed| {
                    row.disabled_tools.retain(|pattern| pattern != tool.as_str());
                    if !on {
                        row.disabled_tools.push(tool.to_string());
                    }
                };
                self.change_row(id, of(id), change).await
            }
            Edit::AutoApprove(..) | Edit::Remove(_) => Vec::new(),
        };
        match admission.keep(rows).await {
            Ok(()) => Ok(()),
            // It waits, and says for what.
            Err(LedgerFault::Keychain(fault)) => {
                tracing::warn!(reason = %fault.sentence(), "what the person decided is not kept");
                Ok(())
            }
            Err(fault @ LedgerFault::NotSaved(_)) => Err(fault.into()),
        }
    }

    /// Everything that was decided about a connector goes with it.
    pub(crate) async fn forget_trust(&self, id: &ConnectorId) {
        if let Err(fault) = self.world.admission.forget(id).await {
            tracing::warn!(connector = %id, %fault, "what was allowed of it is forgotten as soon as it can be");
        }
    }

    /// Compares what is to be added with what was shown.
    ///
    /// # Errors
    /// `needs_review` where it would be another launch; `bad_request`.
    pub(crate) async fn as_shown(&self, edit: &Edit) -> Result<(), ApiError> {
        let Edit::Add(id, entry, Some(shown)) = edit else {
            return Ok(());
        };
        let entry = config::validate_body(id, entry).map_err(ApiError::bad_request)?;
        match self.world.prepare(&entry).await.identity == *shown {
            true => Ok(()),
            false => Err(wishes::changed()),
        }
    }

    /// Where another launch than the approved one stands under the id, what was approved is narrowed by this and never widened.
    async fn change_row(
        &self,
        id: &ConnectorId,
        entry: Option<Arc<Connector>>,
        change: impl FnOnce(&mut Reviewed),
    ) -> Vec<(ConnectorId, Option<Reviewed>)> {
        let admission = &self.world.admission;
        let approved = admission.approved(id);
        let (is_default, now) = match entry {
            Some(entry) => {
                let mut now = self.look_at(&entry, ApprovedBy::Edit).await;
                // What the file alone turned on or shows again still waits.
                now.enabled &= approved.as_ref().is_none_or(|row| row.enabled);
                now.disabled_tools = admission.hidden(&entry).patterns;
                (admission.needs_no_look(&entry), Some(now))
            }
            None => (false, None),
        };
        let is_approved = |now: &Reviewed| approved.as_ref().is_some_and(|row| row.identity == now.identity);
        let is_it = now.as_ref().is_some_and(is_approved);
        let row = match &approved {
            Some(row) if is_it || !is_default => Some((**row).clone()),
            Some(_) | None => now.filter(|_| is_default),
        };
        let changed = row.map(|mut row| {
            let before = row.clone();
            change(&mut row);
            if !is_it && !is_default {
                row.enabled &= before.enabled;
                let shown_again = before.disabled_tools.into_iter();
                let shown_again: Vec<_> = shown_again.filter(|one| !row.disabled_tools.contains(one)).collect();
                row.disabled_tools.extend(shown_again);
            }
            (id.clone(), Some(row))
        });
        changed.into_iter().collect()
    }

    async fn look_at(&self, entry: &Connector, by: ApprovedBy) -> Reviewed {
        let prepared = self.world.prepare(entry).await;
        reviewed(&self.world, entry, &prepared, by)
    }

    /// The row of an entry that the person wrote over the one before. They saw their own change, and no more: where the
    /// one before waits for a look, or its file of variables is another by now, it waits on; and so does what they left as it was.
    async fn written_over(&self, entry: &Connector) -> Option<Reviewed> {
        let (world, before) = (&self.world, self.valid(entry.id.as_str())?);
        let approved = world.admission.approved(&entry.id);
        let was = world.prepare(&before).await;
        let is_approved = approved
            .as_ref()
            .is_some_and(|approved| approved.identity == was.identity);
        if !is_approved && !world.admission.needs_no_look(&before) {
            return None;
        }
        let prepared = world.prepare(entry).await;
        let is_same_file = env_file_of(entry).is_some() && env_file_of(entry) == env_file_of(&before);
        if is_same_file && prepared.env_file != was.env_file {
            return None;
        }
        let mut row = reviewed(world, entry, &prepared, ApprovedBy::Edit);
        if let Some(approved) = approved {
            if before.enabled == entry.enabled {
                row.enabled = approved.enabled;
            }
            if before.disabled_tools == entry.disabled_tools {
                row.disabled_tools.clone_from(&approved.disabled_tools);
            }
        }
        Some(row)
    }

    /// What was approved under this id, where that is what its entry says now.
    async fn as_approved(&self, id: &ConnectorId) -> Option<Arc<Reviewed>> {
        let (entry, approved) = (self.valid(id.as_str())?, self.world.admission.approved(id)?);
        let is_it = self.world.prepare(&entry).await.identity == approved.identity;
        is_it.then_some(approved)
    }

    /// What the file turned off by itself stays off until the person says otherwise.
    pub(crate) async fn tighten(&self) {
        let admission = &self.world.admission;
        if !admission.review_on() {
            return;
        }
        let entries = self.config.entries.iter().filter_map(|entry| self.valid(&entry.key));
        let rows = entries.filter_map(|entry| {
            let approved = admission.approved(&entry.id)?;
            Some((entry.id.clone(), Some(tightened(&entry, &approved)?)))
        });
        if let Err(fault) = admission.keep(rows.collect()).await {
            tracing::warn!(%fault, "what the file turned off is not remembered");
        }
    }
}

/// The row of what the person approves now.
pub(super) fn reviewed(world: &World, entry: &Connector, prepared: &Prepared, by: ApprovedBy) -> Reviewed {
    let hidden = world.admission.hidden(entry).patterns;
    Reviewed {
        identity: prepared.identity,
        enabled: entry.enabled,
        disabled_tools: match by {
            // Which tools are shown again is another question.
            ApprovedBy::Review => hidden,
            ApprovedBy::Edit => entry.disabled_tools.clone(),
        },
        shown: with_texts(world.shown(entry), &|text| world.without_secrets(entry, text)),
        place: place_of(entry),
        secrets: config::secret_names(entry).into_iter().map(str::to_owned).collect(),
        approved_at: unix_ms(),
        by,
    }
}

pub(super) fn place_of(entry: &Connector) -> Place {
    match &entry.launch {
        Launch::Stdio(_) => Place::Program,
        Launch::Http(http) => Place::Address {
            origin: config::host_of(http).map_or_else(|| http.url.clone(), |url| url.origin().ascii_serialization()),
            canonical: url::Url::parse(&http.url).map_or_else(|_unfilled| http.url.clone(), |url| canonical(&url)),
        },
    }
}

fn env_file_of(entry: &Connector) -> Option<&str> {
    match &entry.launch {
        Launch::Stdio(stdio) => stdio.env_file.as_deref(),
        Launch::Http(_) => None,
    }
}

pub(super) fn binding_before(before: &Reviewed) -> Binding {
    match &before.place {
        Place::Program => Binding::Launch(before.identity.to_string()),
        Place::Address { origin, .. } => Binding::Origin(origin.clone()),
    }
}

fn valid(config: &Config, key: &str) -> Option<Arc<Connector>> {
    let entry = config.entries.iter().find(|entry| entry.key == key)?;
    match &entry.kind {
        EntryKind::Valid(connector) => Some(Arc::new((**connector).clone())),
        EntryKind::Invalid(_) => None,
    }
}
