//! `activity`: what happened, who did it and who let it; as a list that may go on, or whole as a file.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use neuron_bridge::clock::stamp;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::{Context, Output};
use crate::{
    args::{ActivityArgs, ExportTo},
    client::{Client, encoded},
    exit::Failure,
    screen::{self, Cell, Long, Screen, Tone},
};

/// Entries in one answer while following; what is more comes with the next.
const AT_ONCE: u32 = 500;
/// A whole export, of everything that is kept, takes seconds.
const EXPORTED_WITHIN: Duration = Duration::from_secs(600);

pub(super) async fn run(context: &Context, args: &ActivityArgs) -> Result<(), Failure> {
    let client = context.client()?;
    let filter = filter(args, SystemTime::now());
    if let Some(to) = args.export_to().map_err(Failure::usage)? {
        return export(context, &client, &filter, &to).await;
    }
    // Listened to before anything is read, so that nothing falls in between.
    let mut events = match args.follow {
        true => Some(client.events().await?),
        false => None,
    };
    let path = format!("/mcp/activity?limit={}{filter}", args.lines);
    let body = client.get(&path).await?.ok()?;
    let Some(events) = &mut events else {
        context.show(&body, || text(context.screen, &oldest_first(&body)));
        return Ok(());
    };
    let mut interrupted = signal(SignalKind::interrupt())
        .map_err(|error| Failure::failed(format!("The system's signals cannot be received: {error}.")))?;
    let newest = last_id(&body, 0);
    if !print(context, &oldest_first(&body)) {
        return Ok(());
    }
    let follow = async {
        let mut after = newest;
        while let Some(event) = events.next().await {
            if event["type"] != "activity_recorded" || event["newest"].as_u64().is_none_or(|newest| newest <= after) {
                continue;
            }
            loop {
                let path = format!("/mcp/activity?limit={AT_ONCE}&after={after}{filter}");
                let body = client.get(&path).await?.ok()?;
                after = last_id(&body, after);
                if !print(context, &entries(&body)) {
                    return Ok(());
                }
                if body["next"].is_null() {
                    break;
                }
            }
            after = after.max(event["newest"].as_u64().unwrap_or(0));
        }
        Err(Failure::no_bridge(
            "The bridge ended; ask again once it runs (neuron-connectd activity -f).",
        ))
    };
    tokio::select! {
        ended = follow => ended,
        _ = interrupted.recv() => Ok(()),
    }
}

async fn export(context: &Context, client: &Client, filter: &str, to: &ExportTo) -> Result<(), Failure> {
    let format = &to.format;
    let path = format!("/mcp/activity?format={format}{filter}");
    if to.file.as_os_str() == "-" {
        let mut out = io::stdout();
        return client.download(&path, EXPORTED_WITHIN, &mut out).await;
    }
    let name = to.file.display();
    let failed = |error: io::Error| Failure::failed(format!("{name} cannot be written: {error}."));
    let mut file = BufWriter::new(new_file(&to.file).map_err(failed)?);
    let written = match client.download(&path, EXPORTED_WITHIN, &mut file).await {
        Ok(()) => file.flush().map_err(failed),
        Err(failure) => Err(failure),
    };
    if let Err(failure) = written {
        // Half a file would look like a whole one; why it is none is told.
        let _ = std::fs::remove_file(&to.file);
        return Err(failure);
    }
    let body = serde_json::json!({"ok": true, "path": to.file});
    context.show(&body, || format!("Saved in {}.", screen::harmless(&name.to_string())));
    Ok(())
}

/// For this person alone; an existing file stays.
fn new_file(path: &std::path::Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn filter(args: &ActivityArgs, now: SystemTime) -> String {
    let mut query = String::new();
    let mut add = |name: &str, value: &str| query.push_str(&format!("&{name}={}", encoded(value)));
    if let Some(server) = &args.server {
        add("server", server);
    }
    if let Some(caller) = args.caller {
        add("caller", caller.word());
    }
    if let Some(outcome) = args.outcome {
        add("outcome", outcome.word());
    }
    if let Some(kind) = args.kind {
        add("kind", kind.word());
    }
    if let Some(text) = &args.text {
        add("text", text);
    }
    if let Some(since) = args.since {
        let from = (now - since).duration_since(UNIX_EPOCH).unwrap_or_default();
        add("from", &from.as_millis().to_string());
    }
    query
}

/// Whether anybody still reads.
fn print(context: &Context, entries: &[&Value]) -> bool {
    if entries.is_empty() {
        return true;
    }
    let lines: Vec<String> = match context.output {
        Output::Text => entries.iter().map(|entry| line(context.screen, entry)).collect(),
        Output::Json => entries.iter().map(|entry| screen::json_text(entry)).collect(),
    };
    screen::print_to_reader(&lines.join("\n"))
}

fn entries(body: &Value) -> Vec<&Value> {
    body["entries"].as_array().into_iter().flatten().collect()
}

/// As people read a log: the newest at the end.
fn oldest_first(body: &Value) -> Vec<&Value> {
    let mut entries = entries(body);
    entries.reverse();
    entries
}

fn last_id(body: &Value, before: u64) -> u64 {
    let ids = entries(body).into_iter().filter_map(|entry| entry["id"].as_u64());
    ids.max().unwrap_or(before)
}

fn text(screen: Screen, entries: &[&Value]) -> String {
    if entries.is_empty() {
        return "Nothing that fits has happened.".to_owned();
    }
    let rows: Vec<_> = entries.iter().map(|entry| row(entry)).collect();
    screen.table(&["TIME (UTC)", "WHO", "OUTCOME", "MS", "WHAT"], &rows, Long::Wrap)
}

fn row(entry: &Value) -> Vec<Cell> {
    let (outcome, tone) = outcome(entry);
    vec![
        Cell::new(Tone::Dim, when(entry)),
        Cell::plain(who(entry)),
        Cell::new(tone, outcome),
        Cell::new(
            Tone::Dim,
            entry["duration_ms"]
                .as_u64()
                .map_or_else(String::new, |ms| ms.to_string()),
        ),
        Cell::plain(what(entry)),
    ]
}

/// One line of what goes on: columns would have to be as wide as what is not known yet.
fn line(screen: Screen, entry: &Value) -> String {
    let (outcome, tone) = outcome(entry);
    let words = screen::harmless(&format!("{}  {}", who(entry), what(entry)));
    format!(
        "{}  {}  {words}",
        screen.paint(Tone::Dim, &when(entry)),
        screen.paint(tone, &screen::harmless(&outcome))
    )
}

fn when(entry: &Value) -> String {
    let at = UNIX_EPOCH + Duration::from_millis(entry["at"].as_u64().unwrap_or(0));
    stamp(at)
        .replace('T', " ")
        .chars()
        .take("2026-11-03 12:34:56".len())
        .collect()
}

fn who(entry: &Value) -> String {
    let who = &entry["who"];
    let name = ["client_name", "program_name"]
        .iter()
        .find_map(|key| who[*key].as_str());
    match (name, who["kind"].as_str()) {
        (Some(name), _) => name.to_owned(),
        (None, Some("owner")) => "you".to_owned(),
        (None, Some("walk_in")) => "a program".to_owned(),
        (None, Some("itself") | None) => "–".to_owned(),
        (None, Some(other)) => other.to_owned(),
    }
}

fn outcome(entry: &Value) -> (String, Tone) {
    let outcome = entry["outcome"].as_str().unwrap_or_default();
    let tone = match outcome {
        "ok" => Tone::Good,
        "cancelled" => Tone::Waiting,
        _ => Tone::Bad,
    };
    match entry["code"].as_str() {
        Some(code) if code != outcome => (format!("{outcome} ({code})"), tone),
        Some(_) | None => (outcome.to_owned(), tone),
    }
}

fn what(entry: &Value) -> String {
    let what = &entry["what"];
    let word = |key: &str| what[key].as_str().unwrap_or_default();
    let server = word("server");
    match word("kind") {
        "call" => format!("{server} · {} {}", word("tool"), arguments(what)),
        "read" => format!("{server} · read {}", word("uri")),
        "prompt" => format!("{server} · prompt {} {}", word("name"), arguments(what)),
        "question" => match word("asks") {
            "change" => format!("{server} · asked you whether it may be changed"),
            asks => format!("{server} · asked you for a {asks}"),
        },
        "sign_in" => format!("{server} · sign-in"),
        "sign_out" => format!("{server} · sign-out"),
        "review" => match word("of") {
            "rule" => format!("{server} · rule made: {}", word("subject")),
            "rule_changed" => format!("{server} · rule changed: {}", word("subject")),
            "rule_withdrawn" => format!("{server} · rule withdrawn: {}", word("subject")),
            of => format!("{server} · review of {of} {}", word("subject")),
        },
        "change" => format!("{server} · {} {}", word("change").replace('_', " "), word("subject")),
        "lost" => format!("{} entries came too fast to be kept", what["entries"]),
        other => other.to_owned(),
    }
}

fn arguments(what: &Value) -> String {
    match &what["arguments"]["value"] {
        Value::Object(members) if members.is_empty() => String::new(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_entry_reads_as_a_line_without_tricks() {
        let entry = |what: Value| {
            json!({
                "id": 1, "at": 1_793_709_296_007_u64, "who": {"kind": "walk_in", "program_name": "py\u{1b}[2Jthon"},
                "outcome": "failed", "code": "tool_error", "duration_ms": 3, "what": what,
            })
        };
        let call = entry(json!({
            "kind": "call", "server": "files", "tool": "wri\u{1b}[31mte",
            "arguments": {"kept": "shape", "value": {"path": "text(3)"}},
        }));
        let line = line(Screen::Plain, &call);
        assert!(!line.contains('\u{1b}'), "{line:?}");
        assert!(
            line.starts_with("2026-11-03 12:34:56  failed (tool_error)  py"),
            "{line}"
        );
        assert!(line.ends_with("{\"path\":\"text(3)\"}"), "{line}");
        for (what, wanted) in [
            (
                json!({"kind": "read", "server": "a", "uri": "file:///x"}),
                "a · read file:///x",
            ),
            (json!({"kind": "sign_in", "server": "a"}), "a · sign-in"),
            (
                json!({"kind": "review", "server": "a", "of": "rule", "subject": "x may use y of A."}),
                "a · rule made: x may use y of A.",
            ),
            (
                json!({"kind": "change", "server": "a", "change": "tool_turned_off", "subject": "x"}),
                "a · tool turned off x",
            ),
            (
                json!({"kind": "lost", "entries": 5}),
                "5 entries came too fast to be kept",
            ),
        ] {
            assert_eq!(super::what(&entry(what)), wanted);
        }
    }

    #[test]
    fn an_empty_list_says_so() {
        assert_eq!(text(Screen::Plain, &[]), "Nothing that fits has happened.");
    }
}
