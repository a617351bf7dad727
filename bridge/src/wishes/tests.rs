use std::{sync::Arc, time::Duration};

use serde_json::json;

use super::*;
use crate::{
    caller::{ProgramKey, Script},
    snapshot::{ChangeQuestion, WhoKind, WhoView},
    traffic::Source,
};

fn id(text: &str) -> ConnectorId {
    ConnectorId::parse(text).unwrap()
}

fn wishing(wish: Wish, caller: &str, program: &str) -> Wishing {
    Wishing {
        wish,
        asker: Asker {
            label: caller.into(),
            source: Some(Source::File(program.into())),
            shown_by: None,
        },
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
            wishes.settle("3", ApprovalState::Denied).unwrap();
        }
    }
    let mut other_entry = entry();
    let wishes = wishes();
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
        if number == MOST_OF_ONE {
            wishes.settle("0", ApprovalState::Denied).unwrap();
            wishes.settle("1", ApprovalState::Denied).unwrap();
        }
        let own = number.to_string();
        let put = wishes.put(own.clone(), wishing(wish, "walk-in", "x")).unwrap();
        assert_eq!(put.id, own, "another wish is another question");
    }
}

/// Puts a wish of its own of this program.
fn put(wishes: &Wishes, number: usize, source: Source) -> Result<Placed, Full> {
    let wish = Wish::Enable(id(&format!("c{number}")));
    let mut wishing = wishing(wish, "walk-in", "x");
    wishing.asker.source = Some(source);
    wishes.put(number.to_string(), wishing)
}

fn script(number: usize) -> Source {
    Source::Program(ProgramKey {
        path: "/usr/bin/python3".into(),
        script: Some(Script::File(format!("/{number}.py").into())),
    })
}

#[test]
fn five_of_one_program_wait_however_often_it_starts_itself_anew() {
    let wishes = wishes();
    let inline = |pid| Source::Process {
        pid,
        path: Some("/usr/bin/python3".into()),
    };
    for number in 0..MOST_OF_ONE {
        put(&wishes, number, inline(u32::try_from(number).unwrap())).unwrap();
    }
    assert_eq!(put(&wishes, MOST_OF_ONE, inline(99)), Err(Full::OfOne));
    put(&wishes, MOST_OF_ONE, script(0)).unwrap();
    wishes.settle("0", ApprovalState::Denied).unwrap();
    put(&wishes, MOST, inline(99)).unwrap();
}

#[test]
fn twenty_wait_and_the_latest_of_whoever_has_most_makes_way_for_somebodys_first() {
    let wishes = wishes();
    for number in 0..MOST {
        put(&wishes, number, script(number / MOST_OF_ONE)).unwrap();
    }
    assert!(
        matches!(wishes.take("19"), Some(Taken::Wish { .. })),
        "this one is being granted"
    );
    let placed = put(&wishes, 20, Source::File("/usr/bin/agent".into())).unwrap();
    let gone = placed.made_way.unwrap();
    assert_eq!((gone.id.as_str(), gone.state), ("14", ApprovalState::Expired));
    assert!(matches!(wishes.take("14"), Some(Taken::Over(ApprovalState::Expired))));
    assert_eq!(
        put(&wishes, 21, Source::File("/usr/bin/agent".into())),
        Err(Full::InAll)
    );
    assert_eq!(wishes.waiting(None).len(), MOST);
}

#[test]
fn whoever_is_told_to_stop_has_no_wish_left() {
    let wishes = wishes();
    put(&wishes, 1, script(1)).unwrap();
    put(&wishes, 2, script(2)).unwrap();
    put(&wishes, 3, script(1)).unwrap();
    let group = wishes.asker("1").unwrap().group();
    let denied: Vec<_> = wishes
        .deny(&group)
        .into_iter()
        .map(|view| (view.id, view.state))
        .collect();
    let no = |id: &str| (id.to_owned(), ApprovalState::Denied);
    assert_eq!(denied, [no("1"), no("3")]);
    assert_eq!(wishes.waiting(None).len(), 1);
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
    wishes
        .put("3".into(), wishing(Wish::Enable(id("b")), "client:1", "x"))
        .unwrap();
    let left = || -> Vec<_> { wishes.waiting(None).into_iter().map(|view| view.id).collect() };
    wishes.withdraw("client:1", |wish| *wish.server() == id("a"));
    assert_eq!(left(), ["2", "3"]);
    wishes.withdraw("client:1", |_| true);
    assert_eq!(left(), ["2"]);
    assert_eq!(wishes.find("1", None).unwrap().state, ApprovalState::Expired);
}

#[test]
fn nothing_of_a_wish_is_printed_that_may_be_secret() {
    let entry = json!({"command": "SENTINEL"}).as_object().unwrap().clone();
    let printed = format!("{:?} {:?}", secret("SENTINEL"), Wish::Add(id("a"), entry));
    assert!(!printed.contains("SENTINEL"), "{printed}");
}
