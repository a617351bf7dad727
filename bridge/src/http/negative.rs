//! Everything that must be refused, on every route of the table and on paths that do not exist, over a real socket.

use axum::routing::MethodFilter;
use serde_json::json;

use super::{
    fake::{FakeApi, PRIVATE, Reply, Running, get, post},
    gate::CALLBACK_PATH,
    routes::Routes,
};

/// Method and a concrete path of every route, and some of none.
fn targets() -> Vec<(&'static str, String)> {
    let mut all: Vec<_> = Routes::<FakeApi>::TABLE
        .iter()
        .map(|route| {
            let method = match route.method {
                MethodFilter::POST => "POST",
                MethodFilter::DELETE => "DELETE",
                _ => "GET",
            };
            (method, route.path.replace("{id}", "files"))
        })
        .collect();
    for path in [
        "/",
        "/no/such/path",
        "/mcp/call/",
        "/mcp/../healthz",
        "/mcp/oauth/callback/x",
    ] {
        all.push(("GET", path.to_owned()));
        all.push(("POST", path.to_owned()));
    }
    all
}

/// A request that is fine but for `headers`, which replace the good ones of their names.
fn request(method: &str, path: &str, headers: &[&str], body: &str) -> String {
    let mut out = format!("{method} {path} HTTP/1.1\r\n");
    let length = format!("Content-Length: {}", body.len());
    let mut good = vec!["Host: localhost"];
    if method == "POST" {
        good.extend(["Content-Type: application/json", &length]);
    }
    let name = |line: &str| line.split(':').next().unwrap_or_default().to_lowercase();
    good.retain(|line| headers.iter().all(|bad| name(bad) != name(line)));
    // "Name:-" = without that header at all.
    let sent = headers.iter().filter(|line| !line.ends_with(":-"));
    for line in good.iter().chain(sent) {
        out.push_str(line);
        out.push_str("\r\n");
    }
    format!("{out}\r\n{body}")
}

#[tokio::test]
async fn every_route_refuses_what_the_gate_refuses_and_does_nothing() {
    let server = Running::start().await;
    let body = r#"{"id":"files","enabled":true,"name":"read"}"#;
    let cases: &[(&[&str], u16, &str)] = &[
        (&["Host: evil.example"], 403, "host_not_allowed"),
        (&["Host: localhost:1"], 403, "host_not_allowed"),
        (&["Host: localhost", "Host: localhost"], 400, "bad_request"),
        (&["Host:"], 400, "bad_request"),
        (&["Host:-"], 400, "bad_request"),
        (&["Origin: https://evil.example"], 403, "origin_not_allowed"),
        (&["Origin: null"], 403, "origin_not_allowed"),
        (
            &["Origin: http://localhost", "Origin: http://localhost"],
            403,
            "origin_not_allowed",
        ),
        (&["Sec-Fetch-Site: cross-site"], 403, "origin_not_allowed"),
        (&["Sec-Fetch-Site: same-site"], 403, "origin_not_allowed"),
        (&["Content-Encoding: gzip"], 415, "unsupported_media_type"),
        (&["Expect: 100-continue"], 400, "bad_request"),
        (&["Content-Length: 2097152"], 413, "too_large"),
        (&["Content-Length: 2", "Transfer-Encoding: chunked"], 400, "bad_request"),
        (&["Transfer-Encoding: chunked", "Content-Length: 2"], 400, "bad_request"),
    ];
    let for_post: &[(&[&str], u16, &str)] = &[
        (&["Content-Type: text/plain"], 415, "unsupported_media_type"),
        (
            &["Content-Type: text/plain;application/json"],
            415,
            "unsupported_media_type",
        ),
        (
            &["Content-Type: application/json; charset=utf-7"],
            415,
            "unsupported_media_type",
        ),
        (
            &["Content-Type: application/x-www-form-urlencoded"],
            415,
            "unsupported_media_type",
        ),
        (&["Content-Type:-"], 415, "unsupported_media_type"),
    ];
    for (method, path) in targets() {
        let more = if method == "POST" { for_post } else { &[] };
        for (headers, status, code) in cases.iter().chain(more) {
            // A browser comes back from another site.
            if *code == "origin_not_allowed" && (method, path.as_str()) == ("GET", CALLBACK_PATH) {
                continue;
            }
            let reply = server.ask(request(method, &path, headers, body)).await;
            assert_eq!(
                (reply.status, reply.refusal().as_str()),
                (*status, *code),
                "{method} {path} {headers:?}"
            );
        }
        let absolute = server
            .ask(request(method, &format!("http://localhost{path}"), &[], body))
            .await;
        assert_eq!(
            (absolute.status, absolute.refusal().as_str()),
            (400, "bad_request"),
            "{method} {path}"
        );
        let preflight = server.ask(request("OPTIONS", &path, &[], "")).await;
        assert_eq!(
            (preflight.status, preflight.refusal().as_str()),
            (405, "method_not_allowed"),
            "{path}"
        );
        assert!(preflight.head.contains("allow: "), "{preflight:?}");
    }
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_while_it_is_still_coming_and_before_it_ended() {
    let server = Running::start().await;
    for (method, path) in targets().into_iter().filter(|(method, _)| *method == "POST") {
        let head = request(method, &path, &["Transfer-Encoding: chunked", "Content-Length:-"], "");
        let two_mebibytes = format!("{head}200000\r\n{}\r\n", " ".repeat(0x20_0000));
        let reply = server.ask(two_mebibytes).await;
        assert_eq!((reply.status, reply.refusal().as_str()), (413, "too_large"), "{path}");
    }
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn bodies_that_are_no_single_json_object_are_refused_on_every_post() {
    let server = Running::start().await;
    let mut local = Vec::new();
    for route in Routes::<FakeApi>::TABLE
        .iter()
        .filter(|route| route.method == MethodFilter::POST)
    {
        for body in [
            "",
            "[]",
            r#"["open"]"#,
            "{",
            "\u{feff}{}",
            "{}{}",
            r#"{"id":"a","id":"a"}"#,
            r#"{"name":"a","name":"a"}"#,
            r#"{"id":1}"#,
            r#"{"id":"files","x":{"a":1,"a":2}}"#,
        ] {
            let bytes = post(route.path, body);
            let mut stream = server.connect_local().await;
            tokio::io::AsyncWriteExt::write_all(&mut stream, bytes.as_bytes())
                .await
                .unwrap();
            let reply = Reply::read(&mut stream).await;
            assert_eq!(
                (reply.status, reply.refusal().as_str()),
                (400, "bad_request"),
                "{} {body}",
                route.path
            );
            local.push(reply.status);
        }
    }
    assert!(!local.is_empty());
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn paths_that_do_not_exist_and_methods_that_do_not_fit_are_said_so() {
    let server = Running::start().await;
    for path in [
        "/",
        "/healthz/",
        "/HEALTHZ",
        "/mcp",
        "/mcp/",
        "/mcp/tools/",
        "/mcp/%74ools",
        "/mcp/servers/",
        "/mcp/servers//log",
        "/mcp/servers/files/log/more",
        "/mcp/approvals/",
        "/mcp/approvals/q1/more",
        "/mcp/results",
        "/mcp/results/",
        "/mcp/results/a/b",
        "//healthz",
    ] {
        let reply = server.ask(get(path)).await;
        assert_eq!((reply.status, reply.refusal().as_str()), (404, "not_found"), "{path}");
    }
    for route in Routes::<FakeApi>::TABLE {
        let path = route.path.replace("{id}", "files");
        let allowed = match (route.method, path.starts_with("/mcp/servers/")) {
            _ if matches!(
                route.path,
                "/mcp/approvals/{id}" | "/mcp/rules" | "/mcp/pairing" | "/mcp/trust"
            ) =>
            {
                "allow: get,head,post\r\n"
            }
            _ if route.path == "/mcp/clients/{id}" => "allow: post,delete\r\n",
            (MethodFilter::DELETE, _) => "allow: delete\r\n",
            (MethodFilter::POST, true) => "allow: post,get,head\r\n",
            (MethodFilter::POST, false) => "allow: post\r\n",
            _ => "allow: get,head\r\n",
        };
        for method in ["PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
            if method == "DELETE" && matches!(route.path, "/mcp/clients/{id}" | "/mcp/rules/{id}") {
                continue;
            }
            let reply = server.ask(request(method, &path, &[], "")).await;
            assert_eq!(
                (reply.status, reply.refusal().as_str()),
                (405, "method_not_allowed"),
                "{method} {path}"
            );
            assert!(reply.head.contains(allowed), "{method} {path}: {}", reply.head);
        }
    }
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn a_walk_in_changes_nothing_and_is_told_where_the_owner_does() {
    let server = Running::start().await;
    for (path, body) in [
        ("/mcp/servers/stop-trying", r#"{"id":"files"}"#),
        ("/mcp/keychain", r#"{"action":"look_again"}"#),
        ("/mcp/keychain", r#"{"action":"keep_until_quit"}"#),
        ("/mcp/approvals/q1", r#"{"answer":"approve","content":{}}"#),
        ("/mcp/approvals/q1", r#"{"answer":"deny"}"#),
        ("/mcp/approvals/q1", r#"{"answer":"longer"}"#),
        ("/mcp/approvals/q1", r#"{"answer":"until_quit"}"#),
        ("/mcp/approvals/q1", r#"{"answer":"always"}"#),
        ("/mcp/approvals/q1", r#"{"answer":"block"}"#),
        (
            "/mcp/rules",
            r#"{"effect":"allow","server":"files","kind":"tools","patterns":["*"],"arguments":{"which":"any"},"caller":{"who":"anyone"},"lasts":"kept"}"#,
        ),
    ] {
        let reply = server.ask(post(path, body)).await;
        assert_eq!(
            (reply.status, reply.refusal().as_str()),
            (403, "scope_missing"),
            "{path}"
        );
        assert!(
            reply.body.contains("window") && reply.body.contains("socket"),
            "{}",
            reply.body
        );
    }
    for path in ["/mcp/servers/files/log", "/mcp/rules"] {
        let reply = server.ask(get(path)).await;
        assert_eq!(
            (reply.status, reply.refusal().as_str()),
            (403, "scope_missing"),
            "{path}"
        );
    }
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn what_a_walk_in_wants_changed_waits_for_the_person_and_nothing_else_happens() {
    let server = Running::start().await;
    for (path, body, wish) in [
        (
            "servers/add",
            r#"{"id":"x","command":"sh"}"#,
            "Adding the connector \"x\"",
        ),
        (
            "servers/toggle",
            r#"{"id":"files","enabled":true}"#,
            "Turning on the connector \"files\"",
        ),
        (
            "servers/auto-approve",
            r#"{"id":"files","auto_approve":true}"#,
            "Changing what \"files\" may do without asking",
        ),
        (
            "servers/remove",
            r#"{"id":"files"}"#,
            "Removing the connector \"files\"",
        ),
        (
            "servers/secret",
            r#"{"id":"files","secret":"s"}"#,
            "Keeping a token for \"files\"",
        ),
        (
            "servers/secret",
            r#"{"id":"files","name":"KEY","secret":"s"}"#,
            "Keeping the secret KEY for \"files\"",
        ),
        (
            "servers/forget-secret",
            r#"{"id":"files"}"#,
            "Forgetting the token of \"files\"",
        ),
        ("oauth/start", r#"{"id":"files"}"#, "Signing in to \"files\""),
        ("oauth/sign-out", r#"{"id":"files"}"#, "Signing out of \"files\""),
    ] {
        let reply = server.ask(post(&format!("/mcp/{path}"), body)).await;
        let waits = json!({"ok": false, "pending": true, "approval_id": "q2", "error": "It waits."});
        assert_eq!((reply.status, reply.json()), (202, waits), "{path} {body}");
        assert_eq!(
            server.api.take_done(),
            [format!("wish walk-in {wish}")],
            "{path} {body}"
        );
    }
    for body in [
        r#"{"id":"files","accept_issuer":"https://i.example"}"#,
        r#"{"id":"files","redirect":"loopback"}"#,
    ] {
        let reply = server.ask(post("/mcp/oauth/start", body)).await;
        assert_eq!(
            (reply.status, reply.refusal().as_str()),
            (403, "scope_missing"),
            "{body}"
        );
    }
    for (path, body, done) in [
        (
            "toggle",
            r#"{"id":"files","enabled":false}"#,
            "turn_off_for walk-in files",
        ),
        ("reconnect", r#"{"id":"files"}"#, "reconnect_for walk-in files"),
    ] {
        let reply = server.ask(post(&format!("/mcp/servers/{path}"), body)).await;
        assert_eq!(reply.status, 200, "{path}");
        assert!(!reply.body.contains(PRIVATE), "{}", reply.body);
        assert_eq!(server.api.take_done(), [done]);
    }
    server.stop().await;
}

#[tokio::test]
async fn heads_that_hyper_refuses_are_refused_in_our_shape() {
    let server = Running::start().await;
    let many = "X-A: b\r\n".repeat(65);
    let long = format!("X-A: {}\r\n", "b".repeat(17 * 1024));
    for (bytes, status, code) in [
        ("rubbish\r\n\r\n".to_owned(), 400, "bad_request"),
        (
            "GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            "GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            "GET /hea\u{1}lthz HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            "POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: x\r\n\r\n".into(),
            400,
            "bad_request",
        ),
        (
            format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"),
            431,
            "too_large",
        ),
        (
            format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{long}\r\n"),
            431,
            "too_large",
        ),
    ] {
        let reply = server.ask(&bytes).await;
        let shown: String = bytes.chars().take(80).collect();
        assert_eq!((reply.status, reply.refusal().as_str()), (status, code), "{shown:?}");
    }
    server.stop().await;
}

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_malformed_requests_do_no_harm() {
    let server = std::sync::Arc::new(Running::start().await);
    let good = [
        get("/mcp/tools"),
        get("/mcp/servers/files?x=%zz"),
        post("/mcp/call", r#"{"name":"read","input":{"a":[1,{"b":"\u00e4"}]}}"#),
        "POST /mcp/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"nam\r\n0\r\n\r\n"
            .into(),
    ];
    let mut clients = tokio::task::JoinSet::new();
    for seed in 1..=8 {
        let (server, good) = (server.clone(), good.clone());
        clients.spawn(async move {
            let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
            for _ in 0..1_250 {
                let mut bytes = good[random.below(good.len())].clone().into_bytes();
                for _ in 0..=random.below(6) {
                    let at = random.below(bytes.len());
                    match random.below(4) {
                        0 => bytes[at] = u8::try_from(random.below(256)).unwrap(),
                        1 => bytes.truncate(at + 1),
                        2 => bytes.insert(at, u8::try_from(random.below(256)).unwrap()),
                        _ => {
                            let piece = bytes[at..].to_vec();
                            bytes.extend(piece);
                        }
                    }
                }
                let mut stream = server.connect().await;
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::AsyncWriteExt::write_all(&mut write, &bytes).await;
                let _ = tokio::io::AsyncWriteExt::shutdown(&mut write).await;
                let mut rest = Vec::new();
                let _ = tokio::io::AsyncReadExt::read_to_end(&mut read, &mut rest).await;
                let text = String::from_utf8_lossy(&rest);
                assert!(
                    !text.starts_with("HTTP/1.1 5"),
                    "{text} for {}",
                    String::from_utf8_lossy(&bytes)
                );
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    assert_eq!(server.ask(get("/healthz")).await.body, r#"{"ok":true}"#);
    std::sync::Arc::into_inner(server).unwrap().stop().await;
}
