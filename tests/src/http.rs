//! A plain HTTP/1.1 client over TCP or a Unix socket, and raw bytes for what no client would send.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::PathBuf,
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, Response,
    body::{Bytes, Incoming},
    client::conn::http1::SendRequest,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::runtime::Runtime;

/// Longer than any answer may take that a test waits for.
const ANSWER: Duration = Duration::from_secs(60);

/// Where a bridge listens.
#[derive(Debug, Clone)]
pub enum Address {
    Tcp(u16),
    Socket(PathBuf),
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// # Panics
    /// When the body is no JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| {
            panic!(
                "status {} with a body that is no JSON ({e}): {}",
                self.status,
                self.text()
            )
        })
    }

    /// The value of a header, where there is one.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body of a 200.
    ///
    /// # Panics
    /// On any other status.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// Checks the one shape of a refusal and returns its sentence.
    ///
    /// # Panics
    /// When status, code or shape differ.
    pub fn refused(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        let body = self.json();
        assert_eq!(body["code"], code, "{body}");
        assert_eq!(body["ok"], false, "{body}");
        let message = body["error"].as_str().unwrap_or_default();
        assert!(message.len() > 10, "an error is a sentence: {body}");
        message.to_owned()
    }
}

/// One kept-alive connection.
pub struct Connection {
    // The sender is dropped before the runtime that drives its connection.
    sender: SendRequest<Full<Bytes>>,
    runtime: Runtime,
    host: String,
}

impl Connection {
    /// # Panics
    /// When nobody listens.
    pub fn open(address: &Address) -> Self {
        Self::try_open(address).unwrap_or_else(|e| panic!("nobody listens at {address:?}: {e}"))
    }

    /// # Errors
    /// When nobody listens.
    pub fn try_open(address: &Address) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (sender, host) = runtime.block_on(async {
            match address {
                Address::Tcp(port) => {
                    let stream = tokio::net::TcpStream::connect(("127.0.0.1", *port)).await?;
                    stream.set_nodelay(true)?;
                    Ok((handshake(stream).await?, format!("127.0.0.1:{port}")))
                }
                Address::Socket(path) => {
                    let stream = tokio::net::UnixStream::connect(path).await?;
                    Ok((handshake(stream).await?, "localhost".to_owned()))
                }
            }
            .map_err(|e: std::io::Error| e)
        })?;
        Ok(Self { sender, runtime, host })
    }

    /// Sends one request and reads its whole answer.
    ///
    /// # Panics
    /// When the connection breaks or nothing comes.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_send(method, path, headers, body)
            .unwrap_or_else(|e| panic!("{method} {path}: {e}"))
    }

    /// # Errors
    /// When the connection breaks or nothing comes.
    pub fn try_send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, String> {
        let request = self.request(method, path, headers, body);
        let sender = &mut self.sender;
        self.runtime.block_on(async {
            let whole = async {
                sender.ready().await?;
                let answer = sender.send_request(request).await?;
                let (head, body) = answer.into_parts();
                let body = body.collect().await?.to_bytes().to_vec();
                Ok::<_, hyper::Error>(Answer {
                    status: head.status.as_u16(),
                    headers: head.headers,
                    body,
                })
            };
            match tokio::time::timeout(ANSWER, whole).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(e)) => Err(e.to_string()),
                Err(_) => Err(format!("no answer in {ANSWER:?}")),
            }
        })
    }

    /// Sends a request whose answer is a stream of events.
    ///
    /// # Panics
    /// When the answer is no 200.
    pub fn events(mut self, path: &str, headers: &[(&str, &str)]) -> Events {
        let request = self.request("GET", path, headers, b"");
        let sender = &mut self.sender;
        let answer = self
            .runtime
            .block_on(async {
                sender.ready().await?;
                sender.send_request(request).await
            })
            .expect("the stream opens");
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Events {
            answer,
            seen: String::new(),
            connection: self,
        }
    }

    /// Sends a request and hangs up once `sent_is_enough` says so, without reading an answer.
    ///
    /// # Panics
    /// When an answer comes first.
    pub fn abandon(mut self, method: &str, path: &str, body: &[u8], sent_is_enough: impl Fn() -> bool) {
        let request = self.request(method, path, &[], body);
        let sender = &mut self.sender;
        self.runtime.block_on(async {
            sender.ready().await.expect("an open connection");
            let enough = async {
                while !sent_is_enough() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::select! {
                answer = sender.send_request(request) => panic!("answered before the caller went away: {answer:?}"),
                _ = tokio::time::timeout(ANSWER, enough) => {}
            }
        });
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Request<Full<Bytes>> {
        let mut request = Request::builder().method(method).uri(path);
        let given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        if !given("host") {
            request = request.header("host", &self.host);
        }
        if !body.is_empty() && !given("content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request
            .body(Full::new(Bytes::copy_from_slice(body)))
            .expect("a request")
    }
}

async fn handshake<S>(stream: S) -> std::io::Result<SendRequest<Full<Bytes>>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(std::io::Error::other)?;
    tokio::spawn(connection);
    Ok(sender)
}

/// A stream of server-sent events.
pub struct Events {
    answer: Response<Incoming>,
    seen: String,
    connection: Connection,
}

/// One event as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub name: String,
    pub id: Option<u64>,
    pub data: Value,
}

impl Events {
    /// Reads on until the bridge ends the stream; every event that still came.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn rest(mut self) -> Vec<Event> {
        let body = self.answer.body_mut();
        let rest = self.connection.runtime.block_on(async {
            tokio::time::timeout(crate::wait::SOON, async {
                let mut rest = String::new();
                while let Some(Ok(frame)) = body.frame().await {
                    let data = frame.into_data().unwrap_or_default();
                    rest.push_str(&String::from_utf8_lossy(&data));
                }
                rest
            })
            .await
        });
        let text = self.seen + &rest.expect("the stream ends");
        text.split("\n\n").filter_map(read_event).collect()
    }

    /// The next event that `wanted` accepts; comments and others are passed over.
    ///
    /// # Panics
    /// When none comes in time or the stream ends.
    pub fn next(&mut self, what: &str, wanted: impl Fn(&Event) -> bool) -> Event {
        let deadline = std::time::Instant::now() + crate::wait::SOON;
        loop {
            while let Some(end) = self.seen.find("\n\n") {
                let text: String = self.seen.drain(..end + 2).collect();
                if let Some(event) = read_event(&text)
                    && wanted(&event)
                {
                    return event;
                }
            }
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            let body = self.answer.body_mut();
            let frame = self
                .connection
                .runtime
                .block_on(async { tokio::time::timeout(left, body.frame()).await });
            match frame {
                Ok(Some(Ok(frame))) => {
                    let data = frame.into_data().unwrap_or_default();
                    self.seen
                        .push_str(&String::from_utf8_lossy(&data).replace("\r\n", "\n"));
                }
                Ok(Some(Err(e))) => panic!("{what}: the stream broke: {e}"),
                Ok(None) => panic!("{what}: the stream ended"),
                Err(_) => panic!("{what}: no such event in {:?}", crate::wait::SOON),
            }
        }
    }
}

fn read_event(text: &str) -> Option<Event> {
    let (mut name, mut id, mut data) = (String::new(), None, String::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (field, value) = line.split_once(':')?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = value.to_owned(),
            "id" => id = value.parse().ok(),
            "data" => data.push_str(value),
            _ => {}
        }
    }
    let data = serde_json::from_str(&data).ok()?;
    Some(Event { name, id, data })
}

/// Sends bytes as they are and reads until the other side closes. `Connection: close` belongs into the bytes.
///
/// # Panics
/// When nobody listens or nothing comes back.
pub fn raw(address: &Address, bytes: &[u8]) -> Answer {
    let seen = match address {
        Address::Tcp(port) => {
            let stream = TcpStream::connect(("127.0.0.1", *port)).expect("somebody listens");
            stream.set_read_timeout(Some(ANSWER)).expect("a timeout can be set");
            exchange(stream, bytes)
        }
        Address::Socket(path) => {
            let stream = UnixStream::connect(path).expect("somebody listens");
            stream.set_read_timeout(Some(ANSWER)).expect("a timeout can be set");
            exchange(stream, bytes)
        }
    };
    read_answer(&seen).unwrap_or_else(|| panic!("no HTTP answer: {:?}", String::from_utf8_lossy(&seen)))
}

fn exchange(mut stream: impl Read + Write, bytes: &[u8]) -> Vec<u8> {
    // A refusal may come, and the connection close, before everything is sent.
    let _ = stream.write_all(bytes);
    let mut seen = Vec::new();
    let _ = stream.read_to_end(&mut seen);
    seen
}

fn read_answer(seen: &[u8]) -> Option<Answer> {
    let split = seen.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&seen[..split]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name = hyper::header::HeaderName::from_bytes(name.as_bytes()).ok()?;
        headers.append(name, value.trim().parse().ok()?);
    }
    let body = seen[split + 4..].to_vec();
    Some(Answer { status, headers, body })
}
