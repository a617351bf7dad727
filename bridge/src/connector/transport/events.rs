//! Server-sent events out of bytes, none larger than a bound (HTML Living Standard §9.2).
//!
//! An event over the bound is told by its beginning and its end and otherwise skipped; the stream goes on behind it.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use sse_stream::Sse;

use super::framing::{Frame, Framer, Limits};

/// How much of an oversized event's beginning and end is kept, to tell whose it is.
const HEAD: usize = 64 * 1024;
const TAIL: usize = 4 * 1024;

/// Longest other line (`event`, `id`, `retry`); longer ones are cut, as nothing of ours is that long.
const FIELD: usize = 4 * 1024;

/// A stream whose one event runs on for longer than this, in bytes, is given up.
const MAX_SKIPPED: u64 = 1024 * 1024 * 1024;

/// One thing in a stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// An event, also one that carries nothing but an id or a time to wait.
    Event(Sse),
    /// An event turned out too large: the beginning of its data.
    TooLarge { head: Vec<u8> },
    /// The skipped event is over: the end of its data.
    SkippedEnd { tail: Vec<u8> },
}

/// Why a stream broke off; half a sentence, without any address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Broken(pub String);

/// The parts of a response's body. An error is its last item.
pub(super) fn read_events(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    limit: usize,
) -> impl Stream<Item = Result<Part, Broken>> + Send + 'static {
    let state = Some((Box::pin(bytes), EventReader::new(limit)));
    stream::unfold(state, async |state| {
        let (mut bytes, mut reader) = state?;
        loop {
            if let Some(part) = reader.next() {
                return Some((Ok(part), Some((bytes, reader))));
            }
            if reader.skipped() > MAX_SKIPPED {
                let why = format!("an event of it is larger than {} MiB", MAX_SKIPPED >> 20);
                return Some((Err(Broken(why)), None));
            }
            match bytes.next().await? {
                Ok(chunk) => reader.push(&chunk),
                Err(error) => return Some((Err(Broken(innermost(&error))), None)),
            }
        }
    })
}

/// The innermost source says what happened; outer ones repeat the address, whose query may be secret.
fn innermost(error: &reqwest::Error) -> String {
    let mut words = "the connection broke off".to_owned();
    let mut next = std::error::Error::source(error);
    while let Some(current) = next {
        words = current.to_string();
        next = current.source();
    }
    words.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Cuts bytes into events with bounded memory. Pure.
pub(super) struct EventReader {
    limit: usize,
    lines: Framer,
    at_start: bool,
    event: Sse,
    /// Anything but comments was seen since the last empty line.
    begun: bool,
    /// The event under way is too large: the end of its data so far.
    over: Option<Vec<u8>>,
    skipping_data: bool,
    /// Bytes of the present event that were thrown away, whole lines only.
    thrown: u64,
    ready: VecDeque<Part>,
}

impl EventReader {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            lines: Framer::new(Limits {
                line: limit + "data: ".len(),
                head: HEAD,
                tail: TAIL,
            }),
            at_start: true,
            event: Sse::default(),
            begun: false,
            over: None,
            skipping_data: false,
            thrown: 0,
            ready: VecDeque::new(),
        }
    }

    /// Adds what was read. Take all parts out before adding more, or memory is not bounded.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// How many bytes of the present event are thrown away so far.
    pub(super) fn skipped(&self) -> u64 {
        self.thrown + self.lines.skipped()
    }

    /// The next part that is complete.
    pub(super) fn next(&mut self) -> Option<Part> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Some(part);
            }
            match self.lines.next_frame()? {
                Frame::Line(line) => self.line(&line),
                Frame::TooLong { head } => self.long_line(&head),
                Frame::SkippedEnd { tail } => self.long_line_end(tail),
            }
        }
    }

    fn line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = match std::mem::take(&mut self.at_start) {
            true => line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            return self.end_of_event();
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => self.data(value),
            b"event" => self.event.event = Some(text(value)),
            b"id" if !value.contains(&0) => self.event.id = Some(text(value)),
            b"retry" => {
                if let Ok(retry) = text(value).parse() {
                    self.event.retry = Some(retry);
                }
            }
            // A comment, or a field of a later standard.
            _ => return,
        }
        self.begun = true;
    }

    fn data(&mut self, value: &[u8]) {
        if let Some(tail) = &mut self.over {
            self.thrown += value.len() as u64;
            tail.clear();
            tail.extend_from_slice(&value[value.len().saturating_sub(TAIL)..]);
            return;
        }
        let sofar = self.event.data.as_ref().map_or(0, |data| data.len() + 1);
        if sofar + value.len() > self.limit {
            return self.too_large(value);
        }
        // Lossy, so that one bad byte costs one character and not the answer.
        let value = String::from_utf8_lossy(value);
        match &mut self.event.data {
            Some(data) => {
                data.push('\n');
                data.push_str(&value);
            }
            None => self.event.data = Some(value.into_owned()),
        }
    }

    fn too_large(&mut self, more: &[u8]) {
        let mut head = self.event.data.take().unwrap_or_default().into_bytes();
        head.truncate(HEAD);
        let room = HEAD - head.len();
        head.extend_from_slice(&more[..more.len().min(room)]);
        self.over = Some(more[more.len().saturating_sub(TAIL)..].to_vec());
        self.ready.push_back(Part::TooLarge { head });
    }

    fn long_line(&mut self, head: &[u8]) {
        let Some(value) = head.strip_prefix(b"data:") else {
            return;
        };
        self.begun = true;
        self.skipping_data = true;
        if self.over.is_none() {
            self.too_large(value.strip_prefix(b" ").unwrap_or(value));
        }
    }

    fn long_line_end(&mut self, tail: Vec<u8>) {
        if std::mem::take(&mut self.skipping_data) {
            self.over = Some(tail);
        }
    }

    fn end_of_event(&mut self) {
        let event = std::mem::take(&mut self.event);
        match self.over.take() {
            Some(tail) => self.ready.push_back(Part::SkippedEnd { tail }),
            None if self.begun => self.ready.push_back(Part::Event(event)),
            None => {}
        }
        self.begun = false;
        self.thrown = 0;
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(&value[..value.len().min(FIELD)]).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(limit: usize, chunks: &[&[u8]]) -> Vec<Part> {
        let mut reader = EventReader::new(limit);
        let mut parts = Vec::new();
        for chunk in chunks {
            reader.push(chunk);
            parts.extend(std::iter::from_fn(|| reader.next()));
        }
        parts
    }

    fn event(data: &str) -> Part {
        Part::Event(Sse::default().data(data))
    }

    #[test]
    fn fields_comments_and_line_ends_are_read_as_the_standard_says() {
        let stream = "\u{feff}: hello\n\nevent: endpoint\r\ndata: /here\r\n\r\ndata:a\ndata: b\ndata\n\nid: 7\nretry: 250\nnew: 1\ndata: \n\nretry: x\n\n: ping\n\ndata: half";
        let parts = parts(100, &[stream.as_bytes()]);
        let mut endpoint = Sse::default().data("/here");
        endpoint.event = Some("endpoint".to_owned());
        let mut priming = Sse::default().data("");
        (priming.id, priming.retry) = (Some("7".to_owned()), Some(250));
        assert_eq!(
            parts,
            [
                Part::Event(endpoint),
                event("a\nb\n"),
                Part::Event(priming),
                Part::Event(Sse::default())
            ]
        );
    }

    #[test]
    fn an_event_over_the_bound_shows_both_its_ends_and_the_next_one_is_whole() {
        let too_large = |head: &str| Part::TooLarge { head: head.into() };
        let end = |tail: &str| Part::SkippedEnd { tail: tail.into() };
        assert_eq!(
            parts(8, &[b"data: 0123456789\n\ndata: ok\n\n"]),
            [too_large("0123456789"), end("data: 0123456789"), event("ok")],
            "a whole line is told with its field's name at the end, which no real one reaches back to"
        );
        assert_eq!(
            parts(8, &[b"data: 01234\ndata: 56789\ndata: end\n\ndata: ok\n\n"]),
            [too_large("0123456789"), end("end"), event("ok")]
        );
        let told = parts(8, &[b"data:0123456789abcdef", b"0123", b"4567\r\n\r\ndata: ok\r\n\r\n"]);
        assert_eq!(
            told,
            [
                too_large("0123456789abcdef"),
                end("data:0123456789abcdef01234567\r"),
                event("ok")
            ]
        );
        assert_eq!(parts(8, &[b": a comment that is long\ndata: ok\n\n"]), [event("ok")]);
    }

    proptest! {
        #[test]
        fn however_the_bytes_are_cut_the_events_are_the_same(
            stream in prop::collection::vec(prop::sample::select(b"data: id:\n\n\r1".to_vec()), 0..200),
            at in 0_usize..200,
        ) {
            let (left, right) = stream.split_at(at.min(stream.len()));
            // A line's beginning is told as soon as it is too long, so only streams without such a line are compared.
            let whole = parts(1000, &[&stream]);
            prop_assert_eq!(parts(1000, &[left, right]), whole);
        }
    }
}
