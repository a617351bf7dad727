//! What a yes to a call covers, and nothing else (DESIGN invariant 11).

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    ids::{ConnectorId, ExposedName, ToolName},
    trust::{Fingerprint, LaunchIdentity},
};

/// One call, read or prompt, exactly: equal ones may be answered together.
#[derive(Debug, Clone, PartialEq)]
pub struct Matter {
    pub server: ConnectorId,
    /// What its connector runs or contacts, as the person is shown it.
    pub launch: Option<LaunchIdentity>,
    pub subject: Subject,
    /// As they will be sent; empty for a resource.
    pub arguments: Arc<Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// With what it is approved as.
    Tool {
        name: ToolName,
        exposed: ExposedName,
        fingerprint: Fingerprint,
    },
    /// By its URI.
    Resource(String),
    Prompt(String),
}
