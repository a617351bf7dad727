//! `doctor`: what is wrong on this computer and with each connector, and what to do about it.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use neuron_bridge::bridge::DEFAULT_PORT;
use serde_json::{Value, json};

use super::{Context, Output, status};
use crate::{
    client::{Client, Running},
    exit::{Exit, Failure},
    screen::{self, Cell, Long, Tone},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fine,
    /// Works, but should be known.
    Remark,
    Wrong,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    verdict: Verdict,
    about: String,
    /// What was found and, where something is wrong, what to do.
    says: String,
}

pub(super) async fn run(context: &Context) -> Result<(), Failure> {
    let mut findings = vec![home(&context.home), config_file(&context.home)];
    let bridge = look_at_bridge(context, &mut findings).await;
    match context.output {
        Output::Json => screen::print_json(&json!({ "ok": !any_wrong(&findings), "findings": as_json(&findings) })),
        Output::Text => screen::print(
            &context
                .screen
                .table(&["", "WHAT", "FOUND"], &as_rows(&findings), Long::Wrap),
        ),
    }
    match bridge {
        Err(exit) => Err(Failure::silent(exit)),
        Ok(()) if any_wrong(&findings) => Err(Failure::silent(Exit::Failed)),
        Ok(()) => Ok(()),
    }
}

/// The findings that need a running bridge; `Err` with the exit code where there is none.
async fn look_at_bridge(context: &Context, findings: &mut Vec<Finding>) -> Result<(), Exit> {
    let client = match Client::find(&context.home) {
        Ok(client) => client,
        Err(failure) => {
            findings.push(wrong("bridge", failure.message));
            findings.extend(port_without_bridge());
            return Err(failure.exit);
        }
    };
    let running = client.running.clone();
    let body = match client.get("/mcp/servers").await.and_then(crate::client::Answer::ok) {
        Ok(body) => body,
        Err(failure) => {
            findings.push(wrong("bridge", failure.message));
            if failure.exit == Exit::NoBridge {
                findings.extend(port_without_bridge());
            }
            return Err(failure.exit);
        }
    };
    findings.push(fine(
        "bridge",
        format!("version {}, process {}", running.version, running.pid),
    ));
    findings.push(port(&running, &body));
    findings.push(keychain(&body));
    findings.extend(status::notices(&body).into_iter().map(|text| Finding {
        verdict: Verdict::Remark,
        about: "configuration".to_owned(),
        says: text,
    }));
    let servers = body["servers"].as_array().map_or(&[][..], Vec::as_slice);
    let notes = status::notes(&client, &body).await;
    findings.extend(servers.iter().zip(&notes).map(|(server, note)| connector(server, note)));
    Ok(())
}

fn port(running: &Running, body: &Value) -> Finding {
    match running.port {
        Some(port) if somebody_listens(port) => fine("port", format!("listens on 127.0.0.1:{port}")),
        Some(port) => wrong(
            "port",
            format!("nothing answers on 127.0.0.1:{port}: assistants cannot reach the bridge. Restart it."),
        ),
        None => wrong(
            "port",
            status::port_trouble(body).unwrap_or_else(|| {
                "another program holds it: end that one, or restart the bridge with --port".to_owned()
            }),
        ),
    }
}

fn keychain(body: &Value) -> Finding {
    let kept_in = match body["keychain"]["kept_in"].as_str() {
        Some("file") => "secrets are kept in an encrypted file",
        Some("memory") => "secrets are kept until the bridge stops",
        _ => "secrets are kept in the keychain of this session",
    };
    match status::keychain_trouble(body) {
        Some(why) => wrong("keychain", why),
        None => fine("keychain", kept_in.to_owned()),
    }
}

fn connector(server: &Value, note: &str) -> Finding {
    let id = server["id"].as_str().unwrap_or_default();
    let state = server["status"].as_str().unwrap_or_default();
    let verdict = match status::tone(state) {
        Tone::Good | Tone::Dim => Verdict::Fine,
        Tone::Waiting if matches!(state, "connecting" | "retrying") => Verdict::Remark,
        Tone::Waiting | Tone::Bad => Verdict::Wrong,
        Tone::Normal | Tone::Title => Verdict::Remark,
    };
    let says = match (verdict, note) {
        (Verdict::Fine, _) if state == "disabled" => "disabled".to_owned(),
        (Verdict::Fine, _) => format!("{state}, {} tools", server["tools"]),
        (_, "") => state.to_owned(),
        (_, note) => format!("{state}: {note}"),
    };
    Finding {
        verdict,
        about: id.to_owned(),
        says,
    }
}

fn home(home: &Path) -> Finding {
    let metadata = match fs::metadata(home) {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return remark("home", format!("{} does not exist yet; serve makes it", home.display()));
        }
        Err(e) => return wrong("home", format!("{} cannot be read: {e}", home.display())),
    };
    if !metadata.is_dir() {
        return wrong("home", format!("{} is no folder: move it away", home.display()));
    }
    let connect = home.join("connect");
    not_private(home, 0o022)
        .or_else(|| not_private(&connect, 0o077))
        .map_or_else(|| fine("home", home.display().to_string()), |why| wrong("home", why))
}

fn config_file(home: &Path) -> Finding {
    let path = home.join("connectors.json");
    match fs::read(&path) {
        Ok(_) => not_private(&path, 0o002).map_or_else(
            || fine("connectors.json", "readable".to_owned()),
            |why| wrong("connectors.json", why),
        ),
        Err(e) if e.kind() == io::ErrorKind::NotFound => fine(
            "connectors.json",
            "not there, so the built-in files connector stands in".to_owned(),
        ),
        Err(e) => wrong(
            "connectors.json",
            format!("cannot be read: {e}. Correct the permissions of {}", path.display()),
        ),
    }
}

/// Whose file it is and who else may do what; `None` where all is well or nothing is there.
#[cfg(unix)]
fn not_private(path: &Path, forbidden: u32) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path).ok()?;
    let shown = path.display();
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Some(format!("{shown} belongs to another user: it must be yours"));
    }
    let mode = metadata.mode() & 0o777;
    (mode & forbidden != 0).then(|| {
        format!(
            "{shown} can be used by others (mode {mode:03o}): chmod {:03o} {shown}",
            mode & !forbidden
        )
    })
}

#[cfg(not(unix))]
fn not_private(_path: &Path, _forbidden: u32) -> Option<String> {
    None
}

/// Only worth a word when somebody else has the port.
fn port_without_bridge() -> Option<Finding> {
    let port = std::env::var("NEURON_CONNECTD_PORT").ok().and_then(|p| p.parse().ok());
    let port = port.unwrap_or(DEFAULT_PORT);
    somebody_listens(port).then(|| {
        wrong(
            "port",
            format!("127.0.0.1:{port} is held by another program: end that one, or serve with --port"),
        )
    })
}

fn somebody_listens(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

fn any_wrong(findings: &[Finding]) -> bool {
    findings.iter().any(|f| f.verdict == Verdict::Wrong)
}

fn as_rows(findings: &[Finding]) -> Vec<Vec<Cell>> {
    findings
        .iter()
        .map(|finding| {
            let (tone, word) = match finding.verdict {
                Verdict::Fine => (Tone::Good, "ok"),
                Verdict::Remark => (Tone::Waiting, "note"),
                Verdict::Wrong => (Tone::Bad, "wrong"),
            };
            vec![
                Cell::new(tone, word),
                Cell::plain(&finding.about),
                Cell::plain(&finding.says),
            ]
        })
        .collect()
}

fn as_json(findings: &[Finding]) -> Vec<Value> {
    findings
        .iter()
        .map(|finding| {
            let verdict = match finding.verdict {
                Verdict::Fine => "ok",
                Verdict::Remark => "note",
                Verdict::Wrong => "wrong",
            };
            json!({ "verdict": verdict, "about": finding.about, "found": finding.says })
        })
        .collect()
}

fn fine(about: &str, says: String) -> Finding {
    finding(Verdict::Fine, about, says)
}

fn remark(about: &str, says: String) -> Finding {
    finding(Verdict::Remark, about, says)
}

fn wrong(about: &str, says: String) -> Finding {
    finding(Verdict::Wrong, about, says)
}

fn finding(verdict: Verdict, about: &str, says: String) -> Finding {
    Finding {
        verdict,
        about: about.to_owned(),
        says,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connector_that_needs_something_is_wrong_and_says_what_to_do() {
        let server = json!({
            "id": "x", "status": "error", "tools": 0, "error": "\"npx\" was not found.", "action": "reconnect",
        });
        let found = connector(&server, &status::note(&server, None));
        assert_eq!(found.verdict, Verdict::Wrong);
        assert!(
            found.says.contains("npx") && found.says.contains("reconnect x"),
            "{}",
            found.says
        );
        for (status, verdict) in [
            ("connected", Verdict::Fine),
            ("sleeping", Verdict::Fine),
            ("disabled", Verdict::Fine),
            ("connecting", Verdict::Remark),
            ("needs_secret", Verdict::Wrong),
            ("invalid", Verdict::Wrong),
            ("a-later-state", Verdict::Remark),
        ] {
            let server = json!({"id": "x", "status": status, "tools": 1});
            assert_eq!(connector(&server, "").verdict, verdict, "{status}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn files_that_others_may_change_are_named_with_the_command_that_mends_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("connectors.json");
        assert_eq!(config_file(dir.path()).verdict, Verdict::Fine);
        fs::write(&file, "{}").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        let found = config_file(dir.path());
        assert_eq!(found.verdict, Verdict::Wrong);
        assert!(found.says.contains("chmod 664"), "{}", found.says);
        let connect = dir.path().join("connect");
        fs::create_dir(&connect).unwrap();
        fs::set_permissions(&connect, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(home(dir.path()).says.contains("chmod 700"));
    }
}
