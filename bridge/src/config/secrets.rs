//! Which secrets an entry names, and where its requests go. Pure.

use url::Url;

use super::{
    Auth, Connector, HttpLaunch, Launch,
    reference::{self, Piece},
};

/// The names in all `${secret:NAME}` of an entry, each once, in the order of the entry.
pub fn secret_names(connector: &Connector) -> Vec<&str> {
    let texts: Vec<&String> = match &connector.launch {
        Launch::Stdio(launch) => launch.args.iter().chain(launch.env.values()).collect(),
        Launch::Http(launch) => {
            let oauth = launch.oauth.iter();
            let oauth = oauth.flat_map(|oauth| oauth.client_secret.iter().chain(&oauth.private_key));
            std::iter::once(&launch.url)
                .chain(launch.headers.values())
                .chain(oauth)
                .collect()
        }
    };
    let mut names = Vec::new();
    for text in texts {
        for name in names_in(text) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Whether a token that was entered goes out with every request.
pub fn wants_token(launch: &Launch) -> bool {
    match launch {
        Launch::Http(launch) => launch.auth == Some(Auth::Token),
        Launch::Stdio(_) => false,
    }
}

/// Whether a text of an entry refers to a secret.
pub fn refers_to_secret(text: &str) -> bool {
    names_in(text).next().is_some()
}

/// The address without path and query: neither scheme nor host can hold a reference. `None` = it is none.
pub fn host_of(launch: &HttpLaunch) -> Option<Url> {
    Url::parse(super::expand::before_path(&launch.url)).ok()
}

fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let pieces = reference::pieces(text).unwrap_or_default();
    pieces.into_iter().filter_map(|piece| match piece {
        Piece::Secret { name } => Some(name),
        Piece::Text(_) | Piece::Env { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EntryKind, parse};

    fn connector(entry: &str) -> Connector {
        let config = parse(format!("{{\"servers\": {{\"a\": {entry}}}}}").as_bytes()).unwrap();
        match config.entries[0].kind.clone() {
            EntryKind::Valid(connector) => *connector,
            EntryKind::Invalid(notice) => panic!("{}", notice.message),
        }
    }

    #[test]
    fn every_secret_that_an_entry_names_is_found_once() {
        let program = connector(
            r#"{"command": "x", "args": ["--key=${secret:A}", "${env:E}"], "env": {"B": "${secret:B}${secret:A}"}}"#,
        );
        assert_eq!(secret_names(&program), ["A", "B"]);
        let server = connector(
            r#"{"url": "https://h.example:8443/p?k=${secret:U}", "headers": {"X": "Bearer ${secret:H}"},
                "oauth": {"clientId": "c", "clientSecret": "${secret:C}", "privateKey": "${secret:P}", "issuer": "https://i.example"}}"#,
        );
        assert_eq!(secret_names(&server), ["U", "H", "C", "P"]);
        let Launch::Http(launch) = &server.launch else { panic!() };
        assert!(refers_to_secret(&launch.url) && !refers_to_secret("https://h.example/${env:E}"));
        let origin = host_of(launch).unwrap().origin().ascii_serialization();
        assert_eq!(origin, "https://h.example:8443");
        assert!(secret_names(&connector(r#"{"url": "https://h.example"}"#)).is_empty());
    }
}
