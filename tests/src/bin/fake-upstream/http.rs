//! The same server over HTTP at any path of a port, with everything that may go wrong on the way.

use std::{
    collections::{HashMap, HashSet},
    io, net,
    process::ExitCode,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{Stream, StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::value::RawValue;
use tokio::{net::TcpStream, sync::mpsc};

use crate::{
    gzip, old_sse,
    options::{Afterwards, Era, Forgotten, Get, Kind, Listing, Options, Refusal},
    protocol::{Message, Reply, Server},
};

pub(crate) type Answer = Response<BoxBody<Bytes, io::Error>>;

/// How long a stream stays open that idles out.
const IDLE: Duration = Duration::from_millis(200);

/// Stands for "end our half only" on the way from a refusal to the connection.
const HALF: io::ErrorKind = io::ErrorKind::WriteZero;
/// Stands for "say nothing and keep the connection".
pub(crate) const SILENCE: io::ErrorKind = io::ErrorKind::WouldBlock;

pub(crate) struct Site {
    pub(crate) server: Server,
    state: Mutex<State>,
    pub(crate) old: old_sse::Streams,
}

#[derive(Default)]
struct State {
    sessions: HashSet<String>,
    opened: usize,
    calls: usize,
    refused: usize,
    /// Answers that wait behind the event with this id.
    resumable: HashMap<String, String>,
}

/// Prints the port as the first line, then serves until it is killed.
pub(crate) fn serve(port: u16, options: Options) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    let site = Arc::new(Site {
        server: Server::new(options),
        state: Mutex::default(),
        old: old_sse::Streams::default(),
    });
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port))
            .await
            .expect("the port is free");
        println!("{}", listener.local_addr().expect("bound").port());
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                return ExitCode::FAILURE;
            };
            let site = Arc::clone(&site);
            let Some((stream, twin)) = twins(stream) else {
                continue;
            };
            tokio::spawn(async move {
                let service = service_fn(move |request| respond(Arc::clone(&site), Arc::clone(&twin), request));
                // A client that hangs up is what some tests are about.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    })
}

/// The connection, and a handle that can end one half of it.
fn twins(stream: TcpStream) -> Option<(TcpStream, Arc<net::TcpStream>)> {
    let stream = stream.into_std().ok()?;
    let twin = stream.try_clone().ok()?;
    Some((TcpStream::from_std(stream).ok()?, Arc::new(twin)))
}

/// An error ends the connection without an answer.
async fn respond(site: Arc<Site>, twin: Arc<net::TcpStream>, request: Request<Incoming>) -> io::Result<Answer> {
    let (head, body) = request.into_parts();
    let session = head
        .headers
        .get("mcp-session-id")
        .and_then(|v| v.to_str().ok())
        .map(ToOwned::to_owned);
    let last_event_id = header(&head.headers, "last-event-id");
    site.server.record.note(&format!(
        "{} {} session={} last-event-id={} authorization={}",
        head.method,
        head.uri,
        session.as_deref().unwrap_or("-"),
        last_event_id,
        header(&head.headers, "authorization"),
    ));
    site.server.record.note(&protocol_headers(&head.headers));
    let Ok(body) = body.collect().await else {
        return Ok(plain(StatusCode::BAD_REQUEST, "text/plain", "half a body"));
    };
    let body = body.to_bytes();
    let key = site.server.options.key.as_ref();
    if key.is_some_and(|key| header(&head.headers, "authorization") != format!("Bearer {key}")) {
        return Ok(unauthorized());
    }
    match head.method {
        Method::POST => {
            site.server.record.line(&body);
            let text = String::from_utf8_lossy(&body).into_owned();
            // Tools may sleep; they do so off the reactor.
            let answer = tokio::task::spawn_blocking(move || match site.server.options.old_sse {
                Some(status) => old_sse::message(&site, &head.uri, &text, status),
                None => post(&site, session.as_deref(), &text),
            })
            .await
            .unwrap_or_else(|_| Ok(plain(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "the fake broke")));
            match answer {
                Err(error) if error.kind() == HALF => {
                    twin.shutdown(net::Shutdown::Write)?;
                    std::future::pending().await
                }
                Err(error) if error.kind() == SILENCE => std::future::pending().await,
                answer => answer,
            }
        }
        Method::GET => {
            let waiting = site.lock().resumable.remove(&last_event_id);
            Ok(match waiting {
                Some(answer) => events(vec![answer], Ending::Closed),
                None if site.server.options.old_sse.is_some() => old_sse::stream(&site),
                None => get(site.server.options.get),
            })
        }
        Method::DELETE => {
            site.lock().sessions.remove(&session.unwrap_or_default());
            Ok(plain(StatusCode::OK, "text/plain", ""))
        }
        _ => Ok(no_stream()),
    }
}

impl Site {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }
}

fn get(what: Get) -> Answer {
    match what {
        Get::NotAllowed => no_stream(),
        Get::Refused => plain(StatusCode::BAD_REQUEST, "text/plain", "no"),
        Get::Open => events(vec![], Ending::Open),
        Get::Closes => events(vec![], Ending::Closed),
        Get::Resets => events(vec![], Ending::Reset),
        Get::IdlesOut => events(vec![], Ending::After(IDLE)),
    }
}

fn unauthorized() -> Answer {
    let mut answer = plain(StatusCode::UNAUTHORIZED, "text/plain", "who are you");
    let challenge = "Bearer".parse().expect("a header value");
    answer.headers_mut().insert("www-authenticate", challenge);
    answer
}

fn no_stream() -> Answer {
    plain(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "no stream here")
}

/// Those of the protocol itself, in the order of their names.
fn protocol_headers(headers: &hyper::HeaderMap) -> String {
    let ours = headers.keys().filter(|name| name.as_str().starts_with("mcp-"));
    let mut shown: Vec<_> = ours
        .map(|name| format!("{name}={}", header(headers, name.as_str())))
        .collect();
    shown.sort();
    format!("with {}", shown.join(" "))
}

fn header(headers: &hyper::HeaderMap, name: &str) -> String {
    match headers.get(name) {
        Some(value) => String::from_utf8_lossy(value.as_bytes()).into_owned(),
        None => "-".to_owned(),
    }
}

fn post(site: &Arc<Site>, session: Option<&str>, text: &str) -> io::Result<Answer> {
    let Ok(message) = serde_json::from_str::<Message<'_>>(text) else {
        return Ok(plain(StatusCode::BAD_REQUEST, "text/plain", "no message"));
    };
    let method = message.method.as_deref().unwrap_or_default();
    if let Some(refused) = refuse(site, method, &message) {
        return refused;
    }
    let options = &site.server.options;
    let owns_by_session = options.forget_after.is_some() || options.kind == Kind::Sandbox;
    let with_sessions = options.era != Era::Modern && owns_by_session;
    if with_sessions && !matches!(method, "initialize" | "server/discover") && !knows(site, session, method) {
        return Ok(match options.forgotten {
            Forgotten::NotFound => plain(StatusCode::NOT_FOUND, "text/plain", "no such session"),
            Forgotten::IdlessBadRequest => plain(
                StatusCode::BAD_REQUEST,
                "application/json",
                r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
            ),
            Forgotten::CodedBadRequest => plain(
                StatusCode::BAD_REQUEST,
                "application/json",
                &coded_error(&message, "Session not found"),
            ),
            Forgotten::Error => {
                let error = coded_error(&message, "Session not found");
                match options.sse {
                    true => events(vec![error], Ending::Closed),
                    false => plain(StatusCode::OK, "application/json", &error),
                }
            }
        });
    }
    let Some(id) = message.id else {
        return Ok(plain(StatusCode::ACCEPTED, "text/plain", ""));
    };
    if message.method.is_none() {
        site.server.asks.answered(id, text);
        return Ok(plain(StatusCode::ACCEPTED, "text/plain", ""));
    }
    if options.sse && options.listing == Listing::Asking && method == "tools/call" {
        return Ok(said_at_once(site, id, message.params));
    }
    let mut notifications = Vec::new();
    let reply = site
        .server
        .answer(session.unwrap_or_default(), method, message.params, &mut |line| {
            notifications.push(line)
        });
    let Some(line) = reply.render(id) else {
        return Ok(match reply {
            Reply::Close => plain(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "closed"),
            _ => events(vec![], Ending::Open),
        });
    };
    let mut answer = if options.sse {
        notifications.push(line);
        events(notifications, Ending::Closed)
    } else {
        plain(StatusCode::OK, "application/json", &line)
    };
    if with_sessions && method == "initialize" {
        let mut state = site.state.lock().expect("no holder panics");
        state.opened += 1;
        let name = format!("session-{}-{}", std::process::id(), state.opened);
        answer
            .headers_mut()
            .insert("mcp-session-id", name.parse().expect("a header value"));
        state.sessions.insert(name);
    }
    Ok(answer)
}

/// A stream in which everything comes when it is said.
fn said_at_once(site: &Arc<Site>, id: &RawValue, params: Option<&RawValue>) -> Answer {
    let (site, id, params) = (Arc::clone(site), id.to_owned(), params.map(ToOwned::to_owned));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let say = |line: String| {
            let _ = sender.send(format!("event: message\ndata: {line}\n\n"));
        };
        let reply = site
            .server
            .answer("", "tools/call", params.as_deref(), &mut |line| say(line));
        if let Some(line) = reply.render(&id) {
            say(line);
        }
    });
    let texts = stream::poll_fn(move |context| receiver.poll_recv(context));
    event_stream(texts.map(|text| Ok(Frame::data(Bytes::from(text)))))
}

/// An error for the request, with the code that stands for an unknown session and for other things.
fn coded_error(message: &Message<'_>, words: &str) -> String {
    let id = message.id.map_or("null", |id| id.get());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32001,"message":"{words}"}}}}"#)
}

/// A status with an error of the protocol that names no request.
fn idless_error(status: StatusCode, words: &str) -> Answer {
    let error = format!(r#"{{"jsonrpc":"2.0","error":{{"code":-32603,"message":"{words}"}},"id":null}}"#);
    plain(status, "application/json", &error)
}

/// Whether the session is known; counts calls and forgets everybody when their time has come.
fn knows(site: &Site, session: Option<&str>, method: &str) -> bool {
    let mut state = site.state.lock().expect("no holder panics");
    if method == "tools/call" {
        if Some(state.calls) == site.server.options.forget_after {
            state.sessions.clear();
        }
        state.calls += 1;
    }
    session.is_some_and(|session| state.sessions.contains(session))
}

/// Whether this request is one of those to be refused, and how; counts it.
pub(crate) fn refusal<'s>(site: &'s Site, method: &str) -> Option<&'s Refusal> {
    let options = &site.server.options;
    let refusal = options.refusal.as_ref()?;
    if options.refuse_method.as_deref().is_some_and(|only| only != method) {
        return None;
    }
    {
        let mut state = site.state.lock().expect("no holder panics");
        if state.refused >= options.refuse_times {
            return None;
        }
        state.refused += 1;
    }
    Some(refusal)
}

fn refuse(site: &Site, method: &str, message: &Message<'_>) -> Option<io::Result<Answer>> {
    Some(Ok(match refusal(site, method)? {
        Refusal::Status { status, retry_after } => {
            let status = StatusCode::from_u16(*status).expect("a status");
            let answer = plain(status, "text/plain", "SECRET-BODY of the upstream");
            asking_for_time(answer, retry_after.as_deref())
        }
        Refusal::Failing { status, retry_after } => {
            let status = StatusCode::from_u16(*status).expect("a status");
            asking_for_time(idless_error(status, "Internal server error"), retry_after.as_deref())
        }
        Refusal::Html => plain(
            StatusCode::OK,
            "text/html",
            "<html><body>SECRET-BODY log in first</body></html>",
        ),
        Refusal::Redirect(to) => {
            let mut answer = plain(StatusCode::TEMPORARY_REDIRECT, "text/plain", "");
            answer
                .headers_mut()
                .insert("location", to.parse().expect("a header value"));
            answer
        }
        Refusal::Oversized(bytes) => {
            let id = message.id.map_or("null", |id| id.get());
            let filler = "x".repeat(*bytes);
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{filler}"}}]}}}}"#
            );
            plain(StatusCode::OK, "application/json", &body)
        }
        Refusal::Undecodable => events(vec!["{\"jsonrpc\":\"2.0\",\"id\":".to_owned()], Ending::Open),
        Refusal::Unauthorized { with_header: true } => unauthorized(),
        Refusal::Unauthorized { with_header: false } => plain(StatusCode::UNAUTHORIZED, "text/plain", "who are you"),
        Refusal::Challenge { status, challenge } => {
            let status = StatusCode::from_u16(*status).expect("a status");
            let mut answer = plain(status, "text/plain", "not so");
            let challenge = challenge.parse().expect("a header value");
            answer.headers_mut().insert("www-authenticate", challenge);
            answer
        }
        Refusal::OddUnauthorized => {
            let mut answer = plain(StatusCode::UNAUTHORIZED, "image/png", "who are you");
            for challenge in [b"Basic realm=\"x\"".as_slice(), b"Bearer realm=\"\xff\xfe\"".as_slice()] {
                let value = hyper::header::HeaderValue::from_bytes(challenge).expect("a header value");
                answer.headers_mut().append("www-authenticate", value);
            }
            answer
        }
        Refusal::Close => return Some(Err(io::ErrorKind::ConnectionAborted.into())),
        Refusal::HalfClose => return Some(Err(HALF.into())),
        Refusal::EndlessHeaders => {
            let mut answer = plain(StatusCode::OK, "application/json", "{}");
            for n in 0..10_000 {
                let name = hyper::header::HeaderName::try_from(format!("x-{n}")).expect("a header name");
                let value = "y".repeat(200).parse().expect("a header value");
                answer.headers_mut().insert(name, value);
            }
            answer
        }
        Refusal::GzipBomb => {
            let body = gzip::bomb(64 * 1024 * 1024);
            let mut answer = Response::new(Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed());
            for (name, value) in [("content-type", "application/json"), ("content-encoding", "gzip")] {
                answer
                    .headers_mut()
                    .insert(name, value.parse().expect("a header value"));
            }
            answer
        }
        Refusal::Stall => events(vec![], Ending::Open),
        Refusal::Silence => return Some(Err(SILENCE.into())),
        Refusal::Unanswered => {
            let _ = carry_out(site, method, message);
            events(vec![], Ending::Closed)
        }
        Refusal::CarriedOut(afterwards) => {
            let _ = carry_out(site, method, message);
            match afterwards {
                Afterwards::FailedSession => idless_error(StatusCode::INTERNAL_SERVER_ERROR, "database session closed"),
                Afterwards::SessionTimedOut => {
                    let error = coded_error(message, "The session's request timed out");
                    plain(StatusCode::OK, "application/json", &error)
                }
            }
        }
        Refusal::Resumable => {
            let answer = carry_out(site, method, message).unwrap_or_default();
            let mut state = site.lock();
            let name = format!("event-{}", state.resumable.len());
            state.resumable.insert(name.clone(), answer);
            raw_events(vec![format!("id: {name}\nretry: 150\ndata: \n\n")], Ending::Reset)
        }
    }))
}

fn asking_for_time(mut answer: Answer, retry_after: Option<&str>) -> Answer {
    if let Some(retry_after) = retry_after {
        answer
            .headers_mut()
            .insert("retry-after", retry_after.parse().expect("a header value"));
    }
    answer
}

/// Does what is asked; the answer as one line.
pub(crate) fn carry_out(site: &Site, method: &str, message: &Message<'_>) -> Option<String> {
    let reply = site.server.answer("", method, message.params, &mut |_| {});
    reply.render(message.id?)
}

pub(crate) fn plain(status: StatusCode, content_type: &str, body: &str) -> Answer {
    let mut answer = Response::new(
        Full::new(Bytes::copy_from_slice(body.as_bytes()))
            .map_err(|never| match never {})
            .boxed(),
    );
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert("content-type", content_type.parse().expect("a header value"));
    answer
}

enum Ending {
    Closed,
    /// The stream stays open without another event.
    Open,
    /// The connection breaks off.
    Reset,
    /// The stream closes in order after this time.
    After(Duration),
}

fn events(lines: Vec<String>, ending: Ending) -> Answer {
    let frames = lines
        .into_iter()
        .map(|line| format!("event: message\ndata: {line}\n\n"))
        .collect();
    raw_events(frames, ending)
}

fn raw_events(frames: Vec<String>, ending: Ending) -> Answer {
    let frames = stream::iter(frames.into_iter().map(|frame| Ok(Frame::data(Bytes::from(frame)))));
    let last = stream::once(async move {
        match ending {
            Ending::Closed => None,
            Ending::Open => std::future::pending().await,
            Ending::Reset => {
                // What was said before must have gone out.
                tokio::time::sleep(Duration::from_millis(20)).await;
                Some(Err(io::ErrorKind::ConnectionReset.into()))
            }
            Ending::After(time) => {
                tokio::time::sleep(time).await;
                None
            }
        }
    });
    event_stream(frames.chain(last.filter_map(std::future::ready)))
}

pub(crate) fn event_stream(frames: impl Stream<Item = io::Result<Frame<Bytes>>> + Send + Sync + 'static) -> Answer {
    let mut answer = Response::new(BodyExt::boxed(StreamBody::new(frames)));
    answer
        .headers_mut()
        .insert("content-type", "text/event-stream".parse().expect("a header value"));
    answer
}
