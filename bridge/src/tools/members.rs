//! The members of a tool as received: which of them callers get, and which of those a person is shown as JSON because
//! nothing else shows them. Pure. What is not shown is not passed on.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{Tool, schema};

const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// The members that callers get as received, name and input schema aside: without those that would make a strict client
/// refuse the whole list, and without those that no approval covers (`_meta`, `icons`).
pub fn passed_on(raw: &Value) -> impl Iterator<Item = (&String, Cow<'_, Value>)> {
    let members = raw.as_object().into_iter().flatten();
    members.filter_map(|(name, value)| {
        let kept = match name.as_str() {
            "name" | "inputSchema" | "_meta" | "icons" => false,
            "outputSchema" => schema::usable_output(raw).is_some(),
            "title" | "description" => value.is_string(),
            "execution" => value.is_object(),
            "annotations" => return Some((name, Cow::Owned(Value::Object(well_typed(value.as_object()?))))),
            _ => true,
        };
        kept.then_some((name, Cow::Borrowed(value)))
    })
}

/// What of it a tool's title, description, schemas and hints do not say.
pub fn said_besides(tool: &Tool) -> Map<String, Value> {
    let has_title = tool.raw.get("title").is_some_and(Value::is_string);
    let mut besides = Map::new();
    for (name, value) in passed_on(&tool.raw) {
        let value = match (name.as_str(), value.into_owned()) {
            ("title" | "description" | "outputSchema", _) => continue,
            ("annotations", Value::Object(mut members)) => {
                members.retain(|name, _| match name.as_str() {
                    // Without a title of its own, the tool is shown under this one.
                    "title" => has_title,
                    name => !HINTS.contains(&name),
                });
                if members.is_empty() {
                    continue;
                }
                Value::Object(members)
            }
            (_, value) => value,
        };
        besides.insert(name.clone(), value);
    }
    besides
}

fn well_typed(annotations: &Map<String, Value>) -> Map<String, Value> {
    let mut members = annotations.clone();
    members.retain(|name, value| match name.as_str() {
        "title" => value.is_string(),
        hint if HINTS.contains(&hint) => value.is_boolean(),
        _ => true,
    });
    members
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::{Arguments, parse_tools};

    fn besides(raw: Value) -> Value {
        let tool = parse_tools(vec![raw], Arguments::InBody).tools.pop().unwrap();
        Value::Object(said_besides(&tool))
    }

    #[test]
    fn what_has_no_place_of_its_own_in_a_review_is_said_besides() {
        let plain = json!({
            "name": "x", "title": "X", "description": "d", "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "openWorldHint": "yes"},
            "_meta": {"a": 1}, "icons": [],
        });
        assert_eq!(besides(plain), json!({}));
        assert_eq!(
            besides(json!({"name": "x", "annotations": {"title": "Shown as its title"}})),
            json!({})
        );
        assert_eq!(
            besides(json!({
                "name": "x", "title": "X", "usage": "First read this.", "execution": {"taskSupport": "optional"},
                "annotations": {"title": "Another", "hint": "Hand over all.", "readOnlyHint": true},
            })),
            json!({
                "usage": "First read this.", "execution": {"taskSupport": "optional"},
                "annotations": {"title": "Another", "hint": "Hand over all."},
            })
        );
    }

    /// Whatever callers get is in one of the places that a review shows.
    #[test]
    fn whatever_is_passed_on_is_shown() {
        let odd = [
            json!("text"),
            json!(5),
            json!(["a"]),
            json!({"a": 1}),
            json!(null),
            json!(true),
        ];
        let names = [
            "title",
            "description",
            "outputSchema",
            "annotations",
            "execution",
            "icons",
            "_meta",
            "usage",
            "x",
        ];
        for name in names {
            for value in &odd {
                let raw = json!({"name": "t", name: value});
                let tool = parse_tools(vec![raw.clone()], Arguments::InBody).tools.pop().unwrap();
                let besides = said_besides(&tool);
                for (name, value) in passed_on(&raw) {
                    let shown = match name.as_str() {
                        "title" => tool.title.as_deref() == value.as_str(),
                        "description" => Some(tool.description.as_str()) == value.as_str(),
                        "outputSchema" => true,
                        "annotations" if value.as_object().is_some_and(Map::is_empty) => true,
                        other => besides.get(other) == Some(&*value),
                    };
                    assert!(shown, "{raw}");
                }
            }
        }
    }
}
