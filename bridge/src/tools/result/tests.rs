use proptest::prelude::*;
use serde_json::json;

use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef";

fn shaped(raw: &Value) -> Shaped {
    shape(&raw.to_string(), &Limits::default(), Some(ID)).unwrap()
}

fn small(raw: &Value) -> Shaped {
    let limits = Limits {
        text_chars: 400,
        media_bytes: 300,
        block_bytes: 500,
        blocks: 5,
        values: 100,
    };
    shape(&raw.to_string(), &limits, Some(ID)).unwrap()
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[test]
fn every_block_of_the_protocol_arrives_as_it_was_sent() {
    let content = json!([
        {"type": "text", "text": "hello", "annotations": {"priority": 0.5}, "_meta": {"own": 1}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///ä", "name": "notes"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "inside", "mimeType": "text/plain"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "aGk="}},
    ]);
    let result = shaped(&json!({"content": content, "structuredContent": {"a": 1}, "isError": false}));
    assert!(result.ok);
    assert_eq!(Value::Array(result.content), content);
    assert_eq!(result.text, "hello\nnotes: file:///ä\ninside");
    assert_eq!(result.structured, Some(json!({"a": 1})));
    assert_eq!((result.error, result.truncated, result.full), (None, false, None));
}

#[test]
fn structured_content_alone_is_the_text() {
    let result = shaped(&json!({"content": [], "structuredContent": {"temperature": 21}}));
    assert_eq!(result.text, r#"{"temperature":21}"#);
    let with_text = shaped(&json!({"content": [{"type": "text", "text": "warm"}], "structuredContent": {"t": 21}}));
    assert_eq!(with_text.text, "warm");
}

#[test]
fn an_answer_of_pictures_alone_is_not_silent() {
    let result = shaped(&json!({"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}));
    assert_eq!(result.text, "[An image (image/png) is in the content.]");
}

#[test]
fn numbers_keep_their_text() {
    let raw = r#"{"content":[{"type":"text","text":"x","n":1.10}],"structuredContent":{"big":12345678901234567890123,"exact":1.10,"e":1e+2}}"#;
    let result = shape(raw, &Limits::default(), None).unwrap();
    assert_eq!(
        result.structured.unwrap().to_string(),
        r#"{"big":12345678901234567890123,"exact":1.10,"e":1e+2}"#
    );
    assert_eq!(result.content[0].to_string(), r#"{"type":"text","text":"x","n":1.10}"#);
}

#[test]
fn a_missing_or_careless_content_is_understood() {
    for raw in [
        json!({}),
        json!({"content": null}),
        json!({"content": []}),
        json!({"structuredContent": null}),
    ] {
        let result = shaped(&raw);
        assert!(result.ok && result.content.is_empty() && result.text.is_empty() && result.structured.is_none());
    }
    assert_eq!(shaped(&json!({"content": "bare"})).text, "bare");
    assert_eq!(shaped(&json!({"content": {"type": "text", "text": "one"}})).text, "one");
}

#[test]
fn blocks_that_cannot_be_passed_on_become_a_sentence_and_keep_their_original() {
    for (block, word) in [
        (json!({"type": "hologram", "data": 1}), "\"hologram\""),
        (json!({"type": "text"}), "\"text\""),
        (json!({"type": "text", "text": 5}), "\"text\""),
        (json!({"type": "image", "data": "aGk="}), "\"mimeType\""),
        (json!({"type": "resource_link", "name": "x"}), "\"uri\""),
        (json!({"type": "resource"}), "no resource"),
        (json!({"type": "resource", "resource": {"uri": "x"}}), "\"blob\""),
        (json!({"text": "x"}), "does not say its type"),
        (json!(null), "null"),
        (json!("x"), "a text"),
    ] {
        let result = shaped(&json!({"content": [{"type": "text", "text": "kept"}, block]}));
        assert_eq!(result.content[0]["text"], "kept");
        assert_eq!(result.content[1]["type"], "unknown");
        assert_eq!(result.content[1]["original"], block);
        assert!(
            result.content[1]["text"].as_str().unwrap().contains(word),
            "{}",
            result.content[1]
        );
        assert_eq!(result.text, "kept");
        assert!(!result.truncated, "nothing is missing");
    }
}

#[test]
fn a_failed_tool_says_why_and_is_never_silent() {
    let failed = |content: Value| shaped(&json!({"isError": true, "content": content}));
    let result = failed(json!([{"type": "text", "text": " no such file "}, {"type": "text", "text": "x"}]));
    assert_eq!((result.ok, result.error.as_deref()), (false, Some("no such file \nx")));
    for nothing in [json!([]), json!(null), json!([{"type": "text", "text": " \n"}])] {
        let result = failed(nothing);
        assert_eq!(result.error.as_deref(), Some("The tool failed and gave no reason."));
        assert_eq!(result.text, "The tool failed and gave no reason.");
    }
    let long = failed(json!([{"type": "text", "text": "ä".repeat(5_000)}]))
        .error
        .unwrap();
    assert_eq!(chars(&long), 2_000);
    let structured = shaped(&json!({"isError": true, "structuredContent": {"code": 7}}));
    assert_eq!(structured.error.as_deref(), Some(r#"{"code":7}"#));
    for failed in [json!("true"), json!("True"), json!(1), json!(-1.5)] {
        assert!(!shaped(&json!({"isError": failed, "content": []})).ok, "{failed}");
    }
    assert!(shaped(&json!({"isError": 0, "content": []})).ok);
    assert!(shaped(&json!({"isError": null, "content": []})).ok);
}

#[test]
fn ten_megabytes_of_text_are_cut_in_the_middle_between_two_characters() {
    let text = format!("START{}END", "🦀".repeat(2_500_000));
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let result = shaped(&json!({"content": [{"type": "text", "text": text}, image], "isError": true}));
    for cut in [result.text.as_str(), result.content[0]["text"].as_str().unwrap()] {
        assert_eq!(chars(cut), 200_000);
        assert!(cut.starts_with("START🦀") && cut.ends_with("🦀END"));
        assert!(cut.contains(ID) && cut.contains("as text"));
    }
    assert_eq!(result.content[1], image);
    assert!(result.truncated && !result.ok);
    assert_eq!(result.full, Some(text));
}

#[test]
fn a_text_one_character_over_the_limit_is_cut_too() {
    for over in [1, 2, 3, 50] {
        let text = "x".repeat(400 + over);
        let result = small(&json!({"content": [{"type": "text", "text": text}]}));
        assert_eq!(chars(&result.text), 400);
        assert_eq!(result.full, Some(text));
    }
    let fits = small(&json!({"content": [{"type": "text", "text": "ä".repeat(400)}]}));
    assert!(!fits.truncated);
}

#[test]
fn many_texts_share_the_limit_and_short_ones_stay_whole() {
    let result = small(&json!({"content": [
        {"type": "text", "text": "short"},
        {"type": "text", "text": "a".repeat(900)},
        {"type": "resource", "resource": {"uri": "u", "text": "b".repeat(900)}},
    ]}));
    assert_eq!(result.content[0]["text"], "short");
    let (a, b) = (&result.content[1]["text"], &result.content[2]["resource"]["text"]);
    let total = 5 + chars(a.as_str().unwrap()) + chars(b.as_str().unwrap());
    assert!((398..=400).contains(&total), "{total}");
    assert_eq!(
        result.full.unwrap(),
        format!("short\n{}\n{}", "a".repeat(900), "b".repeat(900))
    );
}

#[test]
fn structured_content_is_whole_or_absent() {
    let raw = json!({"structuredContent": {"rows": vec!["row"; 300]}});
    let result = small(&raw);
    assert_eq!(result.structured, None);
    assert_eq!(chars(&result.text), 400);
    assert!(result.text.starts_with(r#"{"rows":["row""#) && result.text.contains("as JSON"));
    assert!(result.truncated);
    assert_eq!(result.full, Some(raw.to_string()));
}

#[test]
fn text_and_structured_content_share_the_limit() {
    let both = |text: usize, structured: usize| {
        // `"…"` as JSON has two characters more.
        let structured = "s ".repeat(structured / 2 - 1);
        let raw = json!({"content": [{"type": "text", "text": "t".repeat(text)}], "structuredContent": structured});
        (small(&raw), raw)
    };
    let (whole, _) = both(200, 200);
    assert!(!whole.truncated && whole.structured.is_some());

    let (structured_first, _) = both(300, 200);
    assert_eq!(chars(&structured_first.text), 200);
    assert_eq!(structured_first.content[0]["text"], structured_first.text.as_str());
    assert_eq!(structured_first.structured.unwrap().to_string().len(), 200);
    assert_eq!(structured_first.full, Some("t".repeat(300)), "only text is missing");

    let (text_first, raw) = both(150, 252);
    assert_eq!(text_first.structured, None);
    assert_eq!(
        text_first.content[0]["text"],
        "t".repeat(150),
        "the text has all the room"
    );
    let note = text_first.text.strip_prefix(&"t".repeat(150)).unwrap();
    assert!(
        note.contains("The structured content is left out here.") && note.contains(ID),
        "{note}"
    );
    assert_eq!(text_first.full, Some(raw.to_string()));

    let (neither, _) = both(900, 900);
    assert_eq!((neither.structured, chars(&neither.text)), (None, 400));
    assert!(neither.text.contains(ID));
}

#[test]
fn base64_in_structured_content_is_never_in_two_halves() {
    let data = "QUJD".repeat(750_000);
    let url = format!("data:image/png;base64,{data}");
    let raw = json!({
        "content": [{"type": "image", "data": data, "mimeType": "image/png"}],
        "structuredContent": {"name": "a.png", "data": data, "rows": [{"url": url}]},
    });
    let result = shaped(&raw);
    assert_eq!(result.content[0]["data"], data.as_str(), "the picture itself is whole");
    assert_eq!(result.structured, None);
    assert!(!result.text.contains("QUJDQUJD"), "{}", result.text);
    let left = "[3.0 MB of base64 are left out here]";
    assert!(result.text.starts_with(&format!(
        r#"{{"name":"a.png","data":"{left}","rows":[{{"url":"{left}"}}]}}"#
    )));
    assert!(result.text.contains(ID), "{}", result.text);
    assert_eq!(result.full, Some(raw.to_string()));
}

#[test]
fn structured_content_may_be_of_any_kind() {
    for structured in [
        json!([1, 2]),
        json!("text"),
        json!(1.5),
        json!(false),
        json!(0),
        json!({}),
    ] {
        let result = shaped(&json!({"content": [], "structuredContent": structured}));
        assert_eq!(result.text, structured.to_string());
        assert_eq!(result.structured, Some(structured));
    }
}

#[test]
fn a_character_written_as_two_escapes_stays_whole_at_the_cut() {
    for before in 0..4 {
        let raw = format!(
            r#"{{"content":[{{"type":"text","text":"{}{}"}}]}}"#,
            "a".repeat(before),
            r"\ud83e\udd80".repeat(1_000)
        );
        let limits = Limits {
            text_chars: 400,
            ..Limits::default()
        };
        let result = shape(&raw, &limits, Some(ID)).unwrap();
        assert_eq!(chars(&result.text), 400);
        assert!(!result.text.contains('\u{fffd}') && result.text.ends_with('🦀'));
    }
}

#[test]
fn base64_is_never_cut_but_replaced_when_too_large() {
    let just = json!({"type": "image", "data": "A".repeat(400), "mimeType": "image/png"});
    assert_eq!(small(&json!({"content": [just]})).content[0], just);
    for block in [
        json!({"type": "image", "data": "A".repeat(800), "mimeType": "image/png"}),
        json!({"type": "audio", "data": "A".repeat(800), "mimeType": "audio/wav"}),
        json!({"type": "resource", "resource": {"uri": "u", "blob": "A".repeat(800)}}),
    ] {
        let raw = json!({"content": [block]});
        let result = small(&raw);
        assert_eq!(result.content[0]["type"], "unknown");
        assert!(result.content[0]["text"].as_str().unwrap().contains(ID));
        assert!(result.content[0].get("original").is_none());
        assert!(result.truncated);
        assert_eq!(result.full, Some(raw.to_string()));
    }
}

#[test]
fn no_member_and_no_number_of_blocks_makes_an_answer_large() {
    let heavy = json!({"type": "text", "text": "x", "_meta": {"padding": "p".repeat(600)}});
    let result = small(&json!({"content": [heavy]}));
    assert_eq!(result.content[0]["type"], "unknown");
    assert!(result.truncated);

    let many: Vec<_> = (0..50)
        .map(|n| json!({"type": "text", "text": n.to_string()}))
        .collect();
    let result = small(&json!({"content": many}));
    let texts: Vec<_> = result
        .content
        .iter()
        .map(|block| block["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        (texts.len(), texts[0], texts[1], texts[3], texts[4]),
        (5, "0", "1", "48", "49")
    );
    assert!(texts[2].starts_with("46 blocks are left out here."));
    assert!(
        result
            .text
            .starts_with("0\n1\n48\n49\n\n[… 46 blocks are left out here.")
            && result.text.contains(ID),
        "{}",
        result.text
    );
}

#[test]
fn what_is_left_out_is_never_parsed() {
    let zeros = "0,".repeat(1_000_000);
    for raw in [
        format!(r#"{{"content":[{zeros}0]}}"#),
        format!(r#"{{"content":[{{"type":"text","text":"x","more":[{zeros}0]}}]}}"#),
        format!(r#"{{"content":[],"structuredContent":[{zeros}0]}}"#),
        format!(r#"{{"content":[],"more":[{zeros}0],"structuredContent":{{"a":[{zeros}0]}}}}"#),
    ] {
        let result = shape(&raw, &Limits::default(), Some(ID)).unwrap();
        assert!(result.content.len() <= 1_000 && result.structured.is_none());
        assert!(chars(&result.text) <= 200_000);
        let notes = [
            Some(result.text.as_str()),
            result.content.first().and_then(|block| block["text"].as_str()),
        ];
        assert!(
            notes.into_iter().flatten().any(|note| note.contains(ID)),
            "{notes:.300?}"
        );
        assert!(result.truncated && result.full == Some(raw));
    }
    let crowded = vec![json!({"type": "text", "text": "x", "more": vec![0; 30]}); 5];
    let result = small(&json!({"content": crowded}));
    let kinds: Vec<_> = result
        .content
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["text", "text", "unknown", "unknown", "unknown"]);
}

#[test]
fn one_block_that_cannot_be_parsed_takes_no_neighbour_along() {
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    for broken in [deep.as_str(), r#"{"type":"text","text":"\ud83e"}"#] {
        let raw = format!(r#"{{"content":[{broken},{{"type":"text","text":"kept"}}],"structuredContent":{broken}}}"#);
        let result = shape(&raw, &Limits::default(), Some(ID)).unwrap();
        assert_eq!(
            (&result.content[0]["type"], &result.content[1]["text"]),
            (&json!("unknown"), &json!("kept"))
        );
        assert!(result.structured.is_none() && result.truncated);
        assert_eq!(result.full, Some(raw));
    }
}

#[test]
fn a_rest_that_was_not_kept_is_not_promised() {
    let raw = json!({"content": [{"type": "text", "text": "x".repeat(200_001)}]});
    let result = shape(&raw.to_string(), &Limits::default(), None).unwrap();
    assert!(result.text.contains("The rest was not kept.") && !result.text.contains("result_id"));
}

#[test]
fn what_is_no_result_is_refused_without_quoting_it() {
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    for raw in [
        "",
        "SECRET",
        "{\"content\":[SECRET]}",
        "[\"SECRET\"]",
        "7",
        "{\"content\":7}",
        &deep,
    ] {
        let error = shape(raw, &Limits::default(), None).unwrap_err().to_string();
        assert!(
            error.starts_with("The server answered with") && !error.contains("SECRET"),
            "{error}"
        );
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        "text",
        "image",
        "audio",
        "resource",
        "resource_link",
        "\\PC{0,6}",
        "[ä🦀]{100,200}"
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.prop_map(Value::from)
    ];
    let key = prop_oneof![
        "type",
        "text",
        "data",
        "mimeType",
        "uri",
        "resource",
        "blob",
        "content",
        "isError",
        "structuredContent",
        "own"
    ];
    leaf.prop_recursive(4, 40, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_server_sends_is_bounded_and_has_known_blocks(content in proptest::collection::vec(any_json(), 0..9), failed in any_json()) {
        let raw = json!({"content": content, "structuredContent": failed, "isError": failed});
        let result = small(&raw);
        prop_assert!(chars(&result.text) <= 400);
        if let Some(structured) = result.structured.as_ref().filter(|_| result.ok) {
            let structured = structured.to_string();
            prop_assert!(result.text == structured || chars(&result.text) + chars(&structured) <= 400);
        }
        prop_assert!(result.content.len() <= 5);
        prop_assert_eq!(result.ok, result.error.is_none());
        prop_assert_eq!(result.truncated, result.full.is_some());
        prop_assert!(result.error.is_none_or(|error| !error.is_empty()));
        for block in result.content {
            let kind = block["type"].as_str().unwrap();
            prop_assert!(["text", "image", "audio", "resource_link", "resource", "unknown"].contains(&kind));
            prop_assert!(block.to_string().len() < 4_000);
        }
    }
}
