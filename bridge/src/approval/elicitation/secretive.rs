//! Whether a form asks for a secret. Secrets go into the keychain or a server's own page, never through a form that an
//! upstream writes (MCP 2025-11-25, Elicitation, Security Considerations). A net: it goes by the words that people use and
//! the tricks that are known, and whoever words it another way gets through. Pure.

mod plain;

use self::plain::{together, words};
use super::form::{Field, Form, Kind};
use crate::secrets::is_secret_name;

/// One of these is secret wherever it is asked for. Folded, as [`words`] gives them.
const ALWAYS: &[&str] = &[
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "passkey",
    "otp",
    "totp",
    "2fa",
    "mfa",
    "cvv",
    "cvc",
    "apikey",
    "credential",
    "credentials",
    "mnemonic",
    // German, French, Spanish, Portuguese, Italian, Dutch, Polish, Turkish, Swedish, Danish and Norwegian, Finnish, Czech.
    "passwort",
    "kennwort",
    "zugangsdaten",
    "motdepasse",
    "contrasena",
    "senha",
    "parola",
    "wachtwoord",
    "haslo",
    "sifre",
    "losenord",
    "adgangskode",
    "passord",
    "salasana",
    "heslo",
];

/// The same in other scripts, inside whatever ending they take: Russian and Ukrainian, Greek, Japanese, Chinese, Korean,
/// Arabic, Hindi. Folded as well, so that Cyrillic letters stand here as the Latin ones they look like.
const OTHER_SCRIPTS: &[&str] = &[
    "парол",
    "κωδικός πρόσβασης",
    "パスワード",
    "密码",
    "密碼",
    "暗証番号",
    "비밀번호",
    "كلمة المرور",
    "पासवर्ड",
];

/// Words after each other.
const PHRASES: &[&[&str]] = &[
    &["pass", "phrase"],
    &["pass", "word"],
    &["pass", "code"],
    &["api", "key"],
    &["api", "keys"],
    &["access", "key"],
    &["private", "key"],
    &["secret", "key"],
    &["signing", "key"],
    &["encryption", "key"],
    &["ssh", "key"],
    &["license", "key"],
    &["api", "token"],
    &["access", "token"],
    &["auth", "token"],
    &["bearer", "token"],
    &["refresh", "token"],
    &["personal", "token"],
    &["client", "secret"],
    &["security", "code"],
    &["pin", "code"],
    &["login", "code"],
    &["verification", "code"],
    &["authentication", "code"],
    &["authenticator", "code"],
    &["one", "time", "code"],
    &["backup", "code"],
    &["backup", "codes"],
    &["digit", "code"],
    &["code", "from", "your", "authenticator"],
    &["authenticator", "app"],
    &["seed", "phrase"],
    &["recovery", "phrase"],
    &["recovery", "code"],
    &["mot", "de", "passe"],
    &["palavra", "passe"],
    &["clave", "de", "acceso"],
    &["geheimes", "token"],
];

/// Secret where somebody is asked to hand one over: after one of [`HANDED`], close by.
const HANDED_OVER: &[&str] = &["token", "secret", "pin", "pat", "key", "passwort", "jwt", "cookie"];

/// What asks somebody to hand something over.
const HANDED: &[&str] = &[
    "your", "paste", "enter", "provide", "supply", "type", "give", "dein", "ihr", "votre",
];

/// So many words lie between at most: "paste your GitHub personal access token".
const CLOSE: usize = 4;

/// What makes of such a word something that is no secret: "token count", "secret santa", "key name".
const HARMLESS_AFTER: &[&str] = &[
    "budget",
    "count",
    "counts",
    "expiry",
    "id",
    "length",
    "limit",
    "limits",
    "location",
    "name",
    "names",
    "price",
    "santa",
    "size",
    "symbol",
    "type",
    "usage",
    "column",
    "points",
    "word",
    "words",
    "ingredient",
    "in",
    "up",
];

/// Names of fields that are secret by themselves, and mean something else inside a sentence.
const NAMES: &[&str] = &["pin", "pat", "pass", "pwd", "seed", "secret", "token", "jwt"];

/// What asks for a secret, if anything does: a field by its name or title, or a text about it, or the message.
pub(super) fn asked_for(message: &str, form: &Form<'_>) -> Option<String> {
    let typed = || form.fields.iter().filter(|field| is_typed(&field.kind));
    if let Some(field) = typed().find(|field| is_secret(field)) {
        let name: String = field.name.chars().filter(|c| !c.is_control()).take(80).collect();
        return Some(format!("the field \"{name}\""));
    }
    typed().next()?;
    let whole = [Some(message), form.title, form.description];
    let says_so = whole.into_iter().flatten().any(is_asked_in);
    says_so.then(|| "its message says so".to_owned())
}

/// What is chosen or ticked is no secret.
fn is_typed(kind: &Kind<'_>) -> bool {
    match kind {
        Kind::Text { .. } | Kind::Number { .. } => true,
        Kind::Boolean | Kind::One(_) | Kind::Several { .. } => false,
    }
}

fn is_secret(field: &Field<'_>) -> bool {
    let names = || [Some(field.name), field.title].into_iter().flatten();
    let is_asked = names().chain(field.description).any(is_asked_in);
    match &field.kind {
        Kind::Text { format, .. } => {
            *format == Some("password")
                || is_asked
                || names().any(is_name_of_secret)
                || field.description.is_some_and(is_of_a_secret)
        }
        // A number of tokens is none.
        Kind::Number { .. } => is_asked || names().any(|name| is_one_of(name, &["pin"])),
        Kind::Boolean | Kind::One(_) | Kind::Several { .. } => false,
    }
}

fn is_name_of_secret(name: &str) -> bool {
    let words = words(name);
    let is_harmless = words.last().is_some_and(|last| HARMLESS_AFTER.contains(&last.as_str()));
    !is_harmless && (is_secret_name(name) || is_secret_name(&words.join("_")) || is_one_of(name, NAMES))
}

fn is_one_of(name: &str, secret: &[&str]) -> bool {
    let words = words(name);
    words.iter().any(|word| secret.contains(&word.as_str())) || secret.contains(&together(name).as_str())
}

/// What a field is described as is what it takes: "The token of your account".
fn is_of_a_secret(description: &str) -> bool {
    let words = words(description);
    words.iter().enumerate().any(|(at, word)| {
        let after = words.get(at + 1).map(String::as_str);
        matches!(word.as_str(), "token" | "secret") && !after.is_some_and(|after| HARMLESS_AFTER.contains(&after))
    })
}

/// Whether this, a name or a sentence, asks for a secret.
fn is_asked_in(text: &str) -> bool {
    let words = words(text);
    let has = |phrase: &[&str]| words.windows(phrase.len()).any(|part| part == phrase);
    let whole = together(text);
    words.iter().any(|word| ALWAYS.contains(&word.as_str()))
        || ALWAYS.contains(&whole.as_str())
        || PHRASES.iter().any(|phrase| has(phrase))
        || OTHER_SCRIPTS.iter().any(|word| whole.contains(&together(word)))
        || is_spelled_out(&words)
        || is_handed_over(&words)
}

/// `p a s s w o r d`, `p.a.s.s.w.o.r.d` inside a sentence.
fn is_spelled_out(words: &[String]) -> bool {
    let is_letter = |word: &String| word.chars().count() == 1;
    let runs = words.chunk_by(|a, b| is_letter(a) == is_letter(b));
    let spelled = runs.filter(|run| run.len() > 2).map(|run| run.concat());
    spelled
        .into_iter()
        .any(|run| ALWAYS.iter().any(|word| run.contains(word)))
}

/// "Paste your GitHub token here", "your secret please".
fn is_handed_over(words: &[String]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let after = words.get(at + 1).map(String::as_str);
        HANDED_OVER.contains(&word.as_str())
            && !after.is_some_and(|after| HARMLESS_AFTER.contains(&after))
            && words[at.saturating_sub(CLOSE)..at]
                .iter()
                .any(|before| HANDED.contains(&before.as_str()))
            && !is_warned_of(&words[at.saturating_sub(2 * CLOSE)..at])
    })
}

/// "Do not give us your pin"; not "do not wait, paste your pin".
fn is_warned_of(before: &[String]) -> bool {
    before
        .windows(2)
        .any(|pair| matches!(pair[0].as_str(), "not" | "never") && HANDED.contains(&pair[1].as_str()))
}
