use std::time::{Duration, Instant};

use super::*;
use crate::{
    event::Event,
    snapshot::{
        ApprovalState, ApprovalView, AuthState, AuthView, ConfigView, ConnectionView, Elicitation, KeptIn,
        KeychainState, KeychainView, Notice, Question, Readiness, Reviews, SignInOutcome, TransportKind, TrustView,
        needs,
    },
};

#[test]
fn the_menu_shows_state_what_needs_the_person_and_every_toggle() {
    let mut off = view("github", "GitHub", Status::Disabled);
    off.enabled = false;
    let shown = menu(&snapshot(vec![
        view("files", "Files", Status::Connected),
        view("linear", "Linear", Status::Sleeping),
        view("notion", "Notion", Status::NeedsSignIn),
        off,
    ]));
    assert_eq!(
        shown,
        Menu {
            icon: Icon::Attention,
            items: vec![
                line("1 connected · 1 needs you"),
                button(
                    "Notion: Sign-in needed…",
                    Click::Open(Route::Connector("notion".into()))
                ),
                Item::Separator,
                toggle("files", "Files · Connected", true),
                toggle("linear", "Linear · Ready", true),
                toggle("notion", "Notion · Sign-in needed", true),
                toggle("github", "GitHub · Off", false),
                button("Add connector…", Click::Open(Route::AddConnector)),
                Item::Separator,
                button("Open Neuron Connect", Click::Open(Route::Connectors)),
                button("Pause everything", Click::PauseAll(true)),
                button("Quit", Click::Quit),
            ],
        }
    );
}

#[test]
fn without_connectors_the_menu_still_offers_to_add_open_and_quit() {
    assert_eq!(
        menu(&snapshot(vec![])),
        Menu {
            icon: Icon::Normal,
            items: vec![
                line("No connectors yet"),
                Item::Separator,
                button("Add connector…", Click::Open(Route::AddConnector)),
                Item::Separator,
                button("Open Neuron Connect", Click::Open(Route::Connectors)),
                button("Pause everything", Click::PauseAll(true)),
                button("Quit", Click::Quit),
            ],
        }
    );
}

#[test]
fn a_notification_names_the_connector_and_the_outcome_and_nothing_that_a_server_wrote() {
    let snapshot = snapshot(vec![view("notion", "Not\u{202e}ion", Status::NeedsSignIn)]);
    let told = |server: Option<&str>, outcome| {
        let event = Event::SignInFinished {
            server: server.map(|id| ConnectorId::parse(id).unwrap()),
            outcome,
            message: "<a href=x>code=SENTINEL</a>".into(),
        };
        banner(&event, &snapshot)
    };
    for (outcome, text) in [
        (SignInOutcome::SignedIn, "You are signed in to Notion."),
        (SignInOutcome::Expired, "The sign-in to Notion took too long."),
        (SignInOutcome::Denied, "The sign-in to Notion was turned down."),
        (SignInOutcome::Failed, "The sign-in to Notion did not work."),
    ] {
        let route = Route::Connector("notion".into());
        let text = text.to_owned();
        assert_eq!(told(Some("notion"), outcome), Some(Banner { text, route }));
    }
    assert_eq!(told(Some("notion"), SignInOutcome::Cancelled), None);
    assert_eq!(told(None, SignInOutcome::InvalidState), None);
}

#[test]
fn a_notification_of_a_question_leads_to_it_and_holds_no_word_of_it() {
    let event = Event::ApprovalRequested {
        approval: "x".into(),
        server: ConnectorId::parse("gone").unwrap(),
        caller: "owner".into(),
    };
    let told = banner(&event, &snapshot(Vec::new()));
    let text = "gone asks you something.".to_owned();
    let route = Route::Approvals;
    assert_eq!(told, Some(Banner { text, route }));
    assert_eq!(banner(&Event::ToolsChanged { tools: 1 }, &snapshot(Vec::new())), None);
}

#[test]
fn a_connector_that_asks_and_asks_is_told_of_once_a_minute() {
    let asks = |server: &str| Event::ApprovalRequested {
        approval: "x".into(),
        server: ConnectorId::parse(server).unwrap(),
        caller: "owner".into(),
    };
    let (mut told, begun) = (Told::default(), Instant::now());
    let mut tell = |server: &str, after: u64| {
        let now = begun + Duration::from_secs(after);
        told.banner(&asks(server), &snapshot(Vec::new()), now).is_some()
    };
    assert!(tell("a", 0));
    assert!(!tell("a", 1) && !tell("a", 59));
    assert!(tell("b", 59), "another one is told of");
    assert!(tell("a", 60));
}

#[test]
fn a_keychain_that_many_wait_for_is_one_need() {
    let waiting = |id: &str| view(id, id, Status::KeychainUnavailable);
    let mut snapshot = snapshot(vec![waiting("a"), waiting("b"), view("c", "c", Status::Connected)]);
    for (state, says) in [
        (KeychainState::Locked, "The keychain is locked…"),
        (KeychainState::Absent, "There is no keychain…"),
        (KeychainState::Slow, "The keychain does not answer…"),
        (KeychainState::Refused, "The keychain refuses…"),
    ] {
        snapshot.keychain.state = state;
        let shown = menu(&snapshot);
        assert_eq!(shown.icon, Icon::Attention);
        assert_eq!(
            shown.items[..3],
            [
                line("1 connected · 1 needs you"),
                button(says, Click::Open(Route::Connectors)),
                Item::Separator,
            ]
        );
    }
    // Nobody waits for it.
    snapshot.connectors.truncate(0);
    assert_eq!(menu(&snapshot).icon, Icon::Normal);
}

#[test]
fn a_taken_port_and_a_broken_file_come_before_connectors_and_call_for_attention() {
    let mut snapshot = snapshot(vec![view("files", "Files", Status::Error)]);
    snapshot.api = ApiView::PortTaken {
        port: 7771,
        message: "Port 7771 is held by \"other\" (process 12).".into(),
    };
    snapshot.config.notices = vec![
        notice(NoticeLevel::Error, None),
        notice(NoticeLevel::Error, Some("files")),
    ];
    let shown = menu(&snapshot);
    assert_eq!(shown.icon, Icon::Attention);
    assert_eq!(
        shown.items[..4],
        [
            line("None connected · 3 need you"),
            button("Port 7771 is taken by another program…", Click::Open(Route::Connectors)),
            button("connectors.json has a problem…", Click::Open(Route::Connectors)),
            button("Files: Not working…", Click::Open(Route::Connector("files".into()))),
        ]
    );
}

#[test]
fn questions_that_wait_call_for_attention_behind_what_is_broken_and_are_one_click_away() {
    let mut snapshot = snapshot(vec![view("files", "Files", Status::Error)]);
    let question = |id: &str| ApprovalView {
        id: id.into(),
        state: ApprovalState::Waiting,
        server: ConnectorId::parse("files").unwrap(),
        server_name: "Files".into(),
        asked_at: 0,
        refused: 0,
        expires_at: 0,
        question: Question::Elicitation {
            asks: Elicitation::Form {
                message: "words of the upstream".into(),
                schema: serde_json::Value::Null,
                defaults: serde_json::Value::Null,
            },
        },
    };
    snapshot.approvals = vec![question("1"), question("2")];
    let shown = menu(&snapshot);
    assert_eq!(shown.icon, Icon::Attention);
    assert_eq!(
        shown.items[..3],
        [
            line("None connected · 3 need you"),
            button("Files: Not working…", Click::Open(Route::Connector("files".into()))),
            button("Pending approvals (2)…", Click::Open(Route::Approvals)),
        ]
    );
    snapshot.connectors.clear();
    assert_eq!(menu(&snapshot).icon, Icon::Attention);
}

#[test]
fn tools_and_prompts_that_are_held_back_need_the_person_as_a_state_does() {
    for (tools, prompts, said) in [
        (1, 0, "Files: 1 tool needs your review…"),
        (14, 0, "Files: 14 tools need your review…"),
        (0, 1, "Files: 1 prompt needs your review…"),
        (2, 1, "Files: 2 tools and 1 prompt need your review…"),
    ] {
        let mut snapshot = snapshot(vec![
            view("files", "Files", Status::Connected),
            view("notion", "Notion", Status::NeedsSignIn),
            view("linear", "Linear", Status::Sleeping),
        ]);
        let held_back = Need::HeldBack { tools, prompts };
        snapshot.needs.insert("files".into(), held_back);
        let shown = menu(&snapshot);
        assert_eq!(shown.icon, Icon::Attention);
        assert_eq!(
            shown.items[..4],
            [
                line("1 connected · 2 need you"),
                button(said, Click::Open(Route::Connector("files".into()))),
                button(
                    "Notion: Sign-in needed…",
                    Click::Open(Route::Connector("notion".into()))
                ),
                Item::Separator,
            ]
        );
        assert_eq!(shown.items[4], toggle("files", "Files · Connected", true));
    }
}

#[test]
fn remarks_that_break_nothing_do_not_call_for_attention() {
    let mut snapshot = snapshot(vec![view("files", "Files", Status::Retrying)]);
    snapshot.config.notices = vec![notice(NoticeLevel::Warning, None), notice(NoticeLevel::Info, None)];
    assert_eq!(menu(&snapshot).icon, Icon::Normal);
}

#[test]
fn the_status_line_says_the_most_that_is_true() {
    for (statuses, said) in [
        (
            vec![Status::Connected, Status::Connected, Status::Sleeping],
            "2 connected",
        ),
        (vec![Status::Connecting, Status::Sleeping], "1 connecting"),
        (vec![Status::Sleeping, Status::Disabled], "1 ready"),
        (vec![Status::Disabled, Status::Disabled], "All off"),
        (vec![Status::Retrying], "None connected"),
        (vec![Status::NeedsSecret, Status::Error], "None connected · 2 need you"),
    ] {
        let views = statuses.into_iter().map(|s| view("x", "X", s)).collect();
        assert_eq!(menu(&snapshot(views)).items[0], line(said));
    }
}

#[test]
fn a_connector_that_is_tried_again_shows_the_attempt_and_what_can_be_done_about_it() {
    let retrying = |number, next_attempt_at| {
        let mut view = view("github", "GitHub", Status::Retrying);
        view.connection.retry = Some(RetryView {
            number,
            max: 5,
            scheduled_at: 0,
            next_attempt_at,
            delay_ms: next_attempt_at,
        });
        menu(&snapshot(vec![view]))
    };
    let id = ConnectorId::parse("github").unwrap();
    let shown = retrying(3, 8_000);
    assert_eq!(
        shown.items[2],
        Item::Submenu {
            text: "GitHub: attempt 3 of 5".into(),
            items: vec![
                button("Try now", Click::TryNow(id.clone())),
                button("Stop trying", Click::StopTrying(id.clone())),
                button("See why…", Click::Open(Route::Connector("github".into()))),
                toggle("github", "Turned on", true),
            ],
        }
    );
    assert_eq!(shown.toggled(&id), Some(false), "the toggle works there too");
    assert_eq!(shown, retrying(3, 4_000), "seconds change nothing");
    assert_ne!(shown, retrying(4, 8_000));
}

#[test]
fn an_entry_that_cannot_be_used_opens_its_page_instead_of_toggling() {
    for (id, status) in [
        ("bad", Status::Invalid),
        ("not an id", Status::Invalid),
        ("not an id", Status::Error),
    ] {
        let shown = menu(&snapshot(vec![view(id, "Bad", status)]));
        let Item::Button { click, .. } = &shown.items[3] else {
            panic!("{:?} is no button", shown.items[3]);
        };
        assert_eq!(click, &Click::Open(Route::Connector(id.into())));
    }
}

#[test]
fn a_long_list_shows_25_and_leads_to_the_others() {
    let views = |n| {
        (0..n)
            .map(|i| view(&format!("c{i}"), &format!("C{i}"), Status::Sleeping))
            .collect()
    };
    let toggles = |m: &Menu| m.items.iter().filter(|i| matches!(i, Item::Toggle { .. })).count();
    let all = button("All connectors…", Click::Open(Route::Connectors));
    let shown = menu(&snapshot(views(26)));
    assert_eq!((toggles(&shown), shown.items.contains(&all)), (25, true));
    let shown = menu(&snapshot(views(25)));
    assert_eq!((toggles(&shown), shown.items.contains(&all)), (25, false));
}

#[test]
fn many_needs_show_five_and_lead_to_the_others() {
    let views = (0..7)
        .map(|i| view(&format!("c{i}"), &format!("C{i}"), Status::Error))
        .collect();
    let shown = menu(&snapshot(views));
    assert_eq!(
        shown.items[5],
        button("C4: Not working…", Click::Open(Route::Connector("c4".into())))
    );
    assert_eq!(shown.items[6], button("2 more…", Click::Open(Route::Connectors)));
    assert_eq!(shown.items[7], Item::Separator);
}

#[test]
fn hostile_names_become_one_short_visible_line() {
    for (given, shown) in [
        ("Evil\u{202e}txt.exe", "Eviltxt.exe"),
        ("two\nlines\ttab", "two lines tab"),
        ("zero\u{200b}\u{feff}width\u{e0041}", "zerowidth"),
        ("bell\u{7}\u{1b}[31m", "bell[31m"),
        ("\u{200b}\u{202e}", "the-id"),
        ("   ", "the-id"),
        ("Salt & Pepper_1", "Salt & Pepper_1"),
    ] {
        let items = menu(&snapshot(vec![view("the-id", given, Status::Sleeping)])).items;
        assert_eq!(
            items[2],
            toggle("the-id", &format!("{shown} · Ready"), true),
            "for {given:?}"
        );
    }
    let exact = "é".repeat(64);
    assert_eq!(plain(&exact), exact);
    assert_eq!(plain(&"é".repeat(65)), format!("{}…", "é".repeat(63)));
}

#[test]
fn while_everything_is_paused_the_menu_offers_to_go_on() {
    let mut paused = snapshot(vec![]);
    paused.trust.paused = true;
    let items = menu(&paused).items;
    assert!(items.contains(&button("Resume", Click::PauseAll(false))));
    assert!(!items.contains(&button("Pause everything", Click::PauseAll(true))));
}

#[test]
fn every_click_survives_its_way_through_the_tray_and_nothing_else_does() {
    let id = ConnectorId::parse("a.b-c").unwrap();
    for click in [
        Click::Open(Route::Connectors),
        Click::Open(Route::AddConnector),
        Click::Open(Route::Approvals),
        Click::Open(Route::Connector("not an:id".into())),
        Click::Toggle(id.clone()),
        Click::TryNow(id.clone()),
        Click::StopTrying(id),
        Click::PauseAll(true),
        Click::PauseAll(false),
        Click::Quit,
    ] {
        assert_eq!(Click::parse(&click.id()), Some(click));
    }
    for id in [
        "",
        "toggle:",
        "toggle:not an id",
        "toggle",
        "quit:now",
        "other",
        "try:",
        "stop:not an id",
        "stop",
    ] {
        assert_eq!(Click::parse(id), None, "for {id:?}");
    }
}

#[test]
fn a_toggle_turns_to_the_other_side_of_what_was_shown() {
    let mut off = view("b", "B", Status::Disabled);
    off.enabled = false;
    let shown = menu(&snapshot(vec![view("a", "A", Status::Sleeping), off]));
    let toggled = |id| shown.toggled(&ConnectorId::parse(id).unwrap());
    assert_eq!(
        (toggled("a"), toggled("b"), toggled("c")),
        (Some(false), Some(true), None)
    );
}

#[test]
fn a_key_cannot_leave_its_place_in_the_route() {
    assert_eq!(
        Route::Connector("../x?y#z".into()).fragment(),
        "#/connectors/%2E%2E%2Fx%3Fy%23z"
    );
}

fn line(text: &str) -> Item {
    Item::Line(text.into())
}

fn button(text: &str, click: Click) -> Item {
    Item::Button {
        text: text.into(),
        click,
    }
}

fn toggle(id: &str, text: &str, on: bool) -> Item {
    Item::Toggle {
        text: text.into(),
        connector: ConnectorId::parse(id).unwrap(),
        on,
    }
}

fn notice(level: NoticeLevel, server: Option<&str>) -> Notice {
    Notice {
        level,
        message: "Something.".into(),
        line: None,
        column: None,
        server: server.map(Into::into),
    }
}

fn snapshot(connectors: Vec<ConnectorView>) -> Snapshot {
    Snapshot {
        version: "0.1.0".into(),
        api: ApiView::Listening { port: 7771 },
        config: ConfigView {
            path: "/home/p/.neuron/connectors.json".into(),
            is_default: false,
            notices: vec![],
        },
        needs: needs(&connectors, &Reviews::default()),
        connectors,
        keychain: KeychainView::unused(KeptIn::Keychain),
        sign_ins: Vec::new(),
        approvals: Vec::new(),
        missed: Vec::new(),
        reviews: Reviews::default(),
        trust: TrustView::default(),
    }
}

fn view(id: &str, name: &str, status: Status) -> ConnectorView {
    ConnectorView {
        id: id.into(),
        name: name.into(),
        description: String::new(),
        transport: TransportKind::Stdio,
        summary: String::new(),
        enabled: true,
        status,
        tools: 0,
        action: None,
        error: None,
        error_detail: None,
        progress: None,
        auth: AuthView {
            state: AuthState::None,
            scopes: None,
        },
        connection: ConnectionView {
            generation: 0,
            sequence: 0,
            since: 0,
            observed_at: 0,
            era: None,
            protocol: None,
            retry: None,
            readiness: Readiness::Unknown,
        },
        used_at: None,
        paused: None,
    }
}
