//! The tool list that callers read: made once per change, then only looked up and sent.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use sha2::{Digest, Sha256};

use super::{
    ListedTool, Tool, ToolList,
    members::passed_on,
    name::{Claim, Claimant, Resolved, Route, Unnamed, did_you_mean, expose},
    schema,
};
use crate::ids::{ConnectorId, ExposedName, ToolName};

/// One tool on its way into the list.
#[derive(Debug, Clone)]
pub struct Offer {
    pub server: ConnectorId,
    pub tool: Arc<Tool>,
    pub claim: Claim,
    pub listing: Listing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Callers see it.
    Listed,
    /// It has its name, so that a call can be told why it is refused, but callers do not see it.
    Hidden(Unlisted),
}

/// Why callers do not see a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unlisted {
    /// Its connector is off.
    ConnectorOff,
    /// What its connector runs or contacts waits for the person's look, or what was approved of it cannot be looked up.
    ConnectorWaits,
    /// `disabledTools` names it.
    Disabled,
    /// It is new and waits for the person's look.
    Pending,
    /// Something about it stands out, and it waits for the person's look.
    Held,
    /// It is not what was approved.
    Changed,
    /// What was approved cannot be looked up at present.
    TrustUnknown,
}

/// What a name that a caller gave stands for.
#[derive(Debug, Clone)]
pub enum Found<'a> {
    Listed(&'a ListedTool),
    Hidden(&'a Route, Unlisted),
    /// It could be each of these and is none.
    Several(Vec<&'a Route>),
}

/// The form of the listed tools; its name in a query is its own in lower case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// `{"tools":[{"name","description","input_schema"}]}`
    #[default]
    Anthropic,
    /// `{"tools":[<tool as received, under its exposed name, with a listed inputSchema>]}`, without `_meta` and `icons`
    Mcp,
}

/// Which tools, and how. The default is the whole list in the default format.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    pub format: Format,
    /// Only this connector's.
    pub server: Option<String>,
    /// Only these connectors'.
    pub servers: Option<Vec<String>>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// One answer, ready to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub body: Bytes,
    /// Strong entity tag, with its quotes.
    pub etag: String,
}

/// A whole list as JSON, with the place of each tool in it.
#[derive(Debug)]
pub(super) struct Page {
    body: Bytes,
    etag: String,
    items: Vec<Range<usize>>,
}

impl ToolList {
    /// Names and renders everything. Takes the hidden tools too, whose names count when names collide.
    pub fn build(offers: Vec<Offer>) -> Self {
        let routes = expose(offers.iter().map(|offer| Claimant {
            server: offer.server.clone(),
            tool: offer.tool.name.clone(),
            claim: offer.claim,
        }));
        let mut tools = Vec::new();
        let mut hidden = HashMap::new();
        for offer in offers {
            let Some(exposed) = routes.exposed(&offer.server, &offer.tool.name).cloned() else {
                continue;
            };
            match offer.listing {
                Listing::Listed => tools.push(ListedTool {
                    exposed,
                    server: offer.server,
                    tool: offer.tool,
                }),
                Listing::Hidden(why) => drop(hidden.insert(exposed, why)),
            }
        }
        let listed = tools.iter().enumerate().map(|(i, t)| (t.exposed.clone(), i)).collect();
        let page = render(tools.iter().map(AnthropicTool));
        Self {
            tools,
            anthropic: page.body,
            etag: page.etag,
            anthropic_items: page.items,
            mcp: OnceLock::new(),
            routes,
            listed,
            hidden,
        }
    }

    /// The tool behind an exposed name, or behind an unambiguous raw `mcp__<id>__<tool>`.
    pub fn find(&self, name: &str) -> Option<Found<'_>> {
        let route = match self.routes.resolve(name) {
            Resolved::One(route) => route,
            Resolved::Several(routes) => return Some(Found::Several(routes)),
            Resolved::Nothing => return None,
        };
        match self.listed.get(&route.exposed).and_then(|index| self.tools.get(*index)) {
            Some(tool) => Some(Found::Listed(tool)),
            None => Some(Found::Hidden(route, *self.hidden.get(&route.exposed)?)),
        }
    }

    /// The listed name that somebody who wrote `name` most likely meant.
    pub fn did_you_mean(&self, name: &str) -> Option<&ExposedName> {
        did_you_mean(name, self.tools.iter().map(|tool| &tool.exposed))
    }

    /// The name callers use for a tool, listed or hidden.
    pub fn exposed(&self, server: &ConnectorId, tool: &ToolName) -> Option<&ExposedName> {
        self.routes.exposed(server, tool)
    }

    /// Tools that no name tells apart, each with why.
    pub fn unnamed(&self) -> &[Unnamed] {
        self.routes.unnamed()
    }

    /// The answer to `GET /mcp/tools`. Copies ready-made pieces; the `mcp` format is made at its first use.
    pub fn render(&self, query: &ListQuery) -> Rendered {
        let (body, etag, items) = match query.format {
            Format::Anthropic => (&self.anthropic, &self.etag, &self.anthropic_items),
            Format::Mcp => {
                let page = self.mcp.get_or_init(|| render(self.tools.iter().map(McpTool)));
                (&page.body, &page.etag, &page.items)
            }
        };
        if query.server.is_none() && query.servers.is_none() && query.limit.is_none_or(|limit| limit >= items.len()) {
            return Rendered {
                body: body.clone(),
                etag: etag.clone(),
            };
        }
        let chosen = self
            .tools
            .iter()
            .zip(items)
            .filter(|(tool, _)| {
                let is_of = |servers: &Vec<String>| servers.iter().any(|server| server == tool.server.as_str());
                query
                    .server
                    .as_deref()
                    .is_none_or(|server| server == tool.server.as_str())
                    && query.servers.as_ref().is_none_or(is_of)
            })
            .filter_map(|(_, place)| body.get(place.clone()))
            .take(query.limit.unwrap_or(usize::MAX));
        let mut page = Writer::new();
        chosen.for_each(|item| page.push(|out| out.extend_from_slice(item)));
        let page = page.finish();
        Rendered {
            body: page.body,
            etag: page.etag,
        }
    }
}

impl Default for ToolList {
    fn default() -> Self {
        Self::build(Vec::new())
    }
}

/// One tool of the default format. A tool without a description shows its title.
struct AnthropicTool<'a>(&'a ListedTool);

impl Serialize for AnthropicTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tool = &self.0.tool;
        let description = match tool.description.as_str() {
            "" => tool.title.as_deref().unwrap_or_default(),
            description => description,
        };
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("name", &self.0.exposed)?;
        map.serialize_entry("description", description)?;
        map.serialize_entry("input_schema", &*schema::listed_input(&tool.input_schema))?;
        map.end()
    }
}

/// One tool as the protocol writes it: as received, except for its exposed name, a listed input schema, and members that
/// are not [`passed_on`].
pub struct McpTool<'a>(pub &'a ListedTool);

impl Serialize for McpTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tool = &self.0.tool;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.0.exposed)?;
        for (name, value) in passed_on(&tool.raw) {
            map.serialize_entry(name, &*value)?;
        }
        map.serialize_entry("inputSchema", &*schema::listed_input(&tool.input_schema))?;
        map.end()
    }
}

fn render(tools: impl Iterator<Item = impl Serialize>) -> Page {
    let mut page = Writer::new();
    for tool in tools {
        page.push(|out| {
            let start = out.len();
            if serde_json::to_writer(&mut *out, &tool).is_err() {
                out.truncate(start);
                out.extend_from_slice(b"null");
            }
        });
    }
    page.finish()
}

/// Writes `{"tools":[…]}` piece by piece.
struct Writer {
    out: Vec<u8>,
    items: Vec<Range<usize>>,
}

impl Writer {
    fn new() -> Self {
        Self {
            out: b"{\"tools\":[".to_vec(),
            items: Vec::new(),
        }
    }

    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.items.is_empty() {
            self.out.push(b',');
        }
        let start = self.out.len();
        write(&mut self.out);
        self.items.push(start..self.out.len());
    }

    fn finish(mut self) -> Page {
        self.out.extend_from_slice(b"]}");
        let hash = Sha256::digest(&self.out);
        let etag = hash[..16]
            .iter()
            .fold(String::from("\""), |etag, byte| etag + &format!("{byte:02x}"))
            + "\"";
        Page {
            body: self.out.into(),
            etag,
            items: self.items,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tools::{Arguments, parse_tools};

    fn offers(server: &str, items: Vec<Value>) -> Vec<Offer> {
        let server = ConnectorId::parse(server).unwrap();
        let parsed = parse_tools(items, Arguments::InBody);
        assert_eq!(parsed.rejected, []);
        parsed
            .tools
            .into_iter()
            .map(|tool| Offer {
                server: server.clone(),
                tool: Arc::new(tool),
                claim: Claim::Approved,
                listing: Listing::Listed,
            })
            .collect()
    }

    fn body(list: &ToolList, query: &ListQuery) -> Value {
        serde_json::from_slice(&list.render(query).body).unwrap()
    }

    fn names(body: &Value) -> Vec<&str> {
        body["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["name"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn the_default_answer_has_name_description_and_input_schema() {
        let list = ToolList::build(offers(
            "files",
            vec![
                json!({"name": "read", "description": "Reads.", "inputSchema": {"type": "object", "properties": {"p": {}}}}),
                json!({"name": "info", "title": "Information"}),
            ],
        ));
        assert_eq!(
            serde_json::from_slice::<Value>(&list.anthropic).unwrap(),
            json!({"tools": [
                {"name": "mcp__files__read", "description": "Reads.", "input_schema": {"type": "object", "properties": {"p": {}}}},
                {"name": "mcp__files__info", "description": "Information", "input_schema": {"type": "object", "properties": {}}},
            ]})
        );
    }

    #[test]
    fn the_protocol_format_keeps_what_was_received_and_drops_what_breaks_strict_clients() {
        let list = ToolList::build(offers(
            "s",
            vec![
                json!({
                    "name": "a.b", "title": 5, "description": "D", "execution": {"taskSupport": "optional"}, "x-own": 1,
                    "outputSchema": [], "annotations": {"readOnlyHint": "yes", "destructiveHint": true, "own": 1},
                }),
                json!({"name": "c", "inputSchema": {"type": "object", "properties": {}}, "outputSchema": {"type": "object"}}),
            ],
        ));
        let query = ListQuery {
            format: Format::Mcp,
            ..ListQuery::default()
        };
        assert_eq!(
            body(&list, &query),
            json!({"tools": [
                {"name": "mcp__s__a_b", "description": "D", "execution": {"taskSupport": "optional"}, "x-own": 1,
                 "annotations": {"destructiveHint": true, "own": 1}, "inputSchema": {"type": "object", "properties": {}}},
                {"name": "mcp__s__c", "inputSchema": {"type": "object", "properties": {}}, "outputSchema": {"type": "object"}},
            ]})
        );
    }

    #[test]
    fn a_hidden_tool_is_known_by_name_but_never_listed() {
        let mut all = offers(
            "s",
            vec![json!({"name": "a-b"}), json!({"name": "a_b"}), json!({"name": "c"})],
        );
        let before = ToolList::build(all.clone());
        all[0].listing = Listing::Hidden(Unlisted::Held);
        let list = ToolList::build(all.clone());
        let hidden = before.exposed(&all[0].server, &all[0].tool.name).unwrap();
        assert!(
            matches!(list.find(hidden.as_str()), Some(Found::Hidden(route, Unlisted::Held)) if route.tool().as_str() == "a-b")
        );
        assert!(matches!(list.find("mcp__s__c"), Some(Found::Listed(tool)) if tool.tool.name.as_str() == "c"));
        assert!(list.find("mcp__s__d").is_none());
        assert!(!names(&body(&list, &ListQuery::default())).contains(&hidden.as_str()));
        let visible = before.exposed(&all[1].server, &all[1].tool.name);
        assert_eq!(
            list.exposed(&all[1].server, &all[1].tool.name),
            visible,
            "hiding one renames no other"
        );
        assert_ne!(list.did_you_mean(hidden.as_str()), Some(hidden));
    }

    #[test]
    fn a_filtered_answer_holds_just_the_tools_asked_for_and_has_its_own_tag() {
        let mut all = offers("a", vec![json!({"name": "x"}), json!({"name": "y"})]);
        all.extend(offers("b", vec![json!({"name": "z"})]));
        let list = ToolList::build(all);
        let query = |server: Option<&str>, limit| ListQuery {
            server: server.map(str::to_owned),
            servers: None,
            limit,
            format: Format::Anthropic,
        };
        for (query, expected) in [
            (query(None, None), vec!["mcp__a__x", "mcp__a__y", "mcp__b__z"]),
            (query(None, Some(9)), vec!["mcp__a__x", "mcp__a__y", "mcp__b__z"]),
            (query(None, Some(2)), vec!["mcp__a__x", "mcp__a__y"]),
            (query(None, Some(0)), vec![]),
            (query(Some("b"), None), vec!["mcp__b__z"]),
            (query(Some("a"), Some(1)), vec!["mcp__a__x"]),
            (query(Some("nobody"), None), vec![]),
        ] {
            assert_eq!(names(&body(&list, &query)), expected, "{query:?}");
            assert_eq!(list.render(&query).etag == list.etag, expected.len() == 3);
        }
    }

    #[test]
    fn the_tag_changes_with_the_content_only() {
        let one = ToolList::build(offers("a", vec![json!({"name": "x"})]));
        let same = ToolList::build(offers("a", vec![json!({"name": "x"})]));
        let other = ToolList::build(offers("a", vec![json!({"name": "x", "description": "new"})]));
        assert_eq!(one.etag, same.etag);
        assert_ne!(one.etag, other.etag);
        assert!(one.etag.starts_with('"') && one.etag.ends_with('"') && one.etag.len() == 34);
    }

    #[test]
    fn an_empty_list_is_a_list() {
        assert_eq!(ToolList::default().anthropic, "{\"tools\":[]}");
    }

    #[test]
    fn a_thousand_tools_of_ten_connectors_are_all_found_by_their_names() {
        let list = ToolList::build(
            (0..10)
                .flat_map(|server| {
                    let items = (0..100).map(|tool| json!({"name": format!("tool-{tool}"), "description": "d"}));
                    offers(&format!("server-{server}"), items.collect())
                })
                .collect(),
        );
        assert_eq!(list.tools.len(), 1_000);
        let body = body(&list, &ListQuery::default());
        for (name, tool) in names(&body).into_iter().zip(&list.tools) {
            assert!(matches!(list.find(name), Some(Found::Listed(found)) if Arc::ptr_eq(&found.tool, &tool.tool)));
        }
    }

    #[test]
    fn what_no_approval_covers_is_not_passed_on() {
        let raw = json!({
            "name": "x", "description": "d", "inputSchema": {"type": "object"}, "_meta": {"say": "unseen"},
            "icons": [{"src": "https://x.example/i.png"}], "annotations": {"readOnlyHint": true}, "x-kept": 1,
        });
        let list = ToolList::build(offers("s", vec![raw]));
        for format in [Format::Anthropic, Format::Mcp] {
            let query = ListQuery {
                format,
                ..ListQuery::default()
            };
            let body: Value = serde_json::from_slice(&list.render(&query).body).unwrap();
            let tool = body["tools"][0].as_object().unwrap();
            assert!(!tool.contains_key("_meta") && !tool.contains_key("icons"), "{body}");
            let whole = format == Format::Mcp;
            assert_eq!(
                (tool.contains_key("x-kept"), tool.contains_key("annotations")),
                (whole, whole)
            );
        }
    }
}
