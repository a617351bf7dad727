//! One connector's redaction: the values it holds, and what a line says about those after it.

use std::{
    borrow::Cow,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use arc_swap::ArcSwap;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::{
    named::{Named, NamedValues},
    redact::{Held, MARK, redact_held, without_held},
};

/// Lines that a private key may have; after them a key that was begun is taken to be over.
const KEY_LINES: usize = 200;

/// What a value of a sign-in is called where it is hidden.
const SIGN_IN: &str = "sign-in";

/// Values of sign-ins that are hidden, the newest ones: those of the last few renewals.
const MOST_OF_SIGN_INS: usize = 24;

/// Lines over this many bytes may be pieces of one that was cut.
const PIECE: usize = 4 * 1024;

/// Redacts what one connector writes, line by line.
#[derive(Debug, Default)]
pub struct Redactor {
    parts: Mutex<Parts>,
    held: ArcSwap<Held>,
    named: ArcSwap<NamedValues>,
    /// How many more lines may belong to a private key that was begun.
    key_lines: AtomicUsize,
    /// With what the next line begins, where the last one was cut off within a value.
    rests: Mutex<Vec<SecretString>>,
}

/// What is hidden, by where it comes from, so that neither pushes the other out.
#[derive(Debug, Default)]
struct Parts {
    held: Held,
    named: NamedValues,
    /// The newest first.
    sign_ins: Vec<SecretString>,
}

impl Redactor {
    /// Hides these values from now on, and goes on hiding those it hid: a program that is being replaced may still speak.
    pub fn hold(&self, held: Held) {
        let mut parts = self.parts();
        parts.held = held.and(&parts.held);
        self.put_together(&parts);
    }

    /// As [`Redactor::hold`] for values from the keychain, which are hidden from results too.
    pub fn hold_named(&self, values: Vec<Named>) {
        if values.is_empty() {
            return;
        }
        let mut parts = self.parts();
        parts.held = Held::new(values.iter().map(|named| &named.value)).and(&parts.held);
        parts.named = parts.named.with(values);
        self.put_together(&parts);
    }

    /// As [`Redactor::hold_named`] for what a sign-in uses now. Cheap where it is known.
    pub fn hold_sign_in(&self, values: Vec<SecretString>) {
        let mut parts = self.parts();
        let is = |one: &SecretString, other: &SecretString| one.expose_secret() == other.expose_secret();
        let newest = parts.sign_ins.iter().take(values.len());
        if values.iter().all(|value| newest.clone().any(|known| is(known, value))) {
            return;
        }
        let mut all = values;
        let earlier = parts
            .sign_ins
            .drain(..)
            .filter(|known| !all.iter().any(|value| is(known, value)));
        let earlier: Vec<_> = earlier.collect();
        all.extend(earlier);
        all.truncate(MOST_OF_SIGN_INS);
        parts.sign_ins = all;
        self.put_together(&parts);
    }

    fn put_together(&self, parts: &Parts) {
        let sign_ins = parts.sign_ins.iter().map(|value| Named {
            name: SIGN_IN.to_owned(),
            value: value.clone(),
        });
        let of_sign_ins = NamedValues::default().with(sign_ins.collect());
        self.held.store(parts.held.beside(&Held::new(&parts.sign_ins)).into());
        self.named.store(parts.named.beside(&of_sign_ins).into());
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether [`Redactor::result`] looks for anything.
    pub fn looks_at_results(&self) -> bool {
        !self.named.load().is_empty()
    }

    /// JSON text of an upstream's result without the values from the keychain; all else stays byte for byte.
    pub fn result<'t>(&self, json: &'t str) -> Cow<'t, str> {
        self.named.load().hide_in_json(json)
    }

    /// A sentence of our own about the upstream: its words in there went through [`super::redact`], and only the held
    /// values, which that does not know, are looked for.
    pub fn sentence<'t>(&self, text: &'t str) -> Cow<'t, str> {
        without_held(text, &self.held.load())
    }

    /// A text of others about this connector: without the held values and whatever else looks like a secret.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        redact_held(text, &self.held.load())
    }

    /// Whether a value of JSON holds one of the values, however it was escaped.
    pub fn is_told_in(&self, json: &Value) -> bool {
        fn tells(held: &Held, json: &Value) -> bool {
            match json {
                Value::Null | Value::Bool(_) => false,
                Value::Number(number) => held.is_in(&number.to_string()),
                Value::String(text) => held.is_in(text),
                Value::Array(items) => items.iter().any(|item| tells(held, item)),
                Value::Object(members) => members
                    .iter()
                    .any(|(name, value)| held.is_in(name) || tells(held, value)),
            }
        }
        tells(&self.held.load(), json)
    }

    /// The next line: a private key may go over several.
    pub fn line<'t>(&self, line: &'t str) -> Cow<'t, str> {
        let left = self.key_lines.load(Ordering::Relaxed);
        let begins = line
            .rfind("-----BEGIN ")
            .filter(|at| line[*at..].contains("PRIVATE KEY"));
        let ends = line.rfind("-----END ");
        let next = match (begins, ends) {
            (Some(begin), end) if end.is_none_or(|end| end < begin) => KEY_LINES,
            (_, Some(_)) => 0,
            _ => left.saturating_sub(1),
        };
        if next != left {
            self.key_lines.store(next, Ordering::Relaxed);
        }
        if left > 0 && begins.is_none() && is_of_a_key(line) {
            return Cow::Borrowed(MARK);
        }
        let held = self.held.load();
        let rest = self.rest_of_last(line, &held);
        match redact_held(&line[rest..], &held) {
            shown if rest == 0 => shown,
            shown => Cow::Owned(format!("{MARK}{shown}")),
        }
    }

    /// How many bytes of the line are the rest of a value within which the last one was cut off.
    fn rest_of_last(&self, line: &str, held: &Held) -> usize {
        let mut rests = self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = rests.iter().map(|rest| rest.expose_secret());
        let rest = begun.filter(|rest| line.starts_with(rest)).map(str::len).max();
        rests.clear();
        if line.len() >= PIECE {
            *rests = held.rests_after(line);
        }
        rest.unwrap_or_default()
    }
}

/// Base64 alone, perhaps behind what a logger puts before each line.
fn is_of_a_key(line: &str) -> bool {
    let last = line.trim_end().rsplit([' ', '\t']).next().unwrap_or_default();
    !last.is_empty()
        && last
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'\r'))
        && (last.len() >= 16 || last.len() == line.trim().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_key_of_many_lines_is_hidden_and_what_follows_is_not() {
        let redactor = Redactor::default();
        let lines = [
            ("loaded the key:", "loaded the key:"),
            ("-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----"),
            ("MIIEowIBAAKCAQEAn1h2SENTINELq0", "[REDACTED]"),
            (
                "[session] connected to x over protocol y",
                "[session] connected to x over protocol y",
            ),
            ("info: SENTINELAAKCAQEAn1h2SENTINELq0", "[REDACTED]"),
            ("ab==", "[REDACTED]"),
            ("-----END RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"),
            ("ready", "ready"),
        ];
        for (line, shown) in lines {
            assert_eq!(redactor.line(line), shown);
        }
    }

    #[test]
    fn our_own_sentences_lose_held_values_and_nothing_else() {
        let redactor = Redactor::default();
        redactor.hold(Held::new(&["plainvalue".to_owned().into()]));
        assert_eq!(
            redactor.sentence("It refused plainvalue; send the header Authorization: Bearer YOUR_KEY."),
            "It refused [REDACTED]; send the header Authorization: Bearer YOUR_KEY."
        );
    }

    #[test]
    fn a_value_that_was_cut_off_does_not_show_its_beginning() {
        let redactor = Redactor::default();
        redactor.hold(Held::new(&["abcabcabd-value".to_owned().into()]));
        for (text, shown) in [
            ("it refused abcabcabd-val…", "it refused [REDACTED]…"),
            (
                "it refused (abcabcab…). abcab… abcabc",
                "it refused ([REDACTED]…). [REDACTED]… [REDACTED]",
            ),
            ("xabcabcabcab", "xabc[REDACTED]"),
            ("abc… abc", "abc… abc"),
            ("abcabcabd-value…", "[REDACTED]…"),
        ] {
            assert_eq!(redactor.sentence(text), shown);
            assert_eq!(redactor.line(text), shown);
        }
    }

    #[test]
    fn a_value_in_two_pieces_of_a_long_line_is_hidden_in_both() {
        let redactor = Redactor::default();
        let value = "first-half-second-half";
        redactor.hold(Held::new(&[value.to_owned().into()]));
        for cut in 1..value.len() {
            let (first, second) = value.split_at(cut);
            let shown = redactor.line(&format!("{} {first}", ".".repeat(PIECE))).into_owned();
            assert!(cut < 4 || shown.ends_with("[REDACTED]"), "{first}");
            assert_eq!(redactor.line(&format!("{second} and more")), "[REDACTED] and more");
            assert_eq!(redactor.line("lf is shown"), "lf is shown");
        }
    }

    #[test]
    fn tokens_of_a_sign_in_push_out_no_secret_that_was_entered_nor_one_that_is_still_used() {
        let redactor = Redactor::default();
        let entered = |n: usize| Named {
            name: format!("N{n}"),
            value: format!("entered-value-{n:02}-").into(),
        };
        redactor.hold_named((0..64).map(entered).collect());
        for n in 0..1000 {
            redactor.hold_sign_in(vec![
                format!("access-token-{n}-").into(),
                "refresh-token".to_owned().into(),
            ]);
        }
        let told = r#"["entered-value-00-","entered-value-63-","access-token-999-","refresh-token","access-token-0-"]"#;
        let sign_in = "[REDACTED:secret:sign-in]";
        assert_eq!(
            redactor.result(told),
            format!(r#"["[REDACTED:secret:N0]","[REDACTED:secret:N63]","{sign_in}","{sign_in}","access-token-0-"]"#)
        );
        assert_eq!(
            redactor.line("refresh-token entered-value-00-"),
            "[REDACTED] [REDACTED]"
        );
    }

    #[test]
    fn a_value_in_json_is_found_however_it_is_escaped() {
        let redactor = Redactor::default();
        let value = "with \"quotes\" \\ and\nlines";
        redactor.hold(Held::new(&[value.to_owned().into()]));
        for told in [
            serde_json::json!({"message": format!("is it {value}?")}),
            serde_json::json!({"a": [{(value): 1}]}),
            serde_json::json!({"nested": serde_json::json!({"a": value}).to_string()}),
        ] {
            assert!(redactor.is_told_in(&told), "{told}");
        }
        assert!(!redactor.is_told_in(&serde_json::json!({"a": ["with", 1, null]})));
    }

    #[test]
    fn a_replaced_entry_adds_its_values_to_those_before() {
        let redactor = Redactor::default();
        for value in ["first-value", "second-value", "first-value"] {
            redactor.hold(Held::new(&[value.to_owned().into()]));
        }
        assert_eq!(redactor.line("first-value second-value"), "[REDACTED] [REDACTED]");
    }

    #[test]
    fn a_key_that_never_ends_does_not_hide_the_log_for_ever() {
        let redactor = Redactor::default();
        redactor.line("-----BEGIN PRIVATE KEY-----");
        let shown = (0..2 * KEY_LINES).filter(|_| redactor.line("ready") == "ready").count();
        assert_eq!(shown, KEY_LINES);
    }
}
