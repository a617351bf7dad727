//! `logs`: what a connector's program wrote to its standard error, and with `--follow` what it goes on to write.

use std::time::Duration;

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

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
    // Listened to before anything is printed, after which a person may press it.
    let mut interrupted = signal(SignalKind::interrupt())
        .map_err(|error| Failure::failed(format!("The system's signals cannot be received: {error}.")))?;
    if !print(context, &lines(&body)) {
        return Ok(());
    }
    tokio::select! {
        ended = follow(context, client, &path, &args.id, next(&body)) => ended,
        _ = interrupted.recv() => Ok(()),
    }
}

/// Goes on until the connector is removed, or nobody reads any more.
async fn follow(context: &Context, mut client: Client, path: &str, id: &str, mut after: String) -> Result<(), Failure> {
    let mut said = String::new();
    let mut process = client.running.pid;
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
                client = later(context, client).await;
            }
            Ok(answer) => {
                let body = answer.ok()?;
                // That another bridge has another log was told already.
                if body["missed"] == true && process == client.running.pid {
                    screen::complain(
                        "Some lines are missing here: there were too many at once, or the log begins anew.",
                    );
                }
                process = client.running.pid;
                if !print(context, &lines(&body)) {
                    return Ok(());
                }
                after = next(&body);
                said.clear();
            }
            Err(gone) => {
                if said.is_empty() {
                    said = format!("{} Waiting for it to come back.", gone.message);
                    screen::complain(&said);
                }
                client = later(context, client).await;
            }
        }
    }
}

/// After a pause: the bridge that runs then, which is told when it is another one.
async fn later(context: &Context, client: Client) -> Client {
    tokio::time::sleep(PAUSE).await;
    match context.client() {
        Ok(found) if found.running.pid != client.running.pid && found.get("/healthz").await.is_ok() => {
            screen::complain(&format!(
                "The bridge was started anew (process {}), and its log begins anew.",
                found.running.pid
            ));
            found
        }
        Ok(_) | Err(_) => client,
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
