//! What decides trust, as rows that show when somebody else changed them.
//!
//! Each row has a MAC, and one over all of them and a generation number that only grows, so that a row that is altered,
//! added or gone shows, and so does an older copy of all. Whether a stored set is the last one that this program wrote is
//! decided here, by a key and the generation that are kept elsewhere. Pure; what the rows mean is their readers' matter.

use std::{collections::BTreeMap, fmt};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hmac::{Hmac, Mac as _};
use secrecy::{ExposeSecret as _, SecretBox};
use sha2::Sha256;

/// Begins what a row's MAC is over, and nothing else.
const ROW: &[u8] = b"neuron-connect trust row 1\0";
/// Begins what the MAC of a whole set is over, and nothing else.
const SET: &[u8] = b"neuron-connect trust set 1\0";
const KEY_BYTES: usize = 32;
/// What SHA-256 works on at a time.
const BLOCK_BYTES: usize = 64;

/// What a row is about. In the order of their words, which is the order of rows in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKind {
    /// A program or client that asks the person by itself.
    Asker,
    /// A paired client.
    Client,
    /// A proposal of the file that the person declined, until it changes.
    Declined,
    /// A tool as it was approved.
    Pin,
    /// A launch identity as it was approved.
    Review,
    Rule,
    /// API mode, walk-in policy, allowed origins, and that a tray app used this home ([`TRAY_MARK`]).
    Setting,
}

/// The key of the [`RowKind::Setting`] that says: a tray app used this home.
pub const TRAY_MARK: &str = "tray";
/// The setting of what happens to walk-ins' calls; its body is the policy's word, in quotes.
pub const WALK_IN: &str = "walk_in";
/// The setting of who needs a token; its body is the mode's word, in quotes.
pub const API_MODE: &str = "api_mode";
/// The setting that says that nobody chose the mode: what was chosen is lost.
pub const API_MODE_ASSUMED: &str = "api_mode_assumed";
/// The setting that says that everything is paused.
pub const PAUSED: &str = "paused";
/// The setting that says that the built-in connector's first rule was made.
pub const FILES_CHOICE: &str = "files_choice";
/// The setting that says that rules from before they named a launch were bound to those of that time.
pub const OLD_RULES_BOUND: &str = "old_rules_bound";

impl RowKind {
    pub const ALL: [Self; 7] = [
        Self::Asker,
        Self::Client,
        Self::Declined,
        Self::Pin,
        Self::Review,
        Self::Rule,
        Self::Setting,
    ];

    /// As it is stored.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Asker => "asker",
            Self::Client => "client",
            Self::Declined => "declined",
            Self::Pin => "pin",
            Self::Review => "review",
            Self::Rule => "rule",
            Self::Setting => "setting",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// One decision, or what one needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub kind: RowKind,
    /// Unique within its kind.
    pub key: String,
    /// JSON, as its reader writes it.
    pub body: String,
}

/// One change of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// In place of an earlier row of its kind and key.
    Put(Row),
    /// Where there is none, nothing changes.
    Delete(RowKind, String),
    /// All rows of the kind whose key begins so; all of the kind with an empty prefix.
    DeleteAll { kind: RowKind, key_prefix: String },
}

/// Why stored rows count as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distrust {
    /// A row was altered, added or taken away, or all were written under another key.
    Tampered,
    /// All rows are gone.
    Deleted,
    /// The rows are an older copy.
    RolledBack,
    /// There are rows, and no key to check them with.
    KeyMissing,
    /// The rows or their key cannot be read, or make no sense to this version.
    Unreadable,
}

/// A MAC, HMAC-SHA256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code([u8; 32]);

impl Code {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What the MACs are made with.
pub(crate) struct TrustKey(SecretBox<[u8; KEY_BYTES]>);

impl fmt::Debug for TrustKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrustKey")
    }
}

impl TrustKey {
    /// A new one.
    ///
    /// # Errors
    /// When the system has no random bits.
    pub(crate) fn draw() -> Result<Self, getrandom::Error> {
        let mut bits = [0; KEY_BYTES];
        getrandom::fill(&mut bits)?;
        Ok(Self(SecretBox::new(Box::new(bits))))
    }

    /// From base64; `None` where it is no key.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64_STANDARD.decode(text).ok()?;
        Some(Self(SecretBox::new(Box::new(bytes.try_into().ok()?))))
    }

    /// As base64: secret.
    pub(crate) fn to_base64(&self) -> String {
        BASE64_STANDARD.encode(self.0.expose_secret())
    }

    fn begin(&self, domain: &[u8]) -> Hmac<Sha256> {
        // As HMAC itself lengthens a key (RFC 2104, section 2).
        let mut block = [0; BLOCK_BYTES];
        block[..KEY_BYTES].copy_from_slice(self.0.expose_secret());
        let mut mac = <Hmac<Sha256> as hmac::Mac>::new(&block.into());
        mac.update(domain);
        mac
    }

    fn row(&self, kind: &str, key: &str, body: &str) -> Hmac<Sha256> {
        let mut mac = self.begin(ROW);
        for field in [kind, key, body] {
            mac.update(&(field.len() as u64).to_be_bytes());
            mac.update(field.as_bytes());
        }
        mac
    }

    fn code_of(&self, row: &Row) -> Code {
        let mac = self.row(row.kind.word(), &row.key, &row.body);
        Code(mac.finalize().into_bytes().into())
    }

    fn set<'a>(&self, generation: u64, codes: impl ExactSizeIterator<Item = &'a Code>) -> Hmac<Sha256> {
        let mut mac = self.begin(SET);
        mac.update(&generation.to_be_bytes());
        mac.update(&(codes.len() as u64).to_be_bytes());
        for code in codes {
            mac.update(&code.0);
        }
        mac
    }
}

/// A row as it is stored, believed in nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRow {
    pub kind: String,
    pub key: String,
    pub body: String,
    pub code: Vec<u8>,
}

/// The last word about a whole set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredHead {
    pub generation: u64,
    pub code: Vec<u8>,
}

/// All that is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Absent where nothing was ever stored.
    pub head: Option<StoredHead>,
    pub rows: Vec<StoredRow>,
}

impl Stored {
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_none() && self.rows.is_empty()
    }

    /// Whether any row says that a tray app used this home, true or not.
    pub(crate) fn has_tray_mark(&self) -> bool {
        let kind = RowKind::Setting.word();
        self.rows.iter().any(|row| row.kind == kind && row.key == TRAY_MARK)
    }
}

/// Rows that are known to be ours, with the MACs they have.
#[derive(Debug, Default)]
pub(crate) struct RowSet {
    rows: BTreeMap<(RowKind, String), (Row, Code)>,
    generation: u64,
    /// Of the whole, as it is stored; absent before the first write.
    code: Option<Code>,
}

/// What a write changes.
#[derive(Debug, Clone)]
pub(crate) struct Delta {
    pub put: Vec<(Row, Code)>,
    pub delete: Vec<(RowKind, String)>,
    pub generation: u64,
    pub code: Code,
}

impl Delta {
    pub(crate) fn changes_nothing(&self) -> bool {
        self.put.is_empty() && self.delete.is_empty()
    }

    pub(crate) fn head(&self) -> StoredHead {
        StoredHead {
            generation: self.generation,
            code: self.code.0.to_vec(),
        }
    }
}

impl RowSet {
    /// Rows without any, after this many generations.
    pub(crate) fn empty(generation: u64) -> Self {
        Self {
            generation,
            ..Self::default()
        }
    }

    /// The stored rows, where they are the last ones that were written under the key. `counter` is the generation that is
    /// known elsewhere: a set may be ahead of it, by what a crash kept from being counted, never behind.
    ///
    /// # Errors
    /// Why they are not.
    pub(crate) fn verify(key: &TrustKey, counter: u64, stored: Stored) -> Result<Self, Distrust> {
        let Some(head) = stored.head else {
            return match (counter, stored.rows.is_empty()) {
                (0, true) => Ok(Self::default()),
                (_, true) => Err(Distrust::Deleted),
                (_, false) => Err(Distrust::Tampered),
            };
        };
        let mut rows = BTreeMap::new();
        for row in stored.rows {
            let mac = key.row(&row.kind, &row.key, &row.body);
            mac.verify_slice(&row.code).map_err(|_| Distrust::Tampered)?;
            let code: [u8; 32] = row.code.try_into().map_err(|_| Distrust::Tampered)?;
            let kind = RowKind::parse(&row.kind).ok_or(Distrust::Unreadable)?;
            let (key, body) = (row.key, row.body);
            rows.insert((kind, key.clone()), (Row { kind, key, body }, Code(code)));
        }
        let mac = key.set(head.generation, rows.values().map(|(_, code)| code));
        mac.verify_slice(&head.code).map_err(|_| Distrust::Tampered)?;
        let code: [u8; 32] = head.code.try_into().map_err(|_| Distrust::Tampered)?;
        if head.generation < counter {
            return Err(Distrust::RolledBack);
        }
        Ok(Self {
            rows,
            generation: head.generation,
            code: Some(Code(code)),
        })
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// What must be stored for a change to fit; absent before the first.
    pub(crate) fn head(&self) -> Option<StoredHead> {
        self.code.map(|code| StoredHead {
            generation: self.generation,
            code: code.0.to_vec(),
        })
    }

    pub(crate) fn of(&self, kind: RowKind) -> impl Iterator<Item = &Row> {
        self.rows
            .range((kind, String::new())..)
            .take_while(move |((of, _), _)| *of == kind)
            .map(|(_, (row, _))| row)
    }

    pub(crate) fn get(&self, kind: RowKind, key: &str) -> Option<&Row> {
        self.rows.get(&(kind, key.to_owned())).map(|(row, _)| row)
    }

    /// All rows with their MACs.
    pub(crate) fn all(&self) -> impl Iterator<Item = &(Row, Code)> {
        self.rows.values()
    }

    /// What these changes, one after the other, make of the set.
    pub(crate) fn delta(&self, key: &TrustKey, changes: Vec<Change>) -> Delta {
        let touched = self.touched(changes);
        let generation = self.generation + 1;
        let mut put = Vec::new();
        let mut delete = Vec::new();
        for (at, row) in touched {
            match row {
                Some(row) if self.rows.get(&at).is_some_and(|(held, _)| *held == row) => {}
                Some(row) => {
                    let code = key.code_of(&row);
                    put.push((row, code));
                }
                None if self.rows.contains_key(&at) => delete.push(at),
                None => {}
            }
        }
        let mut codes: BTreeMap<(RowKind, &str), &Code> = self
            .rows
            .iter()
            .map(|((kind, key), (_, code))| ((*kind, key.as_str()), code))
            .collect();
        for (kind, key) in &delete {
            codes.remove(&(*kind, key.as_str()));
        }
        for (row, code) in &put {
            codes.insert((row.kind, &row.key), code);
        }
        let mac = key.set(generation, codes.into_values().collect::<Vec<_>>().into_iter());
        let code = Code(mac.finalize().into_bytes().into());
        Delta {
            put,
            delete,
            generation,
            code,
        }
    }

    /// Takes what was stored.
    pub(crate) fn apply(&mut self, delta: Delta) {
        self.generation = delta.generation;
        self.code = Some(delta.code);
        for at in delta.delete {
            self.rows.remove(&at);
        }
        for (row, code) in delta.put {
            self.rows.insert((row.kind, row.key.clone()), (row, code));
        }
    }

    /// What each place that is touched holds in the end.
    fn touched(&self, changes: Vec<Change>) -> BTreeMap<(RowKind, String), Option<Row>> {
        let mut touched: BTreeMap<(RowKind, String), Option<Row>> = BTreeMap::new();
        for change in changes {
            match change {
                Change::Put(row) => {
                    touched.insert((row.kind, row.key.clone()), Some(row));
                }
                Change::Delete(kind, key) => {
                    touched.insert((kind, key), None);
                }
                Change::DeleteAll { kind, key_prefix } => {
                    let fits = |at: &(RowKind, String)| at.0 == kind && at.1.starts_with(&key_prefix);
                    let there = self.rows.keys().filter(|at| fits(at)).cloned();
                    let there: Vec<_> = there.chain(touched.keys().filter(|at| fits(at)).cloned()).collect();
                    touched.extend(there.into_iter().map(|at| (at, None)));
                }
            }
        }
        touched
    }
}

#[cfg(test)]
mod tests;
