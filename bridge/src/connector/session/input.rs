//! Results that are none yet: what an upstream needs first (SEP-2322, revision 2026-07-28), and pages that it wants opened
//! before it does anything (-32042, revision 2025-11-25). Pure.

use std::{borrow::Cow, collections::BTreeMap};

use rmcp::model::{ErrorData, InputResponses};
use serde::Deserialize;
use serde_json::Value;

/// The JSON-RPC code of `URLElicitationRequiredError`.
pub(super) const PAGES_FIRST: i32 = -32042;

/// Inputs that one result may ask for.
const MOST_INPUTS: usize = 32;

/// What an upstream needs before it goes on.
#[derive(Debug, PartialEq)]
pub(super) struct Required {
    /// Parameters of `elicitation/create`, by the upstream's keys.
    pub questions: BTreeMap<String, Value>,
    /// To be sent back as it is, or not at all.
    pub state: Option<String>,
}

/// What goes along with the next round of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    pub responses: Option<InputResponses>,
    pub state: Option<String>,
}

/// Whether a result of a modern session asks for something; the error is half a sentence.
pub(super) fn required(raw: &str) -> Option<Result<Required, String>> {
    #[derive(Deserialize)]
    struct Kind<'r> {
        #[serde(borrow, rename = "resultType", default)]
        result_type: Option<Cow<'r, str>>,
    }
    // Large results are not looked through twice.
    if !raw.contains("\"input_required\"") {
        return None;
    }
    let kind: Kind<'_> = serde_json::from_str(raw).ok()?;
    (kind.result_type? == "input_required").then(|| read(raw))
}

fn read(raw: &str) -> Result<Required, String> {
    #[derive(Deserialize)]
    struct Input {
        method: String,
        #[serde(default)]
        params: Value,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire {
        #[serde(default)]
        input_requests: Option<BTreeMap<String, Input>>,
        #[serde(default)]
        request_state: Option<String>,
    }
    let wire: Wire = serde_json::from_str(raw).map_err(|_| "it asks for something in a form of its own".to_owned())?;
    let requests = wire.input_requests.unwrap_or_default();
    if requests.is_empty() && wire.request_state.is_none() {
        return Err("it asks for something without saying what".to_owned());
    }
    if requests.len() > MOST_INPUTS {
        return Err(format!("it asks for more than {MOST_INPUTS} things at once"));
    }
    let questions = requests.into_iter().map(|(key, input)| {
        if input.method == "elicitation/create" {
            return Ok((key, input.params));
        }
        let method: String = input.method.chars().filter(|c| !c.is_control()).take(80).collect();
        Err(format!("it asks for {method}, which was not offered to it"))
    });
    Ok(Required {
        questions: questions.collect::<Result<_, _>>()?,
        state: wire.request_state,
    })
}

/// The pages that an error asks for, each as parameters of `elicitation/create`.
pub(super) fn pages(error: &ErrorData) -> Option<Vec<Value>> {
    if error.code.0 != PAGES_FIRST {
        return None;
    }
    let pages = error.data.as_ref()?["elicitations"].as_array()?;
    let is_page = |page: &Value| page["mode"] == "url";
    (!pages.is_empty() && pages.len() <= MOST_INPUTS && pages.iter().all(is_page)).then(|| pages.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ErrorCode;
    use serde_json::json;

    #[test]
    fn only_a_result_of_that_type_asks_and_its_state_stays_as_it_is() {
        for complete in [
            r#"{"content":[]}"#,
            r#"{"resultType":"complete","content":[{"type":"text","text":"\"input_required\""}]}"#,
            r#"{"content":[{"resultType":"input_required"}]}"#,
        ] {
            assert_eq!(required(complete), None, "{complete}");
        }
        let asking = json!({
            "resultType": "input_required", "requestState": "a\u{0} \"b\"",
            "inputRequests": {"x": {"method": "elicitation/create", "params": {"message": "m"}}},
        });
        let required = required(&asking.to_string()).unwrap().unwrap();
        assert_eq!(required.state.as_deref(), Some("a\u{0} \"b\""));
        assert_eq!(required.questions["x"], json!({"message": "m"}));
    }

    #[test]
    fn what_was_not_offered_and_what_says_nothing_is_refused() {
        for (asking, why) in [
            (json!({}), "without saying what"),
            (json!({"inputRequests": {}}), "without saying what"),
            (json!({"inputRequests": []}), "form of its own"),
            (json!({"requestState": 7}), "form of its own"),
            (
                json!({"inputRequests": {"x": {"method": "sampling/createMessage"}}}),
                "sampling/createMessage",
            ),
            (
                json!({"inputRequests": (0..40).map(|n| (n.to_string(), json!({"method": "elicitation/create"}))).collect::<serde_json::Map<_, _>>()}),
                "more than 32",
            ),
        ] {
            let mut asking = asking;
            asking["resultType"] = "input_required".into();
            let told = required(&asking.to_string()).unwrap().unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn an_error_asks_for_pages_only_with_its_own_code_and_pages_alone() {
        let error = |code, data| ErrorData::new(ErrorCode(code), "pages first", Some(data));
        let page = json!({"mode": "url", "url": "https://x.example/", "elicitationId": "1", "message": "m"});
        let asked = pages(&error(PAGES_FIRST, json!({"elicitations": [page]}))).unwrap();
        assert_eq!(asked, std::slice::from_ref(&page));
        for (code, data) in [
            (-32603, json!({"elicitations": [page]})),
            (PAGES_FIRST, json!({"elicitations": []})),
            (PAGES_FIRST, json!({"elicitations": [{"mode": "form"}]})),
            (PAGES_FIRST, json!({})),
        ] {
            assert_eq!(pages(&error(code, data.clone())), None, "{data}");
        }
    }
}
