//! Authorization servers, upstreams and strangers that mean harm.

use std::time::Duration;

use crate::room::{MINUTE, Room, asked, challenge, id, target, target_with};
use neuron_bridge::{
    config::Grant,
    oauth::{Ask, AuthFault, Callback, Challenge, SignInError, Signed, Wanted},
    snapshot::{SignInOutcome, SignInStage},
};
use neuron_tests::authority::Authority;

#[test]
fn no_unsafe_address_of_a_sign_in_page_is_handed_out() {
    let room = Room::new();
    for unsafe_url in [
        r"a:$(cmd.exe /c whoami > c:\temp\pwned.txt)",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ms-msdt:/id PCWDiagnostic",
        "http://h$(x)/",
        "https://user:secret@127.0.0.1/authorize",
        "http://auth.example.com/authorize",
        "https://169.254.169.254/authorize",
    ] {
        let authority = room.authority(&[("authorization-endpoint", unsafe_url)]);
        let error = room.begin(target("x", &authority), asked(&authority)).unwrap_err();
        assert_eq!(error, SignInError::UnsafeUrl, "{unsafe_url}");
        assert!(authority.requests_to("/register").is_empty(), "{unsafe_url}");
        assert!(matches!(room.stage("x"), Some(SignInStage::Failed { .. })));
    }
}

#[test]
fn addresses_inside_are_not_contacted_because_a_server_names_them() {
    let room = Room::new();
    let secret = room.second_authority(&[]);
    let inside = "https://169.254.169.254/token";
    for options in [
        &[("token-endpoint", inside)][..],
        &[("registration-endpoint", inside)],
        &[("challenge-metadata", "http://169.254.169.254/metadata")],
        &[("authority", "http://169.254.169.254")],
    ] {
        let authority = room.authority(options);
        let mut begun = room.begin(target("x", &authority), asked(&authority));
        // Not even where the person says yes.
        if let Err(SignInError::Confirm { issuer, .. }) = &begun {
            let tick = Ask {
                accept_issuer: Some(issuer.clone()),
                ..asked(&authority)
            };
            begun = room.begin(target("x", &authority), tick);
        }
        match begun {
            Ok(begun) => {
                let finished = room.come_back(&authority.follow(begun.auth_url.as_str()));
                assert_eq!(finished.outcome, SignInOutcome::Failed, "{options:?}");
            }
            Err(error) => assert!(matches!(error, SignInError::Refused(_)), "{options:?}: {error:?}"),
        }
    }
    // A server out there that names this computer.
    let mut outside = target("x", &secret);
    outside.url = "https://93.184.216.34/mcp".parse().unwrap();
    let ask = Ask {
        challenge: Some(Challenge(format!(
            "Bearer resource_metadata=\"{}/metadata\"",
            secret.base()
        ))),
        ..Ask::default()
    };
    drop(room.begin(outside, ask));
    assert!(secret.requests().is_empty());
}

#[test]
fn a_token_request_that_is_redirected_goes_nowhere() {
    let room = Room::new();
    let authority = room.authority(&[("token-fails", "redirect")]);
    let finished = room.sign_in(&authority, &target("x", &authority));
    assert_eq!(finished.outcome, SignInOutcome::Failed);
    assert_eq!(authority.requests_to("/token").len(), 1);
}

#[test]
fn metadata_about_another_server_is_refused() {
    let room = Room::new();
    for options in [
        &[("resource", "https://other.example/mcp")][..],
        &[("resource", "http://127.0.0.1:1/mcp")],
        &[("metadata-issuer", "https://other.example")],
        &[("metadata-issuer", "")],
    ] {
        let authority = room.authority(options);
        let result = room.begin(target("x", &authority), asked(&authority));
        // The last is the honest one.
        if options[0].1.is_empty() {
            assert!(result.is_ok(), "{result:?}");
        } else {
            assert!(
                matches!(result, Err(SignInError::Refused(_))),
                "{options:?}: {result:?}"
            );
        }
    }
    let slash = room.authority(&[("metadata-issuer", "http://127.0.0.1/")]);
    assert!(room.begin(target("x", &slash), asked(&slash)).is_err());
}

#[test]
fn codes_without_protection_are_refused_unless_the_person_allows_it() {
    let room = Room::new();
    for pkce in ["none", "plain"] {
        let authority = room.authority(&[("pkce", pkce)]);
        let error = room.begin(target("x", &authority), asked(&authority)).unwrap_err();
        assert_eq!(
            error,
            SignInError::NoPkce {
                issuer: authority.base()
            },
            "{pkce}"
        );
        assert!(authority.requests_to("/register").is_empty());
        let lenient = target_with("x", &authority, |oauth| oauth.settings.allow_missing_pkce = true);
        let finished = room.sign_in(&authority, &lenient);
        assert_eq!(
            finished.outcome,
            SignInOutcome::SignedIn,
            "{pkce}: {}",
            finished.message
        );
    }
}

#[test]
fn an_answer_from_elsewhere_is_neither_used_nor_shown() {
    for (iss, advertised, page, outcome) in [
        ("right", "true", "ok", SignInOutcome::SignedIn),
        ("right", "false", "ok", SignInOutcome::SignedIn),
        ("absent", "false", "ok", SignInOutcome::SignedIn),
        ("absent", "true", "ok", SignInOutcome::Failed),
        ("wrong", "true", "ok", SignInOutcome::Failed),
        ("wrong", "false", "ok", SignInOutcome::Failed),
        ("slash", "true", "ok", SignInOutcome::Failed),
        ("right", "true", "deny", SignInOutcome::Denied),
        ("wrong", "true", "deny", SignInOutcome::Failed),
        ("absent", "true", "deny", SignInOutcome::Failed),
    ] {
        let room = Room::new();
        let authority = room.authority(&[("iss", iss), ("iss-advertised", advertised), ("authorize", page)]);
        let finished = room.sign_in(&authority, &target("x", &authority));
        assert_eq!(finished.outcome, outcome, "{iss} {advertised} {page}");
        let is_exchanged = !authority.requests_to("/token").is_empty();
        assert_eq!(
            is_exchanged,
            outcome == SignInOutcome::SignedIn,
            "{iss} {advertised} {page}"
        );
        let shows_words = finished.message.contains("SENTINEL");
        assert_eq!(shows_words, outcome == SignInOutcome::Denied, "{}", finished.message);
    }
}

#[test]
fn guessed_replayed_and_late_answers_change_nothing() {
    let room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    let begun = room.begin(target.clone(), asked(&authority)).unwrap();
    let back = authority.follow(begun.auth_url.as_str());
    for guess in [
        "guess",
        "guess.x",
        "guess.y",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA.x",
    ] {
        let forged = format!("http://127.0.0.1:7771/mcp/oauth/callback?code=evil&state={guess}");
        let finished = room.come_back(&forged);
        assert_eq!((finished.outcome, finished.server), (SignInOutcome::InvalidState, None));
    }
    assert!(matches!(room.stage("x"), Some(SignInStage::Waiting { .. })));
    assert_eq!(room.come_back(&back).outcome, SignInOutcome::SignedIn);
    assert_eq!(room.come_back(&back).outcome, SignInOutcome::InvalidState);
    assert_eq!(authority.requests_to("/token").len(), 1);

    let begun = room.begin(target, asked(&authority)).unwrap();
    let back = authority.follow(begun.auth_url.as_str());
    room.pass(10 * MINUTE);
    let Some(SignInStage::Failed { outcome, .. }) = room.stage("x") else {
        panic!("too late")
    };
    assert_eq!(outcome, SignInOutcome::Expired);
    assert_eq!(room.sign_ins.first_ends_in(), Some(Duration::ZERO));
    assert_eq!(room.come_back(&back).outcome, SignInOutcome::Expired);
    assert_eq!(room.come_back(&back).outcome, SignInOutcome::InvalidState);
    assert_eq!(authority.requests_to("/token").len(), 1);
}

#[test]
fn an_answer_of_one_sign_in_with_the_code_of_another_is_worth_nothing() {
    let room = Room::new();
    let authority = room.authority(&[]);
    let [one, two] = ["x", "y"].map(|name| {
        let begun = room.begin(target(name, &authority), asked(&authority)).unwrap();
        authority.follow(begun.auth_url.as_str())
    });
    let value = |address: &str, name: &str| {
        let url = url::Url::parse(address).unwrap();
        crate::room::parameter(&url, name).unwrap()
    };
    let mixed = one.replace(&value(&one, "code"), &value(&two, "code"));
    assert_ne!(mixed, one);
    assert_eq!(room.come_back(&mixed).outcome, SignInOutcome::Failed);
    assert!(matches!(room.signed(&target("x", &authority)), Signed::Nothing));
}

#[test]
fn the_same_server_twice_goes_on_with_the_newer_one() {
    let room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    let [older, newer] = [(); 2].map(|()| {
        let begun = room.begin(target.clone(), asked(&authority)).unwrap();
        authority.follow(begun.auth_url.as_str())
    });
    assert_eq!(room.come_back(&older).outcome, SignInOutcome::InvalidState);
    assert_eq!(room.come_back(&newer).outcome, SignInOutcome::SignedIn);
}

#[test]
fn one_answer_that_comes_many_times_at_once_is_used_once() {
    let room = Room::new();
    let authority = room.authority(&[("token-delay", "50")]);
    let begun = room.begin(target("x", &authority), asked(&authority)).unwrap();
    let back = Callback::from_pasted(&authority.follow(begun.auth_url.as_str())).unwrap();
    let finished = room.runtime.block_on(async {
        let all = (0..8).map(|_| room.sign_ins.finish(back.clone(), |_| true));
        futures::future::join_all(all).await
    });
    let signed_in = finished
        .iter()
        .filter(|finished| finished.outcome == SignInOutcome::SignedIn);
    assert_eq!(signed_in.count(), 1);
    assert_eq!(authority.requests_to("/token").len(), 1);
}

#[test]
fn another_issuer_than_before_needs_the_persons_tick() {
    let room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    authority.set(&[("issuer-path", "/moved")]);
    let issuer = format!("{}/moved", authority.base());
    let error = room.begin(target.clone(), asked(&authority)).unwrap_err();
    let told = SignInError::Confirm {
        issuer: issuer.clone(),
        page: None,
        code_goes_to: None,
        changed: true,
    };
    assert_eq!(error, told);
    assert_eq!(
        room.stage("x"),
        Some(SignInStage::Confirm {
            issuer: issuer.clone(),
            changed: true,
            code_goes_to: None,
        })
    );
    assert_eq!(authority.count("registered"), 1);
    let tick = |issuer: String| Ask {
        accept_issuer: Some(issuer),
        ..asked(&authority)
    };
    assert!(room.begin(target.clone(), tick(format!("{issuer}/"))).is_err());
    let begun = room.begin(target.clone(), tick(issuer)).unwrap();
    let finished = room.come_back(&authority.follow(begun.auth_url.as_str()));
    assert_eq!(finished.outcome, SignInOutcome::SignedIn, "{}", finished.message);
    assert_eq!(authority.count("registered"), 2);
}

#[test]
fn a_page_of_another_domain_than_its_issuers_is_shown_and_needs_a_tick_of_its_own() {
    let room = Room::new();
    let authority = room.authority(&[("authorization-endpoint", "https://login.honest.example/authorize")]);
    let (target, issuer) = (target("x", &authority), authority.base());
    let tick = || Ask {
        accept_issuer: Some(issuer.clone()),
        ..asked(&authority)
    };
    let told = |page: &str, changed| SignInError::Confirm {
        issuer: issuer.clone(),
        page: Some(page.to_owned()),
        code_goes_to: None,
        changed,
    };
    // The issuer alone says nothing of a page that nobody was shown.
    let error = room.begin(target.clone(), tick()).unwrap_err();
    assert_eq!(error, told("login.honest.example", false));
    let sentence = error.sentence();
    assert!(
        sentence.contains("login.honest.example") && sentence.contains(&issuer),
        "{sentence}"
    );
    assert_eq!(
        room.view("x").unwrap().sign_in_at.as_deref(),
        Some("login.honest.example")
    );
    assert_eq!(authority.count("registered"), 0);
    // Nor does a tick for one page say anything of the next.
    authority.set(&[("authorization-endpoint", "https://other.example/authorize")]);
    let error = room.begin(target.clone(), tick()).unwrap_err();
    assert_eq!(error, told("other.example", false));
    let begun = room.begin(target.clone(), tick()).unwrap();
    assert_eq!(begun.auth_url.host_str(), Some("other.example"));
    assert_eq!(room.view("x").unwrap().sign_in_at.as_deref(), Some("other.example"));

    // Not even an issuer that one signed in at before may lead away from itself without one.
    authority.set(&[("authorization-endpoint", "")]);
    room.runtime.block_on(room.sign_ins.cancel(&id("x")));
    assert_eq!(room.sign_in(&authority, &target).outcome, SignInOutcome::SignedIn);
    authority.set(&[("authorization-endpoint", "https://other.example/authorize")]);
    let error = room.begin(target, tick()).unwrap_err();
    assert_eq!(error, told("other.example", false));
}

#[test]
fn a_code_goes_to_another_domain_than_its_issuers_only_after_a_tick_or_where_the_entry_names_the_issuer() {
    let room = Room::new();
    let authority = room.authority(&[("token-endpoint", "https://tokens.example/token")]);
    let issuer = authority.base();
    let error = room.begin(target("x", &authority), asked(&authority)).unwrap_err();
    let told = SignInError::Confirm {
        issuer: issuer.clone(),
        page: None,
        code_goes_to: Some("tokens.example".to_owned()),
        changed: false,
    };
    assert_eq!(error, told);
    assert!(error.sentence().contains("tokens.example"), "{}", error.sentence());
    let Some(SignInStage::Confirm { code_goes_to, .. }) = room.stage("x") else {
        panic!("a tick")
    };
    assert_eq!(code_goes_to.as_deref(), Some("tokens.example"));
    let ask = Ask {
        accept_issuer: Some(issuer.clone()),
        ..asked(&authority)
    };
    assert!(room.begin(target("x", &authority), ask).is_ok());
    let named = target_with("y", &authority, |oauth| oauth.settings.issuer = Some(issuer));
    assert!(room.begin(named, asked(&authority)).is_ok());
}

#[test]
fn a_clients_own_key_goes_to_no_other_domain_than_its_servers() {
    let room = Room::new();
    let authority = room.authority(&[("token-endpoint", "https://tokens.example/token")]);
    let own = target_with("x", &authority, |oauth| {
        oauth.settings.grant = Grant::ClientCredentials;
        oauth.settings.client_id = Some("mine".to_owned());
        oauth.client_secret = Some("s3cret".to_owned().into());
    });
    let fault = room.token(&room.bearer(&own)).unwrap_err();
    assert!(matches!(fault, AuthFault::Entry(_)), "{fault:?}");
}

#[test]
fn a_server_that_names_the_wrong_authority_gets_no_sign_in_there() {
    let room = Room::new();
    let honest: Authority = room.second_authority(&[]);
    // The honest server's own issuer, claimed by another: its metadata is taken from the honest one and nowhere else.
    let authority = room.authority(&[("metadata-issuer", &honest.base())]);
    let error = room.begin(target("x", &authority), asked(&authority)).unwrap_err();
    assert!(matches!(error, SignInError::Refused(_)), "{error:?}");
    assert!(honest.requests().is_empty());
}

#[test]
fn a_scheme_that_nobody_has_is_named() {
    let room = Room::new();
    let authority = room.authority(&[("challenge", "basic")]);
    assert_eq!(challenge(&authority).wanted(), Wanted::Unsupported("Basic".to_owned()));
    let error = room.begin(target("x", &authority), asked(&authority)).unwrap_err();
    assert_eq!(error, SignInError::Unsupported("Basic".to_owned()));
}

#[test]
fn strangers_answers_with_made_up_names_keep_no_sign_in_from_being_finished() {
    let mut room = Room::new();
    let authority = room.authority(&[]);
    let begun = room.begin(target("x", &authority), asked(&authority)).unwrap();
    let back = authority.follow(begun.auth_url.as_str());
    room.restart();
    for n in 0..300 {
        let stranger = Callback::from_query(&format!("code=a&state=b.made-up-{n}")).unwrap();
        let finished = room
            .runtime
            .block_on(room.sign_ins.finish(stranger, |id| id.as_str() == "x"));
        assert_eq!(finished.outcome, SignInOutcome::InvalidState);
    }
    assert_eq!(room.come_back(&back).outcome, SignInOutcome::SignedIn);
}
