use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    queue::{ANSWER_WITHIN, KEPT, LONGER, MOST, MOST_CHANGES, MOST_OF_ONE, MOST_OF_PAIR},
    *,
};
use crate::{
    activity::Keep,
    snapshot::{ChangeQuestion, WhoKind, WhoView},
};

fn approvals() -> Arc<Approvals> {
    let activity = Recorder::idle(Keep::default()).0;
    Arc::new(Approvals::new(Arc::new(EventLog::default()), activity))
}

fn asking(server: &str, caller: &str) -> Asking {
    let params = json!({
        "message": "Which one?",
        "requestedSchema": {
            "type": "object",
            "properties": {"n": {"type": "integer", "default": 3}},
            "required": ["n"],
        },
    });
    Asking {
        server: ConnectorId::parse(server).unwrap(),
        server_name: server.to_owned(),
        asker: asker(caller),
        question: Question::Elicitation {
            asks: elicitation::read(&params).unwrap(),
        },
        matter: None,
    }
}

fn asker(label: &str) -> Asker {
    Asker {
        label: label.to_owned(),
        source: None,
    }
}

fn change(caller: &str) -> Asking {
    let who = WhoView {
        kind: WhoKind::WalkIn,
        name: String::new(),
        client: None,
        program: None,
    };
    Asking {
        question: Question::Manage {
            who,
            change: Box::new(ChangeQuestion::Enable),
        },
        ..asking("files", caller)
    }
}

fn told(approvals: &Approvals) -> Vec<&'static str> {
    let (events, _) = approvals.events.subscribe(Some(0));
    events.iter().map(|event| event.event.name()).collect()
}

fn content(value: Value) -> Option<Map<String, Value>> {
    value.as_object().cloned()
}

#[tokio::test]
async fn an_answer_reaches_whoever_asked_once_and_a_second_one_finds_it_answered() {
    let approvals = approvals();
    let mut waiting = approvals.ask(asking("files", "walk-in")).unwrap();
    let id = approvals.waiting(None)[0].id.clone();
    assert_eq!(id.len(), 32);
    let yes = || ApprovalAnswer::Approve(content(json!({"n": 7})));
    let view = approvals.answer(&id, yes()).unwrap();
    assert_eq!(view.state, ApprovalState::Approved);
    assert_eq!(waiting.verdict().await, Verdict::Approved(content(json!({"n": 7}))));
    for answer in [yes(), ApprovalAnswer::Deny, ApprovalAnswer::Cancel] {
        assert_eq!(
            approvals.answer(&id, answer).unwrap_err(),
            NotTaken::Unanswerable(Unanswerable::Over(ApprovalState::Approved))
        );
    }
    drop(waiting);
    assert_eq!(approvals.find(&id, None).unwrap().state, ApprovalState::Approved);
    assert_eq!(told(&approvals), ["approval_requested", "approval_resolved"]);
}

#[tokio::test]
async fn a_yes_without_values_sends_what_the_form_proposes() {
    let approvals = approvals();
    let mut waiting = approvals.ask(asking("files", "walk-in")).unwrap();
    let id = approvals.waiting(None)[0].id.clone();
    approvals.answer(&id, ApprovalAnswer::Approve(None)).unwrap();
    assert_eq!(waiting.verdict().await, Verdict::Approved(content(json!({"n": 3}))));
}

#[tokio::test]
async fn values_that_do_not_fit_leave_the_question_waiting() {
    let approvals = approvals();
    let mut waiting = approvals.ask(asking("files", "walk-in")).unwrap();
    let id = approvals.waiting(None)[0].id.clone();
    let wrong = approvals.answer(&id, ApprovalAnswer::Approve(content(json!({"n": "x"}))));
    let NotTaken::Wrong(why) = wrong.unwrap_err() else {
        panic!("it was taken")
    };
    assert_eq!(why.to_string(), "The field \"n\" has to be a whole number.");
    assert_eq!(approvals.waiting(None).len(), 1);
    approvals.answer(&id, ApprovalAnswer::Deny).unwrap();
    assert_eq!(waiting.verdict().await, Verdict::Denied);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_it_is_no_after_two_minutes() {
    let approvals = approvals();
    let begun = Instant::now();
    let mut waiting = approvals.ask(asking("files", "walk-in")).unwrap();
    let view = approvals.waiting(None).remove(0);
    assert_eq!(view.expires_at - view.asked_at, 120_000);
    assert_eq!(waiting.verdict().await, Verdict::Expired);
    assert_eq!(begun.elapsed().as_secs(), ANSWER_WITHIN.as_secs());
    assert_eq!(approvals.find(&view.id, None).unwrap().state, ApprovalState::Expired);
    assert_eq!(
        approvals.answer(&view.id, ApprovalAnswer::Approve(None)).unwrap_err(),
        NotTaken::Unanswerable(Unanswerable::Over(ApprovalState::Expired))
    );
}

#[tokio::test(start_paused = true)]
async fn i_need_longer_makes_it_ten_minutes_however_often_it_is_said() {
    let approvals = approvals();
    let begun = Instant::now();
    let mut waiting = approvals.ask(asking("files", "walk-in")).unwrap();
    let id = approvals.waiting(None)[0].id.clone();
    let verdict = tokio::spawn(async move { waiting.verdict().await });
    for _ in 0..3 {
        sleep(Duration::from_secs(100)).await;
        let view = approvals.extend(&id).unwrap();
        assert_eq!(view.expires_at - view.asked_at, 600_000);
    }
    assert_eq!(verdict.await.unwrap(), Verdict::Expired);
    assert_eq!(begun.elapsed().as_secs(), LONGER.as_secs());
    assert!(approvals.extend(&id).is_err());
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_any_more_is_withdrawn() {
    let approvals = approvals();
    let waiting = approvals.ask(asking("files", "walk-in")).unwrap();
    let id = approvals.waiting(None)[0].id.clone();
    drop(waiting);
    assert!(approvals.waiting(None).is_empty());
    assert_eq!(approvals.find(&id, None).unwrap().state, ApprovalState::Expired);
    assert_eq!(told(&approvals), ["approval_requested", "approval_resolved"]);
}

#[tokio::test]
async fn so_many_wait_for_one_caller_of_one_connector_and_in_all() {
    let approvals = approvals();
    let mut kept = Vec::new();
    for n in 0..MOST_OF_ONE {
        kept.push(approvals.ask(asking(&format!("s{n}"), "one")).unwrap());
    }
    let full = |server: &str, caller: &str| match approvals.ask(asking(server, caller)).err() {
        Some(NotAsked::Full(full)) => full,
        other => panic!("{other:?}"),
    };
    assert_eq!(full("other", "one"), Full::OfOne);
    for n in 0..MOST_OF_ONE {
        kept.push(approvals.ask(asking("busy", &format!("c{n}"))).unwrap());
    }
    assert_eq!(full("busy", "another"), Full::OfOne);
    for n in kept.len()..MOST {
        kept.push(approvals.ask(asking(&format!("t{n}"), &format!("d{n}"))).unwrap());
    }
    assert_eq!(full("new", "new"), Full::InAll);
    kept.pop();
    kept.push(approvals.ask(asking("new", "new")).unwrap());
}

#[tokio::test]
async fn no_connector_uses_up_what_a_caller_may_be_asked() {
    let approvals = approvals();
    let mut kept = Vec::new();
    for _ in 0..MOST_OF_PAIR {
        kept.push(approvals.ask(asking("greedy", "one")).unwrap());
    }
    let more = approvals.ask(asking("greedy", "one")).err();
    assert!(matches!(more, Some(NotAsked::Full(Full::OfPair))), "{more:?}");
    kept.push(approvals.ask(asking("calm", "one")).unwrap());
    kept.push(approvals.ask(asking("greedy", "another")).unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_change_waits_for_a_day_beside_the_questions_about_calls() {
    let approvals = approvals();
    let mut changes = Vec::new();
    for _ in 0..MOST_CHANGES {
        changes.push(approvals.ask(change("one")).unwrap());
    }
    let more = approvals.ask(change("another")).err();
    assert!(matches!(more, Some(NotAsked::Full(Full::Changes))), "{more:?}");
    let call = approvals.ask(asking("files", "one")).unwrap();
    drop(call);
    let begun = Instant::now();
    assert_eq!(changes[0].verdict().await, Verdict::Expired);
    assert_eq!(begun.elapsed(), Duration::from_secs(24 * 60 * 60));
}

#[tokio::test]
async fn a_caller_sees_its_own_and_nobody_elses() {
    let approvals = approvals();
    let _mine = approvals.ask(asking("a", "mine")).unwrap();
    let _other = approvals.ask(asking("b", "other")).unwrap();
    let seen = approvals.waiting(Some("mine"));
    assert_eq!((seen.len(), seen[0].server.as_str()), (1, "a"));
    let all = approvals.waiting(None);
    assert_eq!(all.len(), 2);
    assert!(approvals.find(&all[1].id, Some("mine")).is_none());
    assert!(approvals.find(&all[0].id, Some("mine")).is_some());
}

#[tokio::test]
async fn outcomes_are_kept_for_a_while_and_not_without_end() {
    let approvals = approvals();
    let mut ids = Vec::new();
    for _ in 0..=KEPT {
        let waiting = approvals.ask(asking("a", "c")).unwrap();
        ids.push(approvals.waiting(None)[0].id.clone());
        drop(waiting);
    }
    assert!(approvals.find(&ids[0], None).is_none());
    assert!(ids[1..].iter().all(|id| approvals.find(id, None).is_some()));
    let mut different = ids.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), ids.len());
}

#[tokio::test]
async fn a_page_takes_no_values() {
    let approvals = approvals();
    let mut page = asking("a", "c");
    let params = json!({"mode": "url", "message": "m", "url": "https://example.com/x"});
    let asks = elicitation::read(&params).unwrap();
    assert!(matches!(asks, Elicitation::Url { .. }));
    page.question = Question::Elicitation { asks };
    let mut waiting = approvals.ask(page).unwrap();
    let id = approvals.waiting(None)[0].id.clone();
    let with_values = approvals.answer(&id, ApprovalAnswer::Approve(content(json!({"a": 1}))));
    assert!(matches!(with_values, Err(NotTaken::Wrong(_))));
    approvals.answer(&id, ApprovalAnswer::Approve(None)).unwrap();
    assert_eq!(waiting.verdict().await, Verdict::Approved(None));
}
