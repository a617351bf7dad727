//! Which calls a scenario's server is to get. Pure.

use serde_json::{Map, Value, json};

/// One call: the upstream's own name of the tool, and its input.
#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) input: Value,
}

/// The calls that the scenario prescribes, else one of each tool. `tools` are those of `GET /mcp/servers/{id}`.
pub(crate) fn calls(context: &Value, tools: &[Value]) -> Vec<Call> {
    if let Some(prescribed) = context["toolCalls"].as_array() {
        return prescribed
            .iter()
            .map(|call| Call {
                tool: text(&call["name"]),
                input: call["arguments"].clone(),
            })
            .collect();
    }
    // That scenario wants a schema back, to see what a client makes of it.
    if let Some(tool) = tools.iter().find(|tool| tool["name"] == "json_schema_2020_12_tool") {
        return vec![Call {
            tool: "json_schema_echo".to_owned(),
            input: json!({"schema": tool["input_schema"]}),
        }];
    }
    tools
        .iter()
        .map(|tool| Call {
            tool: text(&tool["name"]),
            input: required(&tool["input_schema"]),
        })
        .collect()
}

/// A text for each argument that a prompt of `GET /mcp/prompts` requires.
pub(crate) fn prompt_arguments(prompt: &Value) -> Value {
    let arguments = prompt["arguments"].as_array().map(Vec::as_slice).unwrap_or_default();
    let required = arguments.iter().filter(|argument| argument["required"] == true);
    let members = required.map(|argument| (text(&argument["name"]), json!("x")));
    Value::Object(members.collect::<Map<_, _>>())
}

/// A value for each required member.
fn required(schema: &Value) -> Value {
    let names = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let members = names.iter().filter_map(Value::as_str).map(|name| {
        let value = match schema["properties"][name]["type"].as_str() {
            Some("string") => json!("x"),
            Some("integer") => json!(1),
            Some("number") => json!(1.5),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            _ => json!({}),
        };
        (name.to_owned(), value)
    });
    Value::Object(members.collect::<Map<_, _>>())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_gets_one_call_with_what_it_requires() {
        let tools = [json!({"name": "add", "input_schema": {
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "string"}},
            "required": ["a", "b", "d"],
        }})];
        assert_eq!(
            calls(&Value::Null, &tools),
            [Call {
                tool: "add".to_owned(),
                input: json!({"a": 1, "b": "x", "d": {}})
            }]
        );
    }

    #[test]
    fn what_a_scenario_prescribes_is_called_as_it_says() {
        let context = json!({"toolCalls": [{"name": "t", "arguments": {"x": null}}]});
        let calls = calls(&context, &[json!({"name": "other"})]);
        assert_eq!((calls.len(), &calls[0].input), (1, &json!({"x": null})));
    }
}
