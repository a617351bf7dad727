//! Arguments that also travel in headers (`x-mcp-header`; 2026-07-28, Streamable HTTP, custom headers from tool
//! parameters). The SDK sends them; here is which tools ask for it in a way that no client may follow. Pure.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::snapshot::{Era, TransportKind};

/// The schema member that names the header.
const ANNOTATION: &str = "x-mcp-header";

/// Where the arguments of an upstream's calls travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arguments {
    /// In the body alone: programs, and servers of the older eras. What is annotated means nothing there.
    InBody,
    /// Annotated ones in headers too: servers of the modern era over streamable HTTP.
    InHeadersToo,
}

impl Arguments {
    /// Those of an upstream over this transport whose era is known.
    pub fn of(transport: TransportKind, era: Option<Era>) -> Self {
        match (transport, era) {
            (TransportKind::Http, Some(Era::Modern)) => Self::InHeadersToo,
            (TransportKind::Http, Some(Era::Legacy) | None) | (TransportKind::Stdio | TransportKind::Sse, _) => {
                Self::InBody
            }
        }
    }
}

/// Why no call may be made with this input schema, as a sentence; `None` where its annotations are in order or absent.
///
/// In order means: a token of RFC 9110 §5.6.2, no two alike but for case, on a text, an integer or a yes-or-no that is
/// reached through `properties` alone. `schema` is nested no deeper than a schema may be.
pub(super) fn fault(schema: &Map<String, Value>) -> Option<String> {
    let mut taken = HashSet::new();
    let root = annotated(schema).map(|_| "A header is asked for all of its arguments at once.".to_owned());
    root.or_else(|| below(schema, &mut taken))
}

fn annotated(schema: &Map<String, Value>) -> Option<&Value> {
    schema.get(ANNOTATION)
}

/// Faults in and under the members of a schema that is itself reached through `properties` alone.
fn below(schema: &Map<String, Value>, taken: &mut HashSet<String>) -> Option<String> {
    schema
        .iter()
        .find_map(|(keyword, value)| match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.iter().find_map(|(name, property)| {
                let property = property.as_object()?;
                let own = annotated(property).and_then(|header| of_property(name, property, header, taken));
                own.or_else(|| below(property, taken))
            }),
            (ANNOTATION, _) => None,
            (keyword, value) => elsewhere(keyword, value),
        })
}

fn of_property(
    name: &str,
    property: &Map<String, Value>,
    header: &Value,
    taken: &mut HashSet<String>,
) -> Option<String> {
    let Some(header) = header.as_str().filter(|header| is_token(header)) else {
        return Some(format!(
            "The header that its argument {name} is to travel in has no valid name."
        ));
    };
    if !taken.insert(header.to_ascii_lowercase()) {
        return Some(format!(
            "Two of its arguments are to travel in the same header ({header})."
        ));
    }
    match property.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => None,
        Some(_) | None => Some(format!(
            "Its argument {name} is to travel in a header, but is no text, integer or yes-or-no."
        )),
    }
}

/// An annotation where no argument is certain to be found.
fn elsewhere(keyword: &str, value: &Value) -> Option<String> {
    match keyword {
        ANNOTATION => Some("A header is asked for a part of its input that may not be there.".to_owned()),
        // These hold values or names, not schemas.
        "default" | "const" | "enum" | "examples" | "dependentRequired" => None,
        // The names in these are not keywords.
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies" => {
            value.as_object()?.values().find_map(anywhere_in)
        }
        _ => anywhere_in(value),
    }
}

fn anywhere_in(value: &Value) -> Option<String> {
    match value {
        Value::Object(schema) => schema.iter().find_map(|(keyword, value)| elsewhere(keyword, value)),
        Value::Array(items) => items.iter().find_map(anywhere_in),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn is_token(text: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: Value) -> Option<String> {
        let Value::Object(schema) = schema else {
            panic!("{schema}")
        };
        fault(&schema)
    }

    fn with(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn annotations_in_order_are_no_fault_wherever_the_word_stands_for_something_else() {
        for schema in [
            json!({}),
            with(
                json!({"a": {"type": "string", "x-mcp-header": "Region"}, "b": {"type": "integer", "x-mcp-header": "N"}}),
            ),
            with(json!({"o": {"type": "object", "properties": {"a": {"type": "boolean", "x-mcp-header": "Deep"}}}})),
            with(json!({"x-mcp-header": {"type": "string"}})),
            with(json!({"a": {"default": {"x-mcp-header": 1}, "enum": [{"x-mcp-header": 1}]}})),
            json!({"$defs": {"x-mcp-header": {"type": "string"}}, "properties": []}),
        ] {
            assert_eq!(found(schema.clone()), None, "{schema}");
        }
    }

    #[test]
    fn each_way_of_annotating_that_no_client_may_follow_is_told_in_words() {
        let one = |header: Value, kind: &str| with(json!({"a": {"type": kind, "x-mcp-header": header}}));
        for (schema, words) in [
            (one(json!(""), "string"), "no valid name"),
            (one(json!("My Region"), "string"), "no valid name"),
            (one(json!("Region:x"), "string"), "no valid name"),
            (one(json!("Région"), "string"), "no valid name"),
            (one(json!("a\u{1}"), "string"), "no valid name"),
            (one(json!(7), "string"), "no valid name"),
            (one(json!("A"), "object"), "no text"),
            (one(json!("A"), "number"), "no text"),
            (with(json!({"a": {"x-mcp-header": "A"}})), "no text"),
            (
                with(
                    json!({"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}}),
                ),
                "the same header",
            ),
            (json!({"x-mcp-header": "A"}), "all of its arguments"),
            (
                with(json!({"a": {"items": {"type": "string", "x-mcp-header": "A"}}})),
                "may not be there",
            ),
            (
                json!({"oneOf": [with(json!({"a": {"x-mcp-header": "A"}}))]}),
                "may not be there",
            ),
            (
                json!({"$defs": {"a": {"type": "string", "x-mcp-header": "A"}}}),
                "may not be there",
            ),
        ] {
            let found = found(schema.clone());
            assert!(
                found.as_ref().is_some_and(|it| it.contains(words)),
                "{schema}: {found:?}"
            );
        }
    }
}
