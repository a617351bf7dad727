use futures::FutureExt as _;
use tokio::time::Instant;

use super::*;

async fn fill(traffic: &Traffic, source: &Source, count: usize) -> Vec<Place> {
    let mut places = Vec::new();
    for _ in 0..count {
        places.push(traffic.enter(source.clone()).now_or_never().unwrap().unwrap());
    }
    places
}

fn client(id: &str) -> Source {
    Source::Client(id.to_owned())
}

#[tokio::test(start_paused = true)]
async fn the_sixty_fifth_call_of_one_caller_waits_ten_seconds_and_is_told_to_come_back() {
    let traffic = Traffic::default();
    let _places = fill(&traffic, &client("a"), MOST_OF_ONE).await;
    let begin = Instant::now();
    let refusal = traffic.enter(client("a")).await.unwrap_err();
    assert_eq!(begin.elapsed(), PLACE_WITHIN);
    assert_eq!(
        (refusal.code, refusal.retry_after),
        (Code::RateLimited, Some(TRY_AGAIN))
    );
    fill(&traffic, &client("b"), 1).await;
}

#[tokio::test(start_paused = true)]
async fn one_caller_s_thousand_calls_do_not_hold_up_another_s_one() {
    let traffic = Traffic::default();
    let mut places = Vec::new();
    for name in ["a", "b", "c", "d"] {
        places.extend(fill(&traffic, &client(name), MOST_OF_ONE).await);
    }
    let mut many: Vec<_> = (0..1000).map(|_| Box::pin(traffic.enter(client("a")))).collect();
    let refused = many
        .iter_mut()
        .filter_map(|call| call.now_or_never())
        .filter(Result::is_err)
        .count();
    assert_eq!(refused, 1000 - QUEUED_CALLS);
    let mut one = Box::pin(traffic.enter(client("e")));
    assert!((&mut one).now_or_never().is_none(), "all places are taken");
    drop(places.pop());
    assert!(one.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_the_person_does_not_count_and_its_yes_is_never_refused() {
    let traffic = Traffic::default();
    let places = fill(&traffic, &client("a"), MOST_OF_ONE).await;
    places[0].pause();
    places[0].pause();
    let another = fill(&traffic, &client("a"), 1).await;
    assert!(traffic.enter(client("a")).now_or_never().is_none());
    places[0].resume();
    places[0].resume();
    assert_eq!(traffic.lock().book.running_of(&client("a")), MOST_OF_ONE + 1);
    drop(another);
    assert!(traffic.enter(client("a")).now_or_never().is_none());
    drop(places);
    assert_eq!(traffic.lock().book.running_of(&client("a")), 0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_while_it_waits_leaves_nothing_behind() {
    let traffic = Traffic::default();
    let mut places = fill(&traffic, &client("a"), MOST_OF_ONE).await;
    let mut gone = Box::pin(traffic.enter(client("a")));
    let mut told = Box::pin(traffic.enter(client("a")));
    assert!((&mut gone).now_or_never().is_none() && (&mut told).now_or_never().is_none());
    drop(gone);
    // Its turn comes, and it goes away before it hears so.
    drop(places.pop());
    drop(told);
    places.extend(fill(&traffic, &client("a"), 1).await);
    drop(places);
    let state = traffic.lock();
    assert_eq!((state.book.running_of(&client("a")), state.waiting.len()), (0, 0));
}

#[tokio::test]
async fn walk_ins_share_one_count_until_many_of_them_run() {
    let traffic = Traffic::default();
    let nobody = ProgramCell::unknown();
    assert_eq!(traffic.walk_in(&nobody).await, Source::Unresolved);
    let _places = fill(&traffic, &Source::Unresolved, MOST_UNRESOLVED).await;
    assert_eq!(traffic.walk_in(&nobody).await, Source::Unknown);
    assert_eq!(nobody.known(), Some(None), "it was looked for");
}
