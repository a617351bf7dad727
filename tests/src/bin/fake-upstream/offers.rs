//! Resources, templates and prompts: what is listed, read and got, well or badly.

use std::sync::atomic::Ordering;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json, value::RawValue};

use crate::{
    answers::zeros,
    options::{Offering, Paging},
    protocol::{Reply, Server, member},
    tools::Told,
};

/// How often a change is told at once.
const BURST: usize = 100;

/// What is advertised; `tells` says whether changes are told.
pub(crate) fn capabilities(server: &Server, tells: bool) -> Value {
    match server.options.offers {
        Offering::None => json!({"tools": {"listChanged": tells}}),
        Offering::Standard
        | Offering::Bad
        | Offering::Pages(_)
        | Offering::Unsupported
        | Offering::Failing
        | Offering::Silent
        | Offering::Dying
        | Offering::Told => json!({
            "tools": {"listChanged": tells},
            "resources": {"listChanged": tells},
            "prompts": {"listChanged": tells},
        }),
    }
}

pub(crate) fn answer(
    server: &Server,
    method: &str,
    params: Option<&RawValue>,
    notify: &mut dyn FnMut(String),
) -> Reply {
    let text = |name| member(params, name).unwrap_or_default();
    match (method, server.options.offers) {
        (_, Offering::None) => Reply::Error(-32601, "Method not found"),
        ("resources/read", _) => read(server, &text("uri"), notify),
        ("prompts/get", Offering::Told) => Reply::Result(
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": format!("{} as asked", text("name"))}}]})
                .to_string(),
        ),
        ("prompts/get", _) => prompt(&text("name"), params),
        (_, Offering::Unsupported) => Reply::Error(-32601, "Method not found"),
        (_, Offering::Failing) => Reply::Error(-32603, "the shelf is empty"),
        (_, Offering::Silent) => Reply::Silence,
        (_, Offering::Dying) => Reply::Close,
        (_, Offering::Pages(paging)) => page(paging, server.options.tools, method, &text("cursor")),
        (_, Offering::Bad) => list(method, BAD_RESOURCES, r#"{"name":"good"},{"arguments":5},7"#, ""),
        (_, Offering::Told) => {
            let prompts = Told::now(&server.options).prompts;
            let prompts: Vec<_> = prompts.iter().map(|prompt| prompt.get()).collect();
            list(method, "", &prompts.join(","), "")
        }
        (_, Offering::Standard) => {
            let grown = server.grown.load(Ordering::SeqCst);
            let (resource, prompt) = match grown {
                true => (r#",{"uri":"fake://grown","name":"grown"}"#, r#",{"name":"grown"}"#),
                false => ("", ""),
            };
            list(
                method,
                &format!("{RESOURCES}{resource}"),
                &format!("{PROMPTS}{prompt}"),
                r#"{"uriTemplate":"fake://{thing}","name":"things","title":"Any thing","mimeType":"text/plain"}"#,
            )
        }
    }
}

const RESOURCES: &str = r#"{"uri":"fake://text","name":"text","title":"A text","description":"Some words","mimeType":"text/plain","size":9,"x-invented":1.10},{"uri":"fake://ünïcode/日本 x","name":"far"},{"uri":"fake://blob","name":"blob","mimeType":"application/octet-stream"}"#;

const BAD_RESOURCES: &str = r#"null,7,{"name":"nameless"},{"uri":5},{"uri":"fake://good"},{"uri":"fake://good","name":"twin"},{"uri":"fake://odd","name":[],"size":"big","mimeType":1}"#;

const PROMPTS: &str = r#"{"name":"greet","title":"Greet","description":"Greets somebody","arguments":[{"name":"name","description":"Whom","required":true},{"name":"tone"}]},{"name":"wait"}"#;

fn list(method: &str, resources: &str, prompts: &str, templates: &str) -> Reply {
    let (member, items) = match method {
        "resources/list" => ("resources", resources),
        "resources/templates/list" => ("resourceTemplates", templates),
        "prompts/list" => ("prompts", prompts),
        _ => return Reply::Error(-32601, "Method not found"),
    };
    Reply::Result(format!(
        r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","{member}":[{items}]}}"#
    ))
}

fn page(paging: Paging, pages: usize, method: &str, cursor: &str) -> Reply {
    let index: usize = match paging {
        Paging::Plain | Paging::FailingPage | Paging::SilentPage | Paging::SlowPage => cursor.parse().unwrap_or(0),
        Paging::RepeatedCursor | Paging::EmptyCursor => usize::from(!cursor.is_empty()),
    };
    let (member, item) = match method {
        "resources/list" => ("resources", format!(r#"{{"uri":"fake://{index}","name":"n"}}"#)),
        "resources/templates/list" => (
            "resourceTemplates",
            format!(r#"{{"uriTemplate":"fake://{index}/{{x}}"}}"#),
        ),
        _ => ("prompts", format!(r#"{{"name":"prompt_{index}"}}"#)),
    };
    let next = match paging {
        Paging::FailingPage if index == 1 => return Reply::Error(-32603, "the page is torn"),
        Paging::SilentPage if index == 1 => return Reply::Silence,
        Paging::RepeatedCursor => Some("again".to_owned()),
        Paging::EmptyCursor => Some(String::new()),
        Paging::Plain | Paging::FailingPage | Paging::SilentPage | Paging::SlowPage => {
            (index + 1 < pages).then(|| (index + 1).to_string())
        }
    };
    let next = next.map(|next| format!(r#","nextCursor":{}"#, json!(next)));
    Reply::Result(format!(r#"{{"{member}":[{item}]{}}}"#, next.unwrap_or_default()))
}

/// The bytes of `fake://blob`, which a test can make too.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|n| (n.wrapping_mul(167) >> 3) as u8).collect()
}

fn read(server: &Server, uri: &str, notify: &mut dyn FnMut(String)) -> Reply {
    let contents = |contents: Value| Reply::Result(json!({ "contents": contents }).to_string());
    match uri {
        "fake://text" => Reply::Result(
            r#"{"contents":[{"uri":"fake://text","text":"Some words","mimeType":"text/plain","x-invented":1.10}]}"#
                .to_owned(),
        ),
        "fake://ünïcode/日本 x" => contents(json!([{"uri": uri, "text": "weit weg"}])),
        "fake://blob" => contents(json!([{
            "uri": uri,
            "blob": BASE64_STANDARD.encode(bytes(server.options.bytes)),
            "mimeType": "application/octet-stream",
        }])),
        "fake://escaped" => Reply::Result(r#"{"contents":[{"uri":"x","blob":"\/\/79"}]}"#.to_owned()),
        "fake://broken" => contents(json!([{"uri": uri, "blob": format!("{}!", "A".repeat(200_000))}])),
        "fake://several" => contents(json!([{"uri": "fake://a", "text": "a"}, {"uri": "fake://b", "blob": "aGk="}])),
        "fake://none" => contents(json!([])),
        "fake://no-list" => Reply::Result("{}".to_owned()),
        "fake://long" => contents(json!([{"uri": uri, "text": "🦀".repeat(300_000)}])),
        "fake://huge" => contents(json!([{"uri": uri, "text": "x".repeat(17 << 20)}])),
        "fake://zeros" => Reply::Result(format!(r#"{{"contents":{}}}"#, zeros(15 << 20))),
        "fake://wait" => Reply::Silence,
        "fake://die" => Reply::Close,
        "fake://refused" => Reply::Error(-32603, "the disk\\nis on fire"),
        "fake://telling" => Reply::Error(-32603, "no entry with plain-looking-value"),
        "fake://not-here-new" => Reply::Error(-32602, "no such thing"),
        "fake://grow" => {
            server.grown.store(true, Ordering::SeqCst);
            for _ in 0..BURST {
                for list in ["resources", "prompts"] {
                    notify(format!(
                        r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#
                    ));
                }
            }
            contents(json!([{"uri": uri, "text": "grown"}]))
        }
        _ => Reply::Error(-32002, "Resource not found"),
    }
}

fn prompt(name: &str, params: Option<&RawValue>) -> Reply {
    let params: Value = params
        .and_then(|params| serde_json::from_str(params.get()).ok())
        .unwrap_or_default();
    match name {
        "greet" if params["arguments"]["name"].is_string() => Reply::Result(
            json!({
                "description": "A greeting",
                "messages": [
                    {"role": "user", "content": {"type": "text", "text": params["arguments"].to_string()}},
                    {"role": "assistant", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
                    {"role": "user", "content": {"type": "hologram"}},
                ],
            })
            .to_string(),
        ),
        "greet" => Reply::Error(-32602, "the name is missing"),
        "zeros" => Reply::Result(format!(r#"{{"messages":{}}}"#, zeros(15 << 20))),
        "described" => Reply::Result(json!({"description": "d".repeat(3_000), "messages": []}).to_string()),
        "wait" => Reply::Silence,
        _ => Reply::Error(-32602, "no such prompt"),
    }
}
