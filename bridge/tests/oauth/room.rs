//! The room that signs in, between a keychain in memory and an authorization server of its own process.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use neuron_bridge::{
    config::{ClientAuth, Grant, OAuth, Redirect, ResolvedOAuth},
    ids::ConnectorId,
    oauth::{
        Ask, AuthFault, Bearer, Begun, Callback, Challenge, Finished, SignInError, SignInOptions, SignIns, Signed,
        Target,
    },
    secrets::{KeepSecrets, Keychain, Places},
    snapshot::{SignInStage, SignInView},
    store::Store,
};
use neuron_tests::{
    authority::Authority,
    http::{Address, Answer, Connection},
};
use secrecy::{ExposeSecret, SecretString};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use url::Url;

/// The way back over the loopback port of every room.
pub(crate) const LOOPBACK: &str = "http://127.0.0.1:7771/mcp/oauth/callback";
pub(crate) const MINUTE: u64 = 60_000;
const PORT: u16 = 7771;

pub(crate) struct Room {
    pub(crate) runtime: Runtime,
    folder: TempDir,
    keychain: Keychain,
    /// Milliseconds by which the room's clock is ahead.
    ahead: Arc<AtomicU64>,
    /// 0: the port is not ours.
    port: Arc<AtomicU16>,
    pub(crate) sign_ins: Arc<SignIns>,
}

impl Room {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let (ahead, port) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU16::new(PORT)));
        let keychain = keychain(folder.path());
        let inside = runtime.enter();
        let sign_ins = sign_ins(&keychain, &ahead, &port);
        drop(inside);
        Self {
            runtime,
            folder,
            keychain,
            ahead,
            port,
            sign_ins,
        }
    }

    /// As after a restart: nothing but the keychain is left.
    pub(crate) fn restart(&mut self) {
        let _inside = self.runtime.enter();
        self.sign_ins = sign_ins(&self.keychain, &self.ahead, &self.port);
    }

    pub(crate) fn pass(&self, milliseconds: u64) {
        self.ahead.fetch_add(milliseconds, Ordering::Relaxed);
    }

    pub(crate) fn listen_at(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
    }

    pub(crate) fn authority(&self, options: &[(&str, &str)]) -> Authority {
        Authority::start(self.folder.path(), "authority", options)
    }

    pub(crate) fn second_authority(&self, options: &[(&str, &str)]) -> Authority {
        Authority::start(self.folder.path(), "second", options)
    }

    pub(crate) fn begin(&self, target: Target, ask: Ask) -> Result<Begun, SignInError> {
        self.runtime.block_on(self.sign_ins.begin(target, ask))
    }

    /// Brings an address back as a browser does.
    pub(crate) fn come_back(&self, address: &str) -> Finished {
        self.runtime
            .block_on(self.sign_ins.finish(Callback::from_pasted(address).unwrap(), |_| true))
    }

    /// A whole sign-in; the server's page says yes.
    pub(crate) fn sign_in(&self, authority: &Authority, target: &Target) -> Finished {
        let begun = self.begin(target.clone(), asked(authority)).unwrap();
        self.come_back(&authority.follow(begun.auth_url.as_str()))
    }

    pub(crate) fn signed(&self, target: &Target) -> Signed {
        self.runtime.block_on(self.sign_ins.bearer(target.clone())).unwrap()
    }

    pub(crate) fn bearer(&self, target: &Target) -> Arc<Bearer> {
        match self.signed(target) {
            Signed::In(bearer) => bearer,
            other @ (Signed::Nothing | Signed::SignedOut) => panic!("not signed in: {other:?}"),
        }
    }

    pub(crate) fn token(&self, bearer: &Bearer) -> Result<SecretString, AuthFault> {
        self.runtime.block_on(bearer.token())
    }

    pub(crate) fn refused(&self, bearer: &Bearer, used: &SecretString) -> Result<SecretString, AuthFault> {
        self.runtime
            .block_on(bearer.refused(used, Challenge("Bearer error=\"invalid_token\"".to_owned())))
    }

    pub(crate) fn stage(&self, id: &str) -> Option<SignInStage> {
        self.view(id).map(|view| view.stage)
    }

    pub(crate) fn view(&self, id: &str) -> Option<SignInView> {
        self.sign_ins
            .views()
            .into_iter()
            .find(|view| view.server.as_str() == id)
    }
}

fn keychain(folder: &Path) -> Keychain {
    let places = Places {
        service: "ai.neuron.connect.test".to_owned(),
        home: folder.to_owned(),
        file: folder.join("secrets"),
        store: Arc::new(Store::open(folder.join("state.db")).unwrap()),
    };
    Keychain::start(KeepSecrets::Memory, places).unwrap()
}

fn sign_ins(keychain: &Keychain, ahead: &Arc<AtomicU64>, port: &Arc<AtomicU16>) -> Arc<SignIns> {
    let (ahead, port) = (ahead.clone(), port.clone());
    SignIns::new(SignInOptions {
        keychain: keychain.clone(),
        loopback_port: Arc::new(move || Some(port.load(Ordering::Relaxed)).filter(|port| *port != 0)),
        now: Arc::new(move || now() + ahead.load(Ordering::Relaxed)),
    })
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

pub(crate) fn id(text: &str) -> ConnectorId {
    ConnectorId::parse(text).unwrap()
}

/// A connector of this server, without any settings.
pub(crate) fn target(name: &str, authority: &Authority) -> Target {
    Target {
        connector: id(name),
        name: format!("The {name}"),
        url: Url::parse(&authority.url()).unwrap(),
        oauth: None,
    }
}

/// With settings of its entry.
pub(crate) fn target_with(name: &str, authority: &Authority, change: impl FnOnce(&mut ResolvedOAuth)) -> Target {
    let mut oauth = ResolvedOAuth {
        settings: OAuth {
            client_id: None,
            client_secret: None,
            scopes: None,
            issuer: None,
            redirect: Redirect::Auto,
            grant: Grant::AuthorizationCode,
            client_auth: ClientAuth::Secret,
            private_key: None,
            algorithm: None,
            client_metadata_url: None,
            allow_missing_pkce: false,
        },
        client_secret: None,
        private_key: None,
    };
    change(&mut oauth);
    Target {
        oauth: Some(Arc::new(oauth)),
        ..target(name, authority)
    }
}

/// What the server says to a request without a token.
pub(crate) fn challenge(authority: &Authority) -> Challenge {
    challenge_of(&call(authority, None, "echo"))
}

pub(crate) fn challenge_of(answer: &Answer) -> Challenge {
    Challenge(answer.header("www-authenticate").unwrap_or_default().to_owned())
}

pub(crate) fn asked(authority: &Authority) -> Ask {
    Ask {
        challenge: Some(challenge(authority)),
        ..Ask::default()
    }
}

/// Calls a tool of the protected server.
pub(crate) fn call(authority: &Authority, token: Option<&SecretString>, tool: &str) -> Answer {
    let authorization = token.map(|token| format!("Bearer {}", token.expose_secret()));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#);
    Connection::open(&Address::Tcp(authority.port)).send("POST", "/mcp", &headers, body.as_bytes())
}

/// The value of one parameter of an address.
pub(crate) fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut found = url
        .query_pairs()
        .filter(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned());
    let value = found.next();
    assert_eq!(found.next(), None, "{name} is there twice: {url}");
    value
}
