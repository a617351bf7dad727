//! Schemas as callers get them. Nothing here follows a reference: `$ref`s stay as they are and are never fetched, so
//! that recursive and remote ones are harmless, and `$defs` or `definitions` stay where they point to.

use std::{borrow::Cow, io};

use serde_json::{Map, Value, json};

/// Largest input or output schema, in bytes of JSON without spaces.
pub const MAX_SCHEMA_BYTES: usize = 1024 * 1024;
/// Deepest nesting of a schema; callers' JSON readers commonly stop at 128 for the whole answer.
pub const MAX_SCHEMA_DEPTH: usize = 100;

/// Reads an upstream's `inputSchema`. Missing, `null`, `true` and `{}` mean an object of any members.
///
/// # Errors
/// One sentence for a person saying why no tool can be called with it.
pub fn read_input(schema: Option<&Value>) -> Result<Map<String, Value>, String> {
    let schema = match schema {
        None | Some(Value::Null | Value::Bool(true)) => return Ok(Map::new()),
        Some(Value::Object(schema)) => schema,
        Some(Value::Bool(false)) => {
            return Err("Its input schema (inputSchema) is false: it forbids every call.".into());
        }
        Some(other @ (Value::Number(_) | Value::String(_) | Value::Array(_))) => {
            return Err(format!(
                "Its input schema (inputSchema) is {} instead of an object.",
                kind(other)
            ));
        }
    };
    if schema.values().any(|value| is_deeper_than(value, MAX_SCHEMA_DEPTH - 1)) {
        return Err(format!(
            "Its input schema (inputSchema) is nested deeper than {MAX_SCHEMA_DEPTH} levels."
        ));
    }
    if json_bytes(schema) > MAX_SCHEMA_BYTES {
        return Err("Its input schema (inputSchema) is larger than 1 MiB.".into());
    }
    if !allows_objects(schema.get("type")) {
        return Err("Its input schema (inputSchema) does not describe an object, which arguments always are.".into());
    }
    match schema.get("properties") {
        None | Some(Value::Null | Value::Object(_)) => Ok(schema.clone()),
        // What PHP makes of an empty object.
        Some(Value::Array(items)) if items.is_empty() => Ok(schema.clone()),
        Some(other) => Err(format!(
            "The properties of its input schema (inputSchema) are {} instead of an object.",
            kind(other)
        )),
    }
}

/// The input schema as listed: `type: "object"` and `properties` are supplied where they are missing, everything else
/// is as received.
pub fn listed_input(schema: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    let typed = schema.get("type").is_some_and(|kind| kind == "object");
    let with_properties = schema.get("properties").is_some_and(Value::is_object);
    if typed && with_properties {
        return Cow::Borrowed(schema);
    }
    let mut schema = schema.clone();
    if !typed {
        schema.insert("type".into(), json!("object"));
    }
    if !with_properties {
        schema.insert("properties".into(), json!({}));
    }
    Cow::Owned(schema)
}

/// The output schema of a raw tool, or nothing where it cannot be used; the tool itself stays.
pub fn usable_output(raw: &Value) -> Option<&Map<String, Value>> {
    let schema = raw.get("outputSchema")?.as_object()?;
    let small = !schema.values().any(|value| is_deeper_than(value, MAX_SCHEMA_DEPTH - 1))
        && json_bytes(schema) <= MAX_SCHEMA_BYTES;
    (small && allows_objects(schema.get("type"))).then_some(schema)
}

/// What a value is, for a sentence.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Length as JSON text, without making the text.
pub(super) fn json_bytes(value: &impl serde::Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper_than(item, levels - 1)),
        Value::Object(members) => levels == 0 || members.values().any(|member| is_deeper_than(member, levels - 1)),
    }
}

fn allows_objects(kind: Option<&Value>) -> bool {
    match kind {
        None | Some(Value::Null) => true,
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(schema: Value) -> Value {
        let schema = read_input(Some(&schema)).unwrap();
        Value::Object(listed_input(&schema).into_owned())
    }

    #[test]
    fn an_absent_or_empty_schema_is_an_object_of_any_members() {
        let empty = json!({"type": "object", "properties": {}});
        for schema in [Some(Value::Null), Some(json!(true)), Some(json!({})), None] {
            let read = read_input(schema.as_ref()).unwrap();
            assert_eq!(Value::Object(listed_input(&read).into_owned()), empty, "{schema:?}");
        }
        assert_eq!(listed(json!({"type": null, "properties": []})), empty);
    }

    #[test]
    fn a_schema_nobody_can_call_with_is_refused_in_words() {
        for (schema, expected) in [
            (json!([]), "a list"),
            (json!("object"), "a text"),
            (json!(7), "a number"),
            (json!(false), "forbids every call"),
            (json!({"type": "string"}), "does not describe an object"),
            (json!({"type": ["array", "null"]}), "does not describe an object"),
            (json!({"type": {"a": 1}}), "does not describe an object"),
            (json!({"properties": "none"}), "a text"),
            (
                json!({"description": "x".repeat(MAX_SCHEMA_BYTES)}),
                "larger than 1 MiB",
            ),
        ] {
            let reason = read_input(Some(&schema)).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({ "not": inner }));
        assert!(read_input(Some(&nested(MAX_SCHEMA_DEPTH))).is_ok());
        let reason = read_input(Some(&nested(MAX_SCHEMA_DEPTH + 1))).unwrap_err();
        assert!(reason.contains("deeper than 100 levels"), "{reason}");
    }

    #[test]
    fn a_complete_schema_is_listed_byte_for_byte() {
        for text in [
            r##"{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"maximum":1.10,"minimum":12345678901234567890123}}}"##,
            r##"{"properties":{"next":{"$ref":"#"}},"type":"object"}"##,
            r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"properties":{"a":{"$ref":"#/$defs/A"}}}}}"##,
            r##"{"type":"object","properties":{"x":{"$ref":"https://example.com/never-fetched.json"}}}"##,
            r##"{"type":"object","properties":{"definitions":{"type":"string"},"$defs":{"type":"number"}},"definitions":{"A":true}}"##,
        ] {
            assert_eq!(listed(serde_json::from_str(text).unwrap()).to_string(), text);
        }
    }

    #[test]
    fn what_is_missing_is_added_and_the_rest_stays() {
        assert_eq!(
            listed(json!({"$ref": "#/definitions/A", "definitions": {"A": {"type": "object"}}})),
            json!({"$ref": "#/definitions/A", "definitions": {"A": {"type": "object"}}, "type": "object", "properties": {}})
        );
        assert_eq!(
            listed(json!({"type": ["object", "null"], "required": ["a"]})),
            json!({"type": "object", "required": ["a"], "properties": {}})
        );
    }

    #[test]
    fn an_output_schema_is_used_only_if_it_can_be() {
        assert!(usable_output(&json!({"outputSchema": {"type": "object"}})).is_some());
        for raw in [
            json!({}),
            json!({"outputSchema": null}),
            json!({"outputSchema": []}),
            json!({"outputSchema": true}),
            json!({"outputSchema": {"type": "strin"}}),
            json!({"outputSchema": {"title": "x".repeat(MAX_SCHEMA_BYTES)}}),
        ] {
            assert!(usable_output(&raw).is_none());
        }
    }
}
