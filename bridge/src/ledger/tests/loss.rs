//! What counts where rows are lost or cannot be checked.

use super::*;

#[tokio::test]
async fn a_set_that_begins_after_a_loss_asks_about_walk_ins_unless_the_person_says_otherwise() {
    for (decision, policy) in [
        (rule("b", "1"), "\"ask\""),
        (put(RowKind::Setting, WALK_IN, "\"allow\""), "\"allow\""),
    ] {
        let case = Case::decided().await;
        case.delete_database();
        let bridge = case.tray().await;
        assert_eq!(bridge.standing(), Standing::Broken(Distrust::Deleted));
        bridge.ledger.write(vec![decision]).await.unwrap();
        let row = bridge.ledger.row(RowKind::Setting, WALK_IN).unwrap();
        assert_eq!(row.body, policy);
    }
}

#[tokio::test]
async fn after_a_loss_programs_need_a_token_until_the_person_says_otherwise_and_a_pause_stays() {
    let token = |bridge: &Bridge| {
        let row = bridge.ledger.row(RowKind::Setting, API_MODE);
        row.map(|row| row.body).unwrap_or_default()
    };
    for (sql, paused) in [
        (
            "UPDATE trust SET body = 'true ' WHERE key = 'walk_in'; DELETE FROM trust WHERE kind = 'rule'",
            true,
        ),
        ("DELETE FROM trust; DELETE FROM trust_head", false),
    ] {
        let case = Case::decided().await;
        let bridge = case.tray().await;
        assert_eq!(bridge.ledger.assumed(), Assumed::default());
        let settings = [(API_MODE, "\"open\""), (PAUSED, "true")];
        let settings = settings.map(|(key, body)| put(RowKind::Setting, key, body));
        bridge.ledger.write(settings.into()).await.unwrap();
        bridge.ledger.counted().await;
        drop(bridge);
        case.by_hand(sql);
        let bridge = case.tray().await;
        assert!(matches!(bridge.standing(), Standing::Broken(_)), "{sql}");
        assert_eq!(bridge.ledger.assumed(), Assumed { token: true, paused }, "{sql}");
        // Another decision chooses no mode.
        bridge.ledger.write(vec![rule("c", "1")]).await.unwrap();
        assert_eq!(bridge.standing(), Standing::Verified);
        assert_eq!(token(&bridge), "\"token\"");
        assert!(bridge.ledger.row(RowKind::Setting, API_MODE_ASSUMED).is_some());
        assert_eq!(bridge.ledger.row(RowKind::Setting, PAUSED).is_some(), paused, "{sql}");
    }
}

#[tokio::test]
async fn while_the_keychain_is_locked_the_stored_rows_are_believed_in_what_they_close_alone() {
    for (mode, expected) in [
        (Some("\"open\""), false),
        (Some("\"token\""), true),
        (Some("x"), true),
        (None, false),
    ] {
        let case = Case::decided().await;
        let bridge = case.tray().await;
        let settings = mode.map(|mode| put(RowKind::Setting, API_MODE, mode));
        let paused = put(RowKind::Setting, PAUSED, "true");
        bridge
            .ledger
            .write(settings.into_iter().chain([paused]).collect())
            .await
            .unwrap();
        bridge.ledger.counted().await;
        drop(bridge);
        case.desk.answers(Some(KeychainFault::Locked));
        let bridge = case.tray().await;
        let assumed = Assumed {
            token: expected,
            paused: true,
        };
        assert_eq!(bridge.ledger.assumed(), assumed, "{mode:?}");
        // Deciding for this run is no word about it.
        bridge.ledger.keep_until_quit();
        assert_eq!(
            (bridge.standing(), bridge.ledger.assumed()),
            (Standing::ForThisRun, assumed),
            "{mode:?}"
        );
    }
    let case = Case::decided().await;
    case.delete_database();
    case.desk.answers(Some(KeychainFault::Locked));
    let bridge = case.tray().await;
    assert!(matches!(bridge.standing(), Standing::Unknown(_)));
    assert!(bridge.ledger.assumed().token, "there is a key of rows that are gone");
}
