//! Bytes to lines that are safe to show. Pure.

use std::{borrow::Cow, fmt::Write as _};

/// A line without an end is cut here, in bytes.
pub(super) const MAX_LINE: usize = 64 * 1024;

/// Cuts a byte stream into lines; bytes that are no UTF-8 become U+FFFD.
#[derive(Default)]
pub(super) struct LineCutter {
    partial: Vec<u8>,
}

impl LineCutter {
    pub(super) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Cow<'_, str>)) {
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            self.partial.extend_from_slice(&bytes[..end]);
            self.emit(self.partial.len(), &mut each);
            bytes = &bytes[end + 1..];
        }
        self.partial.extend_from_slice(bytes);
        while self.partial.len() >= MAX_LINE {
            self.emit(whole_characters(&self.partial[..MAX_LINE]), &mut each);
        }
    }

    pub(super) fn finish(mut self, mut each: impl FnMut(Cow<'_, str>)) {
        if !self.partial.is_empty() {
            self.emit(self.partial.len(), &mut each);
        }
    }

    fn emit(&mut self, end: usize, each: &mut impl FnMut(Cow<'_, str>)) {
        let line = &self.partial[..end];
        each(String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)));
        self.partial.drain(..end);
    }
}

/// Where to cut so that no character is torn.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}

/// Control characters as their pictures, direction marks and other invisible ones as `\u{…}`; tabs stay.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\u{7f}' => out.push('\u{2421}'),
            _ if is_hidden(c) && c < ' ' => out.extend(char::from_u32(0x2400 + u32::from(c))),
            _ if is_hidden(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\t')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The beginning of a text, at most `max` bytes, no character torn.
pub(super) fn cut_at(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut cutter = LineCutter::default();
        for chunk in chunks {
            cutter.push(chunk, |line| lines.push(line.into_owned()));
        }
        cutter.finish(|line| lines.push(line.into_owned()));
        lines
    }

    #[test]
    fn lines_come_out_whole_whatever_the_chunks() {
        assert_eq!(lines(&[b"a\r\nb", b"c\n\n", b"rest"]), ["a", "bc", "", "rest"]);
        assert_eq!(lines(&[b"caf\xc3", b"\xa9 \xff\n"]), ["café \u{fffd}"]);
    }

    #[test]
    fn a_line_without_an_end_is_cut_between_characters() {
        let text = "é".repeat(MAX_LINE);
        let mut all = vec![b'x'];
        all.extend_from_slice(text.as_bytes());
        let cut = lines(&[&all]);
        assert!(
            cut.iter()
                .all(|line| line.len() <= MAX_LINE && !line.contains('\u{fffd}'))
        );
        assert_eq!(cut.concat(), format!("x{text}"));
    }

    #[test]
    fn nothing_invisible_stays_invisible() {
        assert_eq!(visible("plain\ttext é"), "plain\ttext é");
        assert_eq!(visible("\x1b[31mred\x07\x7f\0"), "␛[31mred␇␡␀");
        assert_eq!(visible("a\u{202e}b\u{85}"), "a\\u{202e}b\\u{85}");
    }
}
