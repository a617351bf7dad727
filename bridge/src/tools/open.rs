//! Looking into JSON text without building what is in it: members, items and sizes of values that stay text. What a
//! server sends is small as text and up to two hundred times as large as values, so it is opened here first and parsed only
//! where it is kept. Knows nothing of what the values mean.

use std::{borrow::Cow, collections::VecDeque, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of these names, the last one where a name occurs twice. What else the object has is passed over.
///
/// # Errors
/// When the text is no JSON object.
pub(crate) fn members<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
) -> serde_json::Result<[Option<&'a RawValue>; N]> {
    #[derive(Deserialize)]
    struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

    struct Members<'n, const N: usize>([&'n str; N]);

    impl<'a, const N: usize> Visitor<'a> for Members<'_, N> {
        type Value = [Option<&'a RawValue>; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = [None; N];
            while let Some((Key(key), value)) = map.next_entry::<Key<'a>, &'a RawValue>()? {
                if let Some(place) = self.0.iter().position(|name| *name == key) {
                    found[place] = Some(value);
                }
            }
            Ok(found)
        }
    }

    let mut reader = serde_json::Deserializer::from_str(text);
    let found = reader.deserialize_map(Members(names))?;
    reader.end()?;
    Ok(found)
}

/// Hands each item of a list to `take`, until that says `false`.
///
/// # Errors
/// When the text is no JSON list.
pub(crate) fn items<'a>(text: &'a str, take: impl FnMut(&'a RawValue) -> bool) -> serde_json::Result<()> {
    struct Items<F>(F);

    impl<'a, F: FnMut(&'a RawValue) -> bool> Visitor<'a> for Items<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'a>>(mut self, mut list: A) -> Result<(), A::Error> {
            let mut wanted = true;
            // The rest is read all the same: a list that is torn further on is none.
            while let Some(item) = list.next_element::<&'a RawValue>()? {
                wanted = wanted && self.0(item);
            }
            Ok(())
        }
    }

    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_seq(Items(take))?;
    reader.end()
}

/// What a value is, as far as its first character tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    Text,
    List,
    Object,
}

impl Kind {
    pub(crate) fn of(value: &RawValue) -> Self {
        Self::of_text(value.get())
    }

    /// Of valid JSON.
    pub(crate) fn of_text(text: &str) -> Self {
        match text.trim_ascii_start().bytes().next() {
            Some(b'n') => Self::Null,
            Some(b't' | b'f') => Self::Bool,
            Some(b'"') => Self::Text,
            Some(b'[') => Self::List,
            Some(b'{') => Self::Object,
            Some(_) | None => Self::Number,
        }
    }

    /// For a sentence.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }
}

/// How serde_json names a member that stands for an exact number or for JSON that it reads anew, at any depth: an object
/// of somebody else's with such a member would turn into another value, or fill the stack.
pub(crate) const RESERVED: &str = "$serde_json::private::";

/// Whether an object in this valid JSON has a member of a [`RESERVED`] name.
pub(crate) fn has_reserved_name(json: &str) -> bool {
    // With escapes the name can be written in many ways, and hardly any text has escapes in a name.
    if !json.contains(RESERVED) && !json.contains("\\u") {
        return false;
    }
    let mut tokens = Tokens(json).peekable();
    while let Some(token) = tokens.next() {
        if let Token::Text(name) = token
            && tokens.peek() == Some(&Token::Other(b':'))
            && unescaped(name).is_some_and(|name| name.starts_with(RESERVED))
        {
            return true;
        }
    }
    false
}

/// The text that a value is, without its escapes; `None` where it is none.
pub(crate) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    unescaped(value.get())
}

fn unescaped(quoted: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(quoted).ok().map(|text| text.0)
}

/// How many values there are in this one, itself included; keys count as well. No more than a few too many.
pub(crate) fn values(value: &RawValue) -> usize {
    let mut count = 1;
    for token in Tokens(value.get()) {
        if let Token::Other(b'[' | b'{' | b',' | b':') = token {
            count += 1;
        }
    }
    count
}

/// How many members all objects in a value have together, as written: a name that occurs twice counts twice.
pub(crate) fn members_written(value: &RawValue) -> usize {
    Tokens(value.get()).filter(|token| *token == Token::Other(b':')).count()
}

/// How many characters the value has as JSON without needless blanks and escapes. Only keys that occur twice, of which one
/// is kept, make it too many.
pub(crate) fn json_chars(value: &RawValue) -> usize {
    Tokens(value.get())
        .map(|token| match token {
            Token::Text(text) => text_chars(text),
            Token::Other(_) => 1,
        })
        .sum()
}

/// A piece of valid JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// With its quotes and escapes.
    Text(&'a str),
    /// One byte of anything besides texts and blanks.
    Other(u8),
}

/// Cuts valid JSON into its pieces.
pub(crate) struct Tokens<'a>(pub(crate) &'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let rest = self.0.trim_ascii_start();
        let first = *rest.as_bytes().first()?;
        let length = if first == b'"' { text_bytes(rest) } else { 1 };
        let (piece, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(match first {
            b'"' => Token::Text(piece),
            other => Token::Other(other),
        })
    }
}

/// Bytes of the text that `json` begins with, quotes included.
fn text_bytes(json: &str) -> usize {
    let mut escaped = false;
    let closing = json.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    closing.map_or(json.len(), |at| at + 2)
}

/// Characters of a quoted text as serde_json writes it.
fn text_chars(quoted: &str) -> usize {
    let mut chars = quoted.chars();
    let mut count = 0;
    while let Some(char) = chars.next() {
        count += match char {
            '\\' => match chars.next() {
                Some('/') => 1,
                Some('u') => {
                    let digits = chars.as_str().get(..4).unwrap_or_default();
                    chars = chars.as_str().get(4..).unwrap_or_default().chars();
                    match u16::from_str_radix(digits, 16).unwrap_or_default() {
                        // These have an escape of one letter.
                        0x08 | 0x09 | 0x0a | 0x0c | 0x0d | 0x22 | 0x5c => 2,
                        0x00..0x20 => 6,
                        // The second half of a character.
                        0xdc00..=0xdfff => 0,
                        _ => 1,
                    }
                }
                Some(_) | None => 2,
            },
            _ => 1,
        };
    }
    count
}

/// The first and the last ones of a row, at most `limit` together with one place for those between them.
pub(crate) struct Ends<T> {
    head: Vec<T>,
    tail: VecDeque<T>,
    limit: usize,
    first_left_out: Option<T>,
    left_out: usize,
}

/// One place of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<T> {
    Kept(T),
    /// So many are missing; the first of them.
    LeftOut(usize, T),
}

impl<T> Ends<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            limit,
            first_left_out: None,
            left_out: 0,
        }
    }

    pub(crate) fn push(&mut self, item: T) {
        if self.head.len() < self.limit / 2 {
            self.head.push(item);
            return;
        }
        self.tail.push_back(item);
        if self.tail.len() > self.limit - self.head.len() {
            self.leave_one_out();
        }
    }

    /// The places in order.
    pub(crate) fn into_places(mut self) -> impl Iterator<Item = Place<T>> {
        if self.left_out > 0 {
            // The one place that says so.
            self.leave_one_out();
        }
        let between = self.first_left_out.map(|first| Place::LeftOut(self.left_out, first));
        let head = self.head.into_iter().map(Place::Kept);
        head.chain(between).chain(self.tail.into_iter().map(Place::Kept))
    }

    fn leave_one_out(&mut self) {
        if let Some(item) = self.tail.pop_front() {
            self.first_left_out.get_or_insert(item);
            self.left_out += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    fn ends(count: usize, limit: usize) -> Vec<Place<usize>> {
        let mut ends = Ends::new(limit);
        (0..count).for_each(|item| ends.push(item));
        ends.into_places().collect()
    }

    #[test]
    fn the_first_and_the_last_stay_and_the_others_are_counted() {
        use Place::{Kept, LeftOut};
        assert_eq!(ends(5, 5), (0..5).map(Kept).collect::<Vec<_>>());
        assert_eq!(ends(6, 5), [Kept(0), Kept(1), LeftOut(2, 2), Kept(4), Kept(5)]);
        assert_eq!(ends(50, 5), [Kept(0), Kept(1), LeftOut(46, 2), Kept(48), Kept(49)]);
        assert_eq!(ends(50, 4)[1..3], [Kept(1), LeftOut(47, 2)]);
        assert_eq!(ends(50, 1), [LeftOut(50, 0)]);
    }

    #[test]
    fn only_members_that_are_asked_for_are_looked_at() {
        let text = r#"{"a":[1,"]"],"\u0062":1.10,"x":{"a":2},"a":"last"}"#;
        let [a, b, c] = members(text, ["a", "b", "c"]).unwrap();
        assert_eq!((a.unwrap().get(), b.unwrap().get()), (r#""last""#, "1.10"));
        assert!(c.is_none());
        for none in ["", "[]", "7", r#"{"a":}"#, r#"{"a":1} x"#, r#"{"a":1"#] {
            assert!(members(none, ["a"]).is_err(), "{none}");
        }
    }

    #[test]
    fn a_list_is_read_as_far_as_wanted_and_refused_when_torn() {
        let mut seen = Vec::new();
        items(r#"[1,{"a":[2]},"3"]"#, |item| {
            seen.push(item.get());
            seen.len() < 2
        })
        .unwrap();
        assert_eq!(seen, ["1", r#"{"a":[2]}"#]);
        for none in ["{}", "null", "[1,", "[1 2]"] {
            assert!(items(none, |_| false).is_err(), "{none}");
        }
    }

    #[test]
    fn escapes_are_counted_as_they_are_written_anew() {
        for text in [
            r#""\u00e4\ud83e\udd80\/\"\\\n\u000a\u0001\u001f\u0022""#,
            r#"{ "a\\" : [ 1.10 , "\\\"," , [ ] ] }"#,
            r#""""#,
        ] {
            let written = serde_json::from_str::<Value>(text).unwrap().to_string();
            assert_eq!(json_chars(raw(text)), written.chars().count(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn sizes_are_those_of_the_parsed_value(texts in proptest::collection::vec(".{0,8}", 0..6), number in any::<f64>()) {
            let value = serde_json::json!({"a": texts, "b": {"c": number}, "d": null});
            let written = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(json_chars(raw(&written)), value.to_string().chars().count());
            let held = 8 + texts.len();
            prop_assert!((held..held + 4).contains(&values(raw(&written))));
        }
    }
}
