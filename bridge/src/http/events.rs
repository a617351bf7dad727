//! What happens, as server-sent events.

use std::{borrow::Cow, collections::VecDeque, time::Duration};

use axum::{body::Body, extract::State, response::Response};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, header};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::{
    api::Api,
    extract::{Asker, Refused},
    routes::Routes,
};
use crate::{
    caller::{Caller, Scope},
    error::ApiError,
    event::{Event, Numbered},
    snapshot::ApiMode,
};

/// How often a quiet stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) async fn stream<A: Api>(
    State(routes): State<Routes<A>>,
    Asker(caller): Asker,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let last = last_event_id(&headers)?;
    let (missed, live) = routes.api.events(last);
    let reader = Reader {
        in_the_open: routes.api.api_mode() == ApiMode::Open,
        api: routes.api,
        caller,
        missed: missed.into(),
        live,
        closing: routes.closing,
    };
    let chunks = stream::unfold(reader, |mut reader| async move {
        reader
            .next()
            .await
            .map(|chunk| (Ok::<_, std::convert::Infallible>(chunk), reader))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    match value.to_str().map(str::parse) {
        Ok(Ok(id)) => Ok(Some(id)),
        _ => Err(ApiError::bad_request(
            "The Last-Event-ID header has to be the id of an event.",
        )),
    }
}

/// One listening client. The queue behind `live` is bounded; whoever falls behind is sent away and may resume.
struct Reader<A> {
    api: A,
    caller: Caller,
    /// It came while nobody needed a token.
    in_the_open: bool,
    missed: VecDeque<Numbered>,
    live: broadcast::Receiver<Numbered>,
    closing: CancellationToken,
}

impl<A: Api> Reader<A> {
    /// The next piece of the stream; `None` ends it.
    async fn next(&mut self) -> Option<Bytes> {
        let piece = self.piece().await?;
        // It was waited for: nothing is told to whom it would not be told by now.
        if self.is_over() {
            return None;
        }
        Some(piece)
    }

    /// Takes what the caller may read now; whether that is nothing.
    fn is_over(&mut self) -> bool {
        match self.api.renewed(&self.caller) {
            Some(Caller::WalkIn(_)) if self.in_the_open && self.api.api_mode() == ApiMode::Token => true,
            Some(now) if now.needs(Scope::Read).is_ok() => {
                self.caller = now;
                false
            }
            Some(_) | None => true,
        }
    }

    async fn piece(&mut self) -> Option<Bytes> {
        while let Some(event) = self.missed.pop_front() {
            if let Some(text) = self.text_of(&event) {
                return Some(text);
            }
        }
        let quiet = tokio::time::sleep(KEEP_ALIVE);
        let mut quiet = std::pin::pin!(quiet);
        loop {
            let event = tokio::select! {
                () = self.closing.cancelled() => return None,
                () = &mut quiet => return Some(Bytes::from_static(b":\n\n")),
                event = self.live.recv() => event,
            };
            match event {
                Ok(_) if self.is_over() => return None,
                Ok(event) => {
                    if let Some(text) = self.text_of(&event) {
                        return Some(text);
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_) | broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// Nothing for an event that is not this caller's to see.
    fn text_of(&self, numbered: &Numbered) -> Option<Bytes> {
        let may_see = match self.caller {
            Caller::Owner => true,
            Caller::WalkIn(_) | Caller::Client { .. } => {
                let (caller, server) = (numbered.event.caller(), numbered.event.server());
                caller.is_none_or(|caller| caller == self.caller.label())
                    && server.is_none_or(|server| self.caller.sees(server))
            }
        };
        if !may_see {
            return None;
        }
        let event = match self.caller {
            Caller::Owner => Cow::Borrowed(&numbered.event),
            Caller::WalkIn(_) | Caller::Client { .. } => numbered.event.for_walk_in(),
        };
        let event = self.of_what_it_sees(event)?;
        let data = serde_json::to_string(&*event)
            .inspect_err(|error| tracing::error!("an event could not be written as JSON: {error}"))
            .ok()?;
        let id = numbered.id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        let name = numbered.event.name();
        Some(format!("{id}event: {name}\ndata: {data}\n\n").into())
    }

    /// An event about several connectors, of those that the caller may know of; `None` where it is about none of them.
    fn of_what_it_sees<'e>(&self, event: Cow<'e, Event>) -> Option<Cow<'e, Event>> {
        let sees_all = match &self.caller {
            Caller::Owner | Caller::WalkIn(_) => true,
            Caller::Client { pass, .. } => pass.servers.is_none(),
        };
        match &*event {
            Event::ConfigError { notices } if !sees_all => {
                let seen = |server: &String| self.caller.sees(server);
                let notices: Vec<_> = notices
                    .iter()
                    .filter(|one| one.server.as_ref().is_none_or(seen))
                    .cloned()
                    .collect();
                (!notices.is_empty()).then_some(Cow::Owned(Event::ConfigError { notices }))
            }
            Event::ToolsChanged { .. } if !sees_all => {
                let tools = self.api.tools();
                let seen = tools.tools.iter().filter(|tool| self.caller.sees(tool.server.as_str()));
                Some(Cow::Owned(Event::ToolsChanged { tools: seen.count() }))
            }
            Event::ConfigError { .. }
            | Event::ToolsChanged { .. }
            | Event::ServerStatus { .. }
            | Event::CallStarted { .. }
            | Event::CallProgress { .. }
            | Event::CallFinished { .. }
            | Event::SignInFinished { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalResolved { .. }
            | Event::ActivityRecorded { .. } => Some(event),
        }
    }
}
