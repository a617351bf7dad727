//! Whose a yes is, and for what.

use super::*;

/// The same where this is what its connector runs.
fn calling_of_launch(number: u8) -> Asking {
    let mut asking = calling(1, 1);
    let launch = format!("{number:02x}").repeat(32).parse().unwrap();
    asking.matter = asking.matter.map(|matter| Matter {
        launch: Some(launch),
        ..matter
    });
    asking
}

#[tokio::test(start_paused = true)]
async fn what_may_go_next_time_goes_to_the_launch_that_was_shown() {
    let approvals = approvals();
    approvals.ask(calling_of_launch(1)).unwrap().verdict().await;
    let missed = approvals.left().0.remove(0).id;
    assert!(approvals.allow_next_time(&missed));
    let leave = |number| {
        let asking = calling_of_launch(number);
        approvals.take_leave(&asking.asker, &asking.matter.unwrap())
    };
    assert_eq!((leave(2), leave(1)), (false, true));
}

#[tokio::test(start_paused = true)]
async fn what_may_go_next_time_may_not_once_its_program_was_told_to_stop() {
    let approvals = approvals();
    let leave = |program| {
        let asking = calling(program, 0);
        approvals.take_leave(&asking.asker, &asking.matter.unwrap())
    };
    for program in [1, 2] {
        approvals.ask(calling(program, 0)).unwrap().verdict().await;
        let missed = approvals.left().0.remove(0).id;
        assert!(approvals.allow_next_time(&missed));
    }
    let waiting = approvals.ask(calling(1, 1)).unwrap();
    stop(&approvals, &waiting.id);
    assert_eq!((leave(1), leave(2)), (false, true));
}

/// The same call with the token of one client, shown by one of the programs that can be told apart.
fn calling_with_token(program: u32, n: u32) -> Asking {
    let mut asking = calling(program, n);
    asking.asker = Asker {
        label: "client:1".to_owned(),
        source: Some(Source::Client("1".to_owned())),
        shown_by: asking.asker.source,
    };
    asking
}

#[tokio::test(start_paused = true)]
async fn a_yes_to_what_one_program_asks_is_none_to_another_that_shows_its_token() {
    let approvals = approvals();
    let mut own = approvals.ask(calling_with_token(1, 1)).unwrap();
    let mut thief = approvals.ask(calling_with_token(2, 1)).unwrap();
    let first = approvals.waiting(None).remove(0);
    let Question::Call { call } = &first.question else {
        panic!("{first:?}")
    };
    assert_eq!(call.same, 0);
    approvals
        .answer(&first.id, ApprovalAnswer::Allow(Reach::AlsoSame))
        .unwrap();
    assert_eq!(own.verdict().await, Verdict::Allowed(PersonAnswer::Once));
    assert_eq!(thief.verdict().await, Verdict::Expired, "it was not answered");
    let missed = approvals.left().0.remove(0).id;
    assert!(approvals.allow_next_time(&missed));
    let leave = |program| {
        let asking = calling_with_token(program, 1);
        approvals.take_leave(&asking.asker, &asking.matter.unwrap())
    };
    assert_eq!((leave(1), leave(2)), (false, true));
}

#[tokio::test]
async fn all_programs_that_show_one_token_share_its_limits() {
    let approvals = approvals();
    let kept: Vec<_> = (0..10)
        .filter_map(|n| approvals.ask(calling_with_token(n, n)).ok())
        .collect();
    assert_eq!(kept.len(), MOST_OF_ONE);
}
