//! Tokens that end, servers that do not renew them, and many who ask at once.

use crate::room::{MINUTE, Room, target};
use neuron_bridge::{
    oauth::{AuthFault, Bearer, WhySignIn},
    snapshot::SignInOutcome,
};
use secrecy::{ExposeSecret, SecretString};

/// Longer than a token lives.
const LATER: u64 = 61 * MINUTE;

fn over(result: Result<SecretString, AuthFault>) {
    let Err(AuthFault::SignIn(need)) = result else {
        panic!("{result:?}")
    };
    assert_eq!(need.why, WhySignIn::Over);
}

fn at_once(room: &Room, bearer: &Bearer, count: usize) -> Vec<Result<SecretString, AuthFault>> {
    room.runtime
        .block_on(futures::future::join_all((0..count).map(|_| bearer.token())))
}

#[test]
fn twenty_who_ask_at_its_end_get_one_new_token() {
    let room = Room::new();
    let authority = room.authority(&[("token-delay", "50")]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let bearer = room.bearer(&target);
    let old = room.token(&bearer).unwrap();
    room.pass(LATER);
    let tokens = at_once(&room, &bearer, 20);
    let tokens: Vec<_> = tokens
        .into_iter()
        .map(|token| token.unwrap().expose_secret().to_owned())
        .collect();
    assert!(
        tokens
            .iter()
            .all(|token| *token == tokens[0] && *token != old.expose_secret())
    );
    assert_eq!(authority.count("refreshed"), 1);
    assert_eq!(authority.count("replayed"), 0);
}

#[test]
fn a_token_is_renewed_ahead_of_its_end_and_not_before() {
    let room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let bearer = room.bearer(&target);
    let first = room.token(&bearer).unwrap();
    room.pass(57 * MINUTE);
    assert_eq!(room.token(&bearer).unwrap().expose_secret(), first.expose_secret());
    room.pass(2 * MINUTE + MINUTE / 2);
    assert_ne!(room.token(&bearer).unwrap().expose_secret(), first.expose_secret());
    assert_eq!(authority.count("refreshed"), 1);
}

#[test]
fn a_refresh_token_that_is_not_replaced_goes_on() {
    let room = Room::new();
    let authority = room.authority(&[("refresh", "keep")]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let bearer = room.bearer(&target);
    for count in 1..=3 {
        room.pass(LATER);
        room.token(&bearer).unwrap();
        assert_eq!(authority.count("refreshed"), count);
    }
}

#[test]
fn a_new_token_outlives_a_restart() {
    let mut room = Room::new();
    let authority = room.authority(&[("auth-methods", "client_secret_basic")]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    room.pass(LATER);
    let renewed = room.token(&room.bearer(&target)).unwrap();
    let metadata = || {
        authority
            .requests()
            .iter()
            .filter(|r| r["path"].as_str().unwrap().contains("well-known"))
            .count()
    };
    let before = metadata();
    room.restart();
    let bearer = room.bearer(&target);
    assert_eq!(room.token(&bearer).unwrap().expose_secret(), renewed.expose_secret());
    room.pass(LATER);
    room.token(&bearer).unwrap();
    assert_eq!(authority.count("refreshed"), 2);
    assert_eq!(metadata(), before, "a start asks nobody how to sign in");
}

#[test]
fn a_server_with_a_problem_of_its_own_costs_no_sign_in() {
    let room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let bearer = room.bearer(&target);
    room.pass(LATER);
    for trouble in [
        "503",
        "500",
        "429",
        "html",
        "404",
        "redirect",
        "temporarily_unavailable",
    ] {
        authority.set(&[("token-fails", trouble)]);
        let result = room.token(&bearer);
        assert!(
            matches!(result, Err(AuthFault::Unavailable(_))),
            "{trouble}: {result:?}"
        );
    }
    authority.set(&[("token-fails", "no")]);
    assert!(room.token(&bearer).is_ok());
}

#[test]
fn those_who_waited_for_a_renewal_that_failed_do_not_all_try_again() {
    let room = Room::new();
    let authority = room.authority(&[("token-delay", "100")]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let bearer = room.bearer(&target);
    room.pass(LATER);
    authority.set(&[("token-fails", "503")]);
    let before = authority.requests_to("/token").len();
    let results = at_once(&room, &bearer, 20);
    assert!(
        results
            .iter()
            .all(|result| matches!(result, Err(AuthFault::Unavailable(_))))
    );
    assert_eq!(authority.requests_to("/token").len() - before, 1);
}

#[test]
fn a_token_that_still_holds_is_used_while_it_cannot_be_renewed() {
    let room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let bearer = room.bearer(&target);
    let first = room.token(&bearer).unwrap();
    authority.set(&[("token-fails", "503")]);
    room.pass(59 * MINUTE + MINUTE / 2);
    assert_eq!(room.token(&bearer).unwrap().expose_secret(), first.expose_secret());
    room.pass(MINUTE);
    assert!(matches!(room.token(&bearer), Err(AuthFault::Unavailable(_))));
}

#[test]
fn what_is_over_is_asked_about_once() {
    let mut room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    room.pass(LATER);
    authority.set(&[("token-fails", "invalid_grant")]);
    let bearer = room.bearer(&target);
    over(room.token(&bearer));
    let asked = authority.requests_to("/token").len();
    for result in at_once(&room, &bearer, 5) {
        over(result);
    }
    room.restart();
    over(room.token(&room.bearer(&target)));
    assert_eq!(authority.requests_to("/token").len(), asked);
    authority.set(&[("token-fails", "no")]);
    assert_eq!(room.sign_in(&authority, &target).outcome, SignInOutcome::SignedIn);
    assert_eq!(authority.count("registered"), 1, "the registration is still good");
    assert!(room.token(&bearer).is_ok(), "a bearer goes on with the new sign-in");
}

#[test]
fn killed_between_a_renewal_and_its_keeping_it_asks_to_sign_in() {
    let mut room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    // Somebody else with the same one-use refresh token stands for the renewal that was never kept.
    let body = format!(
        "grant_type=refresh_token&refresh_token=rt-1-of-the-authority&client_id=client-1&resource={}",
        authority.url()
    );
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let address = neuron_tests::http::Address::Tcp(authority.port);
    let used_up = neuron_tests::http::Connection::open(&address).send("POST", "/token", &headers, body.as_bytes());
    assert_eq!(used_up.status, 200, "{}", used_up.text());
    room.restart();
    room.pass(LATER);
    let bearer = room.bearer(&target);
    over(room.token(&bearer));
    over(room.token(&bearer));
    assert_eq!(authority.count("replayed"), 1);
}

#[test]
fn a_server_that_forgot_this_app_gets_it_registered_anew() {
    let room = Room::new();
    let authority = room.authority(&[("auth-methods", "client_secret_basic")]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    room.pass(LATER);
    authority.set(&[("forget-clients", "now")]);
    over(room.token(&room.bearer(&target)));
    let finished = room.sign_in(&authority, &target);
    assert_eq!(finished.outcome, SignInOutcome::SignedIn, "{}", finished.message);
    assert_eq!(authority.count("registered"), 2);
    assert!(room.token(&room.bearer(&target)).is_ok());
}

#[test]
fn a_server_that_forgot_this_app_during_a_sign_in_gets_it_registered_anew() {
    let room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    let begun = room.begin(target.clone(), crate::room::asked(&authority)).unwrap();
    let back = authority.follow(begun.auth_url.as_str());
    authority.set(&[("forget-clients", "now")]);
    assert_eq!(room.come_back(&back).outcome, SignInOutcome::Failed);
    assert_eq!(room.sign_in(&authority, &target).outcome, SignInOutcome::SignedIn);
}

#[test]
fn a_token_that_the_server_turns_away_is_renewed_once() {
    let room = Room::new();
    let authority = room.authority(&[]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let bearer = room.bearer(&target);
    let first = room.token(&bearer).unwrap();
    let second = room.refused(&bearer, &first).unwrap();
    assert_ne!(first.expose_secret(), second.expose_secret());
    // Whoever still had the first gets the second, without another request.
    assert_eq!(
        room.refused(&bearer, &first).unwrap().expose_secret(),
        second.expose_secret()
    );
    over(room.refused(&bearer, &second));
    assert_eq!(authority.count("refreshed"), 1);
}

#[test]
fn without_a_refresh_token_the_person_signs_in_again_at_its_end() {
    let room = Room::new();
    let authority = room.authority(&[("refresh", "none")]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let bearer = room.bearer(&target);
    room.pass(59 * MINUTE + MINUTE / 2);
    assert!(room.token(&bearer).is_ok());
    room.pass(MINUTE);
    over(room.token(&bearer));
    assert_eq!(authority.requests_to("/token").len(), 1);
}

#[test]
fn a_caller_that_goes_away_loses_no_token() {
    let room = Room::new();
    let authority = room.authority(&[("token-delay", "300")]);
    let target = target("x", &authority);
    room.sign_in(&authority, &target);
    let bearer = room.bearer(&target);
    room.pass(LATER);
    room.runtime.block_on(async {
        let mut asking = Box::pin(bearer.token());
        // Until the request is at the server, which takes its time.
        loop {
            tokio::select! {
                result = &mut asking => panic!("{result:?}"),
                () = tokio::task::yield_now() => {}
            }
            if authority.requests_to("/token").len() == 2 {
                break;
            }
        }
    });
    assert!(room.token(&bearer).is_ok());
    assert_eq!(authority.count("refreshed"), 1);
    assert_eq!(authority.count("replayed"), 0);
}
