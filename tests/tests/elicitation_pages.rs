//! Pages that upstreams want opened: shown whole, opened by the person alone.

use std::net::TcpListener;

use neuron_tests::asking::{answer, bridge_in, call, given, page, path_of, wait_for_question, waiting};
use serde_json::json;

#[test]
fn a_page_is_shown_whole_and_nothing_opens_or_contacts_it() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://127.0.0.1:{}/pay?for=x#y", listener.local_addr().unwrap().port());
    for era in ["legacy", "modern"] {
        let (bridge, _) = bridge_in(era);
        std::thread::scope(|scope| {
            let call = call(scope, &bridge, "x", json!({"q": page(&url, "e1")}));
            let question = wait_for_question(&bridge);
            let asks = &question["question"]["asks"];
            assert_eq!((&asks["mode"], &asks["url"]), (&json!("url"), &json!(url)));
            assert_eq!(asks["host"], "127.0.0.1");
            assert!(asks["warning"].as_str().unwrap().contains("this computer"), "{asks}");
            let with_values = answer(&bridge, &question, json!({"answer": "approve", "content": {}}));
            with_values.refused(400, "bad_request");
            answer(&bridge, &question, json!({"answer": "approve"})).ok();
            assert_eq!(
                given(&call.join().unwrap()),
                json!({"q": {"action": "accept"}}),
                "{era}"
            );
        });
        bridge.terminate();
        assert!(listener.accept().is_err(), "somebody contacted the page");
    }
}

#[test]
fn addresses_that_no_browser_should_get_are_declined_and_look_alikes_carry_a_warning() {
    let (bridge, _) = bridge_in("modern");
    for bad in [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://bank.example@evil.example/",
    ] {
        let declined = bridge.call("mcp__x__ask", &json!({"questions": {"q": page(bad, "e")}}));
        assert_eq!(given(&declined), json!({"q": {"action": "decline"}}), "{bad}");
    }
    std::thread::scope(|scope| {
        let call = call(scope, &bridge, "x", json!({"q": page("https://exаmple.com/", "e")}));
        let question = wait_for_question(&bridge);
        let asks = &question["question"]["asks"];
        assert_eq!(asks["host"], "xn--exmple-4nf.com");
        assert!(asks["warning"].as_str().unwrap().contains("look like others"), "{asks}");
        answer(&bridge, &question, json!({"answer": "deny"})).ok();
        call.join().unwrap();
    });
}

#[test]
fn a_page_whose_upstream_says_that_it_is_done_needs_no_more_answer() {
    let (bridge, _) = bridge_in("legacy");
    std::thread::scope(|scope| {
        let call = call(scope, &bridge, "x", json!({"q": page("https://example.com/pay", "e7")}));
        let question = wait_for_question(&bridge);
        assert_eq!(
            bridge.call_text("mcp__x__complete", &json!({"id": "another"})),
            "said so"
        );
        assert_eq!(waiting(&bridge).len(), 1);
        assert_eq!(bridge.call_text("mcp__x__complete", &json!({"id": "e7"})), "said so");
        assert_eq!(given(&call.join().unwrap()), json!({"q": {"action": "accept"}}));
        assert_eq!(bridge.owner_get(&path_of(&question)).ok()["state"], "approved");
    });
}

#[test]
fn a_call_that_needs_a_page_first_is_sent_once_more_when_it_was_opened_and_never_otherwise() {
    for (said, sent) in [("approve", 2), ("deny", 1)] {
        let (bridge, seen) = bridge_in("legacy");
        std::thread::scope(|scope| {
            let bridge = &bridge;
            let input = json!({"url": "https://example.com/consent"});
            let call = scope.spawn(move || bridge.call("mcp__x__pages_first", &input));
            let question = wait_for_question(bridge);
            assert_eq!(question["question"]["asks"]["url"], "https://example.com/consent");
            answer(bridge, &question, json!({"answer": said})).ok();
            let answered = call.join().unwrap();
            match said {
                "approve" => assert_eq!(answered.ok()["text"], "opened"),
                _ => assert!(answered.refused(403, "denied").contains("page"), "{}", answered.text()),
            }
        });
        assert_eq!(seen.messages("tools/call").len(), sent);
    }
}
