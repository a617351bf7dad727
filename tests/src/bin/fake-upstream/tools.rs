//! What is listed, and what a call does.

use std::{fs::OpenOptions, io::Write, sync::atomic::Ordering, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    answers, asking,
    options::{Listing, Options, Paging},
    protocol::{Call, LIST_CHANGED, Reply, Server},
};

/// One answer to `tools/list`, each tool as JSON text.
pub(crate) enum Page {
    Tools { tools: Vec<String>, next: Option<String> },
    Fails,
    Silence,
}

/// Every tool of the standard list, with what it does.
const STANDARD: [(&str, &str); 13] = [
    ("echo", "Answers its arguments exactly as they arrived"),
    ("slow", "Answers after `ms` milliseconds"),
    ("hang", "Never answers"),
    ("big", "Answers `bytes` letters"),
    ("die", "Ends this process without an answer"),
    ("fail", "Answers with isError"),
    ("env", "Answers this process's environment"),
    ("cwd", "Answers this process's working folder"),
    ("argv", "Answers this process's arguments"),
    (
        "progress",
        "Reports progress `steps` times, `ms` milliseconds apart, with the words `say`, then answers",
    ),
    (
        "counter",
        "Adds `key` as a line to a file and answers their number; with `die` it ends this process instead",
    ),
    ("grow", "Adds the tool `grown` and says so"),
    ("blocks", "Answers one block of every kind"),
];

/// The tools of the rude list, beside `echo`.
const RUDE: [(&str, &str); 6] = [
    (
        "storm",
        "Says `times` times that the list changed, `ms` apart, then answers",
    ),
    (
        "deep",
        "Answers a result nested `levels` deep, and so many times `anew`",
    ),
    ("progress", STANDARD[9].1),
    ("stray-progress", "Reports progress of nothing, then answers"),
    ("flood", "Reports progress `steps` times at once, then answers"),
    ("mark", "Adds `key` as a line to a file and answers it"),
];

/// A quick call is answered on the reading thread.
pub(crate) fn is_quick(name: &str) -> bool {
    name == "echo"
}

pub(crate) fn page(server: &Server, cursor: Option<&str>) -> Page {
    let whole = |tools: Vec<String>| Page::Tools { tools, next: None };
    match server.options.listing {
        Listing::Standard => {
            let mut tools: Vec<_> = STANDARD.iter().map(|(name, what)| tool(name, what)).collect();
            if server.grown.load(Ordering::SeqCst) {
                tools.push(tool("grown", "Was not there before"));
            }
            whole(tools)
        }
        Listing::Saying => {
            let standard = STANDARD.iter().map(|(name, what)| tool(name, what));
            whole(standard.chain([tool("said", &server.options.say)]).collect())
        }
        Listing::Rude => {
            std::thread::sleep(server.options.page_delay);
            let rude = RUDE.iter().map(|(name, what)| tool(name, what));
            whole([tool("echo", STANDARD[0].1)].into_iter().chain(rude).collect())
        }
        Listing::Bad => {
            let too_deep = format!(
                r#"{{"name":"deep_schema","inputSchema":{{"type":"object","x":{}{}}}}}"#,
                "[".repeat(DEEP),
                "]".repeat(DEEP)
            );
            let bad = BAD.iter().map(|text| (*text).to_owned());
            whole([too_deep].into_iter().chain(bad).collect())
        }
        Listing::UnknownMembers => whole(vec![UNKNOWN_MEMBERS.to_owned()]),
        Listing::Folding => whole(vec![tool("a-b", "With a hyphen"), tool("a.b", "With a dot")]),
        Listing::LongName => whole(vec![tool(&"t".repeat(40), "Long")]),
        Listing::Headers => whole(HEADERS.map(str::to_owned).to_vec()),
        Listing::Answers => whole(answers::TOOLS.iter().map(|name| tool(name, "As told")).collect()),
        Listing::Asking => whole(asking::TOOLS.iter().map(|(name, what)| tool(name, what)).collect()),
        Listing::Told => {
            let told = Told::now(&server.options);
            let tools = told.tools.iter().map(|tool| tool.get().to_owned());
            whole(
                [tool("announce", "Says that the list changed")]
                    .into_iter()
                    .chain(tools)
                    .collect(),
            )
        }
        Listing::Many => whole((0..server.options.tools).map(numbered).collect()),
        Listing::Pages(paging) => one_a_page(paging, &server.options, cursor),
    }
}

/// What the file of `--told` says.
#[derive(Deserialize)]
pub(crate) struct Told {
    /// Each as it is sent.
    tools: Vec<Box<RawValue>>,
    #[serde(default)]
    pub(crate) prompts: Vec<Box<RawValue>>,
    #[serde(default)]
    pub(crate) instructions: Option<String>,
    #[serde(default)]
    pub(crate) version: Option<String>,
}

impl Told {
    pub(crate) fn now(options: &Options) -> Self {
        let text = std::fs::read_to_string(&options.told).expect("the file of --told reads");
        serde_json::from_str(&text).expect("the file of --told is JSON")
    }
}

fn one_a_page(paging: Paging, options: &Options, cursor: Option<&str>) -> Page {
    let (pages, delay) = (options.tools, options.page_delay);
    let index: usize = match (paging, cursor) {
        (_, None) => 0,
        (Paging::EmptyCursor, Some(_)) => 1,
        (Paging::RepeatedCursor, Some(_)) => 1,
        (_, Some(cursor)) => cursor.parse().unwrap_or(0),
    };
    let tools = vec![numbered(index)];
    let next = (index + 1 < pages).then(|| (index + 1).to_string());
    match paging {
        Paging::Plain => Page::Tools { tools, next },
        Paging::RepeatedCursor => Page::Tools {
            tools,
            next: Some("again".to_owned()),
        },
        Paging::EmptyCursor => Page::Tools {
            tools,
            next: Some(String::new()),
        },
        Paging::FailingPage if index == 1 => Page::Fails,
        Paging::SilentPage if index == 1 => Page::Silence,
        Paging::SlowPage if index == 1 => {
            std::thread::sleep(delay);
            Page::Tools { tools, next }
        }
        Paging::FailingPage | Paging::SilentPage | Paging::SlowPage => Page::Tools { tools, next },
    }
}

fn numbered(index: usize) -> String {
    tool(&format!("tool_{index}"), "One of many")
}

fn tool(name: &str, description: &str) -> String {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {}},
    })
    .to_string()
}

/// Number texts that a float or a 64-bit integer would change, and members of no revision.
const UNKNOWN_MEMBERS: &str = r#"{"name":"odd","description":"Odd","inputSchema":{"type":"object","properties":{"n":{"type":"number","multipleOf":1.10,"maximum":12345678901234567890123}}},"execution":{"taskSupport":"optional"},"x-invented":{"deep":[1.10,null]}}"#;

/// The second's arguments would share one header.
const HEADERS: [&str; 2] = [
    r#"{"name":"echo","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"where":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"Where-N"}}}}}}"#,
    r#"{"name":"torn","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}}"#,
];

/// Deeper than any JSON parser's usual limit.
const DEEP: usize = 10_000;

const BAD: [&str; 16] = [
    r##"{"name":"recursive_schema","description":"Refers to itself","inputSchema":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}}}"##,
    r#"{"name":"no_schema"}"#,
    r#"{"name":"null_schema","inputSchema":null}"#,
    r#"{"name":"true_schema","inputSchema":true}"#,
    r#"{"name":"array_schema","inputSchema":[]}"#,
    r#"{"name":"text_schema","inputSchema":"object"}"#,
    r#"{"name":"text_hint","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"yes"}}"#,
    r#"{"name":"list_of_hints","inputSchema":{"type":"object"},"annotations":[]}"#,
    r#"{"name":"numeric_description","description":7,"inputSchema":{"type":"object"}}"#,
    r#"{"name":"twice","description":"first","inputSchema":{"type":"object"}}"#,
    r#"{"name":"twice","description":"second","inputSchema":{"type":"object"}}"#,
    "null",
    "7",
    r#"{"description":"nameless","inputSchema":{"type":"object"}}"#,
    r#"{"name":"","inputSchema":{"type":"object"}}"#,
    r#"{"name":"good","description":"Fine","inputSchema":{"type":"object","properties":{}}}"#,
];

/// Runs a tool. A tool that is not one of the standard list answers its own name and arguments.
pub(crate) fn call(server: &Server, call: &Call<'_>, notify: &mut dyn FnMut(String)) -> Reply {
    let raw = call.arguments.map_or("{}", |arguments| arguments.get());
    let arguments: Value = serde_json::from_str(raw).unwrap_or_default();
    let number = |name: &str| arguments.get(name).and_then(Value::as_u64).unwrap_or(0);
    let pause = || std::thread::sleep(Duration::from_millis(number("ms")));
    if server.options.listing == Listing::Asking
        && let Some(reply) = asking::call(server, call, &arguments, notify)
    {
        return reply;
    }
    match call.name.as_ref() {
        "echo" => text(raw),
        "slow" => {
            pause();
            text(raw)
        }
        "hang" => Reply::Silence,
        "big" => text(&"x".repeat(usize::try_from(number("bytes")).expect("a 64-bit machine"))),
        "die" => {
            eprintln!("dying as told");
            std::process::exit(3);
        }
        "fail" => Reply::Result(
            json!({"content": [{"type": "text", "text": "it did not work"}], "isError": true}).to_string(),
        ),
        "env" => {
            let mut lines: Vec<_> = std::env::vars()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            lines.sort();
            text(&lines.join("\n"))
        }
        "cwd" => text(
            &std::env::current_dir()
                .map(|dir| dir.display().to_string())
                .unwrap_or_default(),
        ),
        "argv" => text(&json!(std::env::args().skip(1).collect::<Vec<_>>()).to_string()),
        "progress" => {
            for step in 1..=number("steps") {
                pause();
                if let Some(token) = call.progress_token() {
                    notify(match arguments.get("say") {
                        Some(words) => progress_with(token, step, &format!(r#","message":{words}"#)),
                        None => progress(token, step),
                    });
                }
            }
            text("done")
        }
        "counter" => {
            mark(server, key(&arguments));
            if arguments["die"] == true {
                std::process::exit(3);
            }
            text(&count(server))
        }
        "mark" => {
            mark(server, key(&arguments));
            pause();
            text(key(&arguments))
        }
        "storm" => {
            for _ in 0..number("times") {
                pause();
                notify(LIST_CHANGED.to_owned());
            }
            text("calm")
        }
        "deep" => {
            let levels = usize::try_from(number("levels")).expect("a 64-bit machine");
            let mut deep = ["[".repeat(levels), "]".repeat(levels)].concat();
            // Each time as the text of a member that serde_json takes for JSON which it is to read.
            for _ in 0..number("anew") {
                let open = ["[".repeat(levels), "]".repeat(levels)];
                let member = json!({"$serde_json::private::RawValue": deep});
                deep = format!("{}{member}{}", open[0], open[1]);
            }
            Reply::Result(format!(r#"{{"content":[],"structuredContent":{{"deep":{deep}}}}}"#))
        }
        "stray-progress" => {
            for token in ["null", "-1", "\"nobody\"", "{}"] {
                notify(progress(token, 1));
            }
            notify(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#.to_owned());
            text("done")
        }
        "flood" => {
            let token = call.progress_token().unwrap_or("null");
            for step in 1..=number("steps") {
                notify(progress(token, step));
            }
            text("done")
        }
        "announce" => {
            notify(LIST_CHANGED.to_owned());
            text("announced")
        }
        "grow" => {
            server.grown.store(true, Ordering::SeqCst);
            notify(LIST_CHANGED.to_owned());
            text("grown")
        }
        "blocks" => Reply::Result(BLOCKS.to_owned()),
        other => answers::call(other, &arguments).unwrap_or_else(|| text(&format!("{other} {raw}"))),
    }
}

const BLOCKS: &str = r#"{"content":[{"type":"text","text":"ein Wort"},{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"audio","data":"aGk=","mimeType":"audio/wav"},{"type":"resource_link","uri":"file:///x","name":"x"},{"type":"resource","resource":{"uri":"file:///y","text":"inhalt"}},{"type":"hologram","beam":1}],"structuredContent":{"n":1.10}}"#;

fn text(text: &str) -> Reply {
    Reply::Result(json!({"content": [{"type": "text", "text": text}]}).to_string())
}

fn progress(token: &str, step: u64) -> String {
    progress_with(token, step, "")
}

/// `more` are further members.
fn progress_with(token: &str, step: u64, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step}{more}}}}}"#
    )
}

fn key(arguments: &Value) -> &str {
    arguments["key"].as_str().unwrap_or("x")
}

/// One write a line, so that a reader never sees half of one.
fn mark(server: &Server, key: &str) {
    let Some(path) = &server.options.counter else { return };
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .expect("the counter opens");
    file.write_all(format!("{key}\n").as_bytes())
        .expect("the counter can be written");
}

fn count(server: &Server) -> String {
    let Some(path) = &server.options.counter else {
        return "no --counter".to_owned();
    };
    let text = std::fs::read_to_string(path).expect("the counter reads");
    text.lines().count().to_string()
}
