//! Every kind of secret, through its whole life, at servers that repeat whatever they are sent: nothing of it is readable
//! outside the encrypted file, at the finest log level.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    thread::JoinHandle,
};

use neuron_tests::{
    authority::Authority,
    daemon::{Daemon, Setup},
    fake::Fake,
    home::{Home, config_text},
    http::{Address, Connection, Event},
    signing_in::SignIn,
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

/// With what every value begins that a person enters here.
const SENTINEL: &str = "SENTINEL";

/// Made for this test; it opens nothing.
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgaaLCx6be1Kzoffq2
pWgm/q5/03TTH0cazb6amtwhItyhRANCAAQKmca3j4N4+gzw1hSoWr7gEk9wQ3Cg
W33d4L+JAnf/+Or9C30PrARxDA6RBx0eve3XgAvm0ylyBYTpdbHEkWpF
-----END PRIVATE KEY-----
";

/// With what the fake's access tokens begin.
const ACCESS_TOKEN: &str = "at.ey";

const TOOLS: [&str; 7] = [
    "echo",
    "fails",
    "refuses",
    "refuses-at-length",
    "broken",
    "crashes",
    "numbers",
];

/// Where secrets are kept encrypted, and nobody looks for others; keys and records lie in another folder.
fn in_a_file(elsewhere: &Home) -> Setup {
    let key = elsewhere.path().join("key");
    fs::write(&key, "k".repeat(64)).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    Setup::default()
        .argument("--secrets")
        .argument("file")
        .variable("NEURON_SECRETS_KEY_FILE", &key.display().to_string())
        .variable("NEURON_LOG", "trace")
}

fn set(bridge: &Daemon, id: &str, name: Option<&str>, secret: &str) {
    let body = json!({"id": id, "name": name, "secret": secret});
    bridge.owner_post("/mcp/servers/secret", &body).ok();
}

/// Everything secret that an authority was sent.
fn secrets_sent_to(authority: &Authority) -> BTreeSet<String> {
    let mut secrets = BTreeSet::new();
    for request in authority.requests() {
        for member in [
            "code",
            "code_verifier",
            "refresh_token",
            "client_secret",
            "client_assertion",
            "token",
        ] {
            secrets.extend(request["body"][member].as_str().map(ToOwned::to_owned));
        }
        let carried = request["authorization"].as_str().unwrap_or_default();
        secrets.extend(carried.split_once(' ').map(|(_, value)| value.to_owned()));
    }
    secrets
}

/// What can be read of a bridge.
struct Reader {
    said: RefCell<Vec<String>>,
    /// Read as they come: who does not keep up is no longer told.
    events: Vec<JoinHandle<Vec<String>>>,
}

/// The connector that is turned off last; nothing else turns one off.
fn is_last(event: &Event) -> bool {
    event.name == "server_status" && event.data["status"] == "disabled"
}

impl Reader {
    fn new(bridge: &Daemon) -> Self {
        let read = |address: Address| {
            let mut events = Connection::open(&address).events("/mcp/events", &[]);
            std::thread::spawn(move || {
                let mut said = Vec::new();
                loop {
                    let event = events.next("the end of the connector", |_| true);
                    said.push(format!("{} {}", event.name, event.data));
                    if is_last(&event) {
                        return said;
                    }
                }
            })
        };
        Self {
            said: RefCell::default(),
            events: vec![read(bridge.local()), read(bridge.tcp())],
        }
    }

    fn hears(&self, text: String) {
        self.said.borrow_mut().push(text);
    }

    /// Uses everything of a connector, and reads what is shown of it to its owner and to a walk-in.
    fn uses(&self, bridge: &Daemon, id: &str) {
        for tool in TOOLS {
            let name = format!("mcp__{id}__{tool}");
            for at in 0..if tool == "refuses-at-length" { 20 } else { 1 } {
                self.hears(bridge.call(&name, &json!({"at": at})).text());
            }
        }
        let resources = bridge.owner_get(&format!("/mcp/resources?server={id}"));
        self.hears(resources.text());
        let read = json!({"server": id, "uri": resources.json()["resources"][0]["uri"]});
        self.hears(bridge.owner_post("/mcp/resources/read", &read).text());
        self.hears(
            bridge
                .owner_post("/mcp/prompts/get", &json!({"server": id, "name": "x"}))
                .text(),
        );
        self.reads(bridge, id);
    }

    fn reads(&self, bridge: &Daemon, id: &str) {
        for path in [
            "/mcp/tools?format=mcp",
            "/mcp/tools",
            "/mcp/servers",
            "/mcp/resources",
            "/mcp/prompts",
            "/mcp/approvals",
            "/mcp/activity?limit=500",
            "/mcp/activity?format=csv",
            &format!("/mcp/servers/{id}"),
            &format!("/mcp/servers/{id}/log"),
        ] {
            self.hears(bridge.get(path).text());
            self.hears(bridge.owner_get(path).text());
        }
    }

    /// All that was said, with all events so far; turns this connector off, of which the last one tells.
    fn all(self, bridge: &Daemon, id: &str) -> Vec<String> {
        let off = json!({"id": id, "enabled": false});
        bridge.owner_post("/mcp/servers/toggle", &off).ok();
        let events = self.events.into_iter().flat_map(|events| events.join().unwrap());
        self.said.into_inner().into_iter().chain(events).collect()
    }
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match fs::symlink_metadata(&path) {
            Ok(about) if about.is_dir() => files_below(&path, found),
            Ok(about) if about.is_file() => found.push(path),
            Ok(_) | Err(_) => {}
        }
    }
}

/// # Panics
/// When one of the secrets is in one of the texts or files, in full or, where they begin alike, in part.
fn assert_none_is_told(secrets: &BTreeSet<String>, said: &[String], home: &Home) {
    let mut files = Vec::new();
    files_below(home.path(), &mut files);
    let kept = home.neuron().join("connect/secrets.bin");
    assert!(fs::metadata(&kept).unwrap().len() > 100);
    files.retain(|path| *path != kept);
    assert!(files.iter().any(|path| path.ends_with("state.db")), "{files:?}");
    let mut texts: Vec<(String, String)> = files
        .iter()
        .map(|path| {
            (
                path.display().to_string(),
                String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned(),
            )
        })
        .collect();
    texts.extend(said.iter().map(|text| ("what was said".to_owned(), text.clone())));
    let beginnings = [&SENTINEL[..4], ACCESS_TOKEN].map(ToOwned::to_owned);
    for secret in secrets.iter().chain(&beginnings) {
        for (place, text) in &texts {
            if let Some(at) = text.find(secret.as_str()) {
                let around =
                    &text[text.floor_char_boundary(at.saturating_sub(200))..text.floor_char_boundary(at + 200)];
                panic!("{secret} is in {place}: {around}");
            }
        }
    }
}

/// Gives up a token before the fake forgets it, so that each second has a renewal.
const SHORT_LIFE: (&str, &str) = ("lifetime", "2");

#[test]
fn no_secret_of_any_kind_is_readable_anywhere_at_the_finest_log_level() {
    let (home, elsewhere) = (Home::new(), Home::new());
    let start = |name: &str, options: &[(&str, &str)]| {
        let repeats = [("repeats", "everything")];
        Authority::start(elsewhere.path(), name, &[options, &repeats].concat())
    };
    let open = start("open", &[("open", "true")]);
    let remote = start("remote", &[("auth-methods", "client_secret_basic"), SHORT_LIFE]);
    let registered = start(
        "registered",
        &[
            ("auth-methods", "client_secret_post"),
            ("client-id", "app"),
            ("client-secret", "SENTINEL/of the+client"),
        ],
    );
    let robot = start(
        "robot",
        &[("auth-methods", "private_key_jwt"), ("client-id", "robot"), SHORT_LIFE],
    );
    let with = |authority: &Authority, members: Value| {
        let mut entry = authority.entry();
        for (name, value) in members.as_object().unwrap() {
            entry[name] = value.clone();
        }
        entry
    };
    let address = format!("{}?key=${{secret:IN_ADDRESS}}", open.url());
    let program = Fake::new("ok")
        .record(&elsewhere.record("program"))
        .option("list", "saying")
        .option("say", "${secret:IN_ARGUMENT}")
        .member("env", json!({"KEY": "${secret:IN_ENVIRONMENT}"}));
    let crash = Fake::new("crash")
        .record(&elsewhere.record("crash"))
        .option("say", "${secret:CRASH}")
        .member("env", json!({"A": "${secret:CRASH}"}));
    let client = json!({"clientId": "app", "clientSecret": "${secret:CLIENT}", "issuer": registered.base()});
    let own = json!({
        "clientId": "robot", "clientAuth": "private_key_jwt", "privateKey": "${secret:PRIVATE}", "algorithm": "ES256",
        "grant": "client_credentials", "issuer": robot.base(),
    });
    home.write_config(&config_text([
        ("token", with(&open, json!({"auth": "token"}))),
        (
            "header",
            with(&open, json!({"headers": {"X-Key": "${secret:IN_HEADER}"}})),
        ),
        ("address", with(&open, json!({"url": address}))),
        ("program", program.entry()),
        ("crash", crash.entry()),
        ("remote", remote.entry()),
        ("registered", with(&registered, json!({"oauth": client}))),
        ("robot", with(&robot, json!({"oauth": own}))),
    ]));
    let bridge = Daemon::start_in(home, in_a_file(&elsewhere));
    let reader = Reader::new(&bridge);

    set(&bridge, "token", None, "SENTINEL-of-the-token");
    set(&bridge, "header", Some("IN_HEADER"), "SENTINEL \\\"of\" the/header");
    set(&bridge, "address", Some("IN_ADDRESS"), "SENTINEL-of/the address+\u{e4}");
    set(&bridge, "program", Some("IN_ARGUMENT"), "SENTINEL-of-the-argument");
    set(
        &bridge,
        "program",
        Some("IN_ENVIRONMENT"),
        "SENTINEL-of-the\nenvironment",
    );
    set(&bridge, "crash", Some("CRASH"), "SENTINEL-of-the-crash");
    set(&bridge, "registered", Some("CLIENT"), "SENTINEL/of the+client");
    set(&bridge, "robot", Some("PRIVATE"), KEY);
    for id in ["token", "header", "address", "robot"] {
        bridge.wait_for_status(id, "connected");
        reader.uses(&bridge, id);
    }
    bridge.wait_for_status("program", "connected");
    for tool in ["env", "argv"] {
        reader.hears(bridge.call(&format!("mcp__program__{tool}"), &json!({})).text());
    }
    bridge.wait_for_status("crash", "retrying");
    for id in ["program", "crash"] {
        reader.reads(&bridge, id);
    }

    let at_registered = SignIn {
        bridge,
        authority: registered,
    };
    at_registered.sign_in("registered");
    reader.uses(&at_registered.bridge, "registered");
    let (bridge, registered) = (at_registered.bridge, at_registered.authority);

    let here = SignIn {
        bridge,
        authority: remote,
    };
    // Not signed in, for a server that tells what it was sent.
    here.authority.set(&[("token-fails", "repeats")]);
    let page = here.come_back(&here.authority.follow(&here.begin("remote")));
    reader.hears(page.text());
    reader.reads(&here.bridge, "remote");
    here.authority.set(&[("token-fails", "no")]);
    reader.hears(here.sign_in("remote").to_string());
    reader.uses(&here.bridge, "remote");
    let before = here.authority.count("refreshed");
    eventually("two renewals", SOON, || {
        reader.uses(&here.bridge, "remote");
        (here.authority.count("refreshed") > before + 1).then_some(())
    });
    here.authority
        .set(&[("token-fails", "repeats"), ("token-fails-for", "refresh")]);
    eventually("a renewal that is refused", SOON, || {
        reader.uses(&here.bridge, "remote");
        (here.bridge.status("remote") != "connected").then_some(())
    });
    reader.reads(&here.bridge, "remote");
    here.authority.set(&[("token-fails", "no"), ("lifetime", "3600")]);
    here.sign_in("remote");
    reader.uses(&here.bridge, "remote");
    let answer = here.bridge.owner_post("/mcp/oauth/sign-out", &json!({"id": "remote"}));
    reader.hears(answer.text());
    here.bridge.wait_for_status("remote", "needs_sign_in");
    for id in ["remote", "registered", "robot", "token"] {
        reader.reads(&here.bridge, id);
    }

    let mut secrets: BTreeSet<String> = [&open, &here.authority, &registered, &robot]
        .into_iter()
        .flat_map(secrets_sent_to)
        .collect();
    for kind in [
        "SENTINEL-of-the-token",
        "SENTINEL/of the+client",
        "code-1-of-the-authority",
        "rt-1-of-the-authority",
    ] {
        assert!(secrets.contains(kind), "{kind}: {secrets:?}");
    }
    let tokens = secrets.iter().filter(|secret| secret.starts_with(ACCESS_TOKEN));
    assert!(tokens.count() > 3, "{secrets:?}");
    secrets.extend(KEY.lines().filter(|line| !line.starts_with('-')).map(ToOwned::to_owned));
    let said = reader.all(&here.bridge, "token");
    for name in [
        "token",
        "sign-in",
        "IN_HEADER",
        "IN_ADDRESS",
        "IN_ARGUMENT",
        "IN_ENVIRONMENT",
    ] {
        let mark = format!("[REDACTED:secret:{name}]");
        assert!(
            said.iter().any(|text| text.contains(&mark)),
            "no server repeated {name}"
        );
    }
    let home = here.bridge.terminate();
    assert_none_is_told(&secrets, &said, &home);
}

#[test]
fn a_server_that_names_a_secret_as_its_protocol_revision_is_not_connected_and_not_repeated() {
    let (home, elsewhere) = (Home::new(), Home::new());
    let options = [("open", "true"), ("repeats", "protocol")];
    let server = Authority::start(elsewhere.path(), "server", &options);
    let mut entry = server.entry();
    entry["auth"] = json!("token");
    home.write_config(&config_text([("token", entry)]));
    let bridge = Daemon::start_in(home, in_a_file(&elsewhere));
    let reader = Reader::new(&bridge);
    set(&bridge, "token", None, "SENTINEL-of-the-token");
    let row = eventually("a refused greeting", SOON, || {
        bridge
            .server("token")
            .filter(|row| row["error"].to_string().contains("revision"))
    });
    assert_eq!(row["connection"]["protocol"], Value::Null, "{row}");
    let error = row["error"].as_str().unwrap();
    assert!(
        error.contains("names a revision of the protocol that is no date"),
        "{error}"
    );
    assert_ne!(bridge.status("token"), "connected");
    reader.reads(&bridge, "token");
    let said = reader.all(&bridge, "token");
    let home = bridge.terminate();
    assert_none_is_told(&BTreeSet::from(["SENTINEL-of-the-token".to_owned()]), &said, &home);
}
