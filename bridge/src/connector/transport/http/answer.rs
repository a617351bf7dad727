//! The stream that answers one request, also when it breaks off in the middle.
//!
//! A server that gave its events ids can go on where a stream broke off (`Last-Event-ID`); the request itself is never
//! sent again. The stream ends with the answer, or when the answer can no longer come: the SDK then fails the request.

use std::{collections::VecDeque, time::Duration};

use futures::{Stream, StreamExt, stream};
use rmcp::{
    model::RequestId,
    transport::streamable_http_client::{SseError, StreamableHttpError},
};
use sse_stream::Sse;

use super::{
    super::{authorization::Denied, events::Part, web::Error},
    HttpClient, is_message,
    listen::{Ask, Events},
    messages::too_large,
};

/// Attempts in a row to go on that bring nothing, after which the answer is given up.
const ATTEMPTS: u32 = 5;
/// Before the second attempt, unless the server names a time; each later one waits twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The bounds of what a server may name.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A response that is being read.
pub(super) struct Answer {
    client: HttpClient,
    ask: Ask,
    id: RequestId,
    events: Option<Events>,
    ready: VecDeque<String>,
    last_id: Option<String>,
    named: Option<Duration>,
    in_vain: u32,
    answered: bool,
}

impl Answer {
    /// `ask` is how to go on after a break.
    pub(super) fn new(client: HttpClient, ask: Ask, id: RequestId, events: Events) -> Self {
        Self {
            client,
            ask,
            id,
            events: Some(events),
            ready: VecDeque::new(),
            last_id: None,
            named: None,
            in_vain: 0,
            answered: false,
        }
    }

    /// What it says, without ids: going on is done here, not by the SDK.
    pub(super) fn read(self) -> impl Stream<Item = Result<Sse, SseError>> + Send + 'static {
        stream::unfold(self, |mut answer| async move {
            let text = answer.next().await?;
            Some((Ok(Sse::default().data(text)), answer))
        })
    }

    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(text) = self.ready.pop_front() {
                return Some(text);
            }
            match &mut self.events {
                Some(events) => match events.next().await {
                    Some(Ok(part)) => self.take(part),
                    Some(Err(_)) | None => self.events = None,
                },
                None if self.answered => return None,
                None => self.go_on().await?,
            }
        }
    }

    fn take(&mut self, part: Part) {
        match part {
            Part::Event(event) => {
                if let Some(retry) = event.retry {
                    self.named = Some(Duration::from_millis(retry).clamp(SHORTEST_WAIT, LONGEST_WAIT));
                }
                if event.id.is_some() {
                    self.last_id.clone_from(&event.id);
                    self.in_vain = 0;
                }
                if let Some(data) = event.data.as_deref().filter(|_| is_message(&event)) {
                    let rewritten = self.client.state.messages.rewrite(Some(&self.id), data);
                    self.answered |= rewritten.answered;
                    self.ready.extend(rewritten.texts);
                    if rewritten.session_gone {
                        self.client.state.sessions.lost(&self.ask.headers);
                    }
                }
            }
            // Whatever it was, the stream is not worth reading further.
            Part::TooLarge { .. } if !self.answered => {
                self.client.state.messages.forget(&self.id);
                self.ready.push_back(too_large(self.id.clone(), self.ask.limit));
                self.answered = true;
                self.events = None;
            }
            Part::TooLarge { .. } | Part::SkippedEnd { .. } => {}
        }
    }

    /// `None` when the answer can no longer come.
    async fn go_on(&mut self) -> Option<()> {
        let last_id = self.last_id.clone()?;
        if self.in_vain >= ATTEMPTS {
            return None;
        }
        let wait = self.named.unwrap_or(FIRST_WAIT);
        tokio::time::sleep(wait.saturating_mul(1 << self.in_vain).min(LONGEST_WAIT)).await;
        self.in_vain += 1;
        match self.ask.open(&self.client, Some(&last_id)).await {
            Ok(events) => self.events = Some(events),
            Err(error) if may_pass(&error) => {}
            Err(_) => return None,
        }
        Some(())
    }
}

fn may_pass(error: &Error) -> bool {
    match Denied::within(error) {
        Some(Denied::SignIn(_) | Denied::KeyRefused(_) | Denied::Scheme(_) | Denied::Entry(_)) => false,
        Some(Denied::Keychain(_) | Denied::NoAnswer(_)) => true,
        None => matches!(
            error,
            StreamableHttpError::HttpStatus(_) | StreamableHttpError::Client(_) | StreamableHttpError::Io(_)
        ),
    }
}
