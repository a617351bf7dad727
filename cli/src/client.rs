//! The way to the running bridge: finds it by `<home>/connect/api.json`, asks it over its local socket, reads its
//! answers into outcomes.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    time::Duration,
};

use http_body_util::{BodyExt as _, Full};
use hyper::{
    Method, Request,
    body::{Bytes, Incoming},
    client::conn::http1::{self, SendRequest},
    header::{ACCEPT, CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::Value;
use tokio::net::UnixStream;

use crate::exit::{Exit, Failure};

/// Longest wait for an answer that needs no upstream.
const ANSWER: Duration = Duration::from_secs(30);

/// What a running bridge says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Running {
    /// `None` while another program holds the port.
    pub(crate) port: Option<u16>,
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) socket: PathBuf,
}

/// A bridge that was running when it was looked for.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) running: Running,
    pub(crate) home: PathBuf,
}

/// An answer's status and JSON body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Client {
    /// Finds the bridge of this home.
    ///
    /// # Errors
    /// Exit 3 where none is running.
    pub(crate) fn find(home: &Path) -> Result<Self, Failure> {
        let path = home.join("connect").join("api.json");
        let text = std::fs::read_to_string(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => none_running(home),
            _ => Failure::no_bridge(format!("{} cannot be read: {e}.", path.display())),
        })?;
        let running = serde_json::from_str(&text).map_err(|e| {
            Failure::no_bridge(format!(
                "{} cannot be understood ({e}): restart the bridge, which writes it anew.",
                path.display()
            ))
        })?;
        Ok(Self {
            running,
            home: home.to_owned(),
        })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.ask(Method::GET, path, None, ANSWER).await
    }

    /// What a connector that waits for the person's entry wants, where the bridge tells.
    pub(crate) async fn wanted_by(&self, server: &Value) -> Option<Wanted> {
        if server["action"] != "set_secret" {
            return None;
        }
        let path = format!("/mcp/servers/{}", encoded(server["id"].as_str()?));
        Wanted::of(&self.get(&path).await.ok()?.ok().ok()?)
    }

    pub(crate) async fn post(&self, path: &str, body: String) -> Result<Answer, Failure> {
        self.ask(Method::POST, path, Some(body), ANSWER).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Answer, Failure> {
        self.ask(Method::DELETE, path, None, ANSWER).await
    }

    /// Like `post`, for what may take as long as an upstream does.
    pub(crate) async fn post_slowly(&self, path: &str, body: String, wait: Duration) -> Result<Answer, Failure> {
        self.ask(Method::POST, path, Some(body), wait).await
    }

    /// Opens a page and gives its status alone.
    pub(crate) async fn visit(&self, path: &str, wait: Duration) -> Result<u16, Failure> {
        self.in_time(wait, self.raw(Method::GET, path, None))
            .await
            .map(|(status, _)| status)
    }

    /// Writes what is at `path`, piece by piece, as it comes.
    ///
    /// # Errors
    /// What the bridge refuses, as [`Answer::ok`]; where it ends early or cannot be written.
    pub(crate) async fn download(
        &self,
        path: &str,
        wait: Duration,
        out: &mut (dyn io::Write + Send),
    ) -> Result<(), Failure> {
        let refused = self.in_time(wait, async {
            let (mut sender, connection) = self.connect().await?;
            let request = request(Method::GET, path, None)?;
            let exchange = async {
                let response = sender.send_request(request).await?;
                let status = response.status().as_u16();
                let mut body = response.into_body();
                if status != 200 {
                    let bytes = body.collect().await?.to_bytes();
                    let body = serde_json::from_slice(&bytes).map_err(Trouble::Json)?;
                    return Ok(Some(Answer { status, body }));
                }
                while let Some(frame) = body.frame().await {
                    if let Ok(data) = frame?.into_data() {
                        out.write_all(&data).map_err(Trouble::Written)?;
                    }
                }
                out.flush().map_err(Trouble::Written)?;
                drop(sender);
                Ok::<_, Trouble>(None)
            };
            tokio::select! {
                answer = exchange => answer,
                // The last piece may still be on its way to whoever writes it.
                Err(error) = connection => Err(error.into()),
            }
        });
        match refused.await? {
            None => Ok(()),
            Some(answer) => answer.ok().map(drop),
        }
    }

    /// What happens from now on.
    pub(crate) async fn events(&self) -> Result<Events, Failure> {
        self.in_time(ANSWER, async {
            let (mut sender, connection) = self.connect().await?;
            let driver = tokio::spawn(async move {
                // How it ends is seen by whoever reads.
                let _ = connection.await;
            });
            let request = request(Method::GET, "/mcp/events", None)?;
            let response = sender.send_request(request).await?;
            Ok(Events {
                body: response.into_body(),
                text: Vec::new(),
                _sender: sender,
                _driver: AbortOnDrop(driver),
            })
        })
        .await
    }

    async fn ask(&self, method: Method, path: &str, body: Option<String>, wait: Duration) -> Result<Answer, Failure> {
        self.in_time(wait, async {
            let (status, bytes) = self.raw(method, path, body).await?;
            let body = if bytes.is_empty() {
                Value::Null
            } else {
                serde_json::from_slice(&bytes).map_err(Trouble::Json)?
            };
            Ok(Answer { status, body })
        })
        .await
    }

    async fn in_time<T>(&self, wait: Duration, work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Failure> {
        match tokio::time::timeout(wait, work).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Trouble::NobodyThere)) => Err(none_running(&self.home)),
            Ok(Err(trouble)) => Err(Failure::failed(format!(
                "The bridge (process {}) could not be asked: {trouble}.",
                self.running.pid
            ))),
            Err(_elapsed) => Err(Failure::failed(format!(
                "The bridge (process {}) did not answer within {} seconds: try again, or restart it.",
                self.running.pid,
                wait.as_secs()
            ))),
        }
    }

    async fn connect(&self) -> Result<(Sender, Connection), Trouble> {
        let stream = UnixStream::connect(&self.running.socket)
            .await
            .map_err(|e| match e.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Trouble::NobodyThere,
                _ => Trouble::Io(e),
            })?;
        // Whoever finds the folder gone can make one of its name, and would be told secrets.
        let other = stream.peer_cred().map_err(Trouble::Io)?;
        if other.uid() != rustix::process::geteuid().as_raw() {
            return Err(Trouble::AnotherUser(self.running.socket.clone()));
        }
        Ok(http1::handshake(TokioIo::new(stream)).await?)
    }

    async fn raw(&self, method: Method, path: &str, body: Option<String>) -> Result<(u16, Bytes), Trouble> {
        let (mut sender, connection) = self.connect().await?;
        let request = request(method, path, body)?;
        let exchange = async {
            let response = sender.send_request(request).await?;
            let status = response.status().as_u16();
            let bytes = response.into_body().collect().await?.to_bytes();
            // Ends the connection, which `connection` waits for.
            drop(sender);
            Ok((status, bytes))
        };
        let (answer, _closed) = tokio::join!(exchange, connection);
        answer.map_err(|e: hyper::Error| Trouble::Http(e))
    }
}

type Sender = SendRequest<Full<Bytes>>;
type Connection = http1::Connection<TokioIo<UnixStream>, Full<Bytes>>;

fn request(method: Method, path: &str, body: Option<String>) -> Result<Request<Full<Bytes>>, Trouble> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, "localhost")
        .header(ACCEPT, "application/json");
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    Ok(request.body(Full::new(Bytes::from(body.unwrap_or_default())))?)
}

/// The stream of what happens.
pub(crate) struct Events {
    body: Incoming,
    /// What came and is no whole line yet; one event of the bridge is at most a few kilobytes.
    text: Vec<u8>,
    // The connection ends without it.
    _sender: Sender,
    _driver: AbortOnDrop,
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Events {
    /// The next event; `None` when the bridge ended. Safe to drop and call again.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                if let Some(data) = line.strip_prefix(b"data: ")
                    && let Ok(event) = serde_json::from_slice(data)
                {
                    return Some(event);
                }
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.text.extend_from_slice(&data);
            }
        }
    }
}

impl Answer {
    /// The body of a success.
    ///
    /// # Errors
    /// The API's own sentence with the exit code that fits; 4 for what was refused or waits for the person.
    pub(crate) fn ok(self) -> Result<Value, Failure> {
        if (200..300).contains(&self.status) && self.body["pending"] != true {
            return Ok(self.body);
        }
        let code = self.body["code"].as_str().unwrap_or_default();
        let exit = match (self.status, code) {
            (202 | 401 | 403, _) | (_, "needs_secret" | "needs_sign_in" | "needs_review" | "tool_changed") => {
                Exit::NeedsYou
            }
            _ => Exit::Failed,
        };
        let message = match self.body["error"].as_str() {
            Some(sentence) if !sentence.is_empty() => sentence.to_owned(),
            _ => format!("The bridge answered {} without saying why.", self.status),
        };
        Err(Failure {
            exit,
            message,
            body: self.body,
        })
    }
}

/// What a person does here about an `action` of the API, for a connector and the secret that it waits for, where they are
/// known. What to do about a keychain is in its own sentence.
pub(crate) fn hint(action: &str, id: Option<&str>, wanted: Option<&Wanted>) -> Option<String> {
    let id = id.unwrap_or("ID");
    match action {
        "enable" => Some(format!("turn it on: neuron-connectd enable {id}")),
        "reconnect" => Some(format!("try again: neuron-connectd reconnect {id}")),
        "edit" => Some("correct its entry in connectors.json".to_owned()),
        "set_secret" => Some(match wanted {
            Some(Wanted::Token) => format!("enter it: neuron-connectd secret set {id}"),
            Some(Wanted::Named(name)) => format!("enter it: neuron-connectd secret set {id} {name}"),
            None => format!("enter it: neuron-connectd secret set {id} [NAME]"),
        }),
        "sign_in" => Some(format!("sign in: neuron-connectd sign-in {id}")),
        "review" => Some("look at it: neuron-connectd approvals".to_owned()),
        _ => None,
    }
}

/// What a connector waits for to be entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    Token,
    Named(String),
}

impl Wanted {
    /// The first that is not set, of a connector's detail; the only one where all are, as one of them was refused.
    pub(crate) fn of(detail: &Value) -> Option<Self> {
        let secrets = detail["secrets"].as_array()?;
        let missing = secrets.iter().find(|secret| secret["set"] == false);
        let only = secrets.first().filter(|_| secrets.len() == 1);
        let secret = missing.or(only)?;
        Some(match secret["name"].as_str() {
            Some(name) => Self::Named(name.to_owned()),
            None => Self::Token,
        })
    }
}

fn none_running(home: &Path) -> Failure {
    let serve = if std::env::var_os("HOME").is_some_and(|h| Path::new(&h).join(".neuron") == home) {
        "neuron-connectd serve".to_owned()
    } else {
        format!("neuron-connectd --home {} serve", home.display())
    };
    Failure::no_bridge(format!(
        "No bridge is running for {}: start it with \"{serve}\", or open Neuron Connect.",
        home.display()
    ))
}

enum Trouble {
    NobodyThere,
    /// It listens where the bridge did.
    AnotherUser(PathBuf),
    Io(io::Error),
    Http(hyper::Error),
    Request(hyper::http::Error),
    Json(serde_json::Error),
    /// What came could not be written.
    Written(io::Error),
}

impl From<hyper::Error> for Trouble {
    fn from(e: hyper::Error) -> Self {
        Self::Http(e)
    }
}

impl From<hyper::http::Error> for Trouble {
    fn from(e: hyper::http::Error) -> Self {
        Self::Request(e)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NobodyThere => f.write_str("nobody listens on its socket"),
            Self::AnotherUser(socket) => write!(
                f,
                "another user of this computer listens at {}, and was told nothing: restart the bridge, and ask who \
                 that is",
                socket.display()
            ),
            Self::Io(e) => write!(f, "{e}"),
            Self::Written(e) => write!(f, "what it sent cannot be written ({e})"),
            Self::Http(e) => write!(f, "{e}"),
            Self::Request(e) => write!(f, "{e}"),
            Self::Json(e) => write!(f, "its answer is no JSON ({e})"),
        }
    }
}

/// One segment or query value of a path.
pub(crate) fn encoded(text: &str) -> String {
    use fmt::Write as _;
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn refusals_and_what_waits_for_the_person_have_their_own_exit_code() {
        for (status, body, exit) in [
            (
                202,
                json!({"ok": false, "pending": true, "error": "Waits."}),
                Exit::NeedsYou,
            ),
            (403, json!({"code": "scope_missing", "error": "No."}), Exit::NeedsYou),
            (409, json!({"code": "needs_secret", "error": "Secret."}), Exit::NeedsYou),
            (409, json!({"code": "disabled", "error": "Off."}), Exit::Failed),
            (504, json!({"code": "upstream_timeout", "error": "Late."}), Exit::Failed),
            (500, Value::Null, Exit::Failed),
        ] {
            let failure = Answer { status, body }.ok().unwrap_err();
            assert_eq!(failure.exit, exit, "{status}");
            assert!(!failure.message.is_empty());
        }
        assert!(
            Answer {
                status: 200,
                body: json!({"ok": true})
            }
            .ok()
            .is_ok()
        );
    }

    #[test]
    fn the_command_that_enters_a_secret_names_the_one_that_is_missing() {
        let secret = |name: Value, set: Value| json!({"name": name, "set": set, "withheld": false});
        let set = |secrets: Value| {
            let wanted = Wanted::of(&json!({ "secrets": secrets }));
            hint("set_secret", Some("x"), wanted.as_ref()).unwrap()
        };
        let (a, b) = (json!("A"), json!("B"));
        for (secrets, ends) in [
            (
                json!([secret(a.clone(), json!(true)), secret(b.clone(), json!(false))]),
                "x B",
            ),
            (json!([secret(Value::Null, json!(false))]), "set x"),
            (json!([secret(a.clone(), json!(true))]), "x A"),
            (json!([secret(a, json!(true)), secret(b, json!(true))]), "x [NAME]"),
            (Value::Null, "x [NAME]"),
        ] {
            let told = set(secrets.clone());
            assert!(told.ends_with(ends), "{secrets}: {told}");
        }
    }

    #[test]
    fn what_is_put_into_a_path_cannot_leave_its_place() {
        assert_eq!(encoded("a/b?c=d ü"), "a%2Fb%3Fc%3Dd%20%C3%BC");
    }
}
