//! A real keyring for one test: a session bus of its own, and gnome-keyring in a home of its own.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::Signal;
use tempfile::TempDir;
use zbus::{
    blocking::{Connection, Proxy, connection},
    zvariant::{OwnedObjectPath, OwnedValue, Value},
};

use crate::{
    daemon::Setup,
    process, program,
    wait::{SOON, eventually},
};

const PASSWORD: &str = "test";
const BUS_NAME: &str = "org.freedesktop.secrets";
const ROOT: &str = "/org/freedesktop/secrets";
const SERVICE: &str = "org.freedesktop.Secret.Service";
const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const LOGIN: &str = "/org/freedesktop/secrets/collection/login";

/// The bus that a keyring may come to. Everything on it ends with it.
pub struct Session {
    folder: TempDir,
    bus: Child,
    keyring: Option<Child>,
}

impl Session {
    /// A bus without a keyring, and without the means to start one.
    ///
    /// # Panics
    /// When it does not start.
    pub fn without_keyring() -> Self {
        let folder = TempDir::with_prefix("nk-").expect("a temporary folder");
        for name in ["run", "home"] {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("the folder is writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("the folder is ours");
        }
        let config = folder.path().join("bus.conf");
        fs::write(&config, bus_config(&folder.path().join("run/bus"))).expect("the folder is writable");
        let mut bus = Command::new(program::system("dbus-daemon"))
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--nopidfile", "--print-address=1"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon starts");
        let mut address = String::new();
        let out = bus.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut address).expect("a line");
        assert!(address.starts_with("unix:"), "no address: {address:?}");
        Self {
            folder,
            bus,
            keyring: None,
        }
    }

    /// With an unlocked keyring.
    pub fn start() -> Self {
        let mut session = Self::without_keyring();
        session.start_keyring();
        session
    }

    /// What programs of this session have in their environment, with secrets in its keyring.
    pub fn setup(&self) -> Setup {
        self.setup_with("keychain")
    }

    /// The same, with secrets kept elsewhere.
    pub fn setup_with(&self, secrets: &str) -> Setup {
        Setup::default()
            .argument("--secrets")
            .argument(secrets)
            .variable("DBUS_SESSION_BUS_ADDRESS", &self.address())
            .variable("XDG_RUNTIME_DIR", &self.path("run"))
    }

    /// Starts the keyring, with what it held before, and waits until it is open.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_keyring(&mut self) {
        let mut keyring = Command::new(program::system("gnome-keyring-daemon"))
            .args(["--foreground", "--unlock", "--components=secrets"])
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("DBUS_SESSION_BUS_ADDRESS", self.address())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("gnome-keyring-daemon starts");
        let mut input = keyring.stdin.take().expect("piped");
        input.write_all(PASSWORD.as_bytes()).expect("it reads the password");
        drop(input);
        self.keyring = Some(keyring);
        eventually("an open keyring", SOON, || {
            let bus = self.connect();
            let path: OwnedObjectPath = root(&bus)?.call("ReadAlias", &("default",)).ok()?;
            (path.as_str() == LOGIN).then_some(())
        });
    }

    /// Ends the keyring; what it held stays on disk.
    ///
    /// # Panics
    /// When there is none.
    pub fn stop_keyring(&mut self) {
        let mut keyring = self.keyring.take().expect("a keyring runs");
        process::signal(keyring.id(), Signal::TERM);
        keyring.wait().expect("our own child can be reaped");
        eventually("the keyring is gone from the bus", SOON, || {
            let bus = self.connect();
            root(&bus)?
                .call::<_, _, OwnedObjectPath>("ReadAlias", &("default",))
                .err()
        });
    }

    /// Keeps it from answering, until it is thawed.
    ///
    /// # Panics
    /// When there is none.
    pub fn freeze_keyring(&self) {
        process::signal(self.keyring.as_ref().expect("a keyring runs").id(), Signal::STOP);
    }

    /// # Panics
    /// When there is none.
    pub fn thaw_keyring(&self) {
        process::signal(self.keyring.as_ref().expect("a keyring runs").id(), Signal::CONT);
    }

    /// # Panics
    /// When it refuses.
    pub fn lock(&self) {
        let bus = self.connect();
        let login = [OwnedObjectPath::try_from(LOGIN).expect("a path")];
        let (locked, _prompt): (Vec<OwnedObjectPath>, OwnedObjectPath) = root(&bus)
            .and_then(|root| root.call("Lock", &(&login[..],)).ok())
            .expect("it can be locked");
        assert_eq!(locked.len(), 1);
    }

    /// As the desktop does when the person gives their password.
    ///
    /// # Panics
    /// When it refuses.
    pub fn unlock(&self) {
        let bus = self.connect();
        let (_, session): (OwnedValue, OwnedObjectPath) = root(&bus)
            .and_then(|root| root.call("OpenSession", &("plain", Value::from(""))).ok())
            .expect("a session for the password");
        let login = OwnedObjectPath::try_from(LOGIN).expect("a path");
        let password = (session, Vec::<u8>::new(), PASSWORD.as_bytes().to_vec(), "text/plain");
        let interface = "org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface";
        let unlocking = Proxy::new(&bus, BUS_NAME, ROOT, interface).expect("a proxy");
        unlocking
            .call::<_, _, ()>("UnlockWithMasterPassword", &(login, password))
            .expect("the password is right");
    }

    /// The accounts of what was entered or signed in to: all but the key of what the person decided.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn entered(&self, service: &str) -> Vec<String> {
        let mut accounts = self.accounts(service);
        accounts.retain(|account| account != ":trust");
        accounts
    }

    /// The accounts under a service name, in order; also while it is locked.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn accounts(&self, service: &str) -> Vec<String> {
        let bus = self.connect();
        let wanted = HashMap::from([("service", service)]);
        let (open, locked): (Vec<OwnedObjectPath>, Vec<OwnedObjectPath>) = root(&bus)
            .and_then(|root| root.call("SearchItems", &(wanted,)).ok())
            .expect("it can be searched");
        let account = |path: &OwnedObjectPath| {
            let item = Proxy::new(&bus, BUS_NAME, path.as_str(), "org.freedesktop.Secret.Item").ok()?;
            let attributes: HashMap<String, String> = item.get_property("Attributes").ok()?;
            attributes.get("username").cloned()
        };
        let mut accounts: Vec<_> = open.iter().chain(&locked).filter_map(account).collect();
        accounts.sort();
        accounts
    }

    /// Keeps a value under an account, as another run of the program would have.
    ///
    /// # Panics
    /// When it refuses.
    pub fn put(&self, service: &str, account: &str, value: &str) {
        let bus = self.connect();
        let (_, session): (OwnedValue, OwnedObjectPath) = root(&bus)
            .and_then(|root| root.call("OpenSession", &("plain", Value::from(""))).ok())
            .expect("a session for the value");
        let attributes = HashMap::from([("service", service), ("username", account)]);
        let properties = HashMap::from([
            ("org.freedesktop.Secret.Item.Label", Value::from(account)),
            ("org.freedesktop.Secret.Item.Attributes", Value::from(attributes)),
        ]);
        let secret = (session, Vec::<u8>::new(), value.as_bytes().to_vec(), "text/plain");
        let login = Proxy::new(&bus, BUS_NAME, LOGIN, COLLECTION).expect("a proxy");
        let _item: (OwnedObjectPath, OwnedObjectPath) = login
            .call("CreateItem", &(properties, secret, true))
            .expect("it takes the value");
    }

    fn connect(&self) -> Connection {
        connection::Builder::address(self.address().as_str())
            .and_then(connection::Builder::build)
            .expect("the bus is there")
    }

    fn address(&self) -> String {
        format!("unix:path={}", self.path("run/bus"))
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for child in self.keyring.iter_mut().chain([&mut self.bus]) {
            // A frozen one is killed as well.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn root(bus: &Connection) -> Option<Proxy<'static>> {
    Proxy::new(bus, BUS_NAME, ROOT, SERVICE).ok()
}

/// No service can be started by this bus.
fn bus_config(socket: &Path) -> String {
    format!(
        r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default"><allow send_destination="*"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>
"#,
        socket.display()
    )
}
