//! `rules`: what may, and may not, run without asking.

use serde_json::{Value, json};

use super::Context;
use crate::{
    args::{RuleArgs, RulesCommand},
    client::encoded,
    exit::Failure,
    screen::{Screen, Tone, harmless},
};

pub(super) async fn run(context: &Context, command: Option<&RulesCommand>) -> Result<(), Failure> {
    match command {
        None | Some(RulesCommand::List) => list(context).await,
        Some(RulesCommand::Withdraw(arg)) => {
            let path = format!("/mcp/rules/{}", encoded(&arg.id));
            let body = context.client()?.delete(&path).await?.ok()?;
            context.show(&body, || format!("Withdrew {}.", harmless(&arg.id)));
            Ok(())
        }
        Some(RulesCommand::Allow(args)) => make(context, "allow", args).await,
        Some(RulesCommand::Deny(args)) => make(context, "deny", args).await,
    }
}

async fn list(context: &Context) -> Result<(), Failure> {
    let body = context.client()?.get("/mcp/rules").await?.ok()?;
    context.show(&body, || text(context.screen, &body));
    Ok(())
}

async fn make(context: &Context, effect: &str, args: &RuleArgs) -> Result<(), Failure> {
    let caller = match &args.program {
        Some(path) => json!({"who": "program", "program": {"path": path}}),
        None => json!({"who": "anyone"}),
    };
    let draft = json!({
        "effect": effect,
        "server": args.server,
        "kind": "tools",
        "patterns": args.tools,
        "arguments": {"which": "any"},
        "caller": caller,
        "lasts": "kept",
    });
    let body = context.client()?.post("/mcp/rules", draft.to_string()).await?.ok()?;
    context.show(&body, || {
        format!(
            "Made the rule {}.",
            harmless(body["rule"]["id"].as_str().unwrap_or_default())
        )
    });
    Ok(())
}

fn text(screen: Screen, body: &Value) -> String {
    let rules = body["rules"].as_array().map_or(&[][..], Vec::as_slice);
    if rules.is_empty() {
        return "There are no rules.".to_owned();
    }
    let line = |view: &Value| {
        let word = |value: &Value| harmless(value.as_str().unwrap_or_default());
        let mut lines = vec![
            format!(
                "{}  {}",
                screen.paint(Tone::Title, &word(&view["rule"]["id"])),
                word(&view["sentence"])
            ),
            format!("  used {} times", view["used"]),
        ];
        match view["sleeps"].as_str() {
            Some("review") => lines.push("  It decides nothing: its connector is off, or waits for a look.".to_owned()),
            Some("elsewhere") => lines.push(
                "  It decides nothing: its connector runs or contacts something else (see approvals).".to_owned(),
            ),
            Some("changed") => lines.push("  It decides nothing: its tools are not what they were.".to_owned()),
            Some("expired") => lines.push("  It has ended.".to_owned()),
            Some(_) | None => {}
        }
        lines.join("\n")
    };
    rules.iter().map(line).collect::<Vec<_>>().join("\n\n")
}
