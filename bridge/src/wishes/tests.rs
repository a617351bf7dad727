use std::{sync::Arc, time::Duration};

use serde_json::json;

use super::*;
use crate::snapshot::{ChangeQuestion, WhoKind, WhoView};

fn id(text: &str) -> ConnectorId {
    ConnectorId::parse(text).unwrap()
}

fn wishing(wish: Wish, caller: &str, program: &str) -> Wishing {
    Wishing {
        wish,
        caller: caller.into(),
        server_name: "A".into(),
        question: Question::Manage {
            who: WhoView {
                kind: WhoKind::WalkIn,
                name: program.into(),
                client: None,
                program: None,
            },
            change: Box::new(ChangeQuestion::Enable),
        },
        bound: Bound::Nothing,
    }
}

fn secret(value: &str) -> Wish {
    Wish::SetSecret {
        id: id("a"),
        name: None,
        value: SecretString::from(value),
    }
}

fn wishes() -> Wishes {
    Wishes::new(Arc::default())
}

#[test]
fn the_same_wish_of_the_same_program_waits_once() {
    let entry = || json!({"command": "x", "args": ["1"]}).as_object().unwrap().clone();
    let same: [fn() -> Wish; 4] = [
        || Wish::Enable(id("a")),
        || Wish::Remove(id("a")),
        || secret("one"),
        || Wish::AutoApprove(id("a"), AutoApprove::All),
    ];
    for make in same {
        let wishes = wishes();
        let first = wishes.put("1".into(), wishing(make(), "walk-in", "x")).unwrap();
        assert_eq!(wishes.put("2".into(), wishing(make(), "walk-in", "x")).unwrap(), first);
        for (caller, program) in [("walk-in", "y"), ("client:1", "x")] {
            let other = wishes.put("3".into(), wishing(make(), caller, program)).unwrap();
            assert_ne!(other, first, "{caller} {program}");
        }
    }
    let wishes = wishes();
    let mut other_entry = entry();
    other_entry.insert("env".into(), json!({}));
    for (number, wish) in [
        Wish::Add(id("a"), entry()),
        Wish::Add(id("a"), other_entry),
        Wish::Add(id("b"), entry()),
        Wish::Enable(id("a")),
        Wish::Enable(id("b")),
        secret("one"),
        secret("two"),
    ]
    .into_iter()
    .enumerate()
    {
        let own = number.to_string();
        let put = wishes.put(own.clone(), wishing(wish, "walk-in", "x")).unwrap();
        assert_eq!(put, own, "another wish is another question");
    }
}

#[test]
fn twenty_wait_and_no_more() {
    let wishes = wishes();
    let put = |number: usize| {
        let wish = Wish::Enable(id(&format!("c{number}")));
        wishes.put(number.to_string(), wishing(wish, "walk-in", "x"))
    };
    for number in 0..MOST {
        put(number).unwrap();
    }
    assert_eq!(put(MOST), Err(Full));
    wishes.settle("0", ApprovalState::Denied).unwrap();
    put(MOST).unwrap();
}

#[test]
fn a_wish_is_granted_once_and_by_one() {
    let wishes = wishes();
    wishes.put("1".into(), wishing(secret("one"), "walk-in", "x")).unwrap();
    assert!(matches!(wishes.take("1"), Some(Taken::Wish { .. })));
    assert!(matches!(wishes.take("1"), Some(Taken::UnderWay)));
    wishes.put_back("1", None);
    assert!(matches!(wishes.take("1"), Some(Taken::Wish { .. })));
    wishes.settle("1", ApprovalState::Approved).unwrap();
    assert!(matches!(wishes.take("1"), Some(Taken::Over(ApprovalState::Approved))));
    assert!(wishes.settle("1", ApprovalState::Denied).is_none());
    assert!(wishes.take("nobody's").is_none());
    let seen = |of| wishes.find("1", of).map(|view| view.state);
    assert_eq!(seen(Some("walk-in")), Some(ApprovalState::Approved));
    assert_eq!(seen(None), Some(ApprovalState::Approved));
    assert_eq!(seen(Some("client:1")), None, "another caller's question");
}

#[tokio::test(start_paused = true)]
async fn a_wish_that_nobody_answers_is_gone_after_a_day() {
    let wishes = wishes();
    wishes
        .put("1".into(), wishing(Wish::Enable(id("a")), "walk-in", "x"))
        .unwrap();
    tokio::time::advance(WAITS - Duration::from_secs(1)).await;
    wishes
        .put("2".into(), wishing(Wish::Enable(id("b")), "walk-in", "x"))
        .unwrap();
    let over = wishes.over().await;
    let ids: Vec<_> = over.iter().map(|(view, _)| view.id.as_str()).collect();
    assert_eq!(ids, ["1"]);
    assert!(matches!(wishes.take("1"), Some(Taken::Over(ApprovalState::Expired))));
    assert_eq!(wishes.waiting(None).len(), 1);
}

#[test]
fn what_a_caller_wished_goes_with_it() {
    let wishes = wishes();
    wishes
        .put("1".into(), wishing(Wish::Enable(id("a")), "client:1", "x"))
        .unwrap();
    wishes
        .put("2".into(), wishing(Wish::Enable(id("a")), "client:2", "x"))
        .unwrap();
    wishes.withdraw("client:1");
    let left: Vec<_> = wishes.waiting(None).into_iter().map(|view| view.id).collect();
    assert_eq!(left, ["2"]);
    assert_eq!(wishes.find("1", None).unwrap().state, ApprovalState::Expired);
}

#[test]
fn nothing_of_a_wish_is_printed_that_may_be_secret() {
    let entry = json!({"command": "SENTINEL"}).as_object().unwrap().clone();
    let printed = format!("{:?} {:?}", secret("SENTINEL"), Wish::Add(id("a"), entry));
    assert!(!printed.contains("SENTINEL"), "{printed}");
}
