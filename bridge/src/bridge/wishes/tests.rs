use std::{fs, time::Duration};

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{
    bridge::{BridgeOptions, Headless, Patience},
    home::Home,
    secrets::KeepSecrets,
};

/// A bridge without a window and without connectors, in a home of its own.
async fn bridge() -> (BridgeHandle, TempDir) {
    let folder = TempDir::new().unwrap();
    let home = Home::at(folder.path()).unwrap();
    home.prepare().unwrap();
    fs::write(home.config_file(), r#"{"servers": {}}"#).unwrap();
    let handle = BridgeHandle::start(BridgeOptions {
        home,
        program: "a test",
        own_binary: folder.path().join("neuron-connectd"),
        port: Some(0),
        shell: Shell::Headless(Headless::default()),
        secrets: KeepSecrets::Memory,
        patience: Patience::default(),
    })
    .await
    .unwrap();
    (handle, folder)
}

fn id(text: &str) -> ConnectorId {
    ConnectorId::parse(text).unwrap()
}

fn entry(command: &str) -> Map<String, Value> {
    json!({"command": command, "enabled": false})
        .as_object()
        .unwrap()
        .clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_added_is_compared_with_what_was_shown_within_the_edit() {
    let (bridge, folder) = bridge().await;
    let file = folder.path().join("variables");
    fs::write(&file, "A=1\n").unwrap();
    let mut entry = entry("no-such-program");
    entry.insert("envFile".into(), json!(file));
    let (_, shown) = bridge
        .launch(&id("new"), &entry, &Caller::Owner.shown().await)
        .await
        .unwrap();
    let before = fs::read(folder.path().join("connectors.json")).unwrap();
    // What goes into it by value is another by the time of the edit.
    fs::write(&file, "A=2\n").unwrap();
    let refused = bridge.add_as_shown(id("new"), entry.clone(), shown).await.unwrap_err();
    assert_eq!(refused.code, Code::NeedsReview);
    assert!(bridge.view_of(&id("new")).is_err());
    assert_eq!(fs::read(folder.path().join("connectors.json")).unwrap(), before);
    fs::write(&file, "A=1\n").unwrap();
    bridge.add_as_shown(id("new"), entry, shown).await.unwrap();
    assert!(bridge.view_of(&id("new")).is_ok());
    bridge.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_told_to_stop_at_a_wish_wishes_nothing_for_an_hour() {
    let (bridge, _folder) = bridge().await;
    let wish = |name: &str| bridge.wish(Caller::walk_in(), Wish::Add(id(name), entry("x")));
    let first = wish("a").await.unwrap().approval_id;
    let second = wish("b").await.unwrap().approval_id;
    bridge.stop_asking(first.clone()).await.unwrap();
    for ended in [&first, &second] {
        let view = bridge.approval(Caller::walk_in(), ended.clone()).await.unwrap();
        assert_eq!(view.state, ApprovalState::Denied);
    }
    let refused = wish("c").await.unwrap_err();
    assert_eq!(refused.code, Code::RateLimited);
    let hour = Duration::from_secs(3600);
    assert!(
        refused
            .retry_after
            .is_some_and(|after| after <= hour && after > hour / 2)
    );
    let again = bridge.stop_asking(first).await.unwrap_err();
    assert_eq!(again.code, Code::AlreadyExists);
    let muted = bridge.snapshot().trust.muted.clone();
    assert_eq!(muted.len(), 1);
    bridge.let_ask(muted[0].id.clone()).await.unwrap();
    wish("c").await.unwrap();
    bridge.shutdown().await;
}
