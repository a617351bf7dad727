//! A launch with everything filled in: what is really run or contacted.

use std::{fmt, path::PathBuf};

use http::HeaderName;
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::{Auth, OAuth};

/// What is really run or contacted. Two equal ones need no restart.
#[derive(Debug)]
pub enum Resolved {
    Stdio {
        command: String,
        args: Vec<SecretString>,
        /// In the order of the entry.
        env: Vec<(String, SecretString)>,
        cwd: Option<PathBuf>,
        env_file: Option<PathBuf>,
    },
    Http {
        url: SecretUrl,
        headers: Vec<(HeaderName, SecretString)>,
        /// The 2024-11-05 HTTP+SSE transport.
        sse: bool,
        auth: Option<Auth>,
        /// Boxed, because it is large and rare.
        oauth: Option<Box<ResolvedOAuth>>,
    },
}

/// The `oauth` member with its two secrets filled in.
#[derive(Debug, Clone)]
pub struct ResolvedOAuth {
    /// As written.
    pub settings: OAuth,
    pub client_secret: Option<SecretString>,
    pub private_key: Option<SecretString>,
}

/// An address whose path and query may hold secrets; shows only scheme, host and port.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl(Url);

impl SecretUrl {
    pub(super) fn new(url: Url) -> Self {
        Self(url)
    }

    /// The whole address. Never to be logged or shown.
    pub fn expose(&self) -> &Url {
        &self.0
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/…", self.origin())
    }
}

impl PartialEq for Resolved {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Stdio {
                    command,
                    args,
                    env,
                    cwd,
                    env_file,
                },
                Self::Stdio {
                    command: command2,
                    args: args2,
                    env: env2,
                    cwd: cwd2,
                    env_file: env_file2,
                },
            ) => {
                command == command2
                    && args
                        .iter()
                        .map(SecretString::expose_secret)
                        .eq(args2.iter().map(SecretString::expose_secret))
                    && same_pairs(env, env2)
                    && cwd == cwd2
                    && env_file == env_file2
            }
            (
                Self::Http {
                    url,
                    headers,
                    sse,
                    auth,
                    oauth,
                },
                Self::Http {
                    url: url2,
                    headers: headers2,
                    sse: sse2,
                    auth: auth2,
                    oauth: oauth2,
                },
            ) => url == url2 && same_pairs(headers, headers2) && sse == sse2 && auth == auth2 && oauth == oauth2,
            (Self::Stdio { .. }, Self::Http { .. }) | (Self::Http { .. }, Self::Stdio { .. }) => false,
        }
    }
}

impl PartialEq for ResolvedOAuth {
    fn eq(&self, other: &Self) -> bool {
        let text = |secret: &Option<SecretString>| secret.as_ref().map(|s| s.expose_secret().to_owned());
        self.settings == other.settings
            && text(&self.client_secret) == text(&other.client_secret)
            && text(&self.private_key) == text(&other.private_key)
    }
}

fn same_pairs<K: PartialEq>(left: &[(K, SecretString)], right: &[(K, SecretString)]) -> bool {
    let equal = |((k, v), (k2, v2)): (&(K, SecretString), &(K, SecretString))| {
        k == k2 && v.expose_secret() == v2.expose_secret()
    };
    left.len() == right.len() && left.iter().zip(right).all(equal)
}
