//! Requests in, answers out, and the record between them.

use std::{
    collections::HashMap,
    convert::Infallible,
    fs::{File, OpenOptions},
    io::Write,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header,
};
use serde_json::{Map, Value, json};

use crate::{
    authority::{self, Books},
    mcp,
    options::Options,
};

pub(crate) type Answer = Response<Full<Bytes>>;

pub(crate) struct Site {
    pub(crate) port: u16,
    options: Mutex<Options>,
    books: Mutex<Books>,
    record: Option<Mutex<File>>,
}

/// A request that was read whole.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: HashMap<String, String>,
    pub(crate) authorization: String,
    pub(crate) body: Bytes,
    /// All that came with it: its query, as written, and each header.
    pub(crate) sent: String,
}

impl Asked {
    /// The body as a form.
    pub(crate) fn form(&self) -> HashMap<String, String> {
        url::form_urlencoded::parse(&self.body).into_owned().collect()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Site {
    pub(crate) fn new(port: u16, options: Options) -> Self {
        let record = options.given("record").map(|path| {
            let file = OpenOptions::new().create(true).append(true).open(path);
            Mutex::new(file.unwrap_or_else(|e| panic!("cannot record to {path}: {e}")))
        });
        Self {
            port,
            options: Mutex::new(options),
            books: Mutex::default(),
            record,
        }
    }

    pub(crate) fn options(&self) -> MutexGuard<'_, Options> {
        self.options.lock().expect("no holder panics")
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().expect("no holder panics")
    }

    /// Our own address.
    pub(crate) fn base(&self) -> String {
        format!("http://{}:{}", self.options().get("host"), self.port)
    }

    /// Our own issuer.
    pub(crate) fn issuer(&self) -> String {
        let base = self.base();
        format!("{base}{}", self.options().get("issuer-path"))
    }

    fn note(&self, asked: &Asked, is_form: bool) {
        let Some(file) = &self.record else { return };
        let body = if is_form {
            json!(asked.form())
        } else {
            serde_json::from_slice(&asked.body)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&asked.body).into_owned()))
        };
        let line = json!({
            "method": asked.method,
            "path": asked.path,
            "query": asked.query,
            "authorization": asked.authorization,
            "body": body,
        });
        // One write per line, so that a reader never sees half of one.
        let whole = format!("{line}\n");
        let mut file = file.lock().expect("no writer panics");
        file.write_all(whole.as_bytes()).expect("the record can be written");
    }

    fn set(&self, values: &Map<String, Value>) -> Answer {
        for (name, value) in values {
            let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            if name == "forget-clients" {
                self.books().clients.clear();
            } else if let Err(message) = self.options().set(name, value) {
                return text(StatusCode::BAD_REQUEST, &message);
            }
        }
        text(StatusCode::OK, "set")
    }
}

pub(crate) async fn respond(site: Arc<Site>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return Ok(text(StatusCode::BAD_REQUEST, "half a body"));
    };
    let header = |name| {
        head.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let is_form = header(header::CONTENT_TYPE).starts_with("application/x-www-form-urlencoded");
    let query = head.uri.query().unwrap_or_default();
    let asked = Asked {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        authorization: header(header::AUTHORIZATION).to_owned(),
        body: body.to_bytes(),
        sent: std::iter::once(format!("?{query}"))
            .chain(head.headers.iter().map(|(name, value)| {
                let value = String::from_utf8_lossy(value.as_bytes());
                format!("{name}: {value}")
            }))
            .collect::<Vec<_>>()
            .join("\n"),
    };
    match asked.path.as_str() {
        "/fake/set" => return Ok(site.set(asked.json().as_object().unwrap_or(&Map::new()))),
        "/fake/state" => return Ok(json_answer(StatusCode::OK, &site.books().counts())),
        _ => {}
    }
    site.note(&asked, is_form);
    if asked.path.ends_with("/token") {
        let wait: u64 = site.options().get("token-delay").parse().expect("milliseconds");
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }
    Ok(if asked.path == "/mcp" {
        mcp::answer(&site, &asked)
    } else {
        authority::answer(&site, &asked)
    })
}

pub(crate) fn text(status: StatusCode, words: &str) -> Answer {
    answer(status, "text/plain", words)
}

pub(crate) fn html(status: StatusCode) -> Answer {
    answer(status, "text/html", "<html><body>Something else is here.</body></html>")
}

pub(crate) fn json_answer(status: StatusCode, value: &Value) -> Answer {
    answer(status, "application/json", &value.to_string())
}

pub(crate) fn answer(status: StatusCode, kind: &str, body: &str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body.to_owned())));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, kind.parse().expect("a header value"));
    answer
}

pub(crate) fn with_header(mut answer: Answer, name: header::HeaderName, value: &str) -> Answer {
    answer
        .headers_mut()
        .insert(name, value.parse().expect("a header value"));
    answer
}
