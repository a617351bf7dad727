//! Who is let in at all, on every path, whatever lies behind it.

use std::{os::unix::process::CommandExt, process::Command};

use neuron_tests::{
    daemon::Daemon,
    home::Home,
    http::{Answer, raw},
    process::may_become_another_user,
    program,
    wait::{SOON, eventually},
};
use serde_json::json;

/// Every route there is, and paths that lead nowhere.
const PATHS: [(&str, &str); 29] = [
    ("GET", "/healthz"),
    ("GET", "/mcp/tools"),
    ("POST", "/mcp/call"),
    ("GET", "/mcp/results/x"),
    ("GET", "/mcp/servers"),
    ("GET", "/mcp/servers/filesystem"),
    ("GET", "/mcp/servers/filesystem/log"),
    ("GET", "/mcp/auto-approved"),
    ("POST", "/mcp/servers/add"),
    ("POST", "/mcp/servers/toggle"),
    ("POST", "/mcp/servers/auto-approve"),
    ("POST", "/mcp/servers/remove"),
    ("POST", "/mcp/servers/reconnect"),
    ("POST", "/mcp/servers/stop-trying"),
    ("POST", "/mcp/servers/secret"),
    ("POST", "/mcp/servers/forget-secret"),
    ("POST", "/mcp/keychain"),
    ("GET", "/mcp/events"),
    ("GET", "/mcp/activity"),
    ("GET", "/mcp/approvals"),
    ("GET", "/mcp/approvals/x"),
    ("POST", "/mcp/approvals/x"),
    ("POST", "/mcp/oauth/start"),
    ("POST", "/mcp/oauth/cancel"),
    ("POST", "/mcp/oauth/sign-out"),
    ("GET", "/"),
    ("GET", "/nothing/here"),
    ("POST", "/nothing/here"),
    ("GET", "/mcp"),
];

/// One head that must be refused everywhere.
struct Refused {
    what: &'static str,
    /// `{port}` stands for the port.
    head: &'static str,
    status: u16,
    code: &'static str,
}

const REFUSED: [Refused; 18] = [
    refused(
        "a host that only starts like ours",
        "Host: localhost.evil.example:{port}",
        403,
        "host_not_allowed",
    ),
    refused(
        "a host that only ends like ours",
        "Host: evil.localhost:{port}",
        403,
        "host_not_allowed",
    ),
    refused("every address", "Host: 0.0.0.0:{port}", 403, "host_not_allowed"),
    refused("a closing dot", "Host: localhost.:{port}", 403, "host_not_allowed"),
    refused("another port", "Host: 127.0.0.1:1", 403, "host_not_allowed"),
    refused(
        "our port with a nought before",
        "Host: 127.0.0.1:0{port}",
        403,
        "host_not_allowed",
    ),
    refused(
        "another loopback address",
        "Host: 127.0.0.2:{port}",
        403,
        "host_not_allowed",
    ),
    refused(
        "a name and our host behind",
        "Host: x@127.0.0.1:{port}",
        403,
        "host_not_allowed",
    ),
    refused("no host", "Accept: */*", 400, "bad_request"),
    refused(
        "two hosts",
        "Host: 127.0.0.1:{port}\r\nHost: 127.0.0.1:{port}",
        400,
        "bad_request",
    ),
    refused(
        "an origin",
        "Host: 127.0.0.1:{port}\r\nOrigin: https://evil.example",
        403,
        "origin_not_allowed",
    ),
    refused(
        "our own address as origin",
        "Host: localhost\r\nOrigin: http://localhost:{port}",
        403,
        "origin_not_allowed",
    ),
    refused(
        "the null origin",
        "Host: 127.0.0.1:{port}\r\nOrigin: null",
        403,
        "origin_not_allowed",
    ),
    refused(
        "an empty origin",
        "Host: 127.0.0.1:{port}\r\nOrigin: ",
        403,
        "origin_not_allowed",
    ),
    refused(
        "two origins",
        "Host: 127.0.0.1\r\nOrigin: null\r\nOrigin: null",
        403,
        "origin_not_allowed",
    ),
    refused(
        "a cross-site page",
        "Host: 127.0.0.1:{port}\r\nSec-Fetch-Site: cross-site",
        403,
        "origin_not_allowed",
    ),
    refused(
        "a same-site page",
        "Host: 127.0.0.1:{port}\r\nSec-Fetch-Site: same-site",
        403,
        "origin_not_allowed",
    ),
    refused(
        "a browser navigation from afar",
        "Host: localhost\r\nSec-Fetch-Site: CROSS-SITE",
        403,
        "origin_not_allowed",
    ),
];

const fn refused(what: &'static str, head: &'static str, status: u16, code: &'static str) -> Refused {
    Refused {
        what,
        head,
        status,
        code,
    }
}

fn send(bridge: &Daemon, method: &str, target: &str, head: &str) -> Answer {
    let head = head.replace("{port}", &bridge.port.to_string());
    let body = if method == "POST" {
        "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    } else {
        "Connection: close\r\n\r\n"
    };
    let answer = raw(
        &bridge.tcp(),
        format!("{method} {target} HTTP/1.1\r\n{head}\r\n{body}").as_bytes(),
    );
    for name in answer.headers.keys() {
        assert!(
            !name.as_str().starts_with("access-control-"),
            "{method} {target}: {name}"
        );
    }
    answer
}

#[test]
fn a_foreign_head_is_refused_on_every_path_before_anything_else() {
    let bridge = Daemon::start(None);
    for (method, path) in PATHS {
        for case in &REFUSED {
            let answer = send(&bridge, method, path, case.head);
            assert_eq!(
                answer.status,
                case.status,
                "{}: {method} {path}: {}",
                case.what,
                answer.text()
            );
            answer.refused(case.status, case.code);
        }
        let absolute = send(
            &bridge,
            method,
            &format!("http://127.0.0.1:{}{path}", bridge.port),
            "Host: 127.0.0.1:{port}",
        );
        absolute.refused(400, "bad_request");
    }
}

#[test]
fn our_own_names_pass_with_and_without_the_port() {
    let bridge = Daemon::start(None);
    for host in [
        "127.0.0.1:{port}",
        "localhost:{port}",
        "[::1]:{port}",
        "127.0.0.1",
        "localhost",
        "[::1]",
        "LOCALHOST",
    ] {
        for more in [
            "",
            "\r\nSec-Fetch-Site: none",
            "\r\nSec-Fetch-Site: same-origin",
            "\r\nSec-Fetch-Mode: cors",
        ] {
            let answer = send(&bridge, "GET", "/mcp/tools", &format!("Host: {host}{more}"));
            assert_eq!(answer.status, 200, "{host}{more}: {}", answer.text());
        }
    }
}

#[test]
fn a_preflight_is_refused_on_every_path() {
    let bridge = Daemon::start(None);
    for (_, path) in PATHS {
        send(&bridge, "OPTIONS", path, "Host: 127.0.0.1:{port}").refused(405, "method_not_allowed");
    }
}

#[test]
fn a_post_that_is_not_plain_json_is_refused_on_every_path() {
    let bridge = Daemon::start(None);
    for (method, path) in PATHS {
        if method != "POST" {
            continue;
        }
        for kind in [
            "Content-Type: text/plain\r\n",
            "Content-Type: application/x-www-form-urlencoded\r\n",
            "Content-Type: application/json; charset=utf-16\r\n",
            "Content-Type: application/jsonx\r\n",
            "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
            "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
            "",
        ] {
            let text = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: 2\r\nConnection: close\r\n\r\n{{}}"
            );
            raw(&bridge.tcp(), text.as_bytes()).refused(415, "unsupported_media_type");
        }
    }
}

#[test]
fn a_body_over_the_limit_is_refused_and_the_sender_hears_why() {
    let bridge = Daemon::start(None);
    let input = "x".repeat(2 * 1024 * 1024);
    let body = json!({"name": "mcp__filesystem__list_directory", "input": {"path": input}}).to_string();
    let head = "Host: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let declared = format!(
        "POST /mcp/call HTTP/1.1\r\n{head}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    raw(&bridge.tcp(), declared.as_bytes()).refused(413, "too_large");
    let chunked = format!(
        "POST /mcp/call HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    raw(&bridge.tcp(), chunked.as_bytes()).refused(413, "too_large");

    let text = "x".repeat(65 * 1024);
    let add = json!({"id": "a", "url": "http://127.0.0.1:9/mcp", "description": text});
    bridge.owner_post("/mcp/servers/add", &add).refused(413, "too_large");
}

#[test]
fn a_body_with_unknown_repeated_or_mistyped_members_is_refused_with_the_place() {
    let bridge = Daemon::start(None);
    let tool = r#""name":"mcp__filesystem__list_directory""#;
    for (body, named) in [
        (format!("{{{tool},\"input\":{{}},\"confirm\":true}}"), "confirm"),
        (format!("{{{tool},{tool},\"input\":{{}}}}"), "name"),
        (
            format!("{{{tool},\"input\":{{\"a\":{{\"deep\":[{{\"twice\":1,\"twice\":2}}]}}}}}}"),
            "twice",
        ),
        (format!("{{{tool},\"input\":[]}}"), "input"),
        (format!("{{{tool},\"input\":\"{{}}\"}}"), "input"),
        (format!("{{{tool},\"timeout_ms\":\"1\"}}"), "timeout_ms"),
        (format!("{{{tool},\"timeout_ms\":0}}"), "timeout_ms"),
        (format!("{{{tool},\"timeout_ms\":3600001}}"), "timeout_ms"),
        ("{\"input\":{}}".to_owned(), "name"),
        ("{\"name\":7}".to_owned(), "name"),
    ] {
        let message = bridge.post_text("/mcp/call", &body).refused(400, "bad_request");
        assert!(message.contains(named), "{body}: {message}");
    }
    for body in [
        "[]",
        "null",
        "",
        "{",
        "{}{}",
        "\u{feff}{}",
        "{\"name\":\"a\",}",
        &"[".repeat(100_000),
    ] {
        bridge.post_text("/mcp/call", body);
        let answer = neuron_tests::http::Connection::open(&bridge.tcp()).send(
            "POST",
            "/mcp/call",
            &[("content-type", "application/json")],
            body.as_bytes(),
        );
        answer.refused(400, "bad_request");
    }
    let not_text = b"{\"name\":\"\xff\"}";
    let mut connection = neuron_tests::http::Connection::open(&bridge.tcp());
    connection
        .send("POST", "/mcp/call", &[], not_text)
        .refused(400, "bad_request");
    assert_eq!(bridge.children(), [0_u32; 0], "a refused call starts nothing");
}

#[test]
fn unknown_query_parameters_are_refused() {
    let bridge = Daemon::start(None);
    for path in [
        "/mcp/tools?colour=red",
        "/mcp/tools?limit=many",
        "/mcp/tools?format=yaml",
        "/mcp/tools?server=a&server=b",
    ] {
        bridge.get(path).refused(400, "bad_request");
    }
}

#[test]
fn broken_requests_end_in_a_refusal_and_leave_the_bridge_well() {
    let bridge = Daemon::start(None);
    let endless = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(64 * 1024)
    );
    for bytes in [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".as_slice(),
        b"GET  /healthz\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /mcp/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
        endless.as_bytes(),
    ] {
        let answer = raw(&bridge.tcp(), bytes);
        assert!((400..500).contains(&answer.status), "{} for {:?}", answer.status, String::from_utf8_lossy(bytes));
    }
    assert_eq!(bridge.get("/healthz").ok(), json!({"ok": true}));
}

#[test]
fn another_user_of_this_computer_is_refused_at_both_doors() {
    if !may_become_another_user() {
        return;
    }
    let bridge = Daemon::start(None);
    let nobody = |arguments: &[&str]| {
        Command::new(program::system("curl"))
            .args(["--silent", "--include", "--max-time", "10"])
            .args(arguments)
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap()
    };
    for (_, path) in PATHS.iter().filter(|(method, _)| *method == "GET") {
        let answer = nobody(&[&format!("http://127.0.0.1:{}{path}", bridge.port)]);
        let text = String::from_utf8(answer.stdout).unwrap();
        assert!(text.starts_with("HTTP/1.1 403 "), "{path}: {text}");
        assert!(text.contains("\"peer_not_owner\""), "{path}: {text}");
    }
    let socket = bridge.socket.display().to_string();
    let answer = nobody(&["--unix-socket", &socket, "http://localhost/healthz"]);
    assert!(!answer.status.success(), "the socket's folder is closed to others");
    assert_eq!(bridge.get("/healthz").status, 200, "the owner is still let in");
}

#[test]
fn a_connector_s_own_program_is_not_the_owner_at_the_local_socket() {
    let home = Home::new();
    let (socket, told) = (home.neuron().join("connect/bridge.sock"), home.path().join("told"));
    let add = r#"curl --silent --unix-socket "$1" -H 'content-type: application/json' -d '{"id":"evil","command":"true"}' http://localhost/mcp/servers/add"#;
    // Also a program that left its session and environment behind.
    let script = format!(r#"while [ ! -S "$1" ]; do :; done; {add}; env -i setsid sh -c "$0" "$0" "$1""#);
    let script = format!("({script}) > \"$2.new\"; mv \"$2.new\" \"$2\"");
    let entry = json!({"command": "/bin/sh", "args": ["-c", script, add, socket, told], "start": "at-launch"});
    let bridge = Daemon::serving(home, [("bad", entry)]);
    let told = eventually("the program has asked", SOON, || std::fs::read_to_string(&told).ok());
    assert_eq!(told.matches("\"peer_not_owner\"").count(), 2, "{told}");
    assert!(bridge.server("evil").is_none());
    assert!(bridge.server("bad").is_some(), "the owner is let in");
}

#[test]
fn files_and_folders_are_closed_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let bridge = Daemon::start(None);
    bridge.call_text("mcp__filesystem__list_directory", &json!({"path": "."}));
    bridge
        .owner_post("/mcp/servers/toggle", &json!({"id": "filesystem", "enabled": false}))
        .ok();
    let mut folders = vec![bridge.home.neuron()];
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(
                mode & 0o077,
                0,
                "{} is open to others: {mode:o}",
                entry.path().display()
            );
            looked_at += 1;
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    assert!(looked_at > 5, "config, lock, api.json, database, logs");
}
