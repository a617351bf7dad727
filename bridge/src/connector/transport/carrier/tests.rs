use super::*;

fn message(method: Method, text: &str) -> ServerJsonRpcMessage {
    decode(method, text).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// As the SDK's own parser reads it, where it parses the data of an event itself.
fn again(message: &ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    serde_json::from_str(&serde_json::to_string(message).unwrap()).unwrap()
}

fn result_text(message: ServerJsonRpcMessage) -> String {
    raw_of(message.into_response().unwrap().0).unwrap()
}

const LIST: &str = r#"{"tools":[{"name":"a","inputSchema":{"type":"object","x":1.10},"execution":{"k":1}},{"name":"bad"},{"name":"b","inputSchema":{},"annotations":{"readOnlyHint":"yes"}},7],"nextCursor":"n","ttlMs":1e400,"other": [1.10]}"#;

#[test]
fn a_tool_list_keeps_its_text_and_one_bad_tool_spoils_nothing() {
    let text = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{LIST}}}"#);
    let (result, id) = message(Method::ToolsList, &text).into_response().unwrap();
    assert_eq!(id, RequestId::Number(3));
    let ServerResult::ListToolsResult(list) = &result else {
        panic!("{result:?}")
    };
    let names: Vec<_> = list.tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["a"]);
    assert_eq!(list.next_cursor.as_deref(), Some("n"));
    assert_eq!(raw_of(result).unwrap(), LIST);
}

#[test]
fn what_would_be_read_anew_without_end_fails_the_call_it_answers_and_nothing_else() {
    let mut nested = "1".to_owned();
    for _ in 0..12 {
        nested = format!("{}{nested}{}", "[".repeat(120), "]".repeat(120));
        nested = format!(
            r#"{{"$serde_json::private::RawValue":{}}}"#,
            Value::String(nested.clone())
        );
    }
    for member in [
        nested.clone(),
        nested.replacen("$serde", r"\u0024\u0073erde", 1),
        r#"{"a":[{"$serde_json::private::Number":"5"}]}"#.to_owned(),
    ] {
        for method in ["tools/list", "tools/call", "prompts/get", "initialize"] {
            for body in [
                format!(r#"{{"jsonrpc":"2.0","id":4,"result":{{"tools":[{{"x":{member}}}]}}}}"#),
                format!(r#"{{"jsonrpc":"2.0","id":4,"error":{{"code":1,"message":"m","data":{member}}}}}"#),
            ] {
                let (error, id) = message(Method::of(method), &body).into_error().unwrap();
                assert_eq!(
                    (error.code.0, id),
                    (BROKEN_ANSWER, Some(RequestId::Number(4))),
                    "{body}"
                );
            }
        }
        for body in [
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":{member}}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":4,"method":"elicitation/create","params":{member}}}"#),
            format!(r#"{{"jsonrpc":"2.0","error":{member}}}"#),
        ] {
            assert!(matches!(open(&body), Opened::Noise), "{body}");
        }
    }
    // As a text it is only a text.
    let text = r#"{"id":1,"result":{"content":[{"text":"$serde_json::private::RawValue"}]}}"#;
    assert!(matches!(open(text), Opened::Response { .. }));
}

#[test]
fn every_carried_method_gives_back_the_very_text() {
    let odd = "{ \"b\" : 1.10,\n \"a\":[{}], \"a\": \"\\u0000é\", \"n\":123456789012345678901234567890}";
    for method in [
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
    ] {
        let text = format!(r#"{{"id":1,"result":{odd},"jsonrpc":"2.0"}}"#);
        assert_eq!(result_text(message(Method::of(method), &text)), odd, "{method}");
    }
    let ServerResult::InitializeResult(typed) = message(
        Method::of("initialize"),
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#,
    )
    .into_response()
    .unwrap()
    .0
    else {
        panic!("initialize travels typed")
    };
    assert_eq!(typed.server_info.name, "s");
}

#[test]
fn a_rewritten_event_becomes_the_same_message_in_the_sdks_own_parser() {
    for (method, result) in [
        (Method::ToolsList, LIST),
        (Method::Raw, r#"{"content":[],"n":1.10,"resultType":"complete"}"#),
        (Method::Raw, "null"),
        (Method::Raw, r#""a string""#),
        (Method::Raw, "{}"),
    ] {
        let data = format!(r#"{{"jsonrpc":"2.0","id":"7","result":{result}}}"#);
        let parsed = again(&message(method, &data));
        assert_eq!(result_text(parsed), result);
    }
    for data in [
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"gone","data":{"n":1.10}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5,"total":2}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    ] {
        let ours = message(Method::Raw, data);
        let sdks = again(&ours);
        assert_eq!(serde_json::to_value(ours).unwrap(), serde_json::to_value(sdks).unwrap());
    }
    assert!(matches!(decode(Method::Typed, "hello"), Err(Unreadable::Noise)));
}

#[test]
fn a_clear_meaning_is_understood_in_spite_of_its_envelope() {
    for text in [
        r#"{"id":1,"result":{}}"#,
        r#"{"jsonrpc":2.0,"id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#,
        r#"{"jsonrpc":"2.0","id":1.0,"result":{},"extra":true}"#,
    ] {
        assert!(
            matches!(
                open(text),
                Opened::Response {
                    id: RequestId::Number(1),
                    ..
                }
            ),
            "{text}"
        );
    }
    for (text, code, sentence) in [
        (r#"{"id":1,"error":"no way"}"#, -32603, "no way"),
        (
            r#"{"id":1,"error":{"code":-5}}"#,
            -5,
            "The server reported an error without saying which.",
        ),
        (r#"{"id":1,"error":{"code":1e99,"message":"x"}}"#, -32603, "x"),
        (r#"{"id":1,"result":null,"error":{"code":-1,"message":"m"}}"#, -1, "m"),
    ] {
        let Opened::Error { id: Some(_), error } = open(text) else {
            panic!("{text}")
        };
        assert_eq!((error.code.0, error.message.as_ref()), (code, sentence));
    }
    assert!(matches!(open(r#"{"method":"ping","id":"x"}"#), Opened::Call(_)));
    assert!(matches!(
        open(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}"#),
        Opened::Call(_)
    ));
    assert!(matches!(
        open(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}"#),
        Opened::Error { id: None, .. }
    ));
}

#[test]
fn what_belongs_to_nobody_is_told_apart_from_noise() {
    let both = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#;
    assert!(matches!(open(both), Opened::Ambiguous));
    let deep = format!(
        r#"{{"jsonrpc":"2.0","method":"x","params":{}{}}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    for text in [
        "Starting…",
        "",
        "42",
        "null",
        "[]",
        r#"["2.0",1]"#,
        r#"{"level":"info"}"#,
        r#"{"error":"disk"}"#,
        r#"{"method":"GET","path":"/"}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}"#,
        deep.as_str(),
    ] {
        assert!(matches!(open(text), Opened::Noise), "{text}");
    }
}

#[test]
fn a_batch_is_unpacked_and_anything_else_left_whole() {
    let batch = r#" [{"id":1,"result":{"n":1.10}}, {"id":2,"result":{}}]"#;
    assert_eq!(
        messages(batch),
        [r#"{"id":1,"result":{"n":1.10}}"#, r#"{"id":2,"result":{}}"#]
    );
    for text in ["{}", "[oops", "text"] {
        assert_eq!(messages(text), [text]);
    }
}

#[test]
fn a_question_to_the_person_keeps_every_member_that_no_type_of_the_sdk_holds() {
    let params = r#"{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"number","minimum":1.10,"format":"password","x-own":[12345678901234567890123]}}}}"#;
    let text = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{params}}}"#);
    // Over HTTP the SDK reads the rewritten text once more.
    let typed = message(Method::Typed, &text);
    for message in [again(&typed), typed] {
        let ServerJsonRpcMessage::Request(request) = message else {
            panic!("no request")
        };
        let ServerRequest::CustomRequest(request) = request.request else {
            panic!("{:?}", request.request)
        };
        assert_eq!(request.method, ELICITATION);
        assert_eq!(request.params.unwrap().to_string(), params);
    }
}

#[test]
fn an_answer_nested_too_deeply_fails_its_call_with_a_sentence() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{deep}}}"#);
    let (error, id) = message(Method::Typed, &text).into_error().unwrap();
    assert_eq!((error.code.0, id), (BROKEN_ANSWER, Some(RequestId::Number(1))));
    assert!(error.message.starts_with("The server's answer could not be read"));
    assert_eq!(result_text(message(Method::Raw, &text)), deep);
}
