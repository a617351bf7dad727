//! Bridges without a window, and homes that a tray app used.

use super::*;
use crate::ledger::key::{Choice, Circumstances, Found, choose};

#[cfg(unix)]
#[tokio::test]
async fn without_a_window_the_key_lies_in_a_file_of_this_person_where_no_keychain_serves() {
    use std::os::unix::fs::PermissionsExt as _;
    for (kept_in, fault) in [
        (KeptIn::Memory, None),
        (KeptIn::File, None),
        (KeptIn::Keychain, Some(KeychainFault::Absent)),
        (KeptIn::Memory, Some(KeychainFault::Locked)),
    ] {
        let case = Case::new();
        case.desk.answers(fault.clone());
        let bridge = case.headless(kept_in).await;
        assert_eq!(bridge.standing(), Standing::Fresh, "{kept_in:?} {fault:?}");
        assert!(!case.key_file().exists(), "nothing was decided");
        assert!(!bridge.ledger.was_tray_home().await);
        bridge.ledger.write(vec![rule("a", "1")]).await.unwrap();
        let mode = fs::metadata(case.key_file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let record: Value = serde_json::from_slice(&fs::read(case.key_file()).unwrap()).unwrap();
        assert_eq!((&record["generation"], &record["tray"]), (&json!(1), &json!(false)));
        assert_eq!(case.desk.accounts(), [""; 0]);
        drop(bridge);

        let bridge = case.start(Host::Headless, kept_in);
        assert_eq!(bridge.standing(), Standing::Verified, "known on return");
        assert_eq!(bridge.rules(), pairs(&[("a", "1")]));
        assert!(!bridge.ledger.was_tray_home().await);
        drop(bridge.ledger.writer.lock().await);
        assert_eq!(bridge.standing(), Standing::Verified);
        drop(bridge);

        let copy = case.copy("older.db");
        let bridge = case.headless(kept_in).await;
        bridge.ledger.write(vec![rule("a", "2")]).await.unwrap();
        drop(bridge);
        case.put_back(&copy);
        assert_eq!(
            case.headless(kept_in).await.standing(),
            Standing::Broken(Distrust::RolledBack)
        );
        case.delete_database();
        assert_eq!(
            case.headless(kept_in).await.standing(),
            Standing::Broken(Distrust::Deleted)
        );
        case.put_back(&copy);
        fs::remove_file(case.key_file()).unwrap();
        // Where a keychain is meant and missing, the key may lie there.
        let expected = match (kept_in, fault) {
            (KeptIn::Keychain, Some(_)) => Standing::Unknown(KeychainState::Absent),
            (KeptIn::Keychain, None) | (KeptIn::File | KeptIn::Memory, _) => Standing::Broken(Distrust::KeyMissing),
        };
        assert_eq!(case.headless(kept_in).await.standing(), expected);
    }
}

#[tokio::test]
async fn a_home_of_a_tray_app_is_recognised_by_its_rows_or_by_its_keychain_wherever_secrets_are_kept() {
    for kept_in in [KeptIn::Keychain, KeptIn::File, KeptIn::Memory] {
        let case = Case::decided().await;
        let bridge = case.headless(kept_in).await;
        assert!(bridge.ledger.was_tray_home().await, "{kept_in:?}");
        assert_eq!(bridge.standing(), Standing::Verified, "under the tray's own key");
        assert_eq!(bridge.rules().len(), 2);
        bridge.ledger.write(vec![rule("c", "3")]).await.unwrap();
        bridge.ledger.counted().await;
        assert_eq!(
            (case.record()["generation"].as_u64(), case.key_file().exists()),
            (Some(3), false)
        );
        drop(bridge);

        case.desk.answers(Some(KeychainFault::Absent));
        let bridge = case.headless(kept_in).await;
        assert!(bridge.ledger.was_tray_home().await, "its rows say so");
        assert_eq!(bridge.standing(), Standing::Unknown(KeychainState::Absent));
        drop(bridge);

        case.delete_database();
        let bridge = case.headless(kept_in).await;
        assert!(!bridge.ledger.was_tray_home().await, "nothing is left that says so");
        drop(bridge);

        case.desk.answers(Some(KeychainFault::Locked));
        let bridge = case.headless(kept_in).await;
        assert!(
            bridge.ledger.was_tray_home().await,
            "a locked keychain tells that it holds a key"
        );
        assert_eq!(bridge.standing(), Standing::Unknown(KeychainState::Locked));
        drop(bridge);

        case.desk.answers(None);
        let bridge = case.headless(kept_in).await;
        assert!(bridge.ledger.was_tray_home().await, "the keychain says so");
        assert_eq!(bridge.standing(), Standing::Broken(Distrust::Deleted));
    }
}

#[tokio::test]
async fn a_keychain_that_a_bridge_without_a_window_used_makes_no_tray_home() {
    let case = Case::new();
    let bridge = case.headless(KeptIn::Keychain).await;
    bridge.ledger.write(vec![rule("a", "1")]).await.unwrap();
    bridge.ledger.counted().await;
    assert_eq!(case.record()["tray"], json!(false));
    drop(bridge);
    for kept_in in [KeptIn::Keychain, KeptIn::Memory] {
        let bridge = case.headless(kept_in).await;
        assert_eq!(bridge.standing(), Standing::Verified);
        assert!(!bridge.ledger.was_tray_home().await);
    }
    drop(case.tray().await);
    let bridge = case.headless(KeptIn::Memory).await;
    assert!(bridge.ledger.was_tray_home().await, "a tray app came here");
    assert_eq!(bridge.rules().len(), 1);
}

#[tokio::test]
async fn a_tray_app_does_not_believe_a_key_that_every_program_can_read() {
    let case = Case::new();
    let bridge = case.headless(KeptIn::Memory).await;
    bridge.ledger.write(vec![rule("a", "1")]).await.unwrap();
    drop(bridge);
    let bridge = case.tray().await;
    assert_eq!(bridge.standing(), Standing::Broken(Distrust::KeyMissing));
    assert!(bridge.has_nothing());
}

#[tokio::test]
async fn a_key_file_laid_beside_forged_rows_does_not_count_on_a_tray_home() {
    let case = Case::decided().await;
    case.delete_database();
    let forger = Case::new();
    forger
        .headless(KeptIn::Memory)
        .await
        .ledger
        .write(vec![rule("wide", "")])
        .await
        .unwrap();
    case.put_back(&forger.copy("forged.db"));
    fs::copy(forger.key_file(), case.key_file()).unwrap();
    let bridge = case.headless(KeptIn::Memory).await;
    assert!(bridge.ledger.was_tray_home().await);
    assert_eq!(bridge.standing(), Standing::Broken(Distrust::Tampered));
    assert!(bridge.has_nothing());
}

#[tokio::test]
async fn rows_whose_key_lies_in_a_keychain_that_is_missing_wait_for_it() {
    let case = Case::new();
    let bridge = case.headless(KeptIn::Keychain).await;
    bridge.ledger.write(vec![rule("a", "1")]).await.unwrap();
    bridge.ledger.counted().await;
    drop(bridge);
    case.desk.answers(Some(KeychainFault::Absent));
    let bridge = case.headless(KeptIn::Keychain).await;
    assert_eq!(bridge.standing(), Standing::Unknown(KeychainState::Absent));
    assert!(bridge.has_nothing() && !case.key_file().exists());
    drop(bridge);
    case.desk.answers(None);
    let bridge = case.headless(KeptIn::Keychain).await;
    assert_eq!((bridge.standing(), bridge.rules().len()), (Standing::Verified, 1));
}

#[test]
fn a_tray_app_asks_its_keychain_alone() {
    let file = || Found::Nothing;
    for kept_in in [KeptIn::Keychain, KeptIn::Memory] {
        for keychain in [Ok(Found::Nothing), Err(KeychainFault::Absent), Err(KeychainFault::Slow)] {
            let expected = keychain.clone().err();
            let chosen = choose(Circumstances {
                host: Host::Tray,
                kept_in,
                keychain,
                file: file(),
                tray: true,
                rows: true,
            });
            let waits = match chosen {
                Choice::Wait(fault) => Some(fault),
                Choice::At(Place::Keychain, Found::Nothing) => None,
                Choice::At(place, found) => panic!("{place:?} {found:?}"),
            };
            assert_eq!(waits, expected);
        }
    }
}
