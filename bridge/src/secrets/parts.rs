//! Values that are larger than a vault takes: kept in numbered parts of which a half-written set is never read.
//!
//! The value under the account itself, the *head*, then says which of two sets of parts holds the value, how many they
//! are and their digest. A write fills the set that the head does not name, then replaces the head, then removes the other
//! set. Parts are written from the first on and removed from the last on, so that a set never has gaps, whenever the
//! program is killed.

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use super::{KeychainFault, vault::Vault};

/// Begins every head. A value of our own never does: they are JSON.
const MARK: &str = "neuron-parts:";
/// A set with more of them is not looked through for leftovers.
const MOST_PARTS: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Set {
    A,
    B,
}

struct Head {
    set: Set,
    count: usize,
    digest: String,
}

/// The value under an account, put together where it is in parts. Parts that do not belong together count as no value.
pub(super) fn get(vault: &mut dyn Vault, account: &str) -> Result<Option<SecretString>, KeychainFault> {
    let Some(value) = vault.get(account)? else {
        return Ok(None);
    };
    let Some(head) = Head::parse(value.expose_secret()) else {
        return Ok(Some(value));
    };
    let mut whole = String::new();
    for number in 1..=head.count {
        match vault.get(&part(account, head.set, number))? {
            Some(part) => whole.push_str(part.expose_secret()),
            None => return Ok(None),
        }
    }
    let whole = SecretString::from(whole);
    Ok((digest(whole.expose_secret()) == head.digest).then_some(whole))
}

/// Keeps a value, in parts where it is too large for one.
pub(super) fn set(vault: &mut dyn Vault, account: &str, value: &SecretString) -> Result<(), KeychainFault> {
    let text = value.expose_secret();
    let Some(limit) = vault.limit() else {
        return vault.set(account, value);
    };
    let before = vault.get(account)?.and_then(|value| Head::parse(value.expose_secret()));
    if fits(text, limit) && !text.starts_with(MARK) {
        vault.set(account, value)?;
        return match before {
            Some(_) => remove_sets(vault, account),
            None => Ok(()),
        };
    }
    let into = match before {
        Some(Head { set: Set::A, .. }) => Set::B,
        Some(Head { set: Set::B, .. }) | None => Set::A,
    };
    let pieces = split(text, limit);
    for (piece, number) in pieces.iter().zip(1..) {
        vault.set(&part(account, into, number), &SecretString::from(*piece))?;
    }
    let head = Head {
        set: into,
        count: pieces.len(),
        digest: digest(text),
    };
    vault.set(account, &head.text().into())?;
    remove_after(vault, account, into.other(), 0)?;
    remove_after(vault, account, into, pieces.len())
}

/// Removes a value with all its parts, the head last, so that what a killed removal leaves can be found again.
pub(super) fn delete(vault: &mut dyn Vault, account: &str) -> Result<(), KeychainFault> {
    if vault.limit().is_some() {
        remove_sets(vault, account)?;
    }
    vault.delete(account)
}

fn remove_sets(vault: &mut dyn Vault, account: &str) -> Result<(), KeychainFault> {
    remove_after(vault, account, Set::A, 0)?;
    remove_after(vault, account, Set::B, 0)
}

/// Removes the parts of a set whose number is greater than `kept`.
fn remove_after(vault: &mut dyn Vault, account: &str, set: Set, kept: usize) -> Result<(), KeychainFault> {
    let mut last = kept;
    while last < MOST_PARTS && vault.get(&part(account, set, last + 1))?.is_some() {
        last += 1;
    }
    for number in (kept + 1..=last).rev() {
        vault.delete(&part(account, set, number))?;
    }
    Ok(())
}

fn part(account: &str, set: Set, number: usize) -> String {
    format!("{account}:part:{}:{number}", set.letter())
}

impl Set {
    fn letter(self) -> char {
        match self {
            Self::A => 'a',
            Self::B => 'b',
        }
    }

    fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

impl Head {
    fn text(&self) -> String {
        format!("{MARK}{}:{}:{}", self.set.letter(), self.count, self.digest)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.strip_prefix(MARK)?.splitn(3, ':');
        let set = match fields.next()? {
            "a" => Set::A,
            "b" => Set::B,
            _ => return None,
        };
        Some(Self {
            set,
            count: fields.next()?.parse().ok()?,
            digest: fields.next()?.to_owned(),
        })
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a text takes, in the encoding in which it takes more.
fn size(text: &str) -> usize {
    text.len().max(2 * text.encode_utf16().count())
}

fn fits(text: &str, limit: usize) -> bool {
    size(text) <= limit
}

/// Pieces that fit, cut between characters; each has at least one.
fn split(text: &str, limit: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut utf8, mut utf16) = (0, 0, 0);
    for (at, c) in text.char_indices() {
        let (more8, more16) = (c.len_utf8(), 2 * c.len_utf16());
        if at > start && (utf8 + more8 > limit || utf16 + more16 > limit) {
            pieces.push(&text[start..at]);
            (start, utf8, utf16) = (at, 0, 0);
        }
        utf8 += more8;
        utf16 += more16;
    }
    pieces.push(&text[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const LIMIT: usize = 2_560;

    #[derive(Clone, Copy)]
    enum Counts {
        Utf8,
        Utf16,
    }

    /// Takes 2,560 bytes for a value, as the Windows store does, and dies after a number of changes.
    struct Small {
        values: BTreeMap<String, String>,
        counts: Counts,
        changes_left: usize,
    }

    impl Small {
        fn new(counts: Counts) -> Self {
            Self {
                values: BTreeMap::new(),
                counts,
                changes_left: usize::MAX,
            }
        }

        fn change(&mut self) -> Result<(), KeychainFault> {
            if self.changes_left == 0 {
                return Err(KeychainFault::Refused("killed".to_owned()));
            }
            self.changes_left -= 1;
            Ok(())
        }
    }

    impl Vault for Small {
        fn get(&mut self, account: &str) -> Result<Option<SecretString>, KeychainFault> {
            Ok(self.values.get(account).map(|value| value.clone().into()))
        }

        fn set(&mut self, account: &str, value: &SecretString) -> Result<(), KeychainFault> {
            self.change()?;
            let value = value.expose_secret();
            let bytes = match self.counts {
                Counts::Utf8 => value.len(),
                Counts::Utf16 => 2 * value.encode_utf16().count(),
            };
            assert!(bytes <= LIMIT, "{bytes} bytes under {account}");
            self.values.insert(account.to_owned(), value.to_owned());
            Ok(())
        }

        fn delete(&mut self, account: &str) -> Result<(), KeychainFault> {
            self.change()?;
            self.values.remove(account);
            Ok(())
        }

        fn check(&mut self) -> Result<(), KeychainFault> {
            Ok(())
        }

        fn limit(&self) -> Option<usize> {
            Some(LIMIT)
        }
    }

    fn value(vault: &mut Small) -> Option<String> {
        get(vault, "x").unwrap().map(|value| value.expose_secret().to_owned())
    }

    #[test]
    fn secrets_of_any_length_come_back_whole_and_leave_no_parts_of_earlier_ones() {
        for counts in [Counts::Utf8, Counts::Utf16] {
            let mut vault = Small::new(counts);
            for text in [
                "k".repeat(20_000),
                "m".repeat(1_281),
                "n".repeat(1_280),
                "é".repeat(5_000),
                "𝄞".repeat(2_000),
                format!("{MARK}a:1:0"),
                String::new(),
            ] {
                set(&mut vault, "x", &text.clone().into()).unwrap();
                assert_eq!(value(&mut vault).as_deref(), Some(text.as_str()));
                let parts = vault.values.keys().filter(|key| key.contains(":part:")).count();
                assert!(
                    parts <= text.len() / 1_270 + 1,
                    "{parts} parts for {} bytes",
                    text.len()
                );
            }
            set(&mut vault, "x", &"k".repeat(20_000).into()).unwrap();
            delete(&mut vault, "x").unwrap();
            assert!(vault.values.is_empty(), "{:?}", vault.values.keys());
        }
    }

    #[test]
    fn a_write_that_is_killed_at_any_step_leaves_the_old_or_the_new_value_and_the_next_one_tidies_up() {
        let (old, new) = ("o".repeat(6_000), "n".repeat(9_000));
        for before in [old.clone(), "short".to_owned()] {
            for survives in 0.. {
                let mut vault = Small::new(Counts::Utf16);
                set(&mut vault, "x", &before.clone().into()).unwrap();
                vault.changes_left = survives;
                let done = set(&mut vault, "x", &new.clone().into());
                vault.changes_left = usize::MAX;
                let found = value(&mut vault).unwrap();
                assert!(found == before || found == new, "after {survives} changes");
                assert!(done.is_err() || found == new);
                set(&mut vault, "x", &old.clone().into()).unwrap();
                assert_eq!(value(&mut vault).unwrap(), old);
                // The head and its five parts of at most 1,280 characters.
                assert_eq!(vault.values.len(), 6, "after {survives} changes");
                if done.is_ok() {
                    break;
                }
            }
        }
    }

    #[test]
    fn a_removal_that_is_killed_is_never_half_a_value_and_can_be_done_again() {
        for survives in 0.. {
            let mut vault = Small::new(Counts::Utf8);
            let text = "v".repeat(6_000);
            set(&mut vault, "x", &text.clone().into()).unwrap();
            vault.changes_left = survives;
            let done = delete(&mut vault, "x");
            vault.changes_left = usize::MAX;
            assert!(value(&mut vault).is_none_or(|found| found == text), "after {survives}");
            delete(&mut vault, "x").unwrap();
            assert!(vault.values.is_empty());
            if done.is_ok() {
                break;
            }
        }
    }
}
