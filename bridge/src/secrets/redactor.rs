//! One connector's redaction: the values it holds, and what a line says about those after it.

use std::{
    borrow::Cow,
    sync::atomic::{AtomicUsize, Ordering},
};

use arc_swap::ArcSwap;

use super::{
    named::{Named, NamedValues},
    redact::{Held, MARK, redact_held, without_held},
};

/// Lines that a private key may have; after them a key that was begun is taken to be over.
const KEY_LINES: usize = 200;

/// Redacts what one connector writes, line by line.
#[derive(Debug, Default)]
pub struct Redactor {
    held: ArcSwap<Held>,
    named: ArcSwap<NamedValues>,
    /// How many more lines may belong to a private key that was begun.
    key_lines: AtomicUsize,
}

impl Redactor {
    /// Hides these values from now on, and goes on hiding those it hid: a program that is being replaced may still speak.
    pub fn hold(&self, held: Held) {
        let both = held.and(&self.held.load());
        self.held.store(both.into());
    }

    /// As [`Redactor::hold`] for values from the keychain, which are hidden from results too.
    pub fn hold_named(&self, values: Vec<Named>) {
        if values.is_empty() {
            return;
        }
        self.hold(Held::new(values.iter().map(|named| &named.value)));
        let both = self.named.load().with(values);
        self.named.store(both.into());
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
        redact_held(line, &self.held.load())
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
