//! `tools`: what assistants see.

use serde_json::Value;

use super::Context;
use crate::{
    args::ToolsArgs,
    client::encoded,
    exit::Failure,
    screen::{Cell, Long, Screen},
};

pub(super) async fn run(context: &Context, args: &ToolsArgs) -> Result<(), Failure> {
    let mut body = context.client()?.get(&path(args)).await?.ok()?;
    if let Some(words) = &args.query
        && let Some(tools) = body["tools"].as_array_mut()
    {
        tools.retain(|tool| matches(tool, words));
    }
    context.show(&body, || text(context.screen, args, &body));
    Ok(())
}

fn path(args: &ToolsArgs) -> String {
    match &args.server {
        Some(server) => format!("/mcp/tools?server={}", encoded(server)),
        None => "/mcp/tools".to_owned(),
    }
}

/// Every word is in the tool's name or description, in either case.
fn matches(tool: &Value, words: &str) -> bool {
    let text = |member: &str| tool[member].as_str().unwrap_or_default().to_lowercase();
    let (name, description) = (text("name"), text("description"));
    words
        .to_lowercase()
        .split_whitespace()
        .all(|word| name.contains(word) || description.contains(word))
}

fn text(screen: Screen, args: &ToolsArgs, body: &Value) -> String {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    if tools.is_empty() {
        return match (&args.query, &args.server) {
            (None, None) => "No tools yet: see \"neuron-connectd status\" for why.".to_owned(),
            _ => "No tool matches.".to_owned(),
        };
    }
    let rows: Vec<_> = tools
        .iter()
        .map(|tool| {
            let description = tool["description"].as_str().unwrap_or_default();
            vec![
                Cell::plain(tool["name"].as_str().unwrap_or_default()),
                Cell::plain(description.lines().find(|l| !l.trim().is_empty()).unwrap_or_default()),
            ]
        })
        .collect();
    screen.table(&["TOOL", "WHAT IT DOES"], &rows, Long::Cut)
}
