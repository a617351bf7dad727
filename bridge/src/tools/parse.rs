//! Reading an upstream's tool list, each tool on its own: one bad tool never takes its neighbours along.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};

use super::{Arguments, Names, ParsedTools, RawItem, Tool, mirror, schema};
use crate::{
    ids::ToolName,
    snapshot::{RejectedTool, ToolHints},
    trust::{Fingerprint, Unprintable, scan},
};

/// Longest name of a tool, in characters. The specification asks for at most 128.
const MAX_NAME_CHARS: usize = 1024;
/// Longest description, in characters: beyond, no model would read it.
const MAX_DESCRIPTION_CHARS: usize = 100_000;
/// A name in a message is shortened to this many characters.
const SHOWN_NAME_CHARS: usize = 80;

/// Reads the items of all pages of one `tools/list`, in order.
///
/// A tool is rejected, with the reason in words, when it has no usable name, shares its name with another one of the
/// list, or has an input schema that no call could satisfy. Anything else that is wrong with it is left out instead.
pub fn parse_tools(raw_items: impl IntoIterator<Item = impl Into<RawItem>>, arguments: Arguments) -> ParsedTools {
    parse_items(raw_items.into_iter().map(Into::into).collect(), arguments)
}

fn parse_items(raw_items: Vec<RawItem>, arguments: Arguments) -> ParsedTools {
    let mut uses: HashMap<String, usize> = HashMap::new();
    for name in raw_items.iter().filter_map(|item| name_of(&item.value)) {
        *uses.entry(name.to_owned()).or_default() += 1;
    }
    let mut out = ParsedTools::default();
    for (index, raw) in raw_items.into_iter().enumerate() {
        let shown = match name_of(&raw.value) {
            Some(name) if !name.is_empty() => name.chars().take(SHOWN_NAME_CHARS).collect(),
            Some(_) | None => format!("#{}", index + 1),
        };
        match parse_tool(raw, &uses, arguments) {
            Ok(tool) => out.tools.push(tool),
            Err(reason) => out.rejected.push(RejectedTool { name: shown, reason }),
        }
    }
    out
}

fn parse_tool(raw: RawItem, uses: &HashMap<String, usize>, arguments: Arguments) -> Result<Tool, String> {
    let RawItem { value: raw, names } = raw;
    let Value::Object(item) = &raw else {
        return Err(format!("It is {} instead of an object.", schema::kind(&raw)));
    };
    let name = match item.get("name") {
        None => return Err("It has no name.".into()),
        Some(Value::String(name)) if name.is_empty() => return Err("Its name is empty.".into()),
        Some(Value::String(name)) => name.as_str(),
        Some(other) => return Err(format!("Its name is {} instead of a text.", schema::kind(other))),
    };
    if name.chars().nth(MAX_NAME_CHARS).is_some() {
        return Err(format!("Its name is longer than {MAX_NAME_CHARS} characters."));
    }
    if let Some(count) = uses.get(name).filter(|count| **count > 1) {
        return Err(format!(
            "The server lists {count} tools with this name, so a call could reach the wrong one."
        ));
    }
    let description = text_of(item, "description").unwrap_or_default();
    if description.chars().nth(MAX_DESCRIPTION_CHARS).is_some() {
        return Err(format!(
            "Its description is longer than {MAX_DESCRIPTION_CHARS} characters."
        ));
    }
    let input_schema = schema::read_input(item.get("inputSchema"))?;
    match arguments {
        Arguments::InBody => {}
        Arguments::InHeadersToo => mirror::fault(&input_schema).map_or(Ok(()), Err)?,
    }
    let annotations = item.get("annotations").and_then(Value::as_object);
    let print = match names {
        Names::Unique => Fingerprint::of(&raw),
        Names::Repeated => Err(Unprintable::RepeatedName),
    };
    Ok(Tool {
        name: ToolName::new(name),
        title: text_of(item, "title")
            .or_else(|| annotations.and_then(|members| text_of(members, "title")))
            .map(str::to_owned),
        description: description.to_owned(),
        input_schema: Arc::new(input_schema),
        hints: annotations.map(hints_of).unwrap_or_default(),
        findings: scan::tool(&raw, print.as_ref().err()),
        print,
        raw,
    })
}

fn name_of(raw: &Value) -> Option<&str> {
    raw.get("name").and_then(Value::as_str)
}

fn text_of<'a>(members: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    members.get(key).and_then(Value::as_str)
}

fn hints_of(annotations: &Map<String, Value>) -> ToolHints {
    let hint = |key: &str| annotations.get(key).and_then(Value::as_bool);
    ToolHints {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_that_says_something_twice_stays_but_has_no_print() {
        let texts = [
            r#"{"name":"once","inputSchema":{"properties":{"a":{"description":"x"}}}}"#,
            r#"{"name":"twice","inputSchema":{"properties":{"a":{"description":"x","description":"y"}}}}"#,
        ];
        let items = texts.map(|text| RawItem::read(serde_json::from_str(text).unwrap()));
        let tools = super::parse_tools(items, Arguments::InBody).tools;
        assert_eq!(tools[0].print, Fingerprint::of(&tools[0].raw));
        assert_eq!(tools[0].findings, []);
        assert_eq!(tools[1].print, Err(Unprintable::RepeatedName));
        assert_eq!(tools[1].findings[0].kind, scan::FindingKind::Unprintable);
    }

    #[test]
    fn what_stands_out_in_a_tool_is_found_as_it_is_read() {
        let parsed = parse_tools(vec![json!({"name": "x", "description": "a\u{200b}b"})]);
        assert_eq!(parsed.tools[0].findings[0].kind, scan::FindingKind::HiddenCharacters);
    }

    fn parse_tools(raw_items: Vec<Value>) -> ParsedTools {
        super::parse_tools(raw_items, Arguments::InBody)
    }

    #[test]
    fn one_good_tool_survives_any_company() {
        let nested = (0..200).fold(json!({}), |inner, _| json!({ "not": inner }));
        let good = json!({"name": "good", "inputSchema": {"type": "object", "properties": {"a": {"minimum": 1}}}});
        let parsed = parse_tools(vec![
            Value::Null,
            json!("text"),
            json!({}),
            json!({"name": null, "inputSchema": {}}),
            json!({"name": 5, "inputSchema": {}}),
            json!({"name": "", "inputSchema": {}}),
            json!({"name": "list", "inputSchema": []}),
            json!({"name": "never", "inputSchema": false}),
            json!({"name": "text", "inputSchema": "{}"}),
            json!({"name": "twin", "inputSchema": {}}),
            good.clone(),
            json!({"name": "twin", "inputSchema": {"type": "object"}}),
            json!({"name": "big", "inputSchema": {"title": "x".repeat(1024 * 1024)}}),
            json!({"name": "deep", "inputSchema": nested}),
            json!({"name": "n".repeat(2_000), "inputSchema": {}}),
            json!({"name": "talkative", "description": "x".repeat(100_001)}),
        ]);
        assert_eq!(parsed.tools.iter().map(|t| &t.raw).collect::<Vec<_>>(), [&good]);
        let rejected: Vec<_> = parsed
            .rejected
            .iter()
            .map(|r| (r.name.as_str(), r.reason.as_str()))
            .collect();
        let shortened = "n".repeat(80);
        for (at, (name, word)) in [
            ("#1", "null"),
            ("#2", "a text"),
            ("#3", "no name"),
            ("#4", "null instead of a text"),
            ("#5", "a number"),
            ("#6", "empty"),
            ("list", "a list"),
            ("never", "forbids"),
            ("text", "a text"),
            ("twin", "2 tools"),
            ("twin", "2 tools"),
            ("big", "1 MiB"),
            ("deep", "levels"),
            (&shortened, "1024 characters"),
            ("talkative", "description"),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(rejected[at].0, name);
            assert!(rejected[at].1.contains(word), "{:?}", rejected[at]);
        }
    }

    #[test]
    fn a_missing_schema_is_no_reason_to_lose_a_tool() {
        let parsed = parse_tools(vec![
            json!({"name": "a"}),
            json!({"name": "b", "inputSchema": null}),
            json!({"name": "c", "inputSchema": {}}),
            json!({"name": "d", "inputSchema": true}),
        ]);
        assert_eq!(parsed.tools.len(), 4);
        assert_eq!(parsed.rejected, []);
    }

    #[test]
    fn members_of_a_wrong_type_are_left_out_and_the_tool_stays() {
        let parsed = parse_tools(vec![json!({
            "name": "odd", "title": 7, "description": ["x"], "outputSchema": 5,
            "annotations": {"title": "Odd one", "readOnlyHint": "yes", "destructiveHint": false, "openWorldHint": 1},
        })]);
        let tool = &parsed.tools[0];
        assert_eq!(tool.title.as_deref(), Some("Odd one"));
        assert_eq!(tool.description, "");
        assert_eq!(
            tool.hints,
            ToolHints {
                destructive: Some(false),
                ..ToolHints::default()
            }
        );
        assert_eq!(
            parse_tools(vec![json!({"name": "x", "annotations": "none"})])
                .tools
                .len(),
            1
        );
    }

    #[test]
    fn the_item_is_kept_exactly_as_received() {
        let text = r#"{"zeta":1.10,"name":"x","execution":{"taskSupport":"optional"},"inputSchema":{"maximum":12345678901234567890123},"_meta":{"a":null}}"#;
        let parsed = parse_tools(vec![serde_json::from_str(text).unwrap()]);
        assert_eq!(parsed.tools[0].raw.to_string(), text);
    }

    #[test]
    fn a_header_that_no_client_may_send_costs_its_tool_only_where_headers_are_sent() {
        let tools = || {
            let kinds = [("good", "string"), ("bad", "number")];
            let schema = |kind| json!({"properties": {"a": {"type": kind, "x-mcp-header": "A"}}});
            kinds
                .map(|(name, kind)| json!({"name": name, "inputSchema": schema(kind)}))
                .to_vec()
        };
        assert_eq!(super::parse_tools(tools(), Arguments::InBody).tools.len(), 2);
        let parsed = super::parse_tools(tools(), Arguments::InHeadersToo);
        assert_eq!((parsed.tools.len(), parsed.rejected[0].name.as_str()), (1, "bad"));
    }
}
