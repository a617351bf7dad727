//! Results of every kind and size, as callers get them.

use neuron_tests::{
    daemon::Daemon,
    fake::Fake,
    home::Home,
    http::{Answer, Connection},
    process,
};
use serde_json::{Value, json};

fn serving() -> Daemon {
    let bridge = Daemon::serving(
        Home::new(),
        [("fake", Fake::new("ok").option("list", "answers").entry())],
    );
    bridge.wait_for_tool("mcp__fake__picture");
    bridge
}

fn call(bridge: &Daemon, tool: &str) -> Value {
    bridge.call(&format!("mcp__fake__{tool}"), &json!({})).ok()
}

/// A bridge with an upstream that offers resources and prompts.
fn offering() -> Daemon {
    let bridge = Daemon::serving(
        Home::new(),
        [("fake", Fake::new("ok").option("offers", "standard").entry())],
    );
    bridge.wait_for_tool("mcp__fake__echo");
    bridge
}

fn prompt(bridge: &Daemon, name: &str) -> Answer {
    let body = json!({"server": "fake", "name": name, "arguments": {}});
    bridge.owner_post("/mcp/prompts/get", &body)
}

fn chars(value: &Value) -> usize {
    value.as_str().expect("a text").chars().count()
}

/// All of a kept result, read piece by piece as a walk-in.
fn whole(bridge: &Daemon, id: &str) -> String {
    let mut text = String::new();
    let mut next = Some(0);
    while let Some(offset) = next {
        let piece = bridge
            .get(&format!("/mcp/results/{id}?offset={offset}&limit=200000"))
            .ok();
        text.push_str(piece["text"].as_str().expect("a text"));
        next = piece["next_offset"].as_u64();
    }
    text
}

#[test]
fn a_picture_of_three_megabytes_arrives_once_and_whole() {
    let bridge = serving();
    let answer = call(&bridge, "picture");
    let picture = answer["content"][0]["data"].as_str().unwrap();
    assert_eq!(picture.len(), 3_999_996);
    assert!(picture.as_bytes().chunks(12).all(|piece| piece == b"iVBORw0KGgo+"));
    assert!(answer["structured"].is_null(), "its copy is left out");
    let text = answer["text"].as_str().unwrap();
    assert!(!text.contains("iVBOR"), "no base64 in two halves: {text}");
    assert!(
        text.contains(r#""width":7"#) && text.contains("4.0 MB of base64"),
        "{text}"
    );
    let id = answer["result_id"].as_str().unwrap();
    assert!(text.contains(id) && answer["truncated"] == true, "{text}");
    let kept: Value = serde_json::from_str(&whole(&bridge, id)).unwrap();
    assert_eq!(kept["structuredContent"]["image"]["data"], picture);
}

#[test]
fn ten_megabytes_are_cut_between_two_characters_and_can_be_read_whole() {
    let bridge = serving();
    let answer = call(&bridge, "crabs");
    for text in [&answer["text"], &answer["content"][0]["text"]] {
        assert_eq!(chars(text), 200_000);
        let text = text.as_str().unwrap();
        assert!(text.starts_with("a🦀") && text.ends_with("🦀🦀"));
        assert!(!text.contains('\u{fffd}'));
    }
    let whole = whole(&bridge, answer["result_id"].as_str().unwrap());
    assert!(whole == format!("a{}", "🦀".repeat(2_500_000)));
}

#[test]
fn text_and_structured_content_together_are_within_the_limit() {
    let bridge = serving();
    let answer = call(&bridge, "both");
    let structured = match &answer["structured"] {
        Value::Null => 0,
        other => other.to_string().chars().count(),
    };
    assert!(chars(&answer["text"]) + structured <= 200_000);
    assert!(chars(&answer["content"][0]["text"]) + structured <= 200_000);
    assert!(
        answer["text"].as_str().unwrap().starts_with(&"t".repeat(150_000)),
        "the text has room"
    );
    assert!(
        answer["text"]
            .as_str()
            .unwrap()
            .contains("The structured content is left out here.")
    );
    let kept: Value = serde_json::from_str(&whole(&bridge, answer["result_id"].as_str().unwrap())).unwrap();
    assert_eq!(chars(&kept["structuredContent"]["text"]), 150_000);
}

#[test]
fn a_failed_tool_is_no_success_anywhere() {
    let bridge = serving();
    let mut events = Connection::open(&bridge.local()).events("/mcp/events", &[]);
    let answer = call(&bridge, "failed");
    assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!("tool_error")));
    assert_eq!(answer["error"], r#"{"code":7}"#);
    assert_eq!(answer["content"][0]["type"], "image");
    let event = events.next("the end of the call", |event| event.name == "call_finished");
    assert_eq!(
        (&event.data["ok"], &event.data["code"]),
        (&json!(false), &json!("tool_error"))
    );
    assert_eq!(
        bridge.status("fake"),
        "connected",
        "one failed call is no fault of the connector"
    );
}

#[test]
fn an_answer_of_millions_of_values_costs_little_memory_and_can_be_read_whole() {
    let bridge = serving();
    let before = process::peak_memory(bridge.pid());
    let mut id = String::new();
    for place in ["block", "structured", "content"] {
        let answer = bridge.call("mcp__fake__zeros", &json!({ "where": place })).ok();
        assert_eq!(answer["truncated"], true, "{place}");
        assert!(answer["content"].as_array().unwrap().len() <= 1_000, "{place}");
        id = answer["result_id"].as_str().unwrap().to_owned();
    }
    let after = process::peak_memory(bridge.pid());
    assert!(after < before + 200.0, "from {before} to {after} MB");
    let total = bridge.get(&format!("/mcp/results/{id}?limit=1")).ok()["total"].as_u64();
    assert!(total > Some(15 << 20), "{total:?}");
}

#[test]
fn a_long_description_is_cut_and_its_rest_can_be_read() {
    let bridge = offering();
    let answer = prompt(&bridge, "described").ok();
    assert_eq!(answer["description"].as_str().unwrap().chars().count(), 2_000);
    assert_eq!(answer["truncated"], true);
    let path = format!("/mcp/results/{}", answer["result_id"].as_str().unwrap());
    let whole = bridge.owner_get(&format!("{path}?limit=100000")).ok();
    assert!(whole["text"].as_str().unwrap().contains(&"d".repeat(3_000)), "{whole}");
}

#[test]
fn contents_and_messages_without_number_cost_little_memory() {
    let bridge = offering();
    let mut resource = json!({"server": "fake", "uri": "fake://zeros"});
    let before = process::peak_memory(bridge.pid());
    for (answer, member) in [
        (bridge.owner_post("/mcp/resources/read", &resource), "contents"),
        (prompt(&bridge, "zeros"), "messages"),
    ] {
        let answer = answer.ok();
        assert_eq!(
            (answer[member].as_array().unwrap().len(), &answer["truncated"]),
            (1_000, &json!(true))
        );
        assert!(answer["result_id"].is_string());
    }
    resource["save"] = json!(true);
    bridge
        .owner_post("/mcp/resources/read", &resource)
        .refused(400, "bad_request");
    let after = process::peak_memory(bridge.pid());
    assert!(after < before + 200.0, "from {before} to {after} MB");
}

#[test]
fn structured_content_of_any_kind_arrives_with_its_digits() {
    let bridge = serving();
    for value in [
        r#"{"n":1.10,"big":12345678901234567890123}"#,
        "[1,2]",
        r#""text""#,
        "1.50",
        "false",
        "0",
        "{}",
    ] {
        let body = format!(r#"{{"name":"mcp__fake__structured","input":{{"value":{value}}}}}"#);
        let answer = bridge.post_text("/mcp/call", &body);
        assert!(
            answer.text().contains(&format!(r#""structured":{value}"#)),
            "{value}: {}",
            answer.text()
        );
        assert_eq!(answer.ok()["text"], value, "the model reads it too");
    }
}

#[test]
fn addresses_with_letters_of_all_scripts_stay_as_they_are() {
    let bridge = serving();
    let answer = call(&bridge, "links");
    assert_eq!(answer["content"][0]["uri"], "datei:///Ä/日本 🦀?q=%41");
    assert_eq!(
        answer["content"][1]["resource"],
        json!({"uri": "datei:///ü", "text": "nah"})
    );
    assert_eq!(answer["text"], "fern: datei:///Ä/日本 🦀?q=%41\nnah");
}

#[test]
fn pieces_beyond_every_bound_have_a_clear_answer() {
    let bridge = serving();
    let answer = call(&bridge, "crabs");
    let path = format!("/mcp/results/{}", answer["result_id"].as_str().unwrap());
    let most = u64::MAX;
    for offset in [2_500_001, most] {
        assert_eq!(
            bridge.get(&format!("{path}?offset={offset}&limit=200000")).ok(),
            json!({"text": "", "offset": offset, "total": 2_500_001})
        );
    }
    let last = bridge.get(&format!("{path}?offset=2500000")).ok();
    assert_eq!(last, json!({"text": "🦀", "offset": 2_500_000, "total": 2_500_001}));
    for query in [
        format!("limit={most}"),
        "limit=0".to_owned(),
        "limit=200001".to_owned(),
        "offset=18446744073709551616".to_owned(),
        "offset=-1".to_owned(),
        "offset=1e3".to_owned(),
    ] {
        bridge.get(&format!("{path}?{query}")).refused(400, "bad_request");
    }
}

#[test]
fn a_kept_result_is_read_by_its_caller_alone() {
    let bridge = serving();
    let answer = call(&bridge, "crabs");
    let path = format!("/mcp/results/{}", answer["result_id"].as_str().unwrap());
    assert_eq!(bridge.get(&path).status, 200);
    bridge.owner_get(&path).refused(404, "not_found");
    for id in ["0".repeat(32), "../state.db".to_owned(), "x".to_owned()] {
        bridge
            .get(&format!("/mcp/results/{}", id.replace('/', "%2F")))
            .refused(404, "not_found");
    }
    let bridge = bridge.restart();
    bridge.get(&path).refused(404, "not_found");
}
