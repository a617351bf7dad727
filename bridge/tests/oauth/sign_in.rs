//! Signing in at servers that behave, and at those that behave as older ones do.

use crate::room::{LOOPBACK, MINUTE, Room, asked, call, challenge_of, id, parameter, target, target_with};
use neuron_bridge::{
    oauth::{Ask, AuthFault, Callback, SignInError, Signed, WhySignIn},
    snapshot::{RedirectKind, SignInOutcome, SignInStage},
};
use neuron_tests::wait::{SOON, eventually};
use secrecy::ExposeSecret;

const DEEP_LINK: &str = "neuron-connect://oauth/callback";

#[test]
fn a_sign_in_gives_a_token_that_the_server_takes() {
    let room = Room::new();
    let authority = room.authority(&[("scopes", "read"), ("authority-scopes", "read offline_access")]);
    let target = target("x", &authority);
    assert!(matches!(room.signed(&target), Signed::Nothing));

    let begun = room.begin(target.clone(), asked(&authority)).unwrap();
    assert_eq!(parameter(&begun.auth_url, "resource"), Some(authority.url()));
    assert_eq!(
        parameter(&begun.auth_url, "code_challenge_method").as_deref(),
        Some("S256")
    );
    assert_eq!(
        parameter(&begun.auth_url, "scope").as_deref(),
        Some("read offline_access")
    );
    assert_eq!(parameter(&begun.auth_url, "redirect_uri").as_deref(), Some(LOOPBACK));
    let view = room.view("x").unwrap();
    assert_eq!(view.access_goes_to, format!("127.0.0.1:{}", authority.port));
    let SignInStage::Waiting {
        url,
        redirect,
        other_way,
        ..
    } = view.stage
    else {
        panic!("{:?}", view.stage)
    };
    assert_eq!(
        (url.as_str(), redirect, other_way),
        (begun.auth_url.as_str(), RedirectKind::Loopback, None)
    );

    let finished = room.come_back(&authority.follow(begun.auth_url.as_str()));
    assert_eq!(
        (finished.outcome, finished.server),
        (SignInOutcome::SignedIn, Some(id("x")))
    );
    assert_eq!(room.stage("x"), None);
    let bearer = room.bearer(&target);
    let token = room.token(&bearer).unwrap();
    assert_eq!(call(&authority, Some(&token), "echo").status, 200);
    assert_eq!(bearer.scopes(), ["read", "offline_access"]);
    let registration = &authority.requests_to("/register")[0]["body"];
    assert_eq!(registration["application_type"], "native");
    assert_eq!(authority.requests_to("/token")[0]["body"]["resource"], authority.url());
}

#[test]
fn metadata_is_found_wherever_servers_have_it() {
    let room = Room::new();
    for options in [
        &[("prm", "root")][..],
        &[("challenge", "relative")],
        &[("challenge", "bare")],
        &[("challenge", "absent")],
        &[("challenge", "odd")],
        &[("issuer-path", "/tenant")],
        &[("issuer-path", "/tenant"), ("metadata", "appended")],
        &[("issuer-path", "/tenant"), ("metadata", "root")],
        &[("issuer-path", "/tenant"), ("metadata", "oidc")],
        &[("issuer-path", "/tenant"), ("metadata", "oidc-appended")],
        &[("metadata", "oidc")],
        &[("prm", "none")],
        &[("prm", "none"), ("metadata", "oidc")],
    ] {
        let authority = room.authority(options);
        let finished = room.sign_in(&authority, &target("x", &authority));
        assert_eq!(
            finished.outcome,
            SignInOutcome::SignedIn,
            "{options:?}: {}",
            finished.message
        );
        room.runtime.block_on(room.sign_ins.forget(&id("x"))).unwrap();
    }
}

#[test]
fn a_server_of_the_first_specification_is_its_own_authority_at_the_usual_places() {
    let room = Room::new();
    let authority = room.authority(&[("prm", "none"), ("metadata", "none"), ("iss", "absent")]);
    let strict = room.begin(target("x", &authority), asked(&authority)).unwrap_err();
    assert!(matches!(strict, SignInError::NoPkce { .. }), "{strict:?}");
    let lenient = target_with("x", &authority, |oauth| oauth.settings.allow_missing_pkce = true);
    assert_eq!(room.sign_in(&authority, &lenient).outcome, SignInOutcome::SignedIn);
}

#[test]
fn a_server_with_a_problem_of_its_own_is_no_server_without_a_sign_in() {
    let room = Room::new();
    for options in [
        &[("prm", "broken"), ("challenge", "bare")][..],
        &[("metadata", "broken")],
    ] {
        let authority = room.authority(options);
        let error = room.begin(target("x", &authority), asked(&authority)).unwrap_err();
        assert!(matches!(error, SignInError::Unavailable(_)), "{options:?}: {error:?}");
        assert!(authority.requests_to("/register").is_empty());
    }
}

#[test]
fn a_sign_in_that_comes_to_nothing_says_what_to_do() {
    let room = Room::new();
    for (options, told) in [
        (
            ("token-fails", "html"),
            "sent an answer that makes no sense. Try again later.",
        ),
        (
            ("token-fails", "invalid_grant"),
            "already used or is too old. Try again.",
        ),
        (
            ("iss", "wrong"),
            "Try again; if it happens again, tell the makers of the server.",
        ),
    ] {
        let authority = room.authority(&[options]);
        let finished = room.sign_in(&authority, &target("x", &authority));
        assert_eq!(finished.outcome, SignInOutcome::Failed);
        assert!(finished.message.ends_with(told), "{options:?}: {}", finished.message);
    }
    let authority = room.authority(&[("registration", "html")]);
    let error = room.begin(target("x", &authority), asked(&authority)).unwrap_err();
    let told = error.sentence();
    assert!(
        told.ends_with("could not add this app by itself. Try again later."),
        "{told}"
    );
}

#[test]
fn a_link_is_the_way_back_where_the_server_takes_it() {
    let room = Room::new();
    room.sign_ins.set_deep_links(true);
    for (registration, way) in [
        ("open", DEEP_LINK),
        ("refuses-scheme", LOOPBACK),
        ("drops-scheme", LOOPBACK),
    ] {
        let authority = room.authority(&[("registration", registration)]);
        let target = target("x", &authority);
        let begun = room.begin(target, asked(&authority)).unwrap();
        assert_eq!(
            parameter(&begun.auth_url, "redirect_uri").as_deref(),
            Some(way),
            "{registration}"
        );
        let finished = room.come_back(&authority.follow(begun.auth_url.as_str()));
        assert_eq!(
            finished.outcome,
            SignInOutcome::SignedIn,
            "{registration}: {}",
            finished.message
        );
        room.runtime.block_on(room.sign_ins.forget(&id("x"))).unwrap();
    }
}

#[test]
fn the_other_way_is_taken_at_a_click_and_remembered() {
    let mut room = Room::new();
    room.sign_ins.set_deep_links(true);
    let authority = room.authority(&[("authorize", "refuses-scheme")]);
    let target = target("x", &authority);
    let begun = room.begin(target.clone(), asked(&authority)).unwrap();
    assert_eq!(authority.open(begun.auth_url.as_str()).status, 400);
    let Some(SignInStage::Waiting { other_way, .. }) = room.stage("x") else {
        panic!("it waits")
    };
    assert_eq!(other_way, Some(RedirectKind::Loopback));
    let ask = Ask {
        redirect: other_way,
        ..asked(&authority)
    };
    let begun = room.begin(target.clone(), ask).unwrap();
    let finished = room.come_back(&authority.follow(begun.auth_url.as_str()));
    assert_eq!(finished.outcome, SignInOutcome::SignedIn, "{}", finished.message);
    let next = |room: &Room| {
        let begun = room.begin(target.clone(), asked(&authority)).unwrap();
        parameter(&begun.auth_url, "redirect_uri").unwrap()
    };
    assert_eq!(next(&room), LOOPBACK);
    room.restart();
    room.sign_ins.set_deep_links(true);
    assert_eq!(next(&room), LOOPBACK);
}

#[test]
fn the_other_way_is_remembered_for_a_client_that_is_registered_elsewhere_too() {
    let room = Room::new();
    room.sign_ins.set_deep_links(true);
    let authority = room.authority(&[("client-id", "mine"), ("metadata-documents", "true")]);
    let issuer = authority.base();
    let of_entry = target_with("x", &authority, |oauth| {
        oauth.settings.client_id = Some("mine".to_owned());
        oauth.settings.issuer = Some(issuer.clone());
    });
    let begin = |redirect| {
        let ask = Ask {
            redirect,
            ..asked(&authority)
        };
        let begun = room.begin(of_entry.clone(), ask).unwrap();
        parameter(&begun.auth_url, "redirect_uri").unwrap()
    };
    assert_eq!(begin(None), LOOPBACK);
    assert_eq!(begin(Some(RedirectKind::DeepLink)), DEEP_LINK);
    assert_eq!(begin(None), DEEP_LINK);
    // It is the issuer's, whoever else signs in there.
    let of_document = target_with("y", &authority, |oauth| {
        oauth.settings.client_metadata_url = Some("https://neuron.example/client.json".parse().unwrap());
    });
    let begun = room.begin(of_document, asked(&authority)).unwrap();
    assert_eq!(parameter(&begun.auth_url, "redirect_uri").as_deref(), Some(DEEP_LINK));
}

#[test]
fn a_sign_in_that_is_still_prepared_shows_at_once_and_is_cancelled_at_once() {
    let room = Room::new();
    let server = "https://x.example/mcp".parse().unwrap();
    let beginning = room
        .sign_ins
        .begin_after(id("x"), &server, std::future::pending::<Result<_, _>>());
    let cancel = async {
        let mut changes = room.sign_ins.changes();
        changes.wait_for(|_| room.stage("x").is_some()).await.unwrap();
        assert_eq!(room.view("x").unwrap().access_goes_to, "x.example");
        assert!(room.sign_ins.cancel(&id("x")).await);
    };
    let (begun, ()) = room.runtime.block_on(async { tokio::join!(beginning, cancel) });
    assert_eq!(begun.unwrap_err(), SignInError::Replaced);
    assert_eq!(room.stage("x"), None);
}

#[test]
fn a_sign_in_has_one_end() {
    let room = Room::new();
    let authority = room.authority(&[]);
    let begun = room.begin(target("x", &authority), asked(&authority)).unwrap();
    let back = authority.follow(begun.auth_url.as_str());
    let mut changes = room.sign_ins.changes();
    changes.mark_unchanged();
    assert!(room.sign_ins.expire().is_empty());
    assert!(!changes.has_changed().unwrap());
    room.pass(10 * MINUTE);
    let over = room.sign_ins.expire();
    assert_eq!(over.len(), 1);
    assert_eq!(
        (over[0].outcome, over[0].server.clone()),
        (SignInOutcome::Expired, Some(id("x")))
    );
    assert!(changes.has_changed().unwrap());
    // Told once: not again by the clock, by a browser that comes late, or by a click that puts the card away.
    assert!(room.sign_ins.expire().is_empty());
    assert_eq!(room.sign_ins.first_ends_in(), None);
    let late = room.come_back(&back);
    assert_eq!((late.outcome, late.server), (SignInOutcome::Expired, None));
    assert!(matches!(room.stage("x"), Some(SignInStage::Failed { .. })));
    let cancel = || room.runtime.block_on(room.sign_ins.cancel(&id("x")));
    assert!(!cancel());
    assert_eq!(room.stage("x"), None);
    // What waits for the person's tick or client has not begun.
    let shut = room.authority(&[("registration", "absent")]);
    room.begin(target("x", &shut), asked(&shut)).unwrap_err();
    assert!(!cancel());
    room.begin(target("x", &authority), asked(&authority)).unwrap();
    assert!(cancel());
}

#[test]
fn another_port_is_registered_anew_and_no_port_is_said_before_anybody_is_asked() {
    let room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    assert_eq!(room.sign_in(&authority, &target).outcome, SignInOutcome::SignedIn);
    assert_eq!(room.sign_in(&authority, &target).outcome, SignInOutcome::SignedIn);
    assert_eq!(authority.count("registered"), 1);
    room.listen_at(7772);
    assert_eq!(room.sign_in(&authority, &target).outcome, SignInOutcome::SignedIn);
    assert_eq!(authority.count("registered"), 2);

    room.listen_at(0);
    let ask = asked(&authority);
    let before = authority.requests().len();
    let error = room.begin(target, ask).unwrap_err();
    assert!(matches!(error, SignInError::CallbackUnavailable(_)), "{error:?}");
    assert_eq!(authority.requests().len(), before);
}

#[test]
fn more_scopes_are_asked_for_with_those_that_were_allowed() {
    let room = Room::new();
    let authority = room.authority(&[("scopes", "read"), ("step-up", "write")]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let token = room.token(&room.bearer(&target)).unwrap();
    let refused = call(&authority, Some(&token), "write");
    assert_eq!(refused.status, 403);
    let ask = Ask {
        challenge: Some(challenge_of(&refused)),
        ..Ask::default()
    };
    let begun = room.begin(target.clone(), ask).unwrap();
    assert_eq!(parameter(&begun.auth_url, "scope").as_deref(), Some("read write"));
    room.come_back(&authority.follow(begun.auth_url.as_str()));
    let token = room.token(&room.bearer(&target)).unwrap();
    assert_eq!(call(&authority, Some(&token), "write").status, 200);
}

#[test]
fn a_server_that_is_never_content_is_not_asked_a_fourth_time() {
    let room = Room::new();
    let authority = room.authority(&[("scopes", "read"), ("step-up", "endless")]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let ask = || {
        let token = room.token(&room.bearer(&target)).unwrap();
        Ask {
            challenge: Some(challenge_of(&call(&authority, Some(&token), "write"))),
            ..Ask::default()
        }
    };
    for _ in 0..2 {
        let begun = room.begin(target.clone(), ask()).unwrap();
        room.come_back(&authority.follow(begun.auth_url.as_str()));
    }
    assert_eq!(room.begin(target.clone(), ask()).unwrap_err(), SignInError::TooMany);
    assert_eq!(authority.count("authorized"), 3);
}

#[test]
fn signing_out_forgets_here_and_there_and_stays() {
    let mut room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let bearer = room.bearer(&target);
    room.runtime.block_on(room.sign_ins.sign_out(&id("x"))).unwrap();
    eventually("both tokens are forgotten there", SOON, || {
        (authority.revoked().len() == 2).then_some(())
    });
    let Err(AuthFault::SignIn(need)) = room.token(&bearer) else {
        panic!("signed out")
    };
    assert_eq!(need.why, WhySignIn::SignedOut);
    room.restart();
    let before = authority.requests().len();
    assert!(matches!(room.signed(&target), Signed::SignedOut));
    assert_eq!(authority.requests().len(), before);
    assert_eq!(room.sign_in(&authority, &target).outcome, SignInOutcome::SignedIn);
    assert_eq!(authority.count("registered"), 2);
}

#[test]
fn another_address_gets_nothing_and_the_old_one_is_still_signed_in() {
    let mut room = Room::new();
    let authority = room.authority(&[]);
    let mine = target("x", &authority);
    room.sign_in(&authority, &mine);
    let other = room.second_authority(&[]);
    for _ in 0..2 {
        assert!(matches!(room.signed(&target("x", &other)), Signed::Nothing));
        assert!(matches!(room.signed(&mine), Signed::In(_)));
        room.restart();
    }
    let other_issuer = target_with("x", &authority, |oauth| {
        oauth.settings.issuer = Some("https://auth.example.com".to_owned());
    });
    assert!(matches!(room.signed(&other_issuer), Signed::Nothing));
    assert!(room.token(&room.bearer(&mine)).is_ok());
    assert!(other.requests().is_empty());
}

#[test]
fn a_connector_that_is_removed_leaves_nothing() {
    let mut room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let begun = room.begin(target.clone(), asked(&authority)).unwrap();
    let back = authority.follow(begun.auth_url.as_str());
    room.runtime.block_on(room.sign_ins.forget(&id("x"))).unwrap();
    assert_eq!(room.come_back(&back).outcome, SignInOutcome::InvalidState);
    room.restart();
    assert!(matches!(room.signed(&target), Signed::Nothing));
}

#[test]
fn a_sign_in_goes_on_after_a_restart() {
    let mut room = Room::new();
    let authority = room.authority(&[("auth-methods", "client_secret_basic")]);
    let target = target("x", &authority);
    let begun = room.begin(target.clone(), asked(&authority)).unwrap();
    let back = authority.follow(begun.auth_url.as_str());
    room.restart();
    let finished = room.come_back(&back);
    assert_eq!(finished.outcome, SignInOutcome::SignedIn, "{}", finished.message);
    assert!(room.token(&room.bearer(&target)).is_ok());
    room.restart();
    assert_eq!(room.come_back(&back).outcome, SignInOutcome::InvalidState);
}

#[test]
fn two_answers_at_once_each_end_their_own_sign_in() {
    let room = Room::new();
    let authority = room.authority(&[("token-delay", "50")]);
    let targets = ["x", "y"].map(|name| target(name, &authority));
    let backs = targets.clone().map(|target| {
        let begun = room.begin(target, asked(&authority)).unwrap();
        Callback::from_pasted(&authority.follow(begun.auth_url.as_str())).unwrap()
    });
    let [one, two] = backs;
    let (one, two) = room
        .runtime
        .block_on(async { tokio::join!(room.sign_ins.finish(one, |_| true), room.sign_ins.finish(two, |_| true)) });
    assert_eq!(
        (one.outcome, two.outcome),
        (SignInOutcome::SignedIn, SignInOutcome::SignedIn)
    );
    let tokens = targets.map(|target| room.token(&room.bearer(&target)).unwrap().expose_secret().to_owned());
    assert_ne!(tokens[0], tokens[1]);
}

#[test]
fn a_sign_in_that_was_given_up_can_begin_again() {
    let room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    let begun = room.begin(target.clone(), asked(&authority)).unwrap();
    assert!(room.runtime.block_on(room.sign_ins.cancel(&id("x"))));
    assert_eq!(room.stage("x"), None);
    let back = authority.follow(begun.auth_url.as_str());
    assert_eq!(room.come_back(&back).outcome, SignInOutcome::InvalidState);
    assert!(!room.runtime.block_on(room.sign_ins.cancel(&id("x"))));
    assert_eq!(room.sign_in(&authority, &target).outcome, SignInOutcome::SignedIn);
}
