//! Tools as callers see them: exposed names, listed schemas, result blocks. Pure.

mod item;
mod list;
mod members;
mod mirror;
mod name;
pub(crate) mod open;
mod parse;
pub mod pattern;
mod result;
pub mod schema;

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::{
    ids::{ConnectorId, ExposedName, ToolName},
    snapshot::{RejectedTool, ToolHints},
    trust::{Fingerprint, Unprintable, scan::Finding},
};

pub use item::{Names, RawItem};
pub use list::{Format, Found, ListQuery, Listing, McpTool, Offer, Rendered, Unlisted};
pub use members::said_besides;
pub use mirror::Arguments;
pub use name::{Claim, Claimant, MAX_NAME_LENGTH, Resolved, Route, Routes, Unnamed, did_you_mean, expose};
pub use parse::parse_tools;
pub use result::{
    Limits, Message, One, OneContent, Shaped, ShapedContents, ShapedPrompt, Undecodable, one_content, shape,
    shape_contents, shape_prompt,
};

/// One tool of an upstream's list, as far as it could be read. `raw` is the list item exactly as received.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: ToolName,
    pub title: Option<String>,
    pub description: String,
    /// As received.
    pub input_schema: Arc<Map<String, Value>>,
    pub hints: ToolHints,
    pub raw: Value,
    /// Of `raw`, with today's formula; a tool without one is held.
    pub print: Result<Fingerprint, Unprintable>,
    /// What stands out in it, other connectors' tools aside: those come and go.
    pub findings: Vec<Finding>,
}

/// A complete list of one upstream, read tool by tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedTools {
    pub tools: Vec<Tool>,
    pub rejected: Vec<RejectedTool>,
}

/// A tool that callers may see and call.
#[derive(Debug, Clone)]
pub struct ListedTool {
    pub exposed: ExposedName,
    pub server: ConnectorId,
    pub tool: Arc<Tool>,
}

/// All listed tools, with the answers of `GET /mcp/tools` ready to send. Immutable; a change makes a new one.
#[derive(Debug)]
pub struct ToolList {
    pub tools: Vec<ListedTool>,
    /// `{"tools":[{"name","description","input_schema"}]}`
    pub anthropic: Bytes,
    /// Strong entity tag of `anthropic`, with its quotes.
    pub etag: String,
    /// Where each tool stands in `anthropic`.
    anthropic_items: Vec<Range<usize>>,
    mcp: OnceLock<list::Page>,
    /// Of all tools, hidden ones included.
    routes: Routes,
    /// Places in `tools`.
    listed: HashMap<ExposedName, usize>,
    hidden: HashMap<ExposedName, Unlisted>,
}
