//! A static token or named secret as it is kept: with what it was entered for, so that it goes nowhere else. Pure.

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

/// What a token or secret was entered for (DESIGN §9): the origin of an address, or the launch identity of a program.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binding {
    /// Scheme, host and port, as `url::Url` spells an origin.
    Origin(String),
    /// The launch identity of a program, in hexadecimal.
    Launch(String),
}

/// What becomes of what was entered for an entry when the person changes the entry here (DESIGN §9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It stays as it is.
    Stays,
    /// It goes on to the entry as it is now.
    GoesOn,
    /// It is removed: it would go elsewhere.
    Goes,
}

impl Binding {
    /// What such a change from this to `next` means.
    pub fn change(&self, next: &Self) -> Change {
        match (self, next) {
            (Self::Origin(before), Self::Origin(after)) if before == after => Change::Stays,
            (Self::Launch(before), Self::Launch(after)) if before == after => Change::Stays,
            (Self::Launch(_), Self::Launch(_)) => Change::GoesOn,
            (Self::Origin(_), Self::Origin(_) | Self::Launch(_)) | (Self::Launch(_), Self::Origin(_)) => Change::Goes,
        }
    }
}

/// What is found under an account, seen from one binding.
#[derive(Debug)]
pub enum Bound {
    Missing,
    /// It was entered for something else, and stays there.
    Withheld,
    Value(SecretString),
}

#[derive(Deserialize)]
struct Read {
    r#for: Binding,
    secret: String,
}

/// The record as text.
pub(super) fn write(value: &SecretString, binding: &Binding) -> SecretString {
    let (kind, of) = match binding {
        Binding::Origin(origin) => ("origin", origin),
        Binding::Launch(identity) => ("launch", identity),
    };
    serde_json::json!({"for": {kind: of}, "secret": value.expose_secret()})
        .to_string()
        .into()
}

/// What a record gives for a binding. What is no record was entered for nothing that is known.
pub(super) fn read(text: Option<&SecretString>, binding: &Binding) -> Bound {
    let Some(text) = text else { return Bound::Missing };
    match serde_json::from_str::<Read>(text.expose_secret()) {
        Ok(record) if record.r#for == *binding => Bound::Value(record.secret.into()),
        Ok(_) | Err(_) => Bound::Withheld,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_by_the_person_keeps_secrets_where_they_go_to_the_same_place() {
        let origin = |text: &str| Binding::Origin(text.to_owned());
        let launch = |text: &str| Binding::Launch(text.to_owned());
        for (from, to, change) in [
            (origin("a"), origin("a"), Change::Stays),
            (launch("a"), launch("a"), Change::Stays),
            (launch("a"), launch("b"), Change::GoesOn),
            (origin("a"), origin("b"), Change::Goes),
            (origin("a"), launch("a"), Change::Goes),
            (launch("a"), origin("a"), Change::Goes),
        ] {
            assert_eq!(from.change(&to), change, "{from:?} {to:?}");
        }
    }

    #[test]
    fn a_secret_is_given_for_what_it_was_entered_and_for_nothing_else() {
        let here = Binding::Origin("https://a.example".to_owned());
        let record = write(&"s\"ecret".to_owned().into(), &here);
        assert!(matches!(read(Some(&record), &here), Bound::Value(value) if value.expose_secret() == "s\"ecret"));
        for other in [
            Binding::Origin("https://b.example".to_owned()),
            Binding::Origin("https://a.example:8443".to_owned()),
            Binding::Launch("https://a.example".to_owned()),
        ] {
            assert!(matches!(read(Some(&record), &other), Bound::Withheld), "{other:?}");
        }
        assert!(matches!(read(None, &here), Bound::Missing));
        assert!(matches!(
            read(Some(&"not ours".to_owned().into()), &here),
            Bound::Withheld
        ));
    }
}
