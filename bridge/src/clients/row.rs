//! What is kept of a client and of a program that does its own asking. Pure.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    caller::{ProgramKey, Scope, Script, token::TokenHash},
    ids::ConnectorId,
    ledger::{Row, RowKind},
    snapshot::{AskerView, ClientView, ProgramView},
};

/// A paired client, as its row keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRow {
    pub id: String,
    pub name: String,
    pub scopes: Vec<Scope>,
    /// The connectors it sees; `None` = all.
    pub servers: Option<Vec<String>>,
    pub asks_itself: bool,
    /// Unix milliseconds, all of these.
    pub paired_at: u64,
    pub expires_at: Option<u64>,
    #[serde(default)]
    pub used_at: Option<u64>,
    /// SHA-256 of the token, in hexadecimal.
    pub hash: String,
    /// The program that was paired.
    pub program: Option<PairedProgram>,
}

/// The program that asked to be paired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedProgram {
    pub name: String,
    pub path: Option<String>,
    pub script: Option<String>,
    pub pid: u32,
}

impl ClientRow {
    pub fn hash(&self) -> Option<TokenHash> {
        let digits = self.hash.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() || !self.hash.is_ascii() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(TokenHash::from_bytes(bytes))
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether a row is this one, whenever its token was used last.
    pub(super) fn is_same_but_for_use(&self, row: &Row) -> bool {
        let unused = |row: Self| Self { used_at: None, ..row };
        let stored = serde_json::from_str::<Self>(&row.body);
        stored.is_ok_and(|stored| unused(stored) == unused(self.clone()))
    }

    pub(super) fn to_row(&self) -> Row {
        Row {
            kind: RowKind::Client,
            key: self.id.clone(),
            body: self.to_json(),
        }
    }

    pub(super) fn view(&self, last_used_at: Option<u64>) -> ClientView {
        let servers = self.servers.as_ref();
        ClientView {
            id: self.id.clone(),
            name: self.name.clone(),
            scopes: self.scopes.clone(),
            servers: servers.map(|ids| ids.iter().filter_map(|id| ConnectorId::parse(id).ok()).collect()),
            asks_itself: self.asks_itself,
            paired_at: self.paired_at,
            expires_at: self.expires_at,
            last_used_at,
            program: self.program.as_ref().map(|program| ProgramView {
                name: program.name.clone(),
                path: program.path.clone(),
                script: program.script.clone(),
                pid: program.pid,
            }),
        }
    }
}

impl From<ProgramView> for PairedProgram {
    fn from(view: ProgramView) -> Self {
        let ProgramView {
            name,
            path,
            script,
            pid,
        } = view;
        Self {
            name,
            path,
            script,
            pid,
        }
    }
}

/// A hash as its row keeps it.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A program that does its own asking, as its row keeps it.
pub struct Asker {
    pub key: String,
    pub body: String,
    program: ProgramKey,
}

impl Asker {
    pub fn of(program: &ProgramKey) -> Self {
        let body = serde_json::to_string(program).unwrap_or_default();
        Self {
            key: hex(&Sha256::digest(body.as_bytes())),
            body,
            program: program.clone(),
        }
    }
}

impl From<&Asker> for AskerView {
    fn from(asker: &Asker) -> Self {
        Self {
            path: asker.program.path.display().to_string(),
            script: asker.program.script.as_ref().and_then(|script| match script {
                Script::File(file) => Some(file.display().to_string()),
                Script::Module(module) => Some(module.clone()),
                Script::Inline | Script::Unclear => None,
            }),
        }
    }
}
