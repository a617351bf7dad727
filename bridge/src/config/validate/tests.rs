use std::time::Duration;

use super::*;
use crate::config::{Auth, ClientAuth, Grant, HttpLaunch, Launch, OAuth, Redirect, StdioLaunch, parse};

fn entry(text: &str) -> (EntryKind, Vec<Notice>) {
    let config = parse(format!("{{\"servers\": {{\n\"a\": {text}}}}}").as_bytes()).unwrap();
    (config.entries[0].kind.clone(), config.notices)
}

fn valid(text: &str) -> (Connector, Vec<Notice>) {
    match entry(text) {
        (EntryKind::Valid(connector), notices) => (*connector, notices),
        (EntryKind::Invalid(notice), _) => panic!("{text}: {}", notice.message),
    }
}

fn invalid(text: &str) -> Notice {
    match entry(text) {
        (EntryKind::Invalid(notice), notices) => {
            assert!(notices.contains(&notice));
            notice
        }
        (EntryKind::Valid(_), _) => panic!("{text} was accepted"),
    }
}

fn body(text: &str) -> Result<Connector, String> {
    validate_body(&ConnectorId::parse("a").unwrap(), &serde_json::from_str(text).unwrap())
}

fn stdio(connector: Connector) -> StdioLaunch {
    match connector.launch {
        Launch::Stdio(launch) => launch,
        Launch::Http(_) => panic!("http"),
    }
}

fn http(connector: Connector) -> HttpLaunch {
    match connector.launch {
        Launch::Http(launch) => launch,
        Launch::Stdio(_) => panic!("stdio"),
    }
}

#[test]
fn every_member_of_a_stdio_entry_is_read() {
    let (connector, notices) = valid(
        r#"{
        "transport": "stdio", "enabled": false, "name": "Files", "description": "d",
        "command": "neuron-connectd", "args": ["files", "~/x"],
        "env": {"A": "literal", "B": "${env:HOME_B}", "C": "${secret:C}"}, "cwd": "~", "envFile": "~/.x.env",
        "autoApprove": ["get_*"], "disabledTools": ["delete_*"],
        "timeouts": {"connectMs": 30000, "callMs": 600000}, "start": "at-launch"}"#,
    );
    assert_eq!(notices, []);
    assert!(!connector.enabled);
    assert_eq!(connector.name.as_deref(), Some("Files"));
    assert_eq!(connector.auto_approve, AutoApprove::Patterns(vec!["get_*".into()]));
    assert_eq!(connector.disabled_tools, ["delete_*"]);
    assert_eq!(connector.timeouts.connect, Some(Duration::from_secs(30)));
    assert_eq!(connector.timeouts.call, Some(Duration::from_secs(600)));
    assert_eq!(connector.start, Start::AtLaunch);
    let launch = stdio(connector);
    assert_eq!(
        (launch.command.as_str(), &launch.args[..]),
        ("neuron-connectd", &["files".to_owned(), "~/x".to_owned()][..])
    );
    assert_eq!(launch.env.keys().collect::<Vec<_>>(), ["A", "B", "C"]);
    assert_eq!(
        (launch.cwd.as_deref(), launch.env_file.as_deref()),
        (Some("~"), Some("~/.x.env"))
    );
}

#[test]
fn every_member_of_an_http_entry_is_read() {
    let (connector, notices) = valid(
        r#"{
        "transport": "http", "url": "https://api.example.com/mcp", "headers": {"X-Team": "a", "X-Key": "${secret:X_KEY}"},
        "auth": "oauth",
        "oauth": {
            "clientId": "c", "clientSecret": "${secret:S}", "scopes": ["read"], "issuer": "https://as.example",
            "redirect": "deep-link", "grant": "client_credentials", "clientAuth": "private_key_jwt",
            "privateKey": "${secret:KEY}", "algorithm": "ES256", "clientMetadataUrl": "https://x.example/c",
            "allowMissingPkce": true}}"#,
    );
    assert_eq!(notices, []);
    assert!(connector.enabled);
    let launch = http(connector);
    assert_eq!(launch.headers["X-Key"], "${secret:X_KEY}");
    assert_eq!(launch.auth, Some(Auth::OAuth));
    assert_eq!(
        launch.oauth,
        Some(OAuth {
            client_id: Some("c".into()),
            client_secret: Some("${secret:S}".into()),
            scopes: Some(vec!["read".into()]),
            issuer: Some("https://as.example".into()),
            redirect: Redirect::DeepLink,
            grant: Grant::ClientCredentials,
            client_auth: ClientAuth::PrivateKeyJwt,
            private_key: Some("${secret:KEY}".into()),
            algorithm: Some("ES256".into()),
            client_metadata_url: Some("https://x.example/c".parse().unwrap()),
            allow_missing_pkce: true,
        })
    );
}

#[test]
fn the_transport_follows_from_command_or_url() {
    assert!(matches!(valid(r#"{"command": "x"}"#).0.launch, Launch::Stdio(_)));
    assert!(!http(valid(r#"{"url": "http://localhost:1/mcp"}"#).0).sse);
}

#[test]
fn sse_works_and_is_called_deprecated() {
    let (connector, notices) = valid(r#"{"transport": "sse", "url": "http://localhost:1/sse"}"#);
    assert!(http(connector).sse);
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].level, NoticeLevel::Info);
    assert!(notices[0].message.contains("deprecated"));
}

#[test]
fn every_wrong_member_is_refused_with_its_place_and_a_mend() {
    for (text, column, words) in [
        (r#"{}"#, 6, "neither \"command\""),
        (r#"7"#, 6, "must be an object"),
        (r#"{"command": "x", "url": "https://x.example"}"#, 23, "not both"),
        (
            r#"{"transport": "ws", "url": "https://x.example"}"#,
            20,
            "\"stdio\" or \"http\" or \"sse\", not \"ws\"",
        ),
        (r#"{"transport": 1, "command": "x"}"#, 20, "not a number"),
        (r#"{"transport": "stdio", "url": "https://x.example"}"#, 29, "command"),
        (r#"{"transport": "http", "command": "x"}"#, 28, "url"),
        (r#"{"transport": "stdio"}"#, 6, "needs a \"command\""),
        (r#"{"transport": "sse"}"#, 6, "needs a \"url\""),
        (r#"{"command": 1}"#, 18, "a text in double quotes"),
        (r#"{"command": "  "}"#, 18, "empty"),
        (r#"{"command": "${env:X}/y"}"#, 18, "written"),
        (r#"{"command": "${secret:X}"}"#, 18, "written"),
        (r#"{"command": "x \"y"}"#, 18, "never closed"),
        (r#"{"command": "x\u0000"}"#, 18, "zero character"),
        (r#"{"command": "neuron-connectd"}"#, 18, "files"),
        (r#"{"command": "neuron-connectd", "args": ["serve"]}"#, 18, "files"),
        (r#"{"command": "neuron-connectd mcp"}"#, 18, "files"),
        (r#"{"command": "x", "args": "y"}"#, 31, "list of texts"),
        (r#"{"command": "x", "args": ["y", 8080]}"#, 37, "\"8080\""),
        (r#"{"command": "x", "args": ["${env:X"]}"#, 32, "never closed"),
        (r#"{"command": "x", "env": []}"#, 30, "object"),
        (r#"{"command": "x", "env": {"A": true}}"#, 36, "text in double quotes"),
        (r#"{"command": "x", "env": {"A=B": "c"}}"#, 30, "variable"),
        (r#"{"command": "x", "env": {"A": "${secret:}"}}"#, 36, "no usable name"),
        (r#"{"command": "x", "cwd": "${env:X}"}"#, 30, "cwd"),
        (r#"{"command": "x", "envFile": 1}"#, 34, "text"),
        (r#"{"command": "x", "enabled": "yes"}"#, 34, "true or false"),
        (r#"{"command": "x", "name": null}"#, 31, "not null"),
        (r#"{"command": "x", "autoApprove": "all"}"#, 38, "list of tool names"),
        (r#"{"command": "x", "autoApprove": [1]}"#, 39, "\"1\""),
        (r#"{"command": "x", "disabledTools": true}"#, 40, "list"),
        (r#"{"command": "x", "disabledTools": [" "]}"#, 40, "empty"),
        (r#"{"command": "x", "timeouts": 5}"#, 35, "object"),
        (
            r#"{"command": "x", "timeouts": {"callMs": 0}}"#,
            46,
            "from 1 to 3600000",
        ),
        (r#"{"command": "x", "timeouts": {"callMs": -1}}"#, 46, "from 1"),
        (r#"{"command": "x", "timeouts": {"callMs": 1.5}}"#, 46, "whole"),
        (r#"{"command": "x", "timeouts": {"callMs": 3600001}}"#, 46, "3600000"),
        (r#"{"command": "x", "timeouts": {"connectMs": 600001}}"#, 49, "600000"),
        (r#"{"command": "x", "timeouts": {"connectMs": 1e99}}"#, 49, "whole"),
        (r#"{"command": "x", "timeouts": {"connectMs": "5"}}"#, 49, "not a text"),
        (
            r#"{"command": "x", "start": "lazy"}"#,
            32,
            "\"on-demand\" or \"at-launch\"",
        ),
        (r#"{"url": "ftp://x.example"}"#, 14, "https://"),
        (r#"{"url": "https://${secret:X}.example/"}"#, 14, "in plain"),
        (
            r#"{"url": "https://x.example", "headers": {"A b": "c"}}"#,
            47,
            "header's name",
        ),
        (
            r#"{"url": "https://x.example", "headers": {"A": "b\r\nc"}}"#,
            52,
            "line break",
        ),
        (
            r#"{"url": "https://x.example", "headers": {"A": "b", "a": "b"}}"#,
            57,
            "twice",
        ),
        (
            r#"{"url": "https://x.example", "headers": {"Host": "b"}}"#,
            47,
            "connection itself",
        ),
        (
            r#"{"url": "https://x.example", "auth": "basic"}"#,
            43,
            "\"none\" or \"token\" or \"oauth\"",
        ),
        (r#"{"url": "https://x.example", "oauth": false}"#, 44, "object"),
        (
            r#"{"url": "https://x.example", "oauth": {"issuer": "http://as.example"}}"#,
            55,
            "https://",
        ),
        (
            r#"{"url": "https://x.example", "oauth": {"scopes": ["a b"]}}"#,
            55,
            "scope",
        ),
        (
            r#"{"url": "https://x.example", "oauth": {"grant": "password"}}"#,
            54,
            "authorization_code",
        ),
        (
            r#"{"url": "https://x.example", "oauth": {"grant": "client_credentials"}}"#,
            44,
            "oauth.clientId",
        ),
        (
            r#"{"url": "https://x.example", "oauth": {"clientAuth": "private_key_jwt", "clientId": "c"}}"#,
            44,
            "oauth.privateKey",
        ),
        (
            r#"{"url": "https://x.example", "oauth": {"algorithm": "none"}}"#,
            58,
            "ES256",
        ),
        (
            r#"{"url": "https://x.example", "oauth": {"redirect": "x"}}"#,
            57,
            "deep-link",
        ),
        (
            r#"{"url": "https://x.example", "oauth": {"allowMissingPkce": 1}}"#,
            65,
            "true or false",
        ),
        (
            r#"{"url": "https://x.example", "oauth": {"clientMetadataUrl": "x"}}"#,
            66,
            "https://",
        ),
        (r#"{"command": "x", "command": "y"}"#, 23, "line 2, column 7"),
        (r#"{"command": "x", "z": [{"b": 1, "b": 2}]}"#, 38, "line 2, column 30"),
    ] {
        let notice = invalid(text);
        assert!(notice.message.contains(words), "{text}: {}", notice.message);
        assert_eq!(
            (notice.line, notice.column),
            (Some(2), Some(column)),
            "{text}: {}",
            notice.message
        );
        assert_eq!(notice.server.as_deref(), Some("a"));
    }
}

#[test]
fn a_description_of_2048_characters_is_the_longest() {
    let with = |length: usize| format!(r#"{{"command": "x", "description": "{}"}}"#, "é".repeat(length));
    assert_eq!(valid(&with(2048)).0.description.unwrap().chars().count(), 2048);
    assert!(invalid(&with(2049)).message.contains("2049 characters"));
}

#[test]
fn a_command_line_is_split_as_a_shell_would_and_said_so() {
    let (connector, notices) = valid(r#"{"command": "npx -y '@a/b c' \"${env:X} y\""}"#);
    let launch = stdio(connector);
    assert_eq!(launch.command, "npx");
    assert_eq!(launch.args, ["-y", "@a/b c", "${env:X} y"].map(str::to_owned));
    assert_eq!(notices.len(), 1);
    assert!(notices[0].level == NoticeLevel::Warning && notices[0].message.contains("split"));
}

#[test]
fn a_path_with_spaces_is_left_alone_where_it_is_one() {
    for (text, command) in [
        (r#"{"command": "C:\\Program Files\\x.exe"}"#, "C:\\Program Files\\x.exe"),
        (
            r#"{"command": "/Applications/My App/x", "args": []}"#,
            "/Applications/My App/x",
        ),
    ] {
        let (connector, notices) = valid(text);
        assert_eq!(stdio(connector).command, command);
        assert_eq!(notices, []);
    }
}

#[test]
fn an_unknown_member_is_kept_with_a_warning_in_the_file_and_refused_in_a_body() {
    for (text, name, hint) in [
        (r#"{"command": "x", "foo": {"a": 1}}"#, "foo", None),
        (r#"{"command": "x", "type": "stdio"}"#, "type", Some("transport")),
        (
            r#"{"command": "x", "auto_approve": []}"#,
            "auto_approve",
            Some("autoApprove"),
        ),
        (
            r#"{"command": "x", "timeouts": {"callms": 1}}"#,
            "timeouts.callms",
            Some("callMs"),
        ),
        (
            r#"{"url": "https://x.example", "oauth": {"client_id": "x"}}"#,
            "oauth.client_id",
            Some("clientId"),
        ),
    ] {
        let (_, notices) = valid(text);
        assert_eq!(notices.len(), 1, "{text}");
        assert!(
            notices[0].level == NoticeLevel::Warning && notices[0].line == Some(2),
            "{text}"
        );
        let said = body(text).unwrap_err();
        for message in [&notices[0].message, &said] {
            assert!(message.contains(&format!("\"{name}\"")), "{message}");
            assert!(
                hint.is_none_or(|hint| message.contains(&format!("did you mean \"{hint}\""))),
                "{message}"
            );
        }
        assert!(!said.contains("line"), "{said}");
    }
}

#[test]
fn a_body_follows_the_rules_of_the_file() {
    assert_eq!(body(r#"{"command": "x"}"#).unwrap(), valid(r#"{"command": "x"}"#).0);
    assert!(body(r#"{"command": ""}"#).unwrap_err().contains("empty"));
    assert!(body(r#"{"url": "x"}"#).unwrap_err().contains("whole address"));
}

#[test]
fn members_of_the_other_transport_and_needless_headers_are_only_remarked_on() {
    let (_, notices) = valid(r#"{"command": "x", "headers": {"A": "b"}, "auth": "token"}"#);
    assert_eq!(notices.len(), 2);
    let (connector, notices) =
        valid(r#"{"url": "https://x.example", "args": [], "headers": {"Accept": "a", "Content-Type": "b", "X": "c"}}"#);
    assert_eq!(notices.len(), 3);
    assert_eq!(http(connector).headers.keys().collect::<Vec<_>>(), ["X"]);
}

#[test]
fn a_reference_of_another_program_and_a_plain_secret_are_pointed_out() {
    let (_, notices) = valid(r#"{"command": "x", "env": {"A": "${TOKEN}"}}"#);
    assert!(
        notices[0].level == NoticeLevel::Info && notices[0].message.contains("${env:TOKEN}"),
        "{notices:?}"
    );
    let (_, notices) = valid(r#"{"url": "https://x.example", "oauth": {"clientSecret": "SENTINEL"}}"#);
    assert!(
        notices[0].level == NoticeLevel::Warning && !notices[0].message.contains("SENTINEL"),
        "{notices:?}"
    );
}

#[test]
fn no_remark_repeats_a_value_of_env_or_headers() {
    for text in [
        r#"{"command": "x", "env": {"A": "SENTINEL ${env:"}}"#,
        r#"{"url": "https://x.example", "headers": {"A": "SENTINEL\n"}}"#,
    ] {
        assert!(!invalid(text).message.contains("SENTINEL"), "{text}");
    }
}
