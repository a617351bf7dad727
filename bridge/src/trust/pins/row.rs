//! Pins as rows: how they are spelled, and what becomes of rows of an older formula.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{
    super::{
        fingerprint::{self, FORMULA, Fingerprint, HintsPrint, Unprintable},
        rows::{Change, Row, RowKind},
    },
    ApprovedBy, Pin, Pins,
};
use crate::ids::{ConnectorId, ToolName};

/// Parts of a row's key. No connector's id has a slash in it.
const TOOL: &str = "tool/";
const KEPT: &str = "kept/";
const MARKER: &str = "first-list";
const INSTRUCTIONS: &str = "instructions";
const KEPT_INSTRUCTIONS: &str = "kept-instructions";

/// Says that a connector's first list was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// What was approved before is lost: nothing joins by itself until the person has looked at all of it.
    pub asks: bool,
}

#[derive(Serialize, Deserialize)]
struct ToolBody {
    tool: ToolNameText,
    formula: u32,
    fingerprint: Fingerprint,
    hints: HintsPrint,
    raw: Box<RawValue>,
    approved_at: u64,
    by: ApprovedBy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
}

/// As the upstream spells it.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct ToolNameText(String);

#[derive(Serialize, Deserialize)]
struct TextBody {
    text: String,
    approved_at: u64,
}

/// How prints are made, so that a test can have another way.
#[derive(Clone, Copy)]
pub struct Formulas {
    pub now: u32,
    pub print: fn(u32, &Value) -> Result<Fingerprint, Unprintable>,
}

impl Formulas {
    pub const PRESENT: Self = Self {
        now: FORMULA,
        print: fingerprint::fingerprint_with,
    };
}

/// What begins the key of every row about a connector.
pub fn key_prefix(server: &ConnectorId) -> String {
    format!("{server}/")
}

/// Forgets everything about a connector.
pub fn drop_all(server: &ConnectorId) -> Change {
    Change::DeleteAll {
        kind: RowKind::Pin,
        key_prefix: key_prefix(server),
    }
}

/// What the rows say, by connector, and the rows that an older formula makes necessary. A row that makes no sense counts as
/// absent; so does one whose stored print is not that of the tool beside it.
pub fn read(rows: Vec<Row>) -> (HashMap<ConnectorId, Pins>, Vec<Change>) {
    read_with(rows, Formulas::PRESENT)
}

pub(super) fn read_with(rows: Vec<Row>, formulas: Formulas) -> (HashMap<ConnectorId, Pins>, Vec<Change>) {
    let mut all: HashMap<ConnectorId, Pins> = HashMap::new();
    let mut rewritten = Vec::new();
    for row in rows {
        let Some((server, what)) = row.key.split_once('/') else {
            continue;
        };
        let Ok(server) = ConnectorId::parse(server) else {
            continue;
        };
        let pins = all.entry(server.clone()).or_default();
        if let Some((name, pin)) = put_into(pins, what, &row.body, formulas) {
            rewritten.extend(put_tool_with(&server, &name, &pin, formulas.now));
        }
    }
    (all, rewritten)
}

/// What one change of the rows makes of the pins of a connector.
pub(super) fn apply(pins: &mut Pins, server: &ConnectorId, change: &Change) {
    let prefix = key_prefix(server);
    match change {
        Change::Put(row) => {
            if let Some(what) = row.key.strip_prefix(&prefix) {
                // Rows of now have the formula of now.
                let _ = put_into(pins, what, &row.body, Formulas::PRESENT);
            }
        }
        Change::Delete(_, key) => match key.strip_prefix(&prefix) {
            Some(MARKER) => pins.marker = None,
            Some(INSTRUCTIONS) => pins.instructions = None,
            Some(KEPT_INSTRUCTIONS) => pins.kept_instructions = None,
            Some(what) => {
                if let Some(name) = what.strip_prefix(TOOL) {
                    pins.tools.remove(name);
                } else if let Some(name) = what.strip_prefix(KEPT) {
                    pins.kept.remove(name);
                } else {
                    pins.prompts.remove(what);
                }
            }
            None => {}
        },
        Change::DeleteAll { key_prefix, .. } => {
            if *key_prefix == prefix {
                *pins = Pins::default();
            }
        }
    }
}

/// Takes in one row; a pin that was written under another formula is given back under today's.
fn put_into(pins: &mut Pins, what: &str, body: &str, formulas: Formulas) -> Option<(ToolName, Pin)> {
    if let Some(name) = what.strip_prefix(TOOL) {
        let (pin, is_old) = pin(name, body, formulas)?;
        let name = ToolName::new(name);
        let renewed = is_old.then(|| (name.clone(), pin.clone()));
        pins.tools.insert(name, pin);
        return renewed;
    }
    if let Some(name) = what.strip_prefix(KEPT) {
        let version = serde_json::from_str(body).ok()?;
        pins.kept.insert(ToolName::new(name), version);
    } else if what == MARKER {
        pins.marker = serde_json::from_str(body).ok();
    } else if what == INSTRUCTIONS {
        let text = serde_json::from_str::<TextBody>(body);
        pins.instructions = text.ok().map(|body| Arc::from(body.text));
    } else if what == KEPT_INSTRUCTIONS {
        pins.kept_instructions = serde_json::from_str(body).ok();
    } else {
        pins.prompts.put(what, body);
    }
    None
}

/// A pin under today's formula, and whether it was written under another one.
fn pin(name: &str, body: &str, formulas: Formulas) -> Option<(Pin, bool)> {
    let body: ToolBody = serde_json::from_str(body).ok()?;
    if body.tool.0 != name {
        return None;
    }
    let is_old = body.formula != formulas.now;
    let mut pin = Pin {
        fingerprint: body.fingerprint,
        hints: body.hints,
        raw: body.raw.get().into(),
        approved_at: body.approved_at,
        by: body.by,
        server: body.server,
    };
    if is_old {
        let raw: Value = serde_json::from_str(&pin.raw).ok()?;
        let then = (formulas.print)(body.formula, &raw).ok()?;
        if then != pin.fingerprint {
            return None;
        }
        pin.fingerprint = (formulas.print)(formulas.now, &raw).ok()?;
        pin.hints = HintsPrint::of(&raw).ok()?;
    }
    Some((pin, is_old))
}

pub(super) fn put_tool(server: &ConnectorId, name: &ToolName, pin: &Pin) -> Option<Change> {
    put_tool_with(server, name, pin, FORMULA)
}

pub(super) fn put_tool_with(server: &ConnectorId, name: &ToolName, pin: &Pin, formula: u32) -> Option<Change> {
    let body = ToolBody {
        tool: ToolNameText(name.to_string()),
        formula,
        fingerprint: pin.fingerprint,
        hints: pin.hints,
        raw: RawValue::from_string(pin.raw.to_string()).ok()?,
        approved_at: pin.approved_at,
        by: pin.by,
        server: pin.server.clone(),
    };
    Some(put(
        server,
        &format!("{TOOL}{name}"),
        serde_json::to_string(&body).ok()?,
    ))
}

pub(super) fn drop_tool(server: &ConnectorId, name: &ToolName) -> Change {
    remove(server, &format!("{TOOL}{name}"))
}

pub(super) fn put_marker(server: &ConnectorId, marker: Marker) -> Change {
    put(server, MARKER, format!("{{\"asks\":{}}}", marker.asks))
}

pub(super) fn put_text(server: &ConnectorId, text: &str, approved_at: u64) -> Change {
    let text = Value::from(text);
    put(
        server,
        INSTRUCTIONS,
        format!("{{\"text\":{text},\"approved_at\":{approved_at}}}"),
    )
}

pub(super) fn keep(server: &ConnectorId, name: &ToolName, version: &str) -> Change {
    put(server, &format!("{KEPT}{name}"), Value::from(version).to_string())
}

pub(super) fn keep_text(server: &ConnectorId, version: &str) -> Change {
    put(server, KEPT_INSTRUCTIONS, Value::from(version).to_string())
}

pub(super) fn unkeep_text(server: &ConnectorId) -> Change {
    remove(server, KEPT_INSTRUCTIONS)
}

pub(super) fn unkeep(server: &ConnectorId, name: &ToolName) -> Change {
    remove(server, &format!("{KEPT}{name}"))
}

pub(super) fn remove(server: &ConnectorId, what: &str) -> Change {
    Change::Delete(RowKind::Pin, format!("{server}/{what}"))
}

pub(super) fn put(server: &ConnectorId, what: &str, body: String) -> Change {
    Change::Put(Row {
        kind: RowKind::Pin,
        key: format!("{server}/{what}"),
        body,
    })
}
