//! How this app proves at an authorization server who it is: registered by itself, by hand, or by a document.

use crate::room::{LOOPBACK, MINUTE, Room, asked, call, id, parameter, target, target_with};
use neuron_bridge::{
    config::{ClientAuth, Grant},
    oauth::SignInError,
    snapshot::{SignInOutcome, SignInStage},
};

/// Made for this test; it opens nothing.
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgaaLCx6be1Kzoffq2
pWgm/q5/03TTH0cazb6amtwhItyhRANCAAQKmca3j4N4+gzw1hSoWr7gEk9wQ3Cg
W33d4L+JAnf/+Or9C30PrARxDA6RBx0eve3XgAvm0ylyBYTpdbHEkWpF
-----END PRIVATE KEY-----
";

#[test]
fn clients_prove_who_they_are_as_they_were_registered() {
    let room = Room::new();
    for (supported, returned) in [
        ("none", ""),
        ("client_secret_basic", ""),
        ("client_secret_post", ""),
        ("none client_secret_basic", "client_secret_post"),
    ] {
        let authority = room.authority(&[("auth-methods", supported), ("method-returned", returned)]);
        let target = target("x", &authority);
        let finished = room.sign_in(&authority, &target);
        assert_eq!(
            finished.outcome,
            SignInOutcome::SignedIn,
            "{supported}: {}",
            finished.message
        );
        room.pass(120 * MINUTE);
        assert!(room.token(&room.bearer(&target)).is_ok(), "{supported}");
        room.runtime.block_on(room.sign_ins.forget(&id("x"))).unwrap();
    }
}

#[test]
fn the_entrys_own_client_needs_its_issuer_and_is_never_registered() {
    let room = Room::new();
    let options = [
        ("registration", "null"),
        ("client-id", "mine"),
        ("client-secret", "s3cret"),
        ("auth-methods", "client_secret_post"),
    ];
    let authority = room.authority(&options);
    let entry = |issuer: Option<String>| {
        target_with("x", &authority, |oauth| {
            oauth.settings.client_id = Some("mine".to_owned());
            oauth.client_secret = Some("s3cret".to_owned().into());
            oauth.settings.issuer = issuer;
        })
    };
    let without = room.begin(entry(None), asked(&authority)).unwrap_err();
    assert_eq!(
        without,
        SignInError::NeedsIssuer {
            issuer: authority.base()
        }
    );
    let wrong = room
        .begin(entry(Some("https://auth.example.com".to_owned())), asked(&authority))
        .unwrap_err();
    assert!(matches!(wrong, SignInError::OtherIssuer { .. }), "{wrong:?}");
    let right = entry(Some(authority.base()));
    assert_eq!(room.sign_in(&authority, &right).outcome, SignInOutcome::SignedIn);
    assert!(authority.requests_to("/register").is_empty());
}

#[test]
fn a_client_of_the_entry_that_is_not_accepted_is_sought_in_the_entry() {
    let room = Room::new();
    let options = [
        ("registration", "null"),
        ("client-id", "mine"),
        ("client-secret", "s3cret"),
        ("auth-methods", "client_secret_post"),
    ];
    let authority = room.authority(&options);
    let target = target_with("x", &authority, |oauth| {
        oauth.settings.client_id = Some("mine".to_owned());
        oauth.client_secret = Some("mistyped".to_owned().into());
        oauth.settings.issuer = Some(authority.base());
    });
    let finished = room.sign_in(&authority, &target);
    assert_eq!(finished.outcome, SignInOutcome::Failed);
    let told = format!(
        "127.0.0.1:{} did not accept the client id or secret of the entry. Check both.",
        authority.port
    );
    assert_eq!(finished.message, told);
}

#[test]
fn without_registration_the_person_is_told_what_to_register() {
    let room = Room::new();
    for registration in ["absent", "null", "refused"] {
        let authority = room.authority(&[("registration", registration)]);
        let error = room.begin(target("x", &authority), asked(&authority)).unwrap_err();
        let told = SignInError::NeedsClient {
            issuer: authority.base(),
            redirect_uri: LOOPBACK.to_owned(),
        };
        assert_eq!(error, told, "{registration}");
        assert!(matches!(room.stage("x"), Some(SignInStage::NeedsClient { .. })));
    }
}

#[test]
fn a_metadata_document_stands_for_a_registration() {
    let room = Room::new();
    let authority = room.authority(&[("metadata-documents", "true")]);
    let document = "https://neuron.example/client.json";
    let target = target_with("x", &authority, |oauth| {
        oauth.settings.client_metadata_url = Some(document.parse().unwrap());
    });
    let begun = room.begin(target, asked(&authority)).unwrap();
    assert_eq!(parameter(&begun.auth_url, "client_id").as_deref(), Some(document));
    let finished = room.come_back(&authority.follow(begun.auth_url.as_str()));
    assert_eq!(finished.outcome, SignInOutcome::SignedIn, "{}", finished.message);
    assert!(authority.requests_to("/register").is_empty());
}

#[test]
fn a_connector_signs_in_by_itself_with_its_clients_key() {
    let room = Room::new();
    let options = [
        ("client-id", "mine"),
        ("client-secret", "s3cret"),
        ("auth-methods", "client_secret_basic"),
        ("scopes-supported", "read"),
    ];
    let authority = room.authority(&options);
    let target = target_with("x", &authority, |oauth| {
        oauth.settings.grant = Grant::ClientCredentials;
        oauth.settings.client_id = Some("mine".to_owned());
        oauth.client_secret = Some("s3cret".to_owned().into());
    });
    let bearer = room.bearer(&target);
    let token = room.token(&bearer).unwrap();
    assert_eq!(call(&authority, Some(&token), "echo").status, 200);
    room.pass(120 * MINUTE);
    assert!(room.token(&bearer).is_ok());
    assert_eq!(authority.count("issued"), 2);
    assert_eq!(
        room.begin(target, asked(&authority)).unwrap_err(),
        SignInError::NobodySignsIn
    );
}

#[test]
fn a_connector_signs_in_by_itself_with_a_private_key() {
    let room = Room::new();
    let authority = room.authority(&[("client-id", "mine"), ("auth-methods", "private_key_jwt")]);
    let target = target_with("x", &authority, |oauth| {
        oauth.settings.grant = Grant::ClientCredentials;
        oauth.settings.client_id = Some("mine".to_owned());
        oauth.settings.client_auth = ClientAuth::PrivateKeyJwt;
        oauth.settings.algorithm = Some("ES256".to_owned());
        oauth.private_key = Some(KEY.to_owned().into());
    });
    let token = room.token(&room.bearer(&target)).unwrap();
    assert_eq!(call(&authority, Some(&token), "echo").status, 200);
    let form = &authority.requests_to("/token")[0]["body"];
    assert_eq!(
        form["client_assertion_type"],
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
    assert_eq!(form["client_assertion"].as_str().unwrap().split('.').count(), 3);
}
