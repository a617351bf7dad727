use super::*;

const CODE: &str = "042917";

fn ask(pairing: &mut Pairing, id: &str, now: Instant) -> Result<(), Closed> {
    ask_as(pairing, id, "/usr/bin/claude", now)
}

fn ask_as(pairing: &mut Pairing, id: &str, path: &str, now: Instant) -> Result<(), Closed> {
    let by = Applicant {
        name: "Claude Code".into(),
        program: None,
        group: Source::File(path.into()),
    };
    pairing.ask(id.into(), by, CODE.into(), (now, 0))
}

fn opened(now: Instant) -> Pairing {
    let mut pairing = Pairing::default();
    pairing.open(now, 0);
    pairing
}

#[tokio::test]
async fn nobody_is_paired_before_the_person_opens_it_nor_two_minutes_after() {
    let now = Instant::now();
    let mut pairing = Pairing::default();
    assert!(!pairing.is_of_use(now));
    assert_eq!(ask(&mut pairing, "1", now), Err(Closed::NotOpen));
    pairing.open(now, 0);
    assert!(pairing.is_of_use(now));
    let late = now + OPEN_FOR;
    assert_eq!(ask(&mut pairing, "1", late), Err(Closed::NotOpen));
    assert!(!pairing.is_of_use(late) && pairing.view(late).is_none());
}

#[tokio::test]
async fn the_right_code_gives_the_token_once() {
    let now = Instant::now();
    let mut pairing = opened(now);
    ask(&mut pairing, "1", now).unwrap();
    assert!(matches!(pairing.poll("1", now), Polled::Waiting));
    assert!(matches!(pairing.poll("2", now), Polled::Unknown));
    let let_in = pairing.check("1", " 042 917 ", now).unwrap();
    assert_eq!(let_in.name, "Claude Code");
    pairing.grant("1", "token".into(), now);
    assert!(pairing.view(now).is_none());
    assert!(pairing.is_of_use(now), "the token waits to be taken");
    match pairing.poll("1", now) {
        Polled::Paired(token) => assert_eq!(token.expose_secret(), "token"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(pairing.poll("1", now), Polled::Taken));
    assert!(!pairing.is_of_use(now));
}

#[tokio::test]
async fn three_wrong_codes_end_it_also_for_the_right_one() {
    let now = Instant::now();
    let mut pairing = opened(now);
    ask(&mut pairing, "1", now).unwrap();
    for (code, left) in [
        ("042918", NotThat::Wrong(2)),
        ("", NotThat::Wrong(1)),
        ("0429170", NotThat::Last),
    ] {
        assert_eq!(pairing.check("1", code, now), Err(left), "{code}");
    }
    assert_eq!(pairing.check("1", CODE, now), Err(NotThat::Unknown));
    assert!(matches!(pairing.poll("1", now), Polled::Denied));
}

#[tokio::test]
async fn one_program_is_paired_at_a_time_and_a_second_one_needs_another_click() {
    let now = Instant::now();
    let mut pairing = opened(now);
    ask(&mut pairing, "1", now).unwrap();
    assert_eq!(ask(&mut pairing, "2", now), Err(Closed::Busy));
    pairing.check("1", CODE, now).unwrap();
    pairing.grant("1", "token".into(), now);
    assert_eq!(ask(&mut pairing, "2", now), Err(Closed::NotOpen));
    pairing.open(now, 0);
    ask(&mut pairing, "2", now).unwrap();
}

#[tokio::test]
async fn whoever_was_turned_away_does_not_take_the_place_again_and_others_may_in_the_time_that_is_left() {
    let now = Instant::now();
    let turns: [fn(&mut Pairing, Instant); 2] = [
        |pairing, now| assert!(pairing.turn_away("1", now).is_some()),
        |pairing, now| {
            for _ in 0..MOST_WRONG {
                pairing.check("1", "x", now).unwrap_err();
            }
        },
    ];
    for turn_away in turns {
        let mut pairing = opened(now);
        ask_as(&mut pairing, "1", "/usr/bin/greedy", now).unwrap();
        turn_away(&mut pairing, now);
        assert!(matches!(pairing.poll("1", now), Polled::Denied));
        let again = ask_as(&mut pairing, "2", "/usr/bin/greedy", now);
        assert_eq!(again, Err(Closed::TurnedAway));
        let view = pairing.view(now).unwrap();
        assert!(view.request.is_none() && view.open_until == 120_000, "{view:?}");
        let late = now + OPEN_FOR - Duration::from_secs(1);
        ask_as(&mut pairing, "3", "/usr/bin/claude", late).unwrap();
        pairing.check("3", CODE, late).unwrap();
        pairing.open(late, 0);
        ask_as(&mut pairing, "4", "/usr/bin/greedy", late).unwrap();
    }
    let mut pairing = opened(now);
    ask(&mut pairing, "1", now).unwrap();
    assert_eq!(pairing.turn_away("2", now), None, "another one");
    assert!(pairing.turn_away("1", now).is_some());
    assert_eq!(
        ask_as(&mut pairing, "2", "/usr/bin/other", now + OPEN_FOR),
        Err(Closed::NotOpen)
    );
}

#[tokio::test]
async fn a_code_that_nobody_types_and_a_token_that_nobody_takes_are_gone_after_two_minutes() {
    let now = Instant::now();
    let mut pairing = opened(now);
    let asked = now + OPEN_FOR - Duration::from_secs(1);
    ask(&mut pairing, "1", asked).unwrap();
    assert!(
        matches!(pairing.poll("1", now + OPEN_FOR), Polled::Waiting),
        "the person still types"
    );
    let late = asked + OPEN_FOR;
    assert_eq!(pairing.check("1", CODE, late), Err(NotThat::Unknown));
    assert!(matches!(pairing.poll("1", late), Polled::Expired));

    let mut pairing = opened(now);
    ask(&mut pairing, "1", now).unwrap();
    pairing.grant("1", "token".into(), now);
    assert!(matches!(pairing.poll("1", now + OPEN_FOR), Polled::Expired));
}

#[tokio::test]
async fn closing_says_no_and_the_code_is_in_no_view() {
    let now = Instant::now();
    let mut pairing = opened(now);
    ask(&mut pairing, "1", now).unwrap();
    let view = serde_json::to_string(&pairing.view(now)).unwrap();
    assert!(view.contains("Claude Code") && !view.contains(CODE), "{view}");
    pairing.close();
    assert!(matches!(pairing.poll("1", now), Polled::Denied));
    assert!(pairing.view(now).is_none());
}
