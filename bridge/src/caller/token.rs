//! A paired client's token: its form, and how it is compared.
//!
//! Only its hash is ever kept. Knows nothing of who has one.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// What a token begins with, before its id.
pub const PREFIX: &str = "ncb_";

/// Base64url characters of the secret part: 256 bits without padding.
pub const SECRET_LENGTH: usize = 43;

/// The longest id, in characters.
const LONGEST_ID: usize = 64;

/// SHA-256 of a whole token.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of a token as it is sent.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// A hash that was kept.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// What is kept of a token.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether both are of the same token; takes as long for a wrong one as for a right one.
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}

/// A token that somebody has sent: `ncb_<id>_<secret>`, of which only the hash is left.
#[derive(Debug, Clone)]
pub struct Presented {
    /// ASCII letters and digits.
    pub id: String,
    pub hash: TokenHash,
}

impl Presented {
    /// Reads a token. `None` = it has another form, so it is nobody's.
    pub fn parse(token: &str) -> Option<Self> {
        let rest = token.strip_prefix(PREFIX)?;
        let (id, secret) = rest.split_at_checked(rest.len().checked_sub(SECRET_LENGTH)?)?;
        let id = id.strip_suffix('_')?;
        let well_formed = (1..=LONGEST_ID).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && secret
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        well_formed.then(|| Self {
            id: id.to_owned(),
            hash: TokenHash::of(token),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN-_0";

    #[test]
    fn a_token_has_one_form() {
        assert_eq!(SECRET.len(), SECRET_LENGTH);
        let read = Presented::parse(&format!("ncb_Ab9_{SECRET}")).unwrap();
        assert_eq!(read.id, "Ab9");
        assert!(read.hash.matches(&TokenHash::of(&format!("ncb_Ab9_{SECRET}"))));
        for bad in [
            String::new(),
            "ncb_".into(),
            SECRET.into(),
            format!("ncb__{SECRET}"),
            format!("ncb_{SECRET}"),
            format!("ncb_a_{}", &SECRET[1..]),
            format!("ncb_a_x{SECRET}"),
            format!("ncb_a_{}=", &SECRET[1..]),
            format!("ncb_a_{}+", &SECRET[1..]),
            format!("ncb_a b_{SECRET}"),
            format!("ncb_a_b_{SECRET}"),
            format!("NCB_a_{SECRET}"),
            format!(" ncb_a_{SECRET}"),
            format!("ncb_a_{SECRET} "),
            format!("ncb_é_{SECRET}"),
            format!("ncb_{}_{SECRET}", "a".repeat(65)),
        ] {
            assert!(Presented::parse(&bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn another_token_has_another_hash_and_nothing_of_it_is_printed() {
        let one = TokenHash::of("ncb_a_1");
        assert!(!one.matches(&TokenHash::of("ncb_a_2")));
        assert!(TokenHash::from_bytes(*one.as_bytes()).matches(&one));
        assert_eq!(format!("{one:?}"), "TokenHash");
    }
}
