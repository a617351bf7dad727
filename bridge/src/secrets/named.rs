//! Values from the keychain in what an upstream answers. Pure.
//!
//! Looked for inside the strings and numbers of the JSON text, however those are escaped, and replaced there; all else
//! stays byte for byte, and no value is built of it.

use std::{borrow::Cow, fmt, ops::Range};

use secrecy::{ExposeSecret as _, SecretString};

/// Shorter values are words of ordinary results as well.
const SHORTEST: usize = 8;
/// Values of one connector that are looked for; the newest ones.
const MOST: usize = 64;

/// A value and what stands in its place.
#[derive(Clone)]
pub struct Named {
    /// The secret's name, or `token`.
    pub name: String,
    pub value: SecretString,
}

#[derive(Default)]
pub(super) struct NamedValues(Vec<Looked>);

#[derive(Clone)]
struct Looked {
    mark: String,
    /// The value, and as it stands in a JSON text inside the text, and in an address, where that differs.
    forms: Vec<SecretString>,
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
            if all.iter().all(|looked| looked.value() != earlier.value()) {
                all.push(earlier.clone());
            }
        }
        all.truncate(MOST);
        Self(all)
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
        let text: String = serde_json::from_str(written).ok()?;
        self.hide(&text)
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

    fn forms(&self) -> impl Iterator<Item = (&str, &str)> {
        let forms = |looked: &'_ Looked| looked.forms.len();
        self.0.iter().flat_map(move |looked| {
            (0..forms(looked)).map(|index| (looked.forms[index].expose_secret(), looked.mark.as_str()))
        })
    }
}

impl Looked {
    fn of(named: &Named) -> Option<Self> {
        let value = named.value.expose_secret().trim();
        if value.chars().count() < SHORTEST {
            return None;
        }
        let in_address = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC).to_string();
        let quoted = serde_json::Value::from(value).to_string();
        let in_json = &quoted[1..quoted.len() - 1];
        let mut forms = vec![SecretString::from(value)];
        forms.extend(
            [in_json, &in_address]
                .into_iter()
                .filter(|form| *form != value)
                .map(SecretString::from),
        );
        Some(Self {
            mark: format!("[REDACTED:secret:{}]", named.name),
            forms,
        })
    }

    fn value(&self) -> Option<&str> {
        self.forms.first().map(|form| form.expose_secret())
    }
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
