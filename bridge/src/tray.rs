//! The tray menu as plain data, made from nothing but the snapshot. Whoever owns a tray draws it and hands clicks back.
//!
//! Names come from the person's file and may hold anything; what leaves here is short and has no invisible characters.

use crate::{
    ids::ConnectorId,
    snapshot::{ApiView, ConnectorView, KeychainState, Need, NoticeLevel, RetryView, Snapshot, Status},
};

mod banner;

pub use banner::{Banner, Told, banner};

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
    /// More lines behind this one.
    Submenu {
        text: String,
        items: Vec<Item>,
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
    /// Connect now instead of at the scheduled time.
    TryNow(ConnectorId),
    /// Give up the attempts that are scheduled.
    StopTrying(ConnectorId),
    /// Pause everything, or go on.
    PauseAll(bool),
    Quit,
}

/// A place in the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    Connectors,
    /// One connector, by its key as written in the file.
    Connector(String),
    AddConnector,
    /// The questions that wait.
    Approvals,
}

impl Route {
    /// What the window has after its address for this place: `#/connectors`, `#/connectors/<key, percent-encoded>`,
    /// `#/add`, `#/approvals`.
    pub fn fragment(&self) -> String {
        match self {
            Self::Connectors => "#/connectors".to_owned(),
            Self::Connector(key) => {
                let key = percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC);
                format!("#/connectors/{key}")
            }
            Self::AddConnector => "#/add".to_owned(),
            Self::Approvals => "#/approvals".to_owned(),
        }
    }
}

impl Click {
    /// The id under which a tray carries the click: `open:<key or place>`, `add`, `approvals`, `toggle:<id>`, `try:<id>`,
    /// `stop:<id>`, `pause`, `resume`, `quit`.
    pub fn id(&self) -> String {
        match self {
            Self::Open(Route::Connectors) => "open".to_owned(),
            Self::Open(Route::AddConnector) => "add".to_owned(),
            Self::Open(Route::Approvals) => "approvals".to_owned(),
            Self::Open(Route::Connector(key)) => format!("open:{key}"),
            Self::Toggle(connector) => format!("toggle:{connector}"),
            Self::TryNow(connector) => format!("try:{connector}"),
            Self::StopTrying(connector) => format!("stop:{connector}"),
            Self::PauseAll(true) => "pause".to_owned(),
            Self::PauseAll(false) => "resume".to_owned(),
            Self::Quit => "quit".to_owned(),
        }
    }

    /// Reads back what [`Click::id`] wrote; `None` for anything else.
    pub fn parse(id: &str) -> Option<Self> {
        match id.split_once(':') {
            None => match id {
                "open" => Some(Self::Open(Route::Connectors)),
                "add" => Some(Self::Open(Route::AddConnector)),
                "approvals" => Some(Self::Open(Route::Approvals)),
                "pause" => Some(Self::PauseAll(true)),
                "resume" => Some(Self::PauseAll(false)),
                "quit" => Some(Self::Quit),
                _ => None,
            },
            Some(("open", key)) => Some(Self::Open(Route::Connector(key.to_owned()))),
            Some(("toggle", id)) => ConnectorId::parse(id).ok().map(Self::Toggle),
            Some(("try", id)) => ConnectorId::parse(id).ok().map(Self::TryNow),
            Some(("stop", id)) => ConnectorId::parse(id).ok().map(Self::StopTrying),
            Some(_) => None,
        }
    }
}

impl Menu {
    /// What a click on this connector's toggle turns it to, going by what this menu shows.
    pub fn toggled(&self, id: &ConnectorId) -> Option<bool> {
        toggled(&self.items, id)
    }
}

fn toggled(items: &[Item], id: &ConnectorId) -> Option<bool> {
    items.iter().find_map(|item| match item {
        Item::Toggle { connector, on, .. } => (connector == id).then_some(!on),
        Item::Submenu { items, .. } => toggled(items, id),
        Item::Line(_) | Item::Button { .. } | Item::Separator => None,
    })
}

/// Draws the snapshot as a menu.
pub fn menu(snapshot: &Snapshot) -> Menu {
    let needs = needs(snapshot);
    let questions = snapshot.approvals.len();
    let mut items = vec![Item::Line(status_line(&snapshot.connectors, needs.len() + questions))];
    let icon = if needs.is_empty() && questions == 0 {
        Icon::Normal
    } else {
        Icon::Attention
    };
    let hidden = needs.len().saturating_sub(SHOWN_NEEDS);
    items.extend(needs.into_iter().take(SHOWN_NEEDS));
    if hidden > 0 {
        items.push(open(format!("{hidden} more…"), Route::Connectors));
    }
    if questions > 0 {
        items.push(open(format!("Pending approvals ({questions})…"), Route::Approvals));
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
        text: match snapshot.trust.paused {
            true => "Resume".to_owned(),
            false => "Pause everything".to_owned(),
        },
        click: Click::PauseAll(!snapshot.trust.paused),
    });
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
    let waits = |c: &ConnectorView| c.status == Status::KeychainUnavailable;
    let keychain = keychain(snapshot.keychain.state).filter(|_| snapshot.connectors.iter().any(waits));
    if let Some(text) = keychain {
        needs.push(open(text, Route::Connectors));
    }
    for c in &snapshot.connectors {
        // One line stands for all that wait for the keychain.
        if keychain.is_some() && waits(c) {
            continue;
        }
        let what = match snapshot.needs.get(&c.id) {
            Some(Need::State) => words(c.status).to_owned(),
            Some(Need::HeldBack { tools, prompts }) => held_back(*tools, *prompts),
            None => continue,
        };
        needs.push(open(format!("{}: {what}…", name(c)), Route::Connector(c.id.clone())));
    }
    needs
}

fn keychain(state: KeychainState) -> Option<&'static str> {
    match state {
        KeychainState::Unused | KeychainState::Ready => None,
        KeychainState::Locked => Some("The keychain is locked…"),
        KeychainState::Absent => Some("There is no keychain…"),
        KeychainState::Slow => Some("The keychain does not answer…"),
        KeychainState::Refused => Some("The keychain refuses…"),
    }
}

fn connector(view: &ConnectorView) -> Item {
    if let (Some(retry), Ok(id)) = (&view.connection.retry, ConnectorId::parse(&view.id)) {
        return retrying(view, retry, id);
    }
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

/// At least one of them waits.
fn held_back(tools: u32, prompts: u32) -> String {
    let of = |count: u32, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let what = match (tools, prompts) {
        (_, 0) => of(tools, "tool"),
        (0, _) => of(prompts, "prompt"),
        (_, _) => format!("{} and {}", of(tools, "tool"), of(prompts, "prompt")),
    };
    let need = if tools.saturating_add(prompts) == 1 {
        "needs"
    } else {
        "need"
    };
    format!("{what} {need} your review")
}

/// Without the seconds until the attempt: a menu that changes while it is open cannot be used.
fn retrying(view: &ConnectorView, retry: &RetryView, id: ConnectorId) -> Item {
    let button = |text: &str, click| Item::Button {
        text: text.to_owned(),
        click,
    };
    Item::Submenu {
        text: format!("{}: attempt {} of {}", name(view), retry.number, retry.max),
        items: vec![
            button("Try now", Click::TryNow(id.clone())),
            button("Stop trying", Click::StopTrying(id.clone())),
            open("See why…", Route::Connector(view.id.clone())),
            Item::Toggle {
                text: "Turned on".to_owned(),
                connector: id,
                on: view.enabled,
            },
        ],
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
        Status::NeedsReview => "Needs your review",
        Status::Paused => "Paused",
        Status::KeychainUnavailable => "Keychain locked or missing",
        Status::Error => "Not working",
        Status::Invalid => "Has a mistake in the file",
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
mod tests;
