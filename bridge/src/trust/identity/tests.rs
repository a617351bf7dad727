use std::{collections::BTreeSet, time::Duration};

use indexmap::IndexMap;

use super::*;
use crate::{
    config::{AutoApprove, Start, Timeouts},
    ids::ConnectorId,
};

fn map(pairs: &[(&str, &str)]) -> IndexMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn connector(launch: Launch) -> Connector {
    Connector {
        id: ConnectorId::parse("x").unwrap(),
        enabled: true,
        name: None,
        description: None,
        launch,
        auto_approve: AutoApprove::None,
        disabled_tools: Vec::new(),
        timeouts: Timeouts::default(),
        start: Start::OnDemand,
    }
}

fn stdio() -> StdioLaunch {
    StdioLaunch {
        command: "npx".into(),
        args: vec!["-y".into(), "~/tool".into(), "${env:A}".into()],
        env: map(&[("ONE", "1"), ("TWO", "${secret:T}")]),
        cwd: Some("~".into()),
        env_file: Some("~/.x.env".into()),
    }
}

fn http() -> HttpLaunch {
    HttpLaunch {
        url: "https://example.com/${env:A}".into(),
        headers: map(&[("X-One", "1"), ("X-Key", "${secret:K}")]),
        auth: Some(Auth::OAuth),
        oauth: Some(OAuth {
            client_id: Some("id".into()),
            client_secret: None,
            scopes: Some(vec!["read".into()]),
            issuer: None,
            redirect: Redirect::Auto,
            grant: Grant::AuthorizationCode,
            client_auth: ClientAuth::Secret,
            private_key: None,
            algorithm: None,
            client_metadata_url: None,
            allow_missing_pkce: false,
        }),
        sse: false,
    }
}

fn env(name: &str) -> Option<String> {
    (name == "A").then(|| "a-value".to_owned())
}

fn identity(connector: &Connector) -> LaunchIdentity {
    LaunchIdentity::of(
        connector,
        &LaunchContext {
            env: &env,
            home: Path::new("/home/p"),
            env_file: Some(b"K=V"),
        },
    )
}

fn of_stdio(change: impl FnOnce(&mut StdioLaunch)) -> LaunchIdentity {
    let mut launch = stdio();
    change(&mut launch);
    identity(&connector(Launch::Stdio(launch)))
}

fn of_http(change: impl FnOnce(&mut HttpLaunch)) -> LaunchIdentity {
    let mut launch = http();
    change(&mut launch);
    identity(&connector(Launch::Http(launch)))
}

fn of_oauth(change: impl FnOnce(&mut OAuth)) -> LaunchIdentity {
    of_http(|launch| change(launch.oauth.as_mut().unwrap()))
}

fn assert_all_differ(identities: Vec<LaunchIdentity>) {
    let count = identities.len();
    assert_eq!(identities.into_iter().collect::<BTreeSet<_>>().len(), count);
}

#[test]
fn whatever_decides_what_is_run_changes_the_identity() {
    assert_all_differ(vec![
        of_stdio(|_| {}),
        of_stdio(|l| l.command = "./npx".into()),
        of_stdio(|l| l.command = "npx -y".into()),
        of_stdio(|l| l.args.clear()),
        of_stdio(|l| l.args.swap(0, 1)),
        of_stdio(|l| l.args = vec!["-y~/tool".into(), "${env:A}".into()]),
        of_stdio(|l| l.args[2] = "${env:B}".into()),
        of_stdio(|l| l.args[2] = "${secret:A}".into()),
        of_stdio(|l| l.env = map(&[("ONE", "1")])),
        of_stdio(|l| l.env = map(&[("ONE", "1"), ("TWO", "${secret:U}")])),
        of_stdio(|l| l.env = map(&[("ONE", "${env:A}"), ("TWO", "${secret:T}")])),
        of_stdio(|l| l.env = map(&[("ONE", "a-value"), ("TWO", "${secret:T}")])),
        of_stdio(|l| l.env = map(&[("TWO", "1"), ("ONE", "${secret:T}")])),
        of_stdio(|l| l.cwd = None),
        of_stdio(|l| l.cwd = Some("~/x".into())),
        of_stdio(|l| l.env_file = None),
        of_stdio(|l| l.env_file = Some("~/.y.env".into())),
    ]);
}

#[test]
fn whatever_decides_what_is_contacted_changes_the_identity() {
    assert_all_differ(vec![
        of_http(|_| {}),
        of_http(|l| l.sse = true),
        of_http(|l| l.url = "https://example.org/${env:A}".into()),
        of_http(|l| l.url = "https://example.com/${env:B}".into()),
        of_http(|l| l.headers = map(&[("X-One", "1")])),
        of_http(|l| l.headers = map(&[("X-One", "2"), ("X-Key", "${secret:K}")])),
        of_http(|l| l.headers = map(&[("X-One", "1"), ("X-Key", "${secret:L}")])),
        of_http(|l| l.auth = None),
        of_http(|l| l.auth = Some(Auth::Token)),
        of_http(|l| l.oauth = None),
        of_oauth(|o| o.client_id = None),
        of_oauth(|o| o.client_id = Some(String::new())),
        of_oauth(|o| o.client_secret = Some("${secret:S}".into())),
        of_oauth(|o| o.scopes = None),
        of_oauth(|o| o.scopes = Some(Vec::new())),
        of_oauth(|o| o.scopes = Some(vec!["read".into(), "write".into()])),
        of_oauth(|o| o.issuer = Some("https://i.example".into())),
        of_oauth(|o| o.redirect = Redirect::Loopback),
        of_oauth(|o| o.redirect = Redirect::DeepLink),
        of_oauth(|o| o.grant = Grant::ClientCredentials),
        of_oauth(|o| o.client_auth = ClientAuth::PrivateKeyJwt),
        of_oauth(|o| o.private_key = Some("${secret:S}".into())),
        of_oauth(|o| o.algorithm = Some("ES256".into())),
        of_oauth(|o| o.client_metadata_url = Some("https://m.example/".parse().unwrap())),
        of_oauth(|o| o.allow_missing_pkce = true),
    ]);
}

#[test]
fn looks_and_limits_are_no_part_of_it() {
    let plain = connector(Launch::Stdio(stdio()));
    let other = Connector {
        id: ConnectorId::parse("y").unwrap(),
        enabled: false,
        name: Some("Name".into()),
        description: Some("Words".into()),
        launch: Launch::Stdio(stdio()),
        auto_approve: AutoApprove::All,
        disabled_tools: vec!["*".into()],
        timeouts: Timeouts {
            connect: Some(Duration::from_secs(1)),
            call: None,
        },
        start: Start::AtLaunch,
    };
    assert_eq!(identity(&plain), identity(&other));
}

#[test]
fn the_order_of_variables_and_headers_does_not_matter() {
    assert_eq!(of_stdio(|l| l.env.reverse()), of_stdio(|_| {}));
    assert_eq!(of_http(|l| l.headers.reverse()), of_http(|_| {}));
    assert_eq!(
        of_http(|l| l.headers = map(&[("x-one", "1"), ("x-key", "${secret:K}")])),
        of_http(|_| {})
    );
}

#[test]
fn a_variable_counts_by_value_in_arguments_headers_and_urls_and_by_name_in_env() {
    let with = |connector: &Connector, value: Option<&str>| {
        let env = |_: &str| value.map(str::to_owned);
        LaunchIdentity::of(
            connector,
            &LaunchContext {
                env: &env,
                home: Path::new("/home/p"),
                env_file: None,
            },
        )
    };
    let by_value = [
        connector(Launch::Stdio(StdioLaunch {
            args: vec!["${env:A}".into()],
            ..stdio()
        })),
        connector(Launch::Http(http())),
        connector(Launch::Http(HttpLaunch {
            url: "https://example.com".into(),
            headers: map(&[("X", "${env:A:-d}")]),
            ..http()
        })),
    ];
    for connector in by_value {
        assert_all_differ(vec![
            with(&connector, Some("1")),
            with(&connector, Some("2")),
            with(&connector, None),
        ]);
    }
    let by_name = connector(Launch::Stdio(StdioLaunch {
        args: Vec::new(),
        env: map(&[("X", "${env:A}")]),
        ..stdio()
    }));
    assert_eq!(with(&by_name, Some("1")), with(&by_name, None));
}

#[test]
fn what_expands_to_the_same_is_the_same() {
    assert_eq!(of_stdio(|l| l.args[1] = "/home/p/tool".into()), of_stdio(|_| {}));
    assert_eq!(of_stdio(|l| l.args[2] = "a-value".into()), of_stdio(|_| {}));
    assert_eq!(of_stdio(|l| l.args[2] = "${env:B:-a-value}".into()), of_stdio(|_| {}));
    assert_ne!(of_stdio(|l| l.args[1] = "~other/tool".into()), of_stdio(|_| {}));
}

#[test]
fn a_variable_whose_value_looks_like_a_secret_is_no_secret() {
    let with = |arg: &str| {
        let env = |_: &str| Some("${secret:S}".to_owned());
        let launch = StdioLaunch {
            args: vec![arg.into()],
            ..stdio()
        };
        LaunchIdentity::of(
            &connector(Launch::Stdio(launch)),
            &LaunchContext {
                env: &env,
                home: Path::new("/"),
                env_file: None,
            },
        )
    };
    assert_ne!(with("${env:X}"), with("${secret:S}"));
}

#[test]
fn the_default_of_a_variable_that_is_set_to_nothing_counts_as_it_would_be_started() {
    let with = |arg: &str, value: &'static str| {
        let launch = StdioLaunch {
            args: vec![arg.to_owned()],
            ..stdio()
        };
        LaunchIdentity::of(
            &connector(Launch::Stdio(launch)),
            &LaunchContext {
                env: &|_| Some(value.to_owned()),
                home: Path::new("/home/p"),
                env_file: None,
            },
        )
    };
    assert_ne!(with("${env:E:-a}", ""), with("${env:E:-b}", ""));
    assert_eq!(with("${env:E:-a}", "x"), with("${env:E:-b}", "x"));
}

#[test]
fn an_identity_is_read_as_it_was_written_and_nothing_else_is_one() {
    let identity = of_stdio(|_| {});
    let text = serde_json::to_string(&identity).unwrap();
    assert_eq!(serde_json::from_str::<LaunchIdentity>(&text).unwrap(), identity);
    let digits = identity.to_string();
    for other in [
        "",
        "0",
        &digits[1..],
        &format!("{digits}0"),
        &format!("é{}", &digits[2..]),
        &format!("+{}", &digits[1..]),
    ] {
        assert!(other.parse::<LaunchIdentity>().is_err(), "{other}");
    }
}

#[test]
fn the_env_file_counts_by_content_where_there_is_one() {
    let with = |launch: StdioLaunch, env_file: Option<&[u8]>| {
        LaunchIdentity::of(
            &connector(Launch::Stdio(launch)),
            &LaunchContext {
                env: &env,
                home: Path::new("/home/p"),
                env_file,
            },
        )
    };
    assert_all_differ(vec![
        with(stdio(), Some(b"A=1")),
        with(stdio(), Some(b"A=2")),
        with(stdio(), Some(b"")),
        with(stdio(), None),
    ]);
    let without = StdioLaunch {
        env_file: None,
        ..stdio()
    };
    assert_eq!(with(without.clone(), Some(b"A=1")), with(without, None));
}

/// Stored approvals and snapshots depend on it: another value needs another formula number.
#[test]
fn the_formula_is_what_it_was() {
    assert_eq!(
        of_stdio(|_| {}).to_string(),
        "676ef2874d5981b3b2c6cb2622814b5df3c26aabea1675b6e1c8415da008a55c"
    );
    assert_eq!(
        of_http(|_| {}).to_string(),
        "3e7f3036ed81a32e2b20c903e572935d5483459e52368d6a7ccffc1235ae3a3d"
    );
}
