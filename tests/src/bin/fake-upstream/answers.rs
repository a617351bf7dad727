//! Tools whose results are large, doubled or of a kind that is easily lost.

use serde_json::{Value, json};

use crate::protocol::Reply;

pub(crate) const TOOLS: [&str; 7] = ["picture", "crabs", "both", "failed", "structured", "links", "zeros"];

/// A list of zeros in about so many bytes of JSON.
pub(crate) fn zeros(bytes: usize) -> String {
    format!("[{}0]", "0,".repeat(bytes / 2))
}

/// Base64 characters of a picture of three megabytes.
const PICTURE: usize = 4_000_000;

pub(crate) fn call(name: &str, arguments: &Value) -> Option<Reply> {
    let result = match name {
        "picture" => {
            let data = "iVBORw0KGgo+".repeat(PICTURE / 12);
            json!({
                "content": [{"type": "image", "data": data, "mimeType": "image/png"}],
                "structuredContent": {"width": 7, "image": {"data": data}},
            })
        }
        "crabs" => {
            let text = format!("a{}", "🦀".repeat(2_500_000));
            json!({"content": [{"type": "text", "text": text}]})
        }
        "both" => {
            let text = "t".repeat(150_000);
            json!({"content": [{"type": "text", "text": text}], "structuredContent": {"text": text}})
        }
        "failed" => json!({
            "content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}],
            "structuredContent": {"code": 7},
            "isError": true,
        }),
        "structured" => json!({"content": [], "structuredContent": arguments["value"]}),
        "links" => json!({"content": [
            {"type": "resource_link", "uri": "datei:///Ä/日本 🦀?q=%41", "name": "fern"},
            {"type": "resource", "resource": {"uri": "datei:///ü", "text": "nah"}},
        ]}),
        "zeros" => {
            let zeros = zeros(15 << 20);
            return Some(Reply::Result(match arguments["where"].as_str() {
                Some("block") => format!(r#"{{"content":[{{"type":"text","text":"few","x":{zeros}}}]}}"#),
                Some("structured") => format!(r#"{{"content":[],"structuredContent":{zeros}}}"#),
                Some(_) | None => format!(r#"{{"content":{zeros}}}"#),
            }));
        }
        _ => return None,
    };
    Some(Reply::Result(result.to_string()))
}
