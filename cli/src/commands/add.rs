//! `add`: one connector, or each of a pasted block.

use std::io::Read as _;

use serde_json::Value;

use super::{Context, status};
use crate::{args::AddArgs, client::Wanted, entry, exit::Failure};

pub(super) async fn run(context: &Context, args: &AddArgs) -> Result<(), Failure> {
    let reads_stdin = args.name == "-" || args.source.as_deref() == Some("-");
    let stdin = if reads_stdin { Some(stdin()?) } else { None };
    let bodies = entry::bodies(args, stdin.as_deref()).map_err(Failure::usage)?;
    let client = context.client()?;
    for (id, body) in bodies {
        let answer = client.post("/mcp/servers/add", body.to_string()).await?.ok()?;
        let wanted = client.wanted_by(&answer["server"]).await;
        context.show(&answer, || added(id.as_str(), &answer, wanted.as_ref()));
    }
    Ok(())
}

fn added(id: &str, answer: &Value, wanted: Option<&Wanted>) -> String {
    let server = &answer["server"];
    let status = server["status"].as_str().unwrap_or("added");
    let note = status::note(server, wanted);
    let tail = if note.is_empty() {
        String::new()
    } else {
        format!(" {note}")
    };
    format!("Added {id}; it is {status} now.{tail} See \"neuron-connectd status\".")
}

fn stdin() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|e| Failure::usage(format!("Standard input cannot be read: {e}.")))?;
    Ok(text)
}
