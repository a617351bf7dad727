//! JSON-RPC and the parts of MCP that every behaviour shares. Ids and arguments stay text from end to end.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::AtomicBool},
};

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::{
    asking::{self, Asks},
    offers,
    options::{Announce, Discover, Era, Kind, Listing, Options},
    record::Record,
    sandbox::Sandboxes,
    tools::{self, Page, Told},
};

const MODERN: &str = "2026-07-28";
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// One message as received.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
}

/// The parameters of `tools/call`.
#[derive(Deserialize)]
pub(crate) struct Call<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "inputResponses")]
    pub(crate) input_responses: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestState")]
    pub(crate) request_state: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, default, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
}

impl Call<'_> {
    pub(crate) fn progress_token(&self) -> Option<&str> {
        self.meta.as_ref()?.progress_token.map(RawValue::get)
    }
}

/// What a request gets.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The `result` member as JSON text.
    Result(String),
    Error(i64, &'static str),
    /// The `error` member as JSON text.
    Failure(String),
    /// No answer, ever.
    Silence,
    /// The connection ends without an answer.
    Close,
    /// These words, as they are, in place of a message.
    Words(&'static str),
}

impl Reply {
    /// The whole answer as one line; `None` where there is none.
    pub(crate) fn render(&self, id: &RawValue) -> Option<String> {
        let id = id.get();
        match self {
            Self::Result(result) => Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)),
            Self::Error(code, message) => Some(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}"}}}}"#
            )),
            Self::Failure(error) => Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)),
            Self::Words(words) => Some((*words).to_owned()),
            Self::Silence | Self::Close => None,
        }
    }
}

pub(crate) const LIST_CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// What a login page looks like, without a quotation mark.
const WEB_PAGE: &str = "<!doctype html><html><body>Please log in first</body></html>";

/// One server: its options, its record, and what calls have changed.
pub(crate) struct Server {
    pub(crate) options: Options,
    pub(crate) record: Record,
    /// True once `grow` has been called.
    pub(crate) grown: AtomicBool,
    pub(crate) asks: Arc<Asks>,
    sandboxes: Sandboxes,
}

impl Server {
    pub(crate) fn new(options: Options) -> Self {
        let record = Record::open(options.record.as_deref());
        Self {
            sandboxes: Sandboxes::in_folder(&options.folder),
            options,
            record,
            grown: AtomicBool::new(false),
            asks: Arc::default(),
        }
    }

    /// Answers one request of a session. `notify` sends a notification on the way.
    pub(crate) fn answer(
        &self,
        session: &str,
        method: &str,
        params: Option<&RawValue>,
        notify: &mut dyn FnMut(String),
    ) -> Reply {
        if self.options.kind == Kind::Sandbox
            && let Some(reply) = self.sandboxes.answer(session, method, params)
        {
            return reply;
        }
        if self.options.kind == Kind::Nonsense {
            return Reply::Result(json!(WEB_PAGE).to_string());
        }
        if self.options.listing == Listing::Asking && matches!(method, "resources/read" | "prompts/get") {
            return asking::offer(method, params);
        }
        match method {
            "initialize" => self.initialize(params),
            "server/discover" => self.discover(),
            "ping" => Reply::Result("{}".to_owned()),
            "tools/list" => match tools::page(self, cursor(params).as_deref()) {
                Page::Tools { tools, next } => {
                    if self.options.announce == Announce::EachList {
                        notify(LIST_CHANGED.to_owned());
                    }
                    let next = next.map(|next| format!(r#","nextCursor":{}"#, json!(next)));
                    let next = next.unwrap_or_default();
                    Reply::Result(format!(
                        r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{}]{next}}}"#,
                        tools.join(",")
                    ))
                }
                Page::Fails => Reply::Error(-32603, "the page is torn"),
                Page::Silence => Reply::Silence,
            },
            "tools/call" => match params.map(|params| serde_json::from_str::<Call<'_>>(params.get())) {
                Some(Ok(call)) => tools::call(self, &call, notify),
                _ => Reply::Error(-32602, "no such call"),
            },
            "resources/list" | "resources/templates/list" | "resources/read" | "prompts/list" | "prompts/get" => {
                offers::answer(self, method, params, notify)
            }
            _ => Reply::Error(-32601, "Method not found"),
        }
    }

    fn capabilities(&self, tells: bool) -> serde_json::Value {
        match self.options.kind {
            Kind::Sandbox => Sandboxes::capabilities(),
            Kind::Ok
            | Kind::Silent
            | Kind::NeverInitialize
            | Kind::Noise
            | Kind::Crash
            | Kind::Tree
            | Kind::Stubborn
            | Kind::IgnoresStdin
            | Kind::StderrFlood
            | Kind::Nonsense
            | Kind::Deaf => offers::capabilities(self, tells),
        }
    }

    fn initialize(&self, params: Option<&RawValue>) -> Reply {
        if self.options.kind == Kind::NeverInitialize {
            return Reply::Silence;
        }
        if self.options.era == Era::Modern {
            return Reply::Error(-32601, "Method not found");
        }
        std::thread::sleep(self.options.delay);
        let asked = member(params, "protocolVersion").unwrap_or_default();
        let version = LEGACY.into_iter().find(|known| *known == asked).unwrap_or(LEGACY[0]);
        let told = (self.options.listing == Listing::Told).then(|| Told::now(&self.options));
        let (instructions, number) = told.map_or((None, None), |told| (told.instructions, told.version));
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": self.capabilities(true),
            "serverInfo": {"name": "fake", "version": number.as_deref().unwrap_or("1")},
        });
        if let Some(instructions) = instructions {
            result["instructions"] = instructions.into();
        }
        Reply::Result(result.to_string())
    }

    fn discover(&self) -> Reply {
        if self.options.era == Era::Legacy {
            return match self.options.discover {
                Discover::Error => Reply::Error(-32601, "Method not found"),
                Discover::Empty => Reply::Result("{}".to_owned()),
                Discover::Close => Reply::Close,
                Discover::Silence => Reply::Silence,
                Discover::Html => Reply::Result(json!(WEB_PAGE).to_string()),
                Discover::HtmlLine => Reply::Words(WEB_PAGE),
                Discover::Idless => {
                    Reply::Words(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what is that"}}"#)
                }
            };
        }
        std::thread::sleep(self.options.delay);
        Reply::Result(
            json!({
                "resultType": "complete",
                "supportedVersions": [MODERN],
                "capabilities": self.capabilities(false),
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "1"}},
            })
            .to_string(),
        )
    }
}

fn cursor(params: Option<&RawValue>) -> Option<String> {
    member(params, "cursor")
}

/// A member of the parameters that is text.
pub(crate) fn member(params: Option<&RawValue>, name: &str) -> Option<String> {
    let params: serde_json::Value = serde_json::from_str(params?.get()).ok()?;
    Some(params.get(name)?.as_str()?.to_owned())
}
