//! Who is let in at all, on every route there is, over real sockets and by real programs. The routes come from the
//! library itself, so that none is forgotten.

#![expect(clippy::unwrap_used, reason = "a test and its harness report by panicking")]

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use neuron_tests::{
    daemon::{Daemon, command_line},
    home::Home,
    http::raw,
    process::may_become_another_user,
    program,
    wait::{SOON, eventually},
};
use serde_json::json;

const CALLBACK: &str = "/mcp/oauth/callback";

/// Every route with a name that exists, and paths that lead nowhere.
fn targets() -> Vec<(String, String)> {
    let mut all: Vec<_> = neuron_bridge::http::served()
        .into_iter()
        .map(|(method, path)| (method.to_string(), path.replace("{id}", "filesystem")))
        .collect();
    assert!(all.len() > 25, "the routes were not found");
    for path in ["/", "/no/such/path", "/mcp", "/mcp/call/"] {
        all.push(("GET".into(), path.into()));
        all.push(("POST".into(), path.into()));
    }
    all
}

/// A body that would do something on most routes.
const BODY: &str = r#"{"id":"filesystem","enabled":false,"name":"mcp__filesystem__list_directory","command":"true"}"#;

/// What must not change: the files of the home, and what the owner sees.
#[derive(Debug, PartialEq)]
struct State {
    files: BTreeMap<PathBuf, Vec<u8>>,
    servers: Vec<String>,
    approvals: serde_json::Value,
}

impl State {
    fn of(bridge: &Daemon) -> Self {
        let servers = bridge.owner_get("/mcp/servers").ok();
        let servers = servers["servers"].as_array().unwrap();
        let mut files = BTreeMap::new();
        for name in ["connectors.json", "connect/settings.json"] {
            let path = bridge.home.neuron().join(name);
            files.insert(path.clone(), fs::read(path).unwrap_or_default());
        }
        Self {
            files,
            servers: servers
                .iter()
                .map(|row| format!("{} {}", row["id"], row["enabled"]))
                .collect(),
            approvals: bridge.owner_get("/mcp/approvals").ok(),
        }
    }
}

/// A request that is fine but for these lines, which replace the good ones of their names.
fn request(method: &str, path: &str, lines: &[&str], port: u16) -> String {
    let length = format!("Content-Length: {}", BODY.len());
    let mut good = vec!["Host: localhost", "Connection: close"];
    if method == "POST" {
        good.extend(["Content-Type: application/json", &length]);
    }
    let name = |line: &str| line.split(':').next().unwrap_or_default().to_lowercase();
    good.retain(|line| lines.iter().all(|bad| name(bad) != name(line)));
    let sent: Vec<_> = good
        .iter()
        .chain(lines)
        .map(|line| line.replace("{port}", &port.to_string()))
        .collect();
    let body = if method == "POST" { BODY } else { "" };
    format!("{method} {path} HTTP/1.1\r\n{}\r\n\r\n{body}", sent.join("\r\n"))
}

const WRONG_TOKEN: &str = "Authorization: Bearer ncb_a1_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN-_0";

#[test]
fn every_route_refuses_every_bad_head_and_does_nothing() {
    let bridge = Daemon::start(None);
    let before = State::of(&bridge);
    let refused: &[(&[&str], u16, &str)] = &[
        (&["Host: evil.example"], 403, "host_not_allowed"),
        (&["Host: 127.0.0.1.nip.io:{port}"], 403, "host_not_allowed"),
        (&["Host: 0.0.0.0:{port}"], 403, "host_not_allowed"),
        (&["Host: localhost.:{port}"], 403, "host_not_allowed"),
        (&["Host: 127.0.0.1:1"], 403, "host_not_allowed"),
        (&["Host: "], 400, "bad_request"),
        (&["Host: localhost", "Host: localhost"], 400, "bad_request"),
        (&["Origin: https://evil.example"], 403, "origin_not_allowed"),
        (&["Origin: null"], 403, "origin_not_allowed"),
        (&["Origin: http://localhost:{port}"], 403, "origin_not_allowed"),
        (&["Sec-Fetch-Site: cross-site"], 403, "origin_not_allowed"),
        (&["Sec-Fetch-Site: same-site"], 403, "origin_not_allowed"),
        (&["Content-Encoding: gzip"], 415, "unsupported_media_type"),
        (&["Content-Length: 2097152"], 413, "too_large"),
        (&["Expect: 100-continue"], 400, "bad_request"),
    ];
    let for_post: &[(&[&str], u16, &str)] = &[
        (&["Content-Type: text/plain"], 415, "unsupported_media_type"),
        (
            &["Content-Type: text/plain;application/json"],
            415,
            "unsupported_media_type",
        ),
        (
            &["Content-Type: application/x-www-form-urlencoded"],
            415,
            "unsupported_media_type",
        ),
        (
            &["Content-Type: application/json; charset=utf-7"],
            415,
            "unsupported_media_type",
        ),
        (
            &["Content-Type: application/json", "Content-Type: text/plain"],
            415,
            "unsupported_media_type",
        ),
    ];
    for (method, path) in targets() {
        let more = if method == "POST" { for_post } else { &[] };
        for (lines, status, code) in refused.iter().chain(more) {
            if *code == "origin_not_allowed" && (method.as_str(), path.as_str()) == ("GET", CALLBACK) {
                continue;
            }
            let answer = raw(&bridge.tcp(), request(&method, &path, lines, bridge.port).as_bytes());
            assert_eq!(answer.status, *status, "{method} {path} {lines:?}: {}", answer.text());
            answer.refused(*status, code);
            assert!(
                answer
                    .headers
                    .keys()
                    .all(|name| !name.as_str().starts_with("access-control-"))
            );
        }
    }
    assert_eq!(State::of(&bridge), before);
    assert_eq!(bridge.children(), [0_u32; 0]);
}

#[test]
fn a_wrong_token_is_refused_on_every_route_at_both_doors_also_where_none_is_needed() {
    // A bridge each for a few routes: more wrong tokens in a minute are only put off.
    for some in targets().chunks(9) {
        let bridge = Daemon::start(None);
        let before = State::of(&bridge);
        for (method, path) in some {
            for door in [bridge.tcp(), bridge.local()] {
                let bytes = request(method, path, &[WRONG_TOKEN], bridge.port);
                let answer = raw(&door, bytes.as_bytes());
                if (method.as_str(), path.as_str()) == ("GET", CALLBACK) {
                    assert_eq!(answer.status, 400, "a browser brings no token: {}", answer.text());
                } else {
                    assert_eq!(answer.status, 401, "{method} {path}: {}", answer.text());
                    answer.refused(401, "unauthorized");
                    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
                }
            }
        }
        assert_eq!(State::of(&bridge), before);
        assert_eq!(bridge.children(), [0_u32; 0]);
    }
}

#[test]
fn a_flood_of_wrong_tokens_is_put_off_and_nobody_else_is() {
    let bridge = Daemon::start(None);
    let mut seen = BTreeMap::new();
    for _ in 0..100 {
        let answer = raw(
            &bridge.tcp(),
            request("GET", "/mcp/tools", &[WRONG_TOKEN], bridge.port).as_bytes(),
        );
        *seen.entry(answer.status).or_insert(0) += 1;
        if answer.status == 429 {
            answer.refused(429, "rate_limited");
            let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=60).contains(&wait), "{wait}");
        }
    }
    assert_eq!(seen, BTreeMap::from([(401, 20), (429, 80)]));
    assert_eq!(bridge.get("/mcp/tools").status, 200);
}

#[test]
fn another_user_of_this_computer_is_refused_on_every_route_at_both_doors() {
    if !may_become_another_user() {
        return;
    }
    let bridge = Daemon::start(None);
    let before = State::of(&bridge);
    let nobody = |arguments: &[&str]| {
        let output = Command::new(program::system("curl"))
            .args(["--silent", "--include", "--max-time", "10", "--noproxy", "*"])
            .args(arguments)
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let json = "Content-Type: application/json";
    for (method, path) in targets() {
        let url = format!("http://127.0.0.1:{}{path}", bridge.port);
        let mut arguments = vec!["--path-as-is", "--request", method.as_str(), url.as_str()];
        if method == "POST" {
            arguments.extend(["--header", json, "--data", BODY]);
        }
        let text = nobody(&arguments);
        assert!(text.starts_with("HTTP/1.1 403 "), "{method} {path}: {text}");
        assert!(text.contains("\"peer_not_owner\""), "{method} {path}: {text}");
    }
    let socket = bridge.socket.display().to_string();
    assert_eq!(
        nobody(&["--unix-socket", &socket, "http://localhost/healthz"]),
        "",
        "its folder is closed to others"
    );
    assert_eq!(State::of(&bridge), before);
    assert_eq!(bridge.get("/healthz").status, 200, "the owner is still let in");
}

/// Asks every route of a file through both doors, each by a program of its own: `<status> <method> <path>` a line.
/// Words: port, socket, file of routes, body, file for what was heard.
const ASK_ALL: &str = r#"{ while read -r method path; do
  for door in tcp socket; do
    case $door in tcp) way="--noproxy x";; socket) way="--unix-socket $2";; esac
    [ "$method" = POST ] && data="$4" || data=
    curl --silent --output /dev/null --max-time 20 --write-out "%{http_code} $method $path\n" $way --path-as-is \
      -X "$method" -H 'content-type: application/json' ${data:+-d "$data"} "http://127.0.0.1:$1$path"
  done
done < "$3"; } > "$5.new"; mv "$5.new" "$5""#;

/// Ways to run `sh -c "$@"` of a program that wants to look like somebody else's.
const WAYS: [(&str, &str); 7] = [
    ("direct", r#"sh -c "$@""#),
    ("setsid", r#"setsid --wait sh -c "$@""#),
    ("no-environment", r#"env -i PATH="$PATH" setsid --wait sh -c "$@""#),
    ("double-fork", r#"(setsid sh -c "$@" & exit) & wait"#),
    (
        "python",
        r#"python3 -c 'import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        subprocess.run(["sh", "-c", *sys.argv[1:]])' "$@""#,
    ),
    (
        "all-of-it",
        r#"python3 -c 'import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sh", ["sh", "-c", *sys.argv[1:]], {"PATH": os.environ["PATH"]})' "$@""#,
    ),
    (
        "node",
        r#"node -e 'require("child_process").spawn("sh", ["-c", ...process.argv.slice(1)], {detached: true, stdio: "ignore"}).unref()' -- "$@""#,
    ),
];

/// A hundred programs, one after the other, on a busy computer.
const ASKED_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);

/// A folder in which programs are told what to ask and tell what they heard.
struct Asking(tempfile::TempDir);

impl Asking {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// The arguments for `sh`, which waits for the port and asks in this way.
    fn arguments(&self, (name, way): (&str, &str), socket: &Path, targets: &[(String, String)]) -> Vec<String> {
        let routes = self.file(&format!("{name}.routes"));
        let lines: Vec<_> = targets
            .iter()
            .map(|(method, path)| format!("{method} {path}\n"))
            .collect();
        fs::write(&routes, lines.concat()).unwrap();
        let wait = r#"while [ ! -s "$2" ]; do sleep 0.05; done; set -- "$1" sh "$(cat "$2")" "$3" "$4" "$5" "$6"; "#;
        let script = format!("{wait}{way}");
        let socket = socket.display().to_string();
        let words = [
            &script,
            "sh",
            ASK_ALL,
            &self.file("port"),
            &socket,
            &routes,
            BODY,
            &self.file(name),
        ];
        std::iter::once("-c").chain(words).map(str::to_owned).collect()
    }

    /// Lets them begin.
    fn tell_port(&self, port: u16) {
        fs::write(self.file("port.new"), port.to_string()).unwrap();
        fs::rename(self.file("port.new"), self.file("port")).unwrap();
    }

    fn heard(&self, name: &str) -> String {
        eventually(&format!("{name} has asked"), ASKED_WITHIN, || {
            fs::read_to_string(self.file(name)).ok()
        })
    }
}

#[test]
fn a_connector_s_own_program_is_refused_on_every_route_at_both_doors_however_it_hides() {
    let (asking, home) = (Asking::new(), Home::new());
    let socket = home.neuron().join("connect/bridge.sock");
    // Every route is asked once; how a program hides has nothing to do with what it asks for.
    let some: Vec<_> = targets()
        .into_iter()
        .filter(|(_, path)| ["/healthz", "/mcp/tools", "/mcp/servers/toggle", "/no/such/path"].contains(&path.as_str()))
        .collect();
    let asked = |name: &str| if name == "direct" { targets() } else { some.clone() };
    let connectors: Vec<_> = WAYS
        .iter()
        .map(|way| {
            let args = asking.arguments(*way, &socket, &asked(way.0));
            // Not ended while it asks.
            let timeouts = json!({"connectMs": 120_000});
            (
                way.0,
                json!({"command": "sh", "args": args, "start": "at-launch", "timeouts": timeouts}),
            )
        })
        .collect();
    let bridge = Daemon::serving(home, connectors);
    let before = State::of(&bridge);
    asking.tell_port(bridge.port);
    for (name, _) in WAYS {
        let heard = asking.heard(name);
        assert_eq!(heard.lines().count(), asked(name).len() * 2, "{name}: {heard}");
        let let_in: Vec<_> = heard.lines().filter(|line| !line.starts_with("403 ")).collect();
        assert_eq!(let_in, [""; 0], "{name}");
    }
    assert_eq!(State::of(&bridge), before);

    // The very same programs of the person's own come in, also while connectors run.
    let asking = Asking::new();
    asking.tell_port(bridge.port);
    let reading = ["/healthz", "/mcp/tools"].map(|path| ("GET".to_owned(), path.to_owned()));
    for way in WAYS {
        let args = asking.arguments(way, &socket, &reading);
        assert!(Command::new("sh").args(args).status().unwrap().success());
        let heard = asking.heard(way.0);
        assert_eq!(
            heard.lines().filter(|line| line.starts_with("200 ")).count(),
            4,
            "{}: {heard}",
            way.0
        );
    }
}

#[test]
fn what_a_connector_left_running_is_refused_after_the_connector_has_ended() {
    let (asking, home) = (Asking::new(), Home::new());
    let socket = home.neuron().join("connect/bridge.sock");
    let [_, wait, ..] = &asking.arguments(("left", r#"sh -c "$@""#), &socket, &targets())[..] else {
        unreachable!()
    };
    let mut args = asking.arguments(("left", ""), &socket, &targets());
    // It goes on by itself, and only what it started waits for the port.
    args.splice(
        0..2,
        [
            "-c".to_owned(),
            r#"setsid sh -c "$@" </dev/null >/dev/null 2>&1 & exit 0"#.to_owned(),
            "sh".to_owned(),
            wait.clone(),
        ],
    );
    let entry = json!({"command": "sh", "args": args, "start": "at-launch"});
    let bridge = Daemon::serving(home, [("left", entry)]);
    let ended = |row: &serde_json::Value| row["status"] == "error" || row["status"] == "retrying";
    eventually("the connector has ended", SOON, || bridge.server("left").filter(ended));
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "left", "enabled": false}))
        .ok();
    let before = State::of(&bridge);
    asking.tell_port(bridge.port);
    let heard = asking.heard("left");
    let let_in: Vec<_> = heard.lines().filter(|line| !line.starts_with("403 ")).collect();
    assert_eq!(let_in, [""; 0]);
    assert_eq!(State::of(&bridge), before);
}

#[test]
fn the_command_line_tells_nothing_to_another_user_who_listens_where_the_bridge_did() {
    if !may_become_another_user() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    // As after a restart of the computer, where a folder of the system for everybody is empty.
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let (socket, heard) = (place.path().join("bridge.sock"), place.path().join("heard"));
    let listen = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen()\n\
                  c, _ = s.accept()\nopen(sys.argv[2], 'wb').write(c.recv(65536))";
    let mut impostor = Command::new("python3")
        .args(["-c", listen])
        .args([&socket, &heard])
        .uid(65534)
        .gid(65534)
        .spawn()
        .unwrap();
    eventually("somebody listens", SOON, || socket.exists().then_some(()));
    let home = Home::new();
    fs::create_dir_all(home.neuron().join("connect")).unwrap();
    let said = json!({"port": 1, "pid": impostor.id(), "version": "1", "socket": socket});
    fs::write(home.neuron().join("connect/api.json"), said.to_string()).unwrap();
    let mut set = command_line(&home, &["secret", "set", "aa"]);
    let mut set = set.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    set.stdin.take().unwrap().write_all(b"SENTINEL").unwrap();
    let output = set.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("another user"), "{output:?}");
    assert!(impostor.wait().unwrap().success());
    assert_eq!(fs::read(&heard).unwrap(), b"");
}

#[test]
fn usual_clients_get_in_without_a_header_of_ours() {
    let bridge = Daemon::start(None);
    for name in ["127.0.0.1", "localhost"] {
        let base = format!("http://{name}:{}", bridge.port);
        let body = r#"{"name":"mcp__filesystem__list_allowed_directories"}"#;
        let python = format!(
            "import urllib.request as u\nprint(u.urlopen('{base}/mcp/tools').status)\nr = u.Request('{base}/mcp/call', data=b'{body}', headers={{'Content-Type': 'application/json'}})\nprint(u.urlopen(r).status)"
        );
        let node = format!(
            "const t = await fetch('{base}/mcp/tools'); console.log(t.status); const c = await fetch('{base}/mcp/call', {{method: 'POST', body: '{body}', headers: {{'content-type': 'application/json'}}}}); console.log(c.status)"
        );
        let curl = format!(
            "curl -s -o /dev/null -w '%{{http_code}}\\n' --noproxy '*' {base}/mcp/tools; curl -s -o /dev/null -w '%{{http_code}}\\n' --noproxy '*' --json '{body}' {base}/mcp/call"
        );
        for (program, arguments) in [
            ("curl", ["sh", "-c", curl.as_str()].to_vec()),
            ("Python's urllib", ["python3", "-c", &python].to_vec()),
            ("Node's fetch", ["node", "--input-type=module", "-e", &node].to_vec()),
        ] {
            let output = Command::new(arguments[0]).args(&arguments[1..]).output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(
                told,
                "200\n200\n",
                "{program}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            assert_eq!(
                client.get(format!("{base}/mcp/tools")).send().await.unwrap().status(),
                200
            );
            let call: serde_json::Value = serde_json::from_str(body).unwrap();
            let answer = client
                .post(format!("{base}/mcp/call"))
                .json(&call)
                .send()
                .await
                .unwrap();
            assert_eq!(answer.status(), 200);
        });
    }
}
