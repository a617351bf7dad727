//! Whether a form asks for a secret. Secrets go into the keychain or a server's own page, never through a form that an
//! upstream writes (MCP 2025-11-25, Elicitation, Security Considerations). Pure.

use super::form::{Field, Form, Kind};
use crate::secrets::is_secret_name;

/// One of these is secret wherever it is asked for.
const PLAIN: &[&str] = &[
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "otp",
    "cvv",
    "cvc",
    "apikey",
    "credential",
    "credentials",
];

/// Two words after each other.
const PAIRS: &[(&str, &str)] = &[
    ("pass", "phrase"),
    ("pass", "word"),
    ("api", "key"),
    ("api", "keys"),
    ("access", "key"),
    ("private", "key"),
    ("secret", "key"),
    ("signing", "key"),
    ("encryption", "key"),
    ("ssh", "key"),
    ("license", "key"),
    ("api", "token"),
    ("access", "token"),
    ("auth", "token"),
    ("bearer", "token"),
    ("refresh", "token"),
    ("personal", "token"),
    ("client", "secret"),
    ("security", "code"),
    ("pin", "code"),
    ("seed", "phrase"),
    ("recovery", "phrase"),
    ("recovery", "code"),
];

/// What asks for a secret, if anything does: a field by its name, or the message.
pub(super) fn asked_for(message: &str, form: &Form<'_>) -> Option<String> {
    let typed = form.fields.iter().filter(|field| is_typed(&field.kind));
    if let Some(field) = typed.clone().find(|field| is_secret(field)) {
        let name: String = field.name.chars().filter(|c| !c.is_control()).take(80).collect();
        return Some(format!("the field \"{name}\""));
    }
    (typed.count() > 0 && says_secret(message)).then(|| "its message says so".to_owned())
}

/// What is chosen or ticked is no secret.
fn is_typed(kind: &Kind<'_>) -> bool {
    match kind {
        Kind::Text { .. } | Kind::Number { .. } => true,
        Kind::Boolean | Kind::One(_) | Kind::Several { .. } => false,
    }
}

fn is_secret(field: &Field<'_>) -> bool {
    let names = [Some(field.name), field.title];
    let mut names = names.into_iter().flatten();
    let is_pin = |name: &str| words(name).iter().any(|word| word == "pin");
    let description = field.description.unwrap_or_default();
    match &field.kind {
        Kind::Text { format, .. } => {
            *format == Some("password")
                || names.any(|name| is_secret_name(name) || says_secret(name) || is_pin(name))
                || says_secret(description)
                || words(description)
                    .iter()
                    .any(|word| word == "token" || word == "secret")
        }
        // A number of tokens is none.
        Kind::Number { .. } => names.any(|name| says_secret(name) || is_pin(name)) || says_secret(description),
        Kind::Boolean | Kind::One(_) | Kind::Several { .. } => false,
    }
}

fn says_secret(text: &str) -> bool {
    let words = words(text);
    let follows = |pair: &[String]| {
        PAIRS
            .iter()
            .any(|(first, second)| pair[0] == *first && pair[1] == *second)
    };
    words.iter().any(|word| PLAIN.contains(&word.as_str())) || words.windows(2).any(follows)
}

/// In small letters, cut at what is no letter or digit and where `camelCase` turns.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in text.chars() {
        let turns = was_small && c.is_uppercase();
        was_small = c.is_lowercase();
        if turns || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
