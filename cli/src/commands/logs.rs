//! `logs`: what a connector's program wrote to its standard error, and with `--follow` what it goes on to write.

use std::time::Duration;

use serde_json::Value;

use super::{Context, Output};
use crate::{
    args::LogsArgs,
    client::{Answer, Client, encoded},
    exit::Failure,
    screen,
};

/// How long the bridge may wait for a line before it answers without one; it allows 30 seconds.
const WAIT: Duration = Duration::from_secs(20);

/// Lines in one answer while following; what is more comes with the next.
const AT_ONCE: u32 = 1000;

/// Between two looks for a bridge that is gone, or a connector that cannot be asked at the moment.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) async fn run(context: &Context, args: &LogsArgs) -> Result<(), Failure> {
    let client = context.client()?;
    let path = format!("/mcp/servers/{}/log", encoded(&args.id));
    let body = client.get(&format!("{path}?lines={}", args.lines)).await?.ok()?;
    if !args.follow {
        context.show(&body, || text(context, &lines(&body)));
        return Ok(());
    }
    if !print(context, &lines(&body)) {
        return Ok(());
    }
    tokio::select! {
        ended = follow(context, client, &path, &args.id, next(&body)) => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// Goes on until the connector is removed, or nobody reads any more.
async fn follow(context: &Context, mut client: Client, path: &str, id: &str, mut after: String) -> Result<(), Failure> {
    let mut said = String::new();
    loop {
        let path = format!(
            "{path}?lines={AT_ONCE}&after={}&wait_ms={}",
            encoded(&after),
            WAIT.as_millis()
        );
        match client.get(&path).await {
            Ok(Answer { status: 404, .. }) => {
                return Err(Failure::failed(format!(
                    "The connector {id} was removed, and its log with it."
                )));
            }
            // It is being replaced, its entry has a mistake, or the bridge stops: all of that passes.
            Ok(Answer { status: 503, body }) => {
                let why = body["error"]
                    .as_str()
                    .unwrap_or("The log cannot be read at the moment.");
                if why != said {
                    screen::complain(why);
                    said = why.to_owned();
                }
                tokio::time::sleep(PAUSE).await;
            }
            Ok(answer) => {
                let body = answer.ok()?;
                if body["missed"] == true {
                    screen::complain(
                        "Some lines are missing here: there were too many at once, or the log begins anew.",
                    );
                }
                if !print(context, &lines(&body)) {
                    return Ok(());
                }
                after = next(&body);
                said.clear();
            }
            Err(gone) => {
                screen::complain(&format!("{} Waiting for it to come back.", gone.message));
                client = returned(context).await;
                screen::complain(&format!("The bridge runs again (process {}).", client.running.pid));
            }
        }
    }
}

/// Waits for a bridge that answers.
async fn returned(context: &Context) -> Client {
    loop {
        tokio::time::sleep(PAUSE).await;
        if let Ok(client) = context.client()
            && client.get("/healthz").await.is_ok()
        {
            return client;
        }
    }
}

/// Whether anybody still reads.
fn print(context: &Context, lines: &[String]) -> bool {
    match context.output {
        Output::Text if lines.is_empty() => true,
        Output::Text => screen::print_to_reader(&text(context, lines)),
        Output::Json => {
            let line = |line: &String| screen::json_text(&Value::from(line.as_str()));
            lines.is_empty() || screen::print_to_reader(&lines.iter().map(line).collect::<Vec<_>>().join("\n"))
        }
    }
}

fn text(context: &Context, lines: &[String]) -> String {
    context.screen.text(&lines.join("\n"))
}

fn lines(body: &Value) -> Vec<String> {
    let lines = body["lines"].as_array().into_iter().flatten();
    lines.map(|l| l.as_str().unwrap_or_default().to_owned()).collect()
}

fn next(body: &Value) -> String {
    body["next"].as_str().unwrap_or_default().to_owned()
}
