//! A launch as the person is shown it. Pure; the environment and the program that was found are passed in.

use std::path::Path;

use super::identity::expand_home;
use crate::{
    config::{
        Auth, ClientAuth, Connector, Grant, HttpLaunch, Launch, OAuth, Redirect, StdioLaunch, host_of,
        reference::{self, Piece},
    },
    secrets::is_secret_name,
    snapshot::{Given, LaunchShown},
};

/// Stands for a value that is no one's to see.
const HIDDEN: &str = "••••••";

/// What a launch is shown with.
pub struct ShownWith<'a> {
    /// Value of a variable of the person's environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// What `~` stands for.
    pub home: &'a Path,
    /// The program that was found.
    pub program: Option<&'a Path>,
}

/// Everything of a launch, untruncated: `~` is spelled out, secrets stand as `${secret:NAME}`, variables with their
/// values, but for those whose names say that they are secret.
pub fn shown(entry: &Connector, with: &ShownWith<'_>) -> LaunchShown {
    match &entry.launch {
        Launch::Stdio(launch) => run(launch, with),
        Launch::Http(launch) => contact(launch, with),
    }
}

fn run(launch: &StdioLaunch, with: &ShownWith<'_>) -> LaunchShown {
    let home = |text: &String| expand_home(text, with.home);
    let args = launch.args.iter().map(|arg| filled(&home(arg), with));
    LaunchShown::Run {
        command_line: std::iter::once(home(&launch.command)).chain(args).collect(),
        program: with.program.map(|program| program.display().to_string()),
        cwd: launch.cwd.as_ref().map(home),
        env_file: launch.env_file.as_ref().map(home),
        env: launch
            .env
            .iter()
            .map(|(name, value)| given(name, value, with))
            .collect(),
    }
}

fn contact(launch: &HttpLaunch, with: &ShownWith<'_>) -> LaunchShown {
    let host = host_of(launch).and_then(|url| {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        url.host_str().map(|host| format!("{host}{port}"))
    });
    LaunchShown::Contact {
        url: filled(&launch.url, with),
        host: host.unwrap_or_default(),
        headers: launch
            .headers
            .iter()
            .map(|(name, value)| given(name, value, with))
            .collect(),
        auth: launch.auth.map(|auth| {
            let word = match auth {
                Auth::None => "none",
                Auth::Token => "token",
                Auth::OAuth => "oauth",
            };
            word.to_owned()
        }),
        sign_in: launch.oauth.as_ref().map(sign_in).unwrap_or_default(),
    }
}

/// The values of variables in place of their references; secrets stay as they are written.
fn filled(text: &str, with: &ShownWith<'_>) -> String {
    let Ok(pieces) = reference::pieces(text) else {
        return text.to_owned();
    };
    let piece = |piece: Piece<'_>| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Env { name, .. } if is_secret_name(name) => format!("${{env:{name}}}"),
        Piece::Env { name, default } => {
            let value = reference::env_value(name, default, with.env);
            value.unwrap_or_else(|| format!("${{env:{name}}}"))
        }
        Piece::Secret { name } => format!("${{secret:{name}}}"),
    };
    pieces.into_iter().map(piece).collect()
}

fn given(name: &str, template: &str, with: &ShownWith<'_>) -> Given {
    let mut from_environment: Vec<(String, Option<String>)> = Vec::new();
    let mut secrets: Vec<String> = Vec::new();
    for piece in reference::pieces(template).unwrap_or_default() {
        match piece {
            Piece::Text(_) => {}
            Piece::Env { name, default } => {
                let value = reference::env_value(name, default, with.env);
                let value = value.map(|value| match is_secret_name(name) {
                    true => HIDDEN.to_owned(),
                    false => value,
                });
                if from_environment.iter().all(|(known, _)| known != name) {
                    from_environment.push((name.to_owned(), value));
                }
            }
            Piece::Secret { name } => {
                if secrets.iter().all(|known| known != name) {
                    secrets.push(name.to_owned());
                }
            }
        }
    }
    Given {
        name: name.to_owned(),
        template: template.to_owned(),
        from_environment,
        secrets,
    }
}

fn sign_in(oauth: &OAuth) -> Vec<String> {
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
    let mut lines = Vec::new();
    let mut line = |name: &str, value: Option<String>| {
        lines.extend(value.map(|value| format!("{name}: {value}")));
    };
    line("issuer", issuer.clone());
    line("clientId", client_id.clone());
    line("clientSecret", client_secret.as_deref().map(secret_shown));
    line("privateKey", private_key.as_deref().map(secret_shown));
    line("algorithm", algorithm.clone());
    line("scopes", scopes.as_ref().map(|scopes| scopes.join(" ")));
    line(
        "clientMetadataUrl",
        client_metadata_url.as_ref().map(ToString::to_string),
    );
    line(
        "redirect",
        match redirect {
            Redirect::Auto => None,
            Redirect::DeepLink => Some("deep-link".to_owned()),
            Redirect::Loopback => Some("loopback".to_owned()),
        },
    );
    line(
        "grant",
        match grant {
            Grant::AuthorizationCode => None,
            Grant::ClientCredentials => Some("client_credentials".to_owned()),
        },
    );
    line(
        "clientAuth",
        match client_auth {
            ClientAuth::Secret => None,
            ClientAuth::PrivateKeyJwt => Some("private_key_jwt".to_owned()),
        },
    );
    line("allowMissingPkce", allow_missing_pkce.then(|| "true".to_owned()));
    lines
}

/// References stay; what is written out is not shown.
fn secret_shown(template: &str) -> String {
    let Ok(pieces) = reference::pieces(template) else {
        return HIDDEN.to_owned();
    };
    let piece = |piece: Piece<'_>| match piece {
        Piece::Text(_) => HIDDEN.to_owned(),
        Piece::Env { name, .. } => format!("${{env:{name}}}"),
        Piece::Secret { name } => format!("${{secret:{name}}}"),
    };
    pieces.into_iter().map(piece).collect()
}

/// The same with every text changed: what is kept for a later look must hold no value that is secret.
pub fn with_texts(shown: LaunchShown, change: &dyn Fn(&str) -> String) -> LaunchShown {
    let many = |texts: Vec<String>| texts.iter().map(|text| change(text)).collect();
    let given = |all: Vec<Given>| {
        let one = |given: Given| Given {
            template: change(&given.template),
            from_environment: given
                .from_environment
                .into_iter()
                .map(|(name, value)| (name, value.map(|value| change(&value))))
                .collect(),
            name: given.name,
            secrets: given.secrets,
        };
        all.into_iter().map(one).collect()
    };
    match shown {
        LaunchShown::Run {
            command_line,
            program,
            cwd,
            env_file,
            env,
        } => LaunchShown::Run {
            command_line: many(command_line),
            program,
            cwd,
            env_file,
            env: given(env),
        },
        LaunchShown::Contact {
            url,
            host,
            headers,
            auth,
            sign_in,
        } => LaunchShown::Contact {
            url: change(&url),
            host,
            headers: given(headers),
            auth,
            sign_in: many(sign_in),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EntryKind, parse};

    fn of(entry: &str) -> LaunchShown {
        let config = parse(format!("{{\"servers\": {{\"a\": {entry}}}}}").as_bytes()).unwrap();
        let EntryKind::Valid(connector) = &config.entries[0].kind else {
            panic!("invalid")
        };
        let env = |name: &str| match name {
            "HOST" => Some("h".to_owned()),
            "API_TOKEN" => Some("SENTINEL".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        shown(
            connector,
            &ShownWith {
                env: &env,
                home: Path::new("/home/u"),
                program: Some(Path::new("/usr/bin/x")),
            },
        )
    }

    #[test]
    fn a_program_is_shown_whole_with_what_goes_into_it() {
        let LaunchShown::Run {
            command_line,
            program,
            cwd,
            env_file,
            env,
        } = of(
            r#"{"command": "~/x", "args": ["~/y", "${env:HOST}", "${env:EMPTY:-d}", "${env:NONE}", "${secret:K}",
                "${env:API_TOKEN}"], "env": {"A": "lit", "B": "${env:HOST}-${env:NONE}-${secret:K}",
                "T": "${env:API_TOKEN}"}, "cwd": "~", "envFile": "~/.e"}"#,
        )
        else {
            panic!()
        };
        let shown_line = [
            "/home/u/x",
            "/home/u/y",
            "h",
            "d",
            "${env:NONE}",
            "${secret:K}",
            "${env:API_TOKEN}",
        ];
        assert_eq!(command_line, shown_line);
        assert_eq!(program.as_deref(), Some("/usr/bin/x"));
        assert_eq!(
            (cwd.as_deref(), env_file.as_deref()),
            (Some("/home/u"), Some("/home/u/.e"))
        );
        assert_eq!(env[0].template, "lit");
        assert_eq!(
            env[1].from_environment,
            [("HOST".into(), Some("h".into())), ("NONE".into(), None)]
        );
        assert_eq!(env[1].secrets, ["K"]);
        assert_eq!(env[2].from_environment, [("API_TOKEN".into(), Some(HIDDEN.into()))]);
    }

    #[test]
    fn an_address_is_shown_with_its_host_its_headers_and_its_sign_in() {
        let LaunchShown::Contact {
            url,
            host,
            headers,
            auth,
            sign_in,
        } = of(
            r#"{"url": "https://x.example:8443/${env:HOST}?k=${secret:K}", "headers": {"X": "${env:HOST}"},
                "auth": "oauth", "oauth": {"clientId": "c", "clientSecret": "SENTINEL", "allowMissingPkce": true}}"#,
        )
        else {
            panic!()
        };
        assert_eq!(url, "https://x.example:8443/h?k=${secret:K}");
        assert_eq!((host.as_str(), auth.as_deref()), ("x.example:8443", Some("oauth")));
        assert_eq!(headers[0].from_environment, [("HOST".into(), Some("h".into()))]);
        assert!(sign_in.contains(&"allowMissingPkce: true".to_owned()) && sign_in.contains(&"clientId: c".to_owned()));
        assert!(!format!("{sign_in:?}").contains("SENTINEL"));
    }
}
