//! Tools that want something from the person first. Older sessions are asked in between (`elicitation/create`), modern ones
//! with a result that is none yet.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    options::Era,
    protocol::{Call, Reply, Server},
    stdio::write_line,
};

pub(crate) const TOOLS: [(&str, &str); 7] = [
    (
        "ask",
        "Asks the `questions`, each the parameters of an elicitation, and answers what came back",
    ),
    (
        "pages_first",
        "Refuses until the page `url` has been opened, then answers",
    ),
    ("complete", "Says that what was asked for as `id` is done"),
    (
        "again",
        "Modern: wants to be asked again `times` times without any question",
    ),
    ("sample", "Modern: wants what no client offered"),
    (
        "nag",
        "Legacy, over a pipe: from now on asks `times` times without a call, one after the other",
    ),
    ("echo", "Answers its arguments exactly as they arrived"),
];

/// Longer than any test lets a question wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// What goes along with every question of a modern session.
const STATE: &str = "state \u{1F511} \\ \"1\"";

/// Questions that were sent and not answered.
#[derive(Default)]
pub(crate) struct Asks {
    waiting: Mutex<HashMap<String, mpsc::Sender<Value>>>,
    asked: AtomicUsize,
    refused: AtomicUsize,
}

impl Asks {
    /// A message without a method answers one of them.
    pub(crate) fn answered(&self, id: &RawValue, message: &str) {
        let waiting = self.waiting.lock().expect("no holder panics").remove(id.get());
        let message: Value = serde_json::from_str(message).unwrap_or_default();
        if let Some(waiting) = waiting {
            let _ = waiting.send(message["result"].clone());
        }
    }

    fn ask(&self, params: &Value, send: &mut dyn FnMut(String)) -> Value {
        let id = json!(format!("ask-{}", self.asked.fetch_add(1, Ordering::SeqCst)));
        let (sender, answer) = mpsc::channel();
        let mut waiting = self.waiting.lock().expect("no holder panics");
        waiting.insert(id.to_string(), sender);
        drop(waiting);
        send(json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}).to_string());
        answer.recv_timeout(PATIENCE).unwrap_or_else(|_| json!("no answer"))
    }
}

/// `None` for a tool that is none of these.
pub(crate) fn call(server: &Server, call: &Call<'_>, arguments: &Value, send: &mut dyn FnMut(String)) -> Option<Reply> {
    let is_modern = server.options.era == Era::Modern;
    Some(match call.name.as_ref() {
        "ask" if is_modern => match call.input_responses {
            None => input_required(&arguments["questions"]),
            Some(responses) => {
                let responses: Value = serde_json::from_str(responses.get()).expect("JSON");
                let intact = call.request_state.as_deref() == Some(STATE);
                answers(&responses, Some(intact))
            }
        },
        "ask" => {
            let mut given = Map::new();
            for (key, params) in arguments["questions"].as_object().into_iter().flatten() {
                given.insert(key.clone(), server.asks.ask(params, send));
            }
            answers(&Value::Object(given), None)
        }
        "pages_first" => {
            if server.asks.refused.fetch_add(1, Ordering::SeqCst) > 0 {
                return Some(text("opened"));
            }
            let page =
                json!({"mode": "url", "message": "Open it first", "url": arguments["url"], "elicitationId": "p1"});
            let error = json!({"code": -32042, "message": "Pages first", "data": {"elicitations": [page]}});
            Reply::Failure(error.to_string())
        }
        "nag" => {
            let (asks, params) = (Arc::clone(&server.asks), arguments["question"].clone());
            let times = arguments["times"].as_u64().unwrap_or(0);
            std::thread::spawn(move || {
                for _ in 0..times {
                    asks.ask(&params, &mut |question| write_line(&question));
                }
            });
            text("from now on")
        }
        "complete" => {
            let params = json!({"elicitationId": arguments["id"]});
            let method = "notifications/elicitation/complete";
            send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
            text("said so")
        }
        "again" => {
            let done: u64 = call
                .request_state
                .as_deref()
                .map_or(0, |state| state.parse().expect("a number"));
            if done < arguments["times"].as_u64().unwrap_or(0) {
                let result = json!({"resultType": "input_required", "requestState": (done + 1).to_string()});
                return Some(Reply::Result(result.to_string()));
            }
            text(&format!("asked {done} times again"))
        }
        "sample" => {
            let wanted = json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}});
            Reply::Result(json!({"resultType": "input_required", "inputRequests": {"s": wanted}}).to_string())
        }
        _ => return None,
    })
}

/// A resource or a prompt, whichever it is called: what it is has to be said by the person first. Modern.
pub(crate) fn offer(method: &str, params: Option<&RawValue>) -> Reply {
    let params: Value = params.map_or(Value::Null, |params| serde_json::from_str(params.get()).expect("JSON"));
    let said = &params["inputResponses"]["q"];
    if said.is_null() {
        let form = json!({"type": "object", "properties": {"word": {"type": "string"}}});
        return input_required(&json!({"q": {"message": "Which word?", "requestedSchema": form}}));
    }
    let text = format!("{} {}", said["content"]["word"], params["requestState"] == STATE);
    Reply::Result(if method == "prompts/get" {
        json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}).to_string()
    } else {
        json!({"contents": [{"uri": params["uri"], "text": text}]}).to_string()
    })
}

fn input_required(questions: &Value) -> Reply {
    let requests: Map<String, Value> = questions
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, params)| (key.clone(), json!({"method": "elicitation/create", "params": params})))
        .collect();
    let result = json!({"resultType": "input_required", "inputRequests": requests, "requestState": STATE});
    Reply::Result(result.to_string())
}

fn answers(given: &Value, state_intact: Option<bool>) -> Reply {
    let mut told = json!({"answers": given});
    if let Some(intact) = state_intact {
        told["state_intact"] = intact.into();
    }
    text(&told.to_string())
}

fn text(text: &str) -> Reply {
    Reply::Result(json!({"content": [{"type": "text", "text": text}]}).to_string())
}
