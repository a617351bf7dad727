//! Cuts a byte stream into lines with bounded memory. Pure: bytes in, frames out.

use std::mem;

/// Sizes in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// A longer line is skipped.
    pub line: usize,
    /// How much of a skipped line's beginning is kept.
    pub head: usize,
    /// How much of a skipped line's end is kept.
    pub tail: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    /// A line without its end.
    Line(Vec<u8>),
    /// A line turned out too long: its beginning. The rest is skipped until [`Frame::SkippedEnd`].
    TooLong { head: Vec<u8> },
    /// The skipped line is over: its end.
    SkippedEnd { tail: Vec<u8> },
}

/// The buffer that a quiet connection may keep.
const KEPT_CAPACITY: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Framer {
    limits: Limits,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are handed out already.
    taken: usize,
    /// Bytes of `buffer` that hold no line end, counted from its beginning.
    searched: usize,
    skipping: Option<Skipping>,
}

#[derive(Debug)]
struct Skipping {
    bytes: u64,
    tail: Vec<u8>,
}

impl Framer {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            buffer: Vec::new(),
            taken: 0,
            searched: 0,
            skipping: None,
        }
    }

    /// Adds what was read. Take all frames out before adding more, or memory is not bounded.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.searched -= self.taken;
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// How many bytes of the present line are thrown away so far.
    pub(super) fn skipped(&self) -> u64 {
        self.skipping.as_ref().map_or(0, |skipping| skipping.bytes)
    }

    /// The next frame that is complete.
    pub(super) fn next_frame(&mut self) -> Option<Frame> {
        let end = self.buffer[self.searched..]
            .iter()
            .position(|b| *b == b'\n')
            .map(|at| self.searched + at);
        let known = end.unwrap_or(self.buffer.len());
        self.searched = known;
        if self.skipping.is_some() {
            return self.skip(known, end.is_some());
        }
        if known - self.taken > self.limits.line {
            let line = &self.buffer[self.taken..known];
            let head = line[..line.len().min(self.limits.head)].to_vec();
            self.skipping = Some(Skipping {
                bytes: 0,
                tail: Vec::new(),
            });
            return Some(Frame::TooLong { head });
        }
        end?;
        let line = self.buffer[self.taken..known].to_vec();
        self.consume(known + 1);
        Some(Frame::Line(line))
    }

    /// What is left when the stream ends without a line end.
    pub(super) fn finish(&mut self) -> Option<Frame> {
        let rest = self.buffer.split_off(self.taken);
        self.consume(self.buffer.len());
        match self.skipping.take() {
            Some(skipping) => Some(Frame::SkippedEnd { tail: skipping.tail }),
            None => (!rest.is_empty()).then_some(Frame::Line(rest)),
        }
    }

    fn skip(&mut self, until: usize, ended: bool) -> Option<Frame> {
        let skipping = self.skipping.as_mut()?;
        let piece = &self.buffer[self.taken..until];
        skipping.bytes += piece.len() as u64;
        let kept = &piece[piece.len().saturating_sub(self.limits.tail)..];
        skipping.tail.extend_from_slice(kept);
        let surplus = skipping.tail.len().saturating_sub(self.limits.tail);
        skipping.tail.drain(..surplus);
        if !ended {
            self.consume(until);
            return None;
        }
        let tail = mem::take(&mut skipping.tail);
        self.skipping = None;
        self.consume(until + 1);
        Some(Frame::SkippedEnd { tail })
    }

    fn consume(&mut self, until: usize) {
        self.taken = until;
        self.searched = until;
        if self.taken >= self.buffer.len() {
            self.buffer.clear();
            self.taken = 0;
            self.searched = 0;
            if self.buffer.capacity() > KEPT_CAPACITY {
                self.buffer = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits {
        line: 8,
        head: 4,
        tail: 3,
    };

    /// The same rules, over the whole stream at once.
    fn expected(stream: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut lines: Vec<&[u8]> = stream.split(|b| *b == b'\n').collect();
        let unfinished = lines.pop().unwrap();
        if !unfinished.is_empty() {
            lines.push(unfinished);
        }
        for line in lines {
            if line.len() > LIMITS.line {
                frames.push(Frame::TooLong {
                    head: line[..LIMITS.head].to_vec(),
                });
                frames.push(Frame::SkippedEnd {
                    tail: line[line.len() - LIMITS.tail..].to_vec(),
                });
            } else {
                frames.push(Frame::Line(line.to_vec()));
            }
        }
        frames
    }

    fn framed<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Frame> {
        let mut framer = Framer::new(LIMITS);
        let mut frames = Vec::new();
        for chunk in chunks {
            framer.push(chunk);
            while let Some(frame) = framer.next_frame() {
                frames.push(frame);
            }
            assert!(framer.buffer.len() <= LIMITS.line + chunk.len());
        }
        frames.extend(framer.finish());
        frames
    }

    proptest! {
        #[test]
        fn however_the_stream_is_cut_the_frames_are_the_same(
            stream in prop::collection::vec(prop::sample::select(b"ab\r\n\n\xff".to_vec()), 0..200),
            sizes in prop::collection::vec(1_usize..20, 1..50),
        ) {
            let mut chunks = Vec::new();
            let mut rest = stream.as_slice();
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, later) = rest.split_at((*size).min(rest.len()));
                chunks.push(chunk);
                rest = later;
            }
            prop_assert_eq!(framed(chunks), expected(&stream));
        }
    }

    #[test]
    fn a_large_line_leaves_no_large_buffer_behind() {
        let mut framer = Framer::new(Limits {
            line: 1 << 20,
            ..LIMITS
        });
        framer.push(&vec![b'x'; 1 << 20]);
        assert_eq!(framer.next_frame(), None);
        framer.push(b"\n");
        assert!(matches!(framer.next_frame(), Some(Frame::Line(line)) if line.len() == 1 << 20));
        framer.push(b"a\n");
        assert_eq!(framer.next_frame(), Some(Frame::Line(b"a".to_vec())));
        assert!(framer.buffer.capacity() <= KEPT_CAPACITY);
    }
}
