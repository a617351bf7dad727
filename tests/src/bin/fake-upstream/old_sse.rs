//! The HTTP+SSE transport of 2024-11-05: answers come over the stream that a session began with.

use std::{collections::HashMap, io, sync::Mutex};

use futures::StreamExt;
use hyper::{
    StatusCode, Uri,
    body::{Bytes, Frame},
};
use tokio::sync::mpsc;

use crate::{
    http::{Answer, SILENCE, Site, carry_out, event_stream, plain, refusal},
    options::Refusal,
    protocol::Message,
};

/// The streams that stand, by session.
#[derive(Default)]
pub(crate) struct Streams(Mutex<Open>);

#[derive(Default)]
struct Open {
    streams: HashMap<String, mpsc::UnboundedSender<String>>,
    opened: usize,
}

/// Begins a session: the stream, with the endpoint as its first event.
pub(crate) fn stream(site: &Site) -> Answer {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut open = site.old.0.lock().expect("no holder panics");
    open.opened += 1;
    let session = format!("{}-{}", std::process::id(), open.opened);
    let own = format!("/message?session={session}");
    let endpoint = site.server.options.endpoint.as_deref().unwrap_or(&own);
    let _ = sender.send(format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n"));
    open.streams.insert(session, sender);
    let texts = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
    event_stream(texts.map(|text| Ok(Frame::data(Bytes::from(text)))))
}

/// A message of a session; any other POST gets `status`.
pub(crate) fn message(site: &Site, uri: &Uri, text: &str, status: u16) -> io::Result<Answer> {
    let Some(session) = uri.query().and_then(|query| query.strip_prefix("session=")) else {
        let status = StatusCode::from_u16(status).expect("a status");
        return Ok(plain(status, "text/html", "<html>SECRET-BODY</html>"));
    };
    let Some(sender) = site
        .old
        .0
        .lock()
        .expect("no holder panics")
        .streams
        .get(session)
        .cloned()
    else {
        return Ok(plain(StatusCode::NOT_FOUND, "text/plain", "Session not found"));
    };
    let Ok(message) = serde_json::from_str::<Message<'_>>(text) else {
        return Ok(plain(StatusCode::BAD_REQUEST, "text/plain", "no message"));
    };
    let method = message.method.as_deref().unwrap_or_default();
    let say = |line: &str| {
        let _ = sender.send(format!("event: message\ndata: {line}\n\n"));
    };
    match refusal(site, method) {
        None => {}
        Some(Refusal::Unanswered) => {
            let _ = carry_out(site, method, &message);
            let mut open = site.old.0.lock().expect("no holder panics");
            open.streams.remove(session);
            return Ok(plain(StatusCode::ACCEPTED, "text/plain", "Accepted"));
        }
        // Answered, but never accepted.
        Some(Refusal::Stall) => {
            say(&carry_out(site, method, &message).unwrap_or_default());
            return Err(SILENCE.into());
        }
        Some(Refusal::Undecodable) => {
            let id = message.id.map_or("null", |id| id.get());
            say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"cut"#));
            return Ok(plain(StatusCode::ACCEPTED, "text/plain", "Accepted"));
        }
        Some(Refusal::Oversized(bytes)) => {
            let id = message.id.map_or("null", |id| id.get());
            let filler = "x".repeat(*bytes);
            say(&format!(
                r#"{{"result":{{"text":"{filler}"}},"jsonrpc":"2.0","id":{id}}}"#
            ));
            return Ok(plain(StatusCode::ACCEPTED, "text/plain", "Accepted"));
        }
        Some(Refusal::Status { status, .. }) => {
            let status = StatusCode::from_u16(*status).expect("a status");
            return Ok(plain(status, "text/plain", "SECRET-BODY of the upstream"));
        }
        Some(other) => panic!("an old server does not do {other:?}"),
    }
    if let (Some(id), None) = (message.id, &message.method) {
        site.server.asks.answered(id, text);
    } else if message.id.is_some() {
        let reply = site.server.answer("", method, message.params, &mut |line| say(&line));
        if let Some(line) = message.id.and_then(|id| reply.render(id)) {
            say(&line);
        }
    }
    Ok(plain(StatusCode::ACCEPTED, "text/plain", "Accepted"))
}
