//! Servers that people really run, all behind one address at once.

use neuron_tests::{
    daemon::Daemon,
    home::Home,
    upstream::{Everything, EverythingOverHttp, SLOW_START, node, python},
    wait::{SOON, eventually},
};
use serde_json::{Value, json};

#[test]
fn node_python_and_http_servers_work_at_once() {
    let home = Home::new();
    let folder = home.path().join("shared");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("hello.txt"), "from a real file").unwrap();
    let over_http = EverythingOverHttp::start(Everything::StreamableHttp);
    let bridge = Daemon::serving(
        home,
        [
            (
                "everything",
                json!({"command": node("mcp-server-everything"), "args": ["stdio"]}),
            ),
            ("remote", over_http.entry()),
            (
                "files",
                json!({"command": node("mcp-server-filesystem"), "args": [&folder]}),
            ),
            ("time", json!({"command": python("mcp-server-time")})),
        ],
    );
    let counts = [("everything", 15), ("remote", 15), ("files", 14), ("time", 2)];
    for (id, count) in counts {
        eventually(
            &format!("{count} tools of {id}"),
            std::time::Duration::from_secs(60),
            || (bridge.server(id)?["tools"] == count).then_some(()),
        );
    }
    assert_eq!(
        bridge.tool_names().len(),
        counts.iter().map(|(_, count)| count).sum::<usize>()
    );

    for id in ["everything", "remote"] {
        assert_eq!(
            bridge.call_text(&format!("mcp__{id}__get_sum"), &json!({"a": 2, "b": 40})),
            "The sum of 2 and 40 is 42."
        );
        let echo = bridge.call_text(&format!("mcp__{id}__echo"), &json!({"message": "häßlich 😀"}));
        assert_eq!(echo, "Echo: häßlich 😀");
    }
    let path = folder.join("hello.txt");
    assert!(
        bridge
            .call_text("mcp__files__read_text_file", &json!({"path": path}))
            .contains("from a real file")
    );
    let outside = bridge
        .call("mcp__files__read_text_file", &json!({"path": "/etc/passwd"}))
        .ok();
    assert_eq!(
        (&outside["ok"], &outside["code"]),
        (&json!(false), &json!("tool_error")),
        "{outside}"
    );
    let now = bridge.call_text("mcp__time__get_current_time", &json!({"timezone": "Europe/Berlin"}));
    assert_eq!(
        serde_json::from_str::<Value>(&now).unwrap()["timezone"],
        "Europe/Berlin",
        "{now}"
    );

    for (id, era) in [("everything", "legacy"), ("remote", "legacy"), ("time", "modern")] {
        assert_eq!(bridge.server(id).unwrap()["connection"]["era"], era, "{id}");
    }
    let picture = bridge.call("mcp__everything__get_tiny_image", &json!({})).ok();
    let kinds: Vec<_> = picture["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"image"), "{kinds:?}");
    let wrong = bridge.call("mcp__everything__get_sum", &json!({"a": "two"})).ok();
    assert_eq!(
        wrong["code"], "tool_error",
        "a server's own refusal of arguments: {wrong}"
    );
    bridge.terminate();
}

#[test]
fn a_real_server_asks_the_person_by_form_and_by_page_and_is_answered() {
    let over_http = EverythingOverHttp::start(Everything::StreamableHttp);
    let over_stdio = json!({"command": node("mcp-server-everything"), "args": ["stdio"]});
    let bridge = Daemon::serving(Home::new(), [("pipe", over_stdio), ("remote", over_http.entry())]);
    let question = || {
        eventually("a question", SOON, || {
            let body = bridge.owner_get("/mcp/approvals").ok();
            body["approvals"].as_array()?.first().cloned()
        })
    };
    let say = |question: &Value, body: Value| {
        let path = format!("/mcp/approvals/{}", question["id"].as_str().unwrap());
        bridge.owner_post(&path, &body).ok()
    };
    for id in ["pipe", "remote"] {
        let (form, page) = (
            format!("mcp__{id}__trigger_elicitation_request"),
            format!("mcp__{id}__trigger_url_elicitation"),
        );
        eventually(&format!("{page} in the list"), SLOW_START, || {
            bridge.tool_names().contains(&page).then_some(())
        });
        std::thread::scope(|scope| {
            let call = scope.spawn(|| bridge.call_text(&form, &json!({})));
            let asked = question();
            let asks = &asked["question"]["asks"];
            let mut content = asks["defaults"].clone();
            for (field, proposed) in [
                ("integer", json!(42)),
                ("firstLine", json!("It was a dark and stormy night.")),
                ("untitledMultipleSelectEnum", json!(["Guitar"])),
                ("titledSingleSelectEnum", json!("hero-1")),
            ] {
                assert_eq!(content[field], proposed, "{asks}");
            }
            content["name"] = "Ada Lovelace".into();
            content["email"] = "ada@example.com".into();
            say(&asked, json!({"answer": "approve", "content": content}));
            let told = call.join().unwrap();
            assert!(told.contains("Ada Lovelace") && told.contains("hero-1"), "{told}");
        });
        let input = json!({"url": "https://example.com/pay", "errorPath": true});
        std::thread::scope(|scope| {
            let call = scope.spawn(|| bridge.call_text(&page, &input));
            for url in ["https://modelcontextprotocol.io/", "https://example.com/pay"] {
                let asked = question();
                assert_eq!(asked["question"]["asks"]["url"], url, "{asked}");
                say(&asked, json!({"answer": "approve"}));
            }
            let told = call.join().unwrap();
            assert!(told.contains("User completed"), "{told}");
        });
    }
    bridge.terminate();
}
