//! The newest lines in memory, numbered, so that a reader goes on where it stopped.

use std::{collections::VecDeque, fmt, str::FromStr, time::SystemTime};

use super::{LogLine, text::cut_at};

/// Lines kept in memory per log.
pub const TAIL_LINES: usize = 1_000;

/// Longest line kept in memory, in bytes.
pub const TAIL_LINE: usize = 4 * 1024;

/// All lines of one log's tail together, in bytes.
pub(super) const TAIL_BYTES: usize = 256 * 1024;

/// A place in one log: after all that its reader has seen. As text `<log>-<line>`, for whoever asked to give back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Which log: another one after a restart, or after the connector was removed and added again.
    log: u64,
    /// The number of the next line.
    line: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.log, self.line)
    }
}

/// A text that no [`Cursor`] has made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no place in a log")]
pub struct NotACursor;

impl FromStr for Cursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let (log, line) = text.split_once('-').ok_or(NotACursor)?;
        Ok(Self {
            log: u64::from_str_radix(log, 16).map_err(|_| NotACursor)?,
            line: line.parse().map_err(|_| NotACursor)?,
        })
    }
}

/// Lines that follow each other, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub lines: Vec<LogLine>,
    /// After them.
    pub next: Cursor,
    /// Whether lines between the reader's place and these are not here any more, or its place was in another log.
    pub missed: bool,
}

pub(super) struct Tail {
    log: u64,
    lines: VecDeque<LogLine>,
    /// The number of the oldest line kept.
    first: u64,
    bytes: usize,
}

impl Default for Tail {
    fn default() -> Self {
        Self {
            // Without chance the time tells one run's log from another's.
            log: getrandom::u64().unwrap_or_else(|_| {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                since.map_or(0, |since| since.as_secs())
            }),
            lines: VecDeque::new(),
            first: 0,
            bytes: 0,
        }
    }
}

impl Tail {
    pub(super) fn push(&mut self, line: &LogLine) {
        let mut short = line.clone();
        if short.text.len() > TAIL_LINE {
            short.text = format!("{}…", cut_at(&line.text, TAIL_LINE - "…".len())).into();
        }
        self.bytes += short.text.len();
        self.lines.push_back(short);
        while self.lines.len() > TAIL_LINES || self.bytes > TAIL_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.text.len();
            self.first += 1;
        }
    }

    /// The newest lines.
    pub(super) fn last(&self, most: usize) -> Page {
        let surplus = self.lines.len().saturating_sub(most);
        self.page(surplus, most, false)
    }

    /// The oldest lines after this place.
    pub(super) fn after(&self, cursor: Cursor, most: usize) -> Page {
        let is_kept = cursor.log == self.log && cursor.line >= self.first;
        let seen = if is_kept { cursor.line - self.first } else { 0 };
        let seen = usize::try_from(seen).unwrap_or(usize::MAX).min(self.lines.len());
        self.page(seen, most, !is_kept)
    }

    fn page(&self, skipped: usize, most: usize, missed: bool) -> Page {
        let lines: Vec<LogLine> = self.lines.iter().skip(skipped).take(most).cloned().collect();
        let next = Cursor {
            log: self.log,
            line: self.first + (skipped + lines.len()) as u64,
        };
        Page { lines, next, missed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(lines: usize) -> Tail {
        let mut tail = Tail::default();
        for n in 0..lines {
            tail.push(&line(&n.to_string()));
        }
        tail
    }

    fn line(text: &str) -> LogLine {
        LogLine {
            at: SystemTime::UNIX_EPOCH,
            text: text.into(),
        }
    }

    fn texts(page: &Page) -> Vec<&str> {
        page.lines.iter().map(|line| line.text.as_ref()).collect()
    }

    #[test]
    fn a_reader_gets_each_line_once_in_pages_of_its_size() {
        let mut tail = tail(3);
        let first = tail.last(2);
        assert_eq!(texts(&first), ["1", "2"]);
        for text in ["a", "b", "c"] {
            tail.push(&line(text));
        }
        let second = tail.after(first.next, 2);
        assert_eq!((texts(&second), second.missed), (vec!["a", "b"], false));
        let third = tail.after(second.next, 2);
        assert_eq!(texts(&third), ["c"]);
        assert_eq!(tail.after(third.next, 2), Page { lines: vec![], ..third });
    }

    #[test]
    fn a_reader_that_came_too_late_is_told_and_gets_what_is_left() {
        let mut tail = tail(1);
        let begun = tail.last(1).next;
        for n in 0..TAIL_LINES + 5 {
            tail.push(&line(&format!("later {n}")));
        }
        let page = tail.after(begun, 1);
        assert_eq!((texts(&page), page.missed), (vec!["later 5"], true));
        assert!(!tail.after(page.next, 1).missed);
    }

    #[test]
    fn a_place_in_another_log_begins_this_one_anew() {
        let earlier = tail(7).last(7).next;
        let page = tail(2).after(earlier, 9);
        assert_eq!((texts(&page), page.missed), (vec!["0", "1"], true));
    }

    #[test]
    fn a_place_survives_its_way_through_a_text_and_nothing_else_is_one() {
        let cursor = tail(3).last(1).next;
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in ["", "-", "1", "x-1", "1-", "1--1", "1-1-1", "fffffffffffffffff-1"] {
            assert_eq!(text.parse::<Cursor>(), Err(NotACursor), "{text:?}");
        }
    }
}
