//! The same server at `http://127.0.0.1:<port>/mcp`, with everything that may go wrong on the way.

use std::{
    collections::HashSet,
    convert::Infallible,
    process::ExitCode,
    sync::{Arc, Mutex},
};

use futures::{StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;

use crate::{
    options::{Era, Forgotten, Kind, Options, Refusal},
    protocol::{Message, Reply, Server},
};

type Answer = Response<BoxBody<Bytes, Infallible>>;

struct Site {
    server: Server,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: HashSet<String>,
    opened: usize,
    calls: usize,
    refused: usize,
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
            tokio::spawn(async move {
                let service = service_fn(move |request| respond(Arc::clone(&site), request));
                // A client that hangs up is what some tests are about.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    })
}

async fn respond(site: Arc<Site>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let (head, body) = request.into_parts();
    let session = head
        .headers
        .get("mcp-session-id")
        .and_then(|v| v.to_str().ok())
        .map(ToOwned::to_owned);
    site.server.record.note(&format!(
        "{} {} session={} last-event-id={} authorization={}",
        head.method,
        head.uri,
        session.as_deref().unwrap_or("-"),
        header(&head.headers, "last-event-id"),
        header(&head.headers, "authorization"),
    ));
    let Ok(body) = body.collect().await else {
        return Ok(plain(StatusCode::BAD_REQUEST, "text/plain", "half a body"));
    };
    let body = body.to_bytes();
    Ok(match head.method {
        Method::POST => {
            site.server.record.line(&body);
            let text = String::from_utf8_lossy(&body).into_owned();
            // Tools may sleep; they do so off the reactor.
            tokio::task::spawn_blocking(move || post(&site, session.as_deref(), &text))
                .await
                .unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "the fake broke"))
        }
        Method::GET if site.server.options.get_stream => events(vec![], Ending::Open),
        Method::DELETE => {
            let mut state = site.state.lock().expect("no holder panics");
            state.sessions.remove(&session.unwrap_or_default());
            plain(StatusCode::OK, "text/plain", "")
        }
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "no stream here"),
    })
}

fn header(headers: &hyper::HeaderMap, name: &str) -> String {
    match headers.get(name) {
        Some(value) => String::from_utf8_lossy(value.as_bytes()).into_owned(),
        None => "-".to_owned(),
    }
}

fn post(site: &Site, session: Option<&str>, text: &str) -> Answer {
    let Ok(message) = serde_json::from_str::<Message<'_>>(text) else {
        return plain(StatusCode::BAD_REQUEST, "text/plain", "no message");
    };
    let method = message.method.as_deref().unwrap_or_default();
    if let Some(refused) = refuse(site, method, &message) {
        return refused;
    }
    let options = &site.server.options;
    let owns_by_session = options.forget_after.is_some() || options.kind == Kind::Sandbox;
    let with_sessions = options.era != Era::Modern && owns_by_session;
    if with_sessions && !matches!(method, "initialize" | "server/discover") && !knows(site, session, method) {
        return match options.forgotten {
            Forgotten::NotFound => plain(StatusCode::NOT_FOUND, "text/plain", "no such session"),
            Forgotten::IdlessBadRequest => plain(
                StatusCode::BAD_REQUEST,
                "application/json",
                r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
            ),
        };
    }
    let Some(id) = message.id else {
        return plain(StatusCode::ACCEPTED, "text/plain", "");
    };
    let mut notifications = Vec::new();
    let reply = site
        .server
        .answer(session.unwrap_or_default(), method, message.params, &mut |line| {
            notifications.push(line)
        });
    let Some(line) = reply.render(id) else {
        return match reply {
            Reply::Close => plain(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "closed"),
            _ => events(vec![], Ending::Open),
        };
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
        let name = format!("session-{}", state.opened);
        answer
            .headers_mut()
            .insert("mcp-session-id", name.parse().expect("a header value"));
        state.sessions.insert(name);
    }
    answer
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

fn refuse(site: &Site, method: &str, message: &Message<'_>) -> Option<Answer> {
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
    Some(match refusal {
        Refusal::Status { status, retry_after } => {
            let status = StatusCode::from_u16(*status).expect("a status");
            let mut answer = plain(status, "text/plain", "SECRET-BODY of the upstream");
            if let Some(retry_after) = retry_after {
                answer
                    .headers_mut()
                    .insert("retry-after", retry_after.parse().expect("a header value"));
            }
            answer
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
        Refusal::Unauthorized { with_header } => {
            let mut answer = plain(StatusCode::UNAUTHORIZED, "text/plain", "who are you");
            if *with_header {
                answer
                    .headers_mut()
                    .insert("www-authenticate", "Bearer".parse().expect("a header value"));
            }
            answer
        }
    })
}

fn plain(status: StatusCode, content_type: &str, body: &str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::copy_from_slice(body.as_bytes())).boxed());
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
}

fn events(lines: Vec<String>, ending: Ending) -> Answer {
    let frames = lines
        .into_iter()
        .map(|line| Ok(Frame::data(Bytes::from(format!("event: message\ndata: {line}\n\n")))));
    let frames = stream::iter(frames);
    let body = match ending {
        Ending::Closed => BodyExt::boxed(StreamBody::new(frames)),
        Ending::Open => BodyExt::boxed(StreamBody::new(frames.chain(stream::pending()))),
    };
    let mut answer = Response::new(body);
    answer
        .headers_mut()
        .insert("content-type", "text/event-stream".parse().expect("a header value"));
    answer
}
