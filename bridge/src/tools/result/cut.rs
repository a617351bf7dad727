//! Cutting text in the middle, between two characters, and taking out what is of no use in two halves.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::tools::open::{Token, Tokens};

/// A text that looks like base64 is taken for a word or a key up to this length, in bytes.
const SHORT_BASE64: usize = 1_024;

/// At most `limit` characters of `text`: its start and its end around `note`. Where not even the note fits, the start.
pub(super) fn middle<'a>(text: &'a str, limit: usize, note: &str) -> Cow<'a, str> {
    // No text has more characters than bytes.
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let total = text.chars().count();
    if total <= limit {
        return Cow::Borrowed(text);
    }
    let Some(kept) = limit.checked_sub(note.chars().count()) else {
        return Cow::Borrowed(&text[..byte_of(text, limit)]);
    };
    let (head, tail) = (kept - kept / 2, kept / 2);
    let (head, tail) = (&text[..byte_of(text, head)], &text[byte_of(text, total - tail)..]);
    Cow::Owned([head, note, tail].concat())
}

/// The largest length that all texts may have so that they are at most `total` characters together.
///
/// Short texts keep what they have; the long ones share the rest evenly.
pub(super) fn fair_share(lengths: &[usize], total: usize) -> usize {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mut left = total;
    for (index, length) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - index);
        if *length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
}

/// The value as compact JSON with a remark in the place of every long piece of base64.
pub(super) fn without_base64(value: &RawValue) -> String {
    let mut json = String::new();
    for token in Tokens(value.get()) {
        match token {
            Token::Other(byte) => json.push(char::from(byte)),
            Token::Text(quoted) => json.push_str(&written_anew(quoted)),
        }
    }
    json
}

fn written_anew(quoted: &str) -> Cow<'_, str> {
    let needs_a_look = quoted.len() > SHORT_BASE64 || quoted.contains('\\');
    // Half of a character stays as it is: it cannot be written in any other way.
    let Some(text) = needs_a_look
        .then(|| serde_json::from_str::<String>(quoted).ok())
        .flatten()
    else {
        return Cow::Borrowed(quoted);
    };
    if is_base64(&text) {
        return Cow::Owned(format!(
            "\"[{:.1} MB of base64 are left out here]\"",
            text.len() as f64 / 1e6
        ));
    }
    serde_json::to_string(&text).map_or(Cow::Borrowed(quoted), Cow::Owned)
}

fn is_base64(text: &str) -> bool {
    let data = match text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((_, data)) => data,
        None => text,
    };
    let of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=\r\n".contains(&byte);
    data.len() > SHORT_BASE64 && data.bytes().all(of_base64)
}

fn byte_of(text: &str, chars: usize) -> usize {
    text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_start_and_the_end_stay_around_the_note() {
        assert_eq!(middle("abcdefghij", 10, "--"), "abcdefghij");
        assert_eq!(middle("abcdefghij", 7, "--"), "abc--ij");
        assert_eq!(middle("🦀🦀🦀🦀🦀", 4, "-"), "🦀🦀-🦀");
        assert_eq!(middle("🦀🦀🦀🦀🦀", 2, "long note"), "🦀🦀");
        assert_eq!(middle("abc", 0, ""), "");
    }

    #[test]
    fn short_texts_keep_what_they_have_and_long_ones_share_the_rest() {
        assert_eq!(fair_share(&[1, 2, 3], 6), usize::MAX);
        assert_eq!(fair_share(&[10, 100, 100], 110), 50);
        assert_eq!(fair_share(&[100], 7), 7);
        assert_eq!(fair_share(&[], 7), usize::MAX);
    }

    proptest! {
        #[test]
        fn no_cut_is_longer_than_asked_for(text in "\\PC{0,60}", limit in 0_usize..70, note in "\\PC{0,9}") {
            let cut = middle(&text, limit, &note);
            prop_assert!(cut.chars().count() <= limit);
            prop_assert_eq!(text.chars().count() <= limit, cut == text);
        }

        #[test]
        fn shares_never_exceed_the_whole(lengths in proptest::collection::vec(0_usize..50, 0..20), total in 0_usize..400) {
            let share = fair_share(&lengths, total);
            let sum: usize = lengths.iter().map(|length| *length.min(&share)).sum();
            prop_assert!(sum <= total);
            prop_assert!(share == usize::MAX || sum + lengths.len() > total, "nothing worth mentioning is wasted");
        }
    }
}
