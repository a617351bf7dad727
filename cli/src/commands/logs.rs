//! `logs`: what a connector's program wrote to its standard error.

use std::time::Duration;

use serde_json::Value;

use super::{Context, Output};
use crate::{args::LogsArgs, client::encoded, exit::Failure, screen};

/// Between two looks with `--follow`.
const PAUSE: Duration = Duration::from_millis(500);

/// Lines that one look asks for with `--follow`: more than a program writes in a pause, or some are missed.
const WINDOW: u32 = 1000;

pub(super) async fn run(context: &Context, args: &LogsArgs) -> Result<(), Failure> {
    let client = context.client()?;
    let path = |lines: u32| format!("/mcp/servers/{}/log?lines={lines}", encoded(&args.id));
    if !args.follow {
        let body = client.get(&path(args.lines)).await?.ok()?;
        context.show(&body, || text(context, &lines(&body)));
        return Ok(());
    }
    let mut seen = lines(&client.get(&path(WINDOW)).await?.ok()?);
    let start = seen.len().saturating_sub(args.lines as usize);
    print(context, &seen[start..]);
    loop {
        tokio::time::sleep(PAUSE).await;
        let now = lines(&client.get(&path(WINDOW)).await?.ok()?);
        print(context, fresh(&seen, &now));
        seen = now;
    }
}

fn print(context: &Context, lines: &[String]) {
    match context.output {
        Output::Text if lines.is_empty() => {}
        Output::Text => screen::print(&text(context, lines)),
        Output::Json => lines
            .iter()
            .for_each(|line| screen::print_json(&Value::from(line.as_str()))),
    }
}

fn text(context: &Context, lines: &[String]) -> String {
    context.screen.text(&lines.join("\n"))
}

fn lines(body: &Value) -> Vec<String> {
    let lines = body["lines"].as_array().into_iter().flatten();
    lines.map(|l| l.as_str().unwrap_or_default().to_owned()).collect()
}

/// What `now` has after the longest end of `before` that it begins with.
fn fresh<'a>(before: &[String], now: &'a [String]) -> &'a [String] {
    let most = before.len().min(now.len());
    // A log that grew begins as before; one whose oldest lines fell out of the window begins later.
    let kept = if now.starts_with(before) {
        before.len()
    } else {
        (0..=most).rev().find(|n| before.ends_with(&now[..*n])).unwrap_or(0)
    };
    &now[kept..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_followed_once() {
        let log = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        for (before, now, new) in [
            ("", "ab", "ab"),
            ("ab", "ab", ""),
            ("ab", "abc", "c"),
            ("abc", "bcd", "d"),
            ("abc", "xyz", "xyz"),
            ("aaa", "aaaa", "a"),
        ] {
            assert_eq!(fresh(&log(before), &log(now)), log(new), "{before} {now}");
        }
    }
}
