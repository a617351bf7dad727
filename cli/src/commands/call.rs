//! `call`: one tool, once.

use std::{io::Read as _, time::Duration};

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::{Context, Output};
use crate::{
    args::CallArgs,
    arguments::{self, Input},
    client::Client,
    exit::{Exit, Failure},
    screen,
};

/// The longest that a call may take, and a little for the way.
const LONGEST: Duration = Duration::from_secs(3600 + 30);

pub(super) async fn run(context: &Context, args: &CallArgs) -> Result<(), Failure> {
    let client = context.client()?;
    let input = input(&client, args).await?;
    let body = body(&args.tool, &input, args.timeout)?;
    let answer = client.post_slowly("/mcp/call", body, LONGEST).await?.ok()?;
    if context.output == Output::Json {
        screen::print_json(&answer);
        return match answer["ok"] {
            Value::Bool(false) => Err(Failure::silent(Exit::Failed)),
            _ => Ok(()),
        };
    }
    for remark in remarks(&answer) {
        screen::complain(&remark);
    }
    if answer["ok"] == false {
        let error = answer["error"]
            .as_str()
            .unwrap_or("The tool failed without saying why.");
        return Err(Failure {
            exit: Exit::Failed,
            message: error.to_owned(),
            body: answer,
        });
    }
    screen::print(&context.screen.text(answer["text"].as_str().unwrap_or_default()));
    Ok(())
}

async fn input(client: &Client, args: &CallArgs) -> Result<Input, Failure> {
    match args.arguments.as_slice() {
        [] => Ok(Input::Typed(Map::new())),
        [only] if only == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|e| Failure::usage(format!("Standard input cannot be read: {e}.")))?;
            arguments::object(&text).map_err(Failure::usage)
        }
        [only] if only.trim_start().starts_with('{') => arguments::object(only).map_err(Failure::usage),
        given => {
            let pairs = arguments::pairs(given).map_err(Failure::usage)?;
            let schema = schema(client, &args.tool).await;
            arguments::typed(&pairs, schema.as_ref()).map_err(Failure::usage)
        }
    }
}

/// The tool's input schema. Without one the values are texts, and the tool says what it thinks of them.
async fn schema(client: &Client, tool: &str) -> Option<Value> {
    let mut body = client.get("/mcp/tools").await.ok()?.ok().ok()?;
    body["tools"]
        .as_array_mut()?
        .iter_mut()
        .find(|t| t["name"] == tool)
        .map(|t| t["input_schema"].take())
}

fn body(tool: &str, input: &Input, timeout: Option<u64>) -> Result<String, Failure> {
    #[derive(Serialize)]
    struct Body<'a, I: Serialize> {
        name: &'a str,
        input: I,
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    }
    let timeout_ms = timeout.map(|seconds| seconds * 1000);
    let text = match input {
        Input::Verbatim(raw) => serde_json::to_string::<Body<'_, &RawValue>>(&Body {
            name: tool,
            input: raw,
            timeout_ms,
        }),
        Input::Typed(map) => serde_json::to_string(&Body {
            name: tool,
            input: map,
            timeout_ms,
        }),
    };
    text.map_err(|e| Failure::usage(format!("The arguments cannot be written as JSON: {e}.")))
}

/// What should be known besides the tool's own words.
fn remarks(answer: &Value) -> Vec<String> {
    let mut out: Vec<String> = answer["warnings"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|w| w.as_str().map_or_else(|| w.to_string(), str::to_owned))
        .collect();
    if answer["truncated"] == true {
        out.push("the text is shortened; --json names the whole result (result_id)".to_owned());
    }
    let others = answer["content"].as_array().into_iter().flatten();
    let others = others
        .filter(|block| matches!(block["type"].as_str(), Some("image" | "audio")))
        .count();
    if others > 0 {
        out.push(format!(
            "{others} of the answer's parts are pictures or sound; --json has them"
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objects_every_digit_and_key_reaches_the_bridge() {
        let input = arguments::object(r#"{"n": 1.10, "n": 12345678901234567890.5}"#).unwrap();
        assert_eq!(
            body("t", &input, Some(2)).unwrap(),
            r#"{"name":"t","input":{"n": 1.10, "n": 12345678901234567890.5},"timeout_ms":2000}"#
        );
    }

    #[test]
    fn a_call_without_arguments_sends_an_empty_object() {
        let body = body("t", &Input::Typed(Map::new()), None).unwrap();
        assert_eq!(body, r#"{"name":"t","input":{}}"#);
    }
}
