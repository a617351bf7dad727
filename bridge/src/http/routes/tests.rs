use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::super::fake::{HANG, HANGING_WAIT, PRIVATE, Reply, Running, get, post, view};
use crate::{
    event::Event,
    ids::{ConnectorId, ExposedName},
};

async fn ask_as_owner(server: &Running, bytes: &str) -> Reply {
    let mut stream = server.connect_local().await;
    stream.write_all(bytes.as_bytes()).await.unwrap();
    Reply::read(&mut stream).await
}

fn names(reply: &Reply) -> Vec<String> {
    let tools = reply.json();
    let tools = tools["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn health_and_every_answer_carry_the_protective_headers() {
    let server = Running::start().await;
    let reply = server.ask(get("/healthz")).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, r#"{"ok":true}"#));
    reply.assert_common_headers();
    let head = server.ask("HEAD /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(head.status, 200);
    server.stop().await;
}

fn tag_of(reply: &Reply) -> String {
    let rest = reply.head.split("etag: ").nth(1).unwrap();
    rest.split("\r\n").next().unwrap().to_owned()
}

#[tokio::test]
async fn the_whole_tool_list_is_sent_as_it_is_and_not_again_while_unchanged() {
    let server = Running::start().await;
    let reply = server.ask(get("/mcp/tools")).await;
    assert_eq!(
        names(&reply),
        ["mcp__files__read", "mcp__files__write", "mcp__other__read"]
    );
    assert_eq!(reply.json()["tools"][0]["input_schema"]["type"], "object");
    let tag = tag_of(&reply);
    assert_eq!(server.ask(get("/mcp/tools?format=anthropic")).await.body, reply.body);

    for (tags, status) in [
        (tag.clone(), 304),
        (format!("\"other\", {tag}"), 304),
        (format!("W/{tag}"), 304),
        ("*".to_owned(), 304),
        ("\"other\"".to_owned(), 200),
        (tag.trim_matches('"').to_owned(), 200),
    ] {
        let request = format!("GET /mcp/tools HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {tags}\r\n\r\n");
        let reply = server.ask(request).await;
        assert_eq!(reply.status, status, "{tags}");
        assert_eq!(tag_of(&reply), tag);
        reply.assert_common_headers();
    }
    server.stop().await;
}

#[tokio::test]
async fn a_part_of_the_tool_list_keeps_its_order_and_has_a_tag_of_its_own() {
    let server = Running::start().await;
    let part = server.ask(get("/mcp/tools?server=files")).await;
    assert_eq!(names(&part), ["mcp__files__read", "mcp__files__write"]);
    assert_eq!(
        names(&server.ask(get("/mcp/tools?limit=1")).await),
        ["mcp__files__read"]
    );
    assert_eq!(
        names(&server.ask(get("/mcp/tools?limit=0&server=other")).await),
        [""; 0]
    );
    let tag = tag_of(&part);
    assert_ne!(tag, tag_of(&server.ask(get("/mcp/tools")).await));
    let again = format!("GET /mcp/tools?server=files HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: {tag}\r\n\r\n");
    assert_eq!(server.ask(again).await.status, 304);
    server.stop().await;
}

#[tokio::test]
async fn the_mcp_format_has_what_an_mcp_client_expects() {
    let server = Running::start().await;
    let reply = server.ask(get("/mcp/tools?format=mcp&limit=1")).await;
    assert_eq!(
        reply.json(),
        json!({"tools": [{
            "name": "mcp__files__read",
            "title": "T",
            "description": "d",
            "inputSchema": {"type": "object", "properties": {}},
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true},
        }]})
    );
    server.stop().await;
}

#[tokio::test]
async fn parameters_that_are_unknown_doubled_or_of_another_kind_are_refused() {
    let server = Running::start().await;
    for path in [
        "/mcp/tools?format=openapi",
        "/mcp/tools?format=Anthropic",
        "/mcp/tools?format=",
        "/mcp/tools?limit=-1",
        "/mcp/tools?limit=x",
        "/mcp/tools?limit=1&limit=2",
        "/mcp/tools?token=abc",
        "/mcp/results/r?limit=0",
        "/mcp/results/r?limit=200001",
        "/mcp/results/r?offset=-1",
        "/mcp/results/%ff",
    ] {
        let reply = server.ask(get(path)).await;
        assert_eq!((reply.status, reply.refusal().as_str()), (400, "bad_request"), "{path}");
    }
    for path in [
        "/mcp/tools?server=nobody",
        "/mcp/tools?server=a%2Fb",
        "/mcp/servers/nobody",
        "/mcp/servers/a%2Fb",
    ] {
        let reply = server.ask(get(path)).await;
        assert_eq!(
            (reply.status, reply.refusal().as_str()),
            (404, "unknown_server"),
            "{path}"
        );
    }
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn a_call_is_handed_on_exactly_as_it_came() {
    let server = Running::start().await;
    let body = r#"{"name":"t","input":{"z":1.10,"a":12345678901234567890123,"$":null},"timeout_ms":5}"#;
    let reply = server.ask(post("/mcp/call", body)).await;
    assert_eq!(
        reply.json(),
        json!({"ok": true, "content": [], "text": "done", "server": "files", "tool": "read", "duration_ms": 1})
    );
    let done = [r#"call walk-in t {"z":1.10,"a":12345678901234567890123,"$":null} Some(5ms)"#];
    assert_eq!(server.api.take_done(), done);
    for body in [
        r#"{"name":"t"}"#,
        r#"{"name":"t","input":null}"#,
        r#"{"input":{},"timeout_ms":null,"name":"t"}"#,
    ] {
        server.ask(post("/mcp/call", body)).await;
        assert_eq!(server.api.take_done(), ["call walk-in t {} None"], "{body}");
    }
    ask_as_owner(&server, &post("/mcp/call", r#"{"name":"t","timeout_ms":3600000}"#)).await;
    assert_eq!(server.api.take_done(), ["call owner t {} Some(3600s)"]);
    server.stop().await;
}

#[tokio::test]
async fn a_call_that_cannot_be_meant_so_is_refused_before_anything_runs() {
    let server = Running::start().await;
    for body in [
        r#"{"input":{}}"#,
        r#"{"name":1}"#,
        r#"{"name":"t","input":[]}"#,
        r#"{"name":"t","input":"{}"}"#,
        r#"{"name":"t","arguments":{}}"#,
        r#"{"Name":"t"}"#,
        r#"{"name":"t","timeout_ms":0}"#,
        r#"{"name":"t","timeout_ms":3600001}"#,
        r#"{"name":"t","timeout_ms":1.5}"#,
        r#"{"name":"t","timeout_ms":"5"}"#,
        r#"{"name":"t","input":{"a":{"b":1,"b":2}}}"#,
    ] {
        let reply = server.ask(post("/mcp/call", body)).await;
        assert_eq!((reply.status, reply.refusal().as_str()), (400, "bad_request"), "{body}");
    }
    assert_eq!(server.api.take_done(), [""; 0]);
    let reply = server.ask(post("/mcp/call", r#"{"name":"unknown"}"#)).await;
    assert_eq!((reply.status, reply.refusal().as_str()), (404, "unknown_tool"));
    server.stop().await;
}

#[tokio::test]
async fn a_large_result_is_read_piece_by_piece() {
    let server = Running::start().await;
    let reply = server.ask(get("/mcp/results/r1?offset=2&limit=5")).await;
    assert_eq!(
        reply.json(),
        json!({"text": "äb", "offset": 2, "total": 10, "next_offset": 4})
    );
    let last = server.ask(get("/mcp/results/a%20b%252F?offset=8")).await;
    assert_eq!(last.json(), json!({"text": "äb", "offset": 8, "total": 10}));
    assert_eq!(
        server.api.take_done(),
        ["result walk-in r1 2 5", "result walk-in a b%2F 8 50000"]
    );
    server.stop().await;
}

#[tokio::test]
async fn a_walk_in_sees_connectors_without_command_lines_or_what_they_wrote() {
    let server = Running::start().await;
    let list = server.ask(get("/mcp/servers")).await;
    assert_eq!(
        list.json()["servers"][0],
        json!({
            "id": "files",
            "status": "sleeping",
            "tools": 1,
            "name": "Files",
            "description": "Files on this computer",
            "transport": "stdio",
            "auth": {"state": "none"},
            "connection": {
                "generation": 1, "sequence": 2, "since": 3, "observed_at": 4,
                "era": null, "protocol": null, "retry": null, "readiness": "unknown",
            },
        })
    );
    let one = server.ask(get("/mcp/servers/files")).await;
    for reply in [&list, &one] {
        assert!(!reply.body.contains(PRIVATE), "{}", reply.body);
    }
    let one = one.json();
    assert_eq!(one["server"], list.json()["servers"][0]);
    assert_eq!(one["rejected"][0]["reason"], "It has no name.");
    let hidden: Vec<_> = one["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["hidden"].is_string())
        .collect();
    assert_eq!(hidden, [false, false, true]);
    server.stop().await;
}

#[tokio::test]
async fn a_connector_that_is_called_like_an_action_can_be_read() {
    let server = Running::start().await;
    for name in ["add", "toggle", "remove"] {
        let reply = server.ask(get(&format!("/mcp/servers/{name}"))).await;
        assert_eq!(reply.refusal(), "unknown_server", "{name}");
        assert!(reply.body.contains(name), "{}", reply.body);
    }
    server.stop().await;
}

#[tokio::test]
async fn the_owner_sees_the_entry_the_log_and_the_error_in_full() {
    let server = Running::start().await;
    let list = ask_as_owner(&server, &get("/mcp/servers")).await.json();
    assert_eq!(list["servers"][0]["summary"], PRIVATE);
    assert_eq!(list["servers"][0]["error_detail"], PRIVATE);
    let one = ask_as_owner(&server, &get("/mcp/servers/files")).await.json();
    assert_eq!(one["entry"], PRIVATE);
    let log = ask_as_owner(&server, &get("/mcp/servers/files/log?lines=7")).await;
    assert_eq!(log.json(), json!({"lines": [PRIVATE], "next": "a-1", "missed": false}));
    assert_eq!(server.api.take_done(), ["log files  7 0ns"]);
    server.stop().await;
}

#[tokio::test]
async fn a_log_is_followed_from_a_place_and_only_from_one_it_gave() {
    let server = Running::start().await;
    let path = "/mcp/servers/files/log?after=a-1&lines=9&wait_ms=30000";
    ask_as_owner(&server, &get(path)).await.json();
    assert_eq!(server.api.take_done(), ["log files a-1 9 30s"]);
    for query in ["after=nowhere", "after=a-1&wait_ms=30001", "wait_ms=5", "after="] {
        let reply = ask_as_owner(&server, &get(&format!("/mcp/servers/files/log?{query}"))).await;
        assert_eq!(
            (reply.status, reply.refusal().as_str()),
            (400, "bad_request"),
            "{query}"
        );
    }
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn whoever_waits_for_a_line_is_told_when_the_bridge_stops() {
    let mut server = Running::start().await;
    let mut stream = server.connect_local().await;
    let path = format!("/mcp/servers/files/log?after=a-1&wait_ms={}", HANGING_WAIT.as_millis());
    stream.write_all(get(&path).as_bytes()).await.unwrap();
    assert_eq!(server.hangs.recv().await, Some("begun"));
    server.shutdown.cancel();
    let reply = Reply::read(&mut stream).await;
    assert_eq!((reply.status, reply.refusal().as_str()), (503, "unavailable"));
    server.stop().await;
}

#[tokio::test]
async fn what_needs_no_asking_is_told_for_whoever_asks() {
    let server = Running::start().await;
    let reply = server.ask(get("/mcp/auto-approved")).await;
    assert_eq!(reply.json(), json!({"tools": ["mcp__files__read"], "rules": []}));
    assert_eq!(server.api.take_done(), ["auto_approved walk-in"]);
    server.stop().await;
}

#[tokio::test]
async fn the_owner_changes_connectors_and_gets_the_promised_answers() {
    let server = Running::start().await;
    let ok = json!({"ok": true});
    for (path, body, done) in [
        ("toggle", r#"{"id":"files","enabled":false}"#, "set_enabled files false"),
        (
            "auto-approve",
            r#"{"id":"files","auto_approve":true}"#,
            "set_auto_approve files All",
        ),
        (
            "auto-approve",
            r#"{"id":"files","auto_approve":false}"#,
            "set_auto_approve files None",
        ),
        (
            "auto-approve",
            r#"{"id":"files","auto_approve":["get_*","x"]}"#,
            r#"set_auto_approve files Patterns(["get_*", "x"])"#,
        ),
        ("remove", r#"{"id":"files"}"#, "remove files"),
    ] {
        let reply = ask_as_owner(&server, &post(&format!("/mcp/servers/{path}"), body)).await;
        assert_eq!((reply.status, reply.json()), (200, ok.clone()), "{path} {body}");
        assert_eq!(server.api.take_done(), [done]);
    }
    let body = r#"{"url":"https://x","id":"new","headers":{"B":"1","A":"2"}}"#;
    let added = ask_as_owner(&server, &post("/mcp/servers/add", body)).await.json();
    assert_eq!(
        (&added["ok"], &added["verified"]),
        (&Value::Bool(true), &Value::Bool(false))
    );
    assert_eq!(added["server"]["id"], "new");
    assert_eq!(
        server.api.take_done(),
        [r#"add new {"url":"https://x","headers":{"B":"1","A":"2"}}"#]
    );
    let again = ask_as_owner(&server, &post("/mcp/servers/reconnect", r#"{"id":"files"}"#))
        .await
        .json();
    assert_eq!(
        (&again["ok"], &again["verified"]),
        (&Value::Bool(true), &Value::Bool(true))
    );
    assert_eq!(again["server"]["id"], view("files").id);
    server.api.take_done();
    let stopped = ask_as_owner(&server, &post("/mcp/servers/stop-trying", r#"{"id":"files"}"#)).await;
    let stopped = stopped.json();
    assert_eq!(
        (&stopped["ok"], &stopped["server"]["id"]),
        (&Value::Bool(true), &Value::from("files"))
    );
    assert!(stopped.get("verified").is_none(), "{stopped}");
    assert_eq!(stopped["stopped"], false, "nothing was under way: {stopped}");
    assert_eq!(server.api.take_done(), ["stop_trying files"]);
    server.stop().await;
}

#[tokio::test]
async fn changes_that_cannot_be_meant_so_are_refused() {
    let server = Running::start().await;
    for (path, body, status, code) in [
        ("add", r#"{"command":"x"}"#, 400, "bad_request"),
        ("add", r#"{"id":"a b","command":"x"}"#, 400, "bad_request"),
        ("add", r#"{"id":null}"#, 400, "bad_request"),
        ("toggle", r#"{"id":"files"}"#, 400, "bad_request"),
        ("toggle", r#"{"id":"files","enabled":1}"#, 400, "bad_request"),
        (
            "toggle",
            r#"{"id":"files","enabled":true,"force":true}"#,
            400,
            "bad_request",
        ),
        ("toggle", r#"{"id":"a b","enabled":true}"#, 404, "unknown_server"),
        (
            "auto-approve",
            r#"{"id":"files","auto_approve":"*"}"#,
            400,
            "bad_request",
        ),
        (
            "auto-approve",
            r#"{"id":"files","auto_approve":[1]}"#,
            400,
            "bad_request",
        ),
        (
            "auto-approve",
            r#"{"id":"files","auto_approve":null}"#,
            400,
            "bad_request",
        ),
        ("remove", r#"{}"#, 400, "bad_request"),
        ("reconnect", r#"{"id":"../x"}"#, 404, "unknown_server"),
    ] {
        let reply = ask_as_owner(&server, &post(&format!("/mcp/servers/{path}"), body)).await;
        assert_eq!(
            (reply.status, reply.refusal().as_str()),
            (status, code),
            "{path} {body}"
        );
    }
    let suggestion = ask_as_owner(&server, &post("/mcp/servers/add", r#"{"id":"a b"}"#)).await;
    assert!(suggestion.body.contains("a-b"), "{}", suggestion.body);
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

fn started(call: u64, caller: &str) -> Event {
    Event::CallStarted {
        call,
        server: ConnectorId::parse("files").unwrap(),
        tool: ExposedName::new("mcp__files__read"),
        caller: caller.into(),
    }
}

/// The ids of the first `count` events of a stream.
async fn event_ids(mut stream: impl tokio::io::AsyncRead + Unpin, count: usize) -> Vec<String> {
    use tokio::io::AsyncBufReadExt;
    let mut lines = tokio::io::BufReader::new(&mut stream).lines();
    let mut ids = Vec::new();
    while ids.len() < count {
        let line = lines.next_line().await.unwrap().unwrap();
        if let Some(id) = line.strip_prefix("id: ") {
            ids.push(id.to_owned());
        }
    }
    ids
}

#[tokio::test]
async fn a_reader_of_events_resumes_and_sees_only_its_own_calls_unless_it_is_the_owner() {
    let server = Running::start().await;
    server.api.log.publish(Event::ToolsChanged { tools: 1 });
    server.api.log.publish(started(1, "owner"));
    server.api.log.publish(started(2, "walk-in"));
    server.api.log.publish(Event::ToolsChanged { tools: 2 });
    let request = "GET /mcp/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 1\r\n\r\n";

    let mut walk_in = server.connect().await;
    walk_in.write_all(request.as_bytes()).await.unwrap();
    let mut owner = server.connect_local().await;
    owner.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(event_ids(&mut walk_in, 2).await, ["3", "4"]);
    assert_eq!(event_ids(&mut owner, 3).await, ["2", "3", "4"]);

    server.api.log.publish(started(3, "owner"));
    server.api.log.publish(started(4, "walk-in"));
    assert_eq!(event_ids(&mut walk_in, 1).await, ["6"]);
    assert_eq!(event_ids(&mut owner, 2).await, ["5", "6"]);

    let earlier_run = "GET /mcp/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 900\r\n\r\n";
    let mut owner = server.connect_local().await;
    owner.write_all(earlier_run.as_bytes()).await.unwrap();
    assert_eq!(event_ids(&mut owner, 6).await, ["1", "2", "3", "4", "5", "6"]);

    let bad = "GET /mcp/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: x\r\n\r\n";
    assert_eq!(server.ask(bad).await.refusal(), "bad_request");
    server.stop().await;
}

#[tokio::test]
async fn an_event_names_its_kind_and_holds_its_data() {
    let server = Running::start().await;
    server.api.log.publish(started(7, "walk-in"));
    let mut stream = server.connect().await;
    let request = "GET /mcp/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 0\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    while !text.contains("\n\n") {
        let mut buffer = [0; 4096];
        let count = tokio::io::AsyncReadExt::read(&mut stream, &mut buffer).await.unwrap();
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    assert!(text.contains("content-type: text/event-stream\r\n"), "{text}");
    let data = r#"{"type":"call_started","call":7,"server":"files","tool":"mcp__files__read","caller":"walk-in"}"#;
    assert!(
        text.contains(&format!("id: 1\nevent: call_started\ndata: {data}\n\n")),
        "{text}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_reader_that_falls_behind_is_sent_away() {
    let server = Running::start().await;
    let mut stream = server.connect().await;
    stream.write_all(get("/mcp/events").as_bytes()).await.unwrap();
    let reply = Reply::read(&mut stream).await;
    assert_eq!(reply.status, 200);
    // One thread: nothing is handed out between these, and the queue holds a thousand.
    for tools in 0..2_000 {
        server.api.log.publish(Event::ToolsChanged { tools });
    }
    let mut rest = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest)
        .await
        .unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "ended in order");
    server.stop().await;
}

#[tokio::test]
async fn a_call_is_dropped_when_its_caller_goes_away() {
    let mut server = Running::start().await;
    let request = post("/mcp/call", &format!(r#"{{"name":"{HANG}"}}"#));

    let mut leaves = server.connect().await;
    leaves.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(server.hangs.recv().await, Some("begun"));
    drop(leaves);
    assert_eq!(server.hangs.recv().await, Some("dropped"));

    let mut hangs_up = server.connect().await;
    hangs_up.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(server.hangs.recv().await, Some("begun"));
    hangs_up.shutdown().await.unwrap();
    assert_eq!(server.hangs.recv().await, Some("dropped"));

    let mut local = server.connect_local().await;
    local.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(server.hangs.recv().await, Some("begun"));
    drop(local);
    assert_eq!(server.hangs.recv().await, Some("dropped"));
    server.stop().await;
}
