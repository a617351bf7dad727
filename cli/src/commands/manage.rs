//! `remove`, `enable`, `disable`, `reconnect`, `stop-trying`: one connector, one change.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Context, status};
use crate::{
    client::Wanted,
    exit::{Exit, Failure},
    screen::harmless,
};

/// A package runner may download for five minutes before its program answers.
const ONE_ATTEMPT: Duration = Duration::from_secs(6 * 60);

pub(super) async fn remove(context: &Context, id: &str) -> Result<(), Failure> {
    let body = json!({ "id": id }).to_string();
    let answer = context.client()?.post("/mcp/servers/remove", body).await?.ok()?;
    context.show(&answer, || format!("Removed {id}."));
    Ok(())
}

pub(super) async fn toggle(context: &Context, id: &str, enabled: bool) -> Result<(), Failure> {
    let body = json!({ "id": id, "enabled": enabled }).to_string();
    let answer = context.client()?.post("/mcp/servers/toggle", body).await?.ok()?;
    context.show(&answer, || {
        format!("{id} is {} now.", if enabled { "on" } else { "off" })
    });
    Ok(())
}

pub(super) async fn reconnect(context: &Context, id: &str) -> Result<(), Failure> {
    let body = json!({ "id": id }).to_string();
    let client = context.client()?;
    let answer = client
        .post_slowly("/mcp/servers/reconnect", body, ONE_ATTEMPT)
        .await?
        .ok()?;
    let server = &answer["server"];
    if answer["verified"] == true {
        context.show(&answer, || {
            format!("{id} is connected, with {} tools.", server["tools"])
        });
        return Ok(());
    }
    let needs_you = matches!(
        server["status"].as_str(),
        Some("needs_secret" | "needs_sign_in" | "needs_review" | "keychain_unavailable")
    );
    let status = server["status"].as_str().unwrap_or("not connected");
    let note = status::note(server, client.wanted_by(server).await.as_ref());
    Err(Failure {
        exit: if needs_you { Exit::NeedsYou } else { Exit::Failed },
        message: harmless(format!("{id} could not be connected ({status}). {note}").trim_end()),
        body: answer,
    })
}

pub(super) async fn stop_trying(context: &Context, id: &str) -> Result<(), Failure> {
    let body = json!({ "id": id }).to_string();
    let client = context.client()?;
    let answer = client.post("/mcp/servers/stop-trying", body).await?.ok()?;
    let wanted = client.wanted_by(&answer["server"]).await;
    context.show(&answer, || harmless(&stopped(id, &answer, wanted.as_ref())));
    Ok(())
}

/// What became of it: there may have been nothing to stop.
fn stopped(id: &str, answer: &Value, wanted: Option<&Wanted>) -> String {
    let server = &answer["server"];
    let note = status::note(server, wanted);
    let told = if answer["stopped"] == true {
        format!("Stopped trying to connect {id}. {note}")
    } else {
        let standing = match server["status"].as_str() {
            Some("error") => "not working",
            Some("needs_sign_in") => "waiting for a sign-in",
            Some("needs_secret") => "waiting for a key",
            Some("keychain_unavailable") => "waiting for the keychain",
            Some("invalid") => "set aside for a mistake in its entry",
            Some(status) => status,
            None => "not known here",
        };
        format!("Nothing was being tried: {id} is {standing}. {note}")
    };
    told.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_attempts_that_were_ended_are_told_as_stopped() {
        let answer =
            |stopped: bool, status: &str| json!({"ok": true, "stopped": stopped, "server": {"status": status}});
        assert_eq!(
            stopped("x", &answer(true, "error"), None),
            "Stopped trying to connect x."
        );
        for (status, told) in [
            ("error", "Nothing was being tried: x is not working."),
            ("needs_sign_in", "Nothing was being tried: x is waiting for a sign-in."),
            ("connected", "Nothing was being tried: x is connected."),
        ] {
            assert_eq!(stopped("x", &answer(false, status), None), told);
        }
    }
}
