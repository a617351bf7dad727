//! Whose answer a message is that cannot be parsed, because it is too long or broken. Pure.

use rmcp::model::RequestId;

/// What the beginning of a message shows of its top level.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Head {
    /// It begins as a JSON object or array.
    pub json: bool,
    /// A `jsonrpc` member was seen.
    pub jsonrpc: bool,
    /// A `method` member was seen: a call of the upstream, nobody's answer.
    pub method: bool,
    /// The value of `id`, if it was seen whole.
    pub id: Option<RequestId>,
}

/// Reads the top-level members in the beginning of a message, as far as it goes.
pub(super) fn head(bytes: &[u8]) -> Head {
    let mut head = Head::default();
    let mut at = Cursor { bytes, at: 0 };
    at.skip(b"\xEF\xBB\xBF");
    at.space();
    head.json = matches!(at.peek(), Some(b'{' | b'['));
    if at.peek() == Some(b'{') {
        at.at += 1;
        while at.member(&mut head).is_some() {}
    }
    head
}

/// The id at the very end of a message (`…,"id":5}` or `…,"id":5,"jsonrpc":"2.0"}`).
pub(super) fn tail(bytes: &[u8]) -> Option<RequestId> {
    const KEY: &[u8] = b"\"id\"";
    let mut end = bytes.len();
    loop {
        let start = bytes[..end].windows(KEY.len()).rposition(|window| window == KEY)?;
        let before = bytes[..start].iter().rev().find(|b| !b.is_ascii_whitespace());
        if matches!(before, Some(b',' | b'{'))
            && let Some(id) = closing_id(&bytes[start + KEY.len()..])
        {
            return Some(id);
        }
        end = start + KEY.len() - 1;
    }
}

/// `:5}` with nothing but a `jsonrpc` member between the value and the message's end.
fn closing_id(bytes: &[u8]) -> Option<RequestId> {
    let mut at = Cursor { bytes, at: 0 };
    at.colon()?;
    let id = serde_json::from_slice(at.value()?).ok()?;
    at.space();
    if at.peek()? == b',' {
        at.at += 1;
        at.space();
        if at.string()? != b"\"jsonrpc\"" {
            return None;
        }
        at.colon()?;
        at.value()?;
        at.space();
    }
    (at.peek()? == b'}' && at.bytes[at.at + 1..].iter().all(u8::is_ascii_whitespace)).then_some(id)
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip(&mut self, prefix: &[u8]) {
        if self.bytes[self.at..].starts_with(prefix) {
            self.at += prefix.len();
        }
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace() || b == 0) {
            self.at += 1;
        }
    }

    fn colon(&mut self) -> Option<()> {
        self.space();
        (self.peek()? == b':').then(|| self.at += 1)?;
        self.space();
        Some(())
    }

    /// One `"key": value` and the comma behind it; `None` at the end or where the text breaks off.
    fn member(&mut self, head: &mut Head) -> Option<()> {
        self.space();
        let key = self.string()?;
        self.colon()?;
        match key {
            b"\"jsonrpc\"" => head.jsonrpc = true,
            b"\"method\"" => head.method = true,
            _ => {}
        }
        let value = self.value()?;
        if key == b"\"id\"" {
            head.id = serde_json::from_slice(value).ok();
        }
        self.space();
        (self.peek()? == b',').then(|| self.at += 1)
    }

    /// A whole string, with its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(&self.bytes[start..self.at]);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }

    /// A whole value; a scalar only if something follows it.
    fn value(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        match self.peek()? {
            b'"' => return self.string(),
            b'{' | b'[' => {
                let mut depth = 0_usize;
                loop {
                    match self.peek()? {
                        b'"' => {
                            self.string()?;
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                    self.at += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
            _ => {
                while !matches!(self.peek()?, b',' | b'}' | b']') && !self.peek()?.is_ascii_whitespace() {
                    self.at += 1;
                }
            }
        }
        Some(&self.bytes[start..self.at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(id: i64) -> Option<RequestId> {
        Some(RequestId::Number(id))
    }

    #[test]
    fn an_id_in_the_beginning_is_found_only_at_the_top_level() {
        for (text, id, method) in [
            (r#"{"jsonrpc":"2.0","id":5,"result":{"text":"aaaa"#, number(5), false),
            (r#"{"id" : 12 , "result":"#, number(12), false),
            (r#"{"id":"s","result"#, Some(RequestId::String("s".into())), false),
            (r#"{"result":{"id":9,"x":"}\"id\":8"},"id":7,"a":"#, number(7), false),
            (r#"{"result":{"id":9,"x":["aaa"#, None, false),
            (r#"{"jsonrpc":"2.0","id":5"#, None, false),
            (
                r#"{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{"#,
                number(5),
                true,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"id":3"#,
                None,
                true,
            ),
            ("", None, false),
            (r#"{"a\"#, None, false),
            ("\u{feff} {\"id\":1,", number(1), false),
            ("yyyyyyyy", None, false),
        ] {
            let head = head(text.as_bytes());
            assert_eq!((head.id, head.method), (id, method), "{text}");
        }
    }

    #[test]
    fn an_id_at_the_end_is_found_only_where_it_closes_the_message() {
        for (text, id) in [
            (r#"aaaa"}]},"jsonrpc":"2.0","id":5}"#, number(5)),
            (r#"aaaa"}]} , "id" : 5 , "jsonrpc" : "2.0" } "#, number(5)),
            (r#"a"},"id":"x"}"#, Some(RequestId::String("x".into()))),
            (r#"a","o":{"id":5}}"#, None),
            (r#"a,\"id\":5}"#, None),
            (r#"a,\"id\":5}"}}"#, None),
            (r#""id":5}"#, None),
            (r#"a,"id":5,"result":{}}"#, None),
            (r#"x,"id":4,"y":{"id":5}}"#, None),
            ("", None),
        ] {
            assert_eq!(tail(text.as_bytes()), id, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::sample::select(b"{}[]\"\\:,id 5\x00\xff".to_vec()), 0..64)) {
            head(&bytes);
            tail(&bytes);
        }
    }
}
