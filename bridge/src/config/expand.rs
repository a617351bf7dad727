//! Filling in `${env:…}`, `${secret:…}` and `~` when a connector starts. Pure: whatever is looked up is passed in.
//!
//! One pass over the text as written: what is filled in is never looked at again, so a secret that contains `${env:X}`
//! or begins with `~` arrives as it is.

use std::path::{Path, PathBuf};

use http::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::{
    Connector, HttpLaunch, Launch, Resolved, ResolvedOAuth, SecretUrl, StdioLaunch,
    reference::{self, Piece, tilde},
};
use crate::ids::ConnectorId;

/// Where values come from.
pub struct Lookup<'l> {
    /// A variable of this program's environment.
    pub env: &'l dyn Fn(&str) -> Option<String>,
    /// A secret of this connector; `None` where it is missing or withheld.
    pub secret: &'l dyn Fn(&ConnectorId, &str) -> Option<SecretString>,
    /// The person's home folder, for `~`.
    pub home: &'l Path,
}

/// Why a connector cannot start as written. Names variables and secrets, never values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    #[error(
        "the environment variable {name} is not set, and \"{field}\" needs it; set it and restart this app, or write ${{env:{name}:-a default}}"
    )]
    UnsetEnv { name: String, field: String },
    #[error("the secret {name} is missing; enter it to start this connector")]
    MissingSecret { name: String },
    /// What was filled in makes no usable value, or the text as written has a broken reference.
    #[error("\"{field}\" cannot be used: {reason}")]
    Unusable { field: String, reason: String },
}

/// Fills in everything of a connector's launch.
///
/// # Errors
/// [`ExpandError`] for the first value that cannot be filled in; then nothing may be started.
pub fn expand(connector: &Connector, lookup: &Lookup<'_>) -> Result<Resolved, ExpandError> {
    let filler = Filler {
        id: &connector.id,
        lookup,
    };
    match &connector.launch {
        Launch::Stdio(launch) => filler.stdio(launch),
        Launch::Http(launch) => filler.http(launch),
    }
}

struct Filler<'a> {
    id: &'a ConnectorId,
    lookup: &'a Lookup<'a>,
}

/// How a value is put into the text around it.
#[derive(Debug, Clone, Copy)]
enum Insert {
    Plain,
    /// As one part of a URL's path or query, whatever characters it holds.
    PercentEncoded,
}

/// Everything but the characters that no part of a URL gives a meaning (RFC 3986 §2.3).
const URL_PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

impl Filler<'_> {
    fn stdio(&self, launch: &StdioLaunch) -> Result<Resolved, ExpandError> {
        let mut args = Vec::with_capacity(launch.args.len());
        for (index, arg) in launch.args.iter().enumerate() {
            let field = format!("args[{index}]");
            let (home, rest) = self.home(arg, &field)?;
            args.push(without_zero(self.fill(home, rest, &field, Insert::Plain)?, &field)?);
        }
        let mut env = Vec::with_capacity(launch.env.len());
        for (name, value) in &launch.env {
            let field = format!("env.{name}");
            let value = without_zero(self.fill("", value, &field, Insert::Plain)?, &field)?;
            env.push((name.clone(), value));
        }
        let (home, rest) = self.home(&launch.command, "command")?;
        Ok(Resolved::Stdio {
            command: format!("{home}{rest}"),
            args,
            env,
            cwd: launch.cwd.as_deref().map(|path| self.path(path)),
            env_file: launch.env_file.as_deref().map(|path| self.path(path)),
        })
    }

    fn http(&self, launch: &HttpLaunch) -> Result<Resolved, ExpandError> {
        let mut headers = Vec::with_capacity(launch.headers.len());
        for (name, value) in &launch.headers {
            let field = format!("headers.{name}");
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_illegal| unusable(&field, "this is no header's name"))?;
            let value = self.fill("", value, &field, Insert::Plain)?;
            if HeaderValue::from_bytes(value.expose_secret().as_bytes()).is_err() {
                let reason = "what is filled in contains a line break or control character; enter it again without";
                return Err(unusable(&field, reason));
            }
            headers.push((name, value));
        }
        let secret = |value: &Option<String>, field: &str| {
            value
                .as_deref()
                .map(|value| self.fill("", value, field, Insert::Plain))
                .transpose()
        };
        let oauth = match &launch.oauth {
            Some(settings) => Some(Box::new(ResolvedOAuth {
                client_secret: secret(&settings.client_secret, "oauth.clientSecret")?,
                private_key: secret(&settings.private_key, "oauth.privateKey")?,
                settings: settings.clone(),
            })),
            None => None,
        };
        Ok(Resolved::Http {
            url: self.url(&launch.url)?,
            headers,
            sse: launch.sse,
            auth: launch.auth,
            oauth,
        })
    }

    fn url(&self, written: &str) -> Result<SecretUrl, ExpandError> {
        let invalid = || unusable("url", "with its values filled in it is no address");
        let filled = self.fill("", written, "url", Insert::PercentEncoded)?;
        let filled = filled.expose_secret();
        let url = Url::parse(filled).map_err(|_unparsable| invalid())?;
        // Validation refuses references in the host; launches made in another way must not get past it either.
        if before_path(written) != before_path(filled) || !matches!(url.scheme(), "http" | "https") {
            return Err(invalid());
        }
        if dot_segments(filled) > dot_segments(written) {
            return Err(unusable(
                "url",
                "a value of \".\" or \"..\" would lead to another path; enter another one",
            ));
        }
        Ok(SecretUrl::new(url))
    }

    /// `before` stays as it is; references are filled into `written`.
    fn fill(&self, before: &str, written: &str, field: &str, insert: Insert) -> Result<SecretString, ExpandError> {
        let mut filled = before.to_owned();
        for piece in reference::pieces(written).map_err(|error| unusable(field, &error.to_string()))? {
            let mut put = |value: &str| match insert {
                Insert::Plain => filled.push_str(value),
                Insert::PercentEncoded => filled.extend(utf8_percent_encode(value, URL_PART)),
            };
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Env { name, default } => put(&self.env(name, default, field)?),
                Piece::Secret { name } => {
                    let secret = (self.lookup.secret)(self.id, name)
                        .ok_or_else(|| ExpandError::MissingSecret { name: name.to_owned() })?;
                    put(secret.expose_secret());
                }
            }
        }
        Ok(SecretString::from(filled))
    }

    fn env(&self, name: &str, default: Option<&str>, field: &str) -> Result<String, ExpandError> {
        reference::env_value(name, default, self.lookup.env).ok_or_else(|| ExpandError::UnsetEnv {
            name: name.to_owned(),
            field: field.to_owned(),
        })
    }

    /// The home folder in place of a leading `~`, and the rest of the text.
    fn home<'t>(&self, text: &'t str, field: &str) -> Result<(&str, &'t str), ExpandError> {
        match tilde(text) {
            Some(rest) => match self.lookup.home.to_str() {
                Some(home) => Ok((home.trim_end_matches(std::path::is_separator), rest)),
                None => Err(unusable(field, "the home folder's name is no text; write the path out")),
            },
            None => Ok(("", text)),
        }
    }

    fn path(&self, text: &str) -> PathBuf {
        match tilde(text) {
            Some(rest) => self.lookup.home.join(rest.trim_start_matches(std::path::is_separator)),
            None => PathBuf::from(text),
        }
    }
}

pub(super) fn before_path(url: &str) -> &str {
    let start = url.find("://").map_or(0, |index| index + 3);
    let length = url[start..].find(['/', '?', '#', '\\']).unwrap_or(url.len() - start);
    &url[..start + length]
}

/// How many segments of a URL's path are resolved away (URL Standard, "single-dot" and "double-dot" segments).
fn dot_segments(url: &str) -> usize {
    let path = url[before_path(url).len()..]
        .split(['?', '#'])
        .next()
        .unwrap_or_default();
    let is_dots = |segment: &&str| {
        let segment = segment.to_ascii_lowercase().replace("%2e", ".");
        segment == "." || segment == ".."
    };
    path.split(['/', '\\']).filter(is_dots).count()
}

fn without_zero(value: SecretString, field: &str) -> Result<SecretString, ExpandError> {
    if value.expose_secret().contains('\0') {
        return Err(unusable(
            field,
            "what is filled in contains a zero character; enter it again without",
        ));
    }
    Ok(value)
}

fn unusable(field: &str, reason: &str) -> ExpandError {
    ExpandError::Unusable {
        field: field.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::{Auth, EntryKind, parse};

    fn connector(entry: &str) -> Connector {
        let config = parse(format!("{{\"servers\": {{\"a\": {entry}}}}}").as_bytes()).unwrap();
        match config.entries[0].kind.clone() {
            EntryKind::Valid(connector) => *connector,
            EntryKind::Invalid(notice) => panic!("{}", notice.message),
        }
    }

    fn env(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("h".into()),
            "EMPTY" => Some(String::new()),
            "TRICK" => Some("${secret:KEY} ~ ${env:HOST}".into()),
            "DOTS" => Some("..".into()),
            _ => None,
        }
    }

    fn secret(id: &ConnectorId, name: &str) -> Option<SecretString> {
        match (id.as_str(), name) {
            ("a", "KEY") => Some("k/?#&=% é".to_owned().into()),
            ("a", "TRICK") => Some("${env:HOST}".to_owned().into()),
            ("a", "LINES") => Some("x\r\nY: z".to_owned().into()),
            ("a", "ZERO") => Some("x\0".to_owned().into()),
            _ => None,
        }
    }

    fn run(entry: &str) -> Result<Resolved, ExpandError> {
        expand(
            &connector(entry),
            &Lookup {
                env: &env,
                secret: &secret,
                home: Path::new("/home/u"),
            },
        )
    }

    fn args(entry: &str) -> Vec<String> {
        match run(entry).unwrap() {
            Resolved::Stdio { args, .. } => args.iter().map(|arg| arg.expose_secret().to_owned()).collect(),
            Resolved::Http { .. } => panic!("http"),
        }
    }

    fn url(entry_url: &str) -> Result<String, ExpandError> {
        match run(&format!("{{\"url\": \"{entry_url}\"}}"))? {
            Resolved::Http { url, .. } => Ok(url.expose().to_string()),
            Resolved::Stdio { .. } => panic!("stdio"),
        }
    }

    #[test]
    fn every_field_that_may_hold_references_is_filled_in() {
        let resolved = run(
            r#"{"command": "~/bin/x", "args": ["${env:HOST}", "~", "~/${env:HOST}", "a~", "~user"],
                "env": {"A": "${secret:KEY}", "B": "${env:NONE:-d}", "C": "${env:EMPTY:-e}", "D": "${env:EMPTY}"},
                "cwd": "~", "envFile": "~/.x.env"}"#,
        )
        .unwrap();
        let Resolved::Stdio {
            command,
            args,
            env,
            cwd,
            env_file,
        } = resolved
        else {
            panic!()
        };
        let args: Vec<_> = args.iter().map(SecretString::expose_secret).collect();
        let env: Vec<_> = env.iter().map(|(k, v)| (k.as_str(), v.expose_secret())).collect();
        assert_eq!(command, "/home/u/bin/x");
        assert_eq!(args, ["h", "/home/u", "/home/u/h", "a~", "~user"]);
        assert_eq!(env, [("A", "k/?#&=% é"), ("B", "d"), ("C", "e"), ("D", "")]);
        assert_eq!(cwd.unwrap(), Path::new("/home/u"));
        assert_eq!(env_file.unwrap(), Path::new("/home/u/.x.env"));

        let resolved = run(
            r#"{"url": "https://x.example/${env:HOST}?k=${secret:KEY}", "headers": {"A": "Bearer ${env:HOST}"},
                "auth": "oauth", "oauth": {"clientSecret": "${secret:KEY}", "privateKey": "${secret:TRICK}"}}"#,
        )
        .unwrap();
        let Resolved::Http {
            url,
            headers,
            oauth,
            auth,
            sse,
        } = resolved
        else {
            panic!()
        };
        assert_eq!(
            url.expose().as_str(),
            "https://x.example/h?k=k%2F%3F%23%26%3D%25%20%C3%A9"
        );
        assert_eq!((headers[0].0.as_str(), headers[0].1.expose_secret()), ("a", "Bearer h"));
        let oauth = oauth.unwrap();
        assert_eq!(oauth.client_secret.unwrap().expose_secret(), "k/?#&=% é");
        assert_eq!(oauth.private_key.unwrap().expose_secret(), "${env:HOST}");
        assert_eq!((auth, sse), (Some(Auth::OAuth), false));
    }

    #[test]
    fn what_is_filled_in_is_never_looked_at_again() {
        let entry =
            r#"{"command": "x", "args": ["${env:TRICK}", "${secret:TRICK}", "${env:NONE:-~/x}", "$${env:HOST}"]}"#;
        assert_eq!(args(entry), ["${secret:KEY} ~ ${env:HOST}", "${env:HOST}", "~/x", "$h"]);
    }

    #[test]
    fn dollars_that_are_no_reference_stay() {
        let entry = r#"{"command": "x", "args": ["pa$$w0rd", "$HOST", "${HOST}", "${", "$", "${env}", "${x:-${y}}"]}"#;
        assert_eq!(
            args(entry),
            ["pa$$w0rd", "$HOST", "${HOST}", "${", "$", "${env}", "${x:-${y}}"]
        );
    }

    #[test]
    fn an_unset_variable_or_missing_secret_is_named() {
        let error = run(r#"{"command": "x", "args": ["${env:NONE}"]}"#).unwrap_err();
        assert_eq!(
            error,
            ExpandError::UnsetEnv {
                name: "NONE".into(),
                field: "args[0]".into()
            }
        );
        assert!(error.to_string().contains("NONE"));
        let error = run(r#"{"url": "https://x.example", "headers": {"A": "${secret:OTHER}"}}"#).unwrap_err();
        assert_eq!(error, ExpandError::MissingSecret { name: "OTHER".into() });
    }

    #[test]
    fn a_secret_belongs_to_its_own_connector_only() {
        let mut other = connector(r#"{"command": "x", "env": {"A": "${secret:KEY}"}}"#);
        other.id = ConnectorId::parse("b").unwrap();
        let lookup = Lookup {
            env: &env,
            secret: &secret,
            home: Path::new("/"),
        };
        assert_eq!(
            expand(&other, &lookup).unwrap_err(),
            ExpandError::MissingSecret { name: "KEY".into() }
        );
    }

    #[test]
    fn values_that_would_break_out_of_their_place_are_refused_without_being_shown() {
        for entry in [
            r#"{"url": "https://x.example", "headers": {"A": "${secret:LINES}"}}"#,
            r#"{"command": "x", "args": ["${secret:ZERO}"]}"#,
            r#"{"command": "x", "env": {"A": "${secret:ZERO}"}}"#,
            r#"{"url": "https://x.example/a/${env:DOTS}/b"}"#,
            r#"{"url": "https://x.example/a/.${env:NONE:-.}/b"}"#,
        ] {
            let error = run(entry).unwrap_err();
            assert!(matches!(error, ExpandError::Unusable { .. }), "{entry}");
            assert!(!error.to_string().contains("Y: z"));
        }
        assert_eq!(
            url("https://x.example/a?b=${env:DOTS}").unwrap(),
            "https://x.example/a?b=.."
        );
    }

    #[test]
    fn a_broken_reference_is_an_error_even_in_a_launch_that_was_not_checked() {
        let mut connector = connector(r#"{"url": "https://x.example/"}"#);
        for url in [
            "https://x.example/${env:",
            "https://${env:HOST}.example/",
            "https://x.example${env:NONE:-@evil}/",
        ] {
            let Launch::Http(launch) = &mut connector.launch else {
                panic!()
            };
            launch.url = url.to_owned();
            let lookup = Lookup {
                env: &env,
                secret: &secret,
                home: Path::new("/"),
            };
            assert!(
                matches!(expand(&connector, &lookup), Err(ExpandError::Unusable { .. })),
                "{url}"
            );
        }
    }

    #[test]
    fn debug_output_shows_no_value() {
        let shown = format!(
            "{:?} {:?}",
            run(r#"{"command": "x", "args": ["SENT${secret:KEY}"], "env": {"A": "${secret:TRICK}"}}"#).unwrap(),
            run(r#"{"url": "https://x.example/SENT${secret:KEY}", "headers": {"A": "SENT"}}"#).unwrap()
        );
        assert!(
            !shown.contains("SENT") && !shown.contains("k/") && !shown.contains("k%2F"),
            "{shown}"
        );
        assert!(shown.contains("https://x.example"));
    }

    #[test]
    fn equal_launches_are_equal_and_a_changed_value_is_not() {
        let entry = r#"{"command": "x", "args": ["${env:V}"], "env": {"A": "${env:V}"}}"#;
        let with = |value: &'static str| {
            let env = move |_: &str| Some(value.to_owned());
            expand(
                &connector(entry),
                &Lookup {
                    env: &env,
                    secret: &secret,
                    home: Path::new("/"),
                },
            )
            .unwrap()
        };
        assert_eq!(with("1"), with("1"));
        assert_ne!(with("1"), with("2"));
    }

    proptest! {
        #[test]
        fn inserted_values_arrive_exactly_as_they_are(
            value in proptest::collection::vec(prop::sample::select(vec![
                "${env:HOST}", "${secret:KEY}", "${", "}", "~", "~/", "$", "x", "%2e", "/", "?", "&", "\"", "日",
            ]), 0..8).prop_map(|parts| parts.concat())
        ) {
            let lookup_env = |_: &str| Some(value.clone());
            let lookup_secret = |_: &ConnectorId, _: &str| Some(SecretString::from(value.clone()));
            let lookup = Lookup { env: &lookup_env, secret: &lookup_secret, home: Path::new("/home/u") };
            let stdio = connector(r#"{"command": "x", "args": ["<${env:A}|${secret:B}>"]}"#);
            let Resolved::Stdio { args, .. } = expand(&stdio, &lookup).unwrap() else { panic!() };
            prop_assert_eq!(args[0].expose_secret(), &format!("<{value}|{value}>"));

            let http = connector(r#"{"url": "https://x.example/p?v=${secret:A}&w=1"}"#);
            let Resolved::Http { url, .. } = expand(&http, &lookup).unwrap() else { panic!() };
            let pairs: Vec<_> = url.expose().query_pairs().map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
            prop_assert_eq!(pairs, vec![("v".to_owned(), value.clone()), ("w".to_owned(), "1".to_owned())]);
            prop_assert_eq!(url.expose().path(), "/p");
        }
    }
}
