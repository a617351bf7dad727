//! `status`: the bridge and its connectors at a glance.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::{Context, Output, words::spoken};
use crate::{
    client::{Client, Wanted, hint},
    exit::Failure,
    screen::{Cell, Long, Screen, Tone},
};

pub(super) async fn run(context: &Context) -> Result<(), Failure> {
    let client = context.client()?;
    let body = client.get("/mcp/servers").await?.ok()?;
    let notes = match context.output {
        Output::Json => Vec::new(),
        Output::Text => notes(&client, &body).await,
    };
    context.show(&body, || text(context.screen, &client, &body, &notes));
    Ok(())
}

/// Each connector's note beside others: what all of them wait for is told once, above them.
pub(super) async fn notes(client: &Client, body: &Value) -> Vec<String> {
    let mut notes = Vec::new();
    for server in body["servers"].as_array().into_iter().flatten() {
        notes.push(if waits_for_keychain(server) {
            "waits for the keychain".to_owned()
        } else {
            note(server, client.wanted_by(server).await.as_ref())
        });
    }
    notes
}

fn waits_for_keychain(server: &Value) -> bool {
    server["status"] == "keychain_unavailable"
}

fn text(screen: Screen, client: &Client, body: &Value, notes: &[String]) -> String {
    let running = &client.running;
    let place = match running.port {
        Some(port) => format!("on 127.0.0.1:{port}"),
        None => "without its port".to_owned(),
    };
    let mut out = format!(
        "Neuron Connect {} {place} (process {}, {})\n\n",
        running.version,
        running.pid,
        client.home.display()
    );
    if let Some(why) = port_trouble(body) {
        out.push_str(&format!("{why}\n\n"));
    }
    if let Some(why) = keychain_trouble(body) {
        out.push_str(&format!("{why}\n\n"));
    }
    let servers = body["servers"].as_array().map_or(&[][..], Vec::as_slice);
    if servers.is_empty() {
        out.push_str("No connectors yet: add one with \"neuron-connectd add\".\n");
    } else {
        let rows: Vec<_> = servers.iter().zip(notes).map(row).collect();
        out.push_str(&screen.table(&["ID", "STATUS", "TOOLS", "NAME", "NOTE"], &rows, Long::Wrap));
    }
    for notice in notices(body) {
        out.push_str(&format!("\n{notice}\n"));
    }
    out
}

fn row((server, note): (&Value, &String)) -> Vec<Cell> {
    let id = server["id"].as_str().unwrap_or_default();
    let status = server["status"].as_str().unwrap_or_default();
    let tone = tone(status);
    vec![
        Cell::plain(id),
        Cell::new(tone, status),
        Cell::plain(server["tools"].to_string()),
        Cell::plain(server["name"].as_str().unwrap_or(id)),
        Cell::new(if tone == Tone::Bad { Tone::Normal } else { Tone::Dim }, note),
    ]
}

/// Why a connector is as it is and what to do, in one line; empty where all is well. `wanted` is what it waits for to be
/// entered.
pub(super) fn note(server: &Value, wanted: Option<&Wanted>) -> String {
    let note = standing(server, wanted);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match attempt(server, now) {
        Some(attempt) if note.is_empty() => attempt,
        Some(attempt) => format!("{attempt} · {note}"),
        None => note,
    }
}

/// Waits from here on are told in minutes, as the window does.
const LONGEST_IN_SECONDS: u128 = 100;

/// The attempt that is scheduled next. `now` since 1970.
fn attempt(server: &Value, now: Duration) -> Option<String> {
    let retry = &server["connection"]["retry"];
    let at = Duration::from_millis(retry["next_attempt_at"].as_u64()?);
    let when = match at.saturating_sub(now).as_millis().div_ceil(1000) {
        0 => "now".to_owned(),
        left if left < LONGEST_IN_SECONDS => format!("in {left} s"),
        left => format!("in {} min", left.div_ceil(60)),
    };
    Some(format!("attempt {} of {}, {when}", retry["number"], retry["max"]))
}

fn standing(server: &Value, wanted: Option<&Wanted>) -> String {
    let said = ["error", "progress"].iter().find_map(|key| server[*key].as_str());
    let said = said.map(spoken);
    let hint = server["action"]
        .as_str()
        .and_then(|action| hint(action, server["id"].as_str(), wanted));
    match (said, hint) {
        (Some(said), Some(hint)) => format!("{said} ({hint})"),
        (Some(said), None) => said,
        (None, Some(hint)) => hint,
        (None, None) => String::new(),
    }
}

/// Why assistants cannot reach the bridge, where that is so.
pub(super) fn port_trouble(body: &Value) -> Option<String> {
    body["api"]["message"].as_str().map(crate::screen::harmless)
}

/// Why secrets cannot be had, where that is so. Beside the window, which has its own mends, a connector tells it.
pub(super) fn keychain_trouble(body: &Value) -> Option<String> {
    let told = body["keychain"]["message"].as_str().map(spoken);
    let servers = || body["servers"].as_array().into_iter().flatten();
    let told = told.or_else(|| {
        let waits = servers().find(|server| waits_for_keychain(server))?;
        waits["error"].as_str().map(str::to_owned)
    });
    told.as_deref().map(crate::screen::harmless)
}

/// The remarks about `connectors.json` that the bridge has, each with its place.
pub(super) fn notices(body: &Value) -> Vec<String> {
    let notices = body["notices"].as_array().map_or(&[][..], Vec::as_slice);
    notices
        .iter()
        .filter_map(|notice| {
            let message = crate::screen::harmless(notice["message"].as_str()?);
            Some(match (notice["line"].as_u64(), notice["column"].as_u64()) {
                (Some(line), Some(column)) => format!("connectors.json, line {line}, column {column}: {message}"),
                (Some(line), None) => format!("connectors.json, line {line}: {message}"),
                _ => format!("connectors.json: {message}"),
            })
        })
        .collect()
}

/// A state's colour; words that are newer than this program are shown plainly.
pub(super) fn tone(status: &str) -> Tone {
    match status {
        "connected" => Tone::Good,
        "connecting" | "retrying" | "needs_sign_in" | "needs_secret" | "needs_review" | "keychain_unavailable" => {
            Tone::Waiting
        }
        "error" | "invalid" => Tone::Bad,
        "disabled" | "paused" | "sleeping" => Tone::Dim,
        _ => Tone::Normal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_note_says_why_and_what_to_do() {
        let server = json!({"id": "x", "error": "It failed.", "action": "reconnect"});
        assert_eq!(
            note(&server, None),
            "It failed. (try again: neuron-connectd reconnect x)"
        );
        assert_eq!(note(&json!({"id": "x"}), None), "");
    }

    #[test]
    fn a_connector_that_is_tried_again_shows_which_attempt_and_when() {
        let retry = json!({"number": 3, "max": 5, "next_attempt_at": 107_001});
        let server = json!({"id": "x", "error": "It failed.", "connection": {"retry": retry}});
        for (now, shown) in [
            (100_000, "attempt 3 of 5, in 8 s"),
            (8_001, "attempt 3 of 5, in 99 s"),
            (7_001, "attempt 3 of 5, in 2 min"),
            (107_001, "attempt 3 of 5, now"),
            (200_000, "attempt 3 of 5, now"),
        ] {
            assert_eq!(attempt(&server, Duration::from_millis(now)).unwrap(), shown);
        }
        assert_eq!(note(&server, None), "attempt 3 of 5, now · It failed.");
        assert_eq!(attempt(&json!({"connection": {"retry": null}}), Duration::ZERO), None);
        let connecting = json!({"id": "x", "progress": "Still installing…", "connection": {"retry": null}});
        assert_eq!(note(&connecting, None), "Still installing…");
    }

    #[test]
    fn a_port_that_another_program_holds_is_told() {
        let body =
            json!({"api": {"state": "port_taken", "port": 7771, "message": "Port 7771 is in use by x (process 7)."}});
        assert_eq!(port_trouble(&body).unwrap(), "Port 7771 is in use by x (process 7).");
        assert_eq!(
            port_trouble(&json!({"api": {"state": "listening", "port": 7771}})),
            None
        );
        assert_eq!(port_trouble(&json!({})), None);
    }

    #[test]
    fn a_keychain_that_gives_nothing_is_told() {
        let keychain = json!({"kept_in": "keychain", "state": "locked", "message": "The keychain is locked."});
        let body = json!({ "keychain": keychain });
        assert_eq!(keychain_trouble(&body).unwrap(), "The keychain is locked.");
        assert_eq!(keychain_trouble(&json!({"keychain": {"state": "ready"}})), None);
        let waits = json!({"status": "keychain_unavailable", "error": "It is locked."});
        assert_eq!(keychain_trouble(&json!({"servers": [waits]})).unwrap(), "It is locked.");
    }

    #[test]
    fn remarks_about_the_file_name_their_place() {
        let body = json!({"notices": [{"message": "Odd.", "line": 3, "column": 7}, {"message": "Gone."}]});
        assert_eq!(
            notices(&body),
            ["connectors.json, line 3, column 7: Odd.", "connectors.json: Gone."]
        );
    }
}
