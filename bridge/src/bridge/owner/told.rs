//! What the owner tells: the snapshot and the tool list, made from what it holds, and the events of what differs.

use std::{collections::HashMap, sync::Arc};

use tokio::time::Instant;

use super::{
    super::{
        Published,
        decide::FileWord,
        pins::Looked,
        publish::{self, Row, RowLive},
    },
    Owner,
};
use crate::{
    connector::Door,
    event::Event,
    ids::ConnectorId,
    snapshot::{ApprovalView, ConfigView, Notice, Reviews, RuleProposal, Snapshot, TrustView, needs},
};

impl Owner {
    pub(super) fn notices(&self) -> Vec<Notice> {
        let mut notices: Vec<Notice> = self
            .file
            .notices()
            .iter()
            .chain(&self.world.ledger.notice())
            .chain(&self.notices)
            .chain(&self.settings_notices)
            .chain(&self.config.notices)
            .cloned()
            .chain(self.pins.notices())
            .collect();
        notices.sort_by_key(|notice| notice.level);
        notices
    }

    /// Makes the snapshot and, where something changed in it, the tool list; tells of what differs.
    pub(in crate::bridge) fn publish(&mut self) {
        let mut rows = self.rows();
        self.pins.look(&rows);
        for live in rows.iter_mut().filter_map(|row| row.live.as_mut()) {
            live.looked = self.pins.looked(live);
        }
        let before = self.inner.published.load_full();
        publish::hold_back_unseen(&mut rows, &before.rows);
        let key = publish::list_key(&rows);
        let tools = if self.list_key.as_ref() == Some(&key) {
            before.tools.clone()
        } else {
            self.list_key = Some(key);
            Arc::new(publish::tool_list(&rows))
        };
        let word = match self.world.admission.review_on() {
            true => FileWord::Proposes,
            false => FileWord::Applies,
        };
        let list_key = self.list_key.get_or_insert_with(|| publish::list_key(&rows));
        let view_changed = self.views.look(&self.world.ledger, &rows, list_key, word);
        let unwritten = self.views.take_unwritten();
        if !unwritten.is_empty() {
            let ledger = self.world.ledger.clone();
            self.stopping.spawn(async move {
                if let Err(fault) = ledger.write(unwritten).await {
                    tracing::warn!(%fault, "which tools \"autoApprove\" covers is found anew at the next start");
                }
            });
        }
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for tool in &tools.tools {
            *counts.entry(tool.server.as_str()).or_default() += 1;
        }
        let connectors: Vec<_> = rows
            .iter()
            .map(|row| publish::connector_view(row, counts.get(row.entry.key.as_str()).copied().unwrap_or(0)))
            .collect();
        let reviews = Reviews {
            launches: self.launch_reviews(),
            tools: publish::tools_reviews(&rows, Looked::review),
            left: publish::tools_reviews(&rows, Looked::left),
            proposals: self.proposals(),
            asleep: self.sleeping_rules(),
        };
        let (missed, muted) = self.world.approvals.left();
        let snapshot = Arc::new(Snapshot {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            api: self.inner.api.borrow().clone(),
            config: ConfigView {
                path: self.file.path().display().to_string(),
                is_default: self.file.is_default(),
                notices: self.notices(),
            },
            needs: needs(&connectors, &reviews),
            connectors,
            keychain: self
                .world
                .ledger
                .seen_of_keychain(self.world.keychain.state().borrow().clone()),
            sign_ins: self.world.sign_ins.views(),
            approvals: self.questions(),
            missed,
            reviews,
            trust: TrustView {
                standing: self.trust_standing(),
                walk_in: self.views.view().walk_in(),
                review: self.world.admission.review_on(),
                paused: self.world.pauses.all(),
                api_mode: self.inner.callers.api_mode(),
                api_mode_assumed: self.inner.callers.is_api_mode_assumed(),
                pairing: self.inner.callers.pairing().view(Instant::now()),
                muted,
            },
        });
        let doors: HashMap<ConnectorId, Door> = self
            .connectors
            .values()
            .map(|handle| (handle.shared.id.clone(), handle.door()))
            .collect();
        let looked = rows.iter().filter_map(|row| row.live.as_ref());
        let looked = looked.filter_map(|live| Some((live.entry.id.clone(), live.looked.clone()?)));
        let published = Published {
            snapshot: snapshot.clone(),
            tools: tools.clone(),
            looked: looked.collect(),
            rows,
            doors,
            view: self.views.view().clone(),
            rules: self.views.rules().clone(),
        };
        self.inner.published.store(Arc::new(published));
        if view_changed {
            self.inner.views.send_replace(self.views.view().clone());
        }
        self.tell(&before, &snapshot, &tools);
        self.inner.snapshots.send_if_modified(|last| {
            let differs = **last != *snapshot;
            *last = snapshot;
            differs
        });
        self.pins.settle();
    }

    /// Publishes what is known once all of it was looked at.
    pub(in crate::bridge) async fn publish_settled(&mut self) {
        self.refresh().await;
        while !self.pins.is_settled() {
            let done = self.pins.next().await;
            self.pins.take(done);
            self.publish();
        }
    }

    fn proposals(&self) -> Vec<RuleProposal> {
        let proposals = self.views.rules().proposals.iter();
        proposals
            .map(|(id, proposal)| RuleProposal {
                id: id.clone(),
                server: proposal.server.clone(),
                server_name: self
                    .connectors
                    .get(proposal.server.as_str())
                    .map_or_else(|| proposal.server.to_string(), |handle| handle.shared.name()),
                patterns: proposal.value.patterns(),
                tools: proposal.tools.iter().map(|bound| bound.tool.to_string()).collect(),
            })
            .collect()
    }

    fn questions(&self) -> Vec<ApprovalView> {
        let mut questions = self.world.approvals.waiting(None);
        questions.extend(self.inner.wishes.waiting(None));
        questions.sort_by_key(|view| view.asked_at);
        questions
    }

    fn rows(&self) -> Vec<Row> {
        self.config
            .entries
            .iter()
            .map(|entry| Row {
                entry: entry.clone(),
                live: self.connectors.get(&entry.key).map(|handle| RowLive {
                    entry: handle.shared.entry(),
                    view: handle.shared.view(),
                    used_at: handle.shared.used_at(),
                    log: handle.shared.log.clone(),
                    access: handle.shared.access(),
                    paused: self.world.pauses.view(&handle.shared.id),
                    hidden: self.world.admission.hidden(&handle.shared.entry()),
                    launch: self.world.launch_in_force(&handle.shared.entry()),
                    server: handle.shared.session().and_then(|session| {
                        let named = session.server.as_deref()?;
                        Some(handle.shared.log.redactor().sentence(named).into_owned())
                    }),
                    looked: None,
                }),
            })
            .collect()
    }

    fn tell(&self, before: &Published, snapshot: &Snapshot, tools: &Arc<crate::tools::ToolList>) {
        if before.tools.etag != tools.etag {
            self.inner.events.publish(Event::ToolsChanged {
                tools: tools.tools.len(),
            });
        }
        let earlier: HashMap<&str, _> = before.snapshot.connectors.iter().map(|c| (c.id.as_str(), c)).collect();
        for now in &snapshot.connectors {
            let handle = self.connectors.get(&now.id);
            let passed = handle.map_or_else(Vec::new, |handle| handle.shared.take_passed(now.connection.sequence));
            let same = earlier.get(now.id.as_str()).is_some_and(|then| {
                then.status == now.status
                    && then.tools == now.tools
                    && then.connection.sequence == now.connection.sequence
            });
            let last = passed.last().map_or(0, |state| state.sequence);
            for state in passed {
                self.inner.events.publish(Event::ServerStatus {
                    server: now.id.clone(),
                    status: Some(state.status),
                    sequence: state.sequence,
                });
            }
            if !same && last != now.connection.sequence {
                self.inner.events.publish(Event::ServerStatus {
                    server: now.id.clone(),
                    status: Some(now.status),
                    sequence: now.connection.sequence,
                });
            }
        }
        for then in &before.snapshot.connectors {
            if !snapshot.connectors.iter().any(|now| now.id == then.id) {
                self.inner.events.publish(Event::ServerStatus {
                    server: then.id.clone(),
                    status: None,
                    sequence: then.connection.sequence + 1,
                });
            }
        }
    }
}
