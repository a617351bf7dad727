//! The tray menu as plain data, made from nothing but the snapshot. Whoever owns a tray draws it and hands clicks back.
//!
//! Names come from the person's file and may hold anything; what leaves here is short and has no invisible characters.

use crate::{
    ids::ConnectorId,
    snapshot::{ApiView, ConnectorView, NoticeLevel, Snapshot, Status},
};

/// Connectors shown by name; the window shows the others.
const SHOWN_CONNECTORS: usize = 25;
/// Lines that say what needs the person; the window shows the others.
const SHOWN_NEEDS: usize = 5;
/// Longest text taken from elsewhere, in characters.
const MAX_TEXT: usize = 64;

/// Everything the tray shows. Equal menus look the same, so only a different one needs drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Menu {
    pub icon: Icon,
    pub items: Vec<Item>,
}

/// Which of the two icons is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Icon {
    Normal,
    /// Something waits for the person.
    Attention,
}

/// One line of the menu. Texts are for people and hold no mnemonics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Says something and cannot be clicked.
    Line(String),
    Button {
        text: String,
        click: Click,
    },
    /// Has a check mark, which shows whether the connector is on.
    Toggle {
        text: String,
        connector: ConnectorId,
        on: bool,
    },
    Separator,
}

/// What a click asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Click {
    /// Show the window there.
    Open(Route),
    /// Turn the connector to the other side of what the menu showed.
    Toggle(ConnectorId),
    Quit,
}

/// A place in the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    Connectors,
    /// One connector, by its key as written in the file.
    Connector(String),
    AddConnector,
}

impl Route {
    /// What the window has after its address for this place: `#/connectors`, `#/connectors/<key, percent-encoded>`,
    /// `#/add`.
    pub fn fragment(&self) -> String {
        match self {
            Self::Connectors => "#/connectors".to_owned(),
            Self::Connector(key) => {
                let key = percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC);
                format!("#/connectors/{key}")
            }
            Self::AddConnector => "#/add".to_owned(),
        }
    }
}

impl Click {
    /// The id under which a tray carries the click: `open:<key or place>`, `toggle:<id>`, `quit`.
    pub fn id(&self) -> String {
        match self {
            Self::Open(Route::Connectors) => "open".to_owned(),
            Self::Open(Route::AddConnector) => "add".to_owned(),
            Self::Open(Route::Connector(key)) => format!("open:{key}"),
            Self::Toggle(connector) => format!("toggle:{connector}"),
            Self::Quit => "quit".to_owned(),
        }
    }

    /// Reads back what [`Click::id`] wrote; `None` for anything else.
    pub fn parse(id: &str) -> Option<Self> {
        match id.split_once(':') {
            None => match id {
                "open" => Some(Self::Open(Route::Connectors)),
                "add" => Some(Self::Open(Route::AddConnector)),
                "quit" => Some(Self::Quit),
                _ => None,
            },
            Some(("open", key)) => Some(Self::Open(Route::Connector(key.to_owned()))),
            Some(("toggle", id)) => ConnectorId::parse(id).ok().map(Self::Toggle),
            Some(_) => None,
        }
    }
}

impl Menu {
    /// What a click on this connector's toggle turns it to, going by what this menu shows.
    pub fn toggled(&self, id: &ConnectorId) -> Option<bool> {
        self.items.iter().find_map(|item| match item {
            Item::Toggle { connector, on, .. } => (connector == id).then_some(!on),
            Item::Line(_) | Item::Button { .. } | Item::Separator => None,
        })
    }
}

/// Draws the snapshot as a menu.
pub fn menu(snapshot: &Snapshot) -> Menu {
    let needs = needs(snapshot);
    let mut items = vec![Item::Line(status_line(&snapshot.connectors, needs.len()))];
    let icon = if needs.is_empty() {
        Icon::Normal
    } else {
        Icon::Attention
    };
    let hidden = needs.len().saturating_sub(SHOWN_NEEDS);
    items.extend(needs.into_iter().take(SHOWN_NEEDS));
    if hidden > 0 {
        items.push(open(format!("{hidden} more…"), Route::Connectors));
    }
    items.push(Item::Separator);

    items.extend(snapshot.connectors.iter().take(SHOWN_CONNECTORS).map(connector));
    if snapshot.connectors.len() > SHOWN_CONNECTORS {
        items.push(open("All connectors…", Route::Connectors));
    }
    items.push(open("Add connector…", Route::AddConnector));
    items.push(Item::Separator);

    items.push(open("Open Neuron Connect", Route::Connectors));
    items.push(Item::Button {
        text: "Quit".to_owned(),
        click: Click::Quit,
    });
    Menu { icon, items }
}

fn open(text: impl Into<String>, route: Route) -> Item {
    Item::Button {
        text: text.into(),
        click: Click::Open(route),
    }
}

fn status_line(connectors: &[ConnectorView], needs: usize) -> String {
    let count = |wanted: Status| connectors.iter().filter(|c| c.status == wanted).count();
    let (connected, connecting, ready) = (
        count(Status::Connected),
        count(Status::Connecting),
        count(Status::Sleeping),
    );
    let mut line = if connectors.is_empty() {
        "No connectors yet".to_owned()
    } else if connected > 0 {
        format!("{connected} connected")
    } else if connecting > 0 {
        format!("{connecting} connecting")
    } else if ready > 0 {
        format!("{ready} ready")
    } else if connectors.iter().all(|c| c.status == Status::Disabled) {
        "All off".to_owned()
    } else {
        "None connected".to_owned()
    };
    match needs {
        0 => {}
        1 => line.push_str(" · 1 needs you"),
        more => line.push_str(&format!(" · {more} need you")),
    }
    line
}

/// What only the person can mend: first what touches everything, then connector by connector.
fn needs(snapshot: &Snapshot) -> Vec<Item> {
    let mut needs = Vec::new();
    match &snapshot.api {
        ApiView::Starting { .. } | ApiView::Listening { .. } => {}
        ApiView::PortTaken { port, .. } => {
            needs.push(open(
                format!("Port {port} is taken by another program…"),
                Route::Connectors,
            ));
        }
    }
    // A notice about one connector shows as that connector's own state.
    let broken_file = |n: &&crate::snapshot::Notice| n.level == NoticeLevel::Error && n.server.is_none();
    if snapshot.config.notices.iter().any(|n| broken_file(&n)) {
        needs.push(open("connectors.json has a problem…", Route::Connectors));
    }
    for c in &snapshot.connectors {
        let what = match c.status {
            Status::NeedsSignIn | Status::NeedsSecret | Status::Error | Status::Invalid => words(c.status),
            Status::Disabled | Status::Sleeping | Status::Connecting | Status::Connected | Status::Retrying => continue,
        };
        needs.push(open(format!("{}: {what}…", name(c)), Route::Connector(c.id.clone())));
    }
    needs
}

fn connector(view: &ConnectorView) -> Item {
    let text = format!("{} · {}", name(view), words(view.status));
    match ConnectorId::parse(&view.id) {
        Ok(connector) if view.status != Status::Invalid => Item::Toggle {
            text,
            connector,
            on: view.enabled,
        },
        Ok(_) | Err(_) => open(text, Route::Connector(view.id.clone())),
    }
}

fn words(status: Status) -> &'static str {
    match status {
        Status::Disabled => "Off",
        Status::Sleeping => "Ready",
        Status::Connecting => "Connecting…",
        Status::Connected => "Connected",
        Status::Retrying => "Trying again",
        Status::NeedsSignIn => "Sign-in needed",
        Status::NeedsSecret => "Key needed",
        Status::Error => "Not working",
        Status::Invalid => "Entry has a mistake",
    }
}

fn name(view: &ConnectorView) -> String {
    let name = plain(&view.name);
    if name.is_empty() { plain(&view.id) } else { name }
}

/// One line of at most [`MAX_TEXT`] visible characters.
fn plain(text: &str) -> String {
    let visible: String = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !c.is_control() && !is_invisible(*c))
        .collect();
    let visible = visible.trim();
    if visible.chars().count() <= MAX_TEXT {
        return visible.to_owned();
    }
    let mut cut: String = visible.chars().take(MAX_TEXT - 1).collect();
    cut.push('…');
    cut
}

/// Zero-width characters, marks and overrides of writing direction, and the TAG block.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{AuthState, AuthView, ConfigView, ConnectionView, Notice, Readiness, TransportKind};

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
                    button("Quit", Click::Quit),
                ],
            }
        );
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
    fn every_click_survives_its_way_through_the_tray_and_nothing_else_does() {
        let id = ConnectorId::parse("a.b-c").unwrap();
        for click in [
            Click::Open(Route::Connectors),
            Click::Open(Route::AddConnector),
            Click::Open(Route::Connector("not an:id".into())),
            Click::Toggle(id),
            Click::Quit,
        ] {
            assert_eq!(Click::parse(&click.id()), Some(click));
        }
        for id in ["", "toggle:", "toggle:not an id", "toggle", "quit:now", "other"] {
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
            connectors,
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
            auth: AuthView { state: AuthState::None },
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
        }
    }
}
