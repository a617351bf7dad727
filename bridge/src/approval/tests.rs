mod leaves;

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    manners::MOST_CALLERS,
    queue::{ANSWER_WITHIN, KEPT, LONGER, MOST, MOST_CHANGES, MOST_OF_ONE, MOST_OF_PAIR},
    *,
};
use crate::{
    activity::Keep,
    caller::{ProgramKey, Script},
    snapshot::{AskedSubject, CallQuestion, ChangeQuestion, WhoKind, WhoView},
    traffic::Source,
};

fn approvals() -> Arc<Approvals> {
    let activity = Recorder::idle(Keep::default()).0;
    Arc::new(Approvals::new(
        Arc::new(EventLog::default()),
        activity,
        Patience::default(),
    ))
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
        shown_by: None,
    }
}

fn change(caller: &str) -> Asking {
    Asking {
        question: Question::Manage {
            who: who(""),
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
    assert_eq!(full("new", "d10"), Full::InAll);
    kept.pop();
    kept.push(approvals.ask(asking("new", "d10")).unwrap());
}

#[tokio::test]
async fn those_that_found_no_room_are_counted_with_the_questions_of_the_same_caller() {
    let approvals = approvals();
    let mut waiting: Vec<_> = (0..5).map(|n| approvals.ask(calling(1, n)).unwrap()).collect();
    let _other = approvals.ask(calling(2, 0)).unwrap();
    for n in 5..11 {
        assert!(matches!(
            approvals.ask(calling(1, n)).err(),
            Some(NotAsked::Full(Full::OfOne))
        ));
    }
    let refused = || -> Vec<u32> { approvals.waiting(None).iter().map(|view| view.refused).collect() };
    assert_eq!(refused(), [6, 6, 6, 6, 6, 0]);
    waiting.truncate(1);
    assert_eq!(refused(), [6, 0]);
    waiting.clear();
    let _again = approvals.ask(calling(1, 12)).unwrap();
    assert_eq!(refused(), [0, 0], "what is over is not told of the next one");
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

fn who(name: &str) -> WhoView {
    WhoView {
        kind: WhoKind::WalkIn,
        name: name.to_owned(),
        client: None,
        program: None,
    }
}

/// A call of one of the programs that can be told apart.
fn calling(program: u32, n: u32) -> Asking {
    let server = ConnectorId::parse("files").unwrap();
    let arguments = content(json!({"n": n})).unwrap();
    Asking {
        server: server.clone(),
        server_name: "Files".to_owned(),
        asker: Asker {
            label: "walk-in".to_owned(),
            source: Some(Source::Program(ProgramKey {
                path: "/agent".into(),
                script: Some(Script::File(format!("/{program}.py").into())),
            })),
            shown_by: None,
        },
        question: Question::Call {
            call: Box::new(CallQuestion {
                who: who("agent"),
                subject: AskedSubject::Prompt { name: "p".to_owned() },
                place: String::new(),
                is_local: true,
                arguments: Vec::new(),
                same: 0,
                writes: None,
            }),
        },
        matter: Some(Matter {
            server,
            launch: None,
            subject: Subject::Prompt("p".to_owned()),
            arguments: Arc::new(arguments),
        }),
    }
}

/// The same of a process whose program is code in its arguments: nothing lasting tells it from others of this file.
fn calling_inline(pid: u32, path: Option<&str>, n: u32) -> Asking {
    let mut asking = calling(0, n);
    asking.asker.source = Some(Source::Process {
        pid,
        path: path.map(Into::into),
    });
    asking
}

/// The person tells whoever asks this to stop.
fn stop(approvals: &Approvals, id: &str) {
    let open = approvals.open_call(id).unwrap();
    approvals.stop(&open.asker, &open.question.who);
}

fn mute(approvals: &Arc<Approvals>, program: u32) -> Option<Mute> {
    mute_of(approvals, calling(program, 99))
}

fn mute_of(approvals: &Arc<Approvals>, asking: Asking) -> Option<Mute> {
    match approvals.ask(asking).err() {
        None => None,
        Some(NotAsked::Muted(mute)) => Some(mute),
        Some(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_program_that_starts_itself_anew_has_no_more_questions_than_one() {
    for path in [Some("/usr/bin/python3"), None] {
        let approvals = approvals();
        let mut kept = Vec::new();
        for pid in 0..20 {
            match approvals.ask(calling_inline(pid, path, pid)) {
                Ok(waiting) => kept.push(waiting),
                Err(NotAsked::Full(Full::OfOne)) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        assert_eq!(kept.len(), MOST_OF_ONE, "{path:?}");
        kept.push(approvals.ask(calling(1, 1)).unwrap());
    }
}

#[tokio::test]
async fn nobodys_many_questions_keep_out_anothers_first() {
    let approvals = approvals();
    let mut kept = Vec::new();
    // Four scripts of one interpreter, each with as many as one may have.
    for program in 0..4 {
        for n in 0..5 {
            kept.push(approvals.ask(calling(program, n)).unwrap());
        }
    }
    assert_eq!(kept.len(), MOST);
    let first = approvals.ask(calling_inline(1, Some("/usr/bin/agent"), 1)).unwrap();
    let mut last = kept.pop().unwrap();
    assert_eq!(last.verdict().await, Verdict::MadeWay);
    assert_eq!(approvals.find(&last.id, None).unwrap().state, ApprovalState::Expired);
    assert_eq!(approvals.left(), (Vec::new(), Vec::new()), "the person missed nothing");
    let refused = |asking| match approvals.ask(asking).err() {
        Some(NotAsked::Full(full)) => full,
        other => panic!("{other:?}"),
    };
    let second = calling_inline(1, Some("/usr/bin/agent"), 2);
    assert_eq!(
        refused(second),
        Full::InAll,
        "it has one, and nobody is put off for more"
    );
    assert_eq!(refused(calling(3, 9)), Full::InAll);
    assert_eq!(approvals.waiting(None).len(), MOST);
    assert_eq!(approvals.find(&first.id, None).unwrap().state, ApprovalState::Waiting);
}

#[tokio::test(start_paused = true)]
async fn starting_anew_ends_neither_kind_of_mute() {
    let python = |pid, n| calling_inline(pid, Some("/usr/bin/python3"), n);
    let approvals = approvals();
    for pid in 0..2 {
        approvals.ask(python(pid, 1)).unwrap().verdict().await;
    }
    assert_eq!(mute_of(&approvals, python(3, 1)), Some(Mute::UntilBack));
    approvals.back();
    let (mut one, mut other) = (
        approvals.ask(python(4, 1)).unwrap(),
        approvals.ask(python(5, 1)).unwrap(),
    );
    stop(&approvals, &one.id);
    assert_eq!(
        (one.verdict().await, other.verdict().await),
        (Verdict::Denied, Verdict::Denied)
    );
    assert_eq!(mute_of(&approvals, python(6, 1)), Some(Mute::Stopped));
    let elsewhere = calling_inline(6, Some("/usr/bin/node"), 1);
    assert_eq!(mute_of(&approvals, elsewhere), None, "another file is another program");
}

#[tokio::test(start_paused = true)]
async fn no_number_of_newcomers_makes_it_forget_who_was_told_to_stop() {
    let approvals = approvals();
    let stop_program = |program| {
        let waiting = approvals.ask(calling(program, 1)).unwrap();
        stop(&approvals, &waiting.id);
    };
    // Many who leave their questions unanswered at once, so that all of it takes minutes.
    let unanswered = async |programs: std::ops::Range<u32>| {
        for first in programs.step_by(MOST) {
            let mut asked: Vec<_> = (0..20).map(|n| approvals.ask(calling(first + n, 1)).unwrap()).collect();
            for waiting in &mut asked {
                assert_eq!(waiting.verdict().await, Verdict::Expired);
            }
        }
    };
    stop_program(0);
    unanswered(1_000..1_080).await;
    assert_eq!(mute(&approvals, 0), Some(Mute::Stopped));
    approvals.back();
    for program in 1..u32::try_from(MOST_CALLERS).unwrap() {
        stop_program(program);
    }
    unanswered(2_000..2_020).await;
    assert_eq!(approvals.left().1.len(), MOST_CALLERS);
    assert_eq!(mute(&approvals, 0), Some(Mute::Stopped));
}

#[tokio::test(start_paused = true)]
async fn after_two_unanswered_questions_a_caller_is_muted_until_the_person_is_back() {
    let approvals = approvals();
    for n in 0..2 {
        assert_eq!(mute(&approvals, 1), None, "{n}");
        let verdict = approvals.ask(calling(1, n)).unwrap().verdict().await;
        assert_eq!(verdict, Verdict::Expired);
    }
    assert_eq!(mute(&approvals, 1), Some(Mute::UntilBack));
    assert_eq!(mute(&approvals, 2), None, "another program is another caller");
    let (missed, muted) = approvals.left();
    assert_eq!((missed.len(), muted.len(), muted[0].until), (2, 1, None));
    approvals.back();
    assert_eq!(mute(&approvals, 1), None);
    assert_eq!(approvals.left().1, []);
}

#[tokio::test(start_paused = true)]
async fn a_missed_call_may_go_once_next_time_and_only_that_very_call() {
    let approvals = approvals();
    for n in 0..2 {
        approvals.ask(calling(1, n)).unwrap().verdict().await;
    }
    let (missed, _) = approvals.left();
    assert!(approvals.allow_next_time(&missed[0].id));
    assert!(
        !approvals.allow_next_time(&missed[0].id),
        "it is no missed one any more"
    );
    let leave = |pid, n| {
        let asking = calling(pid, n);
        approvals.take_leave(&asking.asker, &asking.matter.unwrap())
    };
    assert!(!leave(1, 0), "other arguments");
    assert!(!leave(2, 1), "another caller");
    assert!(leave(1, 1));
    assert!(!leave(1, 1), "once");
    assert!(approvals.allow_next_time(&missed[1].id));
    sleep(Duration::from_secs(600)).await;
    assert!(!leave(1, 0), "ten minutes are over");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_told_to_stop_may_not_ask_for_an_hour() {
    let approvals = approvals();
    let mut first = approvals.ask(calling(1, 1)).unwrap();
    let mut second = approvals.ask(calling(1, 2)).unwrap();
    let _other = approvals.ask(calling(2, 1)).unwrap();
    let id = approvals.waiting(None)[0].id.clone();
    stop(&approvals, &id);
    assert_eq!(
        (first.verdict().await, second.verdict().await),
        (Verdict::Denied, Verdict::Denied)
    );
    assert_eq!(mute(&approvals, 1), Some(Mute::Stopped));
    approvals.back();
    assert_eq!(mute(&approvals, 1), Some(Mute::Stopped), "being back is no leave");
    assert_eq!(approvals.waiting(None).len(), 1);
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(mute(&approvals, 1), None);
    let id = approvals.waiting(None).last().unwrap().id.clone();
    stop(&approvals, &id);
    let (_, muted) = approvals.left();
    assert!(approvals.let_ask(&muted[0].id));
    assert_eq!(mute(&approvals, 2), None);
}

#[tokio::test]
async fn a_yes_to_a_call_covers_the_same_ones_only_where_that_is_said() {
    let approvals = approvals();
    let mut waiting: Vec<_> = (0..3).map(|_| approvals.ask(calling(1, 1)).unwrap()).collect();
    let mut other = approvals.ask(calling(1, 2)).unwrap();
    let mut stranger = approvals.ask(calling(2, 1)).unwrap();
    let first = approvals.waiting(None).remove(0);
    let Question::Call { call } = &first.question else {
        panic!("{first:?}")
    };
    assert_eq!(call.same, 2);
    approvals.answer(&first.id, ApprovalAnswer::Allow(Reach::Once)).unwrap();
    assert_eq!(waiting.remove(0).verdict().await, Verdict::Allowed(PersonAnswer::Once));
    assert_eq!(approvals.waiting(None).len(), 4);
    let second = approvals.waiting(None).remove(0);
    approvals
        .answer(&second.id, ApprovalAnswer::Allow(Reach::AlsoSame))
        .unwrap();
    for mut one in waiting {
        assert_eq!(one.verdict().await, Verdict::Allowed(PersonAnswer::Once));
    }
    for left in approvals.waiting(None) {
        approvals.answer(&left.id, ApprovalAnswer::Deny).unwrap();
    }
    assert_eq!(
        (other.verdict().await, stranger.verdict().await),
        (Verdict::Denied, Verdict::Denied)
    );
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
