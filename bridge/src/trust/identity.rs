//! The launch identity: one hash of everything that decides what is run or contacted, and with what (DESIGN §7.3).
//!
//! Two entries have the same identity exactly when they run the same program, or contact the same address, with the
//! same arguments, variables, headers and sign-in. What only changes looks or limits is not part of it.

use std::{collections::BTreeMap, fmt, path::Path, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest, Sha256};

use crate::{
    config::{
        Auth, ClientAuth, Connector, Grant, HttpLaunch, Launch, OAuth, Redirect, StdioLaunch,
        reference::{self, Piece, tilde},
    },
    snapshot::TransportKind,
};

/// Begins every serialization. A change of what follows needs another number, so that no old hash means a new thing.
const FORMULA: &str = "neuron-connect launch identity 1";

/// SHA-256 over the canonical serialization of a launch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchIdentity([u8; 32]);

/// What an identity depends on besides the entry.
pub struct LaunchContext<'a> {
    /// Value of a variable of the person's environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// What `~` stands for.
    pub home: &'a Path,
    /// Content of the connector's `envFile`; `None` when it has none or it cannot be read.
    pub env_file: Option<&'a [u8]>,
}

impl LaunchIdentity {
    /// The identity of what `connector` would run or contact now.
    ///
    /// `${secret:}` counts by name. `${env:}` counts by name in `env` and in the sign-in settings, and by value in
    /// arguments, headers and the URL, where it decides what is run or contacted.
    pub fn of(connector: &Connector, context: &LaunchContext<'_>) -> Self {
        let mut canon = Canon(Sha256::new());
        canon.text("formula", FORMULA);
        canon.text("transport", transport_word(connector.launch.transport()));
        match &connector.launch {
            Launch::Stdio(launch) => write_stdio(&mut canon, launch, context),
            Launch::Http(launch) => write_http(&mut canon, launch, context),
        }
        Self(canon.0.finalize().into())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Hexadecimal, 64 digits.
impl fmt::Display for LaunchIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for LaunchIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for LaunchIdentity {
    type Err = NoIdentity;

    fn from_str(text: &str) -> Result<Self, NoIdentity> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(NoIdentity);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| {
                char::from(digit)
                    .to_digit(16)
                    .and_then(|digit| u8::try_from(digit).ok())
            };
            *byte = digit(pair[0]).ok_or(NoIdentity)? << 4 | digit(pair[1]).ok_or(NoIdentity)?;
        }
        Ok(Self(bytes))
    }
}

/// A text that is not 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no launch identity")]
pub struct NoIdentity;

impl Serialize for LaunchIdentity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LaunchIdentity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

fn write_stdio(canon: &mut Canon, launch: &StdioLaunch, context: &LaunchContext<'_>) {
    // Every field by name: a new one must be placed here before it compiles.
    let StdioLaunch {
        command,
        args,
        env,
        cwd,
        env_file,
    } = launch;
    canon.text("command", command);
    canon.count("args", args.len());
    for arg in args {
        canon.by_value("arg", &expand_home(arg, context.home), context.env);
    }
    let env: BTreeMap<_, _> = env.iter().collect();
    canon.count("env", env.len());
    for (name, template) in env {
        canon.text("name", name);
        canon.text("template", template);
    }
    canon.optional("cwd", cwd.as_deref().map(|cwd| expand_home(cwd, context.home)));
    canon.optional(
        "envFile",
        env_file.as_deref().map(|path| expand_home(path, context.home)),
    );
    if env_file.is_some() {
        match context.env_file {
            Some(content) => canon.field("envFile content", Sha256::digest(content).as_slice()),
            None => canon.field("envFile unreadable", b""),
        }
    }
}

fn write_http(canon: &mut Canon, launch: &HttpLaunch, context: &LaunchContext<'_>) {
    let HttpLaunch {
        url,
        headers,
        auth,
        oauth,
        // Told by the transport.
        sse: _,
    } = launch;
    canon.by_value("url", url, context.env);
    // A header is the same in any case of its letters.
    let headers: BTreeMap<_, _> = headers.iter().map(|(n, v)| ((n.to_ascii_lowercase(), n), v)).collect();
    canon.count("headers", headers.len());
    for ((name, _), template) in headers {
        canon.text("name", &name);
        canon.by_value("template", template, context.env);
    }
    canon.optional("auth", auth.map(auth_word));
    canon.count("oauth", usize::from(oauth.is_some()));
    if let Some(oauth) = oauth {
        write_oauth(canon, oauth);
    }
}

fn write_oauth(canon: &mut Canon, oauth: &OAuth) {
    let OAuth {
        client_id,
        client_secret,
        scopes,
        issuer,
        redirect,
        grant,
        client_auth,
        private_key,
        algorithm,
        client_metadata_url,
        allow_missing_pkce,
    } = oauth;
    canon.optional("clientId", client_id.as_deref());
    canon.optional("clientSecret", client_secret.as_deref());
    canon.count("scopes", usize::from(scopes.is_some()));
    if let Some(scopes) = scopes {
        canon.count("scope list", scopes.len());
        scopes.iter().for_each(|scope| canon.text("scope", scope));
    }
    canon.optional("issuer", issuer.as_deref());
    canon.text("redirect", redirect_word(*redirect));
    canon.text("grant", grant_word(*grant));
    canon.text("clientAuth", client_auth_word(*client_auth));
    canon.optional("privateKey", private_key.as_deref());
    canon.optional("algorithm", algorithm.as_deref());
    canon.optional("clientMetadataUrl", client_metadata_url.as_ref().map(url::Url::as_str));
    canon.count("allowMissingPkce", usize::from(*allow_missing_pkce));
}

/// Hashes fields so that no two different sequences give the same bytes: each has its name and its length in front.
struct Canon(Sha256);

impl Canon {
    fn field(&mut self, name: &str, value: &[u8]) {
        for part in [name.as_bytes(), value] {
            self.0.update((part.len() as u64).to_be_bytes());
            self.0.update(part);
        }
    }

    fn text(&mut self, name: &str, value: &str) {
        self.field(name, value.as_bytes());
    }

    fn count(&mut self, name: &str, count: usize) {
        self.field(name, &(count as u64).to_be_bytes());
    }

    fn optional(&mut self, name: &str, value: Option<impl AsRef<str>>) {
        self.count(name, usize::from(value.is_some()));
        if let Some(value) = value {
            self.text(name, value.as_ref());
        }
    }

    /// A template whose `${env:}` count by value. An inserted value is text: a reference inside it stays letters.
    fn by_value(&mut self, name: &str, template: &str, env: &dyn Fn(&str) -> Option<String>) {
        self.field(name, b"template");
        let Ok(pieces) = reference::pieces(template) else {
            // It cannot start like this; as written it is still told from every other.
            return self.text("malformed", template);
        };
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Env { name, default } => match reference::env_value(name, default, env) {
                    Some(value) => text.push_str(&value),
                    None => {
                        self.text("text", &std::mem::take(&mut text));
                        self.text("unset variable", name);
                    }
                },
                Piece::Secret { name: secret } => {
                    self.text("text", &std::mem::take(&mut text));
                    self.text("secret", secret);
                }
            }
        }
        self.text("last text", &text);
    }
}

/// `~` alone or before a separator is the home folder.
pub(crate) fn expand_home(text: &str, home: &Path) -> String {
    match tilde(text) {
        Some(rest) => format!("{}{rest}", home.display()),
        None => text.to_owned(),
    }
}

fn transport_word(kind: TransportKind) -> &'static str {
    match kind {
        TransportKind::Stdio => "stdio",
        TransportKind::Http => "http",
        TransportKind::Sse => "sse",
    }
}

fn auth_word(auth: Auth) -> &'static str {
    match auth {
        Auth::None => "none",
        Auth::Token => "token",
        Auth::OAuth => "oauth",
    }
}

fn redirect_word(redirect: Redirect) -> &'static str {
    match redirect {
        Redirect::Auto => "auto",
        Redirect::DeepLink => "deep-link",
        Redirect::Loopback => "loopback",
    }
}

fn grant_word(grant: Grant) -> &'static str {
    match grant {
        Grant::AuthorizationCode => "authorization_code",
        Grant::ClientCredentials => "client_credentials",
    }
}

fn client_auth_word(auth: ClientAuth) -> &'static str {
    match auth {
        ClientAuth::Secret => "secret",
        ClientAuth::PrivateKeyJwt => "private_key_jwt",
    }
}

#[cfg(test)]
mod tests;
