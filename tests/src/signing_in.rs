//! Signing in at the authority that behaves as told, as a person without a window does: by its address, and back.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use url::{Position, Url};

use crate::{
    authority::Authority,
    daemon::{Daemon, Setup},
    home::{Home, config_text},
    http::{Answer, Connection},
};

/// How a browser comes from another site.
const BROWSER: [(&str, &str); 3] = [
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
];

/// A setup whose secrets outlive the bridge: in an encrypted file of this home.
///
/// # Panics
/// When the home is not writable.
pub fn kept_in_file(home: &Home) -> Setup {
    let key = home.path().join("secrets.key");
    std::fs::write(&key, "0123456789abcdef0123456789abcdef\n").expect("the home is writable");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("our own file");
    let setup = Setup {
        arguments: vec!["--secrets".to_owned(), "file".to_owned()],
        ..Setup::default()
    };
    setup.variable("NEURON_SECRETS_KEY_FILE", &key.display().to_string())
}

/// A bridge with one connector, `remote`, at an authority.
pub struct SignIn {
    pub bridge: Daemon,
    pub authority: Authority,
}

impl SignIn {
    /// Starts both; nobody is signed in.
    pub fn behind(options: &[(&str, &str)]) -> Self {
        Self::with(options, |authority| authority.entry())
    }

    /// As [`Self::behind`], with another entry.
    pub fn with(options: &[(&str, &str)], entry: impl Fn(&Authority) -> Value) -> Self {
        let home = Home::new();
        let authority = Authority::start(home.path(), "authority", options);
        home.write_config(&config_text([("remote", entry(&authority))]));
        let setup = kept_in_file(&home);
        Self {
            bridge: Daemon::start_in(home, setup),
            authority,
        }
    }

    /// The address of the page where one signs in to `id`.
    pub fn begin(&self, id: &str) -> String {
        let answer = self.ask_to_begin(&json!({"id": id})).ok();
        answer["authUrl"].as_str().expect("an address").to_owned()
    }

    pub fn ask_to_begin(&self, body: &Value) -> Answer {
        self.bridge.owner_post("/mcp/oauth/start", body)
    }

    /// Opens the address that a sign-in page led to, as the browser does.
    ///
    /// # Panics
    /// When it does not lead to this bridge.
    pub fn come_back(&self, location: &str) -> Answer {
        let url = Url::parse(location).expect("an address");
        assert_eq!(url.host_str(), Some("127.0.0.1"), "{location}");
        assert_eq!(url.port(), Some(self.bridge.port), "{location}");
        Connection::open(&self.bridge.tcp()).send("GET", &url[Position::BeforePath..], &BROWSER, b"")
    }

    /// Signs in to `id` and waits until it is connected; its row.
    ///
    /// # Panics
    /// When that does not work.
    pub fn sign_in(&self, id: &str) -> Value {
        let page = self.come_back(&self.authority.follow(&self.begin(id)));
        assert_eq!(page.status, 200, "{}", page.text());
        self.bridge.wait_for_status(id, "connected")
    }

    /// Ends the bridge and starts it again; the authority goes on.
    #[must_use]
    pub fn restart(self) -> Self {
        Self {
            bridge: self.bridge.restart(),
            authority: self.authority,
        }
    }
}
