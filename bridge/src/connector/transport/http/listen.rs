//! The stream on which a server says things by itself: opened, kept, and opened again at a bearable pace.
//!
//! The stream handed to the SDK never ends: the SDK would open it again at once. When a server does not want it, it
//! stays quiet.

use std::{
    collections::VecDeque,
    time::{Duration, SystemTime},
};

use futures::{Stream, StreamExt, stream, stream::BoxStream};
use http::{HeaderMap, HeaderName, HeaderValue};
use rmcp::transport::streamable_http_client::{SseError, StreamableHttpError};
use sse_stream::Sse;
use tokio::time::Instant;

use super::{
    super::{
        authorization::Denied,
        events::{Broken, Part, read_events},
        watch::StreamGuard,
        web::Error,
    },
    HttpClient, is_message,
    messages::End,
};
use crate::connector::episode;

/// Before a stream is opened again, unless its server names another time; each stream that brought nothing doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// No wait is longer, whatever the server names, unless it is busy and asks for more.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// No wait is shorter, whatever the server names: what it says by itself can wait that long.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
/// A busy server that asks for more time is asked again after this all the same.
const LONGEST_HINT: Duration = Duration::from_secs(3600);
/// A stream that lived this long was worth opening even if it brought nothing. Longer than hosts commonly let a quiet
/// stream stand: one that is cut each time has the server asked for ever, for nothing.
const WORTHWHILE: Duration = Duration::from_secs(15 * 60);
/// Refusals in a row after which only a use of the session has the server asked again.
const REFUSALS: u32 = 3;
/// Fruitless attempts in a row, after which it is the same.
const FRUITLESS: u32 = 10;

/// What is asked for.
#[derive(Clone)]
pub(super) struct Ask {
    pub url: std::sync::Arc<str>,
    pub headers: HeaderMap,
    /// Longest event, in bytes.
    pub limit: usize,
}

impl Ask {
    /// The events behind the one with this id, or from now on.
    ///
    /// # Errors
    /// As [`super::super::web::Web::get_events`].
    pub(super) async fn open(&self, client: &HttpClient, after: Option<&str>) -> Result<Events, Error> {
        let mut headers = self.headers.clone();
        if let Some(id) = after.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(HeaderName::from_static("last-event-id"), id);
        }
        let response = client.web.get_events(&self.url, headers).await?;
        Ok(read_events(response.bytes_stream(), self.limit).boxed())
    }
}

pub(super) type Events = BoxStream<'static, Result<Part, Broken>>;

/// The messages of the standing stream, for as long as it is polled.
pub(super) fn listen(
    client: HttpClient,
    ask: Ask,
    last_id: Option<String>,
) -> impl Stream<Item = Result<Sse, SseError>> + Send + 'static {
    let listening = Listening {
        client,
        ask,
        last_id,
        pace: Pace::default(),
        rest: Rest::For(Duration::ZERO),
        open: None,
        ready: VecDeque::new(),
    };
    stream::unfold(listening, |mut listening| async move {
        let text = listening.next().await;
        Some((Ok(Sse::default().data(text)), listening))
    })
}

struct Listening {
    client: HttpClient,
    ask: Ask,
    last_id: Option<String>,
    pace: Pace,
    rest: Rest,
    open: Option<Standing>,
    ready: VecDeque<String>,
}

struct Standing {
    events: Events,
    since: Instant,
    /// It brought a message; comments, ids and empty events are none.
    fruitful: bool,
    _guard: StreamGuard,
}

impl Listening {
    async fn next(&mut self) -> String {
        loop {
            if let Some(text) = self.ready.pop_front() {
                return text;
            }
            match &mut self.open {
                None => self.connect().await,
                Some(standing) => match standing.events.next().await {
                    Some(Ok(part)) => self.take(part),
                    Some(Err(_)) | None => self.ended(),
                },
            }
        }
    }

    async fn connect(&mut self) {
        match self.rest {
            Rest::For(time) => tokio::time::sleep(time).await,
            Rest::UntilUsed => {
                tokio::time::sleep(LONGEST_WAIT).await;
                self.client.state.used.notified().await;
            }
            Rest::ForEver => std::future::pending().await,
        }
        match self.ask.open(&self.client, self.last_id.as_deref()).await {
            Ok(events) => {
                self.open = Some(Standing {
                    events,
                    since: Instant::now(),
                    fruitful: false,
                    _guard: self.client.watch.stream(),
                });
            }
            Err(error) => {
                tracing::debug!(%error, "the stream of a server's own messages could not be opened");
                self.rest = self.pace.after(&outcome_of(&error));
            }
        }
    }

    fn take(&mut self, part: Part) {
        let Some(standing) = &mut self.open else { return };
        match part {
            Part::Event(event) => {
                if let Some(retry) = event.retry {
                    self.pace.asked_for(Duration::from_millis(retry));
                }
                if event.id.is_some() {
                    self.last_id.clone_from(&event.id);
                }
                if let Some(data) = event.data.as_deref().filter(|_| is_message(&event)) {
                    let rewritten = self.client.state.messages.rewrite(None, data);
                    standing.fruitful |= !rewritten.texts.is_empty();
                    self.ready.extend(rewritten.texts);
                }
            }
            Part::TooLarge { head } => {
                let told = self.client.state.messages.too_large(End::Head(&head), self.ask.limit);
                self.ready.extend(told);
            }
            Part::SkippedEnd { tail } => {
                let told = self.client.state.messages.too_large(End::Tail(&tail), self.ask.limit);
                self.ready.extend(told);
            }
        }
    }

    fn ended(&mut self) {
        let fruitful = self
            .open
            .take()
            .is_some_and(|standing| standing.fruitful || standing.since.elapsed() >= WORTHWHILE);
        self.rest = self.pace.after(&match fruitful {
            true => Outcome::Fruitful,
            false => Outcome::Fruitless,
        });
    }
}

fn outcome_of(error: &Error) -> Outcome {
    match Denied::within(error) {
        Some(Denied::SignIn(_) | Denied::KeyRefused(_) | Denied::Scheme(_) | Denied::Entry(_)) => {
            return Outcome::NoStream;
        }
        // Another time there may be a token.
        Some(Denied::Keychain(_) | Denied::NoAnswer(_)) => return Outcome::Failed(Duration::ZERO),
        None => {}
    }
    match error {
        StreamableHttpError::ServerDoesNotSupportSse => Outcome::NoStream,
        StreamableHttpError::HttpStatus(status) => {
            let hint = status.retry_after.as_deref();
            let hint = hint.and_then(|text| episode::read_retry_after(text, SystemTime::now()));
            Outcome::Failed(hint.unwrap_or_default())
        }
        StreamableHttpError::UnexpectedServerResponse(_) | StreamableHttpError::UnexpectedContentType(_) => {
            Outcome::Refused
        }
        _ => Outcome::Failed(Duration::ZERO),
    }
}

/// How an attempt at the stream went.
#[derive(Debug)]
enum Outcome {
    /// It brought something, or stood long.
    Fruitful,
    /// It ended early with nothing.
    Fruitless,
    /// No connection, or a busy server that asks to be left alone this long.
    Failed(Duration),
    /// The server answers, but not with a stream.
    Refused,
    /// It has none, or not for us.
    NoStream,
}

/// How long to leave the server alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    For(Duration),
    /// For a while, and then until the session is used.
    UntilUsed,
    /// For as long as the session lasts.
    ForEver,
}

/// When to try again. Pure.
#[derive(Debug, Default)]
struct Pace {
    /// What the server named.
    named: Option<Duration>,
    in_vain: u32,
    refusals: u32,
}

impl Pace {
    fn asked_for(&mut self, wait: Duration) {
        self.named = Some(wait.clamp(SHORTEST_WAIT, LONGEST_WAIT));
    }

    fn after(&mut self, outcome: &Outcome) -> Rest {
        let floor = match outcome {
            Outcome::Fruitful => {
                (self.in_vain, self.refusals) = (0, 0);
                return Rest::For(self.named.unwrap_or(FIRST_WAIT));
            }
            Outcome::NoStream => return Rest::ForEver,
            Outcome::Fruitless => {
                self.refusals = 0;
                Duration::ZERO
            }
            Outcome::Failed(hint) => (*hint).min(LONGEST_HINT),
            Outcome::Refused => {
                self.refusals += 1;
                Duration::ZERO
            }
        };
        self.in_vain += 1;
        if self.refusals >= REFUSALS || self.in_vain > FRUITLESS {
            return Rest::UntilUsed;
        }
        let first = self.named.unwrap_or(FIRST_WAIT);
        let wait = first.saturating_mul(1 << (self.in_vain - 1).min(16)).min(LONGEST_WAIT);
        Rest::For(wait.max(floor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(pace: &mut Pace, outcome: &Outcome, times: usize) -> Vec<u64> {
        (0..times)
            .map(|_| match pace.after(outcome) {
                Rest::For(time) => time.as_millis().try_into().unwrap(),
                Rest::UntilUsed => 0,
                Rest::ForEver => u64::MAX,
            })
            .collect()
    }

    #[test]
    fn a_stream_that_brings_nothing_is_opened_ever_more_rarely_and_then_left_until_the_next_use() {
        let mut pace = Pace::default();
        let waited = waits(&mut pace, &Outcome::Fruitless, 12);
        assert_eq!(
            waited,
            [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000, 60000, 0, 0]
        );
        assert_eq!(waits(&mut pace, &Outcome::Fruitful, 2), [1000, 1000]);
        assert_eq!(waits(&mut pace, &Outcome::Fruitless, 2), [1000, 2000]);
    }

    #[test]
    fn the_time_a_server_names_is_kept_within_bounds() {
        for (named, kept) in [(0, 1000), (2_500, 2500), (86_400_000, 60_000)] {
            let mut pace = Pace::default();
            pace.asked_for(Duration::from_millis(named));
            assert_eq!(waits(&mut pace, &Outcome::Fruitful, 1), [kept]);
        }
    }

    #[test]
    fn a_server_without_a_stream_is_asked_once_a_refusing_one_thrice_and_a_busy_one_as_it_asks() {
        assert_eq!(waits(&mut Pace::default(), &Outcome::NoStream, 1), [u64::MAX]);
        assert_eq!(waits(&mut Pace::default(), &Outcome::Refused, 3), [1000, 2000, 0]);
        let busy = Outcome::Failed(Duration::from_secs(90));
        assert_eq!(waits(&mut Pace::default(), &busy, 2), [90_000, 90_000]);
        let absurd = Outcome::Failed(Duration::from_secs(86_400));
        assert_eq!(waits(&mut Pace::default(), &absurd, 1), [3_600_000]);
    }
}
