use secrecy::ExposeSecret as _;

use super::{desk::Desk, *};

/// Hangs are noticed soon, and the rest after them does not end by itself unless the test says so.
const SHORT: Times = Times {
    answer: Duration::from_millis(300),
    rest: Duration::from_secs(3600),
};

struct Case {
    desk: Desk,
    keychain: Keychain,
    folder: tempfile::TempDir,
}

fn case(times: Times) -> Case {
    let folder = tempfile::tempdir().unwrap();
    let desk = Desk::default();
    let keychain = started(&desk, &folder, times);
    Case { desk, keychain, folder }
}

fn started(desk: &Desk, folder: &tempfile::TempDir, times: Times) -> Keychain {
    let desk = desk.clone();
    let store = Arc::new(Store::open(folder.path().join("state.db")).unwrap());
    Keychain::with(KeptIn::Keychain, store, times, |_| {
        Box::new(move || Box::new(desk.clone()))
    })
    .unwrap()
}

fn id(text: &str) -> ConnectorId {
    ConnectorId::parse(text).unwrap()
}

fn name(text: &str) -> SecretName {
    SecretName::parse(text).unwrap()
}

fn token(of: &str) -> Account {
    Account::Token(id(of))
}

fn secret(text: &str) -> SecretString {
    text.to_owned().into()
}

async fn value(keychain: &Keychain, account: &Account) -> Option<String> {
    let found = keychain.read(account).await.unwrap();
    found.map(|value| value.expose_secret().to_owned())
}

async fn until(keychain: &Keychain, state: KeychainState) {
    let mut views = keychain.state();
    views.wait_for(|view| view.state == state).await.unwrap();
}

#[tokio::test]
async fn what_was_written_is_read_and_gone_after_its_removal() {
    let Case { keychain, .. } = case(TIMES);
    let account = Account::OAuth(id("a"));
    assert_eq!(keychain.state().borrow().state, KeychainState::Unused);
    assert_eq!(value(&keychain, &account).await, None);
    keychain.write(&account, secret("x")).await.unwrap();
    assert_eq!(value(&keychain, &account).await.as_deref(), Some("x"));
    assert_eq!(keychain.state().borrow().state, KeychainState::Ready);
    keychain.delete(&account).await.unwrap();
    assert_eq!(value(&keychain, &account).await, None);
}

#[tokio::test]
async fn each_fault_is_a_state_of_its_own_with_its_sentence_and_passes() {
    let Case { desk, keychain, .. } = case(TIMES);
    for (fault, state) in [
        (KeychainFault::Locked, KeychainState::Locked),
        (KeychainFault::Absent, KeychainState::Absent),
        (KeychainFault::Refused("no".to_owned()), KeychainState::Refused),
    ] {
        desk.answers(Some(fault.clone()));
        assert_eq!(keychain.read(&token("a")).await.unwrap_err(), fault);
        let view = keychain.state().borrow().clone();
        assert_eq!((view.state, view.message), (state, Some(fault.sentence())));
    }
    desk.answers(None);
    keychain.look_again().await.unwrap();
    assert_eq!(keychain.state().borrow().state, KeychainState::Ready);
}

#[tokio::test]
async fn a_call_that_hangs_holds_up_nobody_for_ever_and_recovers_when_it_comes_back() {
    let Case { desk, keychain, .. } = case(SHORT);
    keychain.write(&token("b"), secret("b")).await.unwrap();
    let release = desk.hangs_at("a");
    assert_eq!(keychain.read(&token("a")).await.unwrap_err(), KeychainFault::Slow);
    assert_eq!(keychain.state().borrow().state, KeychainState::Slow);
    assert_eq!(keychain.read(&token("b")).await.unwrap_err(), KeychainFault::Slow);
    // The person does not want to wait for the end of the rest: another thread goes on.
    keychain.look_again().await.unwrap();
    assert_eq!(value(&keychain, &token("b")).await.as_deref(), Some("b"));

    let again = desk.hangs_at("a");
    assert_eq!(keychain.read(&token("a")).await.unwrap_err(), KeychainFault::Slow);
    drop((release, again));
    until(&keychain, KeychainState::Ready).await;
    assert_eq!(value(&keychain, &token("b")).await.as_deref(), Some("b"));
}

#[tokio::test]
async fn a_keychain_that_always_hangs_takes_a_few_threads_and_no_more() {
    let Case { desk, keychain, .. } = case(Times {
        rest: Duration::ZERO,
        ..SHORT
    });
    let mut releases = Vec::new();
    for number in 0..8 {
        let account = format!("a{number}");
        releases.push(desk.hangs_at(&account));
        assert_eq!(keychain.read(&token(&account)).await.unwrap_err(), KeychainFault::Slow);
    }
    // Four are in calls; the other four calls wait in the queue.
    assert_eq!(desk.state().hangs.len(), 4);
    drop(releases);
    until(&keychain, KeychainState::Ready).await;
    assert_eq!(value(&keychain, &token("b")).await, None);
}

#[tokio::test]
async fn a_choice_of_memory_helps_however_many_threads_the_keychain_holds() {
    let Case { desk, keychain, .. } = case(Times {
        rest: Duration::ZERO,
        ..SHORT
    });
    let mut releases = Vec::new();
    for number in 0..=4 {
        let account = format!("a{number}");
        releases.push(desk.hangs_at(&account));
        assert_eq!(keychain.read(&token(&account)).await.unwrap_err(), KeychainFault::Slow);
    }
    keychain.keep_until_quit();
    keychain.write(&token("b"), secret("x")).await.unwrap();
    drop(releases);
    assert_eq!(value(&keychain, &token("b")).await.as_deref(), Some("x"));
    assert_eq!(keychain.state().borrow().state, KeychainState::Ready);
}

#[tokio::test]
async fn a_write_that_was_given_up_stops_between_its_steps() {
    let Case { desk, keychain, .. } = case(SHORT);
    let release = desk.hangs_at("a:oauth");
    keychain.write(&token("a"), secret("old")).await.unwrap();
    let cleared = keychain.clone();
    // Its second account hangs; the token is already gone by then, the others are not.
    keychain.write(&Account::Client(id("a")), secret("c")).await.unwrap();
    cleared.forget(&id("a"), Vec::new());
    assert_eq!(keychain.settled(&id("a")).await.unwrap_err(), KeychainFault::Slow);
    assert_eq!(desk.accounts(), ["a:client"]);
    drop(release);
    until(&keychain, KeychainState::Ready).await;
    keychain.settled(&id("a")).await.unwrap();
    assert_eq!(desk.accounts(), Vec::<String>::new());
}

#[tokio::test]
async fn a_removed_connector_leaves_nothing_and_another_of_its_name_inherits_nothing() {
    let Case { desk, keychain, folder } = case(TIMES);
    let named = Account::Secret(id("a"), name("KEY"));
    for account in Account::unnamed_of(&id("a")).iter().chain([&named, &token("b")]) {
        keychain.write(account, secret("x")).await.unwrap();
    }
    desk.answers(Some(KeychainFault::Locked));
    keychain.forget(&id("a"), Vec::new());
    assert_eq!(keychain.settled(&id("a")).await.unwrap_err(), KeychainFault::Locked);
    assert_eq!(desk.accounts().len(), 6);

    // Also when the program ends before the keychain is unlocked.
    drop(keychain);
    let keychain = started(&desk, &folder, TIMES);
    desk.answers(None);
    assert_eq!(value(&keychain, &named).await, None);
    assert_eq!(desk.accounts(), ["b"]);
}

#[tokio::test]
async fn for_a_connector_that_never_had_anything_the_keychain_is_asked_nothing() {
    let Case { desk, keychain, .. } = case(TIMES);
    desk.answers(Some(KeychainFault::Absent));
    let [one, two] = ["1", "2"].map(|identity| Binding::Launch(identity.to_owned()));
    keychain.forget(&id("a"), Vec::new());
    keychain.hand_on(&id("a"), Vec::new(), one, two);
    keychain.forget_entered(&id("a"), Vec::new());
    keychain.entries_are(HashSet::from([id("a")]), 1);
    keychain.settled(&id("a")).await.unwrap();
    assert_eq!(keychain.state().borrow().state, KeychainState::Unused);
    // What an index that was lost may not know of goes before the first read all the same.
    desk.answers(None);
    desk.state().values.insert("a".to_owned(), "left".to_owned());
    assert_eq!(value(&keychain, &token("a")).await, None);
    assert_eq!(desk.accounts(), Vec::<String>::new());
}

#[tokio::test]
async fn a_read_whose_asker_left_is_not_made() {
    let Case { desk, keychain, .. } = case(TIMES);
    let release = desk.hangs_at("a");
    let _never = desk.hangs_at("b");
    let asked = |of: &'static str| {
        let keychain = keychain.clone();
        tokio::spawn(async move { keychain.read(&token(of)).await })
    };
    let first = asked("a");
    while desk.state().hangs.contains_key("a") {
        tokio::task::yield_now().await;
    }
    let second = asked("b");
    tokio::task::yield_now().await;
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    drop(release);
    assert!(first.await.unwrap().unwrap().is_none());
    assert_eq!(value(&keychain, &token("c")).await, None);
    assert!(desk.state().hangs.contains_key("b"));
}

#[tokio::test]
async fn what_waited_is_done_as_soon_as_the_keychain_can_be_had() {
    let Case { desk, keychain, .. } = case(TIMES);
    keychain.write(&token("a"), secret("x")).await.unwrap();
    keychain.write(&token("b"), secret("x")).await.unwrap();
    desk.answers(Some(KeychainFault::Locked));
    keychain.forget(&id("a"), Vec::new());
    until(&keychain, KeychainState::Locked).await;
    desk.answers(None);
    keychain.look_again().await.unwrap();
    // The removal was queued before this.
    assert!(value(&keychain, &token("b")).await.is_some());
    assert_eq!(desk.accounts(), ["b"]);
}

#[tokio::test]
async fn a_secret_is_handed_on_by_a_click_alone() {
    let Case { keychain, .. } = case(TIMES);
    let [one, two] = ["1", "2"].map(|identity| Binding::Launch(identity.to_owned()));
    let account = Account::Secret(id("a"), name("KEY"));
    keychain.write_bound(&account, &secret("x"), &one).await.unwrap();
    let seen = |from: &Binding| {
        let (keychain, account, from) = (keychain.clone(), account.clone(), from.clone());
        async move { keychain.read_bound(&account, &from).await.unwrap() }
    };
    assert!(matches!(seen(&two).await, Bound::Withheld));
    keychain.hand_on(&id("a"), Vec::new(), one.clone(), two.clone());
    assert!(matches!(seen(&two).await, Bound::Value(value) if value.expose_secret() == "x"));
    assert!(matches!(seen(&one).await, Bound::Withheld));
    keychain.forget_entered(&id("a"), Vec::new());
    assert!(matches!(seen(&two).await, Bound::Missing));
}

#[tokio::test]
async fn secrets_without_an_entry_are_removed_after_thirty_days() {
    let Case { desk, keychain, .. } = case(TIMES);
    let day = 24 * 60 * 60 * 1000;
    keychain.write(&token("a"), secret("x")).await.unwrap();
    keychain.write(&token("b"), secret("x")).await.unwrap();
    let present = || HashSet::from([id("b")]);
    for (days, left) in [(0, 2), (29, 2), (30, 1)] {
        keychain.entries_are(present(), (1000 + days) * day);
        assert!(value(&keychain, &token("b")).await.is_some());
        assert_eq!(desk.accounts().len(), left, "after {days} days");
    }
}

#[tokio::test]
async fn memory_forgets_by_choice_and_leaves_the_keychain_as_it_is() {
    let Case { desk, keychain, folder } = case(TIMES);
    keychain.write(&token("a"), secret("x")).await.unwrap();
    desk.answers(Some(KeychainFault::Absent));
    assert!(keychain.read(&token("a")).await.is_err());
    keychain.keep_until_quit();
    let view = keychain.state().borrow().clone();
    assert_eq!((view.kept_in, view.state), (KeptIn::Memory, KeychainState::Ready));
    assert_eq!(value(&keychain, &token("a")).await, None);
    keychain.write(&token("a"), secret("y")).await.unwrap();
    assert_eq!(value(&keychain, &token("a")).await.as_deref(), Some("y"));
    // What is removed meanwhile goes from the keychain when it can be had.
    keychain.forget(&id("a"), Vec::new());
    keychain.settled(&id("a")).await.unwrap();
    drop(keychain);
    assert_eq!(desk.accounts(), ["a"]);
    desk.answers(None);
    let keychain = started(&desk, &folder, TIMES);
    assert_eq!(value(&keychain, &token("a")).await, None);
    assert_eq!(desk.accounts(), Vec::<String>::new());
}

#[tokio::test]
async fn a_choice_of_memory_waits_for_no_call_that_hangs_and_no_late_answer_undoes_it() {
    let Case { desk, keychain, .. } = case(TIMES);
    let release = desk.hangs_at("a");
    let asking = tokio::spawn({
        let keychain = keychain.clone();
        async move { keychain.read(&token("a")).await }
    });
    while !desk.state().hangs.is_empty() {
        tokio::task::yield_now().await;
    }
    keychain.keep_until_quit();
    keychain.write(&token("b"), secret("x")).await.unwrap();
    desk.answers(Some(KeychainFault::Absent));
    drop(release);
    assert_eq!(asking.await.unwrap().unwrap_err(), KeychainFault::Absent);
    assert_eq!(value(&keychain, &token("b")).await.as_deref(), Some("x"));
    let view = keychain.state().borrow().clone();
    assert_eq!((view.kept_in, view.state), (KeptIn::Memory, KeychainState::Ready));
}
