//! Values from the keychain in what an upstream answers. Pure.
//!
//! Looked for inside the strings and numbers of the JSON text, however those are escaped, and replaced there; all else
//! stays byte for byte, and no value is built of it.

use std::{borrow::Cow, fmt, ops::Range};

use secrecy::{ExposeSecret as _, SecretString};

use super::redact::Forms;

/// Values of one connector that are looked for; the newest ones.
const MOST: usize = 64;

/// A value and what stands in its place.
#[derive(Clone)]
pub struct Named {
    /// The secret's name, `token`, or `sign-in`.
    pub name: String,
    pub value: SecretString,
}

#[derive(Default, Clone)]
pub(super) struct NamedValues(Vec<Looked>);

#[derive(Clone)]
struct Looked {
    mark: String,
    forms: Forms,
}

impl fmt::Debug for NamedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} named values", self.0.len())
    }
}

impl NamedValues {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These, and the earlier ones: what an upstream was once given it may still tell.
    pub(super) fn with(&self, values: Vec<Named>) -> Self {
        let mut all: Vec<Looked> = values.iter().filter_map(Looked::of).collect();
        for earlier in &self.0 {
            if all.iter().all(|looked| looked.forms.whole() != earlier.forms.whole()) {
                all.push(earlier.clone());
            }
        }
        all.truncate(MOST);
        Self(all)
    }

    /// These and all others.
    pub(super) fn beside(&self, others: &Self) -> Self {
        Self(self.0.iter().chain(&others.0).cloned().collect())
    }

    pub(super) fn hide_in_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        if self.0.is_empty() || !self.may_occur(json) {
            return Cow::Borrowed(json);
        }
        let mut out = String::new();
        let mut done = 0;
        for token in Tokens::of(json) {
            let written = &json[token.range.clone()];
            let replaced = match token.kind {
                Kind::String => self.in_string(written),
                Kind::Number => self.in_number(written),
            };
            if let Some(replaced) = replaced {
                out.push_str(&json[done..token.range.start]);
                out.push_str(&replaced);
                done = token.range.end;
            }
        }
        if done == 0 {
            return Cow::Borrowed(json);
        }
        out.push_str(&json[done..]);
        Cow::Owned(out)
    }

    /// An escape may hide any character.
    fn may_occur(&self, json: &str) -> bool {
        json.contains('\\') || self.forms().any(|(form, _)| json.contains(form))
    }

    /// `written` is the string with its quotes.
    fn in_string(&self, written: &str) -> Option<String> {
        let inner = written.strip_prefix('"')?;
        let inner = inner.strip_suffix('"').unwrap_or(inner);
        if !inner.contains('\\') {
            let hidden = self.hide(inner)?;
            return Some(format!("\"{hidden}\""));
        }
        // Whoever is to be fooled by a broken escape beside the value is not this.
        self.hide(&unescaped(inner))
            .map(|hidden| serde_json::Value::from(hidden).to_string())
    }

    fn in_number(&self, written: &str) -> Option<String> {
        self.hide(written).map(|hidden| format!("\"{hidden}\""))
    }

    fn hide(&self, text: &str) -> Option<String> {
        let mut found: Vec<(Range<usize>, &str)> = self
            .forms()
            .flat_map(|(form, mark)| text.match_indices(form).map(move |(at, _)| (at..at + form.len(), mark)))
            .collect();
        if found.is_empty() {
            return None;
        }
        // Of those that overlap the longest stands for all.
        found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (Range { start, end }, mark) in found {
            if start >= done {
                out.push_str(&text[done..start]);
                out.push_str(mark);
            }
            done = done.max(end);
        }
        out.push_str(&text[done..]);
        Some(out)
    }

    fn forms<'v>(&'v self) -> impl Iterator<Item = (&'v str, &'v str)> {
        let each = |looked: &'v Looked| looked.forms.each().map(|form| (form, looked.mark.as_str()));
        self.0.iter().flat_map(each)
    }
}

impl Looked {
    fn of(named: &Named) -> Option<Self> {
        let forms = Forms::of(named.value.expose_secret());
        (!forms.is_empty()).then(|| Self {
            mark: format!("[REDACTED:secret:{}]", named.name),
            forms,
        })
    }
}

/// What a JSON string says between its quotes. Never fails: halves of surrogate pairs become U+FFFD, as in most readers,
/// and what is no escape stands for itself.
fn unescaped(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(escaped) = rest.chars().next() else {
            out.push('\\');
            break;
        };
        let plain = match escaped {
            '"' | '\\' | '/' => Some(escaped),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            _ => None,
        };
        match (plain, code_unit(rest)) {
            (Some(plain), _) => {
                out.push(plain);
                rest = &rest[1..];
            }
            (None, Some(first)) => {
                let second = rest[UNIT..].strip_prefix('\\').and_then(code_unit);
                let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
                match pair.filter(|c| c.len_utf16() == 2) {
                    Some(c) => {
                        out.push(c);
                        rest = &rest[UNIT + 1 + UNIT..];
                    }
                    None => {
                        out.push(char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER));
                        rest = &rest[UNIT..];
                    }
                }
            }
            (None, None) => out.push('\\'),
        }
    }
    out.push_str(rest);
    out
}

/// Bytes of a code unit as `uXXXX`.
const UNIT: usize = 5;

fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix('u')?.get(..UNIT - 1)?;
    // A sign is no digit, though the parser takes one.
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

#[derive(Clone, Copy)]
enum Kind {
    /// With its quotes; one that is never closed ends with the text.
    String,
    Number,
}

struct Token {
    kind: Kind,
    range: Range<usize>,
}

/// The strings and numbers of a JSON text.
struct Tokens<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Tokens<'t> {
    fn of(json: &'t str) -> Self {
        Self {
            bytes: json.as_bytes(),
            at: 0,
        }
    }

    fn after_string(&self, start: usize) -> usize {
        let mut at = start + 1;
        while let Some(byte) = self.bytes.get(at) {
            match byte {
                b'"' => return at + 1,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.bytes.len()
    }

    fn after_number(&self, start: usize) -> usize {
        let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        let rest = self.bytes[start..].iter();
        start + rest.take_while(|byte| is_part(byte)).count()
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let begins = |byte: &u8| matches!(byte, b'"' | b'-') || byte.is_ascii_digit();
        let start = self.at + self.bytes.get(self.at..)?.iter().position(begins)?;
        let (kind, end) = match self.bytes[start] {
            b'"' => (Kind::String, self.after_string(start)),
            _ => (Kind::Number, self.after_number(start)),
        };
        self.at = end;
        Some(Token {
            kind,
            range: start..end,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn values(named: &[(&str, &str)]) -> NamedValues {
        let named = named.iter().map(|(name, value)| Named {
            name: (*name).to_owned(),
            value: (*value).to_owned().into(),
        });
        NamedValues::default().with(named.collect())
    }

    #[test]
    fn a_secret_is_hidden_wherever_an_upstream_puts_it() {
        let values = values(&[("KEY", "s3cr3t/\"väl"), ("PIN", "1234567890"), ("SHORT", "1234567")]);
        let raw = r#"{"content":[{"type":"text","text":"it is s3cr3t\/\"v\u00e4l, really"}],
            "structuredContent":{"s3cr3t/\"väl":["1234567890",1234567890,-1234567890.5, 12345678, "1234567"]},
            "url":"https://h/?k=s3cr3t%2F%22v%C3%A4l", "json":"{\"k\":\"s3cr3t/\\\"väl\"}" }"#;
        let hidden = values.hide_in_json(raw);
        let mark = "[REDACTED:secret:KEY]";
        assert_eq!(
            hidden,
            raw.replace("s3cr3t\\/\\\"v\\u00e4l", mark)
                .replace("s3cr3t/\\\\\\\"väl", mark)
                .replace("s3cr3t/\\\"väl", mark)
                .replace("s3cr3t%2F%22v%C3%A4l", mark)
                .replace("\"1234567890\"", "\"[REDACTED:secret:PIN]\"")
                .replace("-1234567890.5", "\"-[REDACTED:secret:PIN].5\"")
                .replace(",1234567890,", ",\"[REDACTED:secret:PIN]\",")
        );
        serde_json::from_str::<Value>(&hidden).unwrap();
    }

    #[test]
    fn a_broken_escape_beside_a_secret_hides_nothing_of_it_from_us() {
        let values = values(&[("KEY", "sentinel-value")]);
        for broken in [
            r"\ud800",
            r"\udc00",
            r"\ud800\u0041",
            r"\ud800\ud83d\ude00",
            r"\x",
            r"\u12",
            r"\u+123",
            "\u{1}",
            r"\ué",
            r"\ud800\",
        ] {
            for raw in [
                format!(r#"["{broken}sentinel-value{broken}"]"#),
                format!(r#"["{broken} s\u0065ntinel-value"]"#),
            ] {
                let hidden = values.hide_in_json(&raw);
                assert!(hidden.contains("[REDACTED:secret:KEY]"), "{raw} {hidden}");
                assert!(!hidden.contains("ntinel-value"), "{raw} {hidden}");
            }
        }
        assert_eq!(
            values.hide_in_json(r#"["\ud83d\ude00 \n sentinel-value \ud800"]"#),
            "[\"\u{1f600} \\n [REDACTED:secret:KEY] \u{fffd}\"]"
        );
    }

    #[test]
    fn a_string_is_read_as_other_readers_read_it() {
        for text in [r"\b\f\n\r\t\/\\\u00e4\ud83d\ude00", "plain", r"\\u0041"] {
            let expected: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
            assert_eq!(unescaped(text), expected);
        }
    }

    #[test]
    fn everything_else_stays_byte_for_byte() {
        let values = values(&[("KEY", "sentinel-value")]);
        for raw in [
            r#"{ "a" : 1.0e+5, "b":"x\u0041\/", "c":[null,true], "d":"sentinel-valu" }"#,
            r#""unclosed \"#,
            "",
            "\"",
        ] {
            assert!(matches!(values.hide_in_json(raw), Cow::Borrowed(same) if same == raw));
        }
        let raw = r#"{ "a" : 1.0e+5, "b":"x\u0041\/", "d":"<sentinel-value>" }"#;
        let mark = "[REDACTED:secret:KEY]";
        assert_eq!(values.hide_in_json(raw), raw.replace("sentinel-value", mark));
    }

    #[test]
    fn one_inside_another_leaves_one_mark_and_earlier_values_stay_hidden() {
        let earlier = values(&[("OLD", "old-value-of-it")]);
        let both = earlier.with(vec![
            Named {
                name: "A".into(),
                value: "sentinel".to_owned().into(),
            },
            Named {
                name: "B".into(),
                value: "sentinel-and-more".to_owned().into(),
            },
        ]);
        assert_eq!(
            both.hide_in_json(r#"["sentinel-and-more","sentinel","old-value-of-it"]"#),
            r#"["[REDACTED:secret:B]","[REDACTED:secret:A]","[REDACTED:secret:OLD]"]"#
        );
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::from),
            Just(json!("with the sentinel-value inside")),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((".{0,6}", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_result_ever_holds_the_value_and_each_stays_a_result(tree in tree()) {
            let values = values(&[("KEY", "sentinel-value")]);
            let raw = tree.to_string();
            let hidden = values.hide_in_json(&raw);
            prop_assert!(!hidden.contains("sentinel-value"));
            let expected = raw.replace("sentinel-value", "[REDACTED:secret:KEY]");
            prop_assert_eq!(hidden.as_ref(), expected.as_str());
            serde_json::from_str::<Value>(&hidden).unwrap();
        }
    }
}
