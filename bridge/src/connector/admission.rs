//! What may run: the one place that an attempt, a sign-in and the owner ask before anything is started or contacted.
//!
//! Holds what the person approved as it stands in the trust rows. Never decides itself (`trust::review` does), and never
//! asks the person.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    config::Connector,
    ids::ConnectorId,
    ledger::{Change, Ledger, LedgerFault, Row, RowKind, Standing},
    trust::{
        LaunchIdentity,
        review::{Case, Hidden, Reviewed, Verdict, hidden, is_compiled_in, judge},
    },
};

/// What the person approved, by connector.
type Approved = HashMap<ConnectorId, Arc<Reviewed>>;

/// What may run by the person's word.
pub struct Admission {
    ledger: Arc<Ledger>,
    home: PathBuf,
    review_on: AtomicBool,
    approved: RwLock<Approved>,
    /// Removed connectors whose rows may still be there.
    gone: Mutex<HashSet<ConnectorId>>,
}

impl Admission {
    /// With review on, until [`Admission::set_review`] says otherwise. `home` is the person's.
    pub fn new(ledger: Arc<Ledger>, home: PathBuf) -> Self {
        let approved = RwLock::new(read(&ledger));
        Self {
            ledger,
            home,
            review_on: AtomicBool::new(true),
            approved,
            gone: Mutex::default(),
        }
    }

    /// Whether what runs needs a look first.
    pub fn review_on(&self) -> bool {
        self.review_on.load(Ordering::Relaxed)
    }

    pub fn set_review(&self, on: bool) {
        self.review_on.store(on, Ordering::Relaxed);
    }

    /// What is known of earlier decisions.
    pub fn standing(&self) -> Standing {
        *self.ledger.standing().borrow()
    }

    /// Takes what the rows say now.
    pub fn reload(&self) {
        let mut now = read(&self.ledger);
        now.retain(|id, _| !self.gone().contains(id));
        *self.approved.write().unwrap_or_else(std::sync::PoisonError::into_inner) = now;
    }

    /// What was approved of a connector last.
    pub fn approved(&self, id: &ConnectorId) -> Option<Arc<Reviewed>> {
        let approved = self.approved.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        approved.get(id).cloned()
    }

    /// Whether what an entry would run or contact now may be.
    pub fn verdict(&self, entry: &Connector, identity: LaunchIdentity) -> Verdict {
        let reviewed = self.approved(&entry.id);
        judge(&Case {
            entry,
            identity,
            reviewed: reviewed.as_deref(),
            standing: self.standing(),
            review_on: self.review_on(),
            home: &self.home,
        })
    }

    /// Whether an entry is the default connector, which is part of this program.
    pub fn needs_no_look(&self, entry: &Connector) -> bool {
        is_compiled_in(&entry.launch, &self.home)
    }

    /// Which of an entry's tools are hidden.
    pub fn hidden(&self, entry: &Connector) -> Hidden {
        hidden(
            &entry.disabled_tools,
            self.approved(&entry.id).as_deref(),
            self.review_on(),
        )
    }

    /// The person's home folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Forgets what was approved of a connector: at once here, and in the rows as soon as they can be written.
    ///
    /// # Errors
    /// [`LedgerFault`]; [`Admission::forget_the_rest`] goes on with it.
    pub async fn forget(&self, id: &ConnectorId) -> Result<(), LedgerFault> {
        self.gone().insert(id.clone());
        self.reload();
        self.forget_the_rest().await
    }

    /// Forgets what could not be forgotten before.
    ///
    /// # Errors
    /// [`LedgerFault`]
    pub async fn forget_the_rest(&self) -> Result<(), LedgerFault> {
        let gone: Vec<ConnectorId> = self.gone().iter().cloned().collect();
        let stored: Vec<String> = self
            .ledger
            .rows(RowKind::Review)
            .into_iter()
            .map(|row| row.key)
            .collect();
        let rows = gone.iter().filter(|id| stored.iter().any(|key| key == id.as_str()));
        self.keep(rows.map(|id| (id.clone(), None)).collect()).await?;
        if !matches!(self.standing(), Standing::Unknown(_)) {
            self.gone().retain(|id| !gone.contains(id));
        }
        Ok(())
    }

    fn gone(&self) -> MutexGuard<'_, HashSet<ConnectorId>> {
        self.gone.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Keeps what the person decided, all of it or nothing; `None` = nothing is approved of that connector any more.
    ///
    /// # Errors
    /// [`LedgerFault`]; what was approved before then holds.
    pub async fn keep(&self, decisions: Vec<(ConnectorId, Option<Reviewed>)>) -> Result<(), LedgerFault> {
        let kept: Vec<ConnectorId> = decisions
            .iter()
            .filter(|(_, row)| row.is_some())
            .map(|(id, _)| id.clone())
            .collect();
        let change = |(id, reviewed): (ConnectorId, Option<Reviewed>)| {
            let key = id.to_string();
            match reviewed {
                None => Ok(Change::Delete(RowKind::Review, key)),
                Some(reviewed) => serde_json::to_string(&reviewed)
                    .map(|body| {
                        Change::Put(Row {
                            kind: RowKind::Review,
                            key,
                            body,
                        })
                    })
                    .map_err(|error| LedgerFault::NotSaved(format!("The decision could not be saved: {error}."))),
            }
        };
        let changes = decisions.into_iter().map(change).collect::<Result<Vec<_>, _>>()?;
        if changes.is_empty() {
            return Ok(());
        }
        self.ledger.write(changes).await?;
        // What is approved anew is not forgotten later.
        self.gone().retain(|id| !kept.contains(id));
        self.reload();
        Ok(())
    }
}

/// A row that cannot be read is none: its connector asks.
fn read(ledger: &Ledger) -> Approved {
    let rows = ledger.rows(RowKind::Review).into_iter();
    let read = rows.filter_map(|row| {
        let id = ConnectorId::parse(&row.key).ok()?;
        match serde_json::from_str(&row.body) {
            Ok(reviewed) => Some((id, Arc::new(reviewed))),
            Err(error) => {
                tracing::warn!(connector = %id, %error, "what was approved of it cannot be read and counts as absent");
                None
            }
        }
    });
    read.collect()
}
