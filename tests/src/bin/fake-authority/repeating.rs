//! An MCP server that puts what it was sent into every place where a server may write something.

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::web::{Answer, Asked, answer, json_answer};

/// What other servers answer otherwise; `None`: as they do. `how` is the value of `repeats`.
pub(crate) fn answer_to(how: &str, asked: &Asked, message: &Value) -> Option<Answer> {
    let id = &message["id"];
    let told = asked.sent.as_str();
    // What alone is as short as a name.
    let key = asked.authorization.rsplit(' ').next().unwrap_or_default();
    let params = &message["params"];
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": if how == "protocol" { key } else { "2025-11-25" },
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": format!("server of {key}"), "version": told, "title": told, "websiteUrl": told},
            "instructions": format!("Say {told}"),
        }),
        "tools/list" => {
            let tool = |name: &str| {
                json!({
                    "name": name,
                    "title": told,
                    "description": told,
                    "inputSchema": {
                        "type": "object",
                        "description": told,
                        "properties": {key: {"type": "string", "enum": [told], "default": told}},
                    },
                    "annotations": {"title": told},
                })
            };
            let names = [
                "echo",
                "fails",
                "refuses",
                "refuses-at-length",
                "broken",
                "crashes",
                "numbers",
            ];
            let mut tools: Vec<_> = names.map(tool).into();
            tools.push(tool(key));
            json!({"tools": tools})
        }
        "resources/list" => json!({"resources": [
            {"uri": format!("x://{told}"), "name": key, "title": told, "description": told, "mimeType": told},
        ]}),
        "resources/templates/list" => json!({"resourceTemplates": [
            {"uriTemplate": format!("x://{{a}}/{key}"), "name": key, "title": told, "description": told},
        ]}),
        "prompts/list" => json!({"prompts": [
            {"name": key, "title": told, "description": told, "arguments": [{"name": key, "description": told}]},
        ]}),
        "resources/read" => json!({"contents": [{"uri": params["uri"], "text": told}]}),
        "tools/call" => match params["name"].as_str().unwrap_or_default() {
            "fails" => json!({"content": [{"type": "text", "text": told.repeat(20)}], "isError": true}),
            "refuses" => return Some(error(id, told)),
            // So that whoever shortens it does so within the key.
            "refuses-at-length" => {
                let long: Vec<_> = (0..20).map(|n| format!("{}{key}", "x".repeat(260 + 2 * n))).collect();
                let at = params["arguments"]["at"].as_u64().unwrap_or_default();
                return Some(error(id, &long[usize::try_from(at).expect("a number") % long.len()]));
            }
            "broken" => {
                let escaped = Value::from(told).to_string();
                let text = format!("\"\\ud800{} \\udc00 \"", &escaped[1..escaped.len() - 1]);
                let body = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{{{text}:{text}}}}}}}"#
                );
                return Some(answer(StatusCode::OK, "application/json", &body));
            }
            "crashes" => return Some(answer(StatusCode::BAD_GATEWAY, "text/plain", told)),
            "numbers" => json!({"content": [{"type": told, "text": 1}], "structuredContent": [told, 1.5]}),
            _ => json!({
                "content": [
                    {"type": "text", "text": format!("{told} {}", params["arguments"])},
                    {"type": "resource_link", "uri": format!("x://?{told}"), "name": key},
                    {"type": "resource", "resource": {"uri": key, "text": told}},
                ],
                "structuredContent": {key: told},
                "_meta": {key: told},
            }),
        },
        _ => return None,
    };
    Some(json_answer(
        StatusCode::OK,
        &json!({"jsonrpc": "2.0", "id": id, "result": result}),
    ))
}

fn error(id: &Value, told: &str) -> Answer {
    let error = json!({"code": -32603, "message": told, "data": {"told": told}});
    json_answer(StatusCode::OK, &json!({"jsonrpc": "2.0", "id": id, "error": error}))
}
